//! The keys of shapes, bodies and grains.

use crate::geometry::Overflow;
use crate::input::case::*;
use crate::input::language::keys::{
    Alternative, Key, Kind, Namespace, Need, Range, Section, Variant, Variants,
};
use crate::input::sections::{key, plain};
use crate::words::Choose;
use Need::{Default, Optional, Required};

const ANY_VECTOR: Kind = Kind::Vector(Range::ANY);
const PLACES: Kind = Kind::Vector(Range::PLACE);
const RATES: Kind = Kind::Vector(Range::RATE);

const fn variant(name: &'static str, about: &'static str, keys: &'static [Key]) -> Variant {
    Variant { name, about, keys, alternatives: &[] }
}

pub static SHAPE: Section = Section {
    about: "A shape, in its own frame.",
    keys: &[key("name", Kind::Name, "", Required, "By which bodies, grains and clusters refer to it.")],
    variants: Some(Variants {
        tag: "kind",
        about: "What it is; the other keys depend on it.",
        default: None,
        cases: &[
            variant(
                "sphere",
                "A ball centred at the origin.",
                &[key("radius", Kind::Number(Range::SIZE), "m", Required, "Of the ball.")],
            ),
            variant(
                "box",
                "A cuboid centred at the origin, edges along the axes.",
                &[key(
                    "size",
                    Kind::Vector(Range::SIZE),
                    "m",
                    Required,
                    "Full edge lengths along x, y and z.",
                )],
            ),
            Variant {
                name: "polyhedron",
                about: "The convex hull of points.",
                keys: &[
                    key(
                        "vertices",
                        Kind::Points(4),
                        "m",
                        Optional("given by `file`"),
                        "Points of the hull; those inside do not matter.",
                    ),
                    key(
                        "file",
                        Kind::File,
                        "",
                        Optional("given by `vertices`"),
                        "An STL or OBJ file with a closed surface, of which the convex hull is taken.",
                    ),
                    key(
                        "scale",
                        Kind::Number(Range::POSITIVE),
                        "",
                        Default("1.0"),
                        "Factor on all coordinates, for instance 0.001 for a file in millimetres.",
                    ),
                ],
                alternatives: &[Alternative { sets: &[&["vertices"], &["file"]], required: true }],
            },
            variant(
                "half-space",
                "A wall without end: everything with z ≤ 0; +z points out of it. Only on fixed and kinematic bodies.",
                &[],
            ),
            variant(
                "cluster",
                "Several shapes on one rigid body, for instance a tool.",
                &[key(
                    "parts",
                    Kind::Tables(&PART, 1),
                    "",
                    Required,
                    "The parts, `{ shape = \"…\", … }` each. Where parts overlap, their masses add up.",
                )],
            ),
        ],
    }),
    alternatives: &[],
};

pub static PART: Section = plain(
    "A shape at its place in a cluster.",
    &[
        key(
            "shape",
            Kind::Reference(Namespace::Shape),
            "",
            Required,
            "What the part looks like; may be a cluster itself.",
        ),
        key(
            "position",
            PLACES,
            "m",
            Default("[0.0, 0.0, 0.0]"),
            "Of the origin of the part's frame in the cluster's frame.",
        ),
        key(
            "orientation",
            Kind::Table(&ORIENTATION),
            "",
            Optional("not turned"),
            "Of the part's frame in the cluster's frame.",
        ),
        key(
            "copies_around",
            Kind::Table(&COPIES),
            "",
            Optional("one part"),
            "Repeat the part around an axis through the cluster's origin.",
        ),
    ],
);

static COPIES: Section = plain(
    "Repetition around an axis, for drums and wheels.",
    &[
        key("axis", Kind::Direction, "", Required, "Through the cluster's origin."),
        key(
            "count",
            Kind::Count(1, 10_000),
            "",
            Required,
            "How many there are in all, evenly around the axis, the first where the part stands.",
        ),
    ],
);

pub static ORIENTATION: Section = Section {
    about: "How a frame is turned. One of five ways.",
    keys: &[
        key(
            "axis",
            Kind::Direction,
            "",
            Optional("another way is used"),
            "Turned about this axis, by the right hand, …",
        ),
        key(
            "degrees",
            Kind::Number(Range::ANY),
            "degrees",
            Optional("`radians` is used"),
            "… by this angle,",
        ),
        key("radians", Kind::Number(Range::ANY), "rad", Optional("`degrees` is used"), "… or by this one."),
        key(
            "z_axis",
            Kind::Direction,
            "",
            Optional("another way is used"),
            "Turned the shortest way so that the z axis of the frame points there: for a half-space, the direction out of the wall.",
        ),
        key("quaternion", Kind::Quaternion, "", Optional("another way is used"), "[w, x, y, z]; normalised."),
        key(
            "roll_pitch_yaw_degrees",
            ANY_VECTOR,
            "degrees",
            Optional("another way is used"),
            "Turned about the fixed axes x, then y, then z.",
        ),
    ],
    variants: None,
    alternatives: &[Alternative {
        sets: &[
            &["axis", "degrees"],
            &["axis", "radians"],
            &["z_axis"],
            &["quaternion"],
            &["roll_pitch_yaw_degrees"],
        ],
        required: true,
    }],
};

pub static BODY: Section = Section {
    about: "A single body.",
    keys: &[
        key("name", Kind::Name, "", Required, "In the output. Bodies and grains all have different names."),
        key("shape", Kind::Reference(Namespace::Shape), "", Required, "What it looks like."),
        key("material", Kind::Reference(Namespace::Material), "", Required, "What it is made of."),
        key(
            "position",
            PLACES,
            "m",
            Default("[0.0, 0.0, 0.0]"),
            "Of the origin of the shape's frame, at the start.",
        ),
        key(
            "orientation",
            Kind::Table(&ORIENTATION),
            "",
            Optional("not turned"),
            "Of the shape's frame, at the start.",
        ),
    ],
    variants: Some(Variants {
        tag: "motion",
        about: "What decides how it moves.",
        default: Some("free"),
        cases: &[
            variant(
                "free",
                "By the laws of mechanics.",
                &[
                    key(
                        "velocity",
                        RATES,
                        "m/s",
                        Default("[0.0, 0.0, 0.0]"),
                        "Of the centre of mass, at the start.",
                    ),
                    key(
                        "angular_velocity",
                        RATES,
                        "rad/s",
                        Default("[0.0, 0.0, 0.0]"),
                        "At the start, in world axes.",
                    ),
                    key(
                        "mass",
                        Kind::Number(Range::MASS),
                        "kg",
                        Optional("density times volume"),
                        "Of the whole body; the inertia scales with it.",
                    ),
                ],
            ),
            variant("fixed", "It never moves.", &[]),
            variant(
                "kinematic",
                "As prescribed, whatever pushes it.",
                &[key("prescribed", Kind::Table(&PRESCRIBED), "", Required, "The motion.")],
            ),
        ],
    }),
    alternatives: &[],
};

static PRESCRIBED: Section = Section {
    about: "The motion of a kinematic body: a translation and a rotation, at least one of them. Velocities are exact derivatives.",
    keys: &[
        key(
            "position",
            Kind::Formulas(&["t"]),
            "m",
            Optional("no translation, or given by `velocity`"),
            "Displacement from `position` of the body as formulas of the time t (s), for instance `[\"0.1*sin(2*pi*5*t)\", 0, 0]`; 0 at the start, unless the body is to jump there.",
        ),
        key(
            "velocity",
            RATES,
            "m/s",
            Optional("no translation, or given by `position`"),
            "Constant velocity.",
        ),
        key(
            "rotation",
            Kind::Table(&ROTATION),
            "",
            Optional("no rotation, or given by `angular_velocity`"),
            "Rotation about a fixed axis as a formula of the time.",
        ),
        key(
            "angular_velocity",
            RATES,
            "rad/s",
            Optional("no rotation, or given by `rotation`"),
            "Constant angular velocity, in world axes.",
        ),
        key(
            "pivot",
            PLACES,
            "m",
            Optional("the body's own origin"),
            "A world point on the axis of rotation at the start; it takes part in the translation.",
        ),
    ],
    variants: None,
    alternatives: &[
        Alternative { sets: &[&["position"], &["velocity"]], required: false },
        Alternative { sets: &[&["rotation"], &["angular_velocity"]], required: false },
    ],
};

static ROTATION: Section = plain(
    "Rotation about a fixed axis.",
    &[
        key("axis", Kind::Direction, "", Required, "In world axes; right-handed."),
        key(
            "angle",
            Kind::Formula(&["t"]),
            "rad",
            Required,
            "A formula of the time t (s), for instance `\"2*pi*t\"`.",
        ),
    ],
);

/// The keys of grains that are placed loosely in a region, and some more.
macro_rules! placed {
    ($($more:expr),* $(,)?) => {
        &[
            key("count", Kind::Count(1, 1 << 40), "", Required, "How many."),
            key("seed", Kind::Count(0, i64::MAX as u64), "", Default("1"), "Of the random numbers: the same seed gives the same grains everywhere."),
            key("region", Kind::Table(&REGION), "", Required, "Where they are placed, loosely and without touching."),
            key("gap", Kind::Number(Range::within(0.0, 1e7)), "m", Default("0.0"), "Least distance between their bounding spheres."),
            key("grow", Kind::Choice(Overflow::CHOICES), "", Default("\"up\""), "What happens when they do not fit."),
            $($more),*
        ]
    };
}

pub static GRAINS: Section = Section {
    about: "A group of generated bodies.",
    keys: &[
        key("name", Kind::Name, "", Required, "In the output. Bodies and grains all have different names."),
        key("material", Kind::Reference(Namespace::Material), "", Required, "What they are made of."),
        key(
            "velocity",
            Kind::Formulas(&["x", "y", "z"]),
            "m/s",
            Default("[0.0, 0.0, 0.0]"),
            "At the start, as formulas of the place (m) of the centre of mass. Added to the velocities of a file.",
        ),
    ],
    variants: Some(Variants {
        tag: "generator",
        about: "Where they come from; the other keys depend on it.",
        default: None,
        cases: &[
            variant(
                "stones",
                "Random convex stones whose sizes follow a grading curve.",
                placed![
                    key(
                        "grading",
                        Kind::ChoiceOrTable(StandardGrading::CHOICES, &GRADING),
                        "",
                        Default("\"EN 13450 A 31.5/50\""),
                        "Sizes by mass: a standard by its name, or a curve."
                    ),
                    key(
                        "vertices",
                        Kind::Count(8, 200),
                        "",
                        Default("25"),
                        "About how many vertices a stone has."
                    ),
                    key(
                        "elongation",
                        Kind::Table(&RATIO),
                        "",
                        Default("{}"),
                        "Intermediate over longest extent."
                    ),
                    key(
                        "flatness",
                        Kind::Table(&RATIO),
                        "",
                        Default("{}"),
                        "Shortest over intermediate extent."
                    ),
                    key(
                        "roughness",
                        Kind::Number(Range::within(0.0, 0.3)),
                        "",
                        Default("0.15"),
                        "How much the faces vary in their distance from the centre; 0 for regular, rounder stones."
                    ),
                ],
            ),
            Variant {
                name: "spheres",
                about: "Balls.",
                keys: placed![
                    key(
                        "radius",
                        Kind::NumberOrSpan(Range::SIZE),
                        "m",
                        Optional("given by `grading`"),
                        "One for all, or a span that is filled evenly by number."
                    ),
                    key(
                        "grading",
                        Kind::ChoiceOrTable(StandardGrading::CHOICES, &GRADING),
                        "",
                        Optional("given by `radius`"),
                        "Diameters by mass."
                    ),
                ],
                alternatives: &[Alternative { sets: &[&["radius"], &["grading"]], required: true }],
            },
            variant(
                "shape",
                "Copies of a shape.",
                placed![
                    key("shape", Kind::Reference(Namespace::Shape), "", Required, "What they look like."),
                    key(
                        "orientation",
                        Kind::Choice(GrainOrientation::CHOICES),
                        "",
                        Default("\"random\""),
                        "How they are turned."
                    ),
                ],
            ),
            variant(
                "file",
                "Polyhedra of an HDF5 scene file (datasets `verts`, `pos0` and `quat0`, or `settled`; `tris`, `mass`, `inertia` may be missing). Triangles have to enclose the volume of the hull of `verts` within 1 %; what no body can have, a negative mass for instance, is refused.",
                &[
                    key("file", Kind::File, "", Required, "The scene."),
                    key(
                        "state",
                        Kind::Choice(FileState::CHOICES),
                        "",
                        Default("\"initial\""),
                        "Which of its states.",
                    ),
                    key("offset", PLACES, "m", Default("[0.0, 0.0, 0.0]"), "Added to all positions."),
                    key(
                        "properties",
                        Kind::Choice(FileProperties::CHOICES),
                        "",
                        Default("\"compared\""),
                        "Where mass and inertia come from.",
                    ),
                ],
            ),
        ],
    }),
    alternatives: &[],
};

static RATIO: Section = plain(
    "A ratio of lengths that varies from stone to stone. Drawn values stay within three standard deviations, and within 0.2 and 1.",
    &[
        key("mean", Kind::Number(Range::within(0.3, 1.0)), "", Default("0.7"), "In the middle."),
        key(
            "standard_deviation",
            Kind::Number(Range::within(0.0, 0.3)),
            "",
            Default("0.1"),
            "Spread; 0 gives all stones the mean.",
        ),
    ],
);

static REGION: Section = plain(
    "A box along the world axes.",
    &[
        key("min", PLACES, "m", Required, "Its lowest corner."),
        key("max", PLACES, "m", Required, "Its highest corner."),
    ],
);

static GRADING: Section = plain(
    "A grading curve.",
    &[
        key(
            "sieve",
            Kind::Numbers(Range::SIZE, 2),
            "m",
            Required,
            "Sizes of square sieve openings, increasing.",
        ),
        key(
            "passing",
            Kind::Numbers(Range::within(0.0, 100.0), 2),
            "%",
            Required,
            "Share by mass that passes each sieve, from 0 to 100, not decreasing.",
        ),
    ],
);
