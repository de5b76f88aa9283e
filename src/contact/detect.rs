//! From bodies to contact manifolds: broad phase over boxes, narrow phase over pairs of convex parts.
//!
//! Whether a pair is found, and what is found, depends only on the two bodies: the box of a body is inflated by its own *reach*,
//! and a pair is searched up to the sum of both reaches. A pair belongs to the rank whose space holds the lower corner of the
//! intersection of the two inflated boxes; bodies present there are present on that rank.

use super::broad::BroadPhase;
use super::hints::{Recall, Remembered};
use super::narrow::{Hint, Patch, collide};
use super::odometer::{Odometer, Proof, Way};
use crate::geometry::{Aabb, Convex, Pose, Shape, Vec3};
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
    odometer: Odometer,
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
    /// bodies have a contact law at all and how far it looks (a factor on the reach, from 0 to 1: 0 for contacts that act only once closed).
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
            bounds(&body.shape, &body.pose).inflated(*reach)
        };
        self.order.par_iter().with_min_len(256).map(inflated).collect_into_vec(&mut self.boxes);
        self.movable.clear();
        self.movable.extend(self.order.iter().map(|&slot| candidates[slot as usize].movable));
        // In the order of ids, so the pairs come out in the order of the keys.
        self.broad.pairs(&self.boxes, &self.movable, &mut self.pairs);
        self.odometer.advance(self.order.iter().map(|&slot| {
            let body = candidates[slot as usize].body;
            (body.id, &body.pose)
        }));

        let Self { order, boxes, pairs, hints, odometer, .. } = self;
        let ids = |&(i, j): &(u32, u32)| (id(order[i as usize]), id(order[j as usize]));
        let mut rest = &mut hints[..];
        let mut tasks: Vec<Task> = Vec::with_capacity(pairs.len() / CHUNK + 1);
        for pairs in pairs.chunks(CHUNK) {
            let last = pairs.last().map(ids);
            let end = rest.partition_point(|remembered| Some(remembered.pair) <= last);
            let (own, others) = std::mem::take(&mut rest).split_at_mut(end);
            rest = others;
            let (contacts, hints) = (Vec::with_capacity(CHUNK / 2), Vec::with_capacity(CHUNK));
            tasks.push(Task { pairs, recall: Recall::new(own), contacts, hints });
        }
        tasks.par_iter_mut().for_each(|task| {
            for &(i, j) in task.pairs {
                let slots = [order[i as usize], order[j as usize]];
                let [a, b] = slots.map(|slot| &candidates[slot as usize]);
                let way = || odometer.way(i) + odometer.way(j);
                let own = || owns(a.body, b.body, &boxes[i as usize].min.sup(&boxes[j as usize].min));
                task.collide([a, b], slots, way, own, &meet);
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

/// The box of a body. A half-space that looks along an axis fills only one side of it, so that a wall is not paired with every body.
fn bounds(shape: &Shape, pose: &Pose) -> Aabb {
    let mut bounds = shape.aabb(pose);
    if let Shape::Convex(Convex::HalfSpace) = shape {
        let normal = pose.direction(&Vec3::z());
        let axis = normal.iamax();
        // What is left of the other two leans by a nanometre in a thousand kilometres, which the micrometre covers.
        if (0..3).all(|k| k == axis || normal[k].abs() <= 1e-15) {
            let face = pose.position[axis];
            if normal[axis] > 0.0 {
                bounds.max[axis] = face + 1e-6;
            } else {
                bounds.min[axis] = face - 1e-6;
            }
        }
    }
    bounds
}

/// Some pairs, what is remembered of them, and what they give.
struct Task<'a> {
    pairs: &'a [(u32, u32)],
    recall: Recall<'a>,
    contacts: Vec<Contact>,
    hints: Vec<Remembered>,
}

impl Task<'_> {
    /// Two bodies, the lower id first, and their places in the list of candidates.
    fn collide(
        &mut self,
        [a, b]: [&Candidate; 2],
        slots: [u32; 2],
        way: impl Fn() -> Way,
        own: impl Fn() -> bool,
        meet: &(impl Fn(&Body, &Body) -> Option<f64> + Sync),
    ) {
        let margin =
            || own().then(|| meet(a.body, b.body)).flatten().map(|factor| factor * (a.reach + b.reach));
        let mut touch = |parts: [u16; 2], patch: Patch| {
            let key = ManifoldKey { bodies: [a.body.id, b.body.id], parts };
            self.contacts.push(Contact { key, slots, patch });
        };
        match (&a.body.shape, &b.body.shape) {
            // Only two stones are worth remembering: everything else is cheap, and clusters have several pairs of parts.
            (Shape::Convex(one @ Convex::Polyhedron(_)), Shape::Convex(other @ Convex::Polyhedron(_))) => {
                let (pair, way) = ((a.body.id, b.body.id), way());
                let mut known = self.recall.take(pair);
                // The widest that any law looks.
                if !known.apart.is_some_and(|proof| proof.holds(way, a.reach + b.reach)) {
                    let Some(margin) = margin() else { return };
                    let patch = collide((one, &a.body.pose), (other, &b.body.pose), margin, &mut known.hint);
                    let between = b.body.pose.position - a.body.pose.position;
                    let radii = [one.bounding_radius(), other.bounding_radius()];
                    let gap = known.hint.gap().filter(|_| patch.is_none());
                    known.apart = gap.map(|gap| Proof::new(gap, &between, radii, way));
                    patch.into_iter().for_each(|patch| touch([0, 0], patch));
                }
                self.hints.push(Remembered { pair, known });
            }
            (Shape::Convex(one), Shape::Convex(other)) => {
                let Some(margin) = margin() else { return };
                let hint = &mut Hint::default();
                let patch = collide((one, &a.body.pose), (other, &b.body.pose), margin, hint);
                patch.into_iter().for_each(|patch| touch([0, 0], patch));
            }
            (of_a, of_b) => {
                let Some(margin) = margin() else { return };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Quat, convex_hull};
    use crate::scene::{BodyId, Motion};

    struct Random(u64);

    impl Random {
        fn unit(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }

        fn vector(&mut self) -> Vec3 {
            Vec3::new(self.unit(), self.unit(), self.unit()).add_scalar(-0.5)
        }
    }

    fn stone(id: u64, random: &mut Random) -> Body {
        let corners: Vec<Vec3> = (0..14).map(|_| random.vector().normalize() * 0.5).collect();
        Body {
            id: BodyId(id),
            group: 0,
            material: 0,
            motion: Motion::Free,
            shape: Shape::polyhedron(convex_hull(&corners).expect("a volume")),
            mass: 1.0,
            inertia: Vec3::repeat(1.0),
            pose: Pose::new(Quat::from_scaled_axis(random.vector() * 5.0), random.vector() * 3.0),
            velocity: Vec3::zeros(),
            angular_velocity: Vec3::zeros(),
            angular_momentum: Vec3::zeros(),
        }
    }

    /// Stones that rest, creep, fly, and now and then are away for a step: what is found is what a new detector finds.
    #[test]
    fn what_is_remembered_changes_nothing() {
        let mut random = Random(7);
        let mut stones: Vec<Body> = (0..40).map(|id| stone(id, &mut random)).collect();
        let mut detector = Detector::default();
        let mut most = 0;
        for step in 0..150 {
            for (index, body) in stones.iter_mut().enumerate() {
                let speed = [0.0, 1e-9, 1e-5, 1e-3, 3e-2][(index + step / 30) % 5];
                body.pose.position += random.vector() * speed;
                body.pose.rotation = Quat::from_scaled_axis(random.vector() * speed) * body.pose.rotation;
            }
            let away = random.0 as usize % 80;
            let present = stones.iter().enumerate().filter(|(index, _)| *index != away);
            let reach = 0.02 * random.unit();
            let candidates: Vec<Candidate> =
                present.map(|(_, body)| Candidate { body, reach, movable: true }).collect();
            let mut found = [&mut detector, &mut Detector::default()]
                .map(|detector| detector.detect(&candidates, |_, _, _| true, |_, _| Some(1.0)).into_iter());
            most = most.max(found[0].len());
            loop {
                let [one, other] = found.each_mut().map(|contacts| contacts.next());
                assert_eq!(
                    one.as_ref().map(|c| (c.key, &c.patch)),
                    other.as_ref().map(|c| (c.key, &c.patch))
                );
                if one.is_none() {
                    break;
                }
            }
        }
        assert!(most > 20, "{most}");
    }
}
