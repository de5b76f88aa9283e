//! The real binary under `mpirun`, for integration tests.
#![allow(dead_code)] // each test binary uses a part

pub mod skip;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A run that takes longer hangs: the tests' own cases need seconds (on a machine with eight times as much
/// work as cores five minutes were too few), those of `make soak` many minutes.
fn patience() -> Duration {
    Duration::from_secs(if std::env::var_os("BRECCIA_SOAK").is_some() { 7200 } else { 1800 })
}

/// A directory of a test's own, removed when the test passed.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(name: &str) -> Self {
        // Tests that run side by side may ask for the same name, and the first to end removes its own.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("breccia-{}-{count}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory for the test");
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

pub fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs breccia on some ranks and threads; the exit code and everything it printed.
pub fn breccia(ranks: usize, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new("mpirun");
    command
        .args(["--oversubscribe", "-n", &ranks.to_string(), env!("CARGO_BIN_EXE_breccia")])
        .args(arguments)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        // More ranks than cores must not spin against each other.
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("mpirun starts; `make setup` installs it");
    // Read while it runs: a full pipe would make it wait for ever.
    let words = [drain(child.stdout.take()), drain(child.stderr.take())];
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the run can be asked") {
            break status;
        }
        if start.elapsed() > patience() {
            let _ = child.kill();
            panic!("breccia {arguments:?} on {ranks} ranks hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let words = words.map(|reader| reader.join().expect("the run's words")).concat();
    (status.code().unwrap_or(-1), words)
}

fn drain(pipe: Option<impl std::io::Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.expect("a pipe was asked for").read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Runs a case to the end; what `summary.json` says.
pub fn run(case: &Path, ranks: usize, out: &Path, more: &[&str]) -> serde_json::Value {
    let (case, out_name) = (case.display().to_string(), out.display().to_string());
    let mut arguments = vec!["run", &case, "--out", &out_name];
    arguments.extend(more);
    let (code, words) = breccia(ranks, &arguments);
    assert_eq!(code, 0, "{case} on {ranks} ranks:\n{words}");
    let summary = std::fs::read_to_string(out.join("summary.json")).expect("a run leaves a summary");
    serde_json::from_str(&summary).expect("the summary is JSON")
}
