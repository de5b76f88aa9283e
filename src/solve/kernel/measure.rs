//! How far eight manifolds at a time are from the contact law: the terms of [`residual`](crate::solve::residual).

use super::super::block::{Block, Row, Weights};
#[cfg(target_arch = "x86_64")]
use super::super::lanes::{Avx2, Avx512};
use super::super::lanes::{F64x8, Isa, Plain, Vec3x8};
use super::super::problem::Twist;
use super::{Side, relative_velocity};
use std::hint::black_box;

/// What a measurement finds at eight manifolds: by lane the sums over points of ‖F‖², ‖q‖², ‖r‖², ‖u‖², weighted, and the largest error as a velocity.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    pub sums: [F64x8; 4],
    pub worst_velocity: F64x8,
}

for_each_isa! {
    /// Notes at each row what measurements ask for: how fast its points would move if no impulse acted. `rows` and `weights` are those of all blocks
    /// of the problem.
    ///
    /// # Safety
    /// No other thread touches the weights of `blocks` meanwhile; slots and rows lie inside the arrays.
    pub unsafe fn note_free_all(
        blocks: &[Block],
        rows: &[Row],
        weights: SharedWeights,
        velocities: &[Twist]
    ) = note_free_blocks
}

/// Weights that threads write together.
#[derive(Clone, Copy)]
pub struct SharedWeights(pub *mut Weights);

// SAFETY: users of `note_free_all` keep threads to disjoint rows.
unsafe impl Sync for SharedWeights {}

#[inline(always)]
unsafe fn note_free_blocks<I: Isa>(
    blocks: &[Block],
    rows: &[Row],
    weights: SharedWeights,
    velocities: &[Twist],
) {
    for block in blocks {
        // SAFETY: slots are places in the array.
        let a = unsafe { Side::load::<I>(&block.slots[0], velocities.as_ptr()) };
        // SAFETY: the same.
        let b = unsafe { Side::load::<I>(&block.slots[1], velocities.as_ptr()) };
        let range = block.first_row as usize..block.end_row as usize;
        for (place, row) in range.clone().zip(&rows[range]) {
            let free = relative_velocity(block, row, &a, &b);
            // SAFETY: as many weights as rows, and this thread alone has those of the block.
            let weights = unsafe { &mut *weights.0.add(place) };
            (weights.free_normal, weights.free_square) = (free[0], Vec3x8(free).dot(Vec3x8(free)));
        }
    }
}

for_each_isa! {
    /// The terms of the residual ([`residual`](crate::solve::residual)) of each block, in the scaled measure or in FCLib's.
    ///
    /// # Safety
    /// Slots are places in the array of velocities; `rows` and `weights` are those of all blocks of the problem.
    pub unsafe fn measure_all(
        blocks: &[Block],
        rows: &[Row],
        weights: &[Weights],
        velocities: &[Twist],
        scaled: bool,
        terms: &mut Vec<Terms>
    ) = measure_either
}

#[inline(always)]
unsafe fn measure_either<I: Isa>(
    blocks: &[Block],
    rows: &[Row],
    weights: &[Weights],
    velocities: &[Twist],
    scaled: bool,
    terms: &mut Vec<Terms>,
) {
    // SAFETY: as for `measure_all`.
    unsafe {
        if scaled {
            measure_blocks::<I, true>(blocks, rows, weights, velocities, terms);
        } else {
            measure_blocks::<I, false>(blocks, rows, weights, velocities, terms);
        }
    }
}

#[inline(always)]
unsafe fn measure_blocks<I: Isa, const SCALED: bool>(
    blocks: &[Block],
    rows: &[Row],
    weights: &[Weights],
    velocities: &[Twist],
    terms: &mut Vec<Terms>,
) {
    let one = F64x8::splat(1.0);
    for block in blocks {
        // SAFETY: slots are places in the array.
        let a = unsafe { Side::load::<I>(&block.slots[0], velocities.as_ptr()) };
        // SAFETY: the same.
        let b = unsafe { Side::load::<I>(&block.slots[1], velocities.as_ptr()) };
        let speeds = [a.linear.norm(), a.angular.norm(), b.linear.norm(), b.angular.norm()];
        let place = terms.len();
        terms.push(Terms::default());
        // In memory: as variables of the loop the compiler would take the sums apart, lane by lane.
        let found = &mut terms[place];
        let range = block.first_row as usize..block.end_row as usize;
        for (row, weights) in rows[range.clone()].iter().zip(&weights[range]) {
            let velocity = black_box(relative_velocity(block, row, &a, &b));
            let scaled = natural_map(&row.impulse, &velocity, block.friction, row.step_normal);
            let as_velocity = Vec3x8(scaled).norm() * weights.normal;
            // A NaN must not be lost in the maximum.
            let worst = found.worst_velocity;
            found.worst_velocity = worst.where_at_most(as_velocity, worst, as_velocity);
            let (error, weight, inverse) = if SCALED {
                (scaled, weights.normal, row.step_normal)
            } else {
                (natural_map(&row.impulse, &velocity, block.friction, one), one, one)
            };
            let squared = Vec3x8(error).dot(Vec3x8(error));
            let sizes = speeds[0]
                + speeds[1] * row.arms[0].norm()
                + speeds[2]
                + speeds[3] * row.arms[1].norm()
                + row.bias.map(f64::abs);
            let noise = (one + block.friction) * F64x8::splat(16.0 * f64::EPSILON) * sizes * inverse;
            // A NaN counts.
            let large = F64x8::default().where_at_most(squared, noise * noise, squared);
            found.sums[0] += (large * weight).where_positive(weights.normal);
            let acts = row.impulse[0].larger(F64x8::default() - weights.free_normal);
            let acts = acts.where_positive(weights.normal);
            let impulse = Vec3x8(row.impulse).dot(Vec3x8(row.impulse));
            let velocity = Vec3x8(velocity).dot(Vec3x8(velocity));
            found.sums[1] += (weights.free_square * inverse).where_positive(acts);
            found.sums[2] += (impulse * weight).where_positive(acts);
            found.sums[3] += (velocity * inverse).where_positive(acts);
        }
    }
}

/// `F = r − P_K(r − ρ û)`, as [`natural_map`](crate::solve::residual::natural_map).
#[inline(always)]
fn natural_map(impulse: &[F64x8; 3], velocity: &[F64x8; 3], friction: F64x8, rho: F64x8) -> [F64x8; 3] {
    let slip = (velocity[1] * velocity[1] + velocity[2] * velocity[2]).sqrt();
    let n = impulse[0] - (velocity[0] + friction * slip) * rho;
    let t = impulse[1] - velocity[1] * rho;
    let s = impulse[2] - velocity[2] * rho;
    let tangential = (t * t + s * s).sqrt();
    let (bound, pull) = (friction * n, friction * tangential);
    let onto = (n + pull) / (F64x8::splat(1.0) + friction * friction);
    let scale = friction * onto / tangential;
    // Inside the cone; then in the polar cone. Where nothing rubs the two overlap: the polar cone has the last word.
    let (zero, one) = (F64x8::default(), F64x8::splat(1.0));
    let (normal, factor) =
        (n.where_at_most(tangential, bound, onto), one.where_at_most(tangential, bound, scale));
    let away = zero - n;
    let (normal, factor) = (zero.where_at_most(pull, away, normal), zero.where_at_most(pull, away, factor));
    black_box([impulse[0] - normal, impulse[1] - t * factor, impulse[2] - s * factor])
}
