//! Ctrl-C and its relatives: noted when they come, acted upon where ranks agree next: the state is saved and
//! the run ends.

use decomposition::watch;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A request to stop, from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// SIGHUP: the terminal has gone.
    Hangup,
    Interrupt,
    /// SIGUSR1: the time that a scheduler allows is nearly over.
    User,
    Terminate,
    /// SIGXCPU: the processor time that the system allows is over.
    ProcessorTime,
}

impl Signal {
    const ALL: [Signal; 5] =
        [Signal::Hangup, Signal::Interrupt, Signal::User, Signal::Terminate, Signal::ProcessorTime];

    pub fn number(self) -> i32 {
        match self {
            Signal::Hangup => signal_hook::consts::SIGHUP,
            Signal::Interrupt => signal_hook::consts::SIGINT,
            Signal::User => signal_hook::consts::SIGUSR1,
            Signal::Terminate => signal_hook::consts::SIGTERM,
            Signal::ProcessorTime => signal_hook::consts::SIGXCPU,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Signal::Hangup => "SIGHUP",
            Signal::Interrupt => "SIGINT",
            Signal::User => "SIGUSR1",
            Signal::Terminate => "SIGTERM",
            Signal::ProcessorTime => "SIGXCPU",
        }
    }

    /// 128 and the number of the signal, as shells have it.
    pub fn exit_code(self) -> u8 {
        128 + self.number() as u8
    }

    pub fn decode(number: f64) -> Option<Signal> {
        Signal::ALL.into_iter().find(|signal| f64::from(signal.number()) == number)
    }
}

/// From here on a signal no longer ends the process. Ctrl-C a second time does, at once; the others may come
/// any number of times, because schedulers and `mpirun` both pass them on and a rank then gets them twice.
///
/// A file larger than the system allows (SIGXFSZ) then is a write that fails, with a message as any other.
///
/// Before, nothing has been written that a signal could spoil, and its usual action is right. It stays so to
/// the end of the process: the run has ended then, or another begins.
pub(super) fn listen() -> std::io::Result<()> {
    static LISTENING: Mutex<bool> = Mutex::new(false);
    let Ok(mut listening) = LISTENING.lock() else { return Ok(()) };
    if std::mem::replace(&mut *listening, true) {
        return Ok(());
    }
    let noted = watch::signals();
    for signal in Signal::ALL {
        let number = signal.number();
        if signal == Signal::Interrupt {
            let again = Arc::new(AtomicBool::new(false));
            let code = i32::from(signal.exit_code());
            // In this order: the first signal finds `again` unset, and sets it after.
            signal_hook::flag::register_conditional_shutdown(number, code, again.clone())?;
            signal_hook::flag::register(number, again)?;
        }
        signal_hook::flag::register_usize(number, noted.clone(), number as usize)?;
    }
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    Ok(())
}

/// The number of the last signal, as ranks send it to each other; 0 if none came.
pub(super) fn noted() -> f64 {
    watch::signals().load(Ordering::Relaxed) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_codes_are_those_of_the_system() {
        for signal in Signal::ALL {
            assert_eq!(Signal::decode(f64::from(signal.number())), Some(signal));
        }
        assert_eq!(Signal::decode(0.0), None);
        assert_eq!(Signal::ALL.map(Signal::exit_code), [129, 130, 138, 143, 152]);
    }
}
