//! Who sends which velocity to whom after each colour of a sweep.

use super::shared::SharedBodies;
use crate::exchange::messages::TWIST;
use crate::scene::BodyId;
use crate::solve::Colours;
use crate::solve::colour::{Colour, Link};
use decomposition::{Exchange, Message};

#[derive(Default)]
pub(in crate::exchange) struct Plan {
    /// By colour.
    pub(in crate::exchange) exchanges: Vec<ColourExchange>,
    pub(in crate::exchange) shared: SharedBodies,
}

#[derive(Default)]
pub(in crate::exchange) struct ColourExchange {
    pub(in crate::exchange) exchange: Exchange,
    /// Slots in the order of the outgoing messages' entries, and of the incoming ones'.
    pub(in crate::exchange) send: Vec<Vec<u32>>,
    pub(in crate::exchange) receive: Vec<Vec<u32>>,
}

/// One velocity on its way after a colour: in the order of messages, and within a message by body, on both
/// sides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    colour: Colour,
    rank: u32,
    body: BodyId,
    slot: u32,
}

/// By colour: the messages of this rank.
pub(super) fn plan(me: u32, links: &[Link], colours: &Colours, shared: &SharedBodies) -> Vec<ColourExchange> {
    // Slot, colour and rank of each visit to a shared body.
    let mut visits: Vec<(u32, Colour, u32)> = Vec::new();
    for (link, &colour) in links.iter().zip(&colours.of) {
        let slots = link.slots.into_iter().flatten().filter(|&slot| shared.get(slot).is_some());
        visits.extend(slots.map(|slot| (slot, colour, me)));
    }
    for body in &shared.bodies {
        visits.extend(body.foreign.iter().map(|foreign| (body.slot, foreign.colour, foreign.rank)));
    }
    visits.sort_unstable();
    let (mut send, mut receive) = (Vec::new(), Vec::new());
    for visits in visits.chunk_by(|a, b| a.0 == b.0) {
        let slot = visits[0].0;
        let Some(body) = shared.get(slot) else { continue };
        let entry = |colour, rank| Entry { colour, rank, body: body.id, slot };
        for (k, &(_, colour, rank)) in visits.iter().enumerate() {
            match visits.get(k + 1) {
                Some(&(_, _, next)) if next == rank => {}
                Some(&(_, _, next)) if rank == me => send.push(entry(colour, next)),
                Some(&(_, _, next)) if next == me => receive.push(entry(colour, rank)),
                Some(_) => {}
                None if rank == me => {
                    send.extend(body.participants.iter().map(|&other| entry(colour, other)));
                }
                None => receive.push(entry(colour, rank)),
            }
        }
    }
    let mut exchanges = Vec::with_capacity(colours.count);
    let (mut send, mut receive) = (ByColour::new(send), ByColour::new(receive));
    for colour in 0..colours.count as Colour {
        let (outgoing, send) = send.take(colour);
        let (incoming, receive) = receive.take(colour);
        exchanges.push(ColourExchange { exchange: Exchange::new(outgoing, incoming), send, receive });
    }
    exchanges
}

/// Entries in order, given out colour by colour.
struct ByColour {
    entries: Vec<Entry>,
    taken: usize,
}

impl ByColour {
    fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_unstable();
        Self { entries, taken: 0 }
    }

    /// The messages of a colour, by ascending rank, and the slots of their entries.
    fn take(&mut self, colour: Colour) -> (Vec<Message>, Vec<Vec<u32>>) {
        let rest = &self.entries[self.taken..];
        let count = rest.partition_point(|entry| entry.colour <= colour);
        self.taken += count;
        let (mut messages, mut slots) = (Vec::new(), Vec::new());
        for entries in rest[..count].chunk_by(|a, b| a.rank == b.rank) {
            messages.push(Message { rank: entries[0].rank as usize, data: vec![0.0; entries.len() * TWIST] });
            slots.push(entries.iter().map(|entry| entry.slot).collect());
        }
        (messages, slots)
    }
}
