//! What is simulated, and where this rank stands in it.

use super::account::Account;
use super::integrate::Clock;
use super::machines::Machines;
use crate::exchange::DecompositionOptions;
use crate::exchange::hub::OWNER;
use crate::geometry::Vec3;
use crate::scene::{Body, Motion, Physics, Scene};
use decomposition::{Comm, Partition};

/// Bodies, machines, the laws of their motion, and the work done on them.
pub struct World {
    pub scene: Scene,
    pub machines: Machines,
    pub physics: Physics,
    pub account: Account,
}

impl World {
    /// Of the coming step.
    pub fn clock(&self) -> Clock {
        let Physics { time_step, .. } = self.physics;
        Clock { start: self.physics.time(self.scene.state.step), time_step }
    }

    /// In the coming step.
    pub fn gravity(&self) -> Vec3 {
        (self.physics.gravity)(self.physics.time(self.scene.state.step))
    }

    /// At the end of a step: gravity becomes that of the next one, which is work on the bodies where they
    /// stand. A case with machines has constant gravity.
    pub(super) fn change_gravity(&mut self) {
        let after = (self.physics.gravity)(self.physics.time(self.scene.state.step + 1));
        let change = after - self.gravity();
        if change != Vec3::zeros() {
            let Self { scene, account, .. } = self;
            for body in &scene.state.grains {
                account.reweigh(body.mass, &change, &body.pose.position);
            }
        }
    }
}

/// The part of space that this rank owns, and how it reaches the others.
pub struct Territory<'c> {
    pub comm: &'c dyn Comm,
    pub partition: Partition,
    pub options: DecompositionOptions,
    /// Whether copies of shared bodies are compared after each sweep.
    pub verify: bool,
}

impl Territory<'_> {
    /// Whether this rank finds the contacts of a pair. Where there is no grain to be near to, the owner of
    /// the machines does, which keeps the impulses of such contacts.
    pub fn owns_pair(&self, a: &Body, b: &Body, place: &Vec3) -> bool {
        let owner = if a.motion != Motion::Free && b.motion != Motion::Free {
            OWNER
        } else {
            self.partition.owner_of_point((*place).into())
        };
        owner == self.comm.rank()
    }
}
