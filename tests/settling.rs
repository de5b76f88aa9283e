//! Stones come to rest, lie as densely as poured stones do, and stay.
//!
//! `make test` follows the settled packing for a while; with BRECCIA_SOAK=1 (`make soak`) for a whole second,
//! and the loose one from its fall.

mod support;

use breccia::geometry::{Convex, Shape, Vec3, random::Random};
use breccia::output::StateFile;
use breccia::scene::{Body, Motion};
use decomposition::Solo;
use std::path::Path;
use support::{Directory, project, run};

const GRAVITY: f64 = 9.81;
/// Half the width of the box.
const HALF_WIDTH: f64 = 0.175;

#[test]
fn settled_stones_stay() {
    let steps = if soak() { "2000" } else { "300" };
    let directory = Directory::new("settled");
    run(&project("inputs/stones1000-settled.toml"), 1, &directory.0, &["--steps", steps]);
    check(&directory.0, if soak() { 1000 } else { 100 });
}

#[test]
fn falling_stones_come_to_rest() {
    if !soak() {
        return support::skip::test("needs BRECCIA_SOAK (make soak): it takes some minutes");
    }
    let directory = Directory::new("falling");
    run(&project("inputs/stones1000.toml"), 1, &directory.0, &[]);
    check(&directory.0, 2000);
}

fn soak() -> bool {
    std::env::var_os("BRECCIA_SOAK").is_some()
}

/// The state at the end, and the last `rows` of the series.
fn check(directory: &Path, rows: usize) {
    let state = StateFile::open(&directory.join("final.h5"), &Solo).expect("a whole final state");
    let bodies = state.read_bodies(0..state.body_count()).expect("readable bodies");
    let stones: Vec<&Body> = bodies.iter().filter(|body| body.motion == Motion::Free).collect();
    let count = stones.len() as f64;
    let mass = stones.iter().map(|body| body.mass).sum::<f64>() / count;
    let size = stones.iter().map(|body| 2.0 * body.shape.bounding_radius()).sum::<f64>() / count;

    let fraction = solid_fraction(&stones);
    println!("measured solid fraction {fraction:.3}");
    assert!((0.48..0.60).contains(&fraction), "solid fraction {fraction}");

    let energy = column(directory, "kinetic_energy");
    let last = &energy[energy.len() - rows..];
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let bound = 1e-6 * count * mass * GRAVITY * size;
    println!("measured kinetic energy {:.2e} of the bound", mean(last) / bound);
    assert!(mean(last) < bound, "kinetic energy {:e} J, bound {bound:e} J", mean(last));
    if soak() {
        let (first, second) = last.split_at(rows / 2);
        println!("measured kinetic energy, first half {:.2e} J, second {:.2e} J", mean(first), mean(second));
        assert!(mean(second) < mean(first), "the pile does not get quieter");
    }

    let depth = column(directory, "worst_penetration");
    let deepest = depth[depth.len() - rows..].iter().copied().fold(0.0, f64::max);
    println!("measured penetration {:.2e} of the stone size", deepest / size);
    assert!(deepest < 0.01 * size, "penetration {deepest}");
}

/// The share of points in the middle of the heap that lie in a stone: between 15 % and 75 % of the height
/// that nine stones in ten lie below, a tenth of the width away from the walls. 20,000 points: ±0.004.
fn solid_fraction(stones: &[&Body]) -> f64 {
    let mut heights: Vec<f64> = stones.iter().map(|body| body.pose.position.z).collect();
    heights.sort_by(f64::total_cmp);
    let top = heights[heights.len() * 9 / 10];
    let mut random = Random::new(1, 0);
    let count = 20_000;
    let inside = (0..count)
        .filter(|_| {
            let side = 0.9 * HALF_WIDTH;
            let point = Vec3::new(
                random.between(-side, side),
                random.between(-side, side),
                random.between(0.15 * top, 0.75 * top),
            );
            stones.iter().any(|body| holds(body, &point))
        })
        .count();
    inside as f64 / f64::from(count)
}

fn holds(body: &Body, point: &Vec3) -> bool {
    let Shape::Convex(Convex::Polyhedron(shape)) = &body.shape else { return false };
    let local = body.pose.inverse_point(point);
    local.norm() <= shape.bounding_radius
        && shape.faces.iter().all(|face| face.normal.dot(&local) <= face.offset)
}

fn column(directory: &Path, name: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(directory.join("series.csv")).expect("a series");
    let mut lines = text.lines();
    let place = lines.next().and_then(|head| head.split(',').position(|column| column == name));
    let place = place.expect("the series has the column");
    lines
        .map(|line| line.split(',').nth(place).and_then(|cell| cell.parse().ok()).expect("a number"))
        .collect()
}
