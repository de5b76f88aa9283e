//! A sweep with momentum: each point's impulse goes on its way just before the point is visited, while it is in registers anyway.
//! What [`accelerate`](crate::solve::accelerate) asks for.
//!
//! ```text
//! y    = r + β (r − last),     last ← r,     r' = visit(y)
//! ```
//!
//! Velocities are linear in impulses: they are extrapolated alike before the sweep, all bodies at once.

use super::super::block::{Block, Row, Weights};
#[cfg(target_arch = "x86_64")]
use super::super::lanes::{Avx2, Avx512};
use super::super::lanes::{F64x8, Isa, Plain};
use super::super::problem::Twist;
use super::super::sweep::Impulse;
use super::{EXACT, PROJECTED, Shared, Side, exact, projected, push_apart, relative_velocity, to_world};

/// What a sweep with momentum has beside the rows: lists as long as theirs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ahead {
    pub beta: f64,
    /// Impulses after the last sweep.
    pub last: *mut Impulse,
    pub weights: *const Weights,
    /// At the first row of each block: `⟨r' − y, r' − r⟩` of its manifolds, weighted with the diagonal of the Delassus operator. Null if
    /// nobody asks.
    pub products: *mut F64x8,
}

// SAFETY: used like the rows, and by the same threads: see `Shared`.
unsafe impl Send for Ahead {}
// SAFETY: the same.
unsafe impl Sync for Ahead {}

/// # Safety
/// As for [`visit_all`](super::visit_all); the lists of `ahead` are as long as those of the rows.
#[inline(always)]
pub unsafe fn visit_ahead<I: Isa, const LAW: u8>(
    block: &Block,
    rows: &mut [Row],
    shared: &Shared,
    ahead: &Ahead,
) {
    // SAFETY: as for `visit_all`.
    let mut a = unsafe { Side::load::<I>(&block.slots[0], shared.velocities) };
    // SAFETY: as for `visit_all`.
    let mut b = unsafe { Side::load::<I>(&block.slots[1], shared.velocities) };
    let beta = F64x8::splat(ahead.beta);
    let mut product = F64x8::default();
    for (row, place) in rows.iter_mut().zip(block.first_row as usize..) {
        // SAFETY: one entry for each row, and this thread alone has the row.
        let last = unsafe { &mut *ahead.last.add(place) };
        let now = row.impulse;
        for axis in 0..3 {
            row.impulse[axis] += beta * (now[axis] - last[axis]);
        }
        *last = now;
        let velocity = relative_velocity(block, row, &a, &b);
        let impulse = match LAW {
            PROJECTED => projected(block, row, &velocity),
            EXACT => exact(block, row, &velocity, u8::MAX, row.impulse),
            _ => exact(block, row, &velocity, block.strong, projected(block, row, &velocity)),
        };
        let change = [0, 1, 2].map(|axis| impulse[axis] - row.impulse[axis]);
        if !ahead.products.is_null() {
            // SAFETY: as for `last`.
            let weights = unsafe { &*ahead.weights.add(place) };
            let way = |axis: usize| change[axis] * (impulse[axis] - now[axis]);
            product += way(0) * weights.normal + (way(1) + way(2)) * weights.tangent;
        }
        row.impulse = impulse;
        push_apart(block, row, to_world(block, &change), &mut a, &mut b);
    }
    // SAFETY: as for `visit_all`; the first row belongs to this block alone.
    unsafe {
        a.store::<I>(&block.slots[0], shared.velocities, block.movable[0]);
        b.store::<I>(&block.slots[1], shared.velocities, block.movable[1]);
        if !ahead.products.is_null() && block.end_row > block.first_row {
            *ahead.products.add(block.first_row as usize) = product;
        }
    }
}

/// `last ← v`, `v ← v + β (v − last)`.
pub fn extrapolate_velocities(velocities: &mut [Twist], last: &mut [Twist], beta: f64) {
    // SAFETY: nothing but references.
    unsafe { extrapolate_twists(velocities, last, beta) }
}

for_each_isa! {
    unsafe fn extrapolate_twists(velocities: &mut [Twist], last: &mut [Twist], beta: f64) = extrapolate_bodies
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
