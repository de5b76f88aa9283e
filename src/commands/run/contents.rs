//! What goes into the files of a run: rows, columns and options, from the scene and the case.

use crate::exchange::OWNER;
use crate::geometry::{Aabb, Vec3};
use crate::input::Case;
use crate::output::{BodyOptions, ContactOptions, ContactRow, ImpulseRow};
use crate::scene::{Body, Scene};
use crate::setup::{MACHINE_MEMORY, MACHINES};
use crate::step::{ContactView, Stepper};
use decomposition::Comm;

/// Collective: what the machines carry from step to step, which their owner knows.
pub(super) fn sections(stepper: &Stepper, comm: &dyn Comm) -> Vec<(String, Vec<u8>)> {
    if stepper.machines().is_empty() {
        return Vec::new();
    }
    let saved = stepper.machines().save();
    let memories: Vec<&Vec<f64>> = saved.iter().map(|machine| &machine.multibody.memory).collect();
    // Writing to memory cannot fail.
    let mut sections = [
        (MACHINES, postcard::to_allocvec(&saved).unwrap_or_default()),
        (MACHINE_MEMORY, postcard::to_allocvec(&memories).unwrap_or_default()),
    ];
    if memories.iter().all(|memory| memory.is_empty()) {
        sections[1].1.clear();
    }
    sections.iter_mut().for_each(|(_, bytes)| comm.broadcast(OWNER, bytes));
    let some = sections.into_iter().filter(|(_, bytes)| !bytes.is_empty());
    some.map(|(name, bytes)| (name.into(), bytes)).collect()
}

/// The bodies that this rank writes: its own, and on rank 0, which owns the machines, those that all ranks
/// hold.
pub(super) fn own_bodies<'a>(scene: &'a Scene, comm: &dyn Comm) -> impl Iterator<Item = &'a Body> + use<'a> {
    let common =
        [&scene.state.statics[..], &scene.state.machine_bodies[..]].map(|bodies| match comm.rank() {
            OWNER => bodies,
            _ => &[],
        });
    common.into_iter().flatten().chain(&scene.state.grains)
}

pub(super) fn impulse_rows(scene: &Scene) -> Vec<ImpulseRow> {
    let rows = scene.state.impulses.iter().flat_map(|(_, key, points)| {
        points.iter().map(move |point| ImpulseRow {
            ids: key.bodies.map(|id| id.0),
            parts: key.parts.map(u32::from),
            feature: point.feature,
            impulse: point.impulse,
        })
    });
    rows.collect()
}

/// A wall or a tool has no centre that a line of force could go to.
pub(super) fn contact_row(scene: &Scene, view: ContactView) -> ContactRow {
    let among = |bodies: &[Body], id| bodies.binary_search_by_key(&id, |body: &Body| body.id).is_ok();
    let is_static = |id| among(&scene.state.statics, id) || among(&scene.state.machine_bodies, id);
    let end = |side: usize| if is_static(view.bodies[side]) { view.point } else { view.centres[side] };
    ContactRow {
        ids: view.bodies.map(|id| id.0),
        point: view.point,
        normal: view.normal,
        impulse: view.impulse,
        gap: view.gap,
        centres: [end(0), end(1)],
    }
}

pub(super) fn compression(case: &Case) -> u8 {
    case.output.compression.min(9) as u8
}

/// None if no contacts are wanted.
pub(super) fn contact_options(case: &Case) -> Option<ContactOptions> {
    case.output.interval?;
    let (drawing, precision) = (case.output.contacts?, case.output.precision);
    Some(ContactOptions { drawing, precision, compression: compression(case) })
}

/// None if no pictures are wanted.
pub(super) fn body_options(case: &Case, domain: Option<Aabb>) -> Option<BodyOptions> {
    let output = &case.output;
    output.interval?;
    Some(BodyOptions {
        spheres: output.spheres,
        refinement: output.sphere_refinement as u32,
        fields: output.fields.clone(),
        precision: output.precision,
        compression: compression(case),
        domain,
    })
}

/// Collective: the box around all finite bodies at the start.
pub(super) fn domain(scene: &Scene, comm: &dyn Comm) -> Option<Aabb> {
    let all = scene.state.statics.iter().chain(&scene.state.machine_bodies).chain(&scene.state.grains);
    let boxes = all.map(|body| body.shape.aabb(&body.pose));
    let finite = boxes.filter(|bounds| bounds.min.iter().chain(&bounds.max).all(|bound| bound.is_finite()));
    let own = finite.fold(Aabb::empty(), |all, one| all.union(&one));
    let mut bounds = [-own.min, own.max].map(<[f64; 3]>::from).concat();
    comm.max_f64(&mut bounds);
    let [low, high] = [0, 3].map(|first| Vec3::from_column_slice(&bounds[first..first + 3]));
    bounds.iter().all(|bound| bound.is_finite()).then_some(Aabb { min: -low, max: high })
}
