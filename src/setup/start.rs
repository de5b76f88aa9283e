//! Bodies from the final state of another run.
//!
//! The bodies that are taken get consecutive ids in the order of their old ones. Impulses between them, and
//! between them and fixed or kinematic bodies of the same name, come along as a warm start; the others act on
//! bodies that are not here any more. Copies follow with the ids behind them, and start cold.
//!
//! Rows of a state file stand in any order. Every rank takes a share of them and sends all others the old ids
//! that it holds, as runs of consecutive ids: the table that translates ids and finds who holds a body.

use super::error::{SetupError, agree};
use super::solids::set_velocity;
use crate::geometry::Vec3;
use crate::input::{Case, Start};
use crate::output::{ImpulseRow, StateFile, StateHeader, share};
use crate::scene::{Body, BodyId, Impulses, ManifoldKey, Motion, Scene, StoredImpulse};
use decomposition::Comm;
use std::collections::{BTreeMap, BTreeSet};

/// Rows of impulses that are read at a time.
const ROWS: u64 = 1 << 16;

/// Collective: adds the bodies and impulses of `start` to the scene. The first of the bodies gets the id
/// `first_id`.
pub(super) fn take_over(
    case: &Case,
    start: &Start,
    first_id: u64,
    scene: &mut Scene,
    comm: &dyn Comm,
) -> Result<(), SetupError> {
    let file = StateFile::open(&start.from, comm)?;
    let selected = selected_groups(start, file.header())?;
    let rows = share(file.body_count(), comm.rank(), comm.size());
    let (statics, mut taken) = agree(comm, read(&file, rows, &selected))?;
    let ids = Translation::new(&taken, &statics, file.header(), scene, first_id, comm);
    if ids.count == 0 {
        let message = format!("{} has no free body in the groups that are wanted", start.from.display());
        return Err(SetupError::Start(message));
    }
    let groups = group_numbers(&taken, file.header(), scene, comm);
    let materials = material_numbers(case, start, &taken, file.header(), comm)?;
    check_laws(case, scene, &materials)?;
    for body in &mut taken {
        // Every id that was sent is in the table.
        body.id = ids.new_id(body.id.0).unwrap_or(body.id);
        body.group = groups[body.group as usize];
        body.material = materials[&body.material];
        if !start.keep_velocities {
            set_velocity(body, Vec3::zeros(), Vec3::zeros());
        }
    }
    scene.state.grains.extend(side_by_side(start, taken, ids.count));
    scene.state.impulses = take_impulses(&file, &ids, comm)?;
    Ok(())
}

/// All copies of the taken bodies, about where they were; `count` bodies are taken on all ranks together.
fn side_by_side(start: &Start, taken: Vec<Body>, count: u64) -> Vec<Body> {
    let [along_x, along_y] = start.copies;
    if along_x * along_y == 1 {
        return taken;
    }
    let shift = |place: u64, axis: usize| {
        (place as f64 - 0.5 * (start.copies[axis] - 1) as f64) * start.spacing[axis]
    };
    let mut all = Vec::with_capacity(taken.len() * (along_x * along_y) as usize);
    for copy in 0..along_x * along_y {
        let by = Vec3::new(shift(copy % along_x, 0), shift(copy / along_x, 1), 0.0);
        all.extend(taken.iter().map(|body| {
            let mut body = body.clone();
            body.id.0 += copy * count;
            body.pose.position += by;
            body
        }));
    }
    all
}

/// Which groups of the file are taken.
fn selected_groups(start: &Start, header: &StateHeader) -> Result<Vec<bool>, SetupError> {
    let Some(wanted) = &start.groups else { return Ok(vec![true; header.groups.len()]) };
    if let Some(unknown) = wanted.iter().find(|name| !header.groups.contains(name)) {
        let there = header.groups.join(", ");
        let message = format!("{} has no group {unknown:?}; it has {there}", start.from.display());
        return Err(SetupError::Start(message));
    }
    Ok(header.groups.iter().map(|name| wanted.contains(name)).collect())
}

/// The bodies of some rows that nothing can push, and the free ones that are taken.
fn read(
    file: &StateFile,
    rows: std::ops::Range<u64>,
    selected: &[bool],
) -> Result<(Vec<Body>, Vec<Body>), SetupError> {
    let (free, statics): (Vec<Body>, Vec<Body>) =
        file.read_bodies(rows)?.into_iter().partition(|body| body.motion == Motion::Free);
    Ok((statics, free.into_iter().filter(|body| selected[body.group as usize]).collect()))
}

/// Consecutive old ids that one rank holds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    first: u64,
    count: u64,
    rank: usize,
    /// New id of the first.
    new: u64,
}

/// From ids of the file to ids of the scene.
#[derive(Debug)]
struct Translation {
    /// Ascending.
    runs: Vec<Run>,
    /// Fixed and kinematic bodies that are here under the same name.
    statics: BTreeMap<u64, u64>,
    /// Bodies taken, all ranks together.
    count: u64,
}

impl Translation {
    /// Collective.
    fn new(
        taken: &[Body],
        statics: &[Body],
        header: &StateHeader,
        scene: &Scene,
        first_id: u64,
        comm: &dyn Comm,
    ) -> Self {
        let mut own: Vec<u64> = taken.iter().map(|body| body.id.0).collect();
        own.sort_unstable();
        let consecutive: Vec<u64> =
            own.chunk_by(|a, b| a + 1 == *b).flat_map(|run| [run[0], run.len() as u64]).collect();
        let mut runs = Vec::new();
        for (rank, numbers) in gather(&consecutive, comm).into_iter().enumerate() {
            runs.extend(numbers.chunks_exact(2).map(|run| Run {
                first: run[0],
                count: run[1],
                rank,
                new: 0,
            }));
        }
        runs.sort_unstable_by_key(|run| run.first);
        let mut next = first_id;
        for run in &mut runs {
            run.new = next;
            next += run.count;
        }
        let here = |body: &Body| {
            let name = &header.groups[body.group as usize];
            let same =
                scene.state.statics.iter().find(|own| &scene.model.groups[own.group as usize] == name)?;
            Some([body.id.0, same.id.0])
        };
        let known: Vec<u64> = statics.iter().filter_map(here).flatten().collect();
        let pairs = gather(&known, comm).concat();
        let statics = pairs.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        Self { runs, statics, count: next - first_id }
    }

    fn run(&self, old: u64) -> Option<&Run> {
        let place = self.runs.partition_point(|run| run.first <= old).checked_sub(1)?;
        Some(&self.runs[place]).filter(|run| old - run.first < run.count)
    }

    fn new_id(&self, old: u64) -> Option<BodyId> {
        self.run(old).map(|run| BodyId(run.new + (old - run.first)))
    }

    /// The impulse under its new key, and the rank that holds its home; none if one of the two bodies is not
    /// here.
    fn impulse(&self, row: &ImpulseRow) -> Option<(usize, ImpulseRow)> {
        let holder = row.ids.iter().find_map(|old| self.run(*old))?.rank;
        let mut ids = [0; 2];
        for (new, old) in ids.iter_mut().zip(row.ids) {
            *new = self.new_id(old).map(|id| id.0).or_else(|| self.statics.get(&old).copied())?;
        }
        let mut moved = ImpulseRow { ids, ..*row };
        if ids[0] > ids[1] {
            moved.ids.reverse();
            moved.parts.reverse();
            moved.impulse = -moved.impulse;
        }
        Some((holder, moved))
    }
}

/// Collective: the numbers of each rank.
fn gather(own: &[u64], comm: &dyn Comm) -> Vec<Vec<u64>> {
    let bytes: Vec<u8> = own.iter().flat_map(|number| number.to_le_bytes()).collect();
    comm.all_gather(&bytes).iter().map(|bytes| numbers(bytes)).collect()
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|eight| u64::from_le_bytes(eight.try_into().unwrap_or([0; 8]))).collect()
}

/// Collective: the scene's number for each group of the file, which joins a group of the same name or is
/// added.
fn group_numbers(taken: &[Body], header: &StateHeader, scene: &mut Scene, comm: &dyn Comm) -> Vec<u32> {
    let mut counts = vec![0i64; header.groups.len()];
    taken.iter().for_each(|body| counts[body.group as usize] += 1);
    comm.sum_i64(&mut counts);
    let mut number = |(name, count): (&String, &i64)| {
        if *count == 0 {
            return 0; // nobody asks for it
        }
        let known = scene.model.groups.iter().position(|own| own == name);
        known.unwrap_or_else(|| {
            scene.model.groups.push(name.clone());
            scene.model.groups.len() - 1
        }) as u32
    };
    header.groups.iter().zip(&counts).map(&mut number).collect()
}

/// Collective: the case's number for each material of the file that a taken body has.
fn material_numbers(
    case: &Case,
    start: &Start,
    taken: &[Body],
    header: &StateHeader,
    comm: &dyn Comm,
) -> Result<BTreeMap<u32, u32>, SetupError> {
    let own: BTreeSet<u64> = taken.iter().map(|body| u64::from(body.material)).collect();
    let used: BTreeSet<u64> =
        gather(&own.into_iter().collect::<Vec<_>>(), comm).into_iter().flatten().collect();
    let number = |old: u64| {
        if let Some(material) = start.material {
            return Ok((old as u32, material as u32));
        }
        let name = &header.materials[old as usize];
        let known = case.materials.iter().position(|material| &material.name == name);
        known.map(|known| (old as u32, known as u32)).ok_or_else(|| {
            let wanted = format!("the bodies of {} are made of {name:?}", start.from.display());
            SetupError::Start(format!(
                "{wanted}, which this case has no [[material]] for; add it, or set `material`"
            ))
        })
    };
    used.into_iter().map(number).collect()
}

/// The case could not know which materials its start brings: every pair that can meet needs a law.
fn check_laws(case: &Case, scene: &Scene, taken: &BTreeMap<u32, u32>) -> Result<(), SetupError> {
    let taken: BTreeSet<u32> = taken.values().copied().collect();
    let bodies = case.bodies.iter().map(|body| body.material as u32);
    let grains = case.grains.iter().map(|grains| grains.material as u32);
    let others: BTreeSet<u32> = bodies.chain(grains).chain(taken.iter().copied()).collect();
    for &first in &taken {
        for &second in &others {
            if scene.model.laws.between(first, second).is_none() {
                let [first, second] = [first, second].map(|index| &case.materials[index as usize].name);
                let message = format!("the bodies taken need a [[contact]] between {first:?} and {second:?}");
                return Err(SetupError::Start(message));
            }
        }
    }
    Ok(())
}

/// Collective: the impulses of contacts whose home is a body that this rank holds.
fn take_impulses(file: &StateFile, ids: &Translation, comm: &dyn Comm) -> Result<Impulses, SetupError> {
    let read = || -> Result<BTreeMap<usize, Vec<u8>>, SetupError> {
        let own = share(file.impulse_count(), comm.rank(), comm.size());
        let mut outgoing = BTreeMap::<usize, Vec<u8>>::new();
        let mut first = own.start;
        while first < own.end {
            let rows = first..(first + ROWS).min(own.end);
            first = rows.end;
            for (rank, row) in file.read_impulses(rows)?.iter().filter_map(|row| ids.impulse(row)) {
                outgoing.entry(rank).or_default().extend(encode(&row));
            }
        }
        Ok(outgoing)
    };
    let outgoing = agree(comm, read())?;
    let mut rows: Vec<ImpulseRow> = Vec::new();
    for (_, bytes) in comm.scatter(outgoing.into_iter().collect()) {
        rows.extend(numbers(&bytes).chunks_exact(IMPULSE_WORDS).map(decode));
    }
    let key = |row: &ImpulseRow| ManifoldKey { bodies: row.ids.map(BodyId), parts: row.parts };
    rows.sort_by_key(|row| (key(row), row.feature));
    let mut impulses = Impulses::default();
    for points in rows.chunk_by(|a, b| key(a) == key(b)) {
        let home = if points[0].ids[0] < ids.runs[0].new { points[0].ids[1] } else { points[0].ids[0] };
        let stored = points.iter().map(|row| StoredImpulse { feature: row.feature, impulse: row.impulse });
        impulses.push(BodyId(home), key(&points[0]), stored);
    }
    impulses.sort();
    Ok(impulses)
}

const IMPULSE_WORDS: usize = 8;

fn encode(row: &ImpulseRow) -> Vec<u8> {
    let [a, b] = row.parts.map(u64::from);
    let words = [row.ids[0], row.ids[1], a, b, u64::from(row.feature)];
    let all = words.into_iter().chain(row.impulse.iter().map(|part| part.to_bits()));
    all.flat_map(u64::to_le_bytes).collect()
}

fn decode(words: &[u64]) -> ImpulseRow {
    ImpulseRow {
        ids: [words[0], words[1]],
        parts: [words[2] as u32, words[3] as u32],
        feature: words[4] as u32,
        impulse: Vec3::new(f64::from_bits(words[5]), f64::from_bits(words[6]), f64::from_bits(words[7])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ids: [u64; 2]) -> ImpulseRow {
        ImpulseRow { ids, parts: [3, 4], feature: 9, impulse: Vec3::new(0.1, -0.0, 5e-324) }
    }

    #[test]
    fn ids_are_translated_and_impulses_follow() {
        let run = |first, count, rank, new| Run { first, count, rank, new };
        let ids = Translation {
            runs: vec![run(5, 2, 0, 20), run(9, 3, 1, 22)],
            statics: [(1, 2), (3, 90)].into(),
            count: 5,
        };
        let new_ids: Vec<_> = (4..13).map(|old| ids.new_id(old).map(|id| id.0)).collect();
        let none = None;
        assert_eq!(new_ids, [none, Some(20), Some(21), none, none, Some(22), Some(23), Some(24), none]);
        let (rank, moved) = ids.impulse(&row([5, 11])).expect("both are here");
        assert_eq!((rank, moved), (0, row([20, 24])));
        assert_eq!(ids.impulse(&row([1, 9])).expect("a wall"), (1, row([2, 22])));
        let (_, turned) = ids.impulse(&row([3, 9])).expect("a wall with a higher id");
        assert_eq!((turned.ids, turned.parts, turned.impulse), ([22, 90], [4, 3], -row([0, 0]).impulse));
        assert!(ids.impulse(&row([5, 8])).is_none() && ids.impulse(&row([2, 5])).is_none());
        assert_eq!(decode(&numbers(&encode(&row([7, 8])))), row([7, 8]));
    }
}
