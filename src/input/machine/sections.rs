//! The keys of machines.

use crate::input::bodies::sections::{ORIENTATION, PART};
use crate::input::language::keys::{
    Alternative, Key, Kind, Namespace, Need, Range, Section, Variant, Variants,
};
use crate::input::machine::case::{AutomaticPartition, SelfContact};
use crate::input::machine::force_sections::{ACTUATOR, FORCE, SPRING, TORQUE};
use crate::input::sections::{key, plain};
use crate::multibody::{ContactVelocity, ForceEvaluation};
use crate::words::Choose;
use Need::{Default, Optional, Required};

const BODY_NAME: &str = "a body of the machine, or \"ground\"";
pub(in crate::input) const POINT_NAME: &str =
    "a point, written \"body.point\" (every body has \"origin\" and \"centre\")";
pub(in crate::input) const COORDINATE: &str =
    "a coordinate: a joint with one degree of freedom, or \"joint.label\"";

const fn variant(name: &'static str, about: &'static str, keys: &'static [Key]) -> Variant {
    Variant { name, about, keys, alternatives: &[] }
}

pub static MACHINE: Section = plain(
    "An articulated mechanism: bodies carried by joints as a tree that starts at the ground, loops closed by cuts, springs, actuators. \
     Formulas of a machine know the time `t`; of every coordinate `joint.position` and `joint.velocity`, or for a joint \
     with several degrees of freedom `joint.label.position` and `joint.label.velocity` (a rotation in space has velocities only); the \
     machine's quantities; and `phase.time`, the time since its phase began (s). Quantities and the ends of phases also know \
     where points are: `body.point.x`, `.y`, `.z` (m, world) and `.vx`, `.vy`, `.vz` (m/s); every body has the points `origin` and \
     `centre`.",
    &[
        key(
            "name",
            Kind::Name,
            "",
            Required,
            "In the output. Bodies, grains and machines all have different names.",
        ),
        key("body", Kind::Tables(&BODY, 1), "", Required, "One `[[machine.body]]` each."),
        key(
            "joint",
            Kind::Tables(&JOINT, 1),
            "",
            Required,
            "One `[[machine.joint]]` for every body: what carries it.",
        ),
        key(
            "cut",
            Kind::Tables(&CUT, 0),
            "",
            Optional("no loops"),
            "What closes a loop, one `[[machine.cut]]` each.",
        ),
        key(
            "spring",
            Kind::Tables(&SPRING, 0),
            "",
            Optional("no springs"),
            "Springs and dampers, one `[[machine.spring]]` each.",
        ),
        key(
            "actuator",
            Kind::Tables(&ACTUATOR, 0),
            "",
            Optional("no actuators"),
            "Forces of joints and cylinders by a law, one `[[machine.actuator]]` each.",
        ),
        key(
            "force",
            Kind::Tables(&FORCE, 0),
            "",
            Optional("no forces from outside"),
            "Forces from outside, one `[[machine.force]]` each.",
        ),
        key(
            "torque",
            Kind::Tables(&TORQUE, 0),
            "",
            Optional("no torques from outside"),
            "Torques from outside, one `[[machine.torque]]` each.",
        ),
        key(
            "quantities",
            Kind::NamedLaws,
            "",
            Optional("no quantities"),
            "Named formulas, evaluated once at the start of every step and held during it: `depth = \"-tool.tip.z\"`. A quantity may use \
             those above it. They are written to the time series.",
        ),
        key(
            "phase_values",
            Kind::NamedLaws,
            "",
            Optional("no values of phases"),
            "Named formulas, evaluated when a phase begins and kept until the next one begins: `held_at = \"lift.position\"`. \
             They are quantities too, known to all `quantities` and to those below them here.",
        ),
        key(
            "phase",
            Kind::Tables(&PHASE, 0),
            "",
            Optional("one phase without end"),
            "What the machine does one after the other, one `[[machine.phase]]` each; it starts in the first.",
        ),
        key(
            "ground_points",
            Kind::NamedPoints,
            "m",
            Optional("only `ground.origin`"),
            "Points of the world, for cuts and springs: `{ pivot = [0, 0, 1] }` is `ground.pivot`.",
        ),
        key(
            "partition",
            Kind::ChoiceOrTable(AutomaticPartition::CHOICES, &PARTITION),
            "",
            Default("\"automatic\""),
            "Which coordinates follow from the others where loops are closed.",
        ),
        key(
            "closure_tolerance",
            Kind::Number(Range::within(1e-15, 1e-3)),
            "m or rad",
            Default("1e-12"),
            "Loops count as closed below this.",
        ),
        key(
            "self_contact",
            Kind::Choice(SelfContact::CHOICES),
            "",
            Default("\"not-neighbours\""),
            "Which bodies of this machine can touch each other.",
        ),
        key(
            "force_evaluation",
            Kind::Choice(ForceEvaluation::CHOICES),
            "",
            Default("\"start-velocity\""),
            "At which velocity forces are evaluated within a step.",
        ),
        key(
            "contact_velocity",
            Kind::Choice(ContactVelocity::CHOICES),
            "",
            Default("\"middle\""),
            "At which position contacts see the velocities of the machine's bodies.",
        ),
    ],
);

static BODY: Section = Section {
    about: "A rigid body of a machine, in a frame of its own that may stand anywhere in it.",
    keys: &[
        key("name", Kind::Name, "", Required, "By which joints, cuts and forces refer to it; not `ground`."),
        key(
            "mass",
            Kind::Number(Range::within(0.0, 1e30)),
            "kg",
            Optional("density times volume of the shape"),
            "Of the whole body; 0 for one that only carries others.",
        ),
        key(
            "centre",
            Kind::Vector(Range::PLACE),
            "m",
            Optional("that of the shape, or the origin"),
            "Centre of mass.",
        ),
        key(
            "inertia",
            Kind::Inertia,
            "kg m²",
            Optional("that of the shape, scaled to `mass`; without a shape 0, a point mass"),
            "About the centre of mass, in the axes of the body.",
        ),
        key(
            "points",
            Kind::NamedPoints,
            "m",
            Optional("only `origin` and `centre`"),
            "Named points, `{ tip = [0.3, 0, 0] }`.",
        ),
        key(
            "shape",
            Kind::Reference(Namespace::Shape),
            "",
            Optional("none, or given by `parts`"),
            "What it looks like, in the frame of the body. No half-space.",
        ),
        key(
            "parts",
            Kind::Tables(&PART, 1),
            "",
            Optional("none, or given by `shape`"),
            "Several shapes, each at its place in the frame of the body.",
        ),
        key(
            "material",
            Kind::Reference(Namespace::Material),
            "",
            Optional("only right without a shape"),
            "What its shape is made of.",
        ),
        key(
            "contacts",
            Kind::Flag,
            "",
            Default("true"),
            "Whether its shape touches others; if not, it is only drawn and weighed.",
        ),
    ],
    variants: None,
    alternatives: &[Alternative { sets: &[&["shape"], &["parts"]], required: false }],
};

static FRAME: Section = plain(
    "A place in a body.",
    &[
        key(
            "position",
            Kind::Vector(Range::PLACE),
            "m",
            Default("[0.0, 0.0, 0.0]"),
            "In the frame of the body.",
        ),
        key(
            "orientation",
            Kind::Table(&ORIENTATION),
            "",
            Optional("not turned"),
            "In the frame of the body.",
        ),
    ],
);

const AXIS: Key = key("axis", Kind::Direction, "", Required, "In the frame of the joint.");
const ANGLE: Key = key("position", Kind::Number(Range::PLACE), "rad", Default("0.0"), "Angle at the start.");
const ANGLE_RATE: Key =
    key("velocity", Kind::Number(Range::RATE), "rad/s", Default("0.0"), "Angular velocity at the start.");
const DIRECTED: Key = key(
    "first",
    Kind::Direction,
    "",
    Default("[1.0, 0.0, 0.0]"),
    "Along which `x` runs; made perpendicular to `normal`.",
);
const MOTION: Key = key(
    "prescribed",
    Kind::LawOrNamed("label"),
    "m or rad",
    Optional("it moves by the laws of mechanics"),
    "Position as a formula of t, whatever pushes; velocity and acceleration are its exact derivatives. For several degrees of freedom by \
     their labels: `{ x = \"0.01*sin(2*pi*15*t)\" }`.",
);

pub static JOINT: Section = Section {
    about: "What carries a body.",
    keys: &[
        key(
            "name",
            Kind::Identifier,
            "",
            Required,
            "By which formulas, springs and actuators refer to its coordinates.",
        ),
        key("parent", Kind::Part(BODY_NAME), "", Default("\"ground\""), "The body that carries."),
        key("child", Kind::Part("a body of the machine"), "", Required, "The body that is carried."),
        key(
            "on_parent",
            Kind::Frame(&FRAME),
            "m",
            Default("[0.0, 0.0, 0.0]"),
            "Where the joint is on the parent. The axes are those of the parent unless they are turned here.",
        ),
        key(
            "on_child",
            Kind::Frame(&FRAME),
            "m",
            Default("[0.0, 0.0, 0.0]"),
            "Where the joint is on the child.",
        ),
        key(
            "held",
            Kind::Flag,
            "",
            Default("false"),
            "Whether position and velocity stay as given when loops are closed at the start.",
        ),
    ],
    variants: Some(Variants {
        tag: "kind",
        about: "What motion it allows; the other keys depend on it.",
        default: None,
        cases: &[
            variant("revolute", "Rotation about an axis.", &[AXIS, ANGLE, ANGLE_RATE, MOTION]),
            variant(
                "prismatic",
                "Translation along an axis.",
                &[
                    AXIS,
                    key("position", Kind::Number(Range::PLACE), "m", Default("0.0"), "At the start."),
                    key("velocity", Kind::Number(Range::RATE), "m/s", Default("0.0"), "At the start."),
                    MOTION,
                ],
            ),
            variant(
                "cylindrical",
                "Translation along an axis and rotation about it. Labels: `slide`, `angle`.",
                &[
                    AXIS,
                    key(
                        "position",
                        Kind::Exactly(Range::PLACE, 2),
                        "m, rad",
                        Default("[0.0, 0.0]"),
                        "Slide and angle at the start.",
                    ),
                    key(
                        "velocity",
                        Kind::Exactly(Range::RATE, 2),
                        "m/s, rad/s",
                        Default("[0.0, 0.0]"),
                        "Their rates.",
                    ),
                    MOTION,
                ],
            ),
            variant(
                "universal",
                "Rotation about an axis of the parent, then about one of the child. Labels: `first`, `second`.",
                &[
                    key("first", Kind::Direction, "", Required, "The axis that is fixed in the parent."),
                    key("second", Kind::Direction, "", Required, "The axis that is fixed in the child."),
                    key(
                        "position",
                        Kind::Exactly(Range::PLACE, 2),
                        "rad",
                        Default("[0.0, 0.0]"),
                        "Both angles at the start.",
                    ),
                    key(
                        "velocity",
                        Kind::Exactly(Range::RATE, 2),
                        "rad/s",
                        Default("[0.0, 0.0]"),
                        "Their rates.",
                    ),
                    MOTION,
                ],
            ),
            variant(
                "planar",
                "Motion in a plane. Labels: `x` along `first`, `y` along normal × first, `angle` about the normal.",
                &[
                    key("normal", Kind::Direction, "", Required, "Of the plane."),
                    DIRECTED,
                    key(
                        "position",
                        Kind::Exactly(Range::PLACE, 3),
                        "m, m, rad",
                        Default("[0.0, 0.0, 0.0]"),
                        "x, y and angle at the start.",
                    ),
                    key(
                        "velocity",
                        Kind::Exactly(Range::RATE, 3),
                        "m/s, m/s, rad/s",
                        Default("[0.0, 0.0, 0.0]"),
                        "Their rates.",
                    ),
                    MOTION,
                ],
            ),
            variant(
                "spherical",
                "Rotation in space. Labels of the velocities: `wx`, `wy`, `wz`.",
                &[
                    key(
                        "orientation",
                        Kind::Table(&ORIENTATION),
                        "",
                        Optional("not turned"),
                        "Of the child against the parent at the start.",
                    ),
                    key(
                        "velocity",
                        Kind::Vector(Range::RATE),
                        "rad/s",
                        Default("[0.0, 0.0, 0.0]"),
                        "Angular velocity at the start, in axes of the child.",
                    ),
                ],
            ),
            variant(
                "free",
                "Any motion. Labels: `x`, `y`, `z`, and of the angular velocities `wx`, `wy`, `wz`.",
                &[
                    key(
                        "position",
                        Kind::Vector(Range::PLACE),
                        "m",
                        Default("[0.0, 0.0, 0.0]"),
                        "At the start, in axes of the parent.",
                    ),
                    key(
                        "orientation",
                        Kind::Table(&ORIENTATION),
                        "",
                        Optional("not turned"),
                        "Of the child against the parent at the start.",
                    ),
                    key(
                        "velocity",
                        Kind::Vector(Range::RATE),
                        "m/s",
                        Default("[0.0, 0.0, 0.0]"),
                        "At the start, in axes of the parent.",
                    ),
                    key(
                        "angular_velocity",
                        Kind::Vector(Range::RATE),
                        "rad/s",
                        Default("[0.0, 0.0, 0.0]"),
                        "At the start, in axes of the child.",
                    ),
                    MOTION,
                ],
            ),
            variant("fixed", "No motion.", &[]),
        ],
    }),
    alternatives: &[],
};

const BETWEEN: Key =
    key("between", Kind::PartPair(POINT_NAME), "", Required, "The two points, on different bodies.");

static CUT: Section = Section {
    about: "What closes a loop of bodies.",
    keys: &[key("name", Kind::Name, "", Required, "In messages and in the output of its force.")],
    variants: Some(Variants {
        tag: "kind",
        about: "What holds.",
        default: Some("points"),
        cases: &[
            variant("points", "Two points coincide, as in a ball joint.", &[BETWEEN]),
            variant(
                "rod",
                "Two points keep their distance, as if joined by a rod without mass.",
                &[BETWEEN, key("length", Kind::Number(Range::SIZE), "m", Required, "The distance.")],
            ),
            variant(
                "frames",
                "Two frames coincide, as if welded.",
                &[
                    key("bodies", Kind::PartPair(BODY_NAME), "", Required, "The two bodies."),
                    key(
                        "on_first",
                        Kind::Frame(&FRAME),
                        "m",
                        Default("[0.0, 0.0, 0.0]"),
                        "The frame on the first.",
                    ),
                    key(
                        "on_second",
                        Kind::Frame(&FRAME),
                        "m",
                        Default("[0.0, 0.0, 0.0]"),
                        "The frame on the second.",
                    ),
                ],
            ),
        ],
    }),
    alternatives: &[],
};

static PHASE: Section = plain(
    "A phase of what the machine does. Laws can be given for each.",
    &[
        key("name", Kind::Identifier, "", Required, "By which laws refer to it."),
        key(
            "until",
            Kind::Law,
            "",
            Optional("it never ends"),
            "It ends at the start of the first step at which this formula is not 0: `\"depth > 0.3 or phase.time > 1\"`.",
        ),
        key(
            "next",
            Kind::Part("a phase of the machine"),
            "",
            Optional("the phase below"),
            "What follows; an earlier phase for a cycle.",
        ),
    ],
);

static PARTITION: Section = Section {
    about: "The user's choice of dependent coordinates, as many as the loops need.",
    keys: &[
        key(
            "dependent",
            Kind::PartList(COORDINATE),
            "",
            Optional("all but `independent`"),
            "Coordinates that follow from the others.",
        ),
        key(
            "independent",
            Kind::PartList(COORDINATE),
            "",
            Optional("all but `dependent`"),
            "Coordinates that the others follow from.",
        ),
        key(
            "always",
            Kind::Flag,
            "",
            Default("false"),
            "Whether the choice also stands where it is ill-conditioned; otherwise another is used there.",
        ),
    ],
    variants: None,
    alternatives: &[Alternative { sets: &[&["dependent"], &["independent"]], required: true }],
};
