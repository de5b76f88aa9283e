//! Looking at results: what is in a file (`breccia info`), and its numbers in other formats (`breccia
//! export`).
//!
//! Reads through `crate::output`, never writes into what it reads, and runs on one rank.

pub mod bodies;
pub mod error;
pub mod export;
mod export_files;
mod export_state;
pub mod info;
pub mod npz;
pub mod poses;
pub mod rows;
pub mod text_table;
pub mod vtu;

pub use error::InspectError;
