//! The settled packing `stones1000`, as a scene and as a contact problem, alone or in many copies.

// Each bench uses a part of this.
#![allow(dead_code)]

use breccia::contact::detect::{Candidate, Contacts, Detector};
use breccia::exchange::{DecompositionOptions, balance};
use breccia::geometry::{Convex, Pose, Quat, Shape, Vec3, hull::convex_hull};
use breccia::output::StateFile;
use breccia::scene::*;
use breccia::solve::colour::{Link, colour};
use breccia::solve::{Colours, Inertia, Problem, Twist};
use breccia::step::assemble::TakesPart;
use breccia::step::contacts::{Pipeline, Query};
use breccia::step::integrate::integrator;
use breccia::step::{Account, Machines, Territory, Timers, World, reach};
use decomposition::Solo;
use std::sync::Arc;

pub const STONES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/inputs/data/stones1000.h5");

/// A scene at rest, and what its contact problem is made of.
pub struct Ready {
    pub world: World,
    pub free: Vec<(Inertia, Twist)>,
}

impl Ready {
    pub fn new((scene, physics): (Scene, Physics)) -> Self {
        let world = World { scene, physics, machines: Machines::default(), account: Account::default() };
        let (integrator, state) = (integrator(world.physics.scheme), &world.scene.state);
        let (gravity, clock) = (world.gravity(), world.clock());
        let mut free = integrator.free_motions(&state.grains, &gravity, &clock);
        free.extend(integrator.free_motions(&state.statics, &gravity, &clock));
        Self { world, free }
    }

    pub fn candidates(&self) -> Vec<Candidate<'_>> {
        let state = &self.world.scene.state;
        let bodies = state.grains.iter().chain(&state.statics).zip(&self.free);
        bodies.map(|(body, free)| reach::candidate(body, free, &self.world.physics, 0.0)).collect()
    }

    pub fn detect<'d>(&self, detector: &'d mut Detector) -> &'d [Contacts] {
        detector.detect(&self.candidates(), |_, _, _| true, |_, _| Some(1.0))
    }

    /// From zero impulses.
    pub fn problem(&mut self) -> Problem {
        self.problem_from(false)
    }

    /// From the impulses that the scene holds, if `warm_start`.
    pub fn problem_from(&mut self, warm_start: bool) -> Problem {
        self.world.physics.warm_start = warm_start;
        let (world, integrator) = (&self.world, integrator(self.world.physics.scheme));
        let options = DecompositionOptions::default();
        let partition = balance::first_partition(&world.scene, &options, &Solo);
        let territory = Territory { comm: &Solo, partition, options, verify: false };
        let query = Query {
            integrator: &*integrator,
            gravity: world.gravity(),
            clock: world.clock(),
            reuse: 0.0,
            takes_part: TakesPart::Closed,
        };
        let (mut pipeline, mut timers) = (Pipeline::default(), Timers::default());
        let free = self.free[..world.scene.state.grains.len()].to_vec();
        let near = pipeline.neighbourhood(world, free, &query, &territory);
        let found = pipeline.find(world, &near, &query, &territory, &mut timers);
        found.assemble(&territory, &mut timers).assembled.problem
    }
}

pub fn colours_of(problem: &Problem) -> Colours {
    let slot = |slot: u32| problem.inertia[slot as usize].is_movable().then_some(slot);
    let links: Vec<Link> =
        problem.manifolds.iter().map(|m| Link { key: m.key, slots: m.slots.map(slot) }).collect();
    colour(&links, problem.inertia.len())
}

/// The problem `count` times, side by side, as one.
pub fn copies(problem: &Problem, count: usize) -> Problem {
    let mut all = Problem::default();
    for copy in 0..count {
        let (first_slot, first_point) = (all.inertia.len() as u32, all.points.len() as u32);
        let first_id = copy as u64 * problem.inertia.len() as u64;
        all.inertia.extend_from_slice(&problem.inertia);
        all.free_velocity.extend_from_slice(&problem.free_velocity);
        all.points.extend_from_slice(&problem.points);
        all.manifolds.extend(problem.manifolds.iter().cloned().map(|mut manifold| {
            manifold.key.bodies = manifold.key.bodies.map(|id| BodyId(id.0 + first_id));
            manifold.slots = manifold.slots.map(|slot| slot + first_slot);
            manifold.first_point += first_point;
            manifold
        }));
    }
    all
}

/// The same problem with its bodies in random order in memory; with places, if asked for, that say what order
/// they had.
pub fn shuffled(problem: &Problem, with_places: bool) -> Problem {
    let mut shuffled = problem.clone();
    let mut order: Vec<u32> = (0..problem.inertia.len() as u32).collect();
    let mut state = 1_u64;
    for last in (1..order.len()).rev() {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        order.swap(last, (state >> 33) as usize % (last + 1));
    }
    let mut slots = vec![0; order.len()];
    for (new, &old) in order.iter().enumerate() {
        slots[old as usize] = new as u32;
        shuffled.inertia[new] = problem.inertia[old as usize];
        shuffled.free_velocity[new] = problem.free_velocity[old as usize];
    }
    for manifold in &mut shuffled.manifolds {
        manifold.slots = manifold.slots.map(|slot| slots[slot as usize]);
    }
    shuffled.places = if with_places { order } else { Vec::new() };
    shuffled
}

/// The bodies of a state that a run of stones has left, every two materials with friction 0.7.
pub fn state(path: &str) -> (Scene, Physics) {
    let (_, physics) = stones1000(STONES);
    let file = StateFile::open(path.as_ref(), &Solo).expect("a state");
    let bodies = file.read_bodies(0..file.body_count()).expect("its bodies");
    let materials = 1 + bodies.iter().map(|body| body.material as usize).max().unwrap_or(0);
    let mut laws = LawTable::new(materials);
    for (one, other) in (0..materials).flat_map(|one| (one..materials).map(move |other| (one, other))) {
        laws.set(
            one,
            other,
            ContactLaw {
                friction: 0.7,
                restitution: 0.0,
                activation: Activation::Predictive,
                stiffness: None,
            },
        );
    }
    let (grains, statics) = bodies.into_iter().partition(|body| body.motion == Motion::Free);
    (
        Scene {
            model: Model { laws, ..Default::default() },
            state: State { statics, grains, ..Default::default() },
        },
        physics,
    )
}

pub fn stones1000(path: &str) -> (Scene, Physics) {
    let file = hdf5::File::open(path).expect("the scene file is there");
    let read = |name: &str| file.dataset(name).unwrap().read_dyn::<f64>().unwrap();
    let (vertices, mass, inertia, settled) = (read("verts"), read("mass"), read("inertia"), read("settled"));
    let three = |a: &[f64]| Vec3::new(a[0], a[1], a[2]);
    let vertices = vertices.as_slice().unwrap();
    let settled = settled.as_slice().unwrap();
    let mut laws = LawTable::new(1);
    laws.set(
        0,
        0,
        ContactLaw { friction: 0.7, restitution: 0.0, activation: Activation::Predictive, stiffness: None },
    );
    let grains = (0..mass.len())
        .map(|k| {
            let points: Vec<Vec3> = vertices[k * 60..(k + 1) * 60].chunks(3).map(three).collect();
            let row = &settled[k * 13..(k + 1) * 13];
            let rotation = Quat::from_quaternion(nalgebra::Quaternion::new(row[3], row[4], row[5], row[6]));
            Body {
                id: BodyId(5 + k as u64),
                group: 0,
                material: 0,
                motion: Motion::Free,
                shape: Shape::Convex(Convex::Polyhedron(Arc::new(convex_hull(&points).unwrap()))),
                mass: mass.as_slice().unwrap()[k],
                inertia: three(&inertia.as_slice().unwrap()[3 * k..]),
                pose: Pose::new(rotation, three(row)),
                velocity: Vec3::zeros(),
                angular_velocity: Vec3::zeros(),
                angular_momentum: Vec3::zeros(),
                anchor: None,
                memory: Box::default(),
            }
        })
        .collect();
    let half = 0.35 / 2.0;
    let walls = [
        (Vec3::z(), Vec3::zeros()),
        (Vec3::x(), Vec3::x() * -half),
        (-Vec3::x(), Vec3::x() * half),
        (Vec3::y(), Vec3::y() * -half),
        (-Vec3::y(), Vec3::y() * half),
    ];
    let statics = walls
        .into_iter()
        .zip(0..)
        .map(|((normal, position), id)| Body {
            id: BodyId(id),
            group: 0,
            material: 0,
            motion: Motion::Fixed,
            shape: Shape::Convex(Convex::HalfSpace),
            mass: f64::INFINITY,
            inertia: Vec3::repeat(f64::INFINITY),
            pose: Pose::new(Quat::rotation_between(&Vec3::z(), &normal).unwrap(), position),
            velocity: Vec3::zeros(),
            angular_velocity: Vec3::zeros(),
            angular_momentum: Vec3::zeros(),
            anchor: None,
            memory: Box::default(),
        })
        .collect();
    let scene = Scene {
        model: Model { laws, ..Default::default() },
        state: State { statics, grains, ..Default::default() },
    };
    let physics = Physics {
        start_time: 0.0,
        time_step: 5e-4,
        scheme: Scheme::default(),
        gravity: Arc::new(|_| Vec3::new(0.0, 0.0, -9.81)),
        contact_margin: None,
        warm_start: true,
        penetration_correction: 0.0,
        correction_slop: 0.0,
        penetration_limit: 0.0,
        patch_reuse: 1e-4,
    };
    (scene, physics)
}
