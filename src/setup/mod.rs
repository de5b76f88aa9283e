//! From a validated case to a scene that can be stepped: shapes, masses, generated grains, start files, and
//! the check that nothing overlaps at the start.
//!
//! Ids are global and the same on any number of ranks: fixed and kinematic bodies in the order of the case,
//! bodies of machines that have a shape, free `[[body]]`, the grains of each `[[grains]]` by their index, and
//! last the bodies taken from another run by ascending old id. A rank builds a contiguous share of each list;
//! which share it owns later is decided by where the bodies are, not here.

mod error;
mod grains;
mod inventory;
pub mod machine;
pub mod memory;
mod overlap;
mod resume;
mod scene_properties;
mod solids;
mod start;
#[cfg(test)]
mod tests;

pub use error::{SetupError, agree};
pub use inventory::{AchievedGrading, Group, GroupKind, Inventory};
pub use resume::{GRADINGS, MACHINE_MEMORY, MACHINES, resume};

use crate::geometry::{Shape, Vec3};
use crate::input::{self, BodyMotion, Case, CaseBody};
use crate::machine::{Machine, MachineShape};
use crate::scene::{Body, BodyId, LawTable, MachinePart, Model, Motion, Physics, Prescribed, Scene};
use crate::solve;
use crate::step::{DecompositionOptions, Machines, StepError};
use decomposition::Comm;
use solids::Solid;
use std::sync::Arc;

/// Everything that a run starts from.
pub struct Setup {
    pub scene: Scene,
    pub machines: Machines,
    pub physics: Physics,
    pub solver: solve::Options,
    pub decomposition: DecompositionOptions,
    /// What was built, over all ranks.
    pub inventory: Inventory,
}

impl Setup {
    /// An error if a machine has forces that are too stiff for the time step. The same on every rank.
    pub fn require_stable(&mut self, case: &Case) -> Result<(), SetupError> {
        let checked = self.machines.check_stability(self.physics.scheme, self.physics.time_step);
        checked.map_err(|problem| SetupError::Unstable {
            place: place_of(case, &problem),
            problem: problem.into(),
        })
    }
}

/// File, line and key of the part of the case that an error of a step is about.
pub fn place_of(case: &Case, problem: &StepError) -> Option<String> {
    match problem {
        StepError::Machine { machine, cut: Some(cut), .. } => case.place_of_cut(machine, cut),
        StepError::Unstable { machine, element: Some(element), .. } => case.place_of_force(machine, element),
        _ => None,
    }
}

/// Collective: builds the scene of a case. An error on one rank is an error on all.
pub fn build(case: &Case, comm: &dyn Comm) -> Result<Setup, SetupError> {
    let named = named_bodies(case);
    let (shapes, mut scene, mut free) = agree(comm, named)?;
    let machines = agree(comm, machine::build(case))?;
    let mut next_id = scene.state.statics.len() as u64;
    add_machine_bodies(&machines, &mut next_id, &mut scene);
    for body in &mut free {
        body.id = BodyId(next_id);
        next_id += 1;
    }
    let mut inventory = Inventory::new(case);
    if comm.rank() == 0 {
        scene.state.grains = free;
    }
    for (index, grains) in case.grains.iter().enumerate() {
        let place = grains::Place { group: (case.bodies.len() + index) as u32, first_id: next_id };
        let made = grains::generate(case, grains, &shapes, place, comm)?;
        next_id += made.count;
        scene.state.grains.extend(made.bodies);
        inventory.gradings.extend(made.grading);
    }
    if let Some(from) = &case.start {
        start::take_over(case, from, next_id, &mut scene, comm)?;
    }
    scene.state.grains.sort_unstable_by_key(|body| body.id);
    inventory.count(&scene, comm);
    let decomposition = DecompositionOptions {
        cell_size: case.decomposition.cell_size,
        imbalance_threshold: case.decomposition.imbalance_threshold,
    };
    overlap::check(&mut scene, &machines, &decomposition, &inventory, comm)?;
    let machines = Machines::new(machines);
    Ok(Setup { scene, machines, physics: physics(case), solver: solver(case), decomposition, inventory })
}

/// The bodies of machines that have a shape, with ids after those of fixed and kinematic bodies and groups
/// after all others.
fn add_machine_bodies(machines: &[Machine], next_id: &mut u64, scene: &mut Scene) {
    for (number, machine) in machines.iter().enumerate() {
        let model = machine.multibody.model();
        let mut slots = 0..;
        for MachineShape { body, shape, material, contacts } in &machine.shapes {
            let index = scene.state.machine_bodies.len() as u32;
            let pose = machine.multibody.pose(*body);
            let twist = machine.multibody.body_twist(*body, &pose.position);
            scene.state.machine_bodies.push(Body {
                id: BodyId(*next_id),
                group: scene.model.groups.len() as u32,
                material: *material,
                motion: Motion::Machine(index),
                shape: shape.clone(),
                mass: model.mass(*body),
                inertia: Vec3::zeros(),
                pose,
                velocity: twist.linear,
                angular_velocity: twist.angular,
                angular_momentum: Vec3::zeros(),
                anchor: None,
                memory: Box::default(),
            });
            let slot = if *contacts { slots.next() } else { None };
            scene.model.machine_parts.push(MachinePart { machine: number as u32, body: *body, slot });
            scene.model.groups.push(format!("{}.{}", model.name(), model.body_name(*body)));
            *next_id += 1;
        }
    }
}

/// The shapes, a scene with everything but free bodies, and the free `[[body]]`: the same on every rank.
fn named_bodies(case: &Case) -> Result<(Vec<Shape>, Scene, Vec<Body>), SetupError> {
    let shapes = solids::shapes(case);
    let names =
        case.bodies.iter().map(|body| &body.name).chain(case.grains.iter().map(|grains| &grains.name));
    let mut scene = Scene {
        model: Model {
            groups: names.cloned().collect(),
            materials: case.materials.iter().map(|material| material.name.clone()).collect(),
            laws: laws(case),
            ..Default::default()
        },
        ..Default::default()
    };
    let mut free = Vec::new();
    for (group, body) in case.bodies.iter().enumerate() {
        match &body.motion {
            BodyMotion::Fixed => {
                scene.state.statics.push(driven(body, group, &shapes[body.shape], Motion::Fixed))
            }
            BodyMotion::Kinematic(motion) => {
                let kind = Motion::Kinematic(scene.model.motions.len() as u32);
                let mut made = driven(body, group, &shapes[body.shape], kind);
                let now = motion.at(case.simulation.start_time, &body.pose);
                made.pose = now.pose;
                made.velocity = now.velocity;
                made.angular_velocity = now.angular_velocity;
                scene.state.statics.push(made);
                scene.model.motions.push(prescribed(motion, body));
            }
            BodyMotion::Free { velocity, angular_velocity, mass } => {
                let density = case.materials[body.material].density;
                let problem = |problem| SetupError::Mass { name: body.name.clone(), problem };
                let solid = Solid::new(&shapes[body.shape], density, *mass).map_err(problem)?;
                let mut made = solid.at(BodyId(0), group as u32, body.material as u32, &body.pose);
                solids::set_velocity(&mut made, *velocity, *angular_velocity);
                free.push(made);
            }
        }
    }
    for (id, body) in scene.state.statics.iter_mut().enumerate() {
        body.id = BodyId(id as u64);
    }
    Ok((shapes, scene, free))
}

/// A body that nothing can push; its frame is that in which the case gives the shape.
fn driven(body: &CaseBody, group: usize, shape: &Shape, motion: Motion) -> Body {
    Body {
        id: BodyId(0),
        group: group as u32,
        material: body.material as u32,
        motion,
        shape: shape.clone(),
        mass: f64::INFINITY,
        inertia: Vec3::repeat(f64::INFINITY),
        pose: body.pose,
        velocity: Vec3::zeros(),
        angular_velocity: Vec3::zeros(),
        angular_momentum: Vec3::zeros(),
        anchor: None,
        memory: Box::default(),
    }
}

fn prescribed(motion: &input::Motion, body: &CaseBody) -> Prescribed {
    let (motion, initial) = (motion.clone(), body.pose);
    Arc::new(move |time| motion.at(time, &initial).pose)
}

fn laws(case: &Case) -> LawTable {
    let mut laws = LawTable::new(case.materials.len());
    for contact in &case.contacts {
        laws.set(contact.materials[0], contact.materials[1], contact.law);
    }
    laws
}

fn physics(case: &Case) -> Physics {
    let gravity = case.simulation.gravity.clone();
    let constant = gravity.as_constant();
    Physics {
        start_time: case.simulation.start_time,
        time_step: case.simulation.time_step,
        scheme: case.simulation.scheme,
        gravity: Arc::new(move |time| constant.unwrap_or_else(|| gravity.evaluate(&[time]))),
        contact_margin: case.solver.contact_margin,
        warm_start: case.solver.warm_start,
        penetration_correction: case.solver.penetration_correction,
        correction_slop: case.solver.correction_slop,
        penetration_limit: case.solver.penetration_limit,
        patch_reuse: case.solver.patch_reuse,
    }
}

fn solver(case: &Case) -> solve::Options {
    // On a machine with 32-bit addresses a larger number means the same: never stop.
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    solve::Options {
        tolerance: case.solver.tolerance,
        measure: case.solver.measure,
        maximum_sweeps: count(case.solver.maximum_sweeps),
        check_every: count(case.solver.check_every).max(1),
        law: case.solver.local_law,
        method: case.solver.method,
        fallback: case.solver.fallback,
        fallback_points: count(case.solver.fallback_points),
        acceleration: case.solver.acceleration,
    }
}
