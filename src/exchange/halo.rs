//! Which bodies a rank sees: its own, and copies (*ghosts*) of others that reach into its space.
//!
//! A body is *present* on every rank that owns a cell touched by its inflated box. Two bodies whose boxes
//! overlap are both present where the lower corner of the intersection lies, so that rank finds the pair, and
//! no other does. Messages:
//!
//! - *ghost*: owner → each rank where the body is present. The body at `q_m`, its stored impulses, and where
//!   else it is; its shape only if it was not there in the last step.
//! - *migrant*: old owner → new owner, when the centre has crossed into another rank's cell. The whole body
//!   and its impulses.

use super::messages::deliver;
use crate::geometry::{Aabb, Convex, Shape};
use crate::scene::{Body, BodyId, Impulses, ManifoldKey, Scene, StoredImpulse, StoredPoints};
use decomposition::{Comm, Partition};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// PresentOn, ascending.
pub type PresentOn = SmallVec<[u32; 4]>;

/// A body with what belongs to it.
#[derive(Serialize, Deserialize)]
struct Parcel {
    body: Body,
    /// Whether the body's shape has come along; if not, it came with the last step's ghost.
    shaped: bool,
    impulses: Vec<(ManifoldKey, StoredPoints)>,
    /// Where it is present, owner included. Empty for a migrant.
    ranks: PresentOn,
}

/// The copies that a rank holds for one step.
#[derive(Default)]
pub struct Halo {
    /// Ascending by id.
    pub ghosts: Vec<Body>,
    /// By slot, own bodies then ghosts: the other ranks where the body is present or owned. Empty for most.
    pub others: Vec<PresentOn>,
    /// By ghost: its owner.
    pub owners: Vec<u32>,
    /// Stored impulses of the contacts whose home is a ghost.
    pub impulses: Impulses,
}

impl Halo {
    /// Whether the body is present on other ranks too.
    pub fn is_shared(&self, slot: u32) -> bool {
        self.others.get(slot as usize).is_some_and(|others| !others.is_empty())
    }
}

/// The ghosts of the last step: a shape is sent only to ranks that have not just had it. Scratch; both sides
/// forget after a step.
#[derive(Default)]
pub struct HaloMemory {
    /// By rank, ascending: the own bodies that it got.
    sent: BTreeMap<u32, Vec<BodyId>>,
    /// Shapes of the ghosts that were here.
    shapes: BTreeMap<BodyId, Shape>,
}

impl HaloMemory {
    fn knows(&self, rank: u32, id: BodyId) -> bool {
        self.sent.get(&rank).is_some_and(|ids| ids.binary_search(&id).is_ok())
    }
}

fn array(v: &crate::geometry::Vec3) -> [f64; 3] {
    (*v).into()
}

/// Collective. `boxes` are the inflated boxes of the scene's own bodies.
pub fn exchange_ghosts(
    scene: &Scene,
    boxes: &[Aabb],
    partition: &Partition,
    memory: &mut HaloMemory,
    comm: &dyn Comm,
) -> Halo {
    let me = comm.rank() as u32;
    let mut halo = Halo { others: vec![PresentOn::new(); scene.state.grains.len()], ..Default::default() };
    if comm.size() == 1 {
        return halo;
    }
    let mut outgoing = BTreeMap::<usize, Vec<Parcel>>::new();
    let mut present = Vec::new();
    let mut sent = BTreeMap::<u32, Vec<BodyId>>::new();
    for (slot, (body, bounds)) in scene.state.grains.iter().zip(boxes).enumerate() {
        partition.owners_in_box(array(&bounds.min), array(&bounds.max), &mut present);
        if present.iter().all(|&rank| rank as u32 == me) {
            continue;
        }
        let mut ranks: PresentOn = present.iter().map(|&rank| rank as u32).chain([me]).collect();
        ranks.sort_unstable();
        ranks.dedup();
        halo.others[slot] = ranks.iter().copied().filter(|&rank| rank != me).collect();
        for &rank in halo.others[slot].iter() {
            let mut parcel = parcel(body, &scene.state.impulses, ranks.clone());
            if memory.knows(rank, body.id) {
                parcel.shaped = false;
                parcel.body.shape = Shape::Convex(Convex::Sphere { radius: 0.0 });
            }
            sent.entry(rank).or_default().push(body.id);
            outgoing.entry(rank as usize).or_default().push(parcel);
        }
    }
    let mut arrived: Vec<(u32, Parcel)> = Vec::new();
    for (source, parcels) in deliver(outgoing, comm) {
        arrived.extend(parcels.into_iter().map(|parcel| (source as u32, parcel)));
    }
    arrived.sort_unstable_by_key(|(_, parcel)| parcel.body.id);
    let mut shapes = BTreeMap::new();
    for (source, mut parcel) in arrived {
        let id = parcel.body.id;
        if !parcel.shaped {
            parcel.body.shape = memory.shapes.get(&id).expect("both sides remember the last step").clone();
        }
        shapes.insert(id, parcel.body.shape.clone());
        unpack_impulses(&parcel, &mut halo.impulses);
        halo.others.push(parcel.ranks.into_iter().filter(|&rank| rank != me).collect());
        halo.owners.push(source);
        halo.ghosts.push(parcel.body);
    }
    halo.impulses.sort();
    *memory = HaloMemory { sent, shapes };
    halo
}

/// Collective. Bodies whose centre lies in another rank's space go there, with their impulses. Returns how
/// many left this rank.
pub fn migrate(scene: &mut Scene, partition: &Partition, comm: &dyn Comm) -> usize {
    if comm.size() == 1 {
        return 0;
    }
    let me = comm.rank();
    let owner = |body: &Body| partition.owner_of_point(array(&body.pose.position));
    let leaving: Vec<BodyId> =
        scene.state.grains.iter().filter(|body| owner(body) != me).map(|body| body.id).collect();
    let mut outgoing = BTreeMap::<usize, Vec<Parcel>>::new();
    for body in scene.state.grains.iter().filter(|body| owner(body) != me) {
        outgoing.entry(owner(body)).or_default().push(parcel(body, &scene.state.impulses, PresentOn::new()));
    }
    if !leaving.is_empty() {
        scene.state.grains.retain(|body| owner(body) == me);
        scene.state.impulses = without_homes(&scene.state.impulses, &leaving);
    }
    for (_, parcels) in deliver(outgoing, comm) {
        for parcel in parcels {
            unpack_impulses(&parcel, &mut scene.state.impulses);
            scene.state.grains.push(parcel.body);
        }
    }
    scene.state.grains.sort_unstable_by_key(|body| body.id);
    scene.state.impulses.sort();
    leaving.len()
}

/// Collective. Impulses that this rank solved go to the ranks that own their homes: `owner_of` says which,
/// for homes that are ghosts here.
pub fn store_impulses(
    solved: impl Iterator<Item = (BodyId, ManifoldKey, impl Iterator<Item = StoredImpulse>)>,
    owner_of: impl Fn(BodyId) -> Option<usize>,
    comm: &dyn Comm,
) -> Impulses {
    // Two points a contact, as most have; the upper bound of the contacts is their number.
    let contacts = solved.size_hint().1.unwrap_or(0);
    let mut kept = Impulses::with_capacity(contacts, 2 * contacts);
    let mut outgoing = BTreeMap::<usize, Vec<(BodyId, ManifoldKey, StoredPoints)>>::new();
    for (home, key, points) in solved {
        match owner_of(home) {
            None => kept.push(home, key, points),
            Some(rank) => outgoing.entry(rank).or_default().push((home, key, points.collect())),
        }
    }
    if comm.size() > 1 {
        for (_, entries) in deliver(outgoing, comm) {
            for (home, key, points) in entries {
                kept.push(home, key, points);
            }
        }
    }
    kept.sort();
    kept
}

fn parcel(body: &Body, impulses: &Impulses, ranks: PresentOn) -> Parcel {
    let impulses = impulses.of_home(body.id).map(|(key, points)| (key, points.into())).collect();
    Parcel { body: body.clone(), shaped: true, impulses, ranks }
}

fn unpack_impulses(parcel: &Parcel, into: &mut Impulses) {
    for (key, points) in &parcel.impulses {
        into.push(parcel.body.id, *key, points.iter().copied());
    }
}

/// `leaving` is ascending.
fn without_homes(impulses: &Impulses, leaving: &[BodyId]) -> Impulses {
    let mut kept = Impulses::default();
    for (home, key, points) in impulses.iter() {
        if leaving.binary_search(&home).is_err() {
            kept.push(home, key, points.iter().copied());
        }
    }
    kept
}
