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

    const NAMES: [&'static str; Phase::ALL.len()] = [
        "machine", "predict", "halo", "detect", "assemble", "colour", "solve", "correct", "finish", "migrate",
    ];

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// For a rank that has to say where it waited.
    fn announce(self) {
        const { assert!(Phase::ALL.len() == Phase::Migrate as usize + 1) };
        static PLACES: [&str; Phase::ALL.len()] = Phase::NAMES;
        decomposition::watch::set_place(&PLACES[self as usize]);
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
        phase.announce();
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
