//! The first assembly: brings rough coordinates to a position where all loops are closed, and finds the first
//! partition.

use super::closure::{COMPATIBLE, ClosureScratch, close_loops, worst_row};
use super::error::MultibodyError;
use super::kinematics::Data;
use super::model::{Coordinates, Model};
use super::partition::{PIVOT_TOLERANCE, Partition, Partitioning};
use super::reduction::Reduced;
use nalgebra::{DMatrix, DVector};

/// Puts prescribed coordinates where their motion says.
pub(super) fn sample_prescribed(model: &Model, time: f64, coordinates: &mut Coordinates) {
    for (column, motion) in &model.prescribed {
        let sample = motion.sample(time);
        if let Some(position) = model.coordinates[*column].position {
            coordinates.q[position] = sample.position;
        }
        coordinates.v[*column] = sample.velocity;
    }
}

/// Assembles, and finds a partition that keeps what the user wants kept.
pub(super) fn first_partition(
    model: &Model,
    data: &mut Data,
    coordinates: &mut Coordinates,
) -> Result<Partition, MultibodyError> {
    let held = |k: usize| model.coordinates[k].held;
    let first = coordinates.q.clone();
    let mut bring_together = |data: &mut Data, may_move: &dyn Fn(usize) -> bool| {
        coordinates.q.copy_from_slice(&first);
        if !model.cuts.is_empty() {
            assemble(model, data, &mut coordinates.q, may_move)?;
        }
        data.update_positions(model, &coordinates.q);
        data.update_residual(model);
        data.update_loop_jacobian(model);
        Ok::<(), MultibodyError>(())
    };
    let automatic = |data: &Data| Partition::choose(model, data, |k| Some(u8::from(held(k)))).0;
    let partition = match &model.partitioning {
        Partitioning::Automatic => {
            bring_together(data, &|k| !held(k))?;
            automatic(data)
        }
        Partitioning::Fixed(names) => {
            bring_together(data, &|k| names.iter().any(|name| model.coordinate(name) == Some(k)))?;
            let singular =
                || automatic(data).refuse(names, "and these do not close the loops at this position");
            Partition::named(model, data, names)?.ok_or_else(singular)?
        }
        Partitioning::Preferred(names) => {
            let named = |k: usize| names.iter().any(|name| model.coordinate(name) == Some(k));
            // The preferred ones need not be able to close the loops here.
            if bring_together(data, &named).is_err() {
                bring_together(data, &|k| !held(k))?;
            }
            Partition::named(model, data, names)?.unwrap_or_else(|| automatic(data))
        }
    };
    let mut reduced = Reduced::new(model, &partition);
    verify_redundancy(model, data, &mut reduced, &partition, &coordinates.q)?;
    Ok(partition)
}

/// Brings the loops together from a rough first position by damped least squares (Levenberg–Marquardt) on the
/// entries of `v` that `may_move`. Needs no partition, and does not mind redundant rows or singular positions
/// on the way.
fn assemble(
    model: &Model,
    data: &mut Data,
    q: &mut [f64],
    may_move: impl Fn(usize) -> bool,
) -> Result<(), MultibodyError> {
    let columns: Vec<usize> = (0..model.nv()).filter(|&k| !model.is_prescribed[k] && may_move(k)).collect();
    let first = q.to_vec();
    let mut best = (f64::INFINITY, first.clone());
    for attempt in 0..ATTEMPTS {
        q.copy_from_slice(&first);
        shake(model, &columns, q, attempt);
        let open_by = least_squares(model, data, &columns, q);
        if open_by < best.0 {
            best = (open_by, q.to_vec());
        }
        if open_by <= COMPATIBLE * model.length {
            return Ok(());
        }
    }
    q.copy_from_slice(&best.1);
    data.update_positions(model, q);
    data.update_residual(model);
    let (row, open_by) = worst_row(data, 0..model.closure_rows());
    Err(MultibodyError::CannotBeAssembled { cut: model.cut_of_row(row).to_string(), open_by })
}

/// The first attempt starts where the user said; the others a little beside it, ever farther, in fixed
/// directions: a stretched linkage lies on a saddle, from which no descent leads away.
const ATTEMPTS: usize = 6;

fn shake(model: &Model, columns: &[usize], q: &mut [f64], attempt: usize) {
    let mut v = vec![0.0; model.nv()];
    for &column in columns {
        let wave = ((column + 1) as f64 * (1.7 + attempt as f64)).sin();
        v[column] = wave * 0.05 * (attempt * attempt) as f64 * model.length / model.column_length(column);
    }
    model.integrate(q, &v, 1.0);
}

/// Levenberg–Marquardt on scaled rows and columns; returns how far open the loops remain (largest scaled
/// entry).
fn least_squares(model: &Model, data: &mut Data, columns: &[usize], q: &mut [f64]) -> f64 {
    let m = model.closure_rows();
    let (mut damping, mut v) = (1e-3, vec![0.0; model.nv()]);
    let mut h = scaled_residual(model, data, q);
    for _ in 0..300 {
        if columns.is_empty() || h.amax() <= 1e-13 * model.length {
            break;
        }
        data.update_loop_jacobian(model);
        let jacobian = DMatrix::from_fn(m, columns.len(), |i, k| {
            data.jacobian[(i, columns[k])] * Data::row_length(model, i) / model.column_length(columns[k])
        });
        let mut normal = &jacobian * jacobian.transpose();
        // The damping is relative, and follows the residual so that the end is quadratic in spite of
        // redundant rows.
        let scale = normal.trace() / m as f64;
        let relative = damping * (h.norm() / model.length).min(1.0);
        for i in 0..m {
            normal[(i, i)] += scale * relative + scale * 1e-15 + f64::MIN_POSITIVE;
        }
        let Some(factor) = normal.cholesky() else { break };
        let step = jacobian.transpose() * factor.solve(&h) * -1.0;
        // At most half a radian, or half the machine's size.
        let share = (0.5 * model.length / step.amax().max(f64::MIN_POSITIVE)).min(1.0);
        for (k, &column) in columns.iter().enumerate() {
            v[column] = step[k] * share / model.column_length(column);
        }
        let before = q.to_vec();
        model.integrate(q, &v, 1.0);
        let next = scaled_residual(model, data, q);
        if next.norm() < h.norm() {
            let slow = next.norm() > (1.0 - 1e-9) * h.norm();
            h = next;
            damping = (damping * 0.3).max(1e-6);
            if slow {
                break;
            }
        } else {
            q.copy_from_slice(&before);
            h = scaled_residual(model, data, q);
            damping *= 8.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    h.amax()
}

fn scaled_residual(model: &Model, data: &mut Data, q: &[f64]) -> DVector<f64> {
    data.update_positions(model, q);
    data.update_residual(model);
    DVector::from_fn(model.closure_rows(), |i, _| data.residual[i] * Data::row_length(model, i))
}

/// Makes sure that rows left out are redundant everywhere and not only at this very position, as at a
/// singular one: moves a little along the mechanism and checks whether they still hold. `q` is not changed.
fn verify_redundancy(
    model: &Model,
    data: &mut Data,
    reduced: &mut Reduced,
    partition: &Partition,
    q: &[f64],
) -> Result<(), MultibodyError> {
    if partition.rows.len() == model.closure_rows() {
        return Ok(());
    }
    data.update_positions(model, q);
    data.update_loop_jacobian(model);
    reduced.update_map(model, data, partition)?;
    let left_out =
        (0..model.closure_rows()).find(|row| partition.rows.binary_search(row).is_err()).unwrap_or(0);
    let mut v = vec![0.0; model.nv()];
    for (k, &column) in partition.independent.iter().enumerate() {
        v[column] = (1.0 + (k as f64 * 1.3).sin() * 0.5) * model.length / model.column_length(column);
    }
    reduced.complete_velocity(model, data, partition, &mut v);
    let fastest = v.iter().enumerate().map(|(k, x)| (x * model.column_length(k)).abs()).fold(0.0, f64::max);
    if fastest == 0.0 {
        return Ok(());
    }
    let mut scratch = ClosureScratch::new(model);
    // As far as Newton can follow: a row that only happened to be redundant is off by the square of the
    // displacement.
    for displacement in [0.02, 0.005, 0.001] {
        let mut moved = q.to_vec();
        model.integrate(&mut moved, &v, displacement * model.length / fastest);
        match close_loops(model, data, reduced, partition, &mut scratch, &mut moved) {
            Ok(_) => return Ok(()),
            Err(MultibodyError::Incompatible { cut, .. }) => {
                return Err(MultibodyError::Singular { cut, pivot: PIVOT_TOLERANCE });
            }
            Err(_) => {}
        }
    }
    Err(MultibodyError::Singular { cut: model.cut_of_row(left_out).to_string(), pivot: PIVOT_TOLERANCE })
}
