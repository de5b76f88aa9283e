//! Random numbers by position: number n of stream s under a seed is a pure function of (seed, s, n).
//!
//! The generator is Philox-4×32-10 [Salmon2011]: ten rounds of multiply-and-swap turn a 128-bit counter and a
//! 64-bit key into 128 random bits. The key is the seed, the upper half of the counter is the stream, the
//! lower half counts blocks, so streams never overlap, and grain k draws the same numbers whoever generates
//! it and whatever was generated before.
//!
//! Everything above the raw bits uses only +, −, ×, ÷ and √, which IEEE 754 rounds the same on every machine;
//! the system's logarithm and cosine do not.

use super::{Quat, Vec3};

/// A stream of random numbers. By convention grain k of a group draws from stream k; streams from 2⁶³ up are
/// for what belongs to no grain.
#[derive(Clone, Debug, PartialEq)]
pub struct Random {
    seed: u64,
    stream: u64,
    /// Blocks drawn so far.
    block: u64,
    /// The second half of the last block, if not used yet.
    spare: Option<u64>,
}

impl Random {
    pub fn new(seed: u64, stream: u64) -> Self {
        Self { seed, stream, block: 0, spare: None }
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let counter =
            [self.block as u32, (self.block >> 32) as u32, self.stream as u32, (self.stream >> 32) as u32];
        let [a, b, c, d] = philox(counter, [self.seed as u32, (self.seed >> 32) as u32]);
        self.block += 1;
        self.spare = Some(u64::from(c) | u64::from(d) << 32);
        u64::from(a) | u64::from(b) << 32
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        fraction(self.bits())
    }

    /// Uniform in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Normal with mean 0 and variance 1, by Marsaglia's polar method.
    pub fn normal(&mut self) -> f64 {
        let (x, _, s) = self.in_disc();
        x * (-2.0 * logarithm(s) / s).sqrt()
    }

    /// Uniform on the unit sphere [Marsaglia1972].
    pub fn direction(&mut self) -> Vec3 {
        let (x, y, s) = self.in_disc();
        let factor = 2.0 * (1.0 - s).sqrt();
        Vec3::new(x * factor, y * factor, 1.0 - 2.0 * s).normalize()
    }

    /// Uniform over all rotations: a uniform point on the unit sphere in four dimensions [Marsaglia1972].
    pub fn rotation(&mut self) -> Quat {
        let (x, y, s) = self.in_disc();
        let (z, w, t) = self.in_disc();
        let factor = ((1.0 - s) / t).sqrt();
        Quat::new_normalize(nalgebra::Quaternion::new(x, y, z * factor, w * factor))
    }

    /// A uniform point of the open unit disc without its centre, and its squared radius.
    fn in_disc(&mut self) -> (f64, f64, f64) {
        loop {
            let (x, y) = (self.between(-1.0, 1.0), self.between(-1.0, 1.0));
            let s = x * x + y * y;
            if s > 0.0 && s < 1.0 {
                return (x, y, s);
            }
        }
    }
}

/// The upper 53 bits as a number in [0, 1).
pub(super) fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let even = u64::from(counter[0]) * 0xD251_1F53;
        let odd = u64::from(counter[2]) * 0xCD9E_8D57;
        counter = [
            (odd >> 32) as u32 ^ counter[1] ^ key[0],
            odd as u32,
            (even >> 32) as u32 ^ counter[3] ^ key[1],
            even as u32,
        ];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

/// ln x of a positive normal number, within some units of rounding, with the same bits everywhere.
///
/// x = m 2ᵉ with m in [√½, √2); ln m = 2 artanh y with y = (m − 1)/(m + 1), |y| < 0.172: 11 odd terms reach
/// 1e-17.
fn logarithm(x: f64) -> f64 {
    let mut exponent = ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let mut mantissa = f64::from_bits((x.to_bits() & ((1 << 52) - 1)) | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let y = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..11).rev().fold(0.0, |sum, k| sum * (y * y) + 1.0 / f64::from(2 * k + 1));
    f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * y * series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Mat3;

    /// The known answers that the authors of Philox publish with it.
    #[test]
    fn philox_known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        let ones = u32::MAX;
        assert_eq!(philox([ones; 4], [ones; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        let pi = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344];
        assert_eq!(philox(pi, [0xa4093822, 0x299f31d0]), [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
    }

    #[test]
    fn streams_and_seeds_differ_and_repeat() {
        let draw = |seed, stream| {
            let mut random = Random::new(seed, stream);
            (0..5).map(|_| random.bits()).collect::<Vec<_>>()
        };
        assert_eq!(draw(3, 4), draw(3, 4));
        let all: Vec<u64> = [(3, 4), (4, 3), (3, 5), (3, 4 << 32), (3 << 32, 4)]
            .iter()
            .flat_map(|&(s, k)| draw(s, k))
            .collect();
        let distinct: std::collections::BTreeSet<u64> = all.iter().copied().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn logarithm_agrees_with_the_library() {
        let mut random = Random::new(1, 0);
        for _ in 0..10_000 {
            let x = random.uniform() * 0.5f64.powi((random.bits() % 60) as i32) + f64::MIN_POSITIVE;
            assert!((logarithm(x) - x.ln()).abs() <= 4e-16 * (1.0 + x.ln().abs()), "{x}");
        }
        assert_eq!(logarithm(1.0), 0.0);
    }

    /// Moments within five standard errors of 10⁵ draws.
    #[test]
    fn moments() {
        const N: usize = 100_000;
        let mut random = Random::new(9, 2);
        let error = |variance: f64| 5.0 * (variance / N as f64).sqrt();
        let uniform: Vec<f64> = (0..N).map(|_| random.uniform()).collect();
        let normal: Vec<f64> = (0..N).map(|_| random.normal()).collect();
        let mean = |values: &[f64], power: i32| values.iter().map(|x| x.powi(power)).sum::<f64>() / N as f64;
        assert!(uniform.iter().all(|x| (0.0..1.0).contains(x)));
        assert!((mean(&uniform, 1) - 0.5).abs() < error(1.0 / 12.0));
        assert!((mean(&uniform, 2) - 1.0 / 3.0).abs() < error(4.0 / 45.0));
        assert!(mean(&normal, 1).abs() < error(1.0));
        assert!((mean(&normal, 2) - 1.0).abs() < error(2.0));
        assert!((mean(&normal, 4) - 3.0).abs() < error(96.0));
    }

    /// E[d dᵀ] = 1/3, and a uniform rotation sends every axis to a uniform direction; E[q qᵀ] = 1/4.
    #[test]
    fn directions_and_rotations_are_isotropic() {
        const N: usize = 40_000;
        let mut random = Random::new(5, 5);
        let (mut direct, mut turned) = (Mat3::zeros(), Mat3::zeros());
        let mut quaternion = nalgebra::Matrix4::<f64>::zeros();
        for _ in 0..N {
            let d = random.direction();
            let q = random.rotation();
            let axis = q * Vec3::z();
            direct += d * d.transpose() / N as f64;
            turned += axis * axis.transpose() / N as f64;
            quaternion += q.coords * q.coords.transpose() / N as f64;
        }
        assert!((direct - Mat3::identity() / 3.0).amax() < 0.01);
        assert!((turned - Mat3::identity() / 3.0).amax() < 0.01);
        assert!((quaternion - nalgebra::Matrix4::identity() / 4.0).amax() < 0.01);
    }
}
