//! Five signals on one and four ranks at four moments: the run ends by itself, saved, and goes on with the
//! same bits.
//!
//! What is checked holds whenever a signal comes. The moments are aimed at: `start` is when the directory is
//! taken; for the others the run does almost nothing else (a checkpoint or a picture after every step, or
//! long solves alone), so that most signals come in the middle of it.

use super::runs::{Out, PATIENCE, Random, ended, family, send, soak};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// A column of balls, the lowest of which turns. The tolerance is below what rounding allows, so that every
/// solve takes all its sweeps.
const CASE: &str = "inputs/sphere-column.toml";
const SETTINGS: [&str; 10] = [
    "--set",
    "body.ball-1.angular_velocity=[0,5,0]",
    "--set",
    "solver.tolerance=1e-18",
    "--set",
    "solver.maximum_sweeps=2000",
    "--set",
    "checkpoint.keep=100000",
    "--set",
    "output.contacts=none",
];

/// Of the straight run; a run that is stopped has not come so far.
const STEPS: u64 = 120;
/// A run is gone so soon after a signal, s; asserted by `make soak`.
const AT_MOST: f64 = 5.0;
/// After a stop.
const MORE: u64 = 3;

const SIGNALS: [(&str, i32); 5] = [("HUP", 129), ("INT", 130), ("USR1", 138), ("TERM", 143), ("XCPU", 152)];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    Start,
    Solve,
    Checkpoint,
    Output,
}

impl Moment {
    const ALL: [Moment; 4] = [Moment::Start, Moment::Solve, Moment::Checkpoint, Moment::Output];

    fn settings(self) -> &'static [&'static str] {
        match self {
            Moment::Start | Moment::Solve => &["--set", "output.interval=1"],
            Moment::Checkpoint => &["--set", "output.interval=1", "--set", "checkpoint.steps=1"],
            Moment::Output => &["--set", "output.interval=1e-3"],
        }
    }

    /// Whether the run does what it is to be disturbed in, again and again from here on.
    fn is_near(self, out: &Path) -> bool {
        match self {
            Moment::Start => out.join("run.lock").exists(),
            Moment::Solve | Moment::Output => out.join("summary.json").exists(),
            Moment::Checkpoint => out.join("checkpoints").exists(),
        }
    }

    /// Whether it does so just now, as far as can be seen from outside.
    fn has_come(self, out: &Path) -> bool {
        let under_way = |entry: std::fs::DirEntry| entry.path().extension().is_some_and(|name| name == "tmp");
        match self {
            Moment::Checkpoint => {
                std::fs::read_dir(out.join("checkpoints")).into_iter().flatten().flatten().any(under_way)
            }
            _ => true,
        }
    }
}

/// The digests after each step of a run that nobody disturbs.
fn straight() -> Vec<String> {
    let out = Out::of("signals-straight", CASE, &SETTINGS);
    out.finish(1, STEPS, Moment::Checkpoint.settings());
    let digests: Vec<String> = (1..=STEPS)
        .map(|step| out.path.join(format!("checkpoints/checkpoint-{step:012}.h5")))
        .map(|path| breccia::output::digest(&path).expect("a checkpoint of each step"))
        .collect();
    assert_ne!(digests[0], digests[1], "something moves");
    digests
}

/// Waits for a moment; the run may end before, which then is what is looked at.
fn until(child: &mut Child, name: &str, there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !there() && child.try_wait().expect("it can be asked").is_none() {
        assert!(begun.elapsed() < PATIENCE, "{name}: it does not get going");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// How long it took to end; none if the signal came before the run had touched its directory, or after its
/// end.
fn trial(
    name: &str,
    signal: (&str, i32),
    ranks: usize,
    moment: Moment,
    wait: Duration,
    digests: &[String],
) -> Option<f64> {
    let out = Out::of(name, CASE, &SETTINGS);
    let last = STEPS - MORE;
    let mut child = out.start(ranks, last, moment.settings());
    until(&mut child, name, || moment.is_near(&out.path));
    std::thread::sleep(wait);
    until(&mut child, name, || moment.has_come(&out.path));
    // To all ranks, as a scheduler does; mpirun itself would treat some of them in its own way.
    let mut processes = family(child.id());
    if ranks > 1 {
        processes.pop();
    }
    let sent = Instant::now();
    send(signal.0, &processes);
    let status = ended(&mut child, name);
    let seconds = sent.elapsed().as_secs_f64();
    let summary = std::fs::read_to_string(out.path.join("summary.json")).ok();
    let summary: Option<serde_json::Value> = summary.map(|text| serde_json::from_str(&text).expect("JSON"));
    let told = summary.as_ref().map_or("", |summary| summary["status"].as_str().unwrap_or_default());
    let reached = summary.as_ref().and_then(|summary| summary["last_step"].as_u64());
    match (told, status.code()) {
        ("stopped", Some(code)) => {
            assert_eq!(code, signal.1, "{name}");
            let step = reached.expect("a number");
            if step > 0 {
                let digest = breccia::output::digest(&out.path.join("final.h5")).expect("a final state");
                assert_eq!(digest, digests[step as usize - 1], "{name}: stopped after step {step}");
            }
        }
        ("finished", Some(0)) => {}
        // Before the run has written anything the signal has its usual effect.
        ("", _) => assert_eq!(moment, Moment::Start, "{name}: {status}"),
        _ => panic!("{name}: {status}, and the summary says {told:?}"),
    }
    let end = (reached.unwrap_or(0) + MORE).min(STEPS);
    out.finish(1, end, &[moment.settings(), &["--restart", "auto"]].concat());
    let digest = breccia::output::digest(&out.path.join("final.h5")).expect("a final state");
    assert_eq!(digest, digests[end as usize - 1], "{name}: on to step {end}");
    (told == "stopped").then_some(seconds)
}

#[test]
fn five_signals_at_four_moments_on_one_and_four_ranks() {
    let digests = straight();
    let rounds = std::env::var("BRECCIA_SIGNALS").ok().and_then(|rounds| rounds.parse().ok());
    let rounds: usize = rounds.unwrap_or(if soak() { 40 } else { 1 });
    let mut random = Random::new(5);
    let mut times = Vec::new();
    let mut trials = 0;
    for round in 0..rounds {
        for signal in SIGNALS {
            for ranks in [1, 4] {
                for moment in Moment::ALL {
                    let wait = if moment == Moment::Start { 20 } else { 100 * ranks as u64 };
                    let wait = Duration::from_millis(random.below(wait));
                    let name = format!("signal-{}-{ranks}-{moment:?}-{round}", signal.0);
                    trials += 1;
                    if let Some(seconds) = trial(&name, signal, ranks, moment, wait, &digests) {
                        if seconds > AT_MOST {
                            println!("{name}: gone after {seconds:.1} s");
                        }
                        times.push(seconds);
                    }
                }
            }
        }
    }
    times.sort_by(f64::total_cmp);
    let longest = times.last().copied().unwrap_or_default();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let slow = times.iter().filter(|&&seconds| seconds > AT_MOST).count();
    println!(
        "{trials} signals, {} runs stopped by them, {median:.2} s later in the middle, {longest:.2} s at most, \
         {slow} later than {AT_MOST} s",
        times.len()
    );
    // On a machine with other work it may take longer, and `make test` has to pass there.
    assert!(slow == 0 || !soak(), "{slow} of {trials} were not gone within {AT_MOST} s");
    assert!(
        times.len() * 2 > trials,
        "most signals come while a run is under way: {} of {trials}",
        times.len()
    );
}

/// However slow the machine is, the run ends by itself, and before it would have finished.
#[test]
fn a_run_ends_before_its_time_is_over() {
    for ranks in [1, 2] {
        let out = Out::of(&format!("max-time-{ranks}"), CASE, &SETTINGS);
        let begun = Instant::now();
        let (code, words) = out.run(ranks, 1_000_000, &["--max-time", "3.5s"]);
        println!("--max-time 3.5s on {ranks} ranks: gone after {:.2} s", begun.elapsed().as_secs_f64());
        assert_eq!(code, 6, "{words}");
        assert!(words.contains("stopped by --max-time: ending after step"), "{words}");
        let summary = std::fs::read_to_string(out.path.join("summary.json")).expect("a summary");
        let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
        assert_eq!(
            (&summary["status"], &summary["message"]),
            (&"stopped".into(), &"stopped by --max-time".into())
        );
        let end = summary["last_step"].as_u64().expect("a number") + MORE;
        out.finish(1, end, &["--restart", "auto"]);
        let straight = Out::of(&format!("no-max-time-{ranks}"), CASE, &SETTINGS);
        straight.finish(1, end, &[]);
        let digest = |out: &Out| breccia::output::digest(&out.path.join("final.h5")).expect("a final state");
        assert_eq!(digest(&straight), digest(&out), "{ranks} ranks, step {end}");
    }
}
