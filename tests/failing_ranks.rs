//! A rank that fails ends the whole run: never a hang, never a file that nobody can read.

mod support;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Directory, project};

/// What takes longer hangs. It takes a second or two; a machine with other work may need many more.
const PATIENCE: Duration = Duration::from_secs(200);

fn start(ranks: usize, arguments: &[&str]) -> Child {
    Command::new("mpirun")
        .args(["--oversubscribe", "-n", &ranks.to_string()])
        .arg(env!("CARGO_BIN_EXE_breccia"))
        .args(arguments)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("mpirun starts; `make setup` installs it")
}

/// The processes of breccia that have a word in their command line.
fn processes(word: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("Linux has /proc").flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        let program = words.next().unwrap_or_default();
        if program.ends_with("breccia") && words.any(|own| own == word) {
            found.push(id);
        }
    }
    found
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Everything that a killed run has left can be read with the tools that users have. How many files there
/// are.
fn readable(directory: &Path) -> usize {
    let mut seen = 0;
    for entry in std::fs::read_dir(directory).expect("the run made its directory").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".tmp") {
            continue; // never renamed: nobody will take it for a result
        }
        seen += 1;
        if name.ends_with(".json") {
            let text = std::fs::read_to_string(&path).expect("text");
            serde_json::from_str::<serde_json::Value>(&text)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        } else if name.ends_with(".csv") {
            let text = std::fs::read_to_string(&path).expect("text");
            let columns = text.lines().next().unwrap_or_default().split(',').count();
            // The last line may be torn.
            let whole: Vec<&str> = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
            assert!(whole.iter().all(|line| line.split(',').count() == columns), "{name}");
        } else if [".vtkhdf", ".h5"].iter().any(|ending| name.ends_with(ending)) {
            let output =
                Command::new("h5dump").arg("-H").arg(&path).env("HDF5_USE_FILE_LOCKING", "FALSE").output();
            let output = output.expect("h5dump starts; `make setup` installs it");
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    seen
}

/// How often a rank is killed; more often where somebody has the time.
fn attempts() -> u64 {
    if std::env::var_os("BRECCIA_SOAK").is_some() { 50 } else { 3 }
}

/// Starts three ranks, and waits until all of them are there.
fn three_ranks(out: &str) -> Child {
    let case = project("inputs/column-collapse.toml").display().to_string();
    let run = start(3, &["run", &case, "--out", out, "--threads", "1", "--set", "output.interval=0.002"]);
    wait_until("the start of three ranks", || processes(out).len() == 3);
    run
}

/// Kills one of the ranks; false if all have ended by themselves.
fn kill_one(out: &str, attempt: u64) -> bool {
    let victims = processes(out);
    let Some(victim) = victims.get(attempt as usize % victims.len().max(1)) else { return false };
    let killed = Command::new("kill").args(["-9", &victim.to_string()]).status();
    assert!(killed.expect("kill is there").success());
    true
}

#[test]
fn a_killed_rank_ends_the_run_at_once() {
    let mut left = 0;
    for attempt in 0..attempts() {
        let directory = Directory::new(&format!("killed-{attempt}"));
        let out = directory.file("out").display().to_string();
        let mut run = three_ranks(&out);
        // The first thing that a run writes, as soon as its ranks know each other.
        wait_until("the directory of the run", || directory.file("out").exists());
        // A different moment each time, from the very beginning to well into the steps.
        std::thread::sleep(Duration::from_millis((attempt * 397) % 2500));
        if !kill_one(&out, attempt) {
            continue;
        }
        let mut code = None;
        wait_until("the end of the run", || {
            code = run.try_wait().expect("the run can be asked").map(|status| status.code());
            code.is_some()
        });
        assert_ne!(code, Some(Some(0)), "a run with a killed rank has failed");
        wait_until("the end of all ranks", || processes(&out).is_empty());
        left += readable(&directory.file("out"));
    }
    // The first was killed when it had hardly begun, and may have left nothing; the others had time.
    assert!(left > 0, "the runs left something");
}

/// Before the ranks know each other it is `mpirun` that ends them. Open MPI 4.1.4 itself may then wait for
/// ever (5 of 288 times on a busy machine) where a process dies while it shakes hands with it; the ranks are
/// gone even so.
#[test]
fn a_rank_killed_at_the_start_leaves_no_other() {
    for attempt in 0..attempts() {
        let directory = Directory::new(&format!("killed-early-{attempt}"));
        let out = directory.file("out").display().to_string();
        let mut run = three_ranks(&out);
        std::thread::sleep(Duration::from_millis(attempt * 7 % 50));
        if !kill_one(&out, attempt) {
            continue;
        }
        wait_until("the end of all ranks", || processes(&out).is_empty());
        let ended = run.try_wait().expect("the run can be asked");
        assert_ne!(ended.map(|status| status.code()), Some(Some(0)), "a run with a killed rank has failed");
        run.kill().expect("mpirun can be ended");
        run.wait().expect("mpirun has ended");
    }
}

/// A rank that no longer answers, here because it is halted, ends the run after `--stall-limit`, and the
/// message says who waited where. Whenever it is halted: in a step or while files are written together.
#[test]
fn a_rank_that_does_not_answer_ends_the_run() {
    for interval in ["0.0005", "1"] {
        let directory = Directory::new("halted");
        let out = directory.file("out").display().to_string();
        let case = project("inputs/column-collapse.toml").display().to_string();
        let more = ["--stall-limit", "2s", "--set"].map(String::from);
        let interval = format!("output.interval={interval}");
        let mut command = Command::new("mpirun");
        let run = command
            .args(["--oversubscribe", "-n", "3", env!("CARGO_BIN_EXE_breccia"), "run", &case, "--out", &out])
            .args(["--threads", "1"])
            .args(more)
            .arg(interval)
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("mpirun starts");
        wait_until("the first file of the run", || directory.file("out").join("series.csv").exists());
        let victim = *processes(&out).last().expect("a rank");
        let halted = Command::new("kill").args(["-STOP", &victim.to_string()]).status();
        assert!(halted.expect("kill is there").success());
        // Ended by the others; should they not, the test hangs no longer than its harness allows.
        let output = run.wait_with_output().expect("the run ends by itself");
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(8), "{words}");
        let told = words.lines().find(|line| line.starts_with("error: rank ") && line.contains("has waited"));
        let told = told.unwrap_or_else(|| panic!("{words}"));
        let (place, whom) = told.split_once("` for ").unwrap_or_else(|| panic!("{told}"));
        assert!(
            place.contains(" s in `") && whom.contains("rank") && whom.contains("--stall-limit"),
            "{told}"
        );
        println!("{told}");
        wait_until("the end of all ranks", || processes(&out).is_empty());
    }
}

/// A mistake inside one rank only, here a case that differs on one rank by what the environment says, is told
/// and ends all.
#[test]
fn ranks_with_different_cases_are_noticed() {
    let directory = Directory::new("different");
    let text = std::fs::read_to_string(project("inputs/bouncing-ball.toml")).expect("a case");
    for (name, text) in [("a", text.clone()), ("b", format!("{text}\n# another comment\n"))] {
        std::fs::create_dir_all(directory.file(name)).expect("a directory");
        std::fs::write(directory.file(name).join("case.toml"), text).expect("a file");
    }
    let out = directory.file("out").display().to_string();
    let part = |name: &str| {
        let case = directory.file(name).join("case.toml").display().to_string();
        vec![
            "-n".to_string(),
            "1".into(),
            env!("CARGO_BIN_EXE_breccia").into(),
            "run".into(),
            case,
            "--out".into(),
            out.clone(),
        ]
    };
    let arguments = [part("a"), vec![":".into()], part("b")].concat();
    let output = Command::new("mpirun")
        .arg("--oversubscribe")
        .args(arguments)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .output()
        .expect("mpirun starts");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(words.contains("rank 1 has another version of breccia or another case"), "{words}");
}

/// A rank that may have less memory than it needs says so, and ends all.
#[test]
fn a_rank_without_memory_says_so_and_ends_all() {
    let directory = Directory::new("memory");
    let out = directory.file("out").display().to_string();
    let case = project("inputs/mixed-spheres.toml").display().to_string();
    let run = format!(
        "exec {} run {case} --set parameters.spheres=60000 --steps 5 --threads 1 --out {out}",
        env!("CARGO_BIN_EXE_breccia")
    );
    // Enough to start, not enough for the case.
    let limited = format!("ulimit -v 230000; {run}");
    let begun = Instant::now();
    let output = Command::new("mpirun")
        .args(["--oversubscribe", "-n", "1", "sh", "-c", &run, ":", "-n", "1", "sh", "-c", &limited])
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("mpirun starts");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(words.contains("rank 1: out of memory"), "{words}");
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    wait_until("the end of all ranks", || processes(&out).is_empty());
}
