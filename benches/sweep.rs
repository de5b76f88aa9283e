//! The contact solve: nanoseconds per contact point and sweep by size of the problem, with the bytes moved and this machine's bandwidth; sweeps and
//! time to a residual, with and without acceleration.
//!
//! `RAYON_NUM_THREADS=1 cargo bench --bench sweep`; with the word `speed` or `residual`, only the former or the latter; with the word `count`, only ten sweeps of one packing,
//! for callgrind (`jobs/instructions.sh`). Names of states (`final.h5` of a run) are packings to sweep too.

mod packing;
#[path = "packing/spheres.rs"]
mod spheres;

use breccia::contact::detect::Detector;
use breccia::solve::{self, Acceleration, Alone, Hub, LocalLaw, Options, Problem, Sweep, Team, team};
use packing::{Ready, STONES, colours_of, copies, state, stones1000};
use std::time::Instant;

fn main() {
    // This thread is one of the pool's, as in the program.
    rayon::ThreadPoolBuilder::new().use_current_thread().build_global().expect("threads");
    let ready = Ready::new(stones1000(STONES));
    let problem = ready.problem();
    if std::env::args().any(|word| word == "count") {
        return count(&problem);
    }
    if std::env::args().any(|word| word == "residual") {
        return times_to_residual(&problem);
    }
    speeds(&ready, &problem);
    if !std::env::args().any(|word| word == "speed") {
        times_to_residual(&problem);
    }
}

fn speeds(ready: &Ready, problem: &Problem) {
    let mut detector = Detector::default();
    for _ in 0..3 {
        let start = Instant::now();
        let found = ready.detect(&mut detector).len();
        println!("detect: {:.2} ms, {found} patches", start.elapsed().as_secs_f64() * 1e3);
    }
    println!("copying memory: {:.1} GB/s", bandwidth());
    for path in std::env::args().filter(|word| word.ends_with(".h5")) {
        let ready = Ready::new(state(&path));
        println!("{path}: {} stones", ready.scene.grains.len());
        sweep_speed(&ready.problem(), LocalLaw::Projected);
    }
    for count in [1, 5, 10, 100] {
        sweep_speed(&copies(problem, count), LocalLaw::Projected);
    }
    sweep_speed(problem, LocalLaw::Exact);
}

fn times_to_residual(stones: &Problem) {
    time_to_residual("stones1000", stones);
    time_to_residual("sphere packing", &spheres::packing());
    time_to_residual("tall column", &spheres::column());
    time_to_residual("heavy tool", &spheres::heavy_tool());
}

/// Bytes read and written per second by a plain copy of 256 MB.
fn bandwidth() -> f64 {
    let source = vec![1_u64; 1 << 25];
    let mut target = vec![0_u64; 1 << 25];
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        target.copy_from_slice(std::hint::black_box(&source));
        std::hint::black_box(&target);
        best = best.min(start.elapsed().as_secs_f64());
    }
    2.0 * 8.0 * source.len() as f64 / best * 1e-9
}

fn sweep_speed(problem: &Problem, law: LocalLaw) {
    team::with(rayon::current_num_threads(), |team| sweep_speed_of(problem, law, team));
}

fn sweep_speed_of(problem: &Problem, law: LocalLaw, team: &Team) {
    let start = Instant::now();
    let colours = colours_of(problem);
    let coloured = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let mut sweep = Sweep::new(problem, &Hub::default(), &colours, law, |_| false, team);
    let made = start.elapsed().as_secs_f64();
    let points = problem.points.len() as f64;
    let best = |work: &mut dyn FnMut()| {
        let rounds = (5e6 / points) as usize + 5;
        let time = |_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        };
        (0..rounds).map(time).fold(f64::INFINITY, f64::min)
    };
    let swept = best(&mut || sweep.run(&mut Alone));
    let bytes = sweep.bytes_per_sweep() as f64;
    let measured = best(&mut || {
        std::hint::black_box(sweep.measure());
    });
    println!(
        "{law:?}, {points} points, {} colours: {:.1} ns a point and sweep ({:.0} bytes a point, {:.1} GB/s); measuring {:.1}, making the blocks {:.1}, colouring {:.1}",
        colours.count,
        swept * 1e9 / points,
        bytes / points,
        bytes / swept * 1e-9,
        measured * 1e9 / points,
        made * 1e9 / points,
        coloured * 1e9 / points,
    );
}

fn time_to_residual(name: &str, problem: &Problem) {
    let colours = colours_of(problem);
    println!("{name}: {} points, {} colours, from zero impulses", problem.points.len(), colours.count);
    for tolerance in [1e-2, 1e-3, 1e-4] {
        for acceleration in [Acceleration::None, Acceleration::ConjugateGradient, Acceleration::Momentum] {
            let options = Options {
                tolerance,
                maximum_sweeps: 20_000,
                check_every: 10,
                acceleration,
                ..Options::default()
            };
            let start = Instant::now();
            let solution = solve::solve(problem, &Hub::default(), &colours, &options, |_| false, &mut Alone);
            println!(
                "  to {tolerance:e}, {acceleration:?}: {} sweeps, {:.1} ms{}",
                solution.sweeps,
                start.elapsed().as_secs_f64() * 1e3,
                if solution.converged { "" } else { ", not reached" },
            );
        }
    }
}

/// Ten sweeps that callgrind counts: `sweep_to_count` is the name to look for.
fn count(problem: &Problem) {
    let colours = colours_of(problem);
    let team = Team::alone();
    let mut sweep = Sweep::new(problem, &Hub::default(), &colours, LocalLaw::Projected, |_| false, &team);
    sweep_to_count(&mut sweep);
    println!("{} points, 10 sweeps", problem.points.len());
}

#[inline(never)]
fn sweep_to_count(sweep: &mut Sweep) {
    for _ in 0..10 {
        sweep.run(&mut Alone);
    }
}
