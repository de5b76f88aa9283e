//! Cost of contact detection: `cargo bench --bench detection [threads]`.

use breccia::contact::{BroadPhase, Hint, collide};
use breccia::geometry::{Aabb, Convex, Pose, Quat, Vec3, convex_hull};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

fn main() {
    let threads = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(1);
    if let Err(error) = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global() {
        eprintln!("cannot start {threads} threads: {error}");
        return;
    }
    narrow_phase();
    println!("broad phase, {threads} thread(s), random order, solid fraction 0.6");
    println!("{:>8} {:>9} {:>12} {:>14}", "ratio", "bodies", "ns per body", "pairs per body");
    for ratio in [1.0, 10.0, 100.0] {
        for bodies in [1_000, 10_000, 100_000, 1_000_000] {
            broad_phase(ratio, bodies);
        }
    }
}

/// Spheres whose radii are spread evenly on a logarithmic scale over `ratio`, at random places of a cube with
/// the solid fraction of a settled bed, and two half-spaces.
fn broad_phase(ratio: f64, bodies: usize) {
    let mut random = Random(1);
    let radii: Vec<f64> = (0..bodies).map(|_| f64::powf(ratio, random.unit())).collect();
    let volume: f64 = radii.iter().map(|radius| radius.powi(3) * 4.18879).sum();
    let side = (volume / 0.6).cbrt();
    let mut boxes: Vec<Aabb> = radii
        .iter()
        .map(|&radius| {
            let centre = random.point() * side;
            Aabb { min: centre, max: centre }.inflated(radius)
        })
        .collect();
    let mut movable = vec![true; bodies];
    for _ in 0..2 {
        boxes.push(Aabb { min: Vec3::repeat(f64::NEG_INFINITY), max: Vec3::repeat(f64::INFINITY) });
        movable.push(false);
    }
    let mut broad = BroadPhase::new();
    let mut pairs = Vec::new();
    let rounds = (10_000_000 / bodies).max(8);
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let start = Instant::now();
        broad.pairs(black_box(&boxes), &movable, &mut pairs);
        best = best.min(start.elapsed().as_secs_f64());
    }
    let per_body = 1.0 / bodies as f64;
    println!(
        "{ratio:>8} {bodies:>9} {:>12.0} {:>14.1}",
        best * 1e9 * per_body,
        pairs.len() as f64 * per_body
    );
}

struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn point(&mut self) -> Vec3 {
        Vec3::new(self.unit(), self.unit(), self.unit())
    }
}

type Piece = (Convex, Pose);

/// Pairs of stones of 25 vertices, at random orientations, from touching to apart within their bounding
/// spheres.
fn narrow_phase() {
    let mut random = Random(2);
    let stones: Vec<Convex> = (0..40).map(|_| stone(&mut random)).collect();
    let (mut touching, mut apart) = (Vec::new(), Vec::new());
    while touching.len() < 1000 || apart.len() < 1000 {
        let mut turned = || {
            let axis = random.point().add_scalar(-0.5) * 6.0;
            let stone = stones[(random.unit() * stones.len() as f64) as usize].clone();
            (stone, Pose::new(Quat::new(axis), random.point().add_scalar(-0.5)))
        };
        let (a, mut b) = (turned(), turned());
        let direction = (b.1.position - a.1.position).normalize();
        let mut moved = |distance: f64| {
            b.1.position = a.1.position + direction * distance;
            b.clone()
        };
        let (mut near, mut far) = (0.0, 3.0);
        while far - near > 1e-6 {
            let middle = 0.5 * (near + far);
            if gap_at_most(&a, &moved(middle), 0.0) { near = middle } else { far = middle }
        }
        touching.push((a.clone(), moved(near - 1e-4)));
        apart.push((a.clone(), moved(near + 0.02 + 0.1 * random.unit())));
    }
    println!("narrow phase, stones of 25 vertices, {} pairs each", touching.len());
    time_pairs("touching, 1e-4 deep, margin 1e-2", &touching, 1e-2, false);
    time_pairs("touching, 1e-4 deep, no margin", &touching, 0.0, false);
    time_pairs("0.02 to 0.12 apart, no hint", &apart, 1e-2, false);
    time_pairs("0.02 to 0.12 apart, with hint", &apart, 1e-2, true);
}

fn gap_at_most(a: &Piece, b: &Piece, margin: f64) -> bool {
    collide((&a.0, &a.1), (&b.0, &b.1), margin, &mut Hint::default()).is_some()
}

fn time_pairs(title: &str, pairs: &[(Piece, Piece)], margin: f64, keep_hints: bool) {
    let mut hints = vec![Hint::default(); pairs.len()];
    let (mut best, mut points, mut contacts) = (f64::INFINITY, 0, 0);
    for _ in 0..50 {
        (points, contacts) = (0, 0);
        let start = Instant::now();
        for ((a, b), hint) in pairs.iter().zip(&mut hints) {
            if !keep_hints {
                *hint = Hint::default();
            }
            if let Some(patch) = black_box(collide((&a.0, &a.1), (&b.0, &b.1), margin, hint)) {
                points += patch.points.len();
                contacts += 1;
            }
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    let per_pair = best * 1e9 / pairs.len() as f64;
    println!("  {title:<34} {per_pair:>7.0} ns a pair, {contacts} in contact, {points} points");
}

fn stone(random: &mut Random) -> Convex {
    loop {
        let points: Vec<Vec3> = (0..25)
            .map(|_| random.point().add_scalar(-0.5).normalize().component_mul(&Vec3::new(1.0, 0.8, 0.6)))
            .collect();
        if let Ok(polyhedron) = convex_hull(&points) {
            return Convex::Polyhedron(Arc::new(polyhedron));
        }
    }
}
