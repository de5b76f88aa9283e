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

use super::edges::{PlacedEdge, Reach, edge_axis};
use crate::geometry::{Edge, Face, Mat3, Polyhedron, Pose, Vec3};
use smallvec::SmallVec;

/// Rounding error of a separation, relative to the extent of the pair, with room to spare.
const ROUNDING: f64 = 1e-12;

/// Points of the other body that bound separations.
const WITNESSES: usize = 3;

/// A facet of the Minkowski difference.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Separator {
    /// The direction between the origins of the two: no facet, but it may show that they are apart.
    #[default]
    Centres,
    FaceOfA(u32),
    FaceOfB(u32),
    Edges(u32, u32),
}

/// The largest separation among the faces of both bodies, and among the edge pairs that exceed it.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    pub face: Separator,
    pub face_separation: f64,
    /// The best edge pair, its normal in the frame of a (from a to b), and its separation.
    pub edges: Option<(u32, u32, Vec3, f64)>,
}

/// What a full search leaves behind.
pub struct Search<'p> {
    pub axes: Axes,
    pub of_a: FaceSearch<'p>,
    pub of_b: FaceSearch<'p>,
    /// Pairs (edge of b, edge of a), ascending, that may hold the axis once the two have moved by less than the budget.
    pub edges: SmallVec<[(u32, u32); 8]>,
    pub between_centres: f64,
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
    /// Between the origins.
    pub distance: f64,
    /// More than the rounding error of any separation.
    pub slack: f64,
}

impl<'p> Pair<'p> {
    pub fn new(a: (&'p Polyhedron, &Pose), b: (&'p Polyhedron, &Pose)) -> Self {
        let rotation = (a.1.rotation.inverse() * b.1.rotation).to_rotation_matrix().into_inner();
        let translation = a.1.inverse_point(&b.1.position);
        let distance = translation.norm();
        Pair {
            a: a.0,
            b: b.0,
            rotation,
            inverse: rotation.transpose(),
            translation,
            distance,
            slack: ROUNDING * (a.0.bounding_radius + b.0.bounding_radius + distance),
        }
    }

    /// Largest distance of a point of one body from the origin of the other.
    pub fn lever(&self) -> f64 {
        self.b.bounding_radius.max(self.a.bounding_radius + self.distance)
    }

    /// The angle, as a chord, that the two can turn while no point moves by more than `budget`.
    pub fn turn_within(&self, budget: f64) -> f64 {
        budget / self.lever() + 1e-12
    }

    /// The same pair with a and b exchanged.
    pub fn swapped(&self) -> Self {
        Pair {
            a: self.b,
            b: self.a,
            rotation: self.inverse,
            inverse: self.rotation,
            translation: -(self.inverse * self.translation),
            distance: self.distance,
            slack: self.slack,
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
            Separator::Centres => Some(self.between_centres().0),
            Separator::FaceOfA(face) => {
                self.a.faces.get(face as usize).map(|face| self.above_face_of_a(face, None).0)
            }
            Separator::FaceOfB(face) => {
                self.b.faces.get(face as usize).map(|face| self.above_face_of_b(face, None).0)
            }
            Separator::Edges(a, b) => {
                let known = (a as usize) < self.a.edges.len() && (b as usize) < self.b.edges.len();
                let separation = || edge_axis(&self.edge_of_a(a), &self.edge_of_b(b));
                known.then(separation).flatten().map(|(_, separation)| separation)
            }
        }
    }

    /// (1), and the vertex of b that attains it; `among` some vertices, if the lowest is known to be one of them.
    pub fn above_face_of_a(&self, face: &Face, among: Option<&[u32]>) -> (f64, usize) {
        let (lowest, vertex) = lowest(&self.b.vertices, among, &(self.inverse * face.normal));
        (lowest + (face.normal.dot(&self.translation) - face.offset), vertex)
    }

    /// (2), and the vertex of a that attains it.
    pub fn above_face_of_b(&self, face: &Face, among: Option<&[u32]>) -> (f64, usize) {
        let normal = self.rotation * face.normal;
        let (lowest, vertex) = lowest(&self.a.vertices, among, &normal);
        (lowest - (normal.dot(&self.translation) + face.offset), vertex)
    }

    /// The separation along the line of centres (NaN if they coincide), and the vertices towards each other, frame of a.
    pub fn between_centres(&self) -> (f64, [Vec3; 2]) {
        let towards_a =
            self.vertex_of_b(lowest(&self.b.vertices, None, &(self.inverse * self.translation)).1);
        let towards_b = self.a.vertices[lowest(&self.a.vertices, None, &-self.translation).1];
        (self.translation.dot(&(towards_a - towards_b)) / self.distance, [towards_a, towards_b])
    }

    /// The axes of largest separation, or what separates the pair by more than `margin`, and by how much. What is said for later holds while
    /// no point of one body moves by more than `budget` as seen from the other.
    pub fn search(&self, margin: f64, budget: f64) -> Result<Search<'p>, (Separator, f64)> {
        let slack = self.slack;
        let above_a = |face: &Face| {
            let (separation, vertex) = self.above_face_of_a(face, None);
            (separation, self.vertex_of_b(vertex))
        };
        let above_b = |face: &Face| {
            let (separation, vertex) = self.above_face_of_b(face, None);
            (separation, self.point_in_b(&self.a.vertices[vertex]))
        };
        let (between_centres, [towards_a, towards_b]) = self.between_centres();
        if between_centres > margin {
            return Err((Separator::Centres, between_centres));
        }
        // In turns: the first face of either is often the one that separates a pair apart.
        let mut of_a = FaceSearch::new(&self.a.faces, &towards_a);
        let mut begun: Option<FaceSearch> = None;
        loop {
            let floor = of_a.best.0.max(begun.as_ref().map_or(f64::NEG_INFINITY, |of_b| of_b.best.0)) - slack;
            let more_of_a = of_a.step(floor, above_a);
            if of_a.best.0 > margin {
                return Err((Separator::FaceOfA(of_a.best.1), of_a.best.0));
            }
            let start = || FaceSearch::new(&self.b.faces, &self.point_in_b(&towards_b));
            let of_b = begun.get_or_insert_with(start);
            let more_of_b = of_b.step(of_a.best.0.max(of_b.best.0) - slack, above_b);
            if of_b.best.0 > margin {
                return Err((Separator::FaceOfB(of_b.best.1), of_b.best.0));
            }
            if !more_of_a && !more_of_b {
                break;
            }
        }
        let Some(of_b) = begun else { unreachable!("the loop begins it") };

        let (face, face_separation) = if of_a.best.0 >= of_b.best.0 {
            (Separator::FaceOfA(of_a.best.1), of_a.best.0)
        } else {
            (Separator::FaceOfB(of_b.best.1), of_b.best.0)
        };
        let mut search = Search {
            axes: Axes { face, face_separation, edges: None },
            of_a,
            of_b,
            edges: SmallVec::new(),
            between_centres,
        };
        self.search_edges(&mut search, margin, budget)?;
        Ok(search)
    }

    /// (3) over the edges that may exceed the best face, now or later.
    fn search_edges(&self, search: &mut Search, margin: f64, budget: f64) -> Result<(), (Separator, f64)> {
        let floor = search.axes.face_separation - self.slack;
        let of_a = search.of_a.edges_above(floor - budget, budget, &self.a.edges);
        let edges_a: SmallVec<[PlacedEdge; 24]> = of_a.iter().map(|&index| self.edge_of_a(index)).collect();
        if edges_a.is_empty() {
            return Ok(());
        }
        let reach = Reach {
            turned: self.turn_within(budget),
            lever: self.lever(),
            budget,
            floor,
            origin: self.translation,
        };
        for index in search.of_b.edges_above(floor - budget, budget, &self.b.edges) {
            let edge_b = self.edge_of_b(index);
            for edge_a in &edges_a {
                let Some((normal, separation)) = edge_axis(edge_a, &edge_b) else {
                    if reach.may_cross(edge_a, &edge_b) {
                        search.edges.push((edge_b.index, edge_a.index));
                    }
                    continue;
                };
                if separation > margin {
                    return Err((Separator::Edges(edge_a.index, edge_b.index), separation));
                }
                if !reach.stays_below(edge_a, &edge_b, separation) {
                    search.edges.push((edge_b.index, edge_a.index));
                }
                if search.axes.edges.is_none_or(|best| separation > best.3) {
                    search.axes.edges = Some((edge_a.index, edge_b.index, normal, separation));
                }
            }
        }
        Ok(())
    }

    pub fn edge_of_a(&self, index: u32) -> PlacedEdge {
        let edge = &self.a.edges[index as usize];
        let point = self.a.vertices[edge.vertices[0] as usize];
        let direction = self.a.vertices[edge.vertices[1] as usize] - point;
        let normals = edge.faces.map(|face| self.a.faces[face as usize].normal);
        PlacedEdge { index, point, direction, normals }
    }

    pub fn edge_of_b(&self, index: u32) -> PlacedEdge {
        let edge = &self.b.edges[index as usize];
        let point = self.b.vertices[edge.vertices[0] as usize];
        let direction = self.rotation * (self.b.vertices[edge.vertices[1] as usize] - point);
        let normals = edge.faces.map(|face| self.rotation * self.b.faces[face as usize].normal);
        PlacedEdge { index, point: self.rotation * point + self.translation, direction, normals }
    }
}

/// The faces of one body while the best of them is searched.
pub struct FaceSearch<'p> {
    faces: &'p [Face],
    /// `D` of each face for each witness.
    heights: SmallVec<[[f64; WITNESSES]; 64]>,
    /// The least of them; −∞ once the face was evaluated.
    bounds: SmallVec<[f64; 64]>,
    /// The faces evaluated, with their separations.
    evaluated: SmallVec<[(u32, f64); 8]>,
    witnesses: usize,
    best: (f64, u32),
}

impl<'p> FaceSearch<'p> {
    fn new(faces: &'p [Face], witness: &Vec3) -> Self {
        let bounds: SmallVec<[f64; 64]> = faces.iter().map(|face| height(face, witness)).collect();
        let heights = bounds.iter().map(|&height| [height, f64::INFINITY, f64::INFINITY]).collect();
        FaceSearch {
            faces,
            heights,
            bounds,
            evaluated: SmallVec::new(),
            witnesses: 1,
            best: (f64::NEG_INFINITY, 0),
        }
    }

    /// Evaluates the most promising face; false if none is left that may exceed `floor`. `evaluate` gives the separation and
    /// the point of the other body that attains it.
    fn step(&mut self, floor: f64, evaluate: impl Fn(&Face) -> (f64, Vec3)) -> bool {
        let mut next = (f64::NEG_INFINITY, 0);
        for (face, &bound) in self.bounds.iter().enumerate() {
            if bound > next.0 {
                next = (bound, face);
            }
        }
        let (bound, face) = next;
        if bound <= floor || bound == f64::NEG_INFINITY {
            return false;
        }
        let (separation, witness) = evaluate(&self.faces[face]);
        self.bounds[face] = f64::NEG_INFINITY;
        self.evaluated.push((face as u32, separation));
        // Among equals the lowest face, in whatever order they are met.
        if separation > self.best.0 || (separation == self.best.0 && (face as u32) < self.best.1) {
            self.best = (separation, face as u32);
        }
        if self.witnesses < WITNESSES {
            for ((face, heights), bound) in self.faces.iter().zip(&mut self.heights).zip(&mut self.bounds) {
                heights[self.witnesses] = height(face, &witness);
                *bound = bound.min(heights[self.witnesses]);
            }
            self.witnesses += 1;
        }
        true
    }

    /// The faces whose separation may exceed `threshold`, ascending.
    pub fn faces_above(&self, threshold: f64) -> SmallVec<[u32; 4]> {
        let of_bounds =
            self.bounds.iter().zip(0..).filter(|&(&bound, _)| bound > threshold).map(|(_, face)| face);
        let of_values = self.evaluated.iter().filter(|(_, separation)| *separation > threshold);
        let mut faces: SmallVec<[u32; 4]> = of_bounds.chain(of_values.map(|&(face, _)| face)).collect();
        faces.sort_unstable();
        faces
    }

    /// The edges on whose arcs a separation above `threshold` is possible once the other body has moved by at most `room`.
    fn edges_above(&self, threshold: f64, room: f64, edges: &[Edge]) -> SmallVec<[u32; 24]> {
        (0..)
            .zip(edges)
            .filter(|(_, edge)| self.may_exceed(threshold, room, edge))
            .map(|(index, _)| index)
            .collect()
    }

    fn may_exceed(&self, threshold: f64, room: f64, edge: &Edge) -> bool {
        let [left, right] = edge.faces.map(|face| &self.heights[face as usize]);
        // The later witnesses belong to better faces: they exclude more.
        (0..self.witnesses).rev().all(|witness| {
            let most = left[witness].max(right[witness]) + room;
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

/// The least `direction · x` over the vertices, all or some (ascending), and the first vertex that attains it.
fn lowest(vertices: &[Vec3], among: Option<&[u32]>, direction: &Vec3) -> (f64, usize) {
    let mut best = (f64::INFINITY, 0);
    let mut look = |index: usize, vertex: &Vec3| {
        let value = direction.dot(vertex);
        if value < best.0 {
            best = (value, index);
        }
    };
    match among {
        None => vertices.iter().enumerate().for_each(|(index, vertex)| look(index, vertex)),
        Some(among) => among.iter().for_each(|&index| look(index as usize, &vertices[index as usize])),
    }
    best
}
