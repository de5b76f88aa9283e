//! A run: steps one after the other, and around them progress, files, signals and the account at the end.

mod checkpoints;
mod contents;
mod describe;
pub mod dump;
mod error;
mod files;
mod force_check;
mod force_control;
mod guard;
mod job;
mod launch;
mod lock;
mod phases;
mod progress;
mod restart;
mod series;
mod signals;
mod statistics;
mod summary;
mod time_limit;

pub use describe::describe;
pub use error::RunError;
pub use files::NAMES as FILE_NAMES;
pub use force_check::ForceError;
pub use job::{Job, default_directory, run_case};
pub use launch::{lonely, unlinked};
pub use phases::{PhaseTable, PhaseTime};
pub use progress::Log;
pub use restart::{Found, Restart, find};
pub use series::series_markdown;
pub use signals::Signal;
pub use statistics::{Spread, Statistics, WORRYING, Worst};
pub use summary::{Identity, Status, Summary};
pub use time_limit::parse_duration;

use crate::input::{Case, OnWriteError};
use crate::setup::{Inventory, Setup};
use crate::step::{Cost, Observation, StepError, StepReport, Stepper};
use decomposition::{Comm, watch};
use error::agree;
use files::{Account, FORCE_ERRORS_FILE, Files, Frames, OldFiles};
use force_check::ForceChecks;
use progress::Progress;
use std::path::{Path, PathBuf};
use std::time::Instant;
use time_limit::TimeLimit;

/// What the command line says about a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the files go.
    pub directory: PathBuf,
    /// Steps to make, instead of the case's duration.
    pub steps: Option<u64>,
    /// Simulated time at which to end, instead of the case's duration, s.
    pub until: Option<f64>,
    /// A second place for the summary.
    pub summary: Option<PathBuf>,
    /// Whether results of another case, or of a run that could be continued, may be replaced.
    pub overwrite: bool,
    /// From where to continue.
    pub restart: Option<Restart>,
    /// Whether the physics may differ from that of the checkpoint.
    pub changed_case: bool,
    /// The case as text, with what the command line changed, for the final state.
    pub case_text: String,
    /// Steps whose contact problems are written as FCLib files.
    pub dump_problems: Vec<u64>,
    pub threads: usize,
    /// Whether ranks compare their copies of shared bodies after each sweep.
    pub verify: bool,
    /// Whether to go on where the program would refuse.
    pub force: bool,
    /// When the program began.
    pub begun: Instant,
    /// When the program has to have ended.
    pub ends_by: Option<Instant>,
}

/// How a run that did not fail has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Finished,
    Stopped(Signal),
    /// The time that the command line allows is nearly over.
    OutOfTime,
}

impl Ending {
    /// What the process returns; `breccia run --help` lists them.
    pub fn exit_code(self) -> u8 {
        match self {
            Ending::Finished => 0,
            Ending::Stopped(signal) => signal.exit_code(),
            Ending::OutOfTime => 6,
        }
    }
}

/// Collective: an error if there are ranks with another program or another case.
pub fn check_same(options: &Options, comm: &dyn Comm) -> Result<(), RunError> {
    let own = [env!("CARGO_PKG_VERSION"), &options.case_text].join("\n");
    let all = comm.all_gather(&xxhash_rust::xxh3::xxh3_128(own.as_bytes()).to_le_bytes());
    match all.iter().position(|hash| *hash != all[0]) {
        Some(rank) => Err(RunError::Different { rank }),
        None => Ok(()),
    }
}

/// Collective: steps a scene to its end and writes all files. After [`find`] has found a checkpoint, the
/// setup is that of the checkpoint.
pub fn run(
    case: &Case,
    setup: Setup,
    found: Option<&Found>,
    options: &Options,
    comm: &dyn Comm,
    log: &mut Log,
) -> Result<Ending, RunError> {
    let last_step = last_step(case, options)?;
    if setup.scene.state.step > last_step {
        let step = setup.scene.state.step;
        return Err(RunError::Options(format!(
            "the checkpoint is at step {step}, beyond the end of the run, step {last_step}"
        )));
    }
    let continued = found.filter(|found| found.same_run);
    if continued.is_some() && setup.scene.state.step == last_step && is_finished(options, comm) {
        log.say(&format!("the run has come to its end at step {last_step} already: nothing to do"));
        return Ok(Ending::Finished);
    }
    dump::check(&options.dump_problems, setup.scene.state.step, last_step)?;
    let listen =
        |source| RunError::Io { path: options.directory.clone(), action: "listen to signals for", source };
    // Before the summary says that a run is under way.
    agree(comm, signals::listen().map_err(listen))?;
    prepare_directory(case, options, continued, comm, log)?;
    let Setup { scene, machines, physics, solver, decomposition, inventory } = setup;
    let files = match continued {
        Some(Found { state, .. }) => {
            let (directory, at_end) = (&options.directory, scene.state.step == last_step);
            Files::resume(case, &scene, &machines, OldFiles { directory, comm, state, log, at_end })?
        }
        None => Files::create(&options.directory, case, &scene, &machines, comm)?,
    };
    let statistics = found.map(|found| files::statistics_at(&found.state)).transpose()?.flatten();
    let mut stepper = Stepper::with_machines(scene, machines, physics, solver, decomposition, comm);
    stepper.let_stop();
    guard::begin(&mut stepper, case, options, continued)?;
    stepper.set_regions(case.regions.iter().map(|region| region.bounds).collect());
    if options.verify {
        stepper.verify_copies();
    }
    let seconds_setup = options.begun.elapsed().as_secs_f64();
    let first_step = stepper.scene().state.step;
    describe::opening(log, case, &inventory, last_step - first_step.min(last_step));
    let progress = Progress::new(first_step, last_step);
    let mut run = Run {
        case,
        options,
        comm,
        log,
        inventory,
        stepper,
        files,
        progress,
        last_step,
        restarted_from: found.map(|_| first_step),
        statistics: statistics.unwrap_or_default(),
        observed: None,
        checks: None,
        solver,
        row_failure: None,
        overlap_is_known: false,
        rows_wait: false,
        saved: Instant::now(),
        limit: TimeLimit::new(options.ends_by),
        // Of a checkpoint at the very end nothing is left to be done but to name it.
        digest: continued.filter(|_| first_step == last_step).and_then(|found| found.state.digest()),
        output_seconds: 0.0,
        step_seconds: 0.0,
    };
    run.begin_checks(continued)?;
    run.complete(seconds_setup)
}

/// Collective: whether the results in the directory are those of a run that came to its end.
fn is_finished(options: &Options, comm: &dyn Comm) -> bool {
    let finished = || {
        let identity = summary::read_identity(&options.directory);
        identity.is_some_and(|identity| identity.status == Status::Finished)
            && options.directory.join("final.h5").exists()
    };
    let mut answer = vec![u8::from(comm.rank() == 0 && finished())];
    comm.broadcast(0, &mut answer);
    answer == [1]
}

fn last_step(case: &Case, options: &Options) -> Result<u64, RunError> {
    let (start, time_step) = (case.simulation.start_time, case.simulation.time_step);
    match (options.steps, options.until) {
        (Some(steps), _) => Ok(steps),
        (None, None) => Ok(case.step_count()),
        (None, Some(until)) => {
            let steps = ((until - start) / time_step).round();
            if (0.0..9e15).contains(&steps) {
                return Ok(steps as u64);
            }
            Err(RunError::Options(format!(
                "--until {until}: the case starts at {start} s and cannot end there"
            )))
        }
    }
}

/// Collective: makes the directory, and makes sure that nobody's results are lost.
fn prepare_directory(
    case: &Case,
    options: &Options,
    continued: Option<&Found>,
    comm: &dyn Comm,
    log: &mut Log,
) -> Result<(), RunError> {
    let directory = &options.directory;
    let identity = identity(case, options, comm, Status::Running);
    match continued {
        Some(found) => give_way(found, directory, comm, log)?,
        None => replace_results(&identity, options, comm, log)?,
    }
    // From the first moment the directory says whose it is.
    summary::write(&identity, &directory.join("summary.json"), comm)
}

/// Collective: what came after the checkpoint is no longer this run's future.
fn give_way(found: &Found, directory: &Path, comm: &dyn Comm, log: &mut Log) -> Result<(), RunError> {
    for name in checkpoints::set_aside_later(directory, found.state.header().step, comm)? {
        log.say(&format!("a later checkpoint is out of use: it is now {}", name.display()));
    }
    if comm.rank() == 0 && found.state.path() != directory.join("final.h5") {
        let _ = std::fs::remove_file(directory.join("final.h5"));
    }
    Ok(())
}

/// Collective: removes the results of an earlier run, unless they are worth asking for.
fn replace_results(
    identity: &Identity,
    options: &Options,
    comm: &dyn Comm,
    log: &mut Log,
) -> Result<(), RunError> {
    let directory = &options.directory;
    let checkpoints = checkpoints::steps(directory, comm);
    let prepare = || {
        let error = |source| RunError::Io { path: directory.clone(), action: "create the directory", source };
        std::fs::create_dir_all(directory).map_err(error)?;
        let found = summary::read_identity(directory);
        if let (Some(found), false) = (&found, options.overwrite) {
            if found.case != identity.case {
                let found = found.case.display().to_string();
                return Err(RunError::OtherCase { directory: directory.clone(), found });
            }
            if let (Some(step), true) = (checkpoints.first(), found.status != Status::Finished) {
                return Err(RunError::Unfinished { directory: directory.clone(), step: *step });
            }
        }
        Ok(found.is_some())
    };
    let replaced = agree(comm, if comm.rank() == 0 { prepare() } else { Ok(false) })?;
    if replaced {
        log.say(&format!("replacing the results of an earlier run in {}", directory.display()));
    }
    files::remove_old(directory, comm)
}

fn identity(case: &Case, options: &Options, comm: &dyn Comm, status: Status) -> Identity {
    Identity {
        status,
        version: env!("CARGO_PKG_VERSION").into(),
        case: std::fs::canonicalize(&case.file).unwrap_or_else(|_| case.file.clone()),
        title: case.title.clone(),
        ranks: comm.size(),
        threads: options.threads,
    }
}

/// What all ranks know at the end of a step.
struct Verdict {
    /// Why the run is to end here.
    stop: Option<Ending>,
    /// Rank 0 could not write a row of the series.
    row_failed: bool,
    show: bool,
    /// A checkpoint is due by the clock.
    save: bool,
}

struct Run<'a> {
    case: &'a Case,
    options: &'a Options,
    comm: &'a dyn Comm,
    log: &'a mut Log,
    inventory: Inventory,
    stepper: Stepper<'a>,
    files: Files<'a>,
    progress: Progress,
    last_step: u64,
    restarted_from: Option<u64>,
    statistics: Statistics,
    /// Of the step that has just been made, once somebody has asked.
    observed: Option<Observation>,
    checks: Option<ForceChecks>,
    /// How the case has contact problems solved.
    solver: crate::solve::Options,
    row_failure: Option<RunError>,
    /// A large overlap has been said.
    overlap_is_known: bool,
    /// Rows could not be written, and it has been said.
    rows_wait: bool,
    /// When the last checkpoint was written.
    saved: Instant,
    limit: TimeLimit,
    /// Of `final.h5`.
    digest: Option<String>,
    output_seconds: f64,
    step_seconds: f64,
}

impl Run<'_> {
    fn complete(mut self, seconds_setup: f64) -> Result<Ending, RunError> {
        let begun = Instant::now();
        let outcome = self.steps();
        let Run { case, options, comm, log, inventory, stepper, files, statistics, digest, .. } = self;
        let collective_output = files.was_collective();
        // Whatever has failed, the other files are closed whole.
        let closed = watch::writing(|| files.close()).map_err(RunError::from);
        let closed = agree(comm, self.row_failure.map_or(Ok(()), Err).and(closed));
        let outcome = outcome.and_then(|ending| closed.map(|()| ending));

        let mut costs: Vec<(&str, Cost)> = stepper.timers().phases().collect();
        costs.push(("output", Cost { seconds: self.output_seconds, ..Default::default() }));
        let mut table = PhaseTable::gather(&costs, begun.elapsed().as_secs_f64(), comm);
        let mut seconds_steps = [self.step_seconds];
        comm.max_f64(&mut seconds_steps);
        table.steps = stepper.scene().state.step - self.restarted_from.unwrap_or(0);
        let observed = stepper.observe();
        let (status, message) = status(&outcome);
        let summary = Summary {
            identity: identity(case, options, comm, status),
            message,
            steps: statistics.steps,
            last_step: stepper.scene().state.step,
            restarted_from: self.restarted_from,
            time: stepper.physics().time(stepper.scene().state.step),
            bodies: inventory.bodies(),
            free_bodies: observed.bodies,
            contact_points: statistics.contact_points(),
            sweeps: statistics.sweeps(),
            residual: statistics.residual(),
            not_converged: statistics.not_converged,
            handed_over: statistics.handed_over,
            brought_home: statistics.brought_home,
            migrated: statistics.migrated,
            worst_penetration: statistics.penetration(),
            worst_overlap_share: statistics.overlap(),
            overlapping_steps: statistics.overlapping(),
            kinetic_energy: observed.all_kinetic_energy(),
            potential_energy: observed.all_potential_energy(),
            spring_energy: observed.spring_energy(),
            machine_energies: observed.machines,
            work: observed.work,
            energy_balance: observed.balance,
            force_errors: force_check::read(&options.directory.join(FORCE_ERRORS_FILE)),
            seconds_setup,
            seconds_steps: seconds_steps[0],
            seconds_total: table.total,
            nanoseconds_per_contact_point_and_sweep: statistics.nanoseconds_per_visit(table.seconds("solve")),
            phases: table.phases.clone(),
            collective_output,
            digest,
            peak_memory: summary::peak_memory(comm),
            groups: inventory.groups,
            gradings: inventory.gradings,
        };
        let kept = summary::write(&summary, &options.directory.join("summary.json"), comm);
        let copied = options.summary.as_ref().map_or(Ok(()), |path| summary::write(&summary, path, comm));
        describe::account(log, &summary, &table, &statistics, &options.directory);
        let ending = outcome?;
        kept.and(copied).map(|()| ending)
    }

    fn steps(&mut self) -> Result<Ending, RunError> {
        if self.restarted_from.is_none() && self.files.picture_is_due(self.stepper.scene().state.step) {
            self.add_picture()?;
        }
        while self.stepper.scene().state.step < self.last_step {
            self.limit_fallback();
            self.check_forces()?;
            let step = self.stepper.scene().state.step + 1;
            if self.options.dump_problems.contains(&step) {
                self.stepper.keep_problem();
            }
            let begun = Instant::now();
            let report = match self.stepper.step() {
                Err(StepError::Stopped { signal }) => return self.broken_off(signal),
                Err(StepError::TooFast { body, speed }) => return Err(self.exploded(body, speed)),
                Err(StepError::TooMuchEnergy(found)) => return Err(self.too_much_energy(*found)),
                made => made.map_err(|source| self.failed(source))?,
            };
            self.step_seconds += begun.elapsed().as_secs_f64();
            if self.options.dump_problems.contains(&step) {
                let directory = &self.options.directory;
                if let Some(text) = dump::write(&mut self.stepper, &report, directory, self.comm)? {
                    self.log.say(&text);
                }
            }
            self.statistics.add(&report);
            self.name_overlap(&report);
            self.observed = None;
            let verdict = self.agree_on_step(&report);
            if verdict.row_failed {
                let own = self.row_failure.take().map_or(Ok(()), Err);
                agree(self.comm, own).or_else(|error| self.let_pass_rows(error))?;
            }
            self.write(&report)?;
            if verdict.show {
                let kinetic_energy = self.observed().all_kinetic_energy();
                self.progress.show(self.log, &report, kinetic_energy, &self.statistics);
                let flushed = self.timed(|run| run.files.flush_rows());
                self.keep_row_failure(flushed);
            }
            if report.step == self.last_step {
                break; // in any case: the end is saved below, with its last picture
            }
            if let Some(ending) = verdict.stop {
                return self.end_early(ending, "");
            }
            if verdict.save || self.is_save_step(report.step) {
                self.save(None).or_else(|error| self.let_pass(error))?;
            }
        }
        if self.digest.is_none() || self.restarted_from != Some(self.last_step) {
            let before = self.timed(|run| run.files.frames())?;
            self.add_picture()?;
            self.save(Some(before))?;
        }
        self.files.name_final(self.last_step)?;
        Ok(Ending::Finished)
    }

    /// A signal has come during a solve, and the state is that before the step.
    fn broken_off(&mut self, signal: usize) -> Result<Ending, RunError> {
        let signal = Signal::decode(signal as f64).unwrap_or(Signal::Terminate);
        self.end_early(Ending::Stopped(signal), ", the one begun is taken back")
    }

    /// Collective: the state is saved, as at the end.
    fn end_early(&mut self, ending: Ending, how: &str) -> Result<Ending, RunError> {
        let step = self.stepper.scene().state.step;
        let why = status(&Ok(ending)).1.unwrap_or_default();
        self.log.say(&format!("{why}: ending after step {step}{how}"));
        self.save(None)?;
        self.files.name_final(step)?;
        Ok(ending)
    }

    fn is_save_step(&self, step: u64) -> bool {
        self.case.checkpoint.steps.is_some_and(|steps| step.is_multiple_of(steps))
    }

    /// Collective: writes a checkpoint, and lets the oldest go.
    fn save(&mut self, before: Option<Frames>) -> Result<(), RunError> {
        let begun = Instant::now();
        let digest = self.timed(|run| {
            let account = Account {
                case_text: &run.options.case_text,
                listing: &run.case.listing,
                statistics: &run.statistics,
                gradings: &run.inventory.gradings,
                control: run.checks.as_ref().map(|checks| checks.control),
            };
            run.files.write_checkpoint(&run.stepper, &account, before)
        });
        self.saved = Instant::now();
        self.digest = Some(digest?);
        let step = self.stepper.scene().state.step;
        checkpoints::thin_out(&self.options.directory, step, self.case.checkpoint.keep, self.comm);
        self.limit.saved(begun.elapsed().as_secs_f64());
        Ok(())
    }

    /// Collective, as the error is.
    fn add_picture(&mut self) -> Result<(), RunError> {
        let known = self.restarted_from != Some(self.stepper.scene().state.step);
        let added = self.timed(|run| run.files.add_picture(&run.stepper, known));
        added.map_err(RunError::from).or_else(|error| self.let_pass(error))
    }

    /// What could not be written ends the run, unless the case wants it to continue.
    fn let_pass(&mut self, error: RunError) -> Result<(), RunError> {
        match self.case.output.on_write_error {
            OnWriteError::Stop => Err(error),
            OnWriteError::Continue => {
                let step = self.stepper.scene().state.step;
                self.log.say(&format!("warning: after step {step}: {error}; the run goes on"));
                Ok(())
            }
        }
    }

    /// The same for rows, which wait in memory: said once.
    fn let_pass_rows(&mut self, error: RunError) -> Result<(), RunError> {
        if std::mem::replace(&mut self.rows_wait, true) { Ok(()) } else { self.let_pass(error) }
    }

    /// A step that could not be made, on all ranks.
    /// Collective.
    fn failed(&mut self, source: StepError) -> RunError {
        let step = self.stepper.scene().state.step + 1;
        let saved = self.save_start();
        let place = crate::setup::place_of(self.case, &source);
        RunError::Step { step, time: self.stepper.physics().time(step), place, source: source.into(), saved }
    }

    /// Collective: one small reduction a step. What one rank has found, all act upon at the same step.
    fn agree_on_step(&mut self, report: &StepReport) -> Verdict {
        self.limit.stepped();
        let due = self.comm.rank() == 0 && self.progress.is_due(self.log, report.step);
        let mut words = [
            signals::noted(),
            f64::from(u8::from(self.row_failure.is_some())),
            f64::from(u8::from(due)),
            f64::from(u8::from(self.comm.rank() == 0 && self.save_is_due())),
            f64::from(u8::from(self.comm.rank() == 0 && self.limit.is_near())),
        ];
        self.comm.max_f64(&mut words);
        let [signal, row_failed, show, save, late] = words;
        let signal = Signal::decode(signal).map(Ending::Stopped);
        Verdict {
            stop: signal.or((late > 0.0).then_some(Ending::OutOfTime)),
            row_failed: row_failed > 0.0,
            show: show > 0.0,
            save: save > 0.0,
        }
    }

    /// By the clock of this rank: rank 0 decides for all.
    fn save_is_due(&self) -> bool {
        let minutes = self.case.checkpoint.minutes;
        let old = minutes > 0.0 && self.saved.elapsed().as_secs_f64() >= 60.0 * minutes;
        old || self.limit.wants_measure()
    }

    fn write(&mut self, report: &StepReport) -> Result<(), RunError> {
        if self.files.row_is_due(report.step) {
            let observed = self.observed().clone();
            let added = self.timed(|run| run.files.add_row(report, &observed, run.stepper.machines()));
            self.keep_row_failure(added);
        }
        if self.files.picture_is_due(report.step) {
            self.add_picture()?;
        }
        Ok(())
    }

    /// Collective the first time in a step.
    fn observed(&mut self) -> &Observation {
        self.observed.get_or_insert_with(|| self.stepper.observe())
    }

    /// Only rank 0 writes the series: the others learn of its failure at the end of the next step.
    fn keep_row_failure(&mut self, result: Result<(), crate::output::OutputError>) {
        if let Err(error) = result {
            self.row_failure.get_or_insert(error.into());
        }
    }

    fn timed<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let begun = Instant::now();
        // One rank waits for nobody, however slow its disk is.
        let result = if self.comm.size() > 1 { watch::writing(|| work(self)) } else { work(self) };
        self.output_seconds += begun.elapsed().as_secs_f64();
        result
    }
}

fn status(outcome: &Result<Ending, RunError>) -> (Status, Option<String>) {
    match outcome {
        Ok(Ending::Finished) => (Status::Finished, None),
        Ok(Ending::Stopped(signal)) => (Status::Stopped, Some(format!("stopped by {}", signal.name()))),
        Ok(Ending::OutOfTime) => (Status::Stopped, Some("stopped by --max-time".into())),
        Err(error) => (Status::Failed, Some(error.to_string())),
    }
}
