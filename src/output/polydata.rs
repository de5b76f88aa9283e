//! Temporal PolyData in the VTKHDF layout, version 2.0, one part for each rank that began the file.
//!
//! ```text
//! /VTKHDF  @Version = {2, 0}  @Type = "PolyData"
//!   NumberOfPoints[parts]  Points[n, 3]  PointData/<array>
//!   {Vertices, Lines, Polygons, Strips}/{NumberOfCells, NumberOfConnectivityIds}[parts], Connectivity, Offsets
//!   Steps @NSteps  Values, PartOffsets, NumberOfParts, PointOffsets [steps]
//!     CellOffsets, ConnectivityIdOffsets [steps, 4]  PointDataOffsets/<array> [steps]
//! ```
//!
//! Every step names the rows where its parts, points, cells and arrays begin. What has not changed on any
//! rank since it was last written is not written again: the step points at the old rows. `NSteps` is raised
//! last, so a reader of a file whose writer was killed sees whole steps only.
//!
//! `Offsets` begins with one value that no step uses. VTK finds a part's offsets behind those of all parts
//! before, each one longer than its number of cells. VTK 9.3 takes the number of parts before from
//! `PartOffsets`; 9.4 to 9.7 count parts only until their cells add up to `CellOffsets`, and so stop short of
//! empty parts at the end of a step and read the wrong offsets, without a word. `CellOffsets` one larger than
//! any such sum makes both count alike.

//!
//! All steps have as many parts as the first: VTK (9.3 to 9.7) reads every step with the number of parts of
//! the first and leaves the others out, without a word. If more ranks continue a file, neighbours share a
//! part; if fewer, the last parts are empty.

use super::error::{FirstError, OutputError};
use super::hyperslab::{SharedFile, Storage, Table, read_all};
use super::image::Image;
use super::parts::{MOST_PARTS, Parts};
use super::piece::{Array, Piece, Precision, Values};
use super::ranks::{Rows, agree, gather, place};
use super::space;
use super::state::aside;
use decomposition::Comm;
use hdf5::types::FixedAscii;
use hdf5::{Attribute, Group, H5Type};
use std::borrow::Cow;
use std::path::Path;

/// The kinds of cells, in the order of the layout's tables of offsets.
const CELL_KINDS: [&str; 4] = ["Vertices", "Lines", "Polygons", "Strips"];
/// A table whose rows may be used by several steps.
struct Stream {
    table: Table,
    offsets: Table,
    fingerprint: Option<u128>,
    first_row: u64,
}

struct Topology {
    cells: Table,
    ids: Table,
    connectivity: Table,
    offsets: Table,
}

struct Tables {
    points: Stream,
    data: Vec<Stream>,
    point_counts: Table,
    topology: [Topology; 4],
    topology_fingerprint: Option<u128>,
    /// First row of the last written topology: parts, then cells and connectivity of each kind.
    topology_rows: (i64, [i64; 4], [i64; 4]),
    times: Table,
    part_offsets: Table,
    part_counts: Table,
    cell_offsets: Table,
    connectivity_offsets: Table,
}

pub(super) struct PolyDataFile {
    group: Group,
    step_count: Attribute,
    steps: u64,
    precision: Precision,
    compression: u8,
    arrays: Vec<Array>,
    /// Of every step.
    parts: usize,
    tables: Option<Tables>,
    spare: Option<Piece>,
    broken: bool,
    /// Whether this rank has to give the file its name, which it gets with its first step: nobody ever finds
    /// an empty one.
    to_be_named: bool,
    /// Last, because closing it closes what is in it.
    file: SharedFile,
}

/// [`PolyDataFile::create`] or [`PolyDataFile::open`].
pub(super) type Maker = fn(&Path, &dyn Comm, Vec<Array>, Precision, u8) -> Result<PolyDataFile, OutputError>;

impl PolyDataFile {
    /// Collective.
    pub fn create(
        path: &Path,
        comm: &dyn Comm,
        arrays: Vec<Array>,
        precision: Precision,
        compression: u8,
    ) -> Result<Self, OutputError> {
        let made = SharedFile::create_aside(path, comm).and_then(|file| {
            let (group, step_count) =
                header(&file).map_err(OutputError::hdf5(path, "write the VTKHDF header"))?;
            Ok((file, group, step_count))
        });
        let (file, group, step_count) = agree(comm, path, "create", made)?;
        let (parts, tables, broken, to_be_named) = (comm.size(), None, false, comm.rank() == 0);
        Ok(Self {
            file,
            group,
            step_count,
            steps: 0,
            precision,
            compression,
            arrays,
            parts,
            tables,
            spare: None,
            broken,
            to_be_named,
        })
    }

    /// Collective: opens a whole file in order to add steps to it; an error if it holds other arrays. The
    /// next step is written in full, whatever has not changed since the last one.
    pub fn open(
        path: &Path,
        comm: &dyn Comm,
        arrays: Vec<Array>,
        precision: Precision,
        compression: u8,
    ) -> Result<Self, OutputError> {
        let opened = SharedFile::open(path, comm).and_then(|file| {
            let (group, step_count, steps) =
                open_header(&file).map_err(OutputError::hdf5(path, "read the VTKHDF header"))?;
            let tables =
                if steps == 0 { None } else { Some(Tables::make(&file, &group, &arrays, precision, None)?) };
            let stored = group.group("PointData").and_then(|group| group.member_names());
            let stored = stored.map_err(OutputError::hdf5(path, "read the arrays"))?;
            let counted = tables.as_ref().map_or(0, |tables| tables.times.rows());
            if steps > 0 && (stored.len() != arrays.len() || counted != steps) {
                return Err(OutputError::damaged(path, "holds other arrays or steps than it should"));
            }
            let parts = match steps {
                0 => comm.size(),
                _ => read_all::<i64>(path, &group, "Steps/NumberOfParts", None)?
                    .first()
                    .and_then(|parts| usize::try_from(*parts).ok())
                    .filter(|parts| (1..=MOST_PARTS).contains(parts))
                    .ok_or_else(|| OutputError::damaged(path, "does not say how many parts it has"))?,
            };
            Ok((file, group, step_count, steps, parts, tables))
        });
        let (file, group, step_count, steps, parts, tables) = agree(comm, path, "open", opened)?;
        let (broken, to_be_named) = (false, false);
        Ok(Self {
            file,
            group,
            step_count,
            steps,
            precision,
            compression,
            arrays,
            parts,
            tables,
            spare: None,
            broken,
            to_be_named,
        })
    }

    /// Collective: what is needed to make the file again what it is now, however it is added to later and
    /// wherever a kill interrupts that. Rank 0 gets it.
    pub fn image(&mut self, comm: &dyn Comm) -> Result<Option<Image>, OutputError> {
        if self.broken {
            let problem = "cannot be continued after a restart: a step failed";
            return Err(OutputError::misuse(self.file.path(), problem));
        }
        let mut errors = FirstError::default();
        errors.keep(self.file.flush());
        errors.keep(self.name());
        let mut kept = Vec::new();
        for table in self.tables.iter_mut().flat_map(Tables::all) {
            kept.extend_from_slice(errors.keep(table.full_chunks()).unwrap_or_default());
        }
        let path = self.file.path();
        agree(comm, path, "flush", errors.into_result())?;
        let image = if comm.rank() == 0 { Image::take(path, kept).map(Some) } else { Ok(None) };
        agree(comm, path, "read", image)
    }

    /// An empty piece, to be filled and given to [`write`](Self::write). It has the room of the last one: a
    /// million points would otherwise be copied many times while their lists grow.
    pub fn piece(&mut self) -> Piece {
        let mut piece = self.spare.take().unwrap_or_else(|| Piece::new(self.precision, &self.arrays));
        piece.clear();
        piece
    }

    /// Number of whole steps in the file.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    pub fn was_collective(&self) -> bool {
        self.file.was_collective()
    }

    /// Collective: adds a step made of the pieces of all ranks, and flushes.
    ///
    /// After an error the file keeps the steps it had and takes no more, except when there was no space on
    /// the disk: then nothing was begun.
    pub fn write(&mut self, comm: &dyn Comm, time: f64, piece: Piece) -> Result<(), OutputError> {
        if self.broken {
            return Err(OutputError::misuse(self.file.path(), "no more steps: an earlier one failed"));
        }
        let result = self.try_write(comm, time, &piece);
        self.spare = Some(piece);
        let result = agree(comm, self.file.path(), "write a step", result);
        if result.is_ok() {
            self.broken = false;
        }
        result
    }

    /// Collective.
    pub fn close(mut self) -> Result<(), OutputError> {
        let named = self.file.flush().and_then(|()| self.name());
        let PolyDataFile { file, group, step_count, tables, .. } = self;
        drop((group, step_count, tables));
        file.close().and(named)
    }

    /// Gives the file its name, if it has none yet. What it holds has been flushed.
    fn name(&mut self) -> Result<(), OutputError> {
        if !std::mem::take(&mut self.to_be_named) {
            return Ok(());
        }
        let path = self.file.path();
        std::fs::rename(aside(path), path).map_err(OutputError::io(path, "name"))
    }

    fn try_write(&mut self, comm: &dyn Comm, time: f64, piece: &Piece) -> Result<(), OutputError> {
        let fingerprints = Fingerprints::of(piece);
        let changed = self.tables.as_ref().map_or(u64::MAX, |tables| fingerprints.changes(tables));
        let mut own = [0u64; 10];
        (own[0], own[1]) = (piece.point_count(), changed);
        for (kind, cells) in piece.cells.iter().enumerate() {
            own[2 + kind] = cells.count();
            own[6 + kind] = cells.connectivity.len() as u64;
        }
        let all = gather(comm, own);
        let changed = all.iter().fold(0, |bits, counts| bits | counts[1]);
        let points: u64 = all.iter().map(|counts| counts[0]).sum();
        let ids: u64 = all.iter().flat_map(|counts| &counts[2..]).sum();
        let columns: usize = self.arrays.iter().map(|array| array.components).sum();
        space::require(comm, self.file.path(), 8 * (points * (3 + columns as u64) + ids))?;
        // From here on a failure leaves rows that no later step can count on.
        self.broken = true;
        let made = match self.tables.take() {
            Some(tables) => Ok(tables),
            None => {
                let layout = Some(Layout { compression: self.compression, all: &all, parts: self.parts });
                Tables::make(&self.file, &self.group, &self.arrays, self.precision, layout)
            }
        };
        let tables =
            self.tables.insert(agree(comm, self.file.path(), "create the datasets of a step", made)?);
        let mut errors = FirstError::default();
        let parts = Parts { all: &all, count: self.parts };
        let mut step = Step { file: &self.file, comm, parts, errors: &mut errors };
        if changed & 1 != 0 {
            step.topology(tables, piece);
        }
        let points = place(&all, comm.rank(), 0);
        step.stream(&mut tables.points, points, &piece.points, changed & 2 != 0);
        for (bit, (stream, values)) in tables.data.iter_mut().zip(&piece.data).enumerate() {
            step.stream(stream, points, values, changed & (4 << bit) != 0);
        }
        step.offsets(tables, time);
        fingerprints.remember(tables);
        // Rows reach the file before the number that makes them visible to readers.
        errors.keep(self.file.flush());
        agree(comm, self.file.path(), "write a step", errors.into_result())?;
        self.steps += 1;
        let raised = self.step_count.write_scalar(&(self.steps as i64));
        let raised = raised.map_err(OutputError::hdf5(self.file.path(), "raise the number of steps"));
        self.file.flush().and(raised).and_then(|()| self.name())
    }
}

fn header(file: &SharedFile) -> hdf5::Result<(Group, Attribute)> {
    let group = file.root().create_group("VTKHDF")?;
    group.new_attr::<i64>().shape(2).create("Version")?.write_raw(&[2i64, 0])?;
    let kind = FixedAscii::<8>::from_ascii("PolyData").map_err(|error| error.to_string())?;
    group.new_attr::<FixedAscii<8>>().create("Type")?.write_scalar(&kind)?;
    for name in ["PointData", "Steps", "Steps/PointDataOffsets"].iter().chain(&CELL_KINDS) {
        group.create_group(name)?;
    }
    let step_count = group.group("Steps")?.new_attr::<i64>().create("NSteps")?;
    step_count.write_scalar(&0i64)?;
    Ok((group, step_count))
}

fn open_header(file: &SharedFile) -> hdf5::Result<(Group, Attribute, u64)> {
    let group = file.root().group("VTKHDF")?;
    let step_count = group.group("Steps")?.attr("NSteps")?;
    let steps = step_count.read_scalar::<i64>()?;
    Ok((group, step_count, steps.max(0) as u64))
}

/// Hashes of what a rank adds, to find what need not be written again.
struct Fingerprints {
    topology: u128,
    points: u128,
    data: Vec<u128>,
}

impl Fingerprints {
    fn of(piece: &Piece) -> Self {
        Self {
            topology: piece.topology_fingerprint(),
            points: piece.points.fingerprint(),
            data: piece.data.iter().map(Values::fingerprint).collect(),
        }
    }

    /// Bit 0: the topology; bit 1: the points; from bit 2: the arrays.
    fn changes(&self, tables: &Tables) -> u64 {
        let mut bits = u64::from(tables.topology_fingerprint != Some(self.topology));
        bits |= u64::from(tables.points.fingerprint != Some(self.points)) << 1;
        for (bit, (stream, fingerprint)) in tables.data.iter().zip(&self.data).enumerate() {
            bits |= u64::from(stream.fingerprint != Some(*fingerprint)) << (bit + 2);
        }
        bits
    }

    fn remember(self, tables: &mut Tables) {
        tables.topology_fingerprint = Some(self.topology);
        tables.points.fingerprint = Some(self.points);
        for (stream, fingerprint) in tables.data.iter_mut().zip(self.data) {
            stream.fingerprint = Some(fingerprint);
        }
    }
}

/// One step being written: every call is made by every rank, whatever failed before.
struct Step<'a> {
    file: &'a SharedFile,
    comm: &'a dyn Comm,
    parts: Parts<'a>,
    errors: &'a mut FirstError,
}

impl Step<'_> {
    fn append(&mut self, table: &mut Table, rows: Rows, values: &[i64]) {
        self.errors.keep(table.append(self.file, rows, values));
    }

    fn on_root(&mut self, table: &mut Table, values: &[i64]) {
        self.rows_on_root(table, values, 1);
    }

    fn rows_on_root(&mut self, table: &mut Table, values: &[i64], rows: usize) {
        let rows = Rows::only_on_root(self.comm, rows as u64);
        let values = if rows.own > 0 { values } else { &[] };
        self.append(table, rows, values);
    }

    fn topology(&mut self, tables: &mut Tables, piece: &Piece) {
        let (rank, parts) = (self.comm.rank(), self.parts);
        tables.topology_rows.0 = tables.point_counts.rows() as i64;
        self.rows_on_root(&mut tables.point_counts, &parts.sums(0), parts.count);
        let points_before = parts.before(rank, 0) as i64;
        for (kind, (topology, cells)) in tables.topology.iter_mut().zip(&piece.cells).enumerate() {
            if topology.offsets.rows() == 0 {
                self.on_root(&mut topology.offsets, &[0]);
            }
            // A step finds its offsets at cell offset + part offset, since each part has one offset more than
            // cells.
            tables.topology_rows.1[kind] = (topology.offsets.rows() - topology.cells.rows()) as i64;
            tables.topology_rows.2[kind] = topology.connectivity.rows() as i64;
            self.rows_on_root(&mut topology.cells, &parts.sums(2 + kind), parts.count);
            self.rows_on_root(&mut topology.ids, &parts.sums(6 + kind), parts.count);
            // Points and offsets count from the beginning of the part.
            let ids = place(parts.all, rank, 6 + kind);
            let connectivity = shifted(&cells.connectivity, points_before);
            self.append(&mut topology.connectivity, ids, &connectivity);
            let rows = parts.offsets(rank, 2 + kind);
            let first = usize::from(!parts.is_first(rank));
            let mut offsets = shifted(&cells.offsets[first..], parts.before(rank, 6 + kind) as i64);
            if offsets.len() as u64 != rows.own {
                offsets.to_mut().resize(rows.own as usize, 0);
            }
            self.append(&mut topology.offsets, rows, &offsets);
        }
    }

    fn stream(&mut self, stream: &mut Stream, rows: Rows, values: &Values, changed: bool) {
        if changed {
            stream.first_row = stream.table.rows();
            let written = match values {
                Values::Single(values) => stream.table.append(self.file, rows, values),
                Values::Double(values) => stream.table.append(self.file, rows, values),
                Values::Integer(values) => stream.table.append(self.file, rows, values),
            };
            self.errors.keep(written);
        }
        let first_row = stream.first_row as i64;
        self.on_root(&mut stream.offsets, &[first_row]);
    }

    fn offsets(&mut self, tables: &mut Tables, time: f64) {
        let (parts, cells, connectivity) = tables.topology_rows;
        let count = self.parts.count as i64;
        let rows = Rows::only_on_root(self.comm, 1);
        let times = if rows.own == 1 { &[time][..] } else { &[] };
        self.errors.keep(tables.times.append(self.file, rows, times));
        self.on_root(&mut tables.part_offsets, &[parts]);
        self.on_root(&mut tables.part_counts, &[count]);
        self.on_root(&mut tables.cell_offsets, &cells);
        self.on_root(&mut tables.connectivity_offsets, &connectivity);
    }
}

/// The same numbers, each larger by `shift`.
fn shifted(values: &[i64], shift: i64) -> Cow<'_, [i64]> {
    if shift == 0 { Cow::Borrowed(values) } else { values.iter().map(|value| value + shift).collect() }
}

/// What decides how tables are stored: the counts of the first step give the size of the chunks.
#[derive(Clone, Copy)]
struct Layout<'a> {
    compression: u8,
    all: &'a [[u64; 10]],
    parts: usize,
}

/// Creates a table, or opens it if nothing is said about its storage.
fn table<T: H5Type>(
    file: &SharedFile,
    group: &Group,
    name: &str,
    width: Option<usize>,
    storage: Option<Storage>,
) -> Result<Table, OutputError> {
    match storage {
        Some(storage) => Table::create::<T>(file, group, name, width, storage),
        None => Table::open::<T>(file, group, name, width),
    }
}

impl Tables {
    fn all(&mut self) -> Vec<&mut Table> {
        let streams = std::iter::once(&mut self.points).chain(&mut self.data);
        let streams = streams.flat_map(|stream| [&mut stream.table, &mut stream.offsets]);
        let topology = self
            .topology
            .iter_mut()
            .flat_map(|kind| [&mut kind.cells, &mut kind.ids, &mut kind.connectivity, &mut kind.offsets]);
        let steps = [
            &mut self.point_counts,
            &mut self.times,
            &mut self.part_offsets,
            &mut self.part_counts,
            &mut self.cell_offsets,
            &mut self.connectivity_offsets,
        ];
        streams.chain(topology).chain(steps).collect()
    }

    /// Collective: creates the tables; without a layout, opens them.
    fn make(
        file: &SharedFile,
        group: &Group,
        arrays: &[Array],
        precision: Precision,
        layout: Option<Layout>,
    ) -> Result<Self, OutputError> {
        let all = layout.map_or(&[][..], |layout| layout.all);
        let total = |k: usize| all.iter().map(|counts| counts[k]).sum::<u64>();
        let parts = layout.map_or(0, |layout| layout.parts as u64);
        let storage =
            |typical_rows| layout.map(|layout| Storage { typical_rows, compression: layout.compression });
        let integers = |name: &str, width: Option<usize>, rows: u64| {
            table::<i64>(file, group, name, width, storage(rows))
        };
        // A row or a few each step: not worth compressing, which would make HDF5 read and write a whole chunk
        // for each.
        let few = |name: &str, width: Option<usize>, rows: u64| {
            let plain = storage(rows).map(|storage| Storage { compression: 0, ..storage });
            table::<i64>(file, group, name, width, plain)
        };
        let reals = |name: &str, width: Option<usize>, rows: u64| match precision {
            Precision::Single => table::<f32>(file, group, name, width, storage(rows)),
            Precision::Double => table::<f64>(file, group, name, width, storage(rows)),
        };
        let stream = |table: Table, offsets: &str| {
            let offsets = few(offsets, None, 1)?;
            Ok::<_, OutputError>(Stream { table, offsets, fingerprint: None, first_row: 0 })
        };
        let mut data = Vec::new();
        for Array { name, components, integer } in arrays {
            let width = (*components > 1).then_some(*components);
            let (path, offsets) = (format!("PointData/{name}"), format!("Steps/PointDataOffsets/{name}"));
            let table =
                if *integer { integers(&path, width, total(0)) } else { reals(&path, width, total(0)) }?;
            data.push(stream(table, &offsets)?);
        }
        let topology = |kind: usize| {
            let name = CELL_KINDS[kind];
            Ok::<_, OutputError>(Topology {
                cells: few(&format!("{name}/NumberOfCells"), None, parts)?,
                ids: few(&format!("{name}/NumberOfConnectivityIds"), None, parts)?,
                connectivity: integers(&format!("{name}/Connectivity"), None, total(6 + kind))?,
                offsets: integers(&format!("{name}/Offsets"), None, total(2 + kind) + parts)?,
            })
        };
        Ok(Self {
            points: stream(reals("Points", Some(3), total(0))?, "Steps/PointOffsets")?,
            data,
            point_counts: few("NumberOfPoints", None, parts)?,
            topology: [topology(0)?, topology(1)?, topology(2)?, topology(3)?],
            topology_fingerprint: None,
            topology_rows: (0, [0; 4], [0; 4]),
            times: table::<f64>(
                file,
                group,
                "Steps/Values",
                None,
                storage(1).map(|storage| Storage { compression: 0, ..storage }),
            )?,
            part_offsets: few("Steps/PartOffsets", None, 1)?,
            part_counts: few("Steps/NumberOfParts", None, 1)?,
            cell_offsets: few("Steps/CellOffsets", Some(4), 1)?,
            connectivity_offsets: few("Steps/ConnectivityIdOffsets", Some(4), 1)?,
        })
    }
}
