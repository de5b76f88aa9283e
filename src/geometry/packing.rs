//! Loose placement: bodies one after the other, each dropped to where it comes to lie lowest.
//!
//! A body is its bounding sphere, radius r. Dropped straight down at (x, y), it stops at
//!
//! ```text
//! z = max( floor + r,  max over placed j within reach:  z_j + √((r + r_j)² − d_j²) )      (1)
//! ```
//!
//! with d_j the horizontal distance. Of several random (x, y) the lowest z wins. Bodies keep their order, so
//! sizes stay as mixed as they came, and the bounding spheres never overlap; `gap` keeps them apart.
//!
//! (1) needs only the spheres near the top: a grid of columns, one greatest diameter wide, holds the placed
//! ones ordered by their top, and a look from the highest down stops at the first whose top cannot be met any
//! more. The cost per body does not grow with the number of bodies. Everything is a pure function of the
//! arguments.

use super::{Aabb, Random, Vec3};
use thiserror::Error;

/// How many places are tried for each body: 10 fill a column with equal spheres to 0.37 of its volume.
const TRIES: usize = 10;

crate::words::choices! {
    /// What to do with bodies that do not fit the region.
    pub enum Overflow {
        GrowUp = "up", "the region is extended in +z until all fit";
        Refuse = "none", "the run stops with an error that says how many fit";
    }
}

#[derive(Clone, Debug, PartialEq, Error)]
pub enum PackingError {
    #[error("the region is empty: from {min:?} to {max:?}")]
    Region { min: [f64; 3], max: [f64; 3] },
    #[error("body {index} has the radius {found}; it has to be positive and finite")]
    Radius { index: usize, found: f64 },
    #[error("the gap between bodies has to be zero or positive, found {found}")]
    Gap { found: f64 },
    #[error(
        "body {index} is {needed} wide with its gap, the region only {width}: make the region wider or the bodies smaller"
    )]
    TooNarrow { index: usize, needed: f64, width: f64 },
    #[error(
        "only {fitting} of {wanted} bodies fit: make the region {needed} high (it is {height}), or let it grow upwards"
    )]
    Full { fitting: usize, wanted: usize, height: f64, needed: f64 },
}

/// Centres for bodies with the given bounding radii, inside `region`, at least `gap` apart from each other
/// and half of it from the region's sides.
pub fn place(
    radii: &[f64],
    region: &Aabb,
    gap: f64,
    overflow: Overflow,
    random: &mut Random,
) -> Result<Vec<Vec3>, PackingError> {
    let margin = 0.5 * gap;
    check(radii, region, gap)?;
    let largest = radii.iter().fold(0.0, |most: f64, r| most.max(r + margin));
    let mut columns = Columns::new(region, largest, radii.len());
    for &radius in radii {
        columns.drop(radius + margin, random);
    }
    let height = region.max.z - region.min.z;
    let tops = columns.spheres.iter().map(|ball| ball.centre.z + ball.radius - region.min.z);
    let needed = tops.clone().fold(0.0, f64::max);
    if overflow == Overflow::Refuse && needed > height {
        let fitting = tops.filter(|top| *top <= height).count();
        return Err(PackingError::Full { fitting, wanted: radii.len(), height, needed });
    }
    Ok(columns.spheres.into_iter().map(|ball| ball.centre).collect())
}

fn check(radii: &[f64], region: &Aabb, gap: f64) -> Result<(), PackingError> {
    let extent = region.max - region.min;
    if !extent.iter().all(|e| *e > 0.0 && e.is_finite()) {
        return Err(PackingError::Region { min: region.min.into(), max: region.max.into() });
    }
    if !(gap >= 0.0 && gap.is_finite()) {
        return Err(PackingError::Gap { found: gap });
    }
    let width = extent.x.min(extent.y);
    for (index, &radius) in radii.iter().enumerate() {
        if !(radius > 0.0 && radius.is_finite()) {
            return Err(PackingError::Radius { index, found: radius });
        }
        let needed = 2.0 * radius + gap;
        if needed > width {
            return Err(PackingError::TooNarrow { index, needed, width });
        }
    }
    Ok(())
}

struct Ball {
    centre: Vec3,
    radius: f64,
}

struct Columns<'a> {
    region: &'a Aabb,
    spheres: Vec<Ball>,
    /// Along x and y.
    count: [usize; 2],
    /// Width of a column along x and y, at least the largest diameter.
    width: [f64; 2],
    /// In each column the spheres whose centre it holds, lowest top first.
    columns: Vec<Vec<u32>>,
}

impl<'a> Columns<'a> {
    fn new(region: &'a Aabb, largest: f64, bodies: usize) -> Self {
        let extent = region.max - region.min;
        // Not many more columns than bodies, however wide the region is.
        let most = 1.0 + (bodies as f64).sqrt();
        let count = [extent.x, extent.y].map(|e| (e / (2.0 * largest)).floor().clamp(1.0, most) as usize);
        let width = [extent.x / count[0] as f64, extent.y / count[1] as f64];
        let columns = vec![Vec::new(); count[0] * count[1]];
        Columns { region, spheres: Vec::with_capacity(bodies), count, width, columns }
    }

    /// The column that holds a coordinate, along one horizontal axis.
    fn column(&self, axis: usize, x: f64) -> usize {
        let index = ((x - self.region.min[axis]) / self.width[axis]).floor().max(0.0) as usize;
        index.min(self.count[axis] - 1)
    }

    fn drop(&mut self, radius: f64, random: &mut Random) {
        let mut best = Vec3::repeat(f64::INFINITY);
        for _ in 0..TRIES {
            let mut at = |axis: usize| {
                let (low, high) = (self.region.min[axis] + radius, self.region.max[axis] - radius);
                // A body as wide as the region stands in its middle.
                if low < high { random.between(low, high) } else { 0.5 * (low + high) }
            };
            let (x, y) = (at(0), at(1));
            let z = self.resting_height(x, y, radius, best.z);
            if z < best.z {
                best = Vec3::new(x, y, z);
            }
        }
        let index = self.spheres.len() as u32;
        let column = self.column(1, best.y) * self.count[0] + self.column(0, best.x);
        let spheres = &self.spheres;
        let top = |i: u32| spheres[i as usize].centre.z + spheres[i as usize].radius;
        let place = self.columns[column].partition_point(|&i| top(i) <= best.z + radius);
        self.columns[column].insert(place, index);
        self.spheres.push(Ball { centre: best, radius });
    }

    /// (1), or something not below `enough` once it is clear that the result is not.
    fn resting_height(&self, x: f64, y: f64, radius: f64, enough: f64) -> f64 {
        let mut z = self.region.min.z + radius;
        let (i, j) = (self.column(0, x), self.column(1, y));
        // Its own column first: what is found there spares most of the others.
        z = self.raised(z, x, y, radius, j * self.count[0] + i);
        for row in j.saturating_sub(1)..(j + 2).min(self.count[1]) {
            for column in i.saturating_sub(1)..(i + 2).min(self.count[0]) {
                if z >= enough {
                    return z;
                }
                if (column, row) != (i, j) {
                    z = self.raised(z, x, y, radius, row * self.count[0] + column);
                }
            }
        }
        z
    }

    /// The height raised from `z` until the sphere rests on those of one column.
    fn raised(&self, mut z: f64, x: f64, y: f64, radius: f64, column: usize) -> f64 {
        for &index in self.columns[column].iter().rev() {
            let ball = &self.spheres[index as usize];
            if ball.centre.z + ball.radius + radius <= z {
                break; // all further ones are lower still
            }
            let (dx, dy) = (x - ball.centre.x, y - ball.centre.y);
            let reach = radius + ball.radius;
            let square = reach * reach - (dx * dx + dy * dy);
            if square > 0.0 {
                z = z.max(ball.centre.z + square.sqrt());
            }
        }
        z
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn region(x: f64, y: f64, z: f64) -> Aabb {
        let min = Vec3::new(-1.0, 2.0, 0.5);
        Aabb { min, max: min + Vec3::new(x, y, z) }
    }

    fn assert_apart(centres: &[Vec3], radii: &[f64], region: &Aabb, gap: f64) {
        let close = 1e-12;
        for (i, (a, ra)) in centres.iter().zip(radii).enumerate() {
            for k in 0..3 {
                assert!(a[k] - ra >= region.min[k] + 0.5 * gap - close, "{i} sticks out below");
                assert!(k == 2 || a[k] + ra <= region.max[k] - 0.5 * gap + close, "{i} sticks out");
            }
            for (b, rb) in centres[..i].iter().zip(radii) {
                assert!((a - b).norm() >= ra + rb + gap - close, "{i} overlaps");
            }
        }
    }

    fn mixed(count: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed, 0);
        (0..count).map(|_| random.between(0.01, 0.1)).collect()
    }

    #[test]
    fn mixed_sizes_never_overlap() {
        for (seed, gap) in [(1, 0.0), (2, 1e-3), (3, 0.05)] {
            let radii = mixed(1500, seed);
            let region = region(1.0, 0.8, 1.0);
            let random = &mut Random::new(seed, 1);
            let centres = place(&radii, &region, gap, Overflow::GrowUp, random).expect("grows");
            assert_apart(&centres, &radii, &region, gap);
        }
    }

    #[test]
    fn the_column_is_filled_evenly() {
        let region = region(1.0, 1.0, 1.0);
        let radii = vec![0.02; 8000];
        let centres = place(&radii, &region, 0.0, Overflow::GrowUp, &mut Random::new(5, 0)).expect("grows");
        let top = centres.iter().map(|c| c.z).fold(0.0, f64::max) - region.min.z;
        let filled = 8000.0 * 4.0 / 3.0 * std::f64::consts::PI * 0.02f64.powi(3) / top;
        assert!(filled > 0.33 && filled < 0.5, "solid fraction of equal spheres: {filled}");
    }

    #[test]
    fn what_does_not_fit_is_told_and_the_advice_is_right() {
        let radii = mixed(1500, 4);
        let low = region(1.0, 1.0, 0.7);
        let draw = |region: &Aabb| place(&radii, region, 0.001, Overflow::Refuse, &mut Random::new(3, 3));
        let Err(PackingError::Full { fitting, wanted: 1500, height, needed }) = draw(&low) else {
            panic!("should not fit");
        };
        assert!(fitting > 100 && fitting < 1500 && height == low.max.z - low.min.z && needed > height);
        assert_eq!(draw(&region(1.0, 1.0, needed * (1.0 + 1e-12))).map(|c| c.len()), Ok(1500));
        assert!(draw(&region(1.0, 1.0, needed * 0.999)).is_err());
    }

    #[test]
    fn bad_arguments_are_named() {
        let good = region(1.0, 1.0, 1.0);
        let draw = |radii: &[f64], region: &Aabb, gap| {
            place(radii, region, gap, Overflow::GrowUp, &mut Random::new(0, 0))
        };
        assert_eq!(draw(&[], &good, 0.0), Ok(vec![]));
        assert_eq!(
            draw(&[0.5], &good, 0.0).map(|c| c[0]),
            Ok(Vec3::new(-0.5, 2.5, 1.0)),
            "as wide as the region"
        );
        assert!(matches!(draw(&[0.1, 0.0], &good, 0.0), Err(PackingError::Radius { index: 1, .. })));
        assert!(matches!(draw(&[f64::NAN], &good, 0.0), Err(PackingError::Radius { index: 0, .. })));
        assert!(matches!(draw(&[0.1, 0.5], &good, 0.1), Err(PackingError::TooNarrow { index: 1, .. })));
        assert!(matches!(draw(&[0.1], &good, -1.0), Err(PackingError::Gap { .. })));
        assert!(matches!(draw(&[0.1], &region(1.0, 0.0, 1.0), 0.0), Err(PackingError::Region { .. })));
        assert!(matches!(
            draw(&[0.1], &region(1.0, f64::INFINITY, 1.0), 0.0),
            Err(PackingError::Region { .. })
        ));
    }

    /// The time per body must not grow with the height of the column: about 4 µs a body in both. (Looking
    /// through whole columns made the tall one 27 times slower.)
    #[test]
    fn a_tall_column_costs_no_more_than_a_wide_one() {
        let radii = mixed(50_000, 6);
        let seconds = |width: f64| {
            let region = region(width, width, 1.0);
            let start = std::time::Instant::now();
            let placed = place(&radii, &region, 1e-3, Overflow::GrowUp, &mut Random::new(1, 1));
            assert_eq!(placed.map(|centres| centres.len()), Ok(50_000));
            start.elapsed().as_secs_f64()
        };
        let (wide, tall) = (seconds(9.0), seconds(1.0));
        assert!(tall < 8.0 * wide, "{tall} s against {wide} s");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_mixture(
            radii in prop::collection::vec(0.001f64..0.25, 1..200),
            x in 0.52f64..3.0,
            y in 0.52f64..3.0,
            seed in 0u64..100,
        ) {
            let region = region(x, y, 1.0);
            let centres = place(&radii, &region, 0.01, Overflow::GrowUp, &mut Random::new(seed, 0)).expect("grows");
            assert_apart(&centres, &radii, &region, 0.01);
        }
    }
}
