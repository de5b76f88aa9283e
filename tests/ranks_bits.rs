//! The promise: the same case gives the same bits on any number of ranks and threads.

mod support;

use support::{Directory, project, run};

/// What must not depend on the arrangement.
fn physics(summary: &serde_json::Value) -> [serde_json::Value; 5] {
    ["digest", "contact_points", "sweeps", "worst_penetration", "kinetic_energy"].map(|key| {
        assert!(!summary[key].is_null(), "the summary has {key}");
        summary[key].clone()
    })
}

/// Series rows too, as text: shortest round-trip numbers are equal only if the bits are.
fn series(directory: &Directory, name: &str) -> String {
    std::fs::read_to_string(directory.file(name).join("series.csv")).expect("a run leaves a series")
}

fn same_on_all(case: &str, steps: &str, arrangements: &[(usize, &str)], more: &[&str]) {
    let name = case.replace(['/', '.'], "-");
    let directory = Directory::new(&name);
    let mut first = None;
    for &(ranks, threads) in arrangements {
        let place = format!("{ranks}x{threads}");
        let mut arguments = vec!["--steps", steps, "--threads", threads];
        arguments.extend(more);
        let summary = run(&project(case), ranks, &directory.file(&place), &arguments);
        let found = (physics(&summary), series(&directory, &place));
        match &first {
            None => first = Some(found),
            Some(first) => assert!(*first == found, "{case} on {place} (ranks x threads) differs: {summary}"),
        }
    }
}

#[test]
fn falling_stones() {
    let arrangements = [(1, "1"), (1, "2"), (2, "1"), (3, "1"), (4, "1"), (8, "1"), (2, "2")];
    same_on_all("inputs/ballast-box.toml", "220", &arrangements, &[]);
}

#[test]
fn a_settled_pile() {
    let arrangements = [(1, "1"), (2, "1"), (4, "2"), (7, "1")];
    same_on_all("inputs/stones1000-settled.toml", "6", &arrangements, &["--set", "solver.maximum_sweeps=40"]);
}

#[test]
fn the_accelerated_solver() {
    let arrangements = [(1, "2"), (2, "1"), (3, "1")];
    for acceleration in ["conjugate-gradient", "momentum"] {
        let acceleration = format!("solver.acceleration={acceleration}");
        let more = ["--set", "solver.maximum_sweeps=40", "--set", &acceleration];
        same_on_all("inputs/stones1000-settled.toml", "4", &arrangements, &more);
    }
}

#[test]
fn kinematic_bodies_and_spheres() {
    same_on_all("inputs/rotating-drum.toml", "60", &[(1, "1"), (2, "1"), (4, "1")], &[]);
}
