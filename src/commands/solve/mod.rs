//! `breccia solve`: contact problems from FCLib files, one line of a table for each.

mod profile;
mod table;

use crate::geometry::random::Random;
use crate::output::fclib::{FclibSolution, read_fclib, write_fclib_solution};
use crate::solve::assembled::{Budget, ContactSystem, Method, Outcome, solve};
use crate::words::Choose;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Solves contact problems in FCLib files.
///
/// Reads local (W, q, mu) and global (M, H, f, w, mu) problems in two or three dimensions and prints for each
/// the contacts, the sweeps and Newton steps taken, the error in Siconos' full natural-map measure, and the
/// processor time.
///
/// Solvers:
///   auto           sweeps first, Newton where they are slow (the default)
///   nsgs           plain Gauss-Seidel, contact by contact in the order of the file, each solved exactly
///   nncg           the same, accelerated by a nonlinear conjugate gradient
///   prox-newton    proximal points by a nonsmooth Newton method with a sparse factorisation of W
///   sweeps-newton  coloured sweeps, then proximal points with a factorisation in the velocities of the
///                  bodies, which only the global form knows: for packings that are pressed or compliant
///
/// Exit codes: 0 all are solved; 1 a file cannot be read, holds no contact problem or cannot be written;
/// 2 the command line is wrong; 3 a problem is not solved to the tolerance.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct SolveArguments {
    /// FCLib files (HDF5).
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Error to reach: sqrt(sum |r - P_K(r - u - mu |u_t| n)|^2) / max(|q|, |r|, |u|).
    #[arg(long, value_name = "E", default_value_t = 1e-8, value_parser = positive)]
    pub tolerance: f64,
    /// Sweeps over all contacts at most.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub max_sweeps: usize,
    /// auto, nsgs, nncg, prox-newton or sweeps-newton.
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = method)]
    pub solver: Method,
    /// Begins from the first of /guesses, where a file has one, instead of from zero.
    #[arg(long)]
    pub from_guess: bool,
    /// Solves each problem once more from impulses of its own, and says how far the two answers differ:
    /// contact forces of rigid bodies are often not unique, what they do to the bodies mostly is.
    #[arg(long, conflicts_with = "profile")]
    pub unique: bool,
    /// Prints JSON: a list with one object for each file.
    #[arg(long)]
    pub json: bool,
    /// Writes what was found to /solution of each file, in place of what is there.
    #[arg(long)]
    pub write_solution: bool,
    /// Runs all solvers on all files and draws a performance profile: the share of problems that a solver
    /// solves within a multiple of the best solver's time. The numbers go to a file of the same name that
    /// ends with .csv.
    #[arg(long, value_name = "OUT.svg", conflicts_with = "write_solution")]
    pub profile: Option<PathBuf>,
}

fn positive(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "expected a number".to_string())?;
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err("expected a number > 0".into()) }
}

fn method(text: &str) -> Result<Method, String> {
    let names = Method::CHOICES.iter().map(|choice| choice.name).collect::<Vec<_>>().join(", ");
    Method::by_name(text).ok_or_else(|| format!("expected one of {names}"))
}

/// What there is to say about one file and one solver.
#[derive(Clone, Debug)]
pub struct Row {
    pub file: PathBuf,
    pub solver: &'static str,
    /// Or why there is nothing to say.
    pub result: Result<Solved, String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Solved {
    pub form: &'static str,
    pub dimension: usize,
    pub contacts: usize,
    /// Blocks of W.
    pub blocks: usize,
    pub converged: bool,
    pub error: f64,
    pub sweeps: usize,
    pub newton_steps: usize,
    /// Of the processor, for the solver alone: it has one thread, and other programs do not count.
    pub seconds: f64,
    /// For W from M and H; nearly none for a local problem.
    pub seconds_assembly: f64,
    /// If it was asked for.
    pub other_start: Option<OtherStart>,
    /// Of `seconds`; none without sweeps.
    pub nanoseconds_per_sweep_and_contact: Option<f64>,
}

/// A solution from another start, beside the first.
#[derive(Clone, Debug, Serialize)]
pub struct OtherStart {
    pub converged: bool,
    pub error: f64,
    /// ‖r' − r‖ by the larger of the two, and the same of relative velocities.
    pub impulses_differ_by: f64,
    pub velocities_differ_by: f64,
}

/// Not solved to the tolerance.
const NOT_SOLVED: u8 = 3;
/// Wrong files.
const WRONG_FILE: u8 = 1;

/// Runs the command; returns its exit code.
pub fn run(arguments: &SolveArguments) -> u8 {
    let methods = match arguments.profile {
        Some(_) => Method::ALL.to_vec(),
        None => vec![arguments.solver],
    };
    let mut printer = table::Printer::new(arguments);
    let mut rows = Vec::new();
    for file in &arguments.files {
        for &method in &methods {
            let result = solve_file(file, method, arguments);
            let row = Row { file: file.clone(), solver: method.name(), result };
            printer.print(&row);
            rows.push(row);
        }
    }
    printer.finish(&rows);
    if let Some(path) = &arguments.profile
        && let Err(error) = profile::write(path, &rows)
    {
        let _ = writeln!(std::io::stderr(), "error: {}: {error}", path.display());
        return WRONG_FILE;
    }
    exit_code(&rows, arguments)
}

/// With a profile a solver may fail; every problem must have one that does not.
fn exit_code(rows: &[Row], arguments: &SolveArguments) -> u8 {
    if rows.iter().any(|row| row.result.is_err()) {
        return WRONG_FILE;
    }
    let solved = |file: &Path| {
        rows.iter().any(|row| row.file == file && row.result.as_ref().is_ok_and(|solved| solved.converged))
    };
    if arguments.files.iter().all(|file| solved(file)) { 0 } else { NOT_SOLVED }
}

fn solve_file(path: &Path, method: Method, arguments: &SolveArguments) -> Result<Solved, String> {
    let content = read_fclib(path).map_err(|error| error.to_string())?;
    let problem = &content.problem;
    let begun = Instant::now();
    let wrong = |error: crate::solve::assembled::ProblemError| format!("{}: {error}", path.display());
    let system = problem.assemble().map_err(wrong)?;
    let seconds_assembly = begun.elapsed().as_secs_f64();
    let guess = content.guesses.first().filter(|_| arguments.from_guess);
    let start = guess.map(|guess| ContactSystem::lift(&guess.r, problem.dimension()));
    let budget = Budget { tolerance: arguments.tolerance, sweeps: arguments.max_sweeps };
    let begun = processor_seconds();
    let outcome = solve(&system, method, budget, start.as_deref());
    let seconds = processor_seconds() - begun;
    let other_start = arguments.unique.then(|| from_other_start(&system, method, budget, &outcome));
    if arguments.write_solution {
        let solution = solution(problem, &system, &outcome).map_err(wrong)?;
        write_fclib_solution(path, &solution).map_err(|error| error.to_string())?;
    }
    let visits = outcome.sweeps as f64 * system.contacts() as f64;
    Ok(Solved {
        form: problem.form(),
        dimension: problem.dimension(),
        contacts: problem.contacts(),
        blocks: system.delassus.stored(),
        converged: outcome.converged,
        error: outcome.error,
        sweeps: outcome.sweeps,
        newton_steps: outcome.newton_steps,
        seconds,
        seconds_assembly,
        other_start,
        nanoseconds_per_sweep_and_contact: (visits > 0.0).then(|| seconds * 1e9 / visits),
    })
}

/// Solves from normal impulses between zero and twice the mean of those found.
fn from_other_start(system: &ContactSystem, method: Method, budget: Budget, found: &Outcome) -> OtherStart {
    let count = found.impulses.len().max(1) as f64;
    let mean = found.impulses.iter().map(|impulse| impulse[0]).sum::<f64>() / count;
    let mut random = Random::new(1, 0);
    let start: Vec<[f64; 3]> =
        found.impulses.iter().map(|_| [random.between(0.0, 2.0 * mean), 0.0, 0.0]).collect();
    let other = solve(system, method, budget, Some(&start));
    let impulses = |outcome: &Outcome| outcome.impulses.iter().flatten().copied().collect::<Vec<f64>>();
    let velocities = |outcome: &Outcome| {
        outcome.velocities.iter().flat_map(|velocity| velocity.iter().copied()).collect::<Vec<f64>>()
    };
    OtherStart {
        converged: other.converged,
        error: other.error,
        impulses_differ_by: difference(&impulses(found), &impulses(&other)),
        velocities_differ_by: difference(&velocities(found), &velocities(&other)),
    }
}

fn difference(a: &[f64], b: &[f64]) -> f64 {
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    let size = norm(&mut a.iter().copied()).max(norm(&mut b.iter().copied()));
    let apart = norm(&mut a.iter().zip(b).map(|(a, b)| a - b));
    if size > 0.0 { apart / size } else { 0.0 }
}

/// Time that this thread has worked.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

/// What is written to `/solution`.
fn solution(
    problem: &crate::output::fclib::FclibProblem,
    system: &ContactSystem,
    outcome: &Outcome,
) -> Result<FclibSolution, crate::solve::assembled::ProblemError> {
    let r = ContactSystem::flatten(&outcome.impulses, system.dimension);
    let recovered = problem.recover(&r)?;
    let velocities: Vec<[f64; 3]> = outcome.velocities.iter().map(|&velocity| velocity.into()).collect();
    Ok(FclibSolution {
        v: recovered.velocities,
        u: ContactSystem::flatten(&velocities, system.dimension),
        r,
        l: recovered.multipliers,
    })
}
