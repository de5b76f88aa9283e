//! Who owns what, and how ranks talk: the only crate that knows MPI and METIS.
//!
//! It knows ids, positions, weights and bytes, never physics. The solver sees the [`Comm`] trait, with three
//! implementations: [`Solo`] (no MPI at all), [`World`] (MPI) and [`threads`] (ranks as threads of one
//! process, for tests). [`Metered`] counts what passes through any of them.

pub mod cells;
pub mod comm;
pub mod exact;
pub mod grid;
pub mod metered;
pub mod partition;
pub mod sigterm;
pub mod threads;
mod wait;
pub mod watch;
pub mod world;

pub use cells::Cells;
pub use comm::{Comm, Exchange, Message, Solo};
pub use exact::ExactSum;
pub use grid::{Grid, GridSum};
pub use metered::{Metered, Traffic};
pub use partition::Partition;
pub use world::{RawComm, World};
