//! The points of a body as a frame draws them, in the body's own frame: against these, poses are found again.

use crate::geometry::icosphere::{FINEST, Icosphere};
use crate::geometry::{Drawing, Pose, Vec3};
use crate::scene::Body;

/// The body's points in the order of `bodies.vtkhdf`, if it was drawn there with `count` points.
///
/// None if no way of drawing spheres makes that number, or if the body has a half-space, whose square depends
/// on the scene.
pub fn reference_points(body: &Body, count: usize) -> Option<Vec<Vec3>> {
    let drawings: Vec<(Pose, Drawing)> =
        body.shape.parts().map(|(pose, convex)| (pose, convex.drawing())).collect();
    let (mut spheres, mut corners) = (0, 0);
    for (_, drawing) in &drawings {
        match drawing {
            Drawing::Sphere { .. } => spheres += 1,
            Drawing::Polyhedron(polyhedron) => corners += polyhedron.vertices.len(),
            Drawing::Plane => return None,
        }
    }
    let each = count.checked_sub(corners)?;
    let drawn = match spheres {
        0 if each == 0 => Vec::new(),
        0 => return None,
        _ => sphere_points(each, spheres)?,
    };
    let mut points = Vec::with_capacity(count);
    for (pose, drawing) in &drawings {
        match drawing {
            Drawing::Sphere { radius } => {
                points.extend(drawn.iter().map(|unit| pose.point(&(unit * *radius))))
            }
            Drawing::Polyhedron(polyhedron) => {
                points.extend(polyhedron.vertices.iter().map(|v| pose.point(v)))
            }
            Drawing::Plane => {}
        }
    }
    Some(points)
}

/// The unit sphere that `count` points for `spheres` spheres show: a single point, or 2 + 10·4ʳ of them.
fn sphere_points(count: usize, spheres: usize) -> Option<Vec<Vec3>> {
    if count == spheres {
        return Some(vec![Vec3::zeros()]);
    }
    let refinement = (0..=FINEST).find(|&refinement| count == spheres * (2 + 10 * 4usize.pow(refinement)))?;
    Some(Icosphere::new(refinement).vertices)
}

/// A sphere as triangles, for drawing: unit vertices, and corners counter-clockwise seen from outside.
pub fn unit_sphere(refinement: u32) -> (Vec<Vec3>, Vec<[usize; 3]>) {
    let sphere = Icosphere::new(refinement);
    (sphere.vertices, sphere.triangles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::reader::FrameFile;
    use crate::output::samples::{self, directory};
    use crate::output::{BodyFile, BodyOptions, Spheres};
    use decomposition::Solo;

    #[test]
    fn reference_points_at_the_body_s_pose_are_the_frame_s_points() {
        let directory = directory("reference");
        for spheres in [Spheres::Points, Spheres::Surface] {
            let path = directory.join("bodies.vtkhdf");
            let options = BodyOptions {
                spheres,
                refinement: 1,
                precision: crate::output::Precision::Double,
                ..BodyOptions::default()
            };
            for id in 0..8 {
                let body = samples::body(id);
                let mut file = BodyFile::create(&path, &Solo, options.clone()).unwrap();
                file.write(&Solo, 0.0, [&body]).unwrap();
                file.close().unwrap();
                let frame = FrameFile::open(&path).unwrap().read(0).unwrap();
                let Some(points) = reference_points(&body, frame.point_count()) else {
                    assert!(body.shape.bounding_radius().is_infinite(), "body {id}");
                    continue;
                };
                for (k, point) in points.iter().enumerate() {
                    let world = body.pose.point(point);
                    assert!((world - Vec3::from(frame.point(k))).norm() < 1e-12);
                }
                assert!(reference_points(&body, frame.point_count() + 1).is_none());
            }
        }
    }
}
