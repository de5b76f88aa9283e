//! Articulated mechanisms in relative coordinates, reduced by coordinate partitioning.
//!
//! A constant [`Model`] (tree of bodies and joints, cuts, force elements; made by [`MultibodyBuilder`]), its
//! state [`Coordinates`], and scratch [`Data`]. [`Multibody`] joins the three and offers the calls of one
//! time step of [Docquier2020, Algorithm 1]:
//!
//! ```text
//! machine.advance_positions((1 - theta) * h);        (29)
//! machine.close_loops()?;                            (16)
//! let operators = machine.reduce(t, h)?;             (20)-(27), (28) without contacts
//! ...contact solve on operators...
//! machine.finish(&v_u_new)?;                         (30), (16), (20)
//! ```
//!
//! Symbols: `q` positions (nq), `v` velocities (nv), `u`/`v` as indices: independent and dependent
//! velocities, `nu` the number of independent ones. All world vectors; twists and Jacobians hold the linear
//! part first.

mod assembly;
mod builder;
mod closure;
mod cut;
mod dense;
mod dynamics;
mod energy;
mod error;
mod force;
mod joint;
mod kinematics;
mod law;
mod model;
mod operators;
mod partition;
mod reactions;
mod reduction;
mod repartition;
mod spatial;
mod spec;
mod stepping;
mod tangent;

#[cfg(test)]
mod tests;

pub use builder::MultibodyBuilder;
pub use closure::Closure;
pub use error::{ModelError, MultibodyError};
pub use joint::JointKind;
pub use kinematics::Data;
pub use law::{Law, LawInput, MotionSample, PrescribedMotion};
pub use model::{BodyIndex, Coordinates, Model, PointRef};
pub use operators::{BodyOperators, PointMap, ReducedOperators, RigidMap};
pub use partition::{Partition, Partitioning};
pub use reduction::Reduced;
pub use spatial::{Twist, Wrench};
pub use spec::{BodySpec, CutKind, CutSpec, Direction, ForceSpec, JointSpec, LinkLaw};
pub use stepping::{BodyImpulse, ContactVelocity, ForceEvaluation, Multibody, MultibodyState};
pub use tangent::{Amplitudes, Tangents};
