//! Names within a machine: bodies, points, coordinates, and the variables that its formulas know.

use crate::geometry::Vec3;
use crate::input::language::document::{Data, Value};
use crate::input::language::errors::ErrorKind;
use crate::input::language::reader::{Field, did_you_mean};
use crate::machine::MachineVariable;
use crate::multibody::JointKind;
use crate::words::{closest, one_of};

pub(in crate::input) const GROUND: &str = "ground";

/// What can be referred to in one machine. Wrong parts are in it, too, so that their mistakes are reported once.
pub(in crate::input) struct MachineNames {
    /// With their points, none if the body is wrong; the ground comes last.
    pub bodies: Vec<(String, Option<Vec<NamedPoint>>)>,
    pub coordinates: Vec<Coordinate>,
    /// Whether all bodies are right and all joints have a kind that is known: if not, nothing can be said
    /// about formulas.
    pub complete: bool,
    pub quantities: Vec<String>,
    pub phases: Vec<String>,
}

/// Where it is, unless that follows from the shape of the body.
pub(in crate::input) type NamedPoint = (String, Option<Vec3>);

pub(in crate::input) struct Coordinate {
    pub name: String,
    pub has_position: bool,
}

impl MachineNames {
    /// Adds the coordinates of a joint, named as the machine room names them.
    pub fn add_joint(&mut self, joint: &str, kind: &JointKind) {
        let labels = kind.labels();
        for label in labels {
            let name = if labels.len() == 1 { joint.to_string() } else { format!("{joint}.{label}") };
            // Angular velocities in space are no derivatives of coordinates.
            let has_position = !label.starts_with('w');
            self.coordinates.push(Coordinate { name, has_position });
        }
    }

    /// The name of a body, or of the ground where that is allowed.
    pub fn body(&self, field: &Field, value: &Value, ground: bool) -> Option<String> {
        let name = word(field, value)?;
        let known =
            || self.bodies.iter().map(|(name, _)| name.as_str()).filter(|name| ground || *name != GROUND);
        if known().any(|known| known == name) {
            return Some(name.to_string());
        }
        unknown(field, value, name, "a body", known());
        None
    }

    /// The points of a body; none if it is wrong.
    pub fn points_of(&self, body: &str) -> Option<&[NamedPoint]> {
        self.bodies.iter().find(|(name, _)| name == body)?.1.as_deref()
    }

    /// A reference `body.point`, or `body` for its origin.
    pub fn point(&self, field: &Field, value: &Value) -> Option<String> {
        let name = word(field, value)?;
        let (body, point) = name.split_once('.').unwrap_or((name, "origin"));
        let Some((_, points)) = self.bodies.iter().find(|(known, _)| known == body) else {
            unknown(field, value, body, "a body", self.bodies.iter().map(|(name, _)| name.as_str()));
            return None;
        };
        let points = points.as_deref()?;
        if points.iter().any(|(known, _)| known == point) {
            return Some(name.to_string());
        }
        unknown(
            field,
            value,
            point,
            &format!("a point of {body:?}"),
            points.iter().map(|(name, _)| name.as_str()),
        );
        None
    }

    /// Two references, read even if one is wrong.
    pub fn pair(&self, field: &Field, read: impl Fn(&Value) -> Option<String>) -> Option<[String; 2]> {
        match &field.value.data {
            Data::List(items) if items.len() == 2 => {
                let [first, second] = [read(&items[0]), read(&items[1])];
                Some([first?, second?])
            }
            _ => {
                field.wrong();
                None
            }
        }
    }

    /// The place of a coordinate in the list; `joint.angle` and `joint.slide` also name the only coordinate
    /// of a joint.
    pub fn coordinate(&self, field: &Field, value: &Value) -> Option<usize> {
        let name = word(field, value)?;
        let named = |name: &str| self.coordinates.iter().position(|coordinate| coordinate.name == name);
        let only = || name.strip_suffix(".angle").or(name.strip_suffix(".slide")).and_then(named);
        let found = named(name).or_else(only);
        if found.is_none() && self.complete {
            let known = || self.coordinates.iter().map(|coordinate| coordinate.name.as_str());
            unknown(field, value, name, "a coordinate", known());
        }
        found
    }

    /// What every formula knows.
    pub fn variables(&self) -> Vec<String> {
        let mut names = vec!["t".to_string(), "phase.time".to_string()];
        for coordinate in &self.coordinates {
            names.extend(coordinate.has_position.then(|| format!("{}.position", coordinate.name)));
            names.push(format!("{}.velocity", coordinate.name));
        }
        names.extend(self.quantities.iter().cloned());
        names
    }

    /// What formulas know that are evaluated once per step.
    pub fn variables_with_points(&self) -> Vec<String> {
        let mut names = self.variables();
        for (body, points) in self.bodies.iter().filter(|(body, _)| body != GROUND) {
            for (point, _) in points.iter().flatten() {
                names.extend(MachineVariable::POINT_ENDINGS.map(|ending| format!("{body}.{point}.{ending}")));
            }
        }
        names
    }
}

/// A text; anything else is noted.
fn word<'a>(field: &Field, value: &'a Value) -> Option<&'a str> {
    match &value.data {
        Data::Text(text) => Some(text),
        _ => {
            field.reader.wrong(value, &field.path, &field.kind.describe());
            None
        }
    }
}

/// Notes that `name` is none of `known`.
pub(in crate::input) fn unknown<'a>(
    field: &Field,
    value: &Value,
    name: &str,
    what: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) {
    let expected = match known.clone().next() {
        None => format!("{what}, of which there is none"),
        Some(_) => format!("{what}: {}", one_of(name, known.clone(), |name| format!("{name:?}"))),
    };
    let hint = did_you_mean(closest(name, known));
    let message = format!("found the unknown name {name:?}, expected {expected}{hint}");
    field.reader.note(&value.origin, &field.path, ErrorKind::Relation, message);
}
