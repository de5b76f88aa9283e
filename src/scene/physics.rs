//! What the laws of motion need besides bodies.

use super::Scheme;
use crate::geometry::Vec3;
use std::sync::Arc;

/// What the laws of motion need besides the scene.
#[derive(Clone)]
pub struct Physics {
    /// Simulated time at step 0, s.
    pub start_time: f64,
    /// h, s, > 0.
    pub time_step: f64,
    pub scheme: Scheme,
    /// Of time, m/s².
    pub gravity: Arc<dyn Fn(f64) -> Vec3 + Send + Sync>,
    /// Distance at which points are found, m; if none, 1 % of each body's size and what it may move in a
    /// step.
    pub contact_margin: Option<f64>,
    /// Whether the solve starts from the last step's impulses.
    pub warm_start: bool,
    /// Share of the penetration beyond `correction_slop` that is removed each step, in [0, 1]; 0 is off.
    pub penetration_correction: f64,
    /// Penetration that is left alone, m.
    pub correction_slop: f64,
    /// Overlap at the end of a step beyond which bodies are moved apart, m; 0 is off.
    pub penetration_limit: f64,
    /// How far a stone may move, by its radius, before its contacts with others are worked out anew: see
    /// [`crate::contact::anchor`]. 0: every step.
    pub patch_reuse: f64,
}

impl Physics {
    /// The time after `step` steps: never summed up, so that a restart has the same one.
    pub fn time(&self, step: u64) -> f64 {
        self.start_time + step as f64 * self.time_step
    }
}
