//! Steps that are tried and taken back.

use super::{StepError, StepReport, Stepper};
use crate::solve;

impl Stepper<'_> {
    /// Makes so many steps with these options of the solver, shows each to `each`, and goes back to where it
    /// was: the steps from here on have the same bits as without. Until the next step
    /// [`contacts`](Self::contacts), [`observe`](Self::observe) and the loads of machines are those of the
    /// last step tried. Collective.
    pub fn tried(
        &mut self,
        steps: u64,
        options: solve::Options,
        mut each: impl FnMut(&Self, &StepReport),
    ) -> Result<(), StepError> {
        let before = self.snapshot();
        let (own, timers) = (std::mem::replace(&mut self.options, options), self.timers.clone());
        let made = (0..steps).try_for_each(|_| {
            let report = self.step()?;
            each(self, &report);
            Ok(())
        });
        (self.options, self.timers) = (own, timers);
        self.take_back(&before)?;
        made
    }

    /// From now on contact problems are solved so. All ranks ask alike.
    pub fn set_solver(&mut self, options: solve::Options) {
        self.options = options;
    }

    /// How contact problems are solved.
    pub fn solver(&self) -> &solve::Options {
        &self.options
    }
}
