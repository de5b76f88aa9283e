//! Moreau and Jean's scheme, (28)–(30): contacts at `q_m = q_n + (1 − θ) h v_n`, forces there, `q_{n+1} = q_m
//! + θ h v_{n+1}`.
//!
//! Orientation is a unit quaternion, moved by the exponential map. Rotation carries the angular momentum `L`,
//! not the angular velocity, from step to step: without torque it stays the same to the last bit. The angular
//! velocity that belongs to it is taken in the middle of the coming motion,
//!
//! ```text
//! ω = I(q*)⁻¹ L,    q* = exp(½ h ω) q_m        (two rounds of this fixed point)
//! ```
//!
//! which is the gyroscopic term of `f` in (28) to second order. The inverse inertia of the contact problem is
//! `I(q*)⁻¹` too, so that impulses change `L` by exactly their moments.

use super::{Approach, Clock, Integrator, Moved, moved};
use crate::geometry::{Mat3, Quat, Vec3};
use crate::multibody::{ForceEvaluation, Multibody, MultibodyError, ReducedOperators, Tangents};
use crate::scene::{Body, Motion};
use crate::solve::{Inertia, Twist};
use nalgebra::DMatrix;
use rayon::prelude::*;

/// θ in [0.5, 1].
#[derive(Clone, Copy, Debug)]
pub struct MoreauJean {
    pub theta: f64,
}

impl Integrator for MoreauJean {
    fn approach(&self, time_step: f64) -> Approach {
        Approach { durations: [(1.0 - self.theta) * time_step, self.theta * time_step], closing: time_step }
    }

    fn predict(&self, bodies: &mut [Body], clock: &Clock) {
        let span = (1.0 - self.theta) * clock.time_step;
        let advance =
            |body: &mut Body| body.pose = moved(&body.pose, &body.velocity, &body.angular_velocity, span);
        bodies.par_iter_mut().with_min_len(1024).for_each(advance); // (29)
    }

    fn free_motions(&self, bodies: &[Body], gravity: &Vec3, clock: &Clock) -> Vec<(Inertia, Twist)> {
        let of = |body: &Body| free_motion(body, gravity, clock.time_step);
        bodies.par_iter().with_min_len(256).map(of).collect()
    }

    fn finish(&self, bodies: &mut [Body], moved: &Moved, clock: &Clock) {
        let span = self.theta * clock.time_step;
        bodies.par_iter_mut().with_min_len(256).enumerate().for_each(|(slot, body)| {
            finish(body, &moved.inertia[slot], &moved.free[slot], &moved.solved[slot], span);
        });
    }

    fn predict_machine<'m>(
        &self,
        multibody: &'m mut Multibody,
        clock: &Clock,
    ) -> Result<&'m ReducedOperators, MultibodyError> {
        multibody.advance_positions((1.0 - self.theta) * clock.time_step); // (29)
        multibody.close_loops()?; // (16)
        multibody.reduce(clock.start, clock.time_step) // (20)–(27)
    }

    fn finish_machine(
        &self,
        multibody: &mut Multibody,
        velocity: &[f64],
        shift: &[f64],
    ) -> Result<(), MultibodyError> {
        multibody.finish_with_shift(velocity, shift) // (30), (16), (20)
    }

    /// `δq_m = δq + (1 − θ) h δv`, `δv' = δv + h (A δq_m + B δv_f)`, `δq' = δq_m + θ h δv'`, where `δv_f` is
    /// `δv` or that of the middle of the step.
    fn amplification(&self, tangents: &Tangents, time_step: f64) -> DMatrix<f64> {
        let (nu, h) = (tangents.position.nrows(), time_step);
        let unit = DMatrix::<f64>::identity(nu, 2 * nu);
        let mut velocity = DMatrix::zeros(nu, 2 * nu);
        velocity.view_mut((0, nu), (nu, nu)).fill_with_identity();
        let middle = unit + &velocity * ((1.0 - self.theta) * h);
        let mut force_velocity = velocity.clone();
        if tangents.force_evaluation == ForceEvaluation::MiddleVelocity {
            let gain = &tangents.position * &middle + &tangents.velocity * &velocity;
            force_velocity += gain * ((1.0 - self.theta) * h);
        }
        let after = velocity + (&tangents.position * &middle + &tangents.velocity * force_velocity) * h;
        let mut whole = DMatrix::zeros(2 * nu, 2 * nu);
        whole.view_mut((0, 0), (nu, 2 * nu)).copy_from(&(middle + &after * (self.theta * h)));
        whole.view_mut((nu, 0), (nu, 2 * nu)).copy_from(&after);
        whole
    }
}

/// Inverse masses and `v_free` of (28), at `q_m`.
fn free_motion(body: &Body, gravity: &Vec3, time_step: f64) -> (Inertia, Twist) {
    if body.motion != Motion::Free {
        return (Inertia::default(), Twist::new(body.velocity, body.angular_velocity));
    }
    let velocity = body.velocity + gravity * time_step;
    let inverse_moments = body.inertia.map(|moment| 1.0 / moment);
    if body.inertia.x == body.inertia.y && body.inertia.y == body.inertia.z {
        let tensor = Mat3::from_diagonal(&inverse_moments);
        return (
            Inertia::new(1.0 / body.mass, &tensor),
            Twist::new(velocity, body.angular_momentum * inverse_moments.x),
        );
    }
    let mut tensor = inverse_inertia(&body.pose.rotation, &inverse_moments);
    for _ in 0..2 {
        let half_turn = Quat::from_scaled_axis(tensor * body.angular_momentum * (0.5 * time_step));
        tensor = inverse_inertia(&(half_turn * body.pose.rotation), &inverse_moments);
    }
    (Inertia::new(1.0 / body.mass, &tensor), Twist::new(velocity, tensor * body.angular_momentum))
}

/// `R diag(1/I) Rᵀ`.
fn inverse_inertia(rotation: &Quat, inverse_moments: &Vec3) -> Mat3 {
    let r = rotation.to_rotation_matrix().into_inner();
    r * Mat3::from_diagonal(inverse_moments) * r.transpose()
}

/// Takes over the solved velocity and moves on for a while (30).
fn finish(body: &mut Body, inertia: &Inertia, free: &Twist, solved: &Twist, span: f64) {
    // L changes by I(q*) Δω, the moment of the impulses; not at all, bit for bit, where nothing touched.
    let change = Vec3::from(solved.angular) - Vec3::from(free.angular);
    if change != Vec3::zeros() {
        let tensor = inertia.inverse_tensor();
        body.angular_momentum += tensor.try_inverse().map_or(Vec3::zeros(), |inverse| inverse * change);
    }
    body.velocity = solved.linear.into();
    body.angular_velocity = solved.angular.into();
    body.pose = moved(&body.pose, &body.velocity, &body.angular_velocity, span);
}
