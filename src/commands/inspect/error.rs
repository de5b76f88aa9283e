//! What can go wrong when results are inspected.

use crate::output::OutputError;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("{}: cannot {action}: {source}", path.display())]
    Io { path: PathBuf, action: &'static str, source: std::io::Error },
    /// The file is there, but this cannot be done with it.
    #[error("{}: {problem}", path.display())]
    Unfit { path: PathBuf, problem: String },
}

impl InspectError {
    pub fn io(path: &Path, action: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| InspectError::Io { path, action, source }
    }

    pub fn unfit(path: &Path, problem: impl Into<String>) -> Self {
        InspectError::Unfit { path: path.to_path_buf(), problem: problem.into() }
    }
}
