//! How much of a shape lies within a box along the axes.
//!
//! A polyhedron is cut by the six planes of the box one after the other. A cut keeps the inner part of every
//! face and closes the body with a cap, whose corners are ordered by their angle about their mean: the
//! section of a convex body is convex. The volume is that of the pyramids from one inner point to all faces.
//! A sphere that crosses the border is cut as a polyhedron of 162 corners with the sphere's volume.

use super::icosphere::Icosphere;
use super::{Aabb, Convex, Drawing, Pose, Shape, Vec3};
use std::f64::consts::PI;

/// Volume of the part of a shape within `bounds`, m³. Where parts of a cluster overlap, the overlap counts
/// twice, as in its mass. A half-space has none.
pub fn volume_within(shape: &Shape, pose: &Pose, bounds: &Aabb) -> f64 {
    // The ball around it first: its box reads each corner.
    let ball = Aabb { min: pose.position, max: pose.position }.inflated(shape.bounding_radius());
    if !ball.overlaps(bounds) || !shape.aabb(pose).overlaps(bounds) {
        return 0.0;
    }
    shape.parts().map(|(part, convex)| convex_within(convex, &pose.compose(&part), bounds)).sum()
}

fn convex_within(convex: &Convex, pose: &Pose, bounds: &Aabb) -> f64 {
    let reach = convex.aabb(pose);
    let inside =
        (0..3).all(|axis| bounds.min[axis] <= reach.min[axis] && reach.max[axis] <= bounds.max[axis]);
    let whole = || convex.moments().map_or(0.0, |moments| moments.volume);
    match convex.drawing() {
        Drawing::Plane => 0.0,
        Drawing::Sphere { radius } => {
            let whole = 4.0 / 3.0 * PI * radius.powi(3);
            if inside {
                return whole;
            }
            let ball = Icosphere::new(2);
            let corner = |place: usize| pose.position + ball.vertices[place] * radius;
            let faces: Vec<Vec<Vec3>> =
                ball.triangles.iter().map(|triangle| triangle.map(corner).to_vec()).collect();
            whole * volume(&cut_to(faces.clone(), bounds)) / volume(&faces)
        }
        Drawing::Polyhedron(polyhedron) => {
            let exact = matches!(convex, Convex::Polyhedron(_));
            if inside {
                return if exact { polyhedron.volume() } else { whole() };
            }
            let corners: Vec<Vec3> = polyhedron.vertices.iter().map(|vertex| pose.point(vertex)).collect();
            let face = |vertices: &[u32]| vertices.iter().map(|&vertex| corners[vertex as usize]).collect();
            let faces = polyhedron.faces.iter().map(|each| face(&each.vertices)).collect();
            let within = volume(&cut_to(faces, bounds));
            if exact { within } else { within * whole() / polyhedron.volume() }
        }
    }
}

fn cut_to(faces: Vec<Vec<Vec3>>, bounds: &Aabb) -> Vec<Vec<Vec3>> {
    let mut faces = faces;
    for axis in 0..3 {
        faces = cut(faces, axis, |point| point[axis] - bounds.min[axis]);
        faces = cut(faces, axis, |point| bounds.max[axis] - point[axis]);
    }
    faces
}

/// What lies where `inside` ≥ 0, an affine function of the coordinate along `axis`.
fn cut(faces: Vec<Vec<Vec3>>, axis: usize, inside: impl Fn(&Vec3) -> f64) -> Vec<Vec<Vec3>> {
    if faces.iter().flatten().all(|point| inside(point) >= 0.0) {
        return faces;
    }
    let (mut kept, mut section) = (Vec::with_capacity(faces.len() + 1), Vec::new());
    for face in &faces {
        let mut part = Vec::with_capacity(face.len() + 1);
        for (place, point) in face.iter().enumerate() {
            let next = &face[(place + 1) % face.len()];
            let (here, there) = (inside(point), inside(next));
            if here >= 0.0 {
                part.push(*point);
            }
            if (here > 0.0 && there < 0.0) || (here < 0.0 && there > 0.0) {
                part.push(point + (next - point) * (here / (here - there)));
                section.push(part[part.len() - 1]);
            } else if here == 0.0 {
                section.push(*point);
            }
        }
        // A face in the plane itself is replaced by the cap.
        if part.len() >= 3 && !face.iter().all(|point| inside(point) == 0.0) {
            kept.push(part);
        }
    }
    if section.len() >= 3 {
        let middle = section.iter().sum::<Vec3>() / section.len() as f64;
        let [first, second] = [(axis + 1) % 3, (axis + 2) % 3];
        let angle = |point: &Vec3| (point[second] - middle[second]).atan2(point[first] - middle[first]);
        let mut around: Vec<(f64, Vec3)> = section.into_iter().map(|point| (angle(&point), point)).collect();
        around.sort_by(|a, b| a.0.total_cmp(&b.0));
        kept.push(around.into_iter().map(|(_, point)| point).collect());
    }
    kept
}

/// Of a convex body, given by its faces with their corners in order, either way around.
fn volume(faces: &[Vec<Vec3>]) -> f64 {
    let corners = faces.iter().map(Vec::len).sum::<usize>();
    if corners == 0 {
        return 0.0;
    }
    let inner = faces.iter().flatten().sum::<Vec3>() / corners as f64;
    let pyramid = |face: &Vec<Vec3>| -> f64 {
        let fan = face.windows(2).skip(1);
        fan.map(|edge| (face[0] - inner).dot(&(edge[0] - inner).cross(&(edge[1] - inner)))).sum::<f64>().abs()
    };
    faces.iter().map(pyramid).sum::<f64>() / 6.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Polyhedron, Quat, Random, StoneParameters, mass_properties, stone};

    fn cube(low: f64, high: f64) -> Aabb {
        Aabb { min: Vec3::repeat(low), max: Vec3::repeat(high) }
    }

    #[test]
    fn boxes_are_cut_exactly() {
        let shape = Shape::polyhedron(Polyhedron::from_box(Vec3::new(0.5, 1.0, 1.5)));
        let all = volume_within(&shape, &Pose::identity(), &cube(-9.0, 9.0));
        assert!((all - 6.0).abs() < 1e-14);
        // Faces in the planes of the box, a corner, an edge-on cut, and no overlap.
        assert!((volume_within(&shape, &Pose::identity(), &cube(-0.5, 0.5)) - 1.0).abs() < 1e-14);
        assert!(
            (volume_within(&shape, &Pose::identity(), &cube(0.25, 9.0)) - 0.25 * 0.75 * 1.25).abs() < 1e-14
        );
        let turned =
            Pose::new(Quat::from_axis_angle(&Vec3::z_axis(), std::f64::consts::FRAC_PI_4), Vec3::zeros());
        let half = Aabb { min: Vec3::new(0.0, -9.0, -9.0), max: Vec3::repeat(9.0) };
        assert!((volume_within(&shape, &turned, &half) - 3.0).abs() < 1e-12);
        assert_eq!(volume_within(&shape, &Pose::identity(), &cube(0.5, 9.0)), 0.0);
        assert_eq!(volume_within(&shape, &Pose::identity(), &cube(2.0, 9.0)), 0.0);
        assert_eq!(
            volume_within(&Shape::Convex(Convex::HalfSpace), &Pose::identity(), &cube(-1.0, 1.0)),
            0.0
        );
    }

    #[test]
    fn the_parts_of_a_stone_in_eight_boxes_make_the_whole() {
        let mut random = Random::new(5, 0);
        for number in 0..20 {
            let polyhedron = stone(&StoneParameters::default(), 0.04, &mut random);
            let shape = Shape::polyhedron(polyhedron);
            let whole = mass_properties(&shape, 1.0).expect("a body").mass;
            let turn = Quat::from_scaled_axis(Vec3::new(0.3, -0.7, 0.1) * number as f64);
            let pose = Pose::new(turn, Vec3::new(0.003, -0.002, 0.004));
            let mut sum = 0.0;
            for octant in 0..8 {
                let side = |axis: usize| if octant >> axis & 1 == 1 { [0.0, 1.0] } else { [-1.0, 0.0] };
                let corner = |end: usize| Vec3::from_fn(|axis, _| side(axis)[end]);
                let part = volume_within(&shape, &pose, &Aabb { min: corner(0), max: corner(1) });
                assert!(part >= 0.0 && part < whole);
                sum += part;
            }
            assert!((sum / whole - 1.0).abs() < 1e-12, "{}", sum / whole - 1.0);
            // Wholly inside, and all but its outermost corners.
            let reach = shape.aabb(&pose);
            let near = Aabb { max: reach.max - Vec3::repeat(1e-12), ..cube(-1.0, 1.0) };
            for bounds in [cube(-1.0, 1.0), near] {
                let all = volume_within(&shape, &pose, &bounds);
                assert!((all / whole - 1.0).abs() < 1e-9, "{}", all / whole - 1.0);
            }
        }
    }

    #[test]
    fn half_a_ball_is_half_of_its_volume() {
        let ball = Shape::sphere(0.3);
        let whole = volume_within(&ball, &Pose::identity(), &cube(-1.0, 1.0));
        assert!((whole - 4.0 / 3.0 * PI * 0.027).abs() < 1e-15);
        let half = Aabb { min: Vec3::new(-1.0, 0.0, -1.0), max: Vec3::repeat(1.0) };
        assert!((volume_within(&ball, &Pose::identity(), &half) / whole - 0.5).abs() < 1e-12);
    }
}
