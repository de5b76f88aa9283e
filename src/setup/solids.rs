//! Shapes of the case as geometry, and what makes a body of one: mass, moments and the body frame.

use super::error::SetupError;
use crate::geometry::{
    Convex, MassError, MeshError, MeshFile, Part, Polyhedron, Pose, Shape, Vec3, convex_hull, mass_properties,
};
use crate::input::{Case, NamedShape, ShapeKind};
use crate::scene::{Body, BodyId, Motion};
use std::sync::Arc;

/// The shapes of the case, by index, each in the frame in which the case gives it.
pub(super) fn shapes(case: &Case) -> Result<Vec<Shape>, SetupError> {
    let convex: Vec<Option<Convex>> = case.shapes.iter().map(convex).collect::<Result<_, _>>()?;
    let shape = |(named, single): (&NamedShape, &Option<Convex>)| match (&named.kind, single) {
        (ShapeKind::Cluster { parts }, _) => {
            let place = |part: &crate::input::ClusterPart| {
                // Clusters were flattened when the case was read: a part is never a cluster.
                let convex = convex[part.shape].clone()?;
                Some(Part { pose: part.pose, convex })
            };
            Shape::Cluster(parts.iter().filter_map(place).collect())
        }
        (_, Some(convex)) => Shape::Convex(convex.clone()),
        (_, None) => Shape::Cluster(Arc::new([])),
    };
    Ok(case.shapes.iter().zip(&convex).map(shape).collect())
}

/// None for a cluster.
fn convex(named: &NamedShape) -> Result<Option<Convex>, SetupError> {
    let hull = |points: &[Vec3]| {
        let problem = |problem| SetupError::Hull { shape: named.name.clone(), problem };
        convex_hull(points).map(|hull| Some(polyhedron(hull))).map_err(problem)
    };
    match &named.kind {
        ShapeKind::Sphere { radius } => Ok(Some(Convex::Sphere { radius: *radius })),
        ShapeKind::Box { size } => Ok(Some(polyhedron(Polyhedron::from_box(size / 2.0)))),
        ShapeKind::Polyhedron { vertices } => hull(vertices),
        ShapeKind::MeshFile { file, scale } => {
            let problem = |problem: MeshError| SetupError::Mesh { shape: named.name.clone(), problem };
            let mesh = MeshFile::read(file).map_err(problem)?;
            mesh.check_closed().map_err(problem)?;
            let points: Vec<Vec3> = mesh.vertices.iter().map(|point| point * *scale).collect();
            hull(&points)
        }
        ShapeKind::HalfSpace => Ok(Some(Convex::HalfSpace)),
        ShapeKind::Cluster { .. } => Ok(None),
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
