//! The small shipped machines behave as they are known to: rocking block, woodpecker toy, double pendulum
//! against a wall.

mod common;

use common::machine::{machine, shipped, stepper};

#[test]
fn the_block_rocks_as_housner_says() {
    let case = shipped("rocking-block.toml", &["simulation.duration=1.0"]);
    let mut stepper = stepper(&case);
    let angle = machine(&stepper, 0).model().coordinate("plane.angle").expect("known");
    let (mut times, mut before) = (Vec::new(), machine(&stepper, 0).coordinates().clone());
    // Angular velocities, ten steps before and after each change of the foot.
    let mut speeds: Vec<f64> = Vec::new();
    for step in 0..case.step_count() {
        stepper.step().expect("it rocks");
        let now = machine(&stepper, 0).coordinates().clone();
        speeds.push(now.v[angle]);
        if before.q[angle] * now.q[angle] < 0.0 {
            times.push((step as f64 + 0.5) * case.simulation.time_step);
        }
        before = now;
    }
    let (half_width, half_height, tilt) = (0.1f64, 0.4f64, 8f64.to_radians());
    let slender = half_width.atan2(half_height);
    let frequency = (0.75 * 9.81 / half_width.hypot(half_height)).sqrt();
    let quarter = (1.0 / (1.0 - tilt / slender)).acosh() / frequency;
    let place = (times[0] / case.simulation.time_step) as usize;
    let ratio = speeds[place + 10] / speeds[place - 10];
    let closed = 1.0 - 1.5 * slender.sin().powi(2);
    println!(
        "measured rocking block: quarter period {} s, Housner {quarter}; ratio {ratio}, Housner {closed}",
        times[0]
    );
    // His equation is linear in the angle: sin α ≈ α, 1 % at 14 degrees.
    assert!((times[0] / quarter - 1.0).abs() < 0.01);
    // Ten steps of rocking on either side are worth 4e-4 s⁻¹ each, of 0.93.
    assert!((ratio / closed - 1.0).abs() < 0.01);
    assert!(times.len() == 2, "{times:?}");
}

#[test]
fn the_woodpecker_pecks_once_in_every_cycle() {
    let case = shipped("woodpecker.toml", &["simulation.duration=0.5"]);
    let mut stepper = stepper(&case);
    let beak = stepper.scene().state.machine_bodies.iter().filter(|body| body.shape.bounding_radius() > 0.0);
    let ids: Vec<_> = beak.map(|body| body.id).collect();
    let bird = ids[1];
    let (mut pecks, mut free) = (Vec::<(f64, f64)>::new(), true);
    for step in 0..case.step_count() {
        stepper.step().expect("it pecks");
        let strikes =
            stepper.contacts().any(|contact| contact.bodies.contains(&bird) && contact.impulse.norm() > 0.0);
        if strikes && free {
            let height = machine(&stepper, 0).coordinates().q[0];
            pecks.push((step as f64 * case.simulation.time_step, height));
        }
        free = !strikes;
    }
    println!("measured woodpecker: pecks at (s, m) {pecks:?}");
    assert_eq!(pecks.len(), 4);
    // The first cycle starts near the limit cycle, the others are on it.
    let cycles: Vec<(f64, f64)> = pecks.windows(2).map(|w| (w[1].0 - w[0].0, w[0].1 - w[1].1)).collect();
    assert!((cycles[2].0 - cycles[1].0).abs() < 1e-3 * cycles[1].0, "{cycles:?}");
    assert!((cycles[2].1 - cycles[1].1).abs() < 1e-2 * cycles[1].1, "{cycles:?}");
    assert!((0.12..0.14).contains(&cycles[2].0) && (0.010..0.020).contains(&cycles[2].1), "{cycles:?}");
}

#[test]
fn the_double_pendulum_keeps_its_energy_between_impacts() {
    let case = shipped("double-pendulum-wall.toml", &["simulation.duration=2.4"]);
    let mut stepper = stepper(&case);
    let energy = |stepper: &breccia::step::Stepper| {
        let [kinetic, potential, _] = stepper.machines().loads()[0].energies;
        kinetic + potential
    };
    stepper.step().expect("it swings");
    let (mut start, mut impacts, mut worst) = (energy(&stepper), 0, 0.0f64);
    for _ in 1..case.step_count() {
        stepper.step().expect("it swings");
        let now = energy(&stepper);
        if stepper.contacts().any(|contact| contact.impulse.norm() > 0.0) {
            assert!(now < start, "an impact takes energy: {start} {now}");
            (start, impacts) = (now, impacts + 1);
        }
        worst = worst.max((now / start - 1.0).abs());
    }
    println!("measured double pendulum: {impacts} impacts, energy between them within {worst:.1e}");
    assert_eq!(impacts, 3);
    assert!(worst < 2e-4, "{worst:.1e}");
}

/// Steps that are tried and taken back leave nothing behind: loops, phases, quantities and contacts of
/// machines included.
#[test]
fn steps_of_machines_can_be_taken_back() {
    for (name, before) in [("scoop.toml", 120), ("woodpecker.toml", 300), ("slider-crank/cut-xy.toml", 200)] {
        let mut stepper = stepper(&shipped(name, &[]));
        let mut run = |count: usize| -> Vec<_> { (0..count).map(|_| stepper.step().expect(name)).collect() };
        run(before);
        let snapshot = stepper.snapshot();
        let mut tried = || {
            let reports: Vec<_> = (0..60).map(|_| stepper.step().expect(name)).collect();
            (reports, stepper.snapshot(), stepper.machines().loads().to_vec())
        };
        let first = tried();
        assert_ne!(first.1, snapshot, "{name}");
        stepper.take_back(&snapshot).expect(name);
        assert_eq!(stepper.snapshot(), snapshot, "{name}");
        let again: Vec<_> = (0..60).map(|_| stepper.step().expect(name)).collect();
        assert_eq!((again, stepper.snapshot(), stepper.machines().loads().to_vec()), first, "{name}");
    }
}
