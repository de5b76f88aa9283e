//! The seal of a state file: 512 bytes before the HDF5 data that say what the file is and whether it is
//! whole.
//!
//! ```text
//! 0  "breccia state\0\0\0"    16 bytes
//! 16 version                  u64, little-endian, as all that follows
//! 24 length of the file       u64
//! 32 sum                      u128: over blocks of 1 MiB from byte 512 on, the wrapping sum of xxh3-128(block, index)
//! 48 zeros
//! ```
//!
//! HDF5 skips such a user block. The sum is checked before HDF5 sees the file, because that library may crash
//! on a damaged one; and it is a sum over blocks so that the ranks can share the reading.

use super::error::OutputError;
use super::ranks::{agree, gather, share};
use decomposition::Comm;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128_with_seed;

pub(super) const LENGTH: u64 = 512;
/// Format 1 had no sections, no attachments and no digest in its header; it is read, too.
pub(super) const VERSION: u64 = 2;
const OLDEST: u64 = 1;
const MAGIC: &[u8; 16] = b"breccia state\0\0\0";
const BLOCK: u64 = 1 << 20;

fn encode(version: u64, length: u64, sum: u128) -> [u8; LENGTH as usize] {
    let mut seal = [0; LENGTH as usize];
    seal[..16].copy_from_slice(MAGIC);
    seal[16..24].copy_from_slice(&version.to_le_bytes());
    seal[24..32].copy_from_slice(&length.to_le_bytes());
    seal[32..48].copy_from_slice(&sum.to_le_bytes());
    seal
}

/// Collective: the length of the file, and the sum of its blocks.
fn measure(path: &Path, comm: &dyn Comm) -> Result<(u64, u128), OutputError> {
    let own = own_sum(path, comm);
    let (length, sum) = agree(comm, path, "read", own)?;
    let add = |all: u128, part: &[u64; 2]| all.wrapping_add(u128::from(part[0]) | u128::from(part[1]) << 64);
    let all = gather(comm, [sum as u64, (sum >> 64) as u64]);
    Ok((length, all.iter().fold(0, add)))
}

fn own_sum(path: &Path, comm: &dyn Comm) -> Result<(u64, u128), OutputError> {
    let error = || OutputError::io(path, "read");
    let mut file = File::open(path).map_err(error())?;
    let length = file.metadata().map_err(error())?.len();
    let data = length.saturating_sub(LENGTH);
    let blocks = share(data.div_ceil(BLOCK), comm.rank(), comm.size());
    file.seek(SeekFrom::Start(LENGTH + blocks.start * BLOCK)).map_err(error())?;
    let mut block = vec![0; BLOCK as usize];
    let mut sum = 0u128;
    for index in blocks {
        let size = (data - index * BLOCK).min(BLOCK) as usize;
        file.read_exact(&mut block[..size]).map_err(error())?;
        sum = sum.wrapping_add(xxh3_128_with_seed(&block[..size], index));
    }
    Ok((length, sum))
}

/// Collective: seals a closed file and forces it to the disk.
pub(super) fn close(path: &Path, comm: &dyn Comm) -> Result<(), OutputError> {
    let (length, sum) = measure(path, comm)?;
    let write = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.write_all(&encode(VERSION, length, sum))?;
        file.sync_all()
    };
    let sealed = if comm.rank() == 0 { write().map_err(OutputError::io(path, "seal")) } else { Ok(()) };
    agree(comm, path, "seal", sealed)
}

/// Collective: an error unless the file is a whole state file of this version.
pub(super) fn check(path: &Path, comm: &dyn Comm) -> Result<(), OutputError> {
    let (length, sum) = measure(path, comm)?;
    let mut seal = [0; LENGTH as usize];
    let read = File::open(path).and_then(|mut file| {
        let there = LENGTH.min(length) as usize;
        file.read_exact(&mut seal[..there])
    });
    let read = read.map_err(OutputError::io(path, "read"));
    agree(comm, path, "read", read.and_then(|()| compare(path, &seal, length, sum)))
}

fn compare(path: &Path, seal: &[u8; LENGTH as usize], length: u64, sum: u128) -> Result<(), OutputError> {
    let word =
        |at: usize| seal[at..at + 8].iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
    let damaged = |problem: String| Err(OutputError::damaged(path, problem));
    if &seal[..16] != MAGIC {
        return damaged("is not a breccia state file".into());
    }
    let (version, claimed) = (word(16), word(24));
    if version > VERSION {
        return damaged(format!(
            "was written by a newer breccia, in state format {version}; this one reads up to {VERSION}"
        ));
    }
    if version < OLDEST {
        return damaged(format!("has the state format {version}, which never was"));
    }
    if claimed != length {
        let how = if length < claimed { "truncated" } else { "damaged" };
        return damaged(format!("is {how}: {length} bytes long, it was {claimed} when written"));
    }
    if seal != &encode(version, length, sum) {
        return damaged("is damaged: its contents do not match its checksum".into());
    }
    Ok(())
}
