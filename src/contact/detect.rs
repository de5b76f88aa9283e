//! From bodies to contact manifolds: broad phase over boxes, narrow phase over pairs of convex parts.
//!
//! Whether a pair is found, and what is found, depends only on the two bodies: the box of a body is inflated by its own *reach*,
//! and a pair is searched up to the sum of both reaches. A pair belongs to the rank whose space holds the lower corner of the
//! intersection of the two inflated boxes; bodies present there are present on that rank.

use super::broad::BroadPhase;
use super::hints::{Hints, Remembered};
use super::narrow::{Hint, Patch, collide};
use crate::geometry::{Aabb, Convex, Shape, Vec3};
use crate::scene::{Body, ManifoldKey};
use rayon::prelude::*;

/// One body as detection sees it.
#[derive(Clone, Copy)]
pub struct Candidate<'a> {
    pub body: &'a Body,
    /// How far from its surface contacts are looked for, m, ≥ 0.
    pub reach: f64,
    pub movable: bool,
}

/// A contact patch between two convex parts. The body with the lower id stands first.
#[derive(Clone, Debug)]
pub struct Contact {
    pub key: ManifoldKey,
    /// Places in the list of candidates.
    pub slots: [u32; 2],
    pub patch: Patch,
}

/// Reusable scratch; no result depends on it.
#[derive(Default)]
pub struct Detector {
    broad: BroadPhase,
    boxes: Vec<Aabb>,
    movable: Vec<bool>,
    pairs: Vec<(u32, u32)>,
    hints: Hints,
}

impl Detector {
    /// All contacts with a gap up to the sum of reaches, ascending by key. `owns` decides by the pair and its place in space; `meet` whether two
    /// bodies have a contact law at all and how far it looks (a factor on the reach: 0 for contacts that act only once closed).
    pub fn detect(
        &mut self,
        candidates: &[Candidate],
        owns: impl Fn(&Body, &Body, &Vec3) -> bool + Sync,
        meet: impl Fn(&Body, &Body) -> Option<f64> + Sync,
    ) -> Vec<Contact> {
        self.boxes.clear();
        let inflated =
            |candidate: &Candidate| candidate.body.shape.aabb(&candidate.body.pose).inflated(candidate.reach);
        candidates.par_iter().with_min_len(256).map(inflated).collect_into_vec(&mut self.boxes);
        self.movable.clear();
        self.movable.extend(candidates.iter().map(|candidate| candidate.movable));
        self.broad.pairs(&self.boxes, &self.movable, &mut self.pairs);
        // In the order of the keys already here: a pair is 8 bytes, a contact hundreds.
        let id = |slot: u32| candidates[slot as usize].body.id;
        self.pairs.par_sort_unstable_by_key(|&(i, j)| (id(i).min(id(j)), id(i).max(id(j))));
        let (boxes, hints) =
            (&self.boxes, self.hints.recall(candidates.iter().map(|candidate| candidate.body.id)));
        let collided = |&(i, j): &(u32, u32)| {
            let mut found = Found { contacts: Vec::new(), hint: None };
            let [a, b] = [i, j].map(|slot| candidates[slot as usize].body);
            if owns(a, b, &boxes[i as usize].min.sup(&boxes[j as usize].min)) {
                collide_pair(candidates, i, j, &meet, &hints, &mut found);
            }
            found
        };
        let merge = |mut all: (Vec<Contact>, Vec<Remembered>), found: Found| {
            all.0.extend(found.contacts);
            all.1.extend(found.hint);
            all
        };
        let (contacts, remembered) = self
            .pairs
            .par_chunks(512)
            .map(|pairs| pairs.iter().map(collided).fold(Default::default(), merge))
            .reduce(Default::default, |mut first, second| {
                first.0.extend(second.0);
                first.1.extend(second.1);
                first
            });
        self.hints.remember(remembered);
        debug_assert!(contacts.is_sorted_by_key(|contact: &Contact| contact.key));
        contacts
    }
}

/// What one pair of bodies gives.
struct Found {
    contacts: Vec<Contact>,
    hint: Option<Remembered>,
}

fn collide_pair(
    candidates: &[Candidate],
    i: u32,
    j: u32,
    meet: &(impl Fn(&Body, &Body) -> Option<f64> + Sync),
    hints: &super::hints::Recall,
    found: &mut Found,
) {
    let lower_first = candidates[i as usize].body.id < candidates[j as usize].body.id;
    let slots = if lower_first { [i, j] } else { [j, i] };
    let [a, b] = slots.map(|slot| &candidates[slot as usize]);
    let Some(factor) = meet(a.body, b.body) else { return };
    let margin = factor * (a.reach + b.reach);
    // Only two stones are worth remembering: everything else is cheap, and clusters have several pairs of parts.
    let stones = [a, b].iter().all(|one| matches!(one.body.shape, Shape::Convex(Convex::Polyhedron(_))));
    for (part_a, (inner_a, convex_a)) in a.body.shape.parts().enumerate() {
        let pose_a = a.body.pose.compose(&inner_a);
        for (part_b, (inner_b, convex_b)) in b.body.shape.parts().enumerate() {
            let pose_b = b.body.pose.compose(&inner_b);
            let mut hint = if stones { hints.find(i, j) } else { Hint::default() };
            let patch = collide((convex_a, &pose_a), (convex_b, &pose_b), margin, &mut hint);
            if let Some(patch) = patch {
                let key =
                    ManifoldKey { bodies: [a.body.id, b.body.id], parts: [part_a as u16, part_b as u16] };
                found.contacts.push(Contact { key, slots, patch });
            } else if stones {
                found.hint = Some(Remembered { pair: (i, j), hint });
            }
        }
    }
}
