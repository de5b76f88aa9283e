//! `bodies.vtkhdf`: every body in its true shape, step by step, with arrays on its points.
//!
//! Polyhedra are drawn as their faces, spheres as triangles or as single points with a `radius`, half-spaces
//! as a square a little larger than the domain. Arrays stand on points, not on cells, so that one mechanism
//! serves surfaces and glyphs. Every body is given by exactly one rank (fixed and kinematic ones, that all
//! ranks hold, by rank 0, say).

use super::error::OutputError;
use super::image::Image;
use super::piece::{Array, POLYGONS, Piece, Precision, VERTICES, Values};
use super::polydata::{Maker, PolyDataFile};
use crate::geometry::icosphere::Icosphere;
use crate::geometry::{Aabb, Convex, Drawing, Pose, Vec3};
use crate::scene::Body;
use crate::words::{Choose, choices};
use decomposition::Comm;
use std::path::Path;

choices! {
    /// How spheres are drawn. A sphere that is a point has its `radius` in an array, for glyphs.
    pub enum Spheres {
        Surface = "surface", "as triangles";
        Points = "points", "as one point each with a radius, for very many";
    }
}

/// What a field holds for a body.
enum FieldValue {
    Integer(fn(&Body) -> i64),
    Real(fn(&Body) -> f64),
    Vector(fn(&Body) -> Vec3),
}

/// Declares the fields, one entry each: variant, word of the case file and name of the array, meaning, unit,
/// value.
macro_rules! body_fields {
    ($($variant:ident = $name:literal, $about:literal, $unit:literal, $kind:ident($value:expr);)+) => {
        choices! {
            /// An array on the points of bodies.
            pub enum BodyField { $($variant = $name, concat!($about, $unit);)+ }
        }

        impl BodyField {
            fn value(self) -> FieldValue {
                match self { $(BodyField::$variant => FieldValue::$kind($value)),+ }
            }
        }
    };
}

body_fields! {
    Id = "id", "global number of the body", "", Integer(|body| body.id.0 as i64);
    Group = "group", "number of the [[body]] or [[grains]] that it came from", "", Integer(|body| i64::from(body.group));
    Velocity = "velocity", "of the centre of mass, ", "m/s", Vector(|body| body.velocity);
    AngularVelocity = "angular_velocity", "", "rad/s", Vector(|body| body.angular_velocity);
    Speed = "speed", "magnitude of the velocity, ", "m/s", Real(|body| body.velocity.norm());
}

impl BodyField {
    fn array(self) -> Array {
        let (components, integer) = match self.value() {
            FieldValue::Integer(_) => (1, true),
            FieldValue::Real(_) => (1, false),
            FieldValue::Vector(_) => (3, false),
        };
        Array { name: self.name(), components, integer }
    }

    /// Adds the value of a body to an array, `count` times.
    fn add(self, body: &Body, count: u64, values: &mut Values) {
        match self.value() {
            FieldValue::Integer(value) => (0..count).for_each(|_| values.push_integer(value(body))),
            FieldValue::Real(value) => {
                let value = value(body);
                (0..count).for_each(|_| values.push(value));
            }
            FieldValue::Vector(value) => {
                let value = value(body);
                (0..count).for_each(|_| values.extend(value.as_slice()));
            }
        }
    }
}

#[derive(Clone, Debug)]
pub struct BodyOptions {
    pub spheres: Spheres,
    /// Of the surface of a sphere: 12, 42, 162, 642 points for 0, 1, 2, 3.
    pub refinement: u32,
    pub fields: Vec<BodyField>,
    pub precision: Precision,
    /// Deflate level 1–9, 0 for none.
    pub compression: u8,
    /// Finite; half-spaces are drawn around it. `None` leaves them out.
    pub domain: Option<Aabb>,
}

impl Default for BodyOptions {
    fn default() -> Self {
        Self {
            spheres: Spheres::Surface,
            refinement: 2,
            fields: BodyField::ALL.to_vec(),
            precision: Precision::Single,
            compression: 4,
            domain: None,
        }
    }
}

pub struct BodyFile {
    file: PolyDataFile,
    options: BodyOptions,
    sphere: Icosphere,
}

impl BodyFile {
    /// Collective: creates or replaces the file.
    pub fn create(path: &Path, comm: &dyn Comm, options: BodyOptions) -> Result<Self, OutputError> {
        Self::make(path, comm, options, PolyDataFile::create)
    }

    /// Collective: opens a file in order to add steps; an error if it holds other arrays.
    pub fn open(path: &Path, comm: &dyn Comm, options: BodyOptions) -> Result<Self, OutputError> {
        Self::make(path, comm, options, PolyDataFile::open)
    }

    fn make(
        path: &Path,
        comm: &dyn Comm,
        mut options: BodyOptions,
        make: Maker,
    ) -> Result<Self, OutputError> {
        let mut seen = Vec::new();
        options.fields.retain(|field| {
            !seen.contains(field) && {
                seen.push(*field);
                true
            }
        });
        let mut arrays: Vec<Array> = options.fields.iter().map(|field| field.array()).collect();
        let refinement = match options.spheres {
            Spheres::Surface => options.refinement,
            Spheres::Points => {
                arrays.push(Array { name: "radius", components: 1, integer: false });
                0
            }
        };
        let file = make(path, comm, arrays, options.precision, options.compression)?;
        Ok(Self { file, options, sphere: Icosphere::new(refinement) })
    }

    /// Collective: adds a step with the bodies that this rank gives, and flushes.
    pub fn write<'a>(
        &mut self,
        comm: &dyn Comm,
        time: f64,
        bodies: impl IntoIterator<Item = &'a Body>,
    ) -> Result<(), OutputError> {
        let mut piece = self.file.piece();
        for body in bodies {
            for (place, convex) in body.shape.parts() {
                let before = piece.point_count();
                self.draw(&mut piece, &body.pose.compose(&place), convex);
                self.describe(&mut piece, body, convex, before);
            }
        }
        self.file.write(comm, time, piece)
    }

    /// Collective: see [`Image`]. Rank 0 gets it.
    pub fn image(&mut self, comm: &dyn Comm) -> Result<Option<Image>, OutputError> {
        self.file.image(comm)
    }

    /// Steps in the file.
    pub fn steps(&self) -> u64 {
        self.file.steps()
    }

    /// Whether HDF5 made every transfer collectively, as it was asked to.
    pub fn was_collective(&self) -> bool {
        self.file.was_collective()
    }

    /// Collective.
    pub fn close(self) -> Result<(), OutputError> {
        self.file.close()
    }

    fn draw(&self, piece: &mut Piece, pose: &Pose, convex: &Convex) {
        let first = piece.point_count() as i64;
        match (convex.drawing(), self.options.spheres) {
            (Drawing::Sphere { .. }, Spheres::Points) => {
                let point = piece.point(&pose.position);
                piece.cells[VERTICES].push([point]);
            }
            (Drawing::Sphere { radius }, Spheres::Surface) => {
                for vertex in &self.sphere.vertices {
                    piece.point(&pose.point(&(vertex * radius)));
                }
                for triangle in &self.sphere.triangles {
                    piece.cells[POLYGONS].push(triangle.iter().map(|&k| first + k as i64));
                }
            }
            (Drawing::Polyhedron(polyhedron), _) => {
                for vertex in &polyhedron.vertices {
                    piece.point(&pose.point(vertex));
                }
                for face in &polyhedron.faces {
                    piece.cells[POLYGONS].push(face.vertices.iter().map(|&k| first + i64::from(k)));
                }
            }
            (Drawing::Plane, _) => {
                for corner in self.options.domain.iter().flat_map(|domain| square(pose, domain)) {
                    piece.point(&corner);
                }
                if self.options.domain.is_some() {
                    piece.cells[POLYGONS].push(first..first + 4);
                }
            }
        }
    }

    /// One row in every array for each point drawn since there were `before`.
    fn describe(&self, piece: &mut Piece, body: &Body, convex: &Convex, before: u64) {
        let count = piece.point_count() - before;
        for (field, values) in self.options.fields.iter().zip(&mut piece.data) {
            field.add(body, count, values);
        }
        if let Some(radii) = piece.data.get_mut(self.options.fields.len()) {
            let radius = if let Drawing::Sphere { radius } = convex.drawing() { radius } else { 0.0 };
            (0..count).for_each(|_| radii.push(radius));
        }
    }
}

/// The corners of a square in the boundary plane of a half-space, opposite the domain's centre and as wide as
/// its diagonal.
fn square(pose: &Pose, domain: &Aabb) -> [Vec3; 4] {
    let centre = pose.inverse_point(&((domain.min + domain.max) / 2.0));
    let half = (domain.max - domain.min).norm() / 2.0;
    [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
        .map(|(x, y)| pose.point(&Vec3::new(centre.x + x * half, centre.y + y * half, 0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Quat;

    #[test]
    fn the_square_of_a_wall_lies_in_its_plane_under_the_domain() {
        let domain = Aabb { min: Vec3::new(-1.0, -2.0, 0.0), max: Vec3::new(3.0, 2.0, 5.0) };
        let tilt = Quat::from_euler_angles(0.3, -0.8, 0.1);
        let pose = Pose::new(tilt, Vec3::new(0.5, 7.0, -2.0));
        let corners = square(&pose, &domain);
        let normal = pose.direction(&Vec3::z());
        for corner in corners {
            assert!((corner - pose.position).dot(&normal).abs() < 1e-12);
        }
        let middle = corners.iter().sum::<Vec3>() / 4.0;
        let shift = (domain.min + domain.max) / 2.0 - middle;
        assert!(shift.cross(&normal).norm() < 1e-12, "the square stands beside the domain");
        assert!((corners[1] - corners[0]).cross(&(corners[2] - corners[1])).dot(&normal) > 0.0);
        assert!(((corners[1] - corners[0]).norm() - (domain.max - domain.min).norm()).abs() < 1e-12);
    }
}
