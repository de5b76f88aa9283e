//! `A = L U` for a sparse matrix of small blocks, without exchanging rows between blocks.
//!
//! Right for matrices whose pivots stay away from zero in any order: positive definite ones, Newton's
//! matrices of regularised contact problems, and saddle points if their multipliers come last. The order is
//! that of the least degree, computed on the graph of `A + Aᵀ`, ties by number: a pure function of the
//! pattern. Inside a block rows are exchanged.
//!
//! For pivot k, with `S_k` the neighbours that are eliminated later:
//!
//! ```text
//! L_ik = A_ik A_kk⁻¹,      A_ij −= L_ik A_kj      i, j in S_k
//! ```

use crate::lanes::Instructions;
use std::collections::BTreeSet;
use thiserror::Error;

/// A block, by rows.
pub type Block<const N: usize> = [[f64; N]; N];

/// Which blocks a factor has, and in which order they are eliminated.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// When each node is eliminated.
    position: Vec<u32>,
    /// `S_k` of position k is `later[starts[k]..starts[k + 1]]`, positions, ascending.
    starts: Vec<usize>,
    later: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FactorError {
    #[error("the matrix is singular at block row {node}")]
    Singular { node: usize },
    #[error("the factors would need more than {most} blocks")]
    TooLarge { most: usize },
}

impl Pattern {
    /// `neighbours` of each node, symmetric, without itself, ascending. Nodes from `last` on are eliminated
    /// after all others.
    pub fn new(mut neighbours: Vec<Vec<u32>>, last: usize, most_blocks: usize) -> Result<Self, FactorError> {
        let count = neighbours.len();
        let key = |node: usize, degree: usize| (node >= last, degree, node as u32);
        let mut queue: BTreeSet<_> = (0..count).map(|node| key(node, neighbours[node].len())).collect();
        let mut position = vec![0; count];
        let (mut lists, mut stored) = (Vec::with_capacity(count), 0);
        let mut merged = Vec::new();
        while let Some((_, _, node)) = queue.pop_first() {
            position[node as usize] = lists.len() as u32;
            let clique = std::mem::take(&mut neighbours[node as usize]);
            stored += clique.len();
            if stored > most_blocks {
                return Err(FactorError::TooLarge { most: most_blocks });
            }
            for &other in &clique {
                let old = &mut neighbours[other as usize];
                queue.remove(&key(other as usize, old.len()));
                merge(old, &clique, node, other, &mut merged);
                std::mem::swap(old, &mut merged);
                queue.insert(key(other as usize, old.len()));
            }
            lists.push(clique);
        }
        let mut starts = vec![0];
        let mut later = Vec::with_capacity(stored);
        for list in lists {
            let first = later.len();
            later.extend(list.into_iter().map(|node| position[node as usize]));
            later[first..].sort_unstable();
            starts.push(later.len());
        }
        Ok(Self { position, starts, later })
    }

    /// Off-diagonal blocks of `L` (and as many of `U`).
    pub fn stored(&self) -> usize {
        self.later.len()
    }

    /// Whether there is a block in this row and column, or will be.
    pub fn has(&self, row: usize, column: usize) -> bool {
        let (i, j) = (self.position[row], self.position[column]);
        i == j || self.later[self.range(i.min(j) as usize)].binary_search(&i.max(j)).is_ok()
    }

    fn range(&self, position: usize) -> std::ops::Range<usize> {
        self.starts[position]..self.starts[position + 1]
    }
}

/// The union of two ascending lists, without two of their members.
fn merge(a: &[u32], b: &[u32], without: u32, nor: u32, into: &mut Vec<u32>) {
    into.clear();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let next = match (a.get(i), b.get(j)) {
            (Some(&x), Some(&y)) => x.min(y),
            (Some(&x), None) | (None, Some(&x)) => x,
            (None, None) => break,
        };
        i += usize::from(a.get(i) == Some(&next));
        j += usize::from(b.get(j) == Some(&next));
        if next != without && next != nor {
            into.push(next);
        }
    }
}

/// The factors.
pub struct Lu<'p, const N: usize> {
    pattern: &'p Pattern,
    /// `A_kk⁻¹` of each position.
    inverse: Vec<Block<N>>,
    /// `L_ik` and `U_ki` of each i in `S_k`, beside `pattern.later`.
    lower: Vec<Block<N>>,
    upper: Vec<Block<N>>,
}

impl<'p, const N: usize> Lu<'p, N> {
    /// `entries` are (row, column, block) of nodes; what comes twice adds up. All must be in the pattern.
    pub fn new(
        pattern: &'p Pattern,
        entries: impl Iterator<Item = (usize, usize, Block<N>)>,
    ) -> Result<Self, FactorError> {
        let count = pattern.position.len();
        let zero = [[0.0; N]; N];
        let mut lu = Self {
            pattern,
            inverse: vec![zero; count],
            lower: vec![zero; pattern.stored()],
            upper: vec![zero; pattern.stored()],
        };
        for (row, column, block) in entries {
            let (i, j) = (pattern.position[row] as usize, pattern.position[column] as usize);
            add(lu.place(i, j), &block);
        }
        lu.eliminate()?;
        Ok(lu)
    }

    fn place(&mut self, i: usize, j: usize) -> &mut Block<N> {
        if i == j {
            return &mut self.inverse[i];
        }
        let range = self.pattern.range(i.min(j));
        let list = &self.pattern.later[range.clone()];
        let at = range.start + list.partition_point(|&other| (other as usize) < i.max(j));
        if i < j { &mut self.upper[at] } else { &mut self.lower[at] }
    }

    fn eliminate(&mut self) -> Result<(), FactorError> {
        match Instructions::chosen() {
            // SAFETY: the processor has what is chosen.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => unsafe { eliminate_512(self) },
            // SAFETY: the same.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { eliminate_256(self) },
            _ => self.eliminate_with(),
        }
    }

    /// Compiled for each instruction set; products are fused with sums on all of them.
    #[inline(always)]
    fn eliminate_with(&mut self) -> Result<(), FactorError> {
        let pattern = self.pattern;
        // Where a node stands in the list of the row under work.
        let mut where_is = vec![0usize; self.inverse.len()];
        for k in 0..self.inverse.len() {
            let Some(inverse) = invert(self.inverse[k]) else {
                let node = pattern.position.iter().position(|&position| position as usize == k);
                return Err(FactorError::Singular { node: node.unwrap_or(k) });
            };
            self.inverse[k] = inverse;
            let range = pattern.range(k);
            for at in range.clone() {
                self.lower[at] = multiply(&self.lower[at], &inverse);
            }
            for at in range.clone() {
                let i = pattern.later[at] as usize;
                let (l_ik, u_ki) = (self.lower[at], self.upper[at]);
                subtract_product(&mut self.inverse[i], &l_ik, &u_ki);
                for place in pattern.range(i) {
                    where_is[pattern.later[place] as usize] = place;
                }
                for other in at + 1..range.end {
                    let place = where_is[pattern.later[other] as usize];
                    let (l_jk, u_kj) = (self.lower[other], self.upper[other]);
                    subtract_product(&mut self.upper[place], &l_ik, &u_kj);
                    subtract_product(&mut self.lower[place], &l_jk, &u_ki);
                }
            }
        }
        Ok(())
    }

    /// `A x = b`, in place.
    pub fn solve(&self, values: &mut [[f64; N]]) {
        let pattern = self.pattern;
        let mut x = vec![[0.0; N]; values.len()];
        for (node, value) in values.iter().enumerate() {
            x[pattern.position[node] as usize] = *value;
        }
        for k in 0..x.len() {
            let known = x[k];
            for at in pattern.range(k) {
                subtract_image(&mut x[pattern.later[at] as usize], &self.lower[at], &known);
            }
        }
        for k in (0..x.len()).rev() {
            let mut rest = x[k];
            for at in pattern.range(k) {
                subtract_image(&mut rest, &self.upper[at], &x[pattern.later[at] as usize]);
            }
            x[k] = self.inverse[k].map(|row| row.iter().zip(&rest).map(|(a, x)| a * x).sum());
        }
        for (node, value) in values.iter_mut().enumerate() {
            *value = x[pattern.position[node] as usize];
        }
    }
}

/// # Safety
/// The processor has AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,fma")]
unsafe fn eliminate_512<const N: usize>(lu: &mut Lu<N>) -> Result<(), FactorError> {
    lu.eliminate_with()
}

/// # Safety
/// The processor has AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn eliminate_256<const N: usize>(lu: &mut Lu<N>) -> Result<(), FactorError> {
    lu.eliminate_with()
}

fn add<const N: usize>(a: &mut Block<N>, b: &Block<N>) {
    for row in 0..N {
        for column in 0..N {
            a[row][column] += b[row][column];
        }
    }
}

#[inline(always)]
fn multiply<const N: usize>(a: &Block<N>, b: &Block<N>) -> Block<N> {
    let mut result = [[0.0; N]; N];
    for row in 0..N {
        for k in 0..N {
            for column in 0..N {
                result[row][column] = a[row][k].mul_add(b[k][column], result[row][column]);
            }
        }
    }
    result
}

#[inline(always)]
fn subtract_product<const N: usize>(target: &mut Block<N>, a: &Block<N>, b: &Block<N>) {
    for row in 0..N {
        let mut line = target[row];
        for k in 0..N {
            for column in 0..N {
                line[column] = (-a[row][k]).mul_add(b[k][column], line[column]);
            }
        }
        target[row] = line;
    }
}

fn subtract_image<const N: usize>(target: &mut [f64; N], a: &Block<N>, x: &[f64; N]) {
    for row in 0..N {
        for column in 0..N {
            target[row] -= a[row][column] * x[column];
        }
    }
}

/// By elimination with row exchanges; none if a pivot is zero or not finite.
fn invert<const N: usize>(mut a: Block<N>) -> Option<Block<N>> {
    let mut inverse = [[0.0; N]; N];
    for (k, row) in inverse.iter_mut().enumerate() {
        row[k] = 1.0;
    }
    for k in 0..N {
        let best = (k..N).reduce(|best, row| if a[row][k].abs() > a[best][k].abs() { row } else { best })?;
        a.swap(k, best);
        inverse.swap(k, best);
        let pivot = a[k][k];
        if pivot == 0.0 || !pivot.is_finite() {
            return None;
        }
        for column in 0..N {
            a[k][column] /= pivot;
            inverse[k][column] /= pivot;
        }
        for row in (0..N).filter(|&row| row != k) {
            let factor = a[row][k];
            for column in 0..N {
                a[row][column] -= factor * a[k][column];
                inverse[row][column] -= factor * inverse[k][column];
            }
        }
    }
    Some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::{DMatrix, DVector};
    use proptest::prelude::*;

    /// A random unsymmetric matrix with a strong diagonal on a random symmetric pattern, against a dense
    /// solution.
    fn check<const N: usize>(count: usize, edges: &[(usize, usize)], seed: u64) -> Result<(), TestCaseError> {
        let mut state = seed | 1;
        let mut number = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        let mut neighbours = vec![BTreeSet::new(); count];
        for &(i, j) in edges.iter().filter(|(i, j)| i != j) {
            neighbours[i % count].insert((j % count) as u32);
            neighbours[j % count].insert((i % count) as u32);
        }
        let mut entries = Vec::new();
        for (i, list) in neighbours.iter_mut().enumerate() {
            list.remove(&(i as u32));
            for &j in list.iter() {
                entries.push((i, j as usize, [[(); N]; N].map(|row| row.map(|_| number()))));
            }
            let mut block = [[(); N]; N].map(|row| row.map(|_| number()));
            for (k, row) in block.iter_mut().enumerate() {
                row[k] += 2.0 * count as f64;
            }
            entries.push((i, i, block));
        }
        let lists = neighbours.into_iter().map(|list| list.into_iter().collect()).collect();
        let pattern = Pattern::new(lists, count - count / 3, usize::MAX).unwrap();
        let lu = Lu::<N>::new(&pattern, entries.iter().copied()).unwrap();
        let mut dense = DMatrix::<f64>::zeros(count * N, count * N);
        for (i, j, block) in &entries {
            for row in 0..N {
                for column in 0..N {
                    dense[(i * N + row, j * N + column)] += block[row][column];
                }
            }
        }
        let mut values: Vec<[f64; N]> = (0..count).map(|_| [(); N].map(|_| number())).collect();
        let right = DVector::from_iterator(count * N, values.iter().flatten().copied());
        lu.solve(&mut values);
        let found = DVector::from_iterator(count * N, values.iter().flatten().copied());
        prop_assert!((dense * found - right).norm() < 1e-12);
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn solves_as_a_dense_matrix_would(
            count in 1usize..30, edges in prop::collection::vec((0usize..1000, 0usize..1000), 0..80), seed: u64
        ) {
            check::<1>(count, &edges, seed)?;
            check::<3>(count, &edges, seed)?;
        }
    }

    /// A saddle point: the multiplier has a zero on the diagonal and comes last.
    #[test]
    fn multipliers_come_last() {
        let neighbours = vec![vec![1], vec![0]];
        let entries = [(0, 0, [[0.0]]), (0, 1, [[1.0]]), (1, 0, [[1.0]]), (1, 1, [[2.0]])];
        let first = Pattern::new(neighbours.clone(), 2, 10).unwrap();
        assert_eq!(Lu::<1>::new(&first, entries.into_iter()).err(), Some(FactorError::Singular { node: 0 }));
        // Node 1 is the multiplier here.
        let entries = [(0, 0, [[2.0]]), (0, 1, [[1.0]]), (1, 0, [[1.0]]), (1, 1, [[0.0]])];
        let last = Pattern::new(neighbours, 1, 10).unwrap();
        let lu = Lu::<1>::new(&last, entries.into_iter()).unwrap();
        let mut x = [[3.0], [1.0]];
        lu.solve(&mut x);
        assert_eq!(x, [[1.0], [1.0]]);
    }

    /// A chain in the order of the least degree has no fill at all.
    #[test]
    fn a_chain_has_no_fill() {
        let count = 50u32;
        let neighbours = (0..count)
            .map(|i| [i.checked_sub(1), Some(i + 1)].into_iter().flatten().filter(|&j| j < count).collect())
            .collect();
        assert_eq!(
            Pattern::new(neighbours, count as usize, usize::MAX).unwrap().stored(),
            count as usize - 1
        );
    }

    #[test]
    fn too_large_is_said_before_the_work() {
        let full = (0..20u32).map(|i| (0..20).filter(|&j| j != i).collect()).collect();
        assert_eq!(Pattern::new(full, 20, 50), Err(FactorError::TooLarge { most: 50 }));
    }
}
