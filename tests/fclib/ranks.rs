//! A step's problem out of a run, on any number of ranks, and solved again; and runs whose steps are solved
//! with W assembled.

use super::solve;
use super::support::{Directory, breccia, project, run};
use breccia::output::fclib::{FclibProblem, read_fclib};

/// Dumps a step on 1 and 4 ranks: equal bytes. Solved again from zero, the velocities are the step's own.
fn round_trip(case: &str, step: &str, more: &[&str], tolerance: f64) -> usize {
    let directory = Directory::new(&format!("fclib-{}", case.replace(['/', '.'], "-")));
    let arguments = [&["--steps", step, "--dump-problem", step], more].concat();
    for ranks in [1, 4] {
        run(&project(case), ranks, &directory.file(&ranks.to_string()), &arguments);
    }
    let mut contacts = 0;
    for form in ["global", "local"] {
        let [one, four] =
            ["1", "4"].map(|ranks| directory.file(&format!("{ranks}/problem-{step}-{form}.hdf5")));
        let bytes = [&one, &four].map(|path| std::fs::read(path).expect("a dumped problem"));
        assert!(bytes[0] == bytes[1], "{case}: the {form} problem of step {step} on 1 and 4 ranks");
        let before = read_fclib(&one).expect("a problem");
        let theirs = before.solution.expect("what the step found");
        let error = before.problem.assemble().expect("a problem").error(
            &breccia::solve::assembled::ContactSystem::lift(&theirs.r, 3),
            &mut vec![breccia::geometry::Vec3::zeros(); before.problem.contacts()],
        );
        assert!(error < 1e-8, "{case}: the step's own solution has the error {error:e}");
        let output = solve(&["--write-solution", "--tolerance", "1e-11"], std::slice::from_ref(&one));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
        let ours = read_fclib(&one).expect("a problem").solution.expect("written");
        let difference = |a: &[f64], b: &[f64]| {
            assert_eq!(a.len(), b.len());
            a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        let (v, u) = (difference(&ours.v, &theirs.v), difference(&ours.u, &theirs.u));
        println!("measured {case} step {step}, {form}: velocities differ by {v:.1e}, {u:.1e} m/s");
        assert!(v < tolerance && u < tolerance, "{case}, {form}: {v:e}, {u:e}");
        if let FclibProblem::Global(problem) = &before.problem {
            contacts = problem.contacts();
            assert_eq!(problem.f.len(), ours.v.len());
        }
    }
    contacts
}

/// A tight tolerance for the run, so that what it found is the solution.
const EXACT: [&str; 6] = [
    "--set",
    "solver.tolerance=1e-11",
    "--set",
    "solver.maximum_sweeps=100000",
    "--set",
    "solver.acceleration=conjugate-gradient",
];

#[test]
fn falling_stones() {
    let contacts = round_trip("inputs/ballast-box.toml", "200", &EXACT, 1e-7);
    assert!(contacts >= 10, "{contacts} contacts: too few to say anything");
}

/// A machine is a dense block of M: stones that lie, and a tool of several bodies among them.
#[test]
fn stones_and_a_machine() {
    let contacts = round_trip("inputs/tamper.toml", "10", &EXACT, 1e-6);
    assert!(contacts >= 100, "{contacts} contacts: too few to say anything");
}

#[test]
fn steps_that_do_not_exist_are_refused() {
    let directory = Directory::new("fclib-no-step");
    let (case, out) = (project("inputs/bouncing-ball.toml").display().to_string(), directory.file("out"));
    let out = out.display().to_string();
    let (code, words) = breccia(1, &["run", &case, "--out", &out, "--steps", "3", "--dump-problem", "4"]);
    assert_eq!(code, 2, "{words}");
    assert!(words.contains("--dump-problem 4: this run makes the steps 1 to 3"), "{words}");
}

/// Every solver by name drives the time step: the same bits on 1 and 3 ranks, and the motion of the coloured
/// sweep to the tolerance.
#[test]
fn the_step_can_use_every_solver() {
    let directory = Directory::new("fclib-methods");
    let case = project("inputs/ballast-box.toml");
    let mut energies = Vec::new();
    for method in ["coloured", "auto", "nsgs", "nncg", "prox-newton", "sweeps-newton"] {
        let set = format!("solver.method={method}");
        let more = [
            "--steps",
            "160",
            "--set",
            &set,
            "--set",
            "solver.tolerance=1e-9",
            "--set",
            "solver.maximum_sweeps=50000",
        ];
        let ranks: &[usize] = if method == "coloured" { &[1] } else { &[1, 3] };
        let found: Vec<_> = ranks
            .iter()
            .map(|&ranks| run(&case, ranks, &directory.file(&format!("{method}-{ranks}")), &more))
            .collect();
        for summary in &found[1..] {
            assert_eq!(summary["digest"], found[0]["digest"], "{method}");
        }
        assert_eq!(found[0]["not_converged"], 0, "{method}: {}", found[0]);
        energies.push(found[0]["kinetic_energy"].as_f64().expect("a number"));
    }
    println!("measured kinetic energy by method: {energies:?}");
    for energy in &energies[1..] {
        assert!((energy - energies[0]).abs() < 1e-5 * energies[0], "{energies:?}");
    }
}
