//! A sweep with momentum: each point's impulse goes on its way just before the point is visited, while it is
//! in registers anyway. What [`accelerate`](crate::solve::accelerate) asks for.
//!
//! ```text
//! y    = r + d,     r' = visit(y),     d ← b (r' − r) + c (r' − y)
//! ```
//!
//! Velocities are linear in impulses: they are extrapolated alike before the sweep, all bodies at once.

use super::super::block::{Block, Row};
use super::super::problem::Twist;
use super::super::sweep::{Impulse, Plan};
use super::{Pair, Shared, stretch_at, to_world, visited};
use crate::lanes::{Isa, Lanes, for_each_isa};
use std::hint::black_box;

/// What a sweep with momentum has beside the rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ahead {
    /// b and c.
    pub plan: Plan,
    /// d is not used, only written.
    pub stay: bool,
    /// d, as long a list as the rows.
    pub directions: *mut Impulse,
}

// SAFETY: used like the rows, and by the same threads: see `Shared`.
unsafe impl Send for Ahead {}
// SAFETY: the same.
unsafe impl Sync for Ahead {}

/// # Safety
/// As for [`visit_all`](super::visit_all); the list of `ahead` is as long as that of the rows.
#[inline(always)]
pub unsafe fn visit_ahead<I: Isa<N>, const N: usize, const LAW: u8>(
    block: &Block,
    rows: &mut [Row],
    shared: &Shared,
    part: usize,
    ahead: &Ahead,
) {
    // SAFETY: as for `visit_all`.
    let mut pair = unsafe { Pair::load::<I>(block, shared, part) };
    let frames = block.part(part);
    let [onward, further] = [ahead.plan.onward, ahead.plan.further].map(Lanes::splat);
    for (row, place) in rows.iter_mut().zip(block.first_row as usize..) {
        // SAFETY: one entry for each row, and this thread alone has the row.
        let direction = unsafe { &mut *ahead.directions.add(place) };
        let mut points = row.part(part);
        let now = points.impulse;
        if !ahead.stay {
            for (impulse, direction) in points.impulse.iter_mut().zip(&*direction) {
                *impulse += direction.part(part);
            }
        }
        // SAFETY: stretched blocks have as many stretches as rows.
        let stretch = unsafe { stretch_at::<N, LAW>(block, shared, place, part) };
        let strong = block.strong >> (N * part);
        let impulse = visited::<N, LAW>(&frames, &points, &pair, stretch.as_ref(), strong);
        let change: [_; 3] = std::array::from_fn(|axis| impulse[axis] - points.impulse[axis]);
        for axis in 0..3 {
            let next = onward.times(impulse[axis] - now[axis], further * change[axis]);
            direction[axis].set_part(part, next);
        }
        row.set_impulse(part, &impulse);
        pair.push_apart(&points.arms, to_world(&frames, &change));
    }
    // SAFETY: as for `visit_all`.
    unsafe { pair.store::<I>(block, shared, part) };
}

/// The velocities go on by the plan; `last` and `start` become those of the next time.
pub fn extrapolate_velocities(
    velocities: &mut [Twist],
    last: &mut [Twist],
    start: &mut [Twist],
    plan: &Plan,
) {
    // SAFETY: nothing but references.
    unsafe { extrapolate_twists(velocities, last, start, plan) }
}

for_each_isa! {
    unsafe fn extrapolate_twists(velocities: &mut [Twist], last: &mut [Twist], start: &mut [Twist], plan: &Plan)
        = extrapolate_bodies
}

#[inline(always)]
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "compiled once for each instruction set all the same"
)]
unsafe fn extrapolate_bodies<I: Isa<N>, const N: usize>(
    velocities: &mut [Twist],
    last: &mut [Twist],
    start: &mut [Twist],
    plan: &Plan,
) {
    for ((velocity, last), start) in velocities.iter_mut().zip(last).zip(start) {
        // A body at a time: left to itself, the compiler takes eight bodies, and gathers number by number.
        let velocity = black_box(velocity).numbers();
        let numbers = velocity.iter_mut().zip(last.numbers()).zip(start.numbers());
        numbers.for_each(|((velocity, last), start)| plan.go_on(velocity, last, start));
    }
}
