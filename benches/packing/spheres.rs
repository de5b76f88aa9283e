//! Spheres placed by hand: a packing, a tall column, a heavy tool in a light bed; as contact problems and as
//! scenes.

use breccia::geometry::{Convex, Mat3, Pose, Quat, Shape, Vec3};
use breccia::law::Kind;
use breccia::scene::*;
use breccia::solve::problem::contact_frame;
use breccia::solve::{Inertia, Manifold, Point, Problem, Twist};

const TIME_STEP: f64 = 5e-4;
const RADIUS: f64 = 0.01;
const DENSITY: f64 = 2700.0;

pub struct Sphere {
    centre: Vec3,
    radius: f64,
    mass: f64,
}

/// Spheres on a floor, between four walls that far from the middle.
pub type Bed = (Vec<Sphere>, f64);

impl Sphere {
    fn stone(centre: Vec3) -> Self {
        Self::of_radius(RADIUS, centre)
    }

    fn of_radius(radius: f64, centre: Vec3) -> Self {
        Self { centre, radius, mass: DENSITY * 4.0 / 3.0 * std::f64::consts::PI * radius.powi(3) }
    }
}

/// As [`problem`] has them, friction 0.5, predictive law.
pub fn scene((spheres, half_width): &Bed) -> Scene {
    let (mut scene, _) = super::packing::stones1000(super::packing::STONES);
    scene.model.laws.set(
        0,
        0,
        ContactLaw { friction: 0.5, restitution: 0.0, activation: Activation::Predictive, stiffness: None },
    );
    for wall in &mut scene.state.statics[1..] {
        wall.pose.position = wall.pose.position.normalize() * *half_width;
    }
    scene.state.grains = (5..).zip(spheres).map(|(id, sphere)| body(id, sphere)).collect();
    scene
}

fn body(id: u64, sphere: &Sphere) -> Body {
    Body {
        id: BodyId(id),
        group: 0,
        material: 0,
        motion: Motion::Free,
        shape: Shape::Convex(Convex::Sphere { radius: sphere.radius }),
        mass: sphere.mass,
        inertia: Vec3::repeat(0.4 * sphere.mass * sphere.radius * sphere.radius),
        pose: Pose::new(Quat::identity(), sphere.centre),
        velocity: Vec3::zeros(),
        angular_velocity: Vec3::zeros(),
        angular_momentum: Vec3::zeros(),
        anchor: None,
        memory: Box::default(),
    }
}

/// One step under gravity, predictive law, friction 0.5, on a floor between four walls at `half_width`.
pub fn problem((spheres, half_width): &Bed) -> Problem {
    let half_width = *half_width;
    let mut problem = Problem::default();
    for sphere in spheres {
        let moment = 0.4 * sphere.mass * sphere.radius * sphere.radius;
        problem.inertia.push(Inertia::new(1.0 / sphere.mass, &(Mat3::identity() / moment)));
        let falling = Vec3::new(0.0, 0.0, -9.81 * TIME_STEP);
        problem.free_velocity.push(Twist::new(falling, Vec3::zeros()));
    }
    let walls = problem.inertia.len() as u32;
    problem.inertia.push(Inertia::default());
    problem.free_velocity.push(Twist::default());
    let planes = [
        (Vec3::z(), 0.0),
        (Vec3::x(), -half_width),
        (-Vec3::x(), -half_width),
        (Vec3::y(), -half_width),
        (-Vec3::y(), -half_width),
    ];
    let mut touch = |slots: [u32; 2], part: u32, normal: Vec3, arms: [Vec3; 2], gap: f64| {
        let key = ManifoldKey { bodies: slots.map(|slot| BodyId(slot.into())), parts: [part, 0] };
        let first_point = problem.points.len() as u32;
        let frame = contact_frame(normal);
        problem.manifolds.push(Manifold {
            key,
            slots,
            frame,
            kind: Kind::Coulomb,
            friction: 0.5,
            compliance: 0.0,
            first_point,
        });
        problem.points.push(Point { arms, bias: gap.max(0.0) / TIME_STEP, impulse: [0.0; 3] });
    };
    for (i, one) in spheres.iter().enumerate() {
        for (j, other) in spheres.iter().enumerate().skip(i + 1) {
            let between = other.centre - one.centre;
            let gap = between.norm() - one.radius - other.radius;
            if gap < 0.01 * one.radius.min(other.radius) {
                let normal = between.normalize();
                touch([i as u32, j as u32], 0, normal, [normal * one.radius, normal * -other.radius], gap);
            }
        }
        for ((normal, offset), part) in planes.into_iter().zip(0..) {
            let gap = normal.dot(&one.centre) - offset - one.radius;
            if gap < 0.01 * one.radius {
                touch([i as u32, walls], part, -normal, [normal * -one.radius, Vec3::zeros()], gap);
            }
        }
    }
    problem
}

/// A place of a close packing of equal spheres.
fn lattice([i, j, k]: [u32; 3]) -> Vec3 {
    let x = f64::from(i) + 0.5 * f64::from((j + k) % 2);
    let y = 0.75_f64.sqrt() * (f64::from(j) + f64::from(k % 2) / 3.0);
    let z = (2.0_f64 / 3.0).sqrt() * f64::from(k);
    Vec3::new(x, y, z) * (2.0 * RADIUS) + Vec3::new(0.0, 0.0, RADIUS)
}

fn places(counts: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    let rows = (0..counts[2]).flat_map(move |k| (0..counts[1]).map(move |j| (j, k)));
    rows.flat_map(move |(j, k)| (0..counts[0]).map(move |i| [i, j, k]))
}

/// Numbers between −½ and ½.
fn numbers(mut state: u64) -> impl FnMut() -> f64 {
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    }
}

/// Two thousand spheres of 8 to 12 mm that do not touch: they fall into a heap of some fifteen layers.
pub fn loose() -> Bed {
    let (half_width, across) = (0.11, 9);
    let cell = 2.0 * half_width / f64::from(across);
    let mut random = numbers(7);
    let mut spheres = Vec::new();
    for place in places([across, across, 25]) {
        let radius = 0.01 + 0.004 * random();
        let shake = Vec3::new(random(), random(), random()) * (0.99 * (cell - 2.0 * radius));
        let corner = Vec3::from(place.map(f64::from)) * cell - Vec3::new(half_width, half_width, 0.0);
        spheres.push(Sphere::of_radius(radius, corner + Vec3::repeat(0.5 * cell) + shake));
    }
    (spheres, half_width)
}

/// Four thousand spheres, slightly out of their lattice, one in twenty missing.
pub fn packing() -> Bed {
    let mut random = numbers(1);
    let mut spheres = Vec::new();
    for place in places([16, 16, 16]) {
        if random() > -0.45 {
            let shake = Vec3::new(random(), random(), random()) * (0.004 * RADIUS);
            spheres.push(Sphere::stone(lattice(place) - Vec3::new(0.165, 0.145, 0.0) + shake));
        }
    }
    (spheres, 0.18)
}

/// A hundred spheres on top of each other.
pub fn column() -> Bed {
    let sphere = |k: u32| Sphere::stone(Vec3::new(0.0, 0.0, RADIUS * (1.0 + 2.0 * f64::from(k))));
    ((0..100).map(sphere).collect(), 1.0)
}

/// The heap with a sphere of a thousand times the weight of a stone a centimetre above it.
pub fn with_tool(mut heap: Scene) -> Scene {
    let mass = 1000.0 * Sphere::stone(Vec3::zeros()).mass;
    let top = heap.state.grains.iter().map(|grain| grain.pose.position.z).fold(0.0, f64::max);
    let tool = Sphere { centre: Vec3::new(0.0, 0.0, top + 0.01 + 0.05), radius: 0.05, mass };
    heap.state.grains.push(body(1 << 20, &tool));
    heap
}

/// A sphere of a thousand times the weight, on a bed of a thousand light ones.
pub fn heavy_tool() -> Bed {
    let middle = Vec3::new(0.12, 0.11, 0.0);
    let mut spheres: Vec<Sphere> =
        places([12, 12, 8]).map(|place| Sphere::stone(lattice(place) - middle)).collect();
    let top = lattice([0, 0, 7]).z;
    let stone = Sphere::stone(Vec3::zeros());
    let centre = Vec3::new(0.0, 0.0, top + 0.99 * (0.05 + RADIUS));
    spheres.push(Sphere { centre, radius: 0.05, mass: 1000.0 * stone.mass });
    (spheres, 0.13)
}

/// The problem, and the same with free velocities that differ by up to half a thousandth.
pub fn varied(problem: &Problem, count: u32) -> Vec<Problem> {
    let varied = |seed: u32| {
        let mut problem = problem.clone();
        let mut angle = f64::from(seed);
        for twist in &mut problem.free_velocity {
            for speed in &mut twist.linear {
                angle += 1.0;
                *speed *= 1.0 + 5e-4 * (angle * angle * f64::from(seed)).sin();
            }
        }
        problem
    };
    (0..count).map(varied).collect()
}
