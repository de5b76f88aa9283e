//! Machines of a case.

pub(super) mod build;
pub(super) mod case;
mod force_sections;
mod forces;
pub(super) mod include;
mod joints;
mod names;
pub(super) mod sections;
