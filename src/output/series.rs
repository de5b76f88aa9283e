//! Time series: named columns that grow by a row each step, in HDF5 and as a CSV twin.
//!
//! Rank 0 writes both by itself: the numbers are already the same on every rank, so there is nothing to
//! collect. The CSV file holds the shortest decimal numbers that read back to the same bits, and survives a
//! kill at any moment with at most a torn last line. So it is what a restart goes by: cut where the
//! checkpoint says, and the HDF5 file made anew from it.

use super::error::OutputError;
use super::hyperslab::{SharedFile, Storage, Table};
use super::ranks::Rows;
use super::space;
use super::state::aside;
use decomposition::{Comm, Solo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write as _};
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
    /// Bytes of whole rows in the text.
    csv_length: u64,
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

/// How far a series has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesPosition {
    pub rows: u64,
    /// Of the CSV file.
    pub bytes: u64,
}

/// Rows that wait at most while they cannot be written; beyond that the oldest are given up.
const MOST_WAITING_ROWS: usize = 1 << 16;

impl Series {
    /// Creates or replaces `path` (HDF5) and its twin with the extension `csv`. Rows reach the files in
    /// batches of `batch_rows`.
    pub fn create(
        path: &Path,
        comm: &dyn Comm,
        columns: Vec<Column>,
        batch_rows: usize,
    ) -> Result<Self, OutputError> {
        check_names(path, &columns)?;
        let files = if comm.rank() == 0 { Some(Files::create(path, &columns)) } else { None };
        let files = super::ranks::agree(comm, path, "create", files.transpose())?;
        Ok(Self::with(path, columns, batch_rows, 0, files))
    }

    /// Goes on where the files were at `position`, which rank 0 knows: what came later is cut off. An error
    /// if they have other columns.
    pub fn resume(
        path: &Path,
        comm: &dyn Comm,
        columns: Vec<Column>,
        batch_rows: usize,
        position: Option<SeriesPosition>,
    ) -> Result<Self, OutputError> {
        check_names(path, &columns)?;
        let missing = || OutputError::damaged(path, "the checkpoint does not say where it stood");
        let resume = || Files::resume(path, &columns, position.ok_or_else(missing)?).map(Some);
        let files = if comm.rank() == 0 { resume() } else { Ok(None) };
        let files = super::ranks::agree(comm, path, "continue", files)?;
        let mut rows = position.map_or(0, |position| position.rows).to_le_bytes().to_vec();
        comm.broadcast(0, &mut rows);
        let rows = u64::from_le_bytes(rows.try_into().unwrap_or([0; 8]));
        Ok(Self::with(path, columns, batch_rows, rows, files))
    }

    fn with(path: &Path, columns: Vec<Column>, batch_rows: usize, rows: u64, files: Option<Files>) -> Self {
        let width = columns.iter().map(|column| column.kind.width()).sum();
        let (path, batch_rows) = (path.to_path_buf(), batch_rows.max(1));
        Self { columns, width, pending: Vec::new(), batch_rows, rows, path, files }
    }

    /// Brings all rows to the disk and says how many there are. Not collective; none on ranks other than 0.
    pub fn position(&mut self) -> Result<Option<SeriesPosition>, OutputError> {
        self.flush()?;
        let Some(files) = &self.files else { return Ok(None) };
        files.csv.sync_data().map_err(OutputError::io(&files.csv_path, "force to the disk"))?;
        Ok(Some(SeriesPosition { rows: self.rows, bytes: files.csv_length }))
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

    /// Writes what is pending. Not collective. Rows that the text could not take wait for the next time.
    pub fn flush(&mut self) -> Result<(), OutputError> {
        let Some(files) = &mut self.files else { return Ok(()) };
        if self.pending.is_empty() {
            return Ok(());
        }
        // The text first: it stays readable whatever happens to the other.
        let text = space::require_here(&self.path, 16 * self.pending.len() as u64)
            .and_then(|()| files.write_csv(&self.columns, &self.pending, self.width));
        if let Err(error) = text {
            let most = MOST_WAITING_ROWS * self.width;
            if self.pending.len() > most {
                self.rows -= ((self.pending.len() - most) / self.width) as u64;
                self.pending.drain(..self.pending.len() - most);
            }
            return Err(error);
        }
        let pending = std::mem::take(&mut self.pending);
        files.write_tables(&self.columns, &pending, self.width)
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
        let (shared, tables) = Self::create_tables(path, columns)?;
        let csv_path = path.with_extension("csv");
        let mut csv = File::create(aside(&csv_path)).map_err(OutputError::io(&csv_path, "create"))?;
        let heading = heading(columns);
        csv.write_all(heading.as_bytes()).map_err(OutputError::io(&csv_path, "write"))?;
        // Nobody ever finds an empty file under its name.
        for path in [path, &csv_path] {
            std::fs::rename(aside(path), path).map_err(OutputError::io(path, "name"))?;
        }
        let csv_length = heading.len() as u64;
        Ok(Self { shared, tables, csv, csv_path, csv_length })
    }

    fn resume(path: &Path, columns: &[Column], position: SeriesPosition) -> Result<Self, OutputError> {
        let csv_path = path.with_extension("csv");
        let mut csv = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&csv_path)
            .map_err(OutputError::io(&csv_path, "open"))?;
        let there = csv.metadata().map_err(OutputError::io(&csv_path, "read"))?.len();
        if there < position.bytes {
            let problem = format!("is {there} bytes long, it had {} at the checkpoint", position.bytes);
            return Err(OutputError::damaged(&csv_path, problem));
        }
        let (shared, tables) = Self::create_tables(path, columns)?;
        let reading = csv.try_clone().map_err(OutputError::io(&csv_path, "open"))?;
        let mut files = Self { shared, tables, csv_length: position.bytes, csv_path, csv: reading };
        let source = (&mut csv).take(position.bytes);
        files.copy_rows(BufReader::new(source), columns, position.rows)?;
        files.shared.flush()?;
        std::fs::rename(aside(path), path).map_err(OutputError::io(path, "name"))?;
        let cut = csv.set_len(position.bytes).and_then(|()| csv.seek(SeekFrom::Start(position.bytes)));
        cut.map_err(OutputError::io(&files.csv_path, "cut at the checkpoint"))?;
        files.csv = csv;
        Ok(files)
    }

    /// Fills the tables from the text.
    fn copy_rows(
        &mut self,
        mut text: impl BufRead,
        columns: &[Column],
        rows: u64,
    ) -> Result<(), OutputError> {
        let path = self.csv_path.clone();
        let heading = heading(columns);
        let mut found = vec![0; heading.len()];
        text.read_exact(&mut found).map_err(OutputError::io(&path, "read"))?;
        if found != heading.as_bytes() {
            return Err(OutputError::damaged(&path, "has other columns than this case"));
        }
        let width = columns.iter().map(|column| column.kind.width()).sum();
        let (mut batch, mut count) = (Vec::new(), 0);
        for line in text.lines() {
            let line = line.map_err(OutputError::io(&path, "read"))?;
            let cells = line.split(',').map(str::parse::<f64>);
            let row: Vec<f64> = cells
                .collect::<Result<_, _>>()
                .map_err(|_| OutputError::damaged(&path, format!("row {} is not of numbers", count + 1)))?;
            if row.len() != width {
                return Err(OutputError::damaged(&path, format!("row {} is torn", count + 1)));
            }
            batch.extend(row);
            count += 1;
            if count % 4096 == 0 {
                self.write_tables(columns, &batch, width)?;
                batch.clear();
            }
        }
        if count != rows {
            let problem = format!("has {count} rows where it had {rows} at the checkpoint");
            return Err(OutputError::damaged(&path, problem));
        }
        self.write_tables(columns, &batch, width)
    }

    fn create_tables(path: &Path, columns: &[Column]) -> Result<(SharedFile, Vec<Table>), OutputError> {
        let shared = SharedFile::create_aside(path, &Solo)?;
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
        Ok((shared, tables))
    }

    fn write_csv(&mut self, columns: &[Column], pending: &[f64], width: usize) -> Result<(), OutputError> {
        let mut text = String::new();
        for row in pending.chunks_exact(width) {
            push_row(&mut text, columns, row);
        }
        // One call: a line is torn only if the system tears it.
        let written = self.csv.write_all(text.as_bytes());
        if written.is_err() {
            // What came of it goes again, so that the next attempt does not leave a torn line in the middle.
            let _ = self.csv.set_len(self.csv_length);
            let _ = self.csv.seek(SeekFrom::Start(self.csv_length));
        } else {
            self.csv_length += text.len() as u64;
        }
        written.map_err(OutputError::io(&self.csv_path, "write"))
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
