//! A machine in motion: model, state and scratch, and the calls of one time step.

use super::assembly::{first_partition, sample_prescribed};
use super::closure::{Closure, ClosureScratch, close_loops};
use super::error::MultibodyError;
use super::kinematics::Data;
use super::model::{BodyIndex, Coordinates, Model};
use super::operators::{BodyOperators, PointMap, ReducedOperators, RigidMap};
use super::partition::Partition;
use super::reduction::Reduced;
use super::spatial::Twist;
use crate::geometry::{Pose, Vec3};
use crate::words::choices;
use nalgebra::DVector;
use serde::{Deserialize, Serialize};

/// What a checkpoint holds of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MultibodyState {
    pub coordinates: Coordinates,
    pub partition: Partition,
    /// s
    pub time: f64,
    pub quantities: Vec<f64>,
    /// Stored beside the rest, since most schemes have none.
    #[serde(skip)]
    pub memory: Vec<f64>,
}

/// An impulse on a body: N s at the body frame's origin, and N m s about it, world axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BodyImpulse {
    pub body: BodyIndex,
    pub linear: Vec3,
    pub angular: Vec3,
}

choices! {
    /// At which velocity forces are evaluated within a step; see [`Multibody::set_force_evaluation`].
    ///
    /// `start-velocity` is `f(q_m, v_n)`, as in the paper's (28): first order where forces depend on
    /// velocity, as gyroscopic ones do. `middle-velocity` is `f(q_m, v_m)` with `v_m` predicted for the same
    /// moment as `q_m`: second order for θ = ½, at the price of a second evaluation of the forces.
    #[derive(Default)]
    pub enum ForceEvaluation {
        #[default]
        StartVelocity = "start-velocity", "that of the start of the step, as in the paper: first order";
        MiddleVelocity = "middle-velocity", "predicted for the middle of the step: second order, a little slower";
    }
}

choices! {
    /// At which position contacts see the velocities of bodies; see [`Multibody::set_contact_velocity`].
    ///
    /// `middle` is `H(q_m)ᵀ v_n` before and `H(q_m)ᵀ v_{n+1}` after, as in the paper. Where `H` turns fast,
    /// both are off by half a step of `dH/dt v`, which depends on the choice of coordinates. `ends` is before
    /// at the start of the step and after at its end, each to first order: `H(q_m)ᵀ v ± duration · dH/dt v`.
    /// On the slider–crank at h = 1e-5 the chain's impact times are then as good as those of the
    /// y-independent cut.
    #[derive(Default)]
    pub enum ContactVelocity {
        #[default]
        Middle = "middle", "that of the middle of the step, as in the paper";
        Ends = "ends", "those of both ends of the step: more exact where joints turn fast";
    }
}

/// A mechanism that moves. Its loops are closed between calls, except after `advance_positions`.
#[derive(Debug)]
pub struct Multibody {
    pub(super) model: Model,
    pub(super) coordinates: Coordinates,
    pub(super) partition: Partition,
    pub(super) data: Data,
    pub(super) reduced: Reduced,
    scratch: ClosureScratch,
    operators: ReducedOperators,
    quantities: Vec<f64>,
    /// End of the last finished step, s.
    time: f64,
    /// How far the positions are ahead of `time`, s.
    advanced: f64,
    /// Length of the step that `reduce` was called for, s.
    pub(super) time_step: f64,
    /// Velocities at q_m and the start of the step.
    pub(super) velocity: Vec<f64>,
    drift: Vec<f64>,
    prescribed_acceleration: Vec<f64>,
    force_evaluation: ForceEvaluation,
    contact_velocity: ContactVelocity,
    /// Velocities at which forces are evaluated.
    force_velocity: Vec<f64>,
    last_closure: Closure,
    /// What the last displacement of positions alone has changed: energy of weight and that of springs, J.
    pub(super) displaced: [f64; 2],
    /// What the time integrator remembers of this system from step to step; only it knows what the numbers
    /// mean.
    pub memory: Vec<f64>,
}

impl Multibody {
    /// Assembles a mechanism at its initial coordinates and at `time`.
    pub fn new(model: Model, time: f64) -> Result<Self, MultibodyError> {
        let mut coordinates = model.initial().clone();
        model.normalise(&mut coordinates)?;
        let mut data = Data::new(&model);
        sample_prescribed(&model, time, &mut coordinates);
        let partition = first_partition(&model, &mut data, &mut coordinates)?;
        let mut machine = Self::with_partition(model, data, coordinates, partition, time);
        machine.close_loops()?;
        let Multibody { model, data, reduced, partition, coordinates, .. } = &mut machine;
        reduced.update_map(model, data, partition)?;
        reduced.complete_velocity(model, data, partition, &mut coordinates.v);
        // Velocities were completed from what the user held; only now may the partition follow its own rules.
        machine.choose_partition()?;
        machine.refresh();
        machine.energy();
        Ok(machine)
    }

    /// Continues from a checkpoint: every bit of the state is kept.
    pub fn restore(model: Model, state: MultibodyState) -> Result<Self, MultibodyError> {
        let MultibodyState { mut coordinates, partition, time, quantities, memory } = state;
        model.normalise(&mut coordinates)?;
        let needed = model.quantities.len();
        if quantities.len() != needed {
            return Err(MultibodyError::WrongLength { what: "quantities", given: quantities.len(), needed });
        }
        partition.check(&model)?;
        let data = Data::new(&model);
        let mut machine = Self::with_partition(model, data, coordinates, partition, time);
        (machine.quantities, machine.memory) = (quantities, memory);
        machine.rebuild()?;
        Ok(machine)
    }

    /// Back to a state that this system had between two steps, bit by bit.
    pub fn take_back(&mut self, state: &MultibodyState) -> Result<(), MultibodyError> {
        let MultibodyState { coordinates, partition, time, quantities, memory } = state;
        self.coordinates.clone_from(coordinates);
        if self.partition != *partition {
            self.partition.clone_from(partition);
            self.reduced = Reduced::new(&self.model, &self.partition);
        }
        self.quantities.clone_from(quantities);
        self.memory.clone_from(memory);
        (self.time, self.advanced) = (*time, 0.0);
        self.rebuild()
    }

    /// Scratch that follows from the state.
    fn rebuild(&mut self) -> Result<(), MultibodyError> {
        self.data.update_positions(&self.model, &self.coordinates.q);
        self.data.update_residual(&self.model);
        self.data.update_loop_jacobian(&self.model);
        self.reduced.update_map(&self.model, &self.data, &self.partition)?;
        self.refresh();
        self.energy();
        Ok(())
    }

    fn with_partition(
        model: Model,
        data: Data,
        coordinates: Coordinates,
        partition: Partition,
        time: f64,
    ) -> Self {
        let nv = model.nv();
        Self {
            reduced: Reduced::new(&model, &partition),
            scratch: ClosureScratch::new(&model),
            operators: ReducedOperators::default(),
            quantities: model.quantities.iter().map(|(_, initial)| *initial).collect(),
            time,
            advanced: 0.0,
            time_step: 0.0,
            velocity: vec![0.0; nv],
            drift: vec![0.0; nv],
            prescribed_acceleration: vec![0.0; model.prescribed.len()],
            force_evaluation: ForceEvaluation::default(),
            contact_velocity: ContactVelocity::default(),
            force_velocity: vec![0.0; nv],
            last_closure: Closure::default(),
            displaced: [0.0; 2],
            memory: Vec::new(),
            model,
            coordinates,
            partition,
            data,
        }
    }

    pub fn state(&self) -> MultibodyState {
        MultibodyState {
            coordinates: self.coordinates.clone(),
            partition: self.partition.clone(),
            time: self.time,
            quantities: self.quantities.clone(),
            memory: self.memory.clone(),
        }
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    pub fn data(&self) -> &Data {
        &self.data
    }

    pub fn reduced(&self) -> &Reduced {
        &self.reduced
    }

    pub fn coordinates(&self) -> &Coordinates {
        &self.coordinates
    }

    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// Length of the step that `reduce` was last called for, s.
    pub fn time_step(&self) -> f64 {
        self.time_step
    }

    pub fn time(&self) -> f64 {
        self.time
    }

    /// Of the last closure.
    pub fn closure(&self) -> Closure {
        self.last_closure
    }

    /// How forces are evaluated from the next `reduce` on. Not part of the state: set it again after a
    /// restart.
    pub fn set_force_evaluation(&mut self, force_evaluation: ForceEvaluation) {
        self.force_evaluation = force_evaluation;
    }

    pub(super) fn force_evaluation(&self) -> ForceEvaluation {
        self.force_evaluation
    }

    /// How contacts see velocities from the next `reduce` on. Not part of the state: set it again after a
    /// restart.
    pub fn set_contact_velocity(&mut self, contact_velocity: ContactVelocity) {
        self.contact_velocity = contact_velocity;
    }

    pub fn set_quantity(&mut self, quantity: usize, value: f64) {
        self.quantities[quantity] = value;
    }

    /// For each force element the velocity with which it yields, now: its power by its value.
    pub fn force_rates(&self) -> Vec<f64> {
        self.data.force_rates(&self.model, &self.coordinates.v)
    }

    /// Values of the force elements when `reduce` or `accelerations` last evaluated them, in the model's
    /// order.
    pub fn force_values(&self) -> &[f64] {
        &self.data.force_values
    }

    /// Velocity of the body-fixed point at `point` (world), and angular velocity, at the current coordinates.
    pub fn body_twist(&self, body: BodyIndex, point: &Vec3) -> Twist {
        self.data.body_twist(body, point)
    }

    /// All bodies with the speeds of their frames, m/s.
    pub fn speeds(&self) -> impl Iterator<Item = (BodyIndex, f64)> {
        let speed = |body| self.body_twist(body, &self.pose(body).position).linear.norm();
        (0..self.model.body_count()).map(BodyIndex).map(move |body| (body, speed(body)))
    }

    /// All bodies with their angular speeds, rad/s.
    pub fn angular_speeds(&self) -> impl Iterator<Item = (BodyIndex, f64)> {
        let speed = |body| self.body_twist(body, &self.pose(body).position).angular.norm();
        (0..self.model.body_count()).map(BodyIndex).map(move |body| (body, speed(body)))
    }

    pub fn pose(&self, body: BodyIndex) -> Pose {
        self.data.pose(body)
    }

    /// (29), (30): `q ← q ⊕ duration · v`. Dependent coordinates move along as Newton's first guess;
    /// prescribed ones go where their motion says.
    pub fn advance_positions(&mut self, duration: f64) {
        self.model.integrate(&mut self.coordinates.q, &self.coordinates.v, duration);
        self.advanced += duration;
        for (column, motion) in &self.model.prescribed {
            if let Some(position) = self.model.coordinates[*column].position {
                self.coordinates.q[position] = motion.sample(self.time + self.advanced).position;
            }
        }
    }

    /// (16): dependent positions from the independent ones.
    pub fn close_loops(&mut self) -> Result<Closure, MultibodyError> {
        let Multibody { model, data, reduced, partition, scratch, coordinates, .. } = self;
        self.last_closure = close_loops(model, data, reduced, partition, scratch, &mut coordinates.q)?;
        Ok(self.last_closure)
    }

    /// (20)–(27) at `q_m`, and (28) without contacts. `t` is the start of the step, `h` its length. Needs
    /// closed loops.
    ///
    /// Over a step, a prescribed joint accelerates by the difference of its velocities at both ends, not by
    /// the momentary acceleration, so that the momentum it gives is exact even where its velocity jumps.
    pub fn reduce(&mut self, t: f64, h: f64) -> Result<&ReducedOperators, MultibodyError> {
        self.time = t;
        self.time_step = h;
        let Multibody { model, data, reduced, partition, .. } = self;
        reduced.update_map(model, data, partition)?;
        self.velocity.copy_from_slice(&self.coordinates.v);
        for (k, (column, motion)) in model.prescribed.iter().enumerate() {
            let (before, after) = (motion.sample(t).velocity, motion.sample(t + h).velocity);
            self.velocity[*column] = before;
            self.prescribed_acceleration[k] = (after - before) / h;
        }
        reduced.complete_velocity(model, data, partition, &mut self.velocity);
        self.force_velocity.copy_from_slice(&self.velocity);
        data.update_mass(model);
        reduced.update_mass(model, data, partition)?;
        self.evaluate_force(t + self.advanced)?;
        if self.force_evaluation == ForceEvaluation::MiddleVelocity && self.advanced > 0.0 {
            self.predict_middle_velocity();
            self.evaluate_force(t + self.advanced)?;
        }
        self.fill_operators(t, h);
        Ok(&self.operators)
    }

    /// `force_velocity ← v_n + (t_m − t_n) dv`, kept admissible by (20) at `q_m`.
    fn predict_middle_velocity(&mut self) {
        let Multibody { model, data, reduced, partition, force_velocity, .. } = self;
        let nu = partition.nu();
        for (k, &column) in partition.independent.iter().enumerate() {
            let gain = (0..nu).map(|j| reduced.mass_inverse[(j, k)] * reduced.force[j]).sum::<f64>();
            force_velocity[column] += self.advanced * gain;
        }
        for ((column, _), acceleration) in model.prescribed.iter().zip(&self.prescribed_acceleration) {
            force_velocity[*column] += self.advanced * acceleration;
        }
        reduced.complete_velocity(model, data, partition, force_velocity);
    }

    /// Reduced force for `self.force_velocity` and `self.prescribed_acceleration`.
    fn evaluate_force(&mut self, time: f64) -> Result<(), MultibodyError> {
        let Multibody { model, data, reduced, partition, force_velocity, coordinates, .. } = self;
        data.update_velocities(model, force_velocity);
        data.update_loop_jacobian_rate(model);
        data.update_forces(model, &coordinates.q, force_velocity, time, &self.quantities);
        data.update_force(model);
        if let Some(k) = data.force.iter().position(|x| !x.is_finite()) {
            let mut elements = model.force_names().zip(&data.force_values);
            let element = elements.find(|(_, value)| !value.is_finite());
            let element = element.map_or(String::new(), |(name, _)| format!(" of {name:?}"));
            let what = format!("the force{element} on `{}`", model.coordinate_name(k));
            return Err(MultibodyError::NotANumber { what });
        }
        reduced.update_bias(model, data, partition, &self.prescribed_acceleration);
        reduced.update_force(data, partition);
        Ok(())
    }

    fn fill_operators(&mut self, t: f64, h: f64) {
        let Multibody { reduced, partition, operators, velocity, .. } = self;
        let nu = partition.nu();
        operators.nu = nu;
        operators.mass_inverse.clear();
        operators.mass_inverse.extend_from_slice(reduced.mass_inverse.as_slice());
        operators.velocity.clear();
        operators.free_velocity.clear();
        for (k, &column) in partition.independent.iter().enumerate() {
            let gain = (0..nu).map(|j| reduced.mass_inverse[(j, k)] * reduced.force[j]).sum::<f64>();
            operators.velocity.push(velocity[column]);
            operators.free_velocity.push(velocity[column] + h * gain);
        }
        operators.durations = [self.advanced, h - self.advanced];
        self.fill_bodies();
        self.fill_drift(t, h);
        self.fill_rates();
    }

    /// Poses and reduced Jacobians of the bodies that carry contact shapes.
    fn fill_bodies(&mut self) {
        let Multibody { model, data, reduced, partition, operators, .. } = self;
        let nu = partition.nu();
        reduced.update_body_map(model, data);
        operators.bodies.clear();
        for &body in &model.contact_bodies {
            let pose = data.poses[body];
            let arm = pose.position - data.reference;
            let mut map = RigidMap { jacobian: vec![0.0; 6 * nu], ..Default::default() };
            for k in 0..nu {
                write_twist(&mut map.jacobian, nu, k, &reduced.body_map[body * nu + k], &arm);
            }
            operators.bodies.push(BodyOperators { body, pose, points: PointMap::Rigid(map) });
        }
    }

    /// What prescribed joints add to the velocities of these bodies, before and after.
    fn fill_drift(&mut self, t: f64, h: f64) {
        let Multibody { model, data, reduced, partition, operators, drift, .. } = self;
        if model.prescribed.is_empty() {
            return;
        }
        for (time, at_end) in [(t, false), (t + h, true)] {
            drift.fill(0.0);
            for (column, motion) in &model.prescribed {
                drift[*column] = motion.sample(time).velocity;
            }
            reduced.drift(model, data, partition, drift);
            for BodyOperators { body, pose, points: PointMap::Rigid(map) } in &mut operators.bodies {
                let arm = pose.position - data.reference;
                let target = if at_end { &mut map.drift } else { &mut map.drift_before };
                write_twist(target, 1, 0, &data.twist_for(model, *body, drift), &arm);
            }
        }
    }

    /// How fast the Jacobians of these bodies turn, where contacts want to know.
    fn fill_rates(&mut self) {
        let Multibody { model, data, reduced, partition, operators, drift, .. } = self;
        if self.contact_velocity == ContactVelocity::Middle {
            return;
        }
        drift.fill(0.0);
        reduced.closure_bias(data, partition, drift);
        for BodyOperators { body, pose, points: PointMap::Rigid(map) } in &mut operators.bodies {
            let arm = pose.position - data.reference;
            let loops = data.twist_for(model, *body, drift);
            let rate = data.jacobian_rate(BodyIndex(*body), &pose.position)
                + Twist::new(loops.at(&arm), loops.angular);
            map.rates[..3].copy_from_slice(rate.linear.as_slice());
            map.rates[3..6].copy_from_slice(rate.angular.as_slice());
            map.rates[6..].copy_from_slice(data.twists[*body].angular.as_slice());
        }
    }

    /// The operators of the last `reduce`.
    pub fn operators(&self) -> &ReducedOperators {
        &self.operators
    }

    /// (30), (16), (20): takes the independent velocities at the end of the step, moves to its end, closes
    /// the loops and completes the velocities. Changes the partition where it has become ill-conditioned.
    pub fn finish(&mut self, v_u_new: &[f64]) -> Result<(), MultibodyError> {
        self.finish_with_shift(v_u_new, &[])
    }

    /// As [`finish`](Self::finish), and moves the independent positions by `shift` on the way, without
    /// touching their velocities: a correction of penetration. `shift` is empty or has one entry for each
    /// independent velocity.
    pub fn finish_with_shift(&mut self, v_u_new: &[f64], shift: &[f64]) -> Result<(), MultibodyError> {
        self.accept_velocity(v_u_new)?;
        let end = self.time + self.time_step;
        // Dependent and prescribed velocities of q_m: good enough to predict from, since closure corrects the
        // former.
        let Multibody { model, data, reduced, partition, coordinates, .. } = self;
        for (column, motion) in &model.prescribed {
            coordinates.v[*column] = motion.sample(end).velocity;
        }
        reduced.complete_velocity(model, data, partition, &mut coordinates.v);
        self.advance_positions(self.time_step - self.advanced);
        self.displaced = [0.0; 2];
        if !shift.is_empty() {
            self.move_by(shift)?;
        }
        self.close_loops()?;
        self.time = end;
        self.advanced = 0.0;
        let Multibody { model, data, reduced, partition, coordinates, .. } = self;
        reduced.update_map(model, data, partition)?;
        reduced.complete_velocity(model, data, partition, &mut coordinates.v);
        self.choose_partition()?;
        self.refresh();
        Ok(())
    }

    /// Between steps: moves the independent positions by `shift` and closes the loops. Independent velocities
    /// stay as they are.
    pub fn shift(&mut self, shift: &[f64]) -> Result<(), MultibodyError> {
        self.move_by(shift)?;
        self.close_loops()?;
        let Multibody { model, data, reduced, partition, coordinates, .. } = self;
        reduced.update_map(model, data, partition)?;
        reduced.complete_velocity(model, data, partition, &mut coordinates.v);
        self.refresh();
        Ok(())
    }

    /// (20) after independent velocities were changed between steps.
    pub(super) fn complete_velocities(&mut self) {
        let Multibody { model, data, reduced, partition, coordinates, .. } = self;
        reduced.complete_velocity(model, data, partition, &mut coordinates.v);
        self.refresh();
    }

    /// Between steps: the operators for the machine as it stands, without forces, and with what it moves at
    /// as free velocity.
    pub fn stand(&mut self) -> Result<&ReducedOperators, MultibodyError> {
        let Multibody { model, data, reduced, partition, operators, coordinates, .. } = self;
        data.update_mass(model);
        reduced.update_mass(model, data, partition)?;
        operators.nu = partition.nu();
        operators.mass_inverse.clear();
        operators.mass_inverse.extend_from_slice(reduced.mass_inverse.as_slice());
        operators.velocity.clear();
        operators.velocity.extend(partition.independent.iter().map(|&column| coordinates.v[column]));
        operators.free_velocity.clone_from(&operators.velocity);
        operators.durations = [0.0; 2];
        self.fill_bodies();
        Ok(&self.operators)
    }

    fn accept_velocity(&mut self, v_u_new: &[f64]) -> Result<(), MultibodyError> {
        let needed = self.partition.nu();
        if v_u_new.len() != needed {
            return Err(MultibodyError::WrongLength { what: "v_u", given: v_u_new.len(), needed });
        }
        for (&value, &column) in v_u_new.iter().zip(&self.partition.independent) {
            if !value.is_finite() {
                let what = format!("the velocity of `{}`", self.model.coordinate_name(column));
                return Err(MultibodyError::NotANumber { what });
            }
            self.coordinates.v[column] = value;
        }
        Ok(())
    }

    /// Twists of the current velocities, for observers of the machine between steps.
    fn refresh(&mut self) {
        self.data.update_velocities(&self.model, &self.coordinates.v);
        self.velocity.copy_from_slice(&self.coordinates.v);
    }

    /// `dv` of all coordinates at the current state without contacts, from (24) and (26), with prescribed
    /// accelerations as given. For smooth motion and for checks; time stepping uses `reduce`.
    pub fn accelerations(&mut self) -> Result<DVector<f64>, MultibodyError> {
        let Multibody { model, data, reduced, partition, coordinates, .. } = self;
        reduced.update_map(model, data, partition)?;
        self.velocity.copy_from_slice(&coordinates.v);
        self.force_velocity.copy_from_slice(&coordinates.v);
        data.update_mass(model);
        reduced.update_mass(model, data, partition)?;
        for (k, (_, motion)) in model.prescribed.iter().enumerate() {
            self.prescribed_acceleration[k] = motion.sample(self.time).acceleration;
        }
        self.evaluate_force(self.time)?;
        let dv_u = &self.reduced.mass_inverse * &self.reduced.force;
        Ok(&self.reduced.map * dv_u + &self.reduced.bias)
    }

    /// Model, partition and closure error, for a person to read.
    pub fn describe(&self) -> String {
        let names = |columns: &[usize]| {
            let names: Vec<&str> = columns.iter().map(|&k| self.model.coordinate_name(k)).collect();
            if names.is_empty() { "none".to_string() } else { names.join(", ") }
        };
        format!(
            "{}  independent: {}\n  dependent: {}\n  closure equations: {} kept of {}, closed to {:.1e}\n",
            self.model.describe(),
            names(&self.partition.independent),
            names(&self.partition.dependent),
            self.partition.rows.len(),
            self.model.closure_rows(),
            self.last_closure.error.max(self.last_closure.redundant_error),
        )
    }
}

/// Column `k` of a 6 × nu block: a twist about the reference, seen at a point `arm` away.
fn write_twist(block: &mut [f64], nu: usize, k: usize, twist: &Twist, arm: &Vec3) {
    let linear = twist.at(arm);
    for axis in 0..3 {
        block[axis * nu + k] = linear[axis];
        block[(axis + 3) * nu + k] = twist.angular[axis];
    }
}
