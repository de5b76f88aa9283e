//! The reading side: what is in a file, frames, series. For inspection of results, on one rank.
//!
//! State files are read by [`super::StateFile`], which checks their seal first.

pub mod contents;
pub mod frames;
pub mod numbers;
pub mod reference;
pub mod series;

pub use contents::{Contents, DatasetInfo, is_hdf5, is_state};
pub use frames::{CellKind, Frame, FrameArray, FrameFile};
pub use numbers::Numbers;
pub use reference::{reference_points, unit_sphere};
pub use series::read_series;

use super::error::OutputError;
use hdf5::File;
use std::path::Path;

/// Opens for reading, without asking for a lock: a file whose writer is still at work shows what was flushed.
fn open_file(path: &Path) -> Result<File, OutputError> {
    hdf5::silence_errors(true);
    // HDF5's own words for a missing file are long and do not name it.
    std::fs::metadata(path).map_err(OutputError::io(path, "open"))?;
    File::with_options()
        .with_fapl(|list| list.file_locking(false))
        .open(path)
        .map_err(OutputError::hdf5(path, "open"))
}
