//! No overlap deeper than a limit at the end of a step: bodies are moved apart, in positions only.
//!
//! Impacts at their own times ([`super::impact`]) leave little: what curved motions, contacts that hinder each other, and bodies that overlap from
//! the start bring. Where a limit `L` is set, contacts are looked for again at `q_{n+1}`, and while there is one with `g < −L` all bodies
//! move by the displacements `d` of
//!
//! ```text
//! 0 ≤ d_n + g + L/2 ⊥ p ≥ 0      no friction, masses as weights: the nearest such place, linearised at q_{n+1}
//! ```
//!
//! then gaps and Jacobians are taken anew. Half of `L` is left, so that a body at rest stays in contact. Velocities do not change.

use super::assemble::TakesPart;
use super::halo::HaloMemory;
use super::interface::Connection;
use super::{Machines, StepError, View, correct, halo, hub, interface, motion, pair_owner, reach_boxes};
use crate::contact::detect::Detector;
use crate::geometry::Vec3;
use crate::scene::{Body, Physics, Scene};
use crate::solve::{self, Acceleration, LocalLaw, Measure, Options};
use decomposition::{Comm, Partition};

/// At most. Each round squares the error of the one before, but stones that hold each other need some.
const ROUNDS: usize = 20;

/// A round need not be exact, since the next one looks again.
const OPTIONS: Options = Options {
    tolerance: 1e-4,
    measure: Measure::Fclib,
    maximum_sweeps: 200,
    check_every: 5,
    law: LocalLaw::Projected,
    acceleration: Acceleration::None,
    method: None,
};

/// What is kept from one step's end to the next: scratch.
#[derive(Default)]
pub(super) struct Projector {
    detector: Detector,
    memory: HaloMemory,
}

impl Projector {
    /// At the end of a step. The deepest overlap that is left, m; none without a limit. Collective.
    pub fn project(
        &mut self,
        scene: &mut Scene,
        machines: &mut Machines,
        physics: &Physics,
        partition: &Partition,
        comm: &dyn Comm,
    ) -> Result<Option<f64>, StepError> {
        if physics.penetration_limit == 0.0 {
            return Ok(None);
        }
        let mut left = self.round(scene, machines, physics, partition, comm)?;
        for _ in 1..ROUNDS {
            let Round::Moved = left.1 else { break };
            left = self.round(scene, machines, physics, partition, comm)?;
        }
        Ok(Some(left.0))
    }

    /// Looks, and moves where something is to be moved; the deepest overlap is that before.
    fn round(
        &mut self,
        scene: &mut Scene,
        machines: &mut Machines,
        physics: &Physics,
        partition: &Partition,
        comm: &dyn Comm,
    ) -> Result<(f64, Round), StepError> {
        let (limit, no_gravity) = (physics.penetration_limit, Vec3::zeros());
        machines.stand(scene, comm)?;
        let free = motion::free_motions(&scene.state.grains, &no_gravity, physics);
        let boxes = reach_boxes(scene, &free, physics, 0.0, comm);
        let halo = halo::exchange_ghosts(scene, &boxes, partition, &mut self.memory, comm);
        let view = View::new(scene, &halo, machines, physics, &no_gravity, free, 0.0);
        let owns = |a: &Body, b: &Body, place: &Vec3| pair_owner(a, b, place, partition) == comm.rank();
        let meet = |a: &Body, b: &Body| {
            let law = scene.model.laws.between(a.material, b.material);
            (law.is_some() && machines.can_touch(scene, a, b)).then_some(1.0)
        };
        let contacts = self.detector.detect(&view.candidates, owns, meet);
        let mut assembled = view.assemble(contacts, scene, machines, &halo, physics, TakesPart::All);
        let infos = assembled.points.iter().chain(assembled.hub.iter().flat_map(|contact| &contact.infos));
        let mut deepest = [infos.map(|point| -point.gap).fold(0.0, f64::max)];
        comm.max_f64(&mut deepest);
        if deepest[0] <= limit {
            return Ok((deepest[0], Round::Good));
        }
        let connection = &mut Connection::default();
        let (colours, mut ranks) = interface::connect(
            connection,
            &mut assembled,
            &view.ids,
            scene.state.grains.len(),
            &halo,
            false,
            comm,
        );
        let here = hub::Here { view: &view, scene, halo: &halo, comm };
        let (gathered, exchange) = hub::gather(&assembled.hub, machines, &here, &ranks);
        ranks.set_hub(exchange);
        let shared = |slot: u32| halo.is_shared(slot);
        let bias = |gap: f64| (gap + 0.5 * limit) / physics.time_step;
        let (problem, hub) = (correct::starting_at_rest(&assembled, bias), gathered.starting_at_rest(bias));
        let solution = solve::solve(&problem, &hub, colours, &OPTIONS, shared, &mut ranks);
        let shifts = Some(correct::Shifts { bodies: solution.velocities, machines: solution.hub.velocities });
        correct::apply(&mut scene.state.grains, &shifts, physics);
        machines.shift(scene, &correct::machine_ways(&shifts, physics), comm)?;
        Ok((deepest[0], Round::Moved))
    }
}

enum Round {
    Good,
    Moved,
}
