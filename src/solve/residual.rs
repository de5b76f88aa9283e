//! How far impulses and velocities are from the contact law.
//!
//! For each contact point, with `u` the relative velocity with its bias, and `û = u + μ ‖u_t‖ n` (De Saxcé),
//!
//! ```text
//! F = r − P_K(r − ρ û),       K = { ‖r_t‖ ≤ μ r_n }
//! ```
//!
//! is zero exactly when (32) holds, whatever ρ > 0. With `q` the free relative velocity there are two
//! [`Measure`]s of all points together:
//!
//! ```text
//! fclib    ρ = 1          sqrt(Σ‖F‖²) / max(‖q‖, ‖r‖, ‖u‖)
//! scaled   ρ = 1/W_nn     the same, with the squares of F and r weighted by W_nn, those of q and u by 1/W_nn
//! ```
//!
//! The first is that of Siconos and FCLib, so that numbers compare [Acary2018]. It adds N s to m/s: with
//! grains of some grams an impulse far outside its cone hardly counts, with blocks of some tons a velocity
//! hardly does. The second adds energies to energies, and does not depend on units or on how heavy bodies
//! are.
//!
//! The norms below the bar count the points that act (r_n > 0) or would close (q_n < 0): a predictive contact
//! that stays open has its gap over h in `q`, which says nothing about the size of the problem. An `F` within
//! the rounding of the velocities counts as zero. Beside the measure stands the largest error as a velocity,
//! `max ‖F‖/ρ` with `ρ = 1/W_nn`.

use super::kernel::{self, Terms};
use super::solver::Interface;
use super::sweep::Sweep;
use crate::geometry::Vec3;
use crate::lanes::{F64x8, LANES};
use crate::law::coulomb::natural_map;
use decomposition::{ExactSum, Grid, GridSum};
use serde::{Deserialize, Serialize};

crate::words::choices! {
    /// What the squares are weighted with: nothing, or the normal entry of the point's Delassus block.
    #[derive(Default)]
    pub enum Measure {
        #[default]
        Fclib = "fclib", "the measure of Siconos and FCLib, impulses in N s and velocities in m/s added as they are: numbers compare with theirs, but depend on how heavy the bodies are";
        Scaled = "scaled", "each contact point weighted with its own inverse mass: numbers do not depend on units or masses, and are smaller, 6 to 170 times so far";
    }
}

/// What [`Ruler::read`] found, all ranks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Residual {
    /// In the measure asked for, dimensionless.
    pub natural_map: f64,
    /// Largest violation of the law at a contact point, m/s.
    pub worst_velocity: f64,
    /// Fastest approach at a closed point, beyond what its law lets pass: −u_n, m/s, ≥ 0.
    pub worst_approach: f64,
}

/// Sums of one rank, to be added over ranks before [`Partial::finish`]: ‖F‖², ‖q‖², ‖r‖², ‖u‖², weighted as
/// the [`Measure`] says.
#[derive(Clone, Debug)]
pub enum Sums {
    Exact(Box<[ExactSum; 4]>),
    /// Cheaper, where their sizes are known.
    Rounded([GridSum; 4]),
}

/// Which multiples the terms of the four sums are rounded to.
pub type Grids = [Grid; 4];

impl Sums {
    pub fn add(&mut self, terms: [f64; 4]) {
        match self {
            Sums::Exact(sums) => sums.iter_mut().zip(terms).for_each(|(sum, term)| sum.add(term)),
            Sums::Rounded(sums) => sums.iter_mut().zip(terms).for_each(|(sum, term)| sum.add(term)),
        }
    }

    /// None if a rounded sum has not the size that was expected.
    pub(super) fn values(&self) -> Option<[f64; 4]> {
        match self {
            Sums::Exact(sums) => Some(std::array::from_fn(|k| sums[k].value())),
            Sums::Rounded([a, b, c, d]) => Some([a.value()?, b.value()?, c.value()?, d.value()?]),
        }
    }
}

/// What one rank has measured.
#[derive(Clone, Debug)]
pub struct Partial {
    pub sums: Sums,
    pub worst_velocity: f64,
    pub worst_approach: f64,
}

impl Partial {
    pub fn new(grids: Option<&Grids>) -> Self {
        let sums = match grids {
            None => Sums::Exact(Box::default()),
            Some(grids) => Sums::Rounded(grids.map(GridSum::new)),
        };
        Self { sums, worst_velocity: 0.0, worst_approach: 0.0 }
    }

    /// Adds what a manifold, or a point of a machine, has. It is summed by one rank in one order; only the
    /// sum over manifolds must not depend on order.
    pub(super) fn add(&mut self, terms: [f64; 4], worst: f64, approach: f64) {
        self.sums.add(terms);
        self.add_worst(worst);
        self.worst_approach = self.worst_approach.max(approach);
    }

    /// Adds what manifolds have, eight at a time.
    pub(super) fn add_lanes(&mut self, terms: &[Terms]) {
        let (mut worst, mut approach) = (F64x8::default(), F64x8::default());
        match &mut self.sums {
            Sums::Exact(sums) => {
                for terms in terms {
                    // Sum after sum for each lane: an addition waits for the last one to the same sum.
                    for lane in 0..LANES {
                        for (sum, term) in sums.iter_mut().zip(&terms.sums) {
                            if term.0[lane] != 0.0 {
                                sum.add(term.0[lane]);
                            }
                        }
                    }
                    worst = terms.larger_error(worst);
                    approach = approach.larger(terms.approach);
                }
            }
            Sums::Rounded(sums) => {
                let total = kernel::add_rounded(terms, &sums.map(|sum| sum.grid().pivot()));
                for (sum, lanes) in sums.iter_mut().zip(total.sums) {
                    lanes.0.into_iter().for_each(|lane| sum.add_rounded(lane));
                }
                (worst, approach) = (total.worst_square, total.approach);
            }
        }
        worst.0.into_iter().for_each(|square| self.add_worst(square.sqrt()));
        self.worst_approach = approach.0.into_iter().fold(self.worst_approach, f64::max);
    }

    pub(super) fn merge(&mut self, other: &Partial) {
        match (&mut self.sums, &other.sums) {
            (Sums::Exact(sums), Sums::Exact(more)) => {
                sums.iter_mut().zip(&**more).for_each(|(sum, more)| sum.merge(more));
            }
            (Sums::Rounded(sums), Sums::Rounded(more)) => {
                sums.iter_mut().zip(more).for_each(|(sum, more)| sum.merge(more));
            }
            _ => unreachable!("parts of one measurement"),
        }
        self.add_worst(other.worst_velocity);
        self.worst_approach = self.worst_approach.max(other.worst_approach);
    }

    /// A NaN must not be lost in the maximum.
    pub fn add_worst(&mut self, worst: f64) {
        if worst > self.worst_velocity || worst.is_nan() {
            self.worst_velocity = worst;
        }
    }

    pub fn finish(&self, sums: [f64; 4]) -> Residual {
        let [error, free, impulse, velocity] = sums.map(f64::sqrt);
        let scale = free.max(impulse).max(velocity);
        let natural_map = if scale > 0.0 { error / scale } else { error };
        let &Self { worst_velocity, worst_approach, .. } = self;
        Residual { natural_map, worst_velocity, worst_approach }
    }
}

/// Measures one iteration, again and again: exactly the first time, then by sums that are rounded to what the
/// last ones were like, and exactly again where they have become much larger or smaller.
pub struct Ruler {
    measure: Measure,
    grids: Option<Grids>,
}

impl Ruler {
    pub fn new(measure: Measure) -> Self {
        Self { measure, grids: None }
    }

    /// Collective.
    pub fn read(&mut self, sweep: &Sweep, interface: &mut dyn Interface) -> Residual {
        let rounded = self.grids.and_then(|grids| self.try_read(Some(&grids), sweep, interface));
        rounded.or_else(|| self.try_read(None, sweep, interface)).expect("exact sums have any size")
    }

    /// None if a rounded sum has not the size that was expected; the same on every rank.
    fn try_read(
        &mut self,
        grids: Option<&Grids>,
        sweep: &Sweep,
        interface: &mut dyn Interface,
    ) -> Option<Residual> {
        let mut partial = sweep.measure(self.measure, grids);
        interface.reduce(&mut partial);
        let sums = partial.sums.values()?;
        let next: Option<Vec<Grid>> = sums.into_iter().map(Grid::for_sum).collect();
        self.grids = next.and_then(|grids| grids.try_into().ok());
        Some(partial.finish(sums))
    }
}

/// A contact point as it is measured one by one.
pub(super) struct MeasuredPoint {
    pub impulse: Vec3,
    pub velocity: Vec3,
    /// Without any impulse.
    pub free: Vec3,
    pub friction: f64,
    /// W_nn.
    pub delassus: f64,
    /// How well the velocity is known, m/s.
    pub rounding: f64,
}

impl MeasuredPoint {
    /// The terms of the sums, and the error as a velocity.
    pub fn terms(&self, measure: Measure) -> ([f64; 4], f64) {
        let weight = match measure {
            Measure::Fclib => 1.0,
            Measure::Scaled => self.delassus,
        };
        let error = |rho: f64| natural_map(self.impulse, self.velocity, self.friction, rho).norm();
        let mut terms = [0.0; 4];
        let (found, noise) = (error(1.0 / weight), (1.0 + self.friction) * self.rounding / weight);
        if found > noise || found.is_nan() {
            terms[0] = found * found * weight;
        }
        if self.impulse.x > 0.0 || self.free.x < 0.0 {
            terms[1] = self.free.norm_squared() / weight;
            terms[2] = self.impulse.norm_squared() * weight;
            terms[3] = self.velocity.norm_squared() / weight;
        }
        (terms, error(1.0 / self.delassus) * self.delassus)
    }
}

/// How well a relative velocity is known at all, m/s: it is a difference of the two bodies' velocities, each
/// rounded after every impulse.
///
/// Bodies that fly together touch with impulses and relative velocities that are nothing but this. Relative
/// to themselves such noise never gets small: five boxes in free fall took all sweeps allowed in every step.
///
/// How well a sum of five numbers is known, by the root of their squares, which is at least 1/√5 of the sum:
/// sixteen roundings of the sum.
pub(super) const ROUNDING: f64 = 36.0 * f64::EPSILON;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vector() -> impl Strategy<Value = Vec3> {
        (-2.0..2.0, -2.0..2.0, -2.0..2.0).prop_map(|(x, y, z)| Vec3::new(x, y, z))
    }

    proptest! {
        /// A thousand times the mass, and impulses to match: all terms of the scaled measure grow alike, so
        /// the residual stays.
        #[test]
        fn the_scaled_measure_does_not_depend_on_mass(impulse in vector(), velocity in vector(), free in vector(), friction in 0.0..1.5) {
            let seen = |mass: f64| MeasuredPoint {
                impulse: impulse * mass,
                velocity,
                free,
                friction,
                delassus: 1.3 / mass,
                rounding: 1e-16,
            };
            let (light, slow) = seen(1.0).terms(Measure::Scaled);
            let (heavy, slow_too) = seen(1000.0).terms(Measure::Scaled);
            for (light, heavy) in light.into_iter().zip(heavy) {
                prop_assert!((heavy - 1000.0 * light).abs() <= 1e-10 * heavy.abs());
            }
            prop_assert!((slow - slow_too).abs() <= 1e-12 * (1.0 + slow));
        }

    }
}
