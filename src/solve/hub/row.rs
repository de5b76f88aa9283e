//! One contact point of a hub: its Jacobians in the contact frame, its block `W_αα`, and how an impulse acts.

use super::{Hub, HubManifold, HubPoint};
use crate::geometry::{Mat3, Vec3};
use crate::solve::end::{End, delassus_of_body, jacobian_in_frame};
use crate::solve::{Inertia, Twist};
use smallvec::SmallVec;

/// Below this share of the trace, `W_nn` is rounding.
const RIGID: f64 = 1e-12;

/// A contact point, ready to be visited.
pub struct HubRow {
    pub frame: [Vec3; 3],
    pub friction: f64,
    pub compliance: f64,
    /// C_t.
    pub tangential_compliance: f64,
    pub bodies: SmallVec<[BodyEnd; 2]>,
    pub machines: SmallVec<[MachineEnd; 2]>,
    /// Contact frame, bias included.
    pub given: Vec3,
    /// Free relative velocity, bias included.
    pub free: Vec3,
    /// Compliance included.
    pub delassus: Mat3,
    /// False where no impulse can do anything.
    pub acts: bool,
    pub impulse: Vec3,
}

pub struct BodyEnd {
    /// In [`Hub::bodies`].
    pub place: u32,
    /// −1 for the first end, 1 for the second.
    pub sign: f64,
    pub arm: Vec3,
}

pub struct MachineEnd {
    pub machine: u32,
    /// Contact frame, sign included, 3 × nu.
    pub jacobian: Vec<f64>,
    /// `M_red⁻¹ Jᵀ`, nu × 3: column after column of the contact frame.
    pub response: Vec<f64>,
}

impl HubRow {
    /// `bodies` and `machines` are the free velocities of the hub.
    pub fn new(
        hub: &Hub,
        manifold: &HubManifold,
        point: &HubPoint,
        bodies: &[Twist],
        machines: &[Vec<f64>],
    ) -> Self {
        let frame = Mat3::from_columns(&manifold.frame);
        let [along_t, along_s] = point.stretch.bias;
        let mut row = Self {
            frame: manifold.frame,
            friction: manifold.friction,
            compliance: manifold.compliance,
            tangential_compliance: point.stretch.compliance,
            bodies: SmallVec::new(),
            machines: SmallVec::new(),
            given: frame.transpose() * point.given + Vec3::new(point.bias, along_t, along_s),
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
                    world += delassus_of_body(&hub.bodies[place as usize].0, &point.arms[side]);
                    row.bodies.push(BodyEnd { place, sign, arm: point.arms[side] });
                }
                End::Machine(place) => row.add_machine(place.machine, sign, &point.jacobians[side]),
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
        row.delassus[(0, 0)] += row.compliance;
        (1..3).for_each(|axis| row.delassus[(axis, axis)] += row.tangential_compliance);
        if !row.acts {
            row.impulse = Vec3::zeros();
        }
        row.free = row.relative_velocity(bodies, machines);
        row
    }

    /// Turns a Jacobian into the contact frame. The second end on the same machine adds to the first.
    fn add_machine(&mut self, machine: u32, sign: f64, world: &[f64]) {
        let own = jacobian_in_frame(&self.frame, world, sign);
        match self.machines.iter_mut().find(|end| end.machine == machine) {
            Some(end) => end.jacobian.iter_mut().zip(own).for_each(|(sum, value)| *sum += value),
            None => {
                let jacobian = own.collect();
                self.machines.push(MachineEnd { machine, jacobian, response: Vec::new() });
            }
        }
    }

    /// The relative velocity with what the impulse squeezes and stretches, contact frame.
    pub fn velocity_in_law(&self, bodies: &[Twist], machines: &[Vec<f64>]) -> Vec3 {
        let mut velocity = self.relative_velocity(bodies, machines);
        velocity.x += self.compliance * self.impulse.x;
        if self.tangential_compliance > 0.0 {
            (1..3).for_each(|axis| velocity[axis] += self.tangential_compliance * self.impulse[axis]);
        }
        velocity
    }

    /// Contact frame, with what is given and the bias.
    pub fn relative_velocity(&self, bodies: &[Twist], machines: &[Vec<f64>]) -> Vec3 {
        let mut velocity = self.given;
        for end in &self.bodies {
            let twist = &bodies[end.place as usize];
            let world = Vec3::from(twist.linear) + Vec3::from(twist.angular).cross(&end.arm);
            for axis in 0..3 {
                velocity[axis] += end.sign * self.frame[axis].dot(&world);
            }
        }
        for end in &self.machines {
            let v_u = &machines[end.machine as usize];
            for axis in 0..3 {
                let own = &end.jacobian[axis * v_u.len()..(axis + 1) * v_u.len()];
                velocity[axis] += own.iter().zip(v_u).map(|(j, v)| j * v).sum::<f64>();
            }
        }
        velocity
    }

    /// Adds `M⁻¹ H r` of an impulse, contact frame, to the velocities.
    pub fn apply(
        &self,
        impulse: &Vec3,
        inertia: &[Inertia],
        bodies: &mut [Twist],
        machines: &mut [Vec<f64>],
    ) {
        let world: Vec3 = (0..3).map(|axis| self.frame[axis] * impulse[axis]).sum();
        for end in &self.bodies {
            let (inertia, twist) = (&inertia[end.place as usize], &mut bodies[end.place as usize]);
            let push = world * end.sign;
            let spin = inertia.inverse_tensor() * end.arm.cross(&push);
            for axis in 0..3 {
                twist.linear[axis] += push[axis] * inertia.inverse_mass;
                twist.angular[axis] += spin[axis];
            }
        }
        for end in &self.machines {
            let v_u = &mut machines[end.machine as usize];
            let nu = v_u.len();
            for (k, velocity) in v_u.iter_mut().enumerate() {
                *velocity += (0..3).map(|axis| end.response[axis * nu + k] * impulse[axis]).sum::<f64>();
            }
        }
    }

    /// How well the relative velocity is known, m/s.
    pub fn rounding(&self, bodies: &[Twist], machines: &[Vec<f64>]) -> f64 {
        let mut size = self.given.norm() + self.compliance * self.impulse.x;
        for end in &self.bodies {
            let twist = &bodies[end.place as usize];
            size += Vec3::from(twist.linear).norm() + Vec3::from(twist.angular).norm() * end.arm.norm();
        }
        for end in &self.machines {
            let velocity = &machines[end.machine as usize];
            let products = end.jacobian.iter().zip(velocity.iter().cycle());
            size += products.map(|(j, v)| (j * v).abs()).sum::<f64>();
        }
        16.0 * f64::EPSILON * size
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
