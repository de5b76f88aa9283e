//! What the formulas of a machine may name, and laws and phases made of them.

use crate::formula::Expression;

/// One formula, or one for each phase in their order. What its variables mean follows from their names: see
/// [`MachineVariable`].
#[derive(Clone, Debug, PartialEq)]
pub struct MachineLaw(pub Vec<Expression>);

#[derive(Clone, Debug, PartialEq)]
pub struct MachinePhase {
    pub name: String,
    /// When it ends, and which phase follows; none if it never ends.
    pub until: Option<(Expression, usize)>,
}

/// What a name in a formula of a machine stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MachineVariable<'a> {
    Time,
    /// Since the phase began.
    PhaseTime,
    /// Position of the joint, or distance of the points, on which an actuator acts.
    Own,
    OwnRate,
    /// Of a coordinate.
    Position(&'a str),
    Velocity(&'a str),
    /// A coordinate of a point `body.point`, or its rate.
    Point {
        point: &'a str,
        axis: usize,
        rate: bool,
    },
    Quantity(&'a str),
}

/// Of a machine beside its own: the phase by number, and when it began.
pub const PHASE_QUANTITIES: [&str; 2] = ["phase", "phase_start"];

impl<'a> MachineVariable<'a> {
    pub const POINT_ENDINGS: [&'static str; 6] = ["x", "y", "z", "vx", "vy", "vz"];

    /// The meaning of a name that a formula of a machine was compiled with.
    pub fn named(name: &'a str) -> Self {
        let Some((head, ending)) = name.rsplit_once('.') else {
            return match name {
                "t" => Self::Time,
                "x" => Self::Own,
                "v" => Self::OwnRate,
                _ => Self::Quantity(name),
            };
        };
        match ending {
            "position" => Self::Position(head),
            "velocity" => Self::Velocity(head),
            "time" => Self::PhaseTime,
            _ => {
                let axis = Self::POINT_ENDINGS.iter().position(|known| *known == ending).unwrap_or(0);
                Self::Point { point: head, axis: axis % 3, rate: axis >= 3 }
            }
        }
    }
}
