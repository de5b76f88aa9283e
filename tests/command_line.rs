//! The command line, through the real binary: what it writes, what it says, and how it ends.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A directory of a test's own, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("breccia-command-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory for the test");
        Self(path)
    }

    /// A case of two balls above a floor, and a third that stands in a corner of its own.
    fn case(&self, name: &str, more: &str) -> PathBuf {
        let text = format!(
            r#"
title = "Two balls"
[simulation]
time_step = 1e-3
duration = 0.5
[solver]
tolerance = 1e-8
[[material]]
name = "stone"
density = 2700
[[contact]]
materials = ["stone", "stone"]
friction = 0.5
law = "predictive"
[[shape]]
name = "plane"
kind = "half-space"
[[shape]]
name = "ball"
kind = "sphere"
radius = 0.05
[[body]]
name = "floor"
shape = "plane"
material = "stone"
motion = "fixed"
[[body]]
name = "lower"
shape = "ball"
material = "stone"
position = [0, 0, 0.08]
[[body]]
name = "upper"
shape = "ball"
material = "stone"
position = [0.02, 0, 0.2]
angular_velocity = [0, 3, 0]
[output]
interval = 0.1
{more}
"#
        );
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a case");
        path
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn breccia() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_breccia"));
    command.stdin(Stdio::null());
    command
}

fn ran(command: &mut Command) -> Output {
    command.output().expect("the program starts")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn run(case: &Path, out: &Path, more: &[&str]) -> Output {
    ran(breccia().arg("run").arg(case).arg("--out").arg(out).args(["--threads", "1"]).args(more))
}

fn summary(out: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(out.join("summary.json")).expect("a summary");
    serde_json::from_str(&text).expect("JSON")
}

fn digest(path: &Path) -> String {
    let output = ran(breccia().arg("digest").arg(path));
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

#[test]
fn a_run_writes_its_files_and_an_account() {
    let directory = Directory::new("good");
    let (case, out) = (directory.case("balls.toml", ""), directory.join("out"));
    let copy = directory.join("copy.json");
    let output = run(&case, &out, &["--summary", copy.to_str().expect("a plain path")]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for name in breccia::commands::run::FILE_NAMES
        .into_iter()
        .filter(|name| !["machines", "force_errors"].iter().any(|other| name.starts_with(other)))
    {
        assert!(out.join(name).is_file(), "{name} is missing\n{text}");
        assert!(text.contains(name), "{name} is not told\n{text}");
    }
    for expected in ["1 rank x 1 thread", "3 bodies, 2 of them free", "solve", "share", "digest: "] {
        assert!(text.contains(expected), "{expected:?} is missing in\n{text}");
    }
    let summary = summary(&out);
    assert_eq!(summary["status"], "finished");
    assert_eq!(summary["steps"], 500);
    assert_eq!((&summary["bodies"], &summary["free_bodies"]), (&3.into(), &2.into()));
    assert_eq!(summary["digest"], digest(&out));
    assert_eq!(summary["digest"], digest(&out.join("final.h5")));
    assert!(summary["peak_memory"][0].as_u64().is_some_and(|bytes| bytes > 1 << 20));
    let copied = std::fs::read_to_string(copy).expect("the copy");
    assert_eq!(copied, std::fs::read_to_string(out.join("summary.json")).expect("the summary"));
    let series = std::fs::read_to_string(out.join("series.csv")).expect("a series");
    assert_eq!(series.lines().count(), 501);
    let state = breccia::output::StateFile::open(&out.join("final.h5"), &decomposition::Solo).expect("whole");
    assert_eq!((state.body_count(), state.header().step), (3, 500));
    assert!(state.header().case.contains("Two balls"));
}

#[test]
fn two_runs_have_the_same_digest_and_another_case_another() {
    let directory = Directory::new("digest");
    let case = directory.case("balls.toml", "");
    let digests: Vec<String> = [&["--steps", "60"][..], &["--until", "0.06"], &["--steps", "61"]]
        .iter()
        .enumerate()
        .map(|(index, more)| {
            let out = directory.join(&format!("out-{index}"));
            let output = run(&case, &out, more);
            assert_eq!(output.status.code(), Some(0), "{}", said(&output));
            assert_eq!(summary(&out)["steps"], if index == 2 { 61 } else { 60 });
            digest(&out)
        })
        .collect();
    assert_eq!(digests[0], digests[1]);
    assert_ne!(digests[0], digests[2]);
}

#[test]
fn the_command_line_changes_values() {
    let directory = Directory::new("set");
    let (case, out) = (directory.case("balls.toml", ""), directory.join("out"));
    let output = run(&case, &out, &["--set", "simulation.duration=0.002", "--set", "output.contacts=none"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(summary(&out)["steps"], 2);
    assert!(!out.join("contacts.vtkhdf").exists());
}

#[test]
fn mistakes_are_told_with_their_exit_code() {
    let directory = Directory::new("bad");
    let out = directory.join("out");
    let bad = directory.case("bad.toml", "colour = \"red\"\nprecision = \"f16\"");
    for output in [run(&bad, &out, &[]), ran(breccia().arg("check").arg(&bad))] {
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("colour") && text.contains("f16") && text.contains("bad.toml"), "{text}");
    }
    assert!(!out.exists(), "a wrong case must not leave files");
    let output = run(&directory.join("none.toml"), &out, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let good = directory.case("good.toml", "");
    for wrong in
        [&["--steps", "-1"][..], &["--steps", "3", "--until", "1"], &["--until", "-1"], &["--set", "x"]]
    {
        let output = run(&good, &out, wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", said(&output));
    }
    // A file where the directory should be.
    std::fs::write(&out, "in the way").expect("a file");
    let output = run(&good, &out, &["--steps", "1"]);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
}

#[test]
fn an_overlapping_start_names_both_bodies() {
    let directory = Directory::new("overlap");
    let case = directory.case("balls.toml", "");
    let raised = ["--set", "body.lower.position=[0, 0, 0.15]"];
    for output in
        [run(&case, &directory.join("out"), &raised), ran(breccia().arg("check").arg(&case).args(raised))]
    {
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            text.contains("\"lower\"") && text.contains("\"upper\"") && text.contains("overlap"),
            "{text}"
        );
    }
}

#[test]
fn results_of_another_case_are_not_replaced() {
    let directory = Directory::new("replace");
    let (first, second) = (directory.case("first.toml", ""), directory.case("second.toml", ""));
    let out = directory.join("out");
    assert_eq!(run(&first, &out, &["--steps", "2"]).status.code(), Some(0));
    let again = run(&first, &out, &["--steps", "3"]);
    assert!(again.status.success() && said(&again).contains("replacing"), "{}", said(&again));
    let refused = run(&second, &out, &["--steps", "2"]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(said(&refused).contains("first.toml"), "{}", said(&refused));
    assert_eq!(summary(&out)["steps"], 3);
    assert_eq!(run(&second, &out, &["--steps", "2", "--overwrite"]).status.code(), Some(0));
    assert_eq!(summary(&out)["steps"], 2);
}

#[test]
fn a_run_starts_from_the_final_state_of_another() {
    let directory = Directory::new("start");
    let (first, out) = (directory.case("first.toml", ""), directory.join("first"));
    assert_eq!(run(&first, &out, &[]).status.code(), Some(0));
    let text = std::fs::read_to_string(&first).expect("the case");
    let (head, _) = text.split_once("[[body]]\nname = \"lower\"").expect("the first ball");
    let second = directory.join("second.toml");
    let start = "[start]\nfrom = \"first/final.h5\"\ngroups = [\"lower\", \"upper\"]\n";
    std::fs::write(&second, format!("{head}{start}")).expect("a case");
    let output = run(&second, &directory.join("second"), &["--steps", "0"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let open = |out: &Path| {
        let file = out.join("final.h5");
        let state = breccia::output::StateFile::open(&file, &decomposition::Solo).expect("whole");
        let impulses = state.read_impulses(0..state.impulse_count()).expect("impulses");
        (state.read_bodies(0..3).expect("three bodies"), impulses)
    };
    let ((before, impulses), (after, kept)) = (open(&out), open(&directory.join("second")));
    assert!(impulses.len() >= 2 && kept == impulses, "{impulses:?} {kept:?}");
    assert_eq!(before, after);
    let later = start.replace("first/", "later/");
    std::fs::write(&second, format!("{head}{later}")).expect("a case");
    let output = ran(breccia().arg("check").arg(&second));
    assert!(output.status.success() && said(&output).contains("not there yet"), "{}", said(&output));
    let missing = start.replace("lower", "middle");
    std::fs::write(&second, format!("{head}{missing}")).expect("a case");
    let output = run(&second, &directory.join("third"), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("\"middle\""), "{}", said(&output));
}

/// Ten million spheres were made by `check` in two minutes and 9 GB, a thousand million until it was killed.
#[test]
fn what_does_not_fit_into_memory_is_refused_at_once() {
    let directory = Directory::new("memory");
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs/mixed-spheres.toml");
    let many = ["--set", "parameters.spheres=1e9"];
    let out = directory.join("out");
    // Two seconds of processor time, however busy the machine is.
    let limited = |command: &str, more: &[&str]| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -t 2; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_breccia"), command]);
        ran(shell.stdin(Stdio::null()).arg(&case).args(many).args(more))
    };
    let checked = limited("check", &[]);
    let refused = limited("run", &["--out", &out.display().to_string(), "--threads", "1"]);
    for output in [checked, refused] {
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("6955.0 GB") && text.contains("--force"), "{text}");
    }
    assert!(!out.exists(), "nothing is written before");
    let nodes = ran(breccia().arg("check").arg(&case).args(many).args(["--nodes", "1000000"]));
    let text = said(&nodes);
    assert_eq!(nodes.status.code(), Some(0), "{text}");
    assert!(text.contains("1000000000") && text.contains("extrapolated"), "{text}");
}

#[test]
fn the_other_commands_answer() {
    let directory = Directory::new("others");
    let schema = ran(breccia().arg("schema"));
    let value: serde_json::Value = serde_json::from_slice(&schema.stdout).expect("JSON");
    assert!(value["properties"]["simulation"].is_object());
    assert!(said(&ran(breccia().arg("manual"))).contains("# The case file"));
    let check = ran(breccia().arg("check").arg(directory.case("balls.toml", "")));
    let text = said(&check);
    assert!(check.status.success(), "{text}");
    for expected in ["Two balls", "500 steps", "floor", "stone - stone", "memory"] {
        assert!(text.contains(expected), "{expected:?} is missing in\n{text}");
    }
    let nothing = ran(breccia().arg("digest").arg(directory.join("none.h5")));
    assert_eq!(nothing.status.code(), Some(1), "{}", said(&nothing));
    let help = said(&ran(breccia().args(["run", "--help"])));
    assert!(help.contains("Exit codes") && help.contains("OMP_NUM_THREADS"), "{help}");
}

/// What cannot be written is a failure, whatever the command; a reader that has gone is none.
#[test]
fn a_full_standard_output_is_a_failure() {
    let directory = Directory::new("full");
    let (case, out) = (directory.case("balls.toml", ""), directory.join("out"));
    let output = run(&case, &out, &["--steps", "3"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let commands: [&[&OsStr]; 5] = [
        &[OsStr::new("info"), out.as_os_str()],
        &[OsStr::new("digest"), out.as_os_str()],
        &[OsStr::new("check"), case.as_os_str()],
        &[OsStr::new("schema")],
        &[OsStr::new("manual")],
    ];
    for command in commands {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has /dev/full");
        let mut full_run = breccia();
        let output = full_run.args(command).stdin(Stdio::null()).stdout(full).output();
        let output = output.expect("the program starts");
        assert_eq!(output.status.code(), Some(4), "{command:?}: {}", said(&output));
        assert!(said(&output).contains("standard output: cannot write"), "{}", said(&output));
    }
    // The log of a run is no reason to end it.
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has /dev/full");
    let mut logged = breccia();
    logged.arg("run").arg(&case).arg("--out").arg(directory.join("logged")).args(["--steps", "3"]);
    let status = logged.stdin(Stdio::null()).stdout(full).status().expect("the program starts");
    assert_eq!(status.code(), Some(0));
}

/// Starts a long run, waits until it has made steps, sends it a signal and returns how it ended.
fn stopped_by(signal: &str, directory: &Directory) -> Option<i32> {
    let (case, out) = (directory.case("long.toml", ""), directory.join(signal));
    let mut command = breccia();
    command.arg("run").arg(&case).arg("--out").arg(&out).args(["--threads", "1", "--steps", "100000000"]);
    let mut child = command.stdout(Stdio::null()).spawn().expect("the program starts");
    let series = out.join("series.csv");
    let deadline = Instant::now() + Duration::from_secs(300);
    let rows = || std::fs::read_to_string(&series).map_or(0, |text| text.lines().count());
    while rows() < 10 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let sent = Command::new("kill").arg(format!("-{signal}")).arg(child.id().to_string()).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let status = child.wait().expect("the run ends");
    let summary = summary(&out);
    assert_eq!(summary["status"], "stopped");
    let steps = summary["steps"].as_u64().expect("a number");
    let state = breccia::output::StateFile::open(&out.join("final.h5"), &decomposition::Solo).expect("whole");
    assert_eq!(state.header().step, steps);
    assert_eq!(summary["digest"], digest(&out));
    assert_eq!(rows() as u64, steps + 1);
    status.code()
}

#[test]
fn signals_leave_whole_files() {
    let directory = Directory::new("signals");
    assert_eq!(stopped_by("INT", &directory), Some(130));
    assert_eq!(stopped_by("TERM", &directory), Some(143));
}

fn mpirun(ranks: usize, case: &Path, out: &Path, more: &[&str]) -> Output {
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "-n", &ranks.to_string()]);
    command.arg(env!("CARGO_BIN_EXE_breccia")).arg("run").arg(case).arg("--out").arg(out).args(more);
    command.stdin(Stdio::null()).output().expect("mpirun starts; `make setup` installs it")
}

#[test]
fn a_rank_with_another_case_or_none_ends_all() {
    let directory = Directory::new("apart");
    let (first, second) =
        (directory.case("first.toml", ""), directory.case("second.toml", "precision = \"f64\""));
    for (other, expected) in [(second, "rank 1 has another"), (directory.join("none.toml"), "rank 1: ")] {
        let binary = env!("CARGO_BIN_EXE_breccia");
        let mut command = Command::new("mpirun");
        command.args(["--allow-run-as-root", "--oversubscribe", "-n", "1", binary, "run"]).arg(&first);
        command.args([":", "-n", "1", binary, "run"]).arg(&other).current_dir(&directory.0);
        let output = command.stdin(Stdio::null()).output().expect("mpirun starts; `make setup` installs it");
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
}

#[test]
fn a_solution_that_is_not_finite_ends_the_run() {
    let directory = Directory::new("infinite");
    let (case, out) = (directory.case("balls.toml", ""), directory.join("out"));
    let values = ["gravity=[0, 0, 1e7]", "time_step=1e200", "duration=1e203"];
    let values = values.map(|value| ["--set".to_string(), format!("simulation.{value}")]).concat();
    let values: Vec<&str> =
        values.iter().map(String::as_str).chain(["--set", "output.interval=1e202"]).collect();
    let output = run(&case, &out, &values);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("not a finite number") && text.contains("\"lower\""), "{text}");
    let summary = summary(&out);
    assert_eq!((&summary["status"], summary["digest"].is_null()), (&"failed".into(), true));
    assert!(!out.join("final.h5").exists());
    let series = std::fs::read_to_string(out.join("series.csv")).expect("a series");
    // A row for each step that was taken, and the names.
    assert_eq!(series.lines().count() as u64, 1 + summary["steps"].as_u64().expect("a number"));
    assert!(text.contains("the state before this step is a checkpoint"), "{text}");
}

#[test]
fn two_ranks_give_the_digest_of_one_and_one_complaint() {
    let directory = Directory::new("ranks");
    let case = directory.case("balls.toml", "");
    let steps = ["--steps", "200"];
    let output = mpirun(2, &case, &directory.join("two"), &steps);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(run(&case, &directory.join("one"), &steps).status.code(), Some(0));
    assert_eq!(digest(&directory.join("one")), digest(&directory.join("two")));
    assert_eq!(summary(&directory.join("two"))["peak_memory"].as_array().map(Vec::len), Some(2));
    let bad = directory.case("bad.toml", "colour = \"red\"");
    let output = mpirun(2, &bad, &directory.join("bad"), &[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(said(&output).matches("colour =").count(), 1, "{}", said(&output));
}

#[test]
fn a_missing_start_names_the_case_that_makes_it_and_is_prepared() {
    let directory = Directory::new("prepare");
    std::fs::create_dir_all(directory.0.join("cases")).expect("a folder");
    let first = directory.case("first.toml", "");
    let text =
        std::fs::read_to_string(&first).expect("the case").replace("duration = 0.5", "duration = 0.02");
    std::fs::write(directory.0.join("cases/first.toml"), &text).expect("a case");
    let second = |from: &str| {
        let kept = text.find("[[body]]\nname = \"lower\"").expect("the balls");
        format!("{}[start]\nfrom = \"{from}\"\n", &text[..kept])
    };
    for (name, from) in [("second", "first"), ("third", "second"), ("ring", "ring2"), ("ring2", "ring")] {
        let text = second(&format!("../out/{from}/final.h5"));
        std::fs::write(directory.0.join(format!("cases/{name}.toml")), text).expect("a case");
    }
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_breccia"));
        command.current_dir(&directory.0).arg("run").args(arguments).output().expect("breccia runs")
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let refused = run(&["cases/second.toml"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    assert!(said.contains("cases/second.toml: start.from: out/first/final.h5 is not there"), "{said}");
    assert!(said.contains("cases/first.toml makes it: run that first, or let --prepare do it"), "{said}");
    let ring = run(&["cases/ring.toml", "--prepare"]);
    assert!(
        text(&ring.stderr).contains("cases/ring.toml starts from its own results"),
        "{}",
        text(&ring.stderr)
    );
    // Two cases first, each in the directory where its result is wanted.
    let done = run(&["cases/third.toml", "--prepare", "--steps", "3", "--out", "elsewhere"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    for made in ["out/first/final.h5", "out/second/final.h5", "elsewhere/final.h5"] {
        assert!(directory.0.join(made).is_file(), "{made}");
    }
    let again = run(&["cases/third.toml", "--prepare", "--steps", "3", "--out", "elsewhere"]);
    assert!(again.status.success() && !text(&again.stdout).contains("running"), "{}", text(&again.stdout));
}

#[test]
fn a_loop_that_cannot_be_closed_is_told_with_its_line() {
    let directory = Directory::new("loop");
    let machine = r#"[[machine]]
name = "arm"
ground_points = { far = [5, 0, 0] }
[[machine.body]]
name = "rod"
mass = 1
inertia = [1, 1, 1]
points = { tip = [1, 0, 0] }
[[machine.joint]]
name = "pin"
kind = "revolute"
axis = [0, 1, 0]
parent = "ground"
child = "rod"
[[machine.cut]]
name = "rope"
kind = "points"
between = ["rod.tip", "ground.far"]
"#;
    let case = directory.case("loop.toml", machine);
    let text = std::fs::read_to_string(&case).expect("the case");
    let line = 1 + text[..text.find("[[machine.cut]]").expect("the cut")].matches('\n').count();
    let output = Command::new(env!("CARGO_BIN_EXE_breccia")).arg("check").arg(&case).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("loop.toml:{line}: machine.arm.cut.rope: ")), "line {line}: {said}");
    assert!(said.contains("loop `rope`"), "{said}");
}
