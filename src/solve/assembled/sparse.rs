//! Sparse matrices by rows, and how the other two usual storages become one.

use thiserror::Error;

/// A sparse matrix by rows: the entries of row `i` are `starts[i]..starts[i + 1]`, ascending by column, none
/// twice.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparse {
    pub rows: usize,
    pub columns: usize,
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
}

/// Why numbers are no matrix.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SparseError {
    #[error("has {found} starts for {lines} {what}, expected {}", lines + 1)]
    Starts { what: &'static str, lines: usize, found: usize },
    #[error("starts do not ascend from 0 to {entries}: start {place} is {value}")]
    Order { place: usize, value: i64, entries: usize },
    #[error("entry {entry} is in {what} {value}, expected 0 to {}", *most as i64 - 1)]
    Index { what: &'static str, entry: usize, value: i64, most: usize },
    #[error("entry {entry} is not a finite number")]
    NotFinite { entry: usize },
    #[error("is too large: {rows} x {columns}")]
    TooLarge { rows: usize, columns: usize },
}

impl Sparse {
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, starts: vec![0; rows + 1], indices: Vec::new(), values: Vec::new() }
    }

    /// From (row, column, value); what is given twice adds up, in the order given.
    ///
    /// Precondition: rows and columns lie inside.
    pub fn from_triplets(rows: usize, columns: usize, triplets: &[(u32, u32, f64)]) -> Self {
        let given: Vec<usize> = (0..triplets.len()).collect();
        let by_column = scattered(&given, columns, |entry| triplets[entry].1);
        let order = scattered(&by_column, rows, |entry| triplets[entry].0);
        let mut sparse = Self::zeros(rows, columns);
        let mut last = None;
        for entry in order {
            let (row, column, value) = triplets[entry];
            if last == Some((row, column)) {
                if let Some(sum) = sparse.values.last_mut() {
                    *sum += value;
                }
                continue;
            }
            last = Some((row, column));
            sparse.indices.push(column);
            sparse.values.push(value);
            sparse.starts[row as usize + 1] += 1;
        }
        for row in 0..rows {
            sparse.starts[row + 1] += sparse.starts[row];
        }
        sparse
    }

    /// From a storage by rows (`starts` of rows, `indices` of columns), checked.
    pub fn from_rows(
        rows: usize,
        columns: usize,
        starts: &[i32],
        indices: &[i32],
        values: &[f64],
    ) -> Result<Self, SparseError> {
        check_size(rows, columns)?;
        let lines = expand(rows, starts, values.len(), "rows")?;
        Self::checked(rows, columns, lines.into_iter().zip(indices.iter().map(|&index| index.into())), values)
    }

    /// From a storage by columns, checked.
    pub fn from_columns(
        rows: usize,
        columns: usize,
        starts: &[i32],
        indices: &[i32],
        values: &[f64],
    ) -> Result<Self, SparseError> {
        check_size(rows, columns)?;
        let lines = expand(columns, starts, values.len(), "columns")?;
        let pairs = indices.iter().zip(lines).map(|(&index, line)| (index.into(), line));
        Self::checked(rows, columns, pairs, values)
    }

    /// From rows, columns and values, checked.
    pub fn from_coordinates(
        rows: usize,
        columns: usize,
        row_of: &[i32],
        column_of: &[i32],
        values: &[f64],
    ) -> Result<Self, SparseError> {
        check_size(rows, columns)?;
        let pairs = row_of.iter().zip(column_of).map(|(&row, &column)| (row.into(), column.into()));
        Self::checked(rows, columns, pairs, values)
    }

    fn checked(
        rows: usize,
        columns: usize,
        pairs: impl Iterator<Item = (i64, i64)>,
        values: &[f64],
    ) -> Result<Self, SparseError> {
        let inside = |what, entry, value: i64, most: usize| match usize::try_from(value) {
            Ok(index) if index < most => Ok(index as u32),
            _ => Err(SparseError::Index { what, entry, value, most }),
        };
        let mut triplets = Vec::with_capacity(values.len());
        for (entry, ((row, column), &value)) in pairs.zip(values).enumerate() {
            if !value.is_finite() {
                return Err(SparseError::NotFinite { entry });
            }
            triplets.push((
                inside("row", entry, row, rows)?,
                inside("column", entry, column, columns)?,
                value,
            ));
        }
        Ok(Self::from_triplets(rows, columns, &triplets))
    }

    /// Entries that are stored.
    pub fn stored(&self) -> usize {
        self.values.len()
    }

    /// (column, value) of a row, ascending by column.
    pub fn row(&self, row: usize) -> impl ExactSizeIterator<Item = (usize, f64)> + Clone + '_ {
        let range = self.starts[row]..self.starts[row + 1];
        let indices = self.indices[range.clone()].iter().map(|&column| column as usize);
        indices.zip(self.values[range].iter().copied())
    }

    /// All entries as (row, column, value), row by row.
    pub fn triplets(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        (0..self.rows).flat_map(move |row| self.row(row).map(move |(column, value)| (row, column, value)))
    }

    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    pub fn values(&self) -> &[f64] {
        &self.values
    }

    pub fn transposed(&self) -> Self {
        let turned: Vec<_> =
            self.triplets().map(|(row, column, value)| (column as u32, row as u32, value)).collect();
        Self::from_triplets(self.columns, self.rows, &turned)
    }

    /// `y += A x`.
    pub fn multiply_add(&self, x: &[f64], y: &mut [f64]) {
        for (row, sum) in y.iter_mut().enumerate() {
            *sum += self.row(row).map(|(column, value)| value * x[column]).sum::<f64>();
        }
    }
}

/// Entries by place, those of one place in the order given: W of a large problem has millions of them.
fn scattered(entries: &[usize], places: usize, place: impl Fn(usize) -> u32) -> Vec<usize> {
    let mut next = vec![0; places + 1];
    for &entry in entries {
        next[place(entry) as usize + 1] += 1;
    }
    for place in 0..places {
        next[place + 1] += next[place];
    }
    let mut result = vec![0; entries.len()];
    for &entry in entries {
        let next = &mut next[place(entry) as usize];
        result[*next] = entry;
        *next += 1;
    }
    result
}

/// Indices are kept in 32 bits, as files have them.
fn check_size(rows: usize, columns: usize) -> Result<(), SparseError> {
    let most = i32::MAX as usize;
    if rows > most || columns > most { Err(SparseError::TooLarge { rows, columns }) } else { Ok(()) }
}

/// The line of each entry.
fn expand(lines: usize, starts: &[i32], entries: usize, what: &'static str) -> Result<Vec<i64>, SparseError> {
    if starts.len() != lines + 1 {
        return Err(SparseError::Starts { what, lines, found: starts.len() });
    }
    let mut last = 0;
    for (place, &start) in starts.iter().enumerate() {
        let wrong = i64::from(start) < last
            || (place == 0 && start != 0)
            || i64::from(start) > entries as i64
            || (place == lines && start as usize != entries);
        if wrong {
            return Err(SparseError::Order { place, value: start.into(), entries });
        }
        last = start.into();
    }
    let mut line_of = Vec::with_capacity(entries);
    for (line, pair) in starts.windows(2).enumerate() {
        line_of.extend(std::iter::repeat_n(line as i64, (pair[1] - pair[0]) as usize));
    }
    Ok(line_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_storages_give_one_matrix() {
        // [1 0 2; 0 3 0]
        let rows = Sparse::from_rows(2, 3, &[0, 2, 3], &[0, 2, 1], &[1.0, 2.0, 3.0]).unwrap();
        let columns = Sparse::from_columns(2, 3, &[0, 1, 2, 3], &[0, 1, 0], &[1.0, 3.0, 2.0]).unwrap();
        let loose =
            Sparse::from_coordinates(2, 3, &[1, 0, 0, 0], &[1, 2, 0, 2], &[3.0, 1.5, 1.0, 0.5]).unwrap();
        assert_eq!(rows, columns);
        assert_eq!(rows, loose);
        assert_eq!(rows.transposed().transposed(), rows);
        let mut y = [1.0, 0.0];
        rows.multiply_add(&[1.0, 2.0, 3.0], &mut y);
        assert_eq!(y, [8.0, 6.0]);
    }

    #[test]
    fn nonsense_is_refused() {
        let rows = |starts: &[i32], indices: &[i32], values: &[f64]| {
            Sparse::from_rows(2, 2, starts, indices, values).unwrap_err()
        };
        assert!(matches!(rows(&[0, 1], &[0], &[1.0]), SparseError::Starts { found: 2, .. }));
        assert!(matches!(rows(&[0, 2, 1], &[0], &[1.0]), SparseError::Order { place: 1, value: 2, .. }));
        assert!(matches!(rows(&[0, -1, 1], &[0], &[1.0]), SparseError::Order { value: -1, .. }));
        assert!(matches!(
            rows(&[0, 1, 1], &[2], &[1.0]),
            SparseError::Index { what: "column", value: 2, .. }
        ));
        assert!(matches!(rows(&[0, 1, 1], &[0], &[f64::NAN]), SparseError::NotFinite { entry: 0 }));
        let far = Sparse::from_coordinates(2, 2, &[-1], &[0], &[1.0]).unwrap_err();
        assert!(matches!(far, SparseError::Index { what: "row", value: -1, .. }));
    }
}
