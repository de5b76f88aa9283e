//! Time series: named columns that grow by a row each step, in HDF5 and as a CSV twin.
//!
//! Rank 0 writes both by itself: the numbers are already the same on every rank, so there is nothing to collect. The
//! CSV file holds the shortest decimal numbers that read back to the same bits, and survives a kill at any moment with at most
//! a torn last line.

use super::error::OutputError;
use super::hyperslab::{SharedFile, Storage, Table};
use super::ranks::Rows;
use super::space;
use decomposition::{Comm, Solo};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Stored as i64; exact up to 2⁵³.
    Integer,
    Real,
    /// Three reals: x, y, z.
    Vector,
}

impl ColumnKind {
    fn width(self) -> usize {
        if self == ColumnKind::Vector { 3 } else { 1 }
    }
}

/// A column, stored as `/series/<name>`. The name may have groups: `force/left wall`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub kind: ColumnKind,
}

impl Column {
    pub fn integer(name: impl Into<String>) -> Self {
        Column { name: name.into(), kind: ColumnKind::Integer }
    }

    pub fn real(name: impl Into<String>) -> Self {
        Column { name: name.into(), kind: ColumnKind::Real }
    }

    pub fn vector(name: impl Into<String>) -> Self {
        Column { name: name.into(), kind: ColumnKind::Vector }
    }
}

/// The files of rank 0.
struct Files {
    tables: Vec<Table>,
    csv: File,
    csv_path: PathBuf,
    /// Last, because closing it closes the tables.
    shared: SharedFile,
}

pub struct Series {
    columns: Vec<Column>,
    width: usize,
    /// Rows that are not in the files yet, one after the other.
    pending: Vec<f64>,
    batch_rows: usize,
    rows: u64,
    path: PathBuf,
    files: Option<Files>,
}

impl Series {
    /// Creates or replaces `path` (HDF5) and its twin with the extension `csv`. Rows reach the files in batches of
    /// `batch_rows`.
    pub fn create(
        path: &Path,
        comm: &dyn Comm,
        columns: Vec<Column>,
        batch_rows: usize,
    ) -> Result<Self, OutputError> {
        check_names(path, &columns)?;
        let width = columns.iter().map(|column| column.kind.width()).sum();
        let files = if comm.rank() == 0 { Some(Files::create(path, &columns)) } else { None };
        let made = files.transpose();
        let files = super::ranks::agree(comm, path, "create", made)?;
        let path = path.to_path_buf();
        let batch_rows = batch_rows.max(1);
        Ok(Self { columns, width, pending: Vec::new(), batch_rows, rows: 0, path, files })
    }

    /// Numbers in a row: one for each number column, three for each vector, in the order of the columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows given so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds a row. Not collective; ranks other than 0 only count.
    pub fn append(&mut self, row: &[f64]) -> Result<(), OutputError> {
        if row.len() != self.width {
            let problem = format!("a row has {} numbers, the columns need {}", row.len(), self.width);
            return Err(OutputError::misuse(&self.path, problem));
        }
        self.rows += 1;
        if self.files.is_none() {
            return Ok(());
        }
        self.pending.extend(row);
        if self.pending.len() >= self.batch_rows * self.width { self.flush() } else { Ok(()) }
    }

    /// Writes what is pending. Not collective. Rows that could not be written are lost, not tried again.
    pub fn flush(&mut self) -> Result<(), OutputError> {
        let pending = std::mem::take(&mut self.pending);
        let Some(files) = &mut self.files else { return Ok(()) };
        if pending.is_empty() {
            return Ok(());
        }
        space::require_here(&self.path, 16 * pending.len() as u64)?;
        // The text first: it stays readable whatever happens to the other.
        let text = files.write_csv(&self.columns, &pending, self.width);
        files.write_tables(&self.columns, &pending, self.width).and(text)
    }

    /// Writes what is pending and closes the files.
    pub fn close(mut self) -> Result<(), OutputError> {
        let flushed = self.flush();
        let Some(Files { shared, tables, .. }) = self.files.take() else { return flushed };
        drop(tables);
        shared.close().and(flushed)
    }
}

impl Drop for Series {
    fn drop(&mut self) {
        // A run that ends early still keeps its rows; who wants the error calls `close`.
        let _ = self.flush();
    }
}

/// A name must not be empty, taken, or stand for a group of another column.
fn check_names(path: &Path, columns: &[Column]) -> Result<(), OutputError> {
    let names: BTreeSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let good = |name: &str| {
        let plain = name.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        let groups = name.match_indices('/').map(|(end, _)| &name[..end]);
        plain && !name.contains('\0') && groups.into_iter().all(|group| !names.contains(group))
    };
    if let Some(bad) = names.iter().find(|name| !good(name)) {
        return Err(OutputError::misuse(path, format!("a column cannot be named {bad:?}")));
    }
    if columns.is_empty() || names.len() < columns.len() {
        return Err(OutputError::misuse(path, "columns must be there and have names of their own"));
    }
    Ok(())
}

impl Files {
    fn create(path: &Path, columns: &[Column]) -> Result<Self, OutputError> {
        let shared = SharedFile::create(path, &Solo, 0)?;
        let storage = Storage { typical_rows: 1024, compression: 0 };
        let error = || OutputError::hdf5(path, "create the groups");
        let group = shared.root().create_group("series").map_err(error())?;
        let mut tables = Vec::new();
        for Column { name, kind } in columns {
            for (end, _) in name.match_indices('/') {
                if !group.link_exists(&name[..end]) {
                    group.create_group(&name[..end]).map_err(error())?;
                }
            }
            let table = match kind {
                ColumnKind::Integer => Table::create::<i64>(&shared, &group, name, None, storage),
                ColumnKind::Real => Table::create::<f64>(&shared, &group, name, None, storage),
                ColumnKind::Vector => Table::create::<f64>(&shared, &group, name, Some(3), storage),
            };
            tables.push(table?);
        }
        shared.flush()?;
        let csv_path = path.with_extension("csv");
        let mut csv = File::create(&csv_path).map_err(OutputError::io(&csv_path, "create"))?;
        let heading = heading(columns);
        csv.write_all(heading.as_bytes()).map_err(OutputError::io(&csv_path, "write"))?;
        Ok(Self { shared, tables, csv, csv_path })
    }

    fn write_csv(&mut self, columns: &[Column], pending: &[f64], width: usize) -> Result<(), OutputError> {
        let mut text = String::new();
        for row in pending.chunks_exact(width) {
            push_row(&mut text, columns, row);
        }
        // One call: a line is torn only if the system tears it.
        self.csv.write_all(text.as_bytes()).map_err(OutputError::io(&self.csv_path, "write"))
    }

    fn write_tables(&mut self, columns: &[Column], pending: &[f64], width: usize) -> Result<(), OutputError> {
        let count = (pending.len() / width) as u64;
        let rows = Rows { before: 0, own: count, total: count };
        let mut at = 0;
        for (column, table) in columns.iter().zip(&mut self.tables) {
            let cells = at..at + column.kind.width();
            at = cells.end;
            let values = pending.chunks_exact(width).flat_map(|row| &row[cells.clone()]);
            if column.kind == ColumnKind::Integer {
                let values: Vec<i64> = values.map(|&value| value as i64).collect();
                table.append(&self.shared, rows, &values)?;
            } else {
                let values: Vec<f64> = values.copied().collect();
                table.append(&self.shared, rows, &values)?;
            }
        }
        self.shared.flush()
    }
}

fn heading(columns: &[Column]) -> String {
    let mut names = Vec::new();
    for Column { name, kind } in columns {
        match kind {
            ColumnKind::Vector => names.extend(["x", "y", "z"].map(|axis| quoted(&format!("{name}/{axis}")))),
            _ => names.push(quoted(name)),
        }
    }
    names.join(",") + "\n"
}

/// As RFC 4180 wants it.
fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.into()
    }
}

fn push_row(text: &mut String, columns: &[Column], row: &[f64]) {
    let kinds = columns.iter().flat_map(|column| std::iter::repeat_n(column.kind, column.kind.width()));
    for (position, (kind, value)) in kinds.zip(row).enumerate() {
        let comma = if position > 0 { "," } else { "" };
        // Writing to a String cannot fail. `{:?}` is the shortest text that reads back to the same bits.
        let _ = match kind {
            ColumnKind::Integer => write!(text, "{comma}{}", *value as i64),
            _ => write!(text, "{comma}{value:?}"),
        };
    }
    text.push('\n');
}
