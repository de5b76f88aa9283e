//! Refusing to start what the disk cannot hold.
//!
//! A write that runs out of space inside HDF5 cannot be repaired: on one rank (HDF5 1.10.8) the library
//! crashes when it closes the file at the end of the program, on several the ranks wait for each other inside
//! MPI-IO for ever. Both were seen on a tmpfs of 24 MB. So the free space is queried first; all ranks get the
//! error and the file stays as it was.

use super::error::OutputError;
use super::ranks::agree;
use decomposition::Comm;
use std::path::Path;

/// Left free for the metadata of the file, for logs and for the time between looking and writing.
const RESERVE: u64 = 8 << 20;

/// Collective: an error unless `bytes` of rows, before compression, surely fit beside `path`.
///
/// Tables grow by whole chunks, and a chunk is at most about twice the rows of a batch: three times the bytes
/// are enough.
pub(super) fn require(comm: &dyn Comm, path: &Path, bytes: u64) -> Result<(), OutputError> {
    let enough = if comm.rank() == 0 { require_here(path, bytes) } else { Ok(()) };
    agree(comm, path, "write", enough)
}

/// The same for a file that one rank writes alone.
pub(super) fn require_here(path: &Path, bytes: u64) -> Result<(), OutputError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A directory that cannot be asked gets the benefit of the doubt: opening the file will show.
    let Ok(disk) = rustix::fs::statvfs(directory) else { return Ok(()) };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let needed = bytes.saturating_mul(3).saturating_add(RESERVE);
    if free < needed {
        return Err(OutputError::DiskFull { path: path.to_path_buf(), needed, free });
    }
    within_limit(path, needed, rustix::process::getrlimit(rustix::process::Resource::Fsize).current)
}

/// The largest file that the system allows this process; none is no limit.
fn within_limit(path: &Path, more: u64, limit: Option<u64>) -> Result<(), OutputError> {
    let Some(limit) = limit else { return Ok(()) };
    let needed = std::fs::metadata(path).map_or(0, |file| file.len()).saturating_add(more);
    if needed > limit {
        return Err(OutputError::FileLimit { path: path.to_path_buf(), needed, limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use decomposition::Solo;

    #[test]
    fn more_than_the_disk_holds_is_refused() {
        let path = std::env::temp_dir().join("anything.h5");
        require(&Solo, &path, 1 << 10).unwrap();
        let error = require(&Solo, &path, u64::MAX / 2).unwrap_err();
        assert!(matches!(error, OutputError::DiskFull { .. }));
        assert!(error.to_string().contains("anything.h5"));
    }

    #[test]
    fn a_file_stays_within_what_the_system_allows() {
        let path = std::env::temp_dir().join("anything.h5");
        within_limit(&path, u64::MAX, None).unwrap();
        within_limit(&path, 1 << 20, Some(1 << 30)).unwrap();
        let error = within_limit(&path, 1 << 30, Some(1 << 20)).unwrap_err();
        assert!(error.to_string().contains("ulimit"), "{error}");
    }
}
