//! How a rank waits for messages: it polls, and the longer it waits the more it leaves the core to others.
//!
//! Messages between ranks that each have a core arrive within microseconds: those are spent polling. Where
//! other programs or other ranks want the core, whoever is waited for may be one of them: the rank yields.
//! Only a wait of many milliseconds sleeps between polls, since waking takes some 50 µs.

use std::time::{Duration, Instant};

/// Polling without a pause.
const SPIN: Duration = Duration::from_micros(20);
/// Yielding between polls; afterwards sleeping.
const YIELD: Duration = Duration::from_millis(10);
const SLEEP: Duration = Duration::from_micros(50);

/// Returns when `done` does.
pub(crate) fn wait_until(mut done: impl FnMut() -> bool) {
    if done() {
        return;
    }
    let begun = Instant::now();
    loop {
        if done() {
            return;
        }
        pause(begun.elapsed());
    }
}

fn pause(waited: Duration) {
    if waited < SPIN {
        std::hint::spin_loop();
    } else if waited < YIELD {
        std::thread::yield_now();
    } else {
        std::thread::sleep(SLEEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_what_it_waits_for() {
        for length in [Duration::ZERO, SPIN, YIELD / 2, 2 * YIELD] {
            let begun = Instant::now();
            let mut polls = 0;
            wait_until(|| {
                polls += 1;
                begun.elapsed() >= length
            });
            assert!(begun.elapsed() >= length && polls > 0);
        }
    }

    #[test]
    fn a_long_wait_sleeps() {
        let begun = Instant::now();
        let mut late_polls = 0u32;
        wait_until(|| {
            late_polls += u32::from(begun.elapsed() > YIELD);
            begun.elapsed() > YIELD + 200 * SLEEP
        });
        assert!(late_polls <= 250, "{late_polls} polls in 200 intervals");
    }
}
