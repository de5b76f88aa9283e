//! Contacts that give way, against closed forms: weights on springs, impacts with and without dissipation,
//! energy, columns, and the rigid limit.

mod common;

use breccia::geometry::{Pose, Quat, Shape, Vec3};
use breccia::scene::{Activation, ContactLaw, Normal, SpringAt, Stiffness};
use breccia::step::Stepper;
use common::{GRAVITY, World, cuboid, measured, predictive};
use std::f64::consts::PI;

const RADIUS: f64 = 0.1;
/// Of a ball of one kilogram on its spring: 100 rad/s.
const STIFFNESS: f64 = 1e4;

fn soft(normal: f64, dissipation: f64, spring_at: SpringAt) -> ContactLaw {
    let normal = Normal::Given(normal);
    let stiffness = Some(Stiffness { normal, tangential_ratio: 0.0, dissipation, spring_at });
    ContactLaw { friction: 0.0, restitution: 0.0, activation: Activation::Predictive, stiffness }
}

/// Balls of one kilogram one above the other, the lowest `height` above the floor; z is measured from where
/// the lowest would touch.
fn balls(time_step: f64, law: ContactLaw, count: usize, height: f64) -> World {
    let mut world = World::new(time_step, law);
    world.wall(Vec3::z(), -Vec3::z() * RADIUS);
    for level in 0..count {
        let pose = Pose::new(Quat::identity(), Vec3::z() * (height + 2.0 * RADIUS * level as f64));
        world.free_with(Shape::sphere(RADIUS), 1.0, Vec3::repeat(0.4 * RADIUS * RADIUS), pose);
    }
    world
}

fn height(stepper: &Stepper, ball: usize) -> f64 {
    stepper.scene().state.grains[ball].pose.position.z
}

#[test]
fn a_weight_rests_where_its_spring_carries_it() {
    for spring_at in [SpringAt::End, SpringAt::Middle] {
        let depth = GRAVITY / STIFFNESS;
        let mut stepper = balls(1e-3, soft(STIFFNESS, 1e-2, spring_at), 1, -0.5 * depth).stepper();
        (0..4000).for_each(|_| assert!(stepper.step().expect("solved").converged));
        measured("weight on a spring, depth", (height(&stepper, 0) + depth).abs(), 1e-12);
        let push: f64 = stepper.contacts().map(|contact| contact.impulse.z).sum();
        assert!((push - GRAVITY * 1e-3).abs() < 1e-12);
        // ½ k d² in the balance.
        let energy = stepper.observe().contact_energy;
        assert!((energy - 0.5 * STIFFNESS * depth * depth).abs() < 1e-12);
    }
}

/// Speed after by speed before of a ball that strikes without gravity, and how long it touches.
fn rebound(time_step: f64, law: ContactLaw) -> [f64; 2] {
    let mut world = balls(time_step, law, 1, 0.011);
    world.physics.gravity = std::sync::Arc::new(|_| Vec3::zeros());
    world.scene.state.grains[0].velocity = -Vec3::z();
    let mut stepper = world.stepper();
    let mut touching = 0;
    for _ in 0..(0.08 / time_step) as usize {
        stepper.step().expect("solved");
        touching += usize::from(stepper.contacts().any(|contact| contact.impulse.z > 0.0));
    }
    [stepper.scene().state.grains[0].velocity.z, touching as f64 * time_step]
}

/// Of a spring and damper that do not pull [Schwager2007]: `β < ω₀ / √2`.
fn exact_restitution(dissipation: f64) -> f64 {
    let beta = 0.5 * STIFFNESS * dissipation;
    let omega = (STIFFNESS - beta * beta).sqrt();
    (-(beta / omega) * (PI - (2.0 * beta * omega / (omega * omega - beta * beta)).atan())).exp()
}

#[test]
fn a_spring_without_dissipation_gives_all_speed_back() {
    // The trapezoidal rule keeps energy but where the spring begins and ends within a step.
    for time_step in [1e-3, 1e-4, 1e-5] {
        let [speed, touching] = rebound(time_step, soft(STIFFNESS, 0.0, SpringAt::Middle));
        let omega_h = 100.0 * time_step;
        measured(
            &format!("rebound without loss, h {time_step}"),
            (speed - 1.0).abs(),
            0.2 * omega_h * omega_h,
        );
        let late = (touching - PI / 100.0).abs();
        measured(&format!("time of touch, h {time_step}"), late, 2.5 * time_step);
    }
}

#[test]
fn restitution_follows_from_dissipation() {
    for dissipation in [0.0, 1e-3, 4e-3] {
        let exact = exact_restitution(dissipation);
        for spring_at in [SpringAt::End, SpringAt::Middle] {
            let error =
                |time_step: f64| rebound(time_step, soft(STIFFNESS, dissipation, spring_at))[0] - exact;
            // Over half an oscillation the implicit scheme loses π/2 ω h, and the trapezoidal rule is of
            // second order.
            for time_step in [2e-4, 2e-5, 2e-6] {
                let what = format!("restitution, {spring_at:?}, dissipation {dissipation}, h {time_step}");
                let omega_h = 100.0 * time_step;
                let bound = match spring_at {
                    SpringAt::End => 1.6 * omega_h,
                    SpringAt::Middle => 0.1 * omega_h * omega_h,
                };
                measured(&what, error(time_step).abs(), bound);
            }
        }
    }
}

#[test]
fn a_ball_bounces_on_with_its_energy() {
    // A hundred bounces from 1 mm above the floor; 60 steps while it touches.
    let (time_step, start) = (5e-4, 1e-3);
    let mut stepper = balls(time_step, soft(STIFFNESS, 0.0, SpringAt::Middle), 1, start).stepper();
    let energy = |stepper: &Stepper| {
        let body = &stepper.scene().state.grains[0];
        let z = body.pose.position.z;
        0.5 * body.velocity.norm_squared() + GRAVITY * z + 0.5 * STIFFNESS * z.min(0.0).powi(2)
    };
    let first = energy(&stepper);
    let mut worst: f64 = 0.0;
    for _ in 0..20_000 {
        stepper.step().expect("solved");
        worst = worst.max((energy(&stepper) - first).abs() / first);
    }
    measured("a hundred bounces, energy", worst, 1e-3);
}

#[test]
fn a_column_is_pressed_together_by_its_weight() {
    let count = 10;
    let mut stepper = balls(1e-3, soft(1e6, 2e-3, SpringAt::End), count, 0.0).stepper();
    (0..6000).for_each(|_| assert!(stepper.step().expect("solved").converged));
    let mut expected = 0.0;
    for ball in 0..count {
        // Each spring carries what is above it.
        expected -= (count - ball) as f64 * GRAVITY / 1e6;
        let sunk = height(&stepper, ball) - 2.0 * RADIUS * ball as f64;
        measured("pressed column", (sunk - expected).abs(), 1e-10);
    }
}

#[test]
fn a_very_stiff_contact_is_a_rigid_one() {
    let fall = |law: ContactLaw| {
        let mut stepper = balls(1e-3, law, 4, 0.05).stepper();
        (0..400).for_each(|_| assert!(stepper.step().is_ok()));
        let bodies = stepper.scene().state.grains.iter();
        bodies.map(|body| [body.pose.position.z, body.velocity.z]).collect::<Vec<_>>()
    };
    let rigid = fall(predictive(0.0));
    for stiffness in [1e8, 1e10, 1e12] {
        // A weight of four balls on its spring, and how fast it comes to rest there.
        let bound = 4.0 * GRAVITY / stiffness + 1e-11;
        for (soft, rigid) in fall(soft(stiffness, 0.0, SpringAt::End)).iter().zip(&rigid) {
            assert!((soft[0] - rigid[0]).abs() < 4.0 * bound, "{stiffness}: {soft:?} {rigid:?}");
            assert!((soft[1] - rigid[1]).abs() < 4.0 * bound / 1e-3, "{stiffness}: {soft:?} {rigid:?}");
        }
    }
}

#[test]
fn corrections_of_overlap_leave_what_springs_give_way_by() {
    let mut world = balls(1e-3, soft(1e4, 1e-2, SpringAt::End), 3, 0.0);
    world.physics.penetration_correction = 0.2;
    world.physics.correction_slop = 1e-6;
    let mut stepper = world.stepper();
    (0..4000).for_each(|_| assert!(stepper.step().is_ok()));
    assert!((height(&stepper, 0) + 3.0 * GRAVITY / 1e4).abs() < 1e-10);
    assert_eq!(stepper.observe().work[2], 0.0);
}

/// k_t by k.
const RATIO: f64 = 0.8;

/// A cube of one kilogram that does not turn, on four points of a floor that leans by `slope`, down which x
/// goes.
/// (Its weight would tilt it: with an inertia of 1e9 kg m² it went 3e-10 m down the slope in four seconds.)
fn sledge(time_step: f64, friction: f64, slope: f64) -> World {
    let stiffness = Stiffness {
        normal: Normal::Given(STIFFNESS),
        tangential_ratio: RATIO,
        dissipation: 1e-2,
        spring_at: SpringAt::End,
    };
    let law = ContactLaw { friction, stiffness: Some(stiffness), ..predictive(friction) };
    let gravity = Vec3::new(slope.sin(), 0.0, -slope.cos()) * GRAVITY;
    let mut world = World::new(time_step, law).with_gravity(gravity);
    world.wall(Vec3::z(), Vec3::zeros());
    let sunk = GRAVITY * slope.cos() / (4.0 * STIFFNESS);
    let pose = Pose::new(Quat::identity(), Vec3::z() * (RADIUS - sunk));
    world.free_with(cuboid(Vec3::repeat(RADIUS)), 1.0, Vec3::repeat(1e15), pose);
    world
}

fn along(stepper: &Stepper) -> [f64; 2] {
    let body = &stepper.scene().state.grains[0];
    [body.pose.position.x, body.velocity.x]
}

#[test]
fn what_sticks_swings_on_its_tangential_springs() {
    let (time_step, speed) = (1e-3, 1e-2);
    let mut world = sledge(time_step, 1e3, 0.0);
    world.scene.state.grains[0].velocity.x = speed;
    let mut stepper = world.stepper();
    // Implicit Euler in (x, v): v' = v − h ω² x', x' = x + h v', contacts being looked for half a step ahead.
    let rate = 4.0 * RATIO * STIFFNESS;
    let [mut stretch, mut velocity] = [0.0, speed];
    for step in 0..400 {
        stepper.step().expect("solved");
        velocity = (velocity - time_step * rate * stretch) / (1.0 + rate * time_step * time_step);
        stretch += time_step * velocity;
        assert!((along(&stepper)[1] - velocity).abs() < 1e-10 * speed, "step {step}");
        let energy = stepper.observe().contact_energy;
        let normal = 0.5 * GRAVITY * GRAVITY / (4.0 * STIFFNESS);
        measured("energy of a stretch", (energy - normal - 0.5 * rate * stretch * stretch).abs(), 1e-12);
    }
}

#[test]
fn what_sticks_on_a_slope_does_not_creep() {
    let slope = 0.4_f64;
    // It swings out to twice the stretch of its weight at first.
    let mut stepper = sledge(1e-3, 2.0 * slope.tan() + 0.1, slope).stepper();
    (0..4000).for_each(|_| assert!(stepper.step().expect("solved").converged));
    let rest = GRAVITY * slope.sin() / (4.0 * RATIO * STIFFNESS);
    measured("stretch on a slope", (along(&stepper)[0] - rest).abs(), 1e-12);
    (0..20_000).for_each(|_| assert!(stepper.step().is_ok()));
    measured("creep in 20,000 steps", (along(&stepper)[0] - rest).abs(), 1e-12);
}

#[test]
fn what_slips_keeps_its_stretch() {
    let (slope, time_step) = (0.4_f64, 1e-3);
    let friction = slope.tan() - 0.2;
    let mut stepper = sledge(time_step, friction, slope).stepper();
    let mut speeds = Vec::new();
    for _ in 0..1000 {
        stepper.step().expect("solved");
        speeds.push(along(&stepper)[1]);
    }
    let expected = GRAVITY * (slope.sin() - friction * slope.cos());
    let found = (speeds[999] - speeds[499]) / (500.0 * time_step);
    measured("acceleration down a slope", (found - expected).abs(), 1e-9);
    let [normal, tangential] = [slope.cos(), friction * slope.cos()].map(|part| part * GRAVITY);
    let stored = (normal * normal + tangential * tangential / RATIO) / (8.0 * STIFFNESS);
    measured("energy while it slips", (stepper.observe().contact_energy - stored).abs(), 1e-9);
}

#[test]
fn stiffness_follows_from_modulus_and_size() {
    // Two balls of different size on a floor: as one behind the other, and one alone.
    let modulus = 1e6;
    let stiffness = Stiffness {
        normal: Normal::Modulus(modulus),
        tangential_ratio: 0.0,
        dissipation: 1e-2,
        spring_at: SpringAt::End,
    };
    let law = ContactLaw { stiffness: Some(stiffness), ..predictive(0.0) };
    let mut world = World::new(1e-3, law);
    world.wall(Vec3::z(), Vec3::zeros());
    let radii = [0.1, 0.05];
    let mut top = 0.0;
    for radius in radii {
        let pose = Pose::new(Quat::identity(), Vec3::z() * (top + radius));
        world.free_with(Shape::sphere(radius), 1.0, Vec3::repeat(0.4 * radius * radius), pose);
        top += 2.0 * radius;
    }
    let mut stepper = world.stepper();
    (0..6000).for_each(|_| assert!(stepper.step().is_ok()));
    let [large, small] = radii.map(|radius| modulus * 2.4_f64.sqrt() * radius);
    let lower = 2.0 * GRAVITY / large;
    let upper = GRAVITY * (1.0 / large + 1.0 / small);
    measured("lower ball by its modulus", (height(&stepper, 0) - radii[0] + lower).abs(), 1e-11);
    let height = height(&stepper, 1) - 2.0 * radii[0] - radii[1];
    measured("upper ball by both", (height + lower + upper).abs(), 1e-11);
}
