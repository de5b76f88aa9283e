//! The time series of the machines: every coordinate, force, quantity, phase, and what joints, cuts and contacts carry.
//!
//! Columns are named `<machine>/<coordinate>` (position), `<machine>/<coordinate>.velocity`, `<machine>/force.<name>`,
//! `<machine>/power.<name>`, `<machine>/quantity.<name>`, `<machine>/joint.<name>.force` and `.moment`, `<machine>/cut.<name>.<row>`,
//! `<machine>/contact.<body>.force` and `.moment`. Forces are means over the step before the row.

use crate::machine::BodyIndex;
use crate::mechanism::Mechanism;
use crate::output::Column;
use crate::step::{Loads, Machines, StepReport};

pub(super) fn columns(machines: &Machines) -> Vec<Column> {
    let mut columns = vec![Column::integer("step"), Column::real("time")];
    machines.mechanisms().iter().for_each(|mechanism| add_columns(mechanism, &mut columns));
    columns
}

fn add_columns(mechanism: &Mechanism, columns: &mut Vec<Column>) {
    let model = mechanism.machine.model();
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
    let quantities = mechanism.controller.quantities();
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
    for shape in mechanism.contact_shapes() {
        columns.extend(both(&format!("contact.{}", model.body_name(shape.body))));
    }
}

/// On the rank that owns the machines.
pub(super) fn row(report: &StepReport, machines: &Machines) -> Vec<f64> {
    let mut row = vec![report.step as f64, report.time];
    for (mechanism, loads) in machines.mechanisms().iter().zip(machines.loads()) {
        add_values(mechanism, loads, &mut row);
    }
    row
}

fn add_values(mechanism: &Mechanism, loads: &Loads, row: &mut Vec<f64>) {
    let (machine, model) = (&mechanism.machine, mechanism.machine.model());
    let coordinates = machine.coordinates();
    for column in 0..model.nv() {
        row.extend(model.position_index(column).map(|position| coordinates.q[position]));
        row.push(coordinates.v[column]);
    }
    row.extend(machine.force_values());
    row.extend(&loads.powers);
    row.extend(mechanism.controller.quantities().map(|(_, value)| value));
    row.push(mechanism.controller.state().phase as f64);
    row.extend(loads.energies);
    let closure = machine.closure();
    row.push(closure.error.max(closure.redundant_error));
    row.extend(&loads.cuts);
    for [force, moment] in loads.joints.iter().chain(&loads.contacts) {
        row.extend(force.iter().chain(moment.iter()));
    }
}
