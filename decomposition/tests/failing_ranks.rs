//! Ranks that fail or do not answer end all ranks, with the reason: real ones, under `mpirun`.
//!
//! Each test starts this program on three ranks, each of which makes what [`as_rank`] has for the test's
//! name.

use decomposition::{Comm, Exchange, Message, World, watch};
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const ROLE: &str = "DECOMPOSITION_ROLE";
const PANIC: i32 = 101;

/// Longer than any machine needs.
const PATIENCE: Duration = Duration::from_secs(300);

/// The exit code of three ranks, and what they said.
fn three_ranks(role: &str) -> (Option<i32>, String) {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new("mpirun")
        .args(["--oversubscribe", "-n", "3"])
        .arg(program)
        .args(["--exact", "as_rank", "--ignored", "--nocapture"])
        .env(ROLE, role)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("mpirun starts; `make setup` installs it");
    let begun = Instant::now();
    // What they say fits into a pipe.
    let status = loop {
        if let Some(status) = child.try_wait().expect("it can be asked") {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            child.kill().expect("mpirun can be ended");
            panic!("{role}: it hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut words = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut words).expect("text");
    (status.code(), words)
}

fn for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
#[ignore = "one of the ranks that the other tests start"]
fn as_rank() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let world = World::initialize().expect("MPI");
    watch::abort_on_panic(PANIC, world.size());
    let limit = if role.starts_with("silent") { Duration::from_secs(2) } else { 2 * PATIENCE };
    watch::set_limit(Some(limit)).expect("a thread");
    watch::set_place(&"solve");
    match (role.as_str(), world.rank()) {
        ("panic", 1) => panic!("a deliberate mistake"),
        ("panic in a thread", 1) => {
            let _ = std::thread::spawn(|| panic!("a deliberate mistake")).join();
        }
        ("no memory in a thread", 1) => {
            let _ = std::thread::spawn(|| watch::abort_all(7)).join();
        }
        ("silent in a swap" | "silent in an exchange" | "silent in a sum", 2) => for_ever(),
        ("silent in a swap", 0) => drop(world.swap(vec![(2, vec![1, 2, 3])])),
        ("silent in an exchange", 0) => {
            let six = || vec![Message { rank: 2, data: vec![0.0; 6] }];
            let mut exchange = Exchange::new(six(), six());
            world.begin(&mut exchange);
            world.finish(&mut exchange);
        }
        ("silent in a sum", 0) => world.sum_i64(&mut [1]),
        ("asked to stop", 2) => for_ever(),
        ("asked to stop", 0) => {
            // As the handler of the signal does.
            watch::signals().store(15, Ordering::Relaxed);
            drop(world.swap(vec![(2, vec![1, 2, 3])]));
        }
        _ => {}
    }
    // The others wait for one that never comes, without looking at the clock.
    for_ever();
}

#[test]
fn a_panic_in_any_thread_ends_all_ranks() {
    for role in ["panic", "panic in a thread"] {
        let (code, words) = three_ranks(role);
        assert_eq!(code, Some(PANIC), "{role}: {words}");
        let told: Vec<&str> = words.lines().filter(|line| line.starts_with("error:")).collect();
        assert_eq!(told.len(), 1, "{words}");
        assert!(told[0].starts_with("error: rank 1: this is a mistake in breccia"), "{words}");
        assert!(words.contains("a deliberate mistake"), "{words}");
    }
}

#[test]
fn an_abort_in_any_thread_ends_all_ranks() {
    let (code, words) = three_ranks("no memory in a thread");
    assert_eq!(code, Some(7), "{words}");
}

/// A rank that is asked to stop does not wait for a dead one until the limit, here ten minutes.
#[test]
fn a_rank_that_waits_in_vain_obeys_a_signal() {
    let (code, words) = three_ranks("asked to stop");
    assert_eq!(code, Some(128 + 15), "{words}");
    let line = words.lines().find(|line| line.starts_with("error: rank 0 has waited "));
    let line = line.unwrap_or_else(|| panic!("{words}"));
    assert!(line.contains("for a message of rank 2") && line.contains("was asked to stop"), "{line}");
}

#[test]
fn a_rank_that_waits_in_vain_says_says_where_and_for_whom() {
    for (role, told) in [
        ("silent in a swap", "for a message of rank 2"),
        ("silent in an exchange", "for velocities of rank 2"),
        ("silent in a sum", "for the other ranks in a sum"),
    ] {
        let (code, words) = three_ranks(role);
        assert_eq!(code, Some(watch::STALLED), "{role}: {words}");
        let line = words.lines().find(|line| line.starts_with("error: rank 0 has waited "));
        let line = line.unwrap_or_else(|| panic!("{role}: {words}"));
        assert!(line.contains("in `solve`") && line.contains(told), "{role}: {line}");
        assert!(line.contains("--stall-limit"), "{line}");
    }
}
