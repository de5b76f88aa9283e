//! Mechanisms with loops against analytic kinematics; redundant, impossible and singular ones.

use super::super::builder::MultibodyBuilder;
use super::super::law::{MotionSample, PrescribedMotion};
use super::super::spec::{BodySpec, CutKind, JointSpec};
use super::super::{BodyIndex, ForceEvaluation, JointKind, Multibody, MultibodyError, Partitioning};
use super::closed_forms::{hinge_z, rod, step};
use crate::geometry::{Mat3, Pose, Quat, Vec3};

/// crank, coupler, rocker, ground
const BARS: [f64; 4] = [0.2, 0.7, 0.5, 0.6];

fn points(a: &str, b: &str) -> CutKind {
    CutKind::Points { a: a.into(), b: b.into() }
}

/// A four-bar linkage in a plane that `tilt` turns out of x–y, standing on `base`.
fn four_bar(builder: &mut MultibodyBuilder, base: &str, tilt: Quat, crank: (f64, f64)) {
    let [a, b, c, d] = BARS;
    let (crank_rod, coupler, rocker) = (rod("crank", 0.5, a), rod("coupler", 1.0, b), rod("rocker", 0.8, c));
    builder.body(crank_rod).body(coupler).body(rocker);
    let on_base = |x: f64| Pose::new(tilt, tilt * Vec3::new(x, 0.0, 0.0));
    let (angle, speed) = crank;
    builder.joint(
        JointSpec::new("crank", hinge_z(), base, "crank")
            .frames(on_base(0.0), Pose::identity())
            .start(&[angle], &[speed])
            .hold(),
    );
    builder.joint(
        JointSpec::new("coupler", hinge_z(), "crank", "coupler")
            .parent_at(Vec3::new(a, 0.0, 0.0))
            .start(&[0.0], &[0.0]),
    );
    builder.joint(
        JointSpec::new("rocker", hinge_z(), base, "rocker")
            .frames(on_base(d), Pose::identity())
            .start(&[1.5], &[0.0]),
    );
    builder.cut("knee", points("coupler.tip", "rocker.tip"));
}

/// Rocker angle and rate from the crank's by Freudenstein's equation.
fn freudenstein(crank: f64, speed: f64) -> (f64, f64) {
    let [a, b, c, d] = BARS;
    let (k1, k2, k3) = (d / a, d / c, (a * a - b * b + c * c + d * d) / (2.0 * a * c));
    let (p, q, r) =
        (crank.cos() - k1 - k2 * crank.cos() + k3, -2.0 * crank.sin(), k1 - (k2 + 1.0) * crank.cos() + k3);
    // The open branch.
    let rocker = 2.0 * ((-q - (q * q - 4.0 * p * r).sqrt()) / (2.0 * p)).atan();
    let knee = (d + c * rocker.cos() - a * crank.cos(), c * rocker.sin() - a * crank.sin());
    let coupler = knee.1.atan2(knee.0);
    (rocker, speed * a * (crank - coupler).sin() / (c * (rocker - coupler).sin()))
}

fn wrapped(angle: f64) -> f64 {
    let turn = 2.0 * std::f64::consts::PI;
    angle - turn * (angle / turn).round()
}

fn machine(builder: MultibodyBuilder) -> Multibody {
    Multibody::new(builder.build().expect("valid"), 0.0).expect("can be assembled")
}

fn energy(machine: &mut Multibody) -> f64 {
    let [kinetic, weight, _] = machine.energy();
    kinetic + weight
}

#[test]
fn four_bar_follows_freudenstein_for_a_hundred_thousand_steps() {
    let mut builder = MultibodyBuilder::new("four-bar");
    four_bar(&mut builder, "ground", Quat::identity(), (1.0, 20.0));
    let mut machine = machine(builder);
    assert_eq!(machine.partition().nu(), 1);
    assert_eq!(machine.coordinates().q[0], 1.0, "the held crank stays where it was put");
    assert_eq!(machine.coordinates().v[0], 20.0);
    machine.set_force_evaluation(ForceEvaluation::MiddleVelocity);
    let first = energy(&mut machine);
    for _ in 0..100_000 {
        step(&mut machine, 1e-4);
        assert!(machine.closure().error <= 1e-12);
        let (q, v) = (&machine.coordinates().q, &machine.coordinates().v);
        let (angle, rate) = freudenstein(q[0], v[0]);
        assert!(wrapped(q[2] - angle).abs() < 1e-10, "{} {}", q[2], angle);
        assert!((v[2] - rate).abs() < 1e-9 * (1.0 + v[0].abs()), "{} {}", v[2], rate);
    }
    assert!(machine.coordinates().q[0] > 100.0, "the crank turned round many times");
    let lost = (energy(&mut machine) - first).abs() / first;
    // 1.3e-4 here, against 0.19 with forces at v_n.
    assert!(lost < 1e-3, "energy changed by {lost}");
}

#[test]
fn a_tilted_planar_loop_is_redundant_and_moves_as_the_flat_one() {
    let tilt = Quat::from_scaled_axis(Vec3::new(0.7, -0.4, 1.1));
    let [mut flat, mut tilted] = [Quat::identity(), tilt].map(|tilt| {
        let mut builder = MultibodyBuilder::new("four-bar");
        builder.gravity(tilt * Vec3::new(0.0, -9.81, 0.0));
        four_bar(&mut builder, "ground", tilt, (1.0, 5.0));
        machine(builder)
    });
    for machine in [&flat, &tilted] {
        assert_eq!(machine.model().closure_rows(), 3);
        assert_eq!(machine.partition().rows.len(), 2, "one of three rows is redundant");
    }
    for _ in 0..500 {
        step(&mut flat, 1e-3);
        step(&mut tilted, 1e-3);
        assert!(tilted.closure().redundant_error < 1e-12);
    }
    for (a, b) in flat.coordinates().q.iter().zip(&tilted.coordinates().q) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }
}

#[test]
fn a_coupler_cut_in_the_middle_by_frames_moves_as_one() {
    // Six equations, of which a planar loop needs three.
    let [a, b, c, d] = BARS;
    let mut builder = MultibodyBuilder::new("welded");
    builder.gravity(Vec3::new(0.0, -9.81, 0.0));
    builder.body(rod("crank", 0.5, a)).body(rod("left", 0.5, b / 2.0));
    builder.body(rod("rocker", 0.8, c)).body(rod("right", 0.5, b / 2.0));
    builder.joint(JointSpec::new("crank", hinge_z(), "ground", "crank").start(&[1.0], &[8.0]).hold());
    let place = |x: f64| Vec3::new(x, 0.0, 0.0);
    builder.joint(JointSpec::new("left", hinge_z(), "crank", "left").parent_at(place(a)).start(&[-0.5], &[]));
    builder.joint(
        JointSpec::new("rocker", hinge_z(), "ground", "rocker").parent_at(place(d)).start(&[1.5], &[]),
    );
    builder
        .joint(JointSpec::new("right", hinge_z(), "rocker", "right").parent_at(place(c)).start(&[1.8], &[]));
    let turned = Pose::new(Quat::from_axis_angle(&Vec3::z_axis(), std::f64::consts::PI), place(b / 2.0));
    builder.cut(
        "weld",
        CutKind::Frames {
            body_a: "left".into(),
            frame_a: Pose::new(Quat::identity(), place(b / 2.0)),
            body_b: "right".into(),
            frame_b: turned,
        },
    );
    let mut machine = machine(builder);
    assert_eq!((machine.model().closure_rows(), machine.partition().rows.len()), (6, 3));
    for _ in 0..2000 {
        step(&mut machine, 1e-3);
        assert!(machine.closure().error <= 1e-12 && machine.closure().redundant_error < 1e-12);
        let (q, v) = (&machine.coordinates().q, &machine.coordinates().v);
        let (angle, rate) = freudenstein(q[0], v[0]);
        let off = wrapped(q[2] - angle).abs();
        assert!(off < 1e-10 && (v[2] - rate).abs() < 1e-8, "{off}");
    }
    assert!(machine.coordinates().q[0].abs() > 6.3);
}

#[test]
fn loops_close_far_from_the_origin() {
    let mut builder = MultibodyBuilder::new("far");
    builder.body(BodySpec::new("base", 5.0, Vec3::zeros(), Mat3::identity()));
    let far = Vec3::new(7000.0, -3000.0, 500.0);
    builder.joint(JointSpec::new("base", JointKind::Fixed, "ground", "base").parent_at(far));
    four_bar(&mut builder, "base", Quat::identity(), (1.0, 20.0));
    let mut machine = machine(builder);
    for _ in 0..1000 {
        step(&mut machine, 1e-3);
        // Sixteen roundings at 7 km.
        assert!(machine.closure().error < 3e-11);
        let (q, v) = (&machine.coordinates().q, &machine.coordinates().v);
        assert!(wrapped(q[2] - freudenstein(q[0], v[0]).0).abs() < 1e-9);
    }
}

#[test]
fn a_planar_loop_may_be_carried_around() {
    // The loop's plane turns with the base: the rows that were kept must stay the right ones.
    let mut builder = MultibodyBuilder::new("slewing");
    builder.body(BodySpec::new("base", 5.0, Vec3::zeros(), Mat3::identity()));
    builder.joint(
        JointSpec::new("slew", JointKind::Revolute { axis: Vec3::y() }, "ground", "base")
            .start(&[0.0], &[3.0])
            .hold(),
    );
    four_bar(&mut builder, "base", Quat::identity(), (1.0, 4.0));
    let mut machine = machine(builder);
    assert_eq!(machine.partition().nu(), 2);
    let (first, rows) = (energy(&mut machine), machine.partition().rows.clone());
    for _ in 0..2000 {
        step(&mut machine, 1e-3);
        assert!(machine.closure().error <= 1e-12 && machine.closure().redundant_error < 1e-12);
        let (q, v) = (&machine.coordinates().q, &machine.coordinates().v);
        let (angle, rate) = freudenstein(q[1], v[1]);
        assert!(wrapped(q[3] - angle).abs() < 1e-10 && (v[3] - rate).abs() < 1e-8);
    }
    assert!(machine.coordinates().q[0].abs() > 3.2, "the base turned by more than half a turn");
    assert_eq!(machine.partition().rows, rows);
    assert!((energy(&mut machine) - first).abs() / first < 0.1);
}

#[test]
fn a_prescribed_crank_drives_the_rocker() {
    let mut builder = MultibodyBuilder::new("driven");
    builder.gravity(Vec3::new(0.0, -9.81, 0.0));
    four_bar(&mut builder, "ground", Quat::identity(), (0.0, 0.0));
    let motion = |t: f64| MotionSample {
        position: 1.0 + 7.0 * t + 3.0 * t * t,
        velocity: 7.0 + 6.0 * t,
        acceleration: 6.0,
    };
    builder.prescribe("crank", PrescribedMotion::new(motion));
    let mut machine = machine(builder);
    assert_eq!(machine.partition().nu(), 0, "nothing is left to solve for");
    let h = 1e-3;
    for n in 1..=1000 {
        let t = machine.time();
        machine.advance_positions(0.5 * h);
        machine.close_loops().expect("closes");
        machine.reduce(t, h).expect("regular");
        machine.finish(&[]).expect("closes");
        let at = motion(f64::from(n) * h);
        let (q, v) = (&machine.coordinates().q, &machine.coordinates().v);
        let (angle, rate) = freudenstein(at.position, at.velocity);
        assert!((q[0] - at.position).abs() < 1e-12 && (v[0] - at.velocity).abs() < 1e-11);
        assert!(wrapped(q[2] - angle).abs() < 1e-10 && (v[2] - rate).abs() < 1e-9, "step {n}");
    }
    // The rocker's acceleration, by differences of Freudenstein's rates.
    let t = machine.time();
    let at = |t: f64| freudenstein(motion(t).position, motion(t).velocity).1;
    let wanted = (at(t + 1e-5) - at(t - 1e-5)) / 2e-5;
    let dv = machine.accelerations().expect("regular");
    assert!((dv[2] - wanted).abs() < 1e-5 * wanted.abs().max(1.0), "{} {wanted}", dv[2]);
}

#[test]
fn a_five_bar_with_two_driven_cranks_meets_where_circles_meet() {
    let (d, arm, fore) = (0.5, 0.3, 0.45);
    let mut builder = MultibodyBuilder::new("five-bar");
    for (side, x, angle, speed) in [("left", 0.0, 2.0, 1.5), ("right", d, 1.1, -0.8)] {
        let (crank, forearm) = (format!("{side} crank"), format!("{side} forearm"));
        builder.body(rod(&crank, 0.5, arm)).body(rod(&forearm, 0.5, fore));
        builder.joint(JointSpec::new(&crank, hinge_z(), "ground", &crank).parent_at(Vec3::new(x, 0.0, 0.0)));
        let bend = if x == 0.0 { -1.0 } else { 1.0 };
        builder.joint(
            JointSpec::new(&forearm, hinge_z(), &crank, &forearm)
                .parent_at(Vec3::new(arm, 0.0, 0.0))
                .start(&[bend], &[]),
        );
        builder.prescribe(
            &crank,
            PrescribedMotion::new(move |t| MotionSample {
                position: angle + 0.3 * (speed * t).sin(),
                velocity: 0.3 * speed * (speed * t).cos(),
                acceleration: -0.3 * speed * speed * (speed * t).sin(),
            }),
        );
    }
    builder.cut("hand", points("left forearm.tip", "right forearm.tip"));
    let mut machine = machine(builder);
    let tip = machine.model().point("left forearm.tip").expect("named");
    for _ in 0..2000 {
        step(&mut machine, 1e-3);
        let t = machine.time();
        let elbow = |x: f64, angle: f64, speed: f64| {
            let angle = angle + 0.3 * (speed * t).sin();
            Vec3::new(x + arm * angle.cos(), arm * angle.sin(), 0.0)
        };
        let (left, right) = (elbow(0.0, 2.0, 1.5), elbow(d, 1.1, -0.8));
        let (middle, half) = ((left + right) * 0.5, (right - left) * 0.5);
        let height = (fore * fore - half.norm_squared()).sqrt();
        let above = Vec3::new(-half.y, half.x, 0.0).normalize() * height;
        let hand = machine.data().world_point(&tip);
        assert!((hand - middle - above).amax() < 1e-11, "{hand}");
    }
}

/// Crank about z at the origin, rocker about a skew axis, tips a fixed distance apart.
fn rssr(as_rod: bool) -> Multibody {
    let (crank, rocker, span) = (0.2, 0.5, 0.8);
    let mut builder = MultibodyBuilder::new("RSSR");
    builder.gravity(Vec3::new(0.0, -2.0, -9.0));
    builder.body(rod("crank", 0.5, crank)).body(rod("rocker", 0.5, rocker));
    builder.joint(JointSpec::new("crank", hinge_z(), "ground", "crank").start(&[0.4], &[6.0]).hold());
    let stand = Pose::new(rocker_turn(), rocker_foot());
    builder.joint(
        JointSpec::new("rocker", hinge_z(), "ground", "rocker")
            .frames(stand, Pose::identity())
            .start(&[1.5], &[0.0]),
    );
    if as_rod {
        builder.cut("link", CutKind::Rod { a: "crank.tip".into(), b: "rocker.tip".into(), length: span });
    } else {
        // A coupler of almost no mass between two balls: it may spin about its own axis, so that axis needs
        // some inertia.
        let inertia = Mat3::from_diagonal(&Vec3::new(1e-9, 1e-9, 1e-9));
        let tip = Vec3::new(span, 0.0, 0.0);
        builder.body(BodySpec::new("coupler", 1e-9, tip * 0.5, inertia).point("tip", tip));
        builder.joint(
            JointSpec::new("ball", JointKind::Spherical, "crank", "coupler")
                .parent_at(Vec3::new(crank, 0.0, 0.0)),
        );
        builder.cut("link", points("rocker.tip", "coupler.tip"));
    }
    machine(builder)
}

fn rocker_turn() -> Quat {
    Quat::from_scaled_axis(Vec3::new(1.2, 0.3, 0.0))
}

fn rocker_foot() -> Vec3 {
    Vec3::new(0.55, 0.1, 0.3)
}

/// Both rocker angles that put the tips 0.8 apart: `A cos φ + B sin φ = C`.
fn rssr_rocker(crank: f64) -> [f64; 2] {
    let (r, span) = (0.5, 0.8);
    let tip = Vec3::new(0.2 * crank.cos(), 0.2 * crank.sin(), 0.0);
    let d = rocker_turn().inverse_transform_vector(&(rocker_foot() - tip));
    // |d + r (cos φ, sin φ, 0)|² = span²
    let (a, b, c) = (2.0 * r * d.x, 2.0 * r * d.y, span * span - r * r - d.norm_squared());
    let (middle, half) = (b.atan2(a), (c / a.hypot(b)).acos());
    [middle + half, middle - half]
}

#[test]
fn spatial_rssr_follows_its_closed_form_with_rod_and_with_coupler() {
    let (mut with_rod, mut with_coupler) = (rssr(true), rssr(false));
    assert_eq!(with_rod.partition().nu(), 1);
    assert_eq!(with_coupler.partition().nu(), 2, "crank, and the coupler's idle spin");
    let mut turned: f64 = 0.0;
    for _ in 0..3000 {
        for machine in [&mut with_rod, &mut with_coupler] {
            step(machine, 5e-4);
            assert!(machine.closure().error <= 1e-12);
            let (crank, rocker) = (
                machine.model().coordinate("crank").expect("crank"),
                machine.model().coordinate("rocker").expect("rocker"),
            );
            let index = |k: usize| machine.model().position_index(k).expect("scalar");
            let (angle, q) = (machine.coordinates().q[index(crank)], machine.coordinates().q[index(rocker)]);
            let off = rssr_rocker(angle).map(|wanted| wrapped(q - wanted).abs());
            assert!(off[0].min(off[1]) < 1e-10, "{off:?}");
            turned = turned.max((angle - 0.4).abs());
        }
    }
    assert!(turned > 6.3, "the crank went round: {turned}");
}

#[test]
fn quaternion_joints_can_be_dependent() {
    // A body on a ball joint, its tip led by a free body: the ball's tangent must close the loop.
    let mut builder = MultibodyBuilder::new("ball");
    builder.gravity(Vec3::new(0.0, 0.0, -9.81));
    builder.body(rod("arm", 1.0, 0.6));
    builder.body(BodySpec::new("puck", 0.5, Vec3::zeros(), Mat3::identity() * 0.01));
    builder
        .joint(JointSpec::new("ball", JointKind::Spherical, "ground", "arm").start(&[], &[0.3, 2.0, -1.0]));
    let start = [0.6, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
    builder.joint(JointSpec::new("float", JointKind::Free, "ground", "puck").start(&start, &[]));
    builder.cut("tip", points("arm.tip", "puck.origin"));
    builder.partitioning(Partitioning::Preferred(vec!["ball.wy".into(), "ball.wz".into(), "float.x".into()]));
    let mut machine = machine(builder);
    assert_eq!(machine.partition().nu(), 6);
    let mut splits = vec![machine.partition().clone()];
    for _ in 0..2000 {
        step(&mut machine, 1e-3);
        assert!(machine.closure().error <= 1e-12);
        if splits.last() != Some(machine.partition()) {
            splits.push(machine.partition().clone());
        }
    }
    assert!(splits[0].dependent.contains(&1) && splits[0].dependent.contains(&2));
    assert!(splits.len() > 1, "the arm swings far enough to change the split");
    let arm = machine.pose(BodyIndex(0)).point(&Vec3::new(0.6, 0.0, 0.0));
    assert!((arm - machine.pose(BodyIndex(1)).position).amax() < 1e-11);
}

#[test]
fn an_impossible_mechanism_says_which_loop_stays_open_and_how_far() {
    let mut builder = MultibodyBuilder::new("too short");
    builder.body(rod("a", 1.0, 0.3)).body(rod("b", 1.0, 0.3));
    builder.joint(JointSpec::new("i", hinge_z(), "ground", "a"));
    builder.joint(
        JointSpec::new("j", hinge_z(), "a", "b").parent_at(Vec3::new(0.3, 0.0, 0.0)).start(&[0.2], &[]),
    );
    builder.ground_point("post", Vec3::new(1.0, 0.0, 0.0));
    builder.cut("reach", points("ground.post", "b.tip"));
    match Multibody::new(builder.build().expect("valid"), 0.0) {
        Err(MultibodyError::CannotBeAssembled { cut, open_by }) => {
            assert_eq!(cut, "reach");
            assert!((open_by - 0.4).abs() < 1e-3, "{open_by}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn assembly_works_from_far_and_from_a_saddle() {
    // Straight arm towards a post that is nearer than its reach: a saddle, from which descent alone finds no
    // way.
    let mut builder = MultibodyBuilder::new("folded");
    builder.body(rod("a", 1.0, 0.3)).body(rod("b", 1.0, 0.3));
    builder.joint(JointSpec::new("i", hinge_z(), "ground", "a"));
    builder.joint(JointSpec::new("j", hinge_z(), "a", "b").parent_at(Vec3::new(0.3, 0.0, 0.0)));
    builder.ground_point("post", Vec3::new(0.4, 0.0, 0.0));
    builder.cut("reach", points("ground.post", "b.tip"));
    let machine = machine(builder);
    assert!(machine.closure().error <= 1e-12);
    assert_eq!(machine.partition().nu(), 0);
}

#[test]
fn an_incompatible_redundant_row_is_refused() {
    let mut builder = MultibodyBuilder::new("out of plane");
    four_bar(&mut builder, "ground", Quat::identity(), (1.0, 0.0));
    builder.add_point("rocker", "beside", Vec3::new(BARS[2], 0.0, 0.01));
    builder.cut("offset", points("coupler.tip", "rocker.beside"));
    match Multibody::new(builder.build().expect("valid"), 0.0) {
        Err(MultibodyError::CannotBeAssembled { cut, open_by }) => {
            assert!(cut == "offset" || cut == "knee");
            assert!(open_by > 1e-3 && open_by < 2e-2, "{open_by}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_flat_parallelogram_is_recognised_as_singular() {
    // All four bars in one line: the closure equations lose a rank here and nowhere else.
    let mut builder = MultibodyBuilder::new("parallelogram");
    builder.body(rod("a", 1.0, 0.3)).body(rod("b", 1.0, 0.5)).body(rod("c", 1.0, 0.3));
    builder.joint(JointSpec::new("a", hinge_z(), "ground", "a"));
    builder.joint(JointSpec::new("b", hinge_z(), "a", "b").parent_at(Vec3::new(0.3, 0.0, 0.0)));
    builder.joint(JointSpec::new("c", hinge_z(), "ground", "c").parent_at(Vec3::new(0.5, 0.0, 0.0)));
    builder.cut("corner", points("b.tip", "c.tip"));
    match Multibody::new(builder.build().expect("valid"), 0.0) {
        Err(MultibodyError::Singular { cut, .. }) => assert_eq!(cut, "corner"),
        other => panic!("{other:?}"),
    }
}

/// Slider–crank without clearance: crank, rod, piston on x.
fn engine(partitioning: Partitioning) -> Multibody {
    engine_with(partitioning, |_| {})
}

fn engine_with(partitioning: Partitioning, change: impl FnOnce(&mut MultibodyBuilder)) -> Multibody {
    let mut builder = MultibodyBuilder::new("engine");
    builder.body(rod("crank", 0.5, 0.1)).body(rod("rod", 0.4, 0.3));
    builder.body(BodySpec::new("piston", 0.6, Vec3::zeros(), Mat3::identity() * 1e-3));
    builder.joint(JointSpec::new("crank", hinge_z(), "ground", "crank").start(&[1.0], &[30.0]).hold());
    builder.joint(
        JointSpec::new("rod", hinge_z(), "crank", "rod")
            .parent_at(Vec3::new(0.1, 0.0, 0.0))
            .start(&[-1.3], &[]),
    );
    builder.joint(
        JointSpec::new("piston", JointKind::Prismatic { axis: Vec3::x() }, "ground", "piston")
            .start(&[0.35], &[-2.9]),
    );
    builder.cut("pin", points("rod.tip", "piston.origin"));
    builder.partitioning(partitioning);
    change(&mut builder);
    machine(builder)
}

#[test]
fn dead_centres_change_the_partition_without_a_jump() {
    let named = |names: [&str; 2]| names.map(String::from).to_vec();
    let mut by_crank = engine(Partitioning::Fixed(named(["rod", "piston"])));
    // Driven from the piston, which has dead centres twice a turn.
    let mut by_piston = engine(Partitioning::Preferred(named(["crank", "rod"])));
    // Both start from the same motion, whatever their coordinates say about it.
    by_piston.coordinates.clone_from(&by_crank.coordinates);
    by_crank.set_force_evaluation(ForceEvaluation::MiddleVelocity);
    by_piston.set_force_evaluation(ForceEvaluation::MiddleVelocity);
    let (mut changes, mut before) = (0, by_piston.partition().clone());
    let h = 2e-5;
    for _ in 0..20_000 {
        step(&mut by_crank, h);
        let last = by_piston.coordinates().v.clone();
        step(&mut by_piston, h);
        assert!(by_piston.closure().error <= 1e-12);
        for (a, b) in last.iter().zip(&by_piston.coordinates().v) {
            // Accelerations stay below 30² · 4 rad/s²: anything more would be a jump.
            assert!((a - b).abs() < 4e3 * h, "{a} {b}");
        }
        if *by_piston.partition() != before {
            changes += 1;
            before = by_piston.partition().clone();
        }
    }
    let turns = by_crank.coordinates().q[0] / (2.0 * std::f64::consts::PI);
    assert!(turns > 1.5, "{turns}");
    assert!(changes >= 6, "two changes per dead centre: {changes}");
    // Different coordinates are integrated, so the paths differ by the error of the scheme.
    let off = (by_crank.coordinates().q[0] - by_piston.coordinates().q[0]).abs();
    assert!(off < 1e-3, "{off}");
}

#[test]
fn repartition_keeps_every_bit_of_the_state() {
    let mut machine = engine(Partitioning::Automatic);
    let before = machine.coordinates().clone();
    let mut roles = vec![machine.partition().clone()];
    for angle in [0.3, 1.2, 2.5] {
        machine.coordinates.q[0] = angle;
        machine.close_loops().expect("closes");
        let kept = machine.coordinates().clone();
        if machine.repartition().expect("regular") {
            roles.push(machine.partition().clone());
        }
        assert_eq!(*machine.coordinates(), kept);
    }
    assert_ne!(*machine.coordinates(), before);
    assert!(roles.len() > 1, "the roles changed at least once: {roles:?}");
}

#[test]
fn a_mechanism_that_jams_says_which_loop_opens() {
    // The piston is pulled beyond the reach of crank and rod.
    let mut machine = engine_with(Partitioning::Automatic, |builder| {
        let start = 0.1 * 1.0f64.cos() + (0.09 - (0.1 * 1.0f64.sin()).powi(2)).sqrt();
        let motion = move |t: f64| MotionSample { position: start + t, velocity: 1.0, acceleration: 0.0 };
        builder.prescribe("piston", PrescribedMotion::new(motion));
    });
    let h = 1e-4;
    let error = loop {
        assert!(machine.time() < 0.059, "the reach ends at 0.05801 s");
        let t = machine.time();
        machine.advance_positions(0.5 * h);
        let stepped = machine.close_loops().and_then(|_| {
            machine.reduce(t, h)?;
            machine.finish(&[])
        });
        if let Err(error) = stepped {
            break error;
        }
    };
    assert!(machine.time() > 0.057);
    match error {
        MultibodyError::CannotBeClosed { cut, open_by, .. } => assert!(cut == "pin" && open_by > 1e-12),
        MultibodyError::Singular { cut, .. } => assert_eq!(cut, "pin"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_wrong_number_of_dependent_coordinates_is_refused() {
    let mut builder = MultibodyBuilder::new("four-bar");
    four_bar(&mut builder, "ground", Quat::identity(), (1.0, 0.0));
    builder.partitioning(Partitioning::Fixed(vec!["coupler".into(), "rocker".into(), "crank".into()]));
    match Multibody::new(builder.build().expect("valid"), 0.0) {
        Err(MultibodyError::BadPartition { needed, .. }) => assert_eq!(needed, 2),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_restored_machine_continues_with_the_same_bits() {
    let model = || {
        let mut builder = MultibodyBuilder::new("four-bar");
        builder.gravity(Vec3::new(0.0, -9.81, 0.0));
        four_bar(&mut builder, "ground", Quat::identity(), (1.0, 5.0));
        builder.build().expect("valid")
    };
    let mut straight = Multibody::new(model(), 0.0).expect("assembles");
    for _ in 0..100 {
        step(&mut straight, 1e-3);
    }
    let mut restored = Multibody::restore(model(), straight.state()).expect("fits");
    for _ in 0..100 {
        step(&mut straight, 1e-3);
        step(&mut restored, 1e-3);
    }
    assert_eq!(straight.state(), restored.state());
    let mut wrong = straight.state();
    wrong.partition.dependent.pop();
    assert!(matches!(Multibody::restore(model(), wrong), Err(MultibodyError::BadPartition { .. })));
    let mut wrong = straight.state();
    wrong.coordinates.q.push(0.0);
    assert!(matches!(Multibody::restore(model(), wrong), Err(MultibodyError::WrongLength { what: "q", .. })));
}
