//! A polyhedron on a half-space: the vertices within the margin.
//!
//! With n the normal of the half-space in the frame of the polyhedron and h the height of its origin, the gap
//! of a vertex x is `n·x + h`. It changes by at most `δ = ρ |Δn| + |Δh|` (ρ the bounding radius): what is not
//! within the margin and D now cannot be within the margin while δ ≤ D.

use super::feature::{Feature, identify};
use super::memory::Memory;
use super::{MAX_POINTS, Patch, PatchPoint, reduce};
use crate::geometry::{Polyhedron, Pose, Vec3};
use smallvec::SmallVec;

/// D by the bounding radius.
const BUDGET: f64 = 0.02;

/// The vertices of a polyhedron that can be near a half-space.
#[derive(Clone, Debug, Default)]
pub struct Corners {
    /// n and h when this was written, and the margin and D.
    normal: Vec3,
    height: f64,
    margin: f64,
    budget: f64,
    /// Ascending, each with its place: what stands side by side is read sooner than one by one.
    vertices: SmallVec<[(u32, Vec3); 6]>,
}

impl Corners {
    fn write(&mut self, polyhedron: &Polyhedron, normal: Vec3, height: f64, margin: f64) {
        let budget = BUDGET * polyhedron.bounding_radius;
        let can_be_near = |(_, vertex): &(u32, Vec3)| normal.dot(vertex) + height <= margin + budget;
        let mut vertices = std::mem::take(&mut self.vertices);
        vertices.clear();
        vertices.extend((0..).zip(polyhedron.vertices.iter().copied()).filter(can_be_near));
        *self = Self { normal, height, margin, budget, vertices };
    }

    /// Whether no other vertex can be within the margin.
    fn suffice(&self, polyhedron: &Polyhedron, normal: &Vec3, height: f64, margin: f64) -> bool {
        let radius = polyhedron.bounding_radius;
        let moved = radius * (normal - self.normal).norm() + (height - self.height).abs();
        let rounding = 1e-12 * (radius + height.abs());
        moved + (margin - self.margin) + rounding <= self.budget
    }
}

/// The half-space is a.
pub fn polyhedron_on_plane(
    plane: &Pose,
    polyhedron: &Polyhedron,
    pose: &Pose,
    margin: f64,
    memory: &mut Memory,
) -> Option<Patch> {
    let normal = plane.direction(&Vec3::z());
    let height = normal.dot(&(pose.position - plane.position));
    if height - polyhedron.bounding_radius > margin {
        return None;
    }
    let normal_body = pose.inverse_direction(&normal);
    let corners = memory.corners();
    if !corners.suffice(polyhedron, &normal_body, height, margin) {
        corners.write(polyhedron, normal_body, height, margin);
    }
    let mut near: SmallVec<[(u32, Vec3, f64); 16]> = SmallVec::new();
    for &(index, vertex) in &corners.vertices {
        let gap = normal_body.dot(&vertex) + height;
        if gap <= margin {
            near.push((index, vertex, gap));
        }
    }
    if near.is_empty() {
        return None;
    }
    let kept: SmallVec<[usize; MAX_POINTS]> = if near.len() <= MAX_POINTS {
        (0..near.len()).collect()
    } else {
        reduce::keep(&normal_body, near.iter().map(|&(_, vertex, gap)| (vertex, gap)))
    };
    let points = kept
        .iter()
        .map(|&place| {
            let (index, vertex, gap) = near[place];
            let on_b = pose.point(&vertex);
            let feature = identify(Feature::Face(0), Feature::Vertex(index));
            PatchPoint { feature, on_a: on_b - normal * gap, on_b, gap }
        })
        .collect();
    Some(Patch { normal, points })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Random, stone};
    use super::super::{Hint, collide};
    use crate::geometry::{Convex, Quat};

    /// While a stone creeps, rolls, jumps and has another reach.
    #[test]
    fn remembered_corners_change_nothing() {
        let mut random = Random(5);
        let plane = (&Convex::HalfSpace, &random.pose());
        let (mut found, mut kept) = (0, 0);
        for _ in 0..20 {
            let shape = stone(&mut random, 40);
            let stone = Convex::Polyhedron(shape.clone());
            let mut hint = Hint::default();
            let mut pose = random.pose();
            for step in 0..200 {
                let size = [1e-3, 1e-2, 1e-1][step / 20 % 3] * shape.bounding_radius;
                pose.position += random.direction() * size * random.unit();
                pose.rotation = Quat::new(random.direction() * (size * random.unit())) * pose.rotation;
                let margin = 0.1 * random.unit();
                let last = format!("{:?}", hint.memory);
                let patch = collide(plane, (&stone, &pose), margin, &mut hint);
                assert_eq!(patch, collide(plane, (&stone, &pose), margin, &mut Hint::default()));
                found += usize::from(patch.is_some());
                kept += usize::from(patch.is_some() && last == format!("{:?}", hint.memory));
            }
        }
        assert!(found > 500 && kept > found / 4 && kept < found, "{kept} of {found}");
    }
}
