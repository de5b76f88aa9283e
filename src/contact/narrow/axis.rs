//! The axis of largest separation of two convex polyhedra.
//!
//! The separation along a unit direction n (from a to b) is `s(n) = min_b n·x − max_a n·x`. Its maximum over
//! the facets of the Minkowski difference is searched; those are
//!
//! ```text
//! faces of a    n = n_f,            s = min over b of n·x − offset_f                                     (1)
//! faces of b    n = −n_g,           s = min over a of n_g·x − offset_g                                   (2)
//! edge pairs    n ∥ e_a × e_b,      s = n · (p_b − p_a)                                                  (3)
//! ```
//!
//! where a pair of edges counts if the arc between the normals at e_a crosses the negated arc at e_b on the
//! Gauss sphere, and unless the two are parallel (sine below 1e-4, where their facet has no area and no
//! accurate normal).
//!
//! **Bounds.** Any point x of b bounds (1) from above: `s ≤ n_f·x − offset_f =: D_f`. For an n on the arc
//! between the faces f, f' of an edge, a combination with positive weights divided by its length (between cos
//! φ/2 and 1, φ the angle between the normals), `s ≤ m` if `m = max(D_f, D_f') ≤ 0` and `s ≤ m / cos(φ/2)` if
//! not. With two or three *witnesses* x, vertices of b that lie towards a, one or two of fifty faces and some
//! ten of seventy edges are left to examine. What is skipped is provably below the best by more than
//! rounding, so the maximum is that of the full search.
//!
//! Everything is computed in the frame of a, body b turned into it where needed and not as a whole.

use super::edges::{PlacedEdge, Reach, Turning, edge_axis};
use super::faces::FaceSearch;
use crate::geometry::{Face, Mat3, Polyhedron, Pose, Vec3};

/// Rounding error of a separation, relative to the extent of the pair, with room to spare.
const ROUNDING: f64 = 1e-12;

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
    pub edges: Option<EdgeAxis>,
}

/// An edge of a and one of b, their normal in the frame of a (from a to b), and their separation.
pub type EdgeAxis = (u32, u32, Vec3, f64);

/// Where an earlier search of the pair ended: a place to begin.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// The vertex of a that was closest to b, and that of b that was closest to a.
    pub vertices: [u32; 2],
    /// No less than the separation along the line of centres now.
    pub between_centres: f64,
}

/// What a full search leaves behind. Its lists are used again for the next pair: to carry 4 KB about on the
/// stack took a fifteenth of the instructions of detection (9000 stones on the move).
#[derive(Default)]
pub struct Search {
    pub of_a: FaceSearch,
    pub of_b: FaceSearch,
    /// Pairs (edge of b, edge of a), ascending, that may hold the axis once the two have moved by less than
    /// the budget.
    pub edges: Vec<(u32, u32)>,
    edges_of_a: Vec<Turning>,
    found: [Vec<u32>; 2],
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
            Separator::Centres => Some(self.between_centres().between_centres),
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

    /// (1), and the vertex of b that attains it; `among` some vertices, if the lowest is known to be one of
    /// them.
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

    /// The separation along the line of centres (NaN if they coincide), and the vertices towards each other.
    pub fn between_centres(&self) -> Start {
        let towards_a = lowest(&self.b.vertices, None, &(self.inverse * self.translation)).1;
        let towards_b = lowest(&self.a.vertices, None, &-self.translation).1;
        let between = self.vertex_of_b(towards_a) - self.a.vertices[towards_b];
        Start {
            vertices: [towards_b as u32, towards_a as u32],
            between_centres: self.translation.dot(&between) / self.distance,
        }
    }

    /// The axes of largest separation and where to start the next time, or what separates the pair by more
    /// than `margin`, and by how much. What is left in `search` holds while no point of one body moves by
    /// more than `budget` as seen from the other. Where to `start` decides how soon it ends, and nothing
    /// else.
    pub fn search(
        &self,
        margin: f64,
        budget: f64,
        start: Option<Start>,
        search: &mut Search,
    ) -> Result<(Axes, Start), (Separator, f64)> {
        let slack = self.slack;
        let above_a = |face: &Face| self.above_face_of_a(face, None);
        let above_b = |face: &Face| self.above_face_of_b(face, None);
        let place_b = |vertex: usize| self.vertex_of_b(vertex);
        let place_a = |vertex: usize| self.point_in_b(&self.a.vertices[vertex]);
        let mut start = match start {
            Some(start) if start.between_centres + slack <= margin => start,
            start => {
                let centres = self.between_centres();
                if centres.between_centres > margin {
                    return Err((Separator::Centres, centres.between_centres));
                }
                Start { vertices: start.map_or(centres.vertices, |start| start.vertices), ..centres }
            }
        };
        let [from_a, from_b] = start.vertices.map(|vertex| vertex as usize);
        let Search { of_a, of_b, .. } = search;
        of_a.begin(&self.a.faces, from_b, &place_b(from_b));
        // In turns: the first face of either is often the one that separates a pair apart.
        let mut begun = false;
        loop {
            let other = if begun { of_b.best.0 } else { f64::NEG_INFINITY };
            let more_of_a = of_a.step(&self.a.faces, of_a.best.0.max(other) - slack, above_a, place_b);
            if of_a.best.0 > margin {
                return Err((Separator::FaceOfA(of_a.best.1), of_a.best.0));
            }
            if !begun {
                of_b.begin(&self.b.faces, from_a, &place_a(from_a));
                begun = true;
            }
            let floor = of_a.best.0.max(of_b.best.0) - slack;
            let more_of_b = of_b.step(&self.b.faces, floor, above_b, place_a);
            if of_b.best.0 > margin {
                return Err((Separator::FaceOfB(of_b.best.1), of_b.best.0));
            }
            if !more_of_a && !more_of_b {
                break;
            }
        }
        let (face, face_separation) = if of_a.best.0 >= of_b.best.0 {
            (Separator::FaceOfA(of_a.best.1), of_a.best.0)
        } else {
            (Separator::FaceOfB(of_b.best.1), of_b.best.0)
        };
        start.vertices = [of_b.last_witness(), of_a.last_witness()];
        let edges = self.search_edges(search, face_separation - slack, margin, budget)?;
        Ok((Axes { face, face_separation, edges }, start))
    }

    /// (3) over the edges that may exceed the best face, which separates by `floor`, now or later.
    fn search_edges(
        &self,
        search: &mut Search,
        floor: f64,
        margin: f64,
        budget: f64,
    ) -> Result<Option<EdgeAxis>, (Separator, f64)> {
        let Search { of_a, of_b, edges, edges_of_a, found } = search;
        edges.clear();
        of_a.edges_above(floor - budget, budget, self.a, &mut found[0]);
        if found[0].is_empty() {
            return Ok(None);
        }
        of_b.edges_above(floor - budget, budget, self.b, &mut found[1]);
        let reach = Reach {
            turned: self.turn_within(budget),
            lever: self.lever(),
            budget,
            floor,
            origin: self.translation,
        };
        edges_of_a.clear();
        edges_of_a.extend(found[0].iter().map(|&index| reach.turning(self.edge_of_a(index))));
        let mut best: Option<EdgeAxis> = None;
        for &index in &found[1] {
            let edge_b = reach.turning(self.edge_of_b(index));
            // Most arcs are far from crossing, which two to four dot products show.
            for edge_a in edges_of_a.iter().filter(|edge_a| edge_a.may_cross(&edge_b)) {
                let (edge_a, edge_b) = (&edge_a.edge, &edge_b.edge);
                let Some((normal, separation)) = edge_axis(edge_a, edge_b) else {
                    edges.push((edge_b.index, edge_a.index));
                    continue;
                };
                if separation > margin {
                    return Err((Separator::Edges(edge_a.index, edge_b.index), separation));
                }
                if !reach.stays_below(edge_a, edge_b, separation) {
                    edges.push((edge_b.index, edge_a.index));
                }
                if best.is_none_or(|best| separation > best.3) {
                    best = Some((edge_a.index, edge_b.index, normal, separation));
                }
            }
        }
        Ok(best)
    }

    pub fn edge_of_a(&self, index: u32) -> PlacedEdge {
        let edge = &self.a.edges[index as usize];
        let point = self.a.vertices[edge.vertices[0] as usize];
        let direction = self.a.vertices[edge.vertices[1] as usize] - point;
        PlacedEdge { index, point, direction, normals: self.normals_of_a(index) }
    }

    /// Of the faces at an edge.
    pub fn normals_of_a(&self, edge: u32) -> [Vec3; 2] {
        self.a.edges[edge as usize].faces.map(|face| self.a.faces[face as usize].normal)
    }

    pub fn edge_of_b(&self, index: u32) -> PlacedEdge {
        let edge = &self.b.edges[index as usize];
        let point = self.b.vertices[edge.vertices[0] as usize];
        let direction = self.rotation * (self.b.vertices[edge.vertices[1] as usize] - point);
        let normals = edge.faces.map(|face| self.rotation * self.b.faces[face as usize].normal);
        PlacedEdge { index, point: self.rotation * point + self.translation, direction, normals }
    }
}

/// The least `direction · x` over the vertices, all or some (ascending), and the first vertex that attains
/// it.
pub fn lowest(vertices: &[Vec3], among: Option<&[u32]>, direction: &Vec3) -> (f64, usize) {
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
