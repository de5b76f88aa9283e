//! The sweep across ranks: colouring in rounds, and after each colour the velocities of the shared bodies that it touched.
//!
//! A *participant* of a shared body is a rank that has manifolds on it, or owns it. Two manifolds of one colour never share a body, so
//! exactly one rank changes a body in a colour; it sends the new velocity to all other participants, and all copies are equal again.

use super::assemble::Assembled;
use super::halo::{Halo, deliver};
use super::hub::HubExchange;
use crate::scene::{BodyId, ManifoldKey};
use crate::solve::colour::{Colour, Coloured, Colouring, Link, priority};
use crate::solve::residual::Partial;
use crate::solve::{Colours, Interface, Problem, Twist};
use decomposition::{Comm, ExactSum, Exchange, Message};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A body with more manifolds than this takes them to the hub phase: colours beyond would hold little else.
const HUB_MANIFOLDS: u64 = 64;
/// Of such bodies at most so many: the hub phase is sequential.
const MOST_HUBS: usize = 8;

/// Numbers sent for a body: linear and angular velocity.
const TWIST: usize = 6;

/// A shared body as one rank sees it.
struct SharedBody {
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

/// The exchanges of one step's sweeps.
pub struct Ranks<'c> {
    comm: &'c dyn Comm,
    /// By colour.
    exchanges: Vec<ColourExchange>,
    /// By slot of a shared body: the other participants.
    participants: BTreeMap<u32, Vec<u32>>,
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

/// Colours this rank's manifolds together with all other ranks, and plans the exchanges. Bodies with very many manifolds become hubs:
/// their manifolds leave the problem. Collective.
///
/// `ids` are the ids of the movable bodies by slot, own ones first, then the ghosts.
pub fn connect<'c>(
    assembled: &mut Assembled,
    ids: &[BodyId],
    own: usize,
    halo: &Halo,
    verify: bool,
    comm: &'c dyn Comm,
) -> (Colours, Ranks<'c>) {
    let movable = ids.len();
    let mut shared = BTreeMap::new();
    let mut links = links(&assembled.problem, movable);
    if comm.size() > 1 {
        shared = announce(&links, ids, own, halo, comm);
    }
    let hubs = choose_hubs(&links, ids, own, &shared, comm);
    if !hubs.is_empty() {
        assembled.separate(&hubs);
        links = self::links(&assembled.problem, movable);
        leave_out(&hubs, &links, own, halo, &mut shared);
    }
    let mut ranks = Ranks {
        comm,
        exchanges: Vec::new(),
        participants: BTreeMap::new(),
        hub: HubExchange::default(),
        has_hubs: !hubs.is_empty(),
        replicas: verify.then(Vec::new),
    };
    if comm.size() == 1 {
        return (crate::solve::colour::colour(&links, movable), ranks);
    }
    let colours = colour_together(&links, ids, &mut shared, comm);
    ranks.exchanges = plan(&links, &colours, &shared);
    if verify {
        let replicas = shared.iter().map(|(&slot, body)| Replica::new(slot, body.id, own, halo));
        ranks.replicas = Some(replicas.collect());
    }
    ranks.participants = shared.into_iter().map(|(slot, body)| (slot, body.participants)).collect();
    (colours, ranks)
}

fn links(problem: &Problem, movable: usize) -> Vec<Link> {
    let slot = |slot: u32| ((slot as usize) < movable).then_some(slot);
    problem.manifolds.iter().map(|m| Link { key: m.key, slots: m.slots.map(slot) }).collect()
}

/// The bodies with the most manifolds, if these are very many: ascending, the same on every rank. Collective.
fn choose_hubs(
    links: &[Link],
    ids: &[BodyId],
    own: usize,
    shared: &BTreeMap<u32, SharedBody>,
    comm: &dyn Comm,
) -> Vec<BodyId> {
    let mut counts = vec![0u64; ids.len()];
    for slot in links.iter().flat_map(|link| link.slots).flatten() {
        counts[slot as usize] += 1;
    }
    for (&slot, body) in shared {
        counts[slot as usize] += body.foreign.len() as u64;
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
fn leave_out(
    hubs: &[BodyId],
    links: &[Link],
    own: usize,
    halo: &Halo,
    shared: &mut BTreeMap<u32, SharedBody>,
) {
    let used: BTreeSet<u32> = links.iter().flat_map(|link| link.slots).flatten().collect();
    shared.retain(|&slot, body| {
        body.foreign.retain(|foreign| !foreign.key.bodies.iter().any(|id| hubs.contains(id)));
        let owner = (slot as usize).checked_sub(own).map(|ghost| halo.owners[ghost]);
        body.participants =
            owner.into_iter().chain(body.foreign.iter().map(|foreign| foreign.rank)).collect();
        body.participants.sort_unstable();
        body.participants.dedup();
        owner.is_none() || used.contains(&slot)
    });
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
        self.participants.get(&slot).cloned().unwrap_or_default()
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
fn announce(
    links: &[Link],
    ids: &[BodyId],
    own: usize,
    halo: &Halo,
    comm: &dyn Comm,
) -> BTreeMap<u32, SharedBody> {
    let mut keys = BTreeMap::<u32, Vec<ManifoldKey>>::new();
    for link in links {
        for slot in link.slots.into_iter().flatten().filter(|&slot| !halo.others[slot as usize].is_empty()) {
            keys.entry(slot).or_default().push(link.key);
        }
    }
    let mut outgoing = BTreeMap::<usize, Vec<Announced>>::new();
    for (&slot, keys) in &keys {
        for &rank in &halo.others[slot as usize] {
            let announced = Announced { body: ids[slot as usize], keys: keys.clone() };
            outgoing.entry(rank as usize).or_default().push(announced);
        }
    }
    let mut shared = BTreeMap::<u32, SharedBody>::new();
    for slot in (0..ids.len() as u32).filter(|&slot| !halo.others[slot as usize].is_empty()) {
        let owner = (slot as usize).checked_sub(own).map(|ghost| halo.owners[ghost]);
        let takes_part = owner.is_none() || keys.contains_key(&slot);
        if takes_part {
            let participants = owner.into_iter().collect();
            shared.insert(slot, SharedBody { id: ids[slot as usize], foreign: Vec::new(), participants });
        }
    }
    let slot_of = slot_lookup(ids, own);
    for (rank, announced) in deliver(outgoing, comm) {
        for Announced { body, keys } in announced {
            if let Some(shared) = slot_of(body).and_then(|slot| shared.get_mut(&slot)) {
                let rank = rank as u32;
                shared.foreign.extend(keys.into_iter().map(|key| Foreign { rank, key, colour: 0 }));
                shared.participants.push(rank);
            }
        }
    }
    for body in shared.values_mut() {
        body.participants.sort_unstable();
        body.participants.dedup();
        body.foreign.sort_unstable_by_key(|foreign| priority(&foreign.key));
    }
    shared
}

/// Rounds of local colouring and news, until no rank has anything left.
fn colour_together(
    links: &[Link],
    ids: &[BodyId],
    shared: &mut BTreeMap<u32, SharedBody>,
    comm: &dyn Comm,
) -> Colours {
    let slot_of: BTreeMap<BodyId, u32> = shared.iter().map(|(&slot, body)| (body.id, slot)).collect();
    let foreign: Vec<(u32, ManifoldKey)> =
        shared.iter().flat_map(|(&slot, body)| body.foreign.iter().map(move |f| (slot, f.key))).collect();
    let mut colouring = Colouring::new(links, ids.len(), &foreign);
    loop {
        let mut outgoing = BTreeMap::<usize, Vec<News>>::new();
        colouring.advance(|Coloured { slot, priority, colour }| {
            if let Some(body) = shared.get(&slot) {
                for &rank in &body.participants {
                    let news = News { body: body.id, key: priority.1, colour };
                    outgoing.entry(rank as usize).or_default().push(news);
                }
            }
        });
        let mut arrived: Vec<(u32, News)> = deliver(outgoing, comm)
            .into_iter()
            .flat_map(|(_, news)| news)
            .filter_map(|news| slot_of.get(&news.body).map(|&slot| (slot, news)))
            .collect();
        arrived.sort_unstable_by_key(|(slot, news)| (*slot, priority(&news.key)));
        for (slot, News { key, colour, .. }) in arrived {
            let body = shared.get_mut(&slot).expect("news come for shared bodies");
            let place = body.foreign.binary_search_by_key(&priority(&key), |foreign| priority(&foreign.key));
            body.foreign[place.expect("announced before")].colour = colour;
            colouring.receive(&Coloured { slot, priority: priority(&key), colour });
        }
        let mut remaining = [colouring.remaining() as i64];
        comm.sum_i64(&mut remaining);
        if remaining[0] == 0 {
            break;
        }
    }
    let mut colours = colouring.finish();
    let mut most = [colours.count as f64];
    comm.max_f64(&mut most);
    colours.count = most[0] as usize;
    colours
}

/// Who sends what to whom after each colour: messages by ascending rank, entries by ascending body id, on both sides.
fn plan(links: &[Link], colours: &Colours, shared: &BTreeMap<u32, SharedBody>) -> Vec<ColourExchange> {
    type Entries = BTreeMap<u32, Vec<(BodyId, u32)>>;
    let mut send: Vec<Entries> = vec![Entries::new(); colours.count];
    let mut receive: Vec<Entries> = vec![Entries::new(); colours.count];
    for (link, &colour) in links.iter().zip(&colours.of) {
        for slot in link.slots.into_iter().flatten() {
            if let Some(body) = shared.get(&slot) {
                for &rank in &body.participants {
                    send[colour as usize].entry(rank).or_default().push((body.id, slot));
                }
            }
        }
    }
    for (&slot, body) in shared {
        for foreign in &body.foreign {
            receive[foreign.colour as usize].entry(foreign.rank).or_default().push((body.id, slot));
        }
    }
    let ordered = |entries: Entries| {
        let mut messages = Vec::new();
        let mut slots = Vec::new();
        for (rank, mut bodies) in entries {
            bodies.sort_unstable();
            messages.push(Message { rank: rank as usize, data: vec![0.0; bodies.len() * TWIST] });
            slots.push(bodies.into_iter().map(|(_, slot)| slot).collect());
        }
        (messages, slots)
    };
    send.into_iter()
        .zip(receive)
        .map(|(send, receive)| {
            let (outgoing, send) = ordered(send);
            let (incoming, receive) = ordered(receive);
            ColourExchange { exchange: Exchange::new(outgoing, incoming), send, receive }
        })
        .collect()
}

/// Finds the slot of a body: own bodies and ghosts are each ascending by id.
pub(super) fn slot_lookup(ids: &[BodyId], own: usize) -> impl Fn(BodyId) -> Option<u32> {
    move |id| {
        let place = ids[..own].binary_search(&id).ok();
        place.or_else(|| ids[own..].binary_search(&id).ok().map(|ghost| own + ghost)).map(|slot| slot as u32)
    }
}

impl Interface for Ranks<'_> {
    fn begin(&mut self, colour: usize, velocities: &[Twist]) {
        let Some(ColourExchange { exchange, send, .. }) = self.exchanges.get_mut(colour) else { return };
        for ((_, data), slots) in exchange.outgoing_mut().zip(send) {
            for (entry, &slot) in data.chunks_exact_mut(TWIST).zip(slots.iter()) {
                entry[..3].copy_from_slice(&velocities[slot as usize].linear);
                entry[3..].copy_from_slice(&velocities[slot as usize].angular);
            }
        }
        self.comm.begin(exchange);
    }

    fn finish(&mut self, colour: usize, velocities: &mut [Twist]) {
        let Some(ColourExchange { exchange, receive, .. }) = self.exchanges.get_mut(colour) else { return };
        self.comm.finish(exchange);
        for (message, slots) in exchange.incoming().iter().zip(receive) {
            for (entry, &slot) in message.data.chunks_exact(TWIST).zip(slots.iter()) {
                velocities[slot as usize].linear.copy_from_slice(&entry[..3]);
                velocities[slot as usize].angular.copy_from_slice(&entry[3..]);
            }
        }
    }

    fn gather_hub(&mut self, velocities: &[Twist], hub: &mut [Twist]) {
        self.hub.gather(velocities, hub, self.comm);
    }

    fn scatter_hub(&mut self, hub: &[Twist], velocities: &mut [Twist]) {
        self.hub.scatter(hub, velocities, self.comm);
    }

    fn end_sweep(&mut self, velocities: &[Twist]) {
        let Some(replicas) = &self.replicas else { return };
        let bits = |slot: u32| {
            let Twist { linear, angular, .. } = velocities[slot as usize];
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
        ExactSum::reduce(&mut partial.sums, self.comm);
        let mut worst = [partial.worst_velocity];
        self.comm.max_f64(&mut worst);
        partial.worst_velocity = worst[0];
    }
}
