//! Some f64 side by side. Only operations that round once each: the same bits on every instruction set.
//!
//! Products are fused with sums ([`Lanes::times`]), on every processor: those that cannot do it (x86 before
//! 2013) do it by software, and slowly. Plain arrays, which the compiler turns into one 64 byte register, two
//! of 32 or four of 16, by the instruction set that the caller was compiled for ([`Isa`]).

mod instructions;

pub use instructions::Instructions;

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// Manifolds in a block, and numbers of a body in a line of memory.
pub const LANES: usize = 8;

/// `N` is 8 in memory; in registers what fits one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct Lanes<const N: usize>(pub [f64; N]);

pub type F64x8 = Lanes<LANES>;

impl<const N: usize> Default for Lanes<N> {
    #[inline(always)]
    fn default() -> Self {
        Self::splat(0.0)
    }
}

macro_rules! lane_by_lane {
    ($trait:ident, $method:ident, $operator:tt) => {
        impl<const N: usize> $trait for Lanes<N> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let mut result = self;
                for k in 0..N {
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

impl<const N: usize> Neg for Lanes<N> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.map(|x| -x)
    }
}

impl<const N: usize> AddAssign for Lanes<N> {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl<const N: usize> SubAssign for Lanes<N> {
    #[inline(always)]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl<const N: usize> Lanes<N> {
    #[inline(always)]
    pub fn splat(value: f64) -> Self {
        Self([value; N])
    }

    #[inline(always)]
    pub fn map(self, function: impl Fn(f64) -> f64) -> Self {
        let mut result = self;
        for k in 0..N {
            result.0[k] = function(self.0[k]);
        }
        result
    }

    #[inline(always)]
    pub fn zip(self, other: Self, function: impl Fn(f64, f64) -> f64) -> Self {
        let mut result = self;
        for k in 0..N {
            result.0[k] = function(self.0[k], other.0[k]);
        }
        result
    }

    /// `self · factor + sum`, rounded once.
    #[inline(always)]
    pub fn times(self, factor: Self, sum: Self) -> Self {
        let mut result = self;
        for k in 0..N {
            result.0[k] = self.0[k].mul_add(factor.0[k], sum.0[k]);
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
        for k in 0..N {
            result.0[k] = if a.0[k] <= b.0[k] { self.0[k] } else { other.0[k] };
        }
        result
    }

    /// The factor that brings a vector of squared length `self` back to length `limit`: 1 where it is not
    /// longer.
    #[inline(always)]
    pub fn shrink_to(self, limit: Self) -> Self {
        self.zip(limit, |squared, limit| {
            let ratio = limit / squared.sqrt();
            if squared > limit * limit { ratio } else { 1.0 }
        })
    }
}

impl F64x8 {
    /// Lanes `N part` to `N part + N`.
    #[inline(always)]
    pub fn part<const N: usize>(&self, part: usize) -> Lanes<N> {
        let mut result = Lanes::default();
        result.0.copy_from_slice(&self.0[N * part..N * part + N]);
        result
    }

    #[inline(always)]
    pub fn set_part<const N: usize>(&mut self, part: usize, lanes: Lanes<N>) {
        self.0[N * part..N * part + N].copy_from_slice(&lanes.0);
    }
}

/// As many vectors of three.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Vectors<const N: usize>(pub [Lanes<N>; 3]);

impl<const N: usize> Vectors<N> {
    #[inline(always)]
    pub fn dot(self, other: Self) -> Lanes<N> {
        self.dot_plus(other, self.0[0] * other.0[0])
    }

    /// `first` and what the second and third components add.
    #[inline(always)]
    fn dot_plus(self, other: Self, first: Lanes<N>) -> Lanes<N> {
        self.0[2].times(other.0[2], self.0[1].times(other.0[1], first))
    }

    /// With a sum to begin with.
    #[inline(always)]
    pub fn dot_and(self, other: Self, sum: Lanes<N>) -> Lanes<N> {
        self.dot_plus(other, self.0[0].times(other.0[0], sum))
    }

    #[inline(always)]
    pub fn cross(self, other: Self) -> Self {
        let ([a, b, c], [x, y, z]) = (self.0, other.0);
        Self([b.times(z, -(c * y)), c.times(x, -(a * z)), a.times(y, -(b * x))])
    }

    /// `self × other + sum`.
    #[inline(always)]
    pub fn cross_and(self, other: Self, sum: Self) -> Self {
        let ([a, b, c], [x, y, z], [p, q, r]) = (self.0, other.0, sum.0);
        Self([b.times(z, (-c).times(y, p)), c.times(x, (-a).times(z, q)), a.times(y, (-b).times(x, r))])
    }

    #[inline(always)]
    pub fn scaled(self, factor: Lanes<N>) -> Self {
        Self(self.0.map(|entry| entry * factor))
    }

    /// `self · factor + sum`.
    #[inline(always)]
    pub fn times(self, factor: Lanes<N>, sum: Self) -> Self {
        let ([a, b, c], [p, q, r]) = (self.0, sum.0);
        Self([a.times(factor, p), b.times(factor, q), c.times(factor, r)])
    }

    #[inline(always)]
    pub fn norm(self) -> Lanes<N> {
        self.dot(self).sqrt()
    }
}

impl Vectors<LANES> {
    pub fn set(&mut self, lane: usize, value: &[f64; 3]) {
        for (entry, &value) in self.0.iter_mut().zip(value) {
            entry.0[lane] = value;
        }
    }

    #[inline(always)]
    pub fn part<const N: usize>(&self, part: usize) -> Vectors<N> {
        Vectors([self.0[0].part(part), self.0[1].part(part), self.0[2].part(part)])
    }
}

impl<const N: usize> Sub for Vectors<N> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self([self.0[0] - other.0[0], self.0[1] - other.0[1], self.0[2] - other.0[2]])
    }
}

impl<const N: usize> Neg for Vectors<N> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(self.0.map(|entry| -entry))
    }
}

/// What a body has in a line of memory: a twist or an inertia.
pub type Line = [f64; LANES];

/// The lines of `N` bodies, number by number.
pub type Columns<const N: usize> = [Lanes<N>; LANES];

/// How an instruction set turns the lines of `N` bodies into columns and back, `N` being how many numbers one
/// of its registers holds. Nothing is computed, so nothing can differ.
pub trait Isa<const N: usize> {
    /// # Safety
    /// The pointers are valid for reads and aligned to 64 bytes, and the processor has the instruction set.
    unsafe fn gather(lines: [*const Line; N]) -> Columns<N>;

    /// Writes the lanes whose bit is set in `mask`.
    ///
    /// # Safety
    /// The pointers are valid for writes and aligned to 64 bytes, those with their bit set are distinct, and
    /// the processor has the instruction set.
    unsafe fn scatter(columns: &Columns<N>, lines: [*mut Line; N], mask: u8);
}

/// Any processor.
pub struct Plain;

/// 32 byte registers.
#[cfg(target_arch = "x86_64")]
pub struct Avx2;

/// 64 byte registers.
#[cfg(target_arch = "x86_64")]
pub struct Avx512;

impl<const N: usize> Isa<N> for Plain {
    #[inline(always)]
    unsafe fn gather(lines: [*const Line; N]) -> Columns<N> {
        let mut columns = [Lanes::default(); LANES];
        for (lane, line) in lines.into_iter().enumerate() {
            // SAFETY: valid for reads.
            let line = unsafe { &*line };
            for k in 0..LANES {
                columns[k].0[lane] = line[k];
            }
        }
        columns
    }

    #[inline(always)]
    unsafe fn scatter(columns: &Columns<N>, lines: [*mut Line; N], mask: u8) {
        for (lane, line) in lines.into_iter().enumerate() {
            if mask >> lane & 1 == 1 {
                // SAFETY: valid for writes, and no other lane writes it.
                let line = unsafe { &mut *line };
                for k in 0..LANES {
                    line[k] = columns[k].0[lane];
                }
            }
        }
    }
}

/// Compiles `$body` once for each instruction set, for the type that stands for it and the number of lanes of
/// its registers, and runs those that are [chosen](Instructions). All round in the same places: the bits are
/// the same.
macro_rules! for_each_isa {
    ($(#[$doc:meta])* $vis:vis unsafe fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $body:ident) => {
        $(#[$doc])*
        $vis unsafe fn $name($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                unsafe fn avx2($($argument: $type),*) $(-> $result)? {
                    // SAFETY: as for the function itself.
                    unsafe { $body::<$crate::lanes::Avx2, 4>($($argument),*) }
                }
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,fma")]
                unsafe fn avx512($($argument: $type),*) $(-> $result)? {
                    // SAFETY: as for the function itself.
                    unsafe { $body::<$crate::lanes::Avx512, 8>($($argument),*) }
                }
                match $crate::lanes::Instructions::chosen() {
                    // SAFETY: the processor has what is chosen; the rest as for the function itself.
                    $crate::lanes::Instructions::Avx512 => return unsafe { avx512($($argument),*) },
                    // SAFETY: the same.
                    $crate::lanes::Instructions::Avx2 => return unsafe { avx2($($argument),*) },
                    $crate::lanes::Instructions::Plain => {}
                }
            }
            // SAFETY: as for the function itself.
            unsafe { $body::<$crate::lanes::Plain, 4>($($argument),*) }
        }
    };
}
pub(crate) use for_each_isa;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Avx2, Avx512, Columns, Isa, Lanes, Line};
    use std::arch::x86_64::*;
    use std::mem::transmute;

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

    impl Isa<4> for Avx2 {
        #[inline(always)]
        unsafe fn gather(lines: [*const Line; 4]) -> Columns<4> {
            let mut columns = [Lanes::default(); 8];
            for half in 0..2 {
                // SAFETY: valid for reads of 64 bytes, of which this is one half; registers and arrays of as
                // many numbers are alike.
                unsafe {
                    let turned = transposed_4x4([
                        _mm256_load_pd(lines[0].cast::<f64>().add(4 * half)),
                        _mm256_load_pd(lines[1].cast::<f64>().add(4 * half)),
                        _mm256_load_pd(lines[2].cast::<f64>().add(4 * half)),
                        _mm256_load_pd(lines[3].cast::<f64>().add(4 * half)),
                    ]);
                    for (column, register) in columns[4 * half..].iter_mut().zip(turned) {
                        column.0 = transmute::<__m256d, [f64; 4]>(register);
                    }
                }
            }
            columns
        }

        #[inline(always)]
        unsafe fn scatter(columns: &Columns<4>, lines: [*mut Line; 4], mask: u8) {
            for half in 0..2 {
                // SAFETY: as in `gather`; written are only lanes whose bit is set.
                unsafe {
                    let column = |k: usize| _mm256_load_pd(columns[4 * half + k].0.as_ptr());
                    let turned = transposed_4x4([column(0), column(1), column(2), column(3)]);
                    for (lane, row) in turned.into_iter().enumerate() {
                        if mask >> lane & 1 == 1 {
                            _mm256_store_pd(lines[lane].cast::<f64>().add(4 * half), row);
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

    impl Isa<8> for Avx512 {
        #[inline(always)]
        unsafe fn gather(lines: [*const Line; 8]) -> Columns<8> {
            // SAFETY: valid for reads of 64 bytes, aligned to them; registers and arrays of as many numbers
            // are alike.
            unsafe {
                let row = |k: usize| _mm512_load_pd(lines[k].cast::<f64>());
                let rows = [row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)];
                transposed_8x8(rows).map(|column| Lanes(transmute::<__m512d, [f64; 8]>(column)))
            }
        }

        #[inline(always)]
        unsafe fn scatter(columns: &Columns<8>, lines: [*mut Line; 8], mask: u8) {
            // SAFETY: valid for writes of 64 bytes, aligned to them; written are only lanes whose bit is set.
            unsafe {
                let column = |k: usize| _mm512_load_pd(columns[k].0.as_ptr());
                let columns =
                    [column(0), column(1), column(2), column(3), column(4), column(5), column(6), column(7)];
                for (lane, row) in transposed_8x8(columns).into_iter().enumerate() {
                    if mask >> lane & 1 == 1 {
                        _mm512_store_pd(lines[lane].cast::<f64>(), row);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    #[repr(C, align(64))]
    struct Aligned(Line);

    fn check<I: Isa<N>, const N: usize>() {
        let line = |k: usize| Aligned(std::array::from_fn(|j| (10 * k + j) as f64));
        let lines: [Aligned; N] = std::array::from_fn(line);
        // SAFETY: distinct lines, and the caller has looked for the instruction set.
        unsafe {
            let columns = I::gather(std::array::from_fn(|k| &raw const lines[k].0));
            for lane in 0..N {
                for (entry, column) in columns.iter().enumerate() {
                    assert_eq!(column.0[lane], (10 * lane + entry) as f64);
                }
            }
            let mut back = [Aligned::default(); N];
            I::scatter(&columns, back.each_mut().map(|line| &raw mut line.0), 0b1011_0110);
            for lane in 0..N {
                let written = 0b1011_0110 >> lane & 1 == 1;
                assert_eq!(back[lane], if written { lines[lane] } else { Aligned::default() });
            }
        }
    }

    #[test]
    fn lines_turn_into_columns_and_back() {
        check::<Plain, 4>();
        check::<Plain, 8>();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                check::<Avx2, 4>();
            }
            if is_x86_feature_detected!("avx512f") {
                check::<Avx512, 8>();
            }
        }
    }
}
