mod model;

use super::{Team, with};
use std::sync::atomic::{AtomicU64, Ordering};

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
    let firsts: Vec<Vec<u64>> = with(3, |team| team.gather(|share| share.of(&numbers()).to_vec()).collect());
    assert_eq!(firsts.concat(), numbers());
}

#[test]
fn helpers_that_never_come_hold_nobody_up() {
    // Two teams at once on a pool of one thread: the helpers of one occupy it until its leader, who waits for
    // the other's, is done.
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

/// The leader's own part fails while a helper is at work on another: the data outlives the helper's use of
/// it.
#[test]
fn a_panic_of_the_leader_waits_for_the_parts_of_others() {
    for _ in 0..50 {
        let list: Vec<AtomicU64> = (0..1000).map(AtomicU64::new).collect();
        let failed = std::panic::catch_unwind(|| {
            with(3, |team| {
                let leader = std::thread::current().id();
                team.share(&list, |items| {
                    assert!(std::thread::current().id() != leader, "the leader fails");
                    items.iter().for_each(|item| _ = item.fetch_add(1, Ordering::Relaxed));
                });
            });
        });
        assert!(failed.is_err());
        // Nobody changes it any more.
        let sum = || list.iter().map(|item| item.load(Ordering::Relaxed)).sum::<u64>();
        let first = sum();
        std::thread::yield_now();
        assert_eq!(first, sum());
    }
}

#[test]
#[should_panic(expected = "a round is led within a round")]
fn a_round_within_a_round_is_refused() {
    thread_local!(static TEAM: Team = Team::alone());
    TEAM.with(|team| team.run(&|_| TEAM.with(|team| team.run(&|_| ()))));
}
