//! What a user may write in place of a number: formulas and tables, with exact derivatives, and motions made
//! of them. Knows nothing of case files.

mod expression;
mod jet;
mod motion;
mod parse;
mod program;
mod table;
#[cfg(test)]
mod tests;
mod vector;

pub use expression::{Expression, ExpressionError, ExpressionProblem, Scope};
pub use motion::{Motion, MotionState};
pub use program::functions;
pub(crate) use table::columns;
pub use table::{Interpolation, Table, TableError};
pub use vector::VectorFormula;
