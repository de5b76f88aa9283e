//! The start of a step, to put back what a step has changed until bodies change owners.
//!
//! Impulses are not copied: a step makes new ones, and the old ones are kept until it is known that it will
//! be taken. So this is smaller than [`super::Snapshot`], and its memory is used again.

use super::StepError;
use super::account::Account;
use super::world::World;
use crate::geometry::{Pose, Vec3};
use crate::machine::SavedMachine;
use crate::scene::{Anchor, Body, Impulses};

#[derive(Default)]
pub(super) struct Start {
    grains: Vec<Grain>,
    /// Fixed and kinematic bodies, then those of machines.
    others: Vec<(Pose, Vec3, Vec3)>,
    machines: Vec<SavedMachine>,
    step: u64,
    account: Account,
    /// Once the step has its own.
    impulses: Option<Impulses>,
}

/// What a step changes of a free body.
struct Grain {
    pose: Pose,
    velocity: Vec3,
    angular_velocity: Vec3,
    angular_momentum: Vec3,
    anchor: Option<Anchor>,
    memory: Box<[f64]>,
}

impl Start {
    pub fn remember(&mut self, world: &World) {
        let state = &world.scene.state;
        self.grains.clear();
        let kept = |body: &Body| {
            let &Body { pose, velocity, angular_velocity, angular_momentum, anchor, ref memory, .. } = body;
            Grain { pose, velocity, angular_velocity, angular_momentum, anchor, memory: memory.clone() }
        };
        self.grains.extend(state.grains.iter().map(kept));
        self.others.clear();
        let others = state.statics.iter().chain(&state.machine_bodies);
        self.others.extend(others.map(|body| (body.pose, body.velocity, body.angular_velocity)));
        self.machines = world.machines.save();
        self.step = state.step;
        self.account.clone_from(&world.account);
    }

    /// The impulses from before the step, which now has its own.
    pub fn keep(&mut self, impulses: Impulses) {
        self.impulses = Some(impulses);
    }

    /// The step is taken: they are not needed any more.
    pub fn let_go(&mut self) {
        self.impulses = None;
    }

    pub fn put_back(&mut self, world: &mut World) -> Result<(), StepError> {
        let state = &mut world.scene.state;
        for (body, grain) in state.grains.iter_mut().zip(&self.grains) {
            (body.pose, body.anchor) = (grain.pose, grain.anchor);
            (body.velocity, body.angular_velocity) = (grain.velocity, grain.angular_velocity);
            body.angular_momentum = grain.angular_momentum;
            body.memory.clone_from(&grain.memory);
        }
        state.step = self.step;
        if let Some(impulses) = self.impulses.take() {
            state.impulses = impulses;
        }
        world.account.clone_from(&self.account);
        let state = &mut world.scene.state;
        let others = state.statics.iter_mut().chain(&mut state.machine_bodies);
        let put = |(body, (pose, velocity, angular)): (&mut Body, &(Pose, Vec3, Vec3))| {
            (body.pose, body.velocity, body.angular_velocity) = (*pose, *velocity, *angular);
        };
        others.zip(&self.others).for_each(put);
        world.machines.take_back(&self.machines)
    }
}
