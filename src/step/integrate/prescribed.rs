//! Kinematic bodies: they stand where their motion says, whatever the scheme.

use super::{Approach, Clock};
use crate::scene::{Body, Motion, Prescribed};

/// To where contacts are looked for.
pub fn predict_prescribed(bodies: &mut [Body], motions: &[Prescribed], approach: &Approach, clock: &Clock) {
    let time = clock.start + approach.durations[0];
    for body in bodies {
        if let Motion::Kinematic(index) = body.motion {
            let motion = &motions[index as usize];
            let (now, then) = (motion(time), motion(time + clock.time_step));
            let turn = then.rotation * now.rotation.inverse();
            body.pose = now;
            // The mean velocity until contacts are next looked for: gaps then close exactly as the motion
            // says.
            body.velocity = (then.position - now.position) / clock.time_step;
            body.angular_velocity = turn.scaled_axis() / clock.time_step;
        }
    }
}

/// To the end of the step, at `time`.
pub fn finish_prescribed(bodies: &mut [Body], motions: &[Prescribed], time: f64) {
    for body in bodies {
        if let Motion::Kinematic(index) = body.motion {
            body.pose = motions[index as usize](time);
        }
    }
}
