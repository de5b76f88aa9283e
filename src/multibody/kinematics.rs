//! Poses, twists, Jacobians and their rates, from the tree.
//!
//! With `S_j` the columns of the motion subspaces about the reference point, the twist of a body is `Σ S_j
//! v_j` over the joints that carry it, and its acceleration `Σ S_j dv_j + A`, where the bias `A = Σ dS_j/dt
//! v_j` follows from `dS/dt = (twist of the body that S is fixed in) × S`.

use super::model::{BodyIndex, Model, PointRef};
use super::spatial::{SpatialInertia, Twist, Wrench};
use crate::geometry::{Pose, Vec3};
use nalgebra::{DMatrix, DVector};

/// Scratch of a machine. Rebuilt from model and coordinates at any time; nothing here is state.
#[derive(Clone, Debug)]
pub struct Data {
    /// World point about which all twists and wrenches are written.
    pub(super) reference: Vec3,
    pub(super) poses: Vec<Pose>,
    pub(super) subspace: Vec<Twist>,
    pub(super) twists: Vec<Twist>,
    pub(super) bias_accelerations: Vec<Twist>,
    pub(super) inertias: Vec<SpatialInertia>,
    pub(super) composites: Vec<SpatialInertia>,
    pub(super) wrenches: Vec<Wrench>,
    /// Forces of elements and the outside on bodies.
    pub(super) applied: Vec<Wrench>,
    pub(super) joint_force: Vec<f64>,
    pub(super) force_values: Vec<f64>,
    /// M(q)
    pub(super) mass: DMatrix<f64>,
    /// f(q, v, t)
    pub(super) force: DVector<f64>,
    /// h_B(q), J_B(q), dJ_B/dt v
    pub(super) residual: DVector<f64>,
    pub(super) jacobian: DMatrix<f64>,
    pub(super) jacobian_rate: DVector<f64>,
}

impl Data {
    pub fn new(model: &Model) -> Self {
        let (bodies, nv, rows) = (model.body_count(), model.nv(), model.closure_rows());
        Self {
            reference: Vec3::zeros(),
            poses: vec![Pose::identity(); bodies],
            subspace: vec![Twist::zero(); nv],
            twists: vec![Twist::zero(); bodies],
            bias_accelerations: vec![Twist::zero(); bodies],
            inertias: vec![SpatialInertia::zero(); bodies],
            composites: vec![SpatialInertia::zero(); bodies],
            wrenches: vec![Wrench::zero(); bodies],
            applied: vec![Wrench::zero(); bodies],
            joint_force: vec![0.0; nv],
            force_values: vec![0.0; model.forces.len()],
            mass: DMatrix::zeros(nv, nv),
            force: DVector::zeros(nv),
            residual: DVector::zeros(rows),
            jacobian: DMatrix::zeros(rows, nv),
            jacobian_rate: DVector::zeros(rows),
        }
    }

    /// Poses and motion subspaces at `q`.
    pub fn update_positions(&mut self, model: &Model, q: &[f64]) {
        for (i, joint) in model.joints.iter().enumerate() {
            let parent_side = match joint.parent {
                Some(parent) => self.poses[parent].compose(&joint.parent_frame),
                None => joint.parent_frame,
            };
            let child_side = parent_side.compose(&joint.kind.transform(&q[joint.positions()]));
            self.poses[i] = child_side.compose(&joint.from_child_side);
            if i == 0 {
                self.reference = self.poses[0].position;
            }
            let columns = &mut self.subspace[joint.columns()];
            joint.kind.subspace(&parent_side, &child_side, &self.reference, columns);
        }
    }

    /// Twists and bias accelerations at `v`. Needs current positions.
    pub fn update_velocities(&mut self, model: &Model, v: &[f64]) {
        for (i, joint) in model.joints.iter().enumerate() {
            let (parent_twist, parent_bias) = match joint.parent {
                Some(parent) => (self.twists[parent], self.bias_accelerations[parent]),
                None => (Twist::zero(), Twist::zero()),
            };
            let mut twist = parent_twist;
            let (mut carried_by_parent, mut carried_by_child) = (Twist::zero(), Twist::zero());
            for (local, column) in joint.columns().enumerate() {
                let part = self.subspace[column] * v[column];
                twist += part;
                if joint.kind.fixed_in_parent(local) {
                    carried_by_parent += part;
                } else {
                    carried_by_child += part;
                }
            }
            self.twists[i] = twist;
            self.bias_accelerations[i] =
                parent_bias + parent_twist.carry(&carried_by_parent) + twist.carry(&carried_by_child);
        }
    }

    /// Body frame in the world.
    pub fn pose(&self, body: BodyIndex) -> Pose {
        self.poses[body.0]
    }

    /// World place of a point fixed in a body or the ground.
    pub fn world_point(&self, point: &PointRef) -> Vec3 {
        match point.body {
            Some(body) => self.poses[body.0].point(&point.position),
            None => point.position,
        }
    }

    /// Velocity of the body-fixed point at `point` (world), and angular velocity.
    pub fn body_twist(&self, body: BodyIndex, point: &Vec3) -> Twist {
        let twist = &self.twists[body.0];
        Twist::new(twist.at(&(point - self.reference)), twist.angular)
    }

    pub(super) fn point_velocity(&self, body: Option<BodyIndex>, point: &Vec3) -> Vec3 {
        body.map_or(Vec3::zeros(), |body| self.twists[body.0].at(&(point - self.reference)))
    }

    pub(super) fn twist_of(&self, body: Option<usize>) -> Twist {
        body.map_or(Twist::zero(), |body| self.twists[body])
    }

    pub(super) fn bias_of(&self, body: Option<usize>) -> Twist {
        body.map_or(Twist::zero(), |body| self.bias_accelerations[body])
    }

    /// Geometric Jacobian, 6 × nv: velocity of the body-fixed point at `point` (world), then angular
    /// velocity.
    pub fn jacobian(&self, model: &Model, body: BodyIndex, point: &Vec3) -> DMatrix<f64> {
        let mut jacobian = DMatrix::zeros(6, model.nv());
        let arm = point - self.reference;
        let mut next = Some(body.0);
        while let Some(i) = next {
            for column in model.joints[i].columns() {
                let twist = &self.subspace[column];
                jacobian.fixed_view_mut::<3, 1>(0, column).copy_from(&twist.at(&arm));
                jacobian.fixed_view_mut::<3, 1>(3, column).copy_from(&twist.angular);
            }
            next = model.joints[i].parent;
        }
        jacobian
    }

    /// Twist of a body for any velocities, without touching the current ones.
    pub(super) fn twist_for(&self, model: &Model, body: usize, v: &[f64]) -> Twist {
        let mut twist = Twist::zero();
        let mut next = Some(body);
        while let Some(i) = next {
            for column in model.joints[i].columns() {
                twist += self.subspace[column] * v[column];
            }
            next = model.joints[i].parent;
        }
        twist
    }

    /// `dJ/dt v`: what the acceleration of the body-fixed point at `point` (world), and the angular
    /// acceleration, would be with `dv = 0`.
    pub fn jacobian_rate(&self, body: BodyIndex, point: &Vec3) -> Twist {
        let arm = point - self.reference;
        let (twist, bias) = (&self.twists[body.0], &self.bias_accelerations[body.0]);
        Twist::new(bias.at(&arm) + twist.angular.cross(&twist.at(&arm)), bias.angular)
    }
}
