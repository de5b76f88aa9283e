//! Machines of cases in motion: laws, phases, masses, assembly, and the shipped slider–cranks up to their
//! first impact.

use super::*;
use crate::geometry::Convex;
use crate::input::{parse_case, read_case};
use crate::multibody::Coordinates;
use std::path::Path;

const HEAD: &str = r#"
[parameters]
K = 40
C = 3
[simulation]
time_step = 1e-3
duration = 1.0
gravity = [0, 0, 0]
[[table]]
name = "L"
arguments = [0, 1]
values = [0, 0.5]
"#;

/// A cart on a rail with a pendulum on it.
const CART: &str = r#"
[[machine]]
name = "crane"
[[machine.body]]
name = "cart"
mass = 2
[[machine.body]]
name = "load"
mass = 1
centre = [0, 0, -0.5]
points = { tip = [0, 0, -1] }
[[machine.joint]]
name = "cart"
kind = "prismatic"
child = "cart"
axis = [1, 0, 0]
position = 0.25
velocity = -0.5
[[machine.joint]]
name = "swing"
kind = "revolute"
parent = "cart"
child = "load"
axis = [0, -1, 0]
position = 0.3
velocity = 2
"#;

fn case_of(text: &str) -> Case {
    parse_case("test.toml", &format!("{HEAD}{text}"), &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn built(text: &str) -> Machine {
    build(&case_of(text)).unwrap_or_else(|error| panic!("{error}")).remove(0)
}

/// One step without contacts, θ = ½, the controller first.
fn step(built: &mut Machine, h: f64) {
    let t = built.multibody.time();
    built.controller.update(&mut built.multibody, t).expect("numbers");
    built.multibody.advance_positions(0.5 * h);
    built.multibody.close_loops().expect("closes");
    let free = built.multibody.reduce(t, h).expect("regular").free_velocity.clone();
    built.multibody.finish(&free).expect("closes");
}

#[test]
fn laws_see_time_coordinates_quantities_parameters_and_tables() {
    let text = format!(
        r#"{CART}
[machine.quantities]
reach = "cart.position + sin(swing.position)"
double = "2*reach + load.tip.x - load.tip.vz"
[[machine.actuator]]
name = "drive"
joint = "cart"
law = "-K*(x - L(t)) - C*v + swing.velocity"
[[machine.actuator]]
name = "rope"
between = ["ground.origin", "load.tip"]
law = "100*x + 10*v + double"
[[machine.force]]
name = "wind"
point = "load.tip"
direction = [0, 0, 5]
law = "t + 2"
[[machine.torque]]
name = "brake"
body = "load"
direction = [0, 1, 0]
frame = "body"
law = 0.25
[[machine.spring]]
name = "coil"
joint = "swing.angle"
stiffness = 7
damping = 0.5
rest = 0.1
[[machine.spring]]
name = "band"
between = ["ground", "cart.centre"]
stiffness = 11
rest = 1
"#
    );
    let mut built = built(&text);
    built.controller.update(&mut built.multibody, 0.0).expect("numbers");
    built.multibody.reduce(0.0, 1e-3).expect("regular");
    let (x, v, angle, rate) = (0.25, -0.5, 0.3f64, 2.0);
    let (tip_x, tip_z) = (x + angle.sin(), -angle.cos());
    let (tip_vx, tip_vz) = (v + rate * angle.cos(), rate * angle.sin());
    let double = 2.0 * (x + angle.sin()) + tip_x - tip_vz;
    let length = tip_x.hypot(tip_z);
    let stretching = (tip_x * tip_vx + tip_z * tip_vz) / length;
    let expected = [
        ("coil", -7.0 * (angle - 0.1) - 0.5 * rate),
        ("band", -11.0 * (x - 1.0)),
        ("drive", -40.0 * x - 3.0 * v + rate),
        ("rope", 100.0 * length + 10.0 * stretching + double),
        ("wind", 2.0),
        ("brake", 0.25),
    ];
    let names: Vec<&str> = built.multibody.model().force_names().collect();
    assert_eq!(names, expected.map(|(name, _)| name));
    for ((name, expected), found) in expected.iter().zip(built.multibody.force_values()) {
        assert!((expected - found).abs() < 1e-12, "{name}: {expected} {found}");
    }
    let quantities: Vec<(&str, f64)> = built.controller.quantities().collect();
    assert!((quantities[1].1 - double).abs() < 1e-12 && quantities[1].0 == "double", "{quantities:?}");
}

/// Mass 2 + 1 pushed by 6 N while diving: x = 0.25 + t²; the end of the phase comes with the first step at
/// which it holds.
const PHASES: &str = r#"
[machine.quantities]
depth = "cart.position"
[[machine.phase]]
name = "diving"
until = "depth > 0.5 or t > 10"
[[machine.phase]]
name = "squeezing"
until = "phase.time >= 0.1"
next = "lifting"
[[machine.phase]]
name = "lifting"
[[machine.actuator]]
name = "drive"
joint = "cart"
law = { squeezing = "-C*phase.time", diving = "6", lifting = 1 }
"#;

fn phased() -> String {
    CART.replace("velocity = -0.5", "velocity = 0").replace("position = 0.3\nvelocity = 2", "held = true")
        + PHASES
}

#[test]
fn values_of_a_phase_are_those_of_its_start_and_survive_a_restart() {
    let text = phased().replace(
        "[machine.quantities]",
        "[machine.phase_values]\nheld_at = \"cart.position\"\n[machine.quantities]\nway = \"cart.position - held_at\"",
    );
    let (mut at_start, mut phase) = (0.25, 0);
    let mut built = built(&text);
    for n in 0..800 {
        let before = built.multibody.coordinates().q[0];
        step(&mut built, 1e-3);
        if built.controller.state().phase != phase {
            (at_start, phase) = (before, built.controller.state().phase);
        }
        let found: Vec<(&str, f64)> = built.controller.quantities().collect();
        assert_eq!(found[..2], [("held_at", at_start), ("way", before - at_start)], "step {n}");
        if n % 100 == 99 {
            let case = case_of(&text);
            built = restore(&case, &[built.save()]).unwrap().remove(0);
        }
    }
    assert_eq!(phase, 2);
}

#[test]
fn phases_end_at_the_first_step_that_sees_their_end() {
    // A pendulum at rest below a cart without gravity is dragged along like a mass only at its hinge: not
    // rigid. Hold it.
    let text = phased().replace(
        "kind = \"revolute\"\nparent = \"cart\"\nchild = \"load\"\naxis = [0, -1, 0]\nheld = true",
        "kind = \"fixed\"\nparent = \"cart\"\nchild = \"load\"",
    );
    let mut built = built(&text);
    let h = 1e-3;
    let mut ends = Vec::new();
    for n in 0..800 {
        let before = built.controller.phase().map(str::to_string);
        let depth = built.multibody.coordinates().q[0];
        step(&mut built, h);
        if built.controller.phase().map(str::to_string) != before {
            ends.push((n, depth, built.controller.state()));
        }
        let law = built.multibody.force_values()[0];
        let middle = (n as f64 + 0.5) * h;
        match built.controller.phase() {
            Some("diving") => assert_eq!(law, 6.0),
            Some("squeezing") => {
                let expected = -3.0 * (middle - built.controller.state().phase_start);
                assert!((law - expected).abs() < 1e-12, "{law} {expected}");
            }
            _ => assert_eq!(law, 1.0),
        }
    }
    // x = 0.25 + t² passes 0.5 at t = 0.5, and must be above it.
    assert_eq!(ends.len(), 2, "{ends:?}");
    let (first, depth, state) = ends[0];
    assert!((500..=501).contains(&first) && depth > 0.5 && depth < 0.502, "{ends:?}");
    assert_eq!(state.phase, 1);
    assert!((state.phase_start - first as f64 * h).abs() < 1e-12, "{state:?}");
    assert!((100..=101).contains(&(ends[1].0 - first)), "{ends:?}");
    assert_eq!(built.controller.phase(), Some("lifting"));
}

#[test]
fn what_is_not_a_number_is_an_error_with_its_name() {
    for (old, new, what) in [
        ("depth = \"cart.position\"", "depth = \"1/(cart.position - 0.25)\"", "the quantity `depth`"),
        ("\"depth > 0.5 or t > 10\"", "\"sqrt(cart.position - 1)\"", "the end of phase `diving`"),
    ] {
        let case = case_of(&phased().replace(old, new));
        let error = match build(&case) {
            Err(error) => error.to_string(),
            Ok(mut machines) => {
                let Machine { multibody: machine, controller, .. } = &mut machines[0];
                controller.update(machine, 0.0).expect_err("no number").to_string()
            }
        };
        assert!(error.ends_with(&format!("{what} is not a number")), "{error}");
    }
}

#[test]
fn a_restored_machine_goes_on_bit_by_bit() {
    let case = case_of(&phased());
    let run = |built: &mut Machine, steps: usize| (0..steps).for_each(|_| step(built, 1e-3));
    let mut straight = build(&case).expect("assembles").remove(0);
    run(&mut straight, 700);
    for at in [1, 300, 520, 650] {
        let mut first = build(&case).expect("assembles").remove(0);
        run(&mut first, at);
        let saved = first.save();
        let bytes = postcard::to_stdvec(&saved).expect("serialises");
        let read: SavedMachine = postcard::from_bytes(&bytes).expect("reads");
        assert_eq!(read, saved);
        let mut second = restore(&case, &[read]).expect("fits").remove(0);
        assert_eq!(
            second.controller.quantities().collect::<Vec<_>>(),
            first.controller.quantities().collect::<Vec<_>>()
        );
        run(&mut second, 700 - at);
        assert_eq!(second.save(), straight.save(), "saved after {at} steps");
    }
    assert!(restore(&case, &[]).is_err());
}

#[test]
fn prescribed_joints_move_as_told_with_exact_rates() {
    let text = CART.replace("position = 0.25\nvelocity = -0.5", "prescribed = \"0.01*sin(2*pi*15*t)\"");
    let mut built = built(&text);
    let omega = 30.0 * std::f64::consts::PI;
    for _ in 0..100 {
        step(&mut built, 1e-3);
        let t = built.multibody.time();
        let Coordinates { q, v } = built.multibody.coordinates();
        assert!((q[0] - 0.01 * (omega * t).sin()).abs() < 1e-15, "{t}");
        assert!((v[0] - 0.01 * omega * (omega * t).cos()).abs() < 1e-13, "{t}");
    }
    assert_eq!(built.multibody.partition().nu(), 1);
}

const SHAPED: &str = r#"
[[material]]
name = "steel"
density = 1000
[[contact]]
materials = ["steel", "steel"]
friction = 0.1
[[shape]]
name = "brick"
kind = "box"
size = [0.2, 0.4, 0.6]
[[machine]]
name = "m"
[[machine.body]]
name = "a"
parts = [{ shape = "brick", position = [1, 0, 0], orientation = { axis = [0, 0, 1], degrees = 90 } }]
material = "steel"
[[machine.body]]
name = "b"
shape = "brick"
material = "steel"
mass = 96
[[machine.body]]
name = "c"
shape = "brick"
material = "steel"
mass = 5
centre = [0, 0.1, 0]
inertia = [1, 2, 2.5, 0.1, 0.2, 0.3]
[[machine.body]]
name = "d"
shape = "brick"
material = "steel"
contacts = false
[[machine.joint]]
name = "a"
kind = "revolute"
child = "a"
axis = [0, 0, 1]
[[machine.joint]]
name = "b"
kind = "spherical"
parent = "a"
child = "b"
on_parent = [3, 0, 0]
orientation = { axis = [0, 0, 1], degrees = 90 }
velocity = [1, 2, 3]
[[machine.joint]]
name = "d"
kind = "fixed"
parent = "b"
child = "d"
[[machine.joint]]
name = "c"
kind = "free"
child = "c"
position = [5, 0, 0]
angular_velocity = [0, 0, 1]
"#;

#[test]
fn masses_come_from_shapes_unless_they_are_given() {
    let built = built(SHAPED);
    let model = built.multibody.model();
    let body = |name: &str| model.body(name).expect("known");
    let [a, b, c] = ["a", "b", "c"].map(body);
    assert!((model.mass(a) - 48.0).abs() < 1e-10);
    assert!((model.centre(a) - Vec3::new(1.0, 0.0, 0.0)).norm() < 1e-12);
    // m/12 (size² sums), with x and y exchanged by the turn.
    let box_inertia = |m: f64, x: f64, y: f64, z: f64| {
        Mat3::from_diagonal(&Vec3::new(y * y + z * z, x * x + z * z, x * x + y * y)) * (m / 12.0)
    };
    assert!((model.inertia(a) - box_inertia(48.0, 0.4, 0.2, 0.6)).amax() < 1e-11, "{}", model.inertia(a));
    assert_eq!(model.mass(b), 96.0);
    assert!((model.inertia(b) - box_inertia(96.0, 0.2, 0.4, 0.6)).amax() < 1e-11);
    assert_eq!((model.mass(c), model.centre(c)), (5.0, Vec3::new(0.0, 0.1, 0.0)));
    assert_eq!(model.inertia(c), Mat3::new(1.0, 0.1, 0.3, 0.1, 2.0, 0.2, 0.3, 0.2, 2.5));
    let shapes: Vec<(&str, bool)> =
        built.shapes.iter().map(|shape| (model.body_name(shape.body), shape.contacts)).collect();
    assert_eq!(shapes, [("a", true), ("b", true), ("c", true), ("d", false)]);
    assert_eq!(model.contact_bodies().collect::<Vec<_>>(), [a, b, c]);
    assert_eq!(built.contact_shapes().map(|shape| shape.body).collect::<Vec<_>>(), [a, b, c]);
    // Joined by a joint, or not.
    assert!(
        !built.can_touch(a, b) && !built.can_touch(b, a) && built.can_touch(a, c) && built.can_touch(b, c)
    );
    assert!((built.multibody.pose(b).position - Vec3::new(3.0, 0.0, 0.0)).norm() < 1e-14);
    assert!((built.multibody.pose(b).direction(&Vec3::x()) - Vec3::y()).norm() < 1e-14);
    assert!((built.multibody.pose(c).position - Vec3::new(5.0, 0.0, 0.0)).norm() < 1e-14);
}

const FOUR_BAR: &str = r#"
[[machine]]
name = "four-bar"
ground_points = { pivot = [2, 0, 0] }
[[machine.body]]
name = "crank"
mass = 1
points = { tip = [1, 0, 0] }
[[machine.body]]
name = "coupler"
mass = 1
points = { tip = [2, 0, 0] }
[[machine.body]]
name = "rocker"
mass = 1
points = { tip = [1.5, 0, 0] }
[[machine.joint]]
name = "crank"
kind = "revolute"
child = "crank"
axis = [0, 0, 1]
position = 1
held = true
[[machine.joint]]
name = "coupler"
kind = "revolute"
parent = "crank"
child = "coupler"
axis = [0, 0, 1]
on_parent = "tip"
[[machine.joint]]
name = "rocker"
kind = "revolute"
child = "rocker"
axis = [0, 0, 1]
on_parent = "pivot"
position = 1.5
[[machine.cut]]
name = "pin"
between = ["coupler.tip", "rocker.tip"]
"#;

#[test]
fn loops_close_or_the_error_says_which_and_how_far() {
    let four_bar = built(FOUR_BAR);
    let coordinates = four_bar.multibody.coordinates();
    assert_eq!(coordinates.q[0], 1.0);
    assert!(four_bar.multibody.closure().error <= 1e-12);
    let text = describe(&[four_bar]);
    for part in ["machine `four-bar`", "cut `pin`: coupler – rocker", "independent: ", "closed to "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let apart = FOUR_BAR
        .replace("tip = [1.5, 0, 0]", "tip = [0.2, 0, 0]")
        .replace("tip = [2, 0, 0]", "tip = [0.3, 0, 0]");
    let error = build(&case_of(&apart)).expect_err("open").to_string();
    let cause = "machine.four-bar.cut.pin: the mechanism cannot be assembled: loop `pin` stays open by";
    assert!(error.starts_with("test.toml:") && error.contains(cause), "{error}");
}

#[test]
fn the_partition_can_be_chosen_by_either_side() {
    for (partition, independent) in [
        ("{ dependent = [\"coupler\", \"rocker\"] }", "crank"),
        ("{ independent = [\"rocker.angle\"], always = true }", "rocker"),
    ] {
        let text = FOUR_BAR
            .replace("ground_points", &format!("partition = {partition}\nground_points"))
            .replace("held = true", "");
        let built = built(&text);
        let names: Vec<&str> = built
            .multibody
            .partition()
            .independent
            .iter()
            .map(|&k| built.multibody.model().coordinate_name(k))
            .collect();
        assert_eq!(names, [independent]);
    }
}

fn shipped(name: &str) -> Machine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs").join(name);
    let case = read_case(&path).unwrap_or_else(|errors| panic!("{errors}"));
    build(&case).unwrap_or_else(|error| panic!("{name}: {error}")).remove(0)
}

#[test]
fn the_shipped_slider_cranks_follow_the_reference_before_their_first_impact() {
    // Row t = 0.0026 of the event-driven reference; the first impact comes at 2.693 ms.
    let (theta, y) = (0.345150801104, 0.000922893187802);
    for (case, dependent) in
        [("chain", &[][..]), ("cut-xy", &["slider.x", "slider.y"][..]), ("cut-y", &["crank", "slider.x"][..])]
    {
        let mut built = shipped(&format!("slider-crank/{case}.toml"));
        let slider = built.multibody.model().body("slider").expect("the slider");
        assert_eq!(built.multibody.model().contact_bodies().collect::<Vec<_>>(), [slider]);
        let model = built.multibody.model();
        let names: Vec<&str> =
            built.multibody.partition().dependent.iter().map(|&k| model.coordinate_name(k)).collect();
        assert_eq!(names, dependent, "{case}");
        for _ in 0..260 {
            step(&mut built, 1e-5);
            assert!(built.multibody.closure().error <= 1e-12);
        }
        let angle = built.multibody.coordinates().q[0];
        let height = built.multibody.pose(slider).position.y;
        assert!((angle - theta).abs() < 1e-3 && (height - y).abs() < 1e-5, "{case}: {angle} {height}");
        let time = built.multibody.time();
        built.controller.update(&mut built.multibody, time).expect("numbers");
        let found: Vec<f64> = built.controller.quantities().map(|(_, value)| value).collect();
        assert_eq!((found[0], found[2]), (angle, height));
    }
}

#[test]
fn the_other_shipped_machines_assemble_and_move() {
    for name in ["double-pendulum-wall", "rocking-block", "woodpecker", "hinged-plate", "tamper"] {
        let mut built = shipped(&format!("{name}.toml"));
        let before = built.multibody.coordinates().clone();
        for _ in 0..10 {
            step(&mut built, 1e-4);
        }
        assert!(*built.multibody.coordinates() != before, "{name} moves");
        assert!(built.shapes.iter().any(|shape| shape.contacts), "{name} touches");
    }
}

/// Least of `measure` over the corners of a body's shape.
fn least(built: &Machine, body: &str, measure: impl Fn(Vec3) -> f64) -> f64 {
    let index = built.multibody.model().body(body).expect("known");
    let shape = built.shapes.iter().find(|shape| shape.body == index).expect("a shape");
    let mut least = f64::INFINITY;
    for (pose, convex) in shape.shape.parts() {
        let Convex::Polyhedron(polyhedron) = convex else { continue };
        for vertex in &polyhedron.vertices {
            least = least.min(measure(built.multibody.pose(index).point(&pose.point(vertex))));
        }
    }
    least
}

#[test]
fn the_shipped_machines_start_where_they_say() {
    let block = shipped("rocking-block.toml");
    let lowest = least(&block, "block", |point| point.z);
    let foot = least(&block, "block", |point| if point.z < 1e-6 { point.x } else { f64::INFINITY });
    assert!(lowest.abs() < 1e-14 && foot.abs() < 1e-14, "stands on the edge at the origin: {lowest} {foot}");
    let toy = shipped("woodpecker.toml");
    let nearest = least(&toy, "sleeve", |point| point.x);
    assert!((nearest - 0.0025).abs() < 1e-15, "the sleeve touches the pole: {nearest}");
    let slider = shipped("slider-crank/chain.toml");
    for side in [1.0, -1.0] {
        let clearance = least(&slider, "slider", |point| 0.026 - side * point.y);
        assert!((clearance - 0.001).abs() < 1e-15, "{clearance}");
    }
    let plate = shipped("hinged-plate.toml");
    assert!(least(&plate, "plate", |point| point.z) > 0.1);
}

/// Without a bed the tines dive as prescribed, squeeze without resistance, and come up again.
#[test]
fn the_tamper_goes_through_its_phases() {
    let mut built = shipped("tamper.toml");
    let (mut begun, mut deepest) = (Vec::new(), 0.0f64);
    for _ in 0..7500 {
        step(&mut built, 2e-4);
        let state = built.controller.state();
        if begun.last() != Some(&state) {
            begun.push(state);
        }
        deepest = built.controller.quantities().next().map_or(deepest, |(_, depth)| deepest.max(depth));
    }
    assert_eq!(begun.iter().map(|state| state.phase).collect::<Vec<_>>(), [0, 1, 2], "{begun:?}");
    // The travel reaches 0.18 m at t = 0.74 s, and the cylinder lags behind by about C/K = 10 ms.
    assert!((begun[1].phase_start - 0.75).abs() < 0.02, "{begun:?}");
    assert!(begun[2].phase_start - begun[1].phase_start < 0.2, "{begun:?}");
    // Past the wanted depth by at most speed over circular frequency of the cylinder: 0.33/41 m.
    assert!((0.06..0.06 + 0.0081).contains(&deepest), "{deepest}");
    assert!(
        built.multibody.coordinates().q[0].abs() < 0.01,
        "back at the top: {:?}",
        built.multibody.coordinates()
    );
}
