use super::*;
use crate::contact::narrow::axis::{Pair, Search};

type Placed = (Arc<Polyhedron>, Pose);

/// The separation as the narrow phase finds it, from faces and in all.
pub fn search(a: &Placed, b: &Placed) -> (f64, f64) {
    let pair = Pair::new((&a.0, &a.1), (&b.0, &b.1));
    let found = pair.search(f64::INFINITY, 0.0, None, &mut Search::default());
    let (axes, _) = found.expect("no margin to exceed");
    let edges = axes.edges.map_or(f64::NEG_INFINITY, |edges| edges.3);
    (axes.face_separation.max(edges), axes.face_separation)
}

pub fn world(body: &Placed) -> Vec<Vec3> {
    body.0.vertices.iter().map(|vertex| body.1.point(vertex)).collect()
}

/// s(n), straight from its definition.
pub fn along(a: &[Vec3], b: &[Vec3], normal: &Vec3) -> f64 {
    let highest = a.iter().map(|x| x.dot(normal)).fold(f64::NEG_INFINITY, f64::max);
    let lowest = b.iter().map(|x| x.dot(normal)).fold(f64::INFINITY, f64::min);
    lowest - highest
}

/// The largest separation over all faces and all pairs of edges, no Gauss map, nothing skipped but parallel
/// edges: over the facets of the Minkowski difference, and over all axes whatever.
pub fn separation(a: &Placed, b: &Placed) -> (f64, f64) {
    let (points_a, points_b) = (world(a), world(b));
    let scale = a.0.bounding_radius + b.0.bounding_radius;
    let mut facets = f64::NEG_INFINITY;
    for face in &a.0.faces {
        facets = facets.max(along(&points_a, &points_b, &a.1.direction(&face.normal)));
    }
    for face in &b.0.faces {
        facets = facets.max(along(&points_a, &points_b, &-b.1.direction(&face.normal)));
    }
    let mut all = facets;
    for edge_a in &a.0.edges {
        let [a0, a1] = edge_a.vertices.map(|vertex| points_a[vertex as usize]);
        for edge_b in &b.0.edges {
            let [b0, b1] = edge_b.vertices.map(|vertex| points_b[vertex as usize]);
            let across = (a1 - a0).cross(&(b1 - b0));
            if across.norm() <= 1e-4 * (a1 - a0).norm() * (b1 - b0).norm() {
                continue;
            }
            for normal in [across.normalize(), -across.normalize()] {
                let value = along(&points_a, &points_b, &normal);
                all = all.max(value);
                let of_edges = normal.dot(&(b0 - a0));
                if (value - of_edges).abs() <= 1e-12 * scale {
                    facets = facets.max(value);
                }
            }
        }
    }
    (facets, all)
}

/// Signed distance to the nearest plane of a polyhedron: ≤ 0 inside.
pub fn outside(body: &Placed, point: &Vec3) -> f64 {
    let local = body.1.inverse_point(point);
    let heights = body.0.faces.iter().map(|face| face.normal.dot(&local) - face.offset);
    heights.fold(f64::NEG_INFINITY, f64::max)
}

fn segments(p: &Vec3, u: &Vec3, q: &Vec3, v: &Vec3) -> f64 {
    let point_segment = |x: &Vec3, p: &Vec3, u: &Vec3| {
        let t = ((x - p).dot(u) / u.norm_squared()).clamp(0.0, 1.0);
        (x - p - u * t).norm()
    };
    let mut best = point_segment(p, q, v).min(point_segment(&(p + u), q, v));
    best = best.min(point_segment(q, p, u)).min(point_segment(&(q + v), p, u));
    let across = u.cross(v);
    if across.norm_squared() > 1e-20 * u.norm_squared() * v.norm_squared() {
        let between = q - p;
        let s = between.cross(v).dot(&across) / across.norm_squared();
        let t = between.cross(u).dot(&across) / across.norm_squared();
        if (0.0..=1.0).contains(&s) && (0.0..=1.0).contains(&t) {
            best = best.min((p + u * s - q - v * t).norm());
        }
    }
    best
}

/// The true distance of two polyhedra that are apart: over all edges with all edges, and vertices with faces.
pub fn distance(a: &Placed, b: &Placed) -> f64 {
    let mut best = f64::INFINITY;
    let (points_a, points_b) = (world(a), world(b));
    for edge_a in &a.0.edges {
        let [a0, a1] = edge_a.vertices.map(|vertex| points_a[vertex as usize]);
        for edge_b in &b.0.edges {
            let [b0, b1] = edge_b.vertices.map(|vertex| points_b[vertex as usize]);
            best = best.min(segments(&a0, &(a1 - a0), &b0, &(b1 - b0)));
        }
    }
    for (body, points) in [(a, &points_b), (b, &points_a)] {
        for point in points {
            best = best.min(outside_distance(body, point));
        }
    }
    best
}

/// Distance of a point to the insides of the faces that see it.
fn outside_distance(body: &Placed, point: &Vec3) -> f64 {
    let local = body.1.inverse_point(point);
    let mut best = f64::INFINITY;
    for face in &body.0.faces {
        let height = face.normal.dot(&local) - face.offset;
        let count = face.vertices.len();
        let corner = |k: usize| body.0.vertices[face.vertices[k % count] as usize];
        let above = (0..count)
            .all(|k| (corner(k + 1) - corner(k)).cross(&face.normal).dot(&(local - corner(k))) <= 0.0);
        if above && height >= 0.0 {
            best = best.min(height);
        }
    }
    best
}
