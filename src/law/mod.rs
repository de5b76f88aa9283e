//! The laws of a contact, one folder each: what its impulse consists of, how a visit changes it, what satisfies it exactly, and how far
//! a state is from it. Nothing of time, bodies or files.

pub mod coulomb;
