//! Wall time and traffic by phase, under the names of the step.

use decomposition::{Comm, Traffic};
use std::time::Instant;

/// The phases of a step, in their order: the same names in code, tables and docs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Machine,
    Predict,
    Halo,
    Detect,
    Assemble,
    Colour,
    Solve,
    Correct,
    Finish,
    Migrate,
}

impl Phase {
    pub const ALL: [Phase; 10] = [
        Phase::Machine,
        Phase::Predict,
        Phase::Halo,
        Phase::Detect,
        Phase::Assemble,
        Phase::Colour,
        Phase::Solve,
        Phase::Correct,
        Phase::Finish,
        Phase::Migrate,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Phase::Machine => "machine",
            Phase::Predict => "predict",
            Phase::Halo => "halo",
            Phase::Detect => "detect",
            Phase::Assemble => "assemble",
            Phase::Colour => "colour",
            Phase::Solve => "solve",
            Phase::Correct => "correct",
            Phase::Finish => "finish",
            Phase::Migrate => "migrate",
        }
    }
}

/// What a phase has cost on this rank.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    pub seconds: f64,
    pub traffic: Traffic,
}

/// The cost of each phase on this rank.
#[derive(Clone, Debug, Default)]
pub struct Timers {
    costs: [Cost; Phase::ALL.len()],
}

impl Timers {
    pub fn time<R>(&mut self, phase: Phase, comm: &dyn Comm, work: impl FnOnce() -> R) -> R {
        let (start, before) = (Instant::now(), comm.traffic());
        let result = work();
        let cost = &mut self.costs[phase as usize];
        cost.seconds += start.elapsed().as_secs_f64();
        cost.traffic += comm.traffic() - before;
        result
    }

    pub fn phases(&self) -> impl Iterator<Item = (&'static str, Cost)> {
        Phase::ALL.into_iter().map(|phase| (phase.name(), self.costs[phase as usize]))
    }
}
