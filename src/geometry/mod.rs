//! Pure shape mathematics: no scene, no contact law, no files.

pub mod hull;
pub mod pose;
pub mod shape;

pub use hull::{HullError, convex_hull};
pub use pose::{Aabb, Pose};
pub use shape::{Convex, Edge, Face, Part, Polyhedron, Shape};

pub type Vec3 = nalgebra::Vector3<f64>;
pub type Mat3 = nalgebra::Matrix3<f64>;
pub type Quat = nalgebra::UnitQuaternion<f64>;
