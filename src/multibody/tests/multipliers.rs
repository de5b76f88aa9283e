//! Kinematics against finite differences, dynamics against absolute coordinates with multipliers, on random
//! mechanisms.

use super::super::builder::MultibodyBuilder;
use super::super::law::{Law, MotionSample, PrescribedMotion};
use super::super::spec::{CutKind, Direction, ForceSpec, JointSpec, LinkLaw};
use super::super::stepping::{BodyImpulse, Multibody};
use super::super::{
    BodyIndex, ContactVelocity, Data, ForceEvaluation, JointKind, Model, MultibodyError, Partitioning,
    PointMap,
};
use super::closed_forms::step;
use super::oracle::{Multipliers, Random, random_body, random_cut, random_tree};
use crate::geometry::{Pose, Vec3};
use nalgebra::DMatrix;
use proptest::prelude::*;

fn build(builder: MultibodyBuilder) -> Model {
    builder.build().expect("valid description")
}

/// A random mechanism with up to `cuts` loops, all closed at its first position.
fn random_mechanism(seed: u64, bodies: usize, cuts: usize) -> Result<Multibody, MultibodyError> {
    let mut random = Random(seed);
    let tree_seed = random.next();
    let tree = || random_tree(&mut Random(tree_seed), bodies);
    let bare = build(tree());
    let mut builder = tree();
    for k in 0..cuts {
        random_cut(&mut random, &mut builder, &bare, &format!("cut{k}"));
    }
    Multibody::new(build(builder), 0.0)
}

fn updated(model: &Model, q: &[f64], v: &[f64]) -> Data {
    let mut data = Data::new(model);
    data.update_positions(model, q);
    data.update_velocities(model, v);
    data.update_residual(model);
    data.update_loop_jacobian(model);
    data.update_loop_jacobian_rate(model);
    data
}

/// Worst difference between accelerations of bodies by the reduced system and by the oracle, relative to the
/// largest.
fn acceleration_difference(machine: &mut Multibody, oracle: &Multipliers) -> f64 {
    let dv = machine.accelerations().expect("regular");
    let solution = oracle.solve();
    let (mut worst, mut largest): (f64, f64) = (0.0, 1.0);
    for (i, (linear, angular)) in solution.accelerations.iter().enumerate() {
        let body = BodyIndex(i);
        let centre = machine.pose(body).point(&machine.model().centre(body));
        let rate = machine.data().jacobian_rate(body, &centre);
        let gain = machine.data().jacobian(machine.model(), body, &centre) * &dv;
        let mine = (gain.fixed_rows::<3>(0) + rate.linear, gain.fixed_rows::<3>(3) + rate.angular);
        worst = worst.max((mine.0 - linear).amax()).max((mine.1 - angular).amax());
        largest = largest.max(linear.amax()).max(angular.amax());
    }
    worst / largest
}

#[test]
fn twists_and_their_rates_are_derivatives_of_poses() {
    for seed in 0..30 {
        let machine = random_mechanism(seed, 5, 0).expect("a tree needs no assembly");
        let (model, q, v) = (machine.model(), &machine.coordinates().q, &machine.coordinates().v);
        let now = updated(model, q, v);
        let h = 1e-5;
        let moved = |h: f64| {
            let mut q = q.clone();
            model.integrate(&mut q, v, h);
            updated(model, &q, v)
        };
        let (before, after) = (moved(-h), moved(h));
        for i in 0..model.body_count() {
            let body = BodyIndex(i);
            let point = Vec3::new(0.3, -0.2, 0.5);
            let at = |data: &Data| data.pose(body).point(&point);
            let twist = now.body_twist(body, &at(&now));
            let velocity = (at(&after) - at(&before)) / (2.0 * h);
            assert!((velocity - twist.linear).amax() < 1e-7, "seed {seed} body {i}");
            let turn =
                (after.pose(body).rotation * before.pose(body).rotation.inverse()).scaled_axis() / (2.0 * h);
            assert!((turn - twist.angular).amax() < 1e-7, "seed {seed} body {i}");
            // dJ/dt v with v constant is the derivative of the velocity of one material point.
            let rate = now.jacobian_rate(body, &at(&now));
            let (t0, t1) = (before.body_twist(body, &at(&before)), after.body_twist(body, &at(&after)));
            assert!(
                ((t1.linear - t0.linear) / (2.0 * h) - rate.linear).amax() < 1e-5,
                "seed {seed} body {i}"
            );
            assert!(
                ((t1.angular - t0.angular) / (2.0 * h) - rate.angular).amax() < 1e-5,
                "seed {seed} body {i}"
            );
            let jacobian = now.jacobian(model, body, &at(&now)) * nalgebra::DVector::from_column_slice(v);
            assert!((jacobian.fixed_rows::<3>(0) - twist.linear).amax() < 1e-12);
            assert!((jacobian.fixed_rows::<3>(3) - twist.angular).amax() < 1e-12);
        }
    }
}

#[test]
fn closure_rows_have_exact_derivatives_even_when_open() {
    for seed in 0..40 {
        let Ok(machine) = random_mechanism(seed, 4, 2) else { continue };
        let model = machine.model();
        let mut random = Random(seed + 1000);
        // Off the closed position, and with velocities that do not respect the loops.
        let v: Vec<f64> = (0..model.nv()).map(|_| random.signed()).collect();
        let mut q = machine.coordinates().q.clone();
        model.integrate(&mut q, &v, 0.3);
        let h = 1e-5;
        let moved = |h: f64| {
            let mut q = q.clone();
            model.integrate(&mut q, &v, h);
            updated(model, &q, &v)
        };
        let (before, now, after) = (moved(-h), moved(0.0), moved(h));
        let v = nalgebra::DVector::from_vec(v.clone());
        let rate = (&after.residual - &before.residual) / (2.0 * h);
        assert!((&now.jacobian * &v - rate).amax() < 1e-7, "seed {seed}");
        let rate = (&after.jacobian * &v - &before.jacobian * &v) / (2.0 * h);
        assert!((&now.jacobian_rate - rate).amax() < 1e-6, "seed {seed}");
    }
}

#[test]
fn mass_matrix_is_the_hessian_of_kinetic_energy() {
    for seed in 0..20 {
        let machine = random_mechanism(seed, 6, 0).expect("tree");
        let (model, q) = (machine.model(), &machine.coordinates().q);
        let nv = model.nv();
        // The energy is quadratic in v, so second differences with unit steps are exact. It is summed over
        // bodies from their velocities, not from M.
        let energy = |v: &[f64]| {
            let data = updated(model, q, v);
            let kinetic = |i: usize| {
                let body = BodyIndex(i);
                let pose = data.pose(body);
                let twist = data.body_twist(body, &pose.point(&model.centre(body)));
                let omega = pose.inverse_direction(&twist.angular);
                model.mass(body) * twist.linear.norm_squared() + omega.dot(&(model.inertia(body) * omega))
            };
            0.5 * (0..model.body_count()).map(kinetic).sum::<f64>()
        };
        let unit = |j: usize, k: usize| {
            let mut v = vec![0.0; nv];
            v[j] += 1.0;
            v[k] += 1.0;
            v
        };
        let single = |j: usize| unit(j, j).iter().map(|x| x * 0.5).collect::<Vec<_>>();
        let mut data = updated(model, q, &machine.coordinates().v);
        data.update_mass(model);
        for j in 0..nv {
            for k in 0..nv {
                let hessian = if j == k {
                    2.0 * energy(&single(j))
                } else {
                    energy(&unit(j, k)) - energy(&single(j)) - energy(&single(k))
                };
                assert!((data.mass()[(j, k)] - hessian).abs() < 1e-11, "seed {seed} entry {j},{k}");
            }
        }
        assert!((data.kinetic_energy() - energy(&machine.coordinates().v)).abs() < 1e-11);
    }
}

#[test]
fn trees_accelerate_as_with_multipliers() {
    for seed in 0..60 {
        let mut machine = random_mechanism(seed, 1 + seed as usize % 7, 0).expect("tree");
        let oracle = Multipliers::new(machine.model(), machine.data());
        let (position, velocity) = oracle.violation();
        assert!(position < 1e-13 && velocity < 1e-12, "seed {seed}: {position:.1e} {velocity:.1e}");
        let difference = acceleration_difference(&mut machine, &oracle);
        assert!(difference < 1e-10, "seed {seed}: {difference:.1e}");
    }
}

#[test]
fn loops_accelerate_as_with_multipliers() {
    let mut tried = 0;
    for seed in 0..200 {
        let Ok(mut machine) = random_mechanism(seed, 3 + seed as usize % 5, 1 + seed as usize % 3) else {
            continue;
        };
        if machine.condition() > 20.0 || machine.partition().nu() == 0 {
            continue;
        }
        tried += 1;
        let oracle = Multipliers::new(machine.model(), machine.data());
        let (position, velocity) = oracle.violation();
        assert!(position < 1e-11 && velocity < 1e-10, "seed {seed}: {position:.1e} {velocity:.1e}");
        let difference = acceleration_difference(&mut machine, &oracle);
        assert!(difference < 1e-10, "seed {seed}: {difference:.1e}");
    }
    assert!(tried > 100, "only {tried} mechanisms were regular");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// The reduced system and the multiplier system agree on accelerations and on the effect of impulses at
    /// contact points.
    #[test]
    fn reduction_agrees_with_multipliers(seed in any::<u64>(), bodies in 2usize..8, cuts in 0usize..4) {
        let machine = random_mechanism(seed, bodies, cuts);
        prop_assume!(machine.as_ref().is_ok_and(|m| m.condition() < 50.0 && m.partition().nu() > 0));
        let mut machine = machine.expect("assumed");
        let mut oracle = Multipliers::new(machine.model(), machine.data());
        let difference = acceleration_difference(&mut machine, &oracle);
        prop_assert!(difference < 1e-9, "accelerations differ by {difference:.1e}");
        // Contact: an impulse on one body, the velocity of a point on another.
        let mut random = Random(seed);
        let (struck, seen) = (random.below(bodies), random.below(bodies));
        let (impulse, at) = (random.vector(), machine.pose(BodyIndex(struck)).point(&random.vector()));
        oracle.make_impulsive();
        oracle.push(struck, &at, &impulse, &Vec3::zeros());
        let (linear, _) = oracle.solve().accelerations[seen];
        let centre = machine.pose(BodyIndex(seen)).point(&machine.model().centre(BodyIndex(seen)));
        let operators = machine.reduce(0.0, 1e-3).expect("regular").clone();
        let nu = operators.nu;
        let mut jacobian = vec![0.0; 3 * nu];
        operators.point_jacobian(struck, &at, &mut jacobian);
        let given = DMatrix::from_row_slice(3, nu, &jacobian).transpose() * impulse;
        let change = DMatrix::from_column_slice(nu, nu, &operators.mass_inverse) * given;
        let still = operators.point_velocity(seen, &centre, &vec![0.0; nu]);
        let error = (operators.point_velocity(seen, &centre, change.as_slice()) - still - linear).amax();
        prop_assert!(error < 1e-9 * (1.0 + linear.amax()), "velocities differ by {error:.1e}");
    }
}

/// A spatial chain with every force element, one loop, prescribed joints.
fn loaded(prescribed: bool) -> MultibodyBuilder {
    let mut random = Random(77);
    let mut builder = MultibodyBuilder::new("loaded");
    builder.gravity(Vec3::new(0.0, 0.0, -9.81));
    let kinds = [
        JointKind::Revolute { axis: Vec3::new(0.2, 1.0, 0.1) },
        JointKind::Prismatic { axis: Vec3::new(1.0, 0.3, -0.4) },
        JointKind::Spherical,
        JointKind::Revolute { axis: Vec3::new(1.0, -0.2, 0.6) },
        JointKind::Universal { first: Vec3::x(), second: Vec3::y() },
    ];
    for (i, kind) in kinds.into_iter().enumerate() {
        builder.body(random_body(&mut random, &format!("b{i}")));
        let parent = if i == 0 { "ground".into() } else { format!("b{}", i - 1) };
        let q: Vec<f64> = (0..kind.nq()).map(|_| random.signed()).collect();
        let v: Vec<f64> = (0..kind.nv()).map(|_| random.signed()).collect();
        builder.joint(
            JointSpec::new(&format!("j{i}"), kind, &parent, &format!("b{i}"))
                .frames(random.pose(), random.pose())
                .start(&q, &v),
        );
    }
    builder.ground_point("hook", Vec3::new(0.4, 1.0, 0.3));
    let spring = LinkLaw::SpringDamper { stiffness: 40.0, damping: 3.0, rest_length: 0.2 };
    builder.force("spring", ForceSpec::Link { a: "ground.hook".into(), b: "b4.tip".into(), law: spring });
    let ram = LinkLaw::Law(Law::function(|input| 5.0 - 2.0 * input.value - input.rate));
    builder.force("ram", ForceSpec::Link { a: "b1.tip".into(), b: "b3.centre".into(), law: ram });
    let direction = Direction::Body(Vec3::new(0.0, 2.0, 1.0));
    builder.force("jet", ForceSpec::Force { point: "b2.tip".into(), direction, law: Law::Constant(3.0) });
    let direction = Direction::World(Vec3::new(1.0, 0.0, 1.0));
    builder.force("twist", ForceSpec::Torque { body: "b3".into(), direction, law: Law::Constant(-2.0) });
    let motor = Law::function(|input| 4.0 - 3.0 * input.rate + input.time);
    builder.force("motor", ForceSpec::Actuator { coordinate: "j3".into(), law: motor });
    let coordinate = "j1".to_string();
    builder.force("buffer", ForceSpec::JointSpring { coordinate, stiffness: 30.0, damping: 2.0, rest: 0.1 });
    if prescribed {
        let motion = |t: f64| MotionSample {
            position: 0.4 + (2.0 * t).sin(),
            velocity: 2.0 * (2.0 * t).cos(),
            acceleration: -4.0 * (2.0 * t).sin() + 1.7,
        };
        builder.prescribe("j0", PrescribedMotion::new(motion));
        builder.prescribe(
            "j1.slide",
            PrescribedMotion::new(|t| MotionSample {
                position: 0.2 + 0.5 * t * t,
                velocity: t,
                acceleration: 1.0,
            }),
        );
    }
    builder
}

/// Joint axis and origin in the world, on the parent side.
fn joint_axis(machine: &Multibody, i: usize, axis: &Vec3) -> (Vec3, Vec3) {
    let joint = &machine.model.joints[i];
    let side = joint.parent.map_or(Pose::identity(), |p| machine.data.poses[p]).compose(&joint.parent_frame);
    let back = &joint.from_child_side;
    (side.direction(axis), machine.data.poses[i].point(&back.inverse_point(&Vec3::zeros())))
}

fn axis_of(kind: &JointKind) -> Vec3 {
    match kind {
        JointKind::Revolute { axis } | JointKind::Prismatic { axis } => *axis,
        _ => panic!("only for single axes"),
    }
}

/// The oracle with the forces of `loaded`, computed here from poses and twists alone.
fn loaded_oracle(machine: &Multibody, prescribed: Option<[f64; 2]>) -> Multipliers {
    let (model, data, v) = (machine.model(), machine.data(), &machine.coordinates().v);
    let mut oracle = Multipliers::new(model, data);
    let place = |name: &str| {
        let point = model.point(name).expect("named");
        (point.body.expect("on a body").0, data.world_point(&point))
    };
    let moving = |body: usize, point: &Vec3| data.body_twist(BodyIndex(body), point).linear;
    let hook = Vec3::new(0.4, 1.0, 0.3);
    let (b4, tip) = place("b4.tip");
    let (span, length) = (tip - hook, (tip - hook).norm());
    let rate = span.dot(&moving(b4, &tip)) / length;
    oracle.push(b4, &tip, &(span / length * (-40.0 * (length - 0.2) - 3.0 * rate)), &Vec3::zeros());
    let ((b1, low), (b3, high)) = (place("b1.tip"), place("b3.centre"));
    let (span, length) = (high - low, (high - low).norm());
    let rate = span.dot(&(moving(b3, &high) - moving(b1, &low))) / length;
    let force = span / length * (5.0 - 2.0 * length - rate);
    oracle.push(b3, &high, &force, &Vec3::zeros());
    oracle.push(b1, &low, &-force, &Vec3::zeros());
    let (b2, nozzle) = place("b2.tip");
    oracle.push(
        b2,
        &nozzle,
        &(data.pose(BodyIndex(b2)).direction(&Vec3::new(0.0, 6.0, 3.0))),
        &Vec3::zeros(),
    );
    oracle.push(b3, &high, &Vec3::zeros(), &Vec3::new(-2.0, 0.0, -2.0));
    let kind = |i: usize| axis_of(&model.joints[i].kind);
    let (axis, _) = joint_axis(machine, 3, &kind(3));
    let torque = axis * (4.0 - 3.0 * v[model.coordinate("j3").expect("j3")]);
    oracle.push(3, &high, &Vec3::zeros(), &torque);
    oracle.push(2, &nozzle, &Vec3::zeros(), &-torque);
    let (axis, origin) = joint_axis(machine, 1, &kind(1));
    let column = model.coordinate("j1").expect("j1");
    let q = machine.coordinates().q[model.position_index(column).expect("scalar")];
    let force = axis * (-30.0 * (q - 0.1) - 2.0 * v[column]);
    oracle.push(1, &origin, &force, &Vec3::zeros());
    oracle.push(0, &origin, &-force, &Vec3::zeros());
    if let Some([turn, slide]) = prescribed {
        let (axis, origin) = joint_axis(machine, 0, &kind(0));
        oracle.prescribe(None, 0, axis, true, &origin, turn);
        let (axis, origin) = joint_axis(machine, 1, &kind(1));
        oracle.prescribe(Some(0), 1, axis, false, &origin, slide);
    }
    oracle
}

#[test]
fn force_elements_act_as_in_absolute_coordinates() {
    let mut machine = Multibody::new(build(loaded(false)), 0.0).expect("tree");
    let oracle = loaded_oracle(&machine, None);
    let difference = acceleration_difference(&mut machine, &oracle);
    assert!(difference < 1e-11, "{difference:.1e}");
}

#[test]
fn prescribed_joints_accelerate_as_told_and_shake_the_rest() {
    let mut machine = Multibody::new(build(loaded(true)), 0.0).expect("tree");
    let v = &machine.coordinates().v;
    assert_eq!((v[0], v[1]), (2.0, 0.0), "velocities come from the motion, not from the description");
    let oracle = loaded_oracle(&machine, Some([1.7, 1.0]));
    let difference = acceleration_difference(&mut machine, &oracle);
    assert!(difference < 1e-11, "{difference:.1e}");
}

#[test]
fn prescribed_joints_drive_a_loop() {
    let mut builder = loaded(true);
    let bare = Multibody::new(build(loaded(true)), 0.0).expect("tree");
    let hinge = Vec3::new(0.1, 0.2, 0.3);
    let tip = bare.pose(BodyIndex(4)).inverse_point(&hinge);
    builder.add_point("b4", "hinge", tip);
    builder.ground_point("hinge", hinge);
    builder.cut("hinge", CutKind::Points { a: "ground.hinge".into(), b: "b4.hinge".into() });
    let mut machine = Multibody::new(build(builder), 0.0).expect("closed as described");
    assert_eq!(machine.partition().nu(), machine.model().nv() - 2 - 3);
    let oracle = loaded_oracle(&machine, Some([1.7, 1.0]));
    let (position, velocity) = oracle.violation();
    assert!(position < 1e-11 && velocity < 1e-11, "{position:.1e} {velocity:.1e}");
    let difference = acceleration_difference(&mut machine, &oracle);
    assert!(difference < 1e-10, "{difference:.1e}");
}

#[test]
fn joint_and_loop_forces_are_the_multipliers() {
    let mut tried = 0;
    for seed in 0..120 {
        let Ok(mut machine) = random_mechanism(seed, 4, 1) else { continue };
        let full = machine.partition().rows.len() == machine.model().closure_rows();
        if !full || machine.condition() > 20.0 || machine.partition().nu() == 0 {
            continue;
        }
        tried += 1;
        let h = 1e-3;
        let mut random = Random(seed);
        let (struck, linear, angular) = (random.below(4), random.vector(), random.vector());
        let mut oracle = Multipliers::new(machine.model(), machine.data());
        let origin = machine.pose(BodyIndex(struck)).position;
        oracle.push(struck, &origin, &(linear / h), &(angular / h));
        let contact = BodyImpulse { body: BodyIndex(struck), linear, angular };
        let operators = machine.reduce(0.0, h).expect("regular").clone();
        let nu = operators.nu;
        let PointMap::Rigid(map) = &operators.bodies[struck].points;
        let j = DMatrix::from_row_slice(6, nu, &map.jacobian);
        let p = nalgebra::Vector6::new(linear.x, linear.y, linear.z, angular.x, angular.y, angular.z);
        let gain = DMatrix::from_column_slice(nu, nu, &operators.mass_inverse) * j.transpose() * p;
        let v_u: Vec<f64> = (0..nu).map(|k| operators.free_velocity[k] + gain[k]).collect();
        let wrenches = machine.joint_wrenches(&v_u, &[contact]).expect("right length");
        let solution = oracle.solve();
        for (i, wrench) in wrenches.iter().enumerate() {
            let body = BodyIndex(i);
            let centre = machine.pose(body).point(&machine.model().centre(body));
            let (_, joint) = joint_axis(&machine, i, &Vec3::x());
            let moment = wrench.moment + (joint - centre).cross(&wrench.force);
            let (force, torque) = solution.reactions[i];
            let scale = 1.0 + linear.norm() / h * (1.0 + machine.condition());
            let error = (wrench.force - force).amax().max((moment - torque).amax()) / scale;
            assert!(error < 1e-9, "seed {seed} joint {i}: {error:.1e}");
        }
    }
    assert!(tried > 30, "only {tried} mechanisms were regular");
}

#[test]
fn any_partition_gives_the_same_accelerations() {
    let describe = |partitioning: Partitioning| {
        let mut random = Random(5);
        let mut builder = random_tree(&mut Random(9), 6);
        let bare = build(random_tree(&mut Random(9), 6));
        random_cut(&mut random, &mut builder, &bare, "loop");
        builder.partitioning(partitioning);
        Multibody::new(build(builder), 0.0)
    };
    let mut automatic = describe(Partitioning::Automatic).expect("closed as described");
    let rows = automatic.partition().rows.len();
    assert!(rows > 0);
    let wanted = automatic.accelerations().expect("regular");
    let names: Vec<String> =
        (0..automatic.model().nv()).map(|k| automatic.model().coordinate_name(k).into()).collect();
    let mut tried = 0;
    for start in 0..=names.len() - rows {
        let dependent = names[start..start + rows].to_vec();
        let Ok(mut other) = describe(Partitioning::Fixed(dependent.clone())) else { continue };
        tried += 1;
        // Same velocities, so that only the split differs.
        other.coordinates.v.clone_from(&automatic.coordinates.v);
        other.data.update_velocities(&other.model, &other.coordinates.v);
        let accelerations = other.accelerations().expect("regular");
        let error = (accelerations - &wanted).amax() / wanted.amax();
        assert!(error < 1e-10 * (1.0 + other.condition()), "{dependent:?}: {error:.1e}");
    }
    assert!(tried > 0);
}

#[test]
fn random_loops_stay_closed_and_keep_their_energy_to_second_order() {
    let (mut tried, mut ordered) = (0, 0);
    for seed in 0..80 {
        let (bodies, cuts) = (3 + seed as usize % 4, 1 + seed as usize % 2);
        // Worst error in energy, relative to the largest kinetic energy, over 0.1 s.
        let run = |steps: usize| {
            let mut machine = random_mechanism(seed, bodies, cuts).ok().filter(|m| m.partition().nu() > 0)?;
            machine.set_force_evaluation(ForceEvaluation::MiddleVelocity);
            let first = machine.energy();
            let (mut worst, mut largest) = (0.0f64, first[0]);
            let h = 0.1 / steps as f64;
            for _ in 0..steps {
                step(&mut machine, h);
                assert!(machine.closure().error <= 1e-12, "seed {seed}");
                let [kinetic, weight, _] = machine.energy();
                worst = worst.max((kinetic + weight - first[0] - first[1]).abs());
                largest = largest.max(kinetic);
            }
            Some(worst / largest)
        };
        let (Some(coarse), Some(fine)) = (run(200), run(400)) else { continue };
        tried += 1;
        assert!(fine < 0.02, "seed {seed}: {coarse:.1e} {fine:.1e}");
        // A partition that changes at another moment blurs the ratio a little.
        ordered += usize::from(coarse / fine > 3.3 || fine < 1e-12);
    }
    assert!(tried > 60 && ordered as f64 > 0.95 * tried as f64, "{ordered} of {tried}");
}

#[test]
fn random_loops_are_assembled_from_rough_positions() {
    let (mut tried, mut failed) = (0, Vec::new());
    for seed in 0..300 {
        let Ok(closed) = random_mechanism(seed, 3 + seed as usize % 4, 1 + seed as usize % 3) else {
            continue;
        };
        // A structure without freedom has few positions at all; from afar there may be none to be found.
        if closed.partition().nu() == 0 {
            continue;
        }
        let mut model = closed.model;
        let mut random = Random(seed);
        let v: Vec<f64> = (0..model.nv()).map(|_| random.signed()).collect();
        let mut q = closed.coordinates.q.clone();
        model.integrate(&mut q, &v, 0.3);
        model.initial.q = q;
        tried += 1;
        match Multibody::new(model, 0.0) {
            Ok(machine) => assert!(machine.closure().error <= 1e-12, "seed {seed}"),
            Err(error) => failed.push((seed, error)),
        }
    }
    assert!(tried > 200 && failed.is_empty(), "{tried} tried: {failed:?}");
}

#[test]
fn contacts_can_see_velocities_at_the_ends_of_a_step() {
    for seed in 0..40 {
        let (bodies, cuts) = (4 + seed as usize % 3, seed as usize % 3);
        let point = Vec3::new(0.2, -0.3, 0.4);
        // How far the operators' velocities of one point are from those before and after the step.
        let errors = |h: f64, velocities: ContactVelocity| {
            let mut machine = random_mechanism(seed, bodies, cuts).ok().filter(|m| m.partition().nu() > 0)?;
            machine.set_contact_velocity(velocities);
            let body = BodyIndex(bodies - 1);
            let at = |machine: &Multibody| machine.body_twist(body, &machine.pose(body).point(&point)).linear;
            let before = at(&machine);
            machine.advance_positions(0.5 * h);
            machine.close_loops().ok()?;
            let operators = machine.reduce(0.0, h).ok()?.clone();
            let middle = operators.pose(body.0).point(&point);
            let start = (operators.point_velocity_before(body.0, &middle) - before).norm();
            let after = operators.point_velocity(body.0, &middle, &operators.free_velocity);
            machine.finish(&operators.free_velocity).ok()?;
            Some([start, (after - at(&machine)).norm()])
        };
        for (velocities, order) in [(ContactVelocity::Middle, 1.0f64), (ContactVelocity::Ends, 2.0)] {
            let (Some(coarse), Some(fine)) = (errors(2e-4, velocities), errors(1e-4, velocities)) else {
                continue;
            };
            for (a, b) in coarse.iter().zip(fine) {
                assert!(
                    *a < 1e-10 || (a / b).log2() > order - 0.2,
                    "seed {seed} {velocities:?}: {coarse:?} {fine:?}"
                );
            }
        }
    }
}
