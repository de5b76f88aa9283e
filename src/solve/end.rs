//! The two sides of a contact.

use crate::geometry::{Mat3, Vec3};
use crate::solve::Inertia;
use serde::{Deserialize, Serialize};

/// One of the two sides of a contact; `B` names a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End<B> {
    /// Moves whatever happens.
    Given,
    Body(B),
    Machine(MachineSlot),
}

/// A body of a machine that carries contact shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSlot {
    /// In the order of the case.
    pub machine: u32,
    /// Place among the contact bodies of the machine's reduced operators.
    pub slot: u32,
}

impl<B> End<B> {
    pub fn map<C>(&self, name: impl FnOnce(&B) -> C) -> End<C> {
        match self {
            End::Given => End::Given,
            End::Body(body) => End::Body(name(body)),
            End::Machine(slot) => End::Machine(*slot),
        }
    }

    pub fn body(&self) -> Option<&B> {
        if let End::Body(body) = self { Some(body) } else { None }
    }

    pub fn machine(&self) -> Option<MachineSlot> {
        if let End::Machine(slot) = self { Some(*slot) } else { None }
    }
}

/// What a body adds to `W_αα`, world frame: `1/m − [arm] I⁻¹ [arm]`.
pub fn delassus_of_body(inertia: &Inertia, arm: &Vec3) -> Mat3 {
    let cross = arm.cross_matrix();
    Mat3::identity() * inertia.inverse_mass - cross * inertia.inverse_tensor() * cross
}

/// A machine's Jacobian at a point in the frame of a contact, 3 × nu, row by row: `world` is the same in
/// world axes, `sign` that of the contact's side.
pub fn jacobian_in_frame<'a>(
    frame: &'a [Vec3; 3],
    world: &'a [f64],
    sign: f64,
) -> impl Iterator<Item = f64> + 'a {
    let nu = world.len() / 3;
    let entry = move |axis: usize, k: usize| {
        sign * (0..3).map(|along| frame[axis][along] * world[along * nu + k]).sum::<f64>()
    };
    (0..3).flat_map(move |axis| (0..nu).map(move |k| (axis, k))).map(move |(axis, k)| entry(axis, k))
}
