//! What pairs of stones remember from step to step, so that they are compared sooner. Scratch: no result depends on it.

use super::narrow::{Hint, Patch};
use super::odometer::Proof;
use crate::scene::BodyId;

#[derive(Default)]
pub struct Known {
    /// That it was apart, if so.
    pub apart: Option<Proof>,
    pub hint: Hint,
    /// The call in which it was last looked at.
    pub looked: u64,
    /// What was found there then, where the two are looked at.
    pub patch: Option<Box<Patch>>,
}

/// Pairs of bodies that may touch.
#[derive(Default)]
pub struct Pairs {
    /// Of all bodies, ascending.
    ids: Vec<BodyId>,
    /// Two places among the ids, ascending.
    pub places: Vec<(u32, u32)>,
    /// By pair; none for those not worth remembering.
    pub known: Vec<Option<Box<Known>>>,
}

impl Pairs {
    /// Other bodies, or other pairs of them, which `find` writes into a list: what is known of pairs that stay is kept.
    pub fn renew(&mut self, ids: Vec<BodyId>, find: impl FnOnce(&mut Vec<(u32, u32)>)) {
        let mut old = std::mem::replace(self, Self { ids, ..Self::default() });
        find(&mut self.places);
        let of = |ids: &[BodyId], (i, j): (u32, u32)| (ids[i as usize], ids[j as usize]);
        let mut next = 0;
        let recalled = self.places.iter().map(|&places| {
            let pair = of(&self.ids, places);
            while next < old.places.len() && of(&old.ids, old.places[next]) < pair {
                next += 1;
            }
            match old.places.get(next) {
                Some(&places) if of(&old.ids, places) == pair => old.known[next].take(),
                _ => None,
            }
        });
        self.known = recalled.collect();
    }
}
