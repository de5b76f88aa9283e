//! From the machines of a case to mechanisms that can be stepped: masses of shapes, laws, first assembly.

use super::error::SetupError;
use super::solids;
use crate::geometry::{Mat3, Part, Pose, Shape, Vec3, mass_properties};
use crate::input::{Case, CaseMachine, MachineBody};
use crate::machine::{
    self, Controller, ControllerState, Machine, MachineShape, PHASE_QUANTITIES, SavedMachine,
};
use crate::multibody::{BodySpec, Law, Model, Multibody, MultibodyError};
use std::fmt::Write as _;

/// The machines of a case, assembled at its start time, in the order of the case.
pub fn build(case: &Case) -> Result<Vec<Machine>, SetupError> {
    let time = case.simulation.start_time;
    let start = |described: &CaseMachine| {
        let blueprint = Blueprint::new(case, described)?;
        let problem = |problem| fault(case, described, problem);
        let multibody = Multibody::new(blueprint.model(described)?, time).map_err(problem)?;
        let state = ControllerState { phase: 0, phase_start: time };
        let mut built = blueprint.finish(described, multibody, state)?;
        built.controller.begin(&mut built.multibody, time).map_err(problem)?;
        built.multibody.require_mass().map_err(problem)?;
        Ok(built)
    };
    case.machines.iter().map(start).collect()
}

/// With the place of the cut or the joint that it is about.
fn fault(case: &Case, described: &CaseMachine, problem: MultibodyError) -> SetupError {
    let place = match &problem {
        MultibodyError::Massless { coordinate } => case.place_of_coordinate(&described.name, coordinate),
        _ => problem.cut().and_then(|cut| case.place_of_cut(&described.name, cut)),
    };
    SetupError::Machine { machine: described.name.clone(), place, problem }
}

/// The machines of a case as they were when they were saved, bit by bit.
pub fn restore(case: &Case, saved: &[SavedMachine]) -> Result<Vec<Machine>, SetupError> {
    if saved.len() != case.machines.len() {
        let (found, expected) = (saved.len(), case.machines.len());
        return Err(SetupError::Start(format!("found the state of {found} machine(s), expected {expected}")));
    }
    let resume = |(described, saved): (&CaseMachine, &SavedMachine)| {
        let blueprint = Blueprint::new(case, described)?;
        let problem = |problem| fault(case, described, problem);
        let multibody =
            Multibody::restore(blueprint.model(described)?, saved.multibody.clone()).map_err(problem)?;
        blueprint.finish(described, multibody, saved.controller)
    };
    case.machines.iter().zip(saved).map(resume).collect()
}

/// What `breccia check` says about the machines.
pub fn describe(machines: &[Machine]) -> String {
    let mut text = String::new();
    for built in machines {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{}", built.multibody.describe());
        let of = |shape: &MachineShape| built.multibody.model().body_name(shape.body).to_string();
        let touching: Vec<String> = built.contact_shapes().map(of).collect();
        if !touching.is_empty() {
            let _ = writeln!(text, "  contacts: {}", touching.join(", "));
        }
        if let Some(phases) = built.controller.phase_names() {
            let _ = writeln!(text, "  phases: {}", phases.join(", "));
        }
        for (name, value) in built.controller.quantities() {
            let _ = writeln!(text, "  quantity {name}: {value} at the start");
        }
    }
    text
}

/// Bodies with their masses, and a model without laws that knows where every coordinate stands.
struct Blueprint {
    bodies: Vec<BodySpec>,
    /// By body of the case.
    shapes: Vec<Option<(Shape, u32)>>,
    gravity: Vec3,
    outline: Model,
}

impl Blueprint {
    fn new(case: &Case, described: &CaseMachine) -> Result<Self, SetupError> {
        let (mut bodies, mut shapes) = (Vec::new(), Vec::new());
        for body in &described.bodies {
            let shape = shape_of(case, body);
            bodies.push(specify(case, described, body, shape.as_ref().map(|(shape, _)| shape))?);
            shapes.push(shape);
        }
        // A case with machines has constant gravity.
        let gravity = case.simulation.gravity.evaluate(&[case.simulation.start_time]);
        let problem = |problem| SetupError::MachineModel { machine: described.name.clone(), problem };
        let outline = described.builder(bodies.clone(), |_| Law::Constant(0.0)).build().map_err(problem)?;
        Ok(Self { bodies, shapes, gravity, outline })
    }

    fn model(&self, described: &CaseMachine) -> Result<Model, SetupError> {
        let mut builder =
            described.builder(self.bodies.clone(), |law| machine::law(law, &self.outline, self.phase()));
        builder.gravity(self.gravity);
        builder
            .build()
            .map_err(|problem| SetupError::MachineModel { machine: described.name.clone(), problem })
    }

    /// Where the phase and its start stand among the quantities.
    fn phase(&self) -> [usize; 2] {
        PHASE_QUANTITIES.map(|name| self.outline.quantity(name).unwrap_or(0))
    }

    fn finish(
        self,
        described: &CaseMachine,
        mut multibody: Multibody,
        state: ControllerState,
    ) -> Result<Machine, SetupError> {
        multibody.set_force_evaluation(described.force_evaluation);
        multibody.set_contact_velocity(described.contact_velocity);
        let place = |body: &MachineBody| multibody.model().body(&body.name);
        let mut shapes: Vec<MachineShape> = described
            .bodies
            .iter()
            .zip(self.shapes.iter())
            .filter_map(|(body, shape)| {
                let (shape, material) = shape.clone()?;
                Some(MachineShape { body: place(body)?, shape, material, contacts: body.contacts })
            })
            .collect();
        shapes.sort_by_key(|shape| shape.body);
        let mut apart = Vec::new();
        let touching: Vec<&MachineBody> =
            described.bodies.iter().filter(|body| body.contacts && body.material.is_some()).collect();
        for (k, first) in touching.iter().enumerate() {
            for second in touching[..k].iter().filter(|second| !described.can_touch(first, second)) {
                if let (Some(a), Some(b)) = (place(first), place(second)) {
                    apart.push([a.min(b), a.max(b)]);
                }
            }
        }
        apart.sort_unstable();
        let controller = Controller::new(described.decisions(), multibody.model(), state, self.phase());
        let mut built = Machine { multibody, controller, shapes, apart };
        built.controller.adopt(&mut built.multibody);
        Ok(built)
    }
}

/// The shape of a body in its frame, and its material.
fn shape_of(case: &Case, body: &MachineBody) -> Option<(Shape, u32)> {
    let part = |part: &crate::input::ClusterPart| {
        let convex = solids::convex(&case.shapes[part.shape].kind)?;
        Some(Part { pose: part.pose, convex })
    };
    let parts: Vec<Part> = body.parts.iter().filter_map(part).collect();
    let shape = match &parts[..] {
        [] => return None,
        [only] if only.pose == Pose::identity() => Shape::Convex(only.convex.clone()),
        _ => Shape::Cluster(parts.into()),
    };
    Some((shape, body.material? as u32))
}

/// Mass, centre and inertia as given, or else those of the shape.
fn specify(
    case: &Case,
    machine: &CaseMachine,
    body: &MachineBody,
    shape: Option<&Shape>,
) -> Result<BodySpec, SetupError> {
    let density = body.material.map(|material| case.materials[material].density);
    let (mut mass, mut centre, mut inertia) = (0.0, Vec3::zeros(), Mat3::zeros());
    if let Some((shape, density)) = shape.zip(density) {
        let name = format!("{}.{}", machine.name, body.name);
        let properties =
            mass_properties(shape, density).map_err(|problem| SetupError::Mass { name, problem })?;
        let axes = properties.principal_rotation.to_rotation_matrix().into_inner();
        (mass, centre) = (properties.mass, properties.centre);
        let scale = body.mass.map_or(1.0, |given| given / mass);
        inertia = axes * Mat3::from_diagonal(&(properties.principal_inertia * scale)) * axes.transpose();
    }
    let (mass, centre) = (body.mass.unwrap_or(mass), body.centre.unwrap_or(centre));
    let mut spec = BodySpec::new(&body.name, mass, centre, body.inertia.unwrap_or(inertia));
    spec.points = body.points.clone();
    spec.has_contacts = body.contacts && shape.is_some();
    Ok(spec)
}

#[cfg(test)]
mod tests;
