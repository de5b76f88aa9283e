//! A sphere about the origin of its frame.

use super::{Columns, Drawing, Primitive};
use crate::geometry::mass::{MassError, Moments};
use crate::geometry::{Aabb, Mat3, Pose, Vec3};
use std::f64::consts::PI;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sphere {
    pub radius: f64,
}

impl Primitive for Sphere {
    const CODE: u8 = 0;

    fn bounding_radius(&self) -> f64 {
        self.radius
    }

    fn aabb(&self, pose: &Pose) -> Aabb {
        Aabb { min: pose.position, max: pose.position }.inflated(self.radius)
    }

    fn moments(&self) -> Result<Moments, MassError> {
        let radius = self.radius;
        let volume = 4.0 / 3.0 * PI * (radius * radius * radius);
        let spread = Mat3::from_diagonal_element(volume * radius * radius / 5.0);
        Ok(Moments { volume, centre: Vec3::zeros(), spread })
    }

    fn support(&self, _: &Vec3) -> Option<Vec3> {
        Some(Vec3::zeros())
    }

    fn rounding(&self) -> f64 {
        self.radius
    }

    fn drawing(&self) -> Drawing {
        Drawing::Sphere { radius: self.radius }
    }

    fn columns(&self) -> Columns {
        Columns::single(Self::CODE, self.radius)
    }

    fn from_columns(columns: Columns) -> Result<Self, String> {
        Ok(Self { radius: columns.radius })
    }
}
