//! How grains and machines share a step.
//!
//! A [`Coupling`] gets the contact problem of a step, machines and grains at the positions of their contacts,
//! and gives velocities and impulses. [`Monolithic`] solves one problem over all of them. A scheme that
//! solves grains and machines in turns tries a step and takes it back by [`super::Stepper::snapshot`] and
//! [`super::Stepper::take_back`].

mod hand_over;
mod monolithic;

pub use monolithic::Monolithic;

use super::StepError;
use super::contacts::ContactProblem;
use crate::solve::{Blocks, Options, Solution};

/// What a contact solve has found.
pub struct Solved {
    pub solution: Solution,
    /// Those that were solved in, for another problem of the same contacts.
    pub blocks: Option<Blocks>,
    /// The sweeps had missed their tolerance, and [`solve::Options::fallback`](Options) has tried.
    pub handed_over: bool,
}

pub trait Coupling: Send + Sync {
    /// Collective.
    fn solve(&self, contacts: &mut ContactProblem, options: &Options) -> Result<Solved, StepError>;
}
