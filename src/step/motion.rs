//! Free motion of rigid bodies: (28)–(30) without contacts.
//!
//! Orientation is a unit quaternion, moved by the exponential map. Rotation carries the angular momentum `L`, not the
//! angular velocity, from step to step: without torque it stays the same to the last bit. The angular velocity that belongs to it is
//! taken in the middle of the coming motion,
//!
//! ```text
//! ω = I(q*)⁻¹ L,    q* = exp(½ h ω) q_m        (two rounds of this fixed point)
//! ```
//!
//! which is the gyroscopic term of `f` in (28) to second order. The inverse inertia of the contact problem is `I(q*)⁻¹` too, so that
//! impulses change `L` by exactly their moments.

use crate::contact::anchor;
use crate::geometry::{Mat3, Pose, Quat, Vec3};
use crate::scene::{Body, Motion, Physics, Scene};
use crate::solve::{Inertia, Twist};
use rayon::prelude::*;

/// Moves a pose by velocities for a while.
pub fn moved(pose: &Pose, velocity: &Vec3, angular_velocity: &Vec3, duration: f64) -> Pose {
    let turn = Quat::from_scaled_axis(angular_velocity * duration);
    Pose {
        // Kept at unit length: rounding would let it drift by 1e-16 a step.
        rotation: Quat::new_normalize((turn * pose.rotation).into_inner()),
        position: pose.position + velocity * duration,
    }
}

/// `q_m = q_n + (1 − θ) h v_n`, in place (29).
pub fn predict(scene: &mut Scene, physics: &Physics) {
    let span = (1.0 - physics.theta) * physics.time_step;
    let advance =
        |body: &mut Body| body.pose = moved(&body.pose, &body.velocity, &body.angular_velocity, span);
    scene.state.grains.par_iter_mut().with_min_len(1024).for_each(advance);
    let time = physics.time(scene.state.step) + span;
    for body in &mut scene.state.statics {
        if let Motion::Kinematic(index) = body.motion {
            let motion = &scene.model.motions[index as usize];
            let (now, then) = (motion(time), motion(time + physics.time_step));
            let turn = then.rotation * now.rotation.inverse();
            body.pose = now;
            // The mean velocity until the next q_m: gaps then close exactly as the motion says.
            body.velocity = (then.position - now.position) / physics.time_step;
            body.angular_velocity = turn.scaled_axis() / physics.time_step;
        }
    }
}

/// What a body brings into the contact problem: inverse masses and `v_free` of (28), at `q_m`.
pub fn free_motion(body: &Body, gravity: &Vec3, time_step: f64) -> (Inertia, Twist) {
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

/// Of many bodies.
pub fn free_motions(bodies: &[Body], gravity: &Vec3, physics: &Physics) -> Vec<(Inertia, Twist)> {
    let of = |body: &Body| free_motion(body, gravity, physics.time_step);
    bodies.par_iter().with_min_len(256).map(of).collect()
}

/// Stones that have moved are looked at anew in this step.
pub fn anchor(grains: &mut [Body], free: &[(Inertia, Twist)], physics: &Physics) {
    grains.par_iter_mut().zip(free).with_min_len(256).for_each(|(body, (_, twist))| {
        let (reach, slack) = (reach(body, twist, physics), anchor::slack(body, physics.patch_reuse));
        anchor::renew(body, reach, slack);
    });
}

/// `R diag(1/I) Rᵀ`.
fn inverse_inertia(rotation: &Quat, inverse_moments: &Vec3) -> Mat3 {
    let r = rotation.to_rotation_matrix().into_inner();
    r * Mat3::from_diagonal(inverse_moments) * r.transpose()
}

/// Takes over the solved velocity and moves on: `q_{n+1} = q_m + θ h v_{n+1}` (30).
pub fn finish(body: &mut Body, inertia: &Inertia, free: &Twist, solved: &Twist, physics: &Physics) {
    // L changes by I(q*) Δω, the moment of the impulses; not at all, bit for bit, where nothing touched.
    let change = Vec3::from(solved.angular) - Vec3::from(free.angular);
    if change != Vec3::zeros() {
        let tensor = inertia.inverse_tensor();
        body.angular_momentum += tensor.try_inverse().map_or(Vec3::zeros(), |inverse| inverse * change);
    }
    body.velocity = solved.linear.into();
    body.angular_velocity = solved.angular.into();
    body.pose = moved(&body.pose, &body.velocity, &body.angular_velocity, physics.theta * physics.time_step);
}

/// Kinematic bodies stand where their motion says at the end of the step.
pub fn finish_statics(scene: &mut Scene, physics: &Physics) {
    let time = physics.time(scene.state.step + 1);
    for body in &mut scene.state.statics {
        if let Motion::Kinematic(index) = body.motion {
            body.pose = scene.model.motions[index as usize](time);
        }
    }
}

/// How far from its surface a body looks for contacts: a little, and what it may travel in a step.
pub fn reach(body: &Body, velocity: &Twist, physics: &Physics) -> f64 {
    let radius = body.shape.bounding_radius();
    if !radius.is_finite() {
        return physics.contact_margin.unwrap_or(0.0);
    }
    let rest = physics.contact_margin.unwrap_or(0.01 * radius);
    let speed = Vec3::from(velocity.linear).norm() + Vec3::from(velocity.angular).norm() * radius;
    rest + speed * physics.time_step
}
