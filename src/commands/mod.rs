//! What the program does: `breccia run`, `spread`, `solve`, `info`, `export` and `report`.

pub mod inspect;
pub mod report;
pub mod run;
pub mod solve;
pub mod spread;
