//! From bodies to contact manifolds: broad phase over boxes, narrow phase over pairs of convex parts.
//!
//! Whether a pair is found, and what is found, depends only on the two bodies: the box of a body is inflated
//! by its own *reach*, and a pair is searched up to the sum of both reaches. A pair belongs to the rank whose
//! space holds the lower corner of the intersection of the two inflated boxes; bodies present there are
//! present on that rank.

mod parts;
mod query;
mod tree;

pub use super::anchor::Candidate;
use super::broad::BroadPhase;
use super::carry::Carries;
pub use super::carry::ContactPoint;
use super::odometer::Odometer;
use super::pairs::{CHUNK, Kept, Pairs};
use super::patches::Labelled;
use crate::geometry::{Aabb, Vec3};
use crate::scene::{Body, BodyId, ManifoldKey};
use parts::Parts;
use query::Query;
use rayon::prelude::*;

/// A contact patch between two convex parts. The body with the lower id stands first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contact<'a> {
    pub key: ManifoldKey,
    /// Places in the list of candidates.
    pub slots: [u32; 2],
    /// Unit, world, from the first body to the second.
    pub normal: Vec3,
    /// At least one.
    pub points: &'a [ContactPoint],
}

/// Some contacts, ascending by key.
#[derive(Default)]
pub struct Contacts {
    patches: query::Found,
}

impl Contacts {
    pub fn iter(&self) -> impl Iterator<Item = Contact<'_>> {
        let contact =
            |Labelled { label: (key, slots), normal, points }| Contact { key, slots, normal, points };
        self.patches.iter().map(contact)
    }

    pub fn len(&self) -> usize {
        self.patches.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of points of all of them.
    pub fn points(&self) -> usize {
        self.patches.points()
    }
}

/// Reusable scratch; no result depends on it.
#[derive(Default)]
pub struct Detector {
    broad: BroadPhase,
    odometer: Odometer,
    /// By place in the list of candidates.
    ids: Vec<BodyId>,
    /// Places in the list of candidates, ascending by id; what follows is in this order.
    order: Vec<u32>,
    boxes: Vec<Aabb>,
    movable: Vec<bool>,
    /// From where bodies are queried to where they stand.
    carries: Carries,
    parts: Parts,
    /// Somewhat wider boxes, and the pairs of them that overlap: found anew when a box has left its wide one.
    wide: Vec<Aabb>,
    pairs: Pairs,
    /// Room to find others in.
    pairs_before: Pairs,
    /// By chunks of pairs.
    found: Vec<Contacts>,
}

impl Detector {
    /// All contacts with a gap up to the sum of reaches, ascending by key, in lists that follow one another.
    /// `owns` decides by the two bodies and the pair's place in space; `meet` whether two bodies have a
    /// contact law at all and how far it acts (a factor on the reach, from 0 to 1: 0 for contacts that act
    /// only once closed).
    ///
    /// A body keeps its id and its shape from call to call, and two bodies what `meet` says of them.
    pub fn detect(
        &mut self,
        candidates: &[Candidate],
        owns: impl Fn(&Body, &Body, &Vec3) -> bool + Sync,
        meet: impl Fn(&Body, &Body) -> Option<f64> + Sync,
    ) -> &[Contacts] {
        self.put_in_order(candidates);
        self.look_around(candidates);
        let Self { order, boxes, pairs, odometer, carries, parts, found, .. } = self;
        let query = Query { candidates, ids: &pairs.ids, order, boxes, odometer, carries, parts, owns, meet };
        found.resize_with(pairs.kept.len(), Contacts::default);
        let pairs = (pairs.places.par_chunks(CHUNK), pairs.known.par_chunks_mut(CHUNK))
            .into_par_iter()
            .zip((pairs.reusable.par_chunks_mut(CHUNK), pairs.kept.par_iter_mut()));
        pairs.zip(found.par_iter_mut()).enumerate().for_each_init(
            Kept::default,
            |before, (chunk, (((places, known), (reusable, kept)), contacts))| {
                let first = (chunk * CHUNK) as u32;
                let some = query::Chunk { first, places, known, reusable, kept };
                query.at(some, before, &mut contacts.patches);
            },
        );
        debug_assert!(found.iter().flat_map(Contacts::iter).is_sorted_by_key(|contact| contact.key));
        found
    }

    fn put_in_order(&mut self, candidates: &[Candidate]) {
        let Self { ids, order, .. } = self;
        ids.clear();
        ids.extend(candidates.iter().map(|candidate| candidate.body.id));
        let id = |&slot: &u32| ids[slot as usize];
        // Mostly that of the last call.
        if order.len() != ids.len() || !order.is_sorted_by_key(id) {
            order.clear();
            order.extend(0..ids.len() as u32);
            // Few ascending runs: a sort that merges runs is quick.
            order.sort_by_key(id);
        }
    }

    /// Boxes, pairs of boxes and motions. What bodies that have stayed where they are queried gave the last
    /// time is not worked out again.
    fn look_around(&mut self, candidates: &[Candidate]) {
        let Self { order, boxes, odometer, carries, parts, .. } = self;
        let at = |&slot: &u32| &candidates[slot as usize];
        let same =
            odometer.advance(order.iter().map(at).map(|one| (one.body.id, one.pose(), one.reach_there())));
        boxes.resize(order.len(), Aabb { min: Vec3::zeros(), max: Vec3::zeros() });
        boxes.par_iter_mut().enumerate().with_min_len(256).for_each(|(place, bounds)| {
            if !(same && odometer.is_still(place as u32)) {
                *bounds = at(&order[place]).bounds();
            }
        });
        carries.renew(order.par_iter().with_min_len(256).map(|slot| at(slot).carry()));
        parts.place(order.iter().map(|slot| at(slot).body));
        let movable = order.iter().map(|slot| at(slot).movable);
        let same = same && movable.clone().eq(self.movable.iter().copied());
        if same && odometer.all_still() {
            return;
        }
        let holds = |(wide, bounds): (&Aabb, &Aabb)| wide.contains(&bounds.min) && wide.contains(&bounds.max);
        if !(same && self.wide.iter().zip(&*boxes).all(holds)) {
            self.movable.clear();
            self.movable.extend(movable);
            self.wide.clear();
            self.wide.extend(order.iter().zip(&*boxes).map(|(slot, bounds)| at(slot).widened(bounds)));
            let ids = order.iter().map(|slot| at(slot).body.id);
            // In the order of ids, so the pairs come out in the order of the keys.
            let find = |places: &mut _| self.broad.pairs(&self.wide, &self.movable, places);
            self.pairs.renew(ids, find, &mut self.pairs_before);
        }
    }
}

#[cfg(test)]
mod tests;
