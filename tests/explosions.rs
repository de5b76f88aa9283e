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
    run("damped", &slider(2.0, 2e-3, damper), &[]).refused(&["\"mount\" is too stiff", "9.1e-4 s would do"]);
    // A law given by formulas, among others that are soft.
    let actuator = "[[machine.spring]]\nname = \"soft\"\njoint = \"slide\"\nstiffness = 10\n\
         [[machine.actuator]]\nname = \"servo\"\njoint = \"slide\"\nlaw = \"-4e6*x - 100*v\"\n";
    run("servo", &slider(1.0, 2e-3, actuator), &[]).refused(&["\"servo\" is too stiff"]);
    // A mass near zero.
    let spring = "[[machine.spring]]\nname = \"mount\"\njoint = \"slide\"\nstiffness = 1e3\n";
    run("light", &slider(1e-9, 1e-3, spring), &[]).refused(&["\"mount\" is too stiff"]);
}

/// No mass, next to none, and one whose joint nothing can hold.
#[test]
fn masses_that_no_body_has_are_refused_with_their_keys() {
    let spring = "[[machine.spring]]\nname = \"mount\"\njoint = \"slide\"\nstiffness = 1e3\n";
    let ended = run("tiny", &slider(1e-300, 1e-3, spring), &[]);
    ended.refused(&["case.toml:13: machine.arm.body.carriage.mass: found 1e-300, expected 0 for a body"]);
    run("none", &slider(0.0, 1e-3, spring), &[])
        .refused(&["case.toml:16: machine.arm.joint.slide", "coordinate `slide` moves no mass"]);
    let wheel = slider(1.0, 1e-3, "").replace("prismatic", "revolute");
    let tiny = wheel.replace("[1, 1, 1]", "[1e-60, 1, 1]");
    run("thin", &tiny, &[]).refused(&["machine.arm.body.carriage.inertia: found a moment of 1e-60"]);
    // It has no surface whose speed could be bounded.
    let motor = "[[machine.actuator]]\nname = \"motor\"\njoint = \"slide\"\nlaw = \"1\"\n";
    let light = wheel.replace("[1, 1, 1]", "[1e-30, 1e-30, 1e-30]") + motor;
    run("wheel", &light, &[]).failed_within(0, &["\"carriage\" of machine \"arm\"", "rad/s", "\"motor\""]);
}

#[test]
fn very_unequal_masses_are_worth_a_word() {
    let case =
        balls("[0, 0, 0]", "[0, 0, 0]", "").replace("name = \"other\"", "name = \"other\"\nmass = 1e-12");
    let ended = run("unequal", &case, &["--steps", "3"]);
    assert_eq!(ended.code, 0, "{}", ended.words);
    assert!(
        ended.words.contains("warning: \"other\" has a body of 1.0e-12 kg, \"shot\" one of"),
        "{}",
        ended.words
    );
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

/// A plate spins about the axis that is not stable, with steps that make energy of its gyroscopic forces; its
/// centre does not move. The checkpoint is from before the step, and a run with better forces goes on from
/// it.
#[test]
fn energy_from_nowhere_ends_the_step_that_would_bring_it() {
    let plate = |forces: &str| {
        format!(
            r#"
title = "Plate"
[simulation]
time_step = 5e-3
duration = 1.0
gravity = [0, 0, 0]

[[machine]]
name = "top"
force_evaluation = "{forces}"

[[machine.body]]
name = "plate"
mass = 2
inertia = [1, 2, 3]

[[machine.joint]]
name = "pivot"
kind = "spherical"
child = "plate"
velocity = [1, 100, 1]

[output]
interval = 0.1
"#
        )
    };
    let ended = run("energy", &plate("start-velocity"), &[]);
    ended.failed_within(
        120,
        &["J more than were put in", "\"plate\" of machine \"top\"", "rad/s", "exploded"],
    );
    ended.failed_within(120, &["the state before this step is a checkpoint"]);
    let (out, step) = (ended.out(), ended.step.expect("some steps"));
    assert!(out.join(format!("checkpoints/checkpoint-{step:012}.h5")).exists());
    // 1e4 J at the start; ten times that is let pass besides.
    let rows = series(out.join("series.csv"));
    assert_eq!(rows.last().map(|row| row["step"]), Some(step as f64));
    assert!(rows.iter().all(|row| row["machine_kinetic_energy"] < 1.1e5), "{rows:?}");
    let again = |case: String, more: &[&str]| {
        let file = ended.directory.file("case.toml");
        std::fs::write(&file, case).expect("a case");
        let (file, out) = (file.display().to_string(), out.display().to_string());
        breccia(1, &[&["run", &file, "--out", &out, "--restart", "auto"][..], more].concat())
    };
    // By now it is so fast that a start is refused; forced, it comes to the same end by the same bits.
    let (code, words) = again(plate("start-velocity"), &[]);
    assert!(code == 1 && words.contains("too stiff for steps of 0.005 s"), "{words}");
    let (code, words) = again(plate("start-velocity"), &["--force"]);
    assert_eq!(code, 3, "{words}");
    let said = |words: &str| words.lines().find(|line| line.contains("were put in")).map(str::to_string);
    assert_eq!(said(&words), said(&ended.words));
    let more = (step + 1).to_string();
    let (code, words) = again(plate("middle-velocity"), &["--changed-case", "--force", "--steps", &more]);
    assert_eq!(code, 0, "{words}");
}

/// A wall by a law that is far too stiff for the step, and flat where the machine starts.
#[test]
fn a_stiff_wall_ends_the_run_where_it_is_hit() {
    let wall = "[[machine.actuator]]\nname = \"wall\"\njoint = \"slide\"\nlaw = \"if(x < 0, -1e9*x, 0)\"\n";
    let case = slider(1.0, 1e-3, wall).replace("position = 0.1", "position = 0.1\nvelocity = -2");
    // It is there after 50 steps.
    let ended = run("wall", &case, &[]);
    ended.failed_within(52, &["\"carriage\" of machine \"arm\"", "\"wall\"", "is a checkpoint"]);
}

/// Contacts that give way are solved for, and so may be as stiff as they like.
#[test]
fn stiff_contacts_of_a_machine_raise_no_alarm() {
    for place in ["end", "middle"] {
        let contact = format!("stiffness = 1e13\nspring_at = \"{place}\"");
        let case = balls("[0, 0, 0]", "[0, 0, 0]", "").replace("restitution = 0.5", &contact);
        let press = "[[machine]]\nname = \"press\"\n\
             [[machine.body]]\nname = \"plate\"\nshape = \"plate\"\nmaterial = \"steel\"\n\
             [[machine.joint]]\nname = \"guide\"\nkind = \"prismatic\"\nchild = \"plate\"\naxis = [0, 0, 1]\n\
             on_parent = [-0.5, 0, 0]\nposition = 0.06\n\
             [[shape]]\nname = \"plate\"\nkind = \"box\"\nsize = [0.2, 0.2, 0.1]\n";
        let ended =
            run("contact", &case.replacen("[output]", &format!("{press}[output]"), 1), &["--steps", "300"]);
        assert_eq!(ended.code, 0, "{place}: {}", ended.words);
    }
}

/// The shipped tamping unit with springs that are too stiff, or damped fifty times critically.
#[test]
fn the_tamping_unit_with_wrong_springs_is_refused() {
    let case = support::project("inputs/tamping/demo.toml").display().to_string();
    for (wrong, step) in
        [("parameters.K_spring=1e12", "7.1e-6 s"), ("parameters.damping_ratio=50", "2.0e-4 s")]
    {
        let (code, words) = breccia(1, &["check", &case, "--set", wrong]);
        assert_eq!(code, 1, "{words}");
        for part in ["machine.toml:289: machine.tamper.spring.spring_z", "is too stiff", step] {
            assert!(words.contains(part), "{part}\n{words}");
        }
    }
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
    ended.failed_within(0, &["the force of \"pole\" on `slide` is not a number", "is a checkpoint"]);
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

/// Numbers from 0 to 1, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.roll()
    }
}

/// Balls and stones thrown into a box, with laws and speeds of all kinds, and half of the times a machine
/// that stirs.
fn scene(dice: &mut Dice) -> String {
    let predictive = dice.roll() < 0.5;
    let law = if predictive { "law = \"predictive\"" } else { "" };
    let restitution = if predictive { 0.0 } else { dice.between(0.0, 0.95) };
    let stiffness = if predictive && dice.roll() < 0.5 {
        format!("stiffness = {:.3e}", 10f64.powf(dice.between(4.0, 8.0)))
    } else {
        String::new()
    };
    let machine = if dice.roll() < 0.5 {
        format!(
            "[[machine]]\nname = \"stirrer\"\n[[machine.body]]\nname = \"blade\"\nshape = \"blade\"\nmaterial = \"rock\"\n\
             [[machine.joint]]\nname = \"axle\"\nkind = \"revolute\"\nchild = \"blade\"\naxis = [0, 0, 1]\non_parent = [0, 0, 0.06]\n\
             velocity = {:.3}\n[[machine.actuator]]\nname = \"motor\"\njoint = \"axle\"\nlaw = \"{:.3}*sin(40*t) - 0.05*v\"\n",
            dice.between(-5.0, 5.0),
            dice.between(0.0, 3.0)
        )
    } else {
        String::new()
    };
    format!(
        r#"
title = "Random"
[simulation]
time_step = {:.3e}
duration = 10.0
gravity = [{:.2}, 0, {:.2}]

[solver]
tolerance = 1e-3
maximum_sweeps = 100
penetration_correction = {}

[[material]]
name = "rock"
density = {:.0}

[[contact]]
materials = ["rock", "rock"]
friction = {:.2}
restitution = {restitution:.2}
{law}
{stiffness}

[[shape]]
name = "ball"
kind = "sphere"
radius = {:.3}

[[shape]]
name = "blade"
kind = "box"
size = [0.2, 0.02, 0.05]

[[shape]]
name = "plane"
kind = "half-space"

[[body]]
name = "floor"
shape = "plane"
material = "rock"
motion = "fixed"

[[grains]]
name = "grains"
generator = "stones"
material = "rock"
count = {}
region = {{ min = [-0.15, -0.15, 0.15], max = [0.15, 0.15, 0.6] }}
velocity = [{:.1}, 0, {:.1}]

{machine}
[output]
interval = 1.0
"#,
        10f64.powf(dice.between(-4.0, -2.7)),
        dice.between(-2.0, 2.0),
        dice.between(-30.0, 0.0),
        if dice.roll() < 0.5 { 0.0 } else { 0.1 },
        dice.between(500.0, 8000.0),
        dice.between(0.0, 1.5),
        dice.between(0.005, 0.03),
        dice.between(1.0, 40.0) as u32,
        dice.between(-10.0, 10.0),
        dice.between(-20.0, 5.0),
    )
}

#[test]
fn random_scenes_raise_no_alarm() {
    let mut dice = Dice(20);
    for number in 0..40 {
        let case = scene(&mut dice);
        let directory = Directory::new("random");
        let (file, out) = (directory.file("case.toml"), directory.file("out").display().to_string());
        std::fs::write(&file, &case).expect("a case");
        let file = file.display().to_string();
        let (code, words) = breccia(1, &["run", &file, "--out", &out, "--steps", "150"]);
        assert_eq!(code, 0, "scene {number}:\n{case}\n{words}");
    }
}

/// Under BRECCIA_SOAK: stones fall and lie for 20,000 steps.
#[test]
fn a_pile_raises_no_alarm() {
    let steps = if std::env::var_os("BRECCIA_SOAK").is_some() { "20000" } else { "300" };
    let directory = Directory::new("pile");
    let out = directory.file("out").display().to_string();
    let case = ["run", "inputs/deposit.toml", "--out", &out, "--set", "grains.ballast.count=60"];
    let (code, words) = breccia(2, &[&case[..], &["--steps", steps]].concat());
    assert_eq!(code, 0, "{words}");
}

/// Column by column, the rows of a series.
fn series(path: PathBuf) -> Vec<std::collections::BTreeMap<String, f64>> {
    let text = std::fs::read_to_string(path).expect("a series");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let row = |line: &str| {
        let values = line.split(',').map(|value| value.parse().unwrap_or(f64::NAN));
        names.iter().map(ToString::to_string).zip(values).collect()
    };
    lines.map(row).collect()
}

/// A plate on a vertical guide and a soft spring begins 1 mm deep in the floor: corrections lift it, which is
/// known as their work.
#[test]
fn corrections_that_lift_a_machine_do_work() {
    for correction in ["penetration_correction = 0.1", "penetration_limit = 1e-4"] {
        let case = balls("[0, 0, 0]", "[0, 0, 0]", "").replace(
            "[[material]]",
            &format!(
                "[solver]\n{correction}\n[[machine]]\nname = \"press\"\n\
                 [[machine.body]]\nname = \"plate\"\nshape = \"plate\"\nmaterial = \"steel\"\n\
                 [[machine.joint]]\nname = \"guide\"\nkind = \"prismatic\"\nchild = \"plate\"\naxis = [0, 0, 1]\n\
                 on_parent = [-0.5, 0, 0]\nposition = 0.049\n\
                 [[machine.spring]]\nname = \"mount\"\njoint = \"guide\"\nstiffness = 1000\nrest = 0.2\n\
                 [[shape]]\nname = \"plate\"\nkind = \"box\"\nsize = [0.2, 0.2, 0.1]\n\
                 [[material]]"
            ),
        );
        let ended = run("lifted", &case, &["--steps", "100"]);
        assert_eq!(ended.code, 0, "{}", ended.words);
        let rows = series(ended.out().join("series.csv"));
        let most = rows.iter().map(|row| row["energy_balance"]).fold(f64::NEG_INFINITY, f64::max);
        let last = rows.last().expect("rows");
        // 31.2 kg by 1 mm, less what the spring gives: 0.306 - 0.151 J.
        assert!((last["work_of_corrections"] - 0.15).abs() < 0.02, "{correction}: {last:?}");
        assert!(most < 1e-3, "{correction}: {most} J");
    }
}

/// What prescribed joints, kinematic bodies and actuators put in is all that there is: contacts and dampers
/// only take. Without their columns the plough alone would have gained some joules.
#[test]
fn no_energy_comes_from_nowhere() {
    let cases = [
        ("plough", "work_of_motions"),
        ("tamper", "work_of_motions"),
        ("rotating-drum", "work_of_motions"),
        ("scoop", "work_of_forces"),
        ("light-tool", "work_of_forces"),
        ("woodpecker", ""),
    ];
    for (case, source) in cases {
        let directory = Directory::new(case);
        let (file, out) = (format!("inputs/{case}.toml"), directory.file("out").display().to_string());
        let (code, words) = breccia(2, &["run", &file, "--out", &out, "--steps", "200"]);
        assert_eq!(code, 0, "{words}");
        let rows = series(directory.file("out/series.csv"));
        let most = rows.iter().map(|row| row["energy_balance"]).fold(f64::NEG_INFINITY, f64::max);
        let last = rows.last().expect("rows");
        let moving = last["kinetic_energy"] + last["machine_kinetic_energy"] + last["work_of_motions"].abs();
        assert!(most <= 1e-6 * (1.0 + moving), "{case}: {most} J");
        if !source.is_empty() {
            assert!(last[source].abs() > 1e-4, "{case}: {source} {}", last[source]);
        }
    }
}
