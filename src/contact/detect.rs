//! From bodies to contact manifolds: broad phase over boxes, narrow phase over pairs of convex parts.
//!
//! Whether a pair is found, and what is found, depends only on the two bodies: the box of a body is inflated by its own *reach*,
//! and a pair is searched up to the sum of both reaches. A pair belongs to the rank whose space holds the lower corner of the
//! intersection of the two inflated boxes; bodies present there are present on that rank.

use super::broad::BroadPhase;
use super::hints::{Recall, Remembered};
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
    /// Places in the list of candidates, ascending by id; what follows is in this order.
    order: Vec<u32>,
    boxes: Vec<Aabb>,
    movable: Vec<bool>,
    pairs: Vec<(u32, u32)>,
    /// Of pairs of stones, ascending.
    hints: Vec<Remembered>,
}

/// Pairs for one task of the parallel loop.
const CHUNK: usize = 256;

impl Detector {
    /// All contacts with a gap up to the sum of reaches, ascending by key. `owns` decides by the two bodies and the pair's place in space; `meet` whether two
    /// bodies have a contact law at all and how far it looks (a factor on the reach: 0 for contacts that act only once closed).
    ///
    /// A body keeps its id and its shape from call to call.
    pub fn detect(
        &mut self,
        candidates: &[Candidate],
        owns: impl Fn(&Body, &Body, &Vec3) -> bool + Sync,
        meet: impl Fn(&Body, &Body) -> Option<f64> + Sync,
    ) -> Vec<Contact> {
        let id = |slot: u32| candidates[slot as usize].body.id;
        self.order.clear();
        self.order.extend(0..candidates.len() as u32);
        // Few ascending runs: a sort that merges runs is quick.
        self.order.sort_by_key(|&slot| id(slot));
        let inflated = |&slot: &u32| {
            let Candidate { body, reach, .. } = &candidates[slot as usize];
            body.shape.aabb(&body.pose).inflated(*reach)
        };
        self.order.par_iter().with_min_len(256).map(inflated).collect_into_vec(&mut self.boxes);
        self.movable.clear();
        self.movable.extend(self.order.iter().map(|&slot| candidates[slot as usize].movable));
        // In the order of ids, so the pairs come out in the order of the keys.
        self.broad.pairs(&self.boxes, &self.movable, &mut self.pairs);

        let Self { order, boxes, pairs, hints, .. } = self;
        let ids = |&(i, j): &(u32, u32)| (id(order[i as usize]), id(order[j as usize]));
        let mut rest = &mut hints[..];
        let mut tasks: Vec<Task> = Vec::with_capacity(pairs.len() / CHUNK + 1);
        for pairs in pairs.chunks(CHUNK) {
            let last = pairs.last().map(ids);
            let end = rest.partition_point(|remembered| Some(remembered.pair) <= last);
            let (own, others) = std::mem::take(&mut rest).split_at_mut(end);
            rest = others;
            tasks.push(Task { pairs, recall: Recall::new(own), contacts: Vec::new(), hints: Vec::new() });
        }
        tasks.par_iter_mut().for_each(|task| {
            for &(i, j) in task.pairs {
                let slots = [order[i as usize], order[j as usize]];
                let [a, b] = slots.map(|slot| candidates[slot as usize].body);
                if owns(a, b, &boxes[i as usize].min.sup(&boxes[j as usize].min)) {
                    task.collide(slots, candidates, &meet);
                }
            }
        });
        let mut contacts = Vec::with_capacity(tasks.iter().map(|task| task.contacts.len()).sum());
        let mut remembered = Vec::with_capacity(tasks.iter().map(|task| task.hints.len()).sum());
        for task in &mut tasks {
            contacts.append(&mut task.contacts);
            remembered.append(&mut task.hints);
        }
        self.hints = remembered;
        debug_assert!(contacts.is_sorted_by_key(|contact: &Contact| contact.key));
        contacts
    }
}

/// Some pairs, what is remembered of them, and what they give.
struct Task<'a> {
    pairs: &'a [(u32, u32)],
    recall: Recall<'a>,
    contacts: Vec<Contact>,
    hints: Vec<Remembered>,
}

impl Task<'_> {
    /// `slots`, the lower id first.
    fn collide(
        &mut self,
        slots: [u32; 2],
        candidates: &[Candidate],
        meet: &(impl Fn(&Body, &Body) -> Option<f64> + Sync),
    ) {
        let [a, b] = slots.map(|slot| &candidates[slot as usize]);
        let Some(factor) = meet(a.body, b.body) else { return };
        let margin = factor * (a.reach + b.reach);
        let mut touch = |parts: [u16; 2], patch: Patch| {
            let key = ManifoldKey { bodies: [a.body.id, b.body.id], parts };
            self.contacts.push(Contact { key, slots, patch });
        };
        match (&a.body.shape, &b.body.shape) {
            // Only two stones are worth remembering: everything else is cheap, and clusters have several pairs of parts.
            (Shape::Convex(one @ Convex::Polyhedron(_)), Shape::Convex(other @ Convex::Polyhedron(_))) => {
                let pair = (a.body.id, b.body.id);
                let mut hint = self.recall.take(pair);
                let patch = collide((one, &a.body.pose), (other, &b.body.pose), margin, &mut hint);
                self.hints.push(Remembered { pair, hint });
                patch.into_iter().for_each(|patch| touch([0, 0], patch));
            }
            (Shape::Convex(one), Shape::Convex(other)) => {
                let hint = &mut Hint::default();
                let patch = collide((one, &a.body.pose), (other, &b.body.pose), margin, hint);
                patch.into_iter().for_each(|patch| touch([0, 0], patch));
            }
            (of_a, of_b) => {
                for (part_a, (inner_a, convex_a)) in of_a.parts().enumerate() {
                    let pose_a = a.body.pose.compose(&inner_a);
                    for (part_b, (inner_b, convex_b)) in of_b.parts().enumerate() {
                        let pose_b = b.body.pose.compose(&inner_b);
                        let hint = &mut Hint::default();
                        let patch = collide((convex_a, &pose_a), (convex_b, &pose_b), margin, hint);
                        patch.into_iter().for_each(|patch| touch([part_a as u16, part_b as u16], patch));
                    }
                }
            }
        }
    }
}
