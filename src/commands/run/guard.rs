//! Runs that explode end within the step, with the state from before it.

use super::error::RunError;
use super::restart::Found;
use super::statistics::WORRYING;
use super::{Options, Run, files};
use crate::geometry::{Aabb, Vec3};
use crate::input::Case;
use crate::machine::Machine;
use crate::scene::{Body, BodyId};
use crate::step::{EnergyLimit, Excess, StepReport, Stepper};
use decomposition::{Comm, ExactSum};

/// By how much a speed or an energy must be beyond what a case can have.
const MARGIN: f64 = 10.0;

/// A speed that any case may have, m/s.
const USUAL: f64 = 100.0;

/// Of the speed at which a run has exploded, what all bodies together may gain from nowhere.
const SLOW: f64 = 1e-3;

/// How large and how fast a case is, the same on every rank.
struct Scales {
    /// Of the box around all bodies, m.
    size: f64,
    /// The fastest body at the start, m/s.
    fastest: f64,
    /// m/s²
    gravity: f64,
    /// Of all free bodies and machines, kg.
    mass: f64,
}

impl Scales {
    /// Collective.
    fn of(stepper: &Stepper, comm: &dyn Comm) -> Self {
        let state = &stepper.scene().state;
        let mut bounds = Aabb::empty();
        for body in state.grains.iter().chain(&state.machine_bodies) {
            bounds = bounds.union(&body.shape.aabb(&body.pose));
        }
        for Body { pose, .. } in &state.statics {
            bounds = bounds.union(&Aabb { min: pose.position, max: pose.position });
        }
        let speeds = state.grains.iter().chain(&state.statics).map(|body| body.velocity.norm());
        let machines = stepper.machines().all();
        let of_machines = machines.iter().flat_map(|machine| machine.multibody.speeds());
        let fastest = speeds.chain(of_machines.map(|(_, speed)| speed)).fold(0.0, f64::max);
        let [low, high] = [-bounds.min, bounds.max];
        let mut words = [low.x, low.y, low.z, high.x, high.y, high.z, fastest];
        comm.max_f64(&mut words);
        let sides = Vec3::from_fn(|axis, _| words[axis] + words[3 + axis]);
        let mut mass = [ExactSum::default()];
        state.grains.iter().for_each(|body| mass[0].add(body.mass));
        ExactSum::reduce(&mut mass, comm);
        let of_machine = |machine: &Machine| machine.multibody.model().total_mass();
        let physics = stepper.physics();
        Self {
            // Without bodies there is nothing to be fast; half-spaces on machines have no size.
            size: sides.iter().filter(|side| side.is_finite()).map(|side| side * side).sum::<f64>().sqrt(),
            fastest: words[6],
            gravity: (physics.gravity)(physics.start_time).norm(),
            mass: mass[0].value() + machines.iter().map(of_machine).sum::<f64>(),
        }
    }
}

/// What a run may not exceed.
struct Bounds {
    /// The speed beyond which a run has exploded, m/s: that of the case, or what its own scales allow, but at
    /// least [`USUAL`]: through all of the scene in a step, and [`MARGIN`] times the fastest body at the
    /// start and a free fall as long as the run.
    speed: f64,
    /// By how much the energy may exceed the work done, besides [`MARGIN`] times that work, J: [`MARGIN`]
    /// times the energy of motion at the start and of a fall across the scene, and that of all bodies at a
    /// share [`SLOW`] of the speed. One for explosions, not for drift.
    energy: f64,
}

/// Collective, before the first step: what the steps of a run are watched by. `continued` is the run that
/// goes on.
pub(super) fn begin(
    stepper: &mut Stepper,
    case: &Case,
    options: &Options,
    continued: Option<&Found>,
) -> Result<(), RunError> {
    if options.force {
        stepper.let_stiff_forces();
    }
    let account = continued.map(|found| files::account_at(&found.state)).transpose()?.flatten();
    match account {
        Some(account) => stepper.resume_account(&account),
        None => stepper.open_account(),
    }
    // Those of a run stay what they were at its start: otherwise each restart would let pass more.
    let kept = continued.filter(|_| !options.changed_case);
    let kept = kept.map(|found| files::limits_at(&found.state)).transpose()?.flatten();
    let bounds = match kept {
        Some([speed, energy]) => Bounds { speed, energy },
        None => Bounds::of(case, stepper, stepper.comm()),
    };
    stepper.set_speed_limit(bounds.speed);
    stepper.set_energy_limit(EnergyLimit { margin: bounds.energy, share: MARGIN });
    Ok(())
}

impl Bounds {
    /// Collective.
    fn of(case: &Case, stepper: &Stepper, comm: &dyn Comm) -> Self {
        let Scales { size, fastest, gravity, mass } = Scales::of(stepper, comm);
        let across = size / stepper.physics().time_step;
        let own = across + MARGIN * (fastest + gravity * case.simulation.duration);
        let speed = case.simulation.maximum_speed.unwrap_or(own.max(USUAL));
        let observed = stepper.observe();
        let moving = observed.kinetic_energy + observed.machines[0] + observed.machines[2];
        let slow = SLOW * speed;
        Self { speed, energy: MARGIN * (moving + mass * gravity * size) + 0.5 * mass * slow * slow }
    }
}

impl Run<'_> {
    /// The state from before a step that has failed is saved, if it is there; what to say of it. Collective.
    pub(super) fn save_start(&mut self) -> String {
        if !self.stepper.is_put_back() {
            return format!("checkpoints up to here are in {}", self.options.directory.display());
        }
        let saved = self.save(None);
        // Of a run that has failed there is no final state.
        self.digest = None;
        match saved {
            Ok(()) => {
                format!("the state before this step is a checkpoint in {}", self.options.directory.display())
            }
            Err(error) => format!("the state before this step could not be saved: {error}"),
        }
    }

    /// A step that was not taken, because a body would have been too fast: the state from before it is saved.
    /// Collective.
    pub(super) fn exploded(&mut self, body: BodyId, speed: String) -> RunError {
        let step = self.stepper.scene().state.step + 1;
        let body = self.describe_body(body);
        let saved = self.save_start();
        RunError::TooFast {
            step,
            time: self.stepper.physics().time(step),
            body,
            speed,
            limit: self.stepper.speed_limit().unwrap_or(f64::INFINITY),
            saved,
        }
    }

    /// Says once which bodies overlap much. Collective.
    pub(super) fn name_overlap(&mut self, report: &StepReport) {
        let Some(bodies) = report.overlap.bodies.filter(|_| report.overlap.share > WORRYING) else { return };
        if std::mem::replace(&mut self.overlap_is_known, true) {
            return;
        }
        let [a, b] = bodies.map(|body| self.describe_body(body));
        let share = 100.0 * report.overlap.share;
        self.log.say(&format!(
            "warning: step {}: {a} and {b} overlap by {share:.0} % of the size of the smaller one. In an impact a lower solver.tolerance and \
             a smaller time step help. Where a prescribed motion drives into a jam there is no rigid solution, and its force means nothing: an actuator \
             with a limited force lets it stop, and stiffness in [[contact]] lets stones give way",
            report.step
        ));
    }

    /// A step that was not taken, because there would have been energy that nobody had put in: the state from
    /// before it is saved. Collective.
    pub(super) fn too_much_energy(&mut self, found: Excess) -> RunError {
        let Excess { excess, allowed, parts, fastest, fastest_of_machines } = found;
        let step = self.stepper.scene().state.step + 1;
        let body = fastest.map(|(body, speed)| format!("{} would move at {speed}", self.describe_body(body)));
        let fastest: Vec<String> = body.into_iter().chain(fastest_of_machines).collect();
        let place = format!("{parts}; {}", fastest.join(", "));
        let saved = self.save_start();
        let time = self.stepper.physics().time(step);
        RunError::Energy { step, time, excess, allowed, place, saved }
    }

    /// The body's own rank knows its group; the others describe it by its id alone, and only rank 0 is heard.
    /// So all ask.
    fn describe_body(&self, id: BodyId) -> String {
        let state = &self.stepper.scene().state;
        let mut bodies = state.grains.iter().chain(&state.statics).chain(&state.machine_bodies);
        let own = bodies.find(|body| body.id == id);
        let described = own.map(|body| self.inventory.describe(body.id, body.group)).unwrap_or_default();
        let all = self.comm.all_gather(described.as_bytes());
        let name = all.iter().find(|name| !name.is_empty());
        name.map_or_else(|| format!("body {}", id.0), |name| String::from_utf8_lossy(name).into_owned())
    }
}
