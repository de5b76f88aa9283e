//! Sums of numbers that do not depend on their order, for about the price of plain additions, where the size
//! of the sum is known beforehand.
//!
//! Each number is rounded to a multiple of one unit, by adding and taking away `1.5 · 2⁵²` units. Sums of
//! such multiples are exact while they are below 2⁵³ units, hence commutative and associative. A sum that is
//! not as large as was expected says so, and is to be had from an [`ExactSum`](crate::ExactSum).

use crate::comm::Comm;

/// Which multiples numbers are rounded to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// A power of two.
    unit: f64,
}

/// Units in the sum that was expected, at least.
const EXPECTED: f64 = (1_u64 << 38) as f64;
/// Units in a sum that is fine enough: it may fall to a thousandth.
const LEAST: i64 = 1 << 28;
/// Units in a sum that is certainly exact on each of up to 2¹⁷ ranks, and with them all: it may grow by a
/// factor of 128.
const MOST: i64 = 1 << 46;
const PIVOT: f64 = 1.5 * (1_u64 << 52) as f64;

impl Grid {
    /// For sums of numbers ≥ 0 about as large as `expected`; none for those that are zero or at the ends of
    /// what an f64 can hold.
    pub fn for_sum(expected: f64) -> Option<Self> {
        let power = f64::from_bits(expected.to_bits() & (0x7ff << 52));
        (1e-250..1e250).contains(&expected).then_some(Self { unit: power / EXPECTED })
    }

    /// What rounds a number `x ≥ 0` to a multiple, as `(x + pivot) − pivot`.
    pub fn pivot(&self) -> f64 {
        PIVOT * self.unit
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridSum {
    grid: Grid,
    units: i64,
}

impl GridSum {
    pub fn new(grid: Grid) -> Self {
        Self { grid, units: 0 }
    }

    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// Adds a number ≥ 0.
    pub fn add(&mut self, value: f64) {
        let pivot = self.grid.pivot();
        self.add_rounded((value + pivot) - pivot);
    }

    /// Adds a sum of rounded numbers. One that is too large, or not a number, makes the whole too large.
    pub fn add_rounded(&mut self, value: f64) {
        let units = value / self.grid.unit;
        let units = if units < MOST as f64 { units as i64 } else { MOST };
        self.add_units(units);
    }

    fn add_units(&mut self, units: i64) {
        self.units = (self.units + units).min(MOST);
    }

    pub fn merge(&mut self, other: &Self) {
        debug_assert_eq!(self.grid, other.grid);
        self.add_units(other.units);
    }

    /// Afterwards every rank holds the sum over all ranks.
    pub fn reduce(sums: &mut [Self], comm: &dyn Comm) {
        let mut packed: Vec<i64> = sums.iter().map(|sum| sum.units).collect();
        comm.sum_i64(&mut packed);
        sums.iter_mut().zip(packed).for_each(|(sum, units)| sum.units = units);
    }

    /// None if it is much smaller or much larger than was expected.
    pub fn value(&self) -> Option<f64> {
        (LEAST..MOST).contains(&self.units).then_some(self.units as f64 * self.grid.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> Vec<f64> {
        (1..1000).map(|k| (f64::from(k) * 0.7).sin().powi(2) * 10f64.powi(k % 9 - 12)).collect()
    }

    fn sum(values: impl IntoIterator<Item = f64>, expected: f64) -> GridSum {
        let mut sum = GridSum::new(Grid::for_sum(expected).expect("a number in range"));
        values.into_iter().for_each(|value| sum.add(value));
        sum
    }

    #[test]
    fn order_and_split_do_not_matter() {
        let values = numbers();
        let plain: f64 = values.iter().sum();
        let forward = sum(values.iter().copied(), plain);
        assert_eq!(forward, sum(values.iter().rev().copied(), plain));
        assert!((forward.value().expect("as expected") / plain - 1.0).abs() < 1e-9);
        for size in [2, 3, 8] {
            let sums = crate::threads::run(size, |comm| {
                let mut part = [sum(values.iter().skip(comm.rank()).step_by(size).copied(), plain)];
                GridSum::reduce(&mut part, comm);
                part[0]
            });
            assert!(sums.iter().all(|&sum| sum == forward));
        }
        let mut left = sum(values[..500].iter().copied(), plain);
        left.merge(&sum(values[500..].iter().copied(), plain));
        assert_eq!(left, forward);
    }

    /// Registers add up numbers that they have rounded themselves.
    #[test]
    fn rounded_numbers_add_up_in_any_way() {
        let values = numbers();
        let plain: f64 = values.iter().sum();
        let mut total = GridSum::new(Grid::for_sum(plain).expect("a number in range"));
        let pivot = total.grid.pivot();
        total.add_rounded(values.iter().map(|value| (value + pivot) - pivot).sum());
        assert_eq!(total, sum(values, plain));
    }

    #[test]
    fn a_sum_of_another_size_says_so() {
        let values = numbers();
        let plain: f64 = values.iter().sum();
        for (expected, fits) in [(1.0, true), (0.05, true), (100.0, true), (0.003, false), (3000.0, false)] {
            let found = sum(values.iter().copied(), expected * plain);
            assert_eq!(found.value().is_some(), fits, "{expected}");
        }
        for broken in [f64::NAN, f64::INFINITY, f64::MAX] {
            assert_eq!(sum(values.iter().copied().chain([broken]), plain).value(), None);
        }
        for size in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
            assert_eq!(Grid::for_sum(size), None);
        }
    }
}
