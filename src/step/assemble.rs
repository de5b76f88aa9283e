//! From contacts to the contact problem: frames, arms, bias, starting impulses (31)–(32).

use super::correct::impact::{Flight, Impact};
use super::integrate::Approach;
use super::machines::Machines;
use super::view::View;
use crate::contact::detect::{Candidate, Contact, ContactPoint, Contacts};
use crate::exchange::colours::is_of;
use crate::exchange::parcel::{Grain, Parcel, ParcelPoint};
use crate::geometry::{Aabb, Vec3, place_on_curve};
use crate::law::coulomb::project_on_cone;
use crate::scene::{
    Activation, Body, BodyId, ContactLaw, Impulses, Motion, Scene, Spring, SpringAt, StoredImpulse,
};
use crate::solve::colour::Link;
use crate::solve::problem::{IDLE, contact_frame};
use crate::solve::{End, Inertia, MachineSlot, Manifold, Point, Problem, Stretch};
use rayon::prelude::*;
use smallvec::SmallVec;

/// What the contact problem leaves out of a point and later steps ask for again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointInfo {
    pub feature: u32,
    pub gap: f64,
    /// World, in the middle between the two surfaces.
    pub position: Vec3,
    /// Of its spring, N/m; zero for rigid.
    pub stiffness: f64,
    /// How long before `q_m` the impulse acted, by [`Impact`], s; zero where overlap is not limited.
    pub since_impact: f64,
}

impl PointInfo {
    /// The gap that corrections of overlap see: what springs give way by is left alone.
    pub fn rigid_gap(&self) -> f64 {
        if self.stiffness > 0.0 { self.gap.max(0.0) } else { self.gap }
    }

    /// What its spring stores, J.
    pub fn elastic_energy(&self) -> f64 {
        0.5 * self.stiffness * self.gap.min(0.0).powi(2)
    }
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
    /// Places in the list of candidates.
    pub slots: [u32; 2],
    pub parcel: Parcel,
    /// One for each point.
    pub infos: Vec<PointInfo>,
}

/// What contacts are assembled from.
pub struct Parts<'a> {
    pub view: &'a View<'a>,
    pub scene: &'a Scene,
    pub machines: &'a Machines,
    /// Where the impulses of the last step are looked for.
    pub stored: [&'a Impulses; 2],
    pub warm_start: bool,
    pub approach: Approach,
    pub takes_part: TakesPart,
    /// Whether a law of the scene gives way in the tangent plane.
    pub stretched: bool,
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

/// Whether a pair with this law looks for contacts ahead of closed gaps.
pub fn is_ahead(law: &ContactLaw, takes_part: TakesPart) -> bool {
    law.activation == Activation::Predictive || takes_part != TakesPart::Closed
}

/// The contacts that take part, those of machines left out, ascending by key.
pub fn links(contacts: &[Contacts], parts: &Parts) -> Vec<Link> {
    let movable = parts.view.ids.len();
    let slot = |slot: u32| ((slot as usize) < movable).then_some(slot);
    // Where every law acts ahead and no machine is there, all that was found takes part.
    let is_certain = parts.scene.state.machine_bodies.is_empty()
        && parts
            .scene
            .model
            .laws
            .iter()
            .all(|law| law.activation == Activation::Predictive || parts.takes_part == TakesPart::All);
    let link = |contact: Contact| {
        let takes_part = is_certain || takes_part(contact, parts)?;
        takes_part.then(|| Link { key: contact.key, slots: contact.slots.map(slot) })
    };
    let some = |contacts: &[Contacts]| -> Vec<Link> {
        let mut links = Vec::with_capacity(contacts.iter().map(Contacts::len).sum());
        links.extend(contacts.iter().flat_map(Contacts::iter).filter_map(link));
        links
    };
    // On one thread there is nothing to put together afterwards.
    if rayon::current_num_threads() == 1 {
        return some(contacts);
    }
    contacts.par_chunks(CHUNK).flat_map_iter(some).collect()
}

/// Whether a contact of no machine has a point in the contact problem; none for materials that never meet.
/// Frames are made only where they are asked for.
fn takes_part(contact: Contact, parts: &Parts) -> Option<bool> {
    let bodies = contact.slots.map(|slot| parts.view.candidates[slot as usize].body);
    let law = parts.scene.model.laws.between(bodies[0].material, bodies[1].material)?;
    if bodies.iter().any(|body| matches!(body.motion, Motion::Machine(_))) {
        return Some(false);
    }
    Some(match (law.activation, parts.takes_part) {
        (Activation::Predictive, _) | (_, TakesPart::All) => true,
        (_, TakesPart::Closed) => contact.points.iter().any(|point| point.gap <= 0.0),
        (_, TakesPart::Closing) => Assembler::new(contact, &[], parts)?.active_points().next().is_some(),
    })
}

/// The contact problem without its bodies; contacts of machines and of `hubs` stand beside it.
pub fn assemble(contacts: &[Contacts], hubs: &[BodyId], parts: &Parts) -> Assembled {
    let chunk = if rayon::current_num_threads() == 1 { contacts.len().max(1) } else { CHUNK };
    let mut pieces: Vec<Assembled> =
        contacts.par_chunks(chunk).map(|contacts| piece(contacts, hubs, parts)).collect();
    let mut assembled = if pieces.len() == 1 { pieces.remove(0) } else { Assembled::default() };
    assembled.problem.places = places(&parts.view.candidates);
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
fn piece(contacts: &[Contacts], hubs: &[BodyId], parts: &Parts) -> Assembled {
    let mut assembled = Assembled::default();
    let points = contacts.iter().map(Contacts::points).sum();
    assembled.problem.manifolds.reserve(contacts.iter().map(Contacts::len).sum());
    assembled.problem.points.reserve(points);
    assembled.points.reserve(points);
    let mut next = [0; 2];
    for contact in contacts.iter().flat_map(Contacts::iter) {
        let home = home(contact.slots.map(|slot| parts.view.candidates[slot as usize].body));
        let mut stored = |of: usize| parts.stored[of].find_next(home, &contact.key, &mut next[of]);
        // With its home, which is an own body or a ghost and so in one of the two lists.
        let own = stored(0);
        let old = if own.is_empty() { stored(1) } else { own };
        let Some(assembler) = Assembler::new(contact, old, parts) else { continue };
        if assembler.is_on_machine() || (!hubs.is_empty() && is_of(&contact.key, hubs)) {
            assembled.hub.extend(assembler.hub_contact());
        } else {
            assembler.add_manifold(&mut assembled);
        }
    }
    assembled
}

impl Assembled {
    /// Of all points, those of hubs last.
    pub fn infos(&self) -> impl Iterator<Item = &PointInfo> + Clone {
        self.points.iter().chain(self.hub.iter().flat_map(|contact| &contact.infos))
    }

    /// The largest of some number of the points, and zero.
    pub fn largest(&self, value: impl Fn(&PointInfo) -> f64) -> f64 {
        self.infos().map(value).fold(0.0, f64::max)
    }

    fn append(&mut self, mut other: Assembled) {
        let first = self.problem.points.len() as u32;
        other.problem.manifolds.iter_mut().for_each(|manifold| manifold.first_point += first);
        self.problem.manifolds.append(&mut other.problem.manifolds);
        self.problem.points.append(&mut other.problem.points);
        self.problem.stretches.append(&mut other.problem.stretches);
        self.points.append(&mut other.points);
        self.hub.append(&mut other.hub);
    }

    /// Bodies without contacts here, and not `shared` with ranks that may have some, are idle.
    pub fn set_idle(&mut self, inertia: &[Inertia], shared: impl Fn(u32) -> bool) {
        let Problem { manifolds, places, .. } = &mut self.problem;
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
}

/// The points of a contact that take part, with their arms.
type Points = SmallVec<[(PointInfo, [Vec3; 2]); 8]>;

/// One contact in the making.
struct Assembler<'a> {
    contact: Contact<'a>,
    bodies: [&'a Body; 2],
    law: &'a ContactLaw,
    /// None for rigid.
    spring: Option<Spring>,
    frame: [Vec3; 3],
    /// What the last step stored for this contact.
    old: &'a [StoredImpulse],
    parts: &'a Parts<'a>,
}

impl<'a> Assembler<'a> {
    /// None for materials that never meet.
    #[inline]
    fn new(contact: Contact<'a>, old: &'a [StoredImpulse], parts: &'a Parts<'a>) -> Option<Self> {
        let bodies = contact.slots.map(|slot| parts.view.candidates[slot as usize].body);
        let law = parts.scene.model.laws.between(bodies[0].material, bodies[1].material)?;
        let spring = law.stiffness.and_then(|stiffness| stiffness.between(|side| bodies[side].size()));
        Some(Self { frame: contact_frame(contact.normal), contact, bodies, law, spring, old, parts })
    }

    fn is_on_machine(&self) -> bool {
        self.bodies.iter().any(|body| matches!(body.motion, Motion::Machine(_)))
    }

    fn add_manifold(&self, assembled: &mut Assembled) {
        let first_point = assembled.problem.points.len() as u32;
        let mut add = |info: PointInfo, arms: [Vec3; 2], impact: &Option<Impact>| {
            let impulse = self.carried(info.feature);
            let bias = self.bias(&info, &arms, impact);
            assembled.problem.points.push(Point { arms, bias, impulse });
            assembled.points.push(info);
            if self.parts.stretched {
                assembled.problem.stretches.push(self.stretch(info.feature));
            }
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
            assembled.problem.manifolds.push(Manifold {
                key,
                slots,
                frame: self.frame,
                kind: self.law.kind(self.spring.as_ref()),
                friction: self.law.friction,
                compliance: self.compliance(),
                first_point,
            });
        }
    }

    fn hub_contact(&self) -> Option<HubContact> {
        let (found, impact) = self.points();
        let point = |(info, arms): &(PointInfo, [Vec3; 2])| ParcelPoint {
            position: info.position,
            arms: *arms,
            given: [0, 1].map(|side| self.given(side, arms)),
            bias: self.bias(info, arms, &impact),
            stretch: self.stretch(info.feature),
            impulse: self.carried(info.feature),
            gap: info.rigid_gap(),
            since_impact: info.since_impact,
        };
        let points: Vec<ParcelPoint> = found.iter().map(point).collect();
        let infos = found.iter().map(|(info, _)| *info).collect();
        let Contact { key, slots, .. } = self.contact;
        let parcel = Parcel {
            key,
            ends: [self.end(0), self.end(1)],
            frame: self.frame,
            friction: self.law.friction,
            compliance: self.compliance(),
            points,
        };
        (!parcel.points.is_empty()).then_some(HubContact { slots, parcel, infos })
    }

    fn end(&self, side: usize) -> End<Grain> {
        let (slot, view) = (self.contact.slots[side] as usize, self.parts.view);
        let body = self.bodies[side];
        match body.motion {
            Motion::Free => End::Body(Grain {
                id: body.id,
                owner: view.owners[slot],
                inertia: view.inertia[slot],
                free: view.free_velocity[slot],
            }),
            Motion::Fixed | Motion::Kinematic(_) => End::Given,
            Motion::Machine(index) => {
                let part = self.parts.scene.model.machine_parts[index as usize];
                // Bodies that are only drawn are no candidates.
                End::Machine(MachineSlot { machine: part.machine, slot: part.slot.unwrap_or(0) })
            }
        }
    }

    /// The points that take part, with their arms.
    fn active_points(&self) -> impl Iterator<Item = (PointInfo, [Vec3; 2])> {
        let active =
            move |info: &PointInfo, arms: &[Vec3; 2]| match (self.law.activation, self.parts.takes_part) {
                (Activation::Predictive, _) | (_, TakesPart::All) => true,
                (_, TakesPart::Closed) => info.gap <= 0.0,
                (_, TakesPart::Closing) => info.gap <= 0.0 || self.flight(info, arms).closes(),
            };
        let stiffness = self.spring.map_or(0.0, |spring| spring.normal);
        let points = self.contact.points.iter().map(move |&ContactPoint { feature, gap, position }| {
            let arms = self.bodies.map(|body| position - body.pose.position);
            (PointInfo { feature, gap, position, stiffness, since_impact: 0.0 }, arms)
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
            durations: self.parts.approach.durations,
        }
    }

    /// The last step's impulse, turned into the new frame and back into the friction cone.
    fn carried(&self, feature: u32) -> [f64; 3] {
        let Some(local) = self.before(feature).filter(|_| self.parts.warm_start) else { return [0.0; 3] };
        project_on_cone(local, self.law.friction).into()
    }

    /// The last step's impulse at the same features, in the new frame; where features are new, an equal share
    /// of those that are gone.
    fn before(&self, feature: u32) -> Option<Vec3> {
        if self.old.is_empty() {
            return None;
        }
        let same = self.old.iter().find(|stored| stored.feature == feature);
        let impulse = same.map_or_else(|| self.share_of_gone(), |stored| stored.impulse);
        Some(Vec3::from_fn(|axis, _| self.frame[axis].dot(&impulse)))
    }

    fn share_of_gone(&self) -> Vec3 {
        let points = self.contact.points;
        let is_gone = |stored: &&StoredImpulse| !points.iter().any(|point| point.feature == stored.feature);
        let is_new = |point: &&ContactPoint| !self.old.iter().any(|stored| stored.feature == point.feature);
        let gone: Vec3 = self.old.iter().filter(is_gone).map(|stored| stored.impulse).sum();
        gone / points.iter().filter(is_new).count() as f64
    }

    /// C of all points.
    fn compliance(&self) -> f64 {
        self.spring.map_or(0.0, |spring| self.parts.approach.spring(&spring, 0.0, 0.0).1)
    }

    /// What is left of the last step's stretch; none of it where the contact is rigid in the tangent plane.
    fn stretch(&self, feature: u32) -> Stretch {
        let Some(spring) = self.spring.filter(|spring| spring.tangential > 0.0) else {
            return Stretch::default();
        };
        let compliance = self.parts.approach.tangential(&spring);
        let before = self.before(feature).unwrap_or_default();
        Stretch { bias: [-compliance * before[1], -compliance * before[2]], compliance }
    }

    /// V_n⁻: at the start of the step.
    fn normal_velocity_before(&self, info: &PointInfo, arms: &[Vec3; 2]) -> f64 {
        let before = [0, 1].map(|side| self.velocity_before(side, info, arms));
        self.frame[0].dot(&(before[1] - before[0]))
    }

    /// `e V_n⁻`, `g/h`, or that of a spring; where overlap is limited that of [`Impact`].
    #[inline]
    fn bias(&self, info: &PointInfo, arms: &[Vec3; 2], impact: &Option<Impact>) -> f64 {
        if let Some(spring) = &self.spring {
            return self.spring_bias(spring, info, arms);
        }
        if let Some(impact) = impact {
            return self.flight(info, arms).bias(impact, self.law.restitution);
        }
        match self.law.activation {
            Activation::Predictive => info.gap.max(0.0) / self.parts.approach.closing,
            Activation::GapActivated if self.law.restitution == 0.0 => 0.0,
            Activation::GapActivated => self.law.restitution * self.normal_velocity_before(info, arms),
        }
    }

    fn spring_bias(&self, spring: &Spring, info: &PointInfo, arms: &[Vec3; 2]) -> f64 {
        let before = match spring.spring_at {
            SpringAt::End => 0.0,
            SpringAt::Middle => self.normal_velocity_before(info, arms),
        };
        self.parts.approach.spring(spring, info.gap, before).0
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
                let twist = &self.parts.view.free_velocity[self.contact.slots[side] as usize];
                Vec3::from(twist.linear) + Vec3::from(twist.angular).cross(&arms[side])
            }
        }
    }

    /// The velocity of an end that moves whatever happens.
    fn given(&self, side: usize, arms: &[Vec3; 2]) -> Vec3 {
        let body = self.bodies[side];
        match body.motion {
            Motion::Free | Motion::Machine(_) => Vec3::zeros(),
            Motion::Fixed | Motion::Kinematic(_) => body.velocity + body.angular_velocity.cross(&arms[side]),
        }
    }
}
