//! How well forces are known: from time to time the next steps are made twice from the same state, as the run
//! makes them and with their contact problems solved to high accuracy, and all forces are compared.
//!
//! Both are tried and taken back ([`Stepper::tried`]), before the step that follows: the run has the same
//! bits as without, and a restart the same rows.

use super::error::RunError;
use super::files::Schedule;
use super::force_control::Control;
use super::restart::Found;
use super::series::{ForceTable, Moment};
use super::{Run, files};
use crate::commands::inspect::text_table::TextTable;
use crate::geometry::Vec3;
use crate::input::Case;
use crate::solve;
use crate::step::{StepError, Stepper};
use serde::Serialize;
use std::path::Path;

/// Sweeps that they may take: by those of the run, and at least.
const MORE_SWEEPS: usize = 5;
const LEAST_SWEEPS: usize = 5_000;
/// The share of errors, of steps that are not checked, that lie below what the summary states.
const SHARE: f64 = 0.95;
/// By which bounds are taken larger than the checks say. Without it 95.8 % of errors were within them on
/// average over five sets of twenty checks of four cases, but for one of the sets 91.9 % (of 200 random
/// steps).
const MARGIN: f64 = 1.5;

/// When forces are checked, and over how many steps.
pub(super) struct ForceChecks {
    due: Schedule,
    window: u64,
    /// Of the tolerance of the run: that of accurate solves.
    accuracy: f64,
    /// The largest error of a force that the case wants, by its size.
    pub(super) wanted: Option<f64>,
    pub(super) control: Control,
}

impl ForceChecks {
    /// `control` is that of the run that goes on.
    pub fn new(case: &Case, control: Option<Control>) -> Option<Self> {
        let (output, time_step) = (&case.output, case.simulation.time_step);
        let window = (output.force_window / time_step).round().max(1.0) as u64;
        output.force_check.map(|interval| Self {
            due: Schedule::new(Some(interval), time_step),
            window,
            accuracy: output.force_accuracy,
            wanted: case.solver.force_tolerance,
            control: control.unwrap_or_default(),
        })
    }

    fn begin(&mut self, step: u64) -> bool {
        self.due.is_due(step) && self.control.done.replace(step) != Some(step)
    }
}

/// The options of solves whose errors are small beside those of a run with these.
fn accurate(options: &solve::Options, accuracy: f64) -> solve::Options {
    solve::Options {
        tolerance: accuracy * options.tolerance,
        maximum_sweeps: LEAST_SWEEPS.max(MORE_SWEEPS.saturating_mul(options.maximum_sweeps)),
        ..*options
    }
}

/// The forces of a window of steps.
#[derive(Default)]
struct Window {
    first: Vec<Vec3>,
    mean: Vec<Vec3>,
    /// Mean.
    sweeps: f64,
    /// Largest.
    residual: f64,
}

impl Window {
    /// Collective.
    fn try_out(
        stepper: &mut Stepper,
        table: &ForceTable,
        steps: u64,
        options: solve::Options,
    ) -> Result<Self, StepError> {
        let mut window = Window { mean: vec![Vec3::zeros(); table.len()], ..Window::default() };
        let share = 1.0 / steps as f64;
        stepper.tried(steps, options, |stepper, report| {
            let observed = stepper.observe();
            let moment = Moment { report, observed: &observed, machines: stepper.machines() };
            let forces = table.read(&moment);
            window.mean.iter_mut().zip(&forces).for_each(|(mean, force)| *mean += force * share);
            if window.first.is_empty() {
                window.first = forces;
            }
            window.sweeps += report.sweeps as f64 * share;
            window.residual = window.residual.max(report.residual.natural_map);
        })?;
        Ok(window)
    }

    /// Force and error of the first step, and of the mean.
    fn compare(&self, run: &Window) -> Vec<f64> {
        let (first, mean) = (self.first.iter().zip(&run.first), self.mean.iter().zip(&run.mean));
        let pair = |(accurate, own): (&Vec3, &Vec3)| [accurate.norm(), (own - accurate).norm()];
        first.zip(mean).flat_map(|(first, mean)| [pair(first), pair(mean)].concat()).collect()
    }
}

impl Run<'_> {
    /// Before the first step. `continued` is the run that goes on.
    pub(super) fn begin_checks(&mut self, continued: Option<&Found>) -> Result<(), RunError> {
        let control = continued.map(|found| files::control_at(&found.state)).transpose()?.flatten();
        self.checks = ForceChecks::new(self.case, control);
        if let Some(checks) = &self.checks {
            self.stepper.set_solver(checks.chosen(self.solver));
        }
        Ok(())
    }

    /// Before a step: once a fallback has got as many steps as it may, no more are handed over.
    pub(super) fn limit_fallback(&mut self) {
        if self.statistics.handed_over >= self.case.solver.fallback_steps {
            self.solver.fallback = solve::Fallback::None;
            let options = solve::Options { fallback: solve::Fallback::None, ..*self.stepper.solver() };
            self.stepper.set_solver(options);
        }
    }

    /// Collective, before a step: compares the forces of the next ones, if it is time.
    pub(super) fn check_forces(&mut self) -> Result<(), RunError> {
        let step = self.stepper.scene().state.step;
        let Some(checks) = &mut self.checks else { return Ok(()) };
        if !checks.begin(step) {
            return Ok(());
        }
        let (steps, accuracy, own) = (checks.window, checks.accuracy, *self.stepper.solver());
        let Some(table) = self.files.force_table() else { return Ok(()) };
        let mut window = |options| Window::try_out(&mut self.stepper, table, steps, options);
        let compared = window(accurate(&own, accuracy)).and_then(|accurate| Ok((accurate, window(own)?)));
        let (accurate, run) = match compared {
            Ok(windows) => windows,
            // The signal is still there at the end of the next step.
            Err(StepError::Stopped { .. }) => return Ok(()),
            Err(problem) => {
                self.log.say(&format!("warning: forces after step {step} were not checked: {problem}"));
                return Ok(());
            }
        };
        let time = self.stepper.physics().time(step);
        let control = &mut checks.control;
        let worst = control.worst(table.moments(), &accurate.first, &run.first);
        if let Some(wanted) = checks.wanted {
            control.follow(worst, wanted);
        }
        control.share_out(self.comm);
        self.stepper.set_solver(checks.chosen(self.solver));
        let mut row =
            vec![step as f64, time, steps as f64, accurate.sweeps, accurate.residual, own.tolerance, worst];
        row.extend(accurate.compare(&run));
        let added = self.timed(|run| run.files.add_force_row(&row));
        self.keep_row_failure(added);
        Ok(())
    }
}

/// How well a force of a run is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ForceError {
    pub name: String,
    pub checks: usize,
    /// Mean magnitude over the windows, N or N m.
    pub mean: f64,
    /// What errors of other single steps and windows stay below with a chance of 95 %.
    pub step_error: f64,
    pub window_error: f64,
}

/// What the file of a run says; nothing if there is none.
pub(super) fn read(path: &Path) -> Vec<ForceError> {
    TextTable::read(path).map(|table| ForceError::of_table(&table)).unwrap_or_default()
}

impl ForceError {
    /// One for each force of a table of errors.
    pub fn of_table(table: &TextTable) -> Vec<Self> {
        let of = |name: &String| {
            let name = name.strip_suffix(".window_force")?;
            let column =
                |ending: &str| table.column(&format!("{name}{ending}")).filter(|rows| !rows.is_empty());
            let mean = column(".window_force")?;
            Some(Self {
                name: name.to_string(),
                checks: mean.len(),
                mean: mean.iter().sum::<f64>() / mean.len() as f64,
                step_error: bound(column(".error")?, column(".force")?),
                window_error: bound(column(".window_error")?, mean),
            })
        };
        table.names.iter().filter_map(of).collect()
    }
}

/// What another error of the kind does not exceed with the chance [`SHARE`], from the checks at which the
/// force acted.
///
/// The next of n + 1 equal draws lies above the k-th smallest of the first n with a chance of 1 − k / (n + 1)
/// whatever the distribution. With less than nineteen values even the largest is too small for that: then it
/// is taken by 20 / (n + 1), which is right where the chance of an error falls with its size no slower than
/// inversely. That is so on average over many sets of checks: [`MARGIN`] is for the one at hand.
fn bound(errors: &[f64], forces: &[f64]) -> f64 {
    let acted = errors.iter().zip(forces).filter(|(error, force)| **force > 0.0 || **error > 0.0);
    let mut values: Vec<f64> = acted.map(|(error, _)| *error).collect();
    if values.is_empty() {
        return 0.0;
    }
    values.sort_by(f64::total_cmp);
    let draws = values.len() as f64 + 1.0;
    let place = (SHARE * draws).ceil() as usize;
    let beyond = || Some(values.last()? / ((1.0 - SHARE) * draws).min(1.0));
    values.get(place - 1).copied().or_else(beyond).map_or(f64::NAN, |bound| MARGIN * bound)
}

/// For the log: the largest forces with what is known of them.
pub(super) fn sentence(errors: &[ForceError]) -> Option<String> {
    let mut largest: Vec<&ForceError> = errors.iter().filter(|error| error.mean > 0.0).collect();
    largest.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    let one = |error: &&ForceError| {
        let ForceError { name, mean, step_error, window_error, .. } = error;
        let share = 100.0 * window_error / mean;
        format!("{name} {mean:.3e} ± {window_error:.1e} ({share:.1} %; single steps ± {step_error:.1e})")
    };
    let list: Vec<String> = largest.iter().take(4).map(one).collect();
    let checks = errors.first().map_or(0, |error| error.checks);
    (!list.is_empty()).then(|| {
        format!(
            "forces over windows, with what errors stay below in 95 % of steps, by {checks} checks: {}",
            list.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_by_many_and_by_few_values() {
        let of = |n: usize| {
            let errors = (1..=n).map(|k| k as f64).collect::<Vec<f64>>();
            bound(&errors, &vec![100.0; n]) / MARGIN
        };
        assert_eq!((of(99), of(19)), (95.0, 19.0));
        assert!((of(9) - 18.0).abs() < 1e-12 && (of(1) - 10.0).abs() < 1e-12);
        // Checks at which the force does not act say nothing about it.
        let (errors, forces) = ([[0.0; 10], [2.0; 10]].concat(), [[0.0; 10], [50.0; 10]].concat());
        assert!((bound(&errors, &forces) - MARGIN * 2.0 * 20.0 / 11.0).abs() < 1e-12);
        assert_eq!((bound(&[0.0; 5], &[0.0; 5]), bound(&[], &[])), (0.0, 0.0));
    }

    #[test]
    fn errors_of_a_file() {
        let mut text = "step,time,window,sweeps,residual,floor.force,floor.error,floor.window_force,floor.window_error\n"
            .to_string();
        for k in 1..=20 {
            text += &format!("{k},0.1,20,300,1e-6,10,{k},20,{}\n", 0.1 * f64::from(k));
        }
        text += "21,0.1,20,3"; // torn by a kill
        let errors = ForceError::of_table(&TextTable::parse(&text).expect("a table"));
        assert_eq!(errors.len(), 1);
        let ForceError { name, checks, mean, step_error, window_error } = &errors[0];
        assert_eq!((name.as_str(), *checks, *mean, *step_error), ("floor", 20, 20.0, 30.0));
        assert!((window_error - 3.0).abs() < 1e-12);
        assert!(sentence(&errors).is_some_and(|text| text.contains("15.0 %")));
        assert_eq!((ForceError::of_table(&TextTable::default()), sentence(&[])), (Vec::new(), None));
    }
}
