//! How well forces are known, and jams that have no rigid solution: what a run says of its own forces.

mod support;

use serde_json::Value;
use std::path::Path;
use support::{Directory, project, run};

/// A small trough, in which the plate meets the stones soon.
const SMALL: [&str; 8] = [
    "--set",
    "grains.stones.count=90",
    "--set",
    "parameters.length=0.36",
    "--set",
    "parameters.begin=0.25",
    "--set",
    "simulation.duration=0.52",
];

const CHECKED: [&str; 6] = [
    "--set",
    "output.force_check=0.05",
    "--set",
    "output.force_window=0.005",
    "--set",
    "output.series_interval=0.01",
];

fn errors(directory: &Path) -> String {
    std::fs::read_to_string(directory.join("force_errors.csv")).expect("forces were checked")
}

fn digging(directory: &Directory, name: &str, ranks: usize, more: &[&str]) -> (Value, String) {
    let out = directory.file(name);
    let summary = run(&project("inputs/digging.toml"), ranks, &out, &[&SMALL, &CHECKED[..], more].concat());
    let text = errors(&out);
    (summary, text)
}

/// Checks are tried and taken back: a run has the bits of one without, and its errors do not depend on ranks
/// or on a restart.
#[test]
fn checks_change_no_bit_and_have_the_same_bits_everywhere() {
    let directory = Directory::new("force-checks");
    let plain = run(
        &project("inputs/digging.toml"),
        1,
        &directory.file("plain"),
        &[&SMALL[..], &["--set", "output.series_interval=0.01"]].concat(),
    );
    let (alone, expected) = digging(&directory, "one", 1, &[]);
    assert_eq!(plain["digest"], alone["digest"]);
    assert_eq!(expected.lines().count(), 1 + 11, "every 100 of 1,040 steps");
    for ranks in [2, 3] {
        let (summary, text) = digging(&directory, &format!("{ranks}"), ranks, &[]);
        assert_eq!((&summary["digest"], text == expected), (&alone["digest"], true), "{ranks} ranks");
    }
    digging(&directory, "stopped", 2, &["--steps", "650"]);
    let (summary, text) = digging(&directory, "stopped", 1, &["--restart", "latest"]);
    assert_eq!((&summary["digest"], text == expected), (&alone["digest"], true), "after a restart");
    let known = summary["force_errors"].as_array().expect("a list");
    let plate =
        known.iter().find(|error| error["name"] == "digger/contact.plate.force").expect("the plate's force");
    assert_eq!(plate["checks"], 11);
    assert!(plate["mean"].as_f64() > Some(0.0), "{plate}");
}

/// The error of a run falls with its tolerance.
#[test]
fn errors_fall_with_the_tolerance() {
    let directory = Directory::new("force-errors");
    let error = |tolerance: &str| {
        let set = format!("solver.tolerance={tolerance}");
        let (summary, _) = digging(&directory, tolerance, 1, &["--set", &set]);
        let known = summary["force_errors"].as_array().expect("a list");
        let end = known.iter().find(|error| error["name"] == "force/end").expect("the end wall's force");
        end["step_error"].as_f64().expect("a number") / end["mean"].as_f64().expect("a number")
    };
    let [coarse, fine] = ["1e-2", "1e-5"].map(error);
    assert!(fine < 0.1 * coarse, "{fine} {coarse}");
}

/// Every step of a plate that is driven into a jam may meet its tolerance: the bodies overlap all the same,
/// and the run says so. Where the force is limited and stones give way there is nothing to say.
#[test]
fn a_jam_without_a_rigid_solution_is_named() {
    let directory = Directory::new("jam");
    let told = |case: &str, name: &str| {
        let out = directory.file(name).display().to_string();
        let case = project(case).display().to_string();
        let (code, words) = support::breccia(1, &[&["run", &case, "--out", &out], &SMALL[..]].concat());
        assert_eq!(code, 0, "{words}");
        let report = support::breccia(1, &["report", &out]);
        assert_eq!(report.0, 0, "{}", report.1);
        let page = std::fs::read_to_string(directory.file(name).join("report.html")).expect("a report");
        let summary = std::fs::read_to_string(directory.file(name).join("summary.json")).expect("a summary");
        let summary: Value = serde_json::from_str(&summary).expect("JSON");
        (words, page, summary["worst_overlap_share"].as_f64().expect("a number"))
    };
    let (words, page, share) = told("inputs/digging-jam.toml", "driven");
    assert!(share > 0.1, "{share}");
    assert_eq!(words.matches("overlap by").count(), 1, "{words}");
    assert!(
        words.contains("\"stones\" number") && words.contains("an actuator with a limited force"),
        "{words}"
    );
    assert!(words.contains("warning: overlaps were above 10 %"), "{words}");
    assert!(page.contains("verdict careful") && page.contains("of the size of a body"));
    let (words, page, share) = told("inputs/digging.toml", "limited");
    assert!(share < 0.1 && !words.contains("overlap by"), "{share} {words}");
    assert!(!page.contains("of the size of a body"));
}
