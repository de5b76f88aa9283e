//! How far eight manifolds at a time are from the contact law: the terms of [`residual`](crate::solve::residual).

use super::super::block::{Block, Row, Weights};
#[cfg(target_arch = "x86_64")]
use super::super::lanes::{Avx2, Avx512};
use super::super::lanes::{F64x8, Isa, LANES, Plain, Vec3x8};
use super::super::problem::Twist;
use super::{Side, relative_velocity};

/// What a measurement finds at eight manifolds: by lane the sums over points of ‖F‖², ‖q‖², ‖r‖², ‖u‖², and the largest error as a velocity.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    pub sums: [F64x8; 4],
    pub worst_velocity: F64x8,
}

for_each_isa! {
    /// The terms of the residual ([`residual`](crate::solve::residual)) of each block. `free` are the free velocities.
    ///
    /// # Safety
    /// Slots are places in both arrays of velocities; `rows` and `weights` are those of all blocks of the problem.
    pub unsafe fn measure_all(
        blocks: &[Block],
        rows: &[Row],
        weights: &[Weights],
        velocities: &[Twist],
        free: &[Twist],
        terms: &mut Vec<Terms>
    ) = measure_blocks
}

#[inline(always)]
unsafe fn measure_blocks<I: Isa>(
    blocks: &[Block],
    rows: &[Row],
    weights: &[Weights],
    velocities: &[Twist],
    free: &[Twist],
    terms: &mut Vec<Terms>,
) {
    for block in blocks {
        // SAFETY: slots are places in both arrays.
        let [a, b, free_a, free_b] = unsafe {
            [
                Side::load::<I>(&block.slots[0], velocities.as_ptr()),
                Side::load::<I>(&block.slots[1], velocities.as_ptr()),
                Side::load::<I>(&block.slots[0], free.as_ptr()),
                Side::load::<I>(&block.slots[1], free.as_ptr()),
            ]
        };
        let speeds = [a.linear.norm(), a.angular.norm(), b.linear.norm(), b.angular.norm()];
        let mut found = Terms::default();
        let range = block.first_row as usize..block.end_row as usize;
        for (row, weights) in rows[range.clone()].iter().zip(&weights[range]) {
            let velocity = relative_velocity(block, row, &a, &b);
            let free = relative_velocity(block, row, &free_a, &free_b);
            let one = F64x8::splat(1.0);
            let error = natural_map(&row.impulse, &velocity, block.friction, one);
            let squared = Vec3x8(error).dot(Vec3x8(error));
            let sizes = speeds[0]
                + speeds[1] * row.arms[0].norm()
                + speeds[2]
                + speeds[3] * row.arms[1].norm()
                + row.bias.map(f64::abs);
            let noise = (one + block.friction) * F64x8::splat(16.0 * f64::EPSILON) * sizes;
            // A NaN counts.
            let large =
                squared.zip(noise, |squared, noise| if squared <= noise * noise { 0.0 } else { squared });
            found.sums[0] += large.where_positive(weights.normal);
            let acts = row.impulse[0].zip(free[0], |r, q| if r > 0.0 || q < 0.0 { 1.0 } else { 0.0 });
            let acts = acts.where_positive(weights.normal);
            found.sums[1] += Vec3x8(free).dot(Vec3x8(free)).where_positive(acts);
            found.sums[2] += Vec3x8(row.impulse).dot(Vec3x8(row.impulse)).where_positive(acts);
            found.sums[3] += Vec3x8(velocity).dot(Vec3x8(velocity)).where_positive(acts);
            let error = natural_map(&row.impulse, &velocity, block.friction, row.step_normal);
            let as_velocity = Vec3x8(error).norm() * weights.normal;
            // A NaN must not be lost in the maximum.
            found.worst_velocity = as_velocity
                .zip(found.worst_velocity, |new, old| if new > old || new.is_nan() { new } else { old });
        }
        terms.push(found);
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
    let (mut normal, mut factor) = (n, n);
    for lane in 0..LANES {
        let (mu, n, tangential) = (friction.0[lane], n.0[lane], tangential.0[lane]);
        let onto = (n + mu * tangential) / (1.0 + mu * mu);
        let scale = mu * onto / tangential;
        // In the polar cone, inside the cone, or beside both. Where nothing rubs the first two overlap: the polar cone goes first.
        let (inside, polar) = (tangential <= mu * n, mu * tangential <= -n);
        let (onto, scale) = if inside { (n, 1.0) } else { (onto, scale) };
        normal.0[lane] = if polar { 0.0 } else { onto };
        factor.0[lane] = if polar { 0.0 } else { scale };
    }
    [impulse[0] - normal, impulse[1] - t * factor, impulse[2] - s * factor]
}
