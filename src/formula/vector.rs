//! Vectors of formulas.

use super::Expression;
use crate::geometry::Vec3;

/// A vector of three formulas of the same variables.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorFormula(pub [Expression; 3]);

impl VectorFormula {
    pub fn constant(value: Vec3) -> Self {
        Self([0, 1, 2].map(|k| Expression::constant(value[k])))
    }

    pub fn evaluate(&self, variables: &[f64]) -> Vec3 {
        Vec3::from_fn(|k, _| self.0[k].evaluate(variables))
    }

    /// The vector, and its derivative with respect to the variable at `index`.
    pub fn evaluate_with_derivative(&self, variables: &[f64], index: usize) -> (Vec3, Vec3) {
        let parts = [0, 1, 2].map(|k| self.0[k].evaluate_with_derivative(variables, index));
        (Vec3::from(parts.map(|part| part.0)), Vec3::from(parts.map(|part| part.1)))
    }

    /// The vector, if it depends on nothing.
    pub fn as_constant(&self) -> Option<Vec3> {
        let [x, y, z] = &self.0;
        Some(Vec3::new(x.as_constant()?, y.as_constant()?, z.as_constant()?))
    }
}
