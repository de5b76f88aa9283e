//! The keys of springs, actuators and forces of machines.

use crate::input::language::keys::{Alternative, Key, Kind, Need, Range, Section};
use crate::input::machine::case::DirectionFrame;
use crate::input::machine::sections::{COORDINATE, POINT_NAME};
use crate::input::sections::{key, plain};
use crate::words::Choose;
use Need::{Default, Optional, Required};

const ON_JOINT: Key = key(
    "joint",
    Kind::Part(COORDINATE),
    "",
    Optional("given by `between`"),
    "The coordinate on which it acts.",
);
const ON_POINTS: Key = key(
    "between",
    Kind::PartPair(POINT_NAME),
    "",
    Optional("given by `joint`"),
    "The two points on whose distance it acts.",
);
const EITHER: &[Alternative] = &[Alternative { sets: &[&["joint"], &["between"]], required: true }];

pub static SPRING: Section = Section {
    about: "A spring with a damper, in a joint or between two points: the force is -stiffness*(x - rest) - damping*v.",
    keys: &[
        key("name", Kind::Name, "", Required, "In the output. All forces of a machine have different names."),
        ON_JOINT,
        ON_POINTS,
        key(
            "stiffness",
            Kind::Number(Range::within(0.0, 1e30)),
            "N/m or N m/rad",
            Default("0.0"),
            "0 for a damper.",
        ),
        key(
            "damping",
            Kind::Number(Range::within(0.0, 1e30)),
            "N s/m or N m s/rad",
            Default("0.0"),
            "0 for a spring.",
        ),
        key(
            "rest",
            Kind::Number(Range::PLACE),
            "m or rad",
            Default("0.0"),
            "Position or length without force.",
        ),
    ],
    variants: None,
    alternatives: EITHER,
};

const LAW_KIND: Kind = Kind::LawOrNamed("phase");

pub static ACTUATOR: Section = Section {
    about: "A force in a joint, or between two points, positive along the coordinate or pushing the points apart.",
    keys: &[
        key("name", Kind::Name, "", Required, "In the output. All forces of a machine have different names."),
        ON_JOINT,
        ON_POINTS,
        key(
            "law",
            LAW_KIND,
            "N or N m",
            Required,
            "A formula such as `\"-K*(x - L(t)) - C*v\"`, where `x` and `v` are the position of the joint or the distance of the points, \
             and its rate; or one for each phase: `{ diving = \"-500\", squeezing = \"K*(0.2 - x)\" }`.",
        ),
    ],
    variants: None,
    alternatives: EITHER,
};

const DIRECTION: Key = key(
    "direction",
    Kind::Direction,
    "",
    Required,
    "Where a positive value points; right-handed for a torque.",
);
const DIRECTION_FRAME: Key = key(
    "frame",
    Kind::Choice(DirectionFrame::CHOICES),
    "",
    Default("\"world\""),
    "In which the direction is fixed.",
);

pub static FORCE: Section = plain(
    "A force from outside on a point of a body.",
    &[
        key("name", Kind::Name, "", Required, "In the output. All forces of a machine have different names."),
        key("point", Kind::Part(POINT_NAME), "", Required, "Where it acts."),
        DIRECTION,
        DIRECTION_FRAME,
        key("law", LAW_KIND, "N", Required, "Its size: a formula, or one for each phase."),
    ],
);

pub static TORQUE: Section = plain(
    "A torque from outside on a body.",
    &[
        key("name", Kind::Name, "", Required, "In the output. All forces of a machine have different names."),
        key("body", Kind::Part("a body of the machine"), "", Required, "On which it acts."),
        DIRECTION,
        DIRECTION_FRAME,
        key("law", LAW_KIND, "N m", Required, "Its size: a formula, or one for each phase."),
    ],
);
