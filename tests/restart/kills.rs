//! Kills that no program can prepare for, and signals that it can.

use super::runs::{Out, PATIENCE, Random, ended, family, send, soak};
use std::time::{Duration, Instant};

const STEPS: u64 = 400;

/// Kills the whole run at random moments, goes on from the last checkpoint each time, and compares with a run
/// that nobody disturbed.
#[test]
fn kills_at_any_moment_change_nothing() {
    let mut random = Random::new(2);
    let straight = Out::new("undisturbed");
    let begun = Instant::now();
    straight.finish(1, STEPS, &[]);
    let longest = begun.elapsed().as_millis() as u64;
    let expected = straight.results();
    let wanted = if soak() { 100 } else { 8 };
    let (mut kills, mut round, mut restarts) = (0, 0, 0);
    while kills < wanted {
        round += 1;
        let out = Out::new(&format!("kills-{round}"));
        loop {
            let ranks = [1, 2][random.below(2) as usize];
            let mut child = out.start(ranks, STEPS, &["--restart", "auto"]);
            let moment = Duration::from_millis(random.below(longest.max(400)));
            let (begun, mut done) = (Instant::now(), None);
            // However busy the machine is, some come when there are checkpoints.
            let later = kills % 3 == 2;
            let waits = || begun.elapsed() < moment || (later && out.checkpoints().is_empty());
            while done.is_none() && (kills >= wanted || waits()) {
                assert!(begun.elapsed() < PATIENCE, "the run hangs");
                done = child.try_wait().expect("the run can be asked");
                std::thread::sleep(Duration::from_millis(1));
            }
            if let Some(status) = done {
                assert_eq!(status.code(), Some(0), "round {round}, after {kills} kills");
                break;
            }
            send("KILL", &family(child.id()));
            child.wait().expect("the run ends");
            kills += 1;
            // Whatever is there is whole.
            for path in out.checkpoints() {
                breccia::output::digest(&path).expect("every checkpoint is whole");
                restarts += 1;
            }
        }
        expected.assert_same(&out.results(), &format!("round {round}, {kills} kills"));
    }
    println!("{kills} kills in {round} runs, {restarts} checkpoints looked at, all as the straight run");
    assert!(restarts > 0, "no kill came after a checkpoint: nothing was tested");
}

/// Waits until the run has made a checkpoint.
fn under_way(out: &Out) {
    let begun = Instant::now();
    while out.checkpoints().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "the run does not get going");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn stopped_by(signal: &str, ranks: usize, to_launcher: bool, expected_code: i32) {
    let out = Out::new(&format!("signal-{signal}-{ranks}"));
    let mut child = out.start(ranks, 1_000_000, &[]);
    under_way(&out);
    let processes = family(child.id());
    let sent = Instant::now();
    // One rank is enough; a scheduler or mpirun may also tell it twice.
    let target = if to_launcher { child.id() } else { processes[0] };
    send(signal, &[target]);
    send(signal, &[target]);
    let status = ended(&mut child, signal);
    let seconds = sent.elapsed().as_secs_f64();
    assert_eq!(status.code(), Some(expected_code), "SIG{signal} on {ranks} ranks");
    let summary = std::fs::read_to_string(out.path.join("summary.json")).expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(summary["status"], "stopped");
    let step = summary["last_step"].as_u64().expect("a number");
    let last = out.checkpoints().pop().expect("a checkpoint");
    assert!(last.ends_with(format!("checkpoint-{step:012}.h5")), "{} at step {step}", last.display());
    println!(
        "SIG{signal} on {ranks} ranks: code {expected_code} and a checkpoint at step {step} after {seconds:.2} s"
    );
    // And it goes on, on another number of ranks, as if nothing had been.
    let straight = Out::new(&format!("no-signal-{signal}-{ranks}"));
    straight.finish(1, step + 25, &[]);
    out.finish(3 - ranks, step + 25, &["--restart", "auto"]);
    straight.results().assert_same(&out.results(), &format!("SIG{signal} on {ranks} ranks"));
}

#[test]
fn signals_save_the_state_and_end_the_run() {
    stopped_by("USR1", 2, true, 138);
    stopped_by("TERM", 2, false, 143);
    stopped_by("USR1", 1, true, 138);
}
