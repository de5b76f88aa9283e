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
use super::hub::Gathered;
use crate::scene::{Body, Physics};
use crate::solve::{
    self, Acceleration, Blocks, Colours, Interface, LocalLaw, Manifold, Measure, Options, Point, Problem,
    Twist,
};
use decomposition::Comm;

/// Rough on purpose: what one step leaves, the next ones go on removing.
const OPTIONS: Options = Options {
    tolerance: 1e-2,
    measure: Measure::Fclib,
    maximum_sweeps: 20,
    check_every: 5,
    law: LocalLaw::Projected,
    method: None,
    acceleration: Acceleration::None,
};

/// Penetration beyond the slop, by the slop, for which nothing is done: what is removed by a share in each step would never be gone.
const NEGLIGIBLE: f64 = 1e-3;

/// Displacement velocities.
pub struct Shifts {
    /// By slot.
    pub bodies: Vec<Twist>,
    /// By machine, of its independent coordinates; on the owner of the machines.
    pub machines: Vec<Vec<f64>>,
}

impl Shifts {
    pub fn sum(one: Option<Shifts>, other: Option<Shifts>) -> Option<Shifts> {
        let (mut sum, other) = match (one, other) {
            (Some(one), Some(other)) => (one, other),
            (one, other) => return one.or(other),
        };
        for (twist, more) in sum.bodies.iter_mut().zip(&other.bodies) {
            for axis in 0..3 {
                twist.linear[axis] += more.linear[axis];
                twist.angular[axis] += more.angular[axis];
            }
        }
        let machines = sum.machines.iter_mut().flatten().zip(other.machines.iter().flatten());
        machines.for_each(|(speed, more)| *speed += more);
        Some(sum)
    }
}

/// What is added to the normal displacement velocity at a gap.
pub fn bias(gap: f64, physics: &Physics) -> f64 {
    let slop = physics.correction_slop;
    if gap < -slop {
        physics.penetration_correction * (gap + slop) / physics.time_step
    } else {
        gap.max(0.0) / physics.time_step
    }
}

/// The contacts of a step.
pub struct Step<'a> {
    pub assembled: &'a Assembled,
    pub gathered: &'a Gathered,
    pub colours: &'a Colours,
}

/// None if nothing is to be done anywhere. `blocks` are those of the step's problem, if it was solved in some. Collective.
pub fn correct(
    step: &Step,
    blocks: Option<Blocks>,
    physics: &Physics,
    shared: impl Fn(u32) -> bool + Sync,
    interface: &mut dyn Interface,
    comm: &dyn Comm,
) -> Option<Shifts> {
    let Step { assembled, gathered, colours } = step;
    if physics.penetration_correction == 0.0 {
        return None;
    }
    let slop = physics.correction_slop;
    let infos = assembled.points.iter().chain(assembled.hub.iter().flat_map(|contact| &contact.infos));
    let mut deepest = [infos.map(|point| -point.gap - slop).fold(0.0, f64::max)];
    comm.max_f64(&mut deepest);
    if deepest[0] <= NEGLIGIBLE * slop {
        return None;
    }
    let bias = |gap: f64| bias(gap, physics);
    let (problem, hub) = (starting_at_rest(assembled, bias), gathered.starting_at_rest(bias));
    let blocks = match blocks {
        Some(blocks) => blocks.smooth(&problem),
        None => Blocks::new(&problem, colours, shared),
    };
    let (solution, _) = solve::solve_in(blocks, &problem, &hub, &OPTIONS, interface);
    Some(Shifts { bodies: solution.velocities, machines: solution.hub.velocities })
}

/// The same contacts without friction, between bodies at rest.
pub fn starting_at_rest(assembled: &Assembled, bias: impl Fn(f64) -> f64) -> Problem {
    let Problem { inertia, manifolds, points, places, .. } = &assembled.problem;
    let infos = &assembled.points;
    Problem {
        free_velocity: vec![Twist::default(); inertia.len()],
        inertia: inertia.clone(),
        places: places.clone(),
        manifolds: manifolds.iter().map(|manifold| Manifold { friction: 0.0, ..*manifold }).collect(),
        points: points
            .iter()
            .zip(infos)
            .map(|(point, info)| Point { arms: point.arms, bias: bias(info.gap), impulse: [0.0; 3] })
            .collect(),
    }
}

/// The way that each machine's independent coordinates go; empty for none.
pub fn machine_ways(shifts: &Option<Shifts>, physics: &Physics) -> Vec<Vec<f64>> {
    let way = |velocity: &Vec<f64>| velocity.iter().map(|speed| speed * physics.time_step).collect();
    shifts.as_ref().map_or(Vec::new(), |shifts| shifts.machines.iter().map(way).collect())
}

/// Moves the bodies; they are the first of the slots.
pub fn apply(bodies: &mut [Body], shifts: &Option<Shifts>, physics: &Physics) {
    let Some(shifts) = shifts else { return };
    for (body, shift) in bodies.iter_mut().zip(&shifts.bodies) {
        body.pose =
            super::motion::moved(&body.pose, &shift.linear.into(), &shift.angular.into(), physics.time_step);
    }
}
