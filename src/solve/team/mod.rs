//! Threads that stay awake through a solve.
//!
//! A colour of a middling problem takes a thread some fifty microseconds, and waking a sleeping one takes as
//! long. So the helpers of a solve are woken once, at its start, and then poll for work until it is over.
//!
//! Work comes in *rounds* of so many parts. The leader, whose thread owns the [`Team`], publishes a round;
//! whoever is there takes parts of it, each beginning with its own, so that the same data stays in the same
//! caches; the leader waits for the parts that others have taken. A helper that never comes (its thread may
//! be busy elsewhere, or not have a core) delays nobody. The protocol is in `table.rs`; here are the threads.
//!
//! `cargo test --lib solve::team` also checks the protocol with loom: every order in which the threads'
//! accesses can happen, up to a number of preemptions (`tests/model.rs`).

mod sync;
mod table;

use std::cell::UnsafeCell;
use table::{Leader, Work};

pub use table::Share;

/// Parts of a round for each member: more than one, so that one that is late is helped by the others.
const PARTS_EACH: usize = 2;

/// The leader of some threads. It stays on one thread: rounds come one after the other.
pub struct Team {
    size: usize,
    leader: Leader,
}

/// Lets `lead` work with a team of `size` members at most, its own thread being one of them.
pub fn with<R>(size: usize, lead: impl FnOnce(&Team) -> R) -> R {
    if size == 1 {
        return lead(&Team::alone());
    }
    let (leader, helper) = table::open(size * PARTS_EACH);
    rayon::in_place_scope(|scope| {
        // Dropped here, also when `lead` panics, which dismisses the helpers that the scope waits for.
        let team = Team { size, leader };
        for member in 1..size {
            let helper = helper.clone();
            scope.spawn(move |_| helper.help(member * PARTS_EACH));
        }
        lead(&team)
    })
}

impl Team {
    /// Nobody but the leader.
    pub fn alone() -> Self {
        Self { size: 1, leader: table::open(PARTS_EACH).0 }
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Does `work` with each item of `list`, in slices, on all members that are there.
    pub fn share<T: Sync>(&self, list: &[T], work: impl Fn(&[T]) + Sync) {
        self.run(&|share| work(share.of(list)));
    }

    /// `work(share)` for every part of a round, with one result for each, in their order.
    pub fn gather<R: Send>(&self, work: impl Fn(Share) -> R + Sync) -> impl Iterator<Item = R> {
        let results: Vec<Cell<Option<R>>> =
            (0..self.leader.parts()).map(|_| Cell(UnsafeCell::default())).collect();
        self.run(&|share| {
            let result = work(share);
            // SAFETY: a part is done once, by one thread.
            unsafe { *results[share.part].0.get() = Some(result) };
        });
        results.into_iter().filter_map(|cell| cell.0.into_inner())
    }

    /// Does `work` with each of some items, which may be changed.
    pub fn each<T: Send>(&self, items: Vec<T>, work: impl Fn(T) + Sync) {
        let items: Vec<Cell<Option<T>>> =
            items.into_iter().map(|item| Cell(UnsafeCell::new(Some(item)))).collect();
        self.share(&items, |items| {
            for item in items {
                // SAFETY: an item belongs to one part, which is done once, by one thread.
                if let Some(item) = unsafe { (*item.0.get()).take() } {
                    work(item);
                }
            }
        });
    }

    /// `work(share)` for every part, each once.
    pub fn run(&self, work: &Work<'_>) {
        self.leader.run(work);
    }
}

/// What one thread writes, and another reads after the round.
struct Cell<R>(UnsafeCell<R>);

// SAFETY: see `gather` and `each`.
unsafe impl<R: Send> Sync for Cell<R> {}

#[cfg(test)]
mod tests;
