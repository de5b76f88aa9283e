//! Everything with z ≤ 0. It has no mass and never moves freely.

use super::{Columns, Drawing, Primitive};
use crate::geometry::mass::{MassError, Moments};
use crate::geometry::{Aabb, Pose, Vec3};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalfSpace;

impl Primitive for HalfSpace {
    const CODE: u8 = 2;

    fn bounding_radius(&self) -> f64 {
        f64::INFINITY
    }

    fn aabb(&self, _: &Pose) -> Aabb {
        Aabb { min: Vec3::repeat(f64::NEG_INFINITY), max: Vec3::repeat(f64::INFINITY) }
    }

    fn moments(&self) -> Result<Moments, MassError> {
        Err(MassError::HalfSpace)
    }

    fn support(&self, _: &Vec3) -> Option<Vec3> {
        None
    }

    fn drawing(&self) -> Drawing {
        Drawing::Plane
    }

    fn columns(&self) -> Columns {
        Columns::single(Self::CODE, 0.0)
    }

    fn from_columns(_: Columns) -> Result<Self, String> {
        Ok(Self)
    }
}
