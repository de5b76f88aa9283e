//! Wall time by phase, under the names of the step.

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

/// Seconds spent in each phase on this rank.
#[derive(Clone, Debug, Default)]
pub struct Timers {
    seconds: [f64; Phase::ALL.len()],
}

impl Timers {
    pub fn time<R>(&mut self, phase: Phase, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        self.seconds[phase as usize] += start.elapsed().as_secs_f64();
        result
    }

    pub fn phases(&self) -> impl Iterator<Item = (&'static str, f64)> {
        Phase::ALL.into_iter().map(|phase| (phase.name(), self.seconds[phase as usize]))
    }
}
