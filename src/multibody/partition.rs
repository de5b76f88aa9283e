//! Which velocities depend on which: the split (u, v) of (17), chosen by rank-revealing LU of `J_B`.
//!
//! Closure rows that the others imply (a planar loop in space closed by points) are found by the same
//! factorisation and left out. Radians count as arcs at the machine's own size, so that the choice does not
//! depend on the unit of length.

use super::dense::full_pivoting;
use super::error::MultibodyError;
use super::kinematics::Data;
use super::model::Model;
use serde::{Deserialize, Serialize};

/// Who chooses the dependent coordinates.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Partitioning {
    /// LU with full pivoting, again whenever the choice has become ill-conditioned.
    #[default]
    Automatic,
    /// These, whatever happens: where they fail, the run stops with an error.
    Fixed(Vec<String>),
    /// These wherever they are well-conditioned; elsewhere as `Automatic`.
    Preferred(Vec<String>),
}

/// A split of the velocities. Part of the state: it decides which coordinates are integrated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Entries of `v` that follow from the others, one per kept row.
    pub dependent: Vec<usize>,
    /// Entries of `v` that are neither dependent nor prescribed, ascending.
    pub independent: Vec<usize>,
    /// Closure rows that are kept, ascending; the others follow from them.
    pub rows: Vec<usize>,
}

/// Pivots below this part of the largest count as zero. Rounding leaves 1e-15; a mechanism this close to a
/// singular position amplifies velocities a billion times.
pub(super) const PIVOT_TOLERANCE: f64 = 1e-9;

/// An automatic partition is ill-conditioned when some dependent velocity exceeds an independent one by this
/// factor (arcs against arcs). Full pivoting yields about 1 to 3. On random mechanisms at h = 1e-3 the error
/// in energy was 10 to 50 times larger with 20 than with 6, and 2 to 10 times larger with 6 than with 3; and
/// Newton failed more often.
pub(super) const ILL_CONDITIONED: f64 = 4.0;

/// The same for a partition that the user prefers: more patience.
pub(super) const PREFERRED_ILL_CONDITIONED: f64 = 20.0;

/// A preferred partition is taken up again below this.
pub(super) const PREFERRED_AGAIN: f64 = 10.0;

impl Partition {
    /// From the rows and columns of a factorisation. Both are sorted: the split is a set, and must not depend
    /// on the order in which pivots happened to come.
    fn new(model: &Model, mut rows: Vec<usize>, mut dependent: Vec<usize>) -> Self {
        rows.sort_unstable();
        dependent.sort_unstable();
        let independent =
            (0..model.nv()).filter(|k| !model.is_prescribed[*k] && !dependent.contains(k)).collect();
        Self { dependent, independent, rows }
    }

    /// Chooses by full pivoting of `J_B` at the current position. `class` says which columns are to be used
    /// up as dependent first; none forbids.
    pub(super) fn choose(
        model: &Model,
        data: &Data,
        class: impl Fn(usize) -> Option<u8>,
    ) -> (Self, Option<(usize, f64)>) {
        let mut scaled = data.jacobian.clone();
        for i in 0..scaled.nrows() {
            for j in 0..scaled.ncols() {
                scaled[(i, j)] *= Data::row_length(model, i) / model.column_length(j);
            }
        }
        let classes: Vec<Option<u8>> =
            (0..model.nv()).map(|k| if model.is_prescribed[k] { None } else { class(k) }).collect();
        let pivots = full_pivoting(&mut scaled, &classes, PIVOT_TOLERANCE);
        (Self::new(model, pivots.rows, pivots.columns), pivots.left_over)
    }

    /// The user's own choice, checked against the number of independent rows; none where it is singular.
    pub(super) fn named(
        model: &Model,
        data: &Data,
        names: &[String],
    ) -> Result<Option<Self>, MultibodyError> {
        let columns: Vec<usize> = names.iter().filter_map(|name| model.coordinate(name)).collect();
        let (all, _) = Self::choose(model, data, |_| Some(0));
        if columns.iter().any(|&k| model.is_prescribed[k]) {
            return Err(all.refuse(names, "and a prescribed one cannot depend on others"));
        }
        if columns.len() != all.rows.len() {
            return Err(all.refuse(names, "not another number"));
        }
        let (partition, _) = Self::choose(model, data, |k| columns.contains(&k).then_some(0));
        Ok((partition.rows.len() == all.rows.len()).then_some(partition))
    }

    pub(super) fn refuse(&self, names: &[String], problem: &str) -> MultibodyError {
        let (coordinates, needed) = (names.to_vec(), self.rows.len());
        MultibodyError::BadPartition { coordinates, needed, problem: problem.to_string() }
    }

    /// Whether this split, read from a file, fits the model.
    pub(super) fn check(&self, model: &Model) -> Result<(), MultibodyError> {
        let rows_fit = self.rows.len() == self.dependent.len()
            && self.rows.is_sorted_by(|a, b| a < b)
            && self.rows.iter().all(|&row| row < model.closure_rows());
        if rows_fit && *self == Self::new(model, self.rows.clone(), self.dependent.clone()) {
            let taken = self.independent.len() + self.dependent.len() + model.prescribed.len();
            if taken == model.nv() {
                return Ok(());
            }
        }
        let known = self.dependent.iter().filter(|&&k| k < model.nv());
        let names: Vec<String> = known.map(|&k| model.coordinate_name(k).to_string()).collect();
        Err(self.refuse(&names, "and the stored split does not fit the model"))
    }

    /// Number of independent velocities.
    pub fn nu(&self) -> usize {
        self.independent.len()
    }
}
