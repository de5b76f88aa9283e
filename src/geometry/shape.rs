//! The shape of a body: convex pieces in the body frame.

use super::convex::Convex;
use super::{Aabb, Polyhedron, Pose};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The shape of a body, in its own frame (origin at the centre of mass for bodies that move).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    Convex(Convex),
    /// Several convex parts on one rigid body, for instance a tamping tool.
    Cluster(Arc<[Part]>),
}

/// A convex piece at its place in the body frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    pub pose: Pose,
    pub convex: Convex,
}

impl Shape {
    pub fn sphere(radius: f64) -> Self {
        Shape::Convex(Convex::Sphere { radius })
    }

    pub fn polyhedron(polyhedron: Polyhedron) -> Self {
        Shape::Convex(Convex::Polyhedron(Arc::new(polyhedron)))
    }

    /// The convex parts with their poses in the body frame.
    pub fn parts(&self) -> impl Iterator<Item = (Pose, &Convex)> {
        let (single, cluster) = match self {
            Shape::Convex(convex) => (Some((Pose::identity(), convex)), &[][..]),
            Shape::Cluster(parts) => (None, &parts[..]),
        };
        single.into_iter().chain(cluster.iter().map(|part| (part.pose, &part.convex)))
    }

    /// One of them.
    pub fn part(&self, index: usize) -> &Convex {
        match self {
            Shape::Convex(convex) => convex,
            Shape::Cluster(parts) => &parts[index].convex,
        }
    }

    /// Largest distance of a point of the shape from the body's origin (infinite for a half-space).
    pub fn bounding_radius(&self) -> f64 {
        match self {
            Shape::Convex(convex) => convex.bounding_radius(),
            Shape::Cluster(parts) => {
                let radius = |part: &Part| part.pose.position.norm() + part.convex.bounding_radius();
                parts.iter().map(radius).fold(0.0, f64::max)
            }
        }
    }

    /// Smallest axis-aligned box around the shape at `pose`.
    pub fn aabb(&self, pose: &Pose) -> Aabb {
        match self {
            Shape::Convex(convex) => convex.aabb(pose),
            Shape::Cluster(parts) => parts
                .iter()
                .map(|part| part.convex.aabb(&pose.compose(&part.pose)))
                .fold(Aabb::empty(), |all, one| all.union(&one)),
        }
    }
}
