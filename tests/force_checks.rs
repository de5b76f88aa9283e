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

/// The numbers of a column.
fn column(text: &str, name: &str) -> Vec<f64> {
    let mut lines = text.lines();
    let place = lines.next().and_then(|line| line.split(',').position(|word| word == name));
    let place = place.unwrap_or_else(|| panic!("no column {name}"));
    let number = |line: &str| line.split(',').nth(place).and_then(|word| word.parse().ok());
    lines.map(|line| number(line).expect("a number")).collect()
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

/// The run chooses its tolerance so that the errors of its forces stay where they are wanted: the same on any
/// number of ranks and after a restart, also one in the middle of a step that was checked before.
#[test]
fn tolerances_follow_the_errors_of_forces() {
    let directory = Directory::new("force-tolerance");
    let wanted = ["--set", "solver.force_tolerance=0.01", "--set", "solver.tolerance=3e-2"];
    let (alone, expected) = digging(&directory, "one", 1, &wanted);
    let (tolerances, errors) = (column(&expected, "tolerance"), column(&expected, "worst_error"));
    assert_eq!(tolerances[0], 3e-2);
    assert!(tolerances.iter().any(|tolerance| *tolerance < 1e-2), "{expected}");
    for (k, error) in errors.iter().enumerate().take(errors.len() - 1) {
        let change = tolerances[k + 1] / tolerances[k];
        let right = if *error > 0.01 { (0.249..=0.5).contains(&change) } else { change >= 1.0 };
        assert!(right, "check {k}: error {error}, tolerance by {change}");
    }
    let (loose, _) = digging(&directory, "loose", 1, &wanted[2..]);
    assert_ne!(loose["digest"], alone["digest"]);
    for ranks in [2, 3] {
        let (summary, text) = digging(&directory, &format!("{ranks}"), ranks, &wanted);
        assert_eq!((&summary["digest"], text == expected), (&alone["digest"], true), "{ranks} ranks");
    }
    digging(&directory, "stopped", 2, &[&wanted[..], &["--steps", "700"]].concat());
    let (summary, text) =
        digging(&directory, "stopped", 1, &[&wanted[..], &["--restart", "latest"]].concat());
    assert_eq!((&summary["digest"], text == expected), (&alone["digest"], true), "after a restart");
    // It has to know the errors, and be within reason.
    for (settings, said) in [
        (&["--set", "solver.force_tolerance=0.01"][..], "without output.force_check"),
        (&["--set", "solver.force_tolerance=0", "--set", "output.force_check=0.1"], "in [1e-4, 0.5]"),
    ] {
        let out = directory.file("wrong").display().to_string();
        let case = project("inputs/digging.toml").display().to_string();
        let (code, words) = support::breccia(1, &[&["run", &case, "--out", &out], settings].concat());
        assert!(code == 1 && words.contains("solver.force_tolerance") && words.contains(said), "{words}");
    }
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

/// Nine balls lie on each other, the tenth falls on them: what columns say of rest and balance.
#[test]
fn rest_shows_in_unbalanced_forces_and_approach() {
    let directory = Directory::new("rest");
    let case = project("inputs/sphere-column.toml");
    let series = |ranks: usize, tolerance: &str, steps: &str| {
        let out = directory.file(&format!("{ranks}-{tolerance}"));
        let tolerance = format!("solver.tolerance={tolerance}");
        let set = ["--set", &tolerance, "--set", "body.ball-10.position=[0, 0, 1.05]", "--steps", steps];
        run(&case, ranks, &out, &set);
        std::fs::read_to_string(out.join("series.csv")).expect("a series")
    };
    let exact = series(1, "1e-10", "400");
    let (unbalanced, approach) = (column(&exact, "unbalanced_force"), column(&exact, "worst_approach"));
    // One of ten falls; the others carry 1 to 9 of them, five on average.
    assert!((unbalanced[50] - 0.02).abs() < 1e-6, "{}", unbalanced[50]);
    let most = unbalanced.iter().copied().fold(0.0, f64::max);
    let last = unbalanced.last().copied().unwrap_or(1.0);
    assert!(most > 0.05 && last < 1e-6, "{most} {last}");
    let worst = |approach: &[f64]| approach.iter().copied().fold(0.0, f64::max);
    assert!(worst(&approach) < 1e-7, "{}", worst(&approach));
    // It hits after some 140 steps; few sweeps are enough to compare ranks.
    let loose = series(1, "1e-2", "160");
    assert!(worst(&column(&loose, "worst_approach")) > 1e-4, "{loose}");
    for ranks in [2, 3] {
        assert!(series(ranks, "1e-2", "160") == loose, "{ranks} ranks");
    }
}

/// What a run states of the errors of its forces holds for steps that it did not check: here of one case, in
/// `jobs/force-honesty.py` of four.
#[test]
fn stated_errors_hold_for_other_steps() {
    let directory = Directory::new("honest");
    let table = |accuracy: &str| {
        let accuracy = format!("output.force_accuracy={accuracy}");
        let often = ["--set", "output.force_check=0.004", "--set", "output.force_window=1e-9"];
        digging(&directory, &accuracy, 1, &[&often[..], &["--set", &accuracy]].concat()).1
    };
    let (estimates, truth) = (table("1e-2"), table("1e-4"));
    let heading = truth.lines().next().unwrap_or_default();
    let names = heading.split(',').filter_map(|name| name.strip_suffix(".window_error"));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let size = |name: &str| mean(&column(&truth, &format!("{name}.force")));
    let largest = names.clone().map(size).fold(0.0, f64::max);
    let (mut within, mut all, mut off) = (0, 0, Vec::new());
    for name in names.filter(|name| size(name) > 0.01 * largest) {
        let [estimates, truth] = [&estimates, &truth].map(|table| column(table, &format!("{name}.error")));
        // The checks of a user: with 26 of them the largest is what is stated, and half as much again.
        let band = 1.5 * estimates.iter().step_by(5).copied().fold(0.0, f64::max);
        assert_eq!(estimates.len().div_ceil(5), 26);
        let others = (0..truth.len()).filter(|k| k % 5 != 0 && band > 0.0);
        for k in others {
            (within, all) = (within + usize::from(truth[k] <= band), all + 1);
            if truth[k] > 1e-6 * largest {
                off.push((estimates[k] / truth[k] - 1.0).abs());
            }
        }
    }
    let share = f64::from(within as u32) / f64::from(all as u32);
    off.sort_by(f64::total_cmp);
    let middle = off.get(off.len() / 2).copied().unwrap_or(1.0);
    println!("measured within the band: {within} of {all}; estimates off by {middle:.1e} in the middle");
    assert!(share >= 0.95, "{within} of {all}");
    assert!(middle < 0.05, "{middle}");
}
