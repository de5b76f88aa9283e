//! The contacts of hubs across ranks: found wherever they are, solved by one rank, the owner of the machines.
//!
//! A hub is a machine, or a free body with so many contacts that it would need too many colours. Each rank
//! sends the contacts of hubs that it has found to the owner, who orders them by key and adds the Jacobians
//! of machines. A grain that touches a hub belongs to some rank, and others have contacts on it too: before
//! the hub phase its own rank sends its velocity to the owner, afterwards the owner sends it to all ranks
//! that use it. Messages, once a step:
//!
//! | message | from → to | content |
//! | --- | --- | --- |
//! | parcels | finder → owner of the machines | the contacts |
//! | requests | finder → rank of a grain | ids of grains in these contacts |
//! | users | rank of a grain → owner | which ranks use its velocity |
//! | announcements | rank of a grain → its users | that its velocity will come from the owner |
//! | impulses | owner → finder | after the solve |
//!
//! Before: every rank has assembled its contacts of hubs. After: the owner has the hub problem, and every
//! rank knows which velocities it sends before the hub phase of a sweep and receives after it.

use super::messages::{TWIST, deliver};
use super::parcel::{Parcel, collect};
use super::ranks::{Ranks, slot_lookup};
use crate::geometry::Vec3;
use crate::multibody::{BodyImpulse, BodyIndex, ReducedOperators};
use crate::scene::BodyId;
use crate::solve::{End, Hub, MachineSlot, Stretch, Twist, Velocities};
use decomposition::{Comm, Exchange, Message};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The rank on which all machines live, and hubs are solved: machines may touch each other.
pub const OWNER: usize = 0;

/// Finder → owner of the machines, and finder → rank of a grain.
#[derive(Default, Serialize, Deserialize)]
struct FinderMessage {
    parcels: Vec<Parcel>,
    requested: Vec<BodyId>,
}

/// Rank of a grain → owner of the machines, and rank of a grain → its users.
#[derive(Default, Serialize, Deserialize)]
struct Usage {
    users: Vec<(BodyId, Vec<u32>)>,
    expected: Vec<BodyId>,
}

/// The contacts of hubs on the rank that solves them; on other ranks nothing.
#[derive(Default)]
pub struct Gathered {
    /// Whether there are machines or other hubs at all: the same on every rank.
    active: bool,
    pub hub: Hub,
    /// By manifold: the rank that found it, and the contact as it came.
    origin: Vec<(usize, Parcel)>,
}

/// Velocities on their way to the hub and back.
#[derive(Default)]
pub struct HubExchange {
    to_hub: Lane,
    from_hub: Lane,
}

/// One direction: numbers by place at the sender, by place at the receiver, and those that stay on the rank.
#[derive(Default)]
struct Lane {
    exchange: Exchange,
    send: Vec<Vec<u32>>,
    receive: Vec<Vec<u32>>,
    local: Vec<(u32, u32)>,
}

/// Places by rank.
type Places = BTreeMap<usize, Vec<u32>>;

impl Lane {
    fn new(send: Places, receive: Places, local: Vec<(u32, u32)>) -> Self {
        let messages = |places: &Places| {
            let message = |(&rank, places): (&usize, &Vec<u32>)| Message {
                rank,
                data: vec![0.0; places.len() * TWIST],
            };
            places.iter().map(message).collect()
        };
        let exchange = Exchange::new(messages(&send), messages(&receive));
        Self { exchange, send: send.into_values().collect(), receive: receive.into_values().collect(), local }
    }

    /// `from` and `to` find a body by its place.
    fn run<'a>(&mut self, from: impl Fn(u32) -> &'a Twist, mut to: impl FnMut(u32, Twist), comm: &dyn Comm) {
        for &(source, target) in &self.local {
            to(target, *from(source));
        }
        if self.exchange.is_empty() {
            return;
        }
        for ((_, data), places) in self.exchange.outgoing_mut().zip(&self.send) {
            for (entry, &place) in data.chunks_exact_mut(TWIST).zip(places) {
                entry[..3].copy_from_slice(&from(place).linear);
                entry[3..].copy_from_slice(&from(place).angular);
            }
        }
        comm.begin(&mut self.exchange);
        comm.finish(&mut self.exchange);
        for (message, places) in self.exchange.incoming().iter().zip(&self.receive) {
            for (entry, &place) in message.data.chunks_exact(TWIST).zip(places) {
                let three = |first: usize| Vec3::from_column_slice(&entry[first..first + 3]);
                to(place, Twist::new(three(0), three(3)));
            }
        }
    }
}

impl HubExchange {
    pub(super) fn gather(&mut self, velocities: &Velocities, hub: &mut [Twist], comm: &dyn Comm) {
        self.to_hub.run(|slot| velocities.get(slot), |place, twist| hub[place as usize] = twist, comm);
    }

    pub(super) fn scatter(&mut self, hub: &[Twist], velocities: &mut Velocities, comm: &dyn Comm) {
        self.from_hub.run(
            |place| &hub[place as usize],
            |slot, twist| *velocities.get_mut(slot) = twist,
            comm,
        );
    }
}

/// Brings the contacts of hubs to the rank that solves them and plans the exchanges. Collective.
///
/// `ids` are those of the movable bodies by slot, `own` of them this rank's; `operators` those of all
/// machines.
pub fn gather(
    parcels: impl Iterator<Item = Parcel>,
    operators: &[ReducedOperators],
    ids: &[BodyId],
    own: usize,
    ranks: &mut Ranks,
    comm: &dyn Comm,
) -> Gathered {
    if operators.is_empty() && !ranks.has_hubs() {
        return Gathered::default();
    }
    let mut origin: Vec<(usize, Parcel)> = Vec::new();
    let mut requested = BTreeSet::new();
    for (source, found) in send_parcels(parcels, comm) {
        origin.extend(found.parcels.into_iter().map(|parcel| (source, parcel)));
        requested.extend(found.requested);
    }
    origin.sort_unstable_by_key(|(_, parcel)| parcel.key);
    let slot_of = slot_lookup(ids, own);
    let slot = |id: BodyId| slot_of(id).expect("requests come for grains that are here");
    let (users, expected) = announce_users(&requested, |id| ranks.participants(slot(id)), comm);
    let (hub, hub_ids) = collect(origin.iter().map(|(_, parcel)| parcel), operators);
    let place = |id: BodyId| hub_ids.binary_search(&id).expect("a grain that touches a hub") as u32;
    let to_hub = plan_to_hub(&origin, &requested, slot, place, comm.rank());
    let from_hub = plan_from_hub(&users, &expected, slot, place, comm.rank());
    ranks.set_hub(HubExchange { to_hub, from_hub });
    Gathered { active: true, hub, origin }
}

/// From the ranks of grains to the owner, before the hub phase.
fn plan_to_hub(
    origin: &[(usize, Parcel)],
    requested: &BTreeSet<BodyId>,
    slot: impl Fn(BodyId) -> u32,
    place: impl Fn(BodyId) -> u32,
    me: usize,
) -> Lane {
    let (mut send, mut receive, mut local) = (Places::new(), Places::new(), Vec::new());
    if me != OWNER && !requested.is_empty() {
        send.insert(OWNER, requested.iter().map(|&id| slot(id)).collect());
    }
    let grains = origin.iter().flat_map(|(_, parcel)| &parcel.ends).filter_map(End::body);
    let owners: BTreeMap<BodyId, u32> = grains.map(|grain| (grain.id, grain.owner)).collect();
    for (&id, &owner) in &owners {
        match owner as usize {
            owner if owner == me => local.push((slot(id), place(id))),
            owner => receive.entry(owner).or_default().push(place(id)),
        }
    }
    Lane::new(send, receive, local)
}

/// From the owner to the users of grains, after it.
fn plan_from_hub(
    users: &BTreeMap<BodyId, Vec<u32>>,
    expected: &BTreeSet<BodyId>,
    slot: impl Fn(BodyId) -> u32,
    place: impl Fn(BodyId) -> u32,
    me: usize,
) -> Lane {
    let (mut send, mut receive, mut local) = (Places::new(), Places::new(), Vec::new());
    for (&id, users) in users {
        for &user in users {
            match user as usize {
                user if user == me => local.push((place(id), slot(id))),
                user => send.entry(user).or_default().push(place(id)),
            }
        }
    }
    if me != OWNER && !expected.is_empty() {
        receive.insert(OWNER, expected.iter().map(|&id| slot(id)).collect());
    }
    Lane::new(send, receive, local)
}

/// Collective: what arrived here, by source.
fn send_parcels(parcels: impl Iterator<Item = Parcel>, comm: &dyn Comm) -> Vec<(usize, FinderMessage)> {
    let mut outgoing = BTreeMap::<usize, FinderMessage>::new();
    for parcel in parcels {
        for grain in parcel.ends.iter().filter_map(End::body) {
            outgoing.entry(grain.owner as usize).or_default().requested.push(grain.id);
        }
        outgoing.entry(OWNER).or_default().parcels.push(parcel);
    }
    if comm.size() == 1 {
        return outgoing.into_iter().collect();
    }
    let wrapped = outgoing.into_iter().map(|(rank, found)| (rank, vec![found])).collect();
    let arrived = deliver(wrapped, comm).into_iter();
    arrived.flat_map(|(source, found)| found.into_iter().map(move |found| (source, found))).collect()
}

/// Collective: the users of each grain, on the owner of the machines; and the grains whose velocities come
/// from there.
fn announce_users(
    requested: &BTreeSet<BodyId>,
    users: impl Fn(BodyId) -> Vec<u32>,
    comm: &dyn Comm,
) -> (BTreeMap<BodyId, Vec<u32>>, BTreeSet<BodyId>) {
    let me = comm.rank() as u32;
    let mut outgoing = BTreeMap::<usize, Usage>::new();
    for &id in requested {
        let all: Vec<u32> = users(id).into_iter().chain([me]).collect();
        for &user in all.iter().filter(|&&user| user as usize != OWNER) {
            outgoing.entry(user as usize).or_default().expected.push(id);
        }
        outgoing.entry(OWNER).or_default().users.push((id, all));
    }
    let arrived: Vec<Usage> = if comm.size() == 1 {
        outgoing.into_values().collect()
    } else {
        let wrapped = outgoing.into_iter().map(|(rank, usage)| (rank, vec![usage])).collect();
        deliver(wrapped, comm).into_iter().flat_map(|(_, usage)| usage).collect()
    };
    let (mut users, mut expected) = (BTreeMap::new(), BTreeSet::new());
    for usage in arrived {
        users.extend(usage.users);
        expected.extend(usage.expected);
    }
    (users, expected)
}

impl Gathered {
    /// The contacts as they came, by manifold of the hub: on the owner.
    pub fn parcels(&self) -> impl Iterator<Item = &Parcel> {
        self.origin.iter().map(|(_, parcel)| parcel)
    }

    /// The same contacts without friction and compliance, between bodies at rest: for displacements.
    pub fn at_rest(&self, bias: impl Fn(f64) -> f64) -> Hub {
        let mut hub = self.hub.clone();
        hub.machines.iter_mut().for_each(|machine| machine.free_velocity.fill(0.0));
        hub.bodies.iter_mut().for_each(|(_, free)| *free = Twist::default());
        for (manifold, (_, parcel)) in hub.manifolds.iter_mut().zip(&self.origin) {
            (manifold.friction, manifold.compliance) = (0.0, 0.0);
            for (point, sent) in manifold.points.iter_mut().zip(&parcel.points) {
                point.given = Vec3::zeros();
                point.impulse = [0.0; 3];
                point.bias = bias(sent.gap);
                point.stretch = Stretch::default();
            }
        }
        hub
    }

    /// The same, with the solved impulses acting for the time since their impact, by the time step.
    pub fn pushed(&self, solved: &[[f64; 3]], time_step: f64) -> Hub {
        let mut hub = self.at_rest(|_| 0.0);
        let points = hub.manifolds.iter_mut().flat_map(|manifold| &mut manifold.points);
        let sent = self.origin.iter().flat_map(|(_, parcel)| &parcel.points);
        for ((point, sent), impulse) in points.zip(sent).zip(solved) {
            point.impulse = impulse.map(|entry| entry * sent.since_impact / time_step);
        }
        hub
    }

    /// What the contacts gave to the bodies of each machine, by machine: on the owner.
    pub fn body_impulses(
        &self,
        impulses: &[[f64; 3]],
        operators: &[ReducedOperators],
    ) -> Vec<Vec<BodyImpulse>> {
        let mut all = vec![Vec::new(); self.hub.machines.len()];
        let mut next = impulses.iter();
        for (_, parcel) in &self.origin {
            for (point, impulse) in parcel.points.iter().zip(next.by_ref()) {
                let world: Vec3 = (0..3).map(|axis| parcel.frame[axis] * impulse[axis]).sum();
                for (end, sign) in parcel.ends.iter().zip([-1.0, 1.0]) {
                    let Some(MachineSlot { machine, slot }) = end.machine() else { continue };
                    let (machine, slot) = (machine as usize, slot as usize);
                    let linear = world * sign;
                    let arm = point.position - operators[machine].pose(slot).position;
                    let body = BodyIndex(operators[machine].bodies[slot].body);
                    add_impulse(&mut all[machine], BodyImpulse { body, linear, angular: arm.cross(&linear) });
                }
            }
        }
        all
    }

    /// Collective: the impulses at this rank's own contacts of hubs, in the order of its contacts.
    pub fn impulses_back(&self, solved: &[[f64; 3]], comm: &dyn Comm) -> Vec<[f64; 3]> {
        if comm.size() == 1 || !self.active {
            return solved.to_vec();
        }
        let mut outgoing = BTreeMap::<usize, Vec<[f64; 3]>>::new();
        let mut next = solved.iter();
        for (source, parcel) in &self.origin {
            outgoing.entry(*source).or_default().extend(next.by_ref().take(parcel.points.len()));
        }
        deliver(outgoing, comm).into_iter().flat_map(|(_, impulses)| impulses).collect()
    }
}

/// One entry for each body: hundreds of points are common, bodies are few.
fn add_impulse(list: &mut Vec<BodyImpulse>, impulse: BodyImpulse) {
    match list.iter_mut().find(|known| known.body == impulse.body) {
        Some(known) => {
            known.linear += impulse.linear;
            known.angular += impulse.angular;
        }
        None => list.push(impulse),
    }
}
