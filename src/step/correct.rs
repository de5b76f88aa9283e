//! Gentle removal of accumulated penetration, in positions only.
//!
//! A second contact problem, without friction and from rest: displacement velocities `w` with
//!
//! ```text
//! 0 ≤ w_n + (g + slop) β / h ⊥ p ≥ 0      where g < −slop
//! 0 ≤ w_n + max(g, 0) / h   ⊥ p ≥ 0      elsewhere: pushing out here must not push in there
//! ```
//!
//! moves bodies by `h w`. Velocities, and with them momentum and kinetic energy, are not touched: nothing is thrown apart.

use super::assemble::Assembled;
use crate::scene::{Body, Physics};
use crate::solve::{self, Acceleration, Colours, Interface, LocalLaw, Options, Problem, Twist};
use decomposition::Comm;

/// Rough on purpose: what one step leaves, the next ones go on removing.
const OPTIONS: Options = Options {
    tolerance: 1e-2,
    maximum_sweeps: 20,
    check_every: 5,
    law: LocalLaw::Projected,
    acceleration: Acceleration::None,
};

/// The displacement velocities by slot; none if nothing is to be done anywhere. Collective.
pub fn correct(
    assembled: &Assembled,
    colours: &Colours,
    physics: &Physics,
    shared: impl Fn(u32) -> bool,
    interface: &mut dyn Interface,
    comm: &dyn Comm,
) -> Option<Vec<Twist>> {
    if physics.penetration_correction == 0.0 {
        return None;
    }
    let slop = physics.correction_slop;
    let mut deepest = [assembled.points.iter().map(|point| -point.gap - slop).fold(0.0, f64::max)];
    comm.max_f64(&mut deepest);
    if deepest[0] <= 0.0 {
        return None;
    }
    let mut problem = Problem {
        free_velocity: vec![Twist::default(); assembled.problem.inertia.len()],
        ..assembled.problem.clone()
    };
    for manifold in &mut problem.manifolds {
        manifold.friction = 0.0;
    }
    for (point, info) in problem.points.iter_mut().zip(&assembled.points) {
        point.impulse = [0.0; 3];
        point.bias = if info.gap < -slop {
            physics.penetration_correction * (info.gap + slop) / physics.time_step
        } else {
            info.gap.max(0.0) / physics.time_step
        };
    }
    Some(solve::solve(&problem, colours, &OPTIONS, shared, interface).velocities)
}

/// Moves the bodies; `shifts` by slot, own bodies first.
pub fn apply(bodies: &mut [Body], shifts: Option<&[Twist]>, physics: &Physics) {
    let Some(shifts) = shifts else { return };
    for (body, shift) in bodies.iter_mut().zip(shifts) {
        body.pose =
            super::motion::moved(&body.pose, &shift.linear.into(), &shift.angular.into(), physics.time_step);
    }
}
