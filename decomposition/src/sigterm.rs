//! METIS and signals: which thread gets SIGTERM, and how METIS is kept from it.
//!
//! METIS reports its own errors by SIGABRT and SIGTERM. Each of its calls puts handlers in the place of ours
//! that jump back into the call, and at its end puts ours back by `signal`, without their flags: System V
//! semantics, by which a handler serves once and the next signal kills. A SIGTERM from outside during the
//! call jumps out of the middle of it, or, in a thread that is not in METIS, nowhere.
//!
//! Therefore the thread that calls METIS does so through [`undisturbed`], which holds SIGTERM back until the
//! handlers are ours again, and all other threads are begun in [`held_back`], so that they never get it. MPI
//! has threads of its own: it is initialised there as well.

use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

/// The signals for which METIS has handlers.
const TAKEN: [libc::c_int; 2] = [libc::SIGABRT, libc::SIGTERM];

/// Holds SIGTERM back from this thread, and for ever from those that `work` begins. One that comes meanwhile
/// has its effect afterwards.
pub fn held_back<R>(work: impl FnOnce() -> R) -> R {
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the sets are initialised by the calls before they are read; the arguments are valid, so that
    // none of them fails.
    let before = unsafe {
        let mut term = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(term.as_mut_ptr());
        libc::sigaddset(term.as_mut_ptr(), libc::SIGTERM);
        libc::pthread_sigmask(libc::SIG_BLOCK, term.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    };
    let _mask = Mask(before);
    work()
}

/// Puts a mask of signals back, also after a panic.
struct Mask(libc::sigset_t);

impl Drop for Mask {
    fn drop(&mut self) {
        // SAFETY: the mask is one that this thread had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// A call of METIS, after which the handlers of the process are what they were, and during which no signal
/// from outside is lost. One at a time: handlers belong to the process.
pub(crate) fn undisturbed<R>(metis: impl FnOnce() -> R) -> R {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    held_back(|| {
        let _handlers = Handlers(TAKEN.map(|signal| (signal, action(signal))));
        metis()
    })
}

/// Puts handlers back, with all their flags.
struct Handlers([(libc::c_int, libc::sigaction); 2]);

impl Drop for Handlers {
    fn drop(&mut self) {
        for (signal, action) in &self.0 {
            // SAFETY: the action is one that the process had.
            unsafe { libc::sigaction(*signal, action, std::ptr::null_mut()) };
        }
    }
}

fn action(signal: libc::c_int) -> libc::sigaction {
    let mut action = MaybeUninit::zeroed();
    // SAFETY: the call fills `action`; all zeros are a valid one, too.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    }
}
