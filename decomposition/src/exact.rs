//! Sums of floating-point numbers that do not depend on their order.
//!
//! Every finite f64 is an integer multiple of 2⁻¹⁰⁷⁴. The accumulator holds the sum as such an integer, in
//! limbs of 32 bits kept in i64, so that 2³⁰ additions fit before a carry; adding is exact, hence commutative
//! and associative, and only the final conversion rounds. Ranks merge by adding limbs as integers.

use crate::comm::Comm;

/// Bits below the smallest subnormal's exponent are never needed: 2098 bits of range, plus room for carries.
const LIMBS: usize = 68;
const LIMB_BITS: u32 = 32;
const LIMB_MASK: u64 = (1 << LIMB_BITS) - 1;
/// Additions between carries: each adds less than 2³² to a limb of 63 usable bits.
const CARRY_AFTER: u32 = 1 << 30;

#[derive(Clone, Debug, PartialEq)]
pub struct ExactSum {
    limbs: [i64; LIMBS],
    additions: u32,
    /// Set by an infinity or a NaN; the sum is then NaN.
    broken: bool,
}

impl Default for ExactSum {
    fn default() -> Self {
        Self { limbs: [0; LIMBS], additions: 0, broken: false }
    }
}

impl ExactSum {
    #[inline]
    pub fn add(&mut self, value: f64) {
        let bits = value.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as u32;
        if exponent == 0x7ff {
            self.broken = true;
            return;
        }
        let fraction = bits & ((1 << 52) - 1);
        // A subnormal has no hidden bit and the exponent of the smallest normal number.
        let (mantissa, shift) =
            if exponent == 0 { (fraction, 0) } else { (fraction | (1 << 52), exponent - 1) };
        let (first, within) = ((shift / LIMB_BITS) as usize, shift % LIMB_BITS);
        // 53 bits moved up by 31 at most, in three limbs.
        let (low, high) = ((mantissa << within) & LIMB_MASK, mantissa >> (LIMB_BITS - within));
        let parts = [low, high & LIMB_MASK, high >> LIMB_BITS];
        // All ones for a negative number: then −x is (x xor sign) − sign.
        let sign = (bits as i64) >> 63;
        for (limb, part) in self.limbs[first..first + 3].iter_mut().zip(parts) {
            *limb += (part as i64 ^ sign) - sign;
        }
        self.additions += 1;
        if self.additions == CARRY_AFTER {
            self.carry();
        }
    }

    /// Adds what another accumulator holds.
    pub fn merge(&mut self, other: &ExactSum) {
        self.carry();
        let mut other = other.clone();
        other.carry();
        for (limb, more) in self.limbs.iter_mut().zip(other.limbs) {
            *limb += more;
        }
        self.broken |= other.broken;
        self.carry();
    }

    /// Afterwards every rank holds the sum over all ranks.
    pub fn reduce(sums: &mut [ExactSum], comm: &dyn Comm) {
        if comm.size() == 1 {
            return;
        }
        let mut packed = Vec::with_capacity(sums.len() * (LIMBS + 1));
        for sum in sums.iter_mut() {
            sum.carry();
            packed.extend(sum.limbs);
            packed.push(i64::from(sum.broken));
        }
        comm.sum_i64(&mut packed);
        for (sum, packed) in sums.iter_mut().zip(packed.chunks_exact(LIMBS + 1)) {
            sum.limbs.copy_from_slice(&packed[..LIMBS]);
            sum.broken = packed[LIMBS] != 0;
            sum.carry();
        }
    }

    /// All that it holds, to be kept: the same words for the same sum, however it came about.
    pub fn words(&mut self) -> Vec<i64> {
        self.carry();
        self.limbs.into_iter().chain([i64::from(self.broken)]).collect()
    }

    /// What [`words`](Self::words) has given; none for anything else.
    pub fn from_words(words: &[i64]) -> Option<Self> {
        let (broken, limbs) = words.split_last()?;
        Some(Self { limbs: limbs.try_into().ok()?, additions: 0, broken: *broken != 0 })
    }

    /// The sum, rounded once: a pure function of the exact value.
    pub fn value(&self) -> f64 {
        if self.broken {
            return f64::NAN;
        }
        let mut digits = self.clone();
        digits.carry();
        let negative = digits.limbs[LIMBS - 1] < 0;
        if negative {
            digits.limbs.iter_mut().for_each(|limb| *limb = -*limb);
            digits.carry();
        }
        // The four highest limbs that are not zero hold at least 97 bits; what is below only breaks ties, and
        // every operation here is a fixed function of the exact value.
        let Some(top) = digits.limbs.iter().rposition(|&limb| limb != 0) else { return 0.0 };
        let low = top.saturating_sub(3);
        let mut head = (low..=top).rev().fold(0u128, |head, k| (head << LIMB_BITS) | digits.limbs[k] as u128);
        if digits.limbs[..low].iter().any(|&limb| limb != 0) {
            head |= 1;
        }
        let magnitude = scaled(head, low as i32 * LIMB_BITS as i32 - 1074);
        if negative { -magnitude } else { magnitude }
    }

    /// Brings every limb but the last into 0 … 2³² − 1.
    fn carry(&mut self) {
        let mut carry = 0;
        for limb in &mut self.limbs[..LIMBS - 1] {
            let value = *limb + carry;
            carry = value >> LIMB_BITS;
            *limb = value & ((1 << LIMB_BITS) - 1);
        }
        self.limbs[LIMBS - 1] += carry;
        self.additions = 0;
    }
}

/// `head · 2^exponent` without overflow on the way: a power of two beyond the range of f64 goes in two
/// factors.
fn scaled(head: u128, exponent: i32) -> f64 {
    let value = head as f64;
    let half = exponent / 2;
    value * power_of_two(half) * power_of_two(exponent - half)
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
        let mut sum = ExactSum::default();
        values.into_iter().for_each(|value| sum.add(value));
        sum.value()
    }

    /// A small generator of nasty numbers: exponents from −300 to 300, both signs.
    fn numbers(count: usize) -> Vec<f64> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 11
        };
        (0..count)
            .map(|_| {
                let mantissa = next() as f64 / (1u64 << 53) as f64 - 0.5;
                mantissa * 10f64.powi((next() % 600) as i32 - 300)
            })
            .collect()
    }

    #[test]
    fn single_numbers_come_back() {
        for value in [0.0, 1.0, -1.0, 1e-320, f64::MIN_POSITIVE, f64::MAX, -f64::MAX, 0.1, -3.7e200] {
            assert_eq!(sum([value]), value);
        }
        assert!(numbers(10_000).iter().all(|&value| sum([value]) == value));
    }

    #[test]
    fn cancellation_is_exact() {
        assert_eq!(sum([1e300, 1.0, -1e300]), 1.0);
        assert_eq!(sum([1e16, 1.0, 1.0, -1e16]), 2.0);
        let values = numbers(1000);
        let negated = values.iter().map(|value| -value);
        assert_eq!(sum(values.iter().copied().chain(negated).chain([0.25])), 0.25);
    }

    #[test]
    fn integers_sum_as_integers() {
        assert_eq!(sum((0..100_000).map(f64::from)), 100_000.0 * 99_999.0 / 2.0);
    }

    #[test]
    fn order_and_split_do_not_matter() {
        let values = numbers(999);
        let forward = sum(values.iter().copied());
        let backward = sum(values.iter().rev().copied());
        assert_eq!(forward.to_bits(), backward.to_bits());
        let mut left = ExactSum::default();
        let mut right = ExactSum::default();
        for (index, &value) in values.iter().enumerate() {
            if index % 3 == 0 { left.add(value) } else { right.add(value) }
        }
        left.merge(&right);
        assert_eq!(left.value().to_bits(), forward.to_bits());
        for size in [2, 3, 8] {
            let sums = crate::threads::run(size, |comm| {
                let mut part = [ExactSum::default()];
                values.iter().skip(comm.rank()).step_by(size).for_each(|&value| part[0].add(value));
                ExactSum::reduce(&mut part, comm);
                part[0].value().to_bits()
            });
            assert!(sums.iter().all(|&bits| bits == forward.to_bits()));
        }
    }

    #[test]
    fn not_a_number_is_not_hidden() {
        assert!(sum([1.0, f64::NAN]).is_nan());
        assert!(sum([f64::INFINITY, 1.0]).is_nan());
    }
}
