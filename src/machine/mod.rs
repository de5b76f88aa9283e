//! A machine of a case: the mechanism, the laws and phases that drive it, and the shapes by which it touches
//! others.
//!
//! [`crate::multibody`] knows joints and forces but no case file; [`crate::setup::machine`] builds what is
//! here from one.

mod controller;
mod formula;
mod variable;

pub use controller::{Controller, ControllerState, Decisions};
pub(crate) use formula::law;
pub use variable::{MachineLaw, MachinePhase, MachineVariable, PHASE_QUANTITIES};

use crate::geometry::Shape;
use crate::multibody::{BodyIndex, Multibody, MultibodyError, MultibodyState};
use serde::{Deserialize, Serialize};

/// A machine that is ready to step.
#[derive(Debug)]
pub struct Machine {
    pub multibody: Multibody,
    /// To be updated at the start of every step, before anything else of the machine.
    pub controller: Controller,
    /// Of the bodies that have one, ascending by body.
    pub shapes: Vec<MachineShape>,
    /// Pairs of bodies with contacts that never touch each other, the lower one first, ascending.
    pub apart: Vec<[BodyIndex; 2]>,
}

/// The shape of a body of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineShape {
    pub body: BodyIndex,
    /// In the frame of the machine's body, which need not stand at its centre of mass.
    pub shape: Shape,
    /// Index into the materials of the case.
    pub material: u32,
    /// Whether it touches others; otherwise it is only drawn.
    pub contacts: bool,
}

/// What a checkpoint holds of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedMachine {
    pub multibody: MultibodyState,
    pub controller: ControllerState,
}

impl Machine {
    pub fn save(&self) -> SavedMachine {
        SavedMachine { multibody: self.multibody.state(), controller: self.controller.state() }
    }

    /// Back to a state that this machine had between two steps.
    pub fn take_back(&mut self, saved: &SavedMachine) -> Result<(), MultibodyError> {
        self.multibody.take_back(&saved.multibody)?;
        self.controller.take_back(saved.controller, &mut self.multibody);
        Ok(())
    }

    /// The shapes that touch others, in the order of the slots of the machine's reduced operators.
    pub fn contact_shapes(&self) -> impl Iterator<Item = &MachineShape> {
        self.shapes.iter().filter(|shape| shape.contacts)
    }

    /// Whether two bodies of this machine can touch each other.
    pub fn can_touch(&self, first: BodyIndex, second: BodyIndex) -> bool {
        first != second && self.apart.binary_search(&[first.min(second), first.max(second)]).is_err()
    }
}
