//! Runs that explode end soon, with their reason and a checkpoint; runs that only look violent go on.

mod support;

use std::path::PathBuf;
use support::{Directory, breccia};

/// A slider of `mass` kg on a joint named "slide", 0.1 m from its rest, and what is said of its forces.
fn slider(mass: f64, time_step: f64, forces: &str) -> String {
    format!(
        r#"
title = "Slider"
[simulation]
time_step = {time_step}
duration = 1.0
gravity = [0, 0, 0]

[[machine]]
name = "arm"

[[machine.body]]
name = "carriage"
mass = {mass}
inertia = [1, 1, 1]

[[machine.joint]]
name = "slide"
kind = "prismatic"
child = "carriage"
axis = [1, 0, 0]
position = 0.1

{forces}

[output]
interval = 0.1
"#
    )
}

struct Ended {
    code: i32,
    words: String,
    /// Of `summary.json`, if there is one.
    step: Option<u64>,
    directory: Directory,
}

impl Ended {
    fn out(&self) -> PathBuf {
        self.directory.file("out")
    }

    /// The run has failed within so many steps, and its words hold all of these.
    fn failed_within(&self, steps: u64, parts: &[&str]) {
        assert_eq!(self.code, 3, "{}", self.words);
        assert!(self.step.is_some_and(|step| step <= steps), "step {:?}\n{}", self.step, self.words);
        for part in parts {
            assert!(self.words.contains(part), "{part}\n{}", self.words);
        }
    }

    /// Refused before anything was written.
    fn refused(&self, parts: &[&str]) {
        assert_eq!(self.code, 1, "{}", self.words);
        assert!(!self.out().join("summary.json").exists());
        for part in parts {
            assert!(self.words.contains(part), "{part}\n{}", self.words);
        }
    }
}

/// Runs a case on two ranks.
fn run(name: &str, case: &str, more: &[&str]) -> Ended {
    let directory = Directory::new(name);
    let (file, out) = (directory.file("case.toml"), directory.file("out").display().to_string());
    std::fs::write(&file, case).expect("a case");
    let file = file.display().to_string();
    let arguments = [&["run", &file, "--out", &out][..], more].concat();
    let (code, words) = breccia(2, &arguments);
    let summary = std::fs::read_to_string(directory.file("out/summary.json")).ok();
    let summary: Option<serde_json::Value> = summary.and_then(|text| serde_json::from_str(&text).ok());
    let step = summary.and_then(|summary| summary["last_step"].as_u64());
    Ended { code, words, step, directory }
}

#[test]
fn forces_that_are_too_stiff_are_refused_with_the_step_that_would_do() {
    // ω = 1000 rad/s: steps of 2 ms at most.
    let spring = "[[machine.spring]]\nname = \"mount\"\njoint = \"slide\"\nstiffness = 2e6\n";
    let ended = run("stiff", &slider(2.0, 3e-3, spring), &[]);
    ended.refused(&["case.toml:23: machine.arm.spring.mount", "\"mount\" is too stiff", "1.8e-3 s would do"]);
    let damper = "[[machine.spring]]\nname = \"mount\"\njoint = \"slide\"\nstiffness = 0\ndamping = 4000\n";
    run("damped", &slider(2.0, 2e-3, damper), &[]).refused(&["\"mount\" is too stiff", "9.0e-4 s would do"]);
    // A law given by formulas, among others that are soft.
    let actuator = "[[machine.spring]]\nname = \"soft\"\njoint = \"slide\"\nstiffness = 10\n\
         [[machine.actuator]]\nname = \"servo\"\njoint = \"slide\"\nlaw = \"-4e6*x - 100*v\"\n";
    run("servo", &slider(1.0, 2e-3, actuator), &[]).refused(&["\"servo\" is too stiff"]);
    // A mass near zero.
    let spring = "[[machine.spring]]\nname = \"mount\"\njoint = \"slide\"\nstiffness = 1e3\n";
    run("light", &slider(1e-9, 1e-3, spring), &[]).refused(&["\"mount\" is too stiff"]);
}

#[test]
fn those_that_are_forced_to_go_on_end_with_a_checkpoint() {
    let spring = "[[machine.spring]]\nname = \"mount\"\njoint = \"slide\"\nstiffness = 2e7\n";
    let ended = run("forced", &slider(2.0, 3e-3, spring), &["--force"]);
    let named = ["\"carriage\" of machine \"arm\"", "joint \"slide\"", "\"mount\""];
    ended.failed_within(20, &named);
    ended.failed_within(20, &["the state before this step is a checkpoint"]);
    assert!(ended.out().join("checkpoints").read_dir().is_ok_and(|mut files| files.next().is_some()));
}

#[test]
fn a_phase_in_which_forces_are_too_stiff_is_not_entered() {
    let phases = "[[machine.actuator]]\nname = \"servo\"\njoint = \"slide\"\n\
         law = \"-strength*x\"\n\
         [machine.phase_values]\nstrength = \"if(t > 0.05, 4e6, 10)\"\n\
         [[machine.phase]]\nname = \"gentle\"\nuntil = \"phase.time >= 0.1\"\n\
         [[machine.phase]]\nname = \"hard\"\n";
    let ended = run("phases", &slider(1.0, 2e-3, phases), &[]);
    ended.failed_within(60, &["\"servo\" is too stiff", "the state before this step is a checkpoint"]);
    assert!(ended.step.is_some_and(|step| step >= 49), "{:?}", ended.step);
}

#[test]
fn an_actuator_that_drives_itself_ends_soon() {
    let feedback = "[[machine.actuator]]\nname = \"runaway\"\njoint = \"slide\"\nlaw = \"2e6*x\"\n";
    let ended = run("runaway", &slider(1.0, 1e-3, feedback), &[]);
    ended.failed_within(60, &["\"carriage\" of machine \"arm\"", "\"runaway\""]);
    let feedback = "[[machine.actuator]]\nname = \"runaway\"\njoint = \"slide\"\nlaw = \"1e4*(1 + v)\"\n";
    run("speeding", &slider(1.0, 1e-3, feedback), &[]).failed_within(60, &["\"runaway\""]);
    // A force that is no number.
    let pole = "[[machine.actuator]]\nname = \"pole\"\njoint = \"slide\"\nlaw = \"-1/(x - 0.1)\"\n";
    let ended = run("pole", &slider(1.0, 1e-3, pole), &[]);
    assert!(ended.code == 3 || ended.code == 1, "{}", ended.words);
}

#[test]
fn laws_with_a_limit_chatter_but_are_let_through() {
    // Beyond the limit of the step by far, but no more than 10 N.
    let limited = "[[machine.actuator]]\nname = \"servo\"\njoint = \"slide\"\n\
         law = \"max(-10, min(10, -1e8*x - 1e5*v))\"\n";
    let ended = run("limited", &slider(1.0, 1e-3, limited), &["--steps", "500"]);
    assert_eq!(ended.code, 0, "{}", ended.words);
    let friction = "[[machine.actuator]]\nname = \"brake\"\njoint = \"slide\"\nlaw = \"-20*tanh(v*1e6)\"\n";
    let ended = run("friction", &slider(1.0, 1e-3, friction), &["--steps", "500"]);
    assert_eq!(ended.code, 0, "{}", ended.words);
}

/// Balls in a box, one of them given a velocity and a spin.
fn balls(velocity: &str, spin: &str, more: &str) -> String {
    format!(
        r#"
title = "Balls"
[simulation]
time_step = 1e-3
duration = 1.0
{more}

[[material]]
name = "steel"
density = 7800

[[contact]]
materials = ["steel", "steel"]
friction = 0.3
restitution = 0.5

[[shape]]
name = "ball"
kind = "sphere"
radius = 0.02

[[shape]]
name = "plane"
kind = "half-space"

[[body]]
name = "floor"
shape = "plane"
material = "steel"
motion = "fixed"

[[body]]
name = "shot"
shape = "ball"
material = "steel"
position = [0, 0, 0.5]
velocity = {velocity}
angular_velocity = {spin}

[[body]]
name = "other"
shape = "ball"
material = "steel"
position = [0.3, 0, 0.021]

[output]
interval = 0.1
"#
    )
}

#[test]
fn a_body_that_is_too_fast_is_named() {
    let bound = "maximum_speed = 4.0";
    let ended =
        run("shot", &balls("[0, 0, 0]", "[0, 0, 0]", &format!("{bound}\ngravity = [0, 0, -100]")), &[]);
    ended.failed_within(60, &["\"shot\"", "beyond the 4.000e0 m/s of simulation.maximum_speed"]);
    // By turning: 300 rad/s at 20 mm.
    let ended = run("spin", &balls("[0, 0, 0]", "[300, 0, 0]", bound), &[]);
    ended.failed_within(20, &["\"shot\"", "by turning"]);
    // Without a bound of its own a case may be violent.
    let ended = run("violent", &balls("[5, 0, -30]", "[300, 500, 0]", ""), &["--steps", "200"]);
    assert_eq!(ended.code, 0, "{}", ended.words);
}

#[test]
fn a_force_field_that_grows_is_an_explosion() {
    // Gravity that grows tenfold in ten milliseconds, sideways, where no wall is.
    let field = "gravity = [\"min(1e6, 10^(100*t))\", 0, 0]";
    let ended = run("field", &balls("[0, 0, 0]", "[0, 0, 0]", field), &[]);
    ended.failed_within(100, &["exploded", "m/s"]);
}
