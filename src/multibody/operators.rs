//! What the contact solve needs of a machine in one step, as plain numbers: the owner broadcasts it, every
//! rank uses it.

use crate::geometry::{Pose, Vec3};
use serde::{Deserialize, Serialize};

/// Reduced operators where contacts are looked for: `v_u⁺ = free_velocity + mass_inverse · Σ Jᵀ p` for
/// impulses `p` at points of bodies, and the velocity of a point is `J v_u` plus
/// [`point_offset`](Self::point_offset).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReducedOperators {
    /// Number of independent velocities.
    pub nu: usize,
    /// `M_red⁻¹`, nu × nu, symmetric.
    pub mass_inverse: Vec<f64>,
    /// `v_u` at the start of the step.
    pub velocity: Vec<f64>,
    /// `v_u + h M_red⁻¹ f_red`, (28) without contacts.
    pub free_velocity: Vec<f64>,
    /// From the start of the step to where contacts are looked for, and from there to its end, s.
    pub durations: [f64; 2],
    /// The bodies that carry contact shapes; contacts name them by their places here, the *slots*.
    pub bodies: Vec<BodyOperators>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BodyOperators {
    /// Index of the body in its system.
    pub body: usize,
    /// Of the body frame.
    pub pose: Pose,
    pub points: PointMap,
}

/// How the points of a body follow the independent velocities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PointMap {
    Rigid(RigidMap),
}

/// Points that move with the frame of their body.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RigidMap {
    /// 6 × nu, row by row: velocity of the body frame's origin, then angular velocity.
    pub jacobian: Vec<f64>,
    /// What prescribed joints add to the body's velocity at the start of the step.
    pub drift_before: [f64; 6],
    /// The same at the end of the step.
    pub drift: [f64; 6],
    /// Acceleration of the body frame's origin and angular acceleration that are there without any change of
    /// `v_u`, and angular velocity. Zero for [`ContactVelocity::Middle`](super::ContactVelocity).
    pub rates: [f64; 9],
}

impl ReducedOperators {
    pub fn pose(&self, slot: usize) -> Pose {
        self.bodies[slot].pose
    }

    /// `H_redᵀ` (27) of the point of a body at `point` (world): 3 × nu velocities into `linear`, row by row.
    pub fn point_jacobian(&self, slot: usize, point: &Vec3, linear: &mut [f64]) {
        let (map, arm) = self.rigid(slot, point);
        map.point_jacobian(self.nu, &arm, linear);
    }

    /// What a contact has to add to `H_redᵀ v_u` to have the velocity of the point at `point` (world) at the
    /// end of the step: prescribed joints, and with [`ContactVelocity::Ends`](super::ContactVelocity) what
    /// follows from where contacts are looked for to the end.
    pub fn point_offset(&self, slot: usize, point: &Vec3) -> Vec3 {
        let (map, arm) = self.rigid(slot, point);
        read(&map.drift, 0) + read(&map.drift, 3).cross(&arm) + map.rate(&arm) * self.durations[1]
    }

    /// Velocity of that point at the end of the step for independent velocities `v_u`.
    pub fn point_velocity(&self, slot: usize, point: &Vec3, v_u: &[f64]) -> Vec3 {
        let (map, arm) = self.rigid(slot, point);
        map.mapped(&arm, v_u) + self.point_offset(slot, point)
    }

    /// Velocity of that point at the start of the step: what Newton's impact law calls the velocity before.
    pub fn point_velocity_before(&self, slot: usize, point: &Vec3) -> Vec3 {
        let (map, arm) = self.rigid(slot, point);
        let prescribed = read(&map.drift_before, 0) + read(&map.drift_before, 3).cross(&arm);
        map.mapped(&arm, &self.velocity) + prescribed - map.rate(&arm) * self.durations[0]
    }

    /// Velocity of the body frame's origin and angular velocity at the end of the step if nothing touches.
    pub fn free_twist(&self, slot: usize) -> [Vec3; 2] {
        let PointMap::Rigid(map) = &self.bodies[slot].points;
        let twist = map.twist(&self.free_velocity);
        [0, 3].map(|first| read(&twist, first) + read(&map.drift, first))
    }

    fn rigid(&self, slot: usize, point: &Vec3) -> (&RigidMap, Vec3) {
        let BodyOperators { pose, points: PointMap::Rigid(map), .. } = &self.bodies[slot];
        (map, point - pose.position)
    }
}

impl RigidMap {
    fn point_jacobian(&self, nu: usize, arm: &Vec3, linear: &mut [f64]) {
        let jacobian = &self.jacobian;
        for k in 0..nu {
            let angular = Vec3::new(jacobian[3 * nu + k], jacobian[4 * nu + k], jacobian[5 * nu + k]);
            let turning = angular.cross(arm);
            for axis in 0..3 {
                linear[axis * nu + k] = jacobian[axis * nu + k] + turning[axis];
            }
        }
    }

    /// Of the body frame, by independent velocities.
    fn twist(&self, v_u: &[f64]) -> [f64; 6] {
        let nu = v_u.len();
        let row = |axis: usize| {
            let row = &self.jacobian[axis * nu..(axis + 1) * nu];
            row.iter().zip(v_u).map(|(j, v)| j * v).sum::<f64>()
        };
        std::array::from_fn(row)
    }

    /// `H_redᵀ v_u`
    fn mapped(&self, arm: &Vec3, v_u: &[f64]) -> Vec3 {
        let twist = self.twist(v_u);
        read(&twist, 0) + read(&twist, 3).cross(arm)
    }

    /// `dH_redᵀ/dt v_u`
    fn rate(&self, arm: &Vec3) -> Vec3 {
        let [linear, angular, omega] = [0, 3, 6].map(|at| read(&self.rates, at));
        linear + angular.cross(arm) + omega.cross(&omega.cross(arm))
    }
}

fn read(list: &[f64], at: usize) -> Vec3 {
    Vec3::new(list[at], list[at + 1], list[at + 2])
}
