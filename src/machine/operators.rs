//! What the contact solve needs of a machine in one step, as plain numbers: the owner broadcasts it, every rank uses it.

use crate::geometry::{Pose, Quat, Vec3};
use nalgebra::Quaternion;
use serde::{Deserialize, Serialize};

/// Reduced operators at `q_m`: `v_u⁺ = free_velocity + mass_inverse · Σ Jᵀ p` for impulses `p` on the bodies, and the
/// velocity of a body is `J v_u + drift`. Slots number the bodies that carry contact shapes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReducedOperators {
    /// Number of independent velocities.
    pub nu: usize,
    /// Body index in the machine, per slot.
    pub bodies: Vec<usize>,
    /// `M_red⁻¹`, nu × nu, symmetric.
    pub mass_inverse: Vec<f64>,
    /// `v_u` at the start of the step.
    pub velocity: Vec<f64>,
    /// `v_u + h M_red⁻¹ f_red`, (28) without contacts.
    pub free_velocity: Vec<f64>,
    /// Body frame per slot: position (3), quaternion w, x, y, z.
    pub poses: Vec<f64>,
    /// Per slot 6 × nu, row by row: velocity of the body frame's origin, then angular velocity.
    pub jacobians: Vec<f64>,
    /// Per slot 6: what prescribed joints add to the body's velocity at the start of the step.
    pub drift_before: Vec<f64>,
    /// The same at the end of the step.
    pub drift: Vec<f64>,
}

impl ReducedOperators {
    /// Slot of a machine body; none if it carries no contact shape.
    pub fn slot(&self, body: usize) -> Option<usize> {
        self.bodies.iter().position(|&known| known == body)
    }

    pub fn pose(&self, slot: usize) -> Pose {
        let p = &self.poses[7 * slot..7 * slot + 7];
        Pose::new(Quat::new_unchecked(Quaternion::new(p[3], p[4], p[5], p[6])), Vec3::new(p[0], p[1], p[2]))
    }

    /// 6 × nu, row by row, at the body frame's origin.
    pub fn body_jacobian(&self, slot: usize) -> &[f64] {
        &self.jacobians[6 * self.nu * slot..6 * self.nu * (slot + 1)]
    }

    /// `H_redᵀ` (27) of the body-fixed point at `point` (world): 3 × nu velocities into `linear`, row by row.
    pub fn point_jacobian(&self, slot: usize, point: &Vec3, linear: &mut [f64]) {
        let nu = self.nu;
        let jacobian = self.body_jacobian(slot);
        let p = &self.poses[7 * slot..];
        let arm = point - Vec3::new(p[0], p[1], p[2]);
        for k in 0..nu {
            let angular = Vec3::new(jacobian[3 * nu + k], jacobian[4 * nu + k], jacobian[5 * nu + k]);
            let turning = angular.cross(&arm);
            for axis in 0..3 {
                linear[axis * nu + k] = jacobian[axis * nu + k] + turning[axis];
            }
        }
    }

    /// Velocity of the body-fixed point at `point` (world) and angular velocity, for independent velocities `v_u`, at the
    /// end of the step (`before` = false) or at its start.
    pub fn point_velocity(&self, slot: usize, point: &Vec3, v_u: &[f64], before: bool) -> (Vec3, Vec3) {
        let drift = if before { &self.drift_before } else { &self.drift };
        let jacobian = self.body_jacobian(slot);
        let mut twist = [0.0; 6];
        for (axis, entry) in twist.iter_mut().enumerate() {
            *entry = drift[6 * slot + axis];
            for k in 0..self.nu {
                *entry += jacobian[axis * self.nu + k] * v_u[k];
            }
        }
        let angular = Vec3::new(twist[3], twist[4], twist[5]);
        let p = &self.poses[7 * slot..];
        let arm = point - Vec3::new(p[0], p[1], p[2]);
        (Vec3::new(twist[0], twist[1], twist[2]) + angular.cross(&arm), angular)
    }

    /// All numbers in one list, for a broadcast.
    pub fn pack(&self) -> Vec<f64> {
        let mut list = vec![self.nu as f64, self.bodies.len() as f64];
        list.extend(self.bodies.iter().map(|&body| body as f64));
        for part in self.parts() {
            list.extend_from_slice(part);
        }
        list
    }

    /// Inverse of [`pack`](Self::pack); none if the list has another length than its head says.
    pub fn unpack(list: &[f64]) -> Option<Self> {
        let (nu, slots) = (*list.first()? as usize, *list.get(1)? as usize);
        let lengths = [nu * nu, nu, nu, 7 * slots, 6 * nu * slots, 6 * slots, 6 * slots];
        let bodies = list.get(2..2 + slots)?.iter().map(|&body| body as usize).collect();
        let mut at = 2 + slots;
        let mut parts = lengths.map(|length| {
            let part = list.get(at..at + length).map(<[f64]>::to_vec);
            at += length;
            part
        });
        if at != list.len() {
            return None;
        }
        let mut next = parts.iter_mut().map(Option::take);
        let mut take = || next.next().flatten();
        Some(Self {
            nu,
            bodies,
            mass_inverse: take()?,
            velocity: take()?,
            free_velocity: take()?,
            poses: take()?,
            jacobians: take()?,
            drift_before: take()?,
            drift: take()?,
        })
    }

    fn parts(&self) -> [&[f64]; 7] {
        [
            &self.mass_inverse,
            &self.velocity,
            &self.free_velocity,
            &self.poses,
            &self.jacobians,
            &self.drift_before,
            &self.drift,
        ]
    }
}
