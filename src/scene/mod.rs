//! The simulated world, without algorithms: a [`Model`] that never changes, and a [`State`] that steps carry
//! on.

pub mod body;
pub mod impulses;
pub mod laws;
mod model;
mod physics;
mod scheme;
mod state;

pub use body::{Anchor, Body, BodyId, Motion};
pub use impulses::{Impulses, ManifoldKey, StoredImpulse, StoredPoints};
pub use laws::{Activation, ContactLaw, LawTable, Normal, Spring, SpringAt, Stiffness};
pub use model::{MachinePart, Model, Prescribed};
pub use physics::Physics;
pub use scheme::Scheme;
pub use state::State;

/// What a rank holds of the simulated world.
#[derive(Clone, Default)]
pub struct Scene {
    pub model: Model,
    pub state: State,
}
