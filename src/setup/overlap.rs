//! The start must not overlap: bodies inside each other would be thrown apart, or stay locked into each
//! other.
//!
//! Small overlaps are let pass, since a packing that has been settled always has some: 1 % of the smaller of
//! the two bounding radii. Pairs are found as in a step: bodies go to the ranks that own their space, copies
//! to the neighbours.

use super::error::SetupError;
use super::inventory::Inventory;
use crate::contact::detect::{Candidate, Contact, Contacts, Detector};
use crate::exchange::{DecompositionOptions, HaloMemory, balance, halo};
use crate::geometry::{Aabb, Vec3};
use crate::machine::Machine;
use crate::scene::{Body, BodyId, Motion, Scene};
use decomposition::Comm;

/// Share of the smaller bounding radius by which bodies may penetrate each other.
const TOLERANCE: f64 = 0.01;

/// Two bodies too far inside each other.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Overlap {
    ids: [u64; 2],
    groups: [u32; 2],
    depth: f64,
    tolerance: f64,
}

/// Collective: an error that names the worst pair of all ranks. Grains go to the ranks that own their space.
pub(super) fn check(
    scene: &mut Scene,
    machines: &[Machine],
    options: &DecompositionOptions,
    inventory: &Inventory,
    comm: &dyn Comm,
) -> Result<(), SetupError> {
    let partition = balance::first_partition(scene, options, comm);
    halo::migrate(scene, &partition, comm);
    let boxes: Vec<Aabb> = scene.state.grains.iter().map(|body| body.shape.aabb(&body.pose)).collect();
    let halo = halo::exchange_ghosts(scene, &boxes, &partition, &mut HaloMemory::default(), comm);
    let touching = |body: &&Body| match body.motion {
        Motion::Machine(part) => scene.model.machine_parts[part as usize].slot.is_some(),
        _ => true,
    };
    let moved = scene.state.machine_bodies.iter().filter(touching);
    let all = scene.state.grains.iter().chain(&halo.ghosts).chain(&scene.state.statics).chain(moved);
    let candidate = |body: _| Candidate { body, reach: 0.0, movable: is_movable(body), slack: 0.0 };
    let candidates: Vec<Candidate> = all.map(candidate).collect();
    let owns = |_: &Body, _: &Body, place: &Vec3| partition.owner_of_point((*place).into()) == comm.rank();
    let meet = |a: &Body, b: &Body| {
        let law = scene.model.laws.between(a.material, b.material);
        law.filter(|_| may_meet(scene, machines, a, b)).map(|_| 0.0)
    };
    let mut detector = Detector::default();
    let contacts =
        detector.detect(&candidates, owns, meet).iter().flat_map(Contacts::iter).collect::<Vec<_>>();
    let (worst, count) = worst(&overlaps(&candidates, &contacts), comm);
    let Some(worst) = worst else { return Ok(()) };
    let [first, second] = [0, 1].map(|side| inventory.describe(BodyId(worst.ids[side]), worst.groups[side]));
    let Overlap { depth, tolerance, .. } = worst;
    Err(SetupError::Overlap { first, second, depth, tolerance, more: count - 1 })
}

fn is_movable(body: &Body) -> bool {
    matches!(body.motion, Motion::Free | Motion::Machine(_))
}

/// Bodies of one machine that never touch each other may overlap.
fn may_meet(scene: &Scene, machines: &[Machine], a: &Body, b: &Body) -> bool {
    let [Motion::Machine(a), Motion::Machine(b)] = [a.motion, b.motion] else { return true };
    let [a, b] = [a, b].map(|part| scene.model.machine_parts[part as usize]);
    a.machine != b.machine || machines[a.machine as usize].can_touch(a.body, b.body)
}

/// The pairs that are too deep, each once: the parts of clusters are in one run of contacts.
fn overlaps(candidates: &[Candidate], contacts: &[Contact]) -> Vec<Overlap> {
    let pair = |parts: &[Contact]| {
        let points = parts.iter().flat_map(|contact| contact.points);
        let depth = points.map(|point| -point.gap).fold(0.0, f64::max);
        let [a, b] = parts[0].slots.map(|slot| candidates[slot as usize].body);
        let tolerance = TOLERANCE * a.shape.bounding_radius().min(b.shape.bounding_radius());
        Overlap { ids: [a.id.0, b.id.0], groups: [a.group, b.group], depth, tolerance }
    };
    let pairs = contacts.chunk_by(|a, b| a.key.bodies == b.key.bodies).map(pair);
    pairs.filter(|pair| pair.depth > pair.tolerance).collect()
}

/// Collective: the deepest of all ranks, the one with the lowest ids if several are, and how many there are.
fn worst(own: &[Overlap], comm: &dyn Comm) -> (Option<Overlap>, u64) {
    let deeper = |a: &Overlap, b: &Overlap| a.depth > b.depth || (a.depth == b.depth && a.ids < b.ids);
    let choose = |best: Option<Overlap>, next: Overlap| match best {
        Some(best) if !deeper(&next, &best) => Some(best),
        _ => Some(next),
    };
    let mut bytes = Vec::new();
    if let Some(Overlap { ids, groups, depth, tolerance }) = own.iter().copied().fold(None, choose) {
        let count = own.len() as u64;
        let groups = groups.map(u64::from);
        let words = [ids[0], ids[1], groups[0], groups[1], depth.to_bits(), tolerance.to_bits(), count];
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    let (mut best, mut total) = (None, 0);
    for bytes in comm.all_gather(&bytes) {
        let word = |eight: &[u8]| u64::from_le_bytes(eight.try_into().unwrap_or([0; 8]));
        let words: Vec<u64> = bytes.chunks_exact(8).map(word).collect();
        if let [a, b, group_a, group_b, depth, tolerance, count] = words[..] {
            total += count;
            let (depth, tolerance) = (f64::from_bits(depth), f64::from_bits(tolerance));
            best = choose(
                best,
                Overlap { ids: [a, b], groups: [group_a as u32, group_b as u32], depth, tolerance },
            );
        }
    }
    (best, total)
}
