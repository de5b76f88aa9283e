//! How far eight manifolds at a time are from the contact law: the terms of
//! [`residual`](crate::solve::residual).

use super::super::block::{Block, Row, StretchRow, Stretches, Weights};
use super::super::problem::Twist;
use super::super::residual::ROUNDING;
use super::{Motion, add_stretch, part_of, relative_velocity};
use crate::lanes::{F64x8, Isa, LANES, Lanes, Vectors, for_each_isa};
use crate::law::{Kind, coulomb};
use std::hint::black_box;

/// What a measurement finds at eight manifolds: by lane the sums over points of ‖F‖², ‖q‖², ‖r‖², ‖u‖²,
/// weighted, the square of the largest error as a velocity, and the fastest approach.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    pub sums: [F64x8; 4],
    pub worst_square: F64x8,
    pub approach: F64x8,
}

impl Terms {
    /// The larger of each lane's worst and `worst`. A NaN must not be lost in the maximum.
    #[inline(always)]
    pub fn larger_error(&self, worst: F64x8) -> F64x8 {
        worst.where_at_most(self.worst_square, worst, self.worst_square)
    }
}

/// By lane the sums of all, each number rounded by its pivot ([`Grid`](decomposition::Grid)), and the largest
/// error and approach.
pub fn add_rounded(terms: &[Terms], pivots: &[f64; 4]) -> Terms {
    // SAFETY: nothing but references.
    unsafe { add_rounded_all(terms, pivots) }
}

for_each_isa! {
    unsafe fn add_rounded_all(terms: &[Terms], pivots: &[f64; 4]) -> Terms = add_rounded_lanes
}

#[inline(always)]
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "compiled once for each instruction set all the same"
)]
unsafe fn add_rounded_lanes<I: Isa<N>, const N: usize>(terms: &[Terms], pivots: &[f64; 4]) -> Terms {
    let mut total = Terms::default();
    for terms in terms {
        for ((total, &term), &pivot) in total.sums.iter_mut().zip(&terms.sums).zip(pivots) {
            let pivot = F64x8::splat(pivot);
            *total += (term + pivot) - pivot;
        }
        total.worst_square = terms.larger_error(total.worst_square);
        total.approach = total.approach.larger(terms.approach);
    }
    total
}

for_each_isa! {
    /// Notes at each row what measurements ask for: how fast its points would move if no impulse acted.
    /// `rows`, `stretches` and `weights` are those of all blocks of the problem.
    ///
    /// # Safety
    /// No other thread touches the weights of `blocks` meanwhile; lines and rows lie inside the arrays.
    pub unsafe fn note_free_all(
        blocks: &[Block],
        rows: &[Row],
        stretches: &[StretchRow],
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
unsafe fn note_free_blocks<I: Isa<N>, const N: usize>(
    blocks: &[Block],
    rows: &[Row],
    stretches: &[StretchRow],
    weights: SharedWeights,
    velocities: &[Twist],
) {
    for block in blocks {
        let range = block.first_row as usize..block.end_row as usize;
        for part in 0..LANES / N {
            // SAFETY: lines are places in the array.
            let motions = unsafe { motions::<I, N>(block, velocities, part) };
            let frames = block.part(part);
            for (place, row) in range.clone().zip(&rows[range.clone()]) {
                let mut points = row.part(part);
                points.impulse = Default::default();
                let mut free = relative_velocity(&frames, &points, &motions);
                if block.kind == Kind::Stretched {
                    add_stretch(&mut free, &points.impulse, &stretches[place].part(part));
                }
                let free = Vectors(free);
                // SAFETY: as many weights as rows, and this thread alone has those of the block.
                let weights = unsafe { &mut *weights.0.add(place) };
                weights.free_normal.set_part(part, free.0[0]);
                weights.free_square.set_part(part, free.dot(free));
            }
        }
    }
}

/// The velocities of both sides.
#[inline(always)]
pub(super) unsafe fn motions<I: Isa<N>, const N: usize>(
    block: &Block,
    velocities: &[Twist],
    part: usize,
) -> [Motion<N>; 2] {
    let [a, b] = [part_of(&block.lines[0], part), part_of(&block.lines[1], part)];
    // SAFETY: lines are places in the array.
    unsafe { [Motion::load::<I>(a, velocities.as_ptr()), Motion::load::<I>(b, velocities.as_ptr())] }
}

for_each_isa! {
    /// The terms of the residual ([`residual`](crate::solve::residual)) of each block, in the scaled measure
    /// or in FCLib's.
    ///
    /// # Safety
    /// Lines are places in the array of velocities; the rows are those of all blocks of the problem.
    pub unsafe fn measure_all(
        blocks: &[Block],
        rows: &MeasuredRows,
        velocities: &[Twist],
        scaled: bool,
        terms: &mut Vec<Terms>
    ) = measure_either
}

/// All rows of a problem with what measurements ask for.
#[derive(Clone, Copy)]
pub struct MeasuredRows<'a> {
    pub rows: &'a [Row],
    /// As many, where a block is stretched.
    pub stretches: &'a [StretchRow],
    pub weights: &'a [Weights],
}

#[inline(always)]
unsafe fn measure_either<I: Isa<N>, const N: usize>(
    blocks: &[Block],
    rows: &MeasuredRows,
    velocities: &[Twist],
    scaled: bool,
    terms: &mut Vec<Terms>,
) {
    for block in blocks {
        let place = terms.len();
        terms.push(Terms::default());
        // In memory: as variables of the loop the compiler would take the sums apart, lane by lane.
        let found = &mut terms[place];
        for part in 0..LANES / N {
            // SAFETY: as for `measure_all`.
            unsafe {
                if scaled {
                    measure_block::<I, N, true>(block, rows, velocities, part, found);
                } else {
                    measure_block::<I, N, false>(block, rows, velocities, part, found);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn measure_block<I: Isa<N>, const N: usize, const SCALED: bool>(
    block: &Block,
    rows: &MeasuredRows,
    velocities: &[Twist],
    part: usize,
    found: &mut Terms,
) {
    let (zero, one) = (Lanes::splat(0.0), Lanes::splat(1.0));
    // SAFETY: lines are places in the array.
    let motions = unsafe { motions::<I, N>(block, velocities, part) };
    let [a, b] = &motions;
    let square = |vectors: Vectors<N>| vectors.dot(vectors);
    let (moving, turning) = (square(a.linear) + square(b.linear), [square(a.angular), square(b.angular)]);
    let frames = block.part(part);
    let rough = (one + frames.friction) * Lanes::splat(ROUNDING);
    let range = block.first_row as usize..block.end_row as usize;
    let &MeasuredRows { rows, stretches, weights } = rows;
    for ((row, weights), place) in rows[range.clone()].iter().zip(&weights[range.clone()]).zip(range) {
        let points = row.part(part);
        let present = weights.normal.part(part);
        let mut velocity = relative_velocity(&frames, &points, &motions);
        let mut noise = points.bias.times(points.bias, moving);
        if block.kind == Kind::Stretched {
            let stretch: Stretches<N> = stretches[place].part(part);
            let [t, s] = stretch.bias;
            noise = t.times(t, s.times(s, noise));
            add_stretch(&mut velocity, &points.impulse, &stretch);
        }
        let velocity = black_box(velocity);
        let scaled =
            coulomb::natural_map_lanes(&points.impulse, &velocity, frames.friction, points.step_normal);
        let as_velocity = square(Vectors(scaled)) * (present * present);
        // A NaN must not be lost in the maximum.
        let worst = found.worst_square.part(part);
        found.worst_square.set_part(part, worst.where_at_most(as_velocity, worst, as_velocity));
        let approach = (-velocity[0]).where_positive(present);
        found.approach.set_part(part, found.approach.part(part).larger(approach));
        let (error, weight, inverse) = if SCALED {
            (scaled, present, points.step_normal)
        } else {
            (coulomb::natural_map_lanes(&points.impulse, &velocity, frames.friction, one), one, one)
        };
        let squared = square(Vectors(error));
        let known = rough * inverse;
        // What squeezes a contact is no larger than what it is squeezed by, and need not be added.
        let noise = turning[1].times(square(points.arms[1]), noise);
        let noise = turning[0].times(square(points.arms[0]), noise) * (known * known);
        // A NaN counts.
        let large = zero.where_at_most(squared, noise, squared);
        let acts = points.impulse[0].larger(-weights.free_normal.part(part)).where_positive(present);
        let (impulse, velocity) = (square(Vectors(points.impulse)), square(Vectors(velocity)));
        let terms = [
            (large * weight).where_positive(present),
            (weights.free_square.part(part) * inverse).where_positive(acts),
            (impulse * weight).where_positive(acts),
            (velocity * inverse).where_positive(acts),
        ];
        for (sum, term) in found.sums.iter_mut().zip(terms) {
            sum.set_part(part, sum.part(part) + term);
        }
    }
}
