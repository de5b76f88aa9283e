//! The plots of `machines.csv`: for each machine its coordinates, velocities, forces, contact loads,
//! quantities; and, folded away, joint and cut loads, energies and the error of its loops.
//!
//! Columns are named `<machine>/<what>` or `<machine>.<what>`; `<what>` says by its beginning or end what it
//! is.

use super::chart::{Chart, Line, Place};
use crate::commands::inspect::text_table::TextTable;

/// Lines that can be distinguished in one plot.
const MOST_LINES: usize = 6;

pub fn of_machines(table: &TextTable, time: &[f64]) -> Vec<Chart> {
    let mut machines: Vec<(&str, char)> = Vec::new();
    for name in &table.names {
        let at = name.find('/').or(name.find('.'));
        let Some(machine) = at.map(|at| (&name[..at], name[at..].chars().next().unwrap_or('/'))) else {
            continue;
        };
        if !machines.contains(&machine) {
            machines.push(machine);
        }
    }
    machines
        .iter()
        .flat_map(|(machine, mark)| of_machine(machine, &format!("{machine}{mark}"), table, time))
        .collect()
}

/// Place of the plot of work among the kinds.
const WORK: usize = 11;
const PHASE: usize = 5;

/// The integral of a mean over the time before each row.
fn summed(time: &[f64], y: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let before = std::iter::once(0.0).chain(time.iter().copied());
    let add = |((now, before), y): ((&f64, f64), &f64)| {
        sum += (now - before) * y;
        sum
    };
    time.iter().zip(before).zip(y).map(add).collect()
}

/// A kind of plot: title, unit, where it stands, whether it is logarithmic, and its lines.
type Kind = (&'static str, &'static str, Place, bool, Vec<Line>);

fn of_machine(machine: &str, prefix: &str, table: &TextTable, time: &[f64]) -> Vec<Chart> {
    let own: Vec<(&str, &[f64])> = table
        .names
        .iter()
        .zip(&table.columns)
        .filter_map(|(name, y)| name.strip_prefix(prefix).map(|name| (name, y.as_slice())))
        .collect();
    let mut kinds: [Kind; 12] = [
        ("coordinates", "m or rad", Place::Machines, false, Vec::new()),
        ("velocities", "m/s or rad/s", Place::Machines, false, Vec::new()),
        ("forces", "N or N m", Place::Machines, false, Vec::new()),
        ("contact force", "N", Place::Machines, false, Vec::new()),
        ("quantities", "", Place::Machines, false, Vec::new()),
        ("phase", "", Place::Machines, false, Vec::new()),
        ("contact moment", "N m", Place::More, false, Vec::new()),
        ("loads of joints", "N or N m", Place::More, false, Vec::new()),
        ("loads of cuts", "N or N m", Place::More, false, Vec::new()),
        ("energy", "J", Place::More, false, Vec::new()),
        ("error of loops", "", Place::More, true, Vec::new()),
        ("work of forces", "J", Place::Machines, false, Vec::new()),
    ];
    let has = |name: String| own.iter().any(|(other, _)| *other == name);
    for (name, y) in &own {
        let (vector, axis) = name.rsplit_once('/').map_or((*name, ""), |(vector, axis)| (vector, axis));
        if ["y", "z"].contains(&axis) {
            continue;
        }
        let y = if axis == "x" {
            magnitude(table, &format!("{prefix}{vector}")).unwrap_or(y.to_vec())
        } else {
            y.to_vec()
        };
        let (kind, shown) = sort(vector, has(format!("{vector}.velocity")));
        // A machine without phases is in its phase 0 throughout.
        if kind == PHASE && y.iter().all(|number| *number == 0.0) {
            continue;
        }
        let y = if kind == WORK { summed(time, &y) } else { y };
        kinds[kind].4.push(Line { name: shown.to_string(), y });
    }
    let mut charts = Vec::new();
    for (what, unit, place, log, lines) in kinds {
        for (k, some) in lines.chunks(MOST_LINES).enumerate() {
            let number = if k == 0 { String::new() } else { format!(" ({})", k + 1) };
            let mut chart = Chart::new(&format!("{machine}: {what}{number}"), unit, time, some.to_vec());
            (chart.place, chart.log) = (place, log);
            if what.starts_with("work") {
                chart.note = "What each force has put in so far, or taken up: the sum of its powers.".into();
            }
            if what.starts_with("contact") || what.starts_with("loads") {
                chart.note = "Magnitudes; means over a step.".into();
            }
            charts.push(chart);
        }
    }
    charts
}

/// Which kind of plot a column belongs to, and its short name there.
fn sort(name: &str, has_velocity: bool) -> (usize, &str) {
    let inside = |prefix: &str, suffix: &str| name.strip_prefix(prefix)?.strip_suffix(suffix);
    if let Some(name) = name.strip_suffix(".velocity") {
        (1, name)
    } else if has_velocity {
        (0, name)
    } else if let Some(name) = inside("contact.", ".force") {
        (3, name)
    } else if let Some(name) = inside("contact.", ".moment") {
        (6, name)
    } else if let Some(name) = name.strip_prefix("joint.") {
        (7, name)
    } else if let Some(name) = name.strip_prefix("cut.") {
        (8, name)
    } else if let Some(name) = name.strip_prefix("power.") {
        (WORK, name)
    } else if let Some(name) = name.strip_prefix("quantity.") {
        (4, name)
    } else if name == "phase" {
        (PHASE, name)
    } else if name.ends_with("_energy") {
        (9, name.trim_end_matches("_energy"))
    } else if name == "closure_error" {
        (10, "closure error")
    } else {
        (2, name.strip_prefix("force.").unwrap_or(name))
    }
}

fn magnitude(table: &TextTable, vector: &str) -> Option<Vec<f64>> {
    let part = |axis: &str| table.column(&format!("{vector}/{axis}"));
    let (x, y, z) = (part("x")?, part("y")?, part("z")?);
    Some(x.iter().zip(y).zip(z).map(|((x, y), z)| (x * x + y * y + z * z).sqrt()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_of_a_machine_finds_its_plot() {
        let text = "step,time,arm/lift,arm/lift.velocity,arm/force.cylinder,arm/power.cylinder,arm/quantity.work,arm/phase,arm/kinetic_energy,arm/closure_error,\
                    arm/cut.pin.0,arm/joint.pin.force/x,arm/joint.pin.force/y,arm/joint.pin.force/z,arm/contact.shovel.force/x,\
                    arm/contact.shovel.force/y,arm/contact.shovel.force/z\n1,0.1,1,2,3,30,4,5,6,7,8,0,3,4,2,3,6\n";
        let table = TextTable::parse(text).unwrap();
        let found: Vec<(String, String, f64)> = of_machines(&table, table.column("time").unwrap())
            .into_iter()
            .map(|chart| (chart.title, chart.lines[0].name.clone(), chart.lines[0].y[0]))
            .collect();
        let expected = [
            ("arm: coordinates", "lift", 1.0),
            ("arm: velocities", "lift", 2.0),
            ("arm: forces", "cylinder", 3.0),
            ("arm: contact force", "shovel", 7.0),
            ("arm: quantities", "work", 4.0),
            ("arm: phase", "phase", 5.0),
            ("arm: loads of joints", "pin.force", 5.0),
            ("arm: loads of cuts", "pin.0", 8.0),
            ("arm: energy", "kinetic", 6.0),
            ("arm: error of loops", "closure error", 7.0),
            ("arm: work of forces", "cylinder", 3.0),
        ];
        let expected = expected.map(|(title, line, y)| (title.to_string(), line.to_string(), y));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_machine_without_phases_has_no_plot_of_them() {
        let titles = |phases: [u8; 2]| -> Vec<String> {
            let [first, second] = phases;
            let text =
                format!("time,arm/lift,arm/lift.velocity,arm/phase\n0.1,1,2,{first}\n0.2,1,2,{second}\n");
            let table = TextTable::parse(&text).unwrap();
            of_machines(&table, &[0.1, 0.2]).into_iter().map(|chart| chart.title).collect()
        };
        assert!(!titles([0, 0]).contains(&"arm: phase".to_string()));
        assert!(titles([0, 1]).contains(&"arm: phase".to_string()));
    }

    #[test]
    fn dots_may_stand_for_slashes_and_many_lines_make_several_plots() {
        let names: Vec<String> =
            (0..8).flat_map(|k| [format!("leg.q{k}"), format!("leg.q{k}.velocity")]).collect();
        let row: Vec<String> = (0..17).map(|k| k.to_string()).collect();
        let table = TextTable::parse(&format!("time,{}\n{}\n", names.join(","), row.join(","))).unwrap();
        let charts = of_machines(&table, &[0.0]);
        let titles: Vec<(&str, usize)> =
            charts.iter().map(|chart| (chart.title.as_str(), chart.lines.len())).collect();
        assert_eq!(
            titles,
            [
                ("leg: coordinates", 6),
                ("leg: coordinates (2)", 2),
                ("leg: velocities", 6),
                ("leg: velocities (2)", 2)
            ]
        );
    }
}
