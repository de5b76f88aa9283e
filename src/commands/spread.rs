//! `breccia spread`: what the answers of a case are worth.
//!
//! Rigid contact forces are not unique, and a machine among stones is chaotic: another order of operations is
//! another sample of the same process. The case runs several times with choices that a user has no reason to
//! prefer, all solved to its tolerance, and the spread of each answer is an uncertainty that no residual
//! shows.

use super::inspect::InspectError;
use super::inspect::text_table::TextTable;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a case with several equivalent choices of the solver and reports how far its answers spread.
///
/// Each run goes to a folder of its own in the output directory; one that is finished is not run again. For
/// each column of series.csv and machines.csv the mean over time and the value at the end are compared over
/// the runs; spread.csv holds all of them, the table those that matter most.
///
/// Same bits are not the same answer: a run has the same bits on any number of ranks, and yet its contact
/// forces may be one of many that satisfy the laws.
///
/// Exit codes: 0 all runs came to their end; 1 a run failed; 2 the command line is wrong; 4 a file cannot be
/// read or written.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct SpreadArguments {
    /// The case file.
    pub case: PathBuf,
    /// Where the results go; out/ and the name of the case with -spread if not given.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Puts a value in place of the file's, in all runs; see `breccia help run`.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Makes so many steps instead of the case's duration.
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// What starts a run, such as "mpirun -n 4"; without it each runs as one process.
    #[arg(long, value_name = "COMMAND", default_value = "")]
    pub launcher: String,
}

/// Folder, and what differs from the case. Each is a fixed point of the same contact law.
const CHOICES: [(&str, &[&str]); 5] = [
    ("as-given", &[]),
    ("exact-visits", &["solver.local_law=exact"]),
    ("cold-starts", &["solver.warm_start=false"]),
    ("plain-sweeps", &["solver.acceleration=none"]),
    ("conjugate-gradient", &["solver.acceleration=conjugate-gradient"]),
];

/// Lines of the table at most.
const SHOWN: usize = 25;
/// Columns that say how a run went, not what it found.
const ABOUT_THE_RUN: [&str; 8] = [
    "step",
    "time",
    "sweeps",
    "converged",
    "residual",
    "manifolds",
    "contact_points",
    "worst_velocity_error",
];

/// An answer in all runs.
#[derive(Clone, Debug, PartialEq)]
struct Answer {
    column: String,
    /// By run.
    means: Vec<f64>,
    ends: Vec<f64>,
}

/// Least, mean and largest.
fn range(values: &[f64]) -> [f64; 3] {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    [least, values.iter().sum::<f64>() / values.len() as f64, largest]
}

impl Answer {
    /// The spread of the means by their size.
    fn share(&self) -> f64 {
        let [least, _, largest] = range(&self.means);
        let size = least.abs().max(largest.abs());
        if size > 0.0 { (largest - least) / size } else { 0.0 }
    }
}

/// Runs the command; returns its exit code.
pub fn run(arguments: &SpreadArguments) -> u8 {
    match spread(arguments) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            4
        }
    }
}

fn spread(arguments: &SpreadArguments) -> Result<u8, InspectError> {
    let directory = arguments.out.clone().unwrap_or_else(|| {
        let mut directory = super::run::default_directory(&arguments.case).into_os_string();
        directory.push("-spread");
        directory.into()
    });
    std::fs::create_dir_all(&directory).map_err(InspectError::io(&directory, "create"))?;
    for (name, choice) in CHOICES {
        say(&format!("{name}: {}", if choice.is_empty() { "the case".into() } else { choice.join(", ") }));
        let code = start(arguments, choice, &directory.join(name))?;
        if code != 0 {
            let _ = writeln!(std::io::stderr(), "error: the run {name} ended with code {code}, see above");
            return Ok(1);
        }
    }
    let runs: Vec<PathBuf> = CHOICES.iter().map(|(name, _)| directory.join(name)).collect();
    let mut answers = answers(&runs, "series.csv")?;
    if runs.iter().all(|run| run.join("machines.csv").exists()) {
        answers.extend(self::answers(&runs, "machines.csv")?);
    }
    let path = directory.join("spread.csv");
    std::fs::write(&path, csv(&answers)).map_err(InspectError::io(&path, "write"))?;
    answers.retain(|answer| answer.share() > 0.0);
    answers.sort_by(|a, b| b.share().total_cmp(&a.share()));
    say(&table(&answers));
    say(&format!("all answers: {}", path.display()));
    Ok(0)
}

/// The exit code of a run; its progress goes to a log beside it.
fn start(arguments: &SpreadArguments, choice: &[&str], out: &Path) -> Result<i32, InspectError> {
    let own = std::env::current_exe().map_err(InspectError::io(out, "find the program for"))?;
    let mut words = arguments.launcher.split_whitespace();
    let mut command = match words.next() {
        Some(launcher) => {
            let mut command = Command::new(launcher);
            command.args(words).arg(&own);
            command
        }
        None => Command::new(&own),
    };
    command.arg("run").arg(&arguments.case).arg("--out").arg(out).args(["--restart", "auto"]);
    for set in arguments.set.iter().map(String::as_str).chain(choice.iter().copied()) {
        command.args(["--set", set]);
    }
    if let Some(steps) = arguments.steps {
        command.args(["--steps", &steps.to_string()]);
    }
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(InspectError::io(out, "start the run in"))?;
    Ok(status.code().unwrap_or(-1))
}

/// The columns that all runs have.
fn answers(runs: &[PathBuf], name: &str) -> Result<Vec<Answer>, InspectError> {
    let tables: Vec<TextTable> =
        runs.iter().map(|run| TextTable::read(&run.join(name))).collect::<Result<_, _>>()?;
    Ok(compare(&tables))
}

fn compare(tables: &[TextTable]) -> Vec<Answer> {
    let Some(first) = tables.first() else { return Vec::new() };
    let of = |column: &String| {
        let columns: Option<Vec<&[f64]>> = tables.iter().map(|table| table.column(column)).collect();
        let columns = columns?;
        let mean = |values: &&[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        Some(Answer {
            column: column.clone(),
            means: columns.iter().map(mean).collect(),
            ends: columns.iter().map(|values| values.last().copied().unwrap_or(f64::NAN)).collect(),
        })
    };
    first.names.iter().filter(|name| !ABOUT_THE_RUN.contains(&name.as_str())).filter_map(of).collect()
}

fn csv(answers: &[Answer]) -> String {
    let names: Vec<String> =
        CHOICES.iter().flat_map(|(name, _)| [format!("{name} mean"), format!("{name} end")]).collect();
    let mut text = format!("column,{}\n", names.join(","));
    for Answer { column, means, ends } in answers {
        let numbers: Vec<String> =
            means.iter().zip(ends).flat_map(|(mean, end)| [mean, end].map(f64::to_string)).collect();
        text += &format!("\"{}\",{}\n", column.replace('"', "\"\""), numbers.join(","));
    }
    text
}

fn table(answers: &[Answer]) -> String {
    if answers.is_empty() {
        return "all answers are the same in all runs".into();
    }
    let wide =
        answers.iter().take(SHOWN).map(|answer| answer.column.chars().count()).max().unwrap_or(0).max(6);
    let mut text = format!(
        "\n{:wide$}  {:>12}{:>25}{:>9}  {:>25}\n",
        "answer", "mean", "from … to", "spread", "at the end, from … to"
    );
    for answer in answers.iter().take(SHOWN) {
        let [least, mean, largest] = range(&answer.means);
        let [first, _, last] = range(&answer.ends);
        let share = 100.0 * answer.share();
        let between = |low: f64, high: f64| format!("{low:.4e} … {high:.4e}");
        text += &format!(
            "{:wide$}  {mean:>12.4e}{:>25}{share:>7.2} %  {:>25}\n",
            answer.column,
            between(least, largest),
            between(first, last)
        );
    }
    if answers.len() > SHOWN {
        text += &format!("and {} more that spread less\n", answers.len() - SHOWN);
    }
    text
}

/// A pipe that is closed is no reason to panic.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_compared_over_runs() {
        let tables = ["1,0.1,2.0,5\n2,0.2,4.0,5\n", "1,0.1,2.0,5\n2,0.2,2.0,5\n"].map(|rows| {
            TextTable::parse(&format!("step,time,force/floor/z,sweeps\n{rows}")).expect("a table")
        });
        let answers = compare(&tables);
        assert_eq!(answers.len(), 1);
        assert_eq!((answers[0].means.clone(), answers[0].ends.clone()), (vec![3.0, 2.0], vec![4.0, 2.0]));
        assert!((answers[0].share() - 1.0 / 3.0).abs() < 1e-15);
        assert!(table(&answers).contains("33.33 %"));
        assert!(csv(&answers).ends_with("\"force/floor/z\",3,4,2,2\n"));
        assert_eq!(table(&[]), "all answers are the same in all runs");
    }
}
