//! Cuts, forces, laws, quantities, phases and partition of a machine.

use crate::formula::Expression;
use crate::input::build::is_taken;
use crate::input::case::FORCE_LISTS;
use crate::input::language::document::{Data, Value};
use crate::input::language::errors::ErrorKind;
use crate::input::language::keys::Kind;
use crate::input::language::names::Names;
use crate::input::language::reader::{Field, TableReader};
use crate::input::language::values::is_identifier;
use crate::input::machine::case::{AutomaticPartition, DirectionFrame, MachineForce};
use crate::input::machine::joints::read_frame;
use crate::input::machine::names::{GROUND, MachineNames, unknown};
use crate::machine::{MachineLaw, MachinePhase, PHASE_QUANTITIES};
use crate::multibody::{CutKind, CutSpec, Direction, Partitioning};

pub(in crate::input) fn read_cuts(table: &TableReader, parts: &MachineNames) -> Option<Vec<CutSpec>> {
    let tables = table.tables("cut");
    let names = Names::collect(tables.iter());
    let cuts: Vec<_> = tables
        .iter()
        .zip(names.list)
        .map(|(table, name)| Some(CutSpec { name, kind: read_cut(table, parts)? }))
        .collect();
    cuts.into_iter().collect()
}

fn read_cut(table: &TableReader, parts: &MachineNames) -> Option<CutKind> {
    match table.variant?.name {
        "points" => {
            let [a, b] = read_between(table, parts)?;
            Some(CutKind::Points { a, b })
        }
        "rod" => {
            let (between, length) = (read_between(table, parts), table.number("length"));
            let [a, b] = between?;
            Some(CutKind::Rod { a, b, length: length? })
        }
        _ => {
            let field = table.field("bodies")?;
            let [body_a, body_b] = parts.pair(&field, |value| parts.body(&field, value, true))?;
            let frame_a = read_frame(table, "on_first", Some(&body_a), parts);
            let frame_b = read_frame(table, "on_second", Some(&body_b), parts);
            Some(CutKind::Frames { body_a, frame_a: frame_a?, body_b, frame_b: frame_b? })
        }
    }
}

fn read_between(table: &TableReader, parts: &MachineNames) -> Option<[String; 2]> {
    let field = table.field("between")?;
    parts.pair(&field, |value| parts.point(&field, value))
}

/// All force elements, springs first.
pub(in crate::input) fn read_forces(
    table: &TableReader,
    parts: &MachineNames,
) -> Option<Vec<(String, MachineForce)>> {
    let lists = FORCE_LISTS.map(|list| table.tables(list));
    let names = Names::collect(lists.iter().flatten());
    let read = |(list, table): (usize, &TableReader)| match list {
        0 => read_spring(table, parts),
        1 => read_actuator(table, parts),
        2 => read_force(table, parts),
        _ => read_torque(table, parts),
    };
    let tables =
        lists.iter().enumerate().flat_map(|(list, tables)| tables.iter().map(move |table| (list, table)));
    let forces: Vec<_> = tables.zip(names.list).map(|(table, name)| Some((name, read(table)?))).collect();
    forces.into_iter().collect()
}

fn read_spring(table: &TableReader, parts: &MachineNames) -> Option<MachineForce> {
    let [stiffness, damping, rest] = ["stiffness", "damping", "rest"].map(|key| table.number(key));
    if table.has("joint") {
        let field = table.field("joint")?;
        let coordinate = parts.coordinates[parts.coordinate(&field, &field.value)?].name.clone();
        return Some(MachineForce::JointSpring {
            coordinate,
            stiffness: stiffness?,
            damping: damping?,
            rest: rest?,
        });
    }
    let between = read_between(table, parts);
    if rest.is_some_and(|rest| rest < 0.0) {
        table
            .relation("rest", "found a length below 0, expected a number ≥ 0 between two points".to_string());
    }
    Some(MachineForce::LinkSpring {
        between: between?,
        stiffness: stiffness?,
        damping: damping?,
        rest_length: rest?,
    })
}

fn read_actuator(table: &TableReader, parts: &MachineNames) -> Option<MachineForce> {
    if table.has("joint") {
        let field = table.field("joint")?;
        let found = parts.coordinate(&field, &field.value);
        let own: &[&str] = match found.map(|index| parts.coordinates[index].has_position) {
            Some(false) => &["v"],
            _ => &["x", "v"],
        };
        let law = read_law(table, parts, own);
        return Some(MachineForce::Actuator {
            coordinate: parts.coordinates[found?].name.clone(),
            law: law?,
        });
    }
    let (between, law) = (read_between(table, parts), read_law(table, parts, &["x", "v"]));
    Some(MachineForce::Link { between: between?, law: law? })
}

fn read_force(table: &TableReader, parts: &MachineNames) -> Option<MachineForce> {
    let point = table.field("point").and_then(|field| {
        let point = parts.point(&field, &field.value)?;
        if point == GROUND || point.starts_with("ground.") {
            field.note(
                ErrorKind::Relation,
                format!("found {point:?}, expected a point of a body that can move"),
            );
            return None;
        }
        Some(point)
    });
    let (direction, law) = (read_direction(table), read_law(table, parts, &[]));
    Some(MachineForce::Force { point: point?, direction: direction?, law: law? })
}

fn read_torque(table: &TableReader, parts: &MachineNames) -> Option<MachineForce> {
    let body = table.field("body").and_then(|field| parts.body(&field, &field.value, false));
    let (direction, law) = (read_direction(table), read_law(table, parts, &[]));
    Some(MachineForce::Torque { body: body?, direction: direction?, law: law? })
}

fn read_direction(table: &TableReader) -> Option<Direction> {
    let direction = table.field("direction").and_then(|field| field.direction());
    Some(match table.choice("frame")? {
        DirectionFrame::World => Direction::World(direction?),
        DirectionFrame::Body => Direction::Body(direction?),
    })
}

/// A formula of the machine's variables and `more`; none, without a word, if the coordinates are not known.
fn formula(field: &Field, value: &Value, parts: &MachineNames, names: &[String]) -> Option<Expression> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if parts.complete { field.formula_of(value, &names) } else { None }
}

/// One formula, or one for each phase.
fn read_law(table: &TableReader, parts: &MachineNames, own: &[&str]) -> Option<MachineLaw> {
    let field = table.field("law")?;
    let mut names: Vec<String> = own.iter().map(|name| name.to_string()).collect();
    names.extend(parts.variables());
    let Data::Table(entries) = &field.value.data else {
        return Some(MachineLaw(vec![formula(&field, &field.value, parts, &names)?]));
    };
    if parts.phases.is_empty() {
        let message = "found a table in a machine without phases, expected a number or a formula, or a [[machine.phase]]";
        field.note(ErrorKind::Relation, message.to_string());
        return None;
    }
    let (mut laws, mut astray) = (vec![None; parts.phases.len()], false);
    for entry in entries {
        let Some(phase) = parts.phases.iter().position(|phase| *phase == entry.key) else {
            let value = Value { data: Data::Flag(true), origin: entry.key_origin.clone() };
            unknown(&field, &value, &entry.key, "a phase", parts.phases.iter().map(String::as_str));
            astray = true;
            continue;
        };
        laws[phase] = Some(formula(&field, &entry.value, parts, &names));
    }
    let missing: Vec<String> = laws
        .iter()
        .zip(&parts.phases)
        .filter(|(law, _)| law.is_none())
        .map(|(_, phase)| format!("{phase:?}"))
        .collect();
    // One that went astray may be the missing one.
    if !missing.is_empty() && !astray {
        field.note(
            ErrorKind::Relation,
            format!("found no law for {}, expected one for each phase", missing.join(", ")),
        );
    }
    let laws = laws.into_iter().map(Option::flatten).collect::<Option<Vec<_>>>()?;
    (!laws.is_empty()).then_some(MachineLaw(laws))
}

/// The named formulas under `key`, in their order; each knows those above it. Adds their names to `parts`.
pub(in crate::input) fn read_quantities(
    table: &TableReader,
    key: &str,
    parts: &mut MachineNames,
) -> Option<Vec<(String, Expression)>> {
    let Some(field) = table.field(key) else { return Some(Vec::new()) };
    let Data::Table(entries) = &field.value.data else {
        field.wrong();
        return None;
    };
    let mut quantities = Vec::new();
    for entry in entries {
        let (name, path) = (&entry.key, format!("{}.{}", field.path, entry.key));
        let scope = &table.reader.scope;
        let taken = || {
            let scope = scope.borrow();
            is_taken(name)
                || [GROUND, "v"].contains(&name.as_str())
                || PHASE_QUANTITIES.contains(&name.as_str())
                || scope.constants.contains_key(name)
                || scope.tables.contains_key(name)
                || parts.quantities.contains(name)
        };
        let message = if !is_identifier(name) {
            Some(format!("found the name {name:?}, expected {}", Kind::Identifier.describe()))
        } else if taken() {
            Some(format!("found the name {name:?}, which formulas already know, expected another"))
        } else {
            None
        };
        if let Some(message) = message {
            table.reader.note(&entry.key_origin, &path, ErrorKind::Value, message);
            quantities.push(None);
            continue;
        }
        let here = Field {
            reader: table.reader,
            value: std::borrow::Cow::Borrowed(&entry.value),
            path,
            kind: field.kind,
            unit: field.unit,
        };
        let read = formula(&here, &entry.value, parts, &parts.variables_with_points());
        parts.quantities.push(name.clone());
        quantities.push(read.map(|formula| (name.clone(), formula)));
    }
    quantities.into_iter().collect()
}

/// The names are in `parts`.
pub(in crate::input) fn read_phases(
    tables: &[TableReader],
    parts: &MachineNames,
) -> Option<Vec<MachinePhase>> {
    let names = &parts.phases;
    let variables = parts.variables_with_points();
    let last = tables.len().saturating_sub(1);
    let mut phases = Vec::new();
    for (index, (table, name)) in tables.iter().zip(names).enumerate() {
        let next = match table.field("next") {
            Some(field) => {
                let found = names.iter().position(|known| field.value.data == Data::Text(known.clone()));
                match &field.value.data {
                    Data::Text(text) if found.is_none() => {
                        unknown(&field, &field.value, text, "a phase", names.iter().map(String::as_str));
                    }
                    Data::Text(_) => {}
                    _ => field.wrong(),
                }
                found
            }
            None => (index < last).then_some(index + 1),
        };
        let until = table.field("until").map(|field| formula(&field, &field.value, parts, &variables));
        if until.is_none() && (index < last || table.has("next")) {
            let message = "found a phase that never ends but is followed by another, expected `until`";
            table.reader.note(table.origin, &table.join("until"), ErrorKind::Missing, message.to_string());
        }
        if until.is_some() && next.is_none() && !table.has("next") {
            let message = "found an end of the last phase, expected `next`, or no `until`";
            table.relation("until", message.to_string());
        }
        phases.push(match until {
            Some(formula) => {
                formula.zip(next).map(|until| MachinePhase { name: name.clone(), until: Some(until) })
            }
            None => Some(MachinePhase { name: name.clone(), until: None }),
        });
    }
    phases.into_iter().collect()
}

/// `prescribed`: coordinates that are no unknowns.
pub(in crate::input) fn read_partition(
    table: &TableReader,
    parts: &MachineNames,
    prescribed: &[&str],
) -> Option<Partitioning> {
    let field = table.field("partition")?;
    if !matches!(field.value.data, Data::Table(_)) {
        return field.choice::<AutomaticPartition>().map(|_| Partitioning::Automatic);
    }
    let table = table.table("partition")?;
    let always = table.flag("always");
    let key = ["dependent", "independent"].into_iter().find(|key| table.has(key))?;
    let field = table.field(key)?;
    let mut listed = Vec::new();
    for item in field.items()? {
        let Some(found) = parts.coordinate(&field, item) else {
            listed.push(None);
            continue;
        };
        let name = &parts.coordinates[found].name;
        if listed.contains(&Some(found)) {
            table.reader.wrong(item, &field.path, "each coordinate only once");
        }
        if prescribed.contains(&name.as_str()) {
            let message = format!("found {name:?}, whose motion is prescribed, expected another coordinate");
            table.reader.note(&item.origin, &field.path, ErrorKind::Relation, message);
        }
        listed.push(Some(found));
    }
    let listed: Vec<usize> = listed.into_iter().collect::<Option<_>>()?;
    let chosen = |(index, coordinate): &(usize, &crate::input::machine::names::Coordinate)| {
        !prescribed.contains(&coordinate.name.as_str()) && listed.contains(index) == (key == "dependent")
    };
    let dependent: Vec<String> = parts
        .coordinates
        .iter()
        .enumerate()
        .filter(chosen)
        .map(|(_, coordinate)| coordinate.name.clone())
        .collect();
    Some(if always? { Partitioning::Fixed(dependent) } else { Partitioning::Preferred(dependent) })
}
