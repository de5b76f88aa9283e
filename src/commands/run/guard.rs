//! Runs that explode end within the step, with the state from before it.

use super::Run;
use super::error::RunError;
use crate::exchange::OWNER;
use crate::geometry::{Aabb, Vec3};
use crate::input::Case;
use crate::multibody::{BodyIndex, Multibody};
use crate::scene::{Body, BodyId};
use crate::step::{StepReport, Stepper};
use decomposition::Comm;

/// By how much a speed must be beyond what a case can have.
const MARGIN: f64 = 10.0;

/// The speed beyond which a run has exploded, m/s: that of the case, or [`MARGIN`] times what its own scales
/// allow: through all of the scene in one step, the fastest body at the start, a free fall as long as the run.
/// Collective.
pub(super) fn speed_limit(case: &Case, stepper: &Stepper, comm: &dyn Comm) -> f64 {
    if let Some(limit) = case.simulation.maximum_speed {
        return limit;
    }
    let state = &stepper.scene().state;
    let mut bounds = Aabb::empty();
    for body in state.grains.iter().chain(&state.machine_bodies) {
        bounds = bounds.union(&body.shape.aabb(&body.pose));
    }
    for Body { pose, .. } in &state.statics {
        bounds = bounds.union(&Aabb { min: pose.position, max: pose.position });
    }
    let speeds = state.grains.iter().chain(&state.statics).map(|body| body.velocity.norm());
    let machines = stepper.machines().all().iter().flat_map(|machine| speeds_of(&machine.multibody));
    let fastest = speeds.chain(machines.map(|(_, speed)| speed)).fold(0.0, f64::max);
    let [low, high] = [-bounds.min, bounds.max];
    let mut words = [low.x, low.y, low.z, high.x, high.y, high.z, fastest];
    comm.max_f64(&mut words);
    let sides = Vec3::from_fn(|axis, _| words[axis] + words[3 + axis]);
    // Without bodies there is nothing to be fast; half-spaces on machines have no size.
    let size = sides.iter().filter(|side| side.is_finite()).map(|side| side * side).sum::<f64>().sqrt();
    let physics = stepper.physics();
    let fall = (physics.gravity)(physics.start_time).norm() * case.simulation.duration;
    MARGIN * (size / physics.time_step + words[6] + fall)
}

/// The bodies of a machine with the speeds of their frames, m/s.
fn speeds_of(multibody: &Multibody) -> impl Iterator<Item = (usize, f64)> {
    (0..multibody.model().body_count()).map(|index| {
        let body = BodyIndex(index);
        (index, multibody.body_twist(body, &multibody.pose(body).position).linear.norm())
    })
}

/// A body of a machine, as ranks send it to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MachineBody {
    machine: usize,
    body: usize,
}

impl MachineBody {
    const MOST: usize = 1 << 20;

    fn encode(self) -> f64 {
        (self.machine * Self::MOST + self.body) as f64
    }

    pub fn decode(word: f64) -> Option<Self> {
        let number = word as usize;
        (word >= 0.0).then_some(Self { machine: number / Self::MOST, body: number % Self::MOST })
    }
}

impl Run<'_> {
    /// The body of a machine that is too fast after a step, or is not finite, as a word for a maximum over
    /// ranks.
    pub(super) fn too_fast_machine_body(&self) -> f64 {
        if self.comm.rank() != OWNER {
            return f64::NEG_INFINITY;
        }
        let Some(limit) = self.stepper.speed_limit() else { return f64::NEG_INFINITY };
        let machines = self.stepper.machines().all().iter().enumerate();
        let all = machines.flat_map(|(machine, built)| {
            speeds_of(&built.multibody).map(move |(body, speed)| (MachineBody { machine, body }, speed))
        });
        // Not a number is too fast.
        let mut found = all.filter(|(_, speed)| speed.is_nan() || *speed > limit);
        found.next().map_or(f64::NEG_INFINITY, |(body, _)| body.encode())
    }

    /// A step has left a body of a machine too fast. The same on every rank.
    pub(super) fn lost(&self, lost: MachineBody, report: &StepReport) -> RunError {
        let machine = &self.stepper.machines().all()[lost.machine].multibody;
        let (name, body) = (machine.model().name(), machine.model().body_name(BodyIndex(lost.body)));
        RunError::MachineTooFast {
            step: report.step,
            time: report.time,
            body: format!("{body:?} of machine {name:?}"),
            limit: self.stepper.speed_limit().unwrap_or(f64::INFINITY),
            directory: self.options.directory.clone(),
        }
    }

    /// A step that was not taken, because a body would have been too fast: the state from before it is saved.
    /// Collective.
    pub(super) fn exploded(&mut self, body: BodyId, speed: String) -> RunError {
        let step = self.stepper.scene().state.step + 1;
        let body = self.describe_body(body);
        let saved = match self.save(None) {
            Ok(()) => {
                format!("the state before this step is a checkpoint in {}", self.options.directory.display())
            }
            Err(error) => format!("the state before this step could not be saved: {error}"),
        };
        // Of a run that has failed there is no final state.
        self.digest = None;
        RunError::TooFast {
            step,
            time: self.stepper.physics().time(step),
            body,
            speed,
            limit: self.stepper.speed_limit().unwrap_or(f64::INFINITY),
            saved,
        }
    }

    /// The body's own rank knows its group; the others describe it by its id alone, and only rank 0 is heard.
    /// So all ask.
    fn describe_body(&self, id: BodyId) -> String {
        let own = self.stepper.scene().state.grains.iter().find(|body| body.id == id);
        let described = own.map(|body| self.inventory.describe(body.id, body.group)).unwrap_or_default();
        let all = self.comm.all_gather(described.as_bytes());
        let name = all.iter().find(|name| !name.is_empty());
        name.map_or_else(|| format!("body {}", id.0), |name| String::from_utf8_lossy(name).into_owned())
    }
}
