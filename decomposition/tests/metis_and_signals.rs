//! METIS has handlers of its own for SIGTERM, which it leaves in disorder: a run must not notice. A process
//! of its own, as handlers belong to a process.

use decomposition::{Cells, Comm, Partition, threads};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static CAUGHT: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    CAUGHT.fetch_add(1, Ordering::Relaxed);
}

fn listen() -> libc::sigaction {
    // SAFETY: all zeros are a valid action; the handler only adds to an atomic number.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGTERM, &action, std::ptr::null_mut()), 0);
        action
    }
}

fn listens() -> (usize, libc::c_int) {
    // SAFETY: the call fills `action`.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGTERM, std::ptr::null(), &mut action);
        action
    };
    (action.sa_sigaction, action.sa_flags & (libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_RESETHAND))
}

/// One rank cuts space again and again while SIGTERM comes all the time: each cut is as it would have been
/// alone, and signals are neither lost nor fatal.
#[test]
fn sigterm_may_come_while_space_is_cut() {
    const WANTED: usize = 100;
    let ours = listen();
    let ours = (ours.sa_sigaction, ours.sa_flags);
    let cut = |comm: &dyn Comm| {
        let cells = Cells::covering([0.0; 3], [1.0; 3], 0.05, 100_000);
        let mut work = vec![if comm.rank() == 0 { 10 } else { 0 }; cells.count()];
        Partition::balanced(cells, &mut work, None, comm)
    };
    let alone = threads::run(2, |comm| cut(comm));
    assert_eq!(listens(), ours, "handler and flags after a cut");

    // Signals go to the thread that cuts, as long as it is here.
    let (target, over) = (Mutex::new(None::<libc::pthread_t>), AtomicBool::new(false));
    let cuts = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if let Some(thread) = *target.lock().expect("no panic") {
                    // SAFETY: the thread takes itself out, under the lock, before it ends.
                    unsafe { libc::pthread_kill(thread, libc::SIGTERM) };
                }
                std::thread::yield_now();
            }
        });
        let cuts = threads::run(2, |comm| {
            if comm.rank() == 0 {
                // SAFETY: always possible.
                *target.lock().expect("no panic") = Some(unsafe { libc::pthread_self() });
            }
            let (mut cuts, mut more) = (0, [1]);
            while more != [0] {
                assert!(cut(comm) == alone[0], "the same cut in spite of signals");
                cuts += 1;
                more = [i64::from(comm.rank() == 0 && CAUGHT.load(Ordering::Relaxed) < WANTED)];
                comm.sum_i64(&mut more);
            }
            if comm.rank() == 0 {
                *target.lock().expect("no panic") = None;
            }
            cuts
        });
        over.store(true, Ordering::Relaxed);
        cuts[0]
    });
    println!("{} signals caught in {cuts} cuts", CAUGHT.load(Ordering::Relaxed));
    assert_eq!(listens(), ours);
}
