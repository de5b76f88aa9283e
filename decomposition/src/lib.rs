//! Who owns what, and how ranks talk: the only crate that knows MPI and METIS.
//!
//! It knows ids, positions, weights and bytes, never physics. The solver sees the [`Comm`] trait, with three
//! implementations: [`Solo`] (no MPI at all), [`World`] (MPI) and [`threads`] (ranks as threads of one process, for tests).

pub mod cells;
pub mod comm;
pub mod exact;
pub mod partition;
pub mod threads;
pub mod world;

pub use cells::Cells;
pub use comm::{Comm, Exchange, Message, Solo};
pub use exact::ExactSum;
pub use partition::Partition;
pub use world::{RawComm, World};
