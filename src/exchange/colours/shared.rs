//! Bodies that several ranks visit in a sweep, and who else visits them.

use super::is_of;
use crate::exchange::halo::Halo;
use crate::exchange::messages::deliver;
use crate::exchange::ranks::slot_lookup;
use crate::scene::{BodyId, ManifoldKey};
use crate::solve::colour::{Colour, Link, priority};
use decomposition::Comm;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The shared bodies in whose manifolds this rank takes part, or which it owns.
#[derive(Default)]
pub(in crate::exchange) struct SharedBodies {
    /// By slot: the place in `bodies`, or [`NOT_SHARED`].
    pub(in crate::exchange) places: Vec<u32>,
    /// Ascending by slot.
    pub(in crate::exchange) bodies: Vec<SharedBody>,
}

const NOT_SHARED: u32 = u32::MAX;

impl SharedBodies {
    pub(super) fn new(bodies: Vec<SharedBody>, slots: usize) -> Self {
        let mut places = vec![NOT_SHARED; slots];
        for (place, body) in bodies.iter().enumerate() {
            places[body.slot as usize] = place as u32;
        }
        Self { places, bodies }
    }

    pub(in crate::exchange) fn get(&self, slot: u32) -> Option<&SharedBody> {
        let place = *self.places.get(slot as usize)?;
        self.bodies.get(place as usize)
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut SharedBody> {
        let place = *self.places.get(slot as usize)?;
        self.bodies.get_mut(place as usize)
    }
}

/// A shared body as one rank sees it.
pub(in crate::exchange) struct SharedBody {
    pub(in crate::exchange) slot: u32,
    pub(in crate::exchange) id: BodyId,
    /// Manifolds of other ranks on it.
    pub(in crate::exchange) foreign: Vec<Foreign>,
    /// The other participants, ascending.
    pub(in crate::exchange) participants: Vec<u32>,
}

pub(in crate::exchange) struct Foreign {
    pub(in crate::exchange) rank: u32,
    pub(in crate::exchange) key: ManifoldKey,
    pub(in crate::exchange) colour: Colour,
}

/// Rank → ranks present at a shared body, before colouring.
#[derive(Serialize, Deserialize)]
struct Announced {
    body: BodyId,
    keys: Vec<ManifoldKey>,
}

/// Sends the other ranks present at each shared body the keys of this rank's manifolds on it, and receives
/// theirs. Collective.
pub(super) fn announce(
    links: &[Link],
    ids: &[BodyId],
    own: usize,
    halo: &Halo,
    comm: &dyn Comm,
) -> SharedBodies {
    let mut keys: Vec<(u32, ManifoldKey)> = Vec::new();
    for link in links {
        let slots = link.slots.into_iter().flatten();
        let shared = slots.filter(|&slot| !halo.others[slot as usize].is_empty());
        keys.extend(shared.map(|slot| (slot, link.key)));
    }
    keys.sort_unstable();
    let mut outgoing = BTreeMap::<usize, Vec<Announced>>::new();
    for keys in keys.chunk_by(|a, b| a.0 == b.0) {
        let slot = keys[0].0 as usize;
        for &rank in &halo.others[slot] {
            let announced = Announced { body: ids[slot], keys: keys.iter().map(|(_, key)| *key).collect() };
            outgoing.entry(rank as usize).or_default().push(announced);
        }
    }
    let mut bodies = Vec::new();
    for slot in (0..ids.len() as u32).filter(|&slot| !halo.others[slot as usize].is_empty()) {
        let owner = (slot as usize).checked_sub(own).map(|ghost| halo.owners[ghost]);
        if owner.is_none() || keys.binary_search_by_key(&slot, |(slot, _)| *slot).is_ok() {
            let (id, participants) = (ids[slot as usize], owner.into_iter().collect());
            bodies.push(SharedBody { slot, id, foreign: Vec::new(), participants });
        }
    }
    let mut shared = SharedBodies::new(bodies, ids.len());
    let slot_of = slot_lookup(ids, own);
    for (rank, announced) in deliver(outgoing, comm) {
        for Announced { body, keys } in announced {
            if let Some(shared) = slot_of(body).and_then(|slot| shared.get_mut(slot)) {
                let rank = rank as u32;
                shared.foreign.extend(keys.into_iter().map(|key| Foreign { rank, key, colour: 0 }));
                shared.participants.push(rank);
            }
        }
    }
    for body in &mut shared.bodies {
        body.participants.sort_unstable();
        body.participants.dedup();
        body.foreign.sort_unstable_by_key(|foreign| priority(&foreign.key));
    }
    shared
}

/// Forgets what was announced about manifolds of hubs: nobody waits for their colours.
pub(super) fn leave_out(
    hubs: &[BodyId],
    links: &[Link],
    own: usize,
    halo: &Halo,
    shared: SharedBodies,
) -> SharedBodies {
    let SharedBodies { places, mut bodies } = shared;
    let used: BTreeSet<u32> = links.iter().flat_map(|link| link.slots).flatten().collect();
    bodies.retain_mut(|body| {
        body.foreign.retain(|foreign| !is_of(&foreign.key, hubs));
        let owner = (body.slot as usize).checked_sub(own).map(|ghost| halo.owners[ghost]);
        body.participants =
            owner.into_iter().chain(body.foreign.iter().map(|foreign| foreign.rank)).collect();
        body.participants.sort_unstable();
        body.participants.dedup();
        owner.is_none() || used.contains(&body.slot)
    });
    SharedBodies::new(bodies, places.len())
}
