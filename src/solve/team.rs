//! Threads that stay awake through a solve.
//!
//! A colour of a middling problem takes a thread some fifty microseconds, and waking a sleeping one takes as
//! long. So the helpers of a solve are woken once, at its start, and then look for work without sleeping
//! until it is over.
//!
//! Work comes in *rounds* of so many parts. The leader, whose thread calls [`Team::run`], puts a round on the
//! table; whoever is there takes parts of it, each beginning with those that are its own by right, so that
//! the same data stays in the same caches; the leader waits for the parts that others have taken. A helper
//! that never comes (its thread may be busy elsewhere, or not have a core) holds nobody up.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Parts of a round for each member: more than one, so that one that is late is helped by the others.
const PARTS_EACH: usize = 2;

/// Looks at the table before a waiting thread lets others have its core, and such pauses before it begins to
/// nap.
const LOOKS: u32 = 2000;
const PAUSES: u32 = 200;
const NAP: Duration = Duration::from_micros(20);

type Work<'a> = dyn Fn(Share) + Sync + 'a;

/// One of the parts of a round.
#[derive(Clone, Copy)]
pub struct Share {
    part: usize,
    parts: usize,
}

impl Share {
    /// Its part of a list.
    pub fn of<T>(self, list: &[T]) -> &[T] {
        let Self { part, parts } = self;
        &list[list.len() * part / parts..list.len() * (part + 1) / parts]
    }
}

pub struct Team {
    size: usize,
    table: Table,
    parts: Vec<Part>,
    over: AtomicBool,
    broken: AtomicBool,
}

/// What the leader writes and helpers read. Apart from everything else, as parts are: where two threads write
/// to the same line of memory, each waits for the other's cache.
#[repr(align(128))]
struct Table {
    /// Number of the last round.
    round: AtomicU64,
    /// What it does with a part. Changed by the leader alone, while no part is taken.
    work: UnsafeCell<Option<*const Work<'static>>>,
}

/// The last rounds in which it was taken and done.
#[derive(Default)]
#[repr(align(128))]
struct Part {
    taken: AtomicU64,
    done: AtomicU64,
}

// SAFETY: `work` is read only by one who has taken a part of a round, and the leader does not change it before that part is done.
unsafe impl Sync for Team {}

/// Lets `lead` work with a team of `size` members at most, its own thread being one of them.
pub fn with<R>(size: usize, lead: impl FnOnce(&Team) -> R) -> R {
    let team = Team::of(size);
    if size == 1 {
        return lead(&team);
    }
    rayon::in_place_scope(|scope| {
        // Also when `lead` panics, or the helpers would wait for ever.
        let over = Raise(&team.over);
        let team = &team;
        (1..size).for_each(|member| scope.spawn(move |_| team.help(member)));
        let result = lead(team);
        drop(over);
        result
    })
}

impl Team {
    /// Nobody but the leader.
    pub fn alone() -> Self {
        Self::of(1)
    }

    fn of(size: usize) -> Self {
        Self {
            size,
            table: Table { round: AtomicU64::new(0), work: UnsafeCell::new(None) },
            parts: (0..size * PARTS_EACH).map(|_| Part::default()).collect(),
            over: AtomicBool::new(false),
            broken: AtomicBool::new(false),
        }
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Does `work` with each item of `list`, in slices, on all members that are there. For the thread that
    /// leads only.
    pub fn share<T: Sync>(&self, list: &[T], work: impl Fn(&[T]) + Sync) {
        self.run(&|share| work(share.of(list)));
    }

    /// `work(share)` for every part of a round, with one result for each, in their order.
    pub fn gather<R: Send>(&self, work: impl Fn(Share) -> R + Sync) -> impl Iterator<Item = R> {
        let results: Vec<Cell<Option<R>>> = self.parts.iter().map(|_| Cell(UnsafeCell::default())).collect();
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
        // SAFETY: only the lifetime is taken off; the round is over before `work` goes, see below.
        let lasting = unsafe { std::mem::transmute::<*const Work<'_>, *const Work<'static>>(work) };
        // SAFETY: every part of the last round is done, so nobody reads this.
        unsafe { *self.table.work.get() = Some(lasting) };
        let round = self.table.round.load(Ordering::Relaxed) + 1;
        self.table.round.store(round, Ordering::Release);
        self.take_parts(0, round);
        self.parts.iter().for_each(|part| wait(|| part.done.load(Ordering::Acquire) == round));
        assert!(!self.broken.load(Ordering::Acquire), "a thread that shared the work panicked");
    }

    /// All parts of a round that are still free, beginning with a member's own.
    fn take_parts(&self, member: usize, round: u64) {
        let first = member * PARTS_EACH;
        for place in (first..self.parts.len()).chain(0..first) {
            let part = &self.parts[place];
            let free = || part.taken.load(Ordering::Relaxed) == round - 1;
            let take = || part.taken.compare_exchange(round - 1, round, Ordering::AcqRel, Ordering::Relaxed);
            if !free() || take().is_err() {
                continue;
            }
            let finished = Finish { part, round, broken: &self.broken };
            // SAFETY: a part of this round is taken and not done, so that `run` is still waiting with what it points to.
            if let Some(work) = unsafe { *self.table.work.get() } {
                // SAFETY: as above.
                unsafe { (*work)(Share { part: place, parts: self.parts.len() }) };
            }
            drop(finished);
        }
    }

    fn help(&self, member: usize) {
        let mut seen = 0;
        loop {
            wait(|| self.table.round.load(Ordering::Acquire) != seen || self.over.load(Ordering::Acquire));
            if self.over.load(Ordering::Acquire) {
                return;
            }
            seen = self.table.round.load(Ordering::Acquire);
            self.take_parts(member, seen);
        }
    }
}

/// What one thread writes, and another reads after the round.
struct Cell<R>(UnsafeCell<R>);

// SAFETY: see `gather` and `each`.
unsafe impl<R: Send> Sync for Cell<R> {}

/// Sets a flag when it goes.
struct Raise<'a>(&'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A part is done when this goes, also in a panic.
struct Finish<'a> {
    part: &'a Part,
    round: u64,
    broken: &'a AtomicBool,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.broken.store(true, Ordering::Release);
        }
        self.part.done.store(self.round, Ordering::Release);
    }
}

fn wait(ready: impl Fn() -> bool) {
    let mut looks = 0;
    while !ready() {
        looks += 1;
        match looks {
            ..LOOKS => spin_loop(),
            LOOKS.. if looks < LOOKS + PAUSES => std::thread::yield_now(),
            _ => {
                looks = LOOKS + PAUSES;
                std::thread::sleep(NAP);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> Vec<u64> {
        (0..1000).collect()
    }

    #[test]
    fn every_item_is_worked_on_once_in_every_round() {
        let list: Vec<AtomicU64> = (0..1001).map(|_| AtomicU64::new(0)).collect();
        for size in [1, 2, 3, 8] {
            with(size, |team| {
                for round in 1..=300 {
                    team.share(&list, |items| {
                        for item in items {
                            item.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                    assert!(list.iter().all(|item| item.load(Ordering::Relaxed) == round), "{size}, {round}");
                }
            });
            list.iter().for_each(|item| item.store(0, Ordering::Relaxed));
        }
    }

    #[test]
    fn items_are_changed_by_those_who_take_them() {
        let mut list = numbers();
        with(3, |team| {
            team.each(list.chunks_mut(7).collect(), |items| items.iter_mut().for_each(|item| *item += 1))
        });
        assert!(list.iter().zip(numbers()).all(|(changed, item)| *changed == item + 1));
    }

    #[test]
    fn results_come_in_the_order_of_the_list() {
        let firsts: Vec<Vec<u64>> =
            with(3, |team| team.gather(|share| share.of(&numbers()).to_vec()).collect());
        assert_eq!(firsts.concat(), numbers());
    }

    #[test]
    fn helpers_that_never_come_hold_nobody_up() {
        // Two teams at once on a pool of one thread: the helpers of one occupy it until its leader, who waits
        // for the other's, is done.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let sum = |team: &Team| team.gather(|share| share.of(&numbers()).iter().sum::<u64>()).sum::<u64>();
        let total = pool.install(|| with(4, |outer| with(4, |inner| sum(inner)) + sum(outer)));
        assert_eq!(total, 2 * numbers().iter().sum::<u64>());
    }

    #[test]
    fn a_panic_of_a_helper_or_of_the_leader_ends_the_team() {
        let fails = |bad: u64| {
            std::panic::catch_unwind(|| {
                with(2, |team| team.share(&numbers(), |items| assert!(!items.contains(&bad))));
            })
            .is_err()
        };
        assert!(fails(0) && fails(999) && !fails(5000));
        assert!(std::panic::catch_unwind(|| with(2, |_| panic!("no"))).is_err());
    }
}
