//! Closing the loops: Newton–Raphson on the dependent coordinates (16).
//!
//! Corrections of quaternion joints act through the tangent space: `q ← q ⊕ δ` with `δ` zero in the
//! independent entries.

use super::error::MultibodyError;
use super::kinematics::Data;
use super::model::Model;
use super::partition::Partition;
use super::reduction::Reduced;

/// How well the loops are closed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Closure {
    /// Newton iterations that were needed.
    pub iterations: usize,
    /// Largest entry of `h_B` among the kept rows, m or rad.
    pub error: f64,
    /// The same among redundant rows.
    pub redundant_error: f64,
}

const MOST_ITERATIONS: usize = 30;
/// Redundant rows may be off by this part of the machine's size: input has only so many digits.
pub(super) const COMPATIBLE: f64 = 1e-7;

/// Buffers of the closure.
#[derive(Clone, Debug)]
pub(super) struct ClosureScratch {
    correction: Vec<f64>,
    step: Vec<f64>,
    before: Vec<f64>,
}

impl ClosureScratch {
    pub fn new(model: &Model) -> Self {
        let (nq, nv) = (model.nq(), model.nv());
        Self { correction: vec![0.0; model.closure_rows()], step: vec![0.0; nv], before: vec![0.0; nq] }
    }
}

/// Changes the dependent entries of `q` until the loops are closed. Leaves positions and `J_B` of `data`
/// current.
pub(super) fn close_loops(
    model: &Model,
    data: &mut Data,
    reduced: &mut Reduced,
    partition: &Partition,
    scratch: &mut ClosureScratch,
    q: &mut [f64],
) -> Result<Closure, MultibodyError> {
    let r = partition.rows.len();
    let (mut last, mut share) = (f64::INFINITY, 1.0);
    for iterations in 0..MOST_ITERATIONS {
        data.update_positions(model, q);
        data.update_residual(model);
        let error = partition.rows.iter().map(|&row| data.residual[row].abs()).fold(0.0, f64::max);
        if error <= closed_below(model, data) {
            data.update_loop_jacobian(model);
            let redundant_error = check_redundant(model, data, partition)?;
            return Ok(Closure { iterations, error, redundant_error });
        }
        if error < last || share < 1e-3 || error.is_nan() {
            // The step was good, or no shorter one helps.
            data.update_loop_jacobian(model);
            reduced.factor_closure(model, data, partition)?;
            for (i, &row) in partition.rows.iter().enumerate() {
                scratch.correction[i] = -data.residual[row];
            }
            reduced.closure.solve(&mut scratch.correction[..r]);
            scratch.step.fill(0.0);
            for (i, &column) in partition.dependent.iter().enumerate() {
                scratch.step[column] = scratch.correction[i];
            }
            scratch.before.copy_from_slice(q);
            (last, share) = (error, 1.0);
        } else {
            share *= 0.5;
            q.copy_from_slice(&scratch.before);
        }
        model.integrate(q, &scratch.step, share);
    }
    data.update_positions(model, q);
    data.update_residual(model);
    let (row, open_by) = worst_row(data, partition.rows.iter().copied());
    let cut = model.cut_of_row(row).to_string();
    Err(MultibodyError::CannotBeClosed { cut, open_by, iterations: MOST_ITERATIONS })
}

/// The model's tolerance, or what rounding leaves of it where the machine stands far from the world's origin.
fn closed_below(model: &Model, data: &Data) -> f64 {
    let rounding = 16.0 * f64::EPSILON * (data.reference.amax() + model.length);
    model.closure_tolerance.max(rounding)
}

pub(super) fn worst_row(data: &Data, rows: impl Iterator<Item = usize>) -> (usize, f64) {
    rows.map(|row| (row, data.residual[row].abs()))
        .fold((0, -1.0), |worst, next| if next.1 > worst.1 || next.1.is_nan() { next } else { worst })
}

fn check_redundant(model: &Model, data: &Data, partition: &Partition) -> Result<f64, MultibodyError> {
    if partition.rows.len() == model.closure_rows() {
        return Ok(0.0);
    }
    let rows = (0..model.closure_rows()).filter(|row| partition.rows.binary_search(row).is_err());
    let (row, off_by) = worst_row(data, rows);
    if off_by * Data::row_length(model, row) > COMPATIBLE * model.length {
        return Err(MultibodyError::Incompatible { cut: model.cut_of_row(row).to_string(), off_by });
    }
    Ok(off_by)
}
