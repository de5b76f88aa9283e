//! The language in which the keys of a case file are listed.
//!
//! A [`Section`] is a table of the file, a [`Key`] one of its keys with kind, unit, default and meaning. The
//! reader, the JSON Schema and the manual all walk the same lists (in `sections.rs`), so they cannot drift
//! apart.

use crate::words::Choice;

/// A table of the case file.
pub struct Section {
    pub about: &'static str,
    pub keys: &'static [Key],
    /// Keys that depend on the value of one key, for instance on the `kind` of a shape.
    pub variants: Option<Variants>,
    /// Keys of which one set may be given.
    pub alternatives: &'static [Alternative],
}

/// Sets of keys that exclude each other.
pub struct Alternative {
    pub sets: &'static [&'static [&'static str]],
    /// Whether one set must be there.
    pub required: bool,
}

pub struct Variants {
    /// The key that decides.
    pub tag: &'static str,
    pub about: &'static str,
    pub default: Option<&'static str>,
    pub cases: &'static [Variant],
}

pub struct Variant {
    pub name: &'static str,
    pub about: &'static str,
    pub keys: &'static [Key],
    pub alternatives: &'static [Alternative],
}

pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    /// SI; empty where there is none.
    pub unit: &'static str,
    pub need: Need,
    pub about: &'static str,
}

/// What happens when a key is left out.
pub enum Need {
    Required,
    /// This TOML value is read in its place, with the same checks.
    Default(&'static str),
    /// What then holds, in words.
    Optional(&'static str),
}

/// What a reference names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Namespace {
    Material,
    Shape,
}

pub enum Kind {
    Text,
    /// A name that other keys and the output refer to: letters, digits, `_`, `-`.
    Name,
    /// A name that formulas can use: letters, digits, `_`, not starting with a digit.
    Identifier,
    /// Path of a file, relative to the folder of the file that names it.
    File,
    /// One such path, or a list of them.
    Files,
    Flag,
    Number(Range),
    Count(u64, u64),
    /// Three numbers.
    Vector(Range),
    /// Three numbers, not all zero; only the direction counts.
    Direction,
    /// w, x, y, z, not all zero; normalised.
    Quaternion,
    /// A list of numbers of at least this length.
    Numbers(Range, usize),
    /// A list of exactly this many numbers.
    Exactly(Range, usize),
    /// Two counts.
    CountPair(u64, u64),
    /// A number, or [smallest, largest].
    NumberOrSpan(Range),
    /// A list of at least this many points, in the range of places.
    Points(usize),
    Choice(&'static [Choice]),
    /// A list of different words.
    Choices(&'static [Choice]),
    /// A number or a formula of these variables.
    Formula(&'static [&'static str]),
    /// Three of them.
    Formulas(&'static [&'static str]),
    Reference(Namespace),
    ReferencePair(Namespace),
    /// A list of names of another run.
    Names,
    Table(&'static Section),
    /// A list of tables of at least this length.
    Tables(&'static Section, usize),
    ChoiceOrTable(&'static [Choice], &'static Section),
    /// Named numbers.
    Parameters,
    /// Values of any kind by key paths.
    Settings,
    /// A word, two, or a list of them, that names something within the same machine: what, in words.
    Part(&'static str),
    PartPair(&'static str),
    PartList(&'static str),
    /// [Ixx, Iyy, Izz], or [Ixx, Iyy, Izz, Ixy, Iyz, Izx].
    Inertia,
    NamedPoints,
    /// A place in a body: a point, the name of one, or a table with an orientation, too.
    Frame(&'static Section),
    /// A number or a formula of what a machine knows: t, positions, velocities, quantities.
    Law,
    /// The same, or a table of such by names: what the names are, in words.
    LawOrNamed(&'static str),
    /// Formulas by names, in their order.
    NamedLaws,
}

/// The numbers that a key takes. All are finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    pub low: f64,
    pub low_open: bool,
    pub high: f64,
}

impl Range {
    pub const ANY: Range = Range { low: f64::NEG_INFINITY, low_open: false, high: f64::INFINITY };
    pub const POSITIVE: Range = Range { low: 0.0, low_open: true, high: f64::INFINITY };
    pub const NOT_NEGATIVE: Range = Range { low: 0.0, low_open: false, high: f64::INFINITY };

    /// Sizes, m. Beyond, squares and volumes leave what doubles can distinguish.
    pub const SIZE: Range = Range::within(1e-9, 1e7);
    /// Coordinates, m.
    pub const PLACE: Range = Range::within(-1e7, 1e7);
    /// Components of velocities, m/s or rad/s.
    pub const RATE: Range = Range::within(-1e7, 1e7);
    /// Densities, kg/m³.
    pub const DENSITY: Range = Range::within(1e-9, 1e12);
    /// Masses, kg.
    pub const MASS: Range = Range::within(1e-30, 1e30);

    pub const fn within(low: f64, high: f64) -> Range {
        Range { low, low_open: false, high }
    }

    pub const fn at_least(low: f64) -> Range {
        Range { low, low_open: false, high: f64::INFINITY }
    }

    pub fn contains(&self, value: f64) -> bool {
        let above = if self.low_open { value > self.low } else { value >= self.low };
        value.is_finite() && above && value <= self.high
    }

    /// For instance " > 0", " in [0.5, 1]", or nothing.
    pub fn describe(&self) -> String {
        let [low, high] = [self.low, self.high].map(short);
        match (self.low.is_finite(), self.high.is_finite()) {
            (false, false) => String::new(),
            (true, false) if self.low_open => format!(" > {low}"),
            (true, false) => format!(" ≥ {low}"),
            (false, true) => format!(" ≤ {high}"),
            (true, true) => format!(" in {}{low}, {high}]", if self.low_open { "(" } else { "[" }),
        }
    }
}

impl Namespace {
    pub fn noun(self) -> &'static str {
        match self {
            Namespace::Material => "material",
            Namespace::Shape => "shape",
        }
    }
}

impl Kind {
    /// The section of the tables that a value may hold.
    pub fn section(&self) -> Option<&'static Section> {
        match self {
            Kind::Table(section) | Kind::Tables(section, _) => Some(section),
            Kind::ChoiceOrTable(_, section) | Kind::Frame(section) => Some(section),
            _ => None,
        }
    }

    /// What would be right, in words.
    pub fn describe(&self) -> String {
        let list = |choices: &[Choice]| {
            choices.iter().map(|choice| format!("\"{}\"", choice.name)).collect::<Vec<_>>().join(", ")
        };
        match self {
            Kind::Text => "a text".to_string(),
            Kind::Name => "a name of letters, digits, `_` and `-`".to_string(),
            Kind::Identifier => {
                "a name of letters, digits and `_` that does not start with a digit".to_string()
            }
            Kind::File => "the path of a file".to_string(),
            Kind::Files => "the path of a file, or a list of paths".to_string(),
            Kind::Flag => "true or false".to_string(),
            Kind::Number(range) => format!("a number{}", range.describe()),
            Kind::Count(low, high) => format!("an integer in [{low}, {high}]"),
            Kind::Vector(range) => format!("three numbers [x, y, z]{}", each(range)),
            Kind::Direction => "a direction [x, y, z], not all zero".to_string(),
            Kind::Quaternion => "a quaternion [w, x, y, z], not all zero".to_string(),
            Kind::Numbers(range, count) => format!("a list of at least {count} numbers{}", each(range)),
            Kind::Exactly(range, count) => format!("a list of {count} numbers{}", each(range)),
            Kind::CountPair(low, high) => format!("two integers in [{low}, {high}]"),
            Kind::NumberOrSpan(range) => {
                format!("a number{0}, or [smallest, largest]{1}", range.describe(), each(range))
            }
            Kind::Points(count) => format!("a list of at least {count} points [x, y, z]"),
            Kind::Choice(choices) => format!("one of {}", list(choices)),
            Kind::Choices(choices) => format!("a list of some of {}", list(choices)),
            Kind::Formula(variables) => format!("a number or a formula of {}", variables.join(", ")),
            Kind::Formulas(variables) => format!("three numbers or formulas of {}", variables.join(", ")),
            Kind::Reference(names) => format!("the name of a [[{}]]", names.noun()),
            Kind::ReferencePair(names) => format!("the names of two [[{}]]", names.noun()),
            Kind::Names => "a list of names".to_string(),
            Kind::Table(_) => "a table".to_string(),
            Kind::Tables(_, 0) => "a list of tables".to_string(),
            Kind::Tables(_, count) => format!("a list of at least {count} table(s)"),
            Kind::ChoiceOrTable(choices, _) => format!("a table or one of {}", list(choices)),
            Kind::Parameters => "a table of named numbers".to_string(),
            Kind::Settings => "a table of values by key paths in quotes".to_string(),
            Kind::Part(what) => format!("the name of {what}"),
            Kind::PartPair(what) => format!("the names of two, each {what}"),
            Kind::PartList(what) => format!("a list of names, each {what}"),
            Kind::Inertia => "[Ixx, Iyy, Izz], or [Ixx, Iyy, Izz, Ixy, Iyz, Izx]".to_string(),
            Kind::NamedPoints => "a table of named points [x, y, z]".to_string(),
            Kind::Frame(_) => "a point [x, y, z], the name of a point of the body, or a table".to_string(),
            Kind::Law => "a number or a formula".to_string(),
            Kind::LawOrNamed(what) => format!("a number or a formula, or a table of one for each {what}"),
            Kind::NamedLaws => "a table of named formulas".to_string(),
        }
    }
}

/// A number without long rows of zeros.
fn short(number: f64) -> String {
    if number == 0.0 || (1e-3..1e5).contains(&number.abs()) {
        format!("{number}")
    } else {
        format!("{number:e}")
    }
}

fn each(range: &Range) -> String {
    match range.describe() {
        text if text.is_empty() => text,
        text => format!(", each{text}"),
    }
}

impl Section {
    /// Common keys, then those of every variant.
    pub fn all_keys(&self) -> impl Iterator<Item = &'static Key> {
        let cases = self.variants.as_ref().map_or(&[][..], |variants| variants.cases);
        self.keys.iter().chain(cases.iter().flat_map(|case| case.keys.iter()))
    }
}
