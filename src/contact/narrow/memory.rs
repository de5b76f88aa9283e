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
//! - *Apart*: a face separated the pair by `s`; while `s − δ > margin` it does so still. Else the facet is evaluated again.
//! - *Near*: a shortlist of faces and pairs of edges. Left out were faces whose upper bound (see `axis`) lies more than 2 D below the best
//!   face, edges whose bound does, and pairs of edges whose arcs on the Gauss sphere are further than D / ρ from crossing. While
//!   δ ≤ D none of these can hold the maximum: only the list is evaluated, by the same formulas as in the full search. With D of one per
//!   cent of the radius a list of stones at rest serves for thousands of steps.
//!
//! All bounds keep a distance of 1e-12 of the pair's extent, far above rounding.

use super::axis::{Axes, FaceSearch, Pair, PlacedEdge, Separator, edge_axis};
use crate::geometry::{Mat3, Vec3};
use smallvec::SmallVec;

/// D relative to the smaller bounding radius.
const BUDGET: f64 = 0.01;

#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The pose of b in the frame of a when this was written.
    rotation: Mat3,
    translation: Vec3,
    found: Found,
}

#[derive(Clone, Debug, Default)]
enum Found {
    #[default]
    Nothing,
    /// The facet that separated the pair, and by how much if that may be extrapolated.
    Apart(Separator, Option<f64>),
    Near(Shortlist),
}

/// Candidates for the axis of largest separation, ascending.
#[derive(Clone, Debug, Default)]
struct Shortlist {
    faces_of_a: SmallVec<[u32; 4]>,
    faces_of_b: SmallVec<[u32; 4]>,
    /// (edge of b, edge of a), ascending: the order of the full search.
    edges: SmallVec<[(u32, u32); 8]>,
    /// Separation along the line of centres.
    between_centres: f64,
    budget: f64,
}

impl Memory {
    #[cfg(test)]
    pub fn apart(separator: Separator) -> Self {
        Self { found: Found::Apart(separator, None), ..Default::default() }
    }

    /// The axes of largest separation; none if the pair is separated by more than `margin`.
    pub fn axes(&mut self, pair: &Pair, margin: f64) -> Option<Axes> {
        match &self.found {
            Found::Nothing => {}
            Found::Apart(separator, separation) => {
                if separation.is_some_and(|separation| separation - self.moved(pair) > margin + pair.slack) {
                    return None;
                }
                let separator = *separator;
                if let Some(separation) = pair.separation(separator)
                    && separation > margin
                {
                    self.keep_apart(pair, separator);
                    return None;
                }
            }
            Found::Near(list) => {
                let moved = self.moved(pair);
                if moved <= list.budget {
                    return list.axes(pair, margin, moved);
                }
            }
        }
        match pair.search(margin) {
            Ok(search) => {
                let list = Shortlist::new(pair, &search);
                let axes = search.axes;
                self.write(pair, Found::Near(list));
                Some(axes)
            }
            Err(separator) => {
                self.keep_apart(pair, separator);
                None
            }
        }
    }

    fn keep_apart(&mut self, pair: &Pair, separator: Separator) {
        let separation = match separator {
            Separator::FaceOfA(_) | Separator::FaceOfB(_) => pair.separation(separator),
            // The direction itself turns, and the faster the closer to parallel the edges are.
            Separator::Centres | Separator::Edges(..) => None,
        };
        self.write(pair, Found::Apart(separator, separation));
    }

    fn write(&mut self, pair: &Pair, found: Found) {
        (self.rotation, self.translation, self.found) = (pair.rotation, pair.translation, found);
    }

    /// δ of (1).
    fn moved(&self, pair: &Pair) -> f64 {
        let turned = (pair.rotation - self.rotation).norm();
        (pair.translation - self.translation).norm() + turned * pair.lever()
    }
}

impl Shortlist {
    fn new(pair: &Pair, search: &super::axis::Search) -> Self {
        let budget = BUDGET * pair.a.bounding_radius.min(pair.b.bounding_radius);
        let floor = search.axes.face_separation - pair.slack;
        let edges_of = |of: &FaceSearch, edges| {
            of.edges_above(floor - budget, budget, edges).map(|(index, _)| index).collect()
        };
        let edges_of_a: SmallVec<[u32; 24]> = edges_of(&search.of_a, &pair.a.edges);
        let edges_of_b: SmallVec<[u32; 24]> = edges_of(&search.of_b, &pair.b.edges);
        let turned = budget / pair.lever() + 1e-12;
        let placed_of_a: SmallVec<[PlacedEdge; 24]> =
            edges_of_a.iter().map(|&index| pair.edge_of_a(index)).collect();
        let mut edges = SmallVec::new();
        for &b in &edges_of_b {
            let placed_b = pair.edge_of_b(b);
            for placed_a in placed_of_a.iter().filter(|placed_a| may_cross(placed_a, &placed_b, turned)) {
                edges.push((b, placed_a.index));
            }
        }
        Self {
            faces_of_a: search.of_a.faces_above(floor - 2.0 * budget),
            faces_of_b: search.of_b.faces_above(floor - 2.0 * budget),
            edges,
            between_centres: search.between_centres,
            budget,
        }
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
        for &index in &self.faces_of_a {
            let separation = pair.above_face_of_a(&pair.a.faces[index as usize]).0;
            if separation > face.0 {
                face = (separation, Separator::FaceOfA(index));
            }
        }
        for &index in &self.faces_of_b {
            let separation = pair.above_face_of_b(&pair.b.faces[index as usize]).0;
            if separation > face.0 {
                face = (separation, Separator::FaceOfB(index));
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

/// Whether the arcs of two edges may cross once b has turned by at most `angle`: the tests of `edge_axis`, with room.
fn may_cross(a: &PlacedEdge, b: &PlacedEdge, angle: f64) -> bool {
    let (room_a, room_b) = (angle * b.direction.norm(), angle * a.direction.norm());
    let [a0, a1] = a.normals.map(|normal| normal.dot(&b.direction));
    let [b0, b1] = b.normals.map(|normal| normal.dot(&a.direction));
    let differ =
        |x: f64, room_x: f64, y: f64, room_y: f64| (x > -room_x && y < room_y) || (x < room_x && y > -room_y);
    differ(a0, room_a, a1, room_a) && differ(b0, room_b, b1, room_b) && differ(b0, room_b, a1, room_a)
}
