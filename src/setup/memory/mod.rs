//! The memory that a case needs, from its counts alone, and whether it is there: nothing is built.
//!
//! Constants are from the peaks of runs on one rank (`summary.json`, `peak_memory`) less that of a run with
//! one ball, 40 MB; docs/running.md has the table of estimates and peaks.

mod available;

pub use available::{Available, available};

use super::error::{SetupError, agree};
use crate::geometry::{Random, Shape, stone};
use crate::input::{BodyMotion, Case, Generator};
use crate::output::{SceneFile, Spheres};
use decomposition::Comm;

/// Of a rank without bodies.
const RANK: u64 = 40_000_000;
/// Of a body, its start of a step, its boxes, its place in the broad phase and its row of a checkpoint.
const BODY: u64 = 2_300;
/// Of a contact point, in detection, problem, sweep and stored impulses.
const POINT: u64 = 1_330;
/// Of a vertex of a polyhedron, with its share of faces and edges, and of its drawing.
const VERTEX: u64 = 450;
/// Of a vertex of a sphere that is drawn as a surface.
const DRAWN: u64 = 115;
/// Contact points for each sphere, single polyhedron and cluster in a dense packing, times ten.
const POINTS: [u64; 3] = [35, 50, 65];
/// Of a file that a case starts from: what a byte of it becomes.
const START: u64 = 5;
/// Percent: what ranks hold beyond an even share, as ghosts and by the shape of their space.
const UNEVEN: u64 = 120;
/// Stones that are made to count their vertices.
const SAMPLE: u64 = 16;

/// What a case needs, all ranks together, packed densely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Free bodies that the case generates or reads; not those of a start file.
    pub bodies: u64,
    pub body_bytes: u64,
    pub contact_bytes: u64,
}

impl Need {
    pub fn of(case: &Case) -> Self {
        let shapes = super::solids::shapes(case);
        let mut need = Need::default();
        for grains in &case.grains {
            match &grains.generator {
                Generator::Spheres { placing, .. } => need.add(case, placing.count, 1, 0),
                Generator::Stones { placing, sizes, stone: parameters } => {
                    let vertices = |index| {
                        let mut random = Random::new(placing.seed, index);
                        random.rotation();
                        let size = sizes.size(placing.seed, index);
                        stone(parameters, size, &mut random).vertices.len() as u64
                    };
                    let sample = SAMPLE.min(placing.count).max(1);
                    let mean = (0..sample).map(vertices).sum::<u64>().div_ceil(sample);
                    need.add(case, placing.count, 0, mean);
                }
                Generator::Shape { placing, shape, .. } => {
                    let [spheres, vertices] = parts(&shapes[*shape]);
                    need.add(case, placing.count, spheres, vertices);
                }
                // One that cannot be opened is refused where it is read.
                Generator::File { file, .. } => {
                    if let Ok(scene) = SceneFile::open(file) {
                        need.add(case, scene.count(), 0, scene.vertices_each());
                    }
                }
            }
        }
        for body in case.bodies.iter().filter(|body| matches!(body.motion, BodyMotion::Free { .. })) {
            let [spheres, vertices] = parts(&shapes[body.shape]);
            need.add(case, 1, spheres, vertices);
        }
        if let Some(start) = &case.start {
            let length = std::fs::metadata(&start.from).map_or(0, |file| file.len());
            let copies = start.copies[0].saturating_mul(start.copies[1]);
            need.body_bytes = need.body_bytes.saturating_add(length.saturating_mul(START * copies));
        }
        need
    }

    fn add(&mut self, case: &Case, count: u64, spheres: u64, vertices: u64) {
        let drawn = match case.output.spheres {
            Spheres::Surface => DRAWN * (2 + 10 * 4u64.pow(case.output.sphere_refinement.min(4) as u32)),
            Spheres::Points => 0,
        };
        let each = BODY + spheres * drawn + vertices * VERTEX;
        let points = POINTS[match (spheres, vertices) {
            (0 | 1, 0) => 0,
            (0, _) => 1,
            _ => 2,
        }];
        self.bodies += count;
        self.body_bytes = self.body_bytes.saturating_add(count.saturating_mul(each));
        self.contact_bytes = self.contact_bytes.saturating_add(count.saturating_mul(points * POINT / 10));
    }

    /// Bytes of the rank that needs most, packed densely.
    pub fn of_a_rank(&self, ranks: u64) -> u64 {
        self.of_a_rank_with(ranks, self.contact_bytes)
    }

    /// The same while grains fall: a contact point for each sphere.
    pub fn of_a_loose_rank(&self, ranks: u64) -> u64 {
        self.of_a_rank_with(ranks, (u128::from(self.contact_bytes) * 10 / u128::from(POINTS[0])) as u64)
    }

    fn of_a_rank_with(&self, ranks: u64, contact_bytes: u64) -> u64 {
        let all = u128::from(self.body_bytes) + u128::from(contact_bytes);
        let uneven = if ranks > 1 { UNEVEN } else { 100 };
        let share = all * u128::from(uneven) / 100 / u128::from(ranks.max(1));
        RANK.saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

/// Bodies from which on `check` builds only some of them.
const MANY: u64 = 200_000;
/// How many of each generator these are.
const SOME: u64 = 5_000;

/// The case with fewer grains of each kind, if it has so many that to build them takes long, and without a
/// start file of that size.
pub fn thinned(case: &Case, need: &Need) -> Option<Case> {
    if need.bodies <= MANY && need.body_bytes / BODY <= 20 * MANY {
        return None;
    }
    let mut few = case.clone();
    few.start = None;
    for grains in &mut few.grains {
        if let Some(placing) = grains.generator.placing_mut() {
            placing.count = placing.count.min(SOME);
        }
    }
    Some(few)
}

/// Spheres, and vertices of polyhedra, of a shape.
fn parts(shape: &Shape) -> [u64; 2] {
    let mut found = [0; 2];
    for (_, convex) in shape.parts() {
        match convex.columns().vertices().len() as u64 {
            0 => found[0] += 1,
            vertices => found[1] += vertices,
        }
    }
    found
}

/// Collective: an error on every rank if a node has not what its ranks will need.
pub fn require(need: &Need, comm: &dyn Comm) -> Result<(), SetupError> {
    let host = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
    let beside = comm.all_gather(&host).iter().filter(|other| **other == host).count() as u64;
    let own = match available() {
        Some(there) => compare(need, comm.size() as u64, beside, &there),
        None => Ok(()),
    };
    agree(comm, own)
}

/// Whether `beside` of `ranks` ranks find what they need on a node.
pub fn compare(need: &Need, ranks: u64, beside: u64, there: &Available) -> Result<(), SetupError> {
    let each = need.of_a_rank(ranks);
    if each.saturating_mul(beside) <= there.bytes {
        return Ok(());
    }
    let fitting = |ranks: &u64| need.of_a_rank(*ranks).saturating_mul(beside) <= there.bytes;
    let enough = (0..40).map(|power| beside << power).find(fitting).map(|ranks| ranks.div_ceil(beside));
    let loose = need.of_a_loose_rank(ranks);
    Err(SetupError::Memory {
        each,
        loose,
        beside,
        there: there.bytes,
        limit: there.limit.clone(),
        nodes: enough,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spheres(count: u64) -> Need {
        Need { bodies: count, body_bytes: count * BODY, contact_bytes: count * POINTS[0] * POINT / 10 }
    }

    /// Peaks of real runs in MB: bodies, spheres and vertices of a body, whether spheres are drawn, peak.
    #[test]
    fn dense_packings_were_estimated_within_a_quarter() {
        let drawn = DRAWN * 42;
        for (count, each, points, peak) in [
            (30_000, BODY, POINTS[0], 236.0),
            (4_000, BODY + 20 * VERTEX, POINTS[1], 117.6),
            (25_000, BODY + 20 * VERTEX, POINTS[1], 426.8),
            (8_000, BODY + 4 * drawn, POINTS[2], 286.0),
        ] {
            let need =
                Need { bodies: count, body_bytes: count * each, contact_bytes: count * points * POINT / 10 };
            let estimated = need.of_a_rank(1) as f64 / 1e6;
            assert!((estimated / peak - 1.0).abs() < 0.25, "{count}: {estimated} MB, measured {peak} MB");
        }
    }

    /// Peaks of spheres of mixed size that still fall, in MB, 1.04 points each.
    #[test]
    fn loose_packings_were_estimated_within_three_tenths() {
        let peaks = [(10_000, 1, 73.6), (100_000, 1, 424.1), (1_000_000, 1, 3300.0), (1_000_000, 2, 1800.0)];
        for (count, ranks, peak) in peaks {
            let estimated = spheres(count).of_a_loose_rank(ranks) as f64 / 1e6;
            assert!((estimated / peak - 1.0).abs() < 0.3, "{count}: {estimated} MB, measured {peak} MB");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_nodes_that_would_do() {
        let there = Available { bytes: 24_000_000_000, limit: "free memory".into() };
        assert!(compare(&spheres(1_000_000), 1, 1, &there).is_ok());
        let error = compare(&spheres(1_000_000_000), 2, 2, &there).expect_err("too many");
        let SetupError::Memory { nodes: Some(nodes), each, .. } = error else { panic!("{error}") };
        assert!(nodes >= 256 && each > 3_000_000_000_000, "{nodes} {each}");
        let none = Need { body_bytes: u64::MAX, contact_bytes: u64::MAX, ..Default::default() };
        assert!(compare(&none, 1, 1, &there).is_err(), "no overflow");
    }
}
