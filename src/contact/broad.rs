//! Broad phase: all pairs of overlapping boxes, at a cost per body that neither the number of bodies nor the
//! ratio of their sizes changes.
//!
//! A hierarchical grid. A box of largest extent `e` lives in the level whose cell width `s = 2^k` satisfies
//! `e < s ≤ 2 e`, in the one cell that holds its minimum corner. Because the widths are powers of two,
//! `floor(x / s)` is exact, and two boxes that overlap satisfy without any rounding
//!
//! ```text
//! cell(min_i) − 1 ≤ cell(min_j) ≤ cell(max_i)        in each direction, cells of the level of j       (1)
//! ```
//!
//! whenever `j` is in the level of `i` or in a coarser one. So each box looks at two or three cells per direction
//! of its own level (one half of them, for each pair once) and of each coarser level; never at finer ones, so a
//! boulder among pebbles costs nothing extra.
//!
//! Cells are not stored: a level has about as many *buckets* as boxes, and a fixed hash sends blocks of 4×4×4
//! cells to runs of 64 buckets, so that neighbours in space stay neighbours in memory. Boxes are counting-sorted
//! into their buckets. An entry carries its cell (modulo 2³²), so two cells in one bucket are told apart and no
//! pair comes twice.
//!
//! Boxes that are infinite (half-spaces), and those of the coarsest levels as long as they are few, are *large*:
//! they are tested against every other box directly and never enter the grid.
//!
//! Preconditions: no NaN; `min ≤ max` in each direction of a finite box. Memory: about 100 bytes per box and
//! 16 per pair.

use crate::geometry::{Aabb, Vec3};
use rayon::prelude::*;

/// Coarsest levels go to the list of large boxes while it stays this short: testing a box against a whole level of
/// some boxes directly (1–2 ns each) is cheaper than looking at 8 to 27 of the level's cells.
const LARGE_LIMIT: usize = 16;

/// Entries per task of the parallel loop; the result does not depend on it.
const CHUNK: usize = 512;

/// Binary exponents of cell widths lie in `-MAX_EXPONENT ..= MAX_EXPONENT`, so that widths and their reciprocals are
/// normal numbers.
const MAX_EXPONENT: i32 = 1000;

/// Marks a box outside the grid.
const LARGE: u32 = u32::MAX;

/// Finds overlapping pairs of boxes. Holds scratch only: results depend on the arguments alone.
#[derive(Default)]
pub struct BroadPhase {
    levels: Vec<Level>,
    /// First entry of each bucket, level after level, and one past the end.
    starts: Vec<u32>,
    /// Boxes in the grid, sorted by bucket, then by index.
    entries: Vec<Entry>,
    /// Indices of large boxes, ascending.
    large: Vec<u32>,
    /// Bucket of each box, or `LARGE`.
    bucket_of: Vec<u32>,
    /// Pairs found by each task.
    found: Vec<Vec<(u32, u32)>>,
    cursor: Vec<u32>,
}

/// One grid: cells of one width.
#[derive(Clone, Copy)]
struct Level {
    exponent: i32,
    first_bucket: u32,
    /// Number of buckets less one; the number is a power of two.
    mask: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    bounds: Aabb,
    index: u32,
    /// Cell of the minimum corner, modulo 2³².
    cell: [i32; 3],
}

type Cell = [i64; 3];

impl BroadPhase {
    pub fn new() -> Self {
        Self::default()
    }

    /// All pairs (i, j), i < j, of closed boxes that overlap, each once, in lexicographic order. Pairs of two boxes
    /// that are both not movable are left out.
    ///
    /// Replaces the contents of `out`. Panics if the slices differ in length or hold 2³² − 1 boxes or more.
    pub fn pairs(&mut self, boxes: &[Aabb], movable: &[bool], out: &mut Vec<(u32, u32)>) {
        assert_eq!(boxes.len(), movable.len());
        assert!(boxes.len() < u32::MAX as usize, "body indices are 32 bit");
        self.choose_levels(boxes);
        self.fill_buckets(boxes);
        self.search(boxes, movable);
        self.sort_pairs(boxes.len(), out);
    }

    /// Decides the levels and the large boxes; leaves the level of each box in `bucket_of`.
    fn choose_levels(&mut self, boxes: &[Aabb]) {
        let lowest = lowest_exponent(boxes);
        let mut count = vec![0_usize; 2 * MAX_EXPONENT as usize + 1];
        self.bucket_of.clear();
        self.bucket_of.extend(boxes.iter().map(|bounds| match exponent_above(bounds) {
            Some(exponent) => {
                let slot = (exponent.max(lowest) + MAX_EXPONENT) as usize;
                count[slot] += 1;
                slot as u32
            }
            None => LARGE,
        }));

        let mut few = 0;
        let mut level_of = vec![LARGE; count.len()];
        self.levels.clear();
        let mut used: Vec<usize> = (0..count.len()).filter(|&slot| count[slot] > 0).collect();
        while let Some(&coarsest) = used.last() {
            few += count[coarsest];
            if few > LARGE_LIMIT {
                break;
            }
            used.pop();
        }
        let mut first_bucket = 0;
        for (level, &slot) in used.iter().enumerate() {
            let buckets = count[slot].next_power_of_two().max(64) as u32;
            let exponent = slot as i32 - MAX_EXPONENT;
            self.levels.push(Level { exponent, first_bucket, mask: buckets - 1 });
            first_bucket += buckets;
            level_of[slot] = level as u32;
        }

        self.large.clear();
        for (index, slot) in self.bucket_of.iter_mut().enumerate() {
            if *slot != LARGE {
                *slot = level_of[*slot as usize];
            }
            if *slot == LARGE {
                self.large.push(index as u32);
            }
        }
    }

    /// Counting sort of the boxes in the grid by bucket.
    fn fill_buckets(&mut self, boxes: &[Aabb]) {
        let Self { levels, starts, entries, bucket_of, cursor, .. } = self;
        bucket_of.par_iter_mut().zip(boxes).for_each(|(slot, bounds)| {
            if *slot != LARGE {
                let level = levels[*slot as usize];
                *slot = level.bucket(level.cell(&bounds.min));
            }
        });

        let buckets = levels.last().map_or(0, |level| level.first_bucket as usize + level.mask as usize + 1);
        starts.clear();
        starts.resize(buckets + 1, 0);
        for &bucket in bucket_of.iter().filter(|&&bucket| bucket != LARGE) {
            starts[bucket as usize + 1] += 1;
        }
        for bucket in 0..buckets {
            starts[bucket + 1] += starts[bucket];
        }

        cursor.clear();
        cursor.extend_from_slice(starts);
        let nothing = Entry { bounds: Aabb::empty(), index: LARGE, cell: [0; 3] };
        entries.clear();
        entries.resize(starts[buckets] as usize, nothing);
        for (index, &bucket) in bucket_of.iter().enumerate().filter(|&(_, &bucket)| bucket != LARGE) {
            let place = &mut cursor[bucket as usize];
            entries[*place as usize].index = index as u32;
            *place += 1;
        }
        for level in levels.iter() {
            let range = starts[level.first_bucket as usize] as usize
                ..starts[level.first_bucket as usize + level.mask as usize + 1] as usize;
            entries[range].par_iter_mut().for_each(|entry| {
                entry.bounds = boxes[entry.index as usize];
                entry.cell = level.cell(&entry.bounds.min).map(|coordinate| coordinate as i32);
            });
        }
    }

    /// Fills `found` with the pairs of each chunk of entries, and last with those among the large boxes.
    fn search(&mut self, boxes: &[Aabb], movable: &[bool]) {
        let chunks = self.entries.len().div_ceil(CHUNK);
        let mut found = std::mem::take(&mut self.found);
        found.resize_with(chunks + 1, Vec::new);
        let grid = &*self;
        found[..chunks].par_iter_mut().enumerate().for_each(|(chunk, pairs)| {
            pairs.clear();
            let first = chunk * CHUNK;
            let mut level = grid.level_of_entry(first);
            for place in first..(first + CHUNK).min(grid.entries.len()) {
                while place >= grid.end_of_level(level) {
                    level += 1;
                }
                grid.partners(place, level, boxes, movable, pairs);
            }
        });
        found[chunks].clear();
        for (rank, &a) in grid.large.iter().enumerate() {
            for &b in &grid.large[rank + 1..] {
                if (movable[a as usize] || movable[b as usize])
                    && boxes[a as usize].overlaps(&boxes[b as usize])
                {
                    found[chunks].push((a, b));
                }
            }
        }
        self.found = found;
    }

    fn end_of_level(&self, level: usize) -> usize {
        let level = &self.levels[level];
        self.starts[level.first_bucket as usize + level.mask as usize + 1] as usize
    }

    fn level_of_entry(&self, place: usize) -> usize {
        (0..self.levels.len()).take_while(|&level| self.end_of_level(level) <= place).count()
    }

    /// Adds the pairs of one entry with large boxes, with coarser levels, and with the entries of its own level that
    /// come after it in the order of (cell, place).
    fn partners(
        &self,
        place: usize,
        level: usize,
        boxes: &[Aabb],
        movable: &[bool],
        pairs: &mut Vec<(u32, u32)>,
    ) {
        let entry = &self.entries[place];
        let moves = movable[entry.index as usize];
        let mut report = |other: u32| {
            if moves || movable[other as usize] {
                pairs.push((entry.index.min(other), entry.index.max(other)));
            }
        };
        for &large in &self.large {
            if entry.bounds.overlaps(&boxes[large as usize]) {
                report(large);
            }
        }

        let own = self.levels[level];
        let home = own.cell(&entry.bounds.min);
        own.for_cells_around(&entry.bounds, home[0], |cell| {
            if cell >= home {
                let first_place = if cell == home { place + 1 } else { 0 };
                self.overlapping(own, cell, first_place, &entry.bounds, &mut report);
            }
        });
        for &coarser in &self.levels[level + 1..] {
            coarser.for_cells_around(&entry.bounds, i64::MIN, |cell| {
                self.overlapping(coarser, cell, 0, &entry.bounds, &mut report);
            });
        }
    }

    /// Calls `report` for the entries of one cell, from `first_place` on, that overlap `bounds`.
    #[inline]
    fn overlapping(
        &self,
        level: Level,
        cell: Cell,
        first_place: usize,
        bounds: &Aabb,
        report: &mut impl FnMut(u32),
    ) {
        let bucket = level.bucket(cell) as usize;
        let (start, end) = (self.starts[bucket] as usize, self.starts[bucket + 1] as usize);
        if start == end {
            return;
        }
        let cell = cell.map(|coordinate| coordinate as i32);
        for entry in &self.entries[start.max(first_place).min(end)..end] {
            if entry.cell == cell && entry.bounds.overlaps(bounds) {
                report(entry.index);
            }
        }
    }

    /// Brings the pairs found into lexicographic order: counting sort by the first index, then small sorts.
    fn sort_pairs(&mut self, bodies: usize, out: &mut Vec<(u32, u32)>) {
        // 64 bit: a hundred thousand bodies in one heap may have more than 2³² pairs.
        let mut next = vec![0_usize; bodies + 1];
        for &(i, _) in self.found.iter().flatten() {
            next[i as usize + 1] += 1;
        }
        for i in 0..bodies {
            next[i + 1] += next[i];
        }
        out.clear();
        out.resize(next[bodies], (0, 0));
        for &pair in self.found.iter().flatten() {
            let place = &mut next[pair.0 as usize];
            out[*place] = pair;
            *place += 1;
        }
        out.par_chunk_by_mut(|a, b| a.0 == b.0).for_each(|same_first| same_first.sort_unstable());
    }
}

impl Level {
    /// Exact, since the width is a power of two; a quotient that underflows rounds to a neighbour of zero, monotonely.
    fn cell(&self, corner: &Vec3) -> Cell {
        let per_width = power_of_two(-self.exponent);
        [0, 1, 2].map(|k| (corner[k] * per_width).floor() as i64)
    }

    fn bucket(&self, cell: Cell) -> u32 {
        let [x, y, z] = cell;
        let in_block = (x & 3) << 4 | (y & 3) << 2 | (z & 3);
        // Multiply and fold, with odd constants of the golden-ratio kind: cheap, and the same on every machine.
        let mut hash = ((x >> 2) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash = (hash ^ (y >> 2) as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        hash = (hash ^ (hash >> 32) ^ (z >> 2) as u64).wrapping_mul(0x1656_67B1_9E37_79F9);
        hash ^= hash >> 29;
        self.first_bucket + ((hash as u32 ^ in_block as u32) & self.mask)
    }

    /// The cells that (1) allows for partners of a box, in lexicographic order, from the layer `first_x` on.
    #[inline]
    fn for_cells_around(&self, bounds: &Aabb, first_x: i64, mut visit: impl FnMut(Cell)) {
        let (low, high) = (self.cell(&bounds.min), self.cell(&bounds.max));
        for x in first_x.max(low[0] - 1)..=high[0] {
            for y in low[1] - 1..=high[1] {
                for z in low[2] - 1..=high[2] {
                    visit([x, y, z]);
                }
            }
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

/// Cells narrower than this gain nothing: cell coordinates have to fit 63 bits with room to spare, and boxes without
/// extent go with the smallest that have one or, if there is none, into cells of about one box each.
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
