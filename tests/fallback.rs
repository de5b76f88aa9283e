//! Steps that the sweeps have missed, handed to a solver that gets further: `solver.fallback`.

mod support;

use serde_json::Value;
use support::{Directory, breccia, project, run};

/// A small trough in which stones fall, with sweeps so few that steps miss their tolerance.
const SMALL: [&str; 14] = [
    "--set",
    "grains.stones.count=90",
    "--set",
    "parameters.length=0.36",
    "--set",
    "parameters.begin=0.25",
    "--set",
    "solver.maximum_sweeps=60",
    "--set",
    "solver.tolerance=1e-6",
    "--set",
    "simulation.duration=0.52",
    "--set",
    "output.series_interval=5e-4",
];

const FALLBACK: [&str; 4] =
    ["--set", "solver.fallback=sweeps-newton", "--set", "solver.fallback_steps=1000000"];

fn count(summary: &Value, name: &str) -> u64 {
    summary[name].as_u64().unwrap_or_else(|| panic!("{name} in {summary}"))
}

fn digging(directory: &Directory, name: &str, ranks: usize, steps: &str, more: &[&str]) -> Value {
    let more = [&SMALL[..], &["--steps", steps], more].concat();
    run(&project("inputs/digging.toml"), ranks, &directory.file(name), &more)
}

/// Sweeps alone miss most steps; with a fallback nearly none is left, and as many sweeps as are needed come
/// to the same residual.
#[test]
fn missed_steps_are_brought_home() {
    let directory = Directory::new("fallback");
    let without = digging(&directory, "without", 1, "600", &[]);
    assert!(count(&without, "not_converged") > 60, "{without}");
    assert_eq!(count(&without, "handed_over"), 0);
    let with = digging(&directory, "with", 1, "600", &FALLBACK);
    let (handed, home) = (count(&with, "handed_over"), count(&with, "brought_home"));
    assert!(handed > 60 && handed - home == count(&with, "not_converged"), "{with}");
    assert!(home * 100 >= handed * 95, "{home} of {handed}");
    assert!(with["residual"]["max"].as_f64() < without["residual"]["max"].as_f64());
}

/// The same bits on any ranks and threads, with every instruction set, and over a restart, in stones that
/// give way and with forces checked; the number of steps that are handed over is limited over restarts, too.
#[test]
fn a_fallback_has_the_same_bits_everywhere() {
    let directory = Directory::new("fallback-bits");
    let limited =
        [&FALLBACK[..2], &["--set", "solver.fallback_steps=80", "--set", "output.force_check=0.1"]].concat();
    let alone = digging(&directory, "alone", 1, "600", &limited);
    assert_eq!(count(&alone, "handed_over"), 80);
    let of = |summary: &Value| (summary["digest"].clone(), count(summary, "handed_over"));
    for (ranks, more) in [
        (1, ["--threads", "2"]),
        (2, ["--threads", "1"]),
        (4, ["--threads", "2"]),
        (1, ["--instructions", "plain"]),
        (1, ["--instructions", "avx2"]),
    ] {
        let other = digging(
            &directory,
            &format!("{ranks}{}", more[1]),
            ranks,
            "600",
            &[&limited[..], &more].concat(),
        );
        assert_eq!(of(&other), of(&alone), "{ranks} ranks, {more:?}");
    }
    let stopped = digging(&directory, "stopped", 2, "510", &limited);
    assert!((1..80).contains(&count(&stopped, "handed_over")), "{stopped}");
    let resumed =
        digging(&directory, "stopped", 3, "600", &[&limited[..], &["--restart", "latest"]].concat());
    assert_eq!(of(&resumed), of(&alone), "after a restart");
}

/// What a fallback cannot be used with is refused with its line.
#[test]
fn a_fallback_beside_another_method_is_refused() {
    let case = project("inputs/digging.toml").display().to_string();
    let (code, words) = breccia(
        1,
        &["check", &case, "--set", "solver.method=nsgs", "--set", "solver.fallback=sweeps-newton"],
    );
    assert_ne!(code, 0);
    assert!(words.contains("solver.fallback") && words.contains("leave one of them out"), "{words}");
    let (code, words) = breccia(1, &["check", &case, "--set", "solver.fallback=newton"]);
    assert!(code != 0 && words.contains("sweeps-newton"), "{words}");
}
