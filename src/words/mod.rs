//! Words: enumerations that a user names, and the word that was meant.

mod choice;
mod suggest;

pub(crate) use choice::choices;
pub use choice::{Choice, Choose};
pub(crate) use suggest::closest;
