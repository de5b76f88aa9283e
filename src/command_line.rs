//! What can be said on the command line.

use breccia::commands::inspect::export::ExportArguments;
use breccia::commands::inspect::info::InfoArguments;
use breccia::commands::report::ReportArguments;
use breccia::commands::run::{Restart, parse_duration};
use breccia::commands::solve::SolveArguments;
use breccia::commands::spread::SpreadArguments;
use breccia::lanes::Instructions;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use std::num::{NonZeroU16, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

/// Machines working in granular media, by non-smooth contact dynamics.
///
/// A case is one TOML file: time step, materials, shapes, bodies, grains and what to write. Begin with
///
///   breccia run inputs/ballast-box.toml
///
/// and open out/ballast-box/bodies.vtkhdf in ParaView. On several cores or nodes:
///
///   mpirun -n 4 breccia run inputs/ballast-box.toml
///
/// The result has the same bits on any number of ranks and threads; `breccia digest out/ballast-box` shows
/// it.
#[derive(Parser)]
#[command(name = "breccia", version, about, long_about, verbatim_doc_comment, max_term_width = 100)]
pub struct CommandLine {
    #[command(subcommand)]
    pub task: Task,
}

#[derive(Subcommand)]
pub enum Task {
    Run(RunArguments),
    /// Reads a case, builds its scene and describes it, without running it.
    ///
    /// All mistakes of the file come out at once, each with its line, its key, what was found and what would
    /// be right. If there are none, it shows bodies by group with their masses, the contact table, the
    /// grading curve that generated stones have come to, and an estimate of the memory needed. More than
    /// there is here is an error. Of more than 200,000 bodies only some are made.
    Check {
        /// The case file.
        case: PathBuf,
        /// Puts a value in place of the file's; see `breccia help run`.
        #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
        set: Vec<(String, String)>,
        /// Nodes like this one, with as much memory, that the run will have: the estimate is compared with
        /// what they have together.
        #[arg(long, value_name = "N", default_value = "1")]
        nodes: NonZeroU64,
    },
    /// Prints a JSON Schema of case files, with which editors complete and explain keys.
    ///
    /// For instance: breccia schema > case.schema.json, and "#:schema ./case.schema.json" as the first line
    /// of a case.
    Schema,
    /// Prints the manual of the case file, in Markdown.
    Manual,
    /// Prints a hash of the final physical state of a run: one line.
    ///
    /// It covers the positions and velocities of all bodies, the contact impulses and the time, bit by bit,
    /// and does not depend on how the run was arranged: equal digests, equal results.
    Digest {
        /// A final.h5, or the directory of a run.
        path: PathBuf,
    },
    Info(InfoArguments),
    Export(ExportArguments),
    Report(ReportArguments),
    Solve(SolveArguments),
    Spread(SpreadArguments),
}

/// Runs a case.
///
/// Writes into the output directory:
///   bodies.vtkhdf    the bodies at each output time, for ParaView (output.interval)
///   contacts.vtkhdf  the contact network (output.contacts)
///   series.csv, .h5  energy, sweeps, residual, penetration and the force on each wall and tool, by time
///   final.h5         the final state, from which another case may start
///   checkpoints/     states from which the run can go on: breccia run CASE --restart auto
///   summary.json     what scripts need: steps, sweeps, residual, seconds by phase, digest, ...
///
/// Ctrl-C, SIGTERM, SIGUSR1, SIGHUP and SIGXCPU end the run with a checkpoint: after the step that is under
/// way, or before it if its solve takes long. A second Ctrl-C ends it at once.
///
/// One run at a time works in a directory: it holds run.lock there, and a second one ends with code 5.
///
/// Under mpirun all ranks work on the one case. Threads inside a rank: --threads, else OMP_NUM_THREADS or
/// SLURM_CPUS_PER_TASK, else one per rank if there are several ranks and all cores if there is one.
///
/// Exit codes: 0 done; 1 the case is wrong; 2 the command line is wrong; 3 the solution is not finite any
/// more; 4 a file cannot be written or read; 5 another run works in the directory; 6 stopped by --max-time; 7
/// out of memory; 8 stopped by --stall-limit; 101 a mistake in breccia; 129, 130, 138, 143 and 152 stopped by
/// SIGHUP, Ctrl-C, SIGUSR1, SIGTERM and SIGXCPU.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct RunArguments {
    /// The case file.
    pub case: PathBuf,
    /// Where the results go; out/ and the name of the case if not given.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Makes exactly this many steps instead of the case's duration.
    #[arg(long, value_name = "N", conflicts_with = "until")]
    pub steps: Option<u64>,
    /// Ends at this simulated time (s) instead of after the case's duration.
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub until: Option<f64>,
    /// Threads inside a rank.
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroU16>,
    /// Instructions of the processor for the contact solve, the best that it has if not given. The result is
    /// the same.
    #[arg(long, value_name = "SET", value_parser = instructions())]
    pub instructions: Option<Instructions>,
    /// Writes a copy of summary.json here.
    #[arg(long, value_name = "FILE.json")]
    pub summary: Option<PathBuf>,
    /// Puts a value in place of the file's: --set simulation.time_step=1e-4 --set body.floor.position="[0, 0,
    /// 1]". In lists, tables are picked by name or by number from 1. May be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
    /// Runs the cases that make the start file (start.from) first if it is not there, on the same ranks.
    #[arg(long)]
    pub prepare: bool,
    /// Replaces the results in the output directory even if they are those of another case, or of a run that
    /// could go on.
    #[arg(long)]
    pub overwrite: bool,
    /// Goes on from a checkpoint: `latest` takes the last good one of the output directory, `auto` does the
    /// same and begins from the start if there is none, anything else is a file.
    #[arg(long, value_name = "latest|auto|FILE")]
    pub restart: Option<Restart>,
    /// Allows a restart although the physics of the case has changed, and says what has.
    #[arg(long, requires = "restart")]
    pub changed_case: bool,
    /// Writes the contact problem of this step (counted from 1) to the output directory as FCLib files, with
    /// what the step found: problem-STEP-global.hdf5, and problem-STEP-local.hdf5 up to 10,000 contact
    /// points. May be given several times.
    #[arg(long, value_name = "STEP")]
    pub dump_problem: Vec<u64>,
    /// Ends the run with a checkpoint, and exit code 6, in good time before it has taken so long, start
    /// included: 3h50m, 90s or seconds. How long before follows from the steps and checkpoints so far.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub max_time: Option<Duration>,
    /// Ends all ranks, with exit code 8, when one has waited so long for another: that one is dead, or cut
    /// off. 0 waits for ever.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10m")]
    pub stall_limit: Duration,
    /// Compares all copies of bodies that ranks share, bit by bit after each sweep: slow, to look for
    /// mistakes in breccia or in the machine. A difference ends the run.
    #[arg(long)]
    pub verify: bool,
    /// Goes on where the program would refuse: too little memory.
    #[arg(long)]
    pub force: bool,
}

const INSTRUCTIONS: [(&str, Instructions, &str); 3] = [
    ("avx512", Instructions::Avx512, "Eight numbers at a time"),
    ("avx2", Instructions::Avx2, "Four, with fused products"),
    ("plain", Instructions::Plain, "What every processor has: many times slower on x86, to compare"),
];

fn instructions() -> impl TypedValueParser<Value = Instructions> {
    let values = INSTRUCTIONS.map(|(name, _, about)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(values).map(|text| {
        let known = INSTRUCTIONS.iter().find(|(name, _, _)| *name == text);
        // The parser has refused all other words.
        known.map_or_else(Instructions::best, |(_, set, _)| *set)
    })
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.trim().to_string(), value.trim().to_string()))
}
