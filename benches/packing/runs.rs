//! Contact problems out of runs: those of consecutive steps, each with the impulses of the step before.

use super::packing::Ready;
use breccia::scene::{Physics, Scene};
use breccia::solve::{Acceleration, Measure, Options, Problem};
use breccia::step::integrate::{Clock, integrator};
use breccia::step::{DecompositionOptions, Stepper};
use decomposition::Solo;

fn stepper(
    scene: Scene,
    physics: &Physics,
    (measure, tolerance): (Measure, f64),
    maximum_sweeps: usize,
) -> Stepper<'static> {
    let acceleration = Acceleration::Momentum;
    let options = Options { tolerance, measure, maximum_sweeps, acceleration, ..Options::default() };
    Stepper::new(scene, physics.clone(), options, DecompositionOptions::default(), &Solo)
}

/// The scene after so many steps, solved roughly.
pub fn after(steps: usize, scene: Scene, physics: &Physics) -> Scene {
    let mut stepper = stepper(scene, physics, (Measure::Fclib, 1e-2), 60);
    for _ in 0..steps {
        stepper.step().expect("no machine can fail");
    }
    stepper.scene().clone()
}

/// The problems of `count` steps after `skipped` ones, all of which are solved to `tolerance`.
pub fn problems(
    scene: Scene,
    physics: &Physics,
    steps: (usize, usize),
    tolerance: (Measure, f64),
) -> Vec<Problem> {
    self::steps(scene, physics, steps, tolerance).into_iter().map(|(_, problem)| problem).collect()
}

/// The same, each with its scene.
pub fn steps(
    scene: Scene,
    physics: &Physics,
    (skipped, count): (usize, usize),
    tolerance: (Measure, f64),
) -> Vec<(Scene, Problem)> {
    let mut stepper = stepper(scene, physics, tolerance, 2000);
    let mut problems = Vec::new();
    for step in 0..skipped + count {
        if step >= skipped {
            let mut scene = stepper.scene().clone();
            let clock = Clock { start: physics.time(scene.state.step), time_step: physics.time_step };
            integrator(physics.scheme).predict(&mut scene.state.grains, &clock);
            let problem = Ready::new((scene.clone(), physics.clone())).problem_from(true);
            problems.push((scene, problem));
        }
        stepper.step().expect("no machine can fail");
    }
    problems
}
