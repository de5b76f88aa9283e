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
            let name = path.display().to_string();
            // Files named so are parts of cases.
            if name.ends_with(".toml") && !name.ends_with(".include.toml") {
                found.push(path);
            }
        }
    }
}

#[test]
fn every_case_checks_and_runs_a_few_steps() {
    let mut found = Vec::new();
    cases(&project("inputs"), &mut found);
    found.sort();
    assert!(found.len() >= 18, "{found:?}");
    let directory = Directory::new("inputs");
    for case in found {
        let name = case.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&case).expect("a readable case");
        let mut more = vec!["--steps", "3"];
        // A case that starts from another one's end: that one first, to its end, as a user would.
        let start = format!("start.from={}", directory.file("whole-deposit").join("final.h5").display());
        if text.lines().any(|line| line.trim() == "[start]") {
            run(&project("inputs/deposit.toml"), 2, &directory.file("whole-deposit"), &[]);
            more.extend(["--set", &start]);
        }
        let (code, words) = breccia(1, &[&["check", &case.display().to_string()], &more[2..]].concat());
        assert_eq!(code, 0, "check {}:\n{words}", case.display());
        let summary = run(&case, 1, &directory.file(&name), &more);
        assert_eq!(summary["steps"], 3, "{}", case.display());
    }
}
