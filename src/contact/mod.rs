//! Contact detection: which bodies may touch (`broad`), and where and how deep (`narrow`).

pub mod broad;

pub use broad::BroadPhase;
