//! Contact detection: which bodies may touch (`broad`), and where and how deep (`narrow`).

pub mod broad;
pub mod detect;
pub mod narrow;

pub use broad::BroadPhase;
pub use narrow::{Hint, MAX_POINTS, Patch, PatchPoint, collide};
