//! Fewer points for the same patch.
//!
//! 1. Only corners of the convex hull in the contact plane stay (no interior points, none on a straight
//!    side), and the deepest point wherever it is.
//! 2. While there are too many, the corner goes whose triangle with its neighbours has the smallest area.
//!
//! What is left holds at least 88 % of the area for a disc (a regular octagon would hold 90 %), 92 % for ten
//! corners, and all of it for up to eight.

use super::MAX_POINTS;
use crate::geometry::Vec3;
use smallvec::SmallVec;

/// The indices to keep, ascending, of points given as (position, gap) with their contact normal.
pub fn keep(
    normal: &Vec3,
    points: impl ExactSizeIterator<Item = (Vec3, f64)>,
) -> SmallVec<[usize; MAX_POINTS]> {
    let (first, second) = plane_axes(normal);
    let mut deepest = (f64::INFINITY, 0);
    let mut flat: SmallVec<[(f64, f64, usize); 32]> = SmallVec::new();
    for (index, (position, gap)) in points.enumerate() {
        flat.push((position.dot(&first), position.dot(&second), index));
        if gap < deepest.0 {
            deepest = (gap, index);
        }
    }
    let deepest = deepest.1;
    let mut corners = hull(&mut flat);
    let room = |corners: &[(f64, f64, usize)]| {
        MAX_POINTS - usize::from(!corners.iter().any(|corner| corner.2 == deepest))
    };
    while corners.len() > room(&corners) {
        let count = corners.len();
        let mut least = (f64::INFINITY, 0);
        for place in 0..count {
            let area =
                turn(corners[(place + count - 1) % count], corners[place], corners[(place + 1) % count]);
            if corners[place].2 != deepest && area < least.0 {
                least = (area, place);
            }
        }
        corners.remove(least.1);
    }
    let mut kept: SmallVec<[usize; MAX_POINTS]> = corners.iter().map(|corner| corner.2).collect();
    if !kept.contains(&deepest) {
        kept.push(deepest);
    }
    kept.sort_unstable();
    kept
}

/// Two unit directions across the normal.
fn plane_axes(normal: &Vec3) -> (Vec3, Vec3) {
    let first = normal.cross(&Vec3::ith(normal.iamin(), 1.0)).normalize();
    (first, normal.cross(&first))
}

/// Twice the area of the triangle, positive for a turn to the left.
fn turn(a: (f64, f64, usize), b: (f64, f64, usize), c: (f64, f64, usize)) -> f64 {
    (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)
}

/// Corners of the convex hull, counter-clockwise (Andrew's monotone chain). Flat corners are dropped.
fn hull(points: &mut [(f64, f64, usize)]) -> SmallVec<[(f64, f64, usize); 32]> {
    points.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
    let spread = points.iter().fold(0.0_f64, |most, point| {
        most.max((point.0 - points[0].0).abs()).max((point.1 - points[0].1).abs())
    });
    let flat = 1e-9 * spread * spread;
    let mut chain: SmallVec<[(f64, f64, usize); 32]> = SmallVec::new();
    for pass in 0..2 {
        let base = chain.len();
        for step in 0..points.len() {
            let point = points[if pass == 0 { step } else { points.len() - 1 - step }];
            while chain.len() >= base + 2
                && turn(chain[chain.len() - 2], chain[chain.len() - 1], point) <= flat
            {
                chain.pop();
            }
            chain.push(point);
        }
        chain.pop();
    }
    chain
}
