//! Small dense factorisations that allocate nothing after construction and always run in the same order.

use nalgebra::DMatrix;

/// Result of [`full_pivoting`]: row `rows[k]` was eliminated with column `columns[k]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pivots {
    pub rows: Vec<usize>,
    pub columns: Vec<usize>,
    /// Largest entry left in a row that found no pivot, relative to the largest of all; with its row.
    pub left_over: Option<(usize, f64)>,
}

/// Rank-revealing LU with full pivoting of `matrix`, which is destroyed.
///
/// Columns of class 0 are used up first, then class 1, and so on; columns without a class are never used.
/// Pivots below `tolerance` times the largest entry count as zero. Ties go to the lowest row, then the lowest
/// column.
pub(super) fn full_pivoting(matrix: &mut DMatrix<f64>, classes: &[Option<u8>], tolerance: f64) -> Pivots {
    let (m, n) = matrix.shape();
    let scale = (0..n).filter(|&j| classes[j].is_some()).map(|j| matrix.column(j).amax()).fold(0.0, f64::max);
    let mut pivots = Pivots { rows: Vec::new(), columns: Vec::new(), left_over: None };
    let (mut row_used, mut column_used) = (vec![false; m], vec![false; n]);
    let mut class = 0;
    while pivots.rows.len() < m && classes.iter().flatten().any(|&c| c >= class) {
        let (mut best, mut at) = (0.0, None);
        for i in (0..m).filter(|&i| !row_used[i]) {
            for j in (0..n).filter(|&j| !column_used[j] && classes[j] == Some(class)) {
                if matrix[(i, j)].abs() > best {
                    best = matrix[(i, j)].abs();
                    at = Some((i, j));
                }
            }
        }
        let Some((i, j)) = at.filter(|_| best > tolerance * scale) else {
            class += 1;
            continue;
        };
        row_used[i] = true;
        column_used[j] = true;
        for r in (0..m).filter(|&r| !row_used[r]) {
            let factor = matrix[(r, j)] / matrix[(i, j)];
            for c in (0..n).filter(|&c| !column_used[c] && classes[c].is_some()) {
                let correction = factor * matrix[(i, c)];
                matrix[(r, c)] -= correction;
            }
        }
        pivots.rows.push(i);
        pivots.columns.push(j);
    }
    for i in (0..m).filter(|&i| !row_used[i]) {
        let free = (0..n).filter(|&j| !column_used[j] && classes[j].is_some());
        let left = free.map(|j| matrix[(i, j)].abs()).fold(0.0, f64::max) / scale.max(f64::MIN_POSITIVE);
        if pivots.left_over.is_none_or(|(_, most)| left > most) {
            pivots.left_over = Some((i, left));
        }
    }
    pivots
}

/// LU with partial pivoting of a square matrix.
#[derive(Clone, Debug)]
pub(super) struct Lu {
    /// To be filled before `factor`.
    pub matrix: DMatrix<f64>,
    swaps: Vec<usize>,
}

impl Lu {
    pub fn new(n: usize) -> Self {
        Self { matrix: DMatrix::zeros(n, n), swaps: vec![0; n] }
    }

    /// Factorises in place; an exactly zero (or not finite) pivot is an error and names its column.
    pub fn factor(&mut self) -> Result<(), usize> {
        let n = self.swaps.len();
        for k in 0..n {
            let mut pivot = k;
            for i in k + 1..n {
                if self.matrix[(i, k)].abs() > self.matrix[(pivot, k)].abs() {
                    pivot = i;
                }
            }
            self.swaps[k] = pivot;
            self.matrix.swap_rows(k, pivot);
            let diagonal = self.matrix[(k, k)];
            if diagonal == 0.0 || !diagonal.is_finite() {
                return Err(k);
            }
            for i in k + 1..n {
                self.matrix[(i, k)] /= diagonal;
            }
            for j in k + 1..n {
                let head = self.matrix[(k, j)];
                if head != 0.0 {
                    for i in k + 1..n {
                        let correction = self.matrix[(i, k)] * head;
                        self.matrix[(i, j)] -= correction;
                    }
                }
            }
        }
        Ok(())
    }

    /// `x ← A⁻¹ x`
    pub fn solve(&self, x: &mut [f64]) {
        let n = self.swaps.len();
        for k in 0..n {
            x.swap(k, self.swaps[k]);
        }
        for k in 0..n {
            for i in k + 1..n {
                x[i] -= self.matrix[(i, k)] * x[k];
            }
        }
        for k in (0..n).rev() {
            x[k] /= self.matrix[(k, k)];
            for i in 0..k {
                x[i] -= self.matrix[(i, k)] * x[k];
            }
        }
    }

    /// `x ← A⁻ᵀ x`
    pub fn solve_transposed(&self, x: &mut [f64]) {
        let n = self.swaps.len();
        for k in 0..n {
            for i in 0..k {
                x[k] -= self.matrix[(i, k)] * x[i];
            }
            x[k] /= self.matrix[(k, k)];
        }
        for k in (0..n).rev() {
            for i in k + 1..n {
                x[k] -= self.matrix[(i, k)] * x[i];
            }
        }
        for k in (0..n).rev() {
            x.swap(k, self.swaps[k]);
        }
    }
}

/// Replaces the lower triangle of a symmetric matrix by its Cholesky factor; the first column without a
/// positive pivot is an error.
pub(super) fn cholesky(matrix: &mut DMatrix<f64>) -> Result<(), usize> {
    let n = matrix.nrows();
    for k in 0..n {
        // Columns left of k have already been subtracted from what follows.
        let (left, right) = matrix.as_mut_slice().split_at_mut((k + 1) * n);
        let column = &mut left[k * n..];
        let pivot = column[k];
        if !(pivot > 0.0 && pivot.is_finite()) {
            return Err(k);
        }
        let diagonal = pivot.sqrt();
        column[k] = diagonal;
        column[k + 1..].iter_mut().for_each(|entry| *entry /= diagonal);
        for (offset, other) in right.chunks_exact_mut(n).enumerate() {
            let j = k + 1 + offset;
            subtract(&mut other[j..], &column[j..], column[j]);
        }
    }
    Ok(())
}

/// `(L Lᵀ)⁻¹` from the factor of [`cholesky`], through `L⁻¹`, which is left in the lower triangle of `root`.
pub(super) fn cholesky_inverse(factor: &DMatrix<f64>, root: &mut DMatrix<f64>, inverse: &mut DMatrix<f64>) {
    let n = factor.nrows();
    root.fill_with_identity();
    for (first, x) in root.as_mut_slice().chunks_exact_mut(n.max(1)).enumerate() {
        for k in first..n {
            let lower = &factor.as_slice()[k * n..(k + 1) * n];
            x[k] /= lower[k];
            let head = x[k];
            subtract(&mut x[k + 1..], &lower[k + 1..], head);
        }
    }
    for j in 0..n {
        for i in j..n {
            let (a, b) = (&root.as_slice()[i * n + i..(i + 1) * n], &root.as_slice()[j * n + i..(j + 1) * n]);
            let entry = a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            inverse[(i, j)] = entry;
            inverse[(j, i)] = entry;
        }
    }
}

/// `target −= factor · source`
fn subtract(target: &mut [f64], source: &[f64], factor: f64) {
    for (t, s) in target.iter_mut().zip(source) {
        *t -= s * factor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::DVector;

    fn sample(rows: usize, columns: usize) -> DMatrix<f64> {
        DMatrix::from_fn(rows, columns, |i, j| ((i * i * 7 + i * j * 5 + j * 13 + 3) as f64 * 0.7).sin())
    }

    #[test]
    fn lu_solves_a_system_and_its_transpose() {
        for n in 1..7 {
            let matrix = sample(n, n);
            let wanted = DVector::from_fn(n, |i, _| i as f64 - 1.5);
            let mut lu = Lu::new(n);
            lu.matrix.copy_from(&matrix);
            lu.factor().expect("regular");
            let mut x = (&matrix * &wanted).as_slice().to_vec();
            lu.solve(&mut x);
            assert!((DVector::from_vec(x) - &wanted).amax() < 1e-11);
            let mut x = (matrix.transpose() * &wanted).as_slice().to_vec();
            lu.solve_transposed(&mut x);
            assert!((DVector::from_vec(x) - &wanted).amax() < 1e-11);
        }
    }

    #[test]
    fn lu_names_the_column_without_a_pivot() {
        let mut lu = Lu::new(3);
        lu.matrix.copy_from(&sample(3, 3));
        lu.matrix.column_mut(1).fill(0.0);
        assert_eq!(lu.factor(), Err(1));
    }

    #[test]
    fn cholesky_inverts_a_gram_matrix_and_refuses_an_indefinite_one() {
        let root = sample(5, 8);
        let gram = &root * root.transpose() + DMatrix::identity(5, 5) * 0.1;
        let wanted = DVector::from_fn(5, |i, _| (i as f64).cos());
        let mut factor = gram.clone();
        cholesky(&mut factor).expect("positive definite");
        let (mut root, mut inverse) = (DMatrix::zeros(5, 5), DMatrix::zeros(5, 5));
        cholesky_inverse(&factor, &mut root, &mut inverse);
        assert!((&inverse * &gram * &wanted - wanted).amax() < 1e-11);
        assert_eq!(inverse, inverse.transpose());
        let mut indefinite = gram;
        indefinite[(3, 3)] = -1.0;
        assert_eq!(cholesky(&mut indefinite), Err(3));
    }

    #[test]
    fn full_pivoting_finds_the_rank_and_respects_classes() {
        // Rank 3 by construction: 5 rows are combinations of 3.
        let matrix = sample(5, 3) * DMatrix::from_fn(3, 6, |i, j| ((i + 2) * (j + 1)) as f64 % 5.0 - 1.9);
        let rank = 3;
        let classes = vec![Some(0); 6];
        let pivots = full_pivoting(&mut matrix.clone(), &classes, 1e-10);
        assert_eq!(pivots.rows.len(), rank);
        let left = pivots.left_over.expect("two rows are redundant");
        assert!(left.1 < 1e-12);
        let block = DMatrix::from_fn(rank, rank, |i, j| matrix[(pivots.rows[i], pivots.columns[j])]);
        assert!(block.determinant().abs() > 1e-6);
        let mut classes = vec![Some(1); 6];
        classes[4] = Some(0);
        classes[2] = None;
        let pivots = full_pivoting(&mut matrix.clone(), &classes, 1e-10);
        assert_eq!(pivots.columns[0], 4, "the preferred column goes first");
        assert!(!pivots.columns.contains(&2), "a column without a class is never used");
    }
}
