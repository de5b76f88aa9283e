//! All state that a run carries from step to step: bodies, materials, impulses. No algorithms.

pub mod body;
pub mod impulses;
pub mod laws;

pub use body::{Anchor, Body, BodyId, Motion};
pub use impulses::{Impulses, ManifoldKey, StoredImpulse, StoredPoints};
pub use laws::{Activation, ContactLaw, LawTable};

use crate::geometry::{Pose, Vec3};
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

/// What a rank holds of the simulated world.
#[derive(Clone, Default)]
pub struct Scene {
    /// Steps done since the beginning; the time is `start_time + step · time_step`.
    pub step: u64,
    /// Names of the `[[body]]` and `[[grains]]` of the case, by [`Body::group`].
    pub groups: Vec<String>,
    /// By [`Body::material`].
    pub materials: Vec<String>,
    pub laws: LawTable,
    /// By the index in [`Motion::Kinematic`].
    pub motions: Vec<Prescribed>,
    /// Fixed and kinematic bodies, ascending by id: the same on every rank.
    pub statics: Vec<Body>,
    /// The bodies of machines that have a shape, ascending by id. Every rank holds them; at the end of a step only the owner of the
    /// machines knows where they stand.
    pub machine_bodies: Vec<Body>,
    /// By the index in [`Motion::Machine`], which is the place in `machine_bodies`.
    pub machine_parts: Vec<MachinePart>,
    /// The free bodies that this rank owns, ascending by id.
    pub grains: Vec<Body>,
    /// Of the contacts whose home this rank owns.
    pub impulses: Impulses,
}

/// What the laws of motion need besides the scene.
#[derive(Clone)]
pub struct Physics {
    /// Simulated time at step 0, s.
    pub start_time: f64,
    /// h, s, > 0.
    pub time_step: f64,
    /// θ of (29)–(30), in [0.5, 1].
    pub theta: f64,
    /// Of time, m/s².
    pub gravity: Arc<dyn Fn(f64) -> Vec3 + Send + Sync>,
    /// Distance at which points are found, m; if none, 1 % of each body's size and what it may move in a step.
    pub contact_margin: Option<f64>,
    /// Whether the solve starts from the last step's impulses.
    pub warm_start: bool,
    /// Share of the penetration beyond `correction_slop` that is removed each step, in [0, 1]; 0 is off.
    pub penetration_correction: f64,
    /// Penetration that is left alone, m.
    pub correction_slop: f64,
    /// Overlap at the end of a step beyond which bodies are moved apart, m; 0 is off.
    pub penetration_limit: f64,
    /// How far a stone may move, by its radius, before its contacts with others are worked out anew: see [`crate::contact::anchor`]. 0: every step.
    pub patch_reuse: f64,
}

impl Physics {
    /// The time after `step` steps: never summed up, so that a restart has the same one.
    pub fn time(&self, step: u64) -> f64 {
        self.start_time + step as f64 * self.time_step
    }
}
