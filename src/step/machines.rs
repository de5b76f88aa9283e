//! The machines of a run: stepped by one rank, which sends the others what the contact solve needs.
//!
//! ```text
//! owner:  controller, q_m, loops closed, reduced operators (16)–(27)
//!           ── operators ──▶  every rank: poses, contacts of machine bodies
//! every rank's contacts of machines
//!           ── body slots and points ──▶  owner: the hub phase of each sweep; then v_u, (30), loops closed
//! ```

use super::account::{Account, Source};
use super::integrate::{self, Clock, Integrator};
use super::{StepError, stability};
use crate::exchange::hub::OWNER;
use crate::exchange::messages::broadcast;
use crate::geometry::Vec3;
use crate::machine::{Machine, SavedMachine};
use crate::multibody::{BodyImpulse, BodyIndex, MultibodyError, ReducedOperators};
use crate::scene::{Body, Motion, Scene, Scheme};
use crate::solve::Twist;
use decomposition::Comm;

/// Every rank holds the all; those of the owner move, the others are read only for what never changes.
#[derive(Default)]
pub struct Machines {
    all: Vec<Machine>,
    /// Of this step, by machine: the same on every rank.
    operators: Vec<ReducedOperators>,
    /// What the joints and cuts of the last step carried, by machine, on the owner.
    loads: Vec<Loads>,
    /// With which velocities the force elements gave way at the start of the step, by machine, on the owner.
    rates: Vec<Vec<f64>>,
    /// What springs stored at the start of the step, by machine, on the owner, J.
    springs: Vec<f64>,
    /// m/s, beyond which a step is not taken.
    pub(super) speed_limit: Option<f64>,
    /// Whether machines whose forces are too stiff for the step are let through.
    pub(super) unchecked: bool,
    /// The phase in which each machine was last checked, on the owner.
    checked: Vec<Option<usize>>,
}

/// What a step has found for the machines, by machine; on the owner.
pub(super) struct End<'a> {
    /// Of the independent coordinates.
    pub velocities: &'a [Vec<f64>],
    /// Displacements of positions alone; may be empty.
    pub shifts: &'a [Vec<f64>],
    /// What contacts gave to its bodies.
    pub touched: &'a [Vec<BodyImpulse>],
}

/// Mean forces of a step, and what it led to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loads {
    /// By closure equation of the model, N and N m.
    pub cuts: Vec<f64>,
    /// By joint: force and moment on the child at the joint, world axes.
    pub joints: Vec<[Vec3; 2]>,
    /// Kinetic energy, that of weight and that of springs at the end of the step, J.
    pub energies: [f64; 3],
    /// By contact body: force and moment of its contacts about the body frame's origin, world axes.
    pub contacts: Vec<[Vec3; 2]>,
    /// Of the force elements, mean over the step, W: what they put in, or with a minus take up.
    pub powers: Vec<f64>,
    /// Of force elements, without what springs store, of prescribed joints and of corrections in the step, J.
    work: [f64; 3],
}

impl Machines {
    pub fn new(all: Vec<Machine>) -> Self {
        let loads = all.iter().map(Loads::none).collect();
        Self { checked: vec![None; all.len()], all, loads, ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Where they stand now on the owner; elsewhere where they stood at the start.
    pub fn all(&self) -> &[Machine] {
        &self.all
    }

    pub fn loads(&self) -> &[Loads] {
        &self.loads
    }

    pub fn save(&self) -> Vec<SavedMachine> {
        self.all.iter().map(Machine::save).collect()
    }

    /// Of the last call of [`begin`](Self::begin) or [`stand`](Self::stand), by machine: the same on every
    /// rank.
    pub fn operators(&self) -> &[ReducedOperators] {
        &self.operators
    }

    /// Back to a state that they had between two steps. On the owner; the others' do not move.
    pub fn take_back(&mut self, saved: &[SavedMachine]) -> Result<(), StepError> {
        for (machine, saved) in self.all.iter_mut().zip(saved) {
            machine.take_back(saved).map_err(|problem| error(machine, problem))?;
        }
        Ok(())
    }

    /// (29), (16)–(27) on the owner; then every rank has the operators, and the bodies of machines stand at
    /// `q_m`. Collective.
    pub(super) fn begin(
        &mut self,
        scene: &mut Scene,
        integrator: &dyn Integrator,
        clock: &Clock,
        comm: &dyn Comm,
    ) -> Result<(), StepError> {
        if self.is_empty() {
            return Ok(());
        }
        let own = if comm.rank() == OWNER { self.reduce(integrator, clock) } else { Ok(Vec::new()) };
        self.share(own, scene, comm)
    }

    /// As [`begin`](Self::begin), for the machines as they stand between steps. Collective.
    pub(super) fn stand(&mut self, scene: &mut Scene, comm: &dyn Comm) -> Result<(), StepError> {
        if self.is_empty() {
            return Ok(());
        }
        let stand = |machine: &mut Machine| {
            let stood = machine.multibody.stand().cloned();
            stood.map_err(|problem| error(machine, problem))
        };
        let own =
            if comm.rank() == OWNER { self.all.iter_mut().map(stand).collect() } else { Ok(Vec::new()) };
        self.share(own, scene, comm)
    }

    /// Collective: every rank gets the owner's operators, and places bodies by them.
    fn share(
        &mut self,
        own: Result<Vec<ReducedOperators>, StepError>,
        scene: &mut Scene,
        comm: &dyn Comm,
    ) -> Result<(), StepError> {
        self.operators = broadcast(own, OWNER, comm)?;
        for (body, part) in scene.state.machine_bodies.iter_mut().zip(&scene.model.machine_parts) {
            if let Some(slot) = part.slot {
                let operators = &self.operators[part.machine as usize];
                body.pose = operators.pose(slot as usize);
            }
        }
        Ok(())
    }

    /// Moves machines between steps by displacements of their independent coordinates, velocities as they
    /// are, and accounts for what that does. Collective.
    pub(super) fn shift(
        &mut self,
        scene: &mut Scene,
        account: &mut Account,
        displacements: &[Vec<f64>],
        comm: &dyn Comm,
    ) -> Result<(), StepError> {
        if self.is_empty() {
            return Ok(());
        }
        let mut own = Ok(());
        if comm.rank() == OWNER {
            for (machine, displacement) in self.all.iter_mut().zip(displacements) {
                own = own.and_then(|()| {
                    machine.multibody.shift(displacement).map_err(|problem| error(machine, problem))
                });
                account.add(Source::Corrections, machine.multibody.displaced().iter().sum());
            }
        }
        broadcast(own, OWNER, comm)?;
        if comm.rank() == OWNER {
            self.place_bodies(scene);
        }
        Ok(())
    }

    fn reduce(
        &mut self,
        integrator: &dyn Integrator,
        clock: &Clock,
    ) -> Result<Vec<ReducedOperators>, StepError> {
        self.rates.clear();
        self.springs.clear();
        let (rates, springs, unchecked) = (&mut self.rates, &mut self.springs, self.unchecked);
        let reduced = |(machine, checked): (&mut Machine, &mut Option<usize>)| {
            rates.push(machine.multibody.force_rates());
            springs.push(machine.multibody.spring_energy());
            let updated = machine.controller.update(&mut machine.multibody, clock.start);
            updated.map_err(|problem| error(machine, problem))?;
            let phase = machine.controller.state().phase;
            if !unchecked && checked.replace(phase) != Some(phase) {
                stability::check(machine, integrator, clock.time_step)?;
            }
            let predicted = integrator.predict_machine(&mut machine.multibody, clock).cloned();
            predicted.map_err(|problem| error(machine, problem))
        };
        self.all.iter_mut().zip(&mut self.checked).map(reduced).collect()
    }

    /// Velocity of a body at the end of the step if nothing touches; none for bodies that are only drawn.
    pub(super) fn free_twist(&self, scene: &Scene, body: &Body) -> Option<Twist> {
        let (operators, slot) = self.place(scene, body)?;
        let [linear, angular] = operators.free_twist(slot);
        Some(Twist::new(linear, angular))
    }

    /// The operators of a body's machine, and its slot there.
    pub(super) fn place(&self, scene: &Scene, body: &Body) -> Option<(&ReducedOperators, usize)> {
        let Motion::Machine(index) = body.motion else { return None };
        let part = scene.model.machine_parts[index as usize];
        Some((&self.operators[part.machine as usize], part.slot? as usize))
    }

    /// Whether two bodies may touch: adjacent bodies of one machine do not, nor do those that are only drawn.
    pub(super) fn can_touch(&self, scene: &Scene, a: &Body, b: &Body) -> bool {
        let part = |body: &Body| match body.motion {
            Motion::Machine(index) => Some(scene.model.machine_parts[index as usize]),
            _ => None,
        };
        match [part(a), part(b)] {
            [Some(a), Some(b)] if a.machine == b.machine => {
                self.all[a.machine as usize].can_touch(a.body, b.body)
            }
            _ => true,
        }
    }

    /// An error if a machine, as it stands, has forces that are too stiff for the time step.
    pub fn check_stability(&mut self, scheme: Scheme, time_step: f64) -> Result<(), StepError> {
        let integrator = integrate::integrator(scheme);
        self.all.iter_mut().try_for_each(|machine| stability::check(machine, &*integrator, time_step))
    }

    /// Of each machine, now: kinetic energy, that of weight and that of springs, J. On the owner; the others
    /// have none.
    pub(super) fn energies(&self, comm: &dyn Comm) -> Vec<[f64; 3]> {
        let own = if comm.rank() == OWNER { &self.all[..] } else { &[] };
        own.iter().map(|machine| machine.multibody.energy_now()).collect()
    }

    /// Enters the work of the last step. On the owner; the others have none.
    pub(super) fn account(&self, account: &mut Account) {
        for loads in &self.loads {
            account.add(Source::Forces, loads.work[0]);
            account.add(Source::Motions, loads.work[1]);
            account.add(Source::Corrections, loads.work[2]);
        }
    }

    /// (30), (16), (20) on the owner, from the solved velocities. Collective.
    pub(super) fn finish(
        &mut self,
        scene: &mut Scene,
        integrator: &dyn Integrator,
        end: &End,
        comm: &dyn Comm,
    ) -> Result<(), StepError> {
        if self.is_empty() {
            return Ok(());
        }
        let own = if comm.rank() == OWNER { self.complete(integrator, end) } else { Ok(()) };
        broadcast(own, OWNER, comm)?;
        if comm.rank() == OWNER {
            self.place_bodies(scene);
        }
        Ok(())
    }

    fn complete(&mut self, integrator: &dyn Integrator, end: &End) -> Result<(), StepError> {
        let End { velocities, shifts, touched } = end;
        for (index, machine) in self.all.iter_mut().enumerate() {
            let shift = shifts.get(index).map_or(&[][..], |shift| shift);
            let loads = Loads::of(machine, &velocities[index], &touched[index]);
            let finished = loads.and_then(|mut loads| {
                integrator.finish_machine(&mut machine.multibody, &velocities[index], shift)?;
                loads.energies = machine.multibody.energy();
                let ends = self.rates[index].iter().zip(machine.multibody.force_rates());
                let values = machine.multibody.force_values().iter();
                loads.powers = values.zip(ends).map(|(force, (a, b))| force * 0.5 * (a + b)).collect();
                let [lifted, stretched] = machine.multibody.displaced();
                let stored = loads.energies[2] - self.springs[index] - stretched;
                let time_step = machine.multibody.time_step();
                loads.work[0] = loads.powers.iter().sum::<f64>() * time_step + stored;
                loads.work[2] = lifted + stretched;
                Ok(loads)
            });
            self.loads[index] = finished.map_err(|problem| error(machine, problem))?;
            if let Some(limit) = self.speed_limit {
                check_speeds(machine, limit)?;
            }
        }
        Ok(())
    }

    /// Poses and velocities of the bodies as the machines have them now.
    pub(super) fn place_bodies(&self, scene: &mut Scene) {
        for (body, part) in scene.state.machine_bodies.iter_mut().zip(&scene.model.machine_parts) {
            let machine = &self.all[part.machine as usize].multibody;
            body.pose = machine.pose(part.body);
            let twist = machine.body_twist(part.body, &body.pose.position);
            body.velocity = twist.linear;
            body.angular_velocity = twist.angular;
        }
    }
}

impl Loads {
    fn none(machine: &Machine) -> Self {
        let model = machine.multibody.model();
        Self {
            cuts: vec![0.0; model.closure_rows()],
            joints: vec![[Vec3::zeros(); 2]; model.body_count()],
            energies: [0.0; 3],
            contacts: vec![[Vec3::zeros(); 2]; machine.contact_shapes().count()],
            powers: vec![0.0; model.force_names().count()],
            work: [0.0; 3],
        }
    }

    /// To be asked before the machine moves on from `q_m`.
    fn of(machine: &Machine, velocity: &[f64], touched: &[BodyImpulse]) -> Result<Self, MultibodyError> {
        let Machine { multibody, .. } = machine;
        let time_step = multibody.time_step();
        let wrench = |wrench: &crate::multibody::Wrench| [wrench.force, wrench.moment];
        let contact = |shape: &crate::machine::MachineShape| {
            let own = touched.iter().filter(|impulse| impulse.body == shape.body);
            own.fold([Vec3::zeros(); 2], |[force, moment], impulse| {
                [force + impulse.linear / time_step, moment + impulse.angular / time_step]
            })
        };
        let impulses = multibody.constraint_impulses(velocity, touched)?;
        let wrenches = multibody.joint_wrenches_with(velocity, touched, &impulses)?;
        Ok(Self {
            cuts: impulses.iter().map(|impulse| impulse / time_step).collect(),
            joints: wrenches.iter().map(wrench).collect(),
            energies: [0.0; 3],
            contacts: machine.contact_shapes().map(contact).collect(),
            powers: Vec::new(),
            work: [0.0, multibody.work_of_motions(&wrenches), 0.0],
        })
    }
}

/// A body of a machine may have no surface whose speed could be bounded: it may not turn further in a step,
/// rad.
const MOST_TURN: f64 = 1e3;

/// An error with the first body that is too fast, or turns too fast; what is not a number is.
fn check_speeds(machine: &Machine, limit: f64) -> Result<(), StepError> {
    let multibody = &machine.multibody;
    let beyond = |limit: f64| move |(_, speed): &(BodyIndex, f64)| speed.is_nan() || *speed > limit;
    let moving = multibody.speeds().find(beyond(limit)).map(|found| (found, "m/s"));
    let turning = || multibody.angular_speeds().find(beyond(MOST_TURN / multibody.time_step()));
    let Some(((body, speed), unit)) = moving.or_else(|| Some((turning()?, "rad/s"))) else { return Ok(()) };
    let model = multibody.model();
    let powers =
        multibody.force_values().iter().zip(multibody.force_rates()).map(|(force, rate)| force * rate);
    let strongest = model.force_names().zip(powers).zip(multibody.force_values());
    let strongest = strongest.max_by(|a, b| a.0.1.abs().total_cmp(&b.0.1.abs()));
    Err(StepError::MachineTooFast {
        machine: model.name().into(),
        body: model.body_name(body).into(),
        joint: model.joint_name(body).into(),
        speed: format!("{speed:.3e} {unit}"),
        force: strongest.map_or(String::new(), |((name, power), value)| {
            format!("; of its forces {name:?} does most, {value:.3e} N or N m with {power:.3e} W")
        }),
    })
}

fn error(machine: &Machine, problem: MultibodyError) -> StepError {
    let machine = machine.multibody.model().name().to_string();
    StepError::Machine { machine, cut: problem.cut().map(str::to_string), problem: problem.to_string() }
}
