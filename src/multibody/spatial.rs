//! Spatial (six-dimensional) vectors in world axes about one common point.
//!
//! Every twist and wrench of a machine is written about the same world point, the *reference* of `Data`. So
//! twists of a chain add up without transformations, composite inertias are sums, and `M_ij = S_i · I S_j`
//! needs no frames at all. The reference lies on the machine, so nothing is lost when the machine stands far
//! from the origin.

use crate::geometry::{Mat3, Vec3};
use std::ops::{Add, AddAssign, Mul, Neg, Sub};

/// Velocity (or acceleration) field of a rigid body: of the body-fixed point at the reference, and angular.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Twist {
    pub linear: Vec3,
    pub angular: Vec3,
}

/// Force, and moment about the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wrench {
    pub force: Vec3,
    pub moment: Vec3,
}

impl Twist {
    pub fn new(linear: Vec3, angular: Vec3) -> Self {
        Self { linear, angular }
    }

    pub fn zero() -> Self {
        Self::new(Vec3::zeros(), Vec3::zeros())
    }

    /// Rotation at unit speed about an axis through a point `arm` away from the reference.
    pub(super) fn rotation(axis: Vec3, arm: &Vec3) -> Self {
        Self::new(arm.cross(&axis), axis)
    }

    pub(super) fn translation(direction: Vec3) -> Self {
        Self::new(direction, Vec3::zeros())
    }

    /// Velocity of the body-fixed point `arm` away from the reference.
    pub fn at(&self, arm: &Vec3) -> Vec3 {
        self.linear + self.angular.cross(arm)
    }

    /// Rate of change of `carried`, a twist that is fixed in a frame moving with this one.
    pub(super) fn carry(&self, carried: &Twist) -> Twist {
        Twist::new(
            self.angular.cross(&carried.linear) + self.linear.cross(&carried.angular),
            self.angular.cross(&carried.angular),
        )
    }

    /// The same for a wrench.
    pub(super) fn carry_wrench(&self, carried: &Wrench) -> Wrench {
        Wrench {
            force: self.angular.cross(&carried.force),
            moment: self.angular.cross(&carried.moment) + self.linear.cross(&carried.force),
        }
    }

    /// Power of a wrench on this twist.
    pub fn power(&self, wrench: &Wrench) -> f64 {
        self.linear.dot(&wrench.force) + self.angular.dot(&wrench.moment)
    }
}

impl Wrench {
    pub fn zero() -> Self {
        Self { force: Vec3::zeros(), moment: Vec3::zeros() }
    }

    /// A force that acts `arm` away from the reference.
    pub(super) fn at(force: Vec3, arm: &Vec3) -> Self {
        Self { force, moment: arm.cross(&force) }
    }

    /// Moment about the point `arm` away from the reference.
    pub(super) fn moment_about(&self, arm: &Vec3) -> Vec3 {
        self.moment - arm.cross(&self.force)
    }
}

impl Add for Twist {
    type Output = Twist;
    fn add(self, other: Twist) -> Twist {
        Twist::new(self.linear + other.linear, self.angular + other.angular)
    }
}

impl AddAssign for Twist {
    fn add_assign(&mut self, other: Twist) {
        *self = *self + other;
    }
}

impl Sub for Twist {
    type Output = Twist;
    fn sub(self, other: Twist) -> Twist {
        Twist::new(self.linear - other.linear, self.angular - other.angular)
    }
}

impl Neg for Twist {
    type Output = Twist;
    fn neg(self) -> Twist {
        Twist::new(-self.linear, -self.angular)
    }
}

impl Mul<f64> for Twist {
    type Output = Twist;
    fn mul(self, factor: f64) -> Twist {
        Twist::new(self.linear * factor, self.angular * factor)
    }
}

impl Add for Wrench {
    type Output = Wrench;
    fn add(self, other: Wrench) -> Wrench {
        Wrench { force: self.force + other.force, moment: self.moment + other.moment }
    }
}

impl AddAssign for Wrench {
    fn add_assign(&mut self, other: Wrench) {
        *self = *self + other;
    }
}

impl Sub for Wrench {
    type Output = Wrench;
    fn sub(self, other: Wrench) -> Wrench {
        Wrench { force: self.force - other.force, moment: self.moment - other.moment }
    }
}

impl Mul<f64> for Wrench {
    type Output = Wrench;
    fn mul(self, factor: f64) -> Wrench {
        Wrench { force: self.force * factor, moment: self.moment * factor }
    }
}

/// Mass, first moment and moment of inertia about the reference. Inertias of several bodies add.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SpatialInertia {
    pub mass: f64,
    pub first_moment: Vec3,
    pub second_moment: Mat3,
}

impl SpatialInertia {
    pub fn zero() -> Self {
        Self { mass: 0.0, first_moment: Vec3::zeros(), second_moment: Mat3::zeros() }
    }

    /// From the inertia tensor about the centre of mass (world axes), which lies `arm` away from the
    /// reference.
    pub fn of_body(mass: f64, arm: &Vec3, about_centre: &Mat3) -> Self {
        let steiner = Mat3::identity() * arm.norm_squared() - arm * arm.transpose();
        Self { mass, first_moment: arm * mass, second_moment: about_centre + steiner * mass }
    }

    /// Momentum of a twist; also the wrench of an acceleration.
    pub fn apply(&self, twist: &Twist) -> Wrench {
        Wrench {
            force: twist.linear * self.mass + twist.angular.cross(&self.first_moment),
            moment: self.second_moment * twist.angular + self.first_moment.cross(&twist.linear),
        }
    }
}

impl AddAssign for SpatialInertia {
    fn add_assign(&mut self, other: SpatialInertia) {
        self.mass += other.mass;
        self.first_moment += other.first_moment;
        self.second_moment += other.second_moment;
    }
}
