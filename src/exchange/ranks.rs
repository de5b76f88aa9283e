//! The sweep across ranks: after each colour the velocities of the shared bodies that it touched, around the
//! hub phase those of the grains that touch hubs, at each check the sums of the residual.

use super::colours::{ColourExchange, Plan, SharedBody};
use super::halo::Halo;
use super::hub::HubExchange;
use super::messages::{TWIST, deliver};
use crate::scene::BodyId;
use crate::solve::residual::{Partial, Sums};
use crate::solve::{Interface, Twist, Velocities};
use decomposition::{Comm, ExactSum, GridSum};
use std::collections::BTreeMap;

/// The exchanges of one step's sweeps.
pub struct Ranks<'c> {
    comm: &'c dyn Comm,
    plan: &'c mut Plan,
    hub: HubExchange,
    has_hubs: bool,
    /// Shared bodies, if their copies are to be compared.
    replicas: Option<Vec<Replica>>,
    /// The largest number of a signal by which a rank was asked to stop, as of the last reduction: the same
    /// on every rank.
    stop: usize,
    /// Whether this solve may be broken off.
    can_stop: bool,
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

impl<'c> Ranks<'c> {
    /// `verify`: whether copies of shared bodies are compared after each sweep. `own` of the slots are this
    /// rank's bodies.
    pub(super) fn new(
        plan: &'c mut Plan,
        has_hubs: bool,
        verify: bool,
        own: usize,
        halo: &Halo,
        comm: &'c dyn Comm,
    ) -> Self {
        let replica = |body: &SharedBody| Replica::new(body.slot, body.id, own, halo);
        let replicas = verify.then(|| plan.shared.bodies.iter().map(replica).collect());
        let hub = HubExchange::default();
        Self { comm, plan, hub, has_hubs, replicas, stop: 0, can_stop: false }
    }

    /// From now on a signal breaks the solve off; or no longer.
    pub fn let_stop(&mut self, can_stop: bool) {
        self.can_stop = can_stop;
    }

    /// The signal that has broken the solve off.
    pub fn stopped_by(&self) -> Option<usize> {
        (self.can_stop && self.stop > 0).then_some(self.stop)
    }

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

/// Finds the slot of a body: own bodies and ghosts are each ascending by id.
pub fn slot_lookup(ids: &[BodyId], own: usize) -> impl Fn(BodyId) -> Option<u32> {
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
        match &mut partial.sums {
            Sums::Exact(sums) => ExactSum::reduce(&mut sums[..], self.comm),
            Sums::Rounded(sums) => GridSum::reduce(sums, self.comm),
        }
        let mut worst = [partial.worst_velocity, partial.worst_approach, self.comm.asked_to_stop() as f64];
        self.comm.max_f64(&mut worst);
        (partial.worst_velocity, partial.worst_approach) = (worst[0], worst[1]);
        self.stop = worst[2] as usize;
    }

    fn is_stopped(&self) -> bool {
        self.stopped_by().is_some()
    }
}
