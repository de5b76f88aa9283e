//! Eight f64 side by side. Only operations that round once each: the same bits on every instruction set.
//!
//! Plain arrays, which the compiler turns into one 64 byte register, two of 32 or four of 16, by the instruction set that the caller was
//! compiled for ([`Isa`]).

use super::problem::Twist;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

pub const LANES: usize = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub struct F64x8(pub [f64; LANES]);

macro_rules! lane_by_lane {
    ($trait:ident, $method:ident, $operator:tt) => {
        impl $trait for F64x8 {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let mut result = self;
                for k in 0..LANES {
                    result.0[k] = self.0[k] $operator other.0[k];
                }
                result
            }
        }
    };
}

lane_by_lane!(Add, add, +);
lane_by_lane!(Sub, sub, -);
lane_by_lane!(Mul, mul, *);
lane_by_lane!(Div, div, /);

impl AddAssign for F64x8 {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for F64x8 {
    #[inline(always)]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl F64x8 {
    #[inline(always)]
    pub fn splat(value: f64) -> Self {
        Self([value; LANES])
    }

    #[inline(always)]
    pub fn map(self, function: impl Fn(f64) -> f64) -> Self {
        let mut result = self;
        for k in 0..LANES {
            result.0[k] = function(self.0[k]);
        }
        result
    }

    #[inline(always)]
    pub fn zip(self, other: Self, function: impl Fn(f64, f64) -> f64) -> Self {
        let mut result = self;
        for k in 0..LANES {
            result.0[k] = function(self.0[k], other.0[k]);
        }
        result
    }

    #[inline(always)]
    pub fn sqrt(self) -> Self {
        self.map(f64::sqrt)
    }

    /// Larger than zero, else zero; a NaN becomes zero.
    #[inline(always)]
    pub fn positive_part(self) -> Self {
        self.map(|x| if x > 0.0 { x } else { 0.0 })
    }

    /// One over it where it is positive, else zero.
    #[inline(always)]
    pub fn inverse_if_positive(self) -> Self {
        self.map(|x| {
            let inverse = 1.0 / x;
            if x > 0.0 { inverse } else { 0.0 }
        })
    }

    /// Itself where `mask` is positive, else zero.
    #[inline(always)]
    pub fn where_positive(self, mask: Self) -> Self {
        self.zip(mask, |value, mask| if mask > 0.0 { value } else { 0.0 })
    }

    #[inline(always)]
    pub fn larger(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }

    /// Itself where `a ≤ b`, else `other`.
    #[inline(always)]
    pub fn where_at_most(self, a: Self, b: Self, other: Self) -> Self {
        let mut result = other;
        for k in 0..LANES {
            result.0[k] = if a.0[k] <= b.0[k] { self.0[k] } else { other.0[k] };
        }
        result
    }

    /// The factor that brings a vector of squared length `self` back to length `limit`: 1 where it is not longer.
    #[inline(always)]
    pub fn shrink_to(self, limit: Self) -> Self {
        self.zip(limit, |squared, limit| {
            let ratio = limit / squared.sqrt();
            if squared > limit * limit { ratio } else { 1.0 }
        })
    }
}

/// Eight vectors of three.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Vec3x8(pub [F64x8; 3]);

impl Vec3x8 {
    #[inline(always)]
    pub fn dot(self, other: Self) -> F64x8 {
        self.0[0] * other.0[0] + self.0[1] * other.0[1] + self.0[2] * other.0[2]
    }

    #[inline(always)]
    pub fn cross(self, other: Self) -> Self {
        let ([a, b, c], [x, y, z]) = (self.0, other.0);
        Self([b * z - c * y, c * x - a * z, a * y - b * x])
    }

    #[inline(always)]
    pub fn scaled(self, factor: F64x8) -> Self {
        Self([self.0[0] * factor, self.0[1] * factor, self.0[2] * factor])
    }

    #[inline(always)]
    pub fn norm(self) -> F64x8 {
        self.dot(self).sqrt()
    }

    pub fn set(&mut self, lane: usize, value: &[f64; 3]) {
        for (entry, &value) in self.0.iter_mut().zip(value) {
            entry.0[lane] = value;
        }
    }
}

impl Add for Vec3x8 {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self([self.0[0] + other.0[0], self.0[1] + other.0[1], self.0[2] + other.0[2]])
    }
}

impl Sub for Vec3x8 {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self([self.0[0] - other.0[0], self.0[1] - other.0[1], self.0[2] - other.0[2]])
    }
}

/// Eight twists as columns: linear x, y, z, padding, angular x, y, z, padding.
pub type Columns = [F64x8; LANES];

/// How an instruction set turns eight twists into columns and back. Nothing is computed, so nothing can differ.
pub trait Isa {
    /// # Safety
    /// The pointers are valid for reads, and the processor has the instruction set.
    unsafe fn gather(twists: [*const Twist; LANES]) -> Columns;

    /// Writes the lanes whose bit is set in `mask`.
    ///
    /// # Safety
    /// The pointers are valid for writes, those with their bit set are distinct, and the processor has the instruction set.
    unsafe fn scatter(columns: &Columns, twists: [*mut Twist; LANES], mask: u8);
}

/// Any processor.
pub struct Plain;

/// 32 byte registers.
#[cfg(target_arch = "x86_64")]
pub struct Avx2;

/// 64 byte registers.
#[cfg(target_arch = "x86_64")]
pub struct Avx512;

impl Isa for Plain {
    #[inline(always)]
    unsafe fn gather(twists: [*const Twist; LANES]) -> Columns {
        let mut columns = Columns::default();
        for (lane, twist) in twists.into_iter().enumerate() {
            // SAFETY: valid for reads; a twist is eight numbers, two of them padding.
            let row = unsafe { &*twist.cast::<[f64; LANES]>() };
            for k in 0..LANES {
                columns[k].0[lane] = row[k];
            }
        }
        columns
    }

    #[inline(always)]
    unsafe fn scatter(columns: &Columns, twists: [*mut Twist; LANES], mask: u8) {
        for (lane, twist) in twists.into_iter().enumerate() {
            if mask >> lane & 1 == 1 {
                // SAFETY: valid for writes, and no other lane writes it.
                let row = unsafe { &mut *twist.cast::<[f64; LANES]>() };
                for k in 0..LANES {
                    row[k] = columns[k].0[lane];
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Avx2, Avx512, Columns, F64x8, Isa, LANES, Twist};
    use std::arch::x86_64::*;

    /// Four rows of four become four columns.
    #[inline(always)]
    unsafe fn transposed_4x4(rows: [__m256d; 4]) -> [__m256d; 4] {
        // SAFETY: the caller has AVX.
        unsafe {
            let low_01 = _mm256_unpacklo_pd(rows[0], rows[1]);
            let high_01 = _mm256_unpackhi_pd(rows[0], rows[1]);
            let low_23 = _mm256_unpacklo_pd(rows[2], rows[3]);
            let high_23 = _mm256_unpackhi_pd(rows[2], rows[3]);
            [
                _mm256_permute2f128_pd::<0x20>(low_01, low_23),
                _mm256_permute2f128_pd::<0x20>(high_01, high_23),
                _mm256_permute2f128_pd::<0x31>(low_01, low_23),
                _mm256_permute2f128_pd::<0x31>(high_01, high_23),
            ]
        }
    }

    impl Isa for Avx2 {
        #[inline(always)]
        unsafe fn gather(twists: [*const Twist; LANES]) -> Columns {
            let mut columns = Columns::default();
            for half in 0..2 {
                for part in 0..2 {
                    // SAFETY: valid for reads of 64 bytes, of which this is one half; results go to 32 byte aligned halves.
                    unsafe {
                        let row = |k: usize| _mm256_load_pd(twists[4 * half + k].cast::<f64>().add(4 * part));
                        let turned = transposed_4x4([row(0), row(1), row(2), row(3)]);
                        for (k, column) in turned.into_iter().enumerate() {
                            _mm256_store_pd(columns[4 * part + k].0.as_mut_ptr().add(4 * half), column);
                        }
                    }
                }
            }
            columns
        }

        #[inline(always)]
        unsafe fn scatter(columns: &Columns, twists: [*mut Twist; LANES], mask: u8) {
            for half in 0..2 {
                for part in 0..2 {
                    // SAFETY: as in `gather`; written are only lanes whose bit is set.
                    unsafe {
                        let column =
                            |k: usize| _mm256_load_pd(columns[4 * part + k].0.as_ptr().add(4 * half));
                        let turned = transposed_4x4([column(0), column(1), column(2), column(3)]);
                        for (k, row) in turned.into_iter().enumerate() {
                            let lane = 4 * half + k;
                            if mask >> lane & 1 == 1 {
                                _mm256_store_pd(twists[lane].cast::<f64>().add(4 * part), row);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Eight rows of eight become eight columns.
    #[inline(always)]
    unsafe fn transposed_8x8(r: [__m512d; 8]) -> [__m512d; 8] {
        // SAFETY: the caller has AVX-512.
        unsafe {
            let pairs = [
                _mm512_unpacklo_pd(r[0], r[1]),
                _mm512_unpackhi_pd(r[0], r[1]),
                _mm512_unpacklo_pd(r[2], r[3]),
                _mm512_unpackhi_pd(r[2], r[3]),
                _mm512_unpacklo_pd(r[4], r[5]),
                _mm512_unpackhi_pd(r[4], r[5]),
                _mm512_unpacklo_pd(r[6], r[7]),
                _mm512_unpackhi_pd(r[6], r[7]),
            ];
            // 128 bit pieces: of rows 0–3 and 4–7, then of both.
            let low = [
                _mm512_shuffle_f64x2::<0x88>(pairs[0], pairs[2]),
                _mm512_shuffle_f64x2::<0x88>(pairs[1], pairs[3]),
                _mm512_shuffle_f64x2::<0xdd>(pairs[0], pairs[2]),
                _mm512_shuffle_f64x2::<0xdd>(pairs[1], pairs[3]),
            ];
            let high = [
                _mm512_shuffle_f64x2::<0x88>(pairs[4], pairs[6]),
                _mm512_shuffle_f64x2::<0x88>(pairs[5], pairs[7]),
                _mm512_shuffle_f64x2::<0xdd>(pairs[4], pairs[6]),
                _mm512_shuffle_f64x2::<0xdd>(pairs[5], pairs[7]),
            ];
            [
                _mm512_shuffle_f64x2::<0x88>(low[0], high[0]),
                _mm512_shuffle_f64x2::<0x88>(low[1], high[1]),
                _mm512_shuffle_f64x2::<0x88>(low[2], high[2]),
                _mm512_shuffle_f64x2::<0x88>(low[3], high[3]),
                _mm512_shuffle_f64x2::<0xdd>(low[0], high[0]),
                _mm512_shuffle_f64x2::<0xdd>(low[1], high[1]),
                _mm512_shuffle_f64x2::<0xdd>(low[2], high[2]),
                _mm512_shuffle_f64x2::<0xdd>(low[3], high[3]),
            ]
        }
    }

    impl Isa for Avx512 {
        #[inline(always)]
        unsafe fn gather(twists: [*const Twist; LANES]) -> Columns {
            // SAFETY: valid for reads of 64 bytes, aligned to them.
            unsafe {
                let row = |k: usize| _mm512_load_pd(twists[k].cast::<f64>());
                let rows = [row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)];
                transposed_8x8(rows).map(|column| F64x8(std::mem::transmute::<__m512d, [f64; 8]>(column)))
            }
        }

        #[inline(always)]
        unsafe fn scatter(columns: &Columns, twists: [*mut Twist; LANES], mask: u8) {
            // SAFETY: valid for writes of 64 bytes, aligned to them; written are only lanes whose bit is set.
            unsafe {
                let column = |k: usize| _mm512_load_pd(columns[k].0.as_ptr());
                let columns =
                    [column(0), column(1), column(2), column(3), column(4), column(5), column(6), column(7)];
                for (lane, row) in transposed_8x8(columns).into_iter().enumerate() {
                    if mask >> lane & 1 == 1 {
                        _mm512_store_pd(twists[lane].cast::<f64>(), row);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Vec3;

    fn check<I: Isa>() {
        let twist = |k: usize| {
            let number = |j: usize| (10 * k + j) as f64;
            Twist::new(Vec3::new(number(0), number(1), number(2)), Vec3::new(number(3), number(4), number(5)))
        };
        let twists: [Twist; LANES] = std::array::from_fn(twist);
        // SAFETY: distinct twists, and the caller has looked for the instruction set.
        unsafe {
            let columns = I::gather(std::array::from_fn(|k| &raw const twists[k]));
            for lane in 0..LANES {
                for (column, entry) in [(0, 0), (1, 1), (2, 2), (4, 3), (5, 4), (6, 5)] {
                    assert_eq!(columns[column].0[lane], (10 * lane + entry) as f64);
                }
            }
            let mut back = [Twist::default(); LANES];
            I::scatter(&columns, back.each_mut().map(|twist| twist as *mut Twist), 0b1011_0110);
            for lane in 0..LANES {
                let written = 0b1011_0110 >> lane & 1 == 1;
                assert_eq!(back[lane], if written { twists[lane] } else { Twist::default() });
            }
        }
    }

    #[test]
    fn twists_turn_into_columns_and_back() {
        check::<Plain>();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                check::<Avx2>();
            }
            if is_x86_feature_detected!("avx512f") {
                check::<Avx512>();
            }
        }
    }
}
