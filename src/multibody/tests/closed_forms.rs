//! Trees against closed forms and against textbook equations integrated independently.

use super::super::builder::MultibodyBuilder;
use super::super::law::{MotionSample, PrescribedMotion};
use super::super::spec::{BodySpec, JointSpec};
use super::super::{BodyIndex, ForceEvaluation, JointKind, Multibody};
use crate::geometry::{Mat3, Quat, Vec3};

/// One step without contacts.
pub(super) fn step(machine: &mut Multibody, h: f64) {
    let theta = 0.5;
    let t = machine.time();
    machine.advance_positions((1.0 - theta) * h);
    machine.close_loops().expect("closes");
    let free = machine.reduce(t, h).expect("regular").free_velocity.clone();
    machine.finish(&free).expect("closes");
}

pub(super) fn rod_inertia(mass: f64, length: f64) -> Mat3 {
    let across = mass * length * length / 12.0;
    Mat3::from_diagonal(&Vec3::new(1e-3 * across, across, across))
}

/// A rod along x from its frame's origin.
pub(super) fn rod(name: &str, mass: f64, length: f64) -> BodySpec {
    let tip = Vec3::new(length, 0.0, 0.0);
    BodySpec::new(name, mass, tip * 0.5, rod_inertia(mass, length)).point("tip", tip)
}

pub(super) fn hinge_z() -> JointKind {
    JointKind::Revolute { axis: Vec3::z() }
}

/// A point mass on a massless arm; angle 0 hangs along x, with gravity along x.
fn pendulum(angle: f64) -> Multibody {
    let mut builder = MultibodyBuilder::new("pendulum");
    builder.gravity(Vec3::new(9.81, 0.0, 0.0));
    builder.body(BodySpec::new("bob", 2.0, Vec3::new(0.7, 0.0, 0.0), Mat3::zeros()));
    builder.joint(JointSpec::new("pivot", hinge_z(), "ground", "bob").start(&[angle], &[0.0]));
    Multibody::new(builder.build().expect("valid"), 0.0).expect("tree")
}

/// Period of a pendulum by the arithmetic-geometric mean.
fn period(length: f64, gravity: f64, amplitude: f64) -> f64 {
    let (mut a, mut b) = (1.0, (amplitude / 2.0).cos());
    for _ in 0..8 {
        (a, b) = (0.5 * (a + b), (a * b).sqrt());
    }
    2.0 * std::f64::consts::PI * (length / gravity).sqrt() / a
}

#[test]
fn pendulum_returns_after_its_period_to_second_order_and_keeps_its_energy() {
    let amplitude = 1.2;
    let whole = period(0.7, 9.81, amplitude);
    let error = |steps: usize| {
        let mut machine = pendulum(amplitude);
        let first = machine.energy();
        let mut energy: f64 = 0.0;
        for _ in 0..steps {
            step(&mut machine, whole / steps as f64);
            let [kinetic, weight, _] = machine.energy();
            energy = energy.max((kinetic + weight - first[0] - first[1]).abs());
        }
        (energy, (machine.coordinates().q[0] - amplitude).hypot(machine.coordinates().v[0]))
    };
    let (coarse, fine) = (error(500), error(1000));
    assert!(coarse.1 < 1e-3 && (coarse.1 / fine.1 - 4.0).abs() < 0.2, "{coarse:?} {fine:?}");
    assert!(fine.0 < 1e-3 && (coarse.0 / fine.0 - 4.0).abs() < 0.2, "{coarse:?} {fine:?}");
}

/// Two equal rods (mass m, length l, relative angle as second coordinate); textbook equations in absolute
/// angles.
fn double_pendulum_reference(state: [f64; 4], t: f64) -> [f64; 4] {
    let (l, g) = (0.8, 9.81);
    let rate = |s: &[f64; 4]| {
        let (a, b, wa, wb) = (s[0], s[1], s[2], s[3]);
        let (c, d) = ((a - b).cos(), (a - b).sin());
        // (4/3, c/2; c/2, 1/3) ml² (ä, b̈) = (−½ ml² b'² sin(a−b) − 3/2 mgl sin a, +½ ml² a'² sin(a−b) − ½
        // mgl sin b)
        let (m11, m12, m22) = (4.0 / 3.0, 0.5 * c, 1.0 / 3.0);
        let f1 = -0.5 * wb * wb * d - 1.5 * g / l * a.sin();
        let f2 = 0.5 * wa * wa * d - 0.5 * g / l * b.sin();
        let det = m11 * m22 - m12 * m12;
        [wa, wb, (m22 * f1 - m12 * f2) / det, (m11 * f2 - m12 * f1) / det]
    };
    let n = 4000;
    let h = t / n as f64;
    let mut s = state;
    for _ in 0..n {
        let shift = |k: &[f64; 4], h: f64| std::array::from_fn(|i| s[i] + h * k[i]);
        let k1 = rate(&s);
        let k2 = rate(&shift(&k1, h / 2.0));
        let k3 = rate(&shift(&k2, h / 2.0));
        let k4 = rate(&shift(&k3, h));
        s = std::array::from_fn(|i| s[i] + h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]));
    }
    s
}

#[test]
fn double_pendulum_converges_to_textbook_equations() {
    let (t, start) = (1.0, [1.0, 0.3, 0.5, -1.0]);
    let reference = double_pendulum_reference(start, t);
    let run = |steps: usize, force_evaluation: ForceEvaluation| {
        let mut builder = MultibodyBuilder::new("double pendulum");
        builder.gravity(Vec3::new(9.81, 0.0, 0.0));
        let link = |name: &str| {
            // The textbook's rods have inertia m l²/12 about their centre.
            BodySpec::new(name, 1.3, Vec3::new(0.4, 0.0, 0.0), rod_inertia(1.3, 0.8))
        };
        builder.body(link("lower")).body(link("upper"));
        let (a, b) = (start[0], start[1]);
        builder.joint(
            JointSpec::new("elbow", hinge_z(), "upper", "lower")
                .parent_at(Vec3::new(0.8, 0.0, 0.0))
                .start(&[b - a], &[start[3] - start[2]]),
        );
        builder.joint(JointSpec::new("shoulder", hinge_z(), "ground", "upper").start(&[a], &[start[2]]));
        let mut machine = Multibody::new(builder.build().expect("valid"), 0.0).expect("tree");
        machine.set_force_evaluation(force_evaluation);
        let energy = |machine: &mut Multibody| {
            let [kinetic, weight, _] = machine.energy();
            kinetic + weight
        };
        let first = energy(&mut machine);
        for _ in 0..steps {
            step(&mut machine, t / steps as f64);
        }
        let q = &machine.coordinates().q;
        let error = (q[0] - reference[0]).abs().max((q[0] + q[1] - reference[1]).abs());
        (error, (energy(&mut machine) - first).abs() / first.abs())
    };
    let start_velocity = [1000, 2000, 4000].map(|steps| run(steps, ForceEvaluation::StartVelocity));
    let middle_velocity = [1000, 2000, 4000].map(|steps| run(steps, ForceEvaluation::MiddleVelocity));
    for (runs, gain, worst) in [(start_velocity, 2.0, 5e-3), (middle_velocity, 4.0, 1e-5)] {
        for pair in runs.windows(2) {
            assert!((pair[0].0 / pair[1].0 - gain).abs() < 0.2 * gain, "{gain}: {runs:?}");
            assert!((pair[0].1 / pair[1].1 - gain).abs() < 0.2 * gain, "{gain}: {runs:?}");
        }
        assert!(runs[2].0 < worst, "{runs:?}");
    }
}

#[test]
fn free_top_precesses_at_its_closed_rate() {
    let (i1, i3) = (0.4, 0.7);
    let omega = Vec3::new(0.3, 0.0, 5.0);
    let rate = (i3 - i1) / i1 * omega.z;
    let error = |steps: usize| {
        let mut builder = MultibodyBuilder::new("top");
        builder.body(BodySpec::new("top", 3.0, Vec3::zeros(), Mat3::from_diagonal(&Vec3::new(i1, i1, i3))));
        let velocity = [0.2, -0.1, 0.4, omega.x, omega.y, omega.z];
        builder.joint(
            JointSpec::new("free", JointKind::Free, "ground", "top")
                .start(&[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], &velocity),
        );
        let mut machine = Multibody::new(builder.build().expect("valid"), 0.0).expect("tree");
        for _ in 0..steps {
            step(&mut machine, 1.0 / steps as f64);
        }
        let v = &machine.coordinates().v;
        let moved = machine.pose(BodyIndex(0)).position - Vec3::new(0.2, -0.1, 0.4);
        assert!(moved.amax() < 1e-12, "the centre flies straight");
        // ω turns about the body's axis, to the right for i3 > i1.
        (v[3] - omega.x * rate.cos()).hypot(v[4] - omega.x * rate.sin())
    };
    let (coarse, fine) = (error(1000), error(2000));
    assert!(fine < 5e-3 && (coarse / fine - 2.0).abs() < 0.1, "{coarse:.2e} {fine:.2e}");
}

#[test]
fn gyroscope_precesses_steadily() {
    // Horizontal axle of length l about a ball joint: Ω = m g l / (I3 ω).
    let (m, g, l, i1, i3, spin) = (1.5, 9.81, 0.2, 0.01, 0.02, 200.0);
    let precession = m * g * l / (i3 * spin);
    let mut builder = MultibodyBuilder::new("gyroscope");
    builder.gravity(Vec3::new(0.0, 0.0, -g));
    let inertia = Mat3::from_diagonal(&Vec3::new(i3, i1, i1));
    builder.body(BodySpec::new("wheel", m, Vec3::new(l, 0.0, 0.0), inertia));
    builder.joint(
        JointSpec::new("ball", JointKind::Spherical, "ground", "wheel")
            .start(&[1.0, 0.0, 0.0, 0.0], &[spin, 0.0, precession]),
    );
    let mut machine = Multibody::new(builder.build().expect("valid"), 0.0).expect("tree");
    let dv = machine.accelerations().expect("regular");
    let wheel = BodyIndex(0);
    let centre = machine.pose(wheel).point(&Vec3::new(l, 0.0, 0.0));
    let rate = machine.data().jacobian_rate(wheel, &centre);
    let linear =
        (machine.data().jacobian(machine.model(), wheel, &centre) * &dv).fixed_rows::<3>(0) + rate.linear;
    let wanted = Vec3::new(-precession * precession * l, 0.0, 0.0);
    assert!((linear - wanted).amax() < 1e-11, "{linear}");
    let h = 2e-6;
    for _ in 0..20_000 {
        step(&mut machine, h);
    }
    let axle = machine.pose(wheel).direction(&Vec3::x());
    let angle = precession * 20_000.0 * h;
    let drawn = Quat::from_axis_angle(&Vec3::z_axis(), angle) * Vec3::x();
    assert!((axle - drawn).amax() < 2e-3 * angle.max(1.0), "{axle} instead of {drawn}");
}

#[test]
fn far_from_the_origin_nothing_is_lost() {
    let at = |place: Vec3| {
        let mut builder = MultibodyBuilder::new("far");
        builder.gravity(Vec3::new(0.0, -9.81, 0.0));
        builder.body(rod("a", 1.0, 0.5)).body(rod("b", 2.0, 0.4));
        builder.joint(JointSpec::new("i", hinge_z(), "ground", "a").parent_at(place).start(&[0.3], &[2.0]));
        builder.joint(
            JointSpec::new("j", hinge_z(), "a", "b")
                .parent_at(Vec3::new(0.5, 0.0, 0.0))
                .start(&[0.5], &[-3.0]),
        );
        Multibody::new(builder.build().expect("valid"), 0.0).expect("tree").accelerations().expect("regular")
    };
    let (near, far) = (at(Vec3::zeros()), at(Vec3::new(4096.0, -2048.0, 1024.0)));
    assert!((&near - &far).amax() < 1e-10 * near.amax(), "{near} {far}");
}

#[test]
fn a_lift_feels_its_load() {
    // A prescribed car that carries a hanging pendulum at rest: the rail carries (M + m)(g + a).
    let mut builder = MultibodyBuilder::new("lift");
    builder.gravity(Vec3::new(0.0, 0.0, -9.81));
    builder.body(BodySpec::new("car", 20.0, Vec3::zeros(), Mat3::identity()));
    builder.body(BodySpec::new("bob", 3.0, Vec3::new(0.0, 0.0, -0.5), Mat3::identity() * 0.1));
    builder.joint(JointSpec::new("rail", JointKind::Prismatic { axis: Vec3::z() }, "ground", "car"));
    builder.joint(JointSpec::new("pivot", JointKind::Revolute { axis: Vec3::y() }, "car", "bob"));
    let motion = |t: f64| MotionSample { position: 1.5 * t * t, velocity: 3.0 * t, acceleration: 3.0 };
    builder.prescribe("rail", PrescribedMotion::new(motion));
    let mut machine = Multibody::new(builder.build().expect("valid"), 0.0).expect("tree");
    let h = 1e-2;
    machine.advance_positions(0.5 * h);
    machine.close_loops().expect("nothing to close");
    let free = machine.reduce(0.0, h).expect("regular").free_velocity.clone();
    let wrenches = machine.joint_wrenches(&free, &[]).expect("right length");
    assert!((wrenches[0].force - Vec3::new(0.0, 0.0, 23.0 * 12.81)).amax() < 1e-10, "{:?}", wrenches[0]);
    assert!((wrenches[1].force - Vec3::new(0.0, 0.0, 3.0 * 12.81)).amax() < 1e-10, "{:?}", wrenches[1]);
    assert!(wrenches[0].moment.amax() < 1e-12);
    machine.finish(&free).expect("closes");
    assert!((machine.pose(BodyIndex(0)).position.z - 1.5 * h * h).abs() < 1e-15);
    assert_eq!(machine.coordinates().q[1], 0.0, "the pendulum stays down");
}
