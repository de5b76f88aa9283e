//! What the contact solve needs of a machine in one step, as plain numbers: the owner broadcasts it, every rank uses it.

use crate::geometry::{Pose, Quat, Vec3};
use nalgebra::Quaternion;
use serde::{Deserialize, Serialize};

/// Reduced operators at `q_m`: `v_u⁺ = free_velocity + mass_inverse · Σ Jᵀ p` for impulses `p` on the bodies, and the
/// velocity of a point on a body is `J v_u` plus [`point_offset`](Self::point_offset). Slots number the bodies that carry contact shapes.
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
    /// From the start of the step to `q_m`, and from there to its end, s.
    pub durations: [f64; 2],
    /// Per slot 9: acceleration of the body frame's origin and angular acceleration that are there without any change of
    /// `v_u`, and angular velocity. Zero for [`ContactVelocity::Middle`](super::ContactVelocity).
    pub rates: Vec<f64>,
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
        let arm = self.arm(slot, point);
        for k in 0..nu {
            let angular = Vec3::new(jacobian[3 * nu + k], jacobian[4 * nu + k], jacobian[5 * nu + k]);
            let turning = angular.cross(&arm);
            for axis in 0..3 {
                linear[axis * nu + k] = jacobian[axis * nu + k] + turning[axis];
            }
        }
    }

    /// What a contact has to add to `H_redᵀ v_u` to have the velocity of the body-fixed point at `point` (world) at the end of the
    /// step: prescribed joints, and with [`ContactVelocity::Ends`](super::ContactVelocity) the way from `q_m` to the end.
    pub fn point_offset(&self, slot: usize, point: &Vec3) -> Vec3 {
        let arm = self.arm(slot, point);
        read(&self.drift, 6 * slot)
            + read(&self.drift, 6 * slot + 3).cross(&arm)
            + self.rate(slot, &arm) * self.durations[1]
    }

    /// Velocity of that point at the end of the step for independent velocities `v_u`.
    pub fn point_velocity(&self, slot: usize, point: &Vec3, v_u: &[f64]) -> Vec3 {
        self.mapped(slot, &self.arm(slot, point), v_u) + self.point_offset(slot, point)
    }

    /// Velocity of that point at the start of the step: what Newton's impact law calls the velocity before.
    pub fn point_velocity_before(&self, slot: usize, point: &Vec3) -> Vec3 {
        let arm = self.arm(slot, point);
        let prescribed =
            read(&self.drift_before, 6 * slot) + read(&self.drift_before, 6 * slot + 3).cross(&arm);
        self.mapped(slot, &arm, &self.velocity) + prescribed - self.rate(slot, &arm) * self.durations[0]
    }

    /// Velocity of the body frame's origin and angular velocity at the end of the step if nothing touches.
    pub fn free_twist(&self, slot: usize) -> [Vec3; 2] {
        let jacobian = self.body_jacobian(slot);
        let row = |axis: usize| {
            let row = &jacobian[axis * self.nu..(axis + 1) * self.nu];
            row.iter().zip(&self.free_velocity).map(|(j, v)| j * v).sum::<f64>()
        };
        [0, 3].map(|first| Vec3::from_fn(|axis, _| row(first + axis)) + read(&self.drift, 6 * slot + first))
    }

    fn arm(&self, slot: usize, point: &Vec3) -> Vec3 {
        point - read(&self.poses, 7 * slot)
    }

    /// `H_redᵀ v_u`
    fn mapped(&self, slot: usize, arm: &Vec3, v_u: &[f64]) -> Vec3 {
        let jacobian = self.body_jacobian(slot);
        let mut twist = [0.0; 6];
        for (axis, entry) in twist.iter_mut().enumerate() {
            let row = &jacobian[axis * self.nu..(axis + 1) * self.nu];
            *entry = row.iter().zip(v_u).map(|(j, v)| j * v).sum();
        }
        read(&twist, 0) + read(&twist, 3).cross(arm)
    }

    /// `dH_redᵀ/dt v_u`
    fn rate(&self, slot: usize, arm: &Vec3) -> Vec3 {
        let [linear, angular, omega] = [0, 3, 6].map(|at| read(&self.rates, 9 * slot + at));
        linear + angular.cross(arm) + omega.cross(&omega.cross(arm))
    }
}

fn read(list: &[f64], at: usize) -> Vec3 {
    Vec3::new(list[at], list[at + 1], list[at + 2])
}
