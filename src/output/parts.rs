//! Ranks and the parts of a frame file: as many parts as ranks began it, whoever continues it.

use super::ranks::Rows;

/// A file that says it has more is damaged.
pub(super) const MOST_PARTS: usize = 1 << 24;

/// Which ranks make up which part, from the counts of all ranks: points, changes, cells and connectivity of
/// each kind.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub all: &'a [[u64; 10]],
    pub count: usize,
}

impl Parts<'_> {
    fn of(&self, rank: usize) -> usize {
        let ranks = self.all.len();
        if ranks > self.count { rank * self.count / ranks } else { rank }
    }

    pub fn is_first(&self, rank: usize) -> bool {
        rank == 0 || self.of(rank - 1) != self.of(rank)
    }

    /// Sum of a count over the lower ranks of the same part.
    pub fn before(&self, rank: usize, k: usize) -> u64 {
        let lower = (0..rank).rev().take_while(|lower| self.of(*lower) == self.of(rank));
        lower.map(|lower| self.all[lower][k]).sum()
    }

    /// Sums of a count, by part.
    pub fn sums(&self, k: usize) -> Vec<i64> {
        let mut sums = vec![0; self.count];
        for (rank, counts) in self.all.iter().enumerate() {
            sums[self.of(rank)] += counts[k] as i64;
        }
        sums
    }

    /// Offsets of cells that a rank writes: one for each, one for the beginning of each part, and the last
    /// rank those of empty parts.
    pub fn offsets(&self, rank: usize, k: usize) -> Rows {
        let ranks = self.all.len();
        let empty = self.count.saturating_sub(ranks) as u64;
        let own = |rank: usize| {
            let last = if rank + 1 == ranks { empty } else { 0 };
            self.all[rank][k] + u64::from(self.is_first(rank)) + last
        };
        Rows { before: (0..rank).map(own).sum(), own: own(rank), total: (0..ranks).map(own).sum() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any number of ranks continues any number of parts: every row has one writer, and every part one
    /// beginning.
    #[test]
    fn rows_follow_each_other_and_parts_begin_once() {
        for ranks in 1..=7usize {
            let all: Vec<[u64; 10]> = (0..ranks as u64).map(|rank| [rank % 3; 10]).collect();
            for count in 1..=7 {
                let parts = Parts { all: &all, count };
                let beginnings = (0..ranks).filter(|rank| parts.is_first(*rank)).count();
                assert_eq!(beginnings, ranks.min(count));
                let total: i64 = all.iter().map(|counts| counts[2] as i64).sum();
                assert_eq!(parts.sums(2).iter().sum::<i64>(), total);
                assert_eq!(parts.sums(2).len(), count);
                let mut next = 0;
                for rank in 0..ranks {
                    let rows = parts.offsets(rank, 2);
                    assert_eq!(rows.before, next);
                    assert_eq!(rows.total, total as u64 + count as u64);
                    next += rows.own;
                    assert_eq!(parts.is_first(rank), rank == 0 || parts.of(rank) > parts.of(rank - 1));
                    let lower = parts.sums(2)[..parts.of(rank)].iter().sum::<i64>() as u64;
                    let all_before: u64 = all[..rank].iter().map(|counts| counts[2]).sum();
                    assert_eq!(parts.before(rank, 2), all_before - lower);
                }
                assert_eq!(next, total as u64 + count as u64);
            }
        }
    }
}
