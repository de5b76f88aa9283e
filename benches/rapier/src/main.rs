//! `stones1000` settled, in breccia and in rapier3d (f64), turn by turn in one run: time of a step, and what
//! each leaves behind.
//!
//! `cd benches/rapier && cargo run --release [steps]`
//!
//! Both take the same bodies, walls, friction 0.7 and time step, one thread, no sleeping. Every 50 steps of
//! one follow 50 steps of the other, so that a busy machine slows both. Afterwards both are measured by
//! breccia's detection at their own poses: deepest penetration, kinetic energy, and the fastest approach at a
//! closed contact point, which the exact law forbids. The velocities and impulses of rapier's last step go
//! through the residual by which breccia stops.

#[path = "../../packing/mod.rs"]
mod packing;

use breccia::contact::detect::Detector;
use breccia::geometry::{Convex, Pose, Quat, Shape, Vec3};
use breccia::law::Kind;
use breccia::scene::{Body, BodyId, ManifoldKey, Physics, Scene};
use breccia::solve::problem::contact_frame;
use breccia::solve::{Acceleration, Hub, LocalLaw, Manifold, Measure, Options, Point, Problem, Ruler, Sweep, Team, Twist};
use breccia::step::{DecompositionOptions, Stepper};
use decomposition::Solo;
use packing::{Ready, colours_of, stones1000};
use rapier3d_f64::prelude::{
    ColliderBuilder, FrictionModel, MassProperties, PhysicsWorld, RigidBodyBuilder, RigidBodyHandle, Vector,
};
use std::collections::HashMap;
use std::time::Instant;

const SCENE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../inputs/data/stones1000.h5");
/// Steps of one before the other's turn.
const TURN: usize = 50;

fn main() {
    let steps = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1000);
    rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global().expect("one thread");
    let (scene, mut physics) = stones1000(SCENE);
    physics.penetration_correction = 0.1;
    physics.correction_slop = 1e-5;
    let (mut world, stones, walls) = rapier_world(&scene, &physics);
    let options = Options {
        tolerance: 5e-3,
        maximum_sweeps: 500,
        acceleration: Acceleration::Momentum,
        ..Options::default()
    };
    let comm = Solo;
    let mut stepper =
        Stepper::new(scene.clone(), physics.clone(), options, DecompositionOptions::default(), &comm);

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut worst_residual = 0.0_f64;
    for _ in 0..steps / TURN {
        for _ in 0..TURN {
            let start = Instant::now();
            let report = stepper.step().expect("no machines, no errors");
            ours.push(start.elapsed().as_secs_f64());
            worst_residual = worst_residual.max(report.residual.natural_map);
        }
        for _ in 0..TURN {
            let start = Instant::now();
            world.step();
            theirs.push(start.elapsed().as_secs_f64());
        }
    }
    println!("{steps} steps of {} s, 1 thread; ms a step: mean, median", physics.time_step);
    for (name, times) in [("breccia", &mut ours), ("rapier", &mut theirs)] {
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        times.sort_by(f64::total_cmp);
        println!("  {name:<8} {:8.2} {:8.2}", mean * 1e3, times[times.len() / 2] * 1e3);
    }
    println!("breccia's worst natural-map residual: {worst_residual:.1e}");
    let state = |world: &PhysicsWorld| {
        let mut state = scene.clone();
        for (body, handle) in state.grains.iter_mut().zip(&stones) {
            copy_state(body, world, *handle);
        }
        state
    };
    let before = state(&world);
    world.step();
    let after = state(&world);
    let bodies: Vec<RigidBodyHandle> = stones.iter().chain(&walls).copied().collect();
    residual(&world, &bodies, &before, &after, &physics);
    leaves("breccia", stepper.scene(), &scene, &physics);
    leaves("rapier", &after, &scene, &physics);
}

fn vector(v: &Vec3) -> Vector {
    Vector::new(v.x, v.y, v.z)
}

/// The same bodies and walls.
fn rapier_world(scene: &Scene, physics: &Physics) -> (PhysicsWorld, Vec<RigidBodyHandle>, Vec<RigidBodyHandle>) {
    let mut world = PhysicsWorld::new();
    world.gravity = vector(&(physics.gravity)(0.0));
    world.integration_parameters.dt = physics.time_step;
    // Rapier's tolerances are relative to this length: with it, 25 µm of overlap are left alone.
    let number = |name: &str, default: f64| {
        std::env::var(name).ok().and_then(|word| word.parse().ok()).unwrap_or(default)
    };
    world.integration_parameters.length_unit = number("RAPIER_LENGTH", 0.005);
    world.integration_parameters.contact_softness.natural_frequency = number("RAPIER_FREQUENCY", 30.0);
    world.integration_parameters.static_contact_softness.natural_frequency =
        2.0 * number("RAPIER_FREQUENCY", 30.0);
    world.integration_parameters.friction_model = FrictionModel::Coulomb;
    let mut walls = Vec::new();
    for wall in &scene.state.statics {
        let normal = wall.pose.direction(&Vec3::z());
        let body = world.insert_body(RigidBodyBuilder::fixed().translation(vector(&wall.pose.position)));
        let plane = ColliderBuilder::halfspace(rapier3d_f64::na::Unit::new_unchecked(vector(&normal)));
        world.insert_collider(plane.friction(0.7), Some(body));
        walls.push(body);
    }
    let mut handles = Vec::new();
    for stone in &scene.state.grains {
        let Shape::Convex(Convex::Polyhedron(hull)) = &stone.shape else { continue };
        let points: Vec<Vector> = hull.vertices.iter().map(vector).collect();
        let mass = MassProperties::new(Vector::ZERO, stone.mass, vector(&stone.inertia));
        let body = RigidBodyBuilder::dynamic()
            .translation(vector(&stone.pose.position))
            .rotation(vector(&stone.pose.rotation.scaled_axis()))
            .additional_mass_properties(mass)
            .can_sleep(false);
        let handle = world.insert_body(body);
        let collider = ColliderBuilder::convex_hull(&points).expect("a hull").density(0.0).friction(0.7);
        world.insert_collider(collider, Some(handle));
        handles.push(handle);
    }
    (world, handles, walls)
}

fn copy_state(body: &mut Body, world: &PhysicsWorld, handle: RigidBodyHandle) {
    let from = &world.bodies[handle];
    let (p, q) = (from.translation(), from.rotation());
    let rotation = nalgebra::Quaternion::new(q.w, q.x, q.y, q.z);
    body.pose = Pose::new(Quat::from_quaternion(rotation), Vec3::new(p.x, p.y, p.z));
    let (v, w) = (from.linvel(), from.angvel());
    body.velocity = Vec3::new(v.x, v.y, v.z);
    body.angular_velocity = Vec3::new(w.x, w.y, w.z);
}

/// Rapier's last step by the exact law: its contact points, normals and impulses, and the velocities that it
/// ended with. The direction of friction is the one that it keeps for its next step.
fn residual(
    world: &PhysicsWorld,
    bodies: &[RigidBodyHandle],
    before: &Scene,
    after: &Scene,
    physics: &Physics,
) {
    let slots: HashMap<_, u32> = bodies.iter().copied().zip(0..).collect();
    let ready = Ready::new((before.clone(), physics.clone()));
    // Which body the stored friction pushes is not documented: the sign that explains the velocities better
    // is taken.
    let found = [1.0, -1.0].map(|sign| {
        let mut problem = Problem {
            inertia: ready.free.iter().map(|(inertia, _)| *inertia).collect(),
            free_velocity: ready.free.iter().map(|(_, twist)| *twist).collect(),
            ..Problem::default()
        };
        for pair in world.narrow_phase.contact_pairs() {
            for manifold in pair.solver_manifolds() {
                add_manifold(&mut problem, manifold, &slots, sign, physics);
            }
        }
        let colours = colours_of(&problem);
        let team = Team::alone();
        let mut sweep = Sweep::new(&problem, &Hub::default(), &colours, LocalLaw::Projected, |_| false, &team);
        sweep.start(&mut breccia::solve::Alone);
        let ended = after.grains.iter().map(|body| Twist::new(body.velocity, body.angular_velocity));
        let speed = |twist: &Twist| Vec3::from(twist.linear);
        let (mut off, mut all) = (0.0, 0.0);
        for (slot, twist) in ended.enumerate() {
            let mut velocities = sweep.by_slot();
            let found = velocities.get_mut(slot as u32);
            off += (speed(found) - speed(&twist)).norm_squared();
            all += (speed(&problem.free_velocity[slot]) - speed(&twist)).norm_squared();
            *found = twist;
        }
        let residual = Ruler::new(Measure::Fclib).read(&sweep, &mut breccia::solve::Alone);
        ((off / all).sqrt(), residual.natural_map, problem.points.len())
    });
    let (off, natural_map, points) = if found[0].0 < found[1].0 { found[0] } else { found[1] };
    println!(
        "rapier's natural-map residual: {natural_map:.1e} at {points} points; its impulses explain its velocities to {off:.1e} of the change"
    );
}

fn add_manifold(
    problem: &mut Problem,
    manifold: &rapier3d_f64::prelude::ContactManifold,
    slots: &HashMap<RigidBodyHandle, u32>,
    sign: f64,
    physics: &Physics,
) {
    let data = &manifold.data;
    let (Some(a), Some(b)) = (data.rigid_body1, data.rigid_body2) else { return };
    let slots = [slots[&a], slots[&b]];
    let of = |v: &Vector| Vec3::new(v.x, v.y, v.z);
    let frame = contact_frame(of(&data.normal));
    let part = problem.manifolds.len();
    let key =
        ManifoldKey { bodies: slots.map(|slot| BodyId(slot.into())), parts: [part as u32 & 0xffff, (part >> 16) as u32] };
    problem.manifolds.push(Manifold {
        key,
        slots,
        frame,
        kind: Kind::Coulomb,
        friction: 0.7,
        compliance: 0.0,
        first_point: problem.points.len() as u32,
    });
    for point in &manifold.points {
        let kept = of(&point.data.warmstart_tangent_world);
        let size = point.data.tangent_impulse.norm();
        let friction = if kept.norm() > 0.0 { kept * (sign * size / kept.norm()) } else { Vec3::zeros() };
        problem.points.push(Point {
            arms: [of(&point.data.solver_dp1), of(&point.data.solver_dp2)],
            bias: point.dist.max(0.0) / physics.time_step,
            impulse: [point.data.impulse, frame[1].dot(&friction), frame[2].dot(&friction)],
        });
    }
}

fn leaves(name: &str, scene: &Scene, start: &Scene, physics: &Physics) {
    let ready = Ready::new((scene.clone(), physics.clone()));
    let bodies: Vec<&Body> = scene.state.grains.iter().chain(&scene.state.statics).collect();
    let (mut deepest, mut approach) = (0.0_f64, 0.0_f64);
    for contact in ready.detect(&mut Detector::default()).iter().flat_map(|contacts| contacts.iter()) {
        let [a, b] = contact.slots.map(|slot| bodies[slot as usize]);
        for point in contact.points.iter().filter(|point| point.gap <= 0.0) {
            deepest = deepest.max(-point.gap);
            let at = |body: &Body| body.velocity + body.angular_velocity.cross(&(point.position - body.pose.position));
            approach = approach.max(-contact.normal.dot(&(at(b) - at(a))));
        }
    }
    let energy: f64 = scene.state.grains.iter().map(|body| 0.5 * body.mass * body.velocity.norm_squared()).sum();
    let moved = scene.state.grains.iter().zip(&start.grains);
    let farthest =
        moved.map(|(now, then)| (now.pose.position - then.pose.position).norm()).fold(0.0, f64::max);
    println!(
        "  {name:<8} deepest {deepest:.1e} m, kinetic energy {energy:.1e} J, fastest approach at a closed point {approach:.1e} m/s, farthest way {farthest:.1e} m"
    );
}
