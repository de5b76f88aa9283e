//! Results in files: frames that ParaView opens, contact networks, time series, the final state. The only
//! user of hdf5.

pub mod contacts;
pub mod digest;
pub mod error;
pub mod fclib;
pub mod fields;
mod hyperslab;
pub mod image;
mod pack;
mod parts;
mod piece;
mod polydata;
pub mod ranks;
pub mod reader;
pub mod restore;
#[cfg(test)]
mod samples;
pub mod scene_file;
mod seal;
pub mod series;
mod space;
pub mod state;
#[cfg(test)]
mod tests;

pub use contacts::{ContactDrawing, ContactFile, ContactOptions, ContactRow};
pub use digest::Digest;
pub use error::OutputError;
pub use fields::{BodyField, BodyFile, BodyOptions, Spheres};
pub use image::Image;
pub use piece::Precision;
pub use ranks::share;
pub use restore::{StateFile, digest};
pub use scene_file::{SceneFile, SceneRow, SceneState};
pub use series::{Column, ColumnKind, Series, SeriesPosition};
pub use state::{Attachments, ImpulseRow, StateHeader, write_checkpoint, write_state};
