//! Kinds of convex pieces. Each is described in a file of its own by [`Primitive`]; this file lists them.
//!
//! A new kind is a file beside this one, a variant of [`Convex`], and a line in each of the two `match`es
//! here. Contacts of a pair for which `contact::narrow` has no function of its own are found by support
//! functions.

mod half_space;
mod polyhedron;
mod sphere;

pub use half_space::HalfSpace;
pub use polyhedron::{Edge, Face, Polyhedron};
pub use sphere::Sphere;

use super::mass::{MassError, Moments};
use super::{Aabb, Pose, Vec3};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

/// One convex piece.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Convex {
    /// Centred at the origin of its frame.
    Sphere { radius: f64 },
    /// Boxes are polyhedra too.
    Polyhedron(Arc<Polyhedron>),
    /// Everything with z ≤ 0 in its frame; the outward normal is +z. Never moves freely.
    HalfSpace,
}

/// What there is to say about a kind of convex pieces, in the frame of the piece.
///
/// A kind is a *core* rounded off by a ball: a sphere is a point with its radius, a polyhedron has no
/// rounding.
pub trait Primitive {
    /// Its number in state files. Never used for another kind.
    const CODE: u8;

    /// Largest distance of a point from the origin; infinite for an unbounded kind.
    fn bounding_radius(&self) -> f64;

    /// Smallest axis-aligned box at a pose.
    fn aabb(&self, pose: &Pose) -> Aabb;

    /// Volume, centre and second moments.
    fn moments(&self) -> Result<Moments, MassError>;

    /// A point of the core that lies farthest along a direction (not zero); none for an unbounded kind.
    fn support(&self, direction: &Vec3) -> Option<Vec3>;

    /// Radius of the ball by which the core is rounded off, m.
    fn rounding(&self) -> f64 {
        0.0
    }

    /// How it is drawn, and cut by boxes.
    fn drawing(&self) -> Drawing;

    /// Its numbers in a state file.
    fn columns(&self) -> Columns;

    /// The piece with these numbers, or why there is none.
    fn from_columns(columns: Columns) -> Result<Self, String>
    where
        Self: Sized;
}

/// A piece as something that can be drawn.
pub enum Drawing {
    /// About the origin.
    Sphere { radius: f64 },
    /// The plane z = 0, seen from z > 0.
    Plane,
    /// Itself, or for a kind with curved faces a polyhedron near to it.
    Polyhedron(Arc<Polyhedron>),
}

/// The numbers of a piece in a state file.
pub struct Columns {
    pub code: u8,
    pub radius: f64,
    /// Sizes that a kind has besides, three in a row; they take the place of vertices.
    pub sizes: SmallVec<[Vec3; 1]>,
    /// Vertices, faces and edges. From a file they may name each other wrongly.
    pub solid: Option<Arc<Polyhedron>>,
}

impl Columns {
    /// Of a kind that has one number.
    fn single(code: u8, radius: f64) -> Self {
        Self { code, radius, sizes: SmallVec::new(), solid: None }
    }

    pub fn vertices(&self) -> &[Vec3] {
        self.solid.as_ref().map_or(&self.sizes, |solid| &solid.vertices)
    }
}

/// Evaluates an expression for the piece as its own kind.
macro_rules! of_kind {
    ($convex:expr, $piece:ident => $value:expr) => {
        match $convex {
            Convex::Sphere { radius } => {
                let $piece = &Sphere { radius: *radius };
                $value
            }
            Convex::Polyhedron(polyhedron) => {
                let $piece = polyhedron;
                $value
            }
            Convex::HalfSpace => {
                let $piece = &HalfSpace;
                $value
            }
        }
    };
}

impl Convex {
    /// The piece with these numbers, or why there is none.
    pub fn from_columns(columns: Columns) -> Result<Self, String> {
        match columns.code {
            Sphere::CODE => Sphere::from_columns(columns).map(|Sphere { radius }| Convex::Sphere { radius }),
            <Arc<Polyhedron>>::CODE => Primitive::from_columns(columns).map(Convex::Polyhedron),
            HalfSpace::CODE => Ok(Convex::HalfSpace),
            other => Err(format!("a part has the unknown kind {other}")),
        }
    }

    pub fn bounding_radius(&self) -> f64 {
        of_kind!(self, piece => piece.bounding_radius())
    }

    pub fn aabb(&self, pose: &Pose) -> Aabb {
        of_kind!(self, piece => piece.aabb(pose))
    }

    pub fn moments(&self) -> Result<Moments, MassError> {
        of_kind!(self, piece => piece.moments())
    }

    /// See [`Primitive::support`].
    pub fn support(&self, direction: &Vec3) -> Option<Vec3> {
        of_kind!(self, piece => piece.support(direction))
    }

    /// See [`Primitive::rounding`].
    pub fn rounding(&self) -> f64 {
        of_kind!(self, piece => piece.rounding())
    }

    pub fn drawing(&self) -> Drawing {
        of_kind!(self, piece => piece.drawing())
    }

    pub fn columns(&self) -> Columns {
        of_kind!(self, piece => piece.columns())
    }
}
