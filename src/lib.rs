//! breccia: machines working in granular media, by non-smooth contact dynamics.
//!
//! The rooms, and what each never touches, are listed in `docs/architecture.md`.

pub mod commands;
pub mod contact;
pub mod exchange;
pub mod formula;
pub mod geometry;
pub mod input;
pub mod lanes;
pub mod law;
pub mod machine;
pub mod multibody;
pub mod output;
pub mod scene;
pub mod setup;
pub mod solve;
pub mod step;
pub mod words;
