//! Formulas that a user writes: `"0.1*sin(2*pi*5*t)"`.
//!
//! A formula is compiled once into a postfix program over a value stack and then evaluated without allocation
//! for usual sizes. The same program runs on values with their derivatives, so these are exact, not
//! differences.
//!
//! Grammar, loosest binding first; `^` is right-associative and binds tighter than the sign before it, as in
//! mathematics (−2^2 = −4, 2^3^2 = 512):
//!
//! ```text
//! or  and  not  (< <= > >= == !=)  (+ -)  (* /)  (sign)  ^
//! ```
//!
//! Truth is a number: a comparison gives 1 or 0, and everything but 0 counts as true. Calls are
//! `name(argument, …)`; the functions are listed in [`functions`], and tables of the case are functions of
//! one argument. Length and nesting are limited, so no text can exhaust the stack or the time of its reader.

use super::parse;
use super::program::Program;
use super::table::Table;
use crate::words::one_of;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// Longest text that is compiled, in bytes.
pub const MAXIMUM_LENGTH: usize = 4096;
/// Deepest nesting of parentheses, calls, signs and powers.
pub const MAXIMUM_DEPTH: usize = 64;

/// What a formula may name beside its variables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// Named numbers; they are folded into the program. `pi` is always known.
    pub constants: BTreeMap<String, f64>,
    /// Named functions of one argument.
    pub tables: BTreeMap<String, Arc<Table>>,
}

/// A compiled formula.
#[derive(Clone, PartialEq)]
pub struct Expression {
    text: String,
    variables: Vec<String>,
    program: Program,
}

impl Expression {
    /// Compiles `text`; `variables` are the names whose values `evaluate` takes, in that order.
    pub fn compile(text: &str, variables: &[&str], scope: &Scope) -> Result<Self, ExpressionError> {
        let program = parse::compile(text, variables, scope)?;
        let variables = variables.iter().map(|name| name.to_string()).collect();
        Ok(Self { text: text.to_string(), variables, program })
    }

    /// The formula that has one value everywhere.
    pub fn constant(value: f64) -> Self {
        Self { text: format!("{value:?}"), variables: Vec::new(), program: Program::constant(value) }
    }

    /// The value at `variables`, given in the order of `compile`. Never panics; a division by zero or the
    /// root of a negative number gives what IEEE 754 gives. A variable that is left out counts as NaN.
    pub fn evaluate(&self, variables: &[f64]) -> f64 {
        self.program.evaluate(variables)
    }

    /// The value, and its derivative with respect to the variable at `index`. At a kink (`abs`, `min`,
    /// `step`, …) the derivative is that of one of the two sides; jumps have the derivative of their flanks.
    pub fn evaluate_with_derivative(&self, variables: &[f64], index: usize) -> (f64, f64) {
        let [value, first, _] = self.evaluate_with_derivatives(variables, index);
        (value, first)
    }

    /// The same with the second derivative: value, first, second.
    pub fn evaluate_with_derivatives(&self, variables: &[f64], index: usize) -> [f64; 3] {
        self.program.evaluate_with_derivatives(variables, index)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names that were declared, in the order in which `evaluate` takes their values.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The value, if no variable and no table takes part in it.
    pub fn as_constant(&self) -> Option<f64> {
        self.program.as_constant()
    }

    /// The same formula of only those variables that it reads, in the order in which they were declared.
    pub fn compact(&self) -> Expression {
        let (program, used) = self.program.compact();
        let name = |&index: &usize| self.variables.get(index).cloned().unwrap_or_default();
        Self { text: self.text.clone(), variables: used.iter().map(name).collect(), program }
    }

    /// Whether the value can depend on the variable at `index`.
    pub fn depends_on(&self, index: usize) -> bool {
        self.program.depends_on(index)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Expression({:?})", self.text)
    }
}

/// Why a text is not a formula, and where: `at` is a byte offset into the text.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{problem}")]
pub struct ExpressionError {
    pub at: usize,
    pub length: usize,
    pub problem: ExpressionProblem,
}

#[derive(Clone, Debug, PartialEq, Error)]
pub enum ExpressionProblem {
    #[error("found an empty expression, expected a formula such as \"2*pi\"")]
    Empty,
    #[error("found an expression of {0} bytes, expected at most {MAXIMUM_LENGTH}")]
    TooLong(usize),
    #[error("found an expression nested deeper than {MAXIMUM_DEPTH}, expected a flatter one")]
    TooDeep,
    #[error("found {found}, expected {expected}")]
    Unexpected { found: String, expected: &'static str },
    #[error("found the unknown name `{name}`, expected {}", known_names(.name, .known, .suggestion))]
    UnknownName { name: String, known: Vec<String>, suggestion: Option<String> },
    #[error("found the unknown function `{name}`, expected {}", known_names(.name, .known, .suggestion))]
    UnknownFunction { name: String, known: Vec<String>, suggestion: Option<String> },
    #[error("found {found} argument(s) of `{function}`, expected {expected}")]
    Arguments { function: String, found: usize, expected: String },
    #[error("found the function `{0}` without arguments, expected `{0}(…)`")]
    NotCalled(String),
}

fn known_names(name: &str, known: &[String], suggestion: &Option<String>) -> String {
    let list = one_of(name, known.iter().map(String::as_str), str::to_string);
    match suggestion {
        Some(name) => format!("{list}; did you mean `{name}`?"),
        None => list,
    }
}
