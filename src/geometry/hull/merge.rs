//! From the triangles of a hull to faces with three or more vertices.
//!
//! A *region* is a connected set of triangles within a distance of one plane. Regions become faces; a vertex
//! where fewer than three regions meet is inside a face or an edge, and goes.

use super::super::{Edge, Face, Polyhedron, Vec3};
use super::triangles::{Point, Triangle};
use std::collections::BTreeMap;

const NONE: u32 = u32::MAX;

/// The polyhedron with coplanar triangles merged, at the loosest of four tolerances that gives a sound one.
pub(super) fn merged(cloud: &[Vec3], grid: &[Point], triangles: &[Triangle], tolerance: f64) -> Polyhedron {
    let normals: Vec<Vec3> = triangles.iter().map(unit_normal).collect();
    for factor in [1.0, 0.1, 0.01] {
        let near = tolerance * factor;
        let regions = regions(cloud, triangles, |seed, vertex| {
            let origin = cloud[triangles[seed].vertices[0] as usize];
            normals[seed].dot(&(cloud[vertex as usize] - origin)).abs() <= near
        });
        let candidate = polyhedron(cloud, triangles, &normals, &regions, tolerance);
        if let Some(found) = candidate.filter(|p| encloses(p, cloud, triangles, tolerance)) {
            return found;
        }
    }
    // The regions are now the faces of the exact hull of the rounded points.
    let regions = regions(cloud, triangles, |seed, vertex| triangles[seed].side(grid, vertex) == 0);
    polyhedron(cloud, triangles, &normals, &regions, tolerance)
        .unwrap_or_else(|| unreachable!("an exact hull has sound faces"))
}

fn unit_normal(triangle: &Triangle) -> Vec3 {
    Vec3::from(triangle.normal.map(|x| x as f64)).normalize()
}

struct Regions {
    /// Region of each triangle.
    of: Vec<u32>,
    /// The triangle that chose the plane of each region: its largest one.
    seeds: Vec<usize>,
}

/// Grows regions from the largest triangle left, as long as `in_plane(seed, vertex)` for all corners.
fn regions(cloud: &[Vec3], triangles: &[Triangle], in_plane: impl Fn(usize, u32) -> bool) -> Regions {
    let area = |t: &Triangle| {
        let [a, b, c] = t.vertices.map(|v| cloud[v as usize]);
        (b - a).cross(&(c - a)).norm_squared()
    };
    let areas: Vec<f64> = triangles.iter().map(area).collect();
    let mut order: Vec<usize> = (0..triangles.len()).collect();
    order.sort_by(|&a, &b| areas[b].total_cmp(&areas[a]).then(a.cmp(&b)));

    let mut regions = Regions { of: vec![NONE; triangles.len()], seeds: Vec::new() };
    for seed in order {
        if regions.of[seed] != NONE {
            continue;
        }
        let region = regions.seeds.len() as u32;
        regions.seeds.push(seed);
        regions.of[seed] = region;
        let mut stack = vec![seed];
        while let Some(triangle) = stack.pop() {
            for beside in triangles[triangle].neighbours.map(|t| t as usize) {
                let fits = || triangles[beside].vertices.iter().all(|&v| in_plane(seed, v));
                if regions.of[beside] == NONE && fits() {
                    regions.of[beside] = region;
                    stack.push(beside);
                }
            }
        }
    }
    regions
}

/// Regions to faces; `None` if they do not close to a polyhedron.
fn polyhedron(
    cloud: &[Vec3],
    triangles: &[Triangle],
    normals: &[Vec3],
    regions: &Regions,
    tolerance: f64,
) -> Option<Polyhedron> {
    let corner = corners(cloud.len(), triangles, regions);
    let mut label = vec![NONE; cloud.len()];
    let kept: Vec<usize> = (0..cloud.len()).filter(|&v| corner[v]).collect();
    for (new, &old) in kept.iter().enumerate() {
        label[old] = new as u32;
    }
    let vertices: Vec<Vec3> = kept.iter().map(|&v| cloud[v]).collect();

    let mut faces = Vec::with_capacity(regions.seeds.len());
    for (boundary, &seed) in boundaries(triangles, regions)?.into_iter().zip(&regions.seeds) {
        let mut ring: Vec<u32> =
            boundary.into_iter().map(|v| label[v as usize]).filter(|&v| v != NONE).collect();
        if ring.len() < 3 {
            return None;
        }
        let first = (0..ring.len()).min_by_key(|&i| ring[i])?;
        ring.rotate_left(first);
        faces.push(face(&vertices, ring, normals[seed], tolerance));
    }
    faces.sort_by(|a, b| a.vertices.cmp(&b.vertices));
    let edges = edges(&faces)?;
    let euler = vertices.len() as i64 - edges.len() as i64 + faces.len() as i64;
    let bounding_radius = vertices.iter().map(|v| v.norm()).fold(0.0, f64::max);
    (euler == 2).then_some(Polyhedron { vertices, faces, edges, bounding_radius })
}

/// Whether three or more regions meet at a point.
fn corners(points: usize, triangles: &[Triangle], regions: &Regions) -> Vec<bool> {
    let mut pairs: Vec<(u32, u32)> = triangles
        .iter()
        .zip(&regions.of)
        .flat_map(|(triangle, &region)| triangle.vertices.map(|v| (v, region)))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    let mut meeting = vec![0; points];
    for (vertex, _) in pairs {
        meeting[vertex as usize] += 1;
    }
    meeting.into_iter().map(|count| count >= 3).collect()
}

/// The loop of vertices around each region; `None` if some region has no single, simple loop.
fn boundaries(triangles: &[Triangle], regions: &Regions) -> Option<Vec<Vec<u32>>> {
    let mut following = vec![BTreeMap::new(); regions.seeds.len()];
    for (triangle, &region) in triangles.iter().zip(&regions.of) {
        for i in 0..3 {
            if regions.of[triangle.neighbours[i] as usize] != region {
                let (from, to) = (triangle.vertices[i], triangle.vertices[(i + 1) % 3]);
                if following[region as usize].insert(from, to).is_some() {
                    return None; // the boundary touches itself
                }
            }
        }
    }
    following
        .into_iter()
        .map(|next: BTreeMap<u32, u32>| {
            let (&first, _) = next.first_key_value()?;
            let mut ring = vec![first];
            let mut at = *next.get(&first)?;
            while at != first && ring.len() <= next.len() {
                ring.push(at);
                at = *next.get(&at)?;
            }
            (ring.len() == next.len()).then_some(ring)
        })
        .collect()
}

/// A face with the plane that fits its vertices.
fn face(vertices: &[Vec3], ring: Vec<u32>, seed_normal: Vec3, tolerance: f64) -> Face {
    let at = |i: usize| vertices[ring[i % ring.len()] as usize];
    let count = ring.len() as f64;
    let middle = (0..ring.len()).map(at).sum::<Vec3>() / count;
    // Twice the area vector: the normal of the best plane, more exact than one triangle's.
    let area: Vec3 = (0..ring.len()).map(|i| (at(i) - middle).cross(&(at(i + 1) - middle))).sum();
    let reach = (0..ring.len()).map(|i| (at(i) - middle).norm()).fold(0.0, f64::max);
    // Of a needle, narrower than a thousand tolerances, only the exact integers know the plane.
    let normal = if area.norm() > 1e3 * tolerance * reach { area.normalize() } else { seed_normal };
    let offset = (0..ring.len()).map(|i| normal.dot(&at(i))).sum::<f64>() / count;
    Face { normal, offset, vertices: ring.as_slice().into() }
}

/// Each edge once, from its lower vertex; `None` unless every edge is used once in each direction.
fn edges(faces: &[Face]) -> Option<Vec<Edge>> {
    let mut sides: BTreeMap<[u32; 2], [u32; 2]> = BTreeMap::new();
    for (index, face) in faces.iter().enumerate() {
        for (i, &from) in face.vertices.iter().enumerate() {
            let to = face.vertices[(i + 1) % face.vertices.len()];
            let side = usize::from(from > to);
            let entry = sides.entry([from.min(to), from.max(to)]).or_insert([NONE; 2]);
            if from == to || entry[side] != NONE {
                return None;
            }
            entry[side] = index as u32;
        }
    }
    let closed = sides.values().all(|faces| !faces.contains(&NONE));
    closed.then(|| sides.into_iter().map(|(vertices, faces)| Edge { vertices, faces }).collect())
}

/// Whether all vertices of the triangles are inside within two tolerances.
fn encloses(polyhedron: &Polyhedron, cloud: &[Vec3], triangles: &[Triangle], tolerance: f64) -> bool {
    let mut used: Vec<u32> = triangles.iter().flat_map(|t| t.vertices).collect();
    used.sort_unstable();
    used.dedup();
    let inside = |face: &Face| {
        used.iter().all(|&v| face.normal.dot(&cloud[v as usize]) - face.offset <= 2.0 * tolerance)
    };
    polyhedron.faces.iter().all(inside)
}
