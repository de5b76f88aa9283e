//! Many contacts at once: columns, an arch, a settled pile; weight, energy, and the balance of momentum.

mod common;

use breccia::geometry::{Pose, Quat, Random, Shape, StoneParameters, Vec3, convex_hull, stone};
use breccia::scene::{Body, ContactLaw};
use breccia::solve::Options;
use breccia::step::{DecompositionOptions, Stepper};
use common::{
    GRAVITY, SEATED, World, cuboid, free_kinetic_energy, law, measured, polyhedron, predictive, run_until,
    spin,
};
use decomposition::{Comm, Solo, threads};

/// Upward forces on the bodies of a column, from below: `k` carries the weight of those above it.
fn carried(stepper: &Stepper) -> Vec<f64> {
    let mut forces = vec![0.0; stepper.scene().state.grains.len()];
    for contact in stepper.contacts() {
        // Ids ascend from the floor: the second body stands above.
        let above = stepper.scene().state.grains.binary_search_by_key(&contact.bodies[1], |body| body.id);
        forces[above.expect("a body of the column")] += contact.impulse.z / stepper.physics().time_step;
    }
    forces
}

fn check_column(what: &str, law: ContactLaw, gap: f64, half_height: f64, shape: &Shape) {
    let mut world = World::new(1e-3, law);
    world.wall(Vec3::z(), Vec3::zeros());
    for k in 0..10 {
        let place = Vec3::z() * ((2.0 * f64::from(k) + 1.0) * half_height + gap * f64::from(k + 1));
        world.free(shape, 2000.0, Pose::new(Quat::identity(), place));
    }
    let mut stepper = world.stepper();
    run_until(&mut stepper, 0.2, |_, _| ());
    let weight = stepper.scene().state.grains[0].mass * GRAVITY;
    let mut worst = 0.0f64;
    for _ in 0..20 {
        assert!(stepper.step().expect("no machine can fail").converged);
        for (k, force) in carried(&stepper).iter().enumerate() {
            worst = worst.max((force / (weight * (10 - k) as f64) - 1.0).abs());
        }
        let base = -stepper.observe().forces[0].z;
        worst = worst.max((base / (10.0 * weight) - 1.0).abs());
    }
    // 1e-12 of the solver, relative to all impulses, times the 10² of a chain of ten.
    measured(what, worst, 1e-9);
}

#[test]
fn every_contact_of_a_column_carries_what_stands_above() {
    let ball = Shape::sphere(0.1);
    let block = cuboid(Vec3::new(0.2, 0.15, 0.1));
    for (name, shape) in [("spheres", &ball), ("boxes", &block)] {
        check_column(&format!("column of {name}, gap-activated"), law(0.5, 0.0), -SEATED, 0.1, shape);
        check_column(&format!("column of {name}, predictive"), predictive(0.5), 0.0, 0.1, shape);
        check_column(&format!("column of {name}, from 10 µm apart"), predictive(0.5), 1e-5, 0.1, shape);
    }
}

/// A voussoir between two angles (from the vertical) of a ring about the origin.
fn voussoir(from: f64, to: f64) -> Shape {
    let (inner, outer, depth) = (0.9, 1.15, 0.2);
    let mut points = Vec::new();
    for angle in [from, to] {
        for radius in [inner, outer] {
            for y in [-depth, depth] {
                points.push(Vec3::new(radius * angle.sin(), y, radius * angle.cos()));
            }
        }
    }
    polyhedron(convex_hull(&points).expect("a voussoir"))
}

/// Eleven stones over 132° between two fixed ones, whose joints overlap by an angle.
fn arch(law: ContactLaw, overlap: f64) -> World {
    let mut world = World::new(1e-3, law);
    world.options.tolerance = 1e-9;
    let width = 12f64.to_radians();
    let joint = |k: i32| (f64::from(k) - 6.5) * width;
    for k in [0, 12] {
        world.fixed(voussoir(joint(k), joint(k + 1)), Pose::identity());
    }
    for k in 1..12 {
        world.free(&voussoir(joint(k) - overlap, joint(k + 1) + overlap), 2400.0, Pose::identity());
    }
    world
}

/// The largest displacement of a stone.
fn sag(stepper: &mut Stepper, time: f64) -> f64 {
    let places = |stepper: &Stepper| -> Vec<Vec3> {
        stepper.scene().state.grains.iter().map(|body| body.pose.position).collect()
    };
    let start = places(stepper);
    while stepper.step().expect("no machine can fail").time < time {}
    places(stepper).iter().zip(start).map(|(end, start)| (end - start).norm()).fold(0.0, f64::max)
}

#[test]
fn an_arch_stands_with_friction_and_falls_without() {
    for (name, law, overlap) in
        [("gap-activated", law(0.7, 0.0), SEATED), ("predictive", predictive(0.7), -SEATED)]
    {
        let mut stepper = arch(law, overlap).stepper();
        let moved = sag(&mut stepper, 1.0);
        assert!(stepper.step().expect("no machine can fail").converged);
        measured(&format!("sag of an arch in 1 s, {name}, m"), moved, 1e-6);
        // It stands on the abutments alone.
        let stones = &stepper.scene().state.grains;
        let weight: f64 = stones.iter().map(|body| body.mass * GRAVITY).sum();
        let forces = stepper.observe().forces;
        let error = ((forces[0] + forces[1]).z / -weight - 1.0).abs();
        measured(&format!("abutments against the weight, {name}, relative"), error, 1e-6);
        assert!((forces[0] + forces[1]).x.abs() < 1e-6 * weight && forces[0].x.abs() > 0.1 * weight);
    }
    for law in [law(0.0, 0.0), predictive(0.0)] {
        let mut world = arch(law, SEATED);
        // Stones that fall apart need no tight solution.
        world.options.maximum_sweeps = 1000;
        let mut stepper = world.stepper();
        let moved = sag(&mut stepper, 1.0);
        println!("an arch without friction moves by {moved:.2} m in 1 s");
        assert!(moved > 0.5, "{moved}");
    }
}

/// Stones dropped into a box of walls.
///
/// A step in motion now and then needs 10⁵ sweeps for the last digits: 3,000 are enough for what is said
/// about moving stones.
fn pile(law: ContactLaw) -> World {
    let mut world = World::new(1e-3, law);
    world.options = Options { tolerance: 1e-6, maximum_sweeps: 3000, ..Default::default() };
    let width = 0.2;
    world.wall(Vec3::z(), Vec3::zeros());
    for (normal, at) in [
        (Vec3::x(), Vec3::zeros()),
        (-Vec3::x(), Vec3::x() * width),
        (Vec3::y(), Vec3::zeros()),
        (-Vec3::y(), Vec3::y() * width),
    ] {
        world.wall(normal, at);
    }
    for k in 0..24 {
        let mut random = Random::new(11, k);
        let shape = stone(&StoneParameters::default(), random.between(0.03, 0.045), &mut random);
        let place =
            Vec3::new((k % 2) as f64 + 0.5, (k / 2 % 2) as f64 + 0.5, (k / 4) as f64 * 0.7 + 0.5) * 0.1;
        let body = world.free(&polyhedron(shape), 2700.0, Pose::new(random.rotation(), place));
        spin(body, random.direction() * 5.0);
    }
    world
}

/// Two statements about a step with e = 0 and θ = ½, both exact up to the solver's tolerance and the turning
/// of inertia:
///
/// 1. Contacts take kinetic energy, never give it: KE(v_{n+1}) − KE(v_free) = V·r − ½ rᵀ W r ≤ 0, in either
///    law.
/// 2. Hence E_{n+1} − E_n = (V·r − ½ rᵀ W r) − ½ h g·R, with R the sum of the walls' impulses. Since ½ rᵀ W r
///    ≥ |R|²/2M, this is below ½ h g R − R²/2M ≤ M g² h²/8: what a step may gain, of second order, by feeling
///    a support half a step too long.
///
/// Free rotation keeps its energy to second order only; here that is (ω h)² of the rotational energy, which
/// is added to both.
#[test]
fn energy_never_rises_without_restitution() {
    for (name, law) in [("gap-activated", law(0.5, 0.0)), ("predictive", predictive(0.5))] {
        let mut stepper = pile(law).stepper();
        let time_step = stepper.physics().time_step;
        let mass: f64 = stepper.scene().state.grains.iter().map(|body| body.mass).sum();
        let total = |stepper: &Stepper| stepper.observe().kinetic_energy + stepper.observe().potential_energy;
        let start = total(&stepper);
        let (mut before, mut given, mut gained, mut highest) = (start, 0.0f64, 0.0f64, 0.0f64);
        for _ in 0..600 {
            let (free, turning) = (free_kinetic_energy(&stepper), energy_of_turning(&stepper));
            let report = stepper.step().expect("no machine can fail");
            // A few steps of a moving pile do not reach 1e-6 within the sweeps allowed; none is far off.
            assert!(report.residual.natural_map < 1e-3, "{report:?}");
            given = given.max((stepper.observe().kinetic_energy - free) / start);
            let now = total(&stepper);
            gained = gained.max((now - before - turning) / (mass * (GRAVITY * time_step).powi(2) / 8.0));
            highest = highest.max(now / start - 1.0);
            before = now;
        }
        // V·r is zero to the solver's tolerance: 1e-6 of impulses and velocities that are themselves below
        // 1e-2 of the whole.
        measured(&format!("kinetic energy that contacts gave in a step, {name}, of E"), given, 1e-9);
        measured(&format!("energy gained in a step, {name}, of M g² h²/8"), gained, 1.0);
        measured(&format!("energy above that of the start, {name}, relative"), highest, 1e-9);
        assert!(before < 0.5 * start, "it never fell: {before} of {start}");
    }
}

/// What the free rotation of the coming step may add, by its second order.
fn energy_of_turning(stepper: &Stepper) -> f64 {
    let of = |body: &Body| {
        let spin = body.angular_velocity;
        0.5 * spin.dot(&body.angular_momentum) * (spin.norm() * stepper.physics().time_step).powi(2)
    };
    stepper.scene().state.grains.iter().map(of).sum()
}

/// Newton's second law for all stones together holds in every step to rounding, converged or not; at rest the
/// walls carry the weight.
#[test]
fn the_walls_carry_a_settled_pile() {
    for (name, law) in [("gap-activated", law(0.5, 0.0)), ("predictive", predictive(0.5))] {
        let mut stepper = pile(law).stepper();
        let mass: f64 = stepper.scene().state.grains.iter().map(|body| body.mass).sum();
        let weight = Vec3::z() * (-mass * GRAVITY);
        let mut momentum = stepper.observe().momentum;
        let mut balance = 0.0f64;
        let mut settled = 0.0f64;
        for step in 0..1600 {
            if step == 1400 {
                stepper = tightened(&stepper);
            }
            let report = stepper.step().expect("no machine can fail");
            let now = stepper.observe();
            let walls: Vec3 = now.forces.iter().sum();
            let change = (now.momentum - momentum) / stepper.physics().time_step;
            balance = balance.max((change - weight + walls).norm() / weight.norm());
            momentum = now.momentum;
            if step >= 1500 {
                assert!(report.converged, "{report:?}");
                settled = settled.max((walls - weight).norm() / weight.norm());
            }
        }
        // Rounding of sums over some hundred impulses, of which the largest are some hundred weights.
        measured(&format!("balance of momentum in a step, {name}, of the weight"), balance, 1e-11);
        measured(&format!("walls of a settled pile, {name}, of the weight"), settled, 1e-6);
    }
}

/// The same scene, solved to 1e-10 from here on.
fn tightened(stepper: &Stepper) -> Stepper<'static> {
    let options = Options { tolerance: 1e-10, maximum_sweeps: 100_000, ..Default::default() };
    let (scene, physics) = (stepper.scene().clone(), stepper.physics().clone());
    Stepper::new(scene, physics, options, DecompositionOptions::default(), &Solo)
}

/// Bodies that fall together touch without pressing: all that the solver sees is rounding, and it must see
/// that it is.
#[test]
fn bodies_falling_together_need_no_sweeps() {
    let mut world = World::new(1e-3, law(0.5, 0.0));
    for k in 0..5 {
        let place = Vec3::new(0.1, 0.2, 0.2 * k as f64 * (1.0 - SEATED));
        let body = world.free(&cuboid(Vec3::new(0.3, 0.2, 0.1)), 2000.0, Pose::new(Quat::identity(), place));
        // Not quite the same velocities: the last bits differ, as after any collision.
        let mut random = Random::new(3, k);
        body.velocity = Vec3::new(0.3, 0.1, -0.7) + random.direction() * 1e-15;
        spin(body, random.direction() * 1e-15);
    }
    let mut stepper = world.stepper();
    let mut sweeps = 0;
    run_until(&mut stepper, 0.3, |_, report| {
        assert!(report.contact_points >= 16, "{report:?}");
        sweeps = sweeps.max(report.sweeps);
    });
    println!("measured sweeps of a step in free fall: {sweeps}");
    assert!(sweeps <= 100, "{sweeps} sweeps");
}

/// With μ = 3 many manifolds of stones are too strongly coupled for the projected visit and are solved
/// exactly, next to others in one block of lanes that are not. Neither the partition nor the neighbours in a
/// block may change a bit.
#[test]
fn strongly_coupled_stones_give_the_same_bits_on_any_number_of_ranks() {
    let run = |comm: &dyn Comm| {
        let mut world = pile(predictive(3.0));
        world.options.maximum_sweeps = 100;
        world.scene.state.grains.retain(|body| body.id.0 as usize % comm.size() == comm.rank());
        let World { scene, physics, options, .. } = world;
        let mut stepper = Stepper::new(scene, physics, options, DecompositionOptions::default(), comm);
        let points: u64 = (0..300).map(|_| stepper.step().expect("no machine can fail").contact_points).sum();
        (stepper.scene().state.grains.clone(), points)
    };
    let (alone, points) = run(&Solo);
    assert!(points > 5_000, "{points} contact points");
    for size in [2, 5] {
        let parts = threads::run(size, |comm| run(comm));
        let mut together: Vec<Body> = parts.into_iter().flat_map(|(bodies, _)| bodies).collect();
        together.sort_by_key(|body| body.id);
        assert_eq!(together, alone, "{size} ranks");
    }
}
