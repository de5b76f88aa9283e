//! The contact problem and its solution: bodies with masses and free velocities, manifolds with frames and
//! arms; nothing of shapes, time or files.
//!
//! [`Problem`] (what) → [`colour`] (in which order) → [`Sweep`] (the coloured Gauss–Seidel) → [`residual`]
//! (how good). Contacts of machines stand beside it in a [`Hub`].

mod accelerate;
pub mod assembled;
mod block;
pub mod colour;
mod end;
pub mod hub;
mod kernel;
pub mod problem;
pub mod residual;
mod scale;
pub mod solver;
pub mod sweep;
pub mod team;

pub use block::Blocks;
pub use colour::Colours;
pub use end::{End, MachineSlot, delassus_of_body, jacobian_in_frame};
pub use hub::{Hub, HubMachine, HubManifold, HubPoint};
pub use problem::{Inertia, Manifold, Point, Problem, Stretch, Twist};
pub use residual::{Measure, Partial, Residual, Ruler};
pub use solver::{
    Acceleration, Alone, Fallback, HubSolution, Interface, LocalLaw, Options, Solution, Velocities, solve,
    solve_in,
};
pub use sweep::Sweep;
pub use team::Team;
