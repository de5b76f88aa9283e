//! The convex hull of a cloud of points, as a polyhedron with merged faces.
//!
//! 1. Points within the tolerance of an earlier point are dropped.
//! 2. Coordinates are rounded to multiples of 2⁻⁴¹ of the size (4.5e-13, relative), and the hull of *those*
//!    points is computed exactly, in integers (`triangles.rs`). No rounding error can make its topology
//!    wrong.
//! 3. Neighbouring triangles whose corners lie within the tolerance of one plane become one face; the largest
//!    triangles choose their planes first. Vertices that then border fewer than three faces are dropped.
//! 4. If merging leaves something that is not a polyhedron, or a point outside, it is done again with a
//!    tighter tolerance; with tolerance zero only exactly coplanar triangles merge, and that always succeeds.
//!
//! The *size* is the largest extent of the cloud along an axis. The tolerance is 1e-9 of the size, or 8 units
//! of rounding of the largest coordinate where that is more (a small body given far from the origin).
//! Vertices keep their input coordinates and their input order; the result is a pure function of the input.

mod merge;
mod triangles;

use super::{Polyhedron, Vec3};
use std::collections::HashMap;
use thiserror::Error;
use triangles::{COORDINATE_BITS, Point, triangulated_hull};

/// Thickness, and distance from a plane, below which points count as coplanar, relative to the size.
pub const RELATIVE_TOLERANCE: f64 = 1e-9;

/// Why a cloud of points has no hull with a volume.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum HullError {
    #[error("a convex body needs at least 4 points, found {found}")]
    TooFew { found: usize },
    #[error("point {index} is not finite: {point:?}")]
    NotFinite { index: usize, point: [f64; 3] },
    #[error("the points extend over {size:e}, where a size between 1e-30 and 1e30 is possible")]
    Size { size: f64 },
    #[error("all {found} points coincide (within {tolerance:e})")]
    Coincident { found: usize, tolerance: f64 },
    #[error("all {found} points lie on one line (within {tolerance:e})")]
    Collinear { found: usize, tolerance: f64 },
    #[error("all {found} points lie in one plane (within {tolerance:e})")]
    Coplanar { found: usize, tolerance: f64 },
}

/// The convex hull of `points`.
///
/// Every input point lies inside within a few tolerances (see the head of this file). Faces are sorted by
/// their vertices and start at their lowest one; edges run from their lower vertex and are sorted.
pub fn convex_hull(points: &[Vec3]) -> Result<Polyhedron, HullError> {
    let (size, tolerance) = checked_size(points)?;
    let distinct = without_duplicates(points, tolerance);
    let cloud: Vec<Vec3> = distinct.iter().map(|&index| points[index]).collect();
    let simplex = first_simplex(&cloud, tolerance)?;
    let grid = rounded(&cloud, size);
    let triangles =
        triangulated_hull(&grid, simplex).ok_or(HullError::Coplanar { found: points.len(), tolerance })?;
    Ok(merge::merged(&cloud, &grid, &triangles, tolerance))
}

/// The size and the absolute tolerance.
fn checked_size(points: &[Vec3]) -> Result<(f64, f64), HullError> {
    if points.len() < 4 {
        return Err(HullError::TooFew { found: points.len() });
    }
    if let Some(index) = points.iter().position(|p| p.iter().any(|x| !x.is_finite())) {
        return Err(HullError::NotFinite { index, point: points[index].into() });
    }
    let (min, max) = points.iter().fold((points[0], points[0]), |(min, max), p| (min.inf(p), max.sup(p)));
    let size = (max - min).max();
    let largest = min.amax().max(max.amax());
    let tolerance = (RELATIVE_TOLERANCE * size).max(8.0 * f64::EPSILON * largest);
    // The extent of finite points may be infinite.
    if size > 1e30 {
        return Err(HullError::Size { size });
    }
    if size <= tolerance {
        return Err(HullError::Coincident { found: points.len(), tolerance });
    }
    if size < 1e-30 {
        return Err(HullError::Size { size });
    }
    Ok((size, tolerance))
}

/// Indices of the points that are not within `tolerance` (along every axis) of an earlier one of them.
fn without_duplicates(points: &[Vec3], tolerance: f64) -> Vec<usize> {
    // A cell of one tolerance: whatever is within the tolerance is in the cell itself or in one beside it.
    let cell = |p: &Vec3| -> [i64; 3] { std::array::from_fn(|k| (p[k] / tolerance).floor() as i64) };
    let mut kept = Vec::with_capacity(points.len());
    let mut cells: HashMap<[i64; 3], Vec<usize>> = HashMap::with_capacity(points.len());
    for (index, point) in points.iter().enumerate() {
        let here = cell(point);
        let near = (0..27).any(|n| {
            let there = [here[0] + n % 3 - 1, here[1] + n / 3 % 3 - 1, here[2] + n / 9 - 1];
            let found = cells.get(&there).into_iter().flatten();
            found.copied().any(|other: usize| (points[other] - point).amax() <= tolerance)
        });
        if !near {
            kept.push(index);
            cells.entry(here).or_default().push(index);
        }
    }
    kept
}

/// Four points that span a volume: a long pair, the point farthest from its line, the one farthest from their
/// plane.
fn first_simplex(cloud: &[Vec3], tolerance: f64) -> Result<[u32; 4], HullError> {
    let found = cloud.len();
    let farthest = |distance: &dyn Fn(&Vec3) -> f64| {
        let mut best = (0, f64::NEG_INFINITY);
        for (index, point) in cloud.iter().enumerate() {
            let value = distance(point);
            if value > best.1 {
                best = (index, value);
            }
        }
        best
    };
    let pairs = (0..3).map(|k| (farthest(&|p| p[k]).0, farthest(&|p| -p[k]).0));
    let length = |&(a, b): &(usize, usize)| (cloud[a] - cloud[b]).norm();
    let (a, b) = pairs.fold((0, 0), |best, pair| if length(&pair) > length(&best) { pair } else { best });
    let Some(along) = (cloud[b] - cloud[a]).try_normalize(tolerance) else {
        return Err(HullError::Coincident { found, tolerance });
    };
    let (c, from_line) = farthest(&|p| along.cross(&(p - cloud[a])).norm());
    let normal = along.cross(&(cloud[c] - cloud[a])).try_normalize(tolerance);
    let Some(normal) = normal.filter(|_| from_line > tolerance) else {
        return Err(HullError::Collinear { found, tolerance });
    };
    let (d, from_plane) = farthest(&|p| normal.dot(&(p - cloud[a])).abs());
    if from_plane <= tolerance {
        return Err(HullError::Coplanar { found, tolerance });
    }
    Ok([a, b, c, d].map(|index| index as u32))
}

/// Integer coordinates in units of 2⁻⁴¹ … 2⁻⁴⁰ of the size.
fn rounded(cloud: &[Vec3], size: f64) -> Vec<Point> {
    // The smallest power of two above the size; a power of two keeps short binary fractions exact.
    let mut span = 1.0;
    while span <= size {
        span *= 2.0;
    }
    while span * 0.5 > size {
        span *= 0.5;
    }
    let unit = span * 0.5f64.powi(COORDINATE_BITS);
    let min = cloud.iter().fold(cloud[0], |min, p| min.inf(p));
    let origin = min.map(|x| (x / unit).floor() * unit);
    // The result stays below 2⁴¹ + 1: size < span, or half a unit more by rounding.
    cloud.iter().map(|p| std::array::from_fn(|k| ((p[k] - origin[k]) / unit).round() as i64)).collect()
}

#[cfg(test)]
mod tests;
