//! The sweep across ranks: colouring in rounds, and after each colour the velocities of the shared bodies that it touched.
//!
//! A *participant* of a shared body is a rank that has manifolds on it, or owns it. Two manifolds of one colour never share a body, so
//! exactly one rank changes a body in a colour. All participants know who visits it in which colour: the new velocity goes to
//! the next visitor alone, if that is another rank, and after the last visit of a sweep to all participants. All copies are equal then.

use super::assemble::{Assembled, is_of};
use super::halo::{Halo, deliver};
use super::hub::HubExchange;
use crate::scene::{BodyId, ManifoldKey};
use crate::solve::colour::{Colour, Coloured, Colouring, Link, priority};
use crate::solve::residual::Partial;
use crate::solve::{Colours, Interface, Problem, Twist, Velocities};
use decomposition::{Comm, ExactSum, Exchange, Message};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A body with more manifolds than this takes them to the hub phase: colours beyond would hold little else.
const HUB_MANIFOLDS: u64 = 64;
/// Of such bodies at most so many: the hub phase is sequential.
const MOST_HUBS: usize = 8;

/// Numbers sent for a body: linear and angular velocity.
const TWIST: usize = 6;

/// The shared bodies in whose manifolds this rank takes part, or which it owns.
#[derive(Default)]
struct SharedBodies {
    /// By slot: the place in `bodies`, or [`NOT_SHARED`].
    places: Vec<u32>,
    /// Ascending by slot.
    bodies: Vec<SharedBody>,
}

const NOT_SHARED: u32 = u32::MAX;

impl SharedBodies {
    fn new(bodies: Vec<SharedBody>, slots: usize) -> Self {
        let mut places = vec![NOT_SHARED; slots];
        for (place, body) in bodies.iter().enumerate() {
            places[body.slot as usize] = place as u32;
        }
        Self { places, bodies }
    }

    fn get(&self, slot: u32) -> Option<&SharedBody> {
        let place = *self.places.get(slot as usize)?;
        self.bodies.get(place as usize)
    }

    fn get_mut(&mut self, slot: u32) -> Option<&mut SharedBody> {
        let place = *self.places.get(slot as usize)?;
        self.bodies.get_mut(place as usize)
    }
}

/// A shared body as one rank sees it.
struct SharedBody {
    slot: u32,
    id: BodyId,
    /// Manifolds of other ranks on it.
    foreign: Vec<Foreign>,
    /// The other participants, ascending.
    participants: Vec<u32>,
}

struct Foreign {
    rank: u32,
    key: ManifoldKey,
    colour: Colour,
}

/// What ranks tell each other about a shared body before colouring.
#[derive(Serialize, Deserialize)]
struct Announced {
    body: BodyId,
    keys: Vec<ManifoldKey>,
}

/// What they tell each other while colouring.
#[derive(Serialize, Deserialize)]
struct News {
    body: BodyId,
    key: ManifoldKey,
    colour: Colour,
}

/// What colours depend on, as one rank sees it.
#[derive(Default, PartialEq)]
struct Seen {
    links: Vec<Link>,
    /// Of the movable bodies by slot, own ones first, then the ghosts.
    ids: Vec<BodyId>,
    own: usize,
    others: Vec<super::halo::Ranks>,
    owners: Vec<u32>,
}

/// The colours of a step and who sends what to whom. The next step takes them over if it sees the same on all ranks: piles come to rest.
#[derive(Default)]
pub struct Connection {
    seen: Seen,
    colours: Colours,
    hubs: Vec<BodyId>,
    plan: Plan,
}

#[derive(Default)]
struct Plan {
    /// By colour.
    exchanges: Vec<ColourExchange>,
    shared: SharedBodies,
}

/// The exchanges of one step's sweeps.
pub struct Ranks<'c> {
    comm: &'c dyn Comm,
    plan: &'c mut Plan,
    hub: HubExchange,
    has_hubs: bool,
    /// Shared bodies, if their copies are to be compared.
    replicas: Option<Vec<Replica>>,
}

#[derive(Default)]
struct ColourExchange {
    exchange: Exchange,
    /// Slots in the order of the outgoing messages' entries, and of the incoming ones'.
    send: Vec<Vec<u32>>,
    receive: Vec<Vec<u32>>,
}

/// Colours this rank's manifolds together with all other ranks, and plans the exchanges, if `connection` does not do it already. Bodies with very many manifolds become hubs:
/// their manifolds leave the problem. Collective.
///
/// `ids` are the ids of the movable bodies by slot, own ones first, then the ghosts.
pub fn connect<'c>(
    connection: &'c mut Connection,
    assembled: &mut Assembled,
    ids: &[BodyId],
    own: usize,
    halo: &Halo,
    verify: bool,
    comm: &'c dyn Comm,
) -> (&'c Colours, Ranks<'c>) {
    let seen = Seen::new(&assembled.problem, ids, own, halo);
    let mut changed = [f64::from(seen != connection.seen)];
    comm.max_f64(&mut changed);
    if changed[0] > 0.0 {
        *connection = Connection::new(seen, halo, comm);
    }
    let Connection { colours, hubs, plan, .. } = connection;
    assembled.separate(hubs);
    let replica = |body: &SharedBody| Replica::new(body.slot, body.id, own, halo);
    let replicas = verify.then(|| plan.shared.bodies.iter().map(replica).collect());
    (colours, Ranks { comm, plan, hub: HubExchange::default(), has_hubs: !hubs.is_empty(), replicas })
}

impl Seen {
    fn new(problem: &Problem, ids: &[BodyId], own: usize, halo: &Halo) -> Self {
        let slot = |slot: u32| ((slot as usize) < ids.len()).then_some(slot);
        let links = problem.manifolds.iter().map(|m| Link { key: m.key, slots: m.slots.map(slot) }).collect();
        Self { links, ids: ids.to_vec(), own, others: halo.others.clone(), owners: halo.owners.clone() }
    }
}

impl Connection {
    /// Collective.
    fn new(seen: Seen, halo: &Halo, comm: &dyn Comm) -> Self {
        let Seen { links, ids, own, .. } = &seen;
        let alone = comm.size() == 1;
        let mut shared = if alone { SharedBodies::default() } else { announce(links, ids, *own, halo, comm) };
        let hubs = choose_hubs(links, ids, *own, &shared, comm);
        let coloured: &[Link] = if hubs.is_empty() {
            links
        } else {
            &links.iter().filter(|link| !is_of(&link.key, &hubs)).copied().collect::<Vec<_>>()
        };
        if !hubs.is_empty() {
            shared = leave_out(&hubs, coloured, *own, halo, shared);
        }
        if alone {
            let colours = crate::solve::colour::colour(coloured, ids.len());
            return Self { colours, hubs, plan: Plan::default(), seen };
        }
        let colours = colour_together(coloured, ids, *own, &mut shared, comm);
        let exchanges = plan(comm.rank() as u32, coloured, &colours, &shared);
        Self { colours, hubs, plan: Plan { exchanges, shared }, seen }
    }
}

/// The bodies with the most manifolds, if these are very many: ascending, the same on every rank. Collective.
fn choose_hubs(
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
    if comm.size() > 1 {
        let mut bytes = postcard::to_stdvec(&chosen).expect("plain data can be packed");
        comm.broadcast(0, &mut bytes);
        chosen = postcard::from_bytes(&bytes).expect("what a rank packed, a rank unpacks");
    }
    chosen
}

/// Forgets what was announced about manifolds of hubs: nobody waits for their colours.
fn leave_out(hubs: &[BodyId], links: &[Link], own: usize, halo: &Halo, shared: SharedBodies) -> SharedBodies {
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

/// A shared body as its copies are compared: by the owner, who gets all others.
struct Replica {
    slot: u32,
    id: BodyId,
    /// None on the owner itself.
    owner: Option<u32>,
}

impl Replica {
    fn new(slot: u32, id: BodyId, own: usize, halo: &Halo) -> Self {
        Self { slot, id, owner: (slot as usize).checked_sub(own).map(|ghost| halo.owners[ghost]) }
    }
}

impl Ranks<'_> {
    /// The other ranks that use the velocity of a shared body.
    pub(super) fn participants(&self, slot: u32) -> Vec<u32> {
        self.plan.shared.get(slot).map_or_else(Vec::new, |body| body.participants.clone())
    }

    /// Whether there are hubs besides machines: the same on every rank.
    pub(super) fn has_hubs(&self) -> bool {
        self.has_hubs
    }

    pub(super) fn set_hub(&mut self, hub: HubExchange) {
        self.hub = hub;
    }
}

/// Tells the other ranks present at each shared body which manifolds this rank has on it; learns theirs.
fn announce(links: &[Link], ids: &[BodyId], own: usize, halo: &Halo, comm: &dyn Comm) -> SharedBodies {
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

/// What two ranks have yet to tell each other while colouring: both know both numbers, and stop together.
#[derive(Default)]
struct Partner {
    tells: usize,
    hears: usize,
}

/// Rounds of local colouring and news between partners, until no partner has anything left to tell. Ranks that share nothing do not wait for
/// each other.
fn colour_together(
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
        partners.entry(foreign.rank).or_default().hears += 1;
    }
    for body in links.iter().flat_map(|link| link.slots).flatten().filter_map(|slot| shared.get(slot)) {
        for &rank in &body.participants {
            partners.entry(rank).or_default().tells += 1;
        }
    }
    let mut colouring = Colouring::new(links, ids.len(), &foreign);
    loop {
        let mut outgoing: BTreeMap<u32, Vec<News>> =
            partners.keys().map(|&rank| (rank, Vec::new())).collect();
        colouring.advance(|Coloured { slot, priority, colour }| {
            if let Some(body) = shared.get(slot) {
                let news = || News { body: body.id, key: priority.1, colour };
                for rank in &body.participants {
                    outgoing.get_mut(rank).expect("partners hear all").push(news());
                }
            }
        });
        if partners.is_empty() {
            break;
        }
        let pack = |(rank, news): (u32, Vec<News>)| {
            (rank as usize, postcard::to_stdvec(&news).expect("plain data can be packed"), news.len())
        };
        let mut messages = Vec::with_capacity(outgoing.len());
        for (rank, bytes, told) in outgoing.into_iter().map(pack) {
            partners.get_mut(&(rank as u32)).expect("a partner").tells -= told;
            messages.push((rank, bytes));
        }
        let mut arrived: Vec<(u32, News)> = Vec::new();
        for (rank, bytes) in comm.swap(messages) {
            let news: Vec<News> = postcard::from_bytes(&bytes).expect("what a rank packed, a rank unpacks");
            partners.get_mut(&(rank as u32)).expect("a partner").hears -= news.len();
            let placed = |news: News| (slot_of(news.body).expect("news come for shared bodies"), news);
            arrived.extend(news.into_iter().map(placed));
        }
        partners.retain(|_, partner| partner.tells + partner.hears > 0);
        arrived.sort_unstable_by_key(|(slot, news)| (*slot, priority(&news.key)));
        for (slot, News { key, colour, .. }) in arrived {
            let body = shared.get_mut(slot).expect("news come for shared bodies");
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

/// One velocity on its way after a colour: in the order of messages, and within a message by body, on both sides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    colour: Colour,
    rank: u32,
    body: BodyId,
    slot: u32,
}

/// Who sends what to whom after each colour.
fn plan(me: u32, links: &[Link], colours: &Colours, shared: &SharedBodies) -> Vec<ColourExchange> {
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

/// Finds the slot of a body: own bodies and ghosts are each ascending by id.
pub(super) fn slot_lookup(ids: &[BodyId], own: usize) -> impl Fn(BodyId) -> Option<u32> {
    move |id| {
        let place = ids[..own].binary_search(&id).ok();
        place.or_else(|| ids[own..].binary_search(&id).ok().map(|ghost| own + ghost)).map(|slot| slot as u32)
    }
}

impl Interface for Ranks<'_> {
    fn begin(&mut self, colour: usize, velocities: &Velocities) {
        let Some(ColourExchange { exchange, send, .. }) = self.plan.exchanges.get_mut(colour) else { return };
        if exchange.is_empty() {
            return;
        }
        for ((_, data), slots) in exchange.outgoing_mut().zip(send) {
            for (entry, &slot) in data.chunks_exact_mut(TWIST).zip(slots.iter()) {
                let twist = velocities.get(slot);
                entry[..3].copy_from_slice(&twist.linear);
                entry[3..].copy_from_slice(&twist.angular);
            }
        }
        self.comm.begin(exchange);
    }

    fn has_arrived(&mut self, colour: usize) -> bool {
        let Some(ColourExchange { exchange, .. }) = self.plan.exchanges.get_mut(colour) else { return true };
        exchange.is_empty() || self.comm.has_arrived(exchange)
    }

    fn finish(&mut self, colour: usize, velocities: &mut Velocities) {
        let Some(ColourExchange { exchange, receive, .. }) = self.plan.exchanges.get_mut(colour) else {
            return;
        };
        if exchange.is_empty() {
            return;
        }
        self.comm.finish(exchange);
        for (message, slots) in exchange.incoming().iter().zip(receive) {
            for (entry, &slot) in message.data.chunks_exact(TWIST).zip(slots.iter()) {
                let twist = velocities.get_mut(slot);
                twist.linear.copy_from_slice(&entry[..3]);
                twist.angular.copy_from_slice(&entry[3..]);
            }
        }
    }

    fn gather_hub(&mut self, velocities: &Velocities, hub: &mut [Twist]) {
        self.hub.gather(velocities, hub, self.comm);
    }

    fn scatter_hub(&mut self, hub: &[Twist], velocities: &mut Velocities) {
        self.hub.scatter(hub, velocities, self.comm);
    }

    fn end_sweep(&mut self, velocities: &Velocities) {
        let Some(replicas) = &self.replicas else { return };
        let bits = |slot: u32| {
            let Twist { linear, angular, .. } = *velocities.get(slot);
            [linear, angular].concat().into_iter().map(f64::to_bits).collect::<Vec<u64>>()
        };
        let mut outgoing = BTreeMap::<usize, Vec<(BodyId, Vec<u64>)>>::new();
        for replica in replicas {
            if let Some(owner) = replica.owner {
                outgoing.entry(owner as usize).or_default().push((replica.id, bits(replica.slot)));
            }
        }
        for (rank, copies) in deliver(outgoing, self.comm) {
            for (id, copy) in copies {
                let own = replicas.iter().find(|replica| replica.id == id);
                let own = own.map(|own| bits(own.slot));
                assert!(
                    own.as_ref() == Some(&copy),
                    "body {} differs on rank {rank}: {copy:?}, {own:?}",
                    id.0
                );
            }
        }
    }

    fn sum(&mut self, sums: &mut [ExactSum]) {
        ExactSum::reduce(sums, self.comm);
    }

    fn reduce(&mut self, partial: &mut Partial) {
        partial.sums.reduce(self.comm);
        let mut worst = [partial.worst_velocity];
        self.comm.max_f64(&mut worst);
        partial.worst_velocity = worst[0];
    }
}

#[cfg(test)]
mod tests;
