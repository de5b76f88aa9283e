//! Words: enumerations that a user names, and the word that was meant.

mod choice;
mod suggest;

pub use choice::{Choice, Choose};
pub(crate) use choice::{choices, choices_or_none};
pub(crate) use suggest::{closest, one_of};
