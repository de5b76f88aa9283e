//! Contacts of machines: one phase at the end of each sweep, in the order of their keys, on one rank.
//!
//! All bodies of a machine share its independent velocities `v_u`. With `J` the velocity of a contact point
//! by `v_u` (27),
//!
//! ```text
//! V   = J₂ v_u₂ − J₁ v_u₁ + (bodies as elsewhere) + given       each end a machine, a body, or given
//! W   = Σ J M_red⁻¹ Jᵀ                 where both ends are on one machine: J = J₂ − J₁, cross terms and all
//! v_u += M_red⁻¹ Jᵀ Δr
//! ```
//!
//! Each impulse is felt at every other contact of the machine, so colours are of no use here. The local law
//! is always solved exactly: a handful of contacts, strongly coupled.
//!
//! A direction in which neither end can give way has `W_nn = 0`; such a point cannot carry an impulse and is
//! left out.

mod row;

pub use row::{BodyEnd, HubRow, MachineEnd};

use super::end::End;
use super::problem::{Inertia, Stretch, Twist};
use super::residual::{Measure, MeasuredPoint, Partial};
use super::sweep::Plan;
use crate::geometry::Vec3;
use crate::law::coulomb;
use crate::scene::ManifoldKey;
use decomposition::ExactSum;

/// What a machine brings into the contact problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HubMachine {
    /// `M_red⁻¹`, nu × nu, symmetric.
    pub inverse_mass: Vec<f64>,
    /// `v_u` of (28) without contacts.
    pub free_velocity: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct HubManifold {
    pub key: ManifoldKey,
    /// Bodies are places in [`Hub::bodies`].
    pub ends: [End<u32>; 2],
    /// (n, t, s), world; impulses push the second end along `+n`.
    pub frame: [Vec3; 3],
    pub friction: f64,
    /// C ≥ 0, kg⁻¹; zero for rigid.
    pub compliance: f64,
    pub points: Vec<HubPoint>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct HubPoint {
    /// From the centre of mass to the point, world; for an end that is a body.
    pub arms: [Vec3; 2],
    /// 3 × nu, row by row, world; for an end that is a machine.
    pub jacobians: [Vec<f64>; 2],
    /// Relative velocity that no impulse changes, world.
    pub given: Vec3,
    /// Added to the normal velocity in the contact law, m/s.
    pub bias: f64,
    pub stretch: Stretch,
    /// Where the iteration starts, contact frame, N s.
    pub impulse: [f64; 3],
}

/// The contacts of all machines. Empty but on the rank that owns them.
#[derive(Clone, Debug, Default)]
pub struct Hub {
    pub machines: Vec<HubMachine>,
    /// Bodies that touch a machine, with their free velocities.
    pub bodies: Vec<(Inertia, Twist)>,
    /// Ascending by key.
    pub manifolds: Vec<HubManifold>,
}

impl Hub {
    /// One for each point, in the order of manifolds; the velocities are the free ones.
    pub fn rows(&self, bodies: &[Twist], machines: &[Vec<f64>]) -> Vec<HubRow> {
        let points =
            self.manifolds.iter().flat_map(|manifold| manifold.points.iter().map(move |p| (manifold, p)));
        points.map(|(manifold, point)| HubRow::new(self, manifold, point, bodies, machines)).collect()
    }
}

/// The iteration's state.
#[derive(Default)]
pub struct HubSweep {
    rows: Vec<HubRow>,
    inertia: Vec<Inertia>,
    /// By [`Hub::bodies`].
    pub velocities: Vec<Twist>,
    /// By [`Hub::machines`].
    pub machine_velocities: Vec<Vec<f64>>,
    before: Memory,
    /// p of the conjugate gradient; with momentum, where the last sweep began.
    direction: Memory,
}

/// Impulses and machine velocities.
#[derive(Clone, Default)]
struct Memory {
    impulses: Vec<Vec3>,
    velocities: Vec<Vec<f64>>,
}

/// The unknowns, with the velocities of the bodies.
#[derive(Default)]
pub(super) struct HubState {
    own: Memory,
    velocities: Vec<Twist>,
}

impl HubSweep {
    pub fn new(hub: &Hub) -> Self {
        let mut sweep = Self {
            rows: Vec::new(),
            inertia: hub.bodies.iter().map(|(inertia, _)| *inertia).collect(),
            velocities: hub.bodies.iter().map(|(_, free)| *free).collect(),
            machine_velocities: hub.machines.iter().map(|machine| machine.free_velocity.clone()).collect(),
            before: Memory::default(),
            direction: Memory::default(),
        };
        let rows = hub.rows(&sweep.velocities, &sweep.machine_velocities);
        sweep.rows = rows;
        sweep
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Lets the starting impulses act.
    pub fn start(&mut self) {
        for row in &mut self.rows {
            let impulse = row.impulse;
            row.apply(&impulse, &self.inertia, &mut self.velocities, &mut self.machine_velocities);
        }
    }

    /// One visit to every contact point.
    pub fn run(&mut self) {
        for row in self.rows.iter_mut().filter(|row| row.acts) {
            let velocity = row.velocity_in_law(&self.velocities, &self.machine_velocities);
            let new = coulomb::solve(&row.delassus, &(velocity - row.delassus * row.impulse), row.friction);
            let change = new - row.impulse;
            row.impulse = new;
            if change != Vec3::zeros() {
                row.apply(&change, &self.inertia, &mut self.velocities, &mut self.machine_velocities);
            }
        }
    }

    /// Contact frame, in the order of manifolds and points.
    pub fn impulses(&self) -> Vec<[f64; 3]> {
        self.rows.iter().map(|row| row.impulse.into()).collect()
    }

    /// The terms of the residual, as [`Sweep::measure`](super::Sweep) has them for blocks.
    pub fn measure(&self, measure: Measure, partial: &mut Partial) {
        for row in self.rows.iter().filter(|row| row.acts) {
            let seen = MeasuredPoint {
                impulse: row.impulse,
                velocity: row.velocity_in_law(&self.velocities, &self.machine_velocities),
                free: row.free,
                friction: row.friction,
                delassus: row.delassus[(0, 0)],
                rounding: row.rounding(&self.velocities, &self.machine_velocities),
            };
            let (terms, worst) = seen.terms(measure);
            partial.add(terms, worst, -seen.velocity.x);
        }
    }

    /// `r · q̂` and `r · W r`: see [`scale`](super::scale).
    pub(super) fn add_scale_terms(&self, sums: &mut [ExactSum; 2]) {
        for row in self.rows.iter().filter(|row| row.acts) {
            let u = row.velocity_in_law(&self.velocities, &self.machine_velocities);
            let slip = Vec3::new(row.friction * u.yz().norm(), 0.0, 0.0);
            sums[0].add(row.impulse.dot(&(row.free + slip)));
            sums[1].add(row.impulse.dot(&(u - row.free)));
        }
    }

    /// All impulses by a factor; velocities follow.
    pub(super) fn take_by(&mut self, factor: f64, hub: &Hub) {
        self.rows.iter_mut().for_each(|row| row.impulse *= factor);
        for (twist, (_, free)) in self.velocities.iter_mut().zip(&hub.bodies) {
            twist.take_from(free, factor);
        }
        for (velocity, machine) in self.machine_velocities.iter_mut().zip(&hub.machines) {
            for (velocity, free) in velocity.iter_mut().zip(&machine.free_velocity) {
                *velocity = free + factor * (*velocity - free);
            }
        }
    }

    /// The unknowns.
    pub(super) fn state(&self) -> HubState {
        HubState { own: self.memory(), velocities: self.velocities.clone() }
    }

    pub(super) fn set_state(&mut self, state: &HubState) {
        for (row, impulse) in self.rows.iter_mut().zip(&state.own.impulses) {
            row.impulse = *impulse;
        }
        self.velocities.clone_from(&state.velocities);
        self.machine_velocities.clone_from(&state.own.velocities);
    }

    /// Keeps the state before a sweep, for the conjugate gradient.
    pub(super) fn remember(&mut self) {
        self.before = self.memory();
        if self.direction.impulses.len() != self.rows.len() {
            self.direction = Memory {
                impulses: vec![Vec3::zeros(); self.rows.len()],
                velocities: self.machine_velocities.iter().map(|v| vec![0.0; v.len()]).collect(),
            };
        }
    }

    fn memory(&self) -> Memory {
        Memory {
            impulses: self.rows.iter().map(|row| row.impulse).collect(),
            velocities: self.machine_velocities.clone(),
        }
    }

    /// Adds the squared change since [`Self::remember`], weighted with the diagonal of `W`.
    pub(super) fn add_squared_steps(&self, sum: &mut ExactSum) {
        for (row, before) in self.rows.iter().zip(&self.before.impulses) {
            let change = row.impulse - before;
            sum.add((0..3).map(|axis| change[axis] * change[axis] * row.delassus[(axis, axis)]).sum());
        }
    }

    /// Impulses and the machines' velocities go on by the plan.
    pub(super) fn add_momentum(&mut self, plan: &Plan) {
        let impulses = self.before.impulses.iter_mut().zip(&mut self.direction.impulses);
        for (row, (last, start)) in self.rows.iter_mut().zip(impulses) {
            (0..3).for_each(|axis| plan.go_on(&mut row.impulse[axis], &mut last[axis], &mut start[axis]));
        }
        let velocities = self.before.velocities.iter_mut().zip(&mut self.direction.velocities);
        for (velocity, (last, start)) in self.machine_velocities.iter_mut().zip(velocities) {
            for ((velocity, last), start) in velocity.iter_mut().zip(last).zip(start) {
                plan.go_on(velocity, last, start);
            }
        }
    }

    /// `r ← r + β p`, `p ← β p + (r − before)`, and the same for the machines' velocities.
    pub(super) fn extrapolate(&mut self, beta: f64) {
        let rows = self.rows.iter_mut().zip(&self.before.impulses).zip(&mut self.direction.impulses);
        for ((row, before), direction) in rows {
            let step = row.impulse - before;
            let carried = *direction * beta;
            row.impulse += carried;
            *direction = carried + step;
        }
        let machines = self.machine_velocities.iter_mut().zip(&self.before.velocities);
        for ((velocity, before), direction) in machines.zip(&mut self.direction.velocities) {
            for k in 0..velocity.len() {
                let step = velocity[k] - before[k];
                let carried = beta * direction[k];
                velocity[k] += carried;
                direction[k] = carried + step;
            }
        }
    }
}

#[cfg(test)]
mod tests;
