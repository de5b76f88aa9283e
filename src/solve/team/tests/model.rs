//! The protocol of `table.rs` under loom: compiled a second time with loom's atomics and cells, and run
//! through the orders of accesses that the memory model allows, with at most so many preemptions.
//!
//! An access to a cell that is not ordered after the other threads' is an error of the model, so the tests
//! read and write cells where the program reads and writes data.

mod sync {
    pub use loom::cell::UnsafeCell;
    pub use loom::sync::Arc;
    pub use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    pub fn wait(ready: impl Fn() -> bool) {
        while !ready() {
            loom::thread::yield_now();
        }
    }
}

// Compiled twice on purpose: `super::sync` is another module here. A part of it is used.
#[allow(clippy::duplicate_mod, dead_code)]
#[path = "../table.rs"]
mod table;

use loom::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use table::{Helper, Share, open};

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// Data that the work of a round uses; loom reports a use that is not ordered.
struct Data(UnsafeCell<u64>);

// SAFETY: what the tests check.
unsafe impl Sync for Data {}
unsafe impl Send for Data {}

impl Data {
    fn new() -> Arc<Self> {
        Arc::new(Self(UnsafeCell::new(0)))
    }

    fn read(&self) -> u64 {
        // SAFETY: loom fails the test if another thread may write.
        self.0.with(|value| unsafe { *value })
    }

    fn add(&self, amount: u64) {
        // SAFETY: loom fails the test if another thread may use it.
        self.0.with_mut(|value| unsafe { *value += amount });
    }
}

fn spawn(helper: &Helper, first: usize) -> loom::thread::JoinHandle<bool> {
    let helper = helper.clone();
    loom::thread::spawn(move || catch_unwind(AssertUnwindSafe(|| helper.help(first))).is_ok())
}

#[test]
fn every_part_is_done_once_and_seen_by_the_leader() {
    check(3, || {
        let (leader, helper) = open(2);
        let helping = spawn(&helper, 1);
        let sums = [Data::new(), Data::new()];
        for round in 1..=2 {
            let amount = Data::new();
            amount.add(round);
            leader.run(&|Share { part, .. }| sums[part].add(amount.read()));
            // The leader's again: nobody may be reading it.
            amount.add(1);
            assert!(sums.iter().all(|sum| sum.read() == round * (round + 1) / 2));
        }
        drop(leader);
        assert!(helping.join().unwrap());
    });
}

#[test]
fn two_helpers_share_a_round() {
    check(1, || {
        let (leader, helper) = open(3);
        let helping = [spawn(&helper, 1), spawn(&helper, 2)];
        let sums = [Data::new(), Data::new(), Data::new()];
        leader.run(&|Share { part, .. }| sums[part].add(1));
        assert!(sums.iter().all(|sum| sum.read() == 1));
        drop(leader);
        assert!(helping.into_iter().all(|helping| helping.join().unwrap()));
    });
}

#[test]
fn a_panic_of_the_leader_waits_for_the_parts_of_others() {
    static FAILED: AtomicBool = AtomicBool::new(false);
    check(3, || {
        let (leader, helper) = open(2);
        let helping = spawn(&helper, 1);
        let data = Data::new();
        let of_leader = loom::thread::current().id();
        let failed = catch_unwind(AssertUnwindSafe(|| {
            leader.run(&|_| {
                if loom::thread::current().id() == of_leader {
                    // Not `panic!`, which prints in each of the many orders.
                    std::panic::resume_unwind(Box::new(()));
                }
                data.read();
            })
        }));
        // It fails if the helper has not taken every part before.
        FAILED.fetch_or(failed.is_err(), Ordering::Relaxed);
        // What the work used is the leader's again.
        data.add(1);
        drop(leader);
        assert!(helping.join().unwrap());
    });
    assert!(FAILED.load(Ordering::Relaxed));
}

#[test]
fn a_panic_of_a_helper_reaches_the_leader() {
    check(3, || {
        let (leader, helper) = open(2);
        let helping = spawn(&helper, 1);
        let of_leader = loom::thread::current().id();
        let taken = Data::new();
        let ran = catch_unwind(AssertUnwindSafe(|| {
            leader.run(&|_| {
                if loom::thread::current().id() != of_leader {
                    taken.add(1);
                    std::panic::resume_unwind(Box::new(()));
                }
            })
        }));
        // It fails exactly if the helper took a part.
        assert_eq!(ran.is_err(), taken.read() == 1);
        drop(leader);
        assert_eq!(helping.join().unwrap(), ran.is_ok());
    });
}
