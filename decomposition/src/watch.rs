//! What ends a rank that waits in vain: a limit for one wait, and signals that ask it to stop.
//!
//! A wait in which this program polls looks at its own clock, knows whom it waits for and ends all ranks by
//! `MPI_Abort`. A wait inside a blocking call of MPI cannot do that: a thread of its own counts the seconds
//! of such calls. MPI is initialised "funneled", so that thread may not call it; it ends its own process
//! without any clean-up (handlers at exit would close HDF5 files together with ranks that no longer answer),
//! and the launcher ends the others.

use crate::sigterm::held_back;
use mpi::ffi;
use std::cell::Cell;
use std::io::Write;
use std::os::raw::c_int;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The exit code of a rank that has waited for too long.
pub const STALLED: i32 = 8;

/// A rank that is asked to stop ends a wait after so many seconds: whoever it waits for will not agree to
/// stop any more. Schedulers kill half a minute after they ask.
const AFTER_SIGNAL: u64 = 20;
/// The thread leaves those waits to themselves that can say more.
const GRACE: u64 = 5;

/// s; 0 is no limit.
static LIMIT: AtomicU64 = AtomicU64::new(0);
static RANK: AtomicUsize = AtomicUsize::new(0);
/// The number of the signal that this rank has got.
static SIGNAL: OnceLock<Arc<AtomicUsize>> = OnceLock::new();
/// Blocking calls begun and ended, and how many the rank is in.
static CALLS: AtomicU64 = AtomicU64::new(0);
static DEPTH: AtomicUsize = AtomicUsize::new(0);
/// Whether files are being written: what saves the state is not broken off by a signal.
static WRITING: AtomicBool = AtomicBool::new(false);
static CALL: AtomicPtr<&'static str> = AtomicPtr::new(std::ptr::null_mut());
static PLACE: AtomicPtr<&'static str> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    /// Without a destructor and without memory of its own: it may be read when there is none.
    static CALLS_MPI: Cell<bool> = const { Cell::new(false) };
}

unsafe extern "C" {
    fn _exit(code: c_int) -> !;
}

/// This thread is the one that calls MPI.
pub(crate) fn adopt_thread(rank: usize) {
    CALLS_MPI.set(true);
    set_place(&"set-up");
    RANK.store(rank, Ordering::Relaxed);
}

/// Where signals that ask this rank to stop are noted, by their numbers.
pub fn signals() -> Arc<AtomicUsize> {
    SIGNAL.get_or_init(Arc::default).clone()
}

/// The number of the signal that has come; 0 if none.
pub fn signal() -> usize {
    SIGNAL.get().map_or(0, |noted| noted.load(Ordering::Relaxed))
}

/// What the rank does from now on, for messages. Costs one store.
pub fn set_place(place: &'static &'static str) {
    PLACE.store(std::ptr::from_ref(place).cast_mut(), Ordering::Relaxed);
}

fn named(name: &AtomicPtr<&'static str>) -> Option<&'static str> {
    let place = name.load(Ordering::Relaxed);
    // SAFETY: null, or from a reference that lives as long as the program.
    unsafe { place.as_ref() }.copied()
}

/// From now on one wait may last so long; none is for ever. Starts the thread that watches blocking calls.
pub fn set_limit(limit: Option<Duration>) -> std::io::Result<()> {
    static THREAD: OnceLock<()> = OnceLock::new();
    LIMIT.store(limit.map_or(0, |limit| limit.as_secs().max(1)), Ordering::Relaxed);
    if THREAD.set(()).is_ok() {
        let thread = std::thread::Builder::new().name("watch".into()).stack_size(256 << 10);
        held_back(|| thread.spawn(watch_calls))?;
    }
    Ok(())
}

/// A blocking call of MPI: watched by the thread.
pub(crate) fn blocking<R>(call: &'static &'static str, work: impl FnOnce() -> R) -> R {
    let outer = CALL.swap(std::ptr::from_ref(call).cast_mut(), Ordering::Relaxed);
    DEPTH.fetch_add(1, Ordering::Relaxed);
    CALLS.fetch_add(1, Ordering::Relaxed);
    let result = work();
    CALLS.fetch_add(1, Ordering::Relaxed);
    DEPTH.fetch_sub(1, Ordering::Relaxed);
    CALL.store(outer, Ordering::Relaxed);
    result
}

/// Files that ranks write together: inside the library they wait for each other, too.
pub fn writing<R>(work: impl FnOnce() -> R) -> R {
    set_place(&"output");
    let outer = WRITING.swap(true, Ordering::Relaxed);
    let result = blocking(&"files that are written together", work);
    WRITING.store(outer, Ordering::Relaxed);
    result
}

/// By seconds that it has slept itself, so that a program that was halted and continued has not waited.
fn watch_calls() {
    let (mut last, mut seconds) = (0, 0);
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let calls = CALLS.load(Ordering::Relaxed);
        seconds = if calls == last && DEPTH.load(Ordering::Relaxed) > 0 { seconds + 1 } else { 0 };
        last = calls;
        let call = named(&CALL).unwrap_or("a call");
        if let Some((code, message)) = verdict(seconds, GRACE, || format!("the other ranks in {call}")) {
            say(&message);
            leave(code);
        }
    }
}

/// To be asked about once a second by a wait in which this thread polls.
pub(crate) fn judge(waited: Duration, for_whom: impl FnOnce() -> String) {
    if let Some((code, message)) = verdict(waited.as_secs(), 0, for_whom) {
        say(&message);
        abort_all(code);
    }
}

/// The exit code and the message for a wait that has lasted too long.
fn verdict(seconds: u64, grace: u64, for_whom: impl FnOnce() -> String) -> Option<(i32, String)> {
    let limit = LIMIT.load(Ordering::Relaxed);
    let signal = if WRITING.load(Ordering::Relaxed) { 0 } else { signal() };
    let rank = RANK.load(Ordering::Relaxed);
    let place = named(&PLACE).map_or(String::new(), |place| format!(" in `{place}`"));
    let waited = |whom: String| format!("rank {rank} has waited {seconds} s{place} for {whom}");
    if signal > 0 && seconds >= AFTER_SIGNAL + grace {
        let message = format!(
            "{} and was asked to stop (signal {signal}): it ends all ranks without a new checkpoint",
            waited(for_whom())
        );
        return Some((128 + signal as i32, message));
    }
    if limit > 0 && seconds >= limit + grace {
        let message = format!(
            "{}, longer than --stall-limit allows: it ends all ranks; go on with --restart auto",
            waited(for_whom())
        );
        return Some((STALLED, message));
    }
    None
}

/// One line, one write: those of several ranks do not mix.
fn say(message: &str) {
    let _ = std::io::stderr().write_all(format!("error: {message}\n").as_bytes());
}

/// From now on a panic in any thread ends all ranks, from where it happens and not by unwinding, on the way
/// of which files would be closed together with ranks that do not know of it.
pub fn abort_on_panic(code: i32, ranks: usize) {
    let rank = RANK.load(Ordering::Relaxed);
    std::panic::set_hook(Box::new(move |panic| {
        let who = if ranks > 1 { format!("rank {rank}: ") } else { String::new() };
        say(&format!("{who}this is a mistake in breccia, please report it: {panic}"));
        abort_all(code);
    }));
}

/// Ends all ranks at once, from any thread and without memory. The thread that calls MPI does it by
/// `MPI_Abort`; any other may not, and ends its own process without clean-up, which the launcher notices.
pub fn abort_all(code: i32) -> ! {
    if CALLS_MPI.get() {
        // SAFETY: MPI is initialised, and this is its thread.
        unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code) };
    }
    leave(code)
}

fn leave(code: i32) -> ! {
    // SAFETY: ends the process; no handler runs.
    unsafe { _exit(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_end_at_their_limit() {
        set_limit(Some(Duration::from_secs(30))).unwrap();
        set_place(&"solve");
        let whom = || "rank 2".to_string();
        assert!(verdict(29, 0, whom).is_none() && verdict(34, GRACE, whom).is_none());
        let (code, message) = verdict(31, 0, whom).unwrap();
        assert_eq!(code, STALLED);
        assert!(message.contains("has waited 31 s in `solve` for rank 2, longer than"), "{message}");
        LIMIT.store(0, Ordering::Relaxed);
        assert!(verdict(1_000_000, 0, whom).is_none(), "0 is no limit");
        signals().store(15, Ordering::Relaxed);
        assert!(verdict(AFTER_SIGNAL - 1, 0, whom).is_none());
        assert_eq!(verdict(AFTER_SIGNAL, 0, whom).unwrap().0, 143);
        writing(|| assert!(verdict(AFTER_SIGNAL, 0, whom).is_none(), "the state is being saved"));
        signals().store(0, Ordering::Relaxed);
    }
}
