//! What a user says about bodies, joints, cuts and forces, by names.

use super::joint::JointKind;
use super::law::Law;
use crate::geometry::{Mat3, Pose, Vec3};

/// A rigid body of the machine. All in the body frame, which the user may put anywhere in the body.
#[derive(Clone, Debug, PartialEq)]
pub struct BodySpec {
    pub name: String,
    /// kg, may be 0 for a body that only carries others.
    pub mass: f64,
    /// Centre of mass, m.
    pub centre: Vec3,
    /// About the centre of mass, kg m².
    pub inertia: Mat3,
    pub points: Vec<(String, Vec3)>,
    /// Whether contact shapes will be attached: such bodies appear in the reduced operators.
    pub has_contacts: bool,
}

impl BodySpec {
    pub fn new(name: &str, mass: f64, centre: Vec3, inertia: Mat3) -> Self {
        Self { name: name.into(), mass, centre, inertia, points: Vec::new(), has_contacts: false }
    }

    pub fn point(mut self, name: &str, position: Vec3) -> Self {
        self.points.push((name.into(), position));
        self
    }

    pub fn with_contacts(mut self) -> Self {
        self.has_contacts = true;
        self
    }
}

/// The joint that carries `child` on `parent` (a body, or `ground`).
#[derive(Clone, Debug, PartialEq)]
pub struct JointSpec {
    pub name: String,
    pub kind: JointKind,
    pub parent: String,
    pub child: String,
    /// Joint frame in the parent body.
    pub parent_frame: Pose,
    /// Joint frame in the child body.
    pub child_frame: Pose,
    /// First position: nq numbers, or none for the neutral position.
    pub position: Vec<f64>,
    /// First velocity: nv numbers, or none for rest.
    pub velocity: Vec<f64>,
    /// Whether assembly must keep position and velocity as given.
    pub held: bool,
}

impl JointSpec {
    pub fn new(name: &str, kind: JointKind, parent: &str, child: &str) -> Self {
        Self {
            name: name.into(),
            kind,
            parent: parent.into(),
            child: child.into(),
            parent_frame: Pose::identity(),
            child_frame: Pose::identity(),
            position: Vec::new(),
            velocity: Vec::new(),
            held: false,
        }
    }

    /// Joint frame on the parent, axes parallel to the parent's.
    pub fn parent_at(mut self, position: Vec3) -> Self {
        self.parent_frame.position = position;
        self
    }

    pub fn frames(mut self, parent_frame: Pose, child_frame: Pose) -> Self {
        self.parent_frame = parent_frame;
        self.child_frame = child_frame;
        self
    }

    pub fn start(mut self, position: &[f64], velocity: &[f64]) -> Self {
        self.position = position.to_vec();
        self.velocity = velocity.to_vec();
        self
    }

    pub fn hold(mut self) -> Self {
        self.held = true;
        self
    }
}

/// How a loop is closed.
#[derive(Clone, Debug, PartialEq)]
pub enum CutKind {
    /// Two points coincide (3 equations).
    Points { a: String, b: String },
    /// Two points keep a distance, m (1 equation).
    Rod { a: String, b: String, length: f64 },
    /// Two frames coincide (6 equations): bodies, and placements in them.
    Frames { body_a: String, frame_a: Pose, body_b: String, frame_b: Pose },
}

#[derive(Clone, Debug, PartialEq)]
pub struct CutSpec {
    pub name: String,
    pub kind: CutKind,
}

/// Force of a link between two points, positive pushing them apart.
#[derive(Debug)]
pub enum LinkLaw {
    /// `-stiffness (length - rest_length) - damping rate`
    SpringDamper { stiffness: f64, damping: f64, rest_length: f64 },
    /// Sees the length as `value`.
    Law(Law),
}

/// A direction, fixed in the world or in the body that it acts on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Direction {
    World(Vec3),
    Body(Vec3),
}

/// A force element.
#[derive(Debug)]
pub enum ForceSpec {
    /// `-stiffness (q - rest) - damping v` on one coordinate. On a quaternion only damping makes sense.
    JointSpring { coordinate: String, stiffness: f64, damping: f64, rest: f64 },
    /// A force or torque on one coordinate.
    Actuator { coordinate: String, law: Law },
    /// Along the line between two points.
    Link { a: String, b: String, law: LinkLaw },
    /// At a point; `direction` is not normalised.
    Force { point: String, direction: Direction, law: Law },
    /// On a body; `direction` is not normalised.
    Torque { body: String, direction: Direction, law: Law },
}
