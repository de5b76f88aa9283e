//! The tamping unit of `inputs/tamping`: what it is made of, and what must hold at every step of a run among
//! stones.

mod common;
mod support;

use breccia::multibody::{Model, Multibody};
use breccia::setup;
use common::machine::shipped;
use support::{Directory, project, run};

/// A few stones instead of a thousand: the same chain of cases in seconds. Returns the `--set` for the start.
fn few_stones(directory: &Directory) -> String {
    let bed = directory.file("bed");
    let shorter = ["--set", "simulation.duration=0.4", "--threads", "1"];
    let few = [&shorter[..], &["--set", "parameters.bed_stones=110"]].concat();
    run(&project("inputs/tamping/demo-bed.toml"), 1, &bed, &few);
    let deposit = directory.file("deposit");
    let from = format!("start.from={}", bed.join("final.h5").display());
    let more = [&shorter[..], &["--set", "parameters.side_stones=60", "--set", &from]].concat();
    run(&project("inputs/tamping/demo-deposit.toml"), 1, &deposit, &more);
    format!("start.from={}", deposit.join("final.h5").display())
}

fn column(text: &str, name: &str) -> Vec<f64> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let place = names.iter().position(|known| *known == name).unwrap_or_else(|| panic!("{name}: {names:?}"));
    lines
        .map(|line| line.split(',').nth(place).and_then(|word| word.parse().ok()).expect("a number"))
        .collect()
}

#[test]
fn the_machine_is_that_of_the_paper() {
    // Without a start: the deposit need not be there.
    let text = r#"
title = "unit"
include = ["ballast.include.toml", "sleeper.include.toml", "machine.toml"]
[simulation]
time_step = 5e-4
duration = 1
"#;
    let folder = project("inputs/tamping/unit.toml");
    let case = breccia::input::parse_case(&folder.display().to_string(), text, &[]);
    let case = case.unwrap_or_else(|errors| panic!("{errors}"));
    let machines = setup::machine::build(&case).unwrap_or_else(|error| panic!("{error}"));
    let machine: &Multibody = &machines[0].multibody;
    let model: &Model = machine.model();
    assert_eq!((model.body_count(), model.nv()), (8, 10));
    assert_eq!(model.cut_names().count(), 2);
    let words = machine.describe();
    assert!(words.contains("closure equations: 4 kept of 6"), "{words}");
    let independent = words.lines().find_map(|line| line.trim().strip_prefix("independent: ")).expect("told");
    assert_eq!(independent.split(", ").count(), 6, "{words}");
    // Table 2.
    let masses: f64 = [50.0, 20.0, 15.0, 15.0, 15.0, 3.0, 2.0, 3.0].iter().sum();
    let told: f64 = words.split('(').filter_map(|word| word.split_once(" kg)")?.0.parse::<f64>().ok()).sum();
    assert_eq!(told, masses, "{words}");
    assert!(machine.closure().error < 1e-12);
}

#[test]
fn imposed_vibration_takes_three_degrees_of_freedom_away() {
    for name in ["tamping/15hz-imposed.toml", "tamping/small-15hz-imposed.toml"] {
        let case = shipped(name, &[]);
        let machines = setup::machine::build(&case).unwrap_or_else(|error| panic!("{error}"));
        let words = machines[0].multibody.describe();
        assert!(words.contains("3 prescribed"), "{words}");
        assert!(words.contains("independent: dive, wheel, link"), "{words}");
    }
}

#[test]
fn closure_momentum_and_bits_hold_in_a_dive_among_stones() {
    let directory = Directory::new("tamping");
    let start = few_stones(&directory);
    let faster = "parameters.hover_time=0.01";
    let mut first = None;
    for ranks in [1, 2, 4] {
        let place = directory.file(&ranks.to_string());
        // The lower the stones, the lower the unit.
        let lower =
            ["--set", "parameters.clearance=-0.22", "--set", "parameters.lowest=0.02", "--set", faster];
        let more = [&["--steps", "260", "--set", &start][..], &lower].concat();
        let summary = run(&project("inputs/tamping/demo.toml"), ranks, &place, &more);
        let read = |name: &str| std::fs::read_to_string(place.join(name)).expect("a run leaves its series");
        let found = (summary["digest"].clone(), read("series.csv"), read("machines.csv"));
        let (_, series, machines) = first.get_or_insert_with(|| found.clone());
        assert!((&found.1, &found.2) == (series, machines) && !found.0.is_null(), "{ranks} ranks differ");
        assert_eq!(first.as_ref().map(|first| &first.0), Some(&found.0), "{ranks} ranks");
    }
    let (_, series, machines) = first.expect("three runs");
    let of_machine = |name: &str| column(&machines, &format!("tamper/{name}"));
    assert!(of_machine("closure_error").iter().all(|error| *error < 1e-12));
    // The unit's balance: what the joint of the support carries along its axis is the diving force.
    let (joint, force) = (of_machine("joint.dive.force/z"), of_machine("force.diving"));
    let largest = force.iter().fold(0.0f64, |most, force| most.max(force.abs()));
    assert!(joint.iter().zip(&force).all(|(joint, force)| (joint - force).abs() < 1e-9 * largest));
    // The ballast's: gravity, walls, sleeper and tools change its momentum, and nothing else.
    let names = series.lines().next().expect("a head").split(',');
    let walls = names
        .filter(|name| name.starts_with("force/") && name.ends_with("/z"))
        .map(|name| column(&series, name));
    let tools = ["left", "right"].map(|arm| of_machine(&format!("contact.{arm}.force/z")));
    let touched =
        tools[0].iter().zip(&tools[1]).filter(|(left, right)| left.abs() + right.abs() > 100.0).count();
    assert!(touched > 50, "the tools hardly met a stone: {touched} steps");
    let mut on_others = vec![0.0; tools[0].len()];
    for forces in walls.chain(tools) {
        on_others.iter_mut().zip(forces).for_each(|(sum, force)| *sum += force);
    }
    let momentum = column(&series, "momentum/z");
    let weight = 9.81 * mass(&directory);
    for step in 1..momentum.len() {
        let change = (momentum[step] - momentum[step - 1]) / 5e-4;
        let forces = -weight - on_others[step];
        assert!((change - forces).abs() < 1e-9 * (weight + largest), "step {step}: {change}, {forces}");
    }
    // What the forces of the machine put in by their powers is what they do along their joints.
    let (power, joint) = (of_machine("power.diving"), of_machine("dive"));
    let work: f64 = power[1..].iter().sum::<f64>() * 5e-4;
    let along: f64 = joint.windows(2).zip(&force[1..]).map(|(ends, force)| force * (ends[1] - ends[0])).sum();
    assert!((work - along).abs() < 1e-9 * along.abs().max(1.0), "{work}, {along}");
}

/// Of all stones, from the summary of a run.
fn mass(directory: &Directory) -> f64 {
    let text = std::fs::read_to_string(directory.file("1").join("summary.json")).expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let groups = summary["groups"].as_array().expect("groups");
    let stones = groups.iter().filter(|group| group["kind"] != "machine");
    stones.filter_map(|group| group["mass"].as_f64()).sum()
}
