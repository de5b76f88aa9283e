//! The forces and moments among the columns of a run, and the columns of `force_errors.csv`.

use super::{At, Layout, Moment, Value, machines, scene};
use crate::geometry::Vec3;
use crate::output::Column;

/// What is said about each force: ending, and meaning.
pub(super) const EACH: [(&str, &str); 4] = [
    (".force", "in the first step of the window, solved to high accuracy"),
    (".error", "by which the run differs from it"),
    (".window_force", "mean over the window, solved to high accuracy"),
    (".window_error", "by which the mean of the run differs from it"),
];

/// What is said about a check.
pub(super) const COMMON: [(&str, &str); 7] = [
    ("step", "steps made"),
    ("time", "at the start of the window, s"),
    ("window", "steps in it"),
    ("sweeps", "of the accurate solves, mean"),
    ("residual", "of the accurate solves, largest"),
    ("tolerance", "of the solves of the run"),
    (
        "worst_error",
        "of all forces in the first step, by their sizes; forces below a tenth of the largest of their unit (mean over the checks so far) count as that",
    ),
];

/// All columns that are forces or moments.
pub(in super::super) struct ForceTable {
    names: Vec<String>,
    values: Vec<(&'static Value, At)>,
    is_moment: Vec<bool>,
}

impl ForceTable {
    pub fn new(layout: &Layout) -> Self {
        let mut table = Self { names: Vec::new(), values: Vec::new(), is_moment: Vec::new() };
        table.add(&scene::GROUPS, "", 0, layout);
        for (number, machine) in layout.machines.all().iter().enumerate() {
            table.add(&machines::EACH, &format!("{}/", machine.multibody.model().name()), number, layout);
        }
        table
    }

    fn add(&mut self, groups: &'static [super::Group], prefix: &str, machine: usize, layout: &Layout) {
        for group in groups {
            for (member_name, member) in (group.members)(layout, At { machine, member: 0 }) {
                let at = At { machine, member };
                let forces = group.entries.iter().filter(|entry| entry.unit.starts_with('N'));
                for entry in forces.filter(|entry| (entry.applies)(layout, at)) {
                    self.names.push(format!("{prefix}{}", entry.name.replace("NAME", &member_name)));
                    self.values.push((&entry.value, at));
                    self.is_moment.push(entry.unit != "N");
                }
            }
        }
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Which of them are moments, or may be.
    pub fn moments(&self) -> &[bool] {
        &self.is_moment
    }

    /// Of `force_errors.csv`.
    pub fn columns(&self) -> Vec<Column> {
        let common = COMMON.iter().map(|(name, _)| match *name {
            "step" | "window" => Column::integer(*name),
            _ => Column::real(*name),
        });
        let each = |name: &String| EACH.map(|(ending, _)| Column::real(format!("{name}{ending}")));
        common.chain(self.names.iter().flat_map(each)).collect()
    }

    /// N or N m, those that are no vectors along x. Those of machines hold on the rank that owns them.
    pub fn read(&self, moment: &Moment) -> Vec<Vec3> {
        let read = |(value, at): &(&Value, At)| match value {
            Value::Integer(value) => Vec3::x() * value(moment, *at) as f64,
            Value::Real(value) => Vec3::x() * value(moment, *at),
            Value::Vector(value) => value(moment, *at),
        };
        self.values.iter().map(read).collect()
    }
}
