//! What decides by which factor all impulses should be taken: see [`scale`](crate::solve::scale).

use super::super::block::Block;
use super::super::problem::Twist;
use super::measure::{MeasuredRows, motions};
use super::{add_stretch, relative_velocity};
use crate::lanes::{F64x8, Isa, LANES, Vectors, for_each_isa};
use crate::law::Kind;

for_each_isa! {
    /// By block and lane: `r · q̂` and `r · W r`, the velocities being those of the impulses and those
    /// without.
    ///
    /// # Safety
    /// Lines are places in both arrays of velocities; the rows are those of all blocks of the problem.
    pub unsafe fn scale_all(
        blocks: &[Block],
        rows: &MeasuredRows,
        velocities: &[Twist],
        free: &[Twist],
        terms: &mut Vec<[F64x8; 2]>
    ) = scale_blocks
}

#[inline(always)]
unsafe fn scale_blocks<I: Isa<N>, const N: usize>(
    blocks: &[Block],
    rows: &MeasuredRows,
    velocities: &[Twist],
    free: &[Twist],
    terms: &mut Vec<[F64x8; 2]>,
) {
    for block in blocks {
        let place = terms.len();
        terms.push(Default::default());
        for part in 0..LANES / N {
            // SAFETY: lines are places in the arrays.
            let (now, before) =
                unsafe { (motions::<I, N>(block, velocities, part), motions::<I, N>(block, free, part)) };
            let frames = block.part(part);
            for row in block.first_row as usize..block.end_row as usize {
                let points = rows.rows[row].part(part);
                let mut without = points;
                without.impulse = Default::default();
                let mut u = relative_velocity(&frames, &points, &now);
                let mut q = relative_velocity(&frames, &without, &before);
                if block.kind == Kind::Stretched {
                    let stretch = rows.stretches[row].part(part);
                    add_stretch(&mut u, &points.impulse, &stretch);
                    add_stretch(&mut q, &without.impulse, &stretch);
                }
                let gained = Vectors(std::array::from_fn(|axis| u[axis] - q[axis]));
                let slip = (u[1] * u[1] + u[2] * u[2]).sqrt();
                q[0] += frames.friction * slip;
                let impulse = Vectors(points.impulse);
                for (sum, velocity) in terms[place].iter_mut().zip([Vectors(q), gained]) {
                    sum.set_part(part, impulse.dot_and(velocity, sum.part(part)));
                }
            }
        }
    }
}
