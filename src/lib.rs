//! breccia: machines working in granular media, by non-smooth contact dynamics.
//!
//! The rooms, and what each never touches, are listed in `docs/architecture.md`.

pub mod contact;
pub mod geometry;
pub mod input;
pub mod inspect;
pub mod machine;
pub mod mechanism;
pub mod output;
pub mod report;
pub mod run;
pub mod scene;
pub mod setup;
pub mod solve;
pub mod solve_command;
pub mod step;
