//! What a machine decides once per step: its named quantities, and in which phase it is.
//!
//! At the start of a step, [`Controller::update`] evaluates the quantities in their order, from the machine
//! as it stands, and then asks whether the phase ends. If so the next one begins at that time, and the
//! quantities are evaluated again, those first that only change with the phase. At most one phase ends per
//! step. Laws read the results as quantities of the machine; within a step these do not change.

use super::formula::{Formula, machine_value};
use super::variable::MachinePhase;
use crate::formula::Expression;
use crate::multibody::{Model, Multibody, MultibodyError};
use serde::{Deserialize, Serialize};

/// What a checkpoint holds of a controller. The quantities are in the state of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ControllerState {
    /// Index into the phases of the machine.
    pub phase: usize,
    /// When it began, s.
    pub phase_start: f64,
}

/// What a controller decides.
pub struct Decisions<'a> {
    /// In the order in which they are evaluated.
    pub quantities: Vec<(&'a str, &'a Expression)>,
    /// So many of them, the first, keep their values while a phase lasts.
    pub kept: usize,
    pub phases: &'a [MachinePhase],
}

#[derive(Debug)]
pub struct Controller {
    state: ControllerState,
    quantities: Vec<(String, Formula)>,
    /// So many of them, the first, keep their values while a phase lasts.
    kept: usize,
    /// Of the quantities and of the two of the phase, as the machine has them.
    values: Vec<f64>,
    phases: Vec<Phase>,
    /// Where the phase and its start stand among the values.
    phase_places: [usize; 2],
}

#[derive(Debug)]
struct Phase {
    name: String,
    until: Option<(Formula, usize)>,
}

impl Controller {
    pub(crate) fn new(
        decides: Decisions,
        model: &Model,
        state: ControllerState,
        phase_places: [usize; 2],
    ) -> Self {
        let phase = |phase: &MachinePhase| Phase {
            name: phase.name.clone(),
            until: phase.until.as_ref().map(|(formula, next)| (Formula::new(formula, model), *next)),
        };
        let quantity = |(name, formula): (&str, _)| (name.to_string(), Formula::new(formula, model));
        let quantities: Vec<_> = decides.quantities.into_iter().map(quantity).collect();
        Self {
            state,
            values: vec![0.0; quantities.len() + phase_places.len()],
            quantities,
            kept: decides.kept,
            phases: decides.phases.iter().map(phase).collect(),
            phase_places,
        }
    }

    pub fn state(&self) -> ControllerState {
        self.state
    }

    /// The name of the phase; none for a machine without phases.
    pub fn phase(&self) -> Option<&str> {
        self.phases.get(self.state.phase).map(|phase| phase.name.as_str())
    }

    /// None for a machine without phases.
    pub fn phase_names(&self) -> Option<Vec<&str>> {
        let names: Vec<&str> = self.phases.iter().map(|phase| phase.name.as_str()).collect();
        (!names.is_empty()).then_some(names)
    }

    /// The quantities with their values of the last update, in the order of the case.
    pub fn quantities(&self) -> impl Iterator<Item = (&str, f64)> {
        self.quantities.iter().zip(&self.values).map(|((name, _), value)| (name.as_str(), *value))
    }

    /// At the start of every step, with the machine at `time`. Pure: the same machine, state and time give
    /// the same bits.
    pub fn update(&mut self, machine: &mut Multibody, time: f64) -> Result<(), MultibodyError> {
        self.evaluate(machine, time, self.kept)?;
        let Some(Phase { name, until: Some((until, next)) }) = self.phases.get(self.state.phase) else {
            return Ok(());
        };
        let holds =
            until.evaluate(|place| machine_value(place, machine, time, self.state.phase_start, &self.values));
        if holds.is_nan() {
            return Err(MultibodyError::NotANumber { what: format!("the end of phase `{name}`") });
        }
        if holds != 0.0 {
            self.state = ControllerState { phase: *next, phase_start: time };
            self.evaluate(machine, time, 0)?;
        }
        Ok(())
    }

    /// All quantities, as at the start of a phase.
    pub(crate) fn begin(&mut self, machine: &mut Multibody, time: f64) -> Result<(), MultibodyError> {
        self.evaluate(machine, time, 0)
    }

    /// The quantities from the one numbered `first`, without a change of phase.
    fn evaluate(&mut self, machine: &mut Multibody, time: f64, first: usize) -> Result<(), MultibodyError> {
        let start = self.state.phase_start;
        for (index, (name, formula)) in self.quantities.iter().enumerate().skip(first) {
            let value = formula.evaluate(|place| machine_value(place, machine, time, start, &self.values));
            if !value.is_finite() {
                return Err(MultibodyError::NotANumber { what: format!("the quantity `{name}`") });
            }
            self.values[index] = value;
            machine.set_quantity(index, value);
        }
        self.set_phase(machine);
        Ok(())
    }

    /// Back to a state that it had, with the system that had it.
    pub(super) fn take_back(&mut self, state: ControllerState, system: &mut Multibody) {
        self.state = state;
        self.adopt(system);
    }

    /// Takes the values that a machine has from its saved state, and sets its phase.
    pub(crate) fn adopt(&mut self, machine: &mut Multibody) {
        self.values.copy_from_slice(&machine.state().quantities);
        self.state.phase = self.state.phase.min(self.phases.len().saturating_sub(1));
        self.set_phase(machine);
    }

    fn set_phase(&mut self, machine: &mut Multibody) {
        let phase = [self.state.phase as f64, self.state.phase_start];
        for (place, value) in self.phase_places.into_iter().zip(phase) {
            self.values[place] = value;
            machine.set_quantity(place, value);
        }
    }
}
