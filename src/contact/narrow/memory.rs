//! What a pair of polyhedra remembers from the last steps, so that most of the search for its axis can be
//! left out.
//!
//! Scratch: whatever it holds, the axis found is the one that the full search finds, bit for bit. Let δ bound
//! how far any point of one body has moved as seen from the other since the memory was written,
//!
//! ```text
//! δ = |Δt| + ‖ΔR‖ max(ρ_b, ρ_a + |t|)      (R, t) the pose of b in the frame of a, ρ bounding radii      (1)
//! ```
//!
//! The separation of a face, and the height of a fixed vertex above it, change by at most δ.
//!
//! - *Apart*: the facet that separated the pair is evaluated first.
//! - *Near*: a shortlist of faces and pairs of edges. Left out were faces whose upper bound (see `axis`) lies
//!   more than 2 D below the best face, edges whose bound does, and pairs of edges whose facet lies so deep,
//!   or whose arcs on the Gauss sphere are so far from crossing, that they cannot matter (`edges::Reach`).
//!   While δ ≤ D none of these can hold the maximum: only the list is evaluated, by the same formulas as in
//!   the full search. With D of one per cent of the radius a list of stones at rest serves for thousands of
//!   steps; pairs that move have a larger D. With each face stand the vertices that can be the lowest above
//!   it (at most 2 D higher than the lowest) and, once it has served as axis, the faces that can take part in
//!   its patch ([`Opposed`]).
//!
//! A pair that has outrun its list is searched anew from the vertices that were closest ([`Start`]), which
//! mostly still are.
//!
//! All bounds keep a distance of 1e-12 of the pair's extent, far above rounding.

use super::axis::{Axes, EdgeAxis, Pair, Search, Separator, Start, lowest};
use super::clip::OPPOSED_COSINE;
use super::edges::{PlacedEdge, crosses_plane, edge_axis};
use super::plane::Corners;
use crate::geometry::{Face, Mat3, Polyhedron, Vec3};
use smallvec::SmallVec;
use std::cell::RefCell;

/// D relative to the smaller bounding radius, at least and at most: twice as much for a pair that has outrun
/// its list after less than `SOON` queries, half as much after more than `LATE`. A long list costs at every
/// query, a short one is soon written anew.
const LEAST_BUDGET: f64 = 0.01;
const MOST_BUDGET: f64 = 0.04;
const SOON: u32 = 4;
const LATE: u32 = 16;

thread_local! {
    static SEARCH: RefCell<Search> = RefCell::default();
}

#[derive(Clone, Debug, Default)]
pub enum Memory {
    #[default]
    Nothing,
    /// The facet that separated the pair, and by how much.
    Apart(Separator, f64),
    Near(Box<Near>),
    /// Of a polyhedron and a half-space.
    OnPlane(Box<Corners>),
}

/// Candidates for the axis of largest separation, ascending.
#[derive(Clone, Debug, Default)]
pub struct Near {
    /// The pose of b in the frame of a when this was written.
    rotation: Mat3,
    translation: Vec3,
    /// D, and by the smaller radius.
    budget: f64,
    share: f64,
    /// How often it has served.
    queries: u32,
    /// How far the two turn within the budget, as a chord.
    turned: f64,
    faces_of_a: SmallVec<[Opposed; 1]>,
    faces_of_b: SmallVec<[Opposed; 1]>,
    /// (edge of b, edge of a), ascending: the order of the full search.
    edges: SmallVec<[(u32, u32); 8]>,
    start: Start,
}

/// A face, and what of the other body can face it.
#[derive(Clone, Debug)]
pub struct Opposed {
    face: u32,
    /// The vertices that can be the lowest above it, ascending.
    pub vertices: SmallVec<[u32; 4]>,
    /// The faces that can be the one most opposed, or nearly parallel to it, ascending; empty until asked
    /// for.
    pub faces: SmallVec<[u32; 10]>,
}

impl Memory {
    /// The axes of largest separation; none if the pair is separated by more than `margin`.
    pub fn axes(&mut self, pair: &Pair, margin: f64) -> Option<Axes> {
        let mut start = None;
        let mut share = LEAST_BUDGET;
        match self {
            Memory::Nothing | Memory::OnPlane(_) => {}
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
                    near.queries += 1;
                    return near.axes(pair, margin, moved);
                }
                start = Some(near.start_after(pair, moved));
                share = near.next_share();
            }
        }
        let budget = share * pair.a.bounding_radius.min(pair.b.bounding_radius);
        SEARCH.with_borrow_mut(|search| match pair.search(margin, budget, start, search) {
            Ok((axes, start)) => {
                if !matches!(self, Memory::Near(_)) {
                    *self = Memory::Near(Box::default());
                }
                let Memory::Near(near) = self else { unreachable!("just made") };
                near.write(pair, search, &axes, start, budget);
                near.share = share;
                Some(axes)
            }
            Err((separator, separation)) => {
                *self = Memory::Apart(separator, separation);
                None
            }
        })
    }

    /// Those that do not suffice for anything if there are none.
    pub fn corners(&mut self) -> &mut Corners {
        if !matches!(self, Memory::OnPlane(_)) {
            *self = Memory::OnPlane(Box::default());
        }
        let Memory::OnPlane(corners) = self else { unreachable!("just made") };
        corners
    }

    /// What can face a face, if that is on the list. To be asked right after [`Self::axes`], for the same
    /// pair.
    pub fn opposed(&mut self, separator: Separator, pair: &Pair) -> Option<&Opposed> {
        let Memory::Near(near) = self else { return None };
        let (list, face) = match separator {
            Separator::FaceOfA(face) => (&mut near.faces_of_a, face),
            Separator::FaceOfB(face) => (&mut near.faces_of_b, face),
            Separator::Centres | Separator::Edges(..) => return None,
        };
        let opposed = list.iter_mut().find(|opposed| opposed.face == face)?;
        if opposed.faces.is_empty() {
            // As it stood when the list was written, since that is what the budget counts from.
            let turned = near.turned;
            if let Separator::FaceOfA(_) = separator {
                let normal = near.rotation.transpose() * pair.a.faces[face as usize].normal;
                opposed.add_faces(&normal, pair.b, turned);
            } else {
                let normal = near.rotation * pair.b.faces[face as usize].normal;
                opposed.add_faces(&normal, pair.a, turned);
            }
        }
        Some(opposed)
    }
}

impl Near {
    /// In place of what was there.
    fn write(&mut self, pair: &Pair, search: &Search, axes: &Axes, start: Start, budget: f64) {
        let floor = axes.face_separation - pair.slack - 2.0 * budget;
        let room = 2.0 * budget + pair.slack;
        let of_a = |&index: &u32| {
            let face = &pair.a.faces[index as usize];
            let beyond = face.normal.dot(&pair.translation) - face.offset;
            Opposed::new(index, &(pair.inverse * face.normal), &pair.b.vertices, floor - beyond, room)
        };
        let of_b = |&index: &u32| {
            let face = &pair.b.faces[index as usize];
            let normal = pair.rotation * face.normal;
            let beyond = -(normal.dot(&pair.translation) + face.offset);
            Opposed::new(index, &normal, &pair.a.vertices, floor - beyond, room)
        };
        self.rotation = pair.rotation;
        self.translation = pair.translation;
        self.budget = budget;
        self.queries = 0;
        self.turned = pair.turn_within(budget);
        self.faces_of_a.clear();
        self.faces_of_a.extend(search.of_a.faces_above(floor).iter().filter_map(of_a));
        self.faces_of_b.clear();
        self.faces_of_b.extend(search.of_b.faces_above(floor).iter().filter_map(of_b));
        self.edges.clear();
        self.edges.extend_from_slice(&search.edges);
        self.start = start;
    }

    /// Of the budget of the list that follows one that was outrun.
    fn next_share(&self) -> f64 {
        match self.queries {
            ..SOON => (2.0 * self.share).min(MOST_BUDGET),
            SOON..=LATE => self.share,
            _ => (0.5 * self.share).max(LEAST_BUDGET),
        }
    }

    /// δ of (1).
    fn moved(&self, pair: &Pair) -> f64 {
        let turned = (pair.rotation - self.rotation).norm();
        (pair.translation - self.translation).norm() + turned * pair.lever()
    }

    /// Where to begin a search after moving by δ.
    fn start_after(&self, pair: &Pair, moved: f64) -> Start {
        // The line of centres turns by at most Δt / |t|, and the supports along it move by that times their
        // distance.
        let drift = moved * (1.0 + 2.0 * (pair.a.bounding_radius + pair.b.bounding_radius) / pair.distance);
        Start { between_centres: self.start.between_centres + drift, ..self.start }
    }

    /// As [`Pair::search`], with the candidates of the list.
    fn axes(&self, pair: &Pair, margin: f64, moved: f64) -> Option<Axes> {
        let at_most = self.start_after(pair, moved).between_centres + pair.slack;
        let may_part = at_most > margin || at_most.is_nan();
        if may_part && pair.between_centres().between_centres > margin {
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
        let mut best: Option<EdgeAxis> = None;
        let mut placed: Option<PlacedEdge> = None;
        for &(b, a) in &self.edges {
            let edge_b = match placed {
                Some(ref edge_b) if edge_b.index == b => edge_b,
                _ => placed.insert(pair.edge_of_b(b)),
            };
            // Mostly not, which needs no more of the edge than its normals.
            if !crosses_plane(&pair.normals_of_a(a), edge_b) {
                continue;
            }
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
    /// `normal` of the face in the frame of the other body. Vertices up to `room` higher than the lowest may
    /// become the lowest. None if all are at most at `floor`.
    fn new(face: u32, normal: &Vec3, vertices: &[Vec3], floor: f64, room: f64) -> Option<Self> {
        let (lowest, _) = lowest(vertices, None, normal);
        if lowest <= floor {
            return None;
        }
        let highest = lowest + room;
        let mut near = SmallVec::new();
        for (index, vertex) in (0..).zip(vertices) {
            if normal.dot(vertex) <= highest {
                near.push(index);
            }
        }
        Some(Self { face, vertices: near, faces: SmallVec::new() })
    }

    /// `normal` turns by at most `turned`.
    fn add_faces(&mut self, normal: &Vec3, other: &Polyhedron, turned: f64) {
        // One bit for each vertex modulo 64: a face too many costs time and nothing else.
        let bits = self.vertices.iter().fold(0_u64, |bits, &vertex| bits | 1 << (vertex & 63));
        let cosine = OPPOSED_COSINE - turned;
        let takes_part = |face: &Face| {
            face.vertices.iter().any(|&vertex| bits >> (vertex & 63) & 1 == 1)
                || -normal.dot(&face.normal) >= cosine
        };
        let faces = (0..).zip(&other.faces).filter(|(_, face)| takes_part(face)).map(|(index, _)| index);
        self.faces.extend(faces);
    }
}
