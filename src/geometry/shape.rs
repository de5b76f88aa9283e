//! What a body looks like: convex pieces in the body frame.

use super::{Aabb, Pose, Vec3};
use std::sync::Arc;

/// The shape of a body, in its own frame (origin at the centre of mass for bodies that move).
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Convex(Convex),
    /// Several convex parts on one rigid body, for instance a tamping tool.
    Cluster(Arc<[Part]>),
}

/// One convex piece.
#[derive(Clone, Debug, PartialEq)]
pub enum Convex {
    /// Centred at the origin of its frame.
    Sphere { radius: f64 },
    /// Boxes are polyhedra too.
    Polyhedron(Arc<Polyhedron>),
    /// Everything with z ≤ 0 in its frame; the outward normal is +z. Never moves freely.
    HalfSpace,
}

/// A convex piece at its place in the body frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub pose: Pose,
    pub convex: Convex,
}

/// A convex polyhedron with merged coplanar faces.
///
/// Faces are loops of vertices, counter-clockwise seen from outside; every edge borders two faces.
#[derive(Clone, Debug, PartialEq)]
pub struct Polyhedron {
    pub vertices: Vec<Vec3>,
    pub faces: Vec<Face>,
    pub edges: Vec<Edge>,
    /// Largest distance of a vertex from the origin.
    pub bounding_radius: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Face {
    /// Unit, outward.
    pub normal: Vec3,
    /// `normal · x = offset` on the face.
    pub offset: f64,
    /// Counter-clockwise seen from outside, at least three.
    pub vertices: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    pub vertices: [u32; 2],
    /// The face left of `vertices[0] → vertices[1]` seen from outside, then the other one.
    pub faces: [u32; 2],
}

impl Shape {
    pub fn sphere(radius: f64) -> Self {
        Shape::Convex(Convex::Sphere { radius })
    }

    /// The convex parts with their poses in the body frame.
    pub fn parts(&self) -> impl Iterator<Item = (Pose, &Convex)> {
        let (single, cluster) = match self {
            Shape::Convex(convex) => (Some((Pose::identity(), convex)), &[][..]),
            Shape::Cluster(parts) => (None, &parts[..]),
        };
        single.into_iter().chain(cluster.iter().map(|part| (part.pose, &part.convex)))
    }

    /// Largest distance of a point of the shape from the body's origin (infinite for a half-space).
    pub fn bounding_radius(&self) -> f64 {
        self.parts().map(|(pose, convex)| pose.position.norm() + convex.bounding_radius()).fold(0.0, f64::max)
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

impl Convex {
    pub fn bounding_radius(&self) -> f64 {
        match self {
            Convex::Sphere { radius } => *radius,
            Convex::Polyhedron(polyhedron) => polyhedron.bounding_radius,
            Convex::HalfSpace => f64::INFINITY,
        }
    }

    pub fn aabb(&self, pose: &Pose) -> Aabb {
        match self {
            Convex::Sphere { radius } => Aabb { min: pose.position, max: pose.position }.inflated(*radius),
            Convex::Polyhedron(polyhedron) => polyhedron
                .vertices
                .iter()
                .fold(Aabb::empty(), |all, vertex| all.with_point(&pose.point(vertex))),
            Convex::HalfSpace => {
                Aabb { min: Vec3::repeat(f64::NEG_INFINITY), max: Vec3::repeat(f64::INFINITY) }
            }
        }
    }
}
