//! Cost of contact detection: `cargo bench --bench detection [threads]`.

use breccia::contact::BroadPhase;
use breccia::geometry::{Aabb, Vec3};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let threads = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(1);
    if let Err(error) = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global() {
        eprintln!("cannot start {threads} threads: {error}");
        return;
    }
    println!("broad phase, {threads} thread(s), random order, solid fraction 0.6");
    println!("{:>8} {:>9} {:>12} {:>14}", "ratio", "bodies", "ns per body", "pairs per body");
    for ratio in [1.0, 10.0, 100.0] {
        for bodies in [1_000, 10_000, 100_000, 1_000_000] {
            broad_phase(ratio, bodies);
        }
    }
}

/// Spheres whose radii are spread evenly on a logarithmic scale over `ratio`, at random places of a cube with the solid
/// fraction of a settled bed, and two half-spaces.
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
    let rounds = (3_000_000 / bodies).max(3);
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
