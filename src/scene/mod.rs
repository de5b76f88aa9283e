//! All state that a run carries from step to step: bodies, materials, impulses. No algorithms.

pub mod body;
pub mod impulses;

pub use body::{Body, BodyId, Motion};
pub use impulses::{Impulses, ManifoldKey, StoredImpulse};
