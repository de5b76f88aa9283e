//! The default path: any two kinds of pieces by their support functions alone, one point.
//!
//! With D = { y − x : x in the core of a, y in the core of b } and p its boundary point nearest to the
//! origin:
//!
//! ```text
//! origin outside D    normal n = p / |p|,   gap  |p| − r_a − r_b                  (1)
//! origin inside D     normal n = −p / |p|,  gap −|p| − r_a − r_b                  (2)
//! ```
//!
//! r are the radii by which the cores are rounded off
//! ([`Primitive::rounding`](crate::geometry::Primitive::rounding)). (1) is the algorithm of Gilbert, Johnson
//! and Keerthi (`simplex`), (2) the expanding polytope [vandenBergen2001] (`expand`). A half-space is exact:
//! the lowest point of the other piece.
//!
//! There is only ever one point, so its feature is 0. Two faces on each other touch in one of their common
//! points: enough for round kinds, and a start for others until a pair has a function of its own.

use super::expand::depth;
use super::simplex::{Simplex, Vertex};
use super::{Patch, order};
use crate::geometry::{Convex, Pose, Vec3};

/// Relative to the distance: where the search for the nearest point stops.
const NEAR_ENOUGH: f64 = 1e-12;
/// Relative to the size of the pieces: cores nearer than this count as touching, their difference has no
/// direction.
const TOUCHING: f64 = 1e-10;
/// Polyhedra need some ten; round kinds gain a digit or more with each.
const STEPS: usize = 100;

type Piece<'a> = (&'a Convex, &'a Pose);

/// The patch of two pieces whose gap is at most `margin`, or none. Mirrored bit by bit if they are swapped.
pub fn patch(a: Piece, b: Piece, margin: f64) -> Option<Patch> {
    match (a.0.bounding_radius().is_finite(), b.0.bounding_radius().is_finite()) {
        (false, false) => None,
        (false, true) => on_plane(a.1, b, margin),
        (true, false) => on_plane(b.1, a, margin).map(Patch::mirrored),
        (true, true) if order(a, b).is_gt() => bounded(b, a, margin).map(Patch::mirrored),
        (true, true) => bounded(a, b, margin),
    }
}

/// A half-space and a bounded piece.
fn on_plane(plane: &Pose, (convex, pose): Piece, margin: f64) -> Option<Patch> {
    let normal = plane.direction(&Vec3::z());
    let lowest = pose.point(&convex.support(&pose.inverse_direction(&-normal))?) - normal * convex.rounding();
    let gap = normal.dot(&(lowest - plane.position));
    (gap <= margin).then(|| Patch::single(normal, lowest - normal * gap, lowest, gap))
}

fn bounded(a: Piece, b: Piece, margin: f64) -> Option<Patch> {
    let roundings = [a.0.rounding(), b.0.rounding()];
    let size = a.0.bounding_radius() + b.0.bounding_radius();
    let reach = size + margin;
    if (b.1.position - a.1.position).norm_squared() > reach * reach {
        return None;
    }
    // Coordinates from the origin of a: far from the world's origin they keep their digits.
    let between = b.1.position - a.1.position;
    let vertex = |direction: &Vec3| {
        let point = |(convex, pose): Piece, direction: Vec3| {
            convex.support(&pose.inverse_direction(&direction)).map(|point| pose.direction(&point))
        };
        let (on_a, on_b) = (point(a, -direction)?, point(b, *direction)? + between);
        Some(Vertex { difference: on_b - on_a, on_a, on_b })
    };
    let rounded = roundings[0] + roundings[1];
    let (normal, core_gap, [on_a, on_b]) = match nearest(&vertex, between, margin + rounded, size)? {
        Nearest::Beyond => return None,
        Nearest::Apart(simplex) => {
            let difference = simplex.nearest();
            let distance = difference.norm();
            (difference / distance, distance, simplex.points())
        }
        Nearest::Overlap(simplex) => {
            let (normal, depth, points) = depth(&vertex, simplex, size)?;
            (-normal, -depth, points)
        }
    };
    let gap = core_gap - rounded;
    (gap <= margin).then(|| {
        let place = |point: Vec3| point + a.1.position;
        Patch::single(normal, place(on_a + normal * roundings[0]), place(on_b - normal * roundings[1]), gap)
    })
}

enum Nearest {
    /// Farther than asked for.
    Beyond,
    Apart(Simplex),
    /// The origin is inside, or as good as on the border.
    Overlap(Simplex),
}

/// The simplex of D that is nearest to the origin.
fn nearest(
    vertex: &impl Fn(&Vec3) -> Option<Vertex>,
    between: Vec3,
    farthest: f64,
    size: f64,
) -> Option<Nearest> {
    let start = if between.norm_squared() > 0.0 { between } else { Vec3::z() };
    let mut simplex = Simplex::new(vertex(&-start)?);
    let mut best = f64::INFINITY;
    for _ in 0..STEPS {
        let toward = simplex.nearest();
        let squared = toward.norm_squared();
        if simplex.encloses() || squared <= (TOUCHING * size).powi(2) {
            return Some(Nearest::Overlap(simplex));
        }
        // Rounding lets it go round in circles where it cannot come nearer.
        if squared >= best {
            break;
        }
        best = squared;
        let next = vertex(&-toward)?;
        let height = toward.dot(&next.difference);
        if height > 0.0 && height * height > farthest * farthest * squared {
            return Some(Nearest::Beyond);
        }
        if squared - height <= NEAR_ENOUGH * squared || simplex.has(&next) {
            break;
        }
        let mut larger = simplex;
        larger.push(next);
        if larger.nearest().norm_squared() >= squared {
            break;
        }
        simplex = larger;
    }
    Some(Nearest::Apart(simplex))
}
