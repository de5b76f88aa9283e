//! Which bodies are hubs: those with very many manifolds.

use super::shared::SharedBodies;
use crate::exchange::messages::{broadcast, deliver};
use crate::scene::BodyId;
use crate::solve::colour::Link;
use decomposition::Comm;
use std::collections::BTreeMap;

/// A body with more manifolds than this takes them to the hub phase: colours beyond would hold little else.
const HUB_MANIFOLDS: u64 = 64;
/// Of such bodies at most so many: the hub phase is sequential.
const MOST_HUBS: usize = 8;

/// The bodies with the most manifolds, if these are very many: ascending, the same on every rank. Collective.
pub(super) fn choose_hubs(
    links: &[Link],
    ids: &[BodyId],
    own: usize,
    shared: &SharedBodies,
    comm: &dyn Comm,
) -> Vec<BodyId> {
    let mut counts = vec![0u64; ids.len()];
    for slot in links.iter().flat_map(|link| link.slots).flatten() {
        counts[slot as usize] += 1;
    }
    for body in &shared.bodies {
        counts[body.slot as usize] += body.foreign.len() as u64;
    }
    // An owner knows all manifolds of its bodies.
    let own = counts[..own].iter().zip(ids).filter(|(count, _)| **count > HUB_MANIFOLDS);
    let own: Vec<(u64, BodyId)> = own.map(|(&count, &id)| (count, id)).collect();
    let mut number = [own.len() as i64];
    comm.sum_i64(&mut number);
    if number[0] == 0 {
        return Vec::new();
    }
    let mut all = own;
    if comm.size() > 1 {
        let outgoing = if all.is_empty() { BTreeMap::new() } else { BTreeMap::from([(0, all)]) };
        all = deliver(outgoing, comm).into_iter().flat_map(|(_, some)| some).collect();
    }
    all.sort_unstable_by_key(|&(count, id)| (std::cmp::Reverse(count), id));
    let mut chosen: Vec<BodyId> = all.into_iter().take(MOST_HUBS).map(|(_, id)| id).collect();
    chosen.sort_unstable();
    broadcast(chosen, 0, comm)
}
