//! Narrow phase: the signed contact patch of two convex pieces.
//!
//! | pair | normal and gap | points |
//! | --- | --- | --- |
//! | sphere with anything | true closest points, exact also from inside | 1 |
//! | polyhedron – half-space | normal of the half-space | the vertices within the margin |
//! | polyhedron – polyhedron | separating axis (`axis`) | clipped face, or edges (`clip`) |
//! | half-space – half-space | never in contact | – |
//! | any other | support functions (`support`) | 1 |
//!
//! **Sign.** The normal points from a to b, the gap is `(on_b − on_a) · normal`: positive apart, negative
//! inside one another, and continuous through zero. `on_a` lies on the surface of a, `on_b` on that of b.
//!
//! **Apart.** For two polyhedra the separation is the largest over the face normals of both and over the
//! directions edge × edge that bound their Minkowski difference. Overlapping pairs have no other candidates;
//! for a pair apart whose closest features are two vertices, a vertex and an edge, or two parallel edges,
//! this value is *below* the true distance and the gap is measured along that axis. (Of 1,295 random pairs
//! apart 65 % had exactly their distance as separation, and the least was 70 % of it; corner against corner
//! of two cubes gives 58 %.) It goes to zero only where the distance does. A pair has no patch if its
//! separation exceeds the margin, or if the bounding spheres or the direction between the origins prove that
//! its distance does.
//!
//! **A pure function.** The result depends on shapes, poses and margin alone. A `Hint` leaves out of the
//! search what cannot be the answer (`memory` says why); what it leaves in is computed by the same formulas.
//! Swapping a and b gives the mirrored result bit by bit, because inside the pair is put into an order of its
//! own (by position, then rotation, then shape); where even that is equal, the two calls are one and the same
//! call.
//!
//! **Features.** A point's id names the vertex, edge or face that it lies on, on each of the two (see
//! `feature`): the same whichever is called a, whichever face was the reference, and from step to step while
//! the features stay.

mod axis;
mod clip;
mod edges;
mod expand;
mod faces;
mod feature;
mod memory;
mod plane;
mod reduce;
mod simplex;
mod sphere;
mod support;

use crate::geometry::{Convex, Pose, Vec3};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// Most points of one patch.
pub const MAX_POINTS: usize = 8;

/// Points kept without a heap allocation: stones at rest have 1.8 on average, and a million spheres need one
/// each.
pub const INLINE_POINTS: usize = 2;

/// Angle (radians) below which faces or edges count as parallel, and length below which points count as one,
/// relative to the smaller bounding radius. Two boxes that stand on each other keep their points while they
/// rock by less.
const NEARLY: f64 = 5e-3;

/// One point of a patch, in world coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PatchPoint {
    /// Unique within the patch, persistent from step to step.
    pub feature: u32,
    pub on_a: Vec3,
    pub on_b: Vec3,
    /// `(on_b − on_a) · normal`, computed before the points were moved to the world frame, so that it keeps
    /// its precision far from the origin.
    pub gap: f64,
}

/// Where two convex pieces touch, or nearly touch.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    /// Unit, world, from a to b.
    pub normal: Vec3,
    /// At least one, at most `MAX_POINTS`.
    pub points: SmallVec<[PatchPoint; INLINE_POINTS]>,
}

/// What two polyhedra, or one and a half-space, remember from the last time. Scratch: any value gives the
/// same results, a fitting one gives them sooner.
///
/// It belongs to two shapes; a hint of others must not be used.
#[derive(Clone, Debug, Default)]
pub struct Hint {
    memory: memory::Memory,
    /// Whether the second of the two stood first inside.
    swapped: bool,
}

impl Hint {
    /// What proved the two to be apart the last time, if they were; none for a proof that does not extend to
    /// other poses.
    pub fn gap(&self) -> Option<Gap> {
        let memory::Memory::Apart(separator, separation) = self.memory else { return None };
        match separator {
            axis::Separator::Centres => Some(Gap { separation, along_centres: true }),
            axis::Separator::FaceOfA(_) | axis::Separator::FaceOfB(_) => {
                Some(Gap { separation, along_centres: false })
            }
            // The direction itself turns, and the faster the closer to parallel the edges are.
            axis::Separator::Edges(..) => None,
        }
    }

    #[cfg(test)]
    fn apart(separator: axis::Separator) -> Self {
        Self { memory: memory::Memory::Apart(separator, 0.0), swapped: false }
    }
}

/// How far a direction separated a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    pub separation: f64,
    /// Along the line between the origins; else along the normal of a face.
    pub along_centres: bool,
}

/// The patch of two convex pieces whose separation is at most `margin` (≥ 0), or none.
///
/// The smallest gap is at least the separation. For polyhedra apart it may be more: the points are those that
/// face each other.
///
/// The poses are those of the pieces themselves (for a part of a cluster: body pose, then part pose).
/// Everything has to be finite.
pub fn collide(a: (&Convex, &Pose), b: (&Convex, &Pose), margin: f64, hint: &mut Hint) -> Option<Patch> {
    match (a.0, b.0) {
        (Convex::HalfSpace, Convex::Sphere { radius }) => sphere::on_plane(a.1, *radius, b.1, margin),
        (Convex::HalfSpace, Convex::Polyhedron(polyhedron)) => {
            plane::polyhedron_on_plane(a.1, polyhedron, b.1, margin, &mut hint.memory)
        }
        (Convex::Polyhedron(polyhedron), Convex::Sphere { radius }) => {
            sphere::on_polyhedron(polyhedron, a.1, *radius, b.1, margin)
        }
        (Convex::Sphere { .. } | Convex::Polyhedron(_), Convex::HalfSpace)
        | (Convex::Sphere { .. }, Convex::Polyhedron(_)) => collide(b, a, margin, hint).map(Patch::mirrored),
        (Convex::Sphere { radius: radius_a }, Convex::Sphere { radius: radius_b }) => {
            if order(a, b).is_gt() {
                sphere::on_sphere(*radius_b, b.1, *radius_a, a.1, margin).map(Patch::mirrored)
            } else {
                sphere::on_sphere(*radius_a, a.1, *radius_b, b.1, margin)
            }
        }
        (Convex::Polyhedron(shape_a), Convex::Polyhedron(shape_b)) => {
            let radii = shape_a.bounding_radius + shape_b.bounding_radius;
            let (squared, reach) = ((b.1.position - a.1.position).norm_squared(), radii + margin);
            if squared > reach * reach {
                // No more than what the line of centres separates.
                hint.memory = memory::Memory::Apart(axis::Separator::Centres, squared.sqrt() - radii);
                return None;
            }
            let swapped = order(a, b).is_gt();
            if hint.swapped != swapped {
                *hint = Hint { swapped, ..Default::default() };
            }
            if swapped {
                let patch = clip::polyhedra((shape_b, b.1), (shape_a, a.1), margin, &mut hint.memory);
                patch.map(Patch::mirrored)
            } else {
                clip::polyhedra((shape_a, a.1), (shape_b, b.1), margin, &mut hint.memory)
            }
        }
        _ => support::patch(a, b, margin),
    }
}

impl Patch {
    /// The same patch with a and b exchanged.
    fn mirrored(mut self) -> Patch {
        self.normal = -self.normal;
        for point in &mut self.points {
            std::mem::swap(&mut point.on_a, &mut point.on_b);
        }
        self
    }

    fn single(normal: Vec3, on_a: Vec3, on_b: Vec3, gap: f64) -> Patch {
        let mut points = SmallVec::new();
        points.push(PatchPoint { feature: 0, on_a, on_b, gap });
        Patch { normal, points }
    }
}

/// An order of two pieces that does not depend on which is called a.
fn order(a: (&Convex, &Pose), b: (&Convex, &Pose)) -> Ordering {
    let numbers = |pose: &Pose| {
        let (p, q) = (pose.position, pose.rotation.coords);
        [p.x, p.y, p.z, q.x, q.y, q.z, q.w]
    };
    let by_pose = lexicographic(numbers(a.1).iter(), numbers(b.1).iter());
    by_pose.then_with(|| match (a.0, b.0) {
        (Convex::Sphere { radius: ra }, Convex::Sphere { radius: rb }) => ra.total_cmp(rb),
        (Convex::Polyhedron(pa), Convex::Polyhedron(pb)) => {
            lexicographic(pa.vertices.iter().flatten(), pb.vertices.iter().flatten())
        }
        (one, other) => {
            let [one, other] = [one, other].map(Convex::columns);
            let sizes = lexicographic(one.sizes.iter().flatten(), other.sizes.iter().flatten());
            one.code.cmp(&other.code).then(one.radius.total_cmp(&other.radius)).then(sizes)
        }
    })
}

fn lexicographic<'a>(a: impl Iterator<Item = &'a f64>, b: impl Iterator<Item = &'a f64>) -> Ordering {
    a.map(|x| x.to_bits()).cmp(b.map(|x| x.to_bits()))
}

#[cfg(test)]
mod tests;
