//! How a run can end before its time, and the exit code of each.

use super::lock::Holder;
use crate::output::OutputError;
use crate::setup::SetupError;
use crate::step::StepError;
use decomposition::Comm;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("{0}")]
    Options(String),
    #[error(
        "{}: start.from: {} is not there{}",
        case.display(),
        from.display(),
        match maker {
            Some(maker) => format!("; {} makes it: run that first, or let --prepare do it", maker.display()),
            None => ", and no case beside this one has the name of its directory; run the case that makes it first".into(),
        }
    )]
    NoStart { case: PathBuf, from: PathBuf, maker: Option<PathBuf> },
    #[error(
        "rank {rank} has another version of breccia or another case than rank 0; all ranks need the same files"
    )]
    Different { rank: usize },
    #[error(
        "{} holds results of another case ({found}); choose another --out, or allow it with --overwrite",
        directory.display()
    )]
    OtherCase { directory: PathBuf, found: String },
    #[error(
        "{} holds a run that has not come to its end, with a checkpoint at step {step}: \
         go on with --restart latest, or begin anew with --overwrite",
        directory.display()
    )]
    Unfinished { directory: PathBuf, step: u64 },
    #[error(
        "another run works in {}: {holder}\n  \
         this one ends without having touched anything; if that run is gone for sure, remove {}",
        path.parent().unwrap_or(path).display(),
        path.display()
    )]
    InUse {
        /// Of the lock.
        path: PathBuf,
        holder: Box<Holder>,
    },
    #[error("{} has no checkpoint; begin without --restart, or with --restart auto", directory.display())]
    NoCheckpoint { directory: PathBuf },
    #[error(
        "none of the checkpoints in {} can be used; the oldest: {error}\n  \
         begin anew with --overwrite and without --restart",
        directory.display()
    )]
    NoGoodCheckpoint { directory: PathBuf, error: OutputError },
    #[error(
        "the case is not the one of {}:{list}\n  allow this with --changed-case, or begin a new run that takes its bodies with [start]",
        path.display()
    )]
    ChangedCase { path: PathBuf, list: String },
    #[error(
        "{change}: a run cannot go on with another clock; begin a new one that takes the bodies of the checkpoint with [start]"
    )]
    ChangedClock { change: String },
    #[error("{} does not say which case it is of; allow this with --changed-case", path.display())]
    UnknownCase { path: PathBuf },
    #[error(
        "step {step} (t = {time:?} s): {body} would move at {speed}, beyond the {limit:.3e} m/s of \
         simulation.maximum_speed: the run has exploded\n  \
         {saved}; a smaller time step, softer springs or a larger bound may help"
    )]
    TooFast { step: u64, time: f64, body: String, speed: String, limit: f64, saved: String },
    #[error(
        "step {step} (t = {time:?} s): there would be {excess} J more than were put in, beyond the {allowed} J that are let \
         pass: the run has exploded ({place})\n  \
         {saved}; a smaller time step or softer springs may help"
    )]
    Energy {
        step: u64,
        time: f64,
        excess: String,
        allowed: String,
        /// Where it would be, and what would move fastest.
        place: String,
        saved: String,
    },
    #[error(
        "step {step} (t = {time:?} s): {}{source}\n  {saved}",
        place.as_ref().map_or(String::new(), |place| format!("{place}: "))
    )]
    Step {
        step: u64,
        time: f64,
        /// Of the part of the case that it is about.
        place: Option<String>,
        source: Box<StepError>,
        /// Where the state before is.
        saved: String,
    },
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("{}: cannot {action}: {source}", path.display())]
    Io { path: PathBuf, action: &'static str, source: std::io::Error },
    /// The message is that of the rank that failed.
    #[error("rank {rank}: {message}")]
    OtherRank { rank: usize, code: u8, message: String },
}

impl RunError {
    /// What the process returns; `breccia run --help` lists them.
    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::Setup(_)
            | RunError::Different { .. }
            | RunError::OtherCase { .. }
            | RunError::Unfinished { .. }
            | RunError::NoCheckpoint { .. }
            | RunError::NoGoodCheckpoint { .. }
            | RunError::ChangedCase { .. }
            | RunError::ChangedClock { .. }
            | RunError::UnknownCase { .. }
            | RunError::NoStart { .. } => 1,
            RunError::Options(_) => 2,
            RunError::TooFast { .. } | RunError::Energy { .. } | RunError::Step { .. } => 3,
            RunError::Output(_) | RunError::Io { .. } => 4,
            RunError::InUse { .. } => 5,
            RunError::OtherRank { code, .. } => *code,
        }
    }
}

/// Collective: an error on every rank if there was one on any.
pub(super) fn agree<T>(comm: &dyn Comm, own: Result<T, RunError>) -> Result<T, RunError> {
    let found = own.as_ref().err().map(|error| (error.exit_code(), error.to_string()));
    let bytes = found.map(|(code, message)| [&[code], message.as_bytes()].concat()).unwrap_or_default();
    let all = comm.all_gather(&bytes);
    let failed = all.iter().enumerate().find_map(|(rank, bytes)| Some((rank, bytes.split_first()?)));
    match (own, failed) {
        (Ok(_), Some((rank, (code, message)))) => {
            let message = String::from_utf8_lossy(message).into_owned();
            Err(RunError::OtherRank { rank, code: *code, message })
        }
        (own, _) => own,
    }
}
