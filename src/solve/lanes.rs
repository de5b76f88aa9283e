//! Four f64 side by side. Only operations that round once each: the same bits on every instruction set.

use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

pub const LANES: usize = 4;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(32))]
pub struct F64x4(pub [f64; LANES]);

macro_rules! lane_by_lane {
    ($trait:ident, $method:ident, $operator:tt) => {
        impl $trait for F64x4 {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(std::array::from_fn(|k| self.0[k] $operator other.0[k]))
            }
        }
    };
}

lane_by_lane!(Add, add, +);
lane_by_lane!(Sub, sub, -);
lane_by_lane!(Mul, mul, *);

impl AddAssign for F64x4 {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for F64x4 {
    #[inline(always)]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl F64x4 {
    /// Larger than zero, else zero; a NaN becomes zero.
    #[inline(always)]
    pub fn positive_part(self) -> Self {
        Self(self.0.map(|x| if x > 0.0 { x } else { 0.0 }))
    }

    /// The factor that brings a vector of squared length `self` back to length `limit`: 1 where it is not longer.
    #[inline(always)]
    pub fn shrink_to(self, limit: Self) -> Self {
        Self(std::array::from_fn(|k| {
            let ratio = limit.0[k] / self.0[k].sqrt();
            if self.0[k] > limit.0[k] * limit.0[k] { ratio } else { 1.0 }
        }))
    }
}

/// Four vectors of three.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Vec3x4(pub [F64x4; 3]);

impl Vec3x4 {
    #[inline(always)]
    pub fn dot(self, other: Self) -> F64x4 {
        self.0[0] * other.0[0] + self.0[1] * other.0[1] + self.0[2] * other.0[2]
    }

    #[inline(always)]
    pub fn cross(self, other: Self) -> Self {
        let ([a, b, c], [x, y, z]) = (self.0, other.0);
        Self([b * z - c * y, c * x - a * z, a * y - b * x])
    }

    #[inline(always)]
    pub fn scaled(self, factor: F64x4) -> Self {
        Self(self.0.map(|entry| entry * factor))
    }

    pub fn set(&mut self, lane: usize, value: &[f64; 3]) {
        for (entry, &value) in self.0.iter_mut().zip(value) {
            entry.0[lane] = value;
        }
    }
}

impl Add for Vec3x4 {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|k| self.0[k] + other.0[k]))
    }
}

impl Sub for Vec3x4 {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(std::array::from_fn(|k| self.0[k] - other.0[k]))
    }
}
