//! Shapes, bodies and grains of a case.

pub(super) mod build;
pub(super) mod sections;
pub(super) mod shapes;
