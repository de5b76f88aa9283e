//! One stone of crushed rock.
//!
//! Crushing breaks rock along planes, so a stone is what is left of space between random planes:
//!
//! 1. Planes n·x ≤ d with well spread directions n (each the best of some random ones) and d in 1 ±
//!    roughness. Three planes meet at a vertex, so F planes give 2F − 4 vertices: 14 or 15 planes for about
//!    25 vertices. The vertices come from the convex hull of the dual points n/d: a face m·y = e of that hull
//!    is the vertex m/e.
//! 2. In the principal frame of inertia the stone is stretched along the axes until its extents L ≥ I ≥ S
//!    have the drawn ratios: *elongation* I/L and *flatness* S/I, each normal, cut off. Stretching along
//!    principal axes keeps them principal.
//! 3. The whole is scaled to the wanted sieve size (`sieve.rs`).
//!
//! The stone stands in its principal frame, L along x, S along z, centre of mass at the origin; turning it at
//! random is the caller's business. All of it is a pure function of the parameters, the size and the stream
//! of random numbers.

use super::sieve::sieve_size;
use super::{Convex, Polyhedron, Random, Shape, Vec3, convex_hull, mass_properties};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use thiserror::Error;

/// Mean and spread of a ratio of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    pub mean: f64,
    pub standard_deviation: f64,
}

/// The shape of a stone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoneParameters {
    /// About how many vertices, 8 to 200; default 25.
    pub vertices: u32,
    /// Intermediate over longest extent; default 0.7 ± 0.1, between 0.3 and 1. Drawn values stay within
    /// three standard deviations, and within 0.2 and 1.
    pub elongation: Ratio,
    /// Shortest over intermediate extent; default 0.7 ± 0.1, as for the elongation.
    pub flatness: Ratio,
    /// How much the distances of the planes vary, 0 to 0.3: 0 for a regular, rounder stone; default 0.15.
    pub roughness: f64,
}

impl Default for StoneParameters {
    fn default() -> Self {
        let ratio = Ratio { mean: 0.7, standard_deviation: 0.1 };
        Self { vertices: 25, elongation: ratio, flatness: ratio, roughness: 0.15 }
    }
}

#[derive(Clone, Debug, PartialEq, Error)]
pub enum StoneError {
    #[error("a stone has 8 to 200 vertices, found {found}")]
    Vertices { found: u32 },
    #[error("{name} has a mean between 0.3 and 1, found {found}")]
    Mean { name: &'static str, found: f64 },
    #[error("{name} has a standard deviation between 0 and 0.3, found {found}")]
    Deviation { name: &'static str, found: f64 },
    #[error("roughness lies between 0 and 0.3, found {found}")]
    Roughness { found: f64 },
}

impl StoneParameters {
    /// Whether `stone` accepts these.
    pub fn check(&self) -> Result<(), StoneError> {
        if !(8..=200).contains(&self.vertices) {
            return Err(StoneError::Vertices { found: self.vertices });
        }
        for (name, ratio) in [("elongation", self.elongation), ("flatness", self.flatness)] {
            if !(0.3..=1.0).contains(&ratio.mean) {
                return Err(StoneError::Mean { name, found: ratio.mean });
            }
            if !(0.0..=0.3).contains(&ratio.standard_deviation) {
                return Err(StoneError::Deviation { name, found: ratio.standard_deviation });
            }
        }
        if !(0.0..=0.3).contains(&self.roughness) {
            return Err(StoneError::Roughness { found: self.roughness });
        }
        Ok(())
    }
}

impl Ratio {
    fn draw(&self, random: &mut Random) -> f64 {
        loop {
            let deviation = random.normal();
            if deviation.abs() <= 3.0 {
                return (self.mean + deviation * self.standard_deviation).clamp(0.2, 1.0);
            }
        }
    }
}

/// A stone of the given sieve size (positive), from parameters that pass their `check`.
pub fn stone(parameters: &StoneParameters, sieve_size: f64, random: &mut Random) -> Polyhedron {
    let elongation = parameters.elongation.draw(random);
    let flatness = parameters.flatness.draw(random);
    let extents = Vec3::new(1.0, elongation, elongation * flatness);
    // Planes that leave a long spike, or space unbounded, are drawn again. Few planes can hardly avoid
    // spikes, so every attempt allows longer ones.
    let mut reach = 1.0;
    loop {
        reach += 0.2;
        let planes = fracture_planes(parameters, random);
        if let Some(stone) = cut(&planes, reach).and_then(|rock| shaped(&rock, &extents, sieve_size)) {
            return stone;
        }
    }
}

/// Directions, and distances from the origin.
fn fracture_planes(parameters: &StoneParameters, random: &mut Random) -> Vec<(Vec3, f64)> {
    // Each new direction is the one of this many that is farthest from all before.
    const CHOICES: usize = 4;
    // 2F − 4 = vertices on average.
    let count = (f64::from(parameters.vertices) / 2.0 + 2.0 + random.uniform()).floor() as usize;
    let mut planes: Vec<(Vec3, f64)> = Vec::with_capacity(count);
    while planes.len() < count {
        let mut best = (f64::INFINITY, Vec3::z());
        for _ in 0..CHOICES {
            let direction = random.direction();
            let nearest = planes.iter().map(|(n, _)| n.dot(&direction)).fold(-1.0, f64::max);
            if nearest < best.0 {
                best = (nearest, direction);
            }
        }
        let distance = random.between(1.0 - parameters.roughness, 1.0 + parameters.roughness);
        planes.push((best.1, distance));
    }
    planes
}

/// The polyhedron between planes; `None` if a vertex lies farther out than `reach` mean distances.
fn cut(planes: &[(Vec3, f64)], reach: f64) -> Option<Polyhedron> {
    let dual: Vec<Vec3> = planes.iter().map(|(normal, distance)| normal / *distance).collect();
    let dual = convex_hull(&dual).ok()?;
    if dual.faces.iter().any(|face| face.offset < 1.0 / reach) {
        return None;
    }
    let vertices: Vec<Vec3> = dual.faces.iter().map(|face| face.normal / face.offset).collect();
    convex_hull(&vertices).ok()
}

/// Stretched to extents in the ratios of `extents` (longest first) and scaled to the sieve size.
fn shaped(rock: &Polyhedron, extents: &Vec3, wanted_size: f64) -> Option<Polyhedron> {
    let rock = principal(rock)?;
    let found = widths(&rock.vertices);
    let mut order = [0, 1, 2];
    order.sort_by(|&a, &b| found[b].total_cmp(&found[a]));
    let mut points: Vec<Vec3> = rock
        .vertices
        .iter()
        .map(|p| Vec3::from_fn(|k, _| p[order[k]] * (extents[k] / found[order[k]])))
        .collect();
    let scale = wanted_size / sieve_size(&points);
    for point in &mut points {
        *point *= scale;
    }
    // Sorting the axes may have mirrored the rock; the mirror image is as good a stone.
    convex_hull(&points).ok()
}

/// The polyhedron in its principal frame.
fn principal(polyhedron: &Polyhedron) -> Option<Polyhedron> {
    let shape = Shape::polyhedron(polyhedron.clone());
    let properties = mass_properties(&shape, 1.0).ok()?;
    match shape.recentred(&properties) {
        Shape::Convex(Convex::Polyhedron(moved)) => Some(Arc::unwrap_or_clone(moved)),
        _ => None,
    }
}

/// Extents along the coordinate axes.
fn widths(points: &[Vec3]) -> Vec3 {
    let (min, max) = points.iter().fold((points[0], points[0]), |(min, max), p| (min.inf(p), max.sup(p)));
    max - min
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stones(parameters: &StoneParameters, count: u64, size: f64) -> Vec<Polyhedron> {
        (0..count).map(|k| stone(parameters, size, &mut Random::new(11, k))).collect()
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / values.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn a_stone_depends_only_on_its_stream() {
        let parameters = StoneParameters::default();
        let draw = |k| stone(&parameters, 0.04, &mut Random::new(1, k));
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(6));
    }

    #[test]
    fn vertices_ratios_and_size_are_as_asked() {
        let parameters = StoneParameters::default();
        let stones = stones(&parameters, 400, 0.04);
        let counts: Vec<f64> = stones.iter().map(|s| s.vertices.len() as f64).collect();
        let (count, _) = mean_and_deviation(&counts);
        assert!((count - 25.0).abs() < 1.0, "{count} vertices");
        assert!(counts.iter().all(|n| (16.0..=26.0).contains(n)));
        let ratios: Vec<Vec3> = stones.iter().map(|s| widths(&s.vertices)).collect();
        for (numerator, denominator) in [(1, 0), (2, 1)] {
            let values: Vec<f64> = ratios.iter().map(|w| w[numerator] / w[denominator]).collect();
            let (mean, deviation) = mean_and_deviation(&values);
            assert!((mean - 0.7).abs() < 0.02 && (deviation - 0.1).abs() < 0.02, "{mean} ± {deviation}");
            assert!(values.iter().all(|x| (0.39..=1.0 + 1e-12).contains(x)));
        }
        for stone in &stones {
            assert!((sieve_size(&stone.vertices) / 0.04 - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn stones_stand_in_their_principal_frame() {
        for stone in stones(&StoneParameters::default(), 100, 0.05) {
            let radius = stone.bounding_radius;
            let shape = Shape::polyhedron(stone);
            let found = mass_properties(&shape, 2700.0).expect("a mass");
            assert!(found.centre.norm() < 1e-13 * radius);
            let turn = found.principal_rotation.to_rotation_matrix();
            // A nearly round stone may hold its axes by little, but they are there.
            assert!((turn.matrix().abs() - nalgebra::Matrix3::identity()).amax() < 1e-6, "{found:?}");
        }
    }

    fn area(stone: &Polyhedron) -> f64 {
        let triangle = |a: Vec3, b: Vec3, c: Vec3| 0.5 * (b - a).cross(&(c - a)).norm();
        let of_face = |ring: &[u32]| {
            let at = |i: usize| stone.vertices[ring[i] as usize];
            (1..ring.len() - 1).map(|i| triangle(at(0), at(i), at(i + 1))).sum::<f64>()
        };
        stone.faces.iter().map(|face| of_face(&face.vertices)).sum()
    }

    /// Angular but compact: scanned ballast has a sphericity (surface of the ball of equal volume over
    /// surface) of about 0.8 to 0.87.
    #[test]
    fn stones_are_compact_and_angular() {
        let stones = stones(&StoneParameters::default(), 300, 1.0);
        let sphericity =
            |s: &Polyhedron| (std::f64::consts::PI * (6.0 * s.volume()).powi(2)).cbrt() / area(s);
        let values: Vec<f64> = stones.iter().map(sphericity).collect();
        let (mean, deviation) = mean_and_deviation(&values);
        assert!(mean > 0.82 && mean < 0.86 && deviation < 0.04, "sphericity {mean} ± {deviation}");
        let volumes: Vec<f64> = stones.iter().map(Polyhedron::volume).collect();
        let (mean, deviation) = mean_and_deviation(&volumes);
        assert!(mean > 0.6 && mean < 0.8 && deviation < 0.15, "volume at size 1: {mean} ± {deviation}");
        assert!(stones.iter().all(|s| s.faces.iter().any(|f| f.vertices.len() > 4)), "broad faces");
    }

    #[test]
    fn extreme_parameters_still_give_stones() {
        let thin = Ratio { mean: 0.3, standard_deviation: 0.3 };
        let round = Ratio { mean: 1.0, standard_deviation: 0.0 };
        for vertices in [8, 12, 60, 200] {
            for (ratio, roughness) in [(thin, 0.3), (round, 0.0)] {
                let parameters = StoneParameters { vertices, elongation: ratio, flatness: ratio, roughness };
                parameters.check().expect("legal");
                for stone in stones(&parameters, 10, 0.01) {
                    assert!(stone.vertices.len() >= 4 && stone.volume() > 0.0);
                }
            }
        }
    }

    #[test]
    fn bad_parameters_are_named() {
        let good = StoneParameters::default();
        assert_eq!(good.check(), Ok(()));
        assert!(matches!(
            StoneParameters { vertices: 7, ..good }.check(),
            Err(StoneError::Vertices { found: 7 })
        ));
        let ratio = |mean, standard_deviation| Ratio { mean, standard_deviation };
        let bad = StoneParameters { flatness: ratio(1.2, 0.1), ..good };
        assert!(matches!(bad.check(), Err(StoneError::Mean { name: "flatness", .. })));
        let bad = StoneParameters { elongation: ratio(0.7, f64::NAN), ..good };
        assert!(matches!(bad.check(), Err(StoneError::Deviation { name: "elongation", .. })));
        assert!(matches!(
            StoneParameters { roughness: -0.1, ..good }.check(),
            Err(StoneError::Roughness { .. })
        ));
    }
}
