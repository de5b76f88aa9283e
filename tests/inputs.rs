//! Every shipped case runs, with the bits and the numbers of `tests/data/inputs.toml`, on any ranks and
//! threads.
//!
//! A case runs on one rank and thread, and on the ranks and threads of its entry; all arrangements and the
//! entries marked `soak` only under `BRECCIA_SOAK`. Digests of all arrangements have to be equal. They are
//! compared with the table where processor, libraries and compiler are of the kind on which it was made;
//! elsewhere that counts as skipped, and the numbers are checked on any.
//!
//! `BRECCIA_WRITE_PINS=1 cargo test --test inputs` writes digests and numbers anew, when a change of bits is
//! meant.

mod support;

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use support::{Directory, project, run, skip};

const TABLE: &str = "tests/data/inputs.toml";
/// Runs at the same time.
const WORKERS: usize = 2;

#[derive(Deserialize)]
struct Table {
    /// Kinds of processor, libraries and compiler on which these digests came out.
    made_on: Vec<String>,
    start: Vec<Start>,
    case: Vec<Case>,
}

/// A result from which cases start.
#[derive(Deserialize)]
struct Start {
    name: String,
    file: String,
    steps: u64,
    start: Option<String>,
    set: Vec<String>,
}

#[derive(Clone, Deserialize)]
struct Case {
    file: String,
    start: Option<String>,
    set: Vec<String>,
    steps: u64,
    ranks: usize,
    threads: usize,
    #[serde(default)]
    soak: bool,
    digest: String,
    /// Columns of `series.csv` or `machines.csv`, in the last row.
    numbers: BTreeMap<String, Number>,
}

#[derive(Clone, Copy, Deserialize)]
struct Number {
    value: f64,
    /// Relative.
    tolerance: f64,
}

/// What a case gave.
struct Outcome {
    /// By ranks and threads.
    digests: Vec<([usize; 2], String)>,
    numbers: BTreeMap<String, f64>,
}

fn table() -> Table {
    let text = std::fs::read_to_string(project(TABLE)).expect("the table");
    toml::from_str(&text).expect("a table of cases")
}

fn soak() -> bool {
    std::env::var_os("BRECCIA_SOAK").is_some()
}

fn writes() -> bool {
    std::env::var_os("BRECCIA_WRITE_PINS").is_some()
}

/// Processor, libraries and compiler: what bits may depend on.
fn kind() -> String {
    let mut words = vec![std::env::consts::ARCH.to_string()];
    #[cfg(target_arch = "x86_64")]
    {
        let leaf = std::arch::x86_64::__cpuid(0);
        let vendor = [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes).concat();
        words.push(String::from_utf8_lossy(&vendor).into_owned());
        let sets = [
            ("avx2", is_x86_feature_detected!("avx2")),
            ("fma", is_x86_feature_detected!("fma")),
            ("avx512f", is_x86_feature_detected!("avx512f")),
        ];
        words.extend(sets.iter().filter(|(_, has)| *has).map(|(name, _)| name.to_string()));
    }
    let said = |command: &str, arguments: &[&str]| {
        let output = std::process::Command::new(command).args(arguments).output().ok()?;
        let line = String::from_utf8_lossy(&output.stdout).lines().next()?.to_string();
        // The version is the first word that begins with a digit; its third number does not matter.
        let version = line.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
        Some(version.split('.').take(2).collect::<Vec<_>>().join("."))
    };
    let libc = said("getconf", &["GNU_LIBC_VERSION"]).unwrap_or("unknown".into());
    let rustc = said(option_env!("RUSTC").unwrap_or("rustc"), &["--version"]).unwrap_or("unknown".into());
    let (major, minor, _) = hdf5::library_version();
    words.extend([format!("libc {libc}"), format!("hdf5 {major}.{minor}"), format!("rustc {rustc}")]);
    words.join(", ")
}

/// Files of `inputs/` that are cases; without `[simulation]` a file is a part of others.
fn shipped(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("inputs/ is there") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            shipped(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "toml")
            && std::fs::read_to_string(&path).expect("a readable case").contains("[simulation]")
        {
            found.push(path.strip_prefix(project("")).expect("in the project").display().to_string());
        }
    }
}

/// Arguments of a run. Starts are in the folders of their names.
fn arguments(
    directory: &Directory,
    steps: u64,
    threads: usize,
    start: &Option<String>,
    set: &[String],
) -> Vec<String> {
    let mut words =
        ["--steps", &steps.to_string(), "--threads", &threads.to_string()].map(String::from).to_vec();
    let from = start
        .iter()
        .map(|name| format!("start.from={}", directory.file(&format!("start-{name}/final.h5")).display()));
    for value in set.iter().cloned().chain(from) {
        words.extend(["--set".to_string(), value]);
    }
    words
}

fn run_start(start: &Start, directory: &Directory) {
    let words = arguments(directory, start.steps, WORKERS, &start.start, &start.set);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run(&project(&start.file), 1, &directory.file(&format!("start-{}", start.name)), &words);
}

fn run_case(case: &Case, index: usize, directory: &Directory) -> Outcome {
    let mut arrangements = vec![[1, 1]];
    if soak() {
        arrangements = [1, 2, 3, 8].into_iter().flat_map(|ranks| [[ranks, 1], [ranks, 2]]).collect();
    } else if [case.ranks, case.threads] != [1, 1] {
        arrangements.push([case.ranks, case.threads]);
    }
    let (mut digests, mut numbers) = (Vec::new(), BTreeMap::new());
    for [ranks, threads] in arrangements {
        let out = directory.file(&format!("case-{index}-{ranks}x{threads}"));
        let words = arguments(directory, case.steps, threads, &case.start, &case.set);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let summary = run(&project(&case.file), ranks, &out, &words);
        assert_eq!(summary["steps"], case.steps, "{}", case.file);
        digests.push(([ranks, threads], summary["digest"].as_str().expect("a digest").to_string()));
        if digests.len() == 1 {
            numbers = last_row(&out.join("series.csv"));
            numbers.extend(last_row(&out.join("machines.csv")));
        }
    }
    Outcome { digests, numbers }
}

/// The last row of a table by column; empty if there is no such file.
fn last_row(path: &PathBuf) -> BTreeMap<String, f64> {
    let Ok(text) = std::fs::read_to_string(path) else { return BTreeMap::new() };
    let mut lines = text.lines();
    let (Some(head), Some(last)) = (lines.next(), lines.next_back()) else { return BTreeMap::new() };
    let numbers = last.split(',').map(|word| word.parse().unwrap_or(f64::NAN));
    head.split(',').map(String::from).zip(numbers).collect()
}

/// All cases, once for all tests. None for a case that failed, whose message is printed.
static OUTCOMES: LazyLock<Vec<(Case, Option<Outcome>)>> = LazyLock::new(|| {
    let table = table();
    let directory = Directory::new("inputs");
    table.start.iter().for_each(|start| run_start(start, &directory));
    let cases: Vec<Case> = table.case.into_iter().filter(|case| soak() || !case.soak).collect();
    let results: Vec<Mutex<Option<Outcome>>> = cases.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(index) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < cases.len())
        {
            let outcome = std::panic::catch_unwind(|| run_case(&cases[index], index, &directory));
            *results[index].lock().expect("one writer") = outcome.ok();
        }
    };
    std::thread::scope(|scope| (0..WORKERS).for_each(|_| _ = scope.spawn(work)));
    let results = results.into_iter().map(|result| result.into_inner().expect("one writer"));
    cases.into_iter().zip(results).collect()
});

#[test]
fn every_shipped_case_is_in_the_table() {
    let mut found = Vec::new();
    shipped(&project("inputs"), &mut found);
    let table = table();
    for file in &found {
        assert!(table.case.iter().any(|case| case.file == *file && !case.soak), "{file} is not in {TABLE}");
    }
    for case in &table.case {
        assert!(found.contains(&case.file), "{} is not shipped", case.file);
        assert!(writes() || (2..=4).contains(&case.numbers.len()), "{}: two or three numbers", case.file);
    }
    for arrangement in [[2, 1], [3, 1], [1, 2], [2, 2]] {
        assert!(table.case.iter().any(|case| [case.ranks, case.threads] == arrangement), "{arrangement:?}");
    }
}

/// Cases that do not run, and those whose bits depend on ranks or threads.
fn apart() -> Vec<String> {
    let mut wrong = Vec::new();
    for (case, outcome) in OUTCOMES.iter() {
        let Some(outcome) = outcome else {
            wrong.push(format!("{} does not run", case.file));
            continue;
        };
        let first = &outcome.digests[0].1;
        for (arrangement, digest) in outcome.digests.iter().filter(|(_, digest)| digest != first) {
            wrong.push(format!("{} on {arrangement:?}: {digest}, on one rank {first}", case.file));
        }
    }
    wrong
}

#[test]
fn digests_are_those_of_the_table() {
    if writes() {
        return write_pins();
    }
    let (made_on, here) = (table().made_on, kind());
    let mut wrong = apart();
    for (case, outcome) in OUTCOMES.iter() {
        let Some(outcome) = outcome else { continue };
        let first = &outcome.digests[0].1;
        if made_on.contains(&here) && *first != case.digest {
            wrong.push(format!("{}: {first}, the table has {}", case.file, case.digest));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if !made_on.contains(&here) {
        skip::part(&format!("digests of the shipped cases: made on {made_on:?}; here {here}"));
    }
}

#[test]
fn numbers_are_those_of_the_table() {
    if writes() {
        return;
    }
    let mut wrong = Vec::new();
    for (case, outcome) in OUTCOMES.iter() {
        let Some(outcome) = outcome else {
            wrong.push(format!("{} does not run", case.file));
            continue;
        };
        for (name, Number { value, tolerance }) in &case.numbers {
            let found = outcome.numbers.get(name).copied().unwrap_or(f64::NAN);
            let near = (found - value).abs() <= tolerance * value.abs();
            if !near {
                wrong.push(format!("{}: {name} is {found}, expected {value} ± {tolerance:e}", case.file));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The table with the digests and numbers of this run, if they do not depend on ranks; entries that did not
/// run keep theirs. Other kinds of machines stay in it if all digests are those that it had.
fn write_pins() {
    let wrong = apart();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let Table { start, case: cases, mut made_on } = table();
    let same = |(case, outcome): &(Case, Option<Outcome>)| {
        outcome.as_ref().is_some_and(|outcome| outcome.digests[0].1 == case.digest)
    };
    if !OUTCOMES.iter().all(same) {
        made_on.clear();
    }
    if !made_on.contains(&kind()) {
        made_on.push(kind());
    }
    let text = std::fs::read_to_string(project(TABLE)).expect("the table");
    let comment: String = text
        .lines()
        .take_while(|line| line.starts_with('#'))
        .fold(String::new(), |all, line| all + line + "\n");
    let mut table = format!("{comment}made_on = {made_on:?}\n");
    let origin =
        |start: &Option<String>| start.iter().map(|name| format!("start = {name:?}\n")).collect::<String>();
    for Start { name, file, steps, start, set } in &start {
        let from = origin(start);
        _ = write!(
            table,
            "\n[[start]]\nname = {name:?}\nfile = {file:?}\nsteps = {steps}\n{from}set = {set:?}\n"
        );
    }
    for mut case in cases {
        let ran = OUTCOMES.iter().find(|(other, _)| (&other.file, other.soak) == (&case.file, case.soak));
        if let Some((_, outcome)) = ran {
            let outcome = outcome.as_ref().unwrap_or_else(|| panic!("{} does not run", case.file));
            case.digest.clone_from(&outcome.digests[0].1);
            for (name, number) in &mut case.numbers {
                number.value =
                    *outcome.numbers.get(name).unwrap_or_else(|| panic!("{}: no {name}", case.file));
            }
        }
        let Case { file, start, set, steps, ranks, threads, soak, digest, numbers } = &case;
        let (from, soak) = (origin(start), if *soak { "soak = true\n" } else { "" });
        _ = write!(
            table,
            "\n[[case]]\nfile = {file:?}\n{from}set = {set:?}\nsteps = {steps}\nranks = {ranks}\n"
        );
        _ = write!(table, "threads = {threads}\n{soak}digest = {digest:?}\n\n[case.numbers]\n");
        for (name, Number { value, tolerance }) in numbers {
            _ = writeln!(table, "{name:?} = {{ value = {value:?}, tolerance = {tolerance:?} }}");
        }
    }
    std::fs::write(project(TABLE), table).expect("the table can be written");
}
