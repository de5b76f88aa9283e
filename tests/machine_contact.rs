//! Machines that touch grains, walls, each other and themselves, through the whole time step.

mod common;

use breccia::geometry::Vec3;
use breccia::step::Stepper;
use common::machine::{case, machine, shipped, stepper, stepper_on};
use decomposition::threads;

/// What most cases here start from; `{h}` is replaced.
const HEAD: &str = r#"
[simulation]
time_step = 1e-4
duration = 1.0
gravity = [0, 0, 0]
[solver]
tolerance = 1e-12
maximum_sweeps = 20000
check_every = 1
[[material]]
name = "steel"
density = 7800
[[contact]]
materials = ["steel", "steel"]
friction = 0.0
restitution = 0.5
[[shape]]
name = "ball"
kind = "sphere"
radius = 0.05
[[shape]]
name = "plane"
kind = "half-space"
[[shape]]
name = "plate"
kind = "box"
size = [0.4, 0.4, 0.02]
"#;

/// A pendulum of length 1 m below `foot`, with a bob of 2 kg without moment of its own about its centre.
fn pendulum(machine: &str, name: &str, parent: &str, foot: f64, angle: f64, speed: f64) -> String {
    let parent = if parent.is_empty() { String::new() } else { format!("parent = \"{parent}\"") };
    format!(
        r#"
{machine}
[[machine.body]]
name = "{name}"
mass = 2
centre = [0, 0, -1]
inertia = [1e-9, 1e-9, 1e-9]
parts = [{{ shape = "ball", position = [0, 0, -1] }}]
material = "steel"
[[machine.joint]]
name = "{name}"
kind = "revolute"
child = "{name}"
{parent}
axis = [0, -1, 0]
on_parent = [{foot}, 0, 0]
position = {angle}
velocity = {speed}
"#
    )
}

fn measured(what: &str, value: f64) {
    println!("measured {what}: {value:.2e}");
}

fn run(stepper: &mut Stepper, steps: usize) {
    for _ in 0..steps {
        let report = stepper.step().expect("the machine moves");
        assert!(report.converged, "step {}: {:?}", report.step, report.residual);
    }
}

fn velocity(stepper: &Stepper, index: usize, column: usize) -> f64 {
    machine(stepper, index).coordinates().v[column]
}

#[test]
fn a_bob_leaves_a_wall_at_the_speed_of_newton_s_law() {
    // A positive angle swings towards +x; the wall's surface is at x = 0.1, the bob meets it at x = 0.05.
    let wall = r#"
[[body]]
name = "wall"
shape = "plane"
material = "steel"
motion = "fixed"
position = [0.1, 0, 0]
orientation = { z_axis = [-1, 0, 0] }
"#;
    let text = format!("{HEAD}{wall}{}", pendulum("[[machine]]\nname = \"bell\"", "bob", "", 0.0, 0.0, 2.0));
    let mut stepper = stepper(&case(&text));
    run(&mut stepper, 600);
    // H(q_m) differs from that of the impact by the way of a step, and is the same before and after.
    let error = (velocity(&stepper, 0, 0) + 1.0).abs();
    measured("bob on a wall, e = 0.5: angular velocity off by (rad/s)", error);
    assert!(error < 1e-10, "{error:.1e}");
}

#[test]
fn a_bob_strikes_a_ball_as_two_masses_do() {
    // Central, 2 kg at 2 m/s on a ball of 4.08 kg at rest.
    let ball = r#"
[[body]]
name = "struck"
shape = "ball"
material = "steel"
position = [0.2, 0, -1]
"#;
    let text = format!("{HEAD}{ball}{}", pendulum("[[machine]]\nname = \"bell\"", "bob", "", 0.0, -0.1, 2.0));
    let mut stepper = stepper(&case(&text));
    let mass = stepper.scene().state.grains[0].mass;
    run(&mut stepper, 1500);
    let struck = stepper.scene().state.grains[0].velocity;
    assert!(struck.x > 0.5, "{struck}");
    // The line of centres and the bob's direction at the impact: not quite along x, since the bob is met at
    // 0.1 rad.
    let omega = velocity(&stepper, 0, 0);
    let speed = struck.norm();
    let energy = |bob: f64, ball: f64| 0.5 * 2.0 * bob * bob + 0.5 * mass * ball * ball;
    assert!(energy(omega, speed) < energy(2.0, 0.0));
    // With n along the line of centres, d the bob's direction: p (1/m + (n·d)²/2 kg) = (1 + e) 2 m/s n·d.
    let n = struck / speed;
    let impulse = mass * speed;
    let along = (2.0 - omega) * 2.0 / impulse;
    let closed = 1.5 * 2.0 * along / (1.0 / mass + along * along / 2.0);
    measured("bob on a ball, impulse against the closed form, relative", (impulse / closed - 1.0).abs());
    assert!((impulse / closed - 1.0).abs() < 1e-9, "{impulse} {closed}");
    assert!(n.y.abs() < 1e-12);
}

/// Two pendulums that strike each other, on two machines, on one, and on a cart that cannot move: one system.
#[test]
fn two_pendulums_are_the_same_on_one_machine_and_on_two() {
    let first = |head: &str, parent: &str| pendulum(head, "a", parent, 0.0, -0.3, 2.0);
    let second = |head: &str, parent: &str| pendulum(head, "b", parent, 0.15, 0.2, -1.0);
    let two = format!(
        "{HEAD}{}{}",
        first("[[machine]]\nname = \"one\"", ""),
        second("[[machine]]\nname = \"two\"", "")
    );
    let one = format!(
        "{HEAD}{}{}",
        first("[[machine]]\nname = \"both\"\nself_contact = \"all\"", ""),
        second("", "")
    );
    let [mut two, mut one] = [two, one].map(|text| stepper(&case(&text)));
    let mut touched = 0;
    for _ in 0..6000 {
        for stepper in [&mut two, &mut one] {
            stepper.step().expect("pendulums swing");
        }
        touched += usize::from(one.contacts().any(|contact| contact.impulse.norm() > 0.0));
        for (index, column) in [(0, 0), (1, 1)] {
            let apart = velocity(&two, index, 0) - velocity(&one, 0, column);
            assert!(apart.abs() < 1e-10, "{apart:.1e}");
        }
    }
    assert!(touched > 0, "they strike each other");
    let [a, b] = [velocity(&one, 0, 0), velocity(&one, 0, 1)];
    assert!((a - 2.0).abs() > 0.5 && (b + 1.0).abs() > 0.5, "{a} {b}");
}

/// Cross terms: two pendulums on one cart that slides freely. No force along x from outside, so that the
/// momentum along x stays, and the relative speed at the impact turns round by e; the impulse alone decides
/// both, through the shared mass matrix.
#[test]
fn two_bodies_of_one_machine_strike_each_other_through_the_shared_mass_matrix() {
    let cart = r#"
[[machine]]
name = "both"
self_contact = "all"
[[machine.body]]
name = "cart"
mass = 3
inertia = [1, 1, 1]
[[machine.joint]]
name = "cart"
kind = "prismatic"
child = "cart"
axis = [1, 0, 0]
"#;
    let (angle, speed) = (0.3, 1.0);
    // Bobs at the same height on both sides of the middle: feet 0.09 apart from where the bobs touch upright.
    let text = format!(
        "{HEAD}{cart}{}{}",
        pendulum("", "a", "cart", -0.05, -angle, speed),
        pendulum("", "b", "cart", 0.0500001, 0.0, 0.0)
    );
    let mut stepper = stepper(&case(&text));
    let columns =
        ["cart", "a", "b"].map(|name| machine(&stepper, 0).model().coordinate(name).expect("known"));
    let momentum = |stepper: &Stepper| {
        let c = machine(stepper, 0).coordinates();
        let [x, a, b] = columns.map(|column| c.v[column]);
        let [qa, qb] = [columns[1], columns[2]].map(|column| c.q[column]);
        (3.0 + 4.0) * x + 2.0 * (a * qa.cos() + b * qb.cos())
    };
    let approach = |stepper: &Stepper| {
        let c = machine(stepper, 0).coordinates();
        c.v[columns[1]] * c.q[columns[1]].cos() - c.v[columns[2]] * c.q[columns[2]].cos()
    };
    let start = momentum(&stepper);
    let mut before = approach(&stepper);
    let mut struck = 0;
    for _ in 0..4000 {
        stepper.step().expect("it moves");
        if stepper.contacts().any(|contact| contact.impulse.norm() > 0.0) {
            struck += 1;
            // The velocities of both ends are taken at one place, off by a step's way.
            let after = approach(&stepper);
            measured("self contact: restitution found", -after / before);
            assert!((after / before + 0.5).abs() < 1e-3, "{before} {after}");
        }
        before = approach(&stepper);
        let drift = (momentum(&stepper) - start).abs();
        assert!(drift < 2e-3, "{drift:.1e}");
    }
    assert!(struck > 0);
}

/// A machine that flies as one free body, in a cloud of balls: what it gives, they get.
#[test]
fn momentum_goes_from_a_machine_to_grains_to_the_last_digits() {
    let flyer = r#"
[[grains]]
name = "cloud"
generator = "spheres"
material = "steel"
count = 40
radius = [0.02, 0.04]
region = { min = [-0.4, -0.4, 0.05], max = [0.4, 0.4, 0.5] }
[[machine]]
name = "flyer"
[[machine.body]]
name = "plate"
shape = "plate"
material = "steel"
[[machine.joint]]
name = "plate"
kind = "free"
child = "plate"
velocity = [0.1, 0.2, 3]
angular_velocity = [0.3, -0.2, 0.5]
"#;
    let head =
        HEAD.replace("friction = 0.0", "friction = 0.3").replace("time_step = 1e-4", "time_step = 1e-3");
    let head = head.replace("tolerance = 1e-12", "tolerance = 1e-6");
    let mut stepper = stepper(&case(&format!("{head}{flyer}")));
    let plate = machine(&stepper, 0).model().body("plate").expect("known");
    let mass = machine(&stepper, 0).model().mass(plate);
    let total = |stepper: &Stepper| {
        let pose = machine(stepper, 0).pose(plate);
        let own = machine(stepper, 0).body_twist(plate, &pose.position).linear * mass;
        let grains: Vec3 = stepper.scene().state.grains.iter().map(|body| body.velocity * body.mass).sum();
        (own, grains)
    };
    let start = total(&stepper);
    let mut worst = 0.0f64;
    for _ in 0..300 {
        stepper.step().expect("it flies");
        let now = total(&stepper);
        worst = worst.max((now.0 + now.1 - start.0 - start.1).norm() / (start.0 + start.1).norm());
    }
    let given = (total(&stepper).1 - start.1).norm() / start.0.norm();
    measured("free machine in a cloud: momentum of both, relative", worst);
    assert!(given > 0.1, "the plate gave {given} of its momentum");
    assert!(worst < 1e-12, "{worst:.1e}");
}

/// A plate on a hinge falls on a stone. In every step, hinge, weight and stone together change the plate's
/// momentum; floor, weight and plate that of the stone: with what hinge and floor give, the balance of all
/// closes.
#[test]
fn hinge_weight_and_stone_balance_the_plate_s_momentum() {
    let case = shipped("hinged-plate.toml", &[]);
    let (h, gravity) = (case.simulation.time_step, Vec3::new(0.0, 0.0, -9.81));
    let mut stepper = stepper(&case);
    let plate = machine(&stepper, 0).model().body("plate").expect("known");
    let mass = machine(&stepper, 0).model().mass(plate);
    let centre = machine(&stepper, 0).model().centre(plate);
    let stone = stepper.scene().state.grains[0].clone();
    let floor = stepper.scene().state.statics[0].id;
    let (mut worst, mut unconverged, mut pushed) = ([0.0f64; 2], 0, 0.0f64);
    for _ in 0..7500 {
        let before = machine(&stepper, 0).coordinates().clone();
        let stone_before = stepper.scene().state.grains[0].velocity;
        unconverged += usize::from(!stepper.step().expect("it falls").converged);
        let mut impulses = [Vec3::zeros(); 2]; // of all on the plate, on the stone
        let mut exchanged = [0.0; 2]; // N s, whatever cancels
        for contact in stepper.contacts() {
            for (side, sign) in [(0, -1.0), (1, 1.0)] {
                let id = contact.bodies[side];
                if id == stone.id {
                    impulses[1] += contact.impulse * sign;
                    exchanged[1] += contact.impulse.norm();
                } else if id != floor {
                    impulses[0] += contact.impulse * sign;
                    exchanged[0] += contact.impulse.norm();
                }
            }
        }
        pushed = pushed.max(impulses[0].norm());
        // The hinge is at the frame's origin and turns about −y.
        let after = machine(&stepper, 0).coordinates();
        let middle = before.q[0] + 0.5 * h * before.v[0];
        let axis = -Vec3::y();
        let arm = breccia::geometry::Quat::from_scaled_axis(axis * middle) * centre;
        let turning = axis.cross(&arm) * (after.v[0] - before.v[0]);
        let inward = axis.cross(&axis.cross(&arm)) * (before.v[0] * before.v[0] * h);
        let hinge = stepper.machines().loads()[0].joints[0][0];
        let open = (turning + inward) * mass - (hinge + gravity * mass) * h - impulses[0];
        worst[0] = worst[0].max(open.norm() / (mass * 9.81 * h + exchanged[0]));
        let gained = (stepper.scene().state.grains[0].velocity - stone_before) * stone.mass;
        let open = gained - gravity * (stone.mass * h) - impulses[1];
        worst[1] = worst[1].max(open.norm() / (stone.mass * 9.81 * h + exchanged[1]));
    }
    measured("hinged plate: balance of the plate, relative", worst[0]);
    measured("hinged plate: balance of the stone, relative", worst[1]);
    assert!(worst.iter().all(|worst| *worst < 1e-12), "{worst:?}");
    assert!(pushed > 0.1 && velocity(&stepper, 0, 0).abs() < 1e-6, "it struck, and lies still: {pushed}");
    assert_eq!(unconverged, 0, "steps that did not converge");
}

#[test]
fn a_scoop_carries_its_stones() {
    let case = shipped("scoop.toml", &[]);
    let mut stepper = stepper(&case);
    let steps = case.step_count();
    let (mut unconverged, mut force) = (0, 0.0);
    for step in 0..steps {
        unconverged += u64::from(!stepper.step().expect("it lifts").converged);
        if step + 200 >= steps {
            force += machine(&stepper, 0).force_values()[0] / 200.0;
        }
    }
    let stones: f64 = stepper.scene().state.grains.iter().map(|body| body.mass).sum();
    let aboard = stepper.scene().state.grains.iter().filter(|body| body.pose.position.z > 0.25).count();
    let scoop = machine(&stepper, 0).model().mass(machine(&stepper, 0).model().body("scoop").expect("known"));
    let weight = (stones + scoop) * 9.81;
    measured(
        "scoop: cylinder against the weight of scoop and stones, relative",
        (force / weight - 1.0).abs(),
    );
    assert_eq!(aboard, 12, "all stones are lifted");
    assert!((force / weight - 1.0).abs() < 1e-3, "{force} N for {weight} N");
    assert!(unconverged * 50 < steps, "{unconverged} of {steps} steps did not converge");
}

/// A plate on nine balls: a hundredth and a hundred times as heavy as each of them.
#[test]
fn light_on_heavy_and_heavy_on_light_both_converge() {
    for (ratio, name) in [(0.01, "light"), (100.0, "heavy")] {
        let mut text = HEAD.replace("gravity = [0, 0, 0]", "gravity = [0, 0, -10]");
        text = text
            .replace("restitution = 0.5", "law = \"predictive\"")
            .replace("friction = 0.0", "friction = 0.4");
        text = text
            .replace("time_step = 1e-4", "time_step = 1e-3")
            .replace("tolerance = 1e-12", "tolerance = 1e-6");
        text = text.replace("check_every = 1", "acceleration = \"conjugate-gradient\"");
        text += "[[body]]\nname = \"floor\"\nshape = \"plane\"\nmaterial = \"steel\"\nmotion = \"fixed\"\n";
        for k in 0..9 {
            let (x, y) = (0.12 * f64::from(k % 3 - 1), 0.12 * f64::from(k / 3 - 1));
            text += &format!(
                "[[body]]\nname = \"ball{k}\"\nshape = \"ball\"\nmaterial = \"steel\"\nposition = [{x}, {y}, 0.05]\n"
            );
        }
        let mass = ratio * 7800.0 * 4.0 / 3.0 * std::f64::consts::PI * 0.05f64.powi(3);
        text += &format!(
            r#"
[[machine]]
name = "press"
[[machine.body]]
name = "plate"
mass = {mass}
inertia = [{i}, {i}, {i}]
shape = "plate"
material = "steel"
[[machine.joint]]
name = "plate"
kind = "free"
child = "plate"
position = [0, 0, 0.115]
"#,
            i = mass * 0.02
        );
        let mut stepper = stepper(&case(&text));
        let (mut unconverged, mut most) = (0, 0);
        for _ in 0..200 {
            let report = stepper.step().expect("it falls");
            unconverged += usize::from(!report.converged);
            most = most.max(report.sweeps);
        }
        let floor = stepper.scene().state.statics[0].id;
        let carried: f64 = stepper
            .contacts()
            .filter(|contact| contact.bodies[0] == floor)
            .map(|contact| contact.impulse.z / 1e-3)
            .sum();
        let weight = (9.0 / ratio + 1.0) * mass * 10.0;
        println!(
            "measured {name} plate: floor carries {:.2e} off, {most} sweeps at most",
            carried / weight - 1.0
        );
        assert_eq!(unconverged, 0, "{name}");
        assert!((carried / weight - 1.0).abs() < 1e-4, "{name}: {carried} {weight}");
    }
}

/// A machine without freedom pushes a ball; a kinematic body pushes a machine; one that is alone moves on.
#[test]
fn what_is_prescribed_pushes_and_what_is_alone_moves() {
    let pusher = |travel: &str| {
        format!(
            r#"
[[machine]]
name = "pusher"
[[machine.body]]
name = "plate"
mass = 1
inertia = [1, 1, 1]
parts = [{{ shape = "plate", position = [0, 0, -0.01] }}]
material = "steel"
[[machine.joint]]
name = "plate"
kind = "prismatic"
child = "plate"
axis = [0, 0, 1]
{travel}
"#
        )
    };
    let ball = "[[body]]\nname = \"ball\"\nshape = \"ball\"\nmaterial = \"steel\"\nposition = [0, 0, 0.06]\n";
    // Newton's law with e = 0.5 and a pusher that nothing stops: the ball leaves at 1.5 times its speed.
    let mut pushed = stepper(&case(&format!("{HEAD}{ball}{}", pusher("prescribed = \"0.5*t\""))));
    assert_eq!(machine(&pushed, 0).partition().nu(), 0);
    run(&mut pushed, 500);
    let speed = pushed.scene().state.grains[0].velocity;
    assert!((speed - Vec3::new(0.0, 0.0, 0.75)).norm() < 1e-12, "{speed}");

    let driven = r#"
[[body]]
name = "ram"
shape = "plate"
material = "steel"
motion = "kinematic"
position = [0, 0, -0.04]
[body.prescribed]
position = [0, 0, "0.5*t"]
"#;
    let mut moved = stepper(&case(&format!("{HEAD}{driven}{}", pusher(""))));
    run(&mut moved, 500);
    assert!((velocity(&moved, 0, 0) - 0.75).abs() < 1e-12, "{}", velocity(&moved, 0, 0));

    let mut alone = stepper(&case(&format!("{HEAD}{}", pusher("velocity = 2.0"))));
    run(&mut alone, 100);
    assert!((machine(&alone, 0).coordinates().q[0] - 0.02).abs() < 1e-15);
}

const STIRRED: &str = r#"
[[body]]
name = "floor"
shape = "plane"
material = "steel"
motion = "fixed"
[[grains]]
name = "balls"
generator = "spheres"
material = "steel"
count = 120
radius = [0.02, 0.03]
region = { min = [-0.25, -0.25, 0], max = [0.25, 0.25, 0.2] }
[[shape]]
name = "paddle"
kind = "box"
size = [0.5, 0.02, 0.1]
[[machine]]
name = "stirrer"
[[machine.body]]
name = "shaft"
mass = 3
inertia = [0.1, 0.1, 0.1]
[[machine.body]]
name = "paddle"
shape = "paddle"
material = "steel"
[[machine.joint]]
name = "shaft"
kind = "prismatic"
child = "shaft"
axis = [0, 0, 1]
position = 0.3
[[machine.joint]]
name = "paddle"
kind = "revolute"
parent = "shaft"
child = "paddle"
axis = [0, 0, 1]
velocity = 6
[[machine.spring]]
name = "guide"
joint = "shaft"
stiffness = 500
damping = 20
"#;

/// A paddle that stirs the grains of all ranks at once, while space is cut anew: the same bits on any number
/// of ranks and threads.
#[test]
fn a_machine_among_the_grains_of_all_ranks_gives_the_same_bits() {
    let mut text = HEAD.replace("gravity = [0, 0, 0]", "gravity = [0, 0, -10]");
    text = text.replace("friction = 0.0", "friction = 0.4").replace("time_step = 1e-4", "time_step = 1e-3");
    text = text.replace("tolerance = 1e-12", "tolerance = 1e-4\npenetration_limit = 1e-5");
    text = text.replace("maximum_sweeps = 20000", "maximum_sweeps = 40");
    let text = format!("{text}[decomposition]\nimbalance_threshold = 1.0\n{STIRRED}");
    let read = case(&text);
    let run = |comm: &dyn decomposition::Comm| {
        let mut stepper = stepper_on(&read, comm);
        let mut most = 0;
        for _ in 0..220 {
            stepper.step().expect("it stirs");
            most = most.max(stepper.contacts().count());
        }
        let state = (comm.rank() == 0).then(|| stepper.machines().save());
        let loads = (comm.rank() == 0).then(|| stepper.machines().loads().to_vec());
        (stepper.scene().state.grains.clone(), state, loads, most)
    };
    let alone = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| run(&decomposition::Solo))
    };
    let one = alone(1);
    assert!(one.3 > 50, "{} contacts", one.3);
    let turned = one.1.as_ref().expect("the owner").first().expect("one machine").multibody.coordinates.v[1];
    assert!((turned - 6.0).abs() > 0.5, "the balls slow the paddle: {turned}");
    assert_eq!(one.0, alone(2).0, "two threads");
    for size in [2, 3, 4, 8] {
        let parts = threads::run(size, |comm| run(comm));
        assert!(parts.iter().filter(|part| part.3 > 0).count() > 1, "contacts on several of {size} ranks");
        assert_eq!((&parts[0].1, &parts[0].2), (&one.1, &one.2), "the machine on {size} ranks");
        let mut together: Vec<_> = parts.into_iter().flat_map(|part| part.0).collect();
        together.sort_by_key(|body| body.id);
        assert_eq!(together, one.0, "the grains on {size} ranks");
    }
}
