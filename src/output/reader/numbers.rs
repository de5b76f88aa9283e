//! A column of numbers in the type in which a file holds them, so that nothing is lost or made up on the way.

use crate::output::error::OutputError;
use crate::output::hyperslab::{read_rows, row_count};
use hdf5::Dataset;
use hdf5::types::{FloatSize, IntSize, TypeDescriptor};
use std::ops::Range;
use std::path::Path;

#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    Single(Vec<f32>),
    Double(Vec<f64>),
    Integer(Vec<i64>),
    Unsigned(Vec<u64>),
}

impl Numbers {
    pub fn len(&self) -> usize {
        match self {
            Numbers::Single(values) => values.len(),
            Numbers::Double(values) => values.len(),
            Numbers::Integer(values) => values.len(),
            Numbers::Unsigned(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The nearest f64. Panics beyond the end, as indexing does.
    pub fn get(&self, index: usize) -> f64 {
        match self {
            Numbers::Single(values) => f64::from(values[index]),
            Numbers::Double(values) => values[index],
            Numbers::Integer(values) => values[index] as f64,
            Numbers::Unsigned(values) => values[index] as f64,
        }
    }

    /// The shortest text that reads back to the same bits of the same type.
    pub fn text(&self, index: usize) -> String {
        match self {
            Numbers::Single(values) => format!("{:?}", values[index]),
            Numbers::Double(values) => format!("{:?}", values[index]),
            Numbers::Integer(values) => values[index].to_string(),
            Numbers::Unsigned(values) => values[index].to_string(),
        }
    }

    /// Little-endian, as VTK and NumPy take them.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Numbers::Single(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Numbers::Double(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Numbers::Integer(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Numbers::Unsigned(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        }
    }

    /// An empty column of the same type.
    pub fn none(&self) -> Numbers {
        match self {
            Numbers::Single(_) => Numbers::Single(Vec::new()),
            Numbers::Double(_) => Numbers::Double(Vec::new()),
            Numbers::Integer(_) => Numbers::Integer(Vec::new()),
            Numbers::Unsigned(_) => Numbers::Unsigned(Vec::new()),
        }
    }

    /// Adds some values of another column; a column of another type is turned into reals first.
    pub fn extend(&mut self, other: &Numbers, range: Range<usize>) {
        match (&mut *self, other) {
            (Numbers::Single(all), Numbers::Single(more)) => all.extend(&more[range]),
            (Numbers::Double(all), Numbers::Double(more)) => all.extend(&more[range]),
            (Numbers::Integer(all), Numbers::Integer(more)) => all.extend(&more[range]),
            (Numbers::Unsigned(all), Numbers::Unsigned(more)) => all.extend(&more[range]),
            _ => {
                let mut all: Vec<f64> = (0..self.len()).map(|index| self.get(index)).collect();
                all.extend(range.map(|index| other.get(index)));
                *self = Numbers::Double(all);
            }
        }
    }

    /// Some rows of a dataset with `components` values in each (`None`: one dimension).
    pub(super) fn read(
        path: &Path,
        dataset: &Dataset,
        components: Option<usize>,
        rows: Range<u64>,
    ) -> Result<Numbers, OutputError> {
        let name = dataset.name();
        let kind = dataset.dtype().and_then(|kind| kind.to_descriptor());
        let kind = kind.map_err(OutputError::hdf5(path, format!("read the type of {name}")))?;
        match kind {
            TypeDescriptor::Float(FloatSize::U4) => {
                Ok(Numbers::Single(read_rows(path, dataset, components, rows)?))
            }
            TypeDescriptor::Float(FloatSize::U8) => {
                Ok(Numbers::Double(read_rows(path, dataset, components, rows)?))
            }
            TypeDescriptor::Integer(IntSize::U8) => {
                Ok(Numbers::Integer(read_rows(path, dataset, components, rows)?))
            }
            TypeDescriptor::Unsigned(IntSize::U8) => {
                Ok(Numbers::Unsigned(read_rows(path, dataset, components, rows)?))
            }
            other => {
                let problem = format!("{name} has numbers of the type {other}, which breccia does not write");
                Err(OutputError::damaged(path, problem))
            }
        }
    }

    /// All rows of a dataset with one or two dimensions, and the number of values in a row.
    pub(super) fn read_whole(path: &Path, dataset: &Dataset) -> Result<(Numbers, usize), OutputError> {
        let components = components(path, dataset)?;
        let rows = row_count(path, dataset, components)?;
        Ok((Numbers::read(path, dataset, components, 0..rows)?, components.unwrap_or(1)))
    }
}

/// Values in a row: none for a dataset of one dimension.
pub(super) fn components(path: &Path, dataset: &Dataset) -> Result<Option<usize>, OutputError> {
    let name = dataset.name();
    let shape = dataset.get_shape().map_err(OutputError::hdf5(path, format!("read the size of {name}")))?;
    match shape.as_slice() {
        [_] => Ok(None),
        [_, width] if *width > 0 => Ok(Some(*width)),
        _ => Err(OutputError::damaged(path, format!("{name} has the unexpected shape {shape:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_keep_every_bit_of_their_type() {
        let single = Numbers::Single(vec![0.1, f32::MIN_POSITIVE, -0.0, 16_777_217.0]);
        for index in 0..single.len() {
            let back: f32 = single.text(index).parse().unwrap();
            assert_eq!(f64::from(back).to_bits(), single.get(index).to_bits());
        }
        let double = Numbers::Double(vec![0.1 + 0.2, 5e-324, f64::NAN]);
        assert_eq!(double.text(0), "0.30000000000000004");
        assert_eq!(double.text(2), "NaN");
        assert_eq!(double.bytes()[..8], (0.1f64 + 0.2).to_le_bytes());
        assert_eq!(Numbers::Integer(vec![i64::MIN]).text(0), "-9223372036854775808");
    }

    #[test]
    fn columns_grow_and_mixed_ones_become_reals() {
        let mut all = Numbers::Integer(vec![1]);
        all.extend(&Numbers::Integer(vec![2, 3, 4]), 1..3);
        assert_eq!(all, Numbers::Integer(vec![1, 3, 4]));
        all.extend(&Numbers::Single(vec![0.5]), 0..1);
        assert_eq!(all, Numbers::Double(vec![1.0, 3.0, 4.0, 0.5]));
        assert!(all.none().is_empty());
    }
}
