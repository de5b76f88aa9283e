//! The folder `checkpoints/` of a run: which there are, which are kept, which are removed.

use super::error::{RunError, agree};
use decomposition::Comm;
use std::path::{Path, PathBuf};

pub(super) const FOLDER: &str = "checkpoints";
const PREFIX: &str = "checkpoint-";
const SUFFIX: &str = ".h5";

/// Digits enough that names sort like steps.
pub(super) fn path(directory: &Path, step: u64) -> PathBuf {
    directory.join(FOLDER).join(format!("{PREFIX}{step:012}{SUFFIX}"))
}

/// The step that a name stands for.
fn step_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()
}

/// Collective: the steps of the checkpoints in a directory of results, the last first. A folder that is not
/// there has none.
pub(super) fn steps(directory: &Path, comm: &dyn Comm) -> Vec<u64> {
    let mut own: Vec<u64> = if comm.rank() == 0 { list(directory) } else { Vec::new() };
    own.sort_unstable_by(|a, b| b.cmp(a));
    // Rank 0 lists them: another may see another moment of the folder.
    let mut bytes: Vec<u8> = own.iter().flat_map(|step| step.to_le_bytes()).collect();
    comm.broadcast(0, &mut bytes);
    bytes.chunks_exact(8).map(|eight| u64::from_le_bytes(eight.try_into().unwrap_or([0; 8]))).collect()
}

fn list(directory: &Path) -> Vec<u64> {
    let entries = std::fs::read_dir(directory.join(FOLDER)).into_iter().flatten();
    entries.filter_map(|entry| step_of(&entry.ok()?.path())).collect()
}

/// Whether a file is a checkpoint of the run whose results are in `directory`: then that run's files can be
/// continued, too.
pub(super) fn belongs(file: &Path, directory: &Path) -> bool {
    let (Ok(file), Ok(directory)) = (file.canonicalize(), directory.canonicalize()) else { return false };
    file == directory.join("final.h5")
        || (file.parent() == Some(&directory.join(FOLDER)) && step_of(&file).is_some())
}

/// Collective: makes the folder, not what is above it: results that somebody has removed are not begun anew
/// without a word.
pub(super) fn make_folder(directory: &Path, comm: &dyn Comm) -> Result<(), RunError> {
    let folder = directory.join(FOLDER);
    let make = || match std::fs::create_dir(&folder) {
        Err(source) if !folder.is_dir() => {
            Err(RunError::Io { path: folder.clone(), action: "create the folder", source })
        }
        _ => Ok(()),
    };
    agree(comm, if comm.rank() == 0 { make() } else { Ok(()) })
}

/// Collective: removes all but the last `keep` up to `step`.
pub(super) fn thin_out(directory: &Path, step: u64, keep: u64, comm: &dyn Comm) {
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    for old in steps(directory, comm).into_iter().filter(|old| *old <= step).skip(keep) {
        if comm.rank() == 0 {
            // One more than wanted is no reason to end a run.
            let _ = std::fs::remove_file(path(directory, old));
        }
    }
}

/// Collective: gives the checkpoints after `step` another name, so that they are not taken for this run's
/// future; the new names.
pub(super) fn set_aside_later(
    directory: &Path,
    step: u64,
    comm: &dyn Comm,
) -> Result<Vec<PathBuf>, RunError> {
    let mut renamed = Vec::new();
    for later in steps(directory, comm).into_iter().filter(|later| *later > step) {
        let from = path(directory, later);
        let mut to = from.clone().into_os_string();
        to.push(".set-aside");
        let to = PathBuf::from(to);
        let rename = || {
            let error = |source| RunError::Io { path: from.clone(), action: "rename", source };
            std::fs::rename(&from, &to).map_err(error)
        };
        agree(comm, if comm.rank() == 0 { rename() } else { Ok(()) })?;
        renamed.push(to);
    }
    Ok(renamed)
}

/// Removes all checkpoints, and the folder if nothing else is in it. Rank 0.
pub(super) fn remove_all(directory: &Path) -> Result<(), RunError> {
    let folder = directory.join(FOLDER);
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let ours =
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
        if ours {
            let error =
                |source| RunError::Io { path: path.clone(), action: "remove an old checkpoint", source };
            std::fs::remove_file(&path).map_err(error)?;
        }
    }
    let _ = std::fs::remove_dir(&folder);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use decomposition::Solo;

    #[test]
    fn the_folder_is_kept_in_order() {
        let directory = std::env::temp_dir().join(format!("breccia-checkpoints-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        assert!(steps(&directory, &Solo).is_empty());
        make_folder(&directory, &Solo).unwrap();
        make_folder(&directory, &Solo).unwrap();
        for step in [5, 1_000_000, 40, 300] {
            std::fs::write(path(&directory, step), "").unwrap();
        }
        for other in ["checkpoint-7.h5.tmp", "notes", "checkpoint-x.h5"] {
            std::fs::write(directory.join(FOLDER).join(other), "").unwrap();
        }
        assert_eq!(steps(&directory, &Solo), [1_000_000, 300, 40, 5]);
        assert!(belongs(&path(&directory, 40), &directory));
        assert!(!belongs(&directory.join(FOLDER).join("notes"), &directory));
        assert!(!belongs(&path(&directory, 40), &directory.join("..")));
        let renamed = set_aside_later(&directory, 300, &Solo).unwrap();
        assert_eq!(renamed.len(), 1);
        assert!(!belongs(&renamed[0], &directory));
        thin_out(&directory, 300, 2, &Solo);
        assert_eq!(steps(&directory, &Solo), [300, 40]);
        remove_all(&directory).unwrap();
        assert!(directory.join(FOLDER).join("notes").exists() && steps(&directory, &Solo).is_empty());
        let nowhere = directory.join("absent");
        assert!(make_folder(&nowhere, &Solo).unwrap_err().to_string().contains("absent"));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
