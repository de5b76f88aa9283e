//! Shapes of the case as geometry, and what makes a body of one: mass, moments and the body frame.

use crate::geometry::{Convex, MassError, Part, Polyhedron, Pose, Shape, Vec3, mass_properties};
use crate::input::{Case, ClusterPart, NamedShape, ShapeKind};
use crate::scene::{Body, BodyId, Motion};
use std::sync::Arc;

/// The shapes of the case, by index, each in the frame in which the case gives it.
pub(super) fn shapes(case: &Case) -> Vec<Shape> {
    let part = |part: &ClusterPart| {
        let convex = convex(&case.shapes[part.shape].kind)?;
        Some(Part { pose: part.pose, convex })
    };
    let shape = |named: &NamedShape| match &named.kind {
        // Clusters were flattened when the case was read: every part is convex.
        ShapeKind::Cluster { parts } => Shape::Cluster(parts.iter().filter_map(part).collect()),
        single => convex(single).map_or_else(|| Shape::Cluster(Arc::new([])), Shape::Convex),
    };
    case.shapes.iter().map(shape).collect()
}

/// None for a cluster.
pub(super) fn convex(kind: &ShapeKind) -> Option<Convex> {
    match kind {
        ShapeKind::Convex(convex) => Some(convex.clone()),
        ShapeKind::Cluster { .. } => None,
    }
}

pub(super) fn polyhedron(polyhedron: Polyhedron) -> Convex {
    Convex::Polyhedron(Arc::new(polyhedron))
}

/// A shape with mass, in its body frame: centre of mass at the origin, principal axes along x, y, z.
#[derive(Clone, Debug)]
pub(super) struct Solid {
    pub shape: Shape,
    /// Where the body frame stands in the frame in which the shape was given.
    pub frame: Pose,
    pub mass: f64,
    pub inertia: Vec3,
}

impl Solid {
    /// `mass` takes the place of density times volume; the moments scale with it.
    pub fn new(shape: &Shape, density: f64, mass: Option<f64>) -> Result<Self, MassError> {
        let properties = mass_properties(shape, density)?;
        let mass = mass.unwrap_or(properties.mass);
        Ok(Self {
            shape: shape.recentred(&properties),
            frame: properties.frame(),
            mass,
            inertia: properties.principal_inertia * (mass / properties.mass),
        })
    }

    /// A free body at rest; `pose` is that of the frame in which the shape was given.
    pub fn at(&self, id: BodyId, group: u32, material: u32, pose: &Pose) -> Body {
        Body {
            id,
            group,
            material,
            motion: Motion::Free,
            shape: self.shape.clone(),
            mass: self.mass,
            inertia: self.inertia,
            pose: pose.compose(&self.frame),
            velocity: Vec3::zeros(),
            angular_velocity: Vec3::zeros(),
            angular_momentum: Vec3::zeros(),
            anchor: None,
            memory: Box::default(),
        }
    }
}

/// Gives a body velocities, and the angular momentum `R diag(I) Rᵀ ω` that belongs to them.
pub(super) fn set_velocity(body: &mut Body, velocity: Vec3, angular_velocity: Vec3) {
    body.velocity = velocity;
    body.angular_velocity = angular_velocity;
    let in_body = body.pose.inverse_direction(&angular_velocity);
    body.angular_momentum = body.pose.direction(&body.inertia.component_mul(&in_body));
}
