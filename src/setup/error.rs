//! What can go wrong between a case that reads well and a scene that can be stepped.

use crate::geometry::MassError;
use crate::multibody::{ModelError, MultibodyError};
use crate::output::OutputError;
use crate::step::StepError;
use decomposition::Comm;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// All mistakes of the file.
    #[error("{0}")]
    Case(String),
    #[error("{name:?}: {problem}")]
    Mass { name: String, problem: MassError },
    #[error("machine {machine:?}: {problem}")]
    MachineModel { machine: String, problem: ModelError },
    /// A mechanism that cannot be assembled, for instance.
    #[error("{}{problem}", match place { Some(place) => format!("{place}: "), None => format!("machine {machine:?}: ") })]
    Machine {
        machine: String,
        /// File, line and key of the cut that it is about.
        place: Option<String>,
        problem: MultibodyError,
    },
    /// Forces that would blow up.
    #[error("{}{problem}", place.as_ref().map_or(String::new(), |place| format!("{place}: ")))]
    Unstable {
        /// File, line and key of the force.
        place: Option<String>,
        problem: Box<StepError>,
    },
    /// A generator whose numbers do not go together.
    #[error("grains {grains:?}: {problem}")]
    Generator { grains: String, problem: String },
    #[error("grains {grains:?}: body {index} of {}: {problem}", file.display())]
    SceneBody { grains: String, file: PathBuf, index: u64, problem: String },
    #[error("[start]: {0}")]
    Start(String),
    #[error("restart: {0}")]
    Restart(String),
    #[error(transparent)]
    File(#[from] OutputError),
    #[error(
        "the start overlaps: {first} and {second} penetrate by {depth:.3e} m, more than the {tolerance:.1e} m that is let pass{}\n  \
         move them apart, or make the region of the grains smaller by the size of a grain",
        match more { 0 => String::new(), more => format!(" ({more} more like this)") }
    )]
    Overlap { first: String, second: String, depth: f64, tolerance: f64, more: u64 },
    #[error(
        "this needs about {:.1} GB on each of the {beside} rank(s) of a node once it is packed densely ({:.1} GB while it is loose), {:.1} GB together, \
         and {limit} leaves {:.1} GB there{}\n  \
         breccia run goes on all the same with --force",
        *each as f64 / 1e9,
        *loose as f64 / 1e9,
        *each as f64 * *beside as f64 / 1e9,
        *there as f64 / 1e9,
        match nodes {
            Some(1) | None => String::new(),
            Some(nodes) => format!("; {nodes} such nodes with as many ranks each would do"),
        }
    )]
    Memory { each: u64, loose: u64, beside: u64, there: u64, limit: String, nodes: Option<u64> },
    /// Another rank found this; the message is its own.
    #[error("rank {rank}: {message}")]
    OtherRank { rank: usize, message: String },
}

/// Collective: an error on every rank if there was one on any; all but the ranks that have one of their own
/// get that of the lowest rank that has.
pub fn agree<T>(comm: &dyn Comm, own: Result<T, SetupError>) -> Result<T, SetupError> {
    let message = own.as_ref().err().map(ToString::to_string).unwrap_or_default();
    let all = comm.all_gather(message.as_bytes());
    let failed = all.iter().position(|message| !message.is_empty());
    match (own, failed) {
        (Ok(_), Some(rank)) => {
            let message = String::from_utf8_lossy(&all[rank]).into_owned();
            Err(SetupError::OtherRank { rank, message })
        }
        (own, _) => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use decomposition::threads;

    #[test]
    fn the_error_of_one_rank_is_the_error_of_all() {
        let said = threads::run(3, |comm| {
            let own = match comm.rank() {
                1 => Err(SetupError::Start("no such file".into())),
                rank => Ok(rank),
            };
            agree(comm, own).map_err(|error| error.to_string())
        });
        let other = Err("rank 1: [start]: no such file".to_string());
        assert_eq!(said, [other.clone(), Err("[start]: no such file".to_string()), other]);
        assert!(threads::run(2, |comm| agree(comm, Ok(())).is_ok()).into_iter().all(|good| good));
    }
}
