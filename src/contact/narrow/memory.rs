//! What a pair of polyhedra remembers from the last steps, so that most of the search for its axis can be left out.
//!
//! Scratch: whatever it holds, the axis found is the one that the full search finds, bit for bit. Let δ bound how far any point of
//! one body has moved as seen from the other since the memory was written,
//!
//! ```text
//! δ = |Δt| + ‖ΔR‖ max(ρ_b, ρ_a + |t|)              (R, t) the pose of b in the frame of a, ρ bounding radii            (1)
//! ```
//!
//! The separation of a face, and the height of a fixed vertex above it, change by at most δ.
//!
//! - *Apart*: the facet that separated the pair is evaluated first.
//! - *Near*: a shortlist of faces and pairs of edges. Left out were faces whose upper bound (see `axis`) lies more than 2 D below the best
//!   face, edges whose bound does, and pairs of edges whose facet lies so deep, or whose arcs on the Gauss sphere are so far from crossing, that
//!   they cannot matter (`edges::Reach`). While δ ≤ D none of these can hold the maximum: only the list is evaluated, by the same formulas as in
//!   the full search. With D of one per cent of the radius a list of stones at rest serves for thousands of steps. With each face
//!   stand the vertices that can be the lowest above it (at most 2 D higher than the lowest) and the faces that can take part in its patch
//!   ([`Opposed`]).
//!
//! All bounds keep a distance of 1e-12 of the pair's extent, far above rounding.

use super::axis::{Axes, Pair, Search, Separator};
use super::clip::OPPOSED_COSINE;
use super::edges::{PlacedEdge, edge_axis};
use crate::geometry::{Face, Mat3, Polyhedron, Vec3};
use smallvec::SmallVec;

/// D relative to the smaller bounding radius.
const BUDGET: f64 = 0.01;

#[derive(Clone, Debug, Default)]
pub enum Memory {
    #[default]
    Nothing,
    /// The facet that separated the pair, and by how much.
    Apart(Separator, f64),
    Near(Box<Near>),
}

/// Candidates for the axis of largest separation, ascending.
#[derive(Clone, Debug)]
pub struct Near {
    /// The pose of b in the frame of a when this was written.
    rotation: Mat3,
    translation: Vec3,
    budget: f64,
    faces_of_a: SmallVec<[Opposed; 1]>,
    faces_of_b: SmallVec<[Opposed; 1]>,
    /// (edge of b, edge of a), ascending: the order of the full search.
    edges: SmallVec<[(u32, u32); 8]>,
    /// Separation along the line of centres.
    between_centres: f64,
}

/// A face, and what of the other body can face it.
#[derive(Clone, Debug)]
pub struct Opposed {
    face: u32,
    /// The vertices that can be the lowest above it, ascending.
    pub vertices: SmallVec<[u32; 4]>,
    /// The faces that can be the one most opposed, or nearly parallel to it, ascending.
    pub faces: SmallVec<[u32; 10]>,
}

impl Memory {
    /// The axes of largest separation; none if the pair is separated by more than `margin`.
    pub fn axes(&mut self, pair: &Pair, margin: f64) -> Option<Axes> {
        match self {
            Memory::Nothing => {}
            Memory::Apart(separator, known) => {
                if let Some(separation) = pair.separation(*separator)
                    && separation > margin
                {
                    *known = separation;
                    return None;
                }
            }
            Memory::Near(near) => {
                let moved = near.moved(pair);
                if moved <= near.budget {
                    return near.axes(pair, margin, moved);
                }
            }
        }
        let budget = BUDGET * pair.a.bounding_radius.min(pair.b.bounding_radius);
        match pair.search(margin, budget) {
            Ok(search) => {
                let axes = search.axes;
                let near = Near::new(pair, search, budget);
                match self {
                    Memory::Near(old) => **old = near,
                    _ => *self = Memory::Near(Box::new(near)),
                }
                Some(axes)
            }
            Err((separator, separation)) => {
                *self = Memory::Apart(separator, separation);
                None
            }
        }
    }

    /// What can face a face, if that is on the list. To be asked right after [`Self::axes`], for the same pair.
    pub fn opposed(&self, separator: Separator) -> Option<&Opposed> {
        let Memory::Near(near) = self else { return None };
        let (list, face) = match separator {
            Separator::FaceOfA(face) => (&near.faces_of_a, face),
            Separator::FaceOfB(face) => (&near.faces_of_b, face),
            Separator::Centres | Separator::Edges(..) => return None,
        };
        list.iter().find(|opposed| opposed.face == face)
    }
}

impl Near {
    fn new(pair: &Pair, search: Search, budget: f64) -> Self {
        let floor = search.axes.face_separation - pair.slack - 2.0 * budget;
        let turned = pair.turn_within(budget);
        let of_a = |&face: &u32| {
            let normal = &pair.a.faces[face as usize].normal;
            Opposed::new(face, &(pair.inverse * normal), pair.b, 2.0 * budget + pair.slack, turned)
        };
        let of_b = |&face: &u32| {
            let normal = &pair.b.faces[face as usize].normal;
            Opposed::new(face, &(pair.rotation * normal), pair.a, 2.0 * budget + pair.slack, turned)
        };
        Self {
            rotation: pair.rotation,
            translation: pair.translation,
            budget,
            faces_of_a: search.of_a.faces_above(floor).iter().map(of_a).collect(),
            faces_of_b: search.of_b.faces_above(floor).iter().map(of_b).collect(),
            edges: search.edges,
            between_centres: search.between_centres,
        }
    }

    /// δ of (1).
    fn moved(&self, pair: &Pair) -> f64 {
        let turned = (pair.rotation - self.rotation).norm();
        (pair.translation - self.translation).norm() + turned * pair.lever()
    }

    /// As [`Pair::search`], with the candidates of the list.
    fn axes(&self, pair: &Pair, margin: f64, moved: f64) -> Option<Axes> {
        // The line of centres turns by at most Δt / |t|, and the supports along it move by that times their distance.
        let drift = moved * (1.0 + 2.0 * (pair.a.bounding_radius + pair.b.bounding_radius) / pair.distance);
        let may_part = self.between_centres + drift + pair.slack > margin || drift.is_nan();
        if may_part && pair.between_centres().0 > margin {
            return None;
        }
        let mut face = (f64::NEG_INFINITY, Separator::FaceOfA(0));
        for Opposed { face: index, vertices, .. } in &self.faces_of_a {
            let separation = pair.above_face_of_a(&pair.a.faces[*index as usize], Some(vertices)).0;
            if separation > face.0 {
                face = (separation, Separator::FaceOfA(*index));
            }
        }
        for Opposed { face: index, vertices, .. } in &self.faces_of_b {
            let separation = pair.above_face_of_b(&pair.b.faces[*index as usize], Some(vertices)).0;
            if separation > face.0 {
                face = (separation, Separator::FaceOfB(*index));
            }
        }
        if face.0 > margin {
            return None;
        }
        let mut best: Option<(u32, u32, Vec3, f64)> = None;
        let mut placed: Option<PlacedEdge> = None;
        for &(b, a) in &self.edges {
            let edge_b = match placed {
                Some(ref edge_b) if edge_b.index == b => edge_b,
                _ => placed.insert(pair.edge_of_b(b)),
            };
            let Some((normal, separation)) = edge_axis(&pair.edge_of_a(a), edge_b) else { continue };
            if separation > margin {
                return None;
            }
            if best.is_none_or(|best| separation > best.3) {
                best = Some((a, b, normal, separation));
            }
        }
        Some(Axes { face: face.1, face_separation: face.0, edges: best })
    }
}

impl Opposed {
    /// `normal` of the face in the frame of the other body. Vertices up to `room` higher than the lowest may become the lowest, and normals turn by
    /// at most `turned`.
    fn new(face: u32, normal: &Vec3, other: &Polyhedron, room: f64, turned: f64) -> Self {
        let heights: SmallVec<[f64; 32]> = other.vertices.iter().map(|vertex| normal.dot(vertex)).collect();
        let highest = heights.iter().fold(f64::INFINITY, |least, &height| least.min(height)) + room;
        let vertices: SmallVec<[u32; 4]> =
            (0..).zip(&heights).filter(|&(_, &height)| height <= highest).map(|(index, _)| index).collect();
        // One bit for each vertex modulo 64: a face too many costs time and nothing else.
        let bits = vertices.iter().fold(0_u64, |bits, &vertex| bits | 1 << (vertex & 63));
        let cosine = OPPOSED_COSINE - turned;
        let takes_part = |face: &Face| {
            face.vertices.iter().any(|&vertex| bits >> (vertex & 63) & 1 == 1)
                || -normal.dot(&face.normal) >= cosine
        };
        let faces =
            (0..).zip(&other.faces).filter(|(_, face)| takes_part(face)).map(|(index, _)| index).collect();
        Self { face, vertices, faces }
    }
}
