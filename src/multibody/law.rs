//! Values that the user gives as functions: actuator forces, and motions of prescribed joints.

use std::fmt;

/// What a law may depend on.
#[derive(Clone, Copy, Debug)]
pub struct LawInput<'a> {
    /// s
    pub time: f64,
    /// The element's own coordinate: joint position, link length; 0 where it has none.
    pub value: f64,
    /// Its rate.
    pub rate: f64,
    /// All of the machine's `q`; indices from [`Model::position_index`](super::Model::position_index).
    pub positions: &'a [f64],
    /// All of the machine's `v`; indices from [`Model::coordinate`](super::Model::coordinate).
    pub velocities: &'a [f64],
    /// Named quantities that the owner of the machine sets between steps (phases, targets).
    pub quantities: &'a [f64],
}

/// Body of [`Law::Function`].
pub type LawFunction = Box<dyn Fn(&LawInput) -> f64 + Send + Sync>;

/// A force, torque or other scalar. Must be a pure function of its input: same input, same bits.
pub enum Law {
    Constant(f64),
    Function(LawFunction),
}

impl Law {
    pub fn function(law: impl Fn(&LawInput) -> f64 + Send + Sync + 'static) -> Self {
        Law::Function(Box::new(law))
    }

    pub fn evaluate(&self, input: &LawInput) -> f64 {
        match self {
            Law::Constant(value) => *value,
            Law::Function(function) => function(input),
        }
    }
}

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Law::Constant(value) => write!(f, "Constant({value})"),
            Law::Function(_) => write!(f, "Function"),
        }
    }
}

/// Position of a prescribed coordinate with its first and second time derivatives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MotionSample {
    pub position: f64,
    pub velocity: f64,
    pub acceleration: f64,
}

/// Motion of a prescribed coordinate as a function of time (s).
pub struct PrescribedMotion(Box<dyn Fn(f64) -> MotionSample + Send + Sync>);

impl PrescribedMotion {
    pub fn new(motion: impl Fn(f64) -> MotionSample + Send + Sync + 'static) -> Self {
        Self(Box::new(motion))
    }

    pub fn sample(&self, time: f64) -> MotionSample {
        (self.0)(time)
    }
}

impl fmt::Debug for PrescribedMotion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrescribedMotion")
    }
}
