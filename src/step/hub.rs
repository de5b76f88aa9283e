//! The contacts of hubs across ranks: found wherever they are, solved by one rank, the owner of the machines.
//!
//! A hub is a machine, or a free body with so many contacts that it would need too many colours. Each rank assembles the contacts that it
//! has found, Jacobians included, and sends them to the owner, who orders them by key. A grain that touches a hub belongs
//! to some rank, and others have contacts on it too: before the hub phase its own rank sends its velocity to the
//! owner, afterwards the owner sends it to all who use it. Messages, once a step:
//!
//! - *rows*: finder → owner; and a *notice* of each grain concerned, finder → the grain's rank
//! - *users*: the grain's rank → owner; and what to *expect*, the grain's rank → users of the grain
//! - *impulses*: owner → finder, after the solve

use super::View;
use super::assemble::{HubContact, PointInfo};
use super::halo::{Halo, deliver};
use super::interface::{Ranks, slot_lookup};
use super::machines::{Machines, OWNER};
use crate::geometry::Vec3;
use crate::multibody::BodyImpulse;
use crate::scene::{BodyId, ManifoldKey, Motion, Scene};
use crate::solve::hub::{End, HubManifold, HubPoint};
use crate::solve::{Hub, Inertia, Twist, Velocities};
use decomposition::{Comm, Exchange, Message};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Numbers sent for a body: linear and angular velocity.
const TWIST: usize = 6;

/// A contact on its way to the owner.
#[derive(Serialize, Deserialize)]
struct Row {
    key: ManifoldKey,
    ends: [RowEnd; 2],
    frame: [Vec3; 3],
    friction: f64,
    points: Vec<HubPoint>,
    places: Vec<Place>,
}

/// What else is known of a point.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Place {
    gap: f64,
    position: Vec3,
    since_impact: f64,
}

#[derive(Serialize, Deserialize)]
enum RowEnd {
    Given,
    Grain { id: BodyId, owner: u32, inertia: Inertia, free: Twist },
    Machine { machine: u32, body: u32 },
}

/// Finder → owner of the machines, and finder → rank of a grain.
#[derive(Default, Serialize, Deserialize)]
struct Found {
    rows: Vec<Row>,
    noticed: Vec<BodyId>,
}

/// Rank of a grain → owner of the machines, and rank of a grain → its users.
#[derive(Default, Serialize, Deserialize)]
struct Told {
    users: Vec<(BodyId, Vec<u32>)>,
    expected: Vec<BodyId>,
}

/// Machine, and index of the part in the scene.
type MachineEnd = (u32, u32);

/// The contacts of hubs on the rank that solves them; on other ranks nothing.
#[derive(Default)]
pub struct Gathered {
    /// Whether there are machines or other hubs at all: the same on every rank.
    active: bool,
    pub hub: Hub,
    /// By manifold: who found it, and the machine bodies at its ends.
    origin: Vec<(usize, [Option<MachineEnd>; 2])>,
    /// By point.
    places: Vec<Place>,
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

impl Lane {
    fn new(
        send: BTreeMap<usize, Vec<u32>>,
        receive: BTreeMap<usize, Vec<u32>>,
        local: Vec<(u32, u32)>,
    ) -> Self {
        let messages = |places: &BTreeMap<usize, Vec<u32>>| {
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

impl Place {
    fn of(info: &PointInfo) -> Self {
        let PointInfo { gap, position, since_impact, .. } = *info;
        Self { gap, position, since_impact }
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

/// What this rank knows of the bodies of a step.
pub(super) struct Here<'a> {
    pub view: &'a View<'a>,
    pub scene: &'a Scene,
    pub halo: &'a Halo,
    pub comm: &'a dyn Comm,
}

/// Brings the contacts of hubs to the rank that solves them and plans the exchanges. Collective.
pub(super) fn gather(
    contacts: &[HubContact],
    machines: &Machines,
    here: &Here,
    ranks: &Ranks,
) -> (Gathered, HubExchange) {
    if machines.is_empty() && !ranks.has_hubs() {
        return Default::default();
    }
    let me = here.comm.rank();
    let found = send_rows(contacts, here);
    let mut rows: Vec<(usize, Row)> = Vec::new();
    let mut noticed = BTreeSet::new();
    for (source, found) in found {
        rows.extend(found.rows.into_iter().map(|row| (source, row)));
        noticed.extend(found.noticed);
    }
    let own = here.scene.state.grains.len();
    let slot_of = slot_lookup(&here.view.ids, own);
    let slot = |id: BodyId| slot_of(id).expect("a rank is told only of grains that it has");
    let (users, expected) = tell_users(&noticed, |id| ranks.participants(slot(id)), here.comm);
    let owners = grain_owners(&rows);
    let (gathered, ids) = collect(rows, machines);
    let place = |id: BodyId| ids.binary_search(&id).expect("a grain that touches a machine") as u32;

    let mut send = BTreeMap::<usize, Vec<u32>>::new();
    let mut receive = BTreeMap::<usize, Vec<u32>>::new();
    let mut local = Vec::new();
    if me != OWNER && !noticed.is_empty() {
        send.insert(OWNER, noticed.iter().map(|&id| slot(id)).collect());
    }
    for (&id, &owner) in &owners {
        match owner as usize {
            owner if owner == me => local.push((slot(id), place(id))),
            owner => receive.entry(owner).or_default().push(place(id)),
        }
    }
    let to_hub = Lane::new(send, receive, local);
    let (mut send, mut receive) = (BTreeMap::<usize, Vec<u32>>::new(), BTreeMap::new());
    let mut local = Vec::new();
    for (&id, users) in &users {
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
    (gathered, HubExchange { to_hub, from_hub: Lane::new(send, receive, local) })
}

/// Collective: what arrived here, by source.
fn send_rows(contacts: &[HubContact], here: &Here) -> Vec<(usize, Found)> {
    let mut outgoing = BTreeMap::<usize, Found>::new();
    for contact in contacts {
        let ends = contact.slots.map(|slot| row_end(slot, here));
        for end in &ends {
            if let RowEnd::Grain { id, owner, .. } = end {
                outgoing.entry(*owner as usize).or_default().noticed.push(*id);
            }
        }
        let row = Row {
            key: contact.key,
            ends,
            frame: contact.frame,
            friction: contact.friction,
            points: contact.points.clone(),
            places: contact.infos.iter().map(Place::of).collect(),
        };
        outgoing.entry(OWNER).or_default().rows.push(row);
    }
    if here.comm.size() == 1 {
        return outgoing.into_iter().collect();
    }
    let wrapped = outgoing.into_iter().map(|(rank, found)| (rank, vec![found])).collect();
    let arrived = deliver(wrapped, here.comm).into_iter();
    arrived.flat_map(|(source, found)| found.into_iter().map(move |found| (source, found))).collect()
}

fn row_end(slot: u32, here: &Here) -> RowEnd {
    let Here { view, halo, scene, comm } = here;
    let place = slot as usize;
    let body = view.candidates[place].body;
    match body.motion {
        Motion::Machine(index) => {
            RowEnd::Machine { machine: scene.model.machine_parts[index as usize].machine, body: index }
        }
        Motion::Free => {
            let ghost = place.checked_sub(scene.state.grains.len());
            let owner = ghost.map_or(comm.rank() as u32, |ghost| halo.owners[ghost]);
            let (inertia, free) = (view.inertia[place], view.free_velocity[place]);
            RowEnd::Grain { id: body.id, owner, inertia, free }
        }
        Motion::Fixed | Motion::Kinematic(_) => RowEnd::Given,
    }
}

/// Collective: the users of each grain, on the owner of the machines; and the grains whose velocities come from there.
fn tell_users(
    noticed: &BTreeSet<BodyId>,
    users: impl Fn(BodyId) -> Vec<u32>,
    comm: &dyn Comm,
) -> (BTreeMap<BodyId, Vec<u32>>, BTreeSet<BodyId>) {
    let me = comm.rank() as u32;
    let mut outgoing = BTreeMap::<usize, Told>::new();
    for &id in noticed {
        let all: Vec<u32> = users(id).into_iter().chain([me]).collect();
        for &user in all.iter().filter(|&&user| user as usize != OWNER) {
            outgoing.entry(user as usize).or_default().expected.push(id);
        }
        outgoing.entry(OWNER).or_default().users.push((id, all));
    }
    let arrived: Vec<Told> = if comm.size() == 1 {
        outgoing.into_values().collect()
    } else {
        let wrapped = outgoing.into_iter().map(|(rank, told)| (rank, vec![told])).collect();
        deliver(wrapped, comm).into_iter().flat_map(|(_, told)| told).collect()
    };
    let (mut users, mut expected) = (BTreeMap::new(), BTreeSet::new());
    for told in arrived {
        users.extend(told.users);
        expected.extend(told.expected);
    }
    (users, expected)
}

fn grain_owners(rows: &[(usize, Row)]) -> BTreeMap<BodyId, u32> {
    let ends = rows.iter().flat_map(|(_, row)| &row.ends);
    ends.filter_map(|end| match end {
        RowEnd::Grain { id, owner, .. } => Some((*id, *owner)),
        _ => None,
    })
    .collect()
}

/// The hub in canonical order, and the ids of its bodies, ascending.
fn collect(mut rows: Vec<(usize, Row)>, machines: &Machines) -> (Gathered, Vec<BodyId>) {
    rows.sort_unstable_by_key(|(_, row)| row.key);
    let mut bodies = BTreeMap::new();
    for end in rows.iter().flat_map(|(_, row)| &row.ends) {
        if let RowEnd::Grain { id, inertia, free, .. } = end {
            bodies.insert(*id, (*inertia, *free));
        }
    }
    let ids: Vec<BodyId> = bodies.keys().copied().collect();
    let mut gathered = Gathered {
        active: true,
        hub: Hub {
            machines: machines.hub_machines(),
            bodies: bodies.into_values().collect(),
            manifolds: Vec::with_capacity(rows.len()),
        },
        ..Default::default()
    };
    for (source, row) in rows {
        let end = |end: &RowEnd| match end {
            RowEnd::Given => End::Given,
            RowEnd::Grain { id, .. } => End::Body(ids.binary_search(id).expect("collected above") as u32),
            RowEnd::Machine { machine, .. } => End::Machine(*machine),
        };
        let part = |end: &RowEnd| match end {
            RowEnd::Machine { machine, body } => Some((*machine, *body)),
            _ => None,
        };
        gathered.origin.push((source, [part(&row.ends[0]), part(&row.ends[1])]));
        gathered.places.extend(row.places);
        let ends = [end(&row.ends[0]), end(&row.ends[1])];
        let (key, frame, friction, points) = (row.key, row.frame, row.friction, row.points);
        gathered.hub.manifolds.push(HubManifold { key, ends, frame, friction, points });
    }
    (gathered, ids)
}

impl Gathered {
    /// The problem of [`super::correct`]: displacement velocities from rest, without friction.
    pub fn starting_at_rest(&self, bias: impl Fn(f64) -> f64) -> Hub {
        let mut hub = self.hub.clone();
        hub.machines.iter_mut().for_each(|machine| machine.free_velocity.fill(0.0));
        hub.bodies.iter_mut().for_each(|(_, free)| *free = Twist::default());
        let points = hub.manifolds.iter_mut().flat_map(|manifold| {
            manifold.friction = 0.0;
            &mut manifold.points
        });
        for (point, place) in points.zip(&self.places) {
            point.given = Vec3::zeros();
            point.impulse = [0.0; 3];
            point.bias = bias(place.gap);
        }
        hub
    }

    /// The problem of [`super::impact`]: bodies at rest, on which the solved impulses act for the time since their impact.
    pub fn pushed(&self, solved: &[[f64; 3]], time_step: f64) -> Hub {
        let mut hub = self.starting_at_rest(|_| 0.0);
        let points = hub.manifolds.iter_mut().flat_map(|manifold| &mut manifold.points);
        for ((point, place), impulse) in points.zip(&self.places).zip(solved) {
            point.impulse = impulse.map(|entry| entry * place.since_impact / time_step);
        }
        hub
    }

    /// What the contacts gave to the bodies of each machine, by machine: on the owner.
    pub fn body_impulses(&self, impulses: &[[f64; 3]], scene: &Scene) -> Vec<Vec<BodyImpulse>> {
        let mut all = vec![Vec::new(); self.hub.machines.len()];
        let mut index = 0;
        for (manifold, (_, parts)) in self.hub.manifolds.iter().zip(&self.origin) {
            for _ in &manifold.points {
                let impulse = &impulses[index];
                let world: Vec3 = (0..3).map(|axis| manifold.frame[axis] * impulse[axis]).sum();
                for (part, sign) in parts.iter().zip([-1.0, 1.0]) {
                    if let Some((machine, part)) = part {
                        let body = &scene.state.machine_bodies[*part as usize];
                        let linear = world * sign;
                        let angular = (self.places[index].position - body.pose.position).cross(&linear);
                        let body = scene.model.machine_parts[*part as usize].body;
                        add_impulse(&mut all[*machine as usize], BodyImpulse { body, linear, angular });
                    }
                }
                index += 1;
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
        for (manifold, (source, _)) in self.hub.manifolds.iter().zip(&self.origin) {
            outgoing.entry(*source).or_default().extend(next.by_ref().take(manifold.points.len()));
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
