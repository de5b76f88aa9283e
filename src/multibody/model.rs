//! The constant description of a machine.
//!
//! Body `i` is carried by joint `i`; parents come before children. Made by
//! [`MultibodyBuilder`](super::MultibodyBuilder).

use super::error::MultibodyError;
use super::force::ForceElement;
use super::joint::JointKind;
use super::law::PrescribedMotion;
use super::partition::Partitioning;
use crate::geometry::{Mat3, Pose, Vec3};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A body of a machine (and the joint that carries it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BodyIndex(pub usize);

/// Positions and velocities of all joints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coordinates {
    pub q: Vec<f64>,
    pub v: Vec<f64>,
}

/// A point fixed in a body (body frame), or in the ground (world frame).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointRef {
    pub body: Option<BodyIndex>,
    pub position: Vec3,
}

#[derive(Clone, Debug)]
pub(super) struct BodyModel {
    pub name: String,
    pub mass: f64,
    /// Body frame.
    pub centre: Vec3,
    /// About the centre, body axes.
    pub inertia: Mat3,
    pub points: Vec<(String, Vec3)>,
}

#[derive(Clone, Debug)]
pub(super) struct JointModel {
    pub name: String,
    pub kind: JointKind,
    pub parent: Option<usize>,
    /// Of the parent side in the parent body.
    pub parent_frame: Pose,
    /// Of the child body in the child side: the inverse of what the user gives.
    pub from_child_side: Pose,
    pub q_index: usize,
    pub v_index: usize,
}

impl JointModel {
    pub fn columns(&self) -> std::ops::Range<usize> {
        self.v_index..self.v_index + self.kind.nv()
    }

    pub fn positions(&self) -> std::ops::Range<usize> {
        self.q_index..self.q_index + self.kind.nq()
    }
}

/// One entry of `v`.
#[derive(Clone, Debug)]
pub(super) struct CoordinateModel {
    pub name: String,
    pub position: Option<usize>,
    pub is_rotation: bool,
    /// Kept as given while the mechanism is assembled.
    pub held: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CutLaw {
    Points,
    Rod { length: f64 },
    Frames,
}

/// A loop closure between frames on two bodies (or the ground).
#[derive(Clone, Debug)]
pub(super) struct CutModel {
    pub name: String,
    pub law: CutLaw,
    pub body_a: Option<usize>,
    pub frame_a: Pose,
    pub body_b: Option<usize>,
    pub frame_b: Pose,
    /// First row of this cut.
    pub row: usize,
    /// Entries of `v` on which the relative motion of the two bodies depends, with their sign.
    pub columns: Vec<(usize, f64)>,
}

impl CutModel {
    pub fn row_count(&self) -> usize {
        match self.law {
            CutLaw::Points => 3,
            CutLaw::Rod { .. } => 1,
            CutLaw::Frames => 6,
        }
    }

    pub fn rows(&self) -> std::ops::Range<usize> {
        self.row..self.row + self.row_count()
    }
}

/// Tree, cuts, forces: everything about a machine that does not change.
#[derive(Debug)]
pub struct Model {
    pub(super) name: String,
    pub(super) gravity: Vec3,
    pub(super) bodies: Vec<BodyModel>,
    pub(super) joints: Vec<JointModel>,
    pub(super) coordinates: Vec<CoordinateModel>,
    pub(super) cuts: Vec<CutModel>,
    pub(super) forces: Vec<(String, ForceElement)>,
    /// Entry of `v`, and its motion.
    pub(super) prescribed: Vec<(usize, PrescribedMotion)>,
    pub(super) is_prescribed: Vec<bool>,
    pub(super) quantities: Vec<(String, f64)>,
    /// Bodies whose operators the contact solve needs.
    pub(super) contact_bodies: Vec<usize>,
    pub(super) partitioning: Partitioning,
    pub(super) initial: Coordinates,
    pub(super) nq: usize,
    /// Longest distance inside a body: makes radians and metres comparable.
    pub(super) length: f64,
    /// Largest entry of `h_B` that counts as closed.
    pub(super) closure_tolerance: f64,
}

impl Model {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn nq(&self) -> usize {
        self.nq
    }

    pub fn nv(&self) -> usize {
        self.coordinates.len()
    }

    pub fn body_count(&self) -> usize {
        self.bodies.len()
    }

    /// Number of closure equations, redundant ones included.
    pub fn closure_rows(&self) -> usize {
        self.cuts.last().map_or(0, |cut| cut.rows().end)
    }

    pub fn body_name(&self, body: BodyIndex) -> &str {
        &self.bodies[body.0].name
    }

    pub fn body(&self, name: &str) -> Option<BodyIndex> {
        self.bodies.iter().position(|body| body.name == name).map(BodyIndex)
    }

    /// The body whose joint has this name.
    pub fn joint(&self, name: &str) -> Option<BodyIndex> {
        self.joints.iter().position(|joint| joint.name == name).map(BodyIndex)
    }

    pub fn joint_name(&self, body: BodyIndex) -> &str {
        &self.joints[body.0].name
    }

    /// Parent body; none is the ground.
    pub fn parent(&self, body: BodyIndex) -> Option<BodyIndex> {
        self.joints[body.0].parent.map(BodyIndex)
    }

    pub fn contact_bodies(&self) -> impl Iterator<Item = BodyIndex> + '_ {
        self.contact_bodies.iter().map(|&body| BodyIndex(body))
    }

    /// kg
    /// Of all bodies, kg.
    pub fn total_mass(&self) -> f64 {
        self.bodies.iter().map(|body| body.mass).sum()
    }

    pub fn mass(&self, body: BodyIndex) -> f64 {
        self.bodies[body.0].mass
    }

    /// Centre of mass in the body frame.
    pub fn centre(&self, body: BodyIndex) -> Vec3 {
        self.bodies[body.0].centre
    }

    /// About the centre, body axes, kg m².
    pub fn inertia(&self, body: BodyIndex) -> Mat3 {
        self.bodies[body.0].inertia
    }

    /// A named point `body.point`; every body has `origin` and `centre`.
    pub fn point(&self, name: &str) -> Option<PointRef> {
        let (body, point) = name.split_once('.')?;
        let index = self.body(body)?;
        let (_, position) = self.bodies[index.0].points.iter().find(|(known, _)| known == point)?;
        Some(PointRef { body: Some(index), position: *position })
    }

    /// Entry of `v` with this name: `joint.label`, or `joint` alone where the joint has one degree of
    /// freedom.
    pub fn coordinate(&self, name: &str) -> Option<usize> {
        find_coordinate(&self.coordinates, name)
    }

    /// Name of an entry of `v`.
    pub fn coordinate_name(&self, column: usize) -> &str {
        &self.coordinates[column].name
    }

    /// Entry of `q` that integrates an entry of `v`; none for quaternions.
    pub fn position_index(&self, column: usize) -> Option<usize> {
        self.coordinates[column].position
    }

    pub fn cut_names(&self) -> impl Iterator<Item = &str> + '_ {
        self.cuts.iter().map(|cut| cut.name.as_str())
    }

    /// Rows of a cut in `h_B` and in the constraint impulses.
    pub fn cut_rows(&self, cut: &str) -> Option<std::ops::Range<usize>> {
        self.cuts.iter().find(|known| known.name == cut).map(CutModel::rows)
    }

    pub fn force_names(&self) -> impl Iterator<Item = &str> + '_ {
        self.forces.iter().map(|(name, _)| name.as_str())
    }

    /// Index of a named quantity in [`LawInput::quantities`](super::LawInput::quantities).
    pub fn quantity(&self, name: &str) -> Option<usize> {
        self.quantities.iter().position(|(known, _)| known == name)
    }

    /// The coordinates as the user gave them: loops perhaps still open.
    pub fn initial(&self) -> &Coordinates {
        &self.initial
    }

    /// `q ← q ⊕ h v` on the manifold.
    pub fn integrate(&self, q: &mut [f64], v: &[f64], h: f64) {
        for joint in &self.joints {
            joint.kind.integrate(&mut q[joint.positions()], &v[joint.columns()], h);
        }
    }

    /// Unit of an entry of `v` in lengths: the machine's size for an angle, 1 for a translation.
    pub(super) fn column_length(&self, column: usize) -> f64 {
        if self.coordinates[column].is_rotation { self.length } else { 1.0 }
    }

    /// Name of the loop that a closure row belongs to.
    pub(super) fn cut_of_row(&self, row: usize) -> &str {
        self.cuts.iter().find(|cut| cut.rows().contains(&row)).map_or("", |cut| cut.name.as_str())
    }

    /// Checks lengths and numbers, and puts quaternions on the unit sphere.
    pub(super) fn normalise(&self, coordinates: &mut Coordinates) -> Result<(), MultibodyError> {
        for (what, given, needed) in
            [("q", coordinates.q.len(), self.nq), ("v", coordinates.v.len(), self.coordinates.len())]
        {
            if given != needed {
                return Err(MultibodyError::WrongLength { what, given, needed });
            }
        }
        for joint in &self.joints {
            let q = &mut coordinates.q[joint.positions()];
            let v = &coordinates.v[joint.columns()];
            let bad =
                || MultibodyError::NotANumber { what: format!("a coordinate of joint `{}`", joint.name) };
            if !q.iter().chain(v).all(|x| x.is_finite()) {
                return Err(bad());
            }
            if let Some((at, _)) = joint.kind.quaternion() {
                let norm = q[at..at + 4].iter().map(|x| x * x).sum::<f64>().sqrt();
                if norm < 1e-12 {
                    return Err(bad());
                }
                // Left alone when already unit to rounding, so that a restart keeps every bit.
                if (norm - 1.0).abs() > 1e-14 {
                    q[at..at + 4].iter_mut().for_each(|x| *x /= norm);
                }
            }
        }
        Ok(())
    }

    /// The model for a person to read: tree, degrees of freedom, cuts, forces.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        let free = self.nv() - self.prescribed.len();
        let _ = writeln!(
            text,
            "machine `{}`: {} bodies, {} coordinates ({} prescribed), {} closure equations",
            self.name,
            self.bodies.len(),
            self.nv(),
            self.nv() - free,
            self.closure_rows()
        );
        self.describe_children(None, 1, &mut text);
        for cut in &self.cuts {
            let end = |body: Option<usize>| body.map_or("ground", |b| self.bodies[b].name.as_str());
            let kind = match cut.law {
                CutLaw::Points => "coincident points".to_string(),
                CutLaw::Rod { length } => format!("rod of {length} m"),
                CutLaw::Frames => "coincident frames".to_string(),
            };
            let _ = writeln!(text, "  cut `{}`: {} – {}, {kind}", cut.name, end(cut.body_a), end(cut.body_b));
        }
        for (name, force) in &self.forces {
            let _ = writeln!(text, "  force `{name}`: {}", force.kind_name());
        }
        text
    }

    fn describe_children(&self, parent: Option<usize>, depth: usize, text: &mut String) {
        for (i, joint) in self.joints.iter().enumerate().filter(|(_, joint)| joint.parent == parent) {
            let names: Vec<String> = joint
                .columns()
                .map(|k| {
                    let mark = if self.is_prescribed[k] { " (prescribed)" } else { "" };
                    format!("{}{mark}", self.coordinates[k].name)
                })
                .collect();
            let body = &self.bodies[i];
            let freedom = if names.is_empty() { "fixed".to_string() } else { names.join(", ") };
            let _ = writeln!(text, "{}{} ({} kg): {freedom}", "  ".repeat(depth), body.name, body.mass);
            self.describe_children(Some(i), depth + 1, text);
        }
    }
}

pub(super) fn find_coordinate(coordinates: &[CoordinateModel], name: &str) -> Option<usize> {
    let exact = coordinates.iter().position(|c| c.name == name);
    exact.or_else(|| {
        let (joint, label) = name.split_once('.')?;
        let alone = coordinates.iter().position(|c| c.name == joint)?;
        // `joint.angle` for a coordinate that is listed as `joint`.
        matches!(label, "angle" | "slide").then_some(alone)
    })
}
