//! A step's contact problem with everything on one rank, in an order that does not depend on how it was
//! shared: for files that describe it ([`Dump`]) and for solvers that want `W` assembled ([`answer`]).
//!
//! Unknowns are the velocities of the bodies that contacts can move, six each, ascending by id, then the
//! independent velocities of the machines; contacts ascend by key, their points as the contact has them:
//!
//! ```text
//! M v = H r + f      M from masses and M_red,  f = M v_free
//! u = Hᵀ v + w + C r       w = velocities that are given, and the bias; C = the compliances, (C_n, C_t, C_t)
//! ```
//!
//! A point that nothing can move (`W_nn` = 0 but for rounding) carries no impulse and is left out. Messages:
//! *parcels*, every rank → rank 0; and after a solve the whole *answer*, rank 0 → all. Made for problems that
//! fit one rank.

mod answer;

pub use answer::solve;

use super::hub::{Gathered, OWNER};
use super::messages::deliver;
use super::parcel::{Grain, Parcel, ParcelPoint, collect};
use crate::geometry::Vec3;
use crate::multibody::ReducedOperators;
use crate::scene::BodyId;
use crate::solve::assembled::{GlobalProblem, Sparse};
use crate::solve::hub::HubRow;
use crate::solve::{End, Hub, Inertia, Manifold, Problem, Solution, Twist};
use decomposition::Comm;
use std::collections::BTreeMap;

/// The problem on one rank.
pub struct Whole {
    /// Bodies ascending by id, manifolds by key.
    hub: Hub,
    ids: Vec<BodyId>,
    /// Of all points, in the order of manifolds.
    rows: Vec<HubRow>,
    /// What the step has found at each point, if it has.
    solved: Vec<[f64; 3]>,
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
pub struct Share<'a> {
    pub problem: &'a Problem,
    /// The first slots are those of the movable bodies: their ids.
    pub ids: &'a [BodyId],
    pub operators: &'a [ReducedOperators],
    /// On the owner of the machines; elsewhere empty.
    pub hubs: &'a Gathered,
}

/// A contact with the impulses that a step has found.
type Solved = (Parcel, Vec<[f64; 3]>);

/// Collective: the whole problem, on rank 0.
pub fn gather(share: &Share, solution: Option<&Solution>, comm: &dyn Comm) -> Option<Whole> {
    let mut parcels = share.parcels(solution);
    if comm.size() > 1 {
        let arrived = deliver(BTreeMap::from([(OWNER, parcels)]), comm);
        parcels = arrived.into_iter().flat_map(|(_, parcels)| parcels).collect();
    }
    if comm.rank() != OWNER {
        return None;
    }
    parcels.extend(share.hub_parcels(solution));
    parcels.sort_by_key(|(parcel, _)| parcel.key);
    Some(Whole::new(parcels, share.operators))
}

impl Share<'_> {
    fn parcels(&self, solution: Option<&Solution>) -> Vec<Solved> {
        let manifolds = self.problem.manifolds.iter().enumerate();
        manifolds.map(|(index, manifold)| self.parcel(index, manifold, solution)).collect()
    }

    fn parcel(&self, index: usize, manifold: &Manifold, solution: Option<&Solution>) -> Solved {
        let Problem { inertia, free_velocity, points, .. } = self.problem;
        let slots = manifold.slots.map(|slot| slot as usize);
        let ends = slots.map(|slot| match self.ids.get(slot) {
            Some(&id) => End::Body(Grain { id, owner: 0, inertia: inertia[slot], free: free_velocity[slot] }),
            None => End::Given,
        });
        let given = |side: usize, arm: &Vec3| match ends[side] {
            End::Given => velocity_at(&free_velocity[slots[side]], arm),
            _ => Vec3::zeros(),
        };
        let places = self.problem.points_of(index);
        let point = |place: usize| ParcelPoint {
            position: Vec3::zeros(),
            arms: points[place].arms,
            given: [given(0, &points[place].arms[0]), given(1, &points[place].arms[1])],
            bias: points[place].bias,
            stretch: self.problem.stretches.get(place).copied().unwrap_or_default(),
            impulse: points[place].impulse,
            gap: 0.0,
            since_impact: 0.0,
        };
        let parcel = Parcel {
            key: manifold.key,
            ends,
            frame: manifold.frame,
            friction: manifold.friction,
            compliance: manifold.compliance,
            points: places.clone().map(point).collect(),
        };
        (parcel, solution.map_or(Vec::new(), |solution| solution.impulses[places].to_vec()))
    }

    fn hub_parcels(&self, solution: Option<&Solution>) -> Vec<Solved> {
        let mut impulses = solution.map(|solution| solution.hub.impulses.iter().copied());
        let solved = |parcel: &Parcel| {
            let count = parcel.points.len();
            let found = impulses.as_mut().map_or(Vec::new(), |rest| rest.by_ref().take(count).collect());
            (parcel.clone(), found)
        };
        self.hubs.parcels().map(solved).collect()
    }
}

fn velocity_at(twist: &Twist, arm: &Vec3) -> Vec3 {
    Vec3::from(twist.linear) + Vec3::from(twist.angular).cross(arm)
}

impl Whole {
    fn new(parcels: Vec<Solved>, operators: &[ReducedOperators]) -> Self {
        let (hub, ids) = collect(parcels.iter().map(|(parcel, _)| parcel), operators);
        let mut whole = Self { hub, ids, rows: Vec::new(), solved: Vec::new() };
        let (bodies, machines) = whole.free_velocities();
        whole.rows = whole.hub.rows(&bodies, &machines);
        whole.solved = parcels.into_iter().flat_map(|(_, solved)| solved).collect();
        whole
    }

    fn free_velocities(&self) -> (Vec<Twist>, Vec<Vec<f64>>) {
        let bodies = self.hub.bodies.iter().map(|(_, free)| *free).collect();
        (bodies, self.hub.machines.iter().map(|machine| machine.free_velocity.clone()).collect())
    }

    /// The points that can carry an impulse.
    fn contacts(&self) -> impl Iterator<Item = &HubRow> {
        self.rows.iter().filter(|row| row.acts)
    }

    /// Where the velocities of each machine begin, and the total.
    fn machine_offsets(&self) -> Vec<usize> {
        let mut offsets = vec![6 * self.hub.bodies.len()];
        for machine in &self.hub.machines {
            offsets.push(offsets[offsets.len() - 1] + machine.free_velocity.len());
        }
        offsets
    }

    /// M, H, f, w, μ and C.
    pub fn problem(&self) -> GlobalProblem {
        let offsets = self.machine_offsets();
        let size = offsets[self.hub.machines.len()];
        let m = Sparse::from_triplets(size, size, &self.mass_matrix(&offsets));
        let mut f = vec![0.0; size];
        m.multiply_add(&flat(&self.free_velocities()), &mut f);
        let mut h = Vec::new();
        let (mut w, mut mu) = (Vec::new(), Vec::new());
        let (mut compliance, mut tangential_compliance) = (Vec::new(), Vec::new());
        for (contact, row) in self.contacts().enumerate() {
            for axis in 0..3 {
                let column = (3 * contact + axis) as u32;
                each_coefficient(row, axis, &offsets, |place, value| h.push((place as u32, column, value)));
                w.push(row.given[axis]);
            }
            mu.push(row.friction);
            compliance.push(row.compliance);
            tangential_compliance.push(row.tangential_compliance);
        }
        let h = Sparse::from_triplets(size, w.len(), &h);
        for list in [&mut compliance, &mut tangential_compliance] {
            if list.iter().all(|&value| value == 0.0) {
                list.clear();
            }
        }
        GlobalProblem { dimension: 3, m, h, f, w, mu, compliance, tangential_compliance, bilateral: None }
    }

    fn mass_matrix(&self, offsets: &[usize]) -> Vec<(u32, u32, f64)> {
        let mut mass = Vec::new();
        for (index, (inertia, _)) in self.hub.bodies.iter().enumerate() {
            let first = 6 * index as u32;
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
        for (machine, &first) in self.hub.machines.iter().zip(offsets) {
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
        mass
    }

    /// `v_free + M⁻¹ H r`, contact by contact.
    fn velocities(&self, impulses: &[[f64; 3]]) -> (Vec<Twist>, Vec<Vec<f64>>) {
        let inertia: Vec<Inertia> = self.hub.bodies.iter().map(|(inertia, _)| *inertia).collect();
        let (mut bodies, mut machines) = self.free_velocities();
        for (row, impulse) in self.contacts().zip(impulses) {
            row.apply(&Vec3::from(*impulse), &inertia, &mut bodies, &mut machines);
        }
        (bodies, machines)
    }

    /// The step's problem with what it found: of a problem that was [gathered](gather) with a solution.
    pub fn dump(&self) -> Dump {
        let problem = self.problem();
        let acts = self.rows.iter().zip(&self.solved).filter(|(row, _)| row.acts);
        let solved: Vec<[f64; 3]> = acts.map(|(_, impulse)| *impulse).collect();
        let velocities = flat(&self.velocities(&solved));
        let mut relative_velocities = problem.w.clone();
        problem.h.transposed().multiply_add(&velocities, &mut relative_velocities);
        for (contact, (row, impulse)) in self.contacts().zip(&solved).enumerate() {
            let compliances = [row.compliance, row.tangential_compliance, row.tangential_compliance];
            for axis in 0..3 {
                relative_velocities[3 * contact + axis] += compliances[axis] * impulse[axis];
            }
        }
        Dump {
            start: self.contacts().flat_map(|row| <[f64; 3]>::from(row.impulse)).collect(),
            impulses: solved.into_iter().flatten().collect(),
            velocities,
            relative_velocities,
            bodies: self.hub.bodies.len(),
            machines: self.hub.machines.len(),
            left_out: self.rows.len() - self.contacts().count(),
            problem,
        }
    }

    /// How well each relative velocity is known, m/s: as [`crate::solve::residual`] has it, at the free
    /// velocities.
    fn noise(&self) -> Vec<f64> {
        let (bodies, machines) = self.free_velocities();
        self.contacts().map(|row| row.rounding(&bodies, &machines)).collect()
    }
}

/// The entries of one column of H.
fn each_coefficient(row: &HubRow, axis: usize, offsets: &[usize], mut push: impl FnMut(usize, f64)) {
    for end in &row.bodies {
        let first = 6 * end.place as usize;
        let moment = end.arm.cross(&row.frame[axis]);
        for k in 0..3 {
            push(first + k, end.sign * row.frame[axis][k]);
            push(first + 3 + k, end.sign * moment[k]);
        }
    }
    for end in &row.machines {
        let (first, nu) = (offsets[end.machine as usize], end.jacobian.len() / 3);
        for (k, &value) in end.jacobian[axis * nu..(axis + 1) * nu].iter().enumerate() {
            push(first + k, value);
        }
    }
}

fn flat((bodies, machines): &(Vec<Twist>, Vec<Vec<f64>>)) -> Vec<f64> {
    let bodies = bodies.iter().flat_map(|twist| twist.linear.into_iter().chain(twist.angular));
    bodies.chain(machines.iter().flatten().copied()).collect()
}
