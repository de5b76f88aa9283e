//! The bodies that a frame shows: which points and faces belong to which.
//!
//! The writer draws part after part, so the points of a part are consecutive and its polygons reach no
//! others. Parts of one body follow each other and share an `id`. Without that array every part counts as a
//! body of its own.

use crate::geometry::Vec3;
use crate::output::reader::{CellKind, Frame, Numbers};
use std::ops::Range;

/// A convex part as it is drawn: a closed surface, a square of a wall (one face), or a single point with a
/// radius.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Rows of the frame.
    pub points: Range<usize>,
    /// Corners of all faces, counted from the part's first point.
    corners: Vec<u32>,
    /// Where each face's corners end.
    ends: Vec<u32>,
}

impl Part {
    /// Counter-clockwise seen from outside.
    pub fn faces(&self) -> impl Iterator<Item = &[u32]> {
        self.ends.iter().scan(0usize, |start, &end| {
            Some(&self.corners[std::mem::replace(start, end as usize)..end as usize])
        })
    }

    pub fn face_count(&self) -> usize {
        self.ends.len()
    }

    /// One face alone: the square that stands for a half-space.
    pub fn is_wall(&self) -> bool {
        self.ends.len() == 1
    }

    pub fn is_point(&self) -> bool {
        self.ends.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct SeenBody {
    /// The body's own, or its number in the frame if the frame has no ids.
    pub id: u64,
    /// 0 if the frame has no groups.
    pub group: u32,
    pub parts: Vec<Part>,
}

impl SeenBody {
    /// Rows of the frame.
    pub fn points(&self) -> Range<usize> {
        let start = self.parts.first().map_or(0, |part| part.points.start);
        start..self.parts.last().map_or(start, |part| part.points.end)
    }

    pub fn is_wall(&self) -> bool {
        self.parts.len() == 1 && self.parts[0].is_wall()
    }
}

/// The bodies of a frame, in its order.
pub fn bodies(frame: &Frame) -> Vec<SeenBody> {
    let integers = |name: &str| match frame.array(name).map(|array| &array.values) {
        Some(Numbers::Integer(values)) => Some(values),
        _ => None,
    };
    let (ids, groups) = (integers("id"), integers("group"));
    let mut bodies: Vec<SeenBody> = Vec::new();
    let mut last_id = None;
    for part in parts(frame) {
        let row = part.points.start;
        let id = ids.map(|ids| ids[row]);
        match bodies.last_mut() {
            Some(body) if id.is_some() && id == last_id => body.parts.push(part),
            _ => {
                let number = bodies.len() as u64;
                let group = groups.and_then(|groups| u32::try_from(groups[row]).ok()).unwrap_or(0);
                bodies.push(SeenBody { id: id.map_or(number, |id| id as u64), group, parts: vec![part] });
            }
        }
        last_id = id;
    }
    bodies
}

fn parts(frame: &Frame) -> Vec<Part> {
    let count = frame.point_count();
    // The last point that a polygon ties to each point.
    let mut reach: Vec<u32> = (0..count as u32).collect();
    for face in frame.cells(CellKind::Polygons) {
        if let (Some(&low), Some(&high)) = (face.iter().min(), face.iter().max()) {
            let reach = &mut reach[low as usize];
            *reach = high.max(*reach);
        }
    }
    let mut parts = Vec::new();
    let mut part_of = vec![0u32; count];
    let mut start = 0;
    while start < count {
        let mut end = reach[start] as usize;
        let mut at = start;
        while at <= end {
            end = end.max(reach[at] as usize);
            part_of[at] = parts.len() as u32;
            at += 1;
        }
        parts.push(Part { points: start..end + 1, corners: Vec::new(), ends: Vec::new() });
        start = end + 1;
    }
    for face in frame.cells(CellKind::Polygons).filter(|face| face.len() >= 3) {
        let part = &mut parts[part_of[face[0] as usize] as usize];
        let first = part.points.start as u32;
        part.corners.extend(face.iter().map(|corner| corner - first));
        part.ends.push(part.corners.len() as u32);
    }
    parts
}

/// Volume and centre of a closed surface, by the divergence theorem; none if it is not closed or has no
/// inside.
pub fn volume_and_centre(points: &[Vec3], part: &Part) -> Option<(f64, Vec3)> {
    if part.face_count() < 4 {
        return None;
    }
    // Tetrahedra from one of its own points: no cancellation far from the origin.
    let apex = points[0];
    let (mut volume, mut moment) = (0.0, Vec3::zeros());
    for face in part.faces() {
        let corner = |k: usize| points[face[k] as usize] - apex;
        for k in 1..face.len() - 1 {
            let (a, b, c) = (corner(0), corner(k), corner(k + 1));
            let six = a.dot(&b.cross(&c));
            volume += six / 6.0;
            moment += (a + b + c) * (six / 24.0);
        }
    }
    let extent = points.iter().map(|point| (point - apex).norm()).fold(0.0, f64::max);
    (volume > 1e-12 * extent.powi(3)).then(|| (volume, apex + moment / volume))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Aabb, Convex, Part as ShapePart, Pose, Quat, Shape, convex_hull};
    use crate::output::reader::FrameFile;
    use crate::output::{BodyField, BodyFile, BodyOptions, Spheres};
    use crate::scene::{Body, BodyId, Motion};
    use decomposition::Solo;
    use std::sync::Arc;

    pub fn tetrahedron(position: Vec3) -> Body {
        let corners = [Vec3::zeros(), Vec3::x(), Vec3::y() * 2.0, Vec3::z() * 3.0];
        let hull = convex_hull(&corners).unwrap();
        body(1, Shape::polyhedron(hull), position)
    }

    fn body(id: u64, shape: Shape, position: Vec3) -> Body {
        Body {
            id: BodyId(id),
            group: id as u32 + 5,
            material: 0,
            motion: Motion::Free,
            shape,
            mass: 1.0,
            inertia: Vec3::repeat(1.0),
            pose: Pose::new(Quat::identity(), position),
            velocity: Vec3::zeros(),
            angular_velocity: Vec3::zeros(),
            angular_momentum: Vec3::zeros(),
            anchor: None,
            memory: Box::default(),
        }
    }

    fn frame(bodies: &[Body], fields: Vec<BodyField>, spheres: Spheres) -> Frame {
        let name = format!("breccia-seen-{}-{}-{spheres:?}", std::process::id(), fields.len());
        let path = std::env::temp_dir().join(name);
        let domain = Some(Aabb { min: Vec3::zeros(), max: Vec3::repeat(1.0) });
        let precision = crate::output::Precision::Double;
        let options =
            BodyOptions { spheres, refinement: 0, fields, precision, domain, ..BodyOptions::default() };
        let mut file = BodyFile::create(&path, &Solo, options).unwrap();
        file.write(&Solo, 0.0, bodies).unwrap();
        file.close().unwrap();
        let frame = FrameFile::open(&path).unwrap().read(0).unwrap();
        std::fs::remove_file(&path).unwrap();
        frame
    }

    #[test]
    fn bodies_walls_clusters_and_points_are_told_apart() {
        let arm = |x: f64, convex| ShapePart { pose: Pose::new(Quat::identity(), Vec3::x() * x), convex };
        let tool = [arm(0.0, Convex::Sphere { radius: 0.5 }), arm(3.0, Convex::Sphere { radius: 0.25 })];
        let all = [
            body(0, Shape::Convex(Convex::HalfSpace), Vec3::zeros()),
            tetrahedron(Vec3::x()),
            body(9, Shape::Cluster(Arc::new(tool)), Vec3::zeros()),
        ];
        let surface = Spheres::Surface;
        let seen = bodies(&frame(&all, vec![BodyField::Id, BodyField::Group], surface));
        assert_eq!(
            seen.iter().map(|body| (body.id, body.group)).collect::<Vec<_>>(),
            [(0, 5), (1, 6), (9, 14)]
        );
        assert!(seen[0].is_wall() && !seen[1].is_wall());
        assert_eq!(seen[1].parts[0].face_count(), 4);
        assert_eq!((seen[2].parts.len(), seen[2].points()), (2, 8..32));
        // Without ids, parts stand for bodies.
        let seen = bodies(&frame(&all, vec![], surface));
        assert_eq!(seen.iter().map(|body| body.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
        let seen = bodies(&frame(&all, vec![BodyField::Id], Spheres::Points));
        assert!(seen[2].parts.len() == 2 && seen[2].parts[0].is_point());
        assert!(bodies(&frame(&[], vec![], surface)).is_empty());
    }

    #[test]
    fn the_centre_of_a_tetrahedron_is_the_mean_of_its_corners() {
        let far = Vec3::new(1000.0, -2000.0, 500.0);
        let frame = frame(&[tetrahedron(far)], vec![], Spheres::Points);
        let seen = bodies(&frame);
        let points: Vec<Vec3> = (0..4).map(|k| Vec3::from(frame.point(k))).collect();
        let (volume, centre) = volume_and_centre(&points, &seen[0].parts[0]).unwrap();
        assert!((volume - 1.0).abs() < 1e-9);
        assert!((centre - far - Vec3::new(0.25, 0.5, 0.75)).norm() < 1e-9);
    }
}
