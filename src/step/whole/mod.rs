//! A step's contact problem with everything on one rank, in an order that does not depend on how it was shared: for files that
//! describe it ([`Dump`]) and for solvers that want `W` assembled ([`answer`]).
//!
//! Unknowns are the velocities of the bodies that contacts can move, six each, ascending by id, then the independent velocities of the
//! machines; contacts ascend by key, their points as the contact has them:
//!
//! ```text
//! M v = H r + f,      u = Hᵀ v + w          M from masses and M_red,  f = M v_free,  w = velocities that are given, and the bias
//! ```
//!
//! A point that nothing can move (`W_nn` = 0 but for rounding) carries no impulse and is left out.
//! Messages: *parcels*, every rank → rank 0; and after a solve the whole *answer*, rank 0 → all. Made for problems that fit one rank.

mod answer;

pub(super) use answer::solve;

use super::assemble::Assembled;
use super::halo::deliver;
use super::machines::OWNER;
use crate::geometry::{Mat3, Vec3};
use crate::scene::{BodyId, ManifoldKey};
use crate::solve::assembled::{GlobalProblem, Sparse};
use crate::solve::hub::{End, HubPoint};
use crate::solve::{Hub, HubMachine, Inertia, Solution, Twist};
use decomposition::Comm;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Below this share of the trace, `W_nn` is rounding: as in [`crate::solve::hub`].
const RIGID: f64 = 1e-12;

/// A contact on its way to rank 0.
#[derive(Serialize, Deserialize)]
struct Parcel {
    key: ManifoldKey,
    ends: [ParcelEnd; 2],
    frame: [Vec3; 3],
    friction: f64,
    points: Vec<HubPoint>,
    /// What the step has found, if it has.
    solved: Vec<[f64; 3]>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
enum ParcelEnd {
    Given,
    Body(BodyId, Inertia, Twist),
    Machine(u32),
}

/// The problem on one rank.
pub struct Whole {
    /// Ascending by id.
    bodies: BTreeMap<BodyId, (Inertia, Twist)>,
    machines: Vec<HubMachine>,
    /// Ascending by key.
    parcels: Vec<Parcel>,
    /// (parcel, point) of each contact of the problem: those that can carry an impulse.
    contacts: Vec<(u32, u32)>,
}

/// A step's problem as files have it, with what the step started from and what it found.
#[derive(Clone, Debug, PartialEq)]
pub struct Dump {
    pub problem: GlobalProblem,
    pub start: Vec<f64>,
    pub impulses: Vec<f64>,
    /// v and u of these impulses.
    pub velocities: Vec<f64>,
    pub relative_velocities: Vec<f64>,
    pub bodies: usize,
    pub machines: usize,
    /// Points that nothing can move.
    pub left_out: usize,
}

/// What this rank has of the problem.
pub(super) struct Share<'a> {
    pub assembled: &'a Assembled,
    /// The first slots are those of the movable bodies: their ids.
    pub ids: &'a [BodyId],
    /// On the owner of the machines; elsewhere empty.
    pub hub: &'a Hub,
}

/// Collective: the whole problem, on rank 0.
pub(super) fn gather(share: &Share, solved: Option<&Solution>, comm: &dyn Comm) -> Option<Whole> {
    let mut parcels = share.parcels(solved);
    if comm.size() > 1 {
        let arrived = deliver(BTreeMap::from([(OWNER, parcels)]), comm);
        parcels = arrived.into_iter().flat_map(|(_, parcels)| parcels).collect();
    }
    if comm.rank() != OWNER {
        return None;
    }
    parcels.extend(share.hub_parcels(solved));
    parcels.sort_by_key(|parcel| parcel.key);
    Some(Whole::new(parcels, share.hub.machines.clone()))
}

impl Share<'_> {
    fn parcels(&self, solved: Option<&Solution>) -> Vec<Parcel> {
        let problem = &self.assembled.problem;
        let parcel = |(index, manifold): (usize, &crate::solve::Manifold)| {
            let slots = manifold.slots.map(|slot| slot as usize);
            let ends = slots.map(|slot| match self.ids.get(slot) {
                Some(&id) => ParcelEnd::Body(id, problem.inertia[slot], problem.free_velocity[slot]),
                None => ParcelEnd::Given,
            });
            let given = |arms: &[Vec3; 2]| {
                let mut sum = Vec3::zeros();
                for (side, sign) in [(0, -1.0), (1, 1.0)] {
                    if let ParcelEnd::Given = ends[side] {
                        sum += velocity_at(&problem.free_velocity[slots[side]], &arms[side]) * sign;
                    }
                }
                sum
            };
            let places = problem.points_of(index);
            let points = problem.points[places.clone()].iter().map(|point| HubPoint {
                arms: point.arms,
                jacobians: Default::default(),
                given: given(&point.arms),
                bias: point.bias,
                impulse: point.impulse,
            });
            Parcel {
                key: manifold.key,
                ends,
                frame: manifold.frame,
                friction: manifold.friction,
                points: points.collect(),
                solved: solved.map_or(Vec::new(), |solution| solution.impulses[places].to_vec()),
            }
        };
        problem.manifolds.iter().enumerate().map(parcel).collect()
    }

    fn hub_parcels(&self, solved: Option<&Solution>) -> Vec<Parcel> {
        let mut impulses = solved.map(|solution| solution.hub.impulses.iter().copied());
        let parcel = |manifold: &crate::solve::hub::HubManifold| {
            let end = |side: usize| match manifold.ends[side] {
                End::Given => ParcelEnd::Given,
                End::Body(place) => {
                    let (inertia, free) = self.hub.bodies[place as usize];
                    ParcelEnd::Body(manifold.key.bodies[side], inertia, free)
                }
                End::Machine(machine) => ParcelEnd::Machine(machine),
            };
            let count = manifold.points.len();
            Parcel {
                key: manifold.key,
                ends: [end(0), end(1)],
                frame: manifold.frame,
                friction: manifold.friction,
                points: manifold.points.clone(),
                solved: impulses.as_mut().map_or(Vec::new(), |rest| rest.by_ref().take(count).collect()),
            }
        };
        self.hub.manifolds.iter().map(parcel).collect()
    }
}

fn velocity_at(twist: &Twist, arm: &Vec3) -> Vec3 {
    Vec3::from(twist.linear) + Vec3::from(twist.angular).cross(arm)
}

impl Whole {
    fn new(parcels: Vec<Parcel>, machines: Vec<HubMachine>) -> Self {
        let mut whole = Self { bodies: BTreeMap::new(), machines, parcels, contacts: Vec::new() };
        for (index, parcel) in whole.parcels.iter().enumerate() {
            for end in &parcel.ends {
                if let ParcelEnd::Body(id, inertia, free) = end {
                    whole.bodies.insert(*id, (*inertia, *free));
                }
            }
            for place in 0..parcel.points.len() {
                let block = whole.delassus(parcel, &parcel.points[place]);
                if block[(0, 0)] > RIGID * block.trace() {
                    whole.contacts.push((index as u32, place as u32));
                }
            }
        }
        whole
    }

    /// `W_αα`, contact frame.
    fn delassus(&self, parcel: &Parcel, point: &HubPoint) -> Mat3 {
        let frame = Mat3::from_columns(&parcel.frame);
        let mut block = Mat3::zeros();
        for (side, _) in [(0, -1.0), (1, 1.0)] {
            if let ParcelEnd::Body(_, inertia, _) = &parcel.ends[side] {
                let cross = point.arms[side].cross_matrix();
                let world =
                    Mat3::identity() * inertia.inverse_mass - cross * inertia.inverse_tensor() * cross;
                block += frame.transpose() * world * frame;
            }
        }
        for (machine, jacobian) in machine_rows(parcel, point) {
            let mass = &self.machines[machine as usize].inverse_mass;
            let nu = jacobian[0].len();
            let response = |axis: usize, k: usize| -> f64 {
                (0..nu).map(|l| mass[k * nu + l] * jacobian[axis][l]).sum()
            };
            block += Mat3::from_fn(|i, j| (0..nu).map(|k| jacobian[i][k] * response(j, k)).sum());
        }
        block
    }

    /// Where the velocities of each body and machine begin; the last entries are the total.
    fn offsets(&self) -> (BTreeMap<BodyId, usize>, Vec<usize>) {
        let bodies: BTreeMap<_, _> =
            self.bodies.keys().enumerate().map(|(index, &id)| (id, 6 * index)).collect();
        let mut machines = vec![6 * bodies.len()];
        for machine in &self.machines {
            machines.push(machines[machines.len() - 1] + machine.free_velocity.len());
        }
        (bodies, machines)
    }

    /// M, H, f, w and μ.
    pub fn problem(&self) -> GlobalProblem {
        let (body_offset, machine_offset) = self.offsets();
        let size = machine_offset[self.machines.len()];
        let mut mass = Vec::new();
        for (id, (inertia, _)) in &self.bodies {
            let first = body_offset[id] as u32;
            // A movable body has a mass and a tensor that can be inverted.
            let tensor = inertia.inverse_tensor().try_inverse().unwrap_or_default();
            let tensor = (tensor + tensor.transpose()) * 0.5;
            for row in 0..3 {
                mass.push((first + row, first + row, 1.0 / inertia.inverse_mass));
                for column in 0..3 {
                    mass.push((first + 3 + row, first + 3 + column, tensor[(row as usize, column as usize)]));
                }
            }
        }
        for (machine, &first) in self.machines.iter().zip(&machine_offset) {
            let nu = machine.free_velocity.len();
            let inverse = nalgebra::DMatrix::from_row_slice(nu, nu, &machine.inverse_mass);
            let matrix = inverse.try_inverse().unwrap_or_else(|| nalgebra::DMatrix::zeros(nu, nu));
            for row in 0..nu {
                for column in 0..nu {
                    let value = 0.5 * (matrix[(row, column)] + matrix[(column, row)]);
                    mass.push(((first + row) as u32, (first + column) as u32, value));
                }
            }
        }
        let m = Sparse::from_triplets(size, size, &mass);
        let mut f = vec![0.0; size];
        m.multiply_add(&self.free_velocities(), &mut f);
        let mut h = Vec::new();
        let (mut w, mut mu) = (Vec::new(), Vec::new());
        for (contact, (parcel, point)) in self.points().enumerate() {
            for axis in 0..3 {
                let column = (3 * contact + axis) as u32;
                self.each_coefficient(parcel, point, axis, &body_offset, &machine_offset, |row, value| {
                    h.push((row as u32, column, value));
                });
                w.push(parcel.frame[axis].dot(&point.given) + if axis == 0 { point.bias } else { 0.0 });
            }
            mu.push(parcel.friction);
        }
        let h = Sparse::from_triplets(size, w.len(), &h);
        GlobalProblem { dimension: 3, m, h, f, w, mu, bilateral: None }
    }

    /// The entries of one column of H.
    fn each_coefficient(
        &self,
        parcel: &Parcel,
        point: &HubPoint,
        axis: usize,
        body_offset: &BTreeMap<BodyId, usize>,
        machine_offset: &[usize],
        mut push: impl FnMut(usize, f64),
    ) {
        for (side, sign) in [(0, -1.0), (1, 1.0)] {
            if let ParcelEnd::Body(id, ..) = &parcel.ends[side] {
                let first = body_offset[id];
                let moment = point.arms[side].cross(&parcel.frame[axis]);
                for k in 0..3 {
                    push(first + k, sign * parcel.frame[axis][k]);
                    push(first + 3 + k, sign * moment[k]);
                }
            }
        }
        for (machine, jacobian) in machine_rows(parcel, point) {
            let first = machine_offset[machine as usize];
            for (k, &value) in jacobian[axis].iter().enumerate() {
                push(first + k, value);
            }
        }
    }

    fn points(&self) -> impl Iterator<Item = (&Parcel, &HubPoint)> {
        self.contacts.iter().map(|&(parcel, place)| {
            let parcel = &self.parcels[parcel as usize];
            (parcel, &parcel.points[place as usize])
        })
    }

    fn free_velocities(&self) -> Vec<f64> {
        let twists = self.bodies.values().map(|(_, free)| free);
        let bodies = twists.flat_map(|twist| twist.linear.into_iter().chain(twist.angular));
        bodies.chain(self.machines.iter().flat_map(|machine| machine.free_velocity.iter().copied())).collect()
    }

    /// `v_free + M⁻¹ H r`, contact by contact.
    fn velocities(&self, impulses: &[[f64; 3]]) -> (BTreeMap<BodyId, Twist>, Vec<Vec<f64>>) {
        let mut bodies: BTreeMap<BodyId, Twist> =
            self.bodies.iter().map(|(&id, &(_, free))| (id, free)).collect();
        let mut machines: Vec<Vec<f64>> =
            self.machines.iter().map(|machine| machine.free_velocity.clone()).collect();
        for ((parcel, point), impulse) in self.points().zip(impulses) {
            let world: Vec3 = (0..3).map(|axis| parcel.frame[axis] * impulse[axis]).sum();
            for (side, sign) in [(0, -1.0), (1, 1.0)] {
                if let ParcelEnd::Body(id, inertia, _) = &parcel.ends[side]
                    && let Some(twist) = bodies.get_mut(id)
                {
                    let push = world * sign;
                    let spin = inertia.inverse_tensor() * point.arms[side].cross(&push);
                    for axis in 0..3 {
                        twist.linear[axis] += push[axis] * inertia.inverse_mass;
                        twist.angular[axis] += spin[axis];
                    }
                }
            }
            for (machine, jacobian) in machine_rows(parcel, point) {
                let mass = &self.machines[machine as usize].inverse_mass;
                let velocity = &mut machines[machine as usize];
                let nu = velocity.len();
                let push: Vec<f64> =
                    (0..nu).map(|k| (0..3).map(|axis| jacobian[axis][k] * impulse[axis]).sum()).collect();
                for (k, velocity) in velocity.iter_mut().enumerate() {
                    *velocity += (0..nu).map(|l| mass[k * nu + l] * push[l]).sum::<f64>();
                }
            }
        }
        (bodies, machines)
    }

    /// The step's problem with what it found. Collective before this: [`gather`] with a solution.
    pub fn dump(&self) -> Dump {
        let problem = self.problem();
        let solved: Vec<[f64; 3]> = self
            .contacts
            .iter()
            .map(|&(parcel, place)| self.parcels[parcel as usize].solved[place as usize])
            .collect();
        let (bodies, machines) = self.velocities(&solved);
        let mut velocities: Vec<f64> =
            bodies.values().flat_map(|twist| twist.linear.into_iter().chain(twist.angular)).collect();
        velocities.extend(machines.into_iter().flatten());
        let mut relative_velocities = problem.w.clone();
        problem.h.transposed().multiply_add(&velocities, &mut relative_velocities);
        let all: usize = self.parcels.iter().map(|parcel| parcel.points.len()).sum();
        Dump {
            start: self.points().flat_map(|(_, point)| point.impulse).collect(),
            impulses: solved.into_iter().flatten().collect(),
            velocities,
            relative_velocities,
            bodies: self.bodies.len(),
            machines: self.machines.len(),
            left_out: all - self.contacts.len(),
            problem,
        }
    }

    /// How well each relative velocity is known, m/s: as [`crate::solve::residual`] has it, at the free velocities.
    fn noise(&self) -> Vec<f64> {
        let size = |(parcel, point): (&Parcel, &HubPoint)| {
            let mut size = point.given.norm() + point.bias.abs();
            for (end, arm) in parcel.ends.iter().zip(&point.arms) {
                if let ParcelEnd::Body(_, _, free) = end {
                    size += Vec3::from(free.linear).norm() + Vec3::from(free.angular).norm() * arm.norm();
                }
            }
            for (machine, jacobian) in machine_rows(parcel, point) {
                let free = &self.machines[machine as usize].free_velocity;
                let products = jacobian.iter().flat_map(|row| row.iter().zip(free));
                size += products.map(|(j, v)| (j * v).abs()).sum::<f64>();
            }
            16.0 * f64::EPSILON * size
        };
        self.points().map(size).collect()
    }
}

/// The Jacobians of the machines at a point, contact frame, signs included, the two ends on one machine added up.
fn machine_rows(parcel: &Parcel, point: &HubPoint) -> Vec<(u32, [Vec<f64>; 3])> {
    let mut rows: Vec<(u32, [Vec<f64>; 3])> = Vec::new();
    for (side, sign) in [(0, -1.0), (1, 1.0)] {
        let ParcelEnd::Machine(machine) = parcel.ends[side] else { continue };
        let world = &point.jacobians[side];
        let nu = world.len() / 3;
        let own = |axis: usize, k: usize| -> f64 {
            sign * (0..3).map(|along| parcel.frame[axis][along] * world[along * nu + k]).sum::<f64>()
        };
        match rows.iter_mut().find(|(known, _)| *known == machine) {
            Some((_, rows)) => {
                for (axis, row) in rows.iter_mut().enumerate() {
                    row.iter_mut().enumerate().for_each(|(k, sum)| *sum += own(axis, k));
                }
            }
            None => rows.push((machine, std::array::from_fn(|axis| (0..nu).map(|k| own(axis, k)).collect()))),
        }
    }
    rows
}
