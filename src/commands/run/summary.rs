//! `summary.json`: what scripts need to know about a run.

use super::error::{RunError, agree};
use super::force_check::ForceError;
use super::phases::PhaseTime;
use super::statistics::{Spread, Worst};
use crate::setup::{AchievedGrading, Group};
use decomposition::Comm;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Under way, or killed.
    Running,
    Finished,
    /// By a signal; all files are whole.
    Stopped,
    /// Ended by an error; see `message`.
    Failed,
}

/// Which run the files of a directory belong to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    pub status: Status,
    /// Version of breccia.
    pub version: String,
    /// The case file, from the root of the file system.
    pub case: PathBuf,
    pub title: String,
    pub ranks: usize,
    pub threads: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    #[serde(flatten)]
    pub identity: Identity,
    /// Why the run ended before its time.
    pub message: Option<String>,
    /// Made in this run, before restarts too, and the number of the last one.
    pub steps: u64,
    pub last_step: u64,
    /// The step from which this process went on; seconds, phases and memory are those since then.
    pub restarted_from: Option<u64>,
    /// Simulated, s.
    pub time: f64,
    pub bodies: u64,
    pub free_bodies: u64,
    pub contact_points: Spread,
    pub sweeps: Spread,
    /// Natural-map error.
    pub residual: Worst,
    pub not_converged: u64,
    /// Steps that `solver.fallback` got, and those of them that it brought to the tolerance.
    pub handed_over: u64,
    pub brought_home: u64,
    /// Bodies that changed ranks, over all steps.
    pub migrated: u64,
    /// m.
    pub worst_penetration: Worst,
    /// Deepest overlap by the size of the smaller body.
    pub worst_overlap_share: f64,
    /// Steps in which that was above a tenth.
    pub overlapping_steps: u64,
    /// Of free bodies and machines at the end, J.
    pub kinetic_energy: f64,
    /// Of their weight, zero at the origin, J.
    pub potential_energy: f64,
    /// Of the springs of machines and contacts, J.
    pub spring_energy: f64,
    /// What machines have of these, J: kinetic, of weight and of springs.
    pub machine_energies: [f64; 3],
    /// J, since the start: of motions, forces and corrections.
    pub work: [f64; 3],
    /// J: what is left of the energy at the start and the work since; contacts take it up.
    pub energy_balance: f64,
    /// How well forces are known, if they were checked.
    pub force_errors: Vec<ForceError>,
    /// s, slowest rank.
    pub seconds_setup: f64,
    /// Of the steps alone, without output.
    pub seconds_steps: f64,
    pub seconds_total: f64,
    pub phases: Vec<PhaseTime>,
    /// Of the solve, on the slowest rank; none without contacts.
    pub nanoseconds_per_contact_point_and_sweep: Option<f64>,
    /// Whether HDF5 wrote all frames collectively.
    pub collective_output: bool,
    /// Of `final.h5`; none if the run failed.
    pub digest: Option<String>,
    /// Bytes, by rank; zero where the system does not say.
    pub peak_memory: Vec<u64>,
    pub groups: Vec<Group>,
    pub gradings: Vec<AchievedGrading>,
}

/// Collective: the most memory that each rank has had, bytes.
pub(super) fn peak_memory(comm: &dyn Comm) -> Vec<u64> {
    let all = comm.all_gather(&own_peak_memory().to_le_bytes());
    all.into_iter().map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or([0; 8]))).collect()
}

fn own_peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// Collective: rank 0 writes a JSON file, whole or not at all.
pub(super) fn write(value: &impl Serialize, path: &Path, comm: &dyn Comm) -> Result<(), RunError> {
    let written = if comm.rank() == 0 { write_alone(value, path) } else { Ok(()) };
    agree(comm, written)
}

fn write_alone(value: &impl Serialize, path: &Path) -> Result<(), RunError> {
    let error = |source| RunError::Io { path: path.to_path_buf(), action: "write", source };
    let text = serde_json::to_string_pretty(value).map_err(|source| error(source.into()))?;
    let mut aside = path.as_os_str().to_owned();
    aside.push(".tmp");
    std::fs::write(&aside, text + "\n").and_then(|()| std::fs::rename(&aside, path)).map_err(error)
}

/// The run whose results are in a directory, if there are any.
pub(super) fn read_identity(directory: &Path) -> Option<Identity> {
    let text = std::fs::read_to_string(directory.join("summary.json")).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_some_memory() {
        assert!(own_peak_memory() > 1 << 20);
    }
}
