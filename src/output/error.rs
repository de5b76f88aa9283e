//! What can go wrong when results are written or read.

use std::path::{Path, PathBuf};

/// Every variant names the file and what was being done to it.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error("{}: cannot {action}: {source}", path.display())]
    Hdf5 { path: PathBuf, action: String, source: hdf5::Error },
    #[error("{}: cannot {action}: {source}", path.display())]
    Io { path: PathBuf, action: String, source: std::io::Error },
    /// The file is there but does not hold what it should.
    #[error("{}: {problem}", path.display())]
    Damaged { path: PathBuf, problem: String },
    /// This rank did its part; the message of the rank that did not is on that rank.
    #[error("{}: cannot {action}: rank {rank} failed", path.display())]
    OtherRank { path: PathBuf, action: String, rank: usize },
    #[error("{}: not written: {needed} bytes may be needed, the disk has {free}", path.display())]
    DiskFull { path: PathBuf, needed: u64, free: u64 },
    #[error(
        "{}: not written: it may grow to {needed} bytes, and the system allows files of {limit} (`ulimit -f`)",
        path.display()
    )]
    FileLimit { path: PathBuf, needed: u64, limit: u64 },
    #[error("{}: {ranks} ranks that do not share an MPI communicator cannot write one file", path.display())]
    NoMpi { path: PathBuf, ranks: usize },
    /// The caller gave values that do not fit the file's columns.
    #[error("{}: {problem}", path.display())]
    Misuse { path: PathBuf, problem: String },
}

impl OutputError {
    pub(super) fn hdf5(path: &Path, action: impl Into<String>) -> impl FnOnce(hdf5::Error) -> Self {
        let (path, action) = (path.to_path_buf(), action.into());
        move |source| OutputError::Hdf5 { path, action, source }
    }

    pub(super) fn io(path: &Path, action: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let (path, action) = (path.to_path_buf(), action.into());
        move |source| OutputError::Io { path, action, source }
    }

    pub(super) fn damaged(path: &Path, problem: impl Into<String>) -> Self {
        OutputError::Damaged { path: path.to_path_buf(), problem: problem.into() }
    }

    pub(super) fn misuse(path: &Path, problem: impl Into<String>) -> Self {
        OutputError::Misuse { path: path.to_path_buf(), problem: problem.into() }
    }
}

/// Keeps the first error and lets the work continue.
///
/// Writing is collective: a rank that stopped at its first error would leave the others waiting for it for
/// ever. So every rank makes every call, keeps what went wrong, and [`super::ranks::agree`] gives it to all
/// of them at the end.
#[derive(Debug, Default)]
pub(super) struct FirstError(Option<OutputError>);

impl FirstError {
    pub fn keep<T>(&mut self, result: Result<T, OutputError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.0.get_or_insert(error);
                None
            }
        }
    }

    pub fn into_result(self) -> Result<(), OutputError> {
        self.0.map_or(Ok(()), Err)
    }
}
