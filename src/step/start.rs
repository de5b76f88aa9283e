//! The start of a step, to put back what a step has changed up to the end of its contact solve.
//!
//! Until then a step moves bodies to where contacts are looked for, gives kinematic bodies the velocity of
//! the step, renews anchors and what integrators
//! remember, and lets machines begin; impulses, velocities of grains, owners and the number of
//! the step come later. So a fraction of [`super::Snapshot`] is enough, and its memory is used again.

use super::StepError;
use super::world::World;
use crate::geometry::{Pose, Vec3};
use crate::machine::SavedMachine;
use crate::scene::{Anchor, Body};

#[derive(Default)]
pub(super) struct Start {
    grains: Vec<(Pose, Option<Anchor>, Box<[f64]>)>,
    /// Fixed and kinematic bodies, then those of machines.
    others: Vec<(Pose, Vec3, Vec3)>,
    machines: Vec<SavedMachine>,
}

impl Start {
    pub fn remember(&mut self, world: &World) {
        let state = &world.scene.state;
        self.grains.clear();
        let kept = |body: &Body| (body.pose, body.anchor, body.memory.clone());
        self.grains.extend(state.grains.iter().map(kept));
        self.others.clear();
        let others = state.statics.iter().chain(&state.machine_bodies);
        self.others.extend(others.map(|body| (body.pose, body.velocity, body.angular_velocity)));
        self.machines = world.machines.save();
    }

    pub fn put_back(&self, world: &mut World) -> Result<(), StepError> {
        let state = &mut world.scene.state;
        for (body, (pose, anchor, memory)) in state.grains.iter_mut().zip(&self.grains) {
            (body.pose, body.anchor) = (*pose, *anchor);
            body.memory.clone_from(memory);
        }
        let others = state.statics.iter_mut().chain(&mut state.machine_bodies);
        let put = |(body, (pose, velocity, angular)): (&mut Body, &(Pose, Vec3, Vec3))| {
            (body.pose, body.velocity, body.angular_velocity) = (*pose, *velocity, *angular);
        };
        others.zip(&self.others).for_each(put);
        world.machines.take_back(&self.machines)
    }
}
