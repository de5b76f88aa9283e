//! The time series of a run: which columns they have, and what stands in a row.
//!
//! A column is one [`Entry`]: name, unit, meaning and value. `scene.rs` has those of `series.csv`,
//! `machines.rs` those of `machines.csv`; `docs/series.md` is made from the same lists.

mod forces;
mod machines;
mod manual;
mod scene;

pub(super) use forces::ForceTable;
pub use manual::series_markdown;

use crate::geometry::Vec3;
use crate::input::Case;
use crate::machine::Machine;
use crate::output::Column;
use crate::scene::Scene;
use crate::step::{Loads, Machines, Observation, StepReport};

/// What a run consists of, as far as columns depend on it.
#[derive(Clone, Copy)]
pub(super) struct Layout<'a> {
    pub case: &'a Case,
    pub scene: &'a Scene,
    pub machines: &'a Machines,
}

/// What a row is made from: the end of a step.
#[derive(Clone, Copy)]
pub(super) struct Moment<'a> {
    pub report: &'a StepReport,
    pub observed: &'a Observation,
    pub machines: &'a Machines,
}

/// What an entry stands for: the member of its group, and the machine whose columns these are.
#[derive(Clone, Copy)]
struct At {
    machine: usize,
    member: usize,
}

impl<'a> Layout<'a> {
    fn machine(&self, at: At) -> &'a Machine {
        &self.machines.all()[at.machine]
    }
}

impl<'a> Moment<'a> {
    fn machine(&self, at: At) -> &'a Machine {
        &self.machines.all()[at.machine]
    }

    fn loads(&self, at: At) -> &'a Loads {
        &self.machines.loads()[at.machine]
    }
}

enum Value {
    Integer(fn(&Moment, At) -> u64),
    Real(fn(&Moment, At) -> f64),
    Vector(fn(&Moment, At) -> Vec3),
}

/// A column, or one for each member of its group.
struct Entry {
    /// `NAME` stands for the name of the member.
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    value: Value,
    /// Whether a member has the column.
    applies: fn(&Layout, At) -> bool,
}

const fn entry(name: &'static str, unit: &'static str, about: &'static str, value: Value) -> Entry {
    Entry { name, unit, about, value, applies: |_, _| true }
}

/// Entries that come together, once for each member.
struct Group {
    /// Names of the members, with the numbers by which the values of entries know them.
    members: fn(&Layout, At) -> Vec<(String, usize)>,
    entries: &'static [Entry],
}

/// A group that comes once.
const fn single(entries: &'static [Entry]) -> Group {
    Group { members: |_, _| vec![(String::new(), 0)], entries }
}

/// Members that are counted from 0.
fn numbered<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Vec<(String, usize)> {
    names.into_iter().enumerate().map(|(number, name)| (name.into(), number)).collect()
}

/// The columns of a series of this run, and how a row is made.
pub(super) struct SeriesTable {
    columns: Vec<Column>,
    values: Vec<(&'static Value, At)>,
}

impl SeriesTable {
    /// Of `series.csv`.
    pub fn scene(layout: &Layout) -> Self {
        let mut table = Self { columns: Vec::new(), values: Vec::new() };
        table.add(&scene::GROUPS, "", 0, layout);
        table
    }

    /// Of `machines.csv`; none without machines.
    pub fn machines(layout: &Layout) -> Option<Self> {
        let mut table = Self { columns: Vec::new(), values: Vec::new() };
        table.add(&machines::COMMON, "", 0, layout);
        for (number, machine) in layout.machines.all().iter().enumerate() {
            table.add(&machines::EACH, &format!("{}/", machine.multibody.model().name()), number, layout);
        }
        (!layout.machines.is_empty()).then_some(table)
    }

    fn add(&mut self, groups: &'static [Group], prefix: &str, machine: usize, layout: &Layout) {
        for group in groups {
            for (name, member) in (group.members)(layout, At { machine, member: 0 }) {
                let at = At { machine, member };
                for entry in group.entries.iter().filter(|entry| (entry.applies)(layout, at)) {
                    let name = format!("{prefix}{}", entry.name.replace("NAME", &name));
                    self.columns.push(match entry.value {
                        Value::Integer(_) => Column::integer(name),
                        Value::Real(_) => Column::real(name),
                        Value::Vector(_) => Column::vector(name),
                    });
                    self.values.push((&entry.value, at));
                }
            }
        }
    }

    pub fn columns(&self) -> Vec<Column> {
        self.columns.clone()
    }

    /// On the rank that owns the machines: of the others it is not the state of the machines.
    pub fn row(&self, moment: &Moment) -> Vec<f64> {
        let mut row = Vec::with_capacity(self.values.len());
        for (value, at) in &self.values {
            match value {
                Value::Integer(value) => row.push(value(moment, *at) as f64),
                Value::Real(value) => row.push(value(moment, *at)),
                Value::Vector(value) => row.extend(value(moment, *at).iter()),
            }
        }
        row
    }
}
