//! Convex polyhedra: boxes, hulls, stones.

use super::{Columns, Drawing, Primitive};
use crate::geometry::four::{Four, each, with};
use crate::geometry::mass::{MassError, Moments};
use crate::geometry::{Aabb, Pose, Quat, Vec3};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

/// A convex polyhedron with merged coplanar faces.
///
/// Faces are loops of vertices, counter-clockwise seen from outside; every edge borders two faces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Polyhedron {
    pub vertices: Vec<Vec3>,
    pub faces: Vec<Face>,
    pub edges: Vec<Edge>,
    /// Largest distance of a vertex from the origin.
    pub bounding_radius: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Face {
    /// Unit, outward.
    pub normal: Vec3,
    /// `normal · x = offset` on the face.
    pub offset: f64,
    /// Counter-clockwise seen from outside, at least three. Most faces of stones are triangles, whose corners
    /// then stand beside the normal: one line of the cache for what detection reads of a face.
    pub vertices: SmallVec<[u32; 4]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    pub vertices: [u32; 2],
    /// The face left of `vertices[0] → vertices[1]` seen from outside, then the other one.
    pub faces: [u32; 2],
}

impl Primitive for Arc<Polyhedron> {
    const CODE: u8 = 1;

    fn bounding_radius(&self) -> f64 {
        self.bounding_radius
    }

    fn aabb(&self, pose: &Pose) -> Aabb {
        // A matrix turns many points for the price of a few quaternion products.
        let rotation = pose.rotation.to_rotation_matrix().into_inner();
        let turn = [0, 1, 2].map(|k| with(&rotation.column(k).into_owned(), 0.0));
        let (mut min, mut max) = ([f64::INFINITY; 4], [f64::NEG_INFINITY; 4]);
        for vertex in &self.vertices {
            let point = each(|k| turn[0][k] * vertex.x + turn[1][k] * vertex.y + turn[2][k] * vertex.z);
            // One instruction each, which `f64::min` is not.
            min = each(|k| if point[k] < min[k] { point[k] } else { min[k] });
            max = each(|k| if point[k] > max[k] { point[k] } else { max[k] });
        }
        let place = |corner: Four| Vec3::new(corner[0], corner[1], corner[2]) + pose.position;
        Aabb { min: place(min), max: place(max) }
    }

    fn moments(&self) -> Result<Moments, MassError> {
        Ok(Moments::of_polyhedron(self))
    }

    fn support(&self, direction: &Vec3) -> Option<Vec3> {
        let height = |vertex: &&Vec3| vertex.dot(direction);
        self.vertices.iter().max_by(|a, b| height(a).total_cmp(&height(b))).copied()
    }

    fn drawing(&self) -> Drawing {
        Drawing::Polyhedron(self.clone())
    }

    fn columns(&self) -> Columns {
        let radius = self.bounding_radius;
        Columns { code: Self::CODE, radius, sizes: SmallVec::new(), solid: Some(self.clone()) }
    }

    fn from_columns(columns: Columns) -> Result<Self, String> {
        let solid = columns.solid.ok_or("a polyhedron has no faces")?;
        let Polyhedron { vertices, faces, edges, .. } = &*solid;
        let vertex_is_there = |vertex: &u32| (*vertex as usize) < vertices.len();
        let face_is_there = |face: &u32| (*face as usize) < faces.len();
        let whole =
            faces.iter().all(|face| face.vertices.len() >= 3 && face.vertices.iter().all(vertex_is_there))
                && edges.iter().all(|edge| {
                    edge.vertices.iter().all(vertex_is_there) && edge.faces.iter().all(face_is_there)
                });
        if !whole {
            return Err("a polyhedron names vertices or faces that it does not have".into());
        }
        Ok(solid)
    }
}

impl Polyhedron {
    /// A box around the origin. Each half extent has to be positive and finite.
    ///
    /// Vertex `i` has the sign of bit k of `i` along axis k; the faces are −x, +x, −y, +y, −z, +z.
    pub fn from_box(half_extents: Vec3) -> Self {
        let sign = |i: usize, k: usize| if i >> k & 1 == 1 { 1.0 } else { -1.0 };
        let vertices = (0..8).map(|i| Vec3::from_fn(|k, _| sign(i, k) * half_extents[k])).collect();
        const LOOPS: [[u32; 4]; 6] =
            [[0, 4, 6, 2], [1, 3, 7, 5], [0, 1, 5, 4], [2, 6, 7, 3], [0, 2, 3, 1], [4, 5, 7, 6]];
        let face = |(index, ring): (usize, &[u32; 4])| {
            let mut normal = Vec3::zeros();
            normal[index / 2] = sign(index, 0);
            Face { normal, offset: half_extents[index / 2], vertices: SmallVec::from_slice(ring) }
        };
        // The face left of each edge, and the face right of it.
        let edge = |from: u32, axis: u32| {
            let follows =
                |ring: &[u32; 4], a: u32, b: u32| (0..4).any(|i| ring[i] == a && ring[(i + 1) % 4] == b);
            let to = from | 1 << axis;
            let beside = |a, b| LOOPS.iter().position(|ring| follows(ring, a, b)).map_or(0, |f| f as u32);
            Edge { vertices: [from, to], faces: [beside(from, to), beside(to, from)] }
        };
        let starts = |axis: u32| (0..8u32).filter(move |v| v >> axis & 1 == 0).map(move |v| (v, axis));
        let edges = (0..3).flat_map(starts).map(|(from, axis)| edge(from, axis)).collect();
        let faces = LOOPS.iter().enumerate().map(face).collect();
        Polyhedron { vertices, faces, edges, bounding_radius: half_extents.norm() }
    }

    /// The same polyhedron at `pose`: rotated first, then moved.
    pub fn transformed(&self, pose: &Pose) -> Self {
        let vertices: Vec<Vec3> = self.vertices.iter().map(|v| pose.point(v)).collect();
        let face = |face: &Face| {
            let normal = pose.direction(&face.normal);
            let on_face = face.vertices.iter().map(|&v| normal.dot(&vertices[v as usize]));
            let offset = on_face.sum::<f64>() / face.vertices.len() as f64;
            Face { normal, offset, vertices: face.vertices.clone() }
        };
        let faces = self.faces.iter().map(face).collect();
        let bounding_radius = vertices.iter().map(|v| v.norm()).fold(0.0, f64::max);
        Polyhedron { vertices, faces, edges: self.edges.clone(), bounding_radius }
    }

    pub fn translated(&self, by: Vec3) -> Self {
        self.transformed(&Pose::new(Quat::identity(), by))
    }

    pub fn rotated(&self, by: Quat) -> Self {
        self.transformed(&Pose::new(by, Vec3::zeros()))
    }

    /// Scaled about the origin by a positive factor.
    pub fn scaled(&self, factor: f64) -> Self {
        let face = |face: &Face| Face { offset: face.offset * factor, ..face.clone() };
        Polyhedron {
            vertices: self.vertices.iter().map(|v| v * factor).collect(),
            faces: self.faces.iter().map(face).collect(),
            edges: self.edges.clone(),
            bounding_radius: self.bounding_radius * factor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::convex_hull;

    #[test]
    fn a_box_is_the_hull_of_its_corners() {
        let made = Polyhedron::from_box(Vec3::new(0.5, 1.0, 0.25));
        let hull = convex_hull(&made.vertices).expect("a hull");
        assert_eq!(made.vertices, hull.vertices);
        assert_eq!(made.bounding_radius, hull.bounding_radius);
        assert_eq!((made.faces.len(), made.edges.len()), (6, 12));
        for face in &made.faces {
            assert!(hull.faces.contains(face), "{face:?}");
        }
        for edge in &made.edges {
            let normals = |shape: &Polyhedron, e: &Edge| e.faces.map(|f| shape.faces[f as usize].normal);
            let same = hull.edges.iter().find(|e| e.vertices == edge.vertices).expect("the same edge");
            assert_eq!(normals(&made, edge), normals(&hull, same));
        }
    }

    #[test]
    fn a_moved_hull_is_the_hull_of_moved_points() {
        let shape = Polyhedron::from_box(Vec3::new(0.3, 0.2, 0.1));
        let pose = Pose::new(Quat::from_euler_angles(0.3, -1.0, 2.0), Vec3::new(4.0, -2.0, 1.0));
        let moved = shape.transformed(&pose);
        let points: Vec<Vec3> = shape.vertices.iter().map(|v| pose.point(v)).collect();
        let hull = convex_hull(&points).expect("a hull");
        assert_eq!(moved.bounding_radius, hull.bounding_radius);
        for face in &moved.faces {
            let same = hull.faces.iter().find(|f| f.vertices == face.vertices).expect("the same face");
            assert!((face.normal - same.normal).norm() < 1e-14 && (face.offset - same.offset).abs() < 1e-14);
        }
        assert_eq!(
            shape.translated(pose.position).rotated(Quat::identity()),
            shape.translated(pose.position)
        );
        assert_eq!(shape.scaled(2.0), Polyhedron::from_box(Vec3::new(0.6, 0.4, 0.2)));
    }
}
