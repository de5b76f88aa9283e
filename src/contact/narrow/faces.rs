//! The faces of a polyhedron that may hold the axis: bounds by witnesses, see `axis`.

use crate::geometry::{Edge, Face, Polyhedron, Vec3};
use smallvec::SmallVec;

/// Points of the other body that bound separations.
const WITNESSES: usize = 3;

/// The faces of one body while the best of them is searched.
#[derive(Default)]
pub struct FaceSearch {
    /// `D` of each face, for each witness.
    heights: [Vec<f64>; WITNESSES],
    /// The least of them; −∞ once the face was evaluated.
    bounds: Vec<f64>,
    /// The faces evaluated, with their separations.
    evaluated: Vec<(u32, f64)>,
    /// Vertices of the other body; how many there are yet.
    witnesses: [u32; WITNESSES],
    count: usize,
    /// The largest separation so far, and its face.
    pub best: (f64, u32),
}

impl FaceSearch {
    /// With a vertex of the other body, which stands at `place`, as the first witness.
    pub fn begin(&mut self, faces: &[Face], vertex: usize, place: &Vec3) {
        self.heights[0].clear();
        self.heights[0].extend(faces.iter().map(|face| height(face, place)));
        self.bounds.clear();
        self.bounds.extend_from_slice(&self.heights[0]);
        self.evaluated.clear();
        self.witnesses[0] = vertex as u32;
        self.count = 1;
        self.best = (f64::NEG_INFINITY, 0);
    }

    /// Evaluates the most promising face; false if none is left that may exceed `floor`. `evaluate` gives the
    /// separation and the vertex of the other body that attains it, which stands at `place`.
    pub fn step(
        &mut self,
        faces: &[Face],
        floor: f64,
        evaluate: impl Fn(&Face) -> (f64, usize),
        place: impl Fn(usize) -> Vec3,
    ) -> bool {
        let bound = largest(&self.bounds);
        if bound <= floor || bound == f64::NEG_INFINITY {
            return false;
        }
        let Some(face) = self.bounds.iter().position(|&other| other == bound) else { return false };
        let (separation, vertex) = evaluate(&faces[face]);
        self.bounds[face] = f64::NEG_INFINITY;
        self.evaluated.push((face as u32, separation));
        // Among equals the lowest face, in whatever order they are met.
        if separation > self.best.0 || (separation == self.best.0 && (face as u32) < self.best.1) {
            self.best = (separation, face as u32);
        }
        // A vertex says the same a second time: one that was lowest in the last step mostly still is.
        if self.count < WITNESSES && !self.witnesses[..self.count].contains(&(vertex as u32)) {
            let place = place(vertex);
            let heights = &mut self.heights[self.count];
            heights.clear();
            heights.extend(faces.iter().map(|face| height(face, &place)));
            for (bound, &height) in self.bounds.iter_mut().zip(&*heights) {
                *bound = if height < *bound { height } else { *bound };
            }
            self.witnesses[self.count] = vertex as u32;
            self.count += 1;
        }
        true
    }

    /// The vertex of the other body that was found last.
    pub fn last_witness(&self) -> u32 {
        self.witnesses[self.count - 1]
    }

    /// The faces whose separation may exceed `threshold`, ascending.
    pub fn faces_above(&self, threshold: f64) -> SmallVec<[u32; 8]> {
        let of_bounds =
            self.bounds.iter().zip(0..).filter(|&(&bound, _)| bound > threshold).map(|(_, face)| face);
        let of_values = self.evaluated.iter().filter(|(_, separation)| *separation > threshold);
        let mut faces: SmallVec<[u32; 8]> = of_bounds.chain(of_values.map(|&(face, _)| face)).collect();
        faces.sort_unstable();
        faces
    }

    /// The edges on whose arcs a separation above `threshold` is possible once the other body has moved by at
    /// most `room`.
    pub fn edges_above(&self, threshold: f64, room: f64, of: &Polyhedron, found: &mut Vec<u32>) {
        let heights = &self.heights[..self.count];
        found.clear();
        if threshold > 0.0 {
            let may_exceed = |edge: &Edge| may_exceed(heights, threshold, room, edge, &of.faces);
            let edges = (0..).zip(&of.edges).filter(|(_, edge)| may_exceed(edge));
            found.extend(edges.map(|(index, _)| index));
            return;
        }
        let limit = threshold - room;
        // The later witnesses belong to better faces: they exclude more.
        let Some((latest, earlier)) = heights.split_last() else { return };
        let exceeds = |heights: &[f64], [left, right]: [u32; 2]| {
            (heights[left as usize] > limit) | (heights[right as usize] > limit)
        };
        for (index, edge) in (0..).zip(&of.edges) {
            if exceeds(latest, edge.faces) && earlier.iter().all(|heights| exceeds(heights, edge.faces)) {
                found.push(index);
            }
        }
    }
}

/// Whether a separation above a threshold that is positive is possible on an edge's arc.
fn may_exceed(heights: &[Vec<f64>], threshold: f64, room: f64, edge: &Edge, faces: &[Face]) -> bool {
    heights.iter().all(|heights| {
        let most = heights[edge.faces[0] as usize].max(heights[edge.faces[1] as usize]) + room;
        let [left, right] = edge.faces.map(|face| &faces[face as usize].normal);
        // most / cos(φ/2) > threshold
        most > 0.0 && 2.0 * most * most > threshold * threshold * (1.0 + left.dot(right))
    })
}

/// The largest of some numbers, −∞ of none. Four at a time, since one comparison would have to wait for the
/// other.
fn largest(values: &[f64]) -> f64 {
    let larger = |one: f64, other: f64| if other > one { other } else { one };
    let mut lanes = [f64::NEG_INFINITY; 4];
    let (chunks, rest) = values.as_chunks::<4>();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, value);
        }
    }
    lanes.iter().chain(rest).fold(f64::NEG_INFINITY, |most, &value| larger(most, value))
}

fn height(face: &Face, point: &Vec3) -> f64 {
    face.normal.dot(point) - face.offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_found_wherever_it_stands() {
        for count in 0..11 {
            for place in 0..count {
                let mut values: Vec<f64> = (0..count).map(|k| -1.0 - f64::from(k)).collect();
                values[place as usize] = 0.5;
                assert_eq!(largest(&values), 0.5);
            }
        }
        assert_eq!(largest(&[]), f64::NEG_INFINITY);
        assert_eq!(largest(&[f64::NEG_INFINITY; 7]), f64::NEG_INFINITY);
    }
}
