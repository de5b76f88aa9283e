//! A polyhedron on a half-space: the vertices within the margin.

use super::feature::{Feature, identify};
use super::{MAX_POINTS, Patch, PatchPoint, reduce};
use crate::geometry::{Polyhedron, Pose, Vec3};
use smallvec::SmallVec;

/// The half-space is a.
pub fn polyhedron_on_plane(plane: &Pose, polyhedron: &Polyhedron, pose: &Pose, margin: f64) -> Option<Patch> {
    let normal = plane.direction(&Vec3::z());
    let height = normal.dot(&(pose.position - plane.position));
    if height - polyhedron.bounding_radius > margin {
        return None;
    }
    let normal_body = pose.inverse_direction(&normal);
    let mut near: SmallVec<[(usize, f64); 32]> = SmallVec::new();
    for (index, vertex) in polyhedron.vertices.iter().enumerate() {
        let gap = normal_body.dot(vertex) + height;
        if gap <= margin {
            near.push((index, gap));
        }
    }
    if near.is_empty() {
        return None;
    }
    let kept: SmallVec<[usize; MAX_POINTS]> = if near.len() <= MAX_POINTS {
        (0..near.len()).collect()
    } else {
        reduce::keep(&normal_body, near.iter().map(|&(index, gap)| (polyhedron.vertices[index], gap)))
    };
    let points = kept
        .iter()
        .map(|&index| {
            let (vertex, gap) = near[index];
            let on_b = pose.point(&polyhedron.vertices[vertex]);
            let feature = identify(Feature::Face(0), Feature::Vertex(vertex as u32));
            PatchPoint { feature, on_a: on_b - normal * gap, on_b, gap }
        })
        .collect();
    Some(Patch { normal, points })
}
