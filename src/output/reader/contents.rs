//! What an HDF5 file holds, whoever wrote it: every dataset with its type, size and compression.

use super::open_file;
use crate::output::error::OutputError;
use hdf5::filters::Filter;
use hdf5::types::{FixedAscii, FloatSize, IntSize, TypeDescriptor, VarLenAscii, VarLenUnicode};
use hdf5::{Dataset, File, Group};
use serde::Serialize;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const HDF5_MAGIC: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
const STATE_MAGIC: &[u8; 13] = b"breccia state";
/// Groups inside groups deeper than this are not entered: a file may link to itself.
const DEEPEST: usize = 16;

/// Whether a file begins as HDF5 files do: a signature at 0, 512, 1024, 2048, …
pub fn is_hdf5(path: &Path) -> std::io::Result<bool> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    let mut at = 0;
    while at + 8 <= length {
        let mut eight = [0; 8];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut eight)?;
        if &eight == HDF5_MAGIC {
            return Ok(true);
        }
        at = if at == 0 { 512 } else { 2 * at };
    }
    Ok(false)
}

/// Whether a file begins as breccia's state files do.
pub fn is_state(path: &Path) -> std::io::Result<bool> {
    let mut start = Vec::new();
    std::fs::File::open(path)?.take(STATE_MAGIC.len() as u64).read_to_end(&mut start)?;
    Ok(start == STATE_MAGIC)
}

/// One dataset.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DatasetInfo {
    /// From the root, without a leading slash.
    pub name: String,
    /// `f64`, `i64`, …
    #[serde(rename = "type")]
    pub kind: String,
    pub shape: Vec<usize>,
    /// On the disk.
    pub bytes: u64,
    /// The same numbers without compression and without room to grow.
    pub bytes_unpacked: u64,
    /// `deflate 4`, or empty.
    pub compression: String,
}

pub struct Contents {
    file: File,
    /// Sorted by name.
    pub datasets: Vec<DatasetInfo>,
}

impl Contents {
    pub fn read(path: &Path) -> Result<Self, OutputError> {
        let file = open_file(path)?;
        let mut datasets = Vec::new();
        walk(&file, "", 0, &mut datasets).map_err(OutputError::hdf5(path, "list the contents"))?;
        datasets.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { file, datasets })
    }

    /// Whether there is a group or a dataset of that name.
    pub fn has(&self, name: &str) -> bool {
        self.file.link_exists(name)
    }

    pub fn dataset(&self, name: &str) -> Option<&DatasetInfo> {
        self.datasets.iter().find(|dataset| dataset.name == name)
    }

    /// A text attribute of a group; none if it is absent or no text.
    pub fn text_attribute(&self, group: &str, name: &str) -> Option<String> {
        let attribute = self.file.group(group).ok()?.attr(name).ok()?;
        let fixed = attribute.read_scalar::<FixedAscii<64>>().map(|text| text.as_str().to_string());
        let text = fixed.or_else(|_| attribute.read_scalar::<VarLenAscii>().map(|text| text.to_string()));
        text.or_else(|_| attribute.read_scalar::<VarLenUnicode>().map(|text| text.to_string())).ok()
    }
}

fn walk(group: &Group, prefix: &str, depth: usize, all: &mut Vec<DatasetInfo>) -> hdf5::Result<()> {
    if depth > DEEPEST {
        return Ok(());
    }
    for name in group.member_names()? {
        let full = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        if let Ok(dataset) = group.dataset(&name) {
            all.push(describe(full, &dataset)?);
        } else if let Ok(inner) = group.group(&name) {
            walk(&inner, &full, depth + 1, all)?;
        }
    }
    Ok(())
}

fn describe(name: String, dataset: &Dataset) -> hdf5::Result<DatasetInfo> {
    let kind = dataset.dtype()?;
    let shape = dataset.get_shape()?;
    let bytes_unpacked =
        shape.iter().fold(kind.size() as u64, |bytes, rows| bytes.saturating_mul(*rows as u64));
    let packing = dataset.filters().into_iter().find_map(|filter| match filter {
        Filter::Deflate(level) => Some(format!("deflate {level}")),
        Filter::Shuffle => None,
        other => Some(format!("{other:?}")),
    });
    Ok(DatasetInfo {
        name,
        kind: kind.to_descriptor().map_or("unknown".into(), |kind| type_name(&kind)),
        shape,
        bytes: dataset.storage_size(),
        bytes_unpacked,
        compression: packing.unwrap_or_default(),
    })
}

fn type_name(kind: &TypeDescriptor) -> String {
    let bits = |size: &IntSize| match size {
        IntSize::U1 => 8,
        IntSize::U2 => 16,
        IntSize::U4 => 32,
        IntSize::U8 => 64,
    };
    match kind {
        TypeDescriptor::Integer(size) => format!("i{}", bits(size)),
        TypeDescriptor::Unsigned(size) => format!("u{}", bits(size)),
        TypeDescriptor::Float(FloatSize::U4) => "f32".into(),
        TypeDescriptor::Float(FloatSize::U8) => "f64".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::samples::directory;

    #[test]
    fn signatures_are_found_behind_a_user_block() {
        let directory = directory("signature");
        let path = directory.join("file");
        let mut bytes = vec![0; 2048];
        std::fs::write(&path, &bytes).unwrap();
        assert!(!is_hdf5(&path).unwrap() && !is_state(&path).unwrap());
        bytes[1024..1032].copy_from_slice(HDF5_MAGIC);
        bytes[..13].copy_from_slice(STATE_MAGIC);
        std::fs::write(&path, &bytes).unwrap();
        assert!(is_hdf5(&path).unwrap() && is_state(&path).unwrap());
        std::fs::write(&path, b"br").unwrap();
        assert!(!is_hdf5(&path).unwrap() && !is_state(&path).unwrap());
        assert!(is_hdf5(&directory.join("absent")).is_err());
    }
}
