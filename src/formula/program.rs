//! The compiled form of a formula: postfix operations on a stack, on numbers or on jets.

use super::jet::Jet;
use super::table::Table;
use smallvec::SmallVec;
use std::sync::Arc;

/// One operation: takes its operands from the top of the stack and leaves its result there.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operation {
    Constant(f64),
    Variable(u32),
    One(Unary),
    Two(Binary),
    /// `if(condition, then, otherwise)`: all three are evaluated, one is taken.
    Select,
    Table(Arc<Table>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unary {
    Negate,
    Not,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Exp,
    Ln,
    Log10,
    Sqrt,
    Abs,
    Sign,
    Floor,
    Ceil,
    Round,
    Step,
    SmoothStep,
    Radians,
    Degrees,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Min,
    Max,
    Atan2,
    Mod,
    Hypot,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    And,
    Or,
}

/// How a function is called and what it becomes.
#[derive(Clone, Copy)]
pub(super) enum Function {
    One(Unary),
    Two(Binary),
    /// `min`, `max`: two arguments or more, folded from the left.
    Many(Binary),
    Select,
    Clamp,
}

/// Name, meaning, what it compiles to. The manual is made from this list.
pub(super) const FUNCTIONS: &[(&str, &str, Function)] = &[
    ("sin", "sin(x): sine of an angle in rad", Function::One(Unary::Sin)),
    ("cos", "cos(x): cosine of an angle in rad", Function::One(Unary::Cos)),
    ("tan", "tan(x): tangent of an angle in rad", Function::One(Unary::Tan)),
    ("asin", "asin(x): arc sine, rad", Function::One(Unary::Asin)),
    ("acos", "acos(x): arc cosine, rad", Function::One(Unary::Acos)),
    ("atan", "atan(x): arc tangent, rad", Function::One(Unary::Atan)),
    ("atan2", "atan2(y, x): angle of the point (x, y), rad", Function::Two(Binary::Atan2)),
    ("sinh", "sinh(x): hyperbolic sine", Function::One(Unary::Sinh)),
    ("cosh", "cosh(x): hyperbolic cosine", Function::One(Unary::Cosh)),
    ("tanh", "tanh(x): hyperbolic tangent", Function::One(Unary::Tanh)),
    ("exp", "exp(x): e to the power x", Function::One(Unary::Exp)),
    ("ln", "ln(x): natural logarithm", Function::One(Unary::Ln)),
    ("log10", "log10(x): decimal logarithm", Function::One(Unary::Log10)),
    ("sqrt", "sqrt(x): square root", Function::One(Unary::Sqrt)),
    ("abs", "abs(x): absolute value", Function::One(Unary::Abs)),
    ("sign", "sign(x): -1, 0 or 1", Function::One(Unary::Sign)),
    ("floor", "floor(x): largest integer not above x", Function::One(Unary::Floor)),
    ("ceil", "ceil(x): smallest integer not below x", Function::One(Unary::Ceil)),
    ("round", "round(x): nearest integer, halves away from 0", Function::One(Unary::Round)),
    ("step", "step(x): 0 for x < 0, else 1", Function::One(Unary::Step)),
    (
        "smoothstep",
        "smoothstep(x): 0 for x < 0, 1 for x > 1, 3x^2 - 2x^3 between",
        Function::One(Unary::SmoothStep),
    ),
    ("radians", "radians(x): degrees to rad", Function::One(Unary::Radians)),
    ("degrees", "degrees(x): rad to degrees", Function::One(Unary::Degrees)),
    ("hypot", "hypot(x, y): sqrt(x^2 + y^2)", Function::Two(Binary::Hypot)),
    ("mod", "mod(x, y): x - y*floor(x/y), for periodic motion", Function::Two(Binary::Mod)),
    ("min", "min(x, y, …): the smallest", Function::Many(Binary::Min)),
    ("max", "max(x, y, …): the largest", Function::Many(Binary::Max)),
    ("clamp", "clamp(x, low, high): min(max(x, low), high)", Function::Clamp),
    ("if", "if(condition, then, otherwise): `then` unless the condition is 0", Function::Select),
];

/// Every function that a formula may call, with its meaning.
pub fn functions() -> impl Iterator<Item = (&'static str, &'static str)> {
    FUNCTIONS.iter().map(|&(name, about, _)| (name, about))
}

/// Postfix operations; leaves exactly one value on the stack.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Program {
    operations: Vec<Operation>,
}

impl Program {
    pub(super) fn constant(value: f64) -> Self {
        Self { operations: vec![Operation::Constant(value)] }
    }

    pub(super) fn empty() -> Self {
        Self { operations: Vec::new() }
    }

    /// Appends an operation, or does it at once where all its operands are constants.
    pub(super) fn push(&mut self, operation: Operation) {
        let operands = operation.operand_count();
        let known = self.operations.len().checked_sub(operands).filter(|&start| {
            operands > 0
                && self.operations[start..].iter().all(|operand| matches!(operand, Operation::Constant(_)))
        });
        self.operations.push(operation);
        if let Some(start) = known {
            let folded = Program { operations: self.operations.split_off(start) }.evaluate(&[]);
            self.operations.push(Operation::Constant(folded));
        }
    }

    pub(super) fn as_constant(&self) -> Option<f64> {
        match self.operations[..] {
            [Operation::Constant(value)] => Some(value),
            _ => None,
        }
    }

    pub(super) fn depends_on(&self, index: usize) -> bool {
        self.operations.contains(&Operation::Variable(index as u32))
    }

    /// The same with only the variables that it reads, numbered afresh, and which these were, ascending.
    pub(super) fn compact(&self) -> (Program, Vec<usize>) {
        let index = |operation: &Operation| match operation {
            Operation::Variable(index) => Some(*index),
            _ => None,
        };
        let mut used: Vec<u32> = self.operations.iter().filter_map(index).collect();
        used.sort_unstable();
        used.dedup();
        let renumbered = |operation: &Operation| match operation {
            Operation::Variable(index) => {
                Operation::Variable(used.partition_point(|other| other < index) as u32)
            }
            other => other.clone(),
        };
        let operations = self.operations.iter().map(renumbered).collect();
        (Program { operations }, used.iter().map(|&index| index as usize).collect())
    }

    pub(super) fn evaluate(&self, variables: &[f64]) -> f64 {
        self.run(|index| variables.get(index).copied().unwrap_or(f64::NAN), |value| value)
    }

    pub(super) fn evaluate_with_derivatives(&self, variables: &[f64], with_respect_to: usize) -> [f64; 3] {
        let variable = |index: usize| Jet {
            value: variables.get(index).copied().unwrap_or(f64::NAN),
            slope: if index == with_respect_to { 1.0 } else { 0.0 },
            curvature: 0.0,
        };
        let result = self.run(variable, |value| Jet { value, slope: 0.0, curvature: 0.0 });
        [result.value, result.slope, result.curvature]
    }

    fn run<N: Number>(&self, variable: impl Fn(usize) -> N, constant: impl Fn(f64) -> N) -> N {
        let mut stack: SmallVec<[N; 16]> = SmallVec::new();
        let pop = |stack: &mut SmallVec<[N; 16]>| stack.pop().unwrap_or_else(|| constant(f64::NAN));
        for operation in &self.operations {
            let result = match operation {
                Operation::Constant(value) => constant(*value),
                Operation::Variable(index) => variable(*index as usize),
                Operation::One(function) => pop(&mut stack).unary(*function),
                Operation::Two(function) => {
                    let right = pop(&mut stack);
                    pop(&mut stack).binary(*function, right)
                }
                Operation::Select => {
                    let otherwise = pop(&mut stack);
                    let then = pop(&mut stack);
                    if pop(&mut stack).value() != 0.0 { then } else { otherwise }
                }
                Operation::Table(table) => pop(&mut stack).look_up(table),
            };
            stack.push(result);
        }
        pop(&mut stack)
    }
}

impl Operation {
    fn operand_count(&self) -> usize {
        match self {
            Operation::Constant(_) | Operation::Variable(_) => 0,
            Operation::One(_) | Operation::Table(_) => 1,
            Operation::Two(_) => 2,
            Operation::Select => 3,
        }
    }
}

/// What a program computes with.
pub(super) trait Number: Copy {
    fn value(self) -> f64;
    fn unary(self, function: Unary) -> Self;
    fn binary(self, function: Binary, right: Self) -> Self;
    fn look_up(self, table: &Table) -> Self;
}

fn truth(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

impl Number for f64 {
    fn value(self) -> f64 {
        self
    }

    fn unary(self, function: Unary) -> f64 {
        match function {
            Unary::Negate => -self,
            Unary::Not => truth(self == 0.0),
            Unary::Sin => self.sin(),
            Unary::Cos => self.cos(),
            Unary::Tan => self.tan(),
            Unary::Asin => self.asin(),
            Unary::Acos => self.acos(),
            Unary::Atan => self.atan(),
            Unary::Sinh => self.sinh(),
            Unary::Cosh => self.cosh(),
            Unary::Tanh => self.tanh(),
            Unary::Exp => self.exp(),
            Unary::Ln => self.ln(),
            Unary::Log10 => self.log10(),
            Unary::Sqrt => self.sqrt(),
            Unary::Abs => self.abs(),
            Unary::Sign if self == 0.0 => 0.0,
            Unary::Sign => self.signum(),
            Unary::Floor => self.floor(),
            Unary::Ceil => self.ceil(),
            Unary::Round => self.round(),
            Unary::Step => truth(self >= 0.0),
            Unary::SmoothStep => {
                let x = self.clamp(0.0, 1.0);
                x * x * (3.0 - 2.0 * x)
            }
            Unary::Radians => self.to_radians(),
            Unary::Degrees => self.to_degrees(),
        }
    }

    fn binary(self, function: Binary, right: f64) -> f64 {
        match function {
            Binary::Add => self + right,
            Binary::Subtract => self - right,
            Binary::Multiply => self * right,
            Binary::Divide => self / right,
            Binary::Power => self.powf(right),
            Binary::Min => self.min(right),
            Binary::Max => self.max(right),
            Binary::Atan2 => self.atan2(right),
            Binary::Mod => self - right * (self / right).floor(),
            Binary::Hypot => self.hypot(right),
            Binary::Less => truth(self < right),
            Binary::LessEqual => truth(self <= right),
            Binary::Greater => truth(self > right),
            Binary::GreaterEqual => truth(self >= right),
            Binary::Equal => truth(self == right),
            Binary::NotEqual => truth(self != right),
            Binary::And => truth(self != 0.0 && right != 0.0),
            Binary::Or => truth(self != 0.0 || right != 0.0),
        }
    }

    fn look_up(self, table: &Table) -> f64 {
        table.evaluate(self)[0]
    }
}
