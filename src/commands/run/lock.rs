//! One run, one directory: rank 0 holds the file `run.lock` as long as the run lasts.
//!
//! The file says who holds it, and its holder has it locked (`flock`), so that the lock of a process that is
//! gone is known from that of one that works. It appears with its contents and already locked: a private file
//! is written and locked first, and then gets the common name as a second one. A lock without a holder is
//! replaced by renaming, under its own `flock`: of several that find it, one wins.
//!
//! Where the file system has no locks, or keeps those of each node for itself, the contents decide: a process
//! of this host is looked up, one of another host is taken to be alive.

use super::Log;
use super::error::{RunError, agree};
use decomposition::Comm;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The name of the lock in the output directory.
pub(super) const NAME: &str = "run.lock";
/// How often a lock that changes hands under our eyes is looked at again.
const ATTEMPTS: usize = 100;

/// Who works in a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub host: String,
    pub process: u32,
    /// Of the scheduler.
    pub job: Option<String>,
    /// UTC.
    pub started: String,
    /// When the system started the process, in its own count: process numbers are used again.
    birth: Option<String>,
}

impl Holder {
    fn this_process() -> Self {
        let process = std::process::id();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started = civil(now.as_secs());
        let job = std::env::var("SLURM_JOB_ID").ok();
        Self { host: host(), process, job, started, birth: birth(process) }
    }

    /// By what it says of itself; only for processes of this host.
    fn is_alive(&self) -> bool {
        birth(self.process).is_some_and(|birth| self.birth.is_none() || self.birth == Some(birth))
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "host {}, process {}, ", self.host, self.process)?;
        match &self.job {
            Some(job) => write!(f, "job {job}, ")?,
            None => write!(f, "no job number, ")?,
        }
        write!(f, "started {}", self.started)
    }
}

pub(super) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "unknown".into() } else { name.trim().into() }
}

/// Boot and start of a process; none if there is no such process.
fn birth(process: u32) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in brackets, may hold anything; the start is the 20th word behind it.
    let start = status.rsplit_once(')')?.1.split_whitespace().nth(19)?.to_string();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Some(format!("{} {start}", boot.trim()))
}

/// Seconds since 1970 as a date, UTC.
fn civil(seconds: u64) -> String {
    let (days, rest) = (seconds / 86400, seconds % 86400);
    // Years that begin in March, in eras of 400 years (Howard Hinnant, "chrono-compatible low-level date
    // algorithms").
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + carry;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Held by rank 0 from before the first look at the directory to the end of the run; nothing on the others.
/// Released when it is dropped, or by the system with the process.
pub(super) struct Lock {
    held: Option<Held>,
}

struct Held {
    path: PathBuf,
    file: File,
    /// Folders that were made for it, the deepest first: removed again if nothing has come into them.
    made: Vec<PathBuf>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if is_same(&self.file, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
        for folder in &self.made {
            if std::fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
}

impl Lock {
    /// Collective: takes the directory for this run, or says who has it.
    pub fn take(directory: &Path, comm: &dyn Comm, log: &mut Log) -> Result<Self, RunError> {
        let taken = if comm.rank() == 0 { take(directory, log) } else { Ok(None) };
        agree(comm, taken).map(|held| Self { held })
    }

    /// The file, on rank 0.
    #[cfg(test)]
    fn path(&self) -> Option<&Path> {
        self.held.as_ref().map(|held| held.path.as_path())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        drop(self.held.take());
    }
}

/// None where nothing can be written anyway.
fn take(directory: &Path, log: &mut Log) -> Result<Option<Held>, RunError> {
    let folder = |source| RunError::Io { path: directory.into(), action: "create the directory", source };
    let made: Vec<PathBuf> = directory
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .map(Path::to_path_buf)
        .collect();
    std::fs::create_dir_all(directory).map_err(folder)?;
    let path = directory.join(NAME);
    let private = directory.join(format!("{NAME}.{}-{}.tmp", host(), std::process::id()));
    let taken = take_file(&path, &private, directory, log);
    let _ = std::fs::remove_file(&private);
    match taken {
        Ok(file) => Ok(Some(Held { path, file, made })),
        // The first file of the run will say so, unless it has nothing to write.
        Err(RunError::Io { source, .. }) if source.kind() == ErrorKind::ReadOnlyFilesystem => Ok(None),
        Err(error) => Err(error),
    }
}

fn take_file(path: &Path, private: &Path, directory: &Path, log: &mut Log) -> Result<File, RunError> {
    let error = |source| RunError::Io { path: path.to_path_buf(), action: "lock the directory with", source };
    let own = Holder::this_process();
    let text = serde_json::to_string_pretty(&own).map_err(|source| error(source.into()))? + "\n";
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(private).map_err(error)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(error)?;
    let weak = weakness(&file, directory);
    if let Some(reason) = &weak {
        log.say(&format!("warning: {reason}: {} goes by its contents", path.display()));
    }
    for _ in 0..ATTEMPTS {
        match std::fs::hard_link(private, path) {
            Ok(()) => return Ok(file),
            Err(source) if source.kind() == ErrorKind::AlreadyExists => {}
            Err(source) if !path.exists() => return without_links(path, &text).map_err(|_| error(source)),
            Err(_) => {}
        }
        let old = OpenOptions::new().read(true).write(true).open(path).or_else(|_| File::open(path));
        let old = match old {
            Ok(old) => old,
            Err(source) if source.kind() == ErrorKind::NotFound => continue,
            Err(source) => return Err(error(source)),
        };
        let holder = read_holder(path);
        let in_use = || RunError::InUse { path: path.to_path_buf(), holder: Box::new(holder.clone()) };
        let free = match flock(&old, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => weak.is_none() || (holder.host == own.host && !holder.is_alive()),
            Err(Errno::WOULDBLOCK) => false,
            Err(_) => holder.host == own.host && !holder.is_alive(),
        };
        if !free {
            return Err(in_use());
        }
        // While it was opened its holder may have gone and another have come.
        if !is_same(&old, path) {
            continue;
        }
        log.say(&format!("the lock of a run that is gone is taken over ({holder})"));
        std::fs::rename(private, path).map_err(error)?;
        if weak.is_some() {
            // Two that found the same lock may both have come here: the last stays.
            std::thread::sleep(Duration::from_millis(200));
            if !is_same(&file, path) {
                return Err(RunError::InUse { path: path.into(), holder: Box::new(read_holder(path)) });
            }
        }
        return Ok(file);
    }
    Err(RunError::InUse { path: path.into(), holder: Box::new(read_holder(path)) })
}

/// Where a file cannot have two names.
fn without_links(path: &Path, text: &str) -> std::io::Result<File> {
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// Locks the file; why that says nothing to other nodes, if so.
fn weakness(file: &File, directory: &Path) -> Option<String> {
    if let Err(refusal) = flock(file, FlockOperation::NonBlockingLockExclusive) {
        return Some(format!("the file system refuses locks ({})", std::io::Error::from(refusal)));
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let option = local_locks(&mounts, &directory.canonicalize().ok()?)?;
    Some(format!("the file system keeps the locks of each node for itself (mount option {option})"))
}

/// The option by which the mount of a directory keeps locks from other nodes.
fn local_locks(mounts: &str, directory: &Path) -> Option<String> {
    let mount = |line: &str| {
        let place = line.split(' ').nth(4)?.replace("\\040", " ");
        directory.starts_with(&place).then(|| (place.len(), line.to_string()))
    };
    // Of equal places the last is on top.
    let (_, line) = mounts.lines().filter_map(mount).max_by_key(|(length, _)| *length)?;
    let local = ["localflock", "noflock", "nolock", "local_lock=all", "local_lock=flock"];
    line.split([' ', ',']).find(|option| local.contains(option)).map(str::to_string)
}

/// What a lock says; of a file that cannot be understood nothing.
fn read_holder(path: &Path) -> Holder {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_else(|_| Holder {
        host: "unknown".into(),
        started: "at an unknown time".into(),
        ..Holder::default()
    })
}

/// Whether a name still stands for an open file.
fn is_same(file: &File, path: &Path) -> bool {
    let (Ok(own), Ok(named)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    (own.dev(), own.ino()) == (named.dev(), named.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use decomposition::Solo;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("breccia-lock-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        path
    }

    fn lock(directory: &Path) -> Result<Lock, RunError> {
        Lock::take(directory, &Solo, &mut Log::new(1, 2))
    }

    #[test]
    fn a_directory_is_taken_once_and_given_back() {
        let root = scratch("once");
        let directory = root.join("out");
        let first = lock(&directory).unwrap();
        assert_eq!(first.path(), Some(directory.join(NAME).as_path()));
        let message = lock(&directory).err().map(|error| error.to_string()).unwrap_or_default();
        let own = Holder::this_process();
        for word in [&own.host, &format!("process {}", own.process), "started 20"] {
            assert!(message.contains(word), "{message}");
        }
        drop(first);
        assert!(!root.exists(), "nothing is left where nothing was");
        drop(lock(&directory).unwrap());
    }

    #[test]
    fn a_lock_without_a_holder_is_taken_over() {
        let directory = scratch("stale");
        std::fs::create_dir_all(&directory).unwrap();
        for text in ["", "{\"host\": 3}", &serde_json::to_string(&Holder::this_process()).unwrap()] {
            std::fs::write(directory.join(NAME), text).unwrap();
            let own = lock(&directory).unwrap();
            assert_eq!(read_holder(&directory.join(NAME)).process, std::process::id());
            assert!(lock(&directory).is_err());
            drop(own);
            assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        }
        std::fs::remove_dir_all(directory).unwrap();
    }

    /// Of many threads that want a stale lock or none at all one gets it. (`flock` is between open files, not
    /// between processes.)
    #[test]
    fn of_many_one_wins() {
        let directory = scratch("many");
        std::fs::create_dir_all(&directory).unwrap();
        for round in 0..40 {
            if round % 2 == 0 {
                std::fs::write(directory.join(NAME), "").unwrap();
            }
            let path = directory.join(NAME);
            let won = std::thread::scope(|scope| {
                let try_it = |number: usize| {
                    let private = directory.join(format!("private-{number}"));
                    let (path, directory) = (&path, &directory);
                    scope.spawn(move || take_file(path, &private, directory, &mut Log::new(1, 2)).ok())
                };
                let threads: Vec<_> = (0..6).map(try_it).collect();
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect::<Vec<File>>()
            });
            assert_eq!(won.len(), 1, "round {round}");
            std::fs::remove_file(&path).unwrap();
        }
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn processes_and_dates_are_known() {
        let own = Holder::this_process();
        assert!(own.is_alive());
        assert!(!Holder { birth: Some("another boot".into()), ..own.clone() }.is_alive());
        assert!(!Holder { process: u32::MAX, ..own }.is_alive());
        assert_eq!(civil(0), "1970-01-01T00:00:00Z");
        assert_eq!(civil(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(civil(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(civil(1_709_164_800 + 86_400), "2024-03-01T00:00:00Z");
    }

    #[test]
    fn mounts_that_keep_locks_to_themselves_are_known() {
        let mounts = "25 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
                      31 25 0:40 / /scratch rw - lustre mds:/fs rw,localflock\n\
                      32 25 0:41 / /home rw - nfs4 server:/home rw,vers=4.2,local_lock=none\n\
                      33 31 0:42 / /scratch/good rw - lustre mds:/fs rw,flock\n";
        let found = |path: &str| local_locks(mounts, Path::new(path));
        assert_eq!(found("/scratch/me/run"), Some("localflock".into()));
        assert_eq!([found("/home/me"), found("/tmp"), found("/scratch/good/run")], [None, None, None]);
    }
}
