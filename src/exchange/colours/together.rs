//! The colouring of all ranks' manifolds, by rounds.

use super::shared::SharedBodies;
use crate::exchange::messages::{pack, unpack};
use crate::exchange::ranks::slot_lookup;
use crate::scene::{BodyId, ManifoldKey};
use crate::solve::Colours;
use crate::solve::colour::{Colour, Coloured, Colouring, Link, priority};
use decomposition::Comm;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rank ↔ partner, in each round: a colour that was found.
#[derive(Serialize, Deserialize)]
struct ColourUpdate {
    body: BodyId,
    key: ManifoldKey,
    colour: Colour,
}

/// Colours that two ranks have yet to send each other: both know both numbers, and stop together.
#[derive(Default)]
struct Partner {
    to_send: usize,
    to_receive: usize,
}

/// Rounds of local colouring and exchange of colours between partners, until no partner has anything left to
/// send. Ranks that share nothing do not wait for each other. Collective.
pub(super) fn colour_together(
    links: &[Link],
    ids: &[BodyId],
    own: usize,
    shared: &mut SharedBodies,
    comm: &dyn Comm,
) -> Colours {
    let slot_of = slot_lookup(ids, own);
    let foreign: Vec<(u32, ManifoldKey)> =
        shared.bodies.iter().flat_map(|body| body.foreign.iter().map(|f| (body.slot, f.key))).collect();
    let mut partners = BTreeMap::<u32, Partner>::new();
    for foreign in shared.bodies.iter().flat_map(|body| &body.foreign) {
        partners.entry(foreign.rank).or_default().to_receive += 1;
    }
    for body in links.iter().flat_map(|link| link.slots).flatten().filter_map(|slot| shared.get(slot)) {
        for &rank in &body.participants {
            partners.entry(rank).or_default().to_send += 1;
        }
    }
    let mut colouring = Colouring::new(links, ids.len(), &foreign);
    loop {
        let mut outgoing: BTreeMap<u32, Vec<ColourUpdate>> =
            partners.keys().map(|&rank| (rank, Vec::new())).collect();
        colouring.advance(|Coloured { slot, priority, colour }| {
            if let Some(body) = shared.get(slot) {
                let update = || ColourUpdate { body: body.id, key: priority.1, colour };
                for rank in &body.participants {
                    outgoing.get_mut(rank).expect("participants are partners").push(update());
                }
            }
        });
        if partners.is_empty() {
            break;
        }
        let mut messages = Vec::with_capacity(outgoing.len());
        for (rank, updates) in outgoing {
            partners.get_mut(&rank).expect("a partner").to_send -= updates.len();
            messages.push((rank as usize, pack(&updates)));
        }
        let mut arrived: Vec<(u32, ColourUpdate)> = Vec::new();
        for (rank, bytes) in comm.swap(messages) {
            let updates: Vec<ColourUpdate> = unpack(&bytes);
            partners.get_mut(&(rank as u32)).expect("a partner").to_receive -= updates.len();
            let placed = |update: ColourUpdate| {
                (slot_of(update.body).expect("updates come for shared bodies"), update)
            };
            arrived.extend(updates.into_iter().map(placed));
        }
        partners.retain(|_, partner| partner.to_send + partner.to_receive > 0);
        arrived.sort_unstable_by_key(|(slot, update)| (*slot, priority(&update.key)));
        for (slot, ColourUpdate { key, colour, .. }) in arrived {
            let body = shared.get_mut(slot).expect("updates come for shared bodies");
            let place = body.foreign.binary_search_by_key(&priority(&key), |foreign| priority(&foreign.key));
            body.foreign[place.expect("announced before")].colour = colour;
            colouring.receive(&Coloured { slot, priority: priority(&key), colour });
        }
    }
    let mut colours = colouring.finish();
    let mut most = [colours.count as f64];
    comm.max_f64(&mut most);
    colours.count = most[0] as usize;
    colours
}
