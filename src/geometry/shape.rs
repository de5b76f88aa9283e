//! What a body looks like: convex pieces in the body frame.

use super::four::{Four, each, with};
use super::{Aabb, Pose, Quat, Vec3};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

/// The shape of a body, in its own frame (origin at the centre of mass for bodies that move).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    Convex(Convex),
    /// Several convex parts on one rigid body, for instance a tamping tool.
    Cluster(Arc<[Part]>),
}

/// One convex piece.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Convex {
    /// Centred at the origin of its frame.
    Sphere { radius: f64 },
    /// Boxes are polyhedra too.
    Polyhedron(Arc<Polyhedron>),
    /// Everything with z ≤ 0 in its frame; the outward normal is +z. Never moves freely.
    HalfSpace,
}

/// A convex piece at its place in the body frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    pub pose: Pose,
    pub convex: Convex,
}

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
    /// Counter-clockwise seen from outside, at least three. Most faces of stones are triangles, whose corners then stand beside the normal: one line
    /// of the cache for what detection asks of a face.
    pub vertices: SmallVec<[u32; 4]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    pub vertices: [u32; 2],
    /// The face left of `vertices[0] → vertices[1]` seen from outside, then the other one.
    pub faces: [u32; 2],
}

impl Shape {
    pub fn sphere(radius: f64) -> Self {
        Shape::Convex(Convex::Sphere { radius })
    }

    pub fn polyhedron(polyhedron: Polyhedron) -> Self {
        Shape::Convex(Convex::Polyhedron(Arc::new(polyhedron)))
    }

    /// The convex parts with their poses in the body frame.
    pub fn parts(&self) -> impl Iterator<Item = (Pose, &Convex)> {
        let (single, cluster) = match self {
            Shape::Convex(convex) => (Some((Pose::identity(), convex)), &[][..]),
            Shape::Cluster(parts) => (None, &parts[..]),
        };
        single.into_iter().chain(cluster.iter().map(|part| (part.pose, &part.convex)))
    }

    /// One of them.
    pub fn part(&self, index: usize) -> &Convex {
        match self {
            Shape::Convex(convex) => convex,
            Shape::Cluster(parts) => &parts[index].convex,
        }
    }

    /// Largest distance of a point of the shape from the body's origin (infinite for a half-space).
    pub fn bounding_radius(&self) -> f64 {
        match self {
            Shape::Convex(convex) => convex.bounding_radius(),
            Shape::Cluster(parts) => {
                let radius = |part: &Part| part.pose.position.norm() + part.convex.bounding_radius();
                parts.iter().map(radius).fold(0.0, f64::max)
            }
        }
    }

    /// Smallest axis-aligned box around the shape at `pose`.
    pub fn aabb(&self, pose: &Pose) -> Aabb {
        match self {
            Shape::Convex(convex) => convex.aabb(pose),
            Shape::Cluster(parts) => parts
                .iter()
                .map(|part| part.convex.aabb(&pose.compose(&part.pose)))
                .fold(Aabb::empty(), |all, one| all.union(&one)),
        }
    }
}

impl Convex {
    pub fn bounding_radius(&self) -> f64 {
        match self {
            Convex::Sphere { radius } => *radius,
            Convex::Polyhedron(polyhedron) => polyhedron.bounding_radius,
            Convex::HalfSpace => f64::INFINITY,
        }
    }

    pub fn aabb(&self, pose: &Pose) -> Aabb {
        match self {
            Convex::Sphere { radius } => Aabb { min: pose.position, max: pose.position }.inflated(*radius),
            Convex::Polyhedron(polyhedron) => {
                // A matrix turns many points for the price of a few quaternion products.
                let rotation = pose.rotation.to_rotation_matrix().into_inner();
                let turn = [0, 1, 2].map(|k| with(&rotation.column(k).into_owned(), 0.0));
                let (mut min, mut max) = ([f64::INFINITY; 4], [f64::NEG_INFINITY; 4]);
                for vertex in &polyhedron.vertices {
                    let point =
                        each(|k| turn[0][k] * vertex.x + turn[1][k] * vertex.y + turn[2][k] * vertex.z);
                    // One instruction each, which `f64::min` is not.
                    min = each(|k| if point[k] < min[k] { point[k] } else { min[k] });
                    max = each(|k| if point[k] > max[k] { point[k] } else { max[k] });
                }
                let place = |corner: Four| Vec3::new(corner[0], corner[1], corner[2]) + pose.position;
                Aabb { min: place(min), max: place(max) }
            }
            Convex::HalfSpace => {
                Aabb { min: Vec3::repeat(f64::NEG_INFINITY), max: Vec3::repeat(f64::INFINITY) }
            }
        }
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
    use super::super::convex_hull;
    use super::*;

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
