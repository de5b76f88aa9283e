//! Runs and cases in words and tables, for people.

use super::files::NAMES;
use super::phases::PhaseTable;
use super::progress::{Log, clock};
use super::statistics::Statistics;
use super::summary::{Status, Summary};
use crate::commands::inspect::info::size;
use crate::geometry::Passing;
use crate::input::Case;
use crate::setup::memory::Need;
use crate::setup::{AchievedGrading, Group, Inventory};
use std::fmt::Write as _;
use std::path::Path;

/// What `breccia check` says about a case whose scene could be built.
pub fn describe(case: &Case, inventory: &Inventory, need: &Need) -> String {
    // Writing to a String cannot fail.
    let mut text = format!("{}: {}\n", case.file.display(), case.title);
    let simulation = &case.simulation;
    let _ = writeln!(
        text,
        "\n{} steps of {} s from t = {} s to {} s, {}",
        case.step_count(),
        simulation.time_step,
        simulation.start_time,
        simulation.start_time + case.step_count() as f64 * simulation.time_step,
        simulation.scheme
    );
    let solver = &case.solver;
    let _ = writeln!(
        text,
        "solver: tolerance {:e}, at most {} sweeps, local law {}{}",
        solver.tolerance,
        solver.maximum_sweeps,
        solver.local_law.name(),
        if solver.warm_start { ", warm start" } else { "" }
    );
    let _ = writeln!(text, "\n{}", groups(&inventory.groups));
    let _ = writeln!(text, "{}", contacts(case));
    for grading in &inventory.gradings {
        let _ = writeln!(text, "{}", curve(grading));
    }
    let _ = write!(
        text,
        "memory on one rank: about {} while loose, {} packed densely ({} bodies, shapes and drawing, {} contacts)",
        size(need.of_a_loose_rank(1)),
        size(need.of_a_rank(1)),
        size(need.body_bytes),
        size(need.contact_bytes)
    );
    text
}

/// The bodies, group by group.
pub(super) fn groups(groups: &[Group]) -> String {
    let wide = groups.iter().map(|group| group.name.chars().count()).max().unwrap_or(0).max(6);
    let mut text = format!(
        "{:<wide$}  {:<10}{:>12}{:>18}{:>26}\n",
        "bodies", "kind", "number", "mass [kg]", "bounding radius [m]"
    );
    for group in groups {
        let kind = format!("{:?}", group.kind).to_lowercase();
        let mass = group.mass.map_or("-".into(), |mass| format!("{mass:.6}"));
        let radius = match group.bounding_radius {
            Some([least, most]) if least == most => format!("{least:.6}"),
            Some([least, most]) => format!("{least:.6} to {most:.6}"),
            None => "infinite".into(),
        };
        let _ = writeln!(text, "{:<wide$}  {kind:<10}{:>12}{mass:>18}{radius:>26}", group.name, group.bodies);
    }
    text
}

fn contacts(case: &Case) -> String {
    let mut text = format!("{:<40}{:>10}{:>13}  law\n", "contact", "friction", "restitution");
    for contact in &case.contacts {
        let [first, second] = contact.materials.map(|index| &case.materials[index].name);
        let pair = format!("{first} - {second}");
        let _ = writeln!(
            text,
            "{pair:<40}{:>10}{:>13}  {}",
            contact.law.friction,
            contact.law.restitution,
            contact.law.activation.name()
        );
    }
    text
}

/// An achieved grading curve beside the wanted one.
pub(super) fn curve(grading: &AchievedGrading) -> String {
    let mut text = format!(
        "grading of {:?}\n{:>14}{:>16}{:>16}\n",
        grading.grains, "sieve [mm]", "passing [%]", "wanted [%]"
    );
    for (passing, wanted) in grading.passing.iter().zip(&grading.wanted) {
        let sieve = 1e3 * passing.sieve;
        let _ = writeln!(text, "{sieve:>14.1}{:>16.1}{:>16.1}", passing.percent, wanted.percent);
    }
    text
}

/// The beginning of the log: what will be done, to how many bodies.
pub(super) fn opening(log: &mut Log, case: &Case, inventory: &Inventory, steps: u64) {
    let (all, free) = (inventory.bodies(), inventory.free_bodies());
    log.say(&format!("{all} bodies, {free} of them free; {steps} steps of {} s", case.simulation.time_step));
    if let Some(warning) = inventory.unequal() {
        log.say(&format!("warning: {warning}"));
    }
    for grading in &inventory.gradings {
        let point = |point: &Passing| format!("{:.1} mm {:.1} %", 1e3 * point.sieve, point.percent);
        let passing: Vec<String> = grading.passing.iter().map(point).collect();
        log.say(&format!("grading of {:?}, passing by mass: {}", grading.grains, passing.join(", ")));
    }
}

/// The end of the log: where the time went, what did not converge, where the files are.
pub(super) fn account(
    log: &mut Log,
    summary: &Summary,
    table: &PhaseTable,
    statistics: &Statistics,
    directory: &Path,
) {
    log.say("");
    log.say(&table.text());
    let each = summary.nanoseconds_per_contact_point_and_sweep;
    let each = each.map_or(String::new(), |each| format!("; {each:.1} ns per contact point and sweep"));
    log.say(&format!(
        "\n{} steps in {}, after {} of set-up{each}",
        table.steps,
        clock(summary.seconds_total),
        clock(summary.seconds_setup)
    ));
    log.say(&format!(
        "contact points: {:.0} on average, {} at most; sweeps: {:.1} on average, {} at most",
        summary.contact_points.mean, summary.contact_points.max, summary.sweeps.mean, summary.sweeps.max
    ));
    if summary.identity.ranks > 1 {
        log.say(&format!("grains that changed ranks: {}", summary.migrated));
    }
    let memory = summary.peak_memory.iter().max().copied().unwrap_or(0);
    log.say(&format!("memory: {} at most on a rank", size(memory)));
    if let Some(handed_over) = statistics.handed_over() {
        log.say(&handed_over);
    }
    if let Some(forces) = super::force_check::sentence(&summary.force_errors) {
        log.say(&forces);
    }
    for warning in statistics.warnings() {
        log.say(&format!("warning: {warning}"));
    }
    if let Some(digest) = &summary.digest {
        log.say(&format!("digest: {digest}"));
    }
    let there: Vec<&str> = NAMES.into_iter().filter(|name| directory.join(name).exists()).collect();
    log.say(&format!("files in {}: {}", directory.display(), there.join(", ")));
    if summary.identity.status == Status::Stopped {
        log.say("stopped before its end; all files are whole");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        assert_eq!(
            [0, 999, 1000, 2_460_000, u64::MAX].map(size),
            ["0 B", "999 B", "1.0 kB", "2.5 MB", "18446.7 PB"]
        );
    }
}
