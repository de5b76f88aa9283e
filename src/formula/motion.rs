//! Prescribed motion of a kinematic body: where it is and how fast, as a pure function of time.
//!
//! With the initial pose (x₀, Q₀), the pivot p, the displacement d(t) and the rotation R(t) about a fixed
//! axis a by the angle α(t):
//!
//! ```text
//! x(t) = p + d(t) + R(t)(x₀ − p)        Q(t) = R(t) Q₀
//! v(t) = d'(t) + ω × R(t)(x₀ − p)       ω(t) = α'(t) a
//! ```
//!
//! Derivatives are exact (dual numbers). t is the time of the simulation, so a run that restarts moves on
//! seamlessly.

use super::{Expression, VectorFormula};
use crate::geometry::{Pose, Quat, Vec3};
use nalgebra::Unit;

/// What is prescribed: a displacement and a turn, both functions of the time (s).
#[derive(Clone, Debug, PartialEq)]
pub struct Motion {
    /// Added to the initial position, world frame, m.
    pub displacement: VectorFormula,
    /// Unit, world frame.
    pub axis: Unit<Vec3>,
    /// About the axis, rad.
    pub angle: Expression,
    /// The axis goes through this world point (before the displacement); the body's own origin if none.
    pub pivot: Option<Vec3>,
}

/// Pose and velocities of a body with prescribed motion at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MotionState {
    pub pose: Pose,
    /// Of the body's origin, world frame, m/s.
    pub velocity: Vec3,
    /// World frame, rad/s.
    pub angular_velocity: Vec3,
}

impl Motion {
    /// The state at `time` of a body that the case file places at `initial`.
    pub fn at(&self, time: f64, initial: &Pose) -> MotionState {
        let (displacement, velocity) = self.displacement.evaluate_with_derivative(&[time], 0);
        let (angle, rate) = self.angle.evaluate_with_derivative(&[time], 0);
        let turn = Quat::from_axis_angle(&self.axis, angle);
        let pivot = self.pivot.unwrap_or(initial.position);
        let arm = turn * (initial.position - pivot);
        let angular_velocity = self.axis.into_inner() * rate;
        MotionState {
            pose: Pose::new(turn * initial.rotation, pivot + displacement + arm),
            velocity: velocity + angular_velocity.cross(&arm),
            angular_velocity,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scope;
    use super::*;

    fn formula(text: &str) -> Expression {
        Expression::compile(text, &["t"], &Scope::default()).expect("right")
    }

    #[test]
    fn velocities_are_the_derivatives_of_the_pose() {
        let motion = Motion {
            displacement: VectorFormula([formula("0.1*sin(3*t)"), formula("t^2"), formula("0")]),
            axis: Unit::new_normalize(Vec3::new(1.0, 2.0, -1.0)),
            angle: formula("2*t - 0.3*cos(t)"),
            pivot: Some(Vec3::new(0.5, -1.0, 2.0)),
        };
        let initial = Pose::new(Quat::from_euler_angles(0.1, 0.2, 0.3), Vec3::new(1.0, 2.0, 3.0));
        let h = 1e-6;
        for time in [0.0, 0.4, 2.0] {
            let state = motion.at(time, &initial);
            let (before, after) = (motion.at(time - h, &initial).pose, motion.at(time + h, &initial).pose);
            let velocity = (after.position - before.position) / (2.0 * h);
            let turn = (after.rotation * before.rotation.inverse()).scaled_axis() / (2.0 * h);
            assert!((velocity - state.velocity).norm() < 1e-8, "{velocity} {}", state.velocity);
            assert!((turn - state.angular_velocity).norm() < 1e-8, "{turn} {}", state.angular_velocity);
        }
    }

    #[test]
    fn without_a_pivot_the_origin_turns_in_place() {
        let motion = Motion {
            displacement: VectorFormula::constant(Vec3::zeros()),
            axis: Vec3::y_axis(),
            angle: formula("2*pi*t"),
            pivot: None,
        };
        let initial = Pose::new(Quat::identity(), Vec3::new(0.0, 0.0, 7.0));
        let state = motion.at(0.25, &initial);
        assert!((state.pose.position - initial.position).norm() < 1e-15);
        assert!(state.velocity.norm() < 1e-15);
        assert!((state.pose.direction(&Vec3::x()) - Vec3::new(0.0, 0.0, -1.0)).norm() < 1e-15);
    }
}
