//! What the bodies of a pair give. Where both have stayed where they are queried, that is what they gave in
//! the last call, carried along.

use super::parts::Parts;
use crate::contact::anchor::Candidate;
use crate::contact::carry::{Anchored, Carries, ContactPoint};
use crate::contact::narrow::{Hint, Patch, collide};
use crate::contact::odometer::{Odometer, Proof};
use crate::contact::pairs::{Kept, Known, Label};
use crate::contact::patches::{Labelled, Patches};
use crate::geometry::{Aabb, Convex, Pose, Shape, Vec3};
use crate::scene::{Body, BodyId, ManifoldKey};

/// All bodies of a call.
pub struct Query<'a, O, M> {
    pub candidates: &'a [Candidate<'a>],
    /// Ascending.
    pub ids: &'a [BodyId],
    /// Places in that list, ascending by id; what follows is in this order.
    pub order: &'a [u32],
    pub boxes: &'a [Aabb],
    pub odometer: &'a Odometer,
    pub carries: &'a Carries,
    pub parts: &'a Parts,
    /// Of [`super::Detector::detect`].
    pub owns: O,
    pub meet: M,
}

/// Some pairs, as in [`super::Pairs`].
pub struct Chunk<'a> {
    /// Place of the first among all pairs.
    pub first: u32,
    pub places: &'a [(u32, u32)],
    pub known: &'a mut [Option<Box<Known>>],
    pub reusable: &'a mut [bool],
    pub kept: &'a mut Kept,
}

/// By key and places in the list of candidates.
pub type Found = Patches<(ManifoldKey, [u32; 2]), ContactPoint>;

/// Two bodies, the lower id first.
#[derive(Clone, Copy)]
struct Pair<'a> {
    /// In the order of ids.
    places: [u32; 2],
    /// In the list of candidates.
    slots: [u32; 2],
    candidates: [&'a Candidate<'a>; 2],
}

impl<O, M> Query<'_, O, M>
where
    O: Fn(&Body, &Body, &Vec3) -> bool,
    M: Fn(&Body, &Body) -> Option<f64>,
{
    /// Replaces `contacts`. `before` is room to work in.
    pub fn at(&self, pairs: Chunk, before: &mut Kept, contacts: &mut Found) {
        let Chunk { first, places, known, reusable, kept } = pairs;
        contacts.clear();
        let is_still = |&(i, j): &(u32, u32)| self.odometer.is_still(i) && self.odometer.is_still(j);
        if places.iter().zip(&*reusable).all(|(places, reusable)| *reusable && is_still(places)) {
            for patch in kept.iter() {
                self.emit_kept(&self.pair(places[(patch.label.pair - first) as usize]), patch, contacts);
            }
            return;
        }
        std::mem::swap(kept, before);
        kept.clear();
        let mut before = before.iter().peekable();
        for (label, (places, (known, reusable))) in
            (first..).zip(places.iter().zip(known.iter_mut().zip(reusable)))
        {
            let last = if *reusable { before.next_if(|patch| patch.label.pair == label) } else { None };
            let pair = self.pair(*places);
            if !(*reusable && is_still(places)) {
                *reusable = self.compare(&pair, label, known, kept, contacts);
            } else if let Some(last) = last {
                kept.push(last.label, last.normal, last.points.iter().copied());
                self.emit_kept(&pair, last, contacts);
            }
        }
    }

    fn pair(&self, (i, j): (u32, u32)) -> Pair<'_> {
        let places = [i, j];
        let slots = places.map(|place| self.order[place as usize]);
        Pair { places, slots, candidates: slots.map(|slot| &self.candidates[slot as usize]) }
    }

    fn is_owned(&self, pair: &Pair) -> bool {
        let [a, b] = pair.candidates.map(|candidate| candidate.body);
        let [one, other] = pair.places.map(|place| &self.boxes[place as usize]);
        (self.owns)(a, b, &one.min.sup(&other.min))
    }

    /// Factor of the law of a pair on the reach, if it is ours and has one.
    fn factor(&self, pair: &Pair) -> Option<f64> {
        let [a, b] = pair.candidates.map(|candidate| candidate.body);
        if self.is_owned(pair) { (self.meet)(a, b) } else { None }
    }

    /// Adds the contacts of a pair to the list, and keeps what two stones give where they are queried.
    /// Whether it is known now.
    fn compare(
        &self,
        pair: &Pair,
        label: u32,
        known: &mut Option<Box<Known>>,
        kept: &mut Kept,
        contacts: &mut Found,
    ) -> bool {
        let [one, other] = pair.places.map(|place| &self.boxes[place as usize]);
        if !one.overlaps(other) {
            return true;
        }
        let [a, b] = pair.candidates;
        // Only what two stones give is kept: everything else is cheap, and clusters have several pairs of
        // parts.
        let (
            Shape::Convex(one @ Convex::Polyhedron(shape_a)),
            Shape::Convex(other @ Convex::Polyhedron(shape_b)),
        ) = (&a.body.shape, &b.body.shape)
        else {
            if let Some(factor) = self.factor(pair) {
                self.collide_here(pair, factor, known, contacts);
            }
            return false;
        };
        let known = known.get_or_insert_default();
        let [i, j] = pair.places;
        let displacement = self.odometer.displacement(i) + self.odometer.displacement(j);
        // The widest reach of any law.
        let reach = a.reach_there() + b.reach_there();
        if known.apart.is_some_and(|proof| proof.holds(displacement, reach)) {
            return true;
        }
        let Some(factor) = self.factor(pair) else { return false };
        let [margin, _] = Candidate::margins([a, b], factor);
        let patch = collide((one, a.pose()), (other, b.pose()), margin, &mut known.hint);
        let between = b.pose().position - a.pose().position;
        let radii = [shape_a.bounding_radius, shape_b.bounding_radius];
        let gap = known.hint.gap().filter(|_| patch.is_none());
        known.apart = gap.map(|gap| Proof::new(gap, &between, radii, displacement));
        if let Some(Patch { normal, points }) = patch {
            let points = points.into_iter().map(Anchored::from);
            self.emit(pair, kept.push(Label { pair: label, factor }, normal, points), contacts);
        }
        true
    }

    /// What was kept of a pair, which may have become that of another rank.
    fn emit_kept(&self, pair: &Pair, patch: Labelled<Label, Anchored>, contacts: &mut Found) {
        if self.is_owned(pair) {
            self.emit(pair, patch, contacts);
        }
    }

    /// Adds the contacts of two stones to the list.
    fn emit(&self, pair: &Pair, patch: Labelled<Label, Anchored>, contacts: &mut Found) {
        let Labelled { label, normal, points } = patch;
        let [_, margin] = Candidate::margins(pair.candidates, label.factor);
        let carries = pair.places.map(|place| self.carries.of(place));
        let carried = points.iter().map(|point| point.carried(&normal, carries));
        let label = (self.key(pair, [0, 0]), pair.slots);
        contacts.push_some(label, normal, carried, |point| point.gap <= margin);
    }

    /// Bodies that are not two stones, where they stand.
    fn collide_here(&self, pair: &Pair, factor: f64, known: &mut Option<Box<Known>>, contacts: &mut Found) {
        let [a, b] = pair.candidates.map(|candidate| candidate.body);
        let [_, margin] = Candidate::margins(pair.candidates, factor);
        // By reference: a patch is a long thing to carry about.
        let mut touch = |parts: [usize; 2], Patch { normal, points }: &Patch| {
            let label = (self.key(pair, parts.map(|part| part as u32)), pair.slots);
            contacts.push(label, *normal, points.iter().map(ContactPoint::from));
        };
        if let (Shape::Convex(one), Shape::Convex(other)) = (&a.shape, &b.shape) {
            let mut none = Hint::default();
            // A stone on a wall remembers which of its corners are near.
            let hint = match (one, other) {
                (Convex::HalfSpace, Convex::Polyhedron(_)) | (Convex::Polyhedron(_), Convex::HalfSpace) => {
                    &mut known.get_or_insert_default().hint
                }
                _ => &mut none,
            };
            if let Some(patch) = &collide((one, &a.pose), (other, &b.pose), margin, hint) {
                touch([0, 0], patch);
            }
            return;
        }
        let alone = [a, b].map(|body| body.pose.compose(&Pose::identity()));
        let [poses_a, poses_b] = [0, 1].map(|k| match self.parts.of(pair.places[k]) {
            [] => std::slice::from_ref(&alone[k]),
            parts => parts,
        });
        let mut compare = |[part_a, part_b]: [usize; 2]| {
            let one = (a.shape.part(part_a), &poses_a[part_a]);
            let other = (b.shape.part(part_b), &poses_b[part_b]);
            if let Some(patch) = &collide(one, other, margin, &mut Hint::default()) {
                touch([part_a, part_b], patch);
            }
        };
        match self.parts.near(pair.places, [&a.shape, &b.shape], [poses_a, poses_b], margin) {
            Some(pairs) => pairs.into_iter().for_each(compare),
            None => {
                let parts_b = 0..poses_b.len();
                let pairs = (0..poses_a.len()).flat_map(|a| parts_b.clone().map(move |b| [a, b]));
                pairs.for_each(&mut compare);
            }
        }
    }

    fn key(&self, pair: &Pair, parts: [u32; 2]) -> ManifoldKey {
        ManifoldKey { bodies: pair.places.map(|place| self.ids[place as usize]), parts }
    }
}
