//! From contacts to the contact problem: frames, arms, bias, starting impulses (31)–(32).

use super::impact::{Flight, Impact};
use super::machines::Machines;
use crate::contact::detect::{Candidate, Contact, ContactPoint, Contacts};
use crate::geometry::{Aabb, Vec3, place_on_curve};
use crate::scene::{
    Activation, Body, BodyId, ContactLaw, Impulses, ManifoldKey, Motion, Scene, StoredImpulse, StoredPoints,
};
use crate::solve::hub::HubPoint;
use crate::solve::problem::{IDLE, contact_frame};
use crate::solve::{Inertia, Manifold, Point, Problem, Twist};
use rayon::prelude::*;
use smallvec::SmallVec;

/// What the contact problem leaves out of a point and later steps ask for again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointInfo {
    pub feature: u32,
    pub gap: f64,
    /// World, in the middle between the two surfaces.
    pub position: Vec3,
    /// How long before `q_m` the impulse acted, by [`Impact`], s; zero where overlap is not limited.
    pub since_impact: f64,
}

/// The home of a contact: its first free body; if there is none, the first that belongs to a machine.
pub fn home(bodies: [&Body; 2]) -> BodyId {
    let rank = |body: &Body| match body.motion {
        Motion::Free => 0,
        Motion::Machine(_) => 1,
        Motion::Fixed | Motion::Kinematic(_) => 2,
    };
    if rank(bodies[0]) <= rank(bodies[1]) { bodies[0].id } else { bodies[1].id }
}

/// Lists of contacts for one task of the parallel loop.
const CHUNK: usize = 16;

#[derive(Default)]
pub struct Assembled {
    pub problem: Problem,
    /// One for each point of the problem.
    pub points: Vec<PointInfo>,
    /// Contacts of machines and of other hubs, ascending by key.
    pub hub: Vec<HubContact>,
}

/// A contact that is solved in the hub phase.
pub struct HubContact {
    pub key: ManifoldKey,
    /// Places in the list of candidates.
    pub slots: [u32; 2],
    pub frame: [Vec3; 3],
    pub friction: f64,
    pub points: Vec<HubPoint>,
    /// One for each point.
    pub infos: Vec<PointInfo>,
}

/// What contacts are assembled from.
pub struct Parts<'a> {
    pub candidates: &'a [Candidate<'a>],
    pub scene: &'a Scene,
    pub machines: &'a Machines,
    /// Where the impulses of the last step are looked for.
    pub stored: [&'a Impulses; 2],
    pub warm_start: bool,
    /// `v_free` by slot.
    pub free_velocity: &'a [Twist],
    pub time_step: f64,
    pub theta: f64,
    pub takes_part: TakesPart,
}

/// Which points of a gap-activated contact are in the contact problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakesPart {
    /// Closed ones, as in the paper.
    Closed,
    /// Closed ones, and those that would be closed at the end of the step.
    Closing,
    /// All that were found, to move bodies apart at the end of a step.
    All,
}

pub fn assemble(
    contacts: &[Contacts],
    inertia: Vec<Inertia>,
    free_velocity: Vec<Twist>,
    parts: &Parts,
) -> Assembled {
    // On one thread there is nothing to put together afterwards.
    let chunk = if rayon::current_num_threads() == 1 { contacts.len().max(1) } else { CHUNK };
    let mut pieces: Vec<Assembled> =
        contacts.par_chunks(chunk).map(|contacts| piece(contacts, parts)).collect();
    let mut assembled = if pieces.len() == 1 { pieces.remove(0) } else { Assembled::default() };
    assembled.problem.places = places(parts.candidates);
    assembled.problem.inertia = inertia;
    assembled.problem.free_velocity = free_velocity;
    let total = |count: fn(&Assembled) -> usize| pieces.iter().map(count).sum();
    let points = total(|piece| piece.points.len());
    assembled.problem.manifolds.reserve(total(|piece| piece.problem.manifolds.len()));
    assembled.problem.points.reserve(points);
    assembled.points.reserve(points);
    pieces.into_iter().for_each(|piece| assembled.append(piece));
    assembled
}

/// Where the bodies are along a space-filling curve.
fn places(candidates: &[Candidate]) -> Vec<u32> {
    let mut bounds = Aabb::empty();
    for Candidate { body, movable, .. } in candidates {
        if *movable {
            bounds = bounds.union(&Aabb { min: body.pose.position, max: body.pose.position });
        }
    }
    candidates.iter().map(|candidate| place_on_curve(&candidate.body.pose.position, &bounds)).collect()
}

/// Some contacts, without the bodies.
fn piece(contacts: &[Contacts], parts: &Parts) -> Assembled {
    let mut assembled = Assembled::default();
    let points = contacts.iter().map(Contacts::points).sum();
    assembled.problem.manifolds.reserve(contacts.iter().map(Contacts::len).sum());
    assembled.problem.points.reserve(points);
    assembled.points.reserve(points);
    let mut next = [0; 2];
    for contact in contacts.iter().flat_map(Contacts::iter) {
        let bodies = contact.slots.map(|slot| parts.candidates[slot as usize].body);
        let Some(law) = parts.scene.model.laws.between(bodies[0].material, bodies[1].material) else {
            continue;
        };
        let on_machine = bodies.iter().any(|body| matches!(body.motion, Motion::Machine(_)));
        let home = home(bodies);
        let [own, ghosts] = [0, 1].map(|of| parts.stored[of].find_next(home, &contact.key, &mut next[of]));
        // With its home, which is an own body or a ghost and so in one of the two lists.
        let old = if own.is_empty() { ghosts } else { own };
        let frame = contact_frame(contact.normal);
        let assembler = Assembler { contact, bodies, law, frame, old, parts };
        if on_machine {
            assembled.hub.extend(assembler.machine_contact());
        } else {
            assembler.add_manifold(&mut assembled);
        }
    }
    assembled
}

impl Assembled {
    fn append(&mut self, mut other: Assembled) {
        let first = self.problem.points.len() as u32;
        other.problem.manifolds.iter_mut().for_each(|manifold| manifold.first_point += first);
        self.problem.manifolds.append(&mut other.problem.manifolds);
        self.problem.points.append(&mut other.problem.points);
        self.points.append(&mut other.points);
        self.hub.append(&mut other.hub);
    }

    /// Bodies without contacts here, and not `shared` with ranks that may have some, are idle.
    pub fn set_idle(&mut self, shared: impl Fn(u32) -> bool) {
        let Problem { inertia, manifolds, places, .. } = &mut self.problem;
        let mut touched = vec![false; inertia.len()];
        let contacts = manifolds.iter().map(|m| m.slots).chain(self.hub.iter().map(|contact| contact.slots));
        contacts.flatten().for_each(|slot| touched[slot as usize] = true);
        for ((slot, place), touched) in (0..).zip(places).zip(touched) {
            let changes = inertia[slot as usize].is_movable() && (touched || shared(slot));
            if !changes {
                *place = IDLE;
            }
        }
    }

    /// Takes the contacts of some bodies out of the problem and puts them among those of the hub phase.
    pub fn separate(&mut self, hubs: &[BodyId]) {
        let problem = &mut self.problem;
        let is_hub = |manifold: &Manifold| is_of(&manifold.key, hubs);
        if !problem.manifolds.iter().any(is_hub) {
            return;
        }
        let all = Problem {
            manifolds: std::mem::take(&mut problem.manifolds),
            points: std::mem::take(&mut problem.points),
            ..Default::default()
        };
        let infos = std::mem::take(&mut self.points);
        for (index, manifold) in all.manifolds.iter().enumerate() {
            let places = all.points_of(index);
            if is_hub(manifold) {
                let Manifold { key, slots, frame, friction, .. } = *manifold;
                let points = all.points[places.clone()].iter().map(|point| hub_point(problem, slots, point));
                let (points, infos) = (points.collect(), infos[places].to_vec());
                self.hub.push(HubContact { key, slots, frame, friction, points, infos });
            } else {
                let first_point = problem.points.len() as u32;
                problem.manifolds.push(Manifold { first_point, ..manifold.clone() });
                problem.points.extend_from_slice(&all.points[places.clone()]);
                self.points.extend_from_slice(&infos[places]);
            }
        }
        self.hub.sort_unstable_by_key(|contact| contact.key);
    }
}

/// Whether one of these bodies takes part.
pub fn is_of(key: &ManifoldKey, bodies: &[BodyId]) -> bool {
    key.bodies.iter().any(|id| bodies.contains(id))
}

/// A point between bodies, one of which may be fixed or kinematic.
fn hub_point(problem: &Problem, slots: [u32; 2], point: &Point) -> HubPoint {
    let given = |side: usize| {
        let slot = slots[side] as usize;
        let twist = &problem.free_velocity[slot];
        let velocity = Vec3::from(twist.linear) + Vec3::from(twist.angular).cross(&point.arms[side]);
        if problem.inertia[slot].is_movable() { Vec3::zeros() } else { velocity }
    };
    let Point { arms, bias, impulse } = *point;
    HubPoint { arms, jacobians: Default::default(), given: given(1) - given(0), bias, impulse }
}

/// The points of a contact that take part, with their arms.
type Points = SmallVec<[(PointInfo, [Vec3; 2]); 8]>;

/// One contact in the making.
struct Assembler<'a> {
    contact: Contact<'a>,
    bodies: [&'a Body; 2],
    law: &'a ContactLaw,
    frame: [Vec3; 3],
    /// What the last step stored for this contact.
    old: &'a [StoredImpulse],
    parts: &'a Parts<'a>,
}

impl Assembler<'_> {
    fn add_manifold(&self, assembled: &mut Assembled) {
        let first_point = assembled.problem.points.len() as u32;
        let mut add = |info: PointInfo, arms: [Vec3; 2], impact: &Option<Impact>| {
            let impulse = self.carried(info.feature);
            let bias = self.bias(&info, &arms, impact);
            assembled.problem.points.push(Point { arms, bias, impulse });
            assembled.points.push(info);
        };
        if self.parts.takes_part == TakesPart::Closing {
            let (found, impact) = self.points();
            found.into_iter().for_each(|(info, arms)| add(info, arms, &impact));
        } else {
            // Nobody strikes together: point by point.
            self.active_points().for_each(|(info, arms)| add(info, arms, &None));
        }
        if assembled.problem.points.len() as u32 > first_point {
            let Contact { key, slots, .. } = self.contact;
            let (frame, friction) = (self.frame, self.law.friction);
            assembled.problem.manifolds.push(Manifold { key, slots, frame, friction, first_point });
        }
    }

    fn machine_contact(&self) -> Option<HubContact> {
        let (found, impact) = self.points();
        let (mut points, mut infos) = (Vec::new(), Vec::new());
        for (info, arms) in &found {
            points.push(HubPoint {
                arms: *arms,
                jacobians: [0, 1].map(|side| self.jacobian(side, &info.position)),
                given: self.given(1, info, arms) - self.given(0, info, arms),
                bias: self.bias(info, arms, &impact),
                impulse: self.carried(info.feature),
            });
            infos.push(*info);
        }
        let Contact { key, slots, .. } = self.contact;
        let (frame, friction) = (self.frame, self.law.friction);
        (!points.is_empty()).then_some(HubContact { key, slots, frame, friction, points, infos })
    }

    /// The points that take part, with their arms.
    fn active_points(&self) -> impl Iterator<Item = (PointInfo, [Vec3; 2])> {
        let active =
            move |info: &PointInfo, arms: &[Vec3; 2]| match (self.law.activation, self.parts.takes_part) {
                (Activation::Predictive, _) | (_, TakesPart::All) => true,
                (_, TakesPart::Closed) => info.gap <= 0.0,
                (_, TakesPart::Closing) => info.gap <= 0.0 || self.flight(info, arms).closes(),
            };
        let points = self.contact.points.iter().map(|&ContactPoint { feature, gap, position }| {
            let arms = self.bodies.map(|body| position - body.pose.position);
            (PointInfo { feature, gap, position, since_impact: 0.0 }, arms)
        });
        points.filter(move |(info, arms)| active(info, arms))
    }

    /// The same, and how they meet.
    fn points(&self) -> (Points, Option<Impact>) {
        let mut found: Points = self.active_points().collect();
        let impact = self.impact(&found);
        let since_impact = impact.as_ref().map_or(0.0, |impact| impact.since);
        found.iter_mut().for_each(|(info, _)| info.since_impact = since_impact);
        (found, impact)
    }

    /// None where the law or the limit of overlap does not ask for it, or nothing takes part.
    fn impact(&self, points: &Points) -> Option<Impact> {
        if self.law.activation != Activation::GapActivated || self.parts.takes_part != TakesPart::Closing {
            return None;
        }
        let flights: SmallVec<[Flight; 8]> =
            points.iter().map(|(info, arms)| self.flight(info, arms)).collect();
        Some(Flight::mean(&flights)?.impact(self.law.restitution))
    }

    fn flight(&self, info: &PointInfo, arms: &[Vec3; 2]) -> Flight {
        let along = |velocities: [Vec3; 2]| self.frame[0].dot(&(velocities[1] - velocities[0]));
        Flight {
            gap: info.gap,
            before: along([0, 1].map(|side| self.velocity_before(side, info, arms))),
            free: along([0, 1].map(|side| self.free_velocity(side, info, arms))),
            durations: [
                (1.0 - self.parts.theta) * self.parts.time_step,
                self.parts.theta * self.parts.time_step,
            ],
        }
    }

    /// The last step's impulse at the same features, turned into the new frame and back into the friction cone.
    fn carried(&self, feature: u32) -> [f64; 3] {
        let same = self.old.iter().find(|stored| stored.feature == feature);
        let Some(stored) = same.filter(|_| self.parts.warm_start) else { return [0.0; 3] };
        let local = Vec3::from_fn(|axis, _| self.frame[axis].dot(&stored.impulse));
        crate::law::coulomb::project_on_cone(local, self.law.friction).into()
    }

    /// `e V_n⁻`, with the velocities at the start of the step, or `g/h`; where overlap is limited that of [`Impact`].
    fn bias(&self, info: &PointInfo, arms: &[Vec3; 2], impact: &Option<Impact>) -> f64 {
        if let Some(impact) = impact {
            return self.flight(info, arms).bias(impact, self.law.restitution);
        }
        match self.law.activation {
            Activation::Predictive => info.gap.max(0.0) / self.parts.time_step,
            Activation::GapActivated if self.law.restitution == 0.0 => 0.0,
            Activation::GapActivated => {
                let before = [0, 1].map(|side| self.velocity_before(side, info, arms));
                self.law.restitution * self.frame[0].dot(&(before[1] - before[0]))
            }
        }
    }

    fn velocity_before(&self, side: usize, info: &PointInfo, arms: &[Vec3; 2]) -> Vec3 {
        let body = self.bodies[side];
        match self.parts.machines.place(self.parts.scene, body) {
            Some((operators, slot)) => operators.point_velocity_before(slot, &info.position),
            None => body.velocity + body.angular_velocity.cross(&arms[side]),
        }
    }

    fn free_velocity(&self, side: usize, info: &PointInfo, arms: &[Vec3; 2]) -> Vec3 {
        match self.parts.machines.place(self.parts.scene, self.bodies[side]) {
            Some((operators, slot)) => {
                operators.point_velocity(slot, &info.position, &operators.free_velocity)
            }
            None => {
                let twist = &self.parts.free_velocity[self.contact.slots[side] as usize];
                Vec3::from(twist.linear) + Vec3::from(twist.angular).cross(&arms[side])
            }
        }
    }

    /// `H_redᵀ` (27) of one end; empty if it does not belong to a machine.
    fn jacobian(&self, side: usize, position: &Vec3) -> Vec<f64> {
        let place = self.parts.machines.place(self.parts.scene, self.bodies[side]);
        let Some((operators, slot)) = place else { return Vec::new() };
        let mut jacobian = vec![0.0; 3 * operators.nu];
        operators.point_jacobian(slot, position, &mut jacobian);
        jacobian
    }

    /// The part of an end's velocity at the end of the step that no impulse changes.
    fn given(&self, side: usize, info: &PointInfo, arms: &[Vec3; 2]) -> Vec3 {
        let body = self.bodies[side];
        match body.motion {
            Motion::Free => Vec3::zeros(),
            Motion::Fixed | Motion::Kinematic(_) => body.velocity + body.angular_velocity.cross(&arms[side]),
            Motion::Machine(_) => {
                let place = self.parts.machines.place(self.parts.scene, body);
                place.map_or(Vec3::zeros(), |(operators, slot)| operators.point_offset(slot, &info.position))
            }
        }
    }
}

/// The impulses of a solution, to be kept for the next step: (home, key, points), in the order of the manifolds, and then of the
/// contacts of hubs.
pub fn impulses_of<'a>(
    candidates: &'a [Candidate],
    assembled: &'a Assembled,
    solved: &'a [[f64; 3]],
    hub: &'a [[f64; 3]],
) -> impl Iterator<Item = (BodyId, ManifoldKey, StoredPoints)> + 'a {
    let problem = &assembled.problem;
    let bodies = |slots: [u32; 2]| slots.map(|slot| candidates[slot as usize].body);
    let stored = |frame: &[Vec3; 3], info: &PointInfo, impulse: &[f64; 3]| StoredImpulse {
        feature: info.feature,
        impulse: (0..3).map(|axis| frame[axis] * impulse[axis]).sum(),
    };
    let grains = problem.manifolds.iter().enumerate().map(move |(index, manifold)| {
        let places = problem.points_of(index);
        let points =
            places.map(|place| stored(&manifold.frame, &assembled.points[place], &solved[place])).collect();
        (home(bodies(manifold.slots)), manifold.key, points)
    });
    let mut next = hub.iter();
    let hubs = assembled.hub.iter().map(move |contact| {
        let points = contact.infos.iter().zip(next.by_ref());
        let points = points.map(|(info, impulse)| stored(&contact.frame, info, impulse)).collect();
        (home(bodies(contact.slots)), contact.key, points)
    });
    grains.chain(hubs)
}
