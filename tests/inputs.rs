//! Every shipped case runs.

mod support;

use std::path::{Path, PathBuf};
use support::{Directory, breccia, project, run};

fn cases(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("inputs/ is there") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            cases(&path, found);
        } else {
            let is_case = path.extension().is_some_and(|extension| extension == "toml")
                // Without it a file is a part of cases.
                && std::fs::read_to_string(&path).expect("a readable case").contains("[simulation]");
            if is_case {
                found.push(path);
            }
        }
    }
}

/// Runs what a case starts from, to its end as a user would, and tells where: for tamping with few stones in the shortest of its boxes.
fn before(case: &Path, directory: &Directory) -> PathBuf {
    let once = |case: &str, more: &[&str]| {
        let place = directory.file(&format!("{}-whole", case.replace('/', "-")));
        if !place.exists() {
            run(&project(case), 1, &place, more);
        }
        place
    };
    if !case.parent().is_some_and(|folder| folder.ends_with("tamping")) {
        return once("inputs/deposit.toml", &[]);
    }
    let bed = once(
        "inputs/tamping/demo-bed.toml",
        &["--set", "parameters.bed_stones=60", "--set", "simulation.duration=0.4"],
    );
    if case.display().to_string().ends_with("deposit.toml") {
        return bed;
    }
    let from = format!("start.from={}", bed.join("final.h5").display());
    once("inputs/tamping/demo-deposit.toml", &["--set", "parameters.side_stones=30", "--set", &from])
}

#[test]
fn every_case_checks_and_runs_a_few_steps() {
    let mut found = Vec::new();
    cases(&project("inputs"), &mut found);
    found.sort();
    assert!(found.len() >= 18, "{found:?}");
    let directory = Directory::new("inputs");
    for case in found {
        let name =
            case.strip_prefix(project("inputs")).unwrap_or(&case).display().to_string().replace('/', "-");
        let text = std::fs::read_to_string(&case).expect("a readable case");
        let mut more = vec!["--steps", "3"];
        let start;
        if text.lines().any(|line| line.trim() == "[start]") {
            start = format!("start.from={}", before(&case, &directory).join("final.h5").display());
            more.extend(["--set", &start]);
        }
        let (code, words) = breccia(1, &[&["check", &case.display().to_string()], &more[2..]].concat());
        assert_eq!(code, 0, "check {}:\n{words}", case.display());
        let summary = run(&case, 1, &directory.file(&name), &more);
        assert_eq!(summary["steps"], 3, "{}", case.display());
    }
}
