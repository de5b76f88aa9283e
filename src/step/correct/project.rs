//! No overlap deeper than a limit at the end of a step: bodies are moved apart, in positions only.
//!
//! Impacts at their own times ([`super::impact`]) leave little: what curved motions, contacts that hinder
//! each other, and bodies that overlap from the start bring. Where a limit `L` is set, contacts are looked
//! for again at `q_{n+1}`, and while there is one with `g < −L` all bodies move by the displacements `d` of
//!
//! ```text
//! 0 ≤ d_n + g + L/2 ⊥ p ≥ 0    no friction, masses as weights: the nearest such place, linearised at q_{n+1}
//! ```
//!
//! then gaps and Jacobians are taken anew. Half of `L` is left, so that a body at rest stays in contact.
//! Velocities do not change.

use super::{Shifts, apply, at_rest, machine_displacements};
use crate::geometry::Vec3;
use crate::solve::{self, Acceleration, Fallback, LocalLaw, Measure, Options};
use crate::step::StepError;
use crate::step::assemble::TakesPart;
use crate::step::contacts::{ContactProblem, Pipeline, Query};
use crate::step::integrate::Integrator;
use crate::step::timers::Timers;
use crate::step::world::{Territory, World};

/// At most. Each round squares the error of the one before, but stones that hold each other need some.
const ROUNDS: usize = 20;

/// A round need not be exact, since contacts are found anew in the next one.
const OPTIONS: Options = Options {
    tolerance: 1e-4,
    measure: Measure::Fclib,
    maximum_sweeps: 200,
    check_every: 5,
    law: LocalLaw::Projected,
    acceleration: Acceleration::None,
    method: None,
    fallback: Fallback::None,
    fallback_points: 0,
};

/// What is kept from one step's end to the next: scratch.
#[derive(Default)]
pub struct Projector {
    pipeline: Pipeline,
}

enum Round {
    Good,
    Moved,
}

impl Projector {
    /// At the end of a step. The deepest overlap that is left, m; none without a limit. Collective.
    pub fn project(
        &mut self,
        world: &mut World,
        integrator: &dyn Integrator,
        territory: &Territory,
    ) -> Result<Option<f64>, StepError> {
        if world.physics.penetration_limit == 0.0 {
            return Ok(None);
        }
        let mut left = self.round(world, integrator, territory)?;
        for _ in 1..ROUNDS {
            let Round::Moved = left.1 else { break };
            left = self.round(world, integrator, territory)?;
        }
        Ok(Some(left.0))
    }

    /// Finds contacts, and moves bodies where they overlap too much; the deepest overlap is that before.
    fn round(
        &mut self,
        world: &mut World,
        integrator: &dyn Integrator,
        territory: &Territory,
    ) -> Result<(f64, Round), StepError> {
        let (limit, comm) = (world.physics.penetration_limit, territory.comm);
        // All of it counts as `correct`.
        let timers = &mut Timers::default();
        world.machines.stand(&mut world.scene, comm)?;
        let (gravity, clock) = (Vec3::zeros(), world.clock());
        let query = Query { integrator, gravity, clock, reuse: 0.0, takes_part: TakesPart::All };
        let free = integrator.free_motions(&world.scene.state.grains, &gravity, &clock);
        let near = self.pipeline.neighbourhood(world, free, &query, territory);
        let found = self.pipeline.find(world, &near, &query, territory, timers);
        let deepest = found.deepest(comm);
        if deepest <= limit {
            return Ok((deepest, Round::Good));
        }
        let mut contacts = found.assemble(territory, timers);
        let bias = |gap: f64| (gap + 0.5 * limit) / clock.time_step;
        let (problem, hub) = (at_rest(&contacts.assembled, bias), contacts.hubs.at_rest(bias));
        let ContactProblem { colours, halo, ranks, .. } = &mut contacts;
        let solution = solve::solve(&problem, &hub, colours, &OPTIONS, |slot| halo.is_shared(slot), ranks);
        drop(contacts);
        let shifts = Some(Shifts::of(solution));
        let displacements = machine_displacements(&shifts, &world.physics);
        apply(world, &shifts);
        let World { scene, machines, account, .. } = world;
        machines.shift(scene, account, &displacements, comm)?;
        Ok((deepest, Round::Moved))
    }
}
