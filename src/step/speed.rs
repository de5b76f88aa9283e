//! Bodies that a step would leave too fast: a run that explodes ends here, with the state from before.

use super::StepError;
use crate::geometry::Vec3;
use crate::scene::{Body, BodyId};
use crate::solve::Twist;
use decomposition::Comm;

/// An error with the body of the lowest id that is beyond the limit, m/s, or not finite. Surfaces count, at the
/// bounding radius. Collective: one reduction.
pub(super) fn check(
    bodies: &[Body],
    velocities: &[Twist],
    limit: f64,
    comm: &dyn Comm,
) -> Result<(), StepError> {
    // Written so that what is not a number is too fast. The radius is asked for only where it may matter.
    let is_slow = |twist: &Twist, body: &Body| {
        Vec3::from(twist.linear).norm_squared() <= limit * limit
            && (twist.angular == [0.0; 3] || turning(twist, body) <= limit)
    };
    let own = bodies.iter().zip(velocities).find(|(body, twist)| !is_slow(twist, body));
    let mut words = [own.map_or(f64::NEG_INFINITY, |(body, _)| -(body.id.0 as f64))];
    comm.max_f64(&mut words);
    let [lowest] = words;
    if lowest == f64::NEG_INFINITY {
        return Ok(());
    }
    let id = BodyId(-lowest as u64);
    let told = own.filter(|(body, _)| body.id == id).map(|(body, twist)| describe(twist, body));
    let all = comm.all_gather(told.unwrap_or_default().as_bytes());
    let speed = all.iter().find(|text| !text.is_empty());
    let speed = speed.map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default();
    Err(StepError::TooFast { body: id, speed })
}

fn turning(twist: &Twist, body: &Body) -> f64 {
    Vec3::from(twist.angular).norm() * body.shape.bounding_radius()
}

fn describe(twist: &Twist, body: &Body) -> String {
    let (linear, turning) = (Vec3::from(twist.linear).norm(), turning(twist, body));
    if !(linear.is_finite() && turning.is_finite()) {
        "a speed that is not a finite number".into()
    } else if linear >= turning {
        format!("{linear:.3e} m/s")
    } else {
        format!("{turning:.3e} m/s at its surface, by turning")
    }
}
