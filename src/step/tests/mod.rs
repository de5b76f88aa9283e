//! The step on one rank and on several, compared with `==`.

mod connection;
mod energy;
mod memory;

use super::*;
use crate::geometry::{Convex, Pose, Quat, Shape, Vec3};
use crate::scene::{Activation, Body, BodyId, ContactLaw, LawTable, Model, Motion, Scheme};
use decomposition::{Solo, threads};
use std::sync::Arc;

const STONE: u32 = 0;

pub(super) fn physics() -> Physics {
    Physics {
        start_time: 0.0,
        time_step: 1e-3,
        scheme: Scheme::default(),
        gravity: Arc::new(|_| Vec3::new(0.0, 0.0, -9.81)),
        contact_margin: None,
        warm_start: true,
        penetration_correction: 0.1,
        correction_slop: 1e-5,
        penetration_limit: 0.0,
        patch_reuse: 1e-4,
    }
}

pub(super) fn sphere(id: u64, radius: f64, position: Vec3, velocity: Vec3) -> Body {
    let mass = 2700.0 * 4.0 / 3.0 * std::f64::consts::PI * radius.powi(3);
    Body {
        id: BodyId(id),
        group: 0,
        material: STONE,
        motion: Motion::Free,
        shape: Shape::sphere(radius),
        mass,
        inertia: Vec3::repeat(0.4 * mass * radius * radius),
        pose: Pose::new(Quat::identity(), position),
        velocity,
        angular_velocity: Vec3::zeros(),
        angular_momentum: Vec3::zeros(),
        anchor: None,
        memory: Box::default(),
    }
}

pub(super) fn wall(id: u64, normal: Vec3, position: Vec3) -> Body {
    let rotation = Quat::rotation_between(&Vec3::z(), &normal)
        .unwrap_or(Quat::from_scaled_axis(Vec3::x() * std::f64::consts::PI));
    Body {
        motion: Motion::Fixed,
        shape: Shape::Convex(Convex::HalfSpace),
        mass: f64::INFINITY,
        pose: Pose::new(rotation, position),
        ..sphere(id, 1.0, position, Vec3::zeros())
    }
}

/// Spheres of two sizes thrown into a box, so that they cross every border.
fn scene(rank: usize, size: usize, activation: Activation) -> Scene {
    let mut laws = LawTable::new(1);
    laws.set(0, 0, ContactLaw { friction: 0.5, restitution: 0.0, activation, stiffness: None });
    let statics = [
        (Vec3::z(), Vec3::zeros()),
        (Vec3::x(), Vec3::zeros()),
        (-Vec3::x(), Vec3::x() * 0.4),
        (Vec3::y(), Vec3::zeros()),
        (-Vec3::y(), Vec3::y() * 0.4),
    ];
    let statics = statics.into_iter().zip(0..).map(|((normal, at), id)| wall(id, normal, at)).collect();
    let mut grains = Vec::new();
    for k in 0..5 * 5 * 6u64 {
        let (x, y, z) = (k % 5, k / 5 % 5, k / 25);
        let place = Vec3::new(x as f64 + 0.6, y as f64 + 0.6, z as f64 + 0.6) * 0.07;
        let velocity = Vec3::new((k % 7) as f64 - 3.0, (k % 5) as f64 - 2.0, -1.0);
        if k as usize % size == rank {
            grains.push(sphere(5 + k, if k % 3 == 0 { 0.015 } else { 0.03 }, place, velocity));
        }
    }
    Scene {
        model: Model {
            groups: vec!["all".into()],
            materials: vec!["stone".into()],
            laws,
            ..Default::default()
        },
        state: State { statics, grains, ..Default::default() },
    }
}

fn run(comm: &dyn Comm, activation: Activation, steps: usize) -> (Vec<Body>, Vec<StepReport>, Observation) {
    let options =
        solve::Options { tolerance: 1e-5, maximum_sweeps: 60, check_every: 10, ..Default::default() };
    let scene = scene(comm.rank(), comm.size(), activation);
    let mut stepper = Stepper::new(scene, physics(), options, DecompositionOptions::default(), comm);
    stepper.verify_copies();
    let reports = (0..steps)
        .map(|_| {
            let report = stepper.step().expect("no machine can fail");
            StepReport { migrated: 0, ..report }
        })
        .collect();
    (stepper.scene().state.grains.clone(), reports, stepper.observe())
}

#[test]
fn any_number_of_ranks_gives_the_same_bits() {
    for activation in [Activation::Predictive, Activation::GapActivated] {
        let (bodies, reports, observation) = run(&Solo, activation, 150);
        assert!(reports.last().unwrap().contact_points > 100, "{:?}", reports.last());
        for size in [2, 3, 4, 7] {
            let parts = threads::run(size, |comm| run(comm, activation, 150));
            for (rank, (_, part_reports, part_observation)) in parts.iter().enumerate() {
                for (one, other) in reports.iter().zip(part_reports) {
                    assert_eq!(one, other, "rank {rank} of {size}");
                }
                assert_eq!(*part_observation, observation);
            }
            let mut together: Vec<Body> = parts.into_iter().flat_map(|(bodies, ..)| bodies).collect();
            together.sort_by_key(|body| body.id);
            assert_eq!(together, bodies, "{size} ranks");
        }
    }
}

#[test]
fn a_closed_system_keeps_its_momentum() {
    let mut scene = scene(0, 1, Activation::GapActivated);
    scene.state.statics.clear();
    let physics = Physics { gravity: Arc::new(|_| Vec3::zeros()), ..physics() };
    // Towards the middle, so that they collide.
    for body in &mut scene.state.grains {
        body.velocity = (Vec3::new(0.2, 0.2, 0.2) - body.pose.position) * 5.0 + Vec3::new(0.1, 0.2, 0.3);
    }
    let mut stepper =
        Stepper::new(scene, physics, solve::Options::default(), DecompositionOptions::default(), &Solo);
    let before = stepper.observe();
    let mut touched = 0;
    for _ in 0..100 {
        touched += stepper.step().expect("no machine can fail").contact_points;
    }
    let after = stepper.observe();
    assert!(touched > 1000);
    let scale: f64 = stepper.scene().state.grains.iter().map(|body| body.mass * body.velocity.norm()).sum();
    assert!((after.momentum - before.momentum).norm() < 1e-12 * scale);
    assert!(after.kinetic_energy < before.kinetic_energy);
}

/// A boulder among pebbles, with more contacts than colours are good for.
fn boulder(comm: &dyn Comm) -> (Vec<Body>, Vec<StepReport>) {
    let mut scene = scene(comm.rank(), comm.size(), Activation::Predictive);
    scene.state.grains.clear();
    if comm.rank() == 0 {
        // A pebble at each of many directions, almost touching the boulder: Fibonacci's points on the sphere.
        let centre = Vec3::new(0.2, 0.2, 0.25);
        for k in 0..220u64 {
            let height = 1.0 - (2 * k + 1) as f64 / 220.0;
            let angle = k as f64 * 2.399963229728653;
            let ring = (1.0 - height * height).sqrt();
            let direction = Vec3::new(ring * angle.cos(), ring * angle.sin(), height);
            let place = centre + direction * (0.1 + 0.0101);
            scene.state.grains.push(sphere(10 + k, 0.01, place, -direction * (1.0 + (k % 3) as f64)));
        }
        scene.state.grains.push(sphere(1000, 0.1, centre, Vec3::new(0.3, 0.1, -0.5)));
    }
    let options =
        solve::Options { tolerance: 1e-6, maximum_sweeps: 40, check_every: 5, ..Default::default() };
    let mut stepper = Stepper::new(scene, physics(), options, DecompositionOptions::default(), comm);
    stepper.verify_copies();
    let reports =
        (0..60).map(|_| StepReport { migrated: 0, ..stepper.step().expect("no machine can fail") }).collect();
    (stepper.scene().state.grains.clone(), reports)
}

#[test]
fn a_boulder_takes_its_contacts_to_the_hub_phase() {
    let (bodies, reports) = boulder(&Solo);
    let most = reports.iter().map(|report| report.contact_points).max().unwrap();
    assert!(most > 200, "{most} contact points");
    assert!(reports.iter().all(|report| report.colours < 40), "the boulder needs no colours of its own");
    for size in [2, 3, 4, 8] {
        let parts = threads::run(size, |comm| boulder(comm));
        for (_, part_reports) in &parts {
            assert_eq!(*part_reports, reports, "{size} ranks");
        }
        let mut together: Vec<Body> = parts.into_iter().flat_map(|(bodies, _)| bodies).collect();
        together.sort_by_key(|body| body.id);
        assert_eq!(together, bodies, "{size} ranks");
    }
}

/// A ball that bounces with a limit of overlap: exactly where it should be at every end of a step, though a
/// step is as long as 3 cm of its way.
#[test]
fn a_bouncing_ball_with_a_limit_of_overlap_keeps_its_times() {
    let (radius, drop, restitution, gravity) = (0.1, 0.5, 0.8, 9.81);
    let mut laws = LawTable::new(1);
    laws.set(
        0,
        0,
        ContactLaw { friction: 0.3, restitution, activation: Activation::GapActivated, stiffness: None },
    );
    let scene = Scene {
        model: Model { laws, ..Default::default() },
        state: State {
            statics: vec![wall(0, Vec3::z(), Vec3::zeros())],
            grains: vec![sphere(5, radius, Vec3::z() * (radius + drop), Vec3::zeros())],
            ..Default::default()
        },
    };
    let physics =
        Physics { time_step: 1e-2, penetration_correction: 0.0, penetration_limit: 1e-6, ..physics() };
    let options = solve::Options { tolerance: 1e-12, ..Default::default() };
    let mut stepper = Stepper::new(scene, physics, options, DecompositionOptions::default(), &Solo);
    let height = |time: f64| {
        let (mut begin, mut speed) = ((2.0 * drop / gravity).sqrt(), (2.0 * drop * gravity).sqrt());
        if time < begin {
            return drop - 0.5 * gravity * time * time;
        }
        loop {
            speed *= restitution;
            let flight = 2.0 * speed / gravity;
            if time < begin + flight {
                let since = time - begin;
                return speed * since - 0.5 * gravity * since * since;
            }
            begin += flight;
        }
    };
    for _ in 0..200 {
        let report = stepper.step().expect("a ball bounces");
        let found = stepper.scene().state.grains[0].pose.position.z - radius;
        assert!((found - height(report.time)).abs() < 1e-11, "{}: {found}", report.time);
    }
}

/// A step that is tried and taken back leaves nothing behind, on any number of ranks.
#[test]
fn a_step_can_be_taken_back() {
    let tried = |comm: &dyn Comm| {
        let scene = scene(comm.rank(), comm.size(), Activation::Predictive);
        let (options, decomposition) = (solve::Options::default(), DecompositionOptions::default());
        let mut stepper = Stepper::new(scene, physics(), options, decomposition, comm);
        let mut run = |count: usize, snapshot: Option<&Snapshot>| {
            if let Some(snapshot) = snapshot {
                stepper.take_back(snapshot).expect("no machine can fail");
            }
            let reports: Vec<_> = (0..count).map(|_| stepper.step().expect("no machine can fail")).collect();
            (reports, stepper.snapshot())
        };
        let (_, before) = run(90, None);
        let first = run(30, None);
        assert_eq!(run(30, Some(&before)), first);
        assert!(first.0.iter().all(|report| report.contact_points > 0));
        first.1.state.grains
    };
    let alone = tried(&Solo);
    let mut together: Vec<Body> = threads::run(3, |comm| tried(comm)).into_iter().flatten().collect();
    together.sort_by_key(|body| body.id);
    assert_eq!(together, alone);
}
