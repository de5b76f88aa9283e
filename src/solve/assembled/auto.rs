//! The choice of `auto`: sweeps while they are fast, Newton where they are not.

use super::gauss_seidel::{nncg, nsgs};
use super::newton::prox_newton;
use super::sweeps_newton::sweeps_newton;
use super::{Budget, ContactSystem, Progress};

/// Sweeps before anything else is tried: eight of the thirteen reference problems are done by then.
const PATIENCE: usize = 200;
/// Contacts from which on W is dense enough for the velocities of the bodies to be the better unknowns.
const MANY: usize = 300;

pub fn auto(system: &ContactSystem, progress: &mut Progress, budget: Budget) {
    nsgs(system, progress, Budget { sweeps: budget.sweeps.min(PATIENCE), ..budget }, |_| false);
    if progress.error > budget.tolerance && system.bodies.is_some() && system.contacts() >= MANY {
        sweeps_newton(system, progress, budget);
        if progress.error > budget.tolerance {
            progress.take_best(system);
        }
    }
    if progress.error > budget.tolerance {
        prox_newton(system, progress, budget);
    }
    if progress.error > budget.tolerance {
        progress.take_best(system);
        nncg(system, progress, budget);
    }
}
