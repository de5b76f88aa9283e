//! Gentle removal of accumulated penetration, in positions only.
//!
//! A second contact problem, without friction and from rest: displacement velocities `w` with
//!
//! ```text
//! 0 ≤ w_n + (g + slop) β / h ⊥ p ≥ 0      where g < −slop
//! 0 ≤ w_n + max(g, 0) / h   ⊥ p ≥ 0      elsewhere: pushing out here must not push in there
//! ```
//!
//! moves bodies by `h w`. Velocities, and with them momentum and kinetic energy, are not touched: nothing is
//! thrown apart.

use super::{Shifts, at_rest};
use crate::scene::Physics;
use crate::solve::{self, Acceleration, Blocks, Fallback, LocalLaw, Measure, Options};
use crate::step::contacts::ContactProblem;

/// Rough on purpose: what one step leaves, the next ones go on removing.
const OPTIONS: Options = Options {
    tolerance: 1e-2,
    measure: Measure::Fclib,
    maximum_sweeps: 20,
    check_every: 5,
    law: LocalLaw::Projected,
    method: None,
    fallback: Fallback::None,
    fallback_points: 0,
    acceleration: Acceleration::None,
};

/// Penetration beyond the slop, by the slop, for which nothing is done: what is removed by a share in each
/// step would never be gone.
const NEGLIGIBLE: f64 = 1e-3;

/// What is added to the normal displacement velocity at a gap.
fn bias(gap: f64, physics: &Physics) -> f64 {
    let slop = physics.correction_slop;
    if gap < -slop {
        physics.penetration_correction * (gap + slop) / physics.time_step
    } else {
        gap.max(0.0) / physics.time_step
    }
}

/// None if nothing is to be done anywhere. `blocks` are those of the step's problem, if it was solved in
/// some. Collective.
pub fn correct(contacts: &mut ContactProblem, blocks: Option<Blocks>, physics: &Physics) -> Option<Shifts> {
    if physics.penetration_correction == 0.0 {
        return None;
    }
    let slop = physics.correction_slop;
    if contacts.largest(|point| -point.rigid_gap() - slop) <= NEGLIGIBLE * slop {
        return None;
    }
    let bias = |gap: f64| bias(gap, physics);
    let (problem, hub) = (at_rest(&contacts.assembled, bias), contacts.hubs.at_rest(bias));
    let blocks = blocks.unwrap_or_else(|| contacts.blocks()).smooth(&problem);
    let (solution, _) = solve::solve_in(blocks, &problem, &hub, &OPTIONS, &mut contacts.ranks);
    Some(Shifts::of(solution))
}
