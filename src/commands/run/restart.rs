//! Finding the checkpoint from which a run continues, and making sure that it is one of this case.

use super::Options;
use super::checkpoints;
use super::error::RunError;
use super::progress::Log;
use crate::input::{Case, Listing, changes};
use crate::output::{OutputError, StateFile};
use decomposition::Comm;
use std::path::{Path, PathBuf};

/// From where a run is to continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The last good checkpoint of the output directory.
    Latest,
    /// The same; from the beginning if there is none.
    Auto,
    File(PathBuf),
}

impl std::str::FromStr for Restart {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "latest" => Restart::Latest,
            "auto" => Restart::Auto,
            path => Restart::File(path.into()),
        })
    }
}

/// Name of the attachment with the case, key by key.
pub(super) const LISTING: &str = "case";

/// Keys that tie steps to times: the step at which a run stands would mean another time.
const CLOCK: [&str; 2] = ["simulation.time_step", "simulation.start_time"];

/// A checkpoint that fits the case.
pub struct Found {
    pub state: StateFile,
    /// Whether it is one of the run whose results are in the output directory.
    pub(super) same_run: bool,
}

/// Collective: opens the wanted checkpoint; none if the run begins from the start.
pub fn find(
    case: &Case,
    options: &Options,
    comm: &dyn Comm,
    log: &mut Log,
) -> Result<Option<Found>, RunError> {
    let directory = &options.directory;
    let state = match &options.restart {
        None => return Ok(None),
        Some(Restart::File(path)) => StateFile::open(path, comm)?,
        Some(wanted) => match latest(directory, comm, log)? {
            Some(state) => state,
            None if *wanted == Restart::Auto => {
                log.say(&format!("no checkpoint in {}: from the beginning", directory.display()));
                return Ok(None);
            }
            None => return Err(RunError::NoCheckpoint { directory: directory.clone() }),
        },
    };
    let header = state.header();
    log.say(&format!(
        "restart from {} (step {}, t = {} s)",
        state.path().display(),
        header.step,
        header.time
    ));
    if header.code_version != env!("CARGO_PKG_VERSION") {
        let version = &header.code_version;
        log.say(&format!(
            "warning: it was written by breccia {version}; bits may differ from a run without a stop"
        ));
    }
    compare(case, options, &state, log)?;
    let mut same_run = vec![u8::from(checkpoints::belongs(state.path(), directory))];
    comm.broadcast(0, &mut same_run);
    Ok(Some(Found { state, same_run: same_run == [1] }))
}

/// Collective: the last checkpoint that can be read.
fn latest(directory: &Path, comm: &dyn Comm, log: &mut Log) -> Result<Option<StateFile>, RunError> {
    let steps = checkpoints::steps(directory, comm);
    let mut problem = None;
    for step in &steps {
        match StateFile::open(&checkpoints::path(directory, *step), comm) {
            Ok(state) => return Ok(Some(state)),
            Err(error) => {
                log.say(&format!("warning: {error}; trying the checkpoint before it"));
                problem = Some(error);
            }
        }
    }
    match problem {
        // Beginning anew would remove what somebody may still want to rescue.
        Some(error) => Err(RunError::NoGoodCheckpoint { directory: directory.to_path_buf(), error }),
        None => Ok(None),
    }
}

/// Refuses another case, or says what is different.
fn compare(case: &Case, options: &Options, state: &StateFile, log: &mut Log) -> Result<(), RunError> {
    let path = state.path();
    let unreadable = |error: serde_json::Error| OutputError::Damaged {
        path: path.to_path_buf(),
        problem: format!("its case cannot be read: {error}"),
    };
    let old: Option<Listing> = match state.attachment(LISTING)? {
        Some(text) => Some(serde_json::from_slice(&text).map_err(unreadable)?),
        None => None,
    };
    let Some(old) = old else {
        if options.changed_case {
            log.say(&format!("warning: {} does not say which case it is of", path.display()));
            return Ok(());
        }
        return Err(RunError::UnknownCase { path: path.to_path_buf() });
    };
    let changes = changes(&old, &case.listing);
    if let Some(clock) = changes.iter().find(|change| CLOCK.contains(&change.key.as_str())) {
        return Err(RunError::ChangedClock { change: clock.to_string() });
    }
    if changes.is_empty() {
        return Ok(());
    }
    let list: String = changes.iter().map(|change| format!("\n  {change}")).collect();
    if !options.changed_case {
        return Err(RunError::ChangedCase { path: path.to_path_buf(), list });
    }
    log.say(&format!("the case has changed since the checkpoint:{list}"));
    for change in &changes {
        let of_the_start = ["grains.", "start."].iter().any(|begin| change.key.starts_with(begin));
        if of_the_start {
            log.say(&format!("warning: {} has no effect: free bodies come from the checkpoint", change.key));
        }
    }
    Ok(())
}
