//! Straight runs against interrupted ones: equal in every bit, on any number of ranks on either side of a
//! stop.

use super::runs::{Out, Random, Results, soak};
use std::path::{Path, PathBuf};
use std::process::Command;

const STEPS: u64 = 400;

/// Tines that squeeze stones, with a controller that goes from phase to phase.
const MACHINE_CASE: &str = "inputs/tamper.toml";
const MACHINE_SETTINGS: [&str; 10] = [
    "--set",
    "output.interval=0.0085",
    "--set",
    "output.series_interval=0.0015",
    "--set",
    "solver.tolerance=1e-3",
    "--set",
    "solver.maximum_sweeps=60",
    "--set",
    "checkpoint.steps=61",
];

/// How often a run is stopped, and on how many ranks it runs each time.
type Plan = (usize, &'static [usize]);

/// The first three in `make test`, where four ranks share two cores; all in `make soak`.
const PLANS: [Plan; 5] =
    [(1, &[1, 4]), (2, &[4, 2, 1]), (5, &[2, 1, 1, 2, 1, 1]), (5, &[2, 1, 4, 2, 1, 4]), (1, &[2, 1])];

/// Writing together is slow where ranks share cores; what is compared does not depend on it.
const FEW: [&str; 2] = ["--set", "checkpoint.steps=90"];

/// Runs to each of the stops on a number of ranks of its own, then to the end.
fn interrupted(out: &Out, stops: &[(u64, usize)], last: usize) {
    for (k, (step, ranks)) in stops.iter().enumerate() {
        let more: &[&str] = if k == 0 { &[] } else { &["--restart", "latest"] };
        out.finish(*ranks, *step, &[more, &FEW].concat());
    }
    let words = out.finish(last, STEPS, &[&["--restart", "auto"], &FEW[..]].concat());
    assert!(words.contains("restart from"), "{words}");
    let summary = std::fs::read_to_string(out.path.join("summary.json")).expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(summary["collective_output"], true, "H5Pget_mpio_no_collective_cause names a cause");
    assert_eq!((&summary["steps"], &summary["ranks"]), (&STEPS.into(), &last.into()));
}

#[test]
fn interrupted_runs_have_the_bits_of_the_straight_one() {
    let plans = if soak() { &PLANS[..] } else { &PLANS[..3] };
    let expected = compared("drum", plans, Out::new);
    assert_eq!(expected.pictures[0].len(), 24 + 1, "every 17 steps, and the last");
}

/// A machine among stones; in `make soak` also one that stands on the floor.
#[test]
fn and_so_have_runs_with_a_machine() {
    let plans = if soak() { &PLANS[..] } else { &PLANS[1..2] };
    let expected = compared("machine", plans, |name| Out::of(name, MACHINE_CASE, &MACHINE_SETTINGS));
    assert!(expected.machines.is_some_and(|text| text.lines().count() > 50));
    if soak() {
        compared("scoop", plans, |name| Out::of(name, "inputs/scoop.toml", &MACHINE_SETTINGS));
    }
}

fn compared(what: &str, plans: &[Plan], out: impl Fn(&str) -> Out) -> Results {
    let mut random = Random::new(1);
    let straight = out(&format!("{what}-straight"));
    straight.finish(1, STEPS, &[]);
    let expected = straight.results();
    let rounds = if soak() { 10 } else { 1 };
    for round in 0..rounds {
        for (count, ranks) in plans {
            let count = *count;
            let mut steps: Vec<u64> = (0..count).map(|_| 1 + random.below(STEPS - 1)).collect();
            steps.sort_unstable();
            let stops: Vec<(u64, usize)> = steps.into_iter().zip(ranks.iter().copied()).collect();
            let told = format!("{what}, round {round}, stops {stops:?}, then {} ranks", ranks[count]);
            println!("{told}");
            let out = out(&format!("{what}-stops-{round}-{count}-{}", ranks.len()));
            interrupted(&out, &stops, ranks[count]);
            expected.assert_same(&out.results(), &told);
            vtk_reads(&out.path, &expected);
        }
    }
    expected
}

/// A Python that has VTK.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("BRECCIA_PYTHON").map(PathBuf::from);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
    let has_vtk = |python: &PathBuf| {
        Command::new(python)
            .arg(script())
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    };
    named.into_iter().chain([own, "python3".into()]).find(has_vtk)
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/read_vtkhdf.py")
}

/// The real reader finds every step, with as many points as there should be.
fn vtk_reads(path: &Path, expected: &Results) {
    let Some(python) = python() else {
        return crate::support::skip::part("no Python with VTK");
    };
    let paths = ["bodies.vtkhdf", "contacts.vtkhdf"].map(|name| path.join(name));
    let output = Command::new(python).arg(script()).args(paths).output().expect("Python starts");
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && problem.is_empty(), "{problem}");
    let seen: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for (file, expected) in seen["files"].as_array().expect("files").iter().zip(&expected.pictures) {
        let seen: Vec<(f64, usize)> = file
            .as_array()
            .expect("steps")
            .iter()
            .map(|step| {
                (step["time"].as_f64().unwrap_or(-1.0), step["points"].as_u64().unwrap_or(0) as usize)
            })
            .collect();
        let wanted: Vec<(f64, usize)> =
            expected.iter().map(|picture| (picture.time, picture.points.len())).collect();
        let same = seen.len() == wanted.len()
            && seen.iter().zip(&wanted).all(|(a, b)| (a.0 - b.0).abs() < 1e-12 && a.1 == b.1);
        assert!(same, "VTK reads {seen:?} instead of {wanted:?}");
    }
    println!("VTK {} reads {} steps", seen["version"], expected.pictures[0].len());
}

/// The end of a run is a place to go on from like any other; a run at its end has nothing left to do.
#[test]
fn a_finished_run_is_left_alone_or_made_longer() {
    let (straight, out) = (Out::new("long"), Out::new("longer"));
    straight.finish(1, 120, &[]);
    out.finish(2, 70, &[]);
    let before = out.results();
    let words = out.finish(1, 70, &["--restart", "auto"]);
    assert!(words.contains("nothing to do"), "{words}");
    before.assert_same(&out.results(), "left alone");
    // A kill after the last checkpoint and before everything had its name.
    let summary = out.path.join("summary.json");
    let text = std::fs::read_to_string(&summary).expect("a summary");
    std::fs::write(&summary, text.replace("finished", "running")).expect("a summary");
    std::fs::remove_file(out.path.join("final.h5")).expect("a final state");
    let frames = out.path.join("contacts.vtkhdf");
    let bytes = std::fs::read(&frames).expect("frames");
    std::fs::write(&frames, [&bytes[..], &[0; 999]].concat()).expect("frames");
    out.finish(2, 70, &["--restart", "auto"]);
    before.assert_same(&out.results(), "ended properly");
    out.finish(1, 120, &["--restart", "latest"]);
    straight.results().assert_same(&out.results(), "made longer");
    let (code, words) = out.run(1, 60, &["--restart", "latest"]);
    assert!(code == 2 && words.contains("beyond the end"), "{code}: {words}");
}
