//! Spheres: one point, at the true closest point of the other surface. There is only ever one, so its feature
//! is 0.

use super::Patch;
use crate::geometry::{Face, Polyhedron, Pose, Vec3};

/// Two spheres. Concentric ones have no normal of their own: the result is then +z.
pub fn on_sphere(radius_a: f64, a: &Pose, radius_b: f64, b: &Pose, margin: f64) -> Option<Patch> {
    let between = b.position - a.position;
    let distance = between.norm();
    let gap = distance - radius_a - radius_b;
    if gap > margin {
        return None;
    }
    let normal = if distance > 0.0 { between / distance } else { Vec3::z() };
    Some(Patch::single(normal, a.position + normal * radius_a, b.position - normal * radius_b, gap))
}

/// A sphere on a half-space (a).
pub fn on_plane(plane: &Pose, radius: f64, sphere: &Pose, margin: f64) -> Option<Patch> {
    let normal = plane.direction(&Vec3::z());
    let height = normal.dot(&(sphere.position - plane.position));
    let gap = height - radius;
    (gap <= margin).then(|| {
        Patch::single(normal, sphere.position - normal * height, sphere.position - normal * radius, gap)
    })
}

/// A sphere on a polyhedron (a). A centre inside is pushed out through the nearest face.
pub fn on_polyhedron(
    polyhedron: &Polyhedron,
    pose: &Pose,
    radius: f64,
    sphere: &Pose,
    margin: f64,
) -> Option<Patch> {
    let reach = polyhedron.bounding_radius + radius + margin;
    if (sphere.position - pose.position).norm_squared() > reach * reach {
        return None;
    }
    let centre = pose.inverse_point(&sphere.position);
    let height = |face: &Face| face.normal.dot(&centre) - face.offset;
    let mut nearest = (f64::NEG_INFINITY, 0);
    for (index, face) in polyhedron.faces.iter().enumerate() {
        let height = height(face);
        if height > radius + margin {
            return None;
        }
        if height > nearest.0 {
            nearest = (height, index);
        }
    }

    let (face_height, face) = nearest;
    let mut normal = polyhedron.faces.get(face)?.normal;
    let mut distance = face_height;
    if face_height > 0.0 {
        let foot = closest_outside(polyhedron, &centre, height);
        let away = centre - foot;
        let length = away.norm();
        // On the surface up to rounding the direction is noise; the face's normal is right there.
        if length > 1e-12 * polyhedron.bounding_radius {
            (normal, distance) = (away / length, length);
        }
    }
    let gap = distance - radius;
    let normal = pose.direction(&normal);
    (gap <= margin).then(|| {
        Patch::single(normal, sphere.position - normal * distance, sphere.position - normal * radius, gap)
    })
}

/// The closest point of the surface to a point outside.
fn closest_outside(polyhedron: &Polyhedron, point: &Vec3, height: impl Fn(&Face) -> f64) -> Vec3 {
    let mut best = (f64::INFINITY, *point);
    for face in &polyhedron.faces {
        let height = height(face);
        // A face seen from behind is never the closest, and no point of a face is nearer than its plane.
        if height <= 0.0 || height * height >= best.0 {
            continue;
        }
        let foot = closest_in_polygon(
            &face.normal,
            face.vertices.iter().map(|&vertex| polyhedron.vertices[vertex as usize]),
            &(point - face.normal * height),
        );
        let distance = (foot - point).norm_squared();
        if distance < best.0 {
            best = (distance, foot);
        }
    }
    best.1
}

/// The point of a convex polygon, counter-clockwise about `normal`, that is closest to a point of its plane.
pub fn closest_in_polygon(
    normal: &Vec3,
    corners: impl DoubleEndedIterator<Item = Vec3> + Clone,
    point: &Vec3,
) -> Vec3 {
    let Some(mut previous) = corners.clone().next_back() else { return *point };
    let mut best = (f64::INFINITY, *point);
    for corner in corners {
        let along = corner - previous;
        let from = point - previous;
        if along.cross(normal).dot(&from) > 0.0 {
            let parameter = (along.dot(&from) / along.norm_squared()).clamp(0.0, 1.0);
            let foot = previous + along * parameter;
            let distance = (foot - point).norm_squared();
            if distance < best.0 {
                best = (distance, foot);
            }
        }
        previous = corner;
    }
    best.1
}
