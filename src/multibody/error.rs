//! What can be wrong with a machine: its description, or its motion.

use thiserror::Error;

/// A machine description that cannot be built.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ModelError {
    #[error("the name `{0}` is empty, reserved, or holds a dot")]
    BadName(String),
    #[error("two {what} share the name `{name}`")]
    Duplicate { what: &'static str, name: String },
    #[error("{user} refers to {what} `{name}`, which does not exist{}", suggestion(.known))]
    Unknown { user: String, what: &'static str, name: String, known: Vec<String> },
    #[error("body `{body}`: {problem}")]
    BadBody { body: String, problem: String },
    #[error("joint `{joint}`: {problem}")]
    BadJoint { joint: String, problem: String },
    #[error("body `{body}` has no joint that carries it")]
    NotAttached { body: String },
    #[error("body `{body}` is carried by both `{first}` and `{second}`: close loops with a cut instead")]
    CarriedTwice { body: String, first: String, second: String },
    #[error(
        "the joints of bodies {bodies:?} form a ring that never reaches the ground: cut it and close it with a loop"
    )]
    Ring { bodies: Vec<String> },
    #[error("cut `{cut}`: {problem}")]
    BadCut { cut: String, problem: String },
    #[error("force `{force}`: {problem}")]
    BadForce { force: String, problem: String },
    #[error("coordinate `{coordinate}` cannot be prescribed: {problem}")]
    BadPrescription { coordinate: String, problem: String },
    #[error("a machine needs at least one body")]
    Empty,
    #[error("{what} must be finite")]
    NotFinite { what: String },
}

fn suggestion(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!(" (there are: {})", known.join(", ")) }
}

/// A mechanism that cannot move as asked.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum MultibodyError {
    #[error("the mechanism cannot be assembled: loop `{cut}` stays open by {open_by:.3e} (m or rad)")]
    CannotBeAssembled { cut: String, open_by: f64 },
    #[error(
        "loop `{cut}` could not be closed: open by {open_by:.3e} (m or rad) after {iterations} iterations"
    )]
    CannotBeClosed { cut: String, open_by: f64, iterations: usize },
    #[error("the mechanism is at a singular position of loop `{cut}` (pivot {pivot:.1e} of 1)")]
    Singular { cut: String, pivot: f64 },
    #[error(
        "loop `{cut}` is closed twice over by incompatible constraints: a redundant one is off by {off_by:.3e} (m or rad)"
    )]
    Incompatible { cut: String, off_by: f64 },
    #[error(
        "the coordinates {coordinates:?} cannot be the dependent ones: the loops need {needed} of them, {problem}"
    )]
    BadPartition { coordinates: Vec<String>, needed: usize, problem: String },
    #[error(
        "the reduced mass matrix is not positive definite: coordinate `{coordinate}` moves no mass; \
         give a body that it moves a mass, or moments about its axis"
    )]
    Massless { coordinate: String },
    #[error("{what} has {given} entries instead of {needed}")]
    WrongLength { what: &'static str, given: usize, needed: usize },
    #[error("{what} is not a number")]
    NotANumber { what: String },
}

impl MultibodyError {
    /// The cut of the loop that it is about.
    pub fn cut(&self) -> Option<&str> {
        match self {
            Self::CannotBeAssembled { cut, .. }
            | Self::CannotBeClosed { cut, .. }
            | Self::Singular { cut, .. }
            | Self::Incompatible { cut, .. } => Some(cut),
            _ => None,
        }
    }
}
