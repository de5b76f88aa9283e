//! The axis of largest separation of two convex polyhedra.
//!
//! The separation along a unit direction n (from a to b) is `s(n) = min_b n·x − max_a n·x`. Its maximum over the facets of
//! the Minkowski difference is searched; those are
//!
//! ```text
//! faces of a    n = n_f,            s = min over b of n·x − offset_f                                        (1)
//! faces of b    n = −n_g,           s = min over a of n_g·x − offset_g                                      (2)
//! edge pairs    n ∥ e_a × e_b,      s = n · (p_b − p_a)                                                     (3)
//! ```
//!
//! where a pair of edges counts if the arc between the normals at e_a crosses the negated arc at e_b on the Gauss
//! sphere, and unless the two are parallel (sine below 1e-4, where their facet has no area and no accurate normal).
//!
//! **Bounds.** Any point x of b bounds (1) from above: `s ≤ n_f·x − offset_f =: D_f`. For an n on the arc between the
//! faces f, f' of an edge, a combination with positive weights divided by its length (between cos φ/2 and 1, φ the angle
//! between the normals), `s ≤ m` if `m = max(D_f, D_f') ≤ 0` and `s ≤ m / cos(φ/2)` if not. With two or three *witnesses*
//! x, vertices of b that lie towards a, one or two of fifty faces and some ten of seventy edges are left to look at.
//! What is skipped is provably below the best by more than rounding, so the maximum is that of the full search.
//!
//! Everything is computed in the frame of a, body b turned into it where needed and not as a whole.

use crate::geometry::{Edge, Face, Mat3, Polyhedron, Pose, Vec3};
use smallvec::SmallVec;

/// Sine of the angle below which two edges are parallel, squared.
const PARALLEL_SQUARED: f64 = 1e-8;

/// Rounding error of a separation, relative to the extent of the pair, with room to spare.
const ROUNDING: f64 = 1e-12;

/// Points of the other body that bound separations.
const WITNESSES: usize = 3;

/// A facet of the Minkowski difference.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Separator {
    #[default]
    Unknown,
    FaceOfA(u32),
    FaceOfB(u32),
    Edges(u32, u32),
}

impl Separator {
    /// The same with a and b exchanged.
    pub fn mirrored(self) -> Self {
        match self {
            Separator::Unknown => Separator::Unknown,
            Separator::FaceOfA(face) => Separator::FaceOfB(face),
            Separator::FaceOfB(face) => Separator::FaceOfA(face),
            Separator::Edges(a, b) => Separator::Edges(b, a),
        }
    }
}

/// The largest separation among the faces of both bodies, and among the edge pairs that exceed it.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    pub face: Separator,
    pub face_separation: f64,
    /// The best edge pair, its normal in the frame of a (from a to b), and its separation.
    pub edges: Option<(u32, u32, Vec3, f64)>,
}

/// Two polyhedra and the pose of b in the frame of a.
pub struct Pair<'p> {
    pub a: &'p Polyhedron,
    pub b: &'p Polyhedron,
    /// Turns directions of the frame of b into the frame of a.
    pub rotation: Mat3,
    pub inverse: Mat3,
    /// Origin of b in the frame of a.
    pub translation: Vec3,
}

/// An edge in the frame of a.
struct PlacedEdge {
    index: u32,
    point: Vec3,
    direction: Vec3,
    normals: [Vec3; 2],
}

impl<'p> Pair<'p> {
    pub fn new(a: (&'p Polyhedron, &Pose), b: (&'p Polyhedron, &Pose)) -> Self {
        let rotation = (a.1.rotation.inverse() * b.1.rotation).to_rotation_matrix().into_inner();
        Pair {
            a: a.0,
            b: b.0,
            rotation,
            inverse: rotation.transpose(),
            translation: a.1.inverse_point(&b.1.position),
        }
    }

    /// The same pair with a and b exchanged.
    pub fn swapped(&self) -> Self {
        Pair {
            a: self.b,
            b: self.a,
            rotation: self.inverse,
            inverse: self.rotation,
            translation: -(self.inverse * self.translation),
        }
    }

    /// A vertex of b in the frame of a.
    pub fn vertex_of_b(&self, index: usize) -> Vec3 {
        self.rotation * self.b.vertices[index] + self.translation
    }

    /// A point of the frame of a in the frame of b.
    pub fn point_in_b(&self, point: &Vec3) -> Vec3 {
        self.inverse * (point - self.translation)
    }

    /// The separation of one facet; none if it is no facet (any more).
    pub fn separation(&self, separator: Separator) -> Option<f64> {
        match separator {
            Separator::Unknown => None,
            Separator::FaceOfA(face) => {
                self.a.faces.get(face as usize).map(|face| self.above_face_of_a(face).0)
            }
            Separator::FaceOfB(face) => {
                self.b.faces.get(face as usize).map(|face| self.above_face_of_b(face).0)
            }
            Separator::Edges(a, b) => {
                let edge_a = self.edge_of_a(a, self.a.edges.get(a as usize)?)?;
                let edge_b = self.edge_of_b(b, self.b.edges.get(b as usize)?)?;
                edge_axis(&edge_a, &edge_b).map(|(_, separation)| separation)
            }
        }
    }

    /// (1), and the vertex of b that attains it.
    pub fn above_face_of_a(&self, face: &Face) -> (f64, usize) {
        let (lowest, vertex) = lowest(&self.b.vertices, &(self.inverse * face.normal));
        (lowest + (face.normal.dot(&self.translation) - face.offset), vertex)
    }

    /// (2), and the vertex of a that attains it.
    pub fn above_face_of_b(&self, face: &Face) -> (f64, usize) {
        let normal = self.rotation * face.normal;
        let (lowest, vertex) = lowest(&self.a.vertices, &normal);
        (lowest - (normal.dot(&self.translation) + face.offset), vertex)
    }

    /// The axes of largest separation, or the facet that separates the pair by more than `margin`.
    pub fn search(&self, margin: f64) -> Result<Axes, Separator> {
        let scale = self.a.bounding_radius + self.b.bounding_radius + self.translation.norm();
        let slack = ROUNDING * scale;

        let towards_a = lowest(&self.b.vertices, &(self.inverse * self.translation)).1;
        let mut of_a = FaceSearch::new(&self.a.faces, self.vertex_of_b(towards_a));
        of_a.run(f64::NEG_INFINITY, slack, margin, |face| {
            let (separation, vertex) = self.above_face_of_a(face);
            (separation, self.vertex_of_b(vertex))
        });
        if of_a.best.0 > margin {
            return Err(Separator::FaceOfA(of_a.best.1));
        }

        let towards_b = lowest(&self.a.vertices, &-self.translation).1;
        let mut of_b = FaceSearch::new(&self.b.faces, self.point_in_b(&self.a.vertices[towards_b]));
        of_b.run(of_a.best.0, slack, margin, |face| {
            let (separation, vertex) = self.above_face_of_b(face);
            (separation, self.point_in_b(&self.a.vertices[vertex]))
        });
        if of_b.best.0 > margin {
            return Err(Separator::FaceOfB(of_b.best.1));
        }

        let (face, face_separation) = if of_a.best.0 >= of_b.best.0 {
            (Separator::FaceOfA(of_a.best.1), of_a.best.0)
        } else {
            (Separator::FaceOfB(of_b.best.1), of_b.best.0)
        };
        let edges = self.search_edges(&of_a, &of_b, face_separation - slack, margin)?;
        Ok(Axes { face, face_separation, edges })
    }

    /// (3) over the edges that may exceed `threshold`.
    fn search_edges(
        &self,
        of_a: &FaceSearch,
        of_b: &FaceSearch,
        threshold: f64,
        margin: f64,
    ) -> Result<Option<(u32, u32, Vec3, f64)>, Separator> {
        let edges_a: SmallVec<[PlacedEdge; 24]> = of_a
            .edges_above(threshold, &self.a.edges)
            .filter_map(|(index, edge)| self.edge_of_a(index, edge))
            .collect();
        if edges_a.is_empty() {
            return Ok(None);
        }
        let edges_b = of_b.edges_above(threshold, &self.b.edges);
        let mut best: Option<(u32, u32, Vec3, f64)> = None;
        for edge_b in edges_b.filter_map(|(index, edge)| self.edge_of_b(index, edge)) {
            for edge_a in &edges_a {
                let Some((normal, separation)) = edge_axis(edge_a, &edge_b) else { continue };
                if separation > margin {
                    return Err(Separator::Edges(edge_a.index, edge_b.index));
                }
                if best.is_none_or(|best| separation > best.3) {
                    best = Some((edge_a.index, edge_b.index, normal, separation));
                }
            }
        }
        Ok(best)
    }

    fn edge_of_a(&self, index: u32, edge: &Edge) -> Option<PlacedEdge> {
        let point = *self.a.vertices.get(edge.vertices[0] as usize)?;
        let direction = self.a.vertices.get(edge.vertices[1] as usize)? - point;
        let normals = edge.faces.map(|face| self.a.faces[face as usize].normal);
        Some(PlacedEdge { index, point, direction, normals })
    }

    fn edge_of_b(&self, index: u32, edge: &Edge) -> Option<PlacedEdge> {
        let point = *self.b.vertices.get(edge.vertices[0] as usize)?;
        let direction = self.rotation * (self.b.vertices.get(edge.vertices[1] as usize)? - point);
        let normals = edge.faces.map(|face| self.rotation * self.b.faces[face as usize].normal);
        Some(PlacedEdge { index, point: self.rotation * point + self.translation, direction, normals })
    }
}

/// The faces of one body while the best of them is searched.
struct FaceSearch<'p> {
    faces: &'p [Face],
    /// `D` of each face for each witness.
    heights: SmallVec<[[f64; WITNESSES]; 64]>,
    witnesses: usize,
    best: (f64, u32),
}

impl<'p> FaceSearch<'p> {
    fn new(faces: &'p [Face], witness: Vec3) -> Self {
        let heights =
            faces.iter().map(|face| [height(face, &witness), f64::INFINITY, f64::INFINITY]).collect();
        FaceSearch { faces, heights, witnesses: 1, best: (f64::NEG_INFINITY, 0) }
    }

    /// Evaluates faces, the most promising first, until none is left that may exceed both `floor` and the best so far; or
    /// until one exceeds the margin. `evaluate` gives the separation and the point of the other body that attains it.
    fn run(&mut self, floor: f64, slack: f64, margin: f64, evaluate: impl Fn(&Face) -> (f64, Vec3)) {
        let mut bounds: SmallVec<[f64; 64]> = self.heights.iter().map(|heights| heights[0]).collect();
        loop {
            let mut next = (f64::NEG_INFINITY, 0);
            for (face, &bound) in bounds.iter().enumerate() {
                if bound > next.0 {
                    next = (bound, face);
                }
            }
            let (bound, face) = next;
            if bound <= self.best.0.max(floor) - slack || bound == f64::NEG_INFINITY {
                return;
            }
            let (separation, witness) = evaluate(&self.faces[face]);
            bounds[face] = f64::NEG_INFINITY;
            // Among equals the lowest face, in whatever order they are met.
            if separation > self.best.0 || (separation == self.best.0 && (face as u32) < self.best.1) {
                self.best = (separation, face as u32);
            }
            if separation > margin {
                return;
            }
            if self.witnesses < WITNESSES {
                for ((face, heights), bound) in self.faces.iter().zip(&mut self.heights).zip(&mut bounds) {
                    heights[self.witnesses] = height(face, &witness);
                    *bound = bound.min(heights[self.witnesses]);
                }
                self.witnesses += 1;
            }
        }
    }

    /// The edges on whose arcs a separation above `threshold` is possible.
    fn edges_above<'e>(&'e self, threshold: f64, edges: &'e [Edge]) -> impl Iterator<Item = (u32, &'e Edge)> {
        edges
            .iter()
            .zip(0..)
            .filter(move |(edge, _)| self.may_exceed(threshold, edge))
            .map(|(edge, index)| (index, edge))
    }

    fn may_exceed(&self, threshold: f64, edge: &Edge) -> bool {
        let [left, right] = edge.faces.map(|face| &self.heights[face as usize]);
        (0..self.witnesses).all(|witness| {
            let most = left[witness].max(right[witness]);
            if most <= 0.0 || threshold <= 0.0 {
                most > threshold
            } else {
                let [left, right] = edge.faces.map(|face| &self.faces[face as usize].normal);
                // most / cos(φ/2) > threshold
                2.0 * most * most > threshold * threshold * (1.0 + left.dot(right))
            }
        })
    }
}

fn height(face: &Face, point: &Vec3) -> f64 {
    face.normal.dot(point) - face.offset
}

/// The least `direction · x` over the vertices, and the first vertex that attains it.
pub fn lowest(vertices: &[Vec3], direction: &Vec3) -> (f64, usize) {
    let mut best = (f64::INFINITY, 0);
    for (index, vertex) in vertices.iter().enumerate() {
        let value = direction.dot(vertex);
        if value < best.0 {
            best = (value, index);
        }
    }
    best
}

/// (3): normal from a to b and separation, if the two edges span a facet.
fn edge_axis(a: &PlacedEdge, b: &PlacedEdge) -> Option<(Vec3, f64)> {
    // The arc of a crosses the plane of the negated arc of b, and the other way round, on the same side.
    let (a0, a1) = (a.normals[0].dot(&b.direction), a.normals[1].dot(&b.direction));
    if a0 * a1 >= 0.0 {
        return None;
    }
    let (b0, b1) = (b.normals[0].dot(&a.direction), b.normals[1].dot(&a.direction));
    if b0 * b1 >= 0.0 || b0 * a1 >= 0.0 {
        return None;
    }
    let across = a.direction.cross(&b.direction);
    let squared = across.norm_squared();
    if squared <= PARALLEL_SQUARED * a.direction.norm_squared() * b.direction.norm_squared() {
        return None;
    }
    // The crossing point, a combination of the normals of a with positive weights, gives the sign.
    let crossing = a.normals[0] * a1.abs() + a.normals[1] * a0.abs();
    let length = squared.sqrt().copysign(across.dot(&crossing));
    let normal = across / length;
    Some((normal, normal.dot(&(b.point - a.point))))
}
