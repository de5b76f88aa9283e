//! How one leader and any number of helpers share rounds of work: the protocol, without threads of its own.
//!
//! A round has a number and as many parts as the table. [`Leader::run`] publishes the work of round `k` and
//! then its number; a part is taken by changing its `taken` from `k - 1` to `k`, which one thread can do, and
//! is finished when its `done` is `k`. What holds:
//!
//! 1. Only the leader publishes, one round at a time: [`open`] gives out one [`Leader`], which cannot be
//!    cloned, is not `Sync`, and refuses a round within a round.
//! 2. `run` ends, by return or by panic, only when every part of its round is taken and done ([`Round`]). So
//!    no thread uses `work` after `run`, and nobody reads it while the next round is being published.
//! 3. A helper that arrives late finds all parts of its round taken and does nothing.
//! 4. A panic in a part marks the table as broken: the `run` of that round, and each later one, panics.
//!
//! Ordering: publishing a number is a release, reading it an acquire, so who takes a part sees its work;
//! `done` is a release, waiting for it an acquire, so the leader sees all that the parts have written.

use super::sync::{Arc, AtomicBool, AtomicU64, Ordering, UnsafeCell, wait};
use std::cell::Cell;

pub type Work<'a> = dyn Fn(Share) + Sync + 'a;

/// One of the parts of a round.
#[derive(Clone, Copy)]
pub struct Share {
    pub(super) part: usize,
    pub(super) parts: usize,
}

impl Share {
    /// Its part of a list.
    pub fn of<T>(self, list: &[T]) -> &[T] {
        let Self { part, parts } = self;
        &list[list.len() * part / parts..list.len() * (part + 1) / parts]
    }
}

struct Table {
    published: Published,
    parts: Vec<Part>,
    over: AtomicBool,
    broken: AtomicBool,
}

/// What the leader writes and helpers read. Aligned, as parts are, so that two threads never write to one
/// cache line.
#[repr(align(128))]
struct Published {
    /// Number of the last round.
    round: AtomicU64,
    /// What it does with a part. Changed by the leader alone, while no part is taken.
    work: UnsafeCell<Option<*const Work<'static>>>,
}

/// The last rounds in which it was taken and done.
#[repr(align(128))]
struct Part {
    taken: AtomicU64,
    done: AtomicU64,
}

// SAFETY: `work` is read only by one who has taken a part of a round that is not done, and changed only by
// the one leader, between rounds. What it points to is `Sync`.
unsafe impl Sync for Table {}
// SAFETY: as above; nothing in it belongs to a thread.
unsafe impl Send for Table {}

/// Publishes rounds. The helpers are dismissed when it is dropped.
pub struct Leader {
    table: Arc<Table>,
    /// Within a round. As a `Cell` it also makes this type not `Sync`: one thread leads.
    leading: Cell<bool>,
}

/// Works on rounds that its leader publishes.
#[derive(Clone)]
pub struct Helper {
    table: Arc<Table>,
}

/// A table with so many parts a round.
pub fn open(parts: usize) -> (Leader, Helper) {
    let part = |_| Part { taken: AtomicU64::new(0), done: AtomicU64::new(0) };
    let table = Arc::new(Table {
        published: Published { round: AtomicU64::new(0), work: UnsafeCell::new(None) },
        parts: (0..parts).map(part).collect(),
        over: AtomicBool::new(false),
        broken: AtomicBool::new(false),
    });
    (Leader { table: table.clone(), leading: Cell::new(false) }, Helper { table })
}

impl Leader {
    pub fn parts(&self) -> usize {
        self.table.parts.len()
    }

    /// `work(share)` for every part, each once, by this thread and the helpers that are there.
    pub fn run(&self, work: &Work<'_>) {
        assert!(!self.leading.replace(true), "a round is led within a round");
        let published = &self.table.published;
        // SAFETY: only the lifetime is removed; `Round` waits until nobody uses `work` any more.
        let lasting = unsafe { std::mem::transmute::<*const Work<'_>, *const Work<'static>>(work) };
        // SAFETY: every part of the last round is done, so nobody reads this; nobody else writes it.
        published.work.with_mut(|place| unsafe { *place = Some(lasting) });
        let number = published.round.load(Ordering::Relaxed) + 1;
        let round = Round { leader: self, number };
        published.round.store(number, Ordering::Release);
        self.table.take_parts(0, number, work);
        drop(round);
        assert!(!self.table.broken.load(Ordering::Acquire), "a thread that shared the work panicked");
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.table.over.store(true, Ordering::Release);
    }
}

/// A round that has been published. Dropped when all its parts are done: those that nobody has taken, as
/// there are if the leader panics, are taken and not worked on.
struct Round<'a> {
    leader: &'a Leader,
    number: u64,
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        let (table, number) = (&self.leader.table, self.number);
        table.take_parts(0, number, |_| ());
        table.parts.iter().for_each(|part| wait(|| part.done.load(Ordering::Acquire) == number));
        self.leader.leading.set(false);
    }
}

impl Helper {
    /// Works until the leader is gone. Begins each round with the part `first`.
    pub fn help(&self, first: usize) {
        let table = &*self.table;
        let Table { published, over, .. } = table;
        let mut seen = 0;
        loop {
            wait(|| published.round.load(Ordering::Acquire) != seen || over.load(Ordering::Acquire));
            if over.load(Ordering::Acquire) {
                return;
            }
            seen = published.round.load(Ordering::Acquire);
            table.take_parts(first, seen, |share| {
                // SAFETY: a part of this round is taken and not done, so that the leader does not change
                // this.
                if let Some(work) = published.work.with(|place| unsafe { *place }) {
                    // SAFETY: for the same reason `run` has not ended and what this points to is there.
                    unsafe { (*work)(share) };
                }
            });
        }
    }
}

impl Table {
    /// Takes every part of a round that is free, beginning with `first`, and works on it.
    fn take_parts(&self, first: usize, round: u64, work: impl Fn(Share)) {
        for place in (first..self.parts.len()).chain(0..first) {
            let part = &self.parts[place];
            let free = || part.taken.load(Ordering::Relaxed) == round - 1;
            let take = || part.taken.compare_exchange(round - 1, round, Ordering::AcqRel, Ordering::Relaxed);
            if !free() || take().is_err() {
                continue;
            }
            let mut taken = Taken { part, round, broken: &self.broken, worked: false };
            work(Share { part: place, parts: self.parts.len() });
            taken.worked = true;
        }
    }
}

/// A part that is being worked on. Done when this is dropped, also in a panic.
struct Taken<'a> {
    part: &'a Part,
    round: u64,
    broken: &'a AtomicBool,
    worked: bool,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if !self.worked {
            self.broken.store(true, Ordering::Release);
        }
        self.part.done.store(self.round, Ordering::Release);
    }
}
