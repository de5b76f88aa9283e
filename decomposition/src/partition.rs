//! Which rank owns which cell.
//!
//! The cell graph, weighted by work, is cut by METIS on rank 0 and broadcast: a small table, the same on
//! every rank, from which each can look up any owner.

use crate::cells::Cells;
use crate::comm::Comm;
use crate::sigterm::undisturbed;

#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    pub cells: Cells,
    owner: Vec<u32>,
    /// There is one rank: nobody has to look up a cell.
    single: bool,
}

impl Partition {
    /// Everything belongs to rank 0.
    pub fn single(cells: Cells) -> Self {
        let owner = vec![0; cells.count()];
        Self { cells, owner, single: true }
    }

    /// Cuts `cells` so that every rank gets about the same share of `work` (one weight a cell, summed over
    /// ranks here). Collective. With `previous`, whatever its cells, ranks keep the part that shares most
    /// work with what they had.
    pub fn balanced(cells: Cells, work: &mut [i64], previous: Option<&Partition>, comm: &dyn Comm) -> Self {
        assert_eq!(work.len(), cells.count());
        if comm.size() == 1 {
            return Self::single(cells);
        }
        comm.sum_i64(work);
        let mut bytes = Vec::new();
        if comm.rank() == 0 {
            let parts = cut(&cells, work, comm.size());
            let parts = match previous {
                Some(previous) => relabelled(parts, &previous.owners_at(&cells), work, comm.size()),
                None => parts,
            };
            bytes = parts.iter().flat_map(|rank| rank.to_le_bytes()).collect();
        }
        comm.broadcast(0, &mut bytes);
        let owner = bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        Self { cells, owner, single: false }
    }

    /// Who owns the space in the middle of each cell of another grid.
    fn owners_at(&self, cells: &Cells) -> Vec<u32> {
        (0..cells.count()).map(|cell| self.owner_of_point(cells.centre(cell)) as u32).collect()
    }

    pub fn owner_of_cell(&self, cell: usize) -> usize {
        self.owner[cell] as usize
    }

    pub fn owner_of_point(&self, point: [f64; 3]) -> usize {
        if self.single { 0 } else { self.owner_of_cell(self.cells.cell_of(point)) }
    }

    /// The ranks whose cells a box touches, ascending, each once.
    pub fn owners_in_box(&self, min: [f64; 3], max: [f64; 3], ranks: &mut Vec<usize>) {
        ranks.clear();
        for cell in self.cells.in_box(min, max) {
            let rank = self.owner_of_cell(cell);
            if ranks.last() != Some(&rank) {
                ranks.push(rank);
            }
        }
        ranks.sort_unstable();
        ranks.dedup();
    }
}

/// By how many thousandths the largest part may exceed the mean. METIS's own 30 would cost as much time in
/// every sweep; the cut gets hardly longer.
const UNEVEN: i32 = 5;

/// METIS on the cell graph. Falls back to contiguous blocks of equal work where METIS has nothing to cut
/// (fewer cells than ranks, no work at all) or refuses.
fn cut(cells: &Cells, work: &[i64], ranks: usize) -> Vec<u32> {
    let blocks = || {
        let total: i128 = work.iter().map(|&w| i128::from(w) + 1).sum();
        let mut before = 0i128;
        let place = |&w: &i64| {
            let rank = (before * ranks as i128 / total).min(ranks as i128 - 1);
            before += i128::from(w) + 1;
            rank as u32
        };
        work.iter().map(place).collect()
    };
    if cells.count() <= ranks || work.iter().all(|&w| w == 0) {
        return blocks();
    }
    let mut offsets = vec![0];
    let mut adjacent = Vec::new();
    let mut cost = Vec::new();
    for cell in 0..cells.count() {
        for neighbour in cells.neighbours(cell) {
            adjacent.push(neighbour as i32);
            // Cutting between two full cells makes more shared bodies than between two empty ones.
            cost.push((1 + work[cell].min(work[neighbour])).min(1 << 20) as i32);
        }
        offsets.push(adjacent.len() as i32);
    }
    // METIS sums weights in an i32.
    let total: i128 = work.iter().map(|&w| i128::from(w)).sum();
    let unit = total / (1 << 28) + 1;
    let weights: Vec<i32> = work.iter().map(|&w| (i128::from(w) / unit) as i32 + 1).collect();
    let mut parts = vec![0i32; cells.count()];
    let Ok(graph) = metis::Graph::new(1, ranks as i32, &offsets, &adjacent) else { return blocks() };
    let graph = graph.set_vwgt(&weights).set_adjwgt(&cost).set_option(metis::option::UFactor(UNEVEN));
    match undisturbed(|| graph.part_kway(&mut parts)) {
        Ok(_) => parts.iter().map(|&part| part as u32).collect(),
        Err(_) => blocks(),
    }
}

/// Renames parts so that each rank keeps as much work as a greedy matching of old and new parts finds.
fn relabelled(parts: Vec<u32>, old: &[u32], work: &[i64], ranks: usize) -> Vec<u32> {
    let mut kept = std::collections::BTreeMap::<(u32, u32), i64>::new();
    for ((&new, &old), &work) in parts.iter().zip(old).zip(work) {
        *kept.entry((new, old)).or_default() += work;
    }
    let mut matches: Vec<_> = kept.into_iter().map(|((new, old), work)| (-work, new, old)).collect();
    matches.sort_unstable();
    let mut name = vec![None; ranks];
    let mut taken = vec![false; ranks];
    for (_, new, old) in matches {
        if name[new as usize].is_none() && !taken[old as usize] {
            name[new as usize] = Some(old);
            taken[old as usize] = true;
        }
    }
    let mut free = (0..ranks as u32).filter(|&rank| !taken[rank as usize]);
    let name: Vec<u32> = name
        .into_iter()
        .map(|name| name.unwrap_or_else(|| free.next().expect("as many names as parts")))
        .collect();
    parts.into_iter().map(|part| name[part as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads;

    fn cube(edge: f64) -> Cells {
        Cells::covering([0.0; 3], [1.0; 3], edge, 100_000)
    }

    #[test]
    fn work_is_shared_evenly_and_all_ranks_agree() {
        for ranks in [2, 3, 4, 7, 8] {
            let partitions = threads::run(ranks, |comm| {
                let mut work = vec![if comm.rank() == 0 { 10 } else { 0 }; 1000];
                Partition::balanced(cube(0.1), &mut work, None, comm)
            });
            assert!(partitions.iter().all(|partition| *partition == partitions[0]));
            for rank in 0..ranks {
                let share = partitions[0].owner.iter().filter(|&&owner| owner as usize == rank).count();
                assert!(
                    share * ranks > 800 && share * ranks < 1200,
                    "{share} of 1000 cells for 1 of {ranks}"
                );
            }
        }
    }

    #[test]
    fn degenerate_graphs_are_fine() {
        for (edge, work) in [(2.0, 5), (0.5, 0), (0.5, i64::MAX / 16)] {
            let owners = threads::run(8, |comm| {
                let cells = cube(edge);
                let mut weights = vec![if comm.rank() == 0 { work } else { 0 }; cells.count()];
                Partition::balanced(cells, &mut weights, None, comm).owner
            });
            assert!(owners.iter().all(|owner| owner.iter().all(|&rank| rank < 8)));
        }
    }

    #[test]
    fn a_small_change_of_work_moves_little() {
        let moved = threads::run(4, |comm| {
            let mut work = vec![if comm.rank() == 0 { 100 } else { 0 }; 1000];
            let first = Partition::balanced(cube(0.1), &mut work.clone(), None, comm);
            work[0] += if comm.rank() == 0 { 300 } else { 0 };
            let second = Partition::balanced(cube(0.1), &mut work, Some(&first), comm);
            first.owner.iter().zip(&second.owner).filter(|(a, b)| a != b).count()
        });
        assert!(moved[0] < 500, "{} of 1000 cells moved", moved[0]);
    }
}
