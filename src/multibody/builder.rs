//! Describing a machine by names, and turning the description into a checked [`Model`].
//!
//! References are strings: `body.point`, `joint` or `joint.label`; `ground` is the world, whose points are
//! declared with [`MultibodyBuilder::ground_point`] (`ground.origin` always exists). Bodies may be declared
//! in any order.

use super::error::ModelError;
use super::force::ForceElement;
use super::law::PrescribedMotion;
use super::model::{
    BodyIndex, BodyModel, CoordinateModel, Coordinates, CutLaw, CutModel, JointModel, Model, PointRef,
    find_coordinate,
};
use super::partition::Partitioning;
use super::spec::{BodySpec, CutKind, CutSpec, ForceSpec, JointSpec, LinkLaw};
use crate::geometry::{Pose, Vec3};

pub(super) const GROUND: &str = "ground";

/// Collects a description; [`build`](Self::build) checks it.
#[derive(Debug)]
pub struct MultibodyBuilder {
    name: String,
    gravity: Vec3,
    bodies: Vec<BodySpec>,
    ground_points: Vec<(String, Vec3)>,
    joints: Vec<JointSpec>,
    cuts: Vec<CutSpec>,
    forces: Vec<(String, ForceSpec)>,
    prescribed: Vec<(String, PrescribedMotion)>,
    quantities: Vec<(String, f64)>,
    partitioning: Partitioning,
    closure_tolerance: f64,
}

impl MultibodyBuilder {
    /// An empty machine without gravity.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            gravity: Vec3::zeros(),
            bodies: Vec::new(),
            ground_points: vec![("origin".into(), Vec3::zeros())],
            joints: Vec::new(),
            cuts: Vec::new(),
            forces: Vec::new(),
            prescribed: Vec::new(),
            quantities: Vec::new(),
            partitioning: Partitioning::Automatic,
            closure_tolerance: 1e-12,
        }
    }

    /// m/s²
    pub fn gravity(&mut self, gravity: Vec3) -> &mut Self {
        self.gravity = gravity;
        self
    }

    pub fn body(&mut self, body: BodySpec) -> &mut Self {
        self.bodies.push(body);
        self
    }

    /// Adds a named point to a body declared before; a body of another name gains nothing, and `build` will
    /// miss the point.
    pub fn add_point(&mut self, body: &str, name: &str, position: Vec3) -> &mut Self {
        for spec in self.bodies.iter_mut().filter(|spec| spec.name == body) {
            spec.points.push((name.into(), position));
        }
        self
    }

    pub fn ground_point(&mut self, name: &str, position: Vec3) -> &mut Self {
        self.ground_points.push((name.into(), position));
        self
    }

    pub fn joint(&mut self, joint: JointSpec) -> &mut Self {
        self.joints.push(joint);
        self
    }

    pub fn cut(&mut self, name: &str, kind: CutKind) -> &mut Self {
        self.cuts.push(CutSpec { name: name.into(), kind });
        self
    }

    pub fn force(&mut self, name: &str, force: ForceSpec) -> &mut Self {
        self.forces.push((name.into(), force));
        self
    }

    /// Gives a coordinate's motion and removes it from the unknowns.
    pub fn prescribe(&mut self, coordinate: &str, motion: PrescribedMotion) -> &mut Self {
        self.prescribed.push((coordinate.into(), motion));
        self
    }

    /// Declares a number that laws can read and the owner of the machine can set.
    pub fn quantity(&mut self, name: &str, initial: f64) -> &mut Self {
        self.quantities.push((name.into(), initial));
        self
    }

    pub fn partitioning(&mut self, partitioning: Partitioning) -> &mut Self {
        self.partitioning = partitioning;
        self
    }

    /// Largest entry of `h_B` that counts as closed, m or rad; 1e-12 unless said otherwise. Machines of
    /// kilometres need more.
    pub fn closure_tolerance(&mut self, tolerance: f64) -> &mut Self {
        self.closure_tolerance = tolerance;
        self
    }

    pub fn build(self) -> Result<Model, ModelError> {
        self.check_names()?;
        self.check_numbers()?;
        let order = self.tree_order()?;
        let bodies: Vec<BodyModel> =
            order.iter().map(|&(body, _)| self.body_model(body)).collect::<Result<_, _>>()?;
        let names = Names { bodies: &bodies, ground: &self.ground_points };
        let (joints, coordinates, initial) = self.tree(&order, &names)?;
        let cuts = self.cut_models(&names, &joints)?;
        let is_prescribed = self.prescription(&coordinates)?;
        let contact_bodies = (0..bodies.len()).filter(|&i| self.bodies[order[i].0].has_contacts).collect();
        let length = longest_arm(&bodies, &joints, &cuts);
        let column = |user: &str, name: &str| {
            find_coordinate(&coordinates, name).ok_or_else(|| unknown_coordinate(user, name, &coordinates))
        };
        if let Partitioning::Fixed(list) | Partitioning::Preferred(list) = &self.partitioning {
            list.iter().try_for_each(|name| column("the partition", name).map(drop))?;
        }
        let mut forces = Vec::new();
        for (name, spec) in self.forces {
            let element = force_element(&name, spec, &names, &coordinates)?;
            forces.push((name, element));
        }
        let mut prescribed = Vec::new();
        for (name, motion) in self.prescribed {
            prescribed.push((column("a prescribed motion", &name)?, motion));
        }
        Ok(Model {
            name: self.name,
            gravity: self.gravity,
            nq: initial.q.len(),
            bodies,
            joints,
            coordinates,
            cuts,
            forces,
            prescribed,
            is_prescribed,
            quantities: self.quantities,
            contact_bodies,
            partitioning: self.partitioning,
            initial,
            length,
            closure_tolerance: self.closure_tolerance,
        })
    }

    fn check_names(&self) -> Result<(), ModelError> {
        let lists: [(&'static str, Vec<&String>); 6] = [
            ("bodies", self.bodies.iter().map(|b| &b.name).collect()),
            ("joints", self.joints.iter().map(|j| &j.name).collect()),
            ("cuts", self.cuts.iter().map(|c| &c.name).collect()),
            ("forces", self.forces.iter().map(|(n, _)| n).collect()),
            ("quantities", self.quantities.iter().map(|(n, _)| n).collect()),
            ("ground points", self.ground_points.iter().map(|(n, _)| n).collect()),
        ];
        lists.iter().try_for_each(|(what, names)| check_list(what, names))?;
        for body in &self.bodies {
            let mut names: Vec<&String> = body.points.iter().map(|(n, _)| n).collect();
            let built_in = ["origin".to_string(), "centre".to_string()];
            names.extend(&built_in);
            check_list("points of a body", &names)?;
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), ModelError> {
        let finite = |ok: bool, what: &str| {
            if ok { Ok(()) } else { Err(ModelError::NotFinite { what: what.to_string() }) }
        };
        finite(self.gravity.iter().all(|x| x.is_finite()), "gravity")?;
        finite(self.closure_tolerance > 0.0, "the closure tolerance")?;
        for (name, point) in &self.ground_points {
            finite(point.iter().all(|x| x.is_finite()), &format!("ground point `{name}`"))?;
        }
        for joint in &self.joints {
            let frames = [&joint.parent_frame, &joint.child_frame];
            let ok = frames
                .iter()
                .all(|f| f.position.iter().chain(f.rotation.coords.iter()).all(|x| x.is_finite()));
            finite(ok, &format!("a frame of joint `{}`", joint.name))?;
        }
        if self.bodies.is_empty() { Err(ModelError::Empty) } else { Ok(()) }
    }

    /// Bodies with the joints that carry them, parents first; among equals in the order of declaration.
    fn tree_order(&self) -> Result<Vec<(usize, usize)>, ModelError> {
        let body_names = || self.bodies.iter().map(|b| b.name.clone()).collect::<Vec<_>>();
        let find = |joint: &JointSpec, name: &str| {
            self.bodies.iter().position(|b| b.name == name).ok_or_else(|| ModelError::Unknown {
                user: format!("joint `{}`", joint.name),
                what: "body",
                name: name.to_string(),
                known: body_names(),
            })
        };
        let mut carrier: Vec<Option<usize>> = vec![None; self.bodies.len()];
        let mut parent: Vec<Option<usize>> = vec![None; self.bodies.len()];
        for (k, joint) in self.joints.iter().enumerate() {
            let child = find(joint, &joint.child)?;
            if let Some(first) = carrier[child] {
                let (first, second) = (self.joints[first].name.clone(), joint.name.clone());
                return Err(ModelError::CarriedTwice { body: joint.child.clone(), first, second });
            }
            carrier[child] = Some(k);
            parent[child] = if joint.parent == GROUND { None } else { Some(find(joint, &joint.parent)?) };
        }
        let mut order: Vec<(usize, usize)> = Vec::new();
        let mut placed = vec![false; self.bodies.len()];
        while order.len() < self.bodies.len() {
            let before = order.len();
            for body in 0..self.bodies.len() {
                let Some(joint) = carrier[body] else {
                    return Err(ModelError::NotAttached { body: self.bodies[body].name.clone() });
                };
                if !placed[body] && parent[body].is_none_or(|p| placed[p]) {
                    placed[body] = true;
                    order.push((body, joint));
                }
            }
            if order.len() == before {
                let left = (0..self.bodies.len()).filter(|&b| !placed[b]);
                return Err(ModelError::Ring { bodies: left.map(|b| self.bodies[b].name.clone()).collect() });
            }
        }
        Ok(order)
    }

    fn body_model(&self, body: usize) -> Result<BodyModel, ModelError> {
        let spec = &self.bodies[body];
        let bad = |problem: &str| {
            Err(ModelError::BadBody { body: spec.name.clone(), problem: problem.to_string() })
        };
        if !(spec.mass >= 0.0 && spec.mass.is_finite()) {
            return bad("the mass must be a finite number, 0 or more");
        }
        if !spec.centre.iter().chain(spec.inertia.iter()).all(|x| x.is_finite()) {
            return bad("centre and inertia must be finite");
        }
        if !spec.points.iter().all(|(_, point)| point.iter().all(|x| x.is_finite())) {
            return bad("points must be finite");
        }
        let scale = spec.inertia.amax();
        if (spec.inertia - spec.inertia.transpose()).amax() > 1e-9 * scale {
            return bad("the inertia tensor must be symmetric");
        }
        let moments = spec.inertia.symmetric_eigenvalues();
        if moments.min() < -1e-9 * scale {
            return bad("the principal moments of inertia must not be negative");
        }
        // Real mass distributions obey the triangle inequality; a rod or plate meets it with equality.
        if 2.0 * moments.max() > moments.sum() + 1e-6 * scale {
            return bad(
                "no mass distribution has this inertia: one principal moment exceeds the sum of the others",
            );
        }
        let mut points = vec![("origin".to_string(), Vec3::zeros()), ("centre".to_string(), spec.centre)];
        points.extend(spec.points.iter().cloned());
        Ok(BodyModel {
            name: spec.name.clone(),
            mass: spec.mass,
            centre: spec.centre,
            inertia: (spec.inertia + spec.inertia.transpose()) * 0.5,
            points,
        })
    }

    fn tree(&self, order: &[(usize, usize)], names: &Names) -> Result<Tree, ModelError> {
        let (mut joints, mut coordinates) = (Vec::new(), Vec::new());
        let mut initial = Coordinates { q: Vec::new(), v: Vec::new() };
        for &(_, k) in order {
            let spec = &self.joints[k];
            let bad = |problem: String| ModelError::BadJoint { joint: spec.name.clone(), problem };
            let kind = spec.kind.normalised().ok_or_else(|| {
                bad("its axes must have a direction, and two axes must not be parallel".to_string())
            })?;
            let (q_index, v_index) = (initial.q.len(), initial.v.len());
            initial.q.resize(q_index + kind.nq(), 0.0);
            initial.v.resize(v_index + kind.nv(), 0.0);
            kind.neutral(&mut initial.q[q_index..]);
            for (given, target, what) in [
                (&spec.position, &mut initial.q[q_index..], "position"),
                (&spec.velocity, &mut initial.v[v_index..], "velocity"),
            ] {
                if !given.is_empty() && given.len() != target.len() {
                    return Err(bad(format!("its {what} has {} entries, not {}", given.len(), target.len())));
                }
                if !given.iter().all(|x| x.is_finite()) {
                    return Err(bad(format!("its {what} must be finite")));
                }
                target[..given.len()].copy_from_slice(given);
            }
            for (local, label) in kind.labels().iter().enumerate() {
                let alone = kind.nv() == 1;
                coordinates.push(CoordinateModel {
                    name: if alone { spec.name.clone() } else { format!("{}.{label}", spec.name) },
                    position: kind.scalar_position(local).map(|at| q_index + at),
                    is_rotation: kind.is_rotation(local),
                    held: spec.held,
                });
            }
            let turn_back = spec.child_frame.rotation.inverse();
            joints.push(JointModel {
                name: spec.name.clone(),
                kind,
                parent: names.body_or_ground(&format!("joint `{}`", spec.name), &spec.parent)?,
                parent_frame: spec.parent_frame,
                from_child_side: Pose::new(turn_back, turn_back * -spec.child_frame.position),
                q_index,
                v_index,
            });
        }
        Ok((joints, coordinates, initial))
    }

    fn cut_models(&self, names: &Names, joints: &[JointModel]) -> Result<Vec<CutModel>, ModelError> {
        let (mut cuts, mut row) = (Vec::new(), 0);
        for spec in &self.cuts {
            let bad =
                |problem: &str| ModelError::BadCut { cut: spec.name.clone(), problem: problem.to_string() };
            let user = format!("cut `{}`", spec.name);
            let place = |point: PointRef| {
                (point.body.map(|body| body.0), Pose::new(crate::geometry::Quat::identity(), point.position))
            };
            let (law, (body_a, frame_a), (body_b, frame_b)) = match &spec.kind {
                CutKind::Points { a, b } => {
                    (CutLaw::Points, place(names.point(&user, a)?), place(names.point(&user, b)?))
                }
                CutKind::Rod { a, b, length } => {
                    if !(*length > 0.0 && length.is_finite()) {
                        return Err(bad("the length of a rod must be above 0: use coincident points for 0"));
                    }
                    (
                        CutLaw::Rod { length: *length },
                        place(names.point(&user, a)?),
                        place(names.point(&user, b)?),
                    )
                }
                CutKind::Frames { body_a, frame_a, body_b, frame_b } => (
                    CutLaw::Frames,
                    (names.body_or_ground(&user, body_a)?, *frame_a),
                    (names.body_or_ground(&user, body_b)?, *frame_b),
                ),
            };
            if body_a == body_b {
                return Err(bad("both ends are on one body"));
            }
            let columns = loop_columns(joints, body_a, body_b);
            let name = spec.name.clone();
            let cut = CutModel { name, law, body_a, frame_a, body_b, frame_b, row, columns };
            row += cut.row_count();
            cuts.push(cut);
        }
        Ok(cuts)
    }

    fn prescription(&self, coordinates: &[CoordinateModel]) -> Result<Vec<bool>, ModelError> {
        let mut is_prescribed = vec![false; coordinates.len()];
        for (name, _) in &self.prescribed {
            let bad = |problem: &str| {
                Err(ModelError::BadPrescription { coordinate: name.clone(), problem: problem.to_string() })
            };
            let column = find_coordinate(coordinates, name)
                .ok_or_else(|| unknown_coordinate("a prescribed motion", name, coordinates))?;
            if coordinates[column].position.is_none() {
                return bad("it is part of a rotation in space, which is a quaternion");
            }
            if is_prescribed[column] {
                return bad("it is prescribed twice");
            }
            is_prescribed[column] = true;
        }
        Ok(is_prescribed)
    }
}

type Tree = (Vec<JointModel>, Vec<CoordinateModel>, Coordinates);

/// Resolves `body.point`.
struct Names<'a> {
    bodies: &'a [BodyModel],
    ground: &'a [(String, Vec3)],
}

impl Names<'_> {
    fn body_or_ground(&self, user: &str, name: &str) -> Result<Option<usize>, ModelError> {
        if name == GROUND {
            return Ok(None);
        }
        let found = self.bodies.iter().position(|body| body.name == name);
        found.map(Some).ok_or_else(|| ModelError::Unknown {
            user: user.to_string(),
            what: "body",
            name: name.to_string(),
            known: self.bodies.iter().map(|body| body.name.clone()).collect(),
        })
    }

    fn point(&self, user: &str, name: &str) -> Result<PointRef, ModelError> {
        let (body, point) = name.split_once('.').unwrap_or((name, "origin"));
        let body = self.body_or_ground(user, body)?;
        let points = body.map_or(self.ground, |b| self.bodies[b].points.as_slice());
        let found = points.iter().find(|(known, _)| known == point);
        found.map(|(_, position)| PointRef { body: body.map(BodyIndex), position: *position }).ok_or_else(
            || ModelError::Unknown {
                user: user.to_string(),
                what: "point",
                name: name.to_string(),
                known: points.iter().map(|(known, _)| known.clone()).collect(),
            },
        )
    }
}

fn check_list(what: &'static str, names: &[&String]) -> Result<(), ModelError> {
    for (k, name) in names.iter().enumerate() {
        if name.is_empty() || name.contains('.') || name.as_str() == GROUND {
            return Err(ModelError::BadName(name.to_string()));
        }
        if names[..k].contains(name) {
            return Err(ModelError::Duplicate { what, name: name.to_string() });
        }
    }
    Ok(())
}

fn unknown_coordinate(user: &str, name: &str, coordinates: &[CoordinateModel]) -> ModelError {
    ModelError::Unknown {
        user: user.to_string(),
        what: "coordinate",
        name: name.to_string(),
        known: coordinates.iter().map(|c| c.name.clone()).collect(),
    }
}

/// Columns between two bodies: +1 on the way from the common ancestor to `b`, −1 to `a`.
fn loop_columns(joints: &[JointModel], a: Option<usize>, b: Option<usize>) -> Vec<(usize, f64)> {
    let mut sign = vec![0.0; joints.len()];
    for (start, step) in [(a, -1.0), (b, 1.0)] {
        let mut body = start;
        while let Some(i) = body {
            sign[i] += step;
            body = joints[i].parent;
        }
    }
    let mut columns = Vec::new();
    for (joint, sign) in joints.iter().zip(sign) {
        if sign != 0.0 {
            columns.extend(joint.columns().map(|column| (column, sign)));
        }
    }
    columns
}

/// Longest distance, inside any body, from the joint that carries it to a point that matters.
fn longest_arm(bodies: &[BodyModel], joints: &[JointModel], cuts: &[CutModel]) -> f64 {
    let mut longest: f64 = 0.0;
    let mut reach = |body: Option<usize>, point: &Vec3| {
        if let Some(i) = body {
            longest = longest.max(joints[i].from_child_side.point(point).norm());
        }
    };
    for (i, body) in bodies.iter().enumerate() {
        body.points.iter().for_each(|(_, point)| reach(Some(i), point));
    }
    for joint in joints {
        reach(joint.parent, &joint.parent_frame.position);
    }
    for cut in cuts {
        reach(cut.body_a, &cut.frame_a.position);
        reach(cut.body_b, &cut.frame_b.position);
    }
    if longest > 0.0 { longest } else { 1.0 }
}

fn force_element(
    name: &str,
    spec: ForceSpec,
    names: &Names,
    coordinates: &[CoordinateModel],
) -> Result<ForceElement, ModelError> {
    let user = format!("force `{name}`");
    let bad = |problem: &str| ModelError::BadForce { force: name.to_string(), problem: problem.to_string() };
    let column = |coordinate: &str| {
        find_coordinate(coordinates, coordinate)
            .ok_or_else(|| unknown_coordinate(&user, coordinate, coordinates))
    };
    let numbers = |list: &[f64]| {
        if list.iter().all(|x| x.is_finite()) { Ok(()) } else { Err(bad("its parameters must be finite")) }
    };
    let body =
        |name: &str| names.body_or_ground(&user, name)?.ok_or_else(|| bad("the ground cannot be pushed"));
    match spec {
        ForceSpec::JointSpring { coordinate, stiffness, damping, rest } => {
            numbers(&[stiffness, damping, rest])?;
            let column = column(&coordinate)?;
            if coordinates[column].position.is_none() && stiffness != 0.0 {
                return Err(bad("a rotation in space has no single angle that a spring could act on"));
            }
            Ok(ForceElement::JointSpring { column, stiffness, damping, rest })
        }
        ForceSpec::Actuator { coordinate, law } => {
            Ok(ForceElement::Actuator { column: column(&coordinate)?, law })
        }
        ForceSpec::Link { a, b, law } => {
            if let LinkLaw::SpringDamper { stiffness, damping, rest_length } = &law {
                numbers(&[*stiffness, *damping, *rest_length])?;
            }
            let (a, b) = (names.point(&user, &a)?, names.point(&user, &b)?);
            if a.body == b.body {
                return Err(bad("both ends are on one body"));
            }
            Ok(ForceElement::Link { a, b, law })
        }
        ForceSpec::Force { point, direction, law } => {
            let point = names.point(&user, &point)?;
            let body = point.body.ok_or_else(|| bad("the ground cannot be pushed"))?;
            Ok(ForceElement::Force { body: body.0, position: point.position, direction, law })
        }
        ForceSpec::Torque { body: on, direction, law } => {
            Ok(ForceElement::Torque { body: body(&on)?, direction, law })
        }
    }
}
