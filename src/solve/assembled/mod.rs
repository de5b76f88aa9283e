//! Contact problems with `W` assembled, as the field's files have them, and solvers for them by name.
//!
//! ```text
//! u = W r + q,      û = u + μ ‖u_t‖ n,      K* ∋ û ⊥ r ∈ K        for each contact
//! ```
//!
//! [`LocalProblem`] and [`GlobalProblem`] are what a file says; [`ContactSystem`] is what is solved. Nothing
//! here is parallel and everything is a pure function of its input.

mod auto;
pub mod blocks;
pub mod bodies;
pub mod coloured;
pub mod factor;
pub mod gauss_seidel;
pub mod newton;
pub mod problem;
pub mod proximal;
pub mod sparse;
mod sweeps_newton;
pub mod system;

pub use problem::{GlobalBilateral, GlobalProblem, LocalBilateral, LocalProblem, ProblemError, Recovered};
pub use sparse::{Sparse, SparseError};
pub use system::ContactSystem;

use crate::geometry::Vec3;
use crate::words::{Choose, choices, choices_or_none};

choices! {
    /// The solvers by name.
    #[derive(PartialOrd, Ord)]
    pub enum Method {
        Auto = "auto", "with W assembled on one rank: sweeps first, Newton where they are slow";
        Nsgs = "nsgs", "with W assembled on one rank: plain Gauss-Seidel in the order of the contacts";
        Nncg = "nncg", "with W assembled on one rank: Gauss-Seidel accelerated by a nonlinear conjugate gradient";
        ProxNewton = "prox-newton",
            "with W assembled on one rank: proximal points by a nonsmooth Newton method, for stacks on which sweeps stall";
        SweepsNewton = "sweeps-newton",
            "on one rank: coloured sweeps, then proximal points by a nonsmooth Newton method in the velocities of the bodies, for packings that are pressed or jammed";
    }
}
choices_or_none!(
    Method,
    "coloured",
    "the coloured sweep, on all ranks and threads: for problems of any size"
);

impl Method {
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|method| method.name() == name)
    }
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Natural-map error to reach, > 0.
    pub tolerance: f64,
    /// Sweeps over all contacts at most.
    pub sweeps: usize,
}

/// What a solver has reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub impulses: Vec<[f64; 3]>,
    /// `u = q + W r`.
    pub velocities: Vec<Vec3>,
    pub error: f64,
    pub converged: bool,
    /// Gauss–Seidel sweeps.
    pub sweeps: usize,
    /// Newton steps, one factorisation each.
    pub newton_steps: usize,
}

/// The state of a solver between measurements.
#[derive(Clone, Debug)]
pub struct Progress {
    pub impulses: Vec<[f64; 3]>,
    pub sweeps: usize,
    pub newton_steps: usize,
    /// Of the last measurement.
    pub error: f64,
    /// The best so far.
    best: (f64, Vec<[f64; 3]>),
    velocities: Vec<Vec3>,
    next_check: usize,
}

impl Progress {
    fn new(system: &ContactSystem, start: Option<&[[f64; 3]]>) -> Self {
        let impulses = start.map_or_else(|| vec![[0.0; 3]; system.contacts()], <[_]>::to_vec);
        let mut progress = Self {
            best: (f64::INFINITY, impulses.clone()),
            velocities: vec![Vec3::zeros(); system.contacts()],
            impulses,
            sweeps: 0,
            newton_steps: 0,
            error: f64::INFINITY,
            next_check: 1,
        };
        progress.measure(system);
        progress
    }

    /// A measurement costs as much as a sweep: every sweep at first, then every fiftieth part more.
    fn is_due(&mut self, budget: Budget) -> bool {
        if self.sweeps < self.next_check && self.sweeps < budget.sweeps {
            return false;
        }
        self.next_check = self.sweeps + 1 + self.sweeps / 50;
        true
    }

    /// The error as it stands; keeps the best.
    fn measure(&mut self, system: &ContactSystem) -> f64 {
        self.error = system.error(&self.impulses, &mut self.velocities);
        if self.error < self.best.0 {
            self.best.0 = self.error;
            self.best.1.copy_from_slice(&self.impulses);
        }
        self.error
    }

    /// Back to the best state seen.
    fn take_best(&mut self, system: &ContactSystem) {
        self.impulses.copy_from_slice(&self.best.1);
        self.measure(system);
    }
}

/// Solves from the impulses given, or from none.
pub fn solve(system: &ContactSystem, method: Method, budget: Budget, start: Option<&[[f64; 3]]>) -> Outcome {
    let mut progress = Progress::new(system, start);
    if progress.error > budget.tolerance {
        match method {
            Method::Auto => auto::auto(system, &mut progress, budget),
            Method::Nsgs => gauss_seidel::nsgs(system, &mut progress, budget, |_| false),
            Method::Nncg => gauss_seidel::nncg(system, &mut progress, budget),
            Method::ProxNewton => newton::prox_newton(system, &mut progress, budget),
            Method::SweepsNewton => sweeps_newton::sweeps_newton(system, &mut progress, budget),
        }
        if progress.error > budget.tolerance {
            progress.take_best(system);
        }
    }
    Outcome {
        converged: progress.error <= budget.tolerance,
        impulses: progress.impulses,
        velocities: progress.velocities,
        error: progress.error,
        sweeps: progress.sweeps,
        newton_steps: progress.newton_steps,
    }
}

#[cfg(test)]
mod tests;
