//! `--dump-problem`: the contact problem of a step as FCLib files.

use super::error::{RunError, agree};
use crate::output::OutputError;
use crate::output::fclib::{FclibFile, FclibInfo, FclibProblem, FclibSolution, write_fclib};
use crate::step::{Dump, StepReport, Stepper};
use decomposition::Comm;
use std::path::{Path, PathBuf};

/// Contact points up to which the local form is written too: `W` then has up to some million blocks.
pub const MOST_LOCAL: usize = 10_000;

/// `problem-STEP-FORM.hdf5`.
pub fn path(directory: &Path, step: u64, form: &str) -> PathBuf {
    directory.join(format!("problem-{step}-{form}.hdf5"))
}

/// All wanted ones must be steps of the run.
pub fn check(steps: &[u64], first_step: u64, last_step: u64) -> Result<(), RunError> {
    match steps.iter().find(|&&step| step <= first_step || step > last_step) {
        None => Ok(()),
        Some(step) if first_step >= last_step => {
            Err(RunError::Options(format!("--dump-problem {step}: this run makes no step")))
        }
        Some(step) => Err(RunError::Options(format!(
            "--dump-problem {step}: this run makes the steps {} to {last_step}",
            first_step + 1
        ))),
    }
}

/// Collective: writes what the step has kept. Returns a line for the log.
pub fn write(
    stepper: &mut Stepper,
    report: &StepReport,
    directory: &Path,
    comm: &dyn Comm,
) -> Result<Option<String>, RunError> {
    let written = stepper.take_problem().map(|dump| write_files(&dump, report, directory)).transpose();
    agree(comm, written.map_err(RunError::from))
}

fn write_files(dump: &Dump, report: &StepReport, directory: &Path) -> Result<String, OutputError> {
    let solution = FclibSolution {
        v: dump.velocities.clone(),
        u: dump.relative_velocities.clone(),
        r: dump.impulses.clone(),
        l: Vec::new(),
    };
    // The start of the iteration, with no velocities of its own: those of the free motion would say no more.
    let zeros = |values: &[f64]| vec![0.0; values.len()];
    let guess =
        FclibSolution { v: zeros(&solution.v), u: zeros(&solution.u), r: dump.start.clone(), l: Vec::new() };
    let global = path(directory, report.step, "global");
    let problem = FclibProblem::Global(dump.problem.clone());
    let file =
        FclibFile { problem, info: info(dump, report), solution: Some(solution), guesses: vec![guess] };
    write_fclib(&global, &file)?;
    let contacts = dump.problem.contacts();
    if contacts > MOST_LOCAL {
        return Ok(format!(
            "{}: {contacts} contact points; no local form of more than {MOST_LOCAL}",
            global.display()
        ));
    }
    let local = path(directory, report.step, "local");
    let problem = dump.problem.local();
    let problem =
        problem.map_err(|error| OutputError::Misuse { path: local.clone(), problem: error.to_string() })?;
    let without = |solution: FclibSolution| FclibSolution { v: Vec::new(), ..solution };
    let file = FclibFile {
        problem: FclibProblem::Local(problem),
        solution: file.solution.map(without),
        guesses: file.guesses.into_iter().map(without).collect(),
        info: file.info,
    };
    write_fclib(&local, &file)?;
    Ok(format!("{} and -local: {contacts} contact points", global.display()))
}

/// Only what does not depend on how the run was arranged: equal problems, equal bytes.
fn info(dump: &Dump, report: &StepReport) -> FclibInfo {
    let left_out = match dump.left_out {
        0 => String::new(),
        count => format!(" {count} contact points that nothing can move are left out."),
    };
    FclibInfo {
        title: Some(format!("breccia, step {}", report.step)),
        description: Some(format!(
            "Contact problem of the step that ends at t = {:?} s: {} bodies, {} machines, {} contact points.{left_out} \
             v: linear and angular velocity of each body (world frame), then the independent velocities of the machines; r: impulses in N s.",
            report.time,
            dump.bodies,
            dump.machines,
            dump.problem.contacts()
        )),
        math_info: Some(format!("{} velocities, {} impulses", dump.problem.f.len(), dump.problem.w.len())),
    }
}
