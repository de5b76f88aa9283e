//! Force elements: springs and dampers, links between points, actuators, external forces.
//!
//! They are evaluated explicitly at (q_m, v_n, t), as the paper's (28) does.

use super::kinematics::Data;
use super::law::{Law, LawInput};
use super::model::{BodyIndex, Model, PointRef};
use super::spatial::Wrench;
use super::spec::{Direction, LinkLaw};
use crate::geometry::Vec3;

#[derive(Debug)]
pub(super) enum ForceElement {
    JointSpring { column: usize, stiffness: f64, damping: f64, rest: f64 },
    Actuator { column: usize, law: Law },
    Link { a: PointRef, b: PointRef, law: LinkLaw },
    Force { body: usize, position: Vec3, direction: Direction, law: Law },
    Torque { body: usize, direction: Direction, law: Law },
}

impl ForceElement {
    pub fn kind_name(&self) -> &'static str {
        match self {
            ForceElement::JointSpring { .. } => "joint spring",
            ForceElement::Actuator { .. } => "actuator",
            ForceElement::Link { .. } => "link",
            ForceElement::Force { .. } => "force",
            ForceElement::Torque { .. } => "torque",
        }
    }
}

/// Below this length (m) a link has no direction and pushes nothing.
const SHORTEST_LINK: f64 = 1e-12;

impl Data {
    /// Evaluates all elements: generalized forces into `joint_force`, wrenches on bodies into `applied`, and
    /// the value of each into `force_values`. Needs current positions and velocities.
    pub(super) fn update_forces(
        &mut self,
        model: &Model,
        q: &[f64],
        v: &[f64],
        time: f64,
        quantities: &[f64],
    ) {
        self.joint_force.fill(0.0);
        self.applied.fill(Wrench::zero());
        for (k, (_, element)) in model.forces.iter().enumerate() {
            let input = |value, rate| LawInput { time, value, rate, positions: q, velocities: v, quantities };
            let at = |column: usize| model.coordinates[column].position.map_or(0.0, |p| q[p]);
            let value = match element {
                ForceElement::JointSpring { column, stiffness, damping, rest } => {
                    let spring = if *stiffness == 0.0 { 0.0 } else { stiffness * (at(*column) - rest) };
                    let value = -spring - damping * v[*column];
                    self.joint_force[*column] += value;
                    value
                }
                ForceElement::Actuator { column, law } => {
                    let value = law.evaluate(&input(at(*column), v[*column]));
                    self.joint_force[*column] += value;
                    value
                }
                ForceElement::Link { a, b, law } => self.push_link(a, b, |length, rate| match law {
                    LinkLaw::SpringDamper { stiffness, damping, rest_length } => {
                        -stiffness * (length - rest_length) - damping * rate
                    }
                    LinkLaw::Law(law) => law.evaluate(&input(length, rate)),
                }),
                ForceElement::Force { body, position, direction, law } => {
                    let value = law.evaluate(&input(0.0, 0.0));
                    let arm = self.poses[*body].point(position) - self.reference;
                    let force = self.world_direction(*body, direction) * value;
                    self.applied[*body] += Wrench::at(force, &arm);
                    value
                }
                ForceElement::Torque { body, direction, law } => {
                    let value = law.evaluate(&input(0.0, 0.0));
                    let moment = self.world_direction(*body, direction) * value;
                    self.applied[*body].moment += moment;
                    value
                }
            };
            self.force_values[k] = value;
        }
    }

    /// How fast each element yields to its own force: its power is this times its value. Needs current
    /// positions and velocities.
    pub(super) fn force_rates(&self, model: &Model, v: &[f64]) -> Vec<f64> {
        let rate = |element: &ForceElement| match element {
            ForceElement::JointSpring { column, .. } | ForceElement::Actuator { column, .. } => v[*column],
            ForceElement::Link { a, b, .. } => {
                let (point_a, point_b) = (self.world_point(a), self.world_point(b));
                let span = point_b - point_a;
                let length = span.norm();
                let relative = self.point_velocity(b.body, &point_b) - self.point_velocity(a.body, &point_a);
                if length > SHORTEST_LINK { relative.dot(&span) / length } else { 0.0 }
            }
            ForceElement::Force { body, position, direction, .. } => {
                let point = self.poses[*body].point(position);
                self.point_velocity(Some(BodyIndex(*body)), &point)
                    .dot(&self.world_direction(*body, direction))
            }
            ForceElement::Torque { body, direction, .. } => {
                self.twists[*body].angular.dot(&self.world_direction(*body, direction))
            }
        };
        model.forces.iter().map(|(_, element)| rate(element)).collect()
    }

    /// Of springs with a stiffness, J; laws given by formulas have none. Needs current positions.
    pub(super) fn spring_energy(&self, model: &Model, q: &[f64]) -> f64 {
        let energy = |element: &ForceElement| match element {
            ForceElement::JointSpring { column, stiffness, rest, .. } => {
                let position = model.coordinates[*column].position.map_or(*rest, |place| q[place]);
                0.5 * stiffness * (position - rest).powi(2)
            }
            ForceElement::Link { a, b, law: LinkLaw::SpringDamper { stiffness, rest_length, .. } } => {
                let length = (self.world_point(b) - self.world_point(a)).norm();
                0.5 * stiffness * (length - rest_length).powi(2)
            }
            _ => 0.0,
        };
        model.forces.iter().map(|(_, element)| energy(element)).sum()
    }

    fn push_link(&mut self, a: &PointRef, b: &PointRef, law: impl Fn(f64, f64) -> f64) -> f64 {
        let (point_a, point_b) = (self.world_point(a), self.world_point(b));
        let span = point_b - point_a;
        let length = span.norm();
        let direction = if length > SHORTEST_LINK { span / length } else { Vec3::zeros() };
        let relative = self.point_velocity(b.body, &point_b) - self.point_velocity(a.body, &point_a);
        let value = law(length, relative.dot(&direction));
        for (end, point, sign) in [(a, point_a, -1.0), (b, point_b, 1.0)] {
            if let Some(body) = end.body {
                self.applied[body.0] += Wrench::at(direction * (sign * value), &(point - self.reference));
            }
        }
        value
    }

    fn world_direction(&self, body: usize, direction: &Direction) -> Vec3 {
        match direction {
            Direction::World(axis) => *axis,
            Direction::Body(axis) => self.poses[body].direction(axis),
        }
    }
}
