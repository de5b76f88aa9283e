//! The depth of the origin inside a difference of two pieces: a polytope grows from within until its nearest
//! face lies on the border [vandenBergen2001].

use super::simplex::{Simplex, Vertex};
use crate::geometry::Vec3;

/// Relative to the size of the pieces: how far the border may lie beyond the face that is taken for it.
const ON_BORDER: f64 = 4e-12;
/// Relative to the size: a corner that lies no more than this below the plane of a facet lies in it. Above
/// rounding, so that what grows between a corner and the rim of what it sees has no facets without area.
const IN_PLANE: f64 = 1e-12;
/// Relative to the size: a corner that adds less height to a simplex adds nothing.
const FLAT: f64 = 1e-9;
/// Polyhedra need as many as they have faces near the deepest point; round kinds double their digits with
/// some ten.
const STEPS: usize = 200;

struct Facet {
    corners: [usize; 3],
    /// Unit, outward.
    normal: Vec3,
    distance: f64,
}

impl Facet {
    fn edges(&self) -> [[usize; 2]; 3] {
        let [a, b, c] = self.corners;
        [[a, b], [b, c], [c, a]]
    }
}

/// Outward normal and distance of the border point nearest to the origin, and the points of the two pieces
/// there. None if the pieces have no support.
pub fn depth(
    vertex: &impl Fn(&Vec3) -> Option<Vertex>,
    start: Simplex,
    size: f64,
) -> Option<(Vec3, f64, [Vec3; 2])> {
    let mut vertices: Vec<Vertex> = Vec::with_capacity(32);
    for corner in start.corners() {
        add(&mut vertices, *corner, size);
    }
    if let Some(flat) = complete(vertex, &mut vertices, size)? {
        // The difference has no volume: across it the depth is zero.
        return Some((flat, 0.0, start.points()));
    }
    let mut facets = tetrahedron(&vertices);
    for _ in 0..STEPS {
        let place = nearest(&facets)?;
        let Facet { normal, distance, .. } = facets[place];
        let next = vertex(&normal)?;
        if normal.dot(&next.difference) - distance <= ON_BORDER * size {
            break;
        }
        if !grow(&mut facets, place, &mut vertices, next, size) {
            break;
        }
    }
    let least = facets[nearest(&facets)?].distance;
    // Of facets in one plane the one that has the foot of the origin.
    let within = |facet: &&Facet| facet.distance <= least + ON_BORDER * size;
    let inside = |facet: &Facet| weights(facet, &vertices).into_iter().fold(f64::INFINITY, f64::min);
    let found = facets.iter().filter(within).max_by(|a, b| inside(a).total_cmp(&inside(b)))?;
    Some((found.normal, found.distance.max(0.0), foot(found, &vertices)))
}

fn nearest(facets: &[Facet]) -> Option<usize> {
    (0..facets.len()).min_by(|&a, &b| facets[a].distance.total_cmp(&facets[b].distance))
}

/// Adds a corner unless it lies in the hull of those that are there (up to three of them).
fn add(vertices: &mut Vec<Vertex>, corner: Vertex, size: f64) -> bool {
    let at = |k: usize| vertices[k].difference;
    let new = corner.difference;
    let adds = match vertices.len() {
        0 => true,
        1 => (new - at(0)).norm() > FLAT * size,
        2 => (new - at(0)).cross(&(at(1) - at(0)).normalize()).norm() > FLAT * size,
        _ => {
            let normal = (at(1) - at(0)).cross(&(at(2) - at(0))).normalize();
            normal.dot(&(new - at(0))).abs() > FLAT * size
        }
    };
    if adds {
        vertices.push(corner);
    }
    adds
}

/// Makes four corners that are not in a plane. If there are none: a direction across what there is.
fn complete(
    vertex: &impl Fn(&Vec3) -> Option<Vertex>,
    vertices: &mut Vec<Vertex>,
    size: f64,
) -> Option<Option<Vec3>> {
    while vertices.len() < 4 {
        let at = |k: usize| vertices[k].difference;
        let directions: Vec<Vec3> = match vertices.len() {
            0 | 1 => vec![Vec3::x(), Vec3::y(), Vec3::z()],
            2 => {
                let along = (at(1) - at(0)).normalize();
                let mut across = Vec3::zeros();
                across[along.iamin()] = 1.0;
                let first = along.cross(&across).normalize();
                vec![first, along.cross(&first)]
            }
            _ => vec![(at(1) - at(0)).cross(&(at(2) - at(0))).normalize()],
        };
        let mut found = false;
        for direction in directions.iter().flat_map(|direction| [*direction, -direction]) {
            let corner = vertex(&direction)?;
            if add(vertices, corner, size) {
                found = true;
                break;
            }
        }
        if !found {
            return Some(directions.first().copied());
        }
    }
    Some(None)
}

fn facet(vertices: &[Vertex], corners: [usize; 3]) -> Option<Facet> {
    let [a, b, c] = corners.map(|k| vertices[k].difference);
    let normal = (b - a).cross(&(c - a)).try_normalize(0.0)?;
    Some(Facet { corners, normal, distance: normal.dot(&a) })
}

fn tetrahedron(vertices: &[Vertex]) -> Vec<Facet> {
    let [a, b, c, d] = [0, 1, 2, 3].map(|k| vertices[k].difference);
    let rings: [[usize; 3]; 4] = if (b - a).cross(&(c - a)).dot(&(d - a)) > 0.0 {
        [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]
    } else {
        [[0, 1, 2], [1, 0, 3], [2, 1, 3], [0, 2, 3]]
    };
    rings.iter().filter_map(|ring| facet(vertices, *ring)).collect()
}

/// Replaces the facets that a new corner sees, connected with the one at `place`, by those between it and
/// their rim. False, and nothing changes, if rounding leaves no such polytope.
fn grow(
    facets: &mut Vec<Facet>,
    place: usize,
    vertices: &mut Vec<Vertex>,
    corner: Vertex,
    size: f64,
) -> bool {
    let sees = |facet: &Facet| facet.normal.dot(&corner.difference) >= facet.distance - IN_PLANE * size;
    let mut seen = vec![false; facets.len()];
    seen[place] = true;
    let (mut open, mut rim) = (vec![place], Vec::new());
    while let Some(place) = open.pop() {
        for [from, to] in facets[place].edges() {
            let Some(beside) = facets.iter().position(|facet| facet.edges().contains(&[to, from])) else {
                return false;
            };
            if seen[beside] {
                continue;
            }
            if sees(&facets[beside]) {
                seen[beside] = true;
                open.push(beside);
            } else {
                rim.push([from, to]);
            }
        }
    }
    vertices.push(corner);
    let last = vertices.len() - 1;
    let made: Vec<Facet> = rim.iter().filter_map(|&[from, to]| facet(vertices, [from, to, last])).collect();
    if made.len() != rim.len() || made.len() < 3 {
        vertices.pop();
        return false;
    }
    let mut places = seen.iter();
    facets.retain(|_| !places.next().is_some_and(|seen| *seen));
    facets.extend(made);
    true
}

/// Weights of the corners at the foot of the origin in the plane of a facet.
fn weights(facet: &Facet, vertices: &[Vertex]) -> [f64; 3] {
    let [a, b, c] = facet.corners.map(|k| vertices[k].difference);
    let normal = (b - a).cross(&(c - a));
    let area = |p: &Vec3, q: &Vec3| p.cross(q).dot(&normal) / normal.norm_squared();
    [area(&b, &c), area(&c, &a), area(&a, &b)]
}

/// The points of the two pieces at the foot of the origin on a facet.
fn foot(facet: &Facet, vertices: &[Vertex]) -> [Vec3; 2] {
    let weights = weights(facet, vertices).map(|weight| weight.max(0.0));
    let sum: f64 = weights.iter().sum();
    let mean = |of: fn(&Vertex) -> Vec3| {
        facet.corners.iter().zip(&weights).map(|(&k, weight)| of(&vertices[k]) * (weight / sum)).sum()
    };
    [mean(|vertex| vertex.on_a), mean(|vertex| vertex.on_b)]
}
