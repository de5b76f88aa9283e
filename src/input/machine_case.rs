//! A machine of a case: plain, checked data, by the names of its own parts.

use super::case::ClusterPart;
use super::expression::Expression;
use super::keys::choices;
use crate::geometry::{Mat3, Vec3};
use crate::machine::{
    BodySpec, CutSpec, Direction, ForceSpec, JointSpec, Law, LinkLaw, MachineBuilder, MotionSample,
    Partitioning, PrescribedMotion,
};

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
    pub force_evaluation: ForceEvaluationChoice,
    pub contact_velocity: ContactVelocityChoice,
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

/// One formula, or one for each phase in their order. What its variables mean is told by their names: see
/// [`MachineVariable`].
#[derive(Clone, Debug, PartialEq)]
pub struct MachineLaw(pub Vec<Expression>);

#[derive(Clone, Debug, PartialEq)]
pub struct MachinePhase {
    pub name: String,
    /// When it ends, and which phase follows; none if it never ends.
    pub until: Option<(Expression, usize)>,
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
    /// At which velocity forces are evaluated within a step.
    pub enum ForceEvaluationChoice {
        StartVelocity = "start-velocity", "that of the start of the step, as in the paper: first order";
        MiddleVelocity = "middle-velocity", "predicted for the middle of the step: second order, a little slower";
    }
}

choices! {
    /// At which position contacts see velocities.
    pub enum ContactVelocityChoice {
        Middle = "middle", "that of the middle of the step, as in the paper";
        Ends = "ends", "those of both ends of the step: more exact where joints turn fast";
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

/// What a name in a formula of a machine stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MachineVariable<'a> {
    Time,
    /// Since the phase began.
    PhaseTime,
    /// Position of the joint, or distance of the points, on which an actuator acts.
    Own,
    OwnRate,
    /// Of a coordinate.
    Position(&'a str),
    Velocity(&'a str),
    /// A coordinate of a point `body.point`, or its rate.
    Point {
        point: &'a str,
        axis: usize,
        rate: bool,
    },
    Quantity(&'a str),
}

/// Of a machine beside its own: the phase by number, and when it began.
pub const PHASE_QUANTITIES: [&str; 2] = ["phase", "phase_start"];

impl<'a> MachineVariable<'a> {
    pub const POINT_ENDINGS: [&'static str; 6] = ["x", "y", "z", "vx", "vy", "vz"];

    /// The meaning of a name that a formula of a machine was compiled with.
    pub fn named(name: &'a str) -> Self {
        let Some((head, ending)) = name.rsplit_once('.') else {
            return match name {
                "t" => Self::Time,
                "x" => Self::Own,
                "v" => Self::OwnRate,
                _ => Self::Quantity(name),
            };
        };
        match ending {
            "position" => Self::Position(head),
            "velocity" => Self::Velocity(head),
            "time" => Self::PhaseTime,
            _ => {
                let axis = Self::POINT_ENDINGS.iter().position(|known| *known == ending).unwrap_or(0);
                Self::Point { point: head, axis: axis % 3, rate: axis >= 3 }
            }
        }
    }
}

impl CaseMachine {
    /// All that formulas know as a quantity, in the order of evaluation.
    pub fn named_formulas(&self) -> impl Iterator<Item = (&str, &Expression)> {
        self.phase_values.iter().chain(&self.quantities).map(|(name, formula)| (name.as_str(), formula))
    }

    /// The description of the machine with these bodies, in the order of the case, and with laws as `law` makes them.
    pub fn builder(&self, bodies: Vec<BodySpec>, law: impl Fn(&MachineLaw) -> Law) -> MachineBuilder {
        let mut builder = MachineBuilder::new(&self.name);
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
