//! Sweeps first, then proximal points by Newton's method in the velocities of the bodies: for packings that
//! are pressed or jammed.
//!
//! Coloured sweeps with momentum find within a second which contacts act and which slide, but what is left
//! then are slow motions of many bodies at once. Newton's method has no slow motions, but finds its way only
//! from nearby: Coulomb's law is not monotone, and far away or with a small σ its steps do not get past the
//! kinks. So σ begins large and falls while proximal points are found:
//!
//! ```text
//! r_{k+1} solves the contact problem with   u = (W + σ D) r + q − σ D r_k
//! ```
//!
//! D holds the mean diagonal of each contact's block of W. Impulses of rigid contacts that nothing determines
//! stay at r_k.

use super::bodies::{Bodies, NODE, Velocity};
use super::coloured::Coloured;
use super::factor::{FactorError, Lu};
use super::proximal::{Acting, Point, Proximal};
use super::{Budget, ContactSystem, Progress};
use super::{gauss_seidel, newton};
use crate::geometry::Vec3;
use crate::solve::Options;

/// Sweeps before Newton's method.
const SWEEPS: usize = 2000;
/// Sweeps are to come by so much nearer than is asked: their residual is measured in its own way.
const NEARER: f64 = 0.5;
const SIGMA_FIRST: f64 = 1e-2;
const SIGMA_LEAST: f64 = 1e-9;
const SIGMA_MOST: f64 = 1e2;
/// Newton steps for one proximal point.
const MOST_INNER: usize = 12;
/// A step so short that does so little is the last one: it stands before a kink.
const SHORT: (f64, f64) = (0.1, 0.9);
/// With so many steps σ may become smaller, with fewer than half of them much smaller.
const EASY: usize = 4;
/// By so much the merit of a proximal point is to fall; and it is as small as rounding lets it be.
const REDUCTION: f64 = 1e-2;
const ROUNDING: f64 = 3e-13;
/// A proximal point may be worse than the one before: the way to a solution can lead past a kink.
const WORSE: f64 = 1.5;
/// Factorisations in all, and those in which the error must halve.
const MOST_STEPS: usize = 400;
const WINDOW: usize = 120;

/// Iterates until the tolerance is met or nothing helps any more.
pub fn sweeps_newton(system: &ContactSystem, progress: &mut Progress, budget: Budget) {
    let Some(bodies) = &system.bodies else {
        // Of a problem without bodies only W is known.
        let sweeps = progress.sweeps + budget.sweeps.min(SWEEPS);
        gauss_seidel::nsgs(system, progress, Budget { sweeps, ..budget }, |_| false);
        if progress.error > budget.tolerance {
            newton::prox_newton(system, progress, budget);
        }
        return;
    };
    sweep(system, bodies, progress, budget);
    if progress.error > budget.tolerance {
        // What cannot be factorised stays as the sweeps have left it.
        let _ = proximal_points(system, bodies, progress, budget);
    }
}

/// Coloured sweeps, where the problem is one of rigid bodies; kept if they help.
fn sweep(system: &ContactSystem, bodies: &Bodies, progress: &mut Progress, budget: Budget) {
    let most = budget.sweeps.min(SWEEPS);
    if most == 0 {
        return;
    }
    let Some(coloured) = Coloured::new(bodies.problem(), progress.impulses.as_flattened()) else { return };
    let options =
        Options { tolerance: NEARER * budget.tolerance, maximum_sweeps: most, ..Options::default() };
    let Coloured { problem, hub, colours, .. } = &coloured;
    let solution = crate::solve::solve(problem, hub, colours, &options, |_| false, &mut coloured.interface());
    progress.sweeps += solution.sweeps;
    progress.impulses = coloured.impulses(&solution);
    progress.measure(system);
    progress.take_best(system);
}

fn proximal_points(
    system: &ContactSystem,
    bodies: &Bodies,
    progress: &mut Progress,
    budget: Budget,
) -> Result<(), FactorError> {
    let pattern = bodies.mass_pattern()?;
    let mass = bodies.factorise_mass(&pattern)?;
    let mut search = Search::new(system, bodies, &mass, progress, budget);
    let mut schedule = Schedule::default();
    let last_step = progress.newton_steps + MOST_STEPS;
    let (mut window_end, mut goal) = (progress.newton_steps + WINDOW, 0.5 * progress.best.0);
    while progress.error > budget.tolerance && progress.newton_steps < last_step {
        if progress.newton_steps >= window_end {
            if progress.best.0 > goal {
                break;
            }
            (window_end, goal) = (progress.newton_steps + WINDOW, 0.5 * progress.best.0);
        }
        match search.proximal_point(schedule.sigma, progress)? {
            Some(steps) => schedule.found(steps),
            None => schedule.failed(),
        }
        if schedule.sigma > SIGMA_MOST {
            break;
        }
    }
    Ok(())
}

/// How σ changes: down while proximal points are found, up where they are not, and not down again to where
/// that was for a while.
struct Schedule {
    sigma: f64,
    failed: f64,
    patience: usize,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { sigma: SIGMA_FIRST, failed: 0.0, patience: 0 }
    }
}

impl Schedule {
    /// For how many proximal points σ stays above where it failed.
    const PATIENCE: usize = 3;

    fn found(&mut self, steps: usize) {
        if steps > EASY {
            return;
        }
        let lower = self.sigma * if 2 * steps <= EASY { 0.1 } else { 0.3 };
        if lower <= self.failed {
            if self.patience > 0 {
                self.patience -= 1;
                return;
            }
            self.failed = 0.0;
        }
        self.sigma = lower.max(SIGMA_LEAST);
    }

    fn failed(&mut self) {
        (self.failed, self.patience) = (self.sigma, Self::PATIENCE);
        self.sigma *= 5.0;
    }
}

struct Search<'a> {
    system: &'a ContactSystem,
    bodies: &'a Bodies,
    mass: &'a Lu<'a, NODE>,
    budget: Budget,
    /// D.
    scale: Vec<f64>,
    acting: Acting,
    /// r_k, its v and its error.
    centre: Vec<Vec3>,
    velocities: Vec<Velocity>,
    error: f64,
    /// Merit that rounding leaves.
    rounding: f64,
}

impl<'a> Search<'a> {
    fn new(
        system: &'a ContactSystem,
        bodies: &'a Bodies,
        mass: &'a Lu<'a, NODE>,
        progress: &Progress,
        budget: Budget,
    ) -> Self {
        let contacts = system.contacts();
        let mean = |contact: usize| system.delassus.diagonal(contact).trace() / 3.0;
        let least = (0..contacts).map(mean).fold(0.0, f64::max) * 1e-12;
        let centre: Vec<Vec3> = progress.impulses.iter().map(|&r| r.into()).collect();
        let velocities = bodies.velocities(mass, &centre);
        let rounding = ROUNDING * (bodies.size(&velocities) + bodies.size(bodies.free()));
        Self {
            system,
            bodies,
            mass,
            budget,
            scale: (0..contacts).map(|contact| mean(contact).max(least).max(f64::MIN_POSITIVE)).collect(),
            acting: Acting::default(),
            centre,
            velocities,
            error: progress.error,
            rounding,
        }
    }

    /// The Newton steps of a proximal point that was found and is the next centre; none if it was not.
    fn proximal_point(&mut self, sigma: f64, progress: &mut Progress) -> Result<Option<usize>, FactorError> {
        let proximal = Proximal {
            bodies: self.bodies,
            mass: self.mass,
            friction: &self.system.friction,
            sigma: self.scale.iter().map(|scale| scale * sigma).collect(),
            centre: &self.centre,
        };
        let mut point = proximal.at(self.velocities.clone());
        let (first, mut steps) = (point.merit, 0);
        let mut found = first <= self.rounding;
        while !found && steps < MOST_INNER {
            steps += 1;
            progress.newton_steps += 1;
            let next = match proximal.step(&mut self.acting, &point) {
                Ok(next) => next,
                Err(FactorError::Singular { .. }) => None,
                Err(error) => return Err(error),
            };
            let Some((next, length)) = next else { break };
            let share = next.merit / point.merit;
            point = next;
            found = point.merit <= self.rounding
                || point.merit < REDUCTION * first && self.measure(&point, progress) < self.error;
            if progress.error <= self.budget.tolerance {
                break;
            }
            if length < SHORT.0 && share > SHORT.1 {
                break;
            }
        }
        let error = self.measure(&point, progress);
        if !found || error > WORSE * self.error {
            self.velocities = self.bodies.velocities(self.mass, &self.centre);
            return Ok(None);
        }
        let Point { velocities, impulses, .. } = point;
        (self.centre, self.velocities, self.error) = (impulses, velocities, error);
        Ok(Some(steps))
    }

    fn measure(&self, point: &Point, progress: &mut Progress) -> f64 {
        progress.impulses.iter_mut().zip(&point.impulses).for_each(|(to, from)| *to = (*from).into());
        progress.measure(self.system)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{GlobalProblem, Method, Sparse, solve};
    use super::*;

    const STEP: f64 = 1e-3;
    const GRAVITY: f64 = 9.81;

    /// Cubes of 1 m stacked on a floor, four corners each, at rest but for one time step of weight.
    fn stack(masses: &[f64], compliance: f64) -> GlobalProblem {
        let (mut m, mut h) = (Vec::new(), Vec::new());
        for (body, &mass) in masses.iter().enumerate() {
            let first = 6 * body as u32;
            m.extend((0..6).map(|k| (first + k, first + k, if k < 3 { mass } else { mass / 6.0 })));
        }
        let contacts = 4 * masses.len();
        for contact in 0..contacts {
            let upper = contact / 4;
            let corner = Vec3::new(0.5 - (contact % 2) as f64, 0.5 - (contact / 2 % 2) as f64, 0.0);
            for (body, sign) in [(upper.checked_sub(1), -1.0), (Some(upper), 1.0)] {
                let Some(body) = body else { continue };
                let arm = corner - Vec3::z() * (0.5 * sign);
                for (axis, direction) in [Vec3::z(), Vec3::x(), Vec3::y()].into_iter().enumerate() {
                    let moment = arm.cross(&direction);
                    let column = (3 * contact + axis) as u32;
                    for k in 0..3 {
                        h.push((6 * body as u32 + k, column, sign * direction[k as usize]));
                        h.push((6 * body as u32 + 3 + k, column, sign * moment[k as usize]));
                    }
                }
            }
        }
        let weight = |mass: &f64| [0.0, 0.0, -mass * GRAVITY * STEP, 0.0, 0.0, 0.0];
        let size = 6 * masses.len();
        GlobalProblem {
            dimension: 3,
            m: Sparse::from_triplets(size, size, &m),
            h: Sparse::from_triplets(size, 3 * contacts, &h),
            f: masses.iter().flat_map(weight).collect(),
            w: vec![0.0; 3 * contacts],
            mu: vec![0.5; contacts],
            compliance: if compliance > 0.0 { vec![compliance; contacts] } else { Vec::new() },
            tangential_compliance: Vec::new(),
            bilateral: None,
        }
    }

    /// Heavy cubes on light ones, up to a million times: each layer carries what stands on it. The last ones
    /// are beyond this method alone.
    #[test]
    fn stacks_with_large_mass_ratios_carry_their_weight() {
        // The error is one by the largest impulse: with heavy cubes it must be smaller for the same answer.
        for (ratio, method, tolerance) in [
            (1.0, Method::SweepsNewton, 1e-9),
            (1e3, Method::SweepsNewton, 1e-11),
            (1e6, Method::Auto, 1e-13),
        ] {
            let masses: Vec<f64> = (0..12).map(|body| if body % 2 == 0 { 1.0 } else { ratio }).collect();
            let system = stack(&masses, 0.0).assemble().unwrap();
            let budget = Budget { tolerance, sweeps: 2000 };
            let outcome = solve(&system, method, budget, None);
            assert!(outcome.converged, "{ratio}: {}", outcome.error);
            for layer in 0..masses.len() {
                let carried: f64 = outcome.impulses[4 * layer..4 * layer + 4].iter().map(|r| r[0]).sum();
                let weight = masses[layer..].iter().sum::<f64>() * GRAVITY * STEP;
                assert!((carried / weight - 1.0).abs() < 1e-5, "{ratio} {layer}: {carried} {weight}");
            }
        }
    }

    /// One cube on springs: `v = −g h / (1 + 4/(m C))` after one step, and each corner carries the same.
    #[test]
    fn a_cube_on_springs_gives_way_as_it_should() {
        let (mass, compliance) = (2.0, 0.7);
        let problem = stack(&[mass], compliance);
        let budget = Budget { tolerance: 1e-12, sweeps: 0 };
        let outcome = solve(&problem.assemble().unwrap(), Method::SweepsNewton, budget, None);
        assert!(outcome.converged && outcome.newton_steps > 0, "{}", outcome.error);
        let velocity = -GRAVITY * STEP / (1.0 + 4.0 / (mass * compliance));
        for impulse in &outcome.impulses {
            assert!((impulse[0] + velocity / compliance).abs() < 1e-12, "{impulse:?}");
        }
    }
}
