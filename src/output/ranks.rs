//! What output needs of the other ranks: where a rank's rows begin, and whether all went well.

use super::error::OutputError;
use decomposition::Comm;
use std::ops::Range;
use std::path::Path;

/// Where this rank's rows stand among the rows of all ranks, in rank order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Rows of lower ranks.
    pub before: u64,
    /// Rows of this rank.
    pub own: u64,
    /// Rows of all ranks.
    pub total: u64,
}

impl Rows {
    /// Rows that one rank alone writes.
    pub fn only_on_root(comm: &dyn Comm, count: u64) -> Rows {
        let own = if comm.rank() == 0 { count } else { 0 };
        Rows { before: count - own, own, total: count }
    }
}

/// Collective: the numbers of every rank, by rank.
pub(super) fn gather<const N: usize>(comm: &dyn Comm, own: [u64; N]) -> Vec<[u64; N]> {
    let bytes: Vec<u8> = own.iter().flat_map(|value| value.to_le_bytes()).collect();
    let decode = |bytes: Vec<u8>| {
        let mut numbers = [0u64; N];
        for (number, eight) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
            *number = u64::from_le_bytes(eight.try_into().unwrap_or([0; 8]));
        }
        numbers
    };
    comm.all_gather(&bytes).into_iter().map(decode).collect()
}

/// The place of this rank's `counts[k]` rows, for each k, from what `gather` returned.
pub(super) fn place<const N: usize>(all: &[[u64; N]], rank: usize, k: usize) -> Rows {
    let sum = |part: &[[u64; N]]| part.iter().map(|counts| counts[k]).sum::<u64>();
    Rows { before: sum(&all[..rank]), own: all[rank][k], total: sum(all) }
}

/// Collective: an error on every rank if there was one on any.
pub(super) fn agree<T>(
    comm: &dyn Comm,
    path: &Path,
    action: &str,
    own: Result<T, OutputError>,
) -> Result<T, OutputError> {
    let all = gather(comm, [u64::from(own.is_err())]);
    let failed = all.iter().position(|[failed]| *failed != 0);
    match (own, failed) {
        (Ok(_), Some(rank)) => {
            Err(OutputError::OtherRank { path: path.to_path_buf(), action: action.into(), rank })
        }
        (own, _) => own,
    }
}

/// The rows that a rank reads of a table with `rows` rows: contiguous, together all, sizes equal to within
/// one.
pub fn share(rows: u64, rank: usize, size: usize) -> Range<u64> {
    let (size, rank) = (size as u64, rank as u64);
    let (each, left) = (rows / size, rows % size);
    let start = rank * each + rank.min(left);
    start..start + each + u64::from(rank < left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_every_row_once() {
        for rows in [0, 1, 2, 7, 100, 1 << 40] {
            for size in [1, 2, 3, 8] {
                let mut next = 0;
                for rank in 0..size {
                    let range = share(rows, rank, size);
                    assert_eq!(range.start, next);
                    assert!(range.end - range.start <= rows / size as u64 + 1);
                    next = range.end;
                }
                assert_eq!(next, rows);
            }
        }
    }

    #[test]
    fn rows_of_a_rank_follow_those_of_lower_ranks() {
        let all = [[3, 1], [0, 1], [5, 1]];
        assert_eq!(place(&all, 0, 0), Rows { before: 0, own: 3, total: 8 });
        assert_eq!(place(&all, 2, 0), Rows { before: 3, own: 5, total: 8 });
        assert_eq!(place(&all, 1, 1), Rows { before: 1, own: 1, total: 3 });
    }
}
