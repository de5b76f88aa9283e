//! A value with its first and second derivative with respect to one variable: forward differentiation.
//!
//! For f(x) and f(x, y) with x' and x'' known,
//!
//! ```text
//! f' = f_x x' + f_y y'
//! f'' = f_xx x'² + 2 f_xy x' y' + f_yy y'² + f_x x'' + f_y y''
//! ```
//!
//! The value is computed exactly as on plain numbers.

use super::program::{Binary, Number, Unary};
use super::table::Table;

#[derive(Clone, Copy)]
pub(super) struct Jet {
    pub value: f64,
    pub slope: f64,
    pub curvature: f64,
}

/// A product that is 0 where its first factor is, even if the other is infinite: what does not vary adds
/// nothing.
fn times(coefficient: f64, factor: f64) -> f64 {
    if coefficient == 0.0 { 0.0 } else { coefficient * factor }
}

impl Jet {
    /// f(x) from f, f_x and f_xx.
    fn chain(self, value: f64, first: f64, second: f64) -> Jet {
        Jet {
            value,
            slope: times(self.slope, first),
            curvature: times(self.slope * self.slope, second) + times(self.curvature, first),
        }
    }

    fn is_constant(self) -> bool {
        self.slope == 0.0 && self.curvature == 0.0
    }

    /// x^y, which is `value`.
    fn power(self, exponent: Jet, value: f64) -> Jet {
        let (x, y) = (self.value, exponent.value);
        if exponent.is_constant() {
            return self.chain(value, times(y, x.powf(y - 1.0)), times(y * (y - 1.0), x.powf(y - 2.0)));
        }
        // x^y = exp(g) with g = y ln x.
        let rate = self.slope / x;
        let first = times(exponent.slope, x.ln()) + y * rate;
        let second = times(exponent.curvature, x.ln()) + 2.0 * exponent.slope * rate;
        let second = second + y * (self.curvature / x - rate * rate);
        Jet { value, slope: value * first, curvature: value * (second + first * first) }
    }
}

impl Number for Jet {
    fn value(self) -> f64 {
        self.value
    }

    fn unary(self, function: Unary) -> Jet {
        let x = self.value;
        let value = x.unary(function);
        let (first, second) = match function {
            Unary::Negate => (-1.0, 0.0),
            Unary::Sin => (x.cos(), -value),
            Unary::Cos => (-x.sin(), -value),
            Unary::Tan => (1.0 + value * value, 2.0 * value * (1.0 + value * value)),
            Unary::Asin | Unary::Acos => {
                let (square, sign) = (1.0 - x * x, if function == Unary::Asin { 1.0 } else { -1.0 });
                (sign / square.sqrt(), sign * x / (square * square.sqrt()))
            }
            Unary::Atan => (1.0 / (1.0 + x * x), -2.0 * x / ((1.0 + x * x) * (1.0 + x * x))),
            Unary::Sinh => (x.cosh(), value),
            Unary::Cosh => (x.sinh(), value),
            Unary::Tanh => (1.0 - value * value, -2.0 * value * (1.0 - value * value)),
            Unary::Exp => (value, value),
            Unary::Ln => (1.0 / x, -1.0 / (x * x)),
            Unary::Log10 => {
                let base = std::f64::consts::LN_10;
                (1.0 / (x * base), -1.0 / (x * x * base))
            }
            Unary::Sqrt => (0.5 / value, -0.25 / (value * x)),
            Unary::Abs => (x.unary(Unary::Sign), 0.0),
            Unary::SmoothStep if (0.0..=1.0).contains(&x) => (6.0 * x * (1.0 - x), 6.0 - 12.0 * x),
            Unary::Radians => (1f64.to_radians(), 0.0),
            Unary::Degrees => (1f64.to_degrees(), 0.0),
            Unary::Not | Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round => (0.0, 0.0),
            Unary::Step | Unary::SmoothStep => (0.0, 0.0),
        };
        self.chain(value, first, second)
    }

    fn binary(self, function: Binary, right: Jet) -> Jet {
        let (x, y) = (self.value, right.value);
        let value = x.binary(function, y);
        let linear = |a: f64, b: f64| Jet {
            value,
            slope: a * self.slope + b * right.slope,
            curvature: a * self.curvature + b * right.curvature,
        };
        match function {
            Binary::Add => linear(1.0, 1.0),
            Binary::Subtract => linear(1.0, -1.0),
            Binary::Multiply => Jet {
                value,
                slope: times(self.slope, y) + times(right.slope, x),
                curvature: times(self.curvature, y)
                    + 2.0 * self.slope * right.slope
                    + times(right.curvature, x),
            },
            Binary::Divide => {
                let slope = (self.slope - times(right.slope, value)) / y;
                let curvature =
                    self.curvature - 2.0 * times(right.slope, slope) - times(right.curvature, value);
                Jet { value, slope, curvature: curvature / y }
            }
            Binary::Power => self.power(right, value),
            Binary::Min if y < x => Jet { value, ..right },
            Binary::Max if y > x => Jet { value, ..right },
            Binary::Min | Binary::Max => Jet { value, ..self },
            Binary::Atan2 => {
                let square = x * x + y * y;
                let slope = (self.slope * y - x * right.slope) / square;
                let growth = 2.0 * (x * self.slope + y * right.slope);
                let turn = self.curvature * y - x * right.curvature;
                Jet { value, slope, curvature: (turn - slope * growth) / square }
            }
            Binary::Mod => linear(1.0, -(x / y).floor()),
            Binary::Hypot => {
                let slope = (x * self.slope + y * right.slope) / value;
                let squares = self.slope * self.slope + right.slope * right.slope - slope * slope;
                Jet { value, slope, curvature: (squares + x * self.curvature + y * right.curvature) / value }
            }
            Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual => linear(0.0, 0.0),
            Binary::Equal | Binary::NotEqual | Binary::And | Binary::Or => linear(0.0, 0.0),
        }
    }

    fn look_up(self, table: &Table) -> Jet {
        let [value, first, second] = table.evaluate(self.value);
        self.chain(value, first, second)
    }
}
