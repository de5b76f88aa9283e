//! Proximal points, each by a nonsmooth Newton method with a sparse factorisation: for problems on which
//! Gauss–Seidel stalls.
//!
//! The outer iteration replaces the problem by regularised ones, whose `W + σ D` is positive definite even
//! where `W` has no full rank (`D` holds the mean diagonal of each contact's block):
//!
//! ```text
//! r_{k+1} solves the contact problem with   u = (W + σ D) r + q − σ D r_k                       (a)
//! ```
//!
//! Its fixed points solve the problem itself. (a) is solved by Newton's method on the function of Alart and
//! Curnier [AlartCurnier1991],
//!
//! ```text
//! y_n = r_n − ρ u_n,   y_t = r_t − ρ u_t
//! F_n = r_n − max(0, y_n),      F_t = r_t − P_disc(μ max(0, y_n))(y_t)                          (b)
//! ```
//!
//! whose derivative is `A + B (W + σ D)` with 3 × 3 blocks A and B of each contact: the identity and zero
//! where the contact is open (so that only closed ones are factorised), zero and ρ where it sticks. Steps are
//! shortened until ‖F‖ falls; where that does not help, σ grows and a few sweeps move the start.

use super::factor::{FactorError, Lu, Pattern};
use super::gauss_seidel::GaussSeidel;
use super::{Budget, ContactSystem, Progress};
use crate::geometry::{Mat3, Vec3};
use crate::law::coulomb::{Slope, alart_curnier};

/// Off-diagonal blocks in L (as many in U): 3.6 GB together.
const MOST_BLOCKS: usize = 25_000_000;
const SIGMA_FIRST: f64 = 1e-4;
const SIGMA_LEAST: f64 = 1e-10;
const SIGMA_MOST: f64 = 1e2;
/// Newton steps in all before it gives up.
const MOST_STEPS: usize = 400;
/// Newton steps in which the error must halve.
const WINDOW: usize = 100;
/// Newton steps for one proximal point.
const MOST_INNER: usize = 15;
/// Halvings of a step.
const MOST_HALVINGS: usize = 5;
/// With so many σ may become smaller.
const EASY: usize = 6;
/// A proximal point that was not reached is kept if it came this near, by its merit.
const KEPT: f64 = 0.5;
/// Sweeps after a failure.
const SWEEPS_BETWEEN: usize = 20;

/// Iterates until the tolerance is met, nothing helps any more, or the matrix is too large to be factorised.
pub fn prox_newton(system: &ContactSystem, progress: &mut Progress, budget: Budget) {
    let mut newton = Newton::new(system);
    let mut schedule = Schedule::default();
    let mut sweep: Option<GaussSeidel> = None;
    let last_step = progress.newton_steps + MOST_STEPS;
    let (mut window_end, mut goal) = (progress.newton_steps + WINDOW, 0.5 * progress.best.0);
    while progress.error > budget.tolerance && progress.newton_steps < last_step {
        if progress.newton_steps >= window_end {
            if progress.best.0 > goal {
                return;
            }
            (window_end, goal) = (progress.newton_steps + WINDOW, 0.5 * progress.best.0);
        }
        let anchor = progress.impulses.clone();
        match newton.proximal_point(progress, schedule.sigma, &anchor, budget) {
            Err(FactorError::TooLarge { .. }) => return,
            Ok(Some(steps)) => schedule.found(steps),
            Ok(None) | Err(FactorError::Singular { .. }) => {
                if newton.merit_share > KEPT {
                    progress.impulses.copy_from_slice(&anchor);
                }
                if schedule.failed() {
                    let sweep = sweep.get_or_insert_with(|| GaussSeidel::new(system));
                    for _ in 0..SWEEPS_BETWEEN.min(budget.sweeps.saturating_sub(progress.sweeps)) {
                        sweep.sweep(&mut progress.impulses);
                        progress.sweeps += 1;
                    }
                }
                progress.measure(system);
            }
        }
    }
}

/// How σ changes: down while proximal points are found, up where they are not, and not down again to where
/// that was for a while.
struct Schedule {
    sigma: f64,
    /// Where it failed last, and for how many more proximal points it stays above.
    failed: f64,
    patience: usize,
    next_patience: usize,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { sigma: SIGMA_FIRST, failed: 0.0, patience: 0, next_patience: 1 }
    }
}

impl Schedule {
    fn found(&mut self, steps: usize) {
        let lower = (self.sigma * 0.1).max(SIGMA_LEAST);
        if steps > EASY {
            return;
        }
        if lower > self.failed * 1.5 {
            self.sigma = lower;
        } else if self.patience == 0 {
            (self.sigma, self.failed) = (lower, 0.0);
        } else {
            self.patience -= 1;
        }
    }

    /// Whether other means are needed: σ cannot grow any more.
    fn failed(&mut self) -> bool {
        self.failed = self.sigma;
        self.patience = self.next_patience;
        self.next_patience = (self.next_patience + 1).min(3);
        let exhausted = self.sigma >= SIGMA_MOST;
        self.sigma = if exhausted { SIGMA_FIRST } else { self.sigma * 10.0 };
        exhausted
    }
}

struct Newton<'a> {
    system: &'a ContactSystem,
    /// Mean diagonal of each block.
    scale: Vec<f64>,
    velocities: Vec<Vec3>,
    /// F of each contact.
    function: Vec<Vec3>,
    slopes: Vec<Option<Slope>>,
    /// Merit at the end of the last proximal point over that at its start.
    merit_share: f64,
    /// The closed contacts of the last factorisation and its pattern.
    pattern: Option<(Vec<u32>, Pattern)>,
}

impl<'a> Newton<'a> {
    fn new(system: &'a ContactSystem) -> Self {
        let contacts = system.contacts();
        let mean = |contact: usize| system.delassus.diagonal(contact).trace() / 3.0;
        let least = (0..contacts).map(mean).fold(0.0, f64::max) * 1e-12;
        Self {
            system,
            scale: (0..contacts).map(|contact| mean(contact).max(least).max(f64::MIN_POSITIVE)).collect(),
            velocities: vec![Vec3::zeros(); contacts],
            function: vec![Vec3::zeros(); contacts],
            slopes: vec![None; contacts],
            merit_share: 1.0,
            pattern: None,
        }
    }

    /// Newton's method on (a). Returns the steps made; none if it does not converge. The true error is
    /// measured after every step, and ends it when small enough.
    fn proximal_point(
        &mut self,
        progress: &mut Progress,
        sigma: f64,
        anchor: &[[f64; 3]],
        budget: Budget,
    ) -> Result<Option<usize>, FactorError> {
        let first = self.evaluate(&progress.impulses, anchor, sigma);
        let mut merit = first;
        self.merit_share = 1.0;
        for step in 0..MOST_INNER {
            // Counted first: one that fails is work too, and the number of steps bounds the iteration.
            progress.newton_steps += 1;
            let Some(direction) = self.direction(&progress.impulses, sigma)? else { return Ok(None) };
            let start = progress.impulses.clone();
            let mut length = 1.0;
            let mut found = None;
            for _ in 0..MOST_HALVINGS {
                for ((now, start), direction) in progress.impulses.iter_mut().zip(&start).zip(&direction) {
                    *now = std::array::from_fn(|axis| start[axis] + length * direction[axis]);
                }
                let value = self.evaluate(&progress.impulses, anchor, sigma);
                if value <= (1.0 - 0.1 * length) * merit {
                    found = Some(value);
                    break;
                }
                length *= 0.5;
            }
            if progress.measure(self.system) <= budget.tolerance {
                return Ok(Some(step + 1));
            }
            let Some(value) = found else {
                progress.impulses.copy_from_slice(&start);
                return Ok(None);
            };
            merit = value;
            self.merit_share = merit / first;
            if merit <= 1e-3 * first {
                return Ok(Some(step + 1));
            }
        }
        Ok(None)
    }

    /// u of (a), F and its slopes; returns ‖F‖, weighted so that it is the root of an energy.
    fn evaluate(&mut self, impulses: &[[f64; 3]], anchor: &[[f64; 3]], sigma: f64) -> f64 {
        let system = self.system;
        system.delassus.velocities(&system.free, impulses, &mut self.velocities);
        let mut sum = 0.0;
        for contact in 0..system.contacts() {
            let r = Vec3::from(impulses[contact]);
            let u =
                self.velocities[contact] + (r - Vec3::from(anchor[contact])) * (sigma * self.scale[contact]);
            let rho = 1.0 / self.scale[contact];
            let (value, slope) = alart_curnier(&r, &u, rho, system.friction[contact]);
            self.function[contact] = value;
            self.slopes[contact] = slope;
            sum += self.scale[contact] * value.norm_squared();
        }
        let merit = sum.sqrt();
        if merit.is_nan() { f64::INFINITY } else { merit }
    }

    /// The Newton direction; none if the matrix is singular or the direction not finite.
    fn direction(&mut self, impulses: &[[f64; 3]], sigma: f64) -> Result<Option<Vec<[f64; 3]>>, FactorError> {
        let system = self.system;
        let closed: Vec<u32> = (0..system.contacts() as u32)
            .filter(|&contact| self.slopes[contact as usize].is_some())
            .collect();
        // Open contacts lose their impulse, whatever the others do.
        let mut direction: Vec<[f64; 3]> =
            impulses.iter().map(|impulse| impulse.map(|value| -value)).collect();
        let mut place = vec![u32::MAX; system.contacts()];
        for (index, &contact) in closed.iter().enumerate() {
            place[contact as usize] = index as u32;
        }
        if self.pattern.as_ref().is_none_or(|(known, _)| *known != closed) {
            self.pattern = Some((closed.clone(), pattern(system, &closed, &place)?));
        }
        let Some((_, pattern)) = &self.pattern else { return Ok(None) };
        let mut values = Vec::with_capacity(closed.len());
        let mut entries = Vec::new();
        for (index, &contact) in closed.iter().enumerate() {
            let contact = contact as usize;
            let Some(Slope { a, b }) = self.slopes[contact] else { continue };
            let mut change = Vec3::zeros();
            for (other, block) in system.delassus.others(contact) {
                if place[other] == u32::MAX {
                    change += block * Vec3::from(direction[other]);
                } else {
                    entries.push((index, place[other] as usize, rows(&(b * block))));
                }
            }
            let regularised =
                system.delassus.diagonal(contact) + Mat3::identity() * (sigma * self.scale[contact]);
            entries.push((index, index, rows(&(a + b * regularised))));
            values.push((-self.function[contact] - b * change).into());
        }
        let lu = match Lu::<3>::new(pattern, entries.into_iter()) {
            Ok(lu) => lu,
            Err(FactorError::Singular { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        lu.solve(&mut values);
        for (&contact, value) in closed.iter().zip(&values) {
            direction[contact as usize] = *value;
        }
        let finite = values.iter().flatten().all(|value| value.is_finite());
        Ok(finite.then_some(direction))
    }
}

fn rows(matrix: &Mat3) -> [[f64; 3]; 3] {
    std::array::from_fn(|row| std::array::from_fn(|column| matrix[(row, column)]))
}

fn pattern(system: &ContactSystem, closed: &[u32], place: &[u32]) -> Result<Pattern, FactorError> {
    let mut neighbours = vec![Vec::new(); closed.len()];
    for (index, &contact) in closed.iter().enumerate() {
        for (other, _) in system.delassus.others(contact as usize) {
            if place[other] != u32::MAX {
                neighbours[index].push(place[other]);
                neighbours[place[other] as usize].push(index as u32);
            }
        }
    }
    for list in &mut neighbours {
        list.sort_unstable();
        list.dedup();
    }
    Pattern::new(neighbours, closed.len(), MOST_BLOCKS)
}
