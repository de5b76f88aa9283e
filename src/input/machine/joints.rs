//! Joints of a machine: frames, start, prescribed motion, and the tree that they make.

use crate::formula::Expression;
use crate::geometry::{Pose, Quat, Vec3};
use crate::input::bodies::shapes::{read_orientation, read_pose};
use crate::input::build::sample_times;
use crate::input::language::document::Data;
use crate::input::language::errors::ErrorKind;
use crate::input::language::keys::Range;
use crate::input::language::reader::{Field, TableReader};
use crate::input::machine::names::{GROUND, MachineNames, unknown};
use crate::multibody::{JointKind, JointSpec};
use std::collections::BTreeMap;

/// The place of a joint or cut in a body; `body` is none if its name is wrong.
pub(in crate::input) fn read_frame(
    table: &TableReader,
    key: &str,
    body: Option<&str>,
    parts: &MachineNames,
) -> Option<Pose> {
    let field = table.field(key)?;
    match &field.value.data {
        Data::List(_) => {
            let point = field.vector_of(&field.value, &Range::PLACE, &field.kind.describe())?;
            Some(Pose::new(Quat::identity(), point))
        }
        Data::Text(name) => {
            let body = body?;
            let points = parts.points_of(body)?;
            let Some((_, point)) = points.iter().find(|(known, _)| known == name) else {
                let known = points.iter().map(|(name, _)| name.as_str());
                unknown(&field, &field.value, name, &format!("a point of {body:?}"), known);
                return None;
            };
            if point.is_none() {
                let message = format!(
                    "found {name:?}, which follows from the shape, expected a point [x, y, z] or a named one"
                );
                field.note(ErrorKind::Relation, message);
            }
            Some(Pose::new(Quat::identity(), (*point)?))
        }
        Data::Table(_) => {
            let section = field.kind.section()?;
            let value = &table.entry(key)?.value;
            read_pose(&TableReader::open(table.reader, value, section, field.path.clone())?)
        }
        _ => {
            field.wrong();
            None
        }
    }
}

pub(in crate::input) fn read_joint(
    table: &TableReader,
    name: &str,
    parts: &mut MachineNames,
    time: Option<(f64, f64)>,
    prescribed: &mut Option<Vec<(String, Expression)>>,
) -> Option<JointSpec> {
    if name == GROUND {
        table.relation("name", "found \"ground\", which is the world, expected another name".to_string());
    }
    let body = |key: &str, ground: bool| {
        let field = table.field(key)?;
        parts.body(&field, &field.value, ground)
    };
    let (parent, child) = (body("parent", true), body("child", false));
    let parent_frame = read_frame(table, "on_parent", parent.as_deref(), parts);
    let child_frame = read_frame(table, "on_child", child.as_deref(), parts);
    let held = table.flag("held");
    let Some(variant) = table.variant else {
        parts.complete = false;
        return None;
    };
    let direction = |key: &str| table.field(key).and_then(|field| field.direction());
    // With a stand-in for a wrong axis, so that the coordinates are known.
    let (outline, kind) = match variant.name {
        "revolute" => (
            JointKind::Revolute { axis: Vec3::z() },
            direction("axis").map(|axis| JointKind::Revolute { axis }),
        ),
        "prismatic" => (
            JointKind::Prismatic { axis: Vec3::z() },
            direction("axis").map(|axis| JointKind::Prismatic { axis }),
        ),
        "cylindrical" => (
            JointKind::Cylindrical { axis: Vec3::z() },
            direction("axis").map(|axis| JointKind::Cylindrical { axis }),
        ),
        "universal" => {
            let (first, second) = (direction("first"), direction("second"));
            let pair = first.zip(second).map(|(first, second)| JointKind::Universal { first, second });
            (JointKind::Universal { first: Vec3::x(), second: Vec3::y() }, pair)
        }
        "planar" => {
            let (normal, first) = (direction("normal"), direction("first"));
            let pair = normal.zip(first).map(|(normal, first)| JointKind::Planar { normal, first });
            (JointKind::Planar { normal: Vec3::z(), first: Vec3::x() }, pair)
        }
        "spherical" => (JointKind::Spherical, Some(JointKind::Spherical)),
        "free" => (JointKind::Free, Some(JointKind::Free)),
        _ => (JointKind::Fixed, Some(JointKind::Fixed)),
    };
    parts.add_joint(name, &outline);
    let (position, velocity) = read_start(table, &outline);
    let motions = read_prescribed(table, name, &outline, time);
    match (prescribed.as_mut(), motions) {
        (Some(list), Some(motions)) => list.extend(motions),
        _ => *prescribed = None,
    }
    Some(JointSpec {
        name: name.to_string(),
        kind: kind?,
        parent: parent?,
        child: child?,
        parent_frame: parent_frame?,
        child_frame: child_frame?,
        position: position?,
        velocity: velocity?,
        held: held?,
    })
}

/// Positions and velocities at the start, in the order of the machine room.
fn read_start(table: &TableReader, kind: &JointKind) -> (Option<Vec<f64>>, Option<Vec<f64>>) {
    let vector = |key: &str| Some(table.field(key)?.vector()?.as_slice().to_vec());
    let quaternion = || {
        let turn = match table.has("orientation") {
            true => read_orientation(&table.table("orientation")?)?,
            false => Quat::identity(),
        };
        Some(vec![turn.w, turn.i, turn.j, turn.k])
    };
    let both = |first: Option<Vec<f64>>, second: Option<Vec<f64>>| Some([first?, second?].concat());
    match kind {
        JointKind::Fixed => (Some(Vec::new()), Some(Vec::new())),
        JointKind::Revolute { .. } | JointKind::Prismatic { .. } => {
            let number = |key| table.number(key).map(|number| vec![number]);
            (number("position"), number("velocity"))
        }
        JointKind::Spherical => (quaternion(), vector("velocity")),
        JointKind::Free => {
            let (position, turn) = (vector("position"), quaternion());
            let (velocity, spin) = (vector("velocity"), vector("angular_velocity"));
            (both(position, turn), both(velocity, spin))
        }
        _ => {
            let list = |key: &str| table.field(key).and_then(|field| field.exactly());
            (list("position"), list("velocity"))
        }
    }
}

/// A motion of the only coordinate, or motions by labels.
fn read_prescribed(
    table: &TableReader,
    joint: &str,
    kind: &JointKind,
    time: Option<(f64, f64)>,
) -> Option<Vec<(String, Expression)>> {
    let Some(field) = table.field("prescribed") else { return Some(Vec::new()) };
    let labels: Vec<&str> = kind.labels().iter().copied().filter(|label| !label.starts_with('w')).collect();
    let mut motions = Vec::new();
    if let Data::Table(entries) = &field.value.data {
        for entry in entries {
            if labels.contains(&entry.key.as_str()) {
                let name = if kind.nv() == 1 { joint.to_string() } else { format!("{joint}.{}", entry.key) };
                motions.push((name, &entry.value));
            } else {
                let known = labels.iter().map(|label| format!("{label:?}")).collect::<Vec<_>>().join(", ");
                let message = format!("found the label {:?}, expected one of {known}", entry.key);
                table.reader.note(&entry.key_origin, &field.path, ErrorKind::UnknownKey, message);
            }
        }
    } else if kind.nv() == 1 {
        motions.push((joint.to_string(), &*field.value));
    } else {
        let message = format!(
            "found one formula for several coordinates, expected a table with some of {}",
            labels.join(", ")
        );
        field.note(ErrorKind::Value, message);
        return None;
    }
    let motions: Vec<_> = motions
        .into_iter()
        .map(|(name, value)| {
            let formula = field.formula_of(value, &["t"])?;
            check_motion(&field, &formula, time);
            Some((name, formula))
        })
        .collect();
    motions.into_iter().collect()
}

fn check_motion(field: &Field, formula: &Expression, time: Option<(f64, f64)>) {
    let Some((start, duration)) = time else { return };
    let usable = |time: &f64| {
        formula
            .evaluate_with_derivatives(&[*time], 0)
            .iter()
            .all(|part| Range::within(-1e12, 1e12).contains(*part))
    };
    if let Some(time) = sample_times(start, duration).find(|time| !usable(time)) {
        let message = format!(
            "found no usable motion at t = {time} s, expected position, velocity and acceleration within ±1e12"
        );
        field.note(ErrorKind::Relation, message);
    }
}

/// Every body is carried once.
pub(in crate::input) fn check_tree(bodies: &[TableReader], names: &[String], joints: &[TableReader]) {
    let child = |table: &TableReader| match &table.entry("child")?.value.data {
        Data::Text(name) => Some(name.clone()),
        _ => None,
    };
    let mut carrier: BTreeMap<String, &TableReader> = BTreeMap::new();
    for table in joints {
        let Some(name) = child(table).filter(|name| names.contains(name)) else { continue };
        if let Some(first) = carrier.get(&name) {
            let message = format!(
                "found {name:?}, which {} carries already, expected a body that no joint carries; close loops with [[machine.cut]]",
                first.path
            );
            table.relation("child", message);
        } else {
            carrier.insert(name, table);
        }
    }
    // A joint whose child is wrong may be meant for any body.
    if joints.iter().any(|table| child(table).is_none_or(|name| !names.contains(&name))) {
        return;
    }
    for (table, name) in bodies.iter().zip(names).filter(|(_, name)| !name.is_empty() && *name != GROUND) {
        if !carrier.contains_key(name) {
            let message = format!(
                "found no joint with child = {name:?}, expected one: every body needs one that carries it"
            );
            table.reader.note(table.origin, &table.path, ErrorKind::Relation, message);
        }
    }
}
