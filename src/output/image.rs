//! Undoing what was added to a growing HDF5 file, even if a kill interrupted the adding.
//!
//! HDF5 1.10 changes its own bookkeeping (superblock, headers, chunk indices) in place and in no order that a
//! kill could respect: a file whose writer died in the middle of a step may not open any more. But the rows
//! of a full chunk are never touched again. So the file as it is after a flush is given by
//!
//! ```text
//! its length, and the bytes of everything that is not a full chunk:
//! bookkeeping, the last and partly filled chunk of every table, space that is free
//! ```
//!
//! which is little, however long the file: at most one chunk (1 MiB) a table, and some ten bytes for each
//! full chunk. A checkpoint holds this *image*; putting it back gives the file of that moment, byte by byte
//! where it matters, whatever has been added since, and may itself be interrupted and done again. It holds as
//! long as the file has only been added to since, or put back to a later image and added to from there.

use super::error::OutputError;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Image {
    length: u64,
    /// Where each piece begins, and its bytes; ascending.
    pieces: Vec<(u64, Vec<u8>)>,
}

impl Image {
    /// Of a flushed file, except for the stretches `kept` (address, size), which stay as they are for ever.
    pub(super) fn take(path: &Path, mut kept: Vec<[u64; 2]>) -> Result<Self, OutputError> {
        let error = || OutputError::io(path, "read");
        let file = File::open(path).map_err(error())?;
        // What the image leaves out must be on the disk before the checkpoint that relies on it.
        file.sync_all().map_err(OutputError::io(path, "force to the disk"))?;
        let length = file.metadata().map_err(error())?.len();
        kept.sort_unstable();
        kept.push([length, 0]);
        let mut pieces = Vec::new();
        let mut next = 0;
        for [address, size] in kept {
            if address < next || address + size > length {
                let problem = format!("has overlapping chunks at byte {address}");
                return Err(OutputError::damaged(path, problem));
            }
            if address > next {
                let mut bytes = vec![0; (address - next) as usize];
                file.read_exact_at(&mut bytes, next).map_err(error())?;
                pieces.push((next, bytes));
            }
            next = address + size;
        }
        Ok(Self { length, pieces })
    }

    pub fn encode(&self) -> Vec<u8> {
        // Writing to memory cannot fail.
        postcard::to_allocvec(self).unwrap_or_default()
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    /// Makes the file what it was. Not collective.
    pub fn restore(&self, path: &Path) -> Result<(), OutputError> {
        let error = || OutputError::io(path, "put back to the state of the checkpoint");
        let file = OpenOptions::new().write(true).open(path).map_err(error())?;
        let there = file.metadata().map_err(error())?.len();
        let last_piece = self.pieces.last().map_or(0, |(at, bytes)| at + bytes.len() as u64);
        let last_kept = if last_piece == self.length {
            self.pieces.last().map_or(self.length, |(at, _)| *at)
        } else {
            self.length
        };
        if there < last_kept {
            let problem =
                format!("is {there} bytes long; at the checkpoint it had {} that are not in it", last_kept);
            return Err(OutputError::damaged(path, problem));
        }
        for (at, bytes) in &self.pieces {
            file.write_all_at(bytes, *at).map_err(error())?;
        }
        file.set_len(self.length).and_then(|()| file.sync_all()).map_err(error())
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{body, directory};
    use super::super::{BodyFile, BodyOptions};
    use super::*;
    use decomposition::Solo;

    fn steps(path: &Path) -> (Vec<f64>, Vec<f32>, Vec<i64>) {
        let file = hdf5::File::open(path).unwrap();
        let read = |name: &str| file.dataset(&format!("VTKHDF/{name}")).unwrap();
        let times = read("Steps/Values").read_raw().unwrap();
        (times, read("Points").read_raw().unwrap(), read("Polygons/Connectivity").read_raw().unwrap())
    }

    /// A file with two steps and its image; then more steps, and the bytes outside full chunks spoiled as a
    /// kill might.
    #[test]
    fn whatever_was_added_is_undone() {
        let directory = directory("image");
        for compression in [0, 4] {
            let path = directory.join("bodies.vtkhdf");
            let options = BodyOptions { compression, ..BodyOptions::default() };
            let mut file = BodyFile::create(&path, &Solo, options.clone()).unwrap();
            // Many bodies, so that a step fills several chunks and ends within one.
            let mut bodies: Vec<_> = (0..700).map(body).collect();
            let write = |file: &mut BodyFile, bodies: &mut Vec<crate::scene::Body>, step: u64| {
                bodies.iter_mut().for_each(|body| body.pose.position.x += 0.125);
                bodies.pop();
                file.write(&Solo, step as f64, &*bodies).unwrap();
            };
            (0..3).for_each(|step| write(&mut file, &mut bodies, step));
            let image = file.image(&Solo).unwrap().unwrap();
            let held: usize = image.pieces.iter().map(|(_, bytes)| bytes.len()).sum();
            let whole = directory.join("whole.vtkhdf");
            std::fs::copy(&path, &whole).unwrap();
            let expected = steps(&whole);
            assert_eq!(expected.0, [0.0, 1.0, 2.0]);
            assert!((held as u64) < image.length, "{held} of {} bytes", image.length);
            (3..9).for_each(|step| write(&mut file, &mut bodies, step));
            file.close().unwrap();
            assert_eq!(steps(&path).0.len(), 9);
            let spoilt = OpenOptions::new().write(true).open(&path).unwrap();
            for (at, bytes) in &image.pieces {
                spoilt.write_all_at(&vec![0xa5; bytes.len()], *at).unwrap();
            }
            assert!(hdf5::File::open(&path).is_err());
            let image = Image::decode(&image.encode()).unwrap();
            image.restore(&path).unwrap();
            image.restore(&path).unwrap(); // once more does no harm
            assert_eq!(steps(&path), expected);
            // It continues from there.
            let mut file = BodyFile::open(&path, &Solo, options).unwrap();
            assert_eq!(file.steps(), 3);
            write(&mut file, &mut bodies, 3);
            file.close().unwrap();
            let (times, points, _) = steps(&path);
            assert_eq!(times, [0.0, 1.0, 2.0, 3.0]);
            assert_eq!(points[..expected.1.len()], expected.1);
            let other = BodyOptions { fields: vec![], ..BodyOptions::default() };
            assert!(BodyFile::open(&path, &Solo, other).is_err());
            std::fs::write(&path, b"short").unwrap();
            assert!(image.restore(&path).is_err());
        }
    }
}
