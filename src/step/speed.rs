//! Bodies that a step would leave too fast: a run that explodes ends here, with the state from before.

use super::StepError;
use crate::geometry::Vec3;
use crate::scene::{Body, BodyId};
use crate::solve::Twist;
use decomposition::Comm;

/// What a body may do in a step.
pub(super) struct Limits {
    /// m/s
    pub speed: f64,
    /// Of the step, s: where it leads must be a place.
    pub duration: f64,
}

/// An error with the body of the lowest id that is beyond the limits, or not finite. Surfaces count, at the
/// bounding radius. Collective: one reduction.
pub(super) fn check(
    bodies: &[Body],
    velocities: &[Twist],
    limits: &Limits,
    comm: &dyn Comm,
) -> Result<(), StepError> {
    // Written so that what is not a number is too fast. The radius is asked for only where it may matter.
    let is_slow = |twist: &Twist, body: &Body| {
        Vec3::from(twist.linear).norm() <= limits.speed
            && (twist.angular == [0.0; 3] || turning(twist, body) <= limits.speed)
            && leads(twist, body, limits).iter().all(|place| place.is_finite())
    };
    let own = bodies.iter().zip(velocities).find(|(body, twist)| !is_slow(twist, body));
    let mut words = [own.map_or(f64::NEG_INFINITY, |(body, _)| -(body.id.0 as f64))];
    comm.max_f64(&mut words);
    let [lowest] = words;
    if lowest == f64::NEG_INFINITY {
        return Ok(());
    }
    let id = BodyId(-lowest as u64);
    let told = own.filter(|(body, _)| body.id == id).map(|(body, twist)| describe(twist, body, limits));
    let all = comm.all_gather(told.unwrap_or_default().as_bytes());
    let speed = all.iter().find(|text| !text.is_empty());
    let speed = speed.map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default();
    Err(StepError::TooFast { body: id, speed })
}

/// About where a body is at the end of the step.
fn leads(twist: &Twist, body: &Body, limits: &Limits) -> Vec3 {
    body.pose.position + Vec3::from(twist.linear) * limits.duration
}

fn turning(twist: &Twist, body: &Body) -> f64 {
    Vec3::from(twist.angular).norm() * body.shape.bounding_radius()
}

fn describe(twist: &Twist, body: &Body, limits: &Limits) -> String {
    let (linear, turning) = (Vec3::from(twist.linear).norm(), turning(twist, body));
    if !(linear.is_finite() && turning.is_finite()) {
        "a speed that is not a finite number".into()
    } else if !leads(twist, body, limits).iter().all(|place| place.is_finite()) {
        format!("{linear:.3e} m/s, to a place that is not a finite number")
    } else if linear >= turning {
        format!("{linear:.3e} m/s")
    } else {
        format!("{turning:.3e} m/s at its surface, by turning")
    }
}
