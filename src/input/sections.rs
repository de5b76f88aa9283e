//! Every key of a case file: what it means, its unit, its default, what it may be.
//!
//! These lists are the manual (`docs/case-file.md`), the JSON Schema (`breccia schema`) and what the reader
//! checks against.

use crate::formula::Interpolation;
use crate::input::bodies::sections::{BODY, GRAINS, SHAPE};
use crate::input::case::OnWriteError;
use crate::input::contacts::CONTACT;
use crate::input::language::keys::{Alternative, Key, Kind, Namespace, Need, Range, Section};
use crate::input::machine::sections::MACHINE;
use crate::output::{BodyField, ContactDrawing, Precision, Spheres};
use crate::solve::assembled::Method;
use crate::solve::{Acceleration, Fallback, LocalLaw, Measure};
use crate::words::Choose;
use Need::{Default, Optional, Required};

pub(super) const fn key(
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    need: Need,
    about: &'static str,
) -> Key {
    Key { name, kind, unit, need, about }
}

pub(super) const fn plain(about: &'static str, keys: &'static [Key]) -> Section {
    Section { about, keys, variants: None, alternatives: &[] }
}

pub static CASE: Section = plain(
    "The whole file.",
    &[
        key("title", Kind::Text, "", Default("\"\""), "Shown in the log."),
        key("include", Kind::Files, "", Optional("nothing is included"), INCLUDE),
        key("set", Kind::Settings, "", Optional("nothing is changed"), SETTINGS),
        key("parameters", Kind::Parameters, "", Optional("no names but `pi`"), PARAMETERS),
        key(
            "table",
            Kind::Tables(&TABLE, 0),
            "",
            Optional("no tables"),
            "Functions given by points, one `[[table]]` each.",
        ),
        key("simulation", Kind::Table(&SIMULATION), "", Required, "Time and gravity."),
        key(
            "solver",
            Kind::Table(&SOLVER),
            "",
            Default("{}"),
            "How the contact problem of each step is solved.",
        ),
        key("material", Kind::Tables(&MATERIAL, 0), "", Optional("no materials"), "One `[[material]]` each."),
        key(
            "contact",
            Kind::Tables(&CONTACT, 0),
            "",
            Optional("no pairs"),
            "What holds between two materials, one `[[contact]]` for every pair that can meet.",
        ),
        key(
            "shape",
            Kind::Tables(&SHAPE, 0),
            "",
            Optional("no shapes"),
            "Shapes that bodies and grains refer to, one `[[shape]]` each.",
        ),
        key(
            "body",
            Kind::Tables(&BODY, 0),
            "",
            Optional("no single bodies"),
            "Single bodies, one `[[body]]` each.",
        ),
        key(
            "grains",
            Kind::Tables(&GRAINS, 0),
            "",
            Optional("no generated grains"),
            "Many bodies at once, one `[[grains]]` per group.",
        ),
        key(
            "machine",
            Kind::Tables(&MACHINE, 0),
            "",
            Optional("no machines"),
            "Articulated mechanisms, one `[[machine]]` each. `breccia check` prints them.",
        ),
        key(
            "region",
            Kind::Tables(&WATCHED, 0),
            "",
            Optional("no regions"),
            "Boxes that are watched, one `[[region]]` each.",
        ),
        key(
            "start",
            Kind::Table(&START),
            "",
            Optional("only the bodies of this file"),
            "Bodies from the final state of another run.",
        ),
        key("output", Kind::Table(&OUTPUT), "", Default("{}"), "What is written."),
        key(
            "checkpoint",
            Kind::Table(&CHECKPOINT),
            "",
            Default("{}"),
            "When the state is saved so that a run can go on after a kill.",
        ),
        key(
            "decomposition",
            Kind::Table(&DECOMPOSITION),
            "",
            Default("{}"),
            "How space is shared among ranks. Results do not depend on it.",
        ),
    ],
);

pub static WATCHED: Section = plain(
    "A box in which it is measured how densely grains lie. The series has for each its solid fraction (volume of grains by volume of the \
     box, parts of grains included), its coordination number (bodies that press on a grain, on average over the grains whose centres \
     are in the box) and the number of these grains.",
    &[
        key("name", Kind::Name, "", Required, "In the series: `region/<name>.solid_fraction`."),
        key("min", Kind::Vector(Range::PLACE), "m", Required, "Its lowest corner."),
        key("max", Kind::Vector(Range::PLACE), "m", Required, "Its highest corner."),
    ],
);

const SETTINGS: &str = "Values put in place of those of included files, by key path in quotes: `\"machine.crane.joint.lift.prescribed\" = \"0.1*t\"`. \
    Paths are those of `--set`, which comes after it.";

const INCLUDE: &str = "Files whose parameters, tables, materials, contacts, shapes, bodies, grains, machines and regions are taken as if they stood in this one, \
    for instance a machine that several cases use. Relative paths start from the folder of the file in which they stand. Of parameters that \
    both set, this file's hold.";

const PARAMETERS: &str = "Named numbers for use in formulas, for instance `mu = 0.5`. A parameter may be a formula of the parameters above it. \
    Names have letters, digits and `_`, and differ from `t`, `x`, `y`, `z`, `pi`, the functions and the tables.";

static TABLE: Section = Section {
    about: "A function of one argument given by points. Formulas call it by its name: with `name = \"lift\"`, `\"0.1*lift(t)\"`. \
        Before the first and after the last point the end values hold.",
    keys: &[
        key("name", Kind::Identifier, "", Required, "By which formulas call it."),
        key(
            "interpolation",
            Kind::Choice(Interpolation::CHOICES),
            "",
            Default("\"linear\""),
            "Between the points.",
        ),
        key(
            "arguments",
            Kind::Numbers(Range::ANY, 2),
            "",
            Optional("given by `file`"),
            "Where the points are, increasing, for instance times in s.",
        ),
        key(
            "values",
            Kind::Numbers(Range::ANY, 2),
            "",
            Optional("given by `file`"),
            "One for each argument.",
        ),
        key(
            "file",
            Kind::File,
            "",
            Optional("given by `arguments` and `values`"),
            "A text file of columns separated by commas, semicolons, tabs or spaces; a heading line and lines that start with `#` are passed over.",
        ),
        key(
            "columns",
            Kind::CountPair(1, 1000),
            "",
            Default("[1, 2]"),
            "The columns of the file that hold arguments and values, counted from 1.",
        ),
    ],
    variants: None,
    alternatives: &[Alternative { sets: &[&["arguments", "values"], &["file"]], required: true }],
};

static SIMULATION: Section = plain(
    "Time and gravity.",
    &[
        key("time_step", Kind::Number(Range::POSITIVE), "s", Required, "Constant throughout the run."),
        key(
            "duration",
            Kind::Number(Range::POSITIVE),
            "s",
            Required,
            "The run ends this long after `start_time`.",
        ),
        key(
            "start_time",
            Kind::Number(Range::ANY),
            "s",
            Default("0.0"),
            "The time `t` at which the run starts.",
        ),
        key(
            "theta",
            Kind::Number(Range::within(0.5, 1.0)),
            "",
            Default("0.5"),
            "Of the theta scheme: contacts are looked for and forces taken (1 - theta) of a step after its start. 0.5 is of second order, other values of first. Forces are explicit whatever theta is: none damps, and a spring wants omega h < 2.",
        ),
        key(
            "gravity",
            Kind::Formulas(&["t"]),
            "m/s²",
            Default("[0.0, 0.0, -9.81]"),
            "Acceleration of every free body; may change with time, for instance to tilt a box.",
        ),
        key(
            "maximum_speed",
            Kind::Number(Range::POSITIVE),
            "m/s",
            Optional(
                "through the whole scene in a step, and ten times the fastest body at the start and a free fall as long as the run; at least 100",
            ),
            "A run in which a body or its surface gets faster has exploded: it ends before that step is taken, with a checkpoint.",
        ),
    ],
);

static SOLVER: Section = plain(
    "How the contact problem of each step is solved.",
    &[
        key(
            "tolerance",
            Kind::Number(Range::POSITIVE),
            "",
            Default("1e-3"),
            "Sweeps stop when the relative natural-map residual is below this.",
        ),
        key(
            "force_tolerance",
            Kind::Number(Range::within(1e-4, 0.5)),
            "",
            Optional("the tolerance above holds all along"),
            "The run tightens the tolerance, and loosens it again up to the one above, so that the error of the worst force in a step stays below this share of the force. Needs `output.force_check`, after each of which it is chosen anew.",
        ),
        key(
            "measure",
            Kind::Choice(Measure::CHOICES),
            "",
            Default("\"fclib\""),
            "How the contact points are weighted in the residual.",
        ),
        key(
            "maximum_sweeps",
            Kind::Count(1, 1_000_000_000),
            "",
            Default("2000"),
            "Sweeps stop here even if the tolerance is not met; the log and the output then say so.",
        ),
        key(
            "check_every",
            Kind::Count(1, 1_000_000_000),
            "",
            Default("5"),
            "Sweeps between two evaluations of the residual; twice as many after the first twenty of them, fewer where the tolerance seems near.",
        ),
        key("warm_start", Kind::Flag, "", Default("true"), "Start from the impulses of the last step."),
        key(
            "local_law",
            Kind::Choice(LocalLaw::CHOICES),
            "",
            Default("\"projected\""),
            "How one contact is solved within a sweep.",
        ),
        key(
            "acceleration",
            Kind::Choice(Acceleration::CHOICES),
            "",
            Default("\"momentum\""),
            "What is done between sweeps to need fewer.",
        ),
        key(
            "method",
            Kind::Choice(Option::<Method>::CHOICES),
            "",
            Default("\"coloured\""),
            "What solves the contact problem. All but the first are for small problems: W is assembled on one rank, and `measure`, `check_every`, `local_law` and `acceleration` do not matter.",
        ),
        key(
            "fallback",
            Kind::Choice(Fallback::CHOICES),
            "",
            Default("\"none\""),
            "What gets the steps that the sweeps have missed. What it finds is measured as sweeps are, and taken if it is better.",
        ),
        key(
            "fallback_points",
            Kind::Count(1, 1_000_000_000),
            "",
            Default("20000"),
            "Steps with more contact points are not handed over: their problem stands on one rank.",
        ),
        key(
            "fallback_steps",
            Kind::Count(1, 1_000_000_000),
            "",
            Default("1000"),
            "So many steps of a run are handed over at most; the others stay as the sweeps have left them.",
        ),
        key(
            "penetration_correction",
            Kind::Number(Range::within(0.0, 1.0)),
            "",
            Default("0.0"),
            "Share of the penetration beyond `correction_slop` that is removed in each step without adding energy; 0 is off.",
        ),
        key(
            "correction_slop",
            Kind::Number(Range::within(0.0, 1e7)),
            "m",
            Default("0.0"),
            "Penetration that the correction leaves alone.",
        ),
        key(
            "penetration_limit",
            Kind::Number(Range::within(0.0, 1e7)),
            "m",
            Default("0.0"),
            "Impacts of gap-activated contacts act at their own time within the step, and bodies that still overlap deeper than this at its end are moved apart to half of it, in positions only; 0 is off. Costs a second search for contacts.",
        ),
        key(
            "patch_reuse",
            Kind::Number(Range::within(0.0, 1e-2)),
            "",
            Default("1e-4"),
            "How far a polyhedron may move, by its bounding radius, before its contacts with other polyhedra are worked out anew; until then they are carried along to first order. 0: in every step.",
        ),
        key(
            "contact_margin",
            Kind::Number(Range::SIZE),
            "m",
            Optional("chosen from sizes and speeds"),
            "Pairs nearer than this are kept as possible contacts.",
        ),
    ],
);

static MATERIAL: Section = plain(
    "A material.",
    &[
        key("name", Kind::Name, "", Required, "By which bodies, grains and contacts refer to it."),
        key(
            "density",
            Kind::Number(Range::DENSITY),
            "kg/m³",
            Required,
            "Of the solid. Of no effect on fixed and kinematic bodies.",
        ),
    ],
);

static START: Section = plain(
    "Bodies from the final state of another run: deposit first, then act on the deposit.",
    &[
        key(
            "from",
            Kind::File,
            "",
            Required,
            "The final state that the other run wrote. It need not be there yet when the case is checked.",
        ),
        key(
            "groups",
            Kind::Names,
            "",
            Optional("every free body"),
            "Names of the [[body]] and [[grains]] of the other case whose bodies are taken.",
        ),
        key(
            "material",
            Kind::Reference(Namespace::Material),
            "",
            Optional("the material of the same name"),
            "Of the bodies that are taken.",
        ),
        key("keep_velocities", Kind::Flag, "", Default("true"), "Otherwise they start at rest."),
        key(
            "copies",
            Kind::CountPair(1, 10_000),
            "",
            Default("[1, 1]"),
            "How often they are laid side by side along x and along y, about where they were: a small deposit makes a large one.",
        ),
        key(
            "spacing",
            Kind::Numbers(Range::SIZE, 2),
            "m",
            Optional("only right without copies"),
            "From one copy to the next along x and along y: the size of the box that the other run filled.",
        ),
    ],
);

static OUTPUT: Section = plain(
    "What is written.",
    &[
        key(
            "interval",
            Kind::Number(Range::POSITIVE),
            "s",
            Optional("only the final state"),
            "Time between pictures for ParaView.",
        ),
        key(
            "series_interval",
            Kind::Number(Range::POSITIVE),
            "s",
            Optional("every step"),
            "Time between rows of the time series (energies, sweeps, residual, forces on walls and tools).",
        ),
        key(
            "force_check",
            Kind::Number(Range::POSITIVE),
            "s",
            Optional("no estimates"),
            "Time between estimates of the errors of all forces, by solving the next steps again to high accuracy (`force_errors.csv`).",
        ),
        key(
            "force_window",
            Kind::Number(Range::POSITIVE),
            "s",
            Default("0.01"),
            "Time over which forces are averaged for these estimates; errors of single steps are given beside them.",
        ),
        key(
            "force_accuracy",
            Kind::Number(Range::within(1e-6, 0.5)),
            "",
            Default("0.01"),
            "Tolerance of the accurate solves for these estimates, by that of the run.",
        ),
        key(
            "fields",
            Kind::Choices(BodyField::CHOICES),
            "",
            Default("[\"id\", \"group\", \"velocity\", \"angular_velocity\"]"),
            "Arrays on the bodies.",
        ),
        key(
            "contacts",
            Kind::Choice(Option::<ContactDrawing>::CHOICES),
            "",
            Default("\"points\""),
            "The contact network.",
        ),
        key("spheres", Kind::Choice(Spheres::CHOICES), "", Default("\"surface\""), "How spheres are drawn."),
        key(
            "sphere_refinement",
            Kind::Count(0, 4),
            "",
            Default("1"),
            "Of the triangles of a sphere: 12, 42, 162, 642, 2562 points.",
        ),
        key(
            "precision",
            Kind::Choice(Precision::CHOICES),
            "",
            Default("\"f32\""),
            "Of the pictures; final states are always written in full.",
        ),
        key("compression", Kind::Count(0, 9), "", Default("4"), "Deflate level; 0 is off."),
        key(
            "on_write_error",
            Kind::Choice(OnWriteError::CHOICES),
            "",
            Default("\"stop\""),
            "When the disk is full or a directory is gone.",
        ),
    ],
);

static CHECKPOINT: Section = plain(
    "When the state is saved so that a run can go on after a kill. There is also a checkpoint at the end, and when SIGTERM, SIGUSR1 or \
        Ctrl-C stops the run. `breccia run CASE --restart auto` goes on from the last one.",
    &[
        key(
            "minutes",
            Kind::Number(Range::NOT_NEGATIVE),
            "min",
            Default("30.0"),
            "Wall time between checkpoints; 0 is never.",
        ),
        key(
            "steps",
            Kind::Count(1, 1_000_000_000_000),
            "",
            Optional("only by wall time"),
            "Steps between checkpoints.",
        ),
        key("keep", Kind::Count(1, 1_000_000), "", Default("2"), "The last so many are kept."),
    ],
);

static DECOMPOSITION: Section = plain(
    "How space is shared among ranks.",
    &[
        key(
            "imbalance_threshold",
            Kind::Number(Range::at_least(1.0)),
            "",
            Default("1.2"),
            "Largest by mean work of the ranks above which space is cut anew.",
        ),
        key(
            "cell_size",
            Kind::Number(Range::SIZE),
            "m",
            Optional("chosen from the sizes of the bodies"),
            "Edge of the cells that are shared out.",
        ),
    ],
);
