//! What one rank adds to one step of a frame file: points, cells and arrays on the points, as columns of
//! numbers.

use xxhash_rust::xxh3::xxh3_128;

crate::words::choices! {
    /// How real numbers are stored.
    #[derive(Default)]
    pub enum Precision {
        #[default]
        Single = "f32", "single precision";
        Double = "f64", "double precision";
    }
}

/// Places in [`Piece::cells`], in the order of the layout's tables of offsets; strips are the fourth.
pub(super) const VERTICES: usize = 0;
pub(super) const LINES: usize = 1;
pub(super) const POLYGONS: usize = 2;

/// A column of numbers, all of one type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Values {
    Single(Vec<f32>),
    Double(Vec<f64>),
    Integer(Vec<i64>),
}

impl Values {
    fn integers() -> Self {
        Values::Integer(Vec::new())
    }

    fn reals(precision: Precision) -> Self {
        match precision {
            Precision::Single => Values::Single(Vec::new()),
            Precision::Double => Values::Double(Vec::new()),
        }
    }

    /// Adds a real number; an integer column takes its whole part.
    pub fn push(&mut self, value: f64) {
        match self {
            Values::Single(values) => values.push(value as f32),
            Values::Double(values) => values.push(value),
            Values::Integer(values) => values.push(value as i64),
        }
    }

    /// Adds an integer; a column of reals takes the nearest.
    pub fn push_integer(&mut self, value: i64) {
        match self {
            Values::Integer(values) => values.push(value),
            _ => self.push(value as f64),
        }
    }

    pub fn extend(&mut self, more: &[f64]) {
        match self {
            Values::Single(values) => values.extend(more.iter().map(|value| *value as f32)),
            Values::Double(values) => values.extend(more),
            Values::Integer(values) => values.extend(more.iter().map(|value| *value as i64)),
        }
    }

    pub(super) fn fingerprint(&self) -> u128 {
        match self {
            Values::Single(values) => xxh3_128(bytes(values)),
            Values::Double(values) => xxh3_128(bytes(values)),
            Values::Integer(values) => xxh3_128(bytes(values)),
        }
    }
}

/// A type of number without padding.
trait Number {}
impl Number for f32 {}
impl Number for f64 {}
impl Number for i64 {}

fn bytes<T: Number>(values: &[T]) -> &[u8] {
    // SAFETY: numbers have no padding, any byte may be read, and the length is that of the slice.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// An array on the points.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub name: &'static str,
    pub components: usize,
    pub integer: bool,
}

/// Cells of one kind, as VTK keeps them: the points of all cells in a row, and where each cell's begin.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cells {
    pub(super) connectivity: Vec<i64>,
    pub(super) offsets: Vec<i64>,
}

impl Default for Cells {
    fn default() -> Self {
        Self { connectivity: Vec::new(), offsets: vec![0] }
    }
}

impl Cells {
    pub fn push(&mut self, points: impl IntoIterator<Item = i64>) {
        self.connectivity.extend(points);
        self.offsets.push(self.connectivity.len() as i64);
    }

    pub(super) fn count(&self) -> u64 {
        self.offsets.len() as u64 - 1
    }
}

/// What one rank adds to one step.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub points: Values,
    pub cells: [Cells; 4],
    /// One for each array of the file, a row for each point.
    pub data: Vec<Values>,
    point_count: u64,
}

impl Piece {
    pub fn new(precision: Precision, arrays: &[Array]) -> Self {
        let column =
            |array: &Array| if array.integer { Values::integers() } else { Values::reals(precision) };
        Self {
            points: Values::reals(precision),
            cells: Default::default(),
            data: arrays.iter().map(column).collect(),
            point_count: 0,
        }
    }

    /// Empties it and keeps its room.
    pub fn clear(&mut self) {
        for values in std::iter::once(&mut self.points).chain(&mut self.data) {
            match values {
                Values::Single(values) => values.clear(),
                Values::Double(values) => values.clear(),
                Values::Integer(values) => values.clear(),
            }
        }
        for cells in &mut self.cells {
            cells.connectivity.clear();
            cells.offsets.truncate(1);
        }
        self.point_count = 0;
    }

    /// Adds a point and returns its number. Its row in every data array is for the caller to add.
    pub fn point(&mut self, position: &crate::geometry::Vec3) -> i64 {
        self.points.extend(position.as_slice());
        self.point_count += 1;
        self.point_count as i64 - 1
    }

    pub fn point_count(&self) -> u64 {
        self.point_count
    }

    /// Equal for pieces with as many points and the same cells.
    pub(super) fn topology_fingerprint(&self) -> u128 {
        let mut parts = vec![self.point_count as i64];
        for cells in &self.cells {
            let both = [xxh3_128(bytes(&cells.connectivity)), xxh3_128(bytes(&cells.offsets))];
            parts.extend(both.iter().flat_map(|hash| [*hash as i64, (*hash >> 64) as i64]));
        }
        xxh3_128(bytes(&parts))
    }
}
