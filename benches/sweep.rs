//! The contact solve on the settled packing `stones1000`: nanoseconds per contact point and sweep, and sweeps and time to a residual.
//!
//! `cargo bench --bench sweep`

use breccia::contact::detect::{Candidate, Detector};
use breccia::geometry::{Convex, Pose, Quat, Shape, Vec3, hull::convex_hull};
use breccia::scene::*;
use breccia::solve::colour::{Link, colour};
use breccia::solve::{self, Acceleration, Alone, Hub, LocalLaw, Options, Problem, Sweep};
use breccia::step::{Machines, assemble, motion};
use std::sync::Arc;
use std::time::Instant;

fn main() {
    let (scene, physics) = stones1000("inputs/data/stones1000.h5");
    let gravity = (physics.gravity)(0.0);
    let free: Vec<_> = scene
        .grains
        .iter()
        .chain(&scene.statics)
        .map(|body| motion::free_motion(body, &gravity, physics.time_step))
        .collect();
    let candidates: Vec<Candidate> = scene
        .grains
        .iter()
        .chain(&scene.statics)
        .zip(&free)
        .map(|(body, (inertia, twist))| Candidate {
            body,
            reach: motion::reach(body, twist, &physics),
            movable: inertia.is_movable(),
        })
        .collect();
    let mut detector = Detector::default();
    let mut contacts = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        contacts = detector.detect(&candidates, |_, _, _| true, |_, _| Some(1.0));
        println!("detect: {:.2} ms, {} patches", start.elapsed().as_secs_f64() * 1e3, contacts.len());
    }
    let machines = Machines::default();
    let assembled = assemble::assemble(
        &contacts,
        free.iter().map(|(inertia, _)| *inertia).collect(),
        free.iter().map(|(_, twist)| *twist).collect(),
        &assemble::Parts {
            candidates: &candidates,
            scene: &scene,
            machines: &machines,
            stored: [None, None],
            time_step: physics.time_step,
        },
    );
    let problem = assembled.problem;
    let movable = scene.grains.len();
    let slot = |slot: u32| ((slot as usize) < movable).then_some(slot);
    let links: Vec<Link> =
        problem.manifolds.iter().map(|m| Link { key: m.key, slots: m.slots.map(slot) }).collect();
    let start = Instant::now();
    let colours = colour(&links, movable);
    println!(
        "{} manifolds, {} points, {} colours (coloured in {:.2} ms)",
        problem.manifolds.len(),
        problem.points.len(),
        colours.count,
        start.elapsed().as_secs_f64() * 1e3
    );
    for law in [LocalLaw::Projected, LocalLaw::Exact] {
        sweep_speed(&problem, &colours, law);
        time_to_residual(&problem, &colours, law);
    }
}

fn sweep_speed(problem: &Problem, colours: &solve::Colours, law: LocalLaw) {
    let mut sweep = Sweep::new(problem, &Hub::default(), colours, law, |_| false);
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        let start = Instant::now();
        for _ in 0..20 {
            sweep.run(&mut Alone);
        }
        best = best.min(start.elapsed().as_secs_f64() / 20.0);
    }
    println!("{law:?}: {:.1} ns per contact point and sweep", best * 1e9 / problem.points.len() as f64);
}

fn time_to_residual(problem: &Problem, colours: &solve::Colours, law: LocalLaw) {
    for acceleration in [Acceleration::None, Acceleration::ConjugateGradient] {
        for tolerance in [1e-2, 1e-3] {
            let options = Options {
                tolerance,
                maximum_sweeps: 20_000,
                check_every: 10,
                law,
                acceleration,
                method: None,
            };
            let start = Instant::now();
            let solution = solve::solve(problem, &Hub::default(), colours, &options, |_| false, &mut Alone);
            println!(
                "{law:?}, {acceleration:?}, to {tolerance:e}: {} sweeps, {:.1} ms, residual {:.2e}, worst {:.2e} m/s",
                solution.sweeps,
                start.elapsed().as_secs_f64() * 1e3,
                solution.residual.natural_map,
                solution.residual.worst_velocity,
            );
        }
    }
}

fn stones1000(path: &str) -> (Scene, Physics) {
    let file = hdf5::File::open(path).expect("the scene file is there");
    let read = |name: &str| file.dataset(name).unwrap().read_dyn::<f64>().unwrap();
    let (vertices, mass, inertia, settled) = (read("verts"), read("mass"), read("inertia"), read("settled"));
    let three = |a: &[f64]| Vec3::new(a[0], a[1], a[2]);
    let vertices = vertices.as_slice().unwrap();
    let settled = settled.as_slice().unwrap();
    let mut laws = LawTable::new(1);
    laws.set(0, 0, ContactLaw { friction: 0.7, restitution: 0.0, activation: Activation::Predictive });
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
        })
        .collect();
    let scene = Scene { laws, statics, grains, ..Default::default() };
    let physics = Physics {
        start_time: 0.0,
        time_step: 5e-4,
        theta: 0.5,
        gravity: Arc::new(|_| Vec3::new(0.0, 0.0, -9.81)),
        contact_margin: None,
        warm_start: true,
        penetration_correction: 0.0,
        correction_slop: 0.0,
    };
    (scene, physics)
}
