//! The time series of the machines: every coordinate, force, quantity, phase, and what joints, cuts and contacts carry.
//!
//! Columns are named `<machine>/<coordinate>` (position), `<machine>/<coordinate>.velocity`, `<machine>/force.<name>`,
//! `<machine>/power.<name>`, `<machine>/quantity.<name>`, `<machine>/joint.<name>.force` and `.moment`, `<machine>/cut.<name>.<row>`,
//! `<machine>/contact.<body>.force` and `.moment`. Forces are means over the step before the row.

use crate::machine::Machine;
use crate::multibody::BodyIndex;
use crate::output::Column;
use crate::step::{Loads, Machines, StepReport};

pub(super) fn columns(machines: &Machines) -> Vec<Column> {
    let mut columns = vec![Column::integer("step"), Column::real("time")];
    machines.all().iter().for_each(|machine| add_columns(machine, &mut columns));
    columns
}

fn add_columns(machine: &Machine, columns: &mut Vec<Column>) {
    let model = machine.multibody.model();
    let name = |what: &str| format!("{}/{what}", model.name());
    for column in 0..model.nv() {
        let coordinate = model.coordinate_name(column);
        if model.position_index(column).is_some() {
            columns.push(Column::real(name(coordinate)));
        }
        columns.push(Column::real(name(&format!("{coordinate}.velocity"))));
    }
    columns.extend(model.force_names().map(|force| Column::real(name(&format!("force.{force}")))));
    columns.extend(model.force_names().map(|force| Column::real(name(&format!("power.{force}")))));
    let quantities = machine.controller.quantities();
    columns.extend(quantities.map(|(quantity, _)| Column::real(name(&format!("quantity.{quantity}")))));
    columns.push(Column::integer(name("phase")));
    columns
        .extend(["kinetic_energy", "potential_energy", "closure_error"].map(|what| Column::real(name(what))));
    for cut in model.cut_names() {
        let rows = model.cut_rows(cut).map_or(0, |rows| rows.len());
        columns.extend((0..rows).map(|row| Column::real(name(&format!("cut.{cut}.{row}")))));
    }
    let both = |of: &str| ["force", "moment"].map(|what| Column::vector(name(&format!("{of}.{what}"))));
    for body in 0..model.body_count() {
        columns.extend(both(&format!("joint.{}", model.joint_name(BodyIndex(body)))));
    }
    for shape in machine.contact_shapes() {
        columns.extend(both(&format!("contact.{}", model.body_name(shape.body))));
    }
}

/// On the rank that owns the machines.
pub(super) fn row(report: &StepReport, machines: &Machines) -> Vec<f64> {
    let mut row = vec![report.step as f64, report.time];
    for (machine, loads) in machines.all().iter().zip(machines.loads()) {
        add_values(machine, loads, &mut row);
    }
    row
}

fn add_values(machine: &Machine, loads: &Loads, row: &mut Vec<f64>) {
    let (multibody, model) = (&machine.multibody, machine.multibody.model());
    let coordinates = multibody.coordinates();
    for column in 0..model.nv() {
        row.extend(model.position_index(column).map(|position| coordinates.q[position]));
        row.push(coordinates.v[column]);
    }
    row.extend(multibody.force_values());
    row.extend(&loads.powers);
    row.extend(machine.controller.quantities().map(|(_, value)| value));
    row.push(machine.controller.state().phase as f64);
    row.extend(loads.energies);
    let closure = multibody.closure();
    row.push(closure.error.max(closure.redundant_error));
    row.extend(&loads.cuts);
    for [force, moment] in loads.joints.iter().chain(&loads.contacts) {
        row.extend(force.iter().chain(moment.iter()));
    }
}
