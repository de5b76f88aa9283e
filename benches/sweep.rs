//! The contact solve: nanoseconds per contact point and sweep by size of the problem, with the bytes moved
//! and this machine's bandwidth; sweeps and time to a residual, with and without acceleration, from zero
//! impulses and from those of the step before.
//!
//! `RAYON_NUM_THREADS=1 cargo bench --bench sweep`; with the word `speed` or `residual`, only the former or
//! the latter; with the word `count`, only ten sweeps of one packing, for callgrind (`jobs/instructions.sh`);
//! with the word `order`, three million points with their bodies in order and in disorder; with the word
//! `error`, where the error of a solve is. With the word `avx2` by these instructions. Names of states
//! (`final.h5` of a run) are packings to sweep too.

#[path = "packing/errors.rs"]
mod errors;
mod packing;
#[path = "packing/runs.rs"]
mod runs;
#[path = "packing/spheres.rs"]
mod spheres;

use breccia::contact::detect::Detector;
use breccia::geometry::Vec3;
use breccia::lanes::Instructions;
use breccia::scene::{Physics, Scene};
use breccia::solve::{
    self, Acceleration, Alone, Blocks, Hub, LocalLaw, Measure, Options, Problem, Ruler, Solution, Sweep,
    Team, team,
};
use packing::{Ready, STONES, colours_of, copies, shuffled, state, stones1000};
use std::sync::Arc;
use std::time::Instant;

fn main() {
    // This thread is one of the pool's, as in the program.
    rayon::ThreadPoolBuilder::new().use_current_thread().build_global().expect("threads");
    if std::env::args().any(|word| word == "avx2") {
        assert!(Instructions::Avx2.choose(), "this processor has no AVX2");
    }
    let mut ready = Ready::new(stones1000(STONES));
    let problem = ready.problem();
    if std::env::args().any(|word| word == "count") {
        return count(&problem);
    }
    if std::env::args().any(|word| word == "residual") {
        return times_to_residual(&problem);
    }
    if std::env::args().any(|word| word == "order") {
        return orders(&problem);
    }
    if std::env::args().any(|word| word == "error") {
        return errors_left();
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
        let found: usize = ready.detect(&mut detector).iter().map(|contacts| contacts.len()).sum();
        println!("detect: {:.2} ms, {found} patches", start.elapsed().as_secs_f64() * 1e3);
    }
    println!("copying memory: {:.1} GB/s", bandwidth());
    for path in std::env::args().filter(|word| word.ends_with(".h5")) {
        let mut ready = Ready::new(state(&path));
        println!("{path}: {} stones", ready.world.scene.state.grains.len());
        sweep_speed(&ready.problem(), LocalLaw::Projected);
    }
    for count in [1, 5, 10, 100] {
        sweep_speed(&copies(problem, count), LocalLaw::Projected);
    }
    sweep_speed(problem, LocalLaw::Exact);
}

/// Three million points: bodies that stand as they were put down, anywhere, and anywhere but with their
/// places known.
fn orders(problem: &Problem) {
    let many = copies(problem, 600);
    for (order, problem) in [
        ("in rows", &many),
        ("anywhere", &shuffled(&many, false)),
        ("anywhere, by place", &shuffled(&many, true)),
    ] {
        println!("bodies {order}:");
        sweep_speed(problem, LocalLaw::Projected);
    }
}

fn times_to_residual(stones: &Problem) {
    let (_, physics) = stones1000(STONES);
    let settled = runs::after(1200, spheres::scene(&spheres::loose()), &physics);
    let sinking = runs::after(400, spheres::with_tool(settled.clone()), &physics);
    let problem = |scene: &Scene| Ready::new((scene.clone(), physics.clone())).problem();
    let cold = [
        ("stones1000", stones),
        ("sphere packing", &spheres::problem(&spheres::packing())),
        ("settled spheres", &problem(&settled)),
        ("tall column", &spheres::problem(&spheres::column())),
        ("heavy tool in a bed", &problem(&sinking)),
        (LOTTERY, &spheres::problem(&spheres::heavy_tool())),
    ];
    println!("from zero impulses, at most 20000 sweeps");
    for measure in MEASURES {
        for (name, problem) in cold {
            let problems = if name == LOTTERY { spheres::varied(problem, 10) } else { vec![problem.clone()] };
            for tolerance in [1e-2, 1e-3, 1e-4] {
                time_to_residual(name, &problems, (measure, tolerance), 20_000);
            }
        }
    }
    let warm = warm_runs(settled, sinking);
    println!("steps of a run, each from the impulses of the step before, at most 2000 sweeps a step");
    for measure in MEASURES {
        for Run { name, scene, physics, skipped } in &warm {
            for tolerance in [1e-3, 1e-4] {
                let problems =
                    runs::problems(scene.clone(), physics, (*skipped, STEPS), (measure, tolerance));
                time_to_residual(name, &problems, (measure, tolerance), 2000);
            }
        }
    }
}

/// A run whose steps are solved.
struct Run {
    name: &'static str,
    scene: Scene,
    physics: Physics,
    /// Steps before the first one that counts.
    skipped: usize,
}

/// `settled`: spheres that have come to rest; `sinking`: with a tool among them.
fn warm_runs(settled: Scene, sinking: Scene) -> Vec<Run> {
    let (stones, physics) = stones1000(STONES);
    let tilted = Physics { gravity: Arc::new(|_| Vec3::new(8.0, 0.0, -6.0)), ..physics.clone() };
    let at_rest = |name, scene| Run { name, scene, physics: physics.clone(), skipped: 5 };
    vec![
        at_rest("stones1000", stones.clone()),
        Run { name: "stones1000, sliding", scene: stones, physics: tilted, skipped: 40 },
        at_rest("sphere packing", spheres::scene(&spheres::packing())),
        at_rest("settled spheres", settled),
        at_rest("tall column", spheres::scene(&spheres::column())),
        at_rest("heavy tool in a bed", sinking),
        at_rest(LOTTERY, spheres::scene(&spheres::heavy_tool())),
    ]
}

/// Where the error of the velocities is after twenty plain sweeps, from zero impulses and from those of the
/// step before.
fn errors_left() {
    let (_, physics) = stones1000(STONES);
    let settled = runs::after(1200, spheres::scene(&spheres::loose()), &physics);
    let sinking = runs::after(400, spheres::with_tool(settled.clone()), &physics);
    let measure = Measure::Scaled;
    for Run { name, scene, physics, skipped } in warm_runs(settled, sinking) {
        if name == LOTTERY {
            continue;
        }
        let (scene, warm) =
            runs::steps(scene, &physics, (skipped, 1), (measure, 1e-3)).pop().expect("one step");
        let bodies = scene.state.grains.iter().chain(&scene.state.statics);
        let places: Vec<Vec3> = bodies.map(|body| body.pose.position).collect();
        let colours = colours_of(&warm);
        let solved = |problem: &Problem, acceleration, maximum_sweeps| {
            let options =
                Options { tolerance: 1e-6, measure, maximum_sweeps, acceleration, ..Options::default() };
            solve::solve(problem, &Hub::default(), &colours, &options, |_| false, &mut Alone)
        };
        let exact = solved(&warm, Acceleration::Momentum, 50_000);
        let mut cold = warm.clone();
        cold.points.iter_mut().for_each(|point| point.impulse = [0.0; 3]);
        for (start, problem) in [("cold", &cold), ("warm", &warm)] {
            let found = solved(problem, Acceleration::None, 20);
            let spread = errors::spread(problem, &places, &found.velocities, &exact.velocities, &[125, 8]);
            print!("{name}, {start}:");
            for (size, part) in [125, 8].iter().zip(spread.clusters) {
                print!(" in clusters of {size} {:.2} (by chance {:.3});", part.share, part.by_chance);
            }
            println!(
                " hottest tenth {:.2}; rotation {:.2}; residual {:.1e}, {:.1e} of the exact one",
                spread.hottest_tenth, spread.rotation, found.residual.natural_map, exact.residual.natural_map
            );
        }
    }
}

/// Sweeps wander here, and when they come across a residual of 1e-3 changes with the last bit: one problem
/// says nothing.
const LOTTERY: &str = "heavy tool on a lattice";

/// Consecutive steps of a run whose problems are solved. Few would be a lottery: whether one needs 60 or 200
/// sweeps is a matter of rounding.
const STEPS: usize = 10;

const MEASURES: [Measure; 2] = [Measure::Scaled, Measure::Fclib];

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
    let [scaled, fclib] = MEASURES.map(|measure| {
        let mut ruler = Ruler::new(measure);
        best(&mut || {
            std::hint::black_box(ruler.read(&sweep, &mut Alone));
        })
    });
    println!(
        "{law:?}, {points} points, {} colours: {:.1} ns a point and sweep ({:.0} bytes a point, {:.1} GB/s); measuring {:.1} (scaled) and {:.1}, making the blocks {:.1}, colouring {:.1}",
        colours.count,
        swept * 1e9 / points,
        bytes / points,
        bytes / swept * 1e-9,
        scaled * 1e9 / points,
        fclib * 1e9 / points,
        made * 1e9 / points,
        coloured * 1e9 / points,
    );
}

/// The same problems by each acceleration: mean sweeps and time of one.
fn time_to_residual(
    name: &str,
    problems: &[Problem],
    (measure, tolerance): (Measure, f64),
    maximum_sweeps: usize,
) {
    let points = problems[0].points.len();
    print!("{name}, {points} points, {measure:?}, to {tolerance:e}:");
    let ways = [Acceleration::None, Acceleration::Momentum].map(|acceleration| Options {
        tolerance,
        measure,
        maximum_sweeps,
        acceleration,
        ..Options::default()
    });
    let solved: Vec<[(Solution, f64); 2]> =
        problems.iter().map(|problem| solve_in_turns(problem, &ways)).collect();
    for (way, options) in ways.iter().enumerate() {
        let found = || solved.iter().map(|ways| &ways[way]);
        let (sweeps, seconds) = (found().map(|(solution, _)| solution.sweeps), found().map(|(_, time)| time));
        let (sweeps, seconds): (usize, f64) = (sweeps.sum(), seconds.sum());
        let (reached, count) = (found().filter(|(solution, _)| solution.converged).count(), problems.len());
        let worst = found().map(|(solution, _)| solution.residual.natural_map).fold(0.0, f64::max);
        print!(
            " {:?} {} sweeps, {:.3} ms",
            options.acceleration,
            sweeps / count,
            seconds * 1e3 / count as f64
        );
        if reached < count {
            print!(" ({reached} of {count} reached, worst {worst:.1e})");
        }
        print!(";");
    }
    println!();
}

/// The fastest of some solves by each way, in turns: a machine that others use is not always as fast. Sweeps
/// and measurements, without making the blocks, which every way has to do alike.
fn solve_in_turns<const WAYS: usize>(problem: &Problem, ways: &[Options; WAYS]) -> [(Solution, f64); WAYS] {
    let colours = colours_of(problem);
    let solved = |options: &Options| {
        let blocks = Blocks::new(problem, &colours, |_| false);
        let start = Instant::now();
        let (solution, _) = solve::solve_in(blocks, problem, &Hub::default(), options, &mut Alone);
        (solution, start.elapsed().as_secs_f64())
    };
    let begin = Instant::now();
    let mut best = ways.each_ref().map(solved);
    for round in 0..30 {
        let seconds = begin.elapsed().as_secs_f64();
        if seconds > 3.0 || round >= 4 && seconds > 1.0 {
            break;
        }
        for (best, options) in best.iter_mut().zip(ways) {
            best.1 = best.1.min(solved(options).1);
        }
    }
    best
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
