//! Broad phase: all pairs of overlapping boxes, at a cost per body that neither the number of bodies nor the
//! ratio of their sizes changes.
//!
//! A hierarchical grid. A box of largest extent `e` lives in the level whose cell width `s = 2^k` satisfies
//! `e < s ≤ 2 e`, in the one cell that holds its minimum corner. Because the widths are powers of two,
//! `floor(x / s)` is exact, and two boxes that overlap satisfy without any rounding
//!
//! ```text
//! cell(min_i) − 1 ≤ cell(min_j) ≤ cell(max_i) ≤ cell(min_i) + 1  per direction, cells of the level of j  (1)
//! ```
//!
//! whenever `j` is in the level of `i` or in a coarser one. So each box visits two or three cells per
//! direction of its own level (one half of them, for each pair once) and of each coarser level; never at
//! finer ones, so a boulder among pebbles costs nothing extra. The cells are in `grid`.
//!
//! Boxes that are infinite (half-spaces), and those of the coarsest levels as long as they are few, are
//! *large*: they are tested against every other box directly and never enter the grid.
//!
//! **Width of the finest cells.** Among boulders, pebbles lie far apart compared with their size: most of the
//! cells that (1) names are empty. The smallest boxes may then share a coarser level, with fewer cells to
//! visit. How much coarser follows from the last call's count of boxes per block. This is the only thing
//! remembered, and it decides speed alone: the pairs come out sorted.
//!
//! Preconditions: no NaN; `min ≤ max` in each direction of a finite box. Memory: some 150 bytes per box and
//! 16 per pair.

mod grid;

use crate::geometry::Aabb;
use grid::{Grid, MAX_LEVELS};
use rayon::prelude::*;

/// Coarsest levels go to the list of large boxes while it stays this short: testing a box against a whole
/// level of some boxes directly (1–2 ns each) is cheaper than visiting 8 to 27 of the level's cells.
const LARGE_LIMIT: usize = 16;

/// Blocks of cells per task of the parallel loop; the result does not depend on it.
const CHUNK: usize = 8;

/// Binary exponents of cell widths lie in `-MAX_EXPONENT ..= MAX_EXPONENT`, so that widths and their
/// reciprocals are normal numbers.
const MAX_EXPONENT: i32 = 1000;

/// Marks a box outside the grid.
const LARGE: u32 = u32::MAX;

/// The finest level becomes coarser, in the next call, with fewer boxes per block of 64 cells than this,
const SPARSE: usize = 8;
/// finer again with more than this (more than eight times as many, so that it does not swing),
const DENSE: usize = 256;
/// and finer at once with more than this: the scene has changed.
const CROWDED: usize = 1024;

/// Finds overlapping pairs of boxes. Holds scratch only: results depend on the arguments alone.
#[derive(Default)]
pub struct BroadPhase {
    grid: Grid,
    /// Least exponent of a cell width that the last call recommends.
    recommended: Option<i32>,
    /// Level of each box, or `LARGE`.
    level_of: Vec<u32>,
    /// Indices of large boxes, ascending, and the boxes.
    large: Vec<(u32, Aabb)>,
    /// Pairs found by each task.
    found: Vec<Vec<(u32, u32)>>,
    /// Place of the next pair of each first index.
    next: Vec<usize>,
}

impl BroadPhase {
    pub fn new() -> Self {
        Self::default()
    }

    /// All pairs (i, j), i < j, of closed boxes that overlap, each once, in lexicographic order. Pairs of two
    /// boxes that are both not movable are left out.
    ///
    /// Replaces the contents of `out`. Panics if the slices differ in length or hold 2³² − 1 boxes or more.
    pub fn pairs(&mut self, boxes: &[Aabb], movable: &[bool], out: &mut Vec<(u32, u32)>) {
        assert_eq!(boxes.len(), movable.len());
        assert!(boxes.len() < u32::MAX as usize, "body indices are 32 bit");
        self.fill_grid(boxes, movable);
        self.search(movable);
        self.sort_pairs(boxes.len(), out);
    }

    /// Puts the boxes into levels and cells, and recommends the finest level for the next call.
    fn fill_grid(&mut self, boxes: &[Aabb], movable: &[bool]) {
        let natural = lowest_exponent(boxes);
        let mut lowest =
            self.recommended.map_or(natural, |recommended| recommended.clamp(natural, MAX_EXPONENT));
        loop {
            let exponents = self.choose_levels(boxes, lowest);
            self.grid.fill(boxes, movable, &self.level_of, &exponents);
            let (entries, blocks) = self.grid.finest_level();
            if entries > CROWDED * blocks && lowest > natural {
                lowest = natural;
                continue;
            }
            let finest = exponents.first().copied().unwrap_or(natural);
            self.recommended = if entries < SPARSE * blocks {
                Some(finest + 1)
            } else if entries > DENSE * blocks {
                Some(finest - 1)
            } else {
                Some(lowest)
            };
            return;
        }
    }

    /// Decides the level of each box and the large boxes; returns the exponents of the cell widths,
    /// ascending, none below `lowest`.
    fn choose_levels(&mut self, boxes: &[Aabb], lowest: i32) -> Vec<i32> {
        let mut count = vec![0_usize; 2 * MAX_EXPONENT as usize + 1];
        self.level_of.clear();
        self.level_of.extend(boxes.iter().map(|bounds| match exponent_above(bounds) {
            Some(exponent) => {
                let slot = (exponent.max(lowest) + MAX_EXPONENT) as usize;
                count[slot] += 1;
                slot as u32
            }
            None => LARGE,
        }));

        let mut used: Vec<usize> = (0..count.len()).filter(|&slot| count[slot] > 0).collect();
        let mut few = 0;
        while let Some(&coarsest) = used.last() {
            few += count[coarsest];
            if few > LARGE_LIMIT {
                break;
            }
            used.pop();
        }
        let mut level_of_slot = vec![LARGE; count.len()];
        // More levels than the grid can tell apart (sizes over 38 decades): the smallest share a wider cell.
        let shared = used.len().saturating_sub(MAX_LEVELS);
        for (rank, &slot) in used.iter().enumerate() {
            level_of_slot[slot] = rank.saturating_sub(shared) as u32;
        }

        self.large.clear();
        for (index, slot) in self.level_of.iter_mut().enumerate() {
            if *slot != LARGE {
                *slot = level_of_slot[*slot as usize];
            }
            if *slot == LARGE {
                self.large.push((index as u32, boxes[index]));
            }
        }
        used[shared..].iter().map(|&slot| slot as i32 - MAX_EXPONENT).collect()
    }

    /// Fills `found` with the pairs of each chunk of blocks, and last with those among the large boxes.
    fn search(&mut self, movable: &[bool]) {
        let Self { grid, large, found, .. } = self;
        let chunks = grid.blocks().div_ceil(CHUNK);
        found.resize_with(chunks + 1, Vec::new);
        found[..chunks].par_iter_mut().enumerate().for_each(|(chunk, pairs)| {
            pairs.clear();
            for block in chunk * CHUNK..((chunk + 1) * CHUNK).min(grid.blocks()) {
                grid.pairs_of_block(block, pairs);
                for entry in grid.entries_of_block(block) {
                    for &(other, bounds) in large.iter() {
                        if entry.bounds.overlaps(&bounds) && (entry.movable || movable[other as usize]) {
                            pairs.push((entry.index.min(other), entry.index.max(other)));
                        }
                    }
                }
            }
        });
        found[chunks].clear();
        for (rank, (a, bounds_a)) in large.iter().enumerate() {
            for (b, bounds_b) in &large[rank + 1..] {
                if (movable[*a as usize] || movable[*b as usize]) && bounds_a.overlaps(bounds_b) {
                    found[chunks].push((*a, *b));
                }
            }
        }
    }

    /// Brings the pairs found into lexicographic order: counting sort by the first index, then small sorts.
    fn sort_pairs(&mut self, bodies: usize, out: &mut Vec<(u32, u32)>) {
        let Self { next, found, .. } = self;
        next.clear();
        next.resize(bodies + 1, 0);
        for &(i, _) in found.iter().flatten() {
            next[i as usize + 1] += 1;
        }
        for i in 0..bodies {
            next[i + 1] += next[i];
        }
        out.clear();
        out.resize(next[bodies], (0, 0));
        for &pair in found.iter().flatten() {
            let place = &mut next[pair.0 as usize];
            out[*place] = pair;
            *place += 1;
        }
        // `next[i]` is now where the pairs of i end.
        let mut rest = &mut out[..];
        let mut parts = Vec::new();
        let mut start = 0;
        for first in (0..bodies).step_by(1 << 12) {
            let end = next[(first + (1 << 12)).min(bodies) - 1];
            let (part, others) = std::mem::take(&mut rest).split_at_mut(end - start);
            parts.push(part);
            (rest, start) = (others, end);
        }
        parts.into_par_iter().for_each(|part| {
            for same_first in part.chunk_by_mut(|a, b| a.0 == b.0) {
                if same_first.len() > bodies / 32 + 32 {
                    sort_many(same_first, bodies);
                } else {
                    same_first.sort_unstable_by_key(|pair| pair.1);
                }
            }
        });
    }
}

/// Sorts pairs with one first index and different second ones, of which there are many (a wall's): by ticking
/// them off.
fn sort_many(pairs: &mut [(u32, u32)], bodies: usize) {
    let mut ticks = vec![0_u64; bodies.div_ceil(64)];
    for &(_, second) in &*pairs {
        ticks[second as usize / 64] |= 1 << (second % 64);
    }
    let mut place = 0;
    for (word, mut bits) in (0..).zip(ticks) {
        while bits != 0 {
            pairs[place].1 = 64 * word + bits.trailing_zeros();
            bits &= bits - 1;
            place += 1;
        }
    }
}

/// The least k with `extent < 2^k` for all three extents as computed; none if the box is infinite.
///
/// Rounding is monotone, so the exact extents are below `2^k` as well.
fn exponent_above(bounds: &Aabb) -> Option<i32> {
    let extent = (bounds.max - bounds.min).max();
    let finite = bounds.min.iter().chain(bounds.max.iter()).all(|x| x.is_finite()) && extent.is_finite();
    // Beyond 2^1000 the reciprocal of the width would leave the normal numbers: as good as infinite.
    finite.then(|| exponent_of(extent.max(0.0)) + 1).filter(|&exponent| exponent <= MAX_EXPONENT)
}

/// Floor of the binary logarithm; −1023 for zero and subnormal numbers.
fn exponent_of(value: f64) -> i32 {
    ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// Cells narrower than this gain nothing: cell coordinates have to fit 63 bits with room to spare, and boxes
/// without extent go with the smallest that have one or, if there is none, into cells of about one box each.
fn lowest_exponent(boxes: &[Aabb]) -> i32 {
    let mut all = Aabb::empty();
    let mut smallest_extent = f64::INFINITY;
    for bounds in boxes.iter().filter(|bounds| exponent_above(bounds).is_some()) {
        all = all.union(bounds);
        let extent = (bounds.max - bounds.min).max();
        if extent > 0.0 {
            smallest_extent = smallest_extent.min(extent);
        }
    }
    if all.min.x > all.max.x {
        return 0;
    }
    let reach = all.min.amax().max(all.max.amax());
    let representable = exponent_of(reach) - 58;
    let useful = if smallest_extent.is_finite() {
        exponent_of(smallest_extent) + 1
    } else {
        let spread = (all.max - all.min).max();
        exponent_of((spread / (boxes.len() as f64).cbrt()).min(f64::MAX))
    };
    useful.max(representable).clamp(-MAX_EXPONENT, MAX_EXPONENT)
}

/// Exact, for −1022 ≤ exponent ≤ 1023.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests;
