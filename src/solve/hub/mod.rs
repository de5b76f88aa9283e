//! Contacts of machines: one phase at the end of each sweep, in the order of their keys, on one rank.
//!
//! All bodies of a machine share its independent velocities `v_u`. With `J` the velocity of a contact point by `v_u` (27),
//!
//! ```text
//! V   = J₂ v_u₂ − J₁ v_u₁ + (bodies as elsewhere) + given          each end a machine, a body, or something that moves as it likes
//! W   = Σ J M_red⁻¹ Jᵀ                                              where both ends are on one machine: J = J₂ − J₁, cross terms and all
//! v_u += M_red⁻¹ Jᵀ Δr
//! ```
//!
//! Each impulse is felt at every other contact of the machine, so colours are of no use here. The local law is always solved
//! exactly: a handful of contacts, strongly coupled.
//!
//! A direction in which neither end can give way has `W_nn = 0`; such a point cannot carry an impulse and is left out.

use super::problem::{Inertia, Twist};
use super::residual::{Measure, Partial, Seen};
use super::sweep::Plan;
use crate::geometry::{Mat3, Vec3};
use crate::law::coulomb;
use crate::scene::ManifoldKey;
use decomposition::ExactSum;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Below this share of the trace, `W_nn` is rounding.
const RIGID: f64 = 1e-12;

/// What a machine brings into the contact problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HubMachine {
    /// `M_red⁻¹`, nu × nu, symmetric.
    pub inverse_mass: Vec<f64>,
    /// `v_u` of (28) without contacts.
    pub free_velocity: Vec<f64>,
}

/// One of the two sides of a contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Moves whatever happens; its velocity is part of [`HubPoint::given`].
    Given,
    /// Place in [`Hub::bodies`].
    Body(u32),
    /// Place in [`Hub::machines`].
    Machine(u32),
}

#[derive(Clone, Debug, PartialEq)]
pub struct HubManifold {
    pub key: ManifoldKey,
    pub ends: [End; 2],
    /// (n, t, s), world; impulses push the second end along `+n`.
    pub frame: [Vec3; 3],
    pub friction: f64,
    pub points: Vec<HubPoint>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HubPoint {
    /// From the centre of mass to the point, world; for an end that is a body.
    pub arms: [Vec3; 2],
    /// 3 × nu, row by row, world; for an end that is a machine.
    pub jacobians: [Vec<f64>; 2],
    /// Relative velocity that no impulse changes, world.
    pub given: Vec3,
    /// Added to the normal velocity in the contact law, m/s.
    pub bias: f64,
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

/// One contact point, ready to be visited.
struct Row {
    frame: [Vec3; 3],
    friction: f64,
    bodies: SmallVec<[BodyEnd; 2]>,
    machines: SmallVec<[MachineEnd; 2]>,
    /// Contact frame, bias included.
    given: Vec3,
    /// Free relative velocity, bias included.
    free: Vec3,
    delassus: Mat3,
    /// False where no impulse can do anything.
    acts: bool,
    impulse: Vec3,
}

struct BodyEnd {
    place: u32,
    sign: f64,
    arm: Vec3,
}

struct MachineEnd {
    machine: u32,
    /// Contact frame, sign included, 3 × nu.
    jacobian: Vec<f64>,
    /// `M_red⁻¹ Jᵀ`, nu × 3: column after column of the contact frame.
    response: Vec<f64>,
}

/// The iteration's state.
#[derive(Default)]
pub struct HubSweep {
    rows: Vec<Row>,
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
        for manifold in &hub.manifolds {
            for point in &manifold.points {
                let row = row(hub, manifold, point, &sweep);
                sweep.rows.push(row);
            }
        }
        sweep
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Lets the starting impulses act.
    pub fn start(&mut self) {
        for row in &mut self.rows {
            let impulse = row.impulse;
            apply(row, &impulse, &self.inertia, &mut self.velocities, &mut self.machine_velocities);
        }
    }

    /// One visit to every contact point.
    pub fn run(&mut self) {
        for row in self.rows.iter_mut().filter(|row| row.acts) {
            let velocity = relative_velocity(row, &self.velocities, &self.machine_velocities);
            let new = coulomb::solve(&row.delassus, &(velocity - row.delassus * row.impulse), row.friction);
            let change = new - row.impulse;
            row.impulse = new;
            if change != Vec3::zeros() {
                apply(row, &change, &self.inertia, &mut self.velocities, &mut self.machine_velocities);
            }
        }
    }

    /// Contact frame, in the order of manifolds and points.
    pub fn impulses(&self) -> Vec<[f64; 3]> {
        self.rows.iter().map(|row| row.impulse.into()).collect()
    }

    /// The terms of the residual, as [`super::residual::Meter`] has them.
    pub fn measure(&self, measure: Measure, partial: &mut Partial) {
        for row in self.rows.iter().filter(|row| row.acts) {
            let seen = Seen {
                impulse: row.impulse,
                velocity: relative_velocity(row, &self.velocities, &self.machine_velocities),
                free: row.free,
                friction: row.friction,
                delassus: row.delassus[(0, 0)],
                rounding: self.rounding(row),
            };
            let (terms, worst) = seen.terms(measure);
            partial.add(terms, worst);
        }
    }

    /// How well the relative velocity is known, m/s.
    fn rounding(&self, row: &Row) -> f64 {
        let mut size = row.given.norm();
        for end in &row.bodies {
            let twist = &self.velocities[end.place as usize];
            size += Vec3::from(twist.linear).norm() + Vec3::from(twist.angular).norm() * end.arm.norm();
        }
        for end in &row.machines {
            let velocity = &self.machine_velocities[end.machine as usize];
            let products = end.jacobian.iter().zip(velocity.iter().cycle());
            size += products.map(|(j, v)| (j * v).abs()).sum::<f64>();
        }
        16.0 * f64::EPSILON * size
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

fn row(hub: &Hub, manifold: &HubManifold, point: &HubPoint, sweep: &HubSweep) -> Row {
    let frame = Mat3::from_columns(&manifold.frame);
    let mut row = Row {
        frame: manifold.frame,
        friction: manifold.friction,
        bodies: SmallVec::new(),
        machines: SmallVec::new(),
        given: frame.transpose() * point.given + Vec3::new(point.bias, 0.0, 0.0),
        free: Vec3::zeros(),
        delassus: Mat3::zeros(),
        acts: false,
        impulse: point.impulse.into(),
    };
    let mut world = Mat3::zeros();
    for (side, sign) in [(0, -1.0), (1, 1.0)] {
        match manifold.ends[side] {
            End::Given => {}
            End::Body(place) => {
                let inertia = &hub.bodies[place as usize].0;
                let cross = point.arms[side].cross_matrix();
                world += Mat3::identity() * inertia.inverse_mass - cross * inertia.inverse_tensor() * cross;
                row.bodies.push(BodyEnd { place, sign, arm: point.arms[side] });
            }
            End::Machine(machine) => add_machine(&mut row, machine, sign, &point.jacobians[side]),
        }
    }
    row.delassus = frame.transpose() * world * frame;
    for end in &mut row.machines {
        let inverse_mass = &hub.machines[end.machine as usize].inverse_mass;
        end.response = response(&end.jacobian, inverse_mass);
        row.delassus += product(&end.jacobian, &end.response);
    }
    row.delassus = (row.delassus + row.delassus.transpose()) * 0.5;
    row.acts = row.delassus[(0, 0)] > RIGID * row.delassus.trace();
    if !row.acts {
        row.impulse = Vec3::zeros();
    }
    row.free = relative_velocity(&row, &sweep.velocities, &sweep.machine_velocities);
    row
}

/// Turns a Jacobian into the contact frame. The second end on the same machine adds to the first.
fn add_machine(row: &mut Row, machine: u32, sign: f64, world: &[f64]) {
    let nu = world.len() / 3;
    let frame = row.frame;
    let entry = |axis: usize, k: usize| {
        sign * (0..3).map(|world_axis| frame[axis][world_axis] * world[world_axis * nu + k]).sum::<f64>()
    };
    let own = (0..3).flat_map(|axis| (0..nu).map(move |k| (axis, k))).map(|(axis, k)| entry(axis, k));
    match row.machines.iter_mut().find(|end| end.machine == machine) {
        Some(end) => end.jacobian.iter_mut().zip(own).for_each(|(sum, value)| *sum += value),
        None => {
            let jacobian = own.collect();
            row.machines.push(MachineEnd { machine, jacobian, response: Vec::new() });
        }
    }
}

fn response(jacobian: &[f64], inverse_mass: &[f64]) -> Vec<f64> {
    let nu = jacobian.len() / 3;
    let column = |axis: usize| &jacobian[axis * nu..(axis + 1) * nu];
    (0..3 * nu)
        .map(|index| {
            let (axis, k) = (index / nu, index % nu);
            let mass_row = &inverse_mass[k * nu..(k + 1) * nu];
            mass_row.iter().zip(column(axis)).map(|(m, j)| m * j).sum()
        })
        .collect()
}

/// `J M_red⁻¹ Jᵀ`.
fn product(jacobian: &[f64], response: &[f64]) -> Mat3 {
    let nu = jacobian.len() / 3;
    Mat3::from_fn(|i, j| (0..nu).map(|k| jacobian[i * nu + k] * response[j * nu + k]).sum())
}

/// Contact frame, with what is given and the bias.
fn relative_velocity(row: &Row, bodies: &[Twist], machines: &[Vec<f64>]) -> Vec3 {
    let mut velocity = row.given;
    for end in &row.bodies {
        let twist = &bodies[end.place as usize];
        let world = Vec3::from(twist.linear) + Vec3::from(twist.angular).cross(&end.arm);
        for axis in 0..3 {
            velocity[axis] += end.sign * row.frame[axis].dot(&world);
        }
    }
    for end in &row.machines {
        let v_u = &machines[end.machine as usize];
        for axis in 0..3 {
            let own = &end.jacobian[axis * v_u.len()..(axis + 1) * v_u.len()];
            velocity[axis] += own.iter().zip(v_u).map(|(j, v)| j * v).sum::<f64>();
        }
    }
    velocity
}

fn apply(row: &Row, impulse: &Vec3, inertia: &[Inertia], bodies: &mut [Twist], machines: &mut [Vec<f64>]) {
    let world: Vec3 = (0..3).map(|axis| row.frame[axis] * impulse[axis]).sum();
    for end in &row.bodies {
        let (inertia, twist) = (&inertia[end.place as usize], &mut bodies[end.place as usize]);
        let push = world * end.sign;
        let spin = inertia.inverse_tensor() * end.arm.cross(&push);
        for axis in 0..3 {
            twist.linear[axis] += push[axis] * inertia.inverse_mass;
            twist.angular[axis] += spin[axis];
        }
    }
    for end in &row.machines {
        let v_u = &mut machines[end.machine as usize];
        let nu = v_u.len();
        for (k, velocity) in v_u.iter_mut().enumerate() {
            *velocity += (0..3).map(|axis| end.response[axis * nu + k] * impulse[axis]).sum::<f64>();
        }
    }
}

#[cfg(test)]
mod tests;
