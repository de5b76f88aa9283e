//! A machine of a case: plain, checked data, by the names of its own parts.

use crate::formula::Expression;
use crate::geometry::{Mat3, Vec3};
use crate::input::case::ClusterPart;
use crate::machine::{Decisions, MachineLaw, MachinePhase, PHASE_QUANTITIES};
use crate::multibody::{
    BodySpec, ContactVelocity, CutSpec, Direction, ForceEvaluation, ForceSpec, JointSpec, Law, LinkLaw,
    MotionSample, MultibodyBuilder, Partitioning, PrescribedMotion,
};
use crate::words::choices;

#[derive(Clone, Debug, PartialEq)]
pub struct CaseMachine {
    pub name: String,
    /// In the order of the case.
    pub bodies: Vec<MachineBody>,
    pub ground_points: Vec<(String, Vec3)>,
    pub joints: Vec<JointSpec>,
    pub cuts: Vec<CutSpec>,
    /// Coordinate and its position as a formula of t.
    pub prescribed: Vec<(String, Expression)>,
    pub forces: Vec<(String, MachineForce)>,
    /// Evaluated when a phase begins, and kept until the next one begins.
    pub phase_values: Vec<(String, Expression)>,
    /// Evaluated in every step, after the values of the phase, in this order.
    pub quantities: Vec<(String, Expression)>,
    /// None if the case names none.
    pub phases: Vec<MachinePhase>,
    pub partitioning: Partitioning,
    pub closure_tolerance: f64,
    pub self_contact: SelfContact,
    pub force_evaluation: ForceEvaluation,
    pub contact_velocity: ContactVelocity,
}

/// All in the frame of the body.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineBody {
    pub name: String,
    /// There if the body has no shape; otherwise in place of density times volume.
    pub mass: Option<f64>,
    /// The shape's if none, or the origin.
    pub centre: Option<Vec3>,
    /// About the centre. The shape's scaled to the mass if none, or 0.
    pub inertia: Option<Mat3>,
    pub points: Vec<(String, Vec3)>,
    /// The shape: plain parts, none for a body without one.
    pub parts: Vec<ClusterPart>,
    /// There if the body has a shape.
    pub material: Option<usize>,
    /// Whether the shape touches others.
    pub contacts: bool,
}

/// By the names of coordinates and `body.point`.
#[derive(Clone, Debug, PartialEq)]
pub enum MachineForce {
    JointSpring { coordinate: String, stiffness: f64, damping: f64, rest: f64 },
    LinkSpring { between: [String; 2], stiffness: f64, damping: f64, rest_length: f64 },
    Actuator { coordinate: String, law: MachineLaw },
    Link { between: [String; 2], law: MachineLaw },
    Force { point: String, direction: Direction, law: MachineLaw },
    Torque { body: String, direction: Direction, law: MachineLaw },
}

choices! {
    /// Which bodies of one machine can touch each other.
    pub enum SelfContact {
        NotNeighbours = "not-neighbours", "all but those that a joint or a cut connects";
        All = "all", "every two";
        None = "none", "none: they pass through each other";
    }
}

choices! {
    /// In which a direction is fixed.
    pub enum DirectionFrame {
        World = "world", "in the world";
        Body = "body", "in the body, with which it turns";
    }
}

choices! {
    /// The partition that needs no choice.
    pub enum AutomaticPartition {
        Automatic = "automatic", "the best-conditioned ones, chosen anew where that changes";
    }
}

impl CaseMachine {
    /// What its controller decides.
    pub fn decisions(&self) -> Decisions<'_> {
        let quantities = self.named_formulas().collect();
        Decisions { quantities, kept: self.phase_values.len(), phases: &self.phases }
    }

    /// All that formulas know as a quantity, in the order of evaluation.
    pub fn named_formulas(&self) -> impl Iterator<Item = (&str, &Expression)> {
        self.phase_values.iter().chain(&self.quantities).map(|(name, formula)| (name.as_str(), formula))
    }

    /// The description of the machine with these bodies, in the order of the case, and with laws as `law`
    /// makes them.
    pub fn builder(&self, bodies: Vec<BodySpec>, law: impl Fn(&MachineLaw) -> Law) -> MultibodyBuilder {
        let mut builder = MultibodyBuilder::new(&self.name);
        for body in bodies {
            builder.body(body);
        }
        for (name, position) in &self.ground_points {
            builder.ground_point(name, *position);
        }
        for joint in &self.joints {
            builder.joint(joint.clone());
        }
        for cut in &self.cuts {
            builder.cut(&cut.name, cut.kind.clone());
        }
        for (coordinate, formula) in &self.prescribed {
            let formula = formula.clone();
            let sample = move |time: f64| {
                let [position, velocity, acceleration] = formula.evaluate_with_derivatives(&[time], 0);
                MotionSample { position, velocity, acceleration }
            };
            builder.prescribe(coordinate, PrescribedMotion::new(sample));
        }
        for (name, force) in &self.forces {
            builder.force(name, force.specify(&law));
        }
        for name in self.named_formulas().map(|(name, _)| name).chain(PHASE_QUANTITIES) {
            builder.quantity(name, 0.0);
        }
        builder.partitioning(self.partitioning.clone()).closure_tolerance(self.closure_tolerance);
        builder
    }
}

impl MachineForce {
    fn specify(&self, law: &impl Fn(&MachineLaw) -> Law) -> ForceSpec {
        match self.clone() {
            MachineForce::JointSpring { coordinate, stiffness, damping, rest } => {
                ForceSpec::JointSpring { coordinate, stiffness, damping, rest }
            }
            MachineForce::LinkSpring { between: [a, b], stiffness, damping, rest_length } => {
                ForceSpec::Link { a, b, law: LinkLaw::SpringDamper { stiffness, damping, rest_length } }
            }
            MachineForce::Actuator { coordinate, law: formula } => {
                ForceSpec::Actuator { coordinate, law: law(&formula) }
            }
            MachineForce::Link { between: [a, b], law: formula } => {
                ForceSpec::Link { a, b, law: LinkLaw::Law(law(&formula)) }
            }
            MachineForce::Force { point, direction, law: formula } => {
                ForceSpec::Force { point, direction, law: law(&formula) }
            }
            MachineForce::Torque { body, direction, law: formula } => {
                ForceSpec::Torque { body, direction, law: law(&formula) }
            }
        }
    }
}
