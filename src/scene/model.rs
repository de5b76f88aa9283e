//! What never changes in a run.

use super::laws::LawTable;
use crate::geometry::Pose;
use crate::multibody::BodyIndex;
use std::sync::Arc;

/// A prescribed motion: the pose of the body at a time, whatever pushes it.
pub type Prescribed = Arc<dyn Fn(f64) -> Pose + Send + Sync>;

/// Which body of which machine a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachinePart {
    /// In the order of the case.
    pub machine: u32,
    pub body: BodyIndex,
    /// Its place among the contact bodies of the machine; none if it is only drawn.
    pub slot: Option<u32>,
}

/// Names, laws and motions: the same on every rank, and in every step.
#[derive(Clone, Default)]
pub struct Model {
    /// Names of the `[[body]]` and `[[grains]]` of the case, by [`Body::group`](super::Body::group).
    pub groups: Vec<String>,
    /// By [`Body::material`](super::Body::material).
    pub materials: Vec<String>,
    pub laws: LawTable,
    /// By the index in [`Motion::Kinematic`](super::Motion::Kinematic).
    pub motions: Vec<Prescribed>,
    /// By the index in [`Motion::Machine`](super::Motion::Machine), which is the place in
    /// [`State::machine_bodies`](super::State).
    pub machine_parts: Vec<MachinePart>,
}
