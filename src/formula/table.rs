//! A function of one variable given by points: linear, or cubic without overshoot.
//!
//! Between the points (xᵢ, yᵢ) and (xᵢ₊₁, yᵢ₊₁), h = xᵢ₊₁ − xᵢ, s = (x − xᵢ)/h, the cubic is the Hermite
//! polynomial
//!
//! ```text
//! y = (1 + 2s)(1 − s)² yᵢ + s(1 − s)² h dᵢ + s²(3 − 2s) yᵢ₊₁ − s²(1 − s) h dᵢ₊₁
//! ```
//!
//! with the slopes dᵢ of [FritschButland1984]: zero at a local extremum, else the weighted harmonic mean of
//! the two neighbouring secants. It is continuously differentiable and monotone where the points are, so a
//! tool that is that is to stop at a depth does not swing past it. Outside the points the end values hold and
//! the slope is zero.

use thiserror::Error;

crate::words::choices! {
    /// How values between the points of a table are found.
    pub enum Interpolation {
        Linear = "linear", "straight lines between the points; the velocity jumps at each point";
        Cubic = "cubic", "smooth curves through the points that never overshoot; the velocity is continuous";
    }
}

/// Points of a function, ready to be looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    arguments: Vec<f64>,
    values: Vec<f64>,
    /// dᵢ, empty for linear interpolation.
    slopes: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq, Error)]
pub enum TableError {
    #[error("found {arguments} argument(s) and {values} value(s), expected as many of one as of the other")]
    Lengths { arguments: usize, values: usize },
    #[error("found {0} point(s), expected at least 2")]
    TooFew(usize),
    #[error("found {found} after {previous} (point {point}), expected increasing arguments")]
    NotIncreasing { point: usize, previous: f64, found: f64 },
    #[error("found {found} (point {point}), expected a finite number")]
    NotFinite { point: usize, found: f64 },
}

impl Table {
    /// Points count from 1 in the errors.
    pub fn new(
        arguments: Vec<f64>,
        values: Vec<f64>,
        interpolation: Interpolation,
    ) -> Result<Self, TableError> {
        if arguments.len() != values.len() {
            return Err(TableError::Lengths { arguments: arguments.len(), values: values.len() });
        }
        if arguments.len() < 2 {
            return Err(TableError::TooFew(arguments.len()));
        }
        for (index, (&argument, &value)) in arguments.iter().zip(&values).enumerate() {
            if let Some(&found) = [argument, value].iter().find(|number| !number.is_finite()) {
                return Err(TableError::NotFinite { point: index + 1, found });
            }
            if index > 0 && argument <= arguments[index - 1] {
                let previous = arguments[index - 1];
                return Err(TableError::NotIncreasing { point: index + 1, previous, found: argument });
            }
        }
        let slopes = match interpolation {
            Interpolation::Linear => Vec::new(),
            Interpolation::Cubic => slopes(&arguments, &values),
        };
        Ok(Self { arguments, values, slopes })
    }

    /// First and last argument.
    pub fn domain(&self) -> (f64, f64) {
        (self.arguments[0], self.arguments[self.arguments.len() - 1])
    }

    /// Value, first and second derivative at `x`; NaN for NaN. At a point the derivatives are those of the
    /// right side.
    pub fn evaluate(&self, x: f64) -> [f64; 3] {
        if x.is_nan() {
            return [f64::NAN; 3];
        }
        let above = self.arguments.partition_point(|argument| *argument <= x);
        if above == 0 {
            return [self.values[0], 0.0, 0.0];
        }
        if above == self.arguments.len() {
            return [self.values[above - 1], 0.0, 0.0];
        }
        let (i, j) = (above - 1, above);
        let h = self.arguments[j] - self.arguments[i];
        let s = (x - self.arguments[i]) / h;
        let (y0, y1) = (self.values[i], self.values[j]);
        if self.slopes.is_empty() {
            return [y0 + s * (y1 - y0), (y1 - y0) / h, 0.0];
        }
        let (d0, d1) = (self.slopes[i], self.slopes[j]);
        let r = 1.0 - s;
        let value = (1.0 + 2.0 * s) * r * r * y0 + s * r * r * h * d0 + s * s * (3.0 - 2.0 * s) * y1
            - s * s * r * h * d1;
        let slope = 6.0 * s * r * (y1 - y0) / h + r * (1.0 - 3.0 * s) * d0 + s * (3.0 * s - 2.0) * d1;
        let curvature = 6.0 * (1.0 - 2.0 * s) * (y1 - y0) / h + (6.0 * s - 4.0) * d0 + (6.0 * s - 2.0) * d1;
        [value, slope, curvature / h]
    }
}

/// The slope at each point; the ends take the one-sided three-point formula, limited to keep the shape.
fn slopes(x: &[f64], y: &[f64]) -> Vec<f64> {
    let count = x.len();
    let width = |i: usize| x[i + 1] - x[i];
    let secant = |i: usize| (y[i + 1] - y[i]) / width(i);
    if count == 2 {
        return vec![secant(0); 2];
    }
    let end = |h0: f64, h1: f64, s0: f64, s1: f64| {
        let slope = ((2.0 * h0 + h1) * s0 - h0 * s1) / (h0 + h1);
        if slope * s0 <= 0.0 {
            0.0
        } else if s0 * s1 <= 0.0 && slope.abs() > 3.0 * s0.abs() {
            3.0 * s0
        } else {
            slope
        }
    };
    let mut slopes = vec![end(width(0), width(1), secant(0), secant(1))];
    for i in 1..count - 1 {
        let (s0, s1) = (secant(i - 1), secant(i));
        let (w0, w1) = (2.0 * width(i) + width(i - 1), width(i) + 2.0 * width(i - 1));
        slopes.push(if s0 * s1 > 0.0 { (w0 + w1) / (w0 / s0 + w1 / s1) } else { 0.0 });
    }
    let last = count - 2;
    slopes.push(end(width(last), width(last - 1), secant(last), secant(last - 1)));
    slopes
}

/// Two columns (counted from 1) of a text of numbers separated by commas, semicolons, tabs or spaces. Empty
/// lines, lines that start with `#` and one heading line are passed over. On failure: the line (from 1) and
/// what is wrong there.
pub(crate) fn columns(text: &str, columns: [usize; 2]) -> Result<[Vec<f64>; 2], (usize, String)> {
    let mut result = [Vec::new(), Vec::new()];
    let mut heading = false;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim().trim_start_matches('\u{feff}');
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let separator = if trimmed.contains(';') { ';' } else { ',' };
        let cells: Vec<&str> = match trimmed.contains(separator) {
            true => trimmed.split(separator).map(str::trim).collect(),
            false => trimmed.split_whitespace().collect(),
        };
        if !heading && result[0].is_empty() && cells.iter().all(|cell| cell.parse::<f64>().is_err()) {
            heading = true;
            continue;
        }
        for (list, column) in result.iter_mut().zip(columns) {
            let cell = cells.get(column - 1).ok_or_else(|| {
                (index + 1, format!("found {} column(s), expected at least {column}", cells.len()))
            })?;
            let number: f64 = cell.parse().map_err(|_| {
                let found: String = cell.chars().take(40).collect();
                (index + 1, format!("found {found:?} in column {column}, expected a number"))
            })?;
            list.push(number);
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> (Vec<f64>, Vec<f64>) {
        (vec![0.0, 1.0, 1.5, 4.0, 5.0], vec![0.0, 1.0, 4.0, 4.5, -2.0])
    }

    #[test]
    fn points_are_met_and_ends_hold() {
        for interpolation in [Interpolation::Linear, Interpolation::Cubic] {
            let (x, y) = points();
            let table = Table::new(x.clone(), y.clone(), interpolation).expect("right");
            for (x, y) in x.iter().zip(&y) {
                assert!((table.evaluate(*x)[0] - y).abs() < 1e-12);
            }
            assert_eq!(table.evaluate(-1.0), [0.0, 0.0, 0.0]);
            assert_eq!(table.evaluate(9.0), [-2.0, 0.0, 0.0]);
            assert!(table.evaluate(f64::NAN)[0].is_nan());
            assert_eq!(table.domain(), (0.0, 5.0));
        }
    }

    #[test]
    fn slopes_agree_with_differences_and_cubics_do_not_overshoot() {
        let (x, y) = points();
        let cubic = Table::new(x.clone(), y.clone(), Interpolation::Cubic).expect("right");
        for k in 1..500 {
            let at = k as f64 * 0.01 + 0.001;
            let difference = (cubic.evaluate(at + 1e-6)[0] - cubic.evaluate(at - 1e-6)[0]) / 2e-6;
            let second = (cubic.evaluate(at + 1e-6)[1] - cubic.evaluate(at - 1e-6)[1]) / 2e-6;
            assert!((cubic.evaluate(at)[2] - second).abs() < 1e-4, "{at}");
            assert!((cubic.evaluate(at)[1] - difference).abs() < 1e-5, "{at}");
            let i = x.partition_point(|x| *x <= at).min(x.len() - 1);
            let (low, high) = (y[i - 1].min(y[i]), y[i - 1].max(y[i]));
            assert!((low - 1e-12..=high + 1e-12).contains(&cubic.evaluate(at.min(5.0))[0]), "{at}");
        }
        let straight =
            Table::new(vec![0.0, 1.0, 3.0], vec![1.0, 3.0, 7.0], Interpolation::Cubic).expect("right");
        assert!((straight.evaluate(2.2)[0] - 5.4).abs() < 1e-12);
    }

    #[test]
    fn wrong_points_are_named() {
        let table = |x: &[f64], y: &[f64]| Table::new(x.to_vec(), y.to_vec(), Interpolation::Linear);
        assert_eq!(table(&[0.0], &[1.0]), Err(TableError::TooFew(1)));
        assert_eq!(table(&[0.0, 1.0], &[1.0]), Err(TableError::Lengths { arguments: 2, values: 1 }));
        let error = TableError::NotIncreasing { point: 3, previous: 1.0, found: 1.0 };
        assert_eq!(table(&[0.0, 1.0, 1.0], &[1.0, 1.0, 1.0]), Err(error));
        let error = TableError::NotFinite { point: 2, found: f64::INFINITY };
        assert_eq!(table(&[0.0, 1.0], &[1.0, f64::INFINITY]), Err(error));
    }

    #[test]
    fn columns_of_a_file() {
        let text = "# made by hand\ntime;depth;force\n0; 1; 2\n\n1; 3; 4\n";
        assert_eq!(columns(text, [1, 3]), Ok([vec![0.0, 1.0], vec![2.0, 4.0]]));
        assert_eq!(columns("0 1\n1\t2\n", [1, 2]), Ok([vec![0.0, 1.0], vec![1.0, 2.0]]));
        assert_eq!(columns("0,1\n1,x\n", [1, 2]).map_err(|error| error.0), Err(2));
        assert_eq!(columns("0,1\n1\n", [1, 2]).map_err(|error| error.0), Err(2));
    }
}
