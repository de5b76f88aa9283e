//! Pure shape mathematics: no scene, no contact law, no files.

pub mod convex;
pub mod curve;
pub mod four;
pub mod grading;
pub mod hull;
pub mod icosphere;
pub mod mass;
pub mod mesh_file;
pub mod packing;
pub mod pose;
pub mod random;
pub mod shape;
pub mod share;
pub mod sieve;
pub mod stone;

pub use convex::{Columns, Convex, Drawing, Edge, Face, Polyhedron, Primitive};
pub use curve::place_on_curve;
pub use grading::{EN_13450_A, Grading, GradingError, Passing, PassingLimit, SizeDistribution};
pub use hull::{HullError, convex_hull};
pub use mass::{MassError, MassProperties, mass_properties};
pub use mesh_file::{MeshError, MeshFile, Place};
pub use packing::{Overflow, PackingError, place};
pub use pose::{Aabb, Pose};
pub use random::Random;
pub use shape::{Part, Shape};
pub use sieve::sieve_size;
pub use stone::{Ratio, StoneError, StoneParameters, stone};

pub type Vec3 = nalgebra::Vector3<f64>;
pub type Mat3 = nalgebra::Matrix3<f64>;
pub type Quat = nalgebra::UnitQuaternion<f64>;
