//! A run from its case file: the case is read, the cases that make its start file are run first if wanted,
//! the scene is built, and the steps are made.

use super::error::RunError;
use super::lock::Lock;
use super::{Ending, Log, Options, Restart};
use crate::input::{Case, read_case_with};
use crate::setup::{self, SetupError};
use decomposition::Comm;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

/// The name under which a run leaves its final state.
const FINAL_STATE: &str = "final.h5";

/// What the command line says about a case.
#[derive(Clone, Debug)]
pub struct Job {
    pub case: PathBuf,
    /// Values in place of the file's, by key path.
    pub set: Vec<(String, String)>,
    /// Whether cases that make the start file are run first where it is missing.
    pub prepare: bool,
    /// A line about the program, once the case has been read without mistakes.
    pub opening: Option<String>,
    /// `case_text` is filled in here.
    pub options: Options,
}

/// The directory of the results of a case, if none is given.
pub fn default_directory(case: &Path) -> PathBuf {
    Path::new("out").join(case.file_stem().unwrap_or(OsStr::new("run")))
}

/// Collective: reads the case, prepares its start if wanted, and runs it.
pub fn run_case(job: &Job, comm: &dyn Comm, log: &mut Log) -> Result<Ending, RunError> {
    run_after(job, &mut Vec::new(), comm, log)
}

/// `waiting` are the cases that wait for this one.
fn run_after(
    job: &Job,
    waiting: &mut Vec<PathBuf>,
    comm: &dyn Comm,
    log: &mut Log,
) -> Result<Ending, RunError> {
    let case = read_case_with(&job.case, &job.set);
    let case = setup::agree(comm, case.map_err(|errors| SetupError::Case(errors.to_string())))?;
    let mut options = Options { case_text: case_text(job, &case), ..job.options.clone() };
    super::check_same(&options, comm)?;
    job.opening.iter().for_each(|line| log.say(line));
    log.say(&format!("{}: {}", job.case.display(), case.title));
    case.warnings.iter().for_each(|warning| log.say(&format!("warning: {warning}")));
    require_memory(&case, &options, comm)?;
    // Held to the end of the run, whichever it is.
    let _lock = Lock::take(&options.directory, comm, log)?;
    let found = super::find(&case, &options, comm, log)?;
    let mut setup = match &found {
        Some(found) => setup::resume(&case, &found.state, comm)?,
        None => {
            if let Some(missing) = missing_start(&job.case, &case, comm) {
                let ending = prepare(job, missing, waiting, comm, log)?;
                if ending != Ending::Finished {
                    return Ok(ending);
                }
                // The time of the other runs does not count as set-up of this one.
                options.begun = Instant::now();
                // The start file was not there to be counted before.
                require_memory(&case, &options, comm)?;
            }
            setup::build(&case, comm)?
        }
    };
    if !options.force {
        setup.require_stable(&case)?;
    }
    super::run(&case, setup, found.as_ref(), &options, comm, log)
}

/// Collective: an error if a node has not the memory that the case will need, unless `--force` goes on.
fn require_memory(case: &Case, options: &Options, comm: &dyn Comm) -> Result<(), SetupError> {
    if options.force { Ok(()) } else { setup::memory::require(&setup::memory::Need::of(case), comm) }
}

/// The case that the final state keeps: the file, and what the command line changed of it.
fn case_text(job: &Job, case: &Case) -> String {
    // It has just been read as a case; should it be gone, the state is worth keeping without it.
    let mut text = std::fs::read_to_string(&job.case).unwrap_or_default();
    for path in &case.included {
        text +=
            &format!("# include {}\n{}", path.display(), std::fs::read_to_string(path).unwrap_or_default());
    }
    for (key, value) in &job.set {
        text += &format!("# --set {key}={value}\n");
    }
    text
}

/// A start file that is not there.
#[derive(Clone, Debug, PartialEq)]
struct Missing {
    from: PathBuf,
    /// The case whose results it is one of.
    maker: Option<PathBuf>,
}

/// Collective: rank 0 searches for the start file of a case, and for the case that makes it.
fn missing_start(file: &Path, case: &Case, comm: &dyn Comm) -> Option<Missing> {
    let from = case.start.as_ref()?.from.clone();
    let mut found = Vec::new();
    if comm.rank() == 0 && !from.exists() {
        let maker = maker_of(&from, file).map(|path| path.to_string_lossy().into_owned());
        // Writing to memory cannot fail.
        found = postcard::to_allocvec(&maker).unwrap_or_default();
    }
    comm.broadcast(0, &mut found);
    let maker: Option<String> =
        if found.is_empty() { return None } else { postcard::from_bytes(&found).ok()? };
    Some(Missing { from, maker: maker.map(PathBuf::from) })
}

/// The case beside `case` whose name is that of the directory in which `from` is to be.
fn maker_of(from: &Path, case: &Path) -> Option<PathBuf> {
    let mut name = from.parent()?.file_name()?.to_os_string();
    name.push(".toml");
    let maker = case.with_file_name(name);
    (from.file_name() == Some(OsStr::new(FINAL_STATE)) && maker != case && maker.is_file()).then_some(maker)
}

/// Collective: runs the case that makes a start file, in the directory where the file is wanted.
fn prepare(
    job: &Job,
    missing: Missing,
    waiting: &mut Vec<PathBuf>,
    comm: &dyn Comm,
    log: &mut Log,
) -> Result<Ending, RunError> {
    let Missing { from, maker } = missing;
    let (Some(maker), Some(directory), true) = (&maker, from.parent(), job.prepare) else {
        return Err(RunError::NoStart { case: job.case.clone(), from: tidy(&from), maker });
    };
    waiting.push(job.case.clone());
    if waiting.contains(maker) {
        return Err(RunError::Options(format!("{} starts from its own results", maker.display())));
    }
    log.say(&format!("{} is not there: running {} first", tidy(&from).display(), maker.display()));
    let options = Options {
        directory: tidy(directory),
        steps: None,
        until: None,
        summary: None,
        restart: Some(Restart::Auto),
        dump_problems: Vec::new(),
        begun: Instant::now(),
        ..job.options.clone()
    };
    let first = Job { case: maker.clone(), set: Vec::new(), prepare: true, opening: None, options };
    let ending = run_after(&first, waiting, comm, log)?;
    if ending == Ending::Finished {
        log.say(&format!("\n{}: starts from {}", job.case.display(), tidy(&from).display()));
    }
    Ok(ending)
}

/// Without `..` behind a folder: shorter to read.
fn tidy(path: &Path) -> PathBuf {
    let mut short = PathBuf::new();
    for component in path.components() {
        match (component, short.components().next_back()) {
            (Component::ParentDir, Some(Component::Normal(_))) => {
                short.pop();
            }
            (Component::CurDir, _) => {}
            _ => short.push(component),
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_without_detours() {
        for (path, short) in [
            ("inputs/../out/deposit/final.h5", "out/deposit/final.h5"),
            ("inputs/tamping/../../out/bed", "out/bed"),
            ("../out/bed", "../out/bed"),
            ("/a/./b/../c", "/a/c"),
        ] {
            assert_eq!(tidy(Path::new(path)), Path::new(short));
        }
    }

    #[test]
    fn the_case_that_makes_a_file_has_the_name_of_its_directory() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let press = root.join("inputs/press.toml");
        let maker = |from: &str| maker_of(Path::new(from), &press);
        assert_eq!(maker("out/deposit/final.h5"), Some(root.join("inputs/deposit.toml")));
        assert_eq!(maker("out/deposit/other.h5"), None);
        assert_eq!(maker("out/press/final.h5"), None, "a case does not make its own start");
        assert_eq!(maker("final.h5"), None);
    }
}
