//! The promise: the same case gives the same bits on any number of ranks and threads.

mod support;

use breccia::lanes::Instructions;
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

/// All arrangements that the promise names, or in `make test` some of them.
fn arrangements(some: &[(usize, &'static str)]) -> Vec<(usize, &'static str)> {
    let all = [1, 2, 3, 4, 7, 8].into_iter().flat_map(|ranks| [(ranks, "1"), (ranks, "2")]);
    if std::env::var_os("BRECCIA_SOAK").is_some() { all.collect() } else { some.to_vec() }
}

fn steps(some: &'static str, all: &'static str) -> &'static str {
    if std::env::var_os("BRECCIA_SOAK").is_some() { all } else { some }
}

fn same_on_all(case: &str, steps: &str, arrangements: &[(usize, &str)], more: &[&str]) -> Directory {
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
    directory
}

/// A table of numbers by column name.
fn table(directory: &Directory, run: &str, file: &str) -> impl Fn(&str) -> Vec<f64> {
    let text = std::fs::read_to_string(directory.file(run).join(file)).expect("a run leaves its series");
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_string).collect::<Vec<_>>());
    let names = lines.next().expect("a head");
    let rows: Vec<Vec<f64>> =
        lines.map(|row| row.iter().map(|word| word.parse().expect("a number")).collect()).collect();
    move |name| {
        let column =
            names.iter().position(|known| known == name).unwrap_or_else(|| panic!("{name}: {names:?}"));
        rows.iter().map(|row| row[column]).collect()
    }
}

/// At every step: the momentum of all grains changes by gravity and by what walls and tools gave, and by
/// nothing else.
fn momentum_balances(directory: &Directory, run: &str, walls: &[&str], tools: &[&str], step: f64) {
    let series = table(directory, run, "series.csv");
    let summary = std::fs::read_to_string(directory.file(run).join("summary.json")).expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    let grains =
        summary["groups"].as_array().expect("groups").iter().filter(|group| group["kind"] == "spheres");
    let mass: f64 = grains.map(|group| group["mass"].as_f64().expect("a mass")).sum();
    let tool_series = (!tools.is_empty()).then(|| table(directory, run, "machines.csv"));
    for (axis, gravity) in [("x", 0.0), ("y", 0.0), ("z", -9.81)] {
        let momentum = series(&format!("momentum/{axis}"));
        let mut forces: Vec<Vec<f64>> =
            walls.iter().map(|wall| series(&format!("force/{wall}/{axis}"))).collect();
        let tool_force = |tool: &&str| tool_series.as_ref().map(|table| table(&format!("{tool}/{axis}")));
        forces.extend(tools.iter().filter_map(tool_force));
        assert!(momentum.len() > 50 && forces.iter().all(|force| force.len() == momentum.len()));
        for row in 1..momentum.len() {
            let given: f64 = forces.iter().map(|force| -force[row] * step).sum();
            let scale: f64 =
                forces.iter().map(|force| (force[row] * step).abs()).sum::<f64>() + mass * 9.81 * step;
            let error = momentum[row] - momentum[row - 1] - given - mass * gravity * step;
            // Momentum itself is larger than what changes it, and known to its own last bit.
            let allowed = 1e-12 * (scale + momentum[row].abs());
            assert!(error.abs() <= allowed, "{axis}, row {row}: {error:e} of {scale:e}");
        }
    }
}

#[test]
fn falling_stones() {
    let some = [(1, "1"), (1, "2"), (2, "1"), (3, "1"), (4, "1"), (8, "1"), (2, "2")];
    same_on_all("inputs/ballast-box.toml", "220", &arrangements(&some), &[]);
    if std::env::var_os("BRECCIA_SOAK").is_some() {
        same_on_all("inputs/stones1000.toml", "300", &arrangements(&some), &[]);
    }
}

#[test]
fn a_settled_pile() {
    let arrangements = [(1, "1"), (2, "1"), (4, "2"), (7, "1")];
    same_on_all("inputs/stones1000-settled.toml", "6", &arrangements, &["--set", "solver.maximum_sweeps=40"]);
}

/// Also a cluster of different processors gives the same bits.
#[test]
fn every_instruction_set() {
    let directory = Directory::new("instructions");
    let run = |name: &str, more: &[&str]| {
        let arguments = ["--steps", "4", "--threads", "1", "--set", "solver.maximum_sweeps=40"];
        let arguments = [&arguments, more].concat();
        let summary = run(&project("inputs/stones1000-settled.toml"), 2, &directory.file(name), &arguments);
        (physics(&summary), series(&directory, name))
    };
    let automatic = run("automatic", &[]);
    let sets =
        [(Instructions::Plain, "plain"), (Instructions::Avx2, "avx2"), (Instructions::Avx512, "avx512")];
    for (_, set) in sets.into_iter().filter(|(set, _)| *set <= Instructions::best()) {
        assert!(run(set, &["--instructions", set]) == automatic, "{set} differs");
    }
}

#[test]
fn the_accelerated_solver() {
    let arrangements = [(1, "2"), (2, "1"), (3, "1")];
    for (acceleration, measure) in
        [("conjugate-gradient", "fclib"), ("momentum", "fclib"), ("momentum", "scaled")]
    {
        let [acceleration, measure] =
            [format!("solver.acceleration={acceleration}"), format!("solver.measure={measure}")];
        let more = ["--set", "solver.maximum_sweeps=40", "--set", &acceleration, "--set", &measure];
        same_on_all("inputs/stones1000-settled.toml", "4", &arrangements, &more);
    }
}

/// A tolerance that nothing meets, and sweeps enough: all solves give up their momentum (after 1500 sweeps
/// without a better residual at the latest) and begin again. All copies of shared bodies are compared after
/// each sweep.
#[test]
fn solves_that_begin_again() {
    let more = ["--verify", "--set", "solver.tolerance=1e-30", "--set", "solver.maximum_sweeps=6000"];
    same_on_all("inputs/plough.toml", "2", &[(1, "2"), (2, "1"), (3, "1")], &more);
}

/// At rest colours and exchanges are those of the step before.
#[test]
fn a_column_at_rest() {
    let some = arrangements(&[(1, "1"), (2, "1"), (4, "1")]);
    same_on_all("inputs/sphere-column.toml", "100", &some, &["--verify"]);
}

#[test]
fn kinematic_bodies_and_spheres() {
    same_on_all(
        "inputs/rotating-drum.toml",
        steps("60", "300"),
        &arrangements(&[(1, "1"), (2, "1"), (4, "1")]),
        &[],
    );
}

const VERIFY: [&str; 5] =
    ["--verify", "--set", "solver.maximum_sweeps=30", "--set", "output.series_interval=5e-4"];

#[test]
fn a_column_that_crosses_every_border_with_rebalancing() {
    let some = arrangements(&[(1, "1"), (2, "2"), (4, "1")]);
    let directory = same_on_all("inputs/column-collapse.toml", steps("210", "800"), &some, &VERIFY);
    momentum_balances(&directory, "4x1", &["floor"], &[], 5e-4);
}

#[test]
fn rebalancing_changes_nothing() {
    let without = ["--set", "solver.maximum_sweeps=30", "--set", "decomposition.imbalance_threshold=1000"];
    let with = ["--set", "solver.maximum_sweeps=30", "--set", "decomposition.imbalance_threshold=1"];
    let digests = [("without", &without[..]), ("with", &with[..])].map(|(name, more)| {
        let directory = Directory::new(&format!("rebalancing-{name}"));
        let arguments = [&["--steps", "320", "--threads", "1"], more].concat();
        let summary = run(&project("inputs/rotating-drum.toml"), 3, &directory.file("out"), &arguments);
        (physics(&summary), summary["migrated"].as_u64().expect("a count"))
    });
    assert_eq!(digests[0].0, digests[1].0);
    assert!(digests[1].1 > digests[0].1, "cutting space anew moves grains: {digests:?}");
}

#[test]
fn a_plough_through_all_subdomains() {
    let some = arrangements(&[(1, "1"), (3, "2"), (7, "1")]);
    let directory = same_on_all("inputs/plough.toml", steps("200", "600"), &some, &VERIFY);
    let walls = ["floor", "near", "far", "begin", "end"];
    momentum_balances(&directory, "3x2", &walls, &["plough/contact.blade.force"], 5e-4);
}

#[test]
fn a_light_tool_touching_all_ranks() {
    let some = arrangements(&[(1, "1"), (4, "1"), (8, "1")]);
    let directory = same_on_all("inputs/light-tool.toml", steps("100", "600"), &some, &VERIFY);
    let walls = ["floor", "west", "east", "south", "north"];
    momentum_balances(&directory, "4x1", &walls, &["tool/contact.plate.force"], 5e-4);
}
