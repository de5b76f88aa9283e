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
/// Between two looks at whether a wait has lasted too long.
const LOOK: Duration = Duration::from_secs(1);
/// A longer pause than this between two polls is none of the rank's own: it was halted, and has not waited.
const HALTED: Duration = Duration::from_millis(500);

/// One wait: `while !done { if wait.pause() { … } }`. The clock is first read when the first poll was in
/// vain.
#[derive(Default)]
pub(crate) struct Wait {
    last: Option<Instant>,
    waited: Duration,
    looked: Duration,
}

impl Wait {
    /// Leaves others the core for a moment. True once for each second of the wait.
    pub fn pause(&mut self) -> bool {
        let now = Instant::now();
        let since = self.last.map_or(Duration::ZERO, |last| now - last);
        self.last = Some(now);
        self.waited += since.min(HALTED);
        if self.waited < SPIN {
            std::hint::spin_loop();
            return false;
        }
        if self.waited < YIELD {
            std::thread::yield_now();
            return false;
        }
        std::thread::sleep(SLEEP);
        let look = self.waited - self.looked >= LOOK;
        if look {
            self.looked = self.waited;
        }
        look
    }

    pub fn waited(&self) -> Duration {
        self.waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_until(mut done: impl FnMut() -> bool) -> u32 {
        let (mut wait, mut looks) = (Wait::default(), 0);
        while !done() {
            looks += u32::from(wait.pause());
        }
        looks
    }

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

    #[test]
    fn a_wait_is_looked_at_now_and_then_and_halts_do_not_count() {
        let mut wait = Wait { last: Some(Instant::now()), waited: LOOK * 3, looked: LOOK * 2 };
        assert!(wait.pause() && !wait.pause());
        let before = wait.waited();
        wait.last = Instant::now().checked_sub(Duration::from_secs(3));
        wait.pause();
        assert_eq!(wait.waited() - before, HALTED, "three seconds that the rank did not poll");
    }
}
