//! NumPy's `.npz`: a ZIP archive, nothing compressed, of `.npy` files.
//!
//! An `.npy` file is a magic number, a version, the length of a header, the header as a Python dictionary
//! padded to a multiple of 64 bytes, and the numbers. The archive has, for each file, a local header and its
//! bytes; then the directory, one entry for each file; then its end record (PKWARE APPNOTE 4.3). Sizes and
//! offsets that need more than 32 bits stand in ZIP64 fields.

use super::rows::RowColumn;
use crate::output::reader::Numbers;
use std::io::{self, Write};

/// 1980-01-01 00:00 in DOS's format: the same bytes for the same numbers, whenever they are written.
const DATE: u16 = 1 << 5 | 1;
const BIG: u64 = u32::MAX as u64;

fn kind(values: &Numbers) -> &'static str {
    match values {
        Numbers::Single(_) => "<f4",
        Numbers::Double(_) => "<f8",
        Numbers::Integer(_) => "<i8",
        Numbers::Unsigned(_) => "<u8",
    }
}

/// The bytes of an `.npy` file.
fn npy(column: &RowColumn) -> Vec<u8> {
    let rows = column.values.len() / column.components.max(1);
    let shape = if column.components == 1 {
        format!("({rows},)")
    } else {
        format!("({rows}, {})", column.components)
    };
    let mut header =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': {shape}, }}", kind(&column.values));
    let used = 10 + header.len() + 1;
    header.push_str(&" ".repeat(used.next_multiple_of(64) - used));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(column.values.bytes());
    bytes
}

struct Entry {
    name: String,
    checksum: u32,
    size: u64,
    offset: u64,
}

impl Entry {
    /// What local header and directory entry have in common, from "version needed" on.
    fn common(&self, big: bool, extra: usize) -> Vec<u8> {
        let size = if big { u32::MAX } else { self.size as u32 };
        let mut bytes = Vec::new();
        // Version 4.5 for ZIP64; bit 11: the name is UTF-8; no compression.
        for word in [if big { 45 } else { 20 }, 1 << 11, 0, 0, DATE] {
            bytes.extend(u16::to_le_bytes(word));
        }
        for word in [self.checksum, size, size] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend((self.name.len() as u16).to_le_bytes());
        bytes.extend((extra as u16).to_le_bytes());
        bytes
    }

    fn local_header(&self) -> Vec<u8> {
        let big = self.size >= BIG;
        let mut bytes = b"PK\x03\x04".to_vec();
        bytes.extend(self.common(big, if big { 20 } else { 0 }));
        bytes.extend(self.name.as_bytes());
        if big {
            bytes.extend([1, 0, 16, 0]);
            bytes.extend([self.size, self.size].map(u64::to_le_bytes).concat());
        }
        bytes
    }

    fn directory_entry(&self) -> Vec<u8> {
        let big = self.size >= BIG || self.offset >= BIG;
        let mut bytes = b"PK\x01\x02\x2d\x00".to_vec();
        bytes.extend(self.common(big, if big { 28 } else { 0 }));
        bytes.extend([0; 10]);
        bytes.extend((if big { u32::MAX } else { self.offset as u32 }).to_le_bytes());
        bytes.extend(self.name.as_bytes());
        if big {
            bytes.extend([1, 0, 24, 0]);
            bytes.extend([self.size, self.size, self.offset].map(u64::to_le_bytes).concat());
        }
        bytes
    }
}

/// Writes an archive that `numpy.load` opens; names of columns become names of arrays.
pub fn write(columns: &[RowColumn], out: &mut dyn Write) -> io::Result<()> {
    let mut entries = Vec::new();
    let mut offset = 0u64;
    for column in columns {
        let bytes = npy(column);
        let name = format!("{}.npy", column.name);
        let entry = Entry { name, checksum: crc32fast::hash(&bytes), size: bytes.len() as u64, offset };
        let header = entry.local_header();
        out.write_all(&header)?;
        out.write_all(&bytes)?;
        offset += (header.len() + bytes.len()) as u64;
        entries.push(entry);
    }
    let directory: Vec<u8> = entries.iter().flat_map(Entry::directory_entry).collect();
    out.write_all(&directory)?;
    let (count, size) = (entries.len() as u64, directory.len() as u64);
    if offset + size >= BIG || count >= 0xffff {
        let mut end = b"PK\x06\x06".to_vec();
        end.extend(44u64.to_le_bytes());
        end.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        end.extend([count, count, size, offset].map(u64::to_le_bytes).concat());
        end.extend(b"PK\x06\x07\0\0\0\0");
        end.extend((offset + size).to_le_bytes());
        end.extend(1u32.to_le_bytes());
        out.write_all(&end)?;
    }
    let mut end = b"PK\x05\x06\0\0\0\0".to_vec();
    let short = |value: u64| value.min(0xffff) as u16;
    end.extend([short(count), short(count)].map(u16::to_le_bytes).concat());
    end.extend([size.min(BIG) as u32, offset.min(BIG) as u32].map(u32::to_le_bytes).concat());
    end.extend([0, 0]);
    out.write_all(&end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_layout_of_its_kind() {
        let columns = [
            RowColumn::new("id", 1, Numbers::Integer(vec![3, 4])),
            RowColumn::new("position", 3, Numbers::Single(vec![0.5; 6])),
        ];
        let mut bytes = Vec::new();
        write(&columns, &mut bytes).unwrap();
        assert_eq!(&bytes[..4], b"PK\x03\x04");
        // The first file's numbers begin at a multiple of 64 from its own start: 30 + 6 bytes of header, then
        // the file.
        let start = 30 + "id.npy".len();
        assert_eq!(&bytes[start..start + 6], b"\x93NUMPY");
        let length = u16::from_le_bytes([bytes[start + 8], bytes[start + 9]]) as usize;
        assert_eq!((10 + length) % 64, 0);
        let numbers = start + 10 + length;
        assert_eq!(bytes[numbers..numbers + 16], [3u64.to_le_bytes(), 4u64.to_le_bytes()].concat());
        let checksum = crc32fast::hash(&bytes[start..numbers + 16]);
        assert_eq!(bytes[14..18], checksum.to_le_bytes());
        // The end record counts two files and points at the directory.
        let end = bytes.len() - 22;
        assert_eq!(&bytes[end..end + 4], b"PK\x05\x06");
        assert_eq!(bytes[end + 10], 2);
        let directory = u32::from_le_bytes(bytes[end + 16..end + 20].try_into().unwrap()) as usize;
        assert_eq!(&bytes[directory..directory + 4], b"PK\x01\x02");
    }

    #[test]
    fn large_files_have_zip64_fields() {
        let entry = Entry { name: "a.npy".into(), checksum: 0, size: 1 << 33, offset: 1 << 34 };
        let local = entry.local_header();
        assert_eq!(local.len(), 30 + 5 + 20);
        assert_eq!(local[18..22], [255; 4]);
        let listed = entry.directory_entry();
        assert_eq!(listed.len(), 46 + 5 + 28);
        assert_eq!(listed[listed.len() - 8..], (1u64 << 34).to_le_bytes());
    }
}
