//! Names of the places where two polyhedra touch.
//!
//! A contact point lies on a vertex, an edge or a face of each of the two. Its id holds both names, 16 bits
//! each: two bits for the kind, 14 for the index. (Beyond 16,384 vertices or faces, or 128 vertices in an
//! edge's name, indices are folded; ids then stay persistent but may coincide, and `make_unique` tells those
//! of one patch apart.)
//!
//! The half that comes first belongs to the body *behind*, from which the normal points along a fixed oblique
//! direction. That depends neither on which body is called a nor on which one gave the reference face, and
//! does not change while the pair rests. (The normal of a level, upright or 45° contact is never
//! perpendicular to it.)

use super::NEARLY;
use crate::geometry::Vec3;

const OBLIQUE: Vec3 = Vec3::new(0.2391, 0.4729, 0.8480);

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Feature {
    Vertex(u32),
    /// The two vertices, in any order.
    Edge(u32, u32),
    Face(u32),
}

/// Whether a is the body behind, for a normal in world coordinates from a to b.
pub fn a_is_behind(normal: &Vec3) -> bool {
    normal.dot(&OBLIQUE) > 0.0
}

/// The id of a point with these features on the body behind and on the one ahead.
pub fn identify(behind: Feature, ahead: Feature) -> u32 {
    behind.name() << 16 | ahead.name()
}

impl Feature {
    fn name(self) -> u32 {
        match self {
            Feature::Vertex(index) => index & 0x3fff,
            Feature::Edge(one, other) => {
                let (low, high) = (one.min(other), one.max(other));
                0x4000 | ((low << 7) ^ high ^ (low >> 7)) & 0x3fff
            }
            Feature::Face(index) => 0x8000 | index & 0x3fff,
        }
    }

    /// What of a convex polygon a point of it lies on: a corner or a side if that is within the tolerance
    /// `nearly`.
    pub fn of_polygon(corners: &[(Vec3, u32)], face: u32, point: &Vec3, nearly: f64) -> Feature {
        let mut nearest = (nearly * nearly, Feature::Face(face));
        for (corner, index) in corners {
            let distance = (point - corner).norm_squared();
            if distance <= nearest.0 {
                nearest = (distance, Feature::Vertex(*index));
            }
        }
        if let Feature::Vertex(_) = nearest.1 {
            return nearest.1;
        }
        let mut previous = corners[corners.len() - 1];
        for &corner in corners {
            let along = corner.0 - previous.0;
            let (area, length) = (along.cross(&(point - previous.0)).norm_squared(), along.norm_squared());
            // Mostly far away, which is seen without a division.
            if area <= (1.0 + 1e-9) * nearest.0 * length || length == 0.0 {
                let distance = area / length;
                if distance <= nearest.0 {
                    nearest = (distance, Feature::Edge(previous.1, corner.1));
                }
            }
            previous = corner;
        }
        nearest.1
    }
}

/// The length below which points of two polyhedra with these bounding radii count as one.
pub fn nearly(radius_a: f64, radius_b: f64) -> f64 {
    NEARLY * radius_a.min(radius_b)
}

/// Makes the ids of a patch unique, in the order of its points.
pub fn make_unique<'a>(ids: impl Iterator<Item = &'a mut u32>) {
    let mut seen: smallvec::SmallVec<[u32; super::MAX_POINTS]> = smallvec::SmallVec::new();
    for id in ids {
        while seen.contains(id) {
            *id = id.wrapping_add(1);
        }
        seen.push(*id);
    }
}
