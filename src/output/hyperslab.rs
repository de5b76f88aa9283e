//! Tables in HDF5 files that all ranks extend together: the one mechanism under frames, contacts, series and
//! state.
//!
//! A *table* is a chunked dataset of rows that can grow. [`Table::append`] is collective: every rank gives
//! its rows (maybe none), they follow each other in rank order. With several ranks the file is opened through
//! MPI-IO and the transfer is collective, which the high-level `hdf5` crate does not offer: it passes
//! `H5P_DEFAULT` to `H5Dwrite`. Reading is independent: each rank opens the file for itself and reads the
//! rows it wants.

use super::error::OutputError;
use super::ranks::Rows;
use super::state::aside;
use decomposition::Comm;
use hdf5::dataset::{AllocTime, FillTime};
use hdf5::plist::file_access::{
    CacheDecreaseMode, CacheIncreaseMode, FlashIncreaseMode, MetadataCacheConfig,
};
use hdf5::{Dataset, Datatype, File, FileBuilder, Group, H5Type, h5check};
use hdf5_sys::h5d::{H5Dget_chunk_info_by_coord, H5Dget_space, H5Dread, H5Dset_extent, H5Dwrite};
use hdf5_sys::h5i::{H5Idec_ref, hid_t};
use hdf5_sys::h5p::{H5FD_mpio_xfer_t, H5P_CLS_DATASET_XFER, H5P_DEFAULT, H5Pcreate, H5Pset_dxpl_mpio};
use hdf5_sys::h5s::{H5S_SELECT_SET, H5Screate_simple, H5Sselect_hyperslab, H5Sselect_none};
use std::cell::Cell;
use std::ops::Range;
use std::path::{Path, PathBuf};

unsafe extern "C" {
    // Missing from hdf5-metno-sys 0.12. Both answers are 0 when the last transfer with this list was
    // collective.
    fn H5Pget_mpio_no_collective_cause(
        list: hid_t,
        local: *mut u32,
        global: *mut u32,
    ) -> hdf5_sys::h5::herr_t;
}

/// An HDF5 identifier that is given back when dropped.
struct Id(hid_t);

impl Drop for Id {
    fn drop(&mut self) {
        hdf5::sync::sync(|| {
            // SAFETY: the identifier was returned to us by HDF5 and is given back once.
            unsafe { H5Idec_ref(self.0) }
        });
    }
}

/// A file that all ranks write together.
pub(super) struct SharedFile {
    file: File,
    path: PathBuf,
    /// The collective transfer list, if there are several ranks.
    transfer: Option<Id>,
    /// Why transfers were not collective, all causes so far.
    causes: Cell<u32>,
}

/// Metadata stay in memory until the file is closed. HDF5 ages them out by counts of accesses, which differ
/// from rank to rank, and reads them again collectively: a rank that still had an object header would not
/// take part, and all would wait for ever.
fn keep_metadata() -> MetadataCacheConfig {
    MetadataCacheConfig {
        evictions_enabled: false,
        incr_mode: CacheIncreaseMode::Off,
        flash_incr_mode: FlashIncreaseMode::Off,
        decr_mode: CacheDecreaseMode::Off,
        ..Default::default()
    }
}

impl SharedFile {
    /// Collective: creates or replaces `path`. A user block (a multiple of 512 bytes, or 0) precedes the HDF5
    /// data.
    pub fn create(path: &Path, comm: &dyn Comm, user_block: u64) -> Result<Self, OutputError> {
        Self::make(path, comm, "create", |options| {
            if user_block > 0 {
                options.with_fcpl(|list| list.userblock(user_block));
            }
            options.create(path)
        })
    }

    /// Collective: creates or replaces the file [`aside`] of `path`, which it speaks of under the name it
    /// will have.
    pub fn create_aside(path: &Path, comm: &dyn Comm) -> Result<Self, OutputError> {
        let created = Self::create(&aside(path), comm, 0)?;
        Ok(Self { path: path.to_path_buf(), ..created })
    }

    /// Collective: opens a file in order to add to it.
    pub fn open(path: &Path, comm: &dyn Comm) -> Result<Self, OutputError> {
        Self::make(path, comm, "open", |options| options.open_rw(path))
    }

    fn make(
        path: &Path,
        comm: &dyn Comm,
        action: &str,
        make: impl FnOnce(&mut FileBuilder) -> hdf5::Result<File>,
    ) -> Result<Self, OutputError> {
        hdf5::silence_errors(true);
        let raw = match (comm.size(), comm.raw()) {
            (1, _) => None,
            (_, Some(raw)) => Some(raw),
            (ranks, None) => return Err(OutputError::NoMpi { path: path.to_path_buf(), ranks }),
        };
        let mut options = File::with_options();
        if let Some(raw) = raw {
            options.with_fapl(|list| list.mpio(raw, None).mdc_config(&keep_metadata()));
        }
        let file = make(&mut options).map_err(OutputError::hdf5(path, action))?;
        let transfer = raw.map(|_| collective_transfer()).transpose();
        let transfer = transfer.map_err(OutputError::hdf5(path, "prepare collective writing"))?;
        Ok(Self { file, path: path.to_path_buf(), transfer, causes: Cell::new(0) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn root(&self) -> &Group {
        &self.file
    }

    /// Collective.
    pub fn flush(&self) -> Result<(), OutputError> {
        self.file.flush().map_err(OutputError::hdf5(&self.path, "flush"))
    }

    /// Collective.
    pub fn close(self) -> Result<(), OutputError> {
        drop(self.transfer);
        self.file.close().map_err(OutputError::hdf5(&self.path, "close"))
    }

    /// Whether every transfer so far was collective (always so on one rank).
    pub fn was_collective(&self) -> bool {
        self.causes.get() == 0
    }

    fn transfer(&self) -> hid_t {
        self.transfer.as_ref().map_or(H5P_DEFAULT, |list| list.0)
    }

    fn note_cause(&self) {
        let Some(list) = &self.transfer else { return };
        let (mut local, mut global) = (0u32, 0u32);
        // SAFETY: a live transfer list and two integers of the type in HDF5's header.
        let code =
            hdf5::sync::sync(|| unsafe { H5Pget_mpio_no_collective_cause(list.0, &mut local, &mut global) });
        let unknown = if code < 0 { u32::MAX } else { 0 };
        self.causes.set(self.causes.get() | local | global | unknown);
    }
}

fn collective_transfer() -> hdf5::Result<Id> {
    hdf5::sync::sync(|| {
        // SAFETY: the class is HDF5's own constant; the list is released by `Id`.
        let list = Id(h5check(unsafe { H5Pcreate(*H5P_CLS_DATASET_XFER) })?);
        // SAFETY: `list` is a live data transfer list.
        h5check(unsafe { H5Pset_dxpl_mpio(list.0, H5FD_mpio_xfer_t::H5FD_MPIO_COLLECTIVE) })?;
        Ok(list)
    })
}

/// How the rows of a table are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storage {
    /// Rows that are likely to come at once: decides the size of a chunk.
    pub typical_rows: u64,
    /// Deflate level 1–9, 0 for none.
    pub compression: u8,
}

/// Chunks hold one batch of rows if they can, but at least a page and at most 1 MiB, so that neither many
/// small steps nor one large one makes HDF5 handle many chunks.
fn chunk_rows(row_bytes: usize, typical_rows: u64) -> usize {
    let (least, most) = (4096 / row_bytes, (1 << 20) / row_bytes);
    usize::try_from(typical_rows)
        .unwrap_or(most)
        .checked_next_power_of_two()
        .unwrap_or(most)
        .clamp(least.max(1), most.max(1))
}

/// A growing dataset; `components` values in each row. One-dimensional if made with `components = None`.
pub(super) struct Table {
    dataset: Dataset,
    path: PathBuf,
    kind: Datatype,
    components: Option<usize>,
    rows: u64,
    chunk_rows: u64,
    /// Where the chunks that are full stand in the file, in the order of their rows: address and size in
    /// bytes.
    full_chunks: Vec<[u64; 2]>,
}

impl Table {
    /// Collective: a table that is there already.
    pub fn open<T: H5Type>(
        file: &SharedFile,
        parent: &Group,
        name: &str,
        components: Option<usize>,
    ) -> Result<Self, OutputError> {
        let dataset = open(file.path(), parent, name)?;
        let rows = row_count(file.path(), &dataset, components)?;
        let error = || OutputError::hdf5(file.path(), format!("open the dataset {name}"));
        let kind = Datatype::from_type::<T>().map_err(error())?;
        if dataset.dtype().map_err(error())? != kind {
            return Err(OutputError::damaged(file.path(), format!("{name} has another number type")));
        }
        let Some(chunk_rows) = dataset.chunk().and_then(|chunk| chunk.first().copied()) else {
            return Err(OutputError::damaged(file.path(), format!("{name} cannot grow")));
        };
        let path = file.path().to_path_buf();
        let chunk_rows = (chunk_rows as u64).max(1);
        Ok(Self { dataset, path, kind, components, rows, chunk_rows, full_chunks: Vec::new() })
    }

    /// Collective.
    pub fn create<T: H5Type>(
        file: &SharedFile,
        parent: &Group,
        name: &str,
        components: Option<usize>,
        storage: Storage,
    ) -> Result<Self, OutputError> {
        let error = || OutputError::hdf5(file.path(), format!("create the dataset {name}"));
        let width = components.unwrap_or(1).max(1);
        let chunk = chunk_rows(width * size_of::<T>(), storage.typical_rows);
        // Space as soon as a table grows, as several ranks need it, also in files that one rank begins and
        // several continue: HDF5 keeps with the dataset how it is done. Rows are written right after, so
        // nothing need be filled in before; but a compressed chunk that was never filled cannot be read, and
        // adding to it fails.
        let builder = parent.new_dataset::<T>().alloc_time(Some(AllocTime::Early));
        let builder = match storage.compression {
            0 => builder.fill_time(FillTime::Never),
            level => builder.shuffle().deflate(level.min(9)),
        };
        let dataset = match components {
            None => builder.chunk(chunk).shape(0..).create(name),
            Some(_) => builder.chunk((chunk, width)).shape((0.., width)).create(name),
        };
        let dataset = dataset.map_err(error())?;
        let kind = Datatype::from_type::<T>().map_err(error())?;
        let (path, chunk_rows) = (file.path().to_path_buf(), chunk as u64);
        Ok(Self { dataset, path, kind, components, rows: 0, chunk_rows, full_chunks: Vec::new() })
    }

    /// Where the rows stand that no later `append` touches: address and size of each full chunk. Every rank
    /// asks, after a flush.
    pub fn full_chunks(&mut self) -> Result<&[[u64; 2]], OutputError> {
        let full = self.rows / self.chunk_rows;
        for chunk in self.full_chunks.len() as u64..full {
            let first = [chunk * self.chunk_rows, 0];
            let (mut mask, mut address, mut size) = (0u32, 0u64, 0u64);
            let asked = hdf5::sync::sync(|| {
                // SAFETY: a live chunked dataset of one or two dimensions, and places for the three answers.
                h5check(unsafe {
                    H5Dget_chunk_info_by_coord(
                        self.dataset.id(),
                        first.as_ptr(),
                        &mut mask,
                        &mut address,
                        &mut size,
                    )
                })
            });
            asked.map_err(OutputError::hdf5(&self.path, format!("find the rows of {}", self.name())))?;
            if address == u64::MAX {
                return Err(OutputError::damaged(&self.path, format!("{} has a hole", self.name())));
            }
            self.full_chunks.push([address, size]);
        }
        Ok(&self.full_chunks)
    }

    /// Rows of all ranks so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn name(&self) -> String {
        self.dataset.name()
    }

    /// Collective: adds `rows.total` rows, of which `values` are this rank's.
    ///
    /// A rank whose values do not fit still takes part, with nothing, so that the others do not wait for it.
    pub fn append<T: H5Type>(
        &mut self,
        file: &SharedFile,
        rows: Rows,
        values: &[T],
    ) -> Result<(), OutputError> {
        let width = self.components.unwrap_or(1);
        let right_type = Datatype::from_type::<T>().is_ok_and(|kind| kind == self.kind);
        let fits = right_type && values.len() as u64 == rows.own * width as u64;
        if rows.total > 0 {
            let first = self.rows + rows.before;
            let selected = first..first + if fits { rows.own } else { 0 };
            self.rows += rows.total;
            let written = self.write(file, selected, values);
            file.note_cause();
            written.map_err(OutputError::hdf5(&self.path, format!("write to {}", self.name())))?;
        }
        if fits {
            return Ok(());
        }
        let problem = format!("{} values do not fill {} rows of {}", values.len(), rows.own, self.name());
        Err(OutputError::misuse(&self.path, problem))
    }

    fn write<T: H5Type>(&self, file: &SharedFile, rows: Range<u64>, values: &[T]) -> hdf5::Result<()> {
        let extent = [self.rows, self.components.unwrap_or(1) as u64];
        hdf5::sync::sync(|| {
            // SAFETY: the dataset is live and has one or two dimensions; `extent` has two entries.
            h5check(unsafe { H5Dset_extent(self.dataset.id(), extent.as_ptr()) })?;
            let (memory, target) = select(&self.dataset, self.components, rows)?;
            let (kind, list) = (self.kind.id(), file.transfer());
            // SAFETY: `values` has the type `kind` and, checked by `append`, as many elements as `memory`
            // selects.
            h5check(unsafe {
                H5Dwrite(self.dataset.id(), kind, memory.0, target.0, list, values.as_ptr().cast())
            })?;
            Ok(())
        })
    }
}

/// The memory space and the file space for some rows of a dataset with one or (`components`) two dimensions.
fn select(dataset: &Dataset, components: Option<usize>, rows: Range<u64>) -> hdf5::Result<(Id, Id)> {
    let dimensions = if components.is_some() { 2 } else { 1 };
    let count = [rows.end - rows.start, components.unwrap_or(1) as u64];
    let room = [count[0].max(1), count[1]];
    let start = [rows.start, 0];
    // SAFETY: live identifiers, arrays with at least `dimensions` entries; the spaces are released by `Id`.
    unsafe {
        let target = Id(h5check(H5Dget_space(dataset.id()))?);
        let memory = Id(h5check(H5Screate_simple(dimensions, room.as_ptr(), std::ptr::null()))?);
        if count[0] == 0 {
            h5check(H5Sselect_none(target.0))?;
            h5check(H5Sselect_none(memory.0))?;
        } else {
            let (start, count) = (start.as_ptr(), count.as_ptr());
            let no_stride = std::ptr::null();
            h5check(H5Sselect_hyperslab(target.0, H5S_SELECT_SET, start, no_stride, count, no_stride))?;
        }
        Ok((memory, target))
    }
}

/// Number of rows of a dataset that should have `components` values in each row (`None`: one dimension).
pub(super) fn row_count(
    path: &Path,
    dataset: &Dataset,
    components: Option<usize>,
) -> Result<u64, OutputError> {
    let name = dataset.name();
    let shape = dataset.get_shape().map_err(OutputError::hdf5(path, format!("read the size of {name}")))?;
    match (shape.as_slice(), components) {
        ([rows], None) => Ok(*rows as u64),
        ([rows, width], Some(components)) if *width == components => Ok(*rows as u64),
        _ => Err(OutputError::damaged(path, format!("{name} has the unexpected shape {shape:?}"))),
    }
}

/// Reads some rows, independently of other ranks. The stored type must be `T` itself.
pub(super) fn read_rows<T: H5Type + Copy + Default>(
    path: &Path,
    dataset: &Dataset,
    components: Option<usize>,
    rows: Range<u64>,
) -> Result<Vec<T>, OutputError> {
    let name = dataset.name();
    let there = row_count(path, dataset, components)?;
    if rows.start > rows.end || rows.end > there {
        let problem = format!("{name} has {there} rows; rows {}..{} were wanted", rows.start, rows.end);
        return Err(OutputError::damaged(path, problem));
    }
    let error = || OutputError::hdf5(path, format!("read {name}"));
    let kind = Datatype::from_type::<T>().map_err(error())?;
    if dataset.dtype().map_err(error())? != kind {
        return Err(OutputError::damaged(path, format!("{name} has an unexpected number type")));
    }
    let length = (rows.end - rows.start) as usize * components.unwrap_or(1);
    let mut values = Vec::new();
    if values.try_reserve_exact(length).is_err() {
        return Err(OutputError::damaged(path, format!("{name} is too large for this machine's memory")));
    }
    values.resize(length, T::default());
    if length == 0 {
        return Ok(values);
    }
    hdf5::sync::sync(|| {
        let (memory, source) = select(dataset, components, rows)?;
        // SAFETY: `values` has the type `kind` and as many elements as `memory` selects.
        h5check(unsafe {
            H5Dread(dataset.id(), kind.id(), memory.0, source.0, H5P_DEFAULT, values.as_mut_ptr().cast())
        })
    })
    .map_err(error())?;
    Ok(values)
}

/// Reads a whole dataset.
pub(super) fn read_all<T: H5Type + Copy + Default>(
    path: &Path,
    group: &Group,
    name: &str,
    components: Option<usize>,
) -> Result<Vec<T>, OutputError> {
    let dataset = open(path, group, name)?;
    let rows = row_count(path, &dataset, components)?;
    read_rows(path, &dataset, components, 0..rows)
}

pub(super) fn open(path: &Path, group: &Group, name: &str) -> Result<Dataset, OutputError> {
    group.dataset(name).map_err(OutputError::hdf5(path, format!("open the dataset {name}")))
}
