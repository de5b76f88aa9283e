//! Two jobs in one directory: one works, the other ends at once and names it.

use super::runs::{Out, PATIENCE};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The code of a run that finds another in its directory.
const IN_USE: i32 = 5;
const STEPS: u64 = 300;

/// Twenty under BRECCIA_SOAK.
fn pairs() -> usize {
    if std::env::var_os("BRECCIA_SOAK").is_some() { 20 } else { 6 }
}

/// How a job ended and what it said; the job number of each is its own.
fn ended(mut child: Child) -> (Option<i32>, String) {
    let mut words = String::new();
    // It says little: a pipe holds all of it.
    let status = super::runs::ended(&mut child, "one of two");
    child.stderr.take().expect("a pipe").read_to_string(&mut words).expect("text");
    (status.code(), words)
}

fn start(out: &Out, ranks: usize, job: &str, more: &[&str]) -> Child {
    let mut command = out.command(ranks, STEPS, more);
    command.env("SLURM_JOB_ID", job).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

#[test]
fn of_two_jobs_in_one_directory_one_works() {
    let straight = Out::new("alone");
    straight.finish(1, STEPS, &[]);
    let expected = straight.results();
    let mut messages = 0;
    for pair in 0..pairs() {
        let out = Out::new(&format!("pair-{pair}"));
        let ranks = [[1, 1], [2, 1], [1, 2], [2, 2]][pair % 4];
        let more: &[&str] = if pair % 3 == 2 { &[] } else { &["--restart", "auto"] };
        let jobs = ["4711", "4712"];
        let children = [0, 1].map(|k| start(&out, ranks[k], jobs[k], more));
        let processes = children.each_ref().map(Child::id);
        let ends = children.map(ended);
        // If the second came when the first had finished, it had nothing to do, or did it all again.
        let refused: Vec<usize> = (0..2).filter(|&k| ends[k].0 == Some(IN_USE)).collect();
        assert!(refused.len() <= 1, "pair {pair}: {ends:?}");
        assert!((0..2).all(|k| ends[k].0 == Some(0) || refused.contains(&k)), "pair {pair}: {ends:?}");
        messages += refused.len();
        for &k in &refused {
            let (words, other) = (&ends[k].1, 1 - k);
            let errors = words.lines().filter(|line| line.starts_with("error:")).count();
            assert_eq!(errors, 1, "one message: {words}");
            let named = words.contains(&format!("job {}", jobs[other])) && words.contains("host ");
            let process = ranks[other] > 1 || words.contains(&format!("process {}", processes[other]));
            assert!(named && process && words.contains("started 20"), "{words}");
        }
        expected.assert_same(&out.results(), &format!("pair {pair}"));
        assert!(!out.path.join("run.lock").exists(), "pair {pair}: the lock is given back");
    }
    println!("{} pairs: {messages} times the second found the first at work", pairs());
    assert!(messages > 0, "two runs never met: nothing was tested");
}

/// The second comes while the first surely works, and leaves it alone; the lock of a killed run is taken
/// over.
#[test]
fn a_run_under_way_keeps_its_directory_and_a_killed_one_gives_it_back() {
    let out = Out::new("kept");
    let mut first = start(&out, 1, "17", &["--set", "output.interval=0.0005"]);
    let begun = Instant::now();
    while out.checkpoints().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "the run does not get going");
        assert!(first.try_wait().expect("it can be asked").is_none(), "it ends too soon");
        std::thread::sleep(Duration::from_millis(2));
    }
    // Halted, it cannot end in the meantime.
    super::runs::send("STOP", &[first.id()]);
    for (ranks, more) in
        [(1, &["--restart", "auto"][..]), (2, &["--overwrite"]), (1, &["--restart", "latest"])]
    {
        let (code, words) = out.run(ranks, STEPS, more);
        assert_eq!(code, IN_USE, "{words}");
        let named = words.contains(&format!("process {}, job 17, started 20", first.id()));
        assert!(named, "{words}");
    }
    super::runs::send("KILL", &[first.id()]);
    first.wait().expect("it is gone");
    assert!(out.path.join("run.lock").exists(), "a killed run leaves its lock");
    let words = out.finish(1, STEPS, &["--restart", "auto"]);
    assert!(words.contains("the lock of a run that is gone is taken over"), "{words}");
    assert!(!out.path.join("run.lock").exists());
    let straight = Out::new("never-killed");
    straight.finish(1, STEPS, &["--set", "output.interval=0.0005"]);
    assert_eq!(straight.results().digest, out.results().digest);
}

/// A wrong case leaves no directory where none was.
#[test]
fn a_run_that_does_not_begin_leaves_nothing() {
    let out = Out::new("nothing");
    let (code, words) = out.run(1, 10, &["--restart", "latest"]);
    assert_eq!(code, 1, "{words}");
    assert!(words.contains("has no checkpoint") && !out.path.exists(), "{words}");
}

/// Who reads it finds it whole, from its first moment on.
#[test]
fn a_lock_names_its_holder_in_json() {
    let out = Out::new("named");
    let mut run = start(&out, 1, "5", &[]);
    let begun = Instant::now();
    let text = loop {
        if let Ok(text) = std::fs::read_to_string(out.path.join("run.lock")) {
            break text;
        }
        assert!(begun.elapsed() < PATIENCE, "the run does not get going");
        std::thread::sleep(Duration::from_millis(1));
    };
    let lock: serde_json::Value = serde_json::from_str(&text).expect("JSON, whole from its first moment");
    assert_eq!((&lock["process"], &lock["job"]), (&run.id().into(), &"5".into()));
    let host = Command::new("uname").arg("-n").output().expect("uname is there").stdout;
    assert_eq!(lock["host"], String::from_utf8_lossy(&host).trim());
    run.kill().expect("it can be ended");
    run.wait().expect("it ends");
}
