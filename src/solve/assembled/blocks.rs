//! The Delassus operator `W` in blocks of 3 × 3, one block for each pair of contacts that see each other.
//!
//! Off-diagonal blocks stand row by row, each by columns padded to four numbers, so that a block times an
//! impulse is three multiplications and additions of vectors of four. The diagonal blocks stand apart: a
//! Gauss–Seidel visit leaves them out.

use super::sparse::Sparse;
use crate::geometry::{Mat3, Vec3};

/// Columns of a block, the fourth entry of each zero.
type Columns = [[f64; 4]; 3];

#[derive(Clone, Debug, PartialEq)]
pub struct BlockMatrix {
    starts: Vec<u32>,
    columns: Vec<u32>,
    blocks: Vec<Columns>,
    diagonal: Vec<Mat3>,
}

impl BlockMatrix {
    /// `matrix` is square with `dimension` (2 or 3) rows for each contact. In two dimensions a second tangent
    /// is added that is coupled to nothing and as mobile as the first: without a drive it never gets an
    /// impulse.
    pub fn new(matrix: &Sparse, dimension: usize) -> Self {
        let contacts = matrix.rows / dimension;
        let mut result = Self {
            starts: vec![0],
            columns: Vec::new(),
            blocks: Vec::new(),
            diagonal: vec![Mat3::zeros(); contacts],
        };
        let mut place = vec![usize::MAX; contacts];
        for contact in 0..contacts {
            let first = result.columns.len();
            let rows = || (0..dimension).flat_map(|axis| matrix.row(contact * dimension + axis));
            let mut others: Vec<usize> = rows().map(|(column, _)| column / dimension).collect();
            others.sort_unstable();
            others.dedup();
            for other in others.into_iter().filter(|&other| other != contact) {
                place[other] = result.columns.len();
                result.columns.push(other as u32);
                result.blocks.push([[0.0; 4]; 3]);
            }
            for axis in 0..dimension {
                for (column, value) in matrix.row(contact * dimension + axis) {
                    let (other, along) = (column / dimension, column % dimension);
                    if other == contact {
                        result.diagonal[contact][(axis, along)] = value;
                    } else {
                        result.blocks[place[other]][along][axis] = value;
                    }
                }
            }
            if dimension == 2 {
                let tangential = result.diagonal[contact][(1, 1)];
                result.diagonal[contact][(2, 2)] = tangential;
            }
            debug_assert!(result.columns[first..].is_sorted());
            result.starts.push(result.columns.len() as u32);
        }
        result
    }

    pub fn contacts(&self) -> usize {
        self.diagonal.len()
    }

    /// Blocks, those of the diagonal included.
    pub fn stored(&self) -> usize {
        self.blocks.len() + self.diagonal.len()
    }

    pub fn diagonal(&self, contact: usize) -> &Mat3 {
        &self.diagonal[contact]
    }

    /// (other contact, block) of a row, without the diagonal, ascending.
    pub fn others(&self, contact: usize) -> impl Iterator<Item = (usize, Mat3)> + '_ {
        let range = self.range(contact);
        self.columns[range.clone()]
            .iter()
            .zip(&self.blocks[range])
            .map(|(&other, block)| (other as usize, Mat3::from_fn(|row, column| block[column][row])))
    }

    fn range(&self, contact: usize) -> std::ops::Range<usize> {
        self.starts[contact] as usize..self.starts[contact + 1] as usize
    }

    /// `start + Σ_{β ≠ α} W_αβ r_β`, in registers of four numbers, which the compiler does not find by itself
    /// since it sees that the fourth is not used (twice the time on a tower of 570 contacts). Nothing is
    /// fused: the same bits as [`Self::gather`].
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn gather_avx2(&self, contact: usize, start: &Vec3, impulses: &[[f64; 3]]) -> Vec3 {
        use std::arch::x86_64::{
            _mm256_add_pd, _mm256_loadu_pd, _mm256_mul_pd, _mm256_set1_pd, _mm256_setr_pd, _mm256_setzero_pd,
            _mm256_storeu_pd,
        };
        let range = self.range(contact);
        let mut sums =
            [_mm256_setr_pd(start.x, start.y, start.z, 0.0), _mm256_setzero_pd(), _mm256_setzero_pd()];
        for (&other, block) in self.columns[range.clone()].iter().zip(&self.blocks[range]) {
            let impulse = &impulses[other as usize];
            for (sum, (column, &factor)) in sums.iter_mut().zip(block.iter().zip(impulse)) {
                // SAFETY: `column` is an array of four numbers.
                let column = unsafe { _mm256_loadu_pd(column.as_ptr()) };
                *sum = _mm256_add_pd(*sum, _mm256_mul_pd(column, _mm256_set1_pd(factor)));
            }
        }
        let sum = _mm256_add_pd(_mm256_add_pd(sums[0], sums[1]), sums[2]);
        let mut result = [0.0; 4];
        // SAFETY: `result` is an array of four numbers.
        unsafe { _mm256_storeu_pd(result.as_mut_ptr(), sum) };
        Vec3::new(result[0], result[1], result[2])
    }

    /// `start + Σ_{β ≠ α} W_αβ r_β`.
    #[inline(always)]
    pub fn gather(&self, contact: usize, start: &Vec3, impulses: &[[f64; 3]]) -> Vec3 {
        let range = self.range(contact);
        // Three sums, one for each column: additions do not wait for each other.
        let mut sums = [[start.x, start.y, start.z, 0.0], [0.0; 4], [0.0; 4]];
        for (&other, block) in self.columns[range.clone()].iter().zip(&self.blocks[range]) {
            let impulse = &impulses[other as usize];
            for (sum, (column, &factor)) in sums.iter_mut().zip(block.iter().zip(impulse)) {
                for axis in 0..4 {
                    sum[axis] += column[axis] * factor;
                }
            }
        }
        Vec3::from_fn(|axis, _| (sums[0][axis] + sums[1][axis]) + sums[2][axis])
    }

    /// `u = q + W r`.
    pub fn velocities(&self, free: &[Vec3], impulses: &[[f64; 3]], velocities: &mut [Vec3]) {
        for (contact, velocity) in velocities.iter_mut().enumerate() {
            let own = self.diagonal[contact] * Vec3::from(impulses[contact]);
            *velocity = self.gather(contact, &free[contact], impulses) + own;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_agree_with_the_sparse_matrix() {
        for dimension in [2, 3] {
            let (contacts, size) = (5, 5 * dimension);
            let mut triplets = Vec::new();
            for row in 0..size {
                for column in 0..size {
                    if (row * 7 + column * 11) % 5 < 3 || row == column {
                        triplets.push((
                            row as u32,
                            column as u32,
                            ((row * 31 + column * 17) % 23) as f64 - 9.5,
                        ));
                    }
                }
            }
            let sparse = Sparse::from_triplets(size, size, &triplets);
            let blocks = BlockMatrix::new(&sparse, dimension);
            let x: Vec<f64> = (0..size).map(|k| (k as f64 * 0.7).sin()).collect();
            let mut expected = vec![0.5; size];
            sparse.multiply_add(&x, &mut expected);
            let lift = |x: &[f64], contact: usize| {
                Vec3::from_fn(|axis, _| if axis < dimension { x[contact * dimension + axis] } else { 0.0 })
            };
            let impulses: Vec<[f64; 3]> = (0..contacts).map(|contact| lift(&x, contact).into()).collect();
            let free: Vec<Vec3> = (0..contacts).map(|contact| lift(&vec![0.5; size], contact)).collect();
            let mut velocities = vec![Vec3::zeros(); contacts];
            blocks.velocities(&free, &impulses, &mut velocities);
            for (contact, velocity) in velocities.iter().enumerate() {
                assert!((velocity - lift(&expected, contact)).norm() < 1e-12);
            }
        }
    }
}
