//! Corrections of positions: velocities, and with them momentum and kinetic energy, are not touched.
//!
//! | | when | what |
//! | --- | --- | --- |
//! | [`impact`] | overlap is limited | impulses act from the time within the step at which surfaces meet |
//! | [`gentle`] | a share of the penetration is to be removed in each step | bodies that overlap are moved
//! apart a little |
//! | [`project`] | overlap is limited | what is deeper at the end of the step is moved apart |

pub mod gentle;
pub mod impact;
pub mod project;

use super::assemble::Assembled;
use super::contacts::ContactProblem;
use super::couple::Solved;
use super::integrate::moved;
use super::world::World;
use crate::geometry::Vec3;
use crate::law::Kind;
use crate::scene::Physics;
use crate::solve::{Manifold, Point, Problem, Solution, Twist};

/// Displacement velocities.
pub struct Shifts {
    /// By slot.
    pub bodies: Vec<Twist>,
    /// By machine, of its independent coordinates; on the owner of the machines.
    pub machines: Vec<Vec<f64>>,
}

impl Shifts {
    /// Of a problem whose velocities are displacements by the time step.
    pub fn of(solution: Solution) -> Self {
        Self { bodies: solution.velocities, machines: solution.hub.velocities }
    }

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

/// Displacement velocities of a step, if there are any. Collective.
pub fn shifts(contacts: &mut ContactProblem, solved: &mut Solved, physics: &Physics) -> Option<Shifts> {
    let struck = impact::shifts(contacts, &solved.solution, physics);
    let corrected = gentle::correct(contacts, solved.blocks.take(), physics);
    Shifts::sum(struck, corrected)
}

/// The same contacts without friction and compliance, between bodies at rest.
pub fn at_rest(assembled: &Assembled, bias: impl Fn(f64) -> f64) -> Problem {
    let Problem { inertia, manifolds, points, places, .. } = &assembled.problem;
    let infos = &assembled.points;
    Problem {
        free_velocity: vec![Twist::default(); inertia.len()],
        inertia: inertia.clone(),
        places: places.clone(),
        manifolds: manifolds
            .iter()
            .map(|manifold| Manifold { kind: Kind::Coulomb, friction: 0.0, compliance: 0.0, ..*manifold })
            .collect(),
        stretches: Vec::new(),
        points: points
            .iter()
            .zip(infos)
            .map(|(point, info)| Point { arms: point.arms, bias: bias(info.rigid_gap()), impulse: [0.0; 3] })
            .collect(),
    }
}

/// How far each machine's independent coordinates are displaced; empty for none.
pub fn machine_displacements(shifts: &Option<Shifts>, physics: &Physics) -> Vec<Vec<f64>> {
    let displacement = |velocity: &Vec<f64>| velocity.iter().map(|speed| speed * physics.time_step).collect();
    shifts.as_ref().map_or(Vec::new(), |shifts| shifts.machines.iter().map(displacement).collect())
}

/// Moves the bodies, which are the first of the slots, and accounts for the weight that is lifted.
pub fn apply(world: &mut World, shifts: &Option<Shifts>) {
    let Some(shifts) = shifts else { return };
    let (gravity, time_step) = (world.gravity(), world.physics.time_step);
    for (body, shift) in world.scene.state.grains.iter_mut().zip(&shifts.bodies) {
        if shift.linear != [0.0; 3] {
            world.account.lift(body.mass, &gravity, &(Vec3::from(shift.linear) * time_step));
        }
        body.pose = moved(&body.pose, &shift.linear.into(), &shift.angular.into(), time_step);
    }
}
