//! Values that are allowed but probably not meant: other units, mostly. Each rule has to leave every shipped
//! case alone.

use std::f64::consts::{FRAC_PI_4, TAU};

struct Rule {
    /// The last part of the key's path; none for keys of any name.
    key: Option<&'static str>,
    unit: &'static str,
    is_odd: fn(f64) -> bool,
    hint: &'static str,
}

/// The first that fits is what is said.
const RULES: [Rule; 10] = [
    Rule {
        key: Some("density"),
        unit: "kg/m³",
        is_odd: |density| density < 20.0,
        hint: "lighter than most foams: densities are in kg/m³, stone has about 2700",
    },
    Rule {
        key: Some("density"),
        unit: "kg/m³",
        is_odd: |density| density > 25_000.0,
        hint: "heavier than any metal: densities are in kg/m³, stone has about 2700",
    },
    Rule {
        key: Some("time_step"),
        unit: "s",
        is_odd: |step| step > 0.1,
        hint: "contacts usually need steps of 1e-4 to 1e-2: times are in s",
    },
    Rule {
        key: Some("friction"),
        unit: "",
        is_odd: |friction| friction > 5.0,
        hint: "a coefficient of friction is rarely above 1: it is the tangent of the angle of friction, not the angle",
    },
    Rule {
        key: Some("tolerance"),
        unit: "",
        is_odd: |tolerance| tolerance > 0.5,
        hint: "the solver would stop at once: the residual is relative, usual are 1e-4 to 1e-2",
    },
    Rule {
        key: Some("gravity"),
        unit: "m/s²",
        is_odd: |gravity| gravity.abs() > 300.0,
        hint: "thirty times that of the Earth: accelerations are in m/s²",
    },
    Rule {
        key: Some("degrees"),
        unit: "degrees",
        is_odd: |angle| {
            let eighths = angle.abs() / FRAC_PI_4;
            eighths > 0.5 && eighths < 8.5 && (eighths - eighths.round()).abs() < 1e-3
        },
        hint: "probably an angle in rad: this key is in degrees, `radians` is in rad",
    },
    Rule {
        key: None,
        unit: "rad",
        is_odd: |angle| angle.abs() > TAU && angle.fract() == 0.0 && angle % 5.0 == 0.0,
        hint: "more than a full turn: angles are in rad, \"pi/2\" is 90 degrees",
    },
    Rule {
        key: None,
        unit: "rad/s",
        is_odd: |speed| speed.abs() >= 2000.0,
        hint: "more than 300 turns a second: angular velocities are in rad/s, 1000 rpm are 105",
    },
    Rule {
        key: Some("duration"),
        unit: "s",
        is_odd: |duration| duration > 1e6,
        hint: "eleven days: times are in s",
    },
];

/// Why a number may not be what was meant. `path` is that of its key.
pub(super) fn about(path: &str, unit: &str, number: f64) -> Option<&'static str> {
    let key = path.rsplit('.').next().unwrap_or(path);
    let fits =
        |rule: &&Rule| rule.key.is_none_or(|name| name == key) && rule.unit == unit && (rule.is_odd)(number);
    RULES.iter().find(fits).map(|rule| rule.hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_values_are_not_suspicious() {
        for (path, unit, number) in [
            ("material.stone.density", "kg/m³", 2700.0),
            ("material.foam.density", "kg/m³", 30.0),
            ("simulation.time_step", "s", 1e-3),
            ("contact.1.friction", "", 1.2),
            ("simulation.gravity", "m/s²", -9.81),
            ("body.a.rotation.degrees", "degrees", 90.0),
            ("body.a.rotation.degrees", "degrees", 1.5),
            ("machine.m.joint.j.position", "rad", 1.5),
            ("machine.m.joint.j.position", "m", 90.0),
            ("machine.m.joint.j.velocity", "rad/s", 300.0),
        ] {
            assert_eq!(about(path, unit, number), None, "{path} = {number}");
        }
    }

    #[test]
    fn other_units_are() {
        for (path, unit, number, hint) in [
            ("material.stone.density", "kg/m³", 2.7, "kg/m³"),
            ("simulation.time_step", "s", 0.5, "times are in s"),
            ("contact.1.friction", "", 35.0, "tangent"),
            ("simulation.gravity", "m/s²", -9810.0, "m/s²"),
            ("body.a.rotation.degrees", "degrees", std::f64::consts::FRAC_PI_2, "in rad"),
            ("machine.m.joint.j.position", "rad", 90.0, "pi/2"),
            ("machine.m.joint.j.velocity", "rad/s", 3000.0, "rpm"),
        ] {
            let found = about(path, unit, number).unwrap_or_default();
            assert!(found.contains(hint), "{path} = {number}: {found}");
        }
    }
}
