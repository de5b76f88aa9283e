//! The cells of all levels, and the search for pairs in them.
//!
//! Only *blocks* of 4×4×4 cells that hold something exist. Blocks are sorted by level and along a Z-curve,
//! and the boxes by block and cell, so that neighbours in space are mostly neighbours in memory: the cost per
//! box hardly grows when the scene no longer fits the caches. Cells of a block are numbered with z running
//! fastest, so that the two or three cells of a row are one contiguous range of boxes.
//!
//! A block is found through its *key* (level, and the Z-curve index of its coordinates modulo 2¹⁷) in a hash
//! table, but only once for all boxes of a neighbouring block. Blocks 2¹⁷ blocks apart share a key and are
//! one block to the grid. That costs time and nothing else: the cells that one box visits are distinct
//! modulo that, so no pair comes twice.

use super::{LARGE, power_of_two};
use crate::geometry::{Aabb, Vec3, curve::spread};
use rayon::prelude::*;

/// Levels that a key can tell apart.
pub const MAX_LEVELS: usize = 1 << 7;

/// Bits of a block coordinate in a key.
const COORDINATE_BITS: u32 = 17;

/// No block here, or not searched yet.
const ABSENT: u32 = u32::MAX;
const UNKNOWN: u32 = u32::MAX - 1;

#[derive(Default)]
pub struct Grid {
    /// Binary exponents of the cell widths, ascending.
    exponents: Vec<i32>,
    /// Key and cell number (6 bits) of each box.
    codes: Vec<u64>,
    /// Block of each box.
    block_of: Vec<u32>,
    table: Table,
    /// Keys of the blocks, ascending.
    keys: Vec<u64>,
    /// First entry of each cell of each block, and one past the end.
    starts: Vec<u32>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy)]
pub struct Entry {
    pub bounds: Aabb,
    pub index: u32,
    pub movable: bool,
}

/// The 3×3×3 blocks around a block, as far as they were searched.
struct Around {
    level: usize,
    /// Coordinates of the middle one, modulo 2¹⁷.
    middle: [i64; 3],
    blocks: [u32; 27],
}

/// Cells in one column of x and y: z from `low` to `high`, relative to the middle block, in −1 ..= 4.
struct Row {
    x: i64,
    y: i64,
    low: i64,
    high: i64,
}

impl Grid {
    pub fn blocks(&self) -> usize {
        self.keys.len()
    }

    pub fn entries_of_block(&self, block: usize) -> &[Entry] {
        &self.entries[self.starts[64 * block] as usize..self.starts[64 * block + 64] as usize]
    }

    /// Numbers of boxes and of blocks in the finest level.
    pub fn finest_level(&self) -> (usize, usize) {
        let blocks = self.keys.partition_point(|&key| decode(key).0 == 0);
        (self.starts[64 * blocks] as usize, blocks)
    }

    /// Sorts the boxes that are in a level into blocks and cells.
    pub fn fill(&mut self, boxes: &[Aabb], movable: &[bool], level_of: &[u32], exponents: &[i32]) {
        self.exponents.clear();
        self.exponents.extend_from_slice(exponents);
        let code = |bounds: &Aabb, level: u32| {
            if level == LARGE {
                return u64::MAX;
            }
            let cell = cell(&bounds.min, exponents[level as usize]);
            let in_block = ((cell[0] & 3) << 4 | (cell[1] & 3) << 2 | (cell[2] & 3)) as u64;
            key(level as usize, cell.map(|coordinate| coordinate >> 2)) << 6 | in_block
        };
        boxes
            .par_iter()
            .zip(level_of)
            .with_min_len(1024)
            .map(|(bounds, &level)| code(bounds, level))
            .collect_into_vec(&mut self.codes);
        self.find_blocks(boxes.len());
        self.sort_entries(boxes, movable);
    }

    /// Numbers the blocks in the order of their keys.
    fn find_blocks(&mut self, bodies: usize) {
        let Self { codes, block_of, table, keys, .. } = self;
        table.clear(bodies / 8);
        keys.clear();
        block_of.clear();
        block_of.extend(codes.iter().map(|&code| {
            if code == u64::MAX {
                return ABSENT;
            }
            let block = table.find_or_insert(code >> 6, keys.len() as u32);
            if block as usize == keys.len() {
                keys.push(code >> 6);
            }
            block
        }));
        let mut order: Vec<u32> = (0..keys.len() as u32).collect();
        order.par_sort_unstable_by_key(|&block| keys[block as usize]);
        let mut rank = vec![0; order.len()];
        for (place, &block) in order.iter().enumerate() {
            rank[block as usize] = place as u32;
        }
        for block in block_of.iter_mut().filter(|block| **block != ABSENT) {
            *block = rank[*block as usize];
        }
        table.renumber(&rank);
        keys.sort_unstable();
    }

    /// Counting sort by block and cell.
    fn sort_entries(&mut self, boxes: &[Aabb], movable: &[bool]) {
        let Self { codes, block_of, keys, starts, entries, .. } = self;
        let cells = 64 * keys.len();
        let cell_of = |(&block, &code): (&u32, &u64)| {
            (block != ABSENT).then(|| 64 * block as usize + (code & 63) as usize)
        };
        starts.clear();
        starts.resize(cells + 2, 0);
        for cell in block_of.iter().zip(codes.iter()).filter_map(cell_of) {
            starts[cell + 2] += 1;
        }
        for cell in 1..=cells {
            starts[cell + 1] += starts[cell];
        }
        // Now `starts[cell + 1]` is where the cell starts; it moves to where the cell ends while the cell is
        // filled.
        entries.clear();
        let nothing = Entry { bounds: Aabb::empty(), index: LARGE, movable: false };
        entries.resize(starts[cells + 1] as usize, nothing);
        for (index, cell) in block_of.iter().zip(codes.iter()).map(cell_of).enumerate() {
            if let Some(cell) = cell {
                entries[starts[cell + 1] as usize].index = index as u32;
                starts[cell + 1] += 1;
            }
        }
        starts.pop();
        entries.par_iter_mut().with_min_len(1024).for_each(|entry| {
            entry.bounds = boxes[entry.index as usize];
            entry.movable = movable[entry.index as usize];
        });
    }

    /// Adds the pairs of a block's boxes with boxes of coarser levels and with those of their own level that
    /// come later: in a cell further along (x, then y, then z), or further down in the same cell.
    pub fn pairs_of_block(&self, block: usize, pairs: &mut Vec<(u32, u32)>) {
        let (level, middle) = decode(self.keys[block]);
        let mut own = Around::new(level, middle);
        own.blocks[13] = block as u32;
        let exponent = self.exponents[level];
        let first = self.starts[64 * block] as usize;
        for (place, entry) in (first..).zip(self.entries_of_block(block)) {
            let low = cell(&entry.bounds.min, exponent);
            let high = cell(&entry.bounds.max, exponent);
            let home = low.map(|coordinate| coordinate & 3);
            let reach = [0, 1, 2].map(|k| home[k] + (high[k] - low[k]));
            self.search_row(
                &mut own,
                Row { x: home[0], y: home[1], low: home[2], high: reach[2] },
                place + 1,
                entry,
                pairs,
            );
            for x in home[0]..=reach[0] {
                let from = if x == home[0] { home[1] + 1 } else { home[1] - 1 };
                for y in from..=reach[1] {
                    self.search_row(
                        &mut own,
                        Row { x, y, low: home[2] - 1, high: reach[2] },
                        0,
                        entry,
                        pairs,
                    );
                }
            }
        }
        for coarser in level + 1..self.exponents.len() {
            self.pairs_with_level(block, coarser, pairs);
        }
    }

    /// Adds the pairs of a block's boxes with those of one coarser level.
    fn pairs_with_level(&self, block: usize, coarser: usize, pairs: &mut Vec<(u32, u32)>) {
        let entries = self.entries_of_block(block);
        let exponent = self.exponents[coarser];
        // All boxes of a block start in one block of the coarser level (per shared key; see the head of this
        // file).
        let mut around: Option<([i64; 3], Around)> = None;
        for entry in entries {
            let low = cell(&entry.bounds.min, exponent);
            let high = cell(&entry.bounds.max, exponent);
            let middle = low.map(|coordinate| coordinate >> 2);
            if around.as_ref().is_none_or(|around| around.0 != middle) {
                around = Some((middle, Around::new(coarser, middle)));
            }
            let Some((_, around)) = &mut around else { continue };
            let home = low.map(|coordinate| coordinate & 3);
            let reach = [0, 1, 2].map(|k| home[k] + (high[k] - low[k]));
            for x in home[0] - 1..=reach[0] {
                for y in home[1] - 1..=reach[1] {
                    self.search_row(around, Row { x, y, low: home[2] - 1, high: reach[2] }, 0, entry, pairs);
                }
            }
        }
    }

    /// Adds the pairs of `entry` with the boxes of a row of cells, in its first block from `first_place` on.
    #[inline]
    fn search_row(
        &self,
        around: &mut Around,
        row: Row,
        mut first_place: usize,
        entry: &Entry,
        pairs: &mut Vec<(u32, u32)>,
    ) {
        let mut z = row.low;
        while z <= row.high {
            let layer = (z + 4) >> 2;
            let end = row.high.min(4 * layer - 1);
            let block = self.lookup(around, (row.x + 4) >> 2, (row.y + 4) >> 2, layer);
            if block != ABSENT {
                let column = 64 * block as usize + ((row.x & 3) << 4 | (row.y & 3) << 2) as usize;
                let start = self.starts[column + (z & 3) as usize] as usize;
                let stop = self.starts[column + (end & 3) as usize + 1] as usize;
                for other in &self.entries[start.max(first_place).min(stop)..stop] {
                    if other.bounds.overlaps(&entry.bounds) && (entry.movable || other.movable) {
                        pairs.push((entry.index.min(other.index), entry.index.max(other.index)));
                    }
                }
            }
            z = end + 1;
            // The next block may come earlier in memory.
            first_place = 0;
        }
    }

    /// The block at an offset (0 to 2 per direction) from the corner of the 3×3×3 blocks.
    #[inline]
    fn lookup(&self, around: &mut Around, x: i64, y: i64, z: i64) -> u32 {
        let place = (9 * x + 3 * y + z) as usize;
        if around.blocks[place] == UNKNOWN {
            let [i, j, k] = around.middle;
            around.blocks[place] = self.table.find(key(around.level, [i + x - 1, j + y - 1, k + z - 1]));
        }
        around.blocks[place]
    }
}

impl Around {
    fn new(level: usize, middle: [i64; 3]) -> Self {
        Around { level, middle, blocks: [UNKNOWN; 27] }
    }
}

/// Exact, since the width is a power of two; a quotient that underflows rounds to a neighbour of zero,
/// monotonely.
#[inline]
fn cell(corner: &Vec3, exponent: i32) -> [i64; 3] {
    let per_width = power_of_two(-exponent);
    [0, 1, 2].map(|k| {
        let quotient = corner[k] * per_width;
        // Floor, without the library call that it is on plain x86-64.
        let truncated = quotient as i64;
        truncated - i64::from(truncated as f64 > quotient)
    })
}

fn key(level: usize, block: [i64; 3]) -> u64 {
    let [x, y, z] = block.map(|coordinate| spread(coordinate as u64));
    (level as u64) << (3 * COORDINATE_BITS) | x << 2 | y << 1 | z
}

/// Level and block coordinates modulo 2¹⁷.
fn decode(key: u64) -> (usize, [i64; 3]) {
    let coordinate = |shift: u32| gather(key >> shift) as i64;
    ((key >> (3 * COORDINATE_BITS)) as usize, [coordinate(2), coordinate(1), coordinate(0)])
}

/// Undoes `spread`; ignores other bits.
fn gather(value: u64) -> u64 {
    let mut x = value & 0x1249_2492_4924_9249;
    x = (x | x >> 2) & 0x10c3_0c30_c30c_30c3;
    x = (x | x >> 4) & 0x100f_00f0_0f00_f00f;
    x = (x | x >> 8) & 0x001f_0000_ff00_00ff;
    x = (x | x >> 16) & 0x001f_0000_0000_ffff;
    (x | x >> 32) & 0x1_ffff
}

/// Keys to numbers: open addressing with linear probing, a fixed hash, never more than half full.
#[derive(Default)]
struct Table {
    /// Key and number; the number is `ABSENT` where the slot is free. The length is a power of two.
    slots: Vec<(u64, u32)>,
    used: usize,
}

impl Table {
    fn clear(&mut self, expected: usize) {
        let length = (2 * expected).next_power_of_two().max(64);
        self.slots.clear();
        self.slots.resize(length, (0, ABSENT));
        self.used = 0;
    }

    /// The slot that holds the key, or the free one where it belongs.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        // Fibonacci hashing: the upper half of the product is the mixed one.
        let mut slot = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & mask;
        while self.slots[slot].1 != ABSENT && self.slots[slot].0 != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    #[inline]
    fn find(&self, key: u64) -> u32 {
        self.slots[self.slot(key)].1
    }

    fn find_or_insert(&mut self, key: u64, number: u32) -> u32 {
        let slot = self.slot(key);
        if self.slots[slot].1 != ABSENT {
            return self.slots[slot].1;
        }
        self.slots[slot] = (key, number);
        self.used += 1;
        if 2 * self.used > self.slots.len() {
            self.grow();
        }
        number
    }

    fn grow(&mut self) {
        let wider = vec![(0, ABSENT); 2 * self.slots.len()];
        for (key, number) in std::mem::replace(&mut self.slots, wider) {
            if number != ABSENT {
                let slot = self.slot(key);
                self.slots[slot] = (key, number);
            }
        }
    }

    fn renumber(&mut self, rank: &[u32]) {
        for (_, number) in self.slots.iter_mut().filter(|slot| slot.1 != ABSENT) {
            *number = rank[*number as usize];
        }
    }
}
