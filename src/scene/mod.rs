//! All state that a run carries from step to step: bodies, materials, impulses. No algorithms.

pub mod body;

pub use body::{Body, BodyId, Motion};
