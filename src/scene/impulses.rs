//! The contact impulses of the last step, from which the next solve starts.

use super::BodyId;
use crate::geometry::Vec3;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// Entries passed by before all are searched: contacts that opened since the last step leave few.
const STEPS_AHEAD: usize = 4;

/// Names the contact of two convex parts of two bodies: the lower body id first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ManifoldKey {
    pub bodies: [BodyId; 2],
    pub parts: [u32; 2],
}

/// The impulse at one contact point, in the world frame, on the second body of the key, N s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredImpulse {
    /// Which features touch: the same number while the same features do.
    pub feature: u32,
    pub impulse: Vec3,
}

/// Those of one contact, on their way; few have more points.
pub type StoredPoints = SmallVec<[StoredImpulse; 4]>;

/// Impulses by contact. An entry lives with its *home*, the first of its two bodies that moves freely: on
/// that body's rank, and it travels with that body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impulses {
    /// Ascending by (home, key).
    entries: Vec<(BodyId, ManifoldKey, u32)>,
    /// `points[entries[i].2..entries[i + 1].2]` belong to entry i.
    points: Vec<StoredImpulse>,
}

impl Impulses {
    /// With room for so many contacts and points.
    pub fn with_capacity(contacts: usize, points: usize) -> Self {
        Self { entries: Vec::with_capacity(contacts), points: Vec::with_capacity(points) }
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.points.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of contacts, and of contact points.
    pub fn counts(&self) -> (usize, usize) {
        (self.entries.len(), self.points.len())
    }

    /// Entries may come in any order; [`Impulses::sort`] must follow.
    pub fn push(&mut self, home: BodyId, key: ManifoldKey, points: impl IntoIterator<Item = StoredImpulse>) {
        self.entries.push((home, key, self.points.len() as u32));
        self.points.extend(points);
    }

    pub fn sort(&mut self) {
        if self.entries.is_sorted_by_key(|entry| (entry.0, entry.1)) {
            return;
        }
        let ends = self.entries.iter().skip(1).map(|entry| entry.2).chain([self.points.len() as u32]);
        let mut order: Vec<_> =
            self.entries.iter().zip(ends).map(|(&(home, key, start), end)| (home, key, start..end)).collect();
        // A few ascending runs, the contacts of each wall and those among grains: a sort that merges runs
        // takes a quarter of the instructions (9000 stones).
        order.sort_by(|one, other| one.0.cmp(&other.0).then_with(|| one.1.cmp(&other.1)));
        let mut sorted = Impulses::with_capacity(self.entries.len(), self.points.len());
        for (home, key, places) in order {
            let points = &self.points[places.start as usize..places.end as usize];
            sorted.entries.push((home, key, sorted.points.len() as u32));
            sorted.points.extend_from_slice(points);
        }
        *self = sorted;
    }

    /// The points stored for a contact; empty if it did not exist.
    pub fn find(&self, home: BodyId, key: &ManifoldKey) -> &[StoredImpulse] {
        match self.entries.binary_search_by_key(&(home, *key), |entry| (entry.0, entry.1)) {
            Ok(index) => self.points_of(index),
            Err(_) => &[],
        }
    }

    /// The same, looked for first at and just after `next`, where the last one was found: contacts mostly ask
    /// in the order of the entries.
    pub fn find_next(&self, home: BodyId, key: &ManifoldKey, next: &mut usize) -> &[StoredImpulse] {
        let order = |index: usize| {
            self.entries.get(index).map_or(Ordering::Greater, |entry| (entry.0, entry.1).cmp(&(home, *key)))
        };
        let mut place = *next;
        if place == 0 || order(place - 1).is_lt() {
            for _ in 0..STEPS_AHEAD {
                match order(place) {
                    Ordering::Less => place += 1,
                    Ordering::Equal => {
                        *next = place + 1;
                        return self.points_of(place);
                    }
                    Ordering::Greater => {
                        *next = place;
                        return &[];
                    }
                }
            }
        }
        let found = self.entries.binary_search_by(|entry| (entry.0, entry.1).cmp(&(home, *key)));
        *next = found.map_or_else(|place| place, |place| place + 1);
        found.map_or(&[], |place| self.points_of(place))
    }

    /// All entries whose home is `home`.
    pub fn of_home(&self, home: BodyId) -> impl Iterator<Item = (ManifoldKey, &[StoredImpulse])> {
        let first = self.entries.partition_point(|entry| entry.0 < home);
        (first..self.entries.len())
            .take_while(move |&index| self.entries[index].0 == home)
            .map(|index| (self.entries[index].1, self.points_of(index)))
    }

    pub fn iter(&self) -> impl Iterator<Item = (BodyId, ManifoldKey, &[StoredImpulse])> {
        (0..self.entries.len()).map(|index| {
            let (home, key, _) = self.entries[index];
            (home, key, self.points_of(index))
        })
    }

    fn points_of(&self, index: usize) -> &[StoredImpulse] {
        let end = self.entries.get(index + 1).map_or(self.points.len(), |next| next.2 as usize);
        &self.points[self.entries[index].2 as usize..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(a: u64, b: u64) -> ManifoldKey {
        ManifoldKey { bodies: [BodyId(a), BodyId(b)], parts: [0, 0] }
    }

    fn point(feature: u32) -> StoredImpulse {
        StoredImpulse { feature, impulse: Vec3::new(f64::from(feature), 0.0, 0.0) }
    }

    #[test]
    fn entries_are_found_whatever_the_order_they_came_in() {
        let mut impulses = Impulses::default();
        impulses.push(BodyId(5), key(0, 5), [point(1), point(2)]);
        impulses.push(BodyId(3), key(3, 9), []);
        impulses.push(BodyId(3), key(3, 5), [point(7)]);
        impulses.sort();
        assert_eq!(impulses.find(BodyId(5), &key(0, 5)), [point(1), point(2)]);
        assert_eq!(impulses.find(BodyId(3), &key(3, 5)), [point(7)]);
        assert!(impulses.find(BodyId(3), &key(3, 9)).is_empty());
        assert!(impulses.find(BodyId(4), &key(4, 9)).is_empty());
        // Asked for in any order, from anywhere, it is the same.
        for start in 0..5 {
            for (home, key) in
                [(5, key(0, 5)), (3, key(3, 5)), (3, key(3, 9)), (4, key(4, 9)), (9, key(9, 10))]
            {
                let found = impulses.find_next(BodyId(home), &key, &mut { start });
                assert_eq!(found, impulses.find(BodyId(home), &key));
            }
        }
        let homes: Vec<_> = impulses.of_home(BodyId(3)).map(|(key, _)| key).collect();
        assert_eq!(homes, [key(3, 5), key(3, 9)]);
    }
}
