//! The patch of two polyhedra.
//!
//! The axis comes from `axis`. A face axis gives a *reference* face; the faces of the other body that point
//! against it (the most opposed one at the lowest vertex, and all others opposed within 0.1 rad) are clipped
//! to the prism over the reference face. Corners of what is left are the points: on one body where they are,
//! on the other projected along the normal. Their gaps are local, so a tilted face shows its true gap at each
//! corner.
//!
//! **Preferences**, so that normals and features do not flicker between directions that are equally good:
//! - An edge axis has to beat the best face by 1e-6 of the smaller radius and 1 % of the gap. If it lies
//!   within 5e-3 rad of the normal of a face at one of its edges, that face is taken: the same plane within
//!   the tolerance, but more points.
//! - Where reference and opposed face are parallel within 5e-3 rad, the one of larger area is the reference,
//!   then the one of the larger body, then the one behind (see `feature`). None of this depends on which body
//!   is called a.

use super::axis::{Axes, Pair, Separator};
use super::feature::{Feature, a_is_behind, identify, make_unique, nearly};
use super::memory::{Memory, Opposed};
use super::sphere::closest_in_polygon;
use super::{INLINE_POINTS, MAX_POINTS, NEARLY, Patch, PatchPoint, reduce};
use crate::geometry::{Face, Polyhedron, Pose, Vec3};
use smallvec::SmallVec;

/// Faces opposed to the reference face within this angle (its cosine, 0.1 rad) all take part in the patch.
pub const OPPOSED_COSINE: f64 = 0.995;

/// Corners this far outside the prism, relative to the smaller radius, need no clipping.
const ON_SIDE: f64 = 1e-10;

/// Points this far from the plane of a side, relative to the smaller radius, are clearly on one side of it:
/// far above `ON_SIDE` and rounding.
const CLEARLY: f64 = 1e-8;

/// Cosine of the angle below which a direction counts as the normal of a face.
const NEARLY_COSINE: f64 = 1.0 - 0.5 * NEARLY * NEARLY;

const FACE_ADVANTAGE_ABSOLUTE: f64 = 1e-6;
const FACE_ADVANTAGE_RELATIVE: f64 = 1e-2;

/// A candidate point, in the frame of the reference body.
struct Candidate {
    on_reference: Vec3,
    on_other: Vec3,
    gap: f64,
    reference_feature: Feature,
    other_feature: Feature,
}

type Candidates = SmallVec<[Candidate; 16]>;
type Polygon = SmallVec<[Vec3; 24]>;
type Ring = SmallVec<[(Vec3, u32); 24]>;

/// The patch of two polyhedra whose separation is at most `margin`.
pub fn polyhedra(
    a: (&Polyhedron, &Pose),
    b: (&Polyhedron, &Pose),
    margin: f64,
    memory: &mut Memory,
) -> Option<Patch> {
    let pair = Pair::new(a, b);
    let axes = memory.axes(&pair, margin)?;
    let separator = face_to_use(&pair, &axes);
    let known = separator.and_then(|separator| memory.opposed(separator, &pair));
    match separator {
        Some(Separator::FaceOfB(face)) => {
            Some(face_patch(&pair.swapped(), face as usize, known, margin, [b.1, a.1], true))
        }
        Some(Separator::FaceOfA(face)) => {
            Some(face_patch(&pair, face as usize, known, margin, [a.1, b.1], false))
        }
        _ => edge_patch(&pair, &axes, a.1),
    }
}

/// The face that serves as axis, or none for an edge axis.
fn face_to_use(pair: &Pair, axes: &Axes) -> Option<Separator> {
    let Some((edge_a, edge_b, normal, separation)) = axes.edges else { return Some(axes.face) };
    let radius = pair.a.bounding_radius.min(pair.b.bounding_radius);
    let advantage = FACE_ADVANTAGE_ABSOLUTE * radius + FACE_ADVANTAGE_RELATIVE * axes.face_separation.abs();
    if separation <= axes.face_separation + advantage {
        return Some(axes.face);
    }
    let mut closest = (NEARLY_COSINE, None);
    for face in pair.a.edges[edge_a as usize].faces {
        let cosine = normal.dot(&pair.a.faces[face as usize].normal);
        if cosine > closest.0 {
            closest = (cosine, Some(Separator::FaceOfA(face)));
        }
    }
    let normal_b = pair.inverse * normal;
    for face in pair.b.edges[edge_b as usize].faces {
        let cosine = -normal_b.dot(&pair.b.faces[face as usize].normal);
        if cosine > closest.0 {
            closest = (cosine, Some(Separator::FaceOfB(face)));
        }
    }
    closest.1
}

/// The patch over a face of the first body of `pair`, or over the opposed face of the second if that is
/// preferred. `known` is what of the second body can face it; `mirrored` says that the first body is the b of
/// the patch.
fn face_patch(
    pair: &Pair,
    face: usize,
    known: Option<&Opposed>,
    margin: f64,
    poses: [&Pose; 2],
    mirrored: bool,
) -> Patch {
    let vertices = known.map(|known| &known.vertices[..]);
    let faces = known.map(|known| &known.faces[..]);
    let lowest = pair.above_face_of_a(&pair.a.faces[face], vertices).1;
    let (cosine, opposed) = opposed_face(pair, face, faces, lowest);
    let first_is_behind = || a_is_behind(&poses[0].direction(&pair.a.faces[face].normal));
    if cosine >= NEARLY_COSINE && second_is_preferred(pair, face, opposed, first_is_behind) {
        let swapped = pair.swapped();
        let lowest = swapped.above_face_of_a(&swapped.a.faces[opposed], None).1;
        let (_, face) = opposed_face(&swapped, opposed, None, lowest);
        return reference_patch(&swapped, opposed, None, (lowest, face), margin, poses[1], !mirrored);
    }
    reference_patch(pair, face, faces, (lowest, opposed), margin, poses[0], mirrored)
}

/// Whether the opposed face of the second body makes the better reference.
fn second_is_preferred(pair: &Pair, face: usize, opposed: usize, first_is_behind: impl Fn() -> bool) -> bool {
    let (first, second) = (area(pair.a, face), area(pair.b, opposed));
    let by_size = first.total_cmp(&second).then(pair.a.bounding_radius.total_cmp(&pair.b.bounding_radius));
    by_size.is_lt() || (by_size.is_eq() && !first_is_behind())
}

/// Twice the area of a face.
fn area(polyhedron: &Polyhedron, face: usize) -> f64 {
    let face = &polyhedron.faces[face];
    let corner = |index: usize| polyhedron.vertices[face.vertices[index] as usize];
    let origin = corner(0);
    let fan = |index| (corner(index) - origin).cross(&(corner(index + 1) - origin));
    (1..face.vertices.len() - 1).map(fan).sum::<Vec3>().dot(&face.normal)
}

/// The face of the second body, among those at its lowest vertex, that points most against a face of the
/// first; and the cosine between the two.
fn opposed_face(pair: &Pair, face: usize, among: Option<&[u32]>, lowest: usize) -> (f64, usize) {
    let direction = -(pair.inverse * pair.a.faces[face].normal);
    let mut best = (f64::NEG_INFINITY, 0);
    for_each_face(pair.b, among, |index, face| {
        let cosine = direction.dot(&face.normal);
        if cosine > best.0 && face.vertices.contains(&(lowest as u32)) {
            best = (cosine, index);
        }
    });
    best
}

/// All faces, or some of them.
fn for_each_face(polyhedron: &Polyhedron, among: Option<&[u32]>, mut look: impl FnMut(usize, &Face)) {
    match among {
        None => polyhedron.faces.iter().enumerate().for_each(|(index, face)| look(index, face)),
        Some(among) => {
            among.iter().for_each(|&index| look(index as usize, &polyhedron.faces[index as usize]));
        }
    }
}

/// Clips the second body's opposed faces to the prism over a face of the first. Never empty: where nothing is
/// left (a corner beside a corner), the lowest vertex and the closest point of the face.
fn reference_patch(
    pair: &Pair,
    face: usize,
    among: Option<&[u32]>,
    (lowest, opposed): (usize, usize),
    margin: f64,
    pose: &Pose,
    mirrored: bool,
) -> Patch {
    let reference = &pair.a.faces[face];
    let radius = pair.a.bounding_radius.min(pair.b.bounding_radius);
    let nearly = nearly(pair.a.bounding_radius, pair.b.bounding_radius);
    let mut corners = Ring::new();
    for &vertex in &reference.vertices {
        corners.push((pair.a.vertices[vertex as usize], vertex));
    }
    let direction = -(pair.inverse * reference.normal);

    let mut candidates = Candidates::new();
    let (mut ring, mut polygons) = (Ring::new(), [Polygon::new(), Polygon::new()]);
    for_each_face(pair.b, among, |index, other| {
        if index != opposed && direction.dot(&other.normal) < OPPOSED_COSINE {
            return;
        }
        ring.clear();
        polygons[0].clear();
        for &vertex in &other.vertices {
            let corner = pair.vertex_of_b(vertex as usize);
            ring.push((corner, vertex));
            polygons[0].push(corner);
        }
        let place = clip(&mut polygons, reference, &corners, radius);
        let polygon = &mut polygons[place];
        simplify(polygon, &reference.normal, nearly);
        for &point in &*polygon {
            let gap = reference.normal.dot(&point) - reference.offset;
            if gap > margin {
                continue;
            }
            let on_reference = point - reference.normal * gap;
            add(
                &mut candidates,
                nearly,
                Candidate {
                    on_reference,
                    on_other: point,
                    gap,
                    reference_feature: Feature::of_polygon(&corners, face as u32, &on_reference, nearly),
                    other_feature: Feature::of_polygon(&ring, index as u32, &point, nearly),
                },
            );
        }
    });
    if candidates.is_empty() {
        let on_other = pair.vertex_of_b(lowest);
        let gap = reference.normal.dot(&on_other) - reference.offset;
        let foot = on_other - reference.normal * gap;
        let on_reference =
            closest_in_polygon(&reference.normal, corners.iter().map(|corner| corner.0), &foot);
        let reference_feature = Feature::of_polygon(&corners, face as u32, &on_reference, nearly);
        let other_feature = Feature::Vertex(lowest as u32);
        candidates.push(Candidate { on_reference, on_other, gap, reference_feature, other_feature });
    }
    finished(&candidates, &reference.normal, pose, mirrored)
}

/// Adds a point unless it coincides with one that is at least as deep; replaces one that is less deep.
fn add(candidates: &mut Candidates, nearly: f64, new: Candidate) {
    let same = |old: &&mut Candidate| (old.on_other - new.on_other).norm_squared() <= nearly * nearly;
    match candidates.iter_mut().find(same) {
        None => candidates.push(new),
        Some(old) if new.gap < old.gap => *old = new,
        Some(_) => {}
    }
}

/// Leaves of the first polygon what lies within the prism over the reference face (Sutherland and Hodgman,
/// side after side). The result is one of the two, and its place is returned.
fn clip(polygons: &mut [Polygon; 2], reference: &Face, corners: &[(Vec3, u32)], radius: f64) -> usize {
    let tolerance = ON_SIDE * radius;
    let mut current = 0;
    let mut previous = corners[corners.len() - 1].0;
    for &(corner, _) in corners {
        let across = (corner - previous).cross(&reference.normal);
        previous = corner;
        let [first, second] = &mut *polygons;
        let (polygon, next) = if current == 0 { (first, second) } else { (second, first) };
        // Most sides have the whole polygon clearly on one side, which needs no unit vector.
        let clearly = CLEARLY * CLEARLY * radius * radius * across.norm_squared();
        let (mut inside, mut outside) = (true, true);
        for point in &*polygon {
            let height = across.dot(&(point - corner));
            let signed_square = height * height.abs();
            inside &= signed_square < -clearly;
            outside &= signed_square > clearly;
        }
        if inside {
            continue;
        }
        if outside {
            polygon.clear();
            break;
        }
        let outward = across.normalize();
        let offset = outward.dot(&corner);
        next.clear();
        if let Some(&last) = polygon.last() {
            let mut from = (last, outward.dot(&last) - offset);
            for &point in &*polygon {
                let to = (point, outward.dot(&point) - offset);
                let crosses = (from.1 <= tolerance) != (to.1 <= tolerance);
                if crosses {
                    // The side that is inside may be outside by the tolerance: then it is the crossing
                    // itself.
                    let parameter = (from.1 / (from.1 - to.1)).clamp(0.0, 1.0);
                    next.push(from.0 + (to.0 - from.0) * parameter);
                }
                if to.1 <= tolerance {
                    next.push(point);
                }
                from = to;
            }
        }
        current = 1 - current;
    }
    current
}

/// Drops corners of a convex polygon that lie within `nearly` of another one or of the line between their
/// neighbours: where sides of the two faces are almost parallel, they cross anywhere along their length, at
/// every step somewhere else. A corner that is deeper than that line stays.
fn simplify(polygon: &mut Polygon, normal: &Vec3, nearly: f64) {
    let mut place = 0;
    while place < polygon.len() && polygon.len() > 1 {
        let count = polygon.len();
        let before = polygon[if place == 0 { count - 1 } else { place - 1 }];
        let after = polygon[if place + 1 == count { 0 } else { place + 1 }];
        let (along, from) = (after - before, polygon[place] - before);
        let length = along.norm_squared();
        let parameter = if length > 0.0 { (along.dot(&from) / length).clamp(0.0, 1.0) } else { 0.0 };
        let off = from - along * parameter;
        if off.norm_squared() <= nearly * nearly && off.dot(normal) >= -NEARLY * nearly {
            polygon.remove(place);
        } else {
            place += 1;
        }
    }
}

/// The patch of an edge pair: the closest points, or both ends of the overlap if the edges are nearly
/// parallel.
fn edge_patch(pair: &Pair, axes: &Axes, pose: &Pose) -> Option<Patch> {
    let (edge_a, edge_b, normal, _) = axes.edges?;
    let ends_a =
        pair.a.edges[edge_a as usize].vertices.map(|vertex| (pair.a.vertices[vertex as usize], vertex));
    let ends_b =
        pair.b.edges[edge_b as usize].vertices.map(|vertex| (pair.vertex_of_b(vertex as usize), vertex));
    let nearly = nearly(pair.a.bounding_radius, pair.b.bounding_radius);
    let (along_a, along_b) = (ends_a[1].0 - ends_a[0].0, ends_b[1].0 - ends_b[0].0);
    let mut candidates = Candidates::new();
    for (s, t) in edge_parameters(&ends_a[0].0, &along_a, &ends_b[0].0, &along_b, nearly) {
        let (on_a, on_b) = (ends_a[0].0 + along_a * s, ends_b[0].0 + along_b * t);
        add(
            &mut candidates,
            nearly,
            Candidate {
                on_reference: on_a,
                on_other: on_b,
                gap: normal.dot(&(on_b - on_a)),
                reference_feature: Feature::of_polygon(&ends_a, 0, &on_a, nearly),
                other_feature: Feature::of_polygon(&ends_b, 0, &on_b, nearly),
            },
        );
    }
    Some(finished(&candidates, &normal, pose, false))
}

/// Parameters (s, t) of the contact points on the segments `p + s u` and `q + t v`.
fn edge_parameters(p: &Vec3, u: &Vec3, q: &Vec3, v: &Vec3, nearly: f64) -> SmallVec<[(f64, f64); 2]> {
    let (uu, uv, vv) = (u.norm_squared(), u.dot(v), v.norm_squared());
    let between = q - p;
    let (du, dv) = (between.dot(u), between.dot(v));
    let across = u.cross(v).norm_squared();
    let mut found = SmallVec::new();
    if across <= NEARLY * NEARLY * uu * vv {
        // Both ends of the overlap, measured along u.
        let (start, end) = (du / uu, (du + uv) / uu);
        let (low, high) = (start.min(end).max(0.0), start.max(end).min(1.0));
        if (high - low) * uu.sqrt() > nearly {
            for s in [low, high] {
                found.push((s, ((s - start) / (end - start)).clamp(0.0, 1.0)));
            }
            return found;
        }
    }
    // Closest points of the lines, then of the segments.
    let s = ((du * vv - uv * dv) / across).clamp(0.0, 1.0);
    let t = ((uv * s - dv) / vv).clamp(0.0, 1.0);
    let s = ((uv * t + du) / uu).clamp(0.0, 1.0);
    found.push((s, t));
    found
}

/// Names the points, leaves out what is too much, and moves all to the world.
fn finished(candidates: &Candidates, normal: &Vec3, pose: &Pose, mirrored: bool) -> Patch {
    let outward = pose.direction(normal);
    let behind = a_is_behind(&outward);
    let mut points: SmallVec<[PatchPoint; INLINE_POINTS]> =
        SmallVec::with_capacity(candidates.len().min(MAX_POINTS));
    let mut finish = |candidate: &Candidate| {
        let Candidate { on_reference, on_other, gap, reference_feature, other_feature } = *candidate;
        let feature = if behind {
            identify(reference_feature, other_feature)
        } else {
            identify(other_feature, reference_feature)
        };
        points.push(PatchPoint {
            feature,
            on_a: pose.point(&on_reference),
            on_b: pose.point(&on_other),
            gap,
        });
    };
    if candidates.len() <= MAX_POINTS {
        candidates.iter().for_each(finish);
    } else {
        let all = candidates.iter().map(|candidate| (candidate.on_other, candidate.gap));
        reduce::keep(normal, all).iter().for_each(|&index| finish(&candidates[index]));
    }
    make_unique(points.iter_mut().map(|point| &mut point.feature));
    let patch = Patch { normal: outward, points };
    if mirrored { patch.mirrored() } else { patch }
}
