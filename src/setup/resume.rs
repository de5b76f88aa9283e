//! The scene of a checkpoint: what the case prescribes from the case, what moves from the file.
//!
//! Laws, prescribed motions and bodies that nothing can push are built from the case as at the start; free
//! bodies, impulses and the number of steps come from the file, in every bit, and grains are not generated
//! again. Bodies that are driven stand and move as the file says until the next step asks their motion.
//!
//! Rows of a state file stand in any order, so every rank reads a share and sends bodies and impulses to a
//! rank that follows from the body's id alone: impulses and their homes meet there. Who owns them later is
//! decided by where they are, not here.

use super::error::{SetupError, agree};
use super::{AchievedGrading, Inventory, Setup};
use crate::exchange::OWNER;
use crate::geometry::{Pose, Vec3};
use crate::input::Case;
use crate::machine::{Machine, SavedMachine};
use crate::output::{Digest, ImpulseRow, StateFile, share};
use crate::scene::{Body, BodyId, Impulses, ManifoldKey, Motion, Scene, StoredImpulse};
use crate::step::{DecompositionOptions, Machines};
use decomposition::Comm;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the attachment with the grading curves of the generated grains, which only the start of a run
/// knows.
pub const GRADINGS: &str = "gradings";

/// Rows of impulses that are read at a time.
const ROWS: u64 = 1 << 16;

/// Name of the section with the state of the machines, by machine.
pub const MACHINES: &str = "machines";

/// The section of what integrators remember of machines; absent where they remember nothing.
pub const MACHINE_MEMORY: &str = "machine_memory";

/// Where a body that is not free stands at the checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Driven {
    id: BodyId,
    group: u32,
    /// Whether it belongs to a machine.
    moves: bool,
    pose: Pose,
    velocity: Vec3,
    angular_velocity: Vec3,
}

/// Collective: the scene of a case at the moment of a checkpoint. An error on one rank is an error on all.
pub fn resume(case: &Case, file: &StateFile, comm: &dyn Comm) -> Result<Setup, SetupError> {
    let (_, mut scene, _) = agree(comm, super::named_bodies(case))?;
    let machines = agree(comm, machines(case, file))?;
    let mut next_id = scene.state.statics.len() as u64;
    super::add_machine_bodies(&machines, &mut next_id, &mut scene);
    agree(comm, take_names(&mut scene, file))?;
    let mut digest = Digest::new();
    let rows = share(file.body_count(), comm.rank(), comm.size());
    let bodies = agree(comm, file.read_bodies(rows).map_err(SetupError::from))?;
    bodies.iter().for_each(|body| digest.add_body(body));
    let (free, driven): (Vec<Body>, Vec<Body>) =
        bodies.into_iter().partition(|body| body.motion == Motion::Free);
    let driven = everywhere(driven, comm);
    agree(comm, place_driven(&mut scene, &driven))?;
    let homes = Homes { bodies: file.body_count(), ranks: comm.size() };
    scene.state.grains = send_bodies(free, &homes, comm);
    let rows = agree(comm, read_impulses(file, &driven, &homes, &mut digest, comm))?;
    scene.state.impulses = collect_impulses(rows, &driven, comm);
    scene.state.step = file.header().step;
    if comm.rank() == 0 {
        file.header().sections.iter().for_each(|(name, bytes)| digest.add_section(name, bytes));
    }
    agree(comm, file.check_digest(&digest.over_ranks(comm)).map_err(SetupError::from))?;

    let mut inventory = Inventory::new(case);
    inventory.gradings = agree(comm, gradings(file))?;
    inventory.count(&scene, comm);
    let decomposition = DecompositionOptions {
        cell_size: case.decomposition.cell_size,
        imbalance_threshold: case.decomposition.imbalance_threshold,
    };
    let (physics, solver) = (super::physics(case), super::solver(case));
    let machines = Machines::new(machines);
    Ok(Setup { scene, machines, physics, solver, decomposition, inventory })
}

/// The machines as they were saved.
fn machines(case: &Case, file: &StateFile) -> Result<Vec<Machine>, SetupError> {
    let saved: Vec<SavedMachine> = match file.section(MACHINES) {
        None => Vec::new(),
        Some(bytes) => postcard::from_bytes(bytes).map_err(|error| {
            let path = file.path().display();
            SetupError::Restart(format!("{path}: the state of its machines cannot be read: {error}"))
        })?,
    };
    let mut saved = saved;
    if let Some(bytes) = file.section(MACHINE_MEMORY) {
        let memories: Vec<Vec<f64>> = postcard::from_bytes(bytes).map_err(|error| {
            let path = file.path().display();
            SetupError::Restart(format!("{path}: what is remembered of its machines cannot be read: {error}"))
        })?;
        saved.iter_mut().zip(memories).for_each(|(saved, memory)| saved.multibody.memory = memory);
    }
    super::machine::restore(case, &saved)
}

/// Groups and materials by their numbers in the file, which must be those of the case; a `[start]` has added
/// groups of its own.
fn take_names(scene: &mut Scene, file: &StateFile) -> Result<(), SetupError> {
    let header = file.header();
    let same = |own: &[String], other: &[String]| own.iter().zip(other).all(|(a, b)| a == b);
    let groups = header.groups.len() >= scene.model.groups.len() && same(&scene.model.groups, &header.groups);
    let materials = header.materials.len() <= scene.model.materials.len()
        && same(&header.materials, &scene.model.materials);
    if !groups || !materials {
        let path = file.path().display();
        return Err(SetupError::Restart(format!(
            "{path} has other bodies, grains or materials than this case, or in another order; \
             a new run can take its free bodies with [start]"
        )));
    }
    scene.model.groups = header.groups.clone();
    Ok(())
}

/// Collective: what each rank has read of the bodies that are not free, on every rank, ascending by id.
fn everywhere(own: Vec<Body>, comm: &dyn Comm) -> Vec<Driven> {
    let own: Vec<Driven> = own
        .into_iter()
        .map(|body| Driven {
            id: body.id,
            group: body.group,
            moves: matches!(body.motion, Motion::Machine(_)),
            pose: body.pose,
            velocity: body.velocity,
            angular_velocity: body.angular_velocity,
        })
        .collect();
    let bytes = postcard::to_stdvec(&own).expect("plain data can be packed");
    let unpack = |bytes: &Vec<u8>| -> Vec<Driven> {
        postcard::from_bytes(bytes).expect("what a rank packed, a rank unpacks")
    };
    let mut all: Vec<Driven> = comm.all_gather(&bytes).iter().flat_map(unpack).collect();
    all.sort_unstable_by_key(|body| body.id);
    all
}

fn place_driven(scene: &mut Scene, driven: &[Driven]) -> Result<(), SetupError> {
    let groups = &scene.model.groups;
    for body in &mut scene.state.statics {
        let found = driven.binary_search_by_key(&body.id, |driven| driven.id).ok().map(|at| &driven[at]);
        let Some(found) = found.filter(|found| found.group == body.group) else {
            let name = &groups[body.group as usize];
            return Err(SetupError::Restart(format!(
                "{name:?} is not in the checkpoint, or was free there; a new run can take its free bodies with [start]"
            )));
        };
        if body.motion != Motion::Fixed {
            body.pose = found.pose;
            body.velocity = found.velocity;
            body.angular_velocity = found.angular_velocity;
        }
    }
    Ok(())
}

/// Which rank takes a body: a share of the ids, which are nearly consecutive from 0.
struct Homes {
    bodies: u64,
    ranks: usize,
}

impl Homes {
    fn rank(&self, id: BodyId) -> usize {
        let share = u128::from(id.0) * self.ranks as u128 / u128::from(self.bodies.max(1));
        (share as usize).min(self.ranks - 1)
    }
}

/// Collective.
fn send_bodies(bodies: Vec<Body>, homes: &Homes, comm: &dyn Comm) -> Vec<Body> {
    // Those that stay keep sharing their shapes.
    let (mut kept, leaving): (Vec<Body>, Vec<Body>) =
        bodies.into_iter().partition(|body| homes.rank(body.id) == comm.rank());
    let mut outgoing = BTreeMap::<usize, Vec<Body>>::new();
    for body in leaving {
        outgoing.entry(homes.rank(body.id)).or_default().push(body);
    }
    let pack = |bodies: Vec<Body>| postcard::to_stdvec(&bodies).expect("plain data can be packed");
    for (_, bytes) in comm.scatter(outgoing.into_iter().map(|(rank, bodies)| (rank, pack(bodies))).collect())
    {
        let bodies: Vec<Body> = postcard::from_bytes(&bytes).expect("what a rank packed, a rank unpacks");
        kept.extend(bodies);
    }
    kept.sort_unstable_by_key(|body| body.id);
    kept
}

/// A row of the file, as ranks send it to each other.
type Row = ([u64; 2], [u32; 2], u32, Vec3);

/// This rank's share of the impulses, by the rank that takes each.
fn read_impulses(
    file: &StateFile,
    driven: &[Driven],
    homes: &Homes,
    digest: &mut Digest,
    comm: &dyn Comm,
) -> Result<BTreeMap<usize, Vec<Row>>, SetupError> {
    let own = share(file.impulse_count(), comm.rank(), comm.size());
    let mut outgoing = BTreeMap::<usize, Vec<Row>>::new();
    let mut first = own.start;
    while first < own.end {
        let rows = first..(first + ROWS).min(own.end);
        first = rows.end;
        for row in file.read_impulses(rows)? {
            digest.add_impulse(&row);
            let rank = match home(&row.ids.map(BodyId), driven) {
                (home, true) => homes.rank(home),
                // Contacts without a free body live with the machines.
                (_, false) => OWNER,
            };
            outgoing.entry(rank).or_default().push((row.ids, row.parts, row.feature, row.impulse));
        }
    }
    Ok(outgoing)
}

/// The first of two bodies that moves freely, else the first that belongs to a machine; and whether it is
/// free.
fn home(ids: &[BodyId; 2], driven: &[Driven]) -> (BodyId, bool) {
    let rank = |id: BodyId| match driven.binary_search_by_key(&id, |driven| driven.id) {
        Err(_) => 0,
        Ok(place) if driven[place].moves => 1,
        Ok(_) => 2,
    };
    let ranks = ids.map(rank);
    let first = usize::from(ranks[0] > ranks[1]);
    (ids[first], ranks[first] == 0)
}

/// Collective.
fn collect_impulses(outgoing: BTreeMap<usize, Vec<Row>>, driven: &[Driven], comm: &dyn Comm) -> Impulses {
    let pack = |rows: Vec<Row>| postcard::to_stdvec(&rows).expect("plain data can be packed");
    let mut rows: Vec<Row> = Vec::new();
    for (_, bytes) in comm.scatter(outgoing.into_iter().map(|(rank, rows)| (rank, pack(rows))).collect()) {
        let more: Vec<Row> = postcard::from_bytes(&bytes).expect("what a rank packed, a rank unpacks");
        rows.extend(more);
    }
    let row = |(ids, parts, feature, impulse): &Row| ImpulseRow {
        ids: *ids,
        parts: *parts,
        feature: *feature,
        impulse: *impulse,
    };
    let rows: Vec<ImpulseRow> = rows.iter().map(row).collect();
    gathered(rows, driven)
}

/// Points of one contact stay in the order of the file, which is that of the step that made them.
fn gathered(mut rows: Vec<ImpulseRow>, driven: &[Driven]) -> Impulses {
    let key = |row: &ImpulseRow| ManifoldKey { bodies: row.ids.map(BodyId), parts: row.parts };
    rows.sort_by_key(key);
    let mut impulses = Impulses::default();
    for points in rows.chunk_by(|a, b| key(a) == key(b)) {
        let stored = points.iter().map(|row| StoredImpulse { feature: row.feature, impulse: row.impulse });
        let key = key(&points[0]);
        impulses.push(home(&key.bodies, driven).0, key, stored);
    }
    impulses.sort();
    impulses
}

fn gradings(file: &StateFile) -> Result<Vec<AchievedGrading>, SetupError> {
    let Some(text) = file.attachment(GRADINGS)? else { return Ok(Vec::new()) };
    serde_json::from_slice(&text).map_err(|error| {
        SetupError::Restart(format!("{}: grading curves cannot be read: {error}", file.path().display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_one_of_the_ranks() {
        for (bodies, ranks) in [(0, 1), (1, 4), (10, 3), (1 << 40, 7)] {
            let homes = Homes { bodies, ranks };
            let mut last = 0;
            for id in [0, 1, bodies / 3, bodies / 2, bodies.saturating_sub(1), bodies, u64::MAX] {
                let rank = homes.rank(BodyId(id));
                assert!(rank < ranks && (rank >= last || id < 2), "{id} of {bodies} goes to {rank}");
                last = rank;
            }
        }
    }

    #[test]
    fn points_of_a_contact_keep_their_order() {
        let row = |ids: [u64; 2], feature: u32| ImpulseRow {
            ids,
            parts: [0, 0],
            feature,
            impulse: Vec3::x() * f64::from(feature),
        };
        let at = |id: u64| Driven {
            id: BodyId(id),
            group: 0,
            moves: id == 1,
            pose: Pose::identity(),
            velocity: Vec3::zeros(),
            angular_velocity: Vec3::zeros(),
        };
        let rows = vec![row([2, 3], 9), row([2, 3], 4), row([0, 3], 7), row([2, 3], 5), row([0, 1], 8)];
        let impulses = gathered(rows, &[at(0), at(1)]);
        let entries: Vec<_> = impulses
            .iter()
            .map(|(home, _, points)| (home.0, points.iter().map(|point| point.feature).collect::<Vec<_>>()))
            .collect();
        assert_eq!(entries, [(1, vec![8]), (2, vec![9, 4, 5]), (3, vec![7])]);
    }
}
