//! What a run carries from step to step: with the machines', this is what a checkpoint holds.

use super::{Body, Impulses};

/// What a rank holds of the simulated world.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Steps done since the beginning; the time is `start_time + step · time_step`.
    pub step: u64,
    /// Fixed and kinematic bodies, ascending by id: the same on every rank.
    pub statics: Vec<Body>,
    /// The bodies of machines that have a shape, ascending by id. Every rank holds them; at the end of a step
    /// only the owner of the machines knows where they stand.
    pub machine_bodies: Vec<Body>,
    /// The free bodies that this rank owns, ascending by id.
    pub grains: Vec<Body>,
    /// Of the contacts whose home this rank owns.
    pub impulses: Impulses,
}
