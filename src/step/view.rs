//! The bodies of a step as one rank sees them.

use super::integrate::{Clock, Integrator};
use super::reach::{candidate, reach};
use super::world::World;
use crate::contact::detect::Candidate;
use crate::exchange::Halo;
use crate::geometry::Vec3;
use crate::scene::BodyId;
use crate::solve::{Inertia, Twist};

/// Bodies by slot: own ones, ghosts, then fixed and kinematic ones, then those of machines that touch others.
pub struct View<'a> {
    pub candidates: Vec<Candidate<'a>>,
    /// Of the movable ones: own bodies and ghosts.
    pub ids: Vec<BodyId>,
    /// Their owners.
    pub owners: Vec<u32>,
    /// This and what follows: until the contact problem [takes](Self::take_bodies) them.
    pub inertia: Vec<Inertia>,
    pub free_velocity: Vec<Twist>,
}

/// What happens to bodies between the positions of contacts and the end of the step.
pub struct FreeMotion<'a> {
    pub integrator: &'a dyn Integrator,
    pub gravity: Vec3,
    pub clock: Clock,
    /// See [`candidate`].
    pub reuse: f64,
}

impl<'a> View<'a> {
    /// `own` is the free motion of the scene's own bodies.
    pub fn new(
        world: &'a World,
        halo: &'a Halo,
        own: &[(Inertia, Twist)],
        motion: &FreeMotion,
        rank: usize,
    ) -> Self {
        let World { scene, machines, physics, .. } = world;
        let state = &scene.state;
        let count = state.grains.len() + halo.ghosts.len() + state.statics.len() + state.machine_bodies.len();
        let mut view = Self {
            candidates: Vec::with_capacity(count),
            ids: state.grains.iter().chain(&halo.ghosts).map(|body| body.id).collect(),
            owners: vec![rank as u32; state.grains.len()],
            inertia: Vec::with_capacity(count),
            free_velocity: Vec::with_capacity(count),
        };
        view.owners.extend_from_slice(&halo.owners);
        let FreeMotion { integrator, gravity, clock, reuse } = motion;
        let ghosts = integrator.free_motions(&halo.ghosts, gravity, clock);
        let statics = integrator.free_motions(&state.statics, gravity, clock);
        let free = own.iter().chain(&ghosts).chain(&statics);
        for (body, free) in state.grains.iter().chain(&halo.ghosts).chain(&state.statics).zip(free) {
            view.candidates.push(candidate(body, free, physics, *reuse));
            view.inertia.push(free.0);
            view.free_velocity.push(free.1);
        }
        for body in &state.machine_bodies {
            if let Some(free) = machines.free_twist(scene, body) {
                let reach = reach(body, &free, physics);
                view.candidates.push(Candidate { body, reach, movable: true, slack: 0.0 });
                view.inertia.push(Inertia::default());
                view.free_velocity.push(free);
            }
        }
        view
    }

    /// What the contact problem wants to know of the bodies.
    pub fn take_bodies(&mut self) -> (Vec<Inertia>, Vec<Twist>) {
        (std::mem::take(&mut self.inertia), std::mem::take(&mut self.free_velocity))
    }
}
