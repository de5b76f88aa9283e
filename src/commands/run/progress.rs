//! What a person sees during a run: one line with a bar on a terminal, never longer than the terminal is
//! wide; a table of lines in a file.

use super::statistics::Statistics;
use crate::step::StepReport;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Between two drawings of the bar.
const BAR: Duration = Duration::from_millis(200);
/// At least this between two lines …
const LINE: Duration = Duration::from_secs(2);
/// … and this at most, however slow the run is.
const LONGEST: Duration = Duration::from_secs(60);
/// Share of the run after which a line may come sooner than that.
const SHARE: f64 = 0.05;
/// `wide_msg` is cut where the line of the terminal ends.
const TEMPLATE: &str = "[{bar:20}] {percent:>3} %  {wide_msg}";

/// Text for people, on standard output, from rank 0 only.
pub struct Log {
    writes: bool,
    terminal: bool,
    /// That stands on the last line; clears it when dropped.
    bar: Option<ProgressBar>,
}

impl Log {
    /// mpirun gives ranks a terminal even if its own output goes to a file: with several ranks there are
    /// lines only.
    pub fn new(rank: usize, ranks: usize) -> Self {
        Self { writes: rank == 0, terminal: ranks == 1 && std::io::stdout().is_terminal(), bar: None }
    }

    /// A reader that has gone (`| head`) is no reason to end a run: errors are let pass.
    fn write(&self, text: &str) {
        if self.writes {
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    }

    /// A line of its own.
    pub fn say(&mut self, text: &str) {
        drop(self.bar.take());
        self.write(&format!("{text}\n"));
    }

    fn draw(&mut self, done: u64, all: u64, message: String) {
        let bar = self.bar.get_or_insert_with(|| bar(all, ProgressDrawTarget::stdout()));
        show(bar, done, message);
    }
}

fn bar(all: u64, target: ProgressDrawTarget) -> ProgressBar {
    // The template is a constant; should it be wrong, indicatif's own style is shown.
    let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(all), target)
        .with_style(style.progress_chars("#."))
        .with_finish(ProgressFinish::AndClear)
}

fn show(bar: &ProgressBar, done: u64, message: String) {
    bar.update(|state| state.set_pos(done));
    bar.set_message(message);
    bar.tick();
}

/// Decides when something is shown, and shows it.
pub(super) struct Progress {
    first_step: u64,
    last_step: u64,
    begun: Instant,
    shown: Instant,
    shown_step: u64,
    headed: bool,
}

impl Progress {
    pub fn new(first_step: u64, last_step: u64) -> Self {
        let now = Instant::now();
        Self { first_step, last_step, begun: now, shown: now, shown_step: first_step, headed: false }
    }

    /// Whether something should be shown for the step that has just been made. Depends on the clock: one rank
    /// decides for all.
    pub fn is_due(&self, log: &Log, step: u64) -> bool {
        let waited = self.shown.elapsed();
        if log.terminal {
            return waited >= BAR || step == self.last_step;
        }
        let share = (step - self.shown_step) as f64 / (self.last_step - self.first_step).max(1) as f64;
        step == self.last_step || waited >= LONGEST || (waited >= LINE && share >= SHARE)
    }

    pub fn show(&mut self, log: &mut Log, report: &StepReport, kinetic_energy: f64, statistics: &Statistics) {
        self.shown = Instant::now();
        self.shown_step = report.step;
        let left = self.remaining(report.step);
        if log.terminal {
            let (done, all) = (report.step - self.first_step, (self.last_step - self.first_step).max(1));
            log.draw(done, all, message(report, kinetic_energy, &left, statistics.not_converged));
            if report.step < self.last_step {
                return;
            }
        }
        if !std::mem::replace(&mut self.headed, true) {
            log.say(&heading());
        }
        log.say(&line(report, kinetic_energy, &left));
    }

    fn remaining(&self, step: u64) -> String {
        let done = (step - self.first_step).max(1) as f64;
        let seconds = self.begun.elapsed().as_secs_f64() / done * (self.last_step - step) as f64;
        clock(seconds)
    }
}

/// The most important first: a narrow terminal shows only the beginning.
fn message(report: &StepReport, kinetic_energy: f64, left: &str, not_converged: u64) -> String {
    let warning = if not_converged > 0 { format!("  {not_converged} not converged") } else { String::new() };
    format!(
        "{left} left  t {:.4} s{warning}  {} contacts  {} sweeps  residual {:.1e}  depth {:.1e} m  \
         energy {kinetic_energy:.2e} J",
        report.time,
        report.contact_points,
        report.sweeps,
        report.residual.natural_map,
        report.worst_penetration,
    )
}

/// Fits a terminal of 80 columns.
fn heading() -> String {
    format!(
        "{:>10}{:>12}{:>10}{:>7}{:>9} {:>10}{:>11}{:>9}",
        "step", "time [s]", "contacts", "sweeps", "residual", "depth [m]", "energy [J]", "left"
    )
}

fn line(report: &StepReport, kinetic_energy: f64, left: &str) -> String {
    let mark = if report.converged { ' ' } else { '!' };
    format!(
        "{:>10}{:>12.6}{:>10}{:>7}{:>9.1e}{mark}{:>10.1e}{:>11.2e}{:>9}",
        report.step,
        report.time,
        report.contact_points,
        report.sweeps,
        report.residual.natural_map,
        report.worst_penetration,
        kinetic_energy,
        left
    )
}

/// Seconds as a person reads them: 42 s, 3:05, 2:03:05, 3 d 04 h.
pub(super) fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    let (days, hours, minutes, rest) = (whole / 86400, whole / 3600 % 24, whole / 60 % 60, whole % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest} s"),
        (0, 0, _) => format!("{minutes}:{rest:02}"),
        (0, _, _) => format!("{hours}:{minutes:02}:{rest:02}"),
        _ => format!("{days} d {hours:02} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_and_plain() {
        let said: Vec<String> = [0.2, 41.7, 185.0, 7385.0, 273600.0].map(clock).to_vec();
        assert_eq!(said, ["0 s", "42 s", "3:05", "2:03:05", "3 d 04 h"]);
    }

    #[test]
    fn columns_stand_under_their_headings() {
        let report =
            StepReport { step: 1000, time: 0.5, contact_points: 9211, sweeps: 40, ..Default::default() };
        assert_eq!(line(&report, 1.0, "3:05").chars().count(), heading().chars().count());
        assert!(heading().chars().count() < 80);
    }

    #[test]
    fn the_bar_stays_on_one_line_of_any_terminal() {
        for width in [40, 80, 110, 200] {
            let screen = indicatif::InMemoryTerm::new(10, width);
            let bar = bar(2000, ProgressDrawTarget::term_like(Box::new(screen.clone())));
            for step in (900..=1000).step_by(20) {
                let report =
                    StepReport { step, time: 0.5, contact_points: 9211, sweeps: 40, ..Default::default() };
                show(&bar, step, message(&report, 1.0, "3:05", 2));
                std::thread::sleep(Duration::from_millis(60));
            }
            let shown = screen.contents();
            assert!(shown.starts_with("[##########..........]  50 %  3:05 left"), "{width}: {shown:?}");
            assert!(
                shown.lines().count() == 1 && shown.chars().count() <= width.into(),
                "{width}: {shown:?}"
            );
            assert_eq!(shown.contains("9211 contacts  40 sweeps"), width >= 100, "{width}: {shown:?}");
            drop(bar);
            assert_eq!(screen.contents(), "", "{width}: the line is cleared at the end");
        }
    }

    #[test]
    fn among_ranks_there_are_lines_only() {
        let log = Log::new(1, 2);
        assert!(!log.writes && !log.terminal);
        let progress = Progress::new(0, 10);
        assert!(!progress.is_due(&log, 9) && progress.is_due(&log, 10));
    }
}
