//! Sizes of stones: grading curves by mass, and simpler distributions.
//!
//! A grading curve says what share of the *mass* passes each sieve; between two sieves it is a straight line.
//! A stone's mass grows as its size cubed, so between sieves a and b the *number* of stones of size s has the
//! density
//!
//! ```text
//! n(s) ∝ m / (b − a) · s⁻³,   m the mass share between the sieves            (1)
//! ∫ n = m (a + b) / (2 a² b²)                                               (2)
//! s(u)⁻² = a⁻² − u (a⁻² − b⁻²),   u uniform in [0, 1)                        (3)
//! ```
//!
//! Stone k takes u as the fractional part of `start + k φ`, φ the golden ratio, `start` from the seed: any
//! run of stones then covers the distribution far more evenly than independent draws would, so some hundred
//! stones already follow the curve, and a stone's size depends on (seed, k) only.

use super::random::{Random, fraction};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The stream of random numbers that `start` comes from; grains use their own number as stream.
const START_STREAM: u64 = u64::MAX;
/// The golden ratio's fractional part, times 2⁶⁴.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Share of the mass, in percent, that passes a sieve of square apertures with side `sieve` (m).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Passing {
    pub sieve: f64,
    pub percent: f64,
}

/// The legal range of one point of a grading curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassingLimit {
    pub sieve: f64,
    pub least: f64,
    pub most: f64,
}

/// EN 13450, ballast 31.5/50, category A.
pub const EN_13450_A: [PassingLimit; 5] = [
    PassingLimit { sieve: 0.0224, least: 0.0, most: 3.0 },
    PassingLimit { sieve: 0.0315, least: 1.0, most: 25.0 },
    PassingLimit { sieve: 0.04, least: 30.0, most: 65.0 },
    PassingLimit { sieve: 0.05, least: 70.0, most: 99.0 },
    PassingLimit { sieve: 0.063, least: 100.0, most: 100.0 },
];

#[derive(Clone, Debug, PartialEq, Error)]
pub enum GradingError {
    #[error("a grading curve needs at least two sieves, found {found}")]
    TooFew { found: usize },
    #[error("sieve {index} of the grading curve: sizes have to be positive and to grow, found {found}")]
    Sieve { index: usize, found: f64 },
    #[error("sieve {index} of the grading curve: percent passing has to grow from 0 to 100, found {found}")]
    Percent { index: usize, found: f64 },
    #[error("the grading curve starts at {found} percent; the finest sieve has to pass 0")]
    Start { found: f64 },
    #[error("the grading curve ends at {found} percent; the coarsest sieve has to pass 100")]
    End { found: f64 },
    #[error("a size has to be positive and finite, found {found}")]
    Size { found: f64 },
    #[error("the least size {least} is larger than the greatest {greatest}")]
    Order { least: f64, greatest: f64 },
}

/// A checked grading curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Grading {
    points: Vec<Passing>,
    /// Share of the number of stones finer than each point, from 0 to 1, by (2).
    numbers: Vec<f64>,
}

impl Grading {
    /// From points with growing sieves, from 0 to 100 percent.
    pub fn new(points: Vec<Passing>) -> Result<Self, GradingError> {
        if points.len() < 2 {
            return Err(GradingError::TooFew { found: points.len() });
        }
        for (index, point) in points.iter().enumerate() {
            let before = index.checked_sub(1).map(|i| points[i]);
            let finer = before.map_or(0.0, |p| p.sieve);
            if !(point.sieve > finer && point.sieve.is_finite()) {
                return Err(GradingError::Sieve { index, found: point.sieve });
            }
            if !(before.map_or(0.0, |p| p.percent)..=100.0).contains(&point.percent) {
                return Err(GradingError::Percent { index, found: point.percent });
            }
        }
        let (first, last) = (points[0], points[points.len() - 1]);
        if first.percent != 0.0 {
            return Err(GradingError::Start { found: first.percent });
        }
        if last.percent != 100.0 {
            return Err(GradingError::End { found: last.percent });
        }
        let numbers = numbers(&points);
        Ok(Grading { points, numbers })
    }

    /// The middle of EN 13450 category A, but nothing below 22.4 mm: the standard allows 3 % there, and
    /// already 1.5 % between 16 and 22.4 mm would add a tenth to the number of stones.
    pub fn en_13450_a() -> Self {
        let middle =
            |limit: &PassingLimit| Passing { sieve: limit.sieve, percent: 0.5 * (limit.least + limit.most) };
        let mut points: Vec<Passing> = EN_13450_A.iter().map(middle).collect();
        points[0].percent = 0.0;
        let numbers = numbers(&points);
        Grading { points, numbers }
    }

    pub fn points(&self) -> &[Passing] {
        &self.points
    }

    /// (3): the size below which lies the share `u` of the *number* of stones.
    fn size(&self, u: f64) -> f64 {
        let last = self.numbers.len() - 1;
        let upper = self.numbers.partition_point(|&share| share <= u).clamp(1, last);
        let (below, above) = (self.numbers[upper - 1], self.numbers[upper]);
        let (a, b) = (self.points[upper - 1].sieve, self.points[upper].sieve);
        let within = if above > below { (u - below) / (above - below) } else { 0.0 };
        let inverse_square = 1.0 / (a * a) * (1.0 - within) + within / (b * b);
        (1.0 / inverse_square.sqrt()).clamp(a, b)
    }

    /// Mean of size³ over the number of stones, by (1): mass over number.
    fn mean_cube(&self) -> f64 {
        1.0 / unscaled_numbers(&self.points).sum::<f64>()
    }
}

/// (2) for each interval of a curve, with mass shares that add up to 1.
fn unscaled_numbers(points: &[Passing]) -> impl Iterator<Item = f64> {
    points.windows(2).map(|pair| {
        let (a, b) = (pair[0].sieve, pair[1].sieve);
        0.01 * (pair[1].percent - pair[0].percent) * (a + b) / (2.0 * (a * b) * (a * b))
    })
}

fn numbers(points: &[Passing]) -> Vec<f64> {
    let total: f64 = unscaled_numbers(points).sum();
    let mut sum = 0.0;
    let mut shares = vec![0.0];
    shares.extend(unscaled_numbers(points).map(|number| {
        sum += number / total;
        sum
    }));
    shares
}

/// How sizes (sieve sizes of stones, diameters of spheres) are distributed.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeDistribution {
    /// All the same.
    Single(f64),
    /// Each size between the two as often as any other (by number).
    Uniform { least: f64, greatest: f64 },
    /// By mass.
    Grading(Grading),
}

impl SizeDistribution {
    pub fn single(size: f64) -> Result<Self, GradingError> {
        Self::uniform(size, size)?;
        Ok(SizeDistribution::Single(size))
    }

    pub fn uniform(least: f64, greatest: f64) -> Result<Self, GradingError> {
        for found in [least, greatest] {
            if !(found > 0.0 && found.is_finite()) {
                return Err(GradingError::Size { found });
            }
        }
        if least > greatest {
            return Err(GradingError::Order { least, greatest });
        }
        Ok(SizeDistribution::Uniform { least, greatest })
    }

    /// The size of grain `k` under a seed.
    pub fn size(&self, seed: u64, k: u64) -> f64 {
        let start = Random::new(seed, START_STREAM).bits();
        let u = fraction(start.wrapping_add(k.wrapping_mul(GOLDEN)));
        match self {
            SizeDistribution::Single(size) => *size,
            SizeDistribution::Uniform { least, greatest } => least + (greatest - least) * u,
            SizeDistribution::Grading(grading) => grading.size(u),
        }
    }

    /// Least and greatest size.
    pub fn range(&self) -> (f64, f64) {
        match self {
            SizeDistribution::Single(size) => (*size, *size),
            SizeDistribution::Uniform { least, greatest } => (*least, *greatest),
            SizeDistribution::Grading(grading) => {
                (grading.points[0].sieve, grading.points[grading.points.len() - 1].sieve)
            }
        }
    }

    /// Mean of size³, by number: times shape factor and density, the mean mass of a grain.
    pub fn mean_cube(&self) -> f64 {
        match self {
            SizeDistribution::Single(size) => size * size * size,
            SizeDistribution::Uniform { least: a, greatest: b } => (a * a + b * b) * (a + b) / 4.0,
            SizeDistribution::Grading(grading) => grading.mean_cube(),
        }
    }
}

/// The percentage of mass that passes each of `sieves`: stones given by mass and size. Zero without stones.
pub fn achieved(masses: &[f64], sizes: &[f64], sieves: &[f64]) -> Vec<Passing> {
    let total: f64 = masses.iter().sum();
    let passing = |sieve: f64| {
        let passed: f64 =
            masses.iter().zip(sizes).filter(|&(_, &size)| size <= sieve).map(|(mass, _)| mass).sum();
        // In this order all of the mass is exactly 100.
        if total > 0.0 { 100.0 * (passed / total) } else { 0.0 }
    };
    sieves.iter().map(|&sieve| Passing { sieve, percent: passing(sieve) }).collect()
}

/// The sieves of `limits` at which stones, given by mass and size, pass too little or too much; none if all
/// is well.
pub fn outside_limits(
    masses: &[f64],
    sizes: &[f64],
    limits: &[PassingLimit],
) -> Vec<(PassingLimit, Passing)> {
    let sieves: Vec<f64> = limits.iter().map(|limit| limit.sieve).collect();
    let found = achieved(masses, sizes, &sieves);
    limits
        .iter()
        .copied()
        .zip(found)
        .filter(|(limit, passing)| !(limit.least..=limit.most).contains(&passing.percent))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{StoneParameters, stone};

    fn draw(distribution: &SizeDistribution, seed: u64, count: u64) -> Vec<f64> {
        (0..count).map(|k| distribution.size(seed, k)).collect()
    }

    fn cubes(sizes: &[f64]) -> Vec<f64> {
        sizes.iter().map(|s| s * s * s).collect()
    }

    #[test]
    fn masses_follow_the_curve() {
        let grading = Grading::en_13450_a();
        // Between the given sieves too, where the curve is a straight line.
        let mut expected = grading.points().to_vec();
        for pair in grading.points().windows(2) {
            let middle = |a: f64, b: f64| 0.5 * (a + b);
            expected.push(Passing {
                sieve: middle(pair[0].sieve, pair[1].sieve),
                percent: middle(pair[0].percent, pair[1].percent),
            });
        }
        let distribution = SizeDistribution::Grading(grading);
        for (count, tolerance) in [(300, 3.0), (3_000, 0.5), (100_000, 0.02)] {
            for seed in 0..5 {
                let sizes = draw(&distribution, seed, count);
                let sieves: Vec<f64> = expected.iter().map(|p| p.sieve).collect();
                for (found, wanted) in achieved(&cubes(&sizes), &sizes, &sieves).iter().zip(&expected) {
                    let error = (found.percent - wanted.percent).abs();
                    assert!(error < tolerance, "{count} stones: {found:?} instead of {wanted:?}");
                }
            }
        }
    }

    /// True stones: their volume varies at equal size, and 200 of them are within the standard all the same.
    #[test]
    fn two_hundred_stones_satisfy_en_13450() {
        let distribution = SizeDistribution::Grading(Grading::en_13450_a());
        let parameters = StoneParameters::default();
        for seed in 0..3 {
            let sizes = draw(&distribution, seed, 200);
            let masses: Vec<f64> = (0..200)
                .map(|k| stone(&parameters, sizes[k as usize], &mut Random::new(seed, k)).volume())
                .collect();
            assert_eq!(outside_limits(&masses, &sizes, &EN_13450_A), vec![], "seed {seed}");
        }
    }

    #[test]
    fn mean_cubes_are_those_of_draws() {
        let distributions = [
            SizeDistribution::single(0.03).expect("legal"),
            SizeDistribution::uniform(0.01, 0.1).expect("legal"),
            SizeDistribution::Grading(Grading::en_13450_a()),
        ];
        for distribution in distributions {
            let sizes = draw(&distribution, 3, 50_000);
            let mean = cubes(&sizes).iter().sum::<f64>() / 50_000.0;
            assert!((mean / distribution.mean_cube() - 1.0).abs() < 1e-3, "{distribution:?}");
            let (least, greatest) = distribution.range();
            assert!(sizes.iter().all(|s| (least..=greatest).contains(s)));
        }
    }

    #[test]
    fn a_step_in_the_curve_draws_nothing_there() {
        let point = |sieve, percent| Passing { sieve, percent };
        let curve = vec![point(1.0, 0.0), point(2.0, 40.0), point(3.0, 40.0), point(4.0, 100.0)];
        let sizes = draw(&SizeDistribution::Grading(Grading::new(curve).expect("legal")), 8, 10_000);
        assert!(sizes.iter().all(|s| !(2.0..3.0).contains(s) || *s == 2.0));
        let found = achieved(&cubes(&sizes), &sizes, &[2.0])[0].percent;
        assert!((found - 40.0).abs() < 0.1, "{found}");
    }

    #[test]
    fn limits_name_what_is_wrong() {
        let sizes = vec![0.03; 10];
        let wrong = outside_limits(&[1.0; 10], &sizes, &EN_13450_A);
        let sieves: Vec<f64> = wrong.iter().map(|(limit, _)| limit.sieve).collect();
        assert_eq!(sieves, vec![0.0315, 0.04, 0.05], "all of it passes 31.5 mm");
        assert!(wrong.iter().all(|(_, passing)| passing.percent == 100.0));
        assert_eq!(achieved(&[], &[], &[1.0])[0].percent, 0.0);
    }

    #[test]
    fn bad_curves_are_named() {
        let curve = |points: &[(f64, f64)]| {
            Grading::new(points.iter().map(|&(sieve, percent)| Passing { sieve, percent }).collect())
        };
        assert!(matches!(curve(&[(1.0, 100.0)]), Err(GradingError::TooFew { found: 1 })));
        assert!(matches!(curve(&[(0.0, 0.0), (1.0, 100.0)]), Err(GradingError::Sieve { index: 0, .. })));
        assert!(matches!(curve(&[(2.0, 0.0), (1.0, 100.0)]), Err(GradingError::Sieve { index: 1, .. })));
        assert!(matches!(curve(&[(1.0, 0.0), (f64::NAN, 100.0)]), Err(GradingError::Sieve { index: 1, .. })));
        assert!(matches!(curve(&[(1.0, -1.0), (2.0, 100.0)]), Err(GradingError::Percent { index: 0, .. })));
        let falling = [(1.0, 0.0), (2.0, 50.0), (3.0, 40.0), (4.0, 100.0)];
        assert!(matches!(curve(&falling), Err(GradingError::Percent { index: 2, .. })));
        assert!(matches!(curve(&[(1.0, 3.0), (2.0, 100.0)]), Err(GradingError::Start { .. })));
        assert!(matches!(curve(&[(1.0, 0.0), (2.0, 99.0)]), Err(GradingError::End { .. })));
        assert!(matches!(SizeDistribution::single(0.0), Err(GradingError::Size { .. })));
        assert!(matches!(SizeDistribution::uniform(2.0, 1.0), Err(GradingError::Order { .. })));
        assert_eq!(Grading::new(Grading::en_13450_a().points().to_vec()), Ok(Grading::en_13450_a()));
    }
}
