//! What ranks send each other in a step: copies of bodies, colours, velocities, contacts of hubs. All use of
//! [`Comm`](decomposition::Comm) in the physics of a step; nothing of shapes or files.

pub mod balance;
pub mod colours;
pub mod halo;
pub mod hub;
pub mod messages;
pub mod parcel;
pub mod ranks;
pub mod whole;

pub use balance::DecompositionOptions;
pub use colours::{Connected, Connection};
pub use halo::{Halo, HaloMemory};
pub use hub::{Gathered, OWNER};
pub use ranks::Ranks;
pub use whole::Dump;
