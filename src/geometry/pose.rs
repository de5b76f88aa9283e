//! Rigid placement in space, and axis-aligned boxes.

use super::{Quat, Vec3};
use serde::{Deserialize, Serialize};

/// Maps body coordinates to world coordinates: `x_world = rotation · x_body + position`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pose {
    pub rotation: Quat,
    pub position: Vec3,
}

impl Pose {
    pub fn identity() -> Self {
        Self { rotation: Quat::identity(), position: Vec3::zeros() }
    }

    pub fn new(rotation: Quat, position: Vec3) -> Self {
        Self { rotation, position }
    }

    /// A point given in the body frame, in the world frame.
    pub fn point(&self, body: &Vec3) -> Vec3 {
        self.rotation * body + self.position
    }

    /// A direction given in the body frame, in the world frame.
    pub fn direction(&self, body: &Vec3) -> Vec3 {
        self.rotation * body
    }

    /// A world point, in the body frame.
    pub fn inverse_point(&self, world: &Vec3) -> Vec3 {
        self.rotation.inverse_transform_vector(&(world - self.position))
    }

    /// A world direction, in the body frame.
    pub fn inverse_direction(&self, world: &Vec3) -> Vec3 {
        self.rotation.inverse_transform_vector(world)
    }

    /// The pose of a frame that stands at `inner` inside this one.
    pub fn compose(&self, inner: &Pose) -> Pose {
        Pose { rotation: self.rotation * inner.rotation, position: self.point(&inner.position) }
    }
}

/// An axis-aligned box in the world frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aabb {
    pub min: Vec3,
    pub max: Vec3,
}

impl Aabb {
    /// The box that holds nothing: `union` with it changes nothing.
    pub fn empty() -> Self {
        Self { min: Vec3::repeat(f64::INFINITY), max: Vec3::repeat(f64::NEG_INFINITY) }
    }

    pub fn overlaps(&self, other: &Aabb) -> bool {
        (0..3).all(|k| self.min[k] <= other.max[k] && other.min[k] <= self.max[k])
    }

    /// The border belongs to it.
    pub fn contains(&self, point: &Vec3) -> bool {
        (0..3).all(|k| self.min[k] <= point[k] && point[k] <= self.max[k])
    }

    pub fn inflated(&self, margin: f64) -> Aabb {
        Aabb { min: self.min.add_scalar(-margin), max: self.max.add_scalar(margin) }
    }

    pub fn union(&self, other: &Aabb) -> Aabb {
        Aabb { min: self.min.inf(&other.min), max: self.max.sup(&other.max) }
    }

    pub fn with_point(&self, point: &Vec3) -> Aabb {
        Aabb { min: self.min.inf(point), max: self.max.sup(point) }
    }
}
