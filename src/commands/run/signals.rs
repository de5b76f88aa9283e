//! Ctrl-C and its relatives: noted when they come, acted upon at the end of the step: the state is saved and
//! the run ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A request to stop, from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    Interrupt,
    Terminate,
    /// SIGUSR1: the time that a scheduler allows is nearly over.
    User,
}

impl Signal {
    const ALL: [Signal; 3] = [Signal::Interrupt, Signal::Terminate, Signal::User];

    pub fn number(self) -> i32 {
        match self {
            Signal::Interrupt => signal_hook::consts::SIGINT,
            Signal::Terminate => signal_hook::consts::SIGTERM,
            Signal::User => signal_hook::consts::SIGUSR1,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Signal::Interrupt => "SIGINT",
            Signal::Terminate => "SIGTERM",
            Signal::User => "SIGUSR1",
        }
    }

    /// 128 and the number of the signal, as shells have it.
    pub fn exit_code(self) -> u8 {
        128 + self.number() as u8
    }
}

/// Signals that have come to this rank.
pub struct Signals {
    noted: Arc<AtomicUsize>,
    registered: Vec<signal_hook::SigId>,
}

impl Signals {
    /// From here on a signal no longer ends the process. Ctrl-C a second time does, at once; the others may
    /// come any number of times, because schedulers and `mpirun` both pass them on and a rank then gets them
    /// twice.
    pub fn listen() -> std::io::Result<Self> {
        let mut signals = Self { noted: Arc::new(AtomicUsize::new(0)), registered: Vec::new() };
        for signal in Signal::ALL {
            let number = signal.number();
            if signal == Signal::Interrupt {
                let again = Arc::new(AtomicBool::new(false));
                let code = i32::from(signal.exit_code());
                // In this order: the first signal finds `again` unset, and sets it after.
                let shutdown = signal_hook::flag::register_conditional_shutdown(number, code, again.clone())?;
                let arm = signal_hook::flag::register(number, again)?;
                signals.registered.extend([shutdown, arm]);
            }
            let note = signal_hook::flag::register_usize(number, signals.noted.clone(), number as usize)?;
            signals.registered.push(note);
        }
        Ok(signals)
    }

    /// The number of the last signal, as ranks send it to each other; 0 if none came.
    pub fn noted(&self) -> f64 {
        self.noted.load(Ordering::Relaxed) as f64
    }

    pub fn decode(number: f64) -> Option<Signal> {
        Signal::ALL.into_iter().find(|signal| f64::from(signal.number()) == number)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_codes_are_those_of_the_system() {
        for signal in Signal::ALL {
            assert_eq!(Signals::decode(f64::from(signal.number())), Some(signal));
        }
        assert_eq!(Signals::decode(0.0), None);
        assert_eq!(Signal::ALL.map(Signal::exit_code), [130, 143, 138]);
    }
}
