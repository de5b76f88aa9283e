//! Case files: every shipped one is right, mistakes are reported with line and key, and no text makes the
//! reader panic or hang.

mod fuzz;
mod machines;
mod mistakes;
mod shipped;
mod values;
