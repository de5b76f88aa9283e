//! What the program does: `breccia run`, `solve`, `info`, `export` and `report`.

pub mod inspect;
pub mod report;
pub mod run;
pub mod solve;
