//! Momentum on the impulses of eight points at a time: what [`accelerate`](crate::solve::accelerate) asks for between sweeps.

use super::super::block::{Block, Row, Weights};
#[cfg(target_arch = "x86_64")]
use super::super::lanes::{Avx2, Avx512};
use super::super::lanes::{F64x8, Isa, Plain};
use super::super::problem::Twist;
use super::super::sweep::Impulse;

/// `last ← r`, `r ← r + β (r − last)`; `start` gets the new `r`, or is empty.
pub fn extrapolate(rows: &mut [Row], last: &mut [Impulse], start: &mut [Impulse], beta: f64) {
    // SAFETY: nothing but references.
    unsafe { extrapolate_all(rows, last, start, beta) }
}

/// The same for velocities.
pub fn extrapolate_velocities(velocities: &mut [Twist], last: &mut [Twist], beta: f64) {
    // SAFETY: nothing but references.
    unsafe { extrapolate_twists(velocities, last, beta) }
}

/// `⟨r − start, r − last⟩` of the manifolds of each block, weighted with the diagonal of the Delassus operator. Lists are those of all blocks.
pub fn products(
    blocks: &[Block],
    rows: &[Row],
    weights: &[Weights],
    start: &[Impulse],
    last: &[Impulse],
    products: &mut Vec<F64x8>,
) {
    // SAFETY: nothing but references.
    unsafe { products_all(blocks, rows, weights, start, last, products) }
}

for_each_isa! {
    unsafe fn extrapolate_all(rows: &mut [Row], last: &mut [Impulse], start: &mut [Impulse], beta: f64) = extrapolate_rows
}

for_each_isa! {
    unsafe fn extrapolate_twists(velocities: &mut [Twist], last: &mut [Twist], beta: f64) = extrapolate_bodies
}

for_each_isa! {
    unsafe fn products_all(
        blocks: &[Block],
        rows: &[Row],
        weights: &[Weights],
        start: &[Impulse],
        last: &[Impulse],
        products: &mut Vec<F64x8>
    ) = products_of_blocks
}

#[inline(always)]
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "compiled once for each instruction set all the same"
)]
unsafe fn extrapolate_rows<I: Isa>(rows: &mut [Row], last: &mut [Impulse], start: &mut [Impulse], beta: f64) {
    let factor = F64x8::splat(beta);
    for (row, last) in rows.iter_mut().zip(last) {
        for (impulse, last) in row.impulse.iter_mut().zip(last) {
            let now = *impulse;
            *impulse += factor * (now - *last);
            *last = now;
        }
    }
    for (start, row) in start.iter_mut().zip(rows) {
        *start = row.impulse;
    }
}

#[inline(always)]
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "compiled once for each instruction set all the same"
)]
unsafe fn extrapolate_bodies<I: Isa>(velocities: &mut [Twist], last: &mut [Twist], beta: f64) {
    for (velocity, last) in velocities.iter_mut().zip(last) {
        let now = *velocity;
        for axis in 0..3 {
            velocity.linear[axis] += beta * (now.linear[axis] - last.linear[axis]);
            velocity.angular[axis] += beta * (now.angular[axis] - last.angular[axis]);
        }
        *last = now;
    }
}

#[inline(always)]
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "compiled once for each instruction set all the same"
)]
unsafe fn products_of_blocks<I: Isa>(
    blocks: &[Block],
    rows: &[Row],
    weights: &[Weights],
    start: &[Impulse],
    last: &[Impulse],
    products: &mut Vec<F64x8>,
) {
    for block in blocks {
        let mut product = F64x8::default();
        for place in block.first_row as usize..block.end_row as usize {
            let (now, start, last) = (&rows[place].impulse, &start[place], &last[place]);
            let way = |axis: usize| (now[axis] - start[axis]) * (now[axis] - last[axis]);
            product += way(0) * weights[place].normal + (way(1) + way(2)) * weights[place].tangent;
        }
        products.push(product);
    }
}
