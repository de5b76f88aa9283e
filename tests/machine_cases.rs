//! `breccia check` on the shipped machines: it prints the model, and says what cannot be assembled.

mod support;

use std::process::{Command, Output};
use support::{Directory, project, run};

fn check(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_breccia"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).arg("check").args(arguments);
    command.output().expect("the program starts")
}

#[test]
fn check_prints_tree_freedom_cuts_partition_and_closure() {
    let output = check(&["inputs/slider-crank/cut-xy.toml"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for part in [
        "machine `slider-crank`: 3 bodies, 5 coordinates (0 prescribed), 3 closure equations",
        "  crank (0.038 kg): crank\n    rod (0.038 kg): rod\n",
        "slider.x, slider.y, slider.angle",
        "cut `pin`: rod – slider, coincident points",
        "independent: crank, rod, slider.angle",
        "dependent: slider.x, slider.y",
        "closure equations: 2 kept of 3, closed to ",
        "contacts: slider\n",
        "quantity slider_x: 0.45",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let output = check(&["inputs/tamper.toml"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("phases: diving, squeezing, lifting"), "{text}");
    assert!(text.contains("(prescribed)"), "{text}");
}

#[test]
fn check_says_which_loop_stays_open() {
    // The chain is 0.153 m and 0.306 m long: its end cannot come nearer than 0.153 m to the pivot of the
    // crank.
    let output = check(&[
        "inputs/slider-crank/cut-xy.toml",
        "--set",
        "machine.slider-crank.cut.pin.between=[\"rod.tip\", \"ground.origin\"]",
        "--set",
        "machine.slider-crank.partition=automatic",
    ]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    let place = "error: inputs/slider-crank/cut-xy.toml:73: machine.slider-crank.cut.pin: ";
    let cause = "the mechanism cannot be assembled: loop `pin` stays open by 1.5";
    assert!(text.contains(&format!("{place}{cause}")), "{text}");
}

/// Where nothing but a machine moves, its energies are those of the run.
#[test]
fn the_summary_has_the_energies_of_machines() {
    let directory = Directory::new("machine-energies");
    let summary = run(&project("inputs/woodpecker.toml"), 1, &directory.file("out"), &["--steps", "50"]);
    assert_eq!(summary["free_bodies"], 0);
    for (place, key) in ["kinetic_energy", "potential_energy", "spring_energy"].into_iter().enumerate() {
        let found = summary[key].as_f64().expect("a number");
        assert_eq!(Some(found), summary["machine_energies"][place].as_f64(), "{key}");
        assert!(found != 0.0, "{key}");
    }
}
