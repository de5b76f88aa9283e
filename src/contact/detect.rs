//! From bodies to contact manifolds: broad phase over boxes, narrow phase over pairs of convex parts.
//!
//! Whether a pair is found, and what is found, depends only on the two bodies: the box of a body is inflated by its own *reach*,
//! and a pair is searched up to the sum of both reaches. A pair belongs to the rank whose space holds the lower corner of the
//! intersection of the two inflated boxes; bodies present there are present on that rank.

pub use super::anchor::Candidate;
use super::anchor::Carry;
use super::broad::BroadPhase;
use super::hints::{Known, Pairs};
use super::narrow::{Hint, Patch, collide};
use super::odometer::{Odometer, Proof, Way};
use crate::geometry::{Aabb, Convex, Shape, Vec3};
use crate::scene::{Body, ManifoldKey};
use rayon::prelude::*;

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
    carries: Vec<Option<Carry>>,
    /// Somewhat wider boxes, and the pairs of them that overlap: found anew when a box has left its wide one.
    wide: Vec<Aabb>,
    pairs: Pairs,
    /// Calls so far.
    calls: u64,
    /// Contacts that were found at most.
    most: usize,
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
        self.calls += 1;
        self.look_around(candidates);
        let Self { order, boxes, pairs, odometer, carries, calls, most, .. } = self;
        let now = *calls;
        let alone = rayon::current_num_threads() == 1;
        let (chunk, room) = if alone { (pairs.places.len().max(1), *most) } else { (CHUNK, CHUNK) };
        let parts = pairs.places.par_chunks(chunk).zip(pairs.known.par_chunks_mut(chunk));
        let mut found: Vec<Vec<Contact>> = parts
            .map(|(pairs, known)| {
                let mut contacts = Vec::with_capacity(room);
                for (&(i, j), known) in pairs.iter().zip(known) {
                    let [one, other] = [&boxes[i as usize], &boxes[j as usize]];
                    if !one.overlaps(other) {
                        continue;
                    }
                    let slots = [order[i as usize], order[j as usize]];
                    let [a, b] = slots.map(|slot| &candidates[slot as usize]);
                    let pair = Pair {
                        candidates: [a, b],
                        slots,
                        still: odometer.is_still(i) && odometer.is_still(j),
                        now,
                        way: || odometer.way(i) + odometer.way(j),
                        carries: [&carries[i as usize], &carries[j as usize]],
                    };
                    let own = || owns(a.body, b.body, &one.min.sup(&other.min));
                    pair.collide(own, &meet, known, &mut contacts);
                }
                contacts
            })
            .collect();
        let contacts = match &mut found[..] {
            [all] => std::mem::take(all),
            _ => {
                let mut contacts = Vec::with_capacity(found.iter().map(Vec::len).sum());
                found.iter_mut().for_each(|found| contacts.append(found));
                contacts
            }
        };
        *most = contacts.len().max(*most);
        debug_assert!(contacts.is_sorted_by_key(|contact: &Contact| contact.key));
        contacts
    }

    /// Boxes, pairs of boxes and motions. What bodies that have stayed where they are looked at gave the last time is not worked out again.
    fn look_around(&mut self, candidates: &[Candidate]) {
        let Self { order, boxes, odometer, carries, .. } = self;
        let at = |&slot: &u32| &candidates[slot as usize];
        let same =
            odometer.advance(order.iter().map(at).map(|one| (one.body.id, one.pose(), one.reach_there())));
        boxes.resize(order.len(), Aabb { min: Vec3::zeros(), max: Vec3::zeros() });
        boxes.par_iter_mut().enumerate().with_min_len(256).for_each(|(place, bounds)| {
            if !(same && odometer.is_still(place as u32)) {
                *bounds = at(&order[place]).bounds();
            }
        });
        order.par_iter().with_min_len(256).map(|slot| at(slot).carry()).collect_into_vec(carries);
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
            let ids = order.iter().map(|slot| at(slot).body.id).collect();
            // In the order of ids, so the pairs come out in the order of the keys.
            self.pairs.renew(ids, |places| self.broad.pairs(&self.wide, &self.movable, places));
        }
    }
}

/// Two bodies, the lower id first.
struct Pair<'a, W> {
    candidates: [&'a Candidate<'a>; 2],
    /// Their places in the list of candidates.
    slots: [u32; 2],
    /// Whether both are looked at where they were the last time, and as far.
    still: bool,
    /// Which call of [`Detector::detect`] this is.
    now: u64,
    /// Of both.
    way: W,
    carries: [&'a Option<Carry>; 2],
}

impl<W: Fn() -> Way> Pair<'_, W> {
    fn collide(
        &self,
        own: impl Fn() -> bool,
        meet: &(impl Fn(&Body, &Body) -> Option<f64> + Sync),
        known: &mut Option<Box<Known>>,
        contacts: &mut Vec<Contact>,
    ) {
        let Self { candidates: [a, b], slots, .. } = *self;
        let margins = || {
            let factor = own().then(|| meet(a.body, b.body)).flatten();
            factor.map(|factor| Candidate::margins([a, b], factor))
        };
        let margin = || margins().map(|[_, here]| here);
        let key = |parts: [u16; 2]| ManifoldKey { bodies: [a.body.id, b.body.id], parts };
        let mut touch =
            |parts: [u16; 2], patch: Patch| contacts.push(Contact { key: key(parts), slots, patch });
        match (&a.body.shape, &b.body.shape) {
            // Only two stones are worth remembering: everything else is cheap, and clusters have several pairs of parts.
            (Shape::Convex(one @ Convex::Polyhedron(_)), Shape::Convex(other @ Convex::Polyhedron(_))) => {
                let known = known.get_or_insert_default();
                let mut looked = None;
                if !self.still || known.looked + 1 != self.now {
                    let way = (self.way)();
                    // The widest that any law looks.
                    let reach = a.reach_there() + b.reach_there();
                    if !known.apart.is_some_and(|proof| proof.holds(way, reach)) {
                        looked = margins();
                        let Some([margin, _]) = looked else { return };
                        let patch = collide((one, a.pose()), (other, b.pose()), margin, &mut known.hint);
                        let between = b.pose().position - a.pose().position;
                        let radii = [one.bounding_radius(), other.bounding_radius()];
                        let gap = known.hint.gap().filter(|_| patch.is_none());
                        known.apart = gap.map(|gap| Proof::new(gap, &between, radii, way));
                        match (patch, &mut known.patch) {
                            (Some(patch), Some(old)) => **old = patch,
                            (patch, old) => *old = patch.map(Box::new),
                        }
                    }
                }
                known.looked = self.now;
                let Some(patch) = &known.patch else { return };
                let Some([there, here]) = looked.or_else(margins) else { return };
                match self.carries {
                    [None, None] if there == here => touch([0, 0], (**patch).clone()),
                    carries => {
                        // Filled where it stands: a patch is a long thing to carry about.
                        touch([0, 0], Patch { normal: patch.normal, points: Default::default() });
                        let contact = contacts.last_mut().expect("just added");
                        contact.patch.add_carried(patch, carries, here);
                        if contact.patch.points.is_empty() {
                            contacts.pop();
                        }
                    }
                }
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
    use crate::contact::anchor::{renew, slack};
    use crate::geometry::{Pose, Quat, convex_hull};
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
            anchor: None,
        }
    }

    /// Each moves by a speed of its own, which changes now and then: none, or from a billionth to a few hundredths.
    fn shake(stones: &mut [Body], step: usize, random: &mut Random) {
        for (index, body) in stones.iter_mut().enumerate() {
            let speed = [0.0, 1e-9, 1e-5, 1e-3, 3e-2][(index + step / 30) % 5];
            body.pose.position += random.vector() * speed;
            body.pose.rotation = Quat::from_scaled_axis(random.vector() * speed) * body.pose.rotation;
        }
    }

    /// Stones that rest, creep, fly, and now and then are away for a step: what is found is what a new detector finds.
    #[test]
    fn what_is_remembered_changes_nothing() {
        let mut random = Random(7);
        for reuse in [0.0, 1e-3] {
            let mut stones: Vec<Body> = (0..40).map(|id| stone(id, &mut random)).collect();
            let mut detector = Detector::default();
            let mut most = 0;
            for step in 0..150 {
                shake(&mut stones, step, &mut random);
                let away = random.0 as usize % 80;
                let reach = 0.02 * random.unit();
                stones.iter_mut().for_each(|body| renew(body, reach, slack(body, reuse)));
                let present = stones.iter().enumerate().filter(|(index, _)| *index != away);
                let candidate =
                    |(_, body)| Candidate { body, reach, movable: true, slack: slack(body, reuse) };
                let candidates: Vec<Candidate> = present.map(candidate).collect();
                let mut found = [&mut detector, &mut Detector::default()].map(|detector| {
                    detector.detect(&candidates, |_, _, _| true, |_, _| Some(1.0)).into_iter()
                });
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

    /// Against the full search where the stones stand: every closed pair is found, and but for a few whose axis is about to change as deep up to a tenth of
    /// what the two may have moved.
    #[test]
    fn carried_patches_are_those_of_the_stones_where_they_stand() {
        const REUSE: f64 = 1e-3;
        let mut random = Random(11);
        let mut stones: Vec<Body> = (0..40).map(|id| stone(id, &mut random)).collect();
        let mut detector = Detector::default();
        let (mut carried, mut compared, mut different) = (0, 0, 0);
        for step in 0..150 {
            shake(&mut stones, step, &mut random);
            stones.iter_mut().for_each(|body| renew(body, 0.01, slack(body, REUSE)));
            carried += stones.iter().filter(|body| body.anchor.is_some_and(|a| a.pose != body.pose)).count();
            let look = |detector: &mut Detector, reuse: f64, factor: f64| {
                let candidate =
                    |body| Candidate { body, reach: 0.01, movable: true, slack: slack(body, reuse) };
                let candidates: Vec<Candidate> = stones.iter().map(candidate).collect();
                let found = detector.detect(&candidates, |_, _, _| true, |_, _| Some(factor));
                let depth = |contact: &Contact| {
                    let gaps = contact.patch.points.iter().map(|point| point.gap);
                    (contact.key, gaps.fold(f64::INFINITY, f64::min))
                };
                found.iter().map(depth).collect::<std::collections::BTreeMap<_, _>>()
            };
            // Also where contacts act only once closed: nothing may be missed that closes between two looks.
            let factor = if step < 75 { 1.0 } else { 0.0 };
            let (here, there) =
                (look(&mut Detector::default(), 0.0, factor), look(&mut detector, REUSE, factor));
            for (key, depth) in here.iter().filter(|(_, depth)| **depth < -1e-5) {
                let found = there.get(key).unwrap_or_else(|| panic!("step {step}: {key:?}, {depth}"));
                different += usize::from((found - depth).abs() > 0.1 * REUSE);
                compared += 1;
            }
        }
        assert!(carried > 1000 && compared > 500, "{carried}, {compared}");
        assert!(100 * different < compared, "{different} of {compared}");
    }
}
