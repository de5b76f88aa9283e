//! From positions to a contact problem that is ready to be solved on all ranks, in one pipeline:
//!
//! ```text
//! ghosts → view → detection → which contacts take part → colours, hubs, exchanges → assembly
//!                                                        → contacts of hubs to their owner
//! ```
//!
//! It is used with the positions at which a scheme wants contacts for the velocities of a step, and with
//! those at its end where overlap is limited ([`super::correct::project`]).

use super::assemble::{self, Assembled, Parts, TakesPart, is_ahead};
use super::integrate::{Clock, Integrator};
use super::reach;
use super::timers::{Phase, Timers};
use super::view::{FreeMotion, View};
use super::world::{Territory, World};
use crate::contact::detect::{Contacts, Detector};
use crate::exchange::whole::Share;
use crate::exchange::{Connected, Connection, Gathered, Halo, HaloMemory, Ranks, halo, hub};
use crate::geometry::Vec3;
use crate::scene::{Body, ContactLaw};
use crate::solve::{Blocks, Colours, Inertia, Twist};
use decomposition::Comm;

/// What is kept from one call to the next: scratch.
#[derive(Default)]
pub struct Pipeline {
    detector: Detector,
    memory: HaloMemory,
    pub(super) connection: Connection,
}

/// Which contacts are wanted.
pub struct Query<'a> {
    pub integrator: &'a dyn Integrator,
    /// For the free velocities.
    pub gravity: Vec3,
    pub clock: Clock,
    /// How far stones may have moved since their contacts were found, by their radius: see
    /// [`crate::contact::anchor`].
    pub reuse: f64,
    pub takes_part: TakesPart,
}

/// Bodies around this rank's own, where they stand.
pub struct Neighbourhood {
    pub halo: Halo,
    /// Free motion of the own bodies.
    pub free: Vec<(Inertia, Twist)>,
}

/// Contacts that were found, and between which bodies.
pub struct FoundContacts<'a> {
    world: &'a World,
    halo: &'a Halo,
    view: View<'a>,
    contacts: &'a [Contacts],
    connection: &'a mut Connection,
    query: &'a Query<'a>,
}

/// A contact problem of all ranks, with what this one has of it.
pub struct ContactProblem<'a> {
    pub view: View<'a>,
    pub assembled: Assembled,
    /// Of the manifolds of the assembled problem.
    pub colours: &'a Colours,
    /// The contacts of machines and other hubs, on their owner.
    pub hubs: Gathered,
    pub ranks: Ranks<'a>,
    pub halo: &'a Halo,
    pub world: &'a World,
    pub comm: &'a dyn Comm,
}

impl Pipeline {
    /// Sends the own bodies to the ranks that need them, and receives theirs. Collective. `free` is the own
    /// bodies' free motion.
    pub fn neighbourhood(
        &mut self,
        world: &World,
        free: Vec<(Inertia, Twist)>,
        query: &Query,
        territory: &Territory,
    ) -> Neighbourhood {
        let (grains, comm) = (&world.scene.state.grains, territory.comm);
        let alone = comm.size() == 1;
        let boxes = if alone { Vec::new() } else { reach::boxes(grains, &free, &world.physics, query.reuse) };
        let halo = halo::exchange_ghosts(&world.scene, &boxes, &territory.partition, &mut self.memory, comm);
        Neighbourhood { halo, free }
    }

    /// The contacts whose pairs this rank owns.
    pub fn find<'a>(
        &'a mut self,
        world: &'a World,
        near: &'a Neighbourhood,
        query: &'a Query<'a>,
        territory: &Territory,
        timers: &mut Timers,
    ) -> FoundContacts<'a> {
        let comm = territory.comm;
        let &Query { integrator, gravity, clock, reuse, takes_part } = query;
        let motion = FreeMotion { integrator, gravity, clock, reuse };
        let view = timers
            .time(Phase::Predict, comm, || View::new(world, &near.halo, &near.free, &motion, comm.rank()));
        let World { scene, machines, .. } = world;
        let meet = |a: &Body, b: &Body| {
            let law = scene.model.laws.between(a.material, b.material)?;
            let touch = machines.can_touch(scene, a, b);
            touch.then_some(if is_ahead(law, takes_part) { 1.0 } else { 0.0 })
        };
        let alone = comm.size() == 1;
        let owns = |a: &Body, b: &Body, place: &Vec3| alone || territory.owns_pair(a, b, place);
        let contacts =
            timers.time(Phase::Detect, comm, || self.detector.detect(&view.candidates, owns, meet));
        FoundContacts { world, halo: &near.halo, view, contacts, connection: &mut self.connection, query }
    }
}

impl<'a> FoundContacts<'a> {
    /// The deepest overlap on all ranks, m. Collective.
    pub fn deepest(&self, comm: &dyn Comm) -> f64 {
        let points = self.contacts.iter().flat_map(Contacts::iter).flat_map(|contact| contact.points);
        let mut deepest = [points.map(|point| -point.gap).fold(0.0, f64::max)];
        comm.max_f64(&mut deepest);
        deepest[0]
    }

    /// Colours, hubs and exchanges, then the problem itself. Collective.
    pub fn assemble(self, territory: &Territory<'a>, timers: &mut Timers) -> ContactProblem<'a> {
        let Self { world, halo, mut view, contacts, connection, query } = self;
        let World { scene, machines, physics, .. } = world;
        let comm = territory.comm;
        let parts = Parts {
            view: &view,
            scene,
            machines,
            stored: [&scene.state.impulses, &halo.impulses],
            warm_start: physics.warm_start,
            approach: query.integrator.approach(physics.time_step),
            takes_part: query.takes_part,
            stretched: scene.model.laws.iter().any(ContactLaw::is_stretched),
        };
        let own = scene.state.grains.len();
        let Connected { colours, hubs, mut ranks } = timers.time(Phase::Colour, comm, || {
            let links = assemble::links(contacts, &parts);
            connection.connect(links, &view.ids, own, halo, territory.verify, comm)
        });
        let mut assembled = timers.time(Phase::Assemble, comm, || {
            let mut assembled = assemble::assemble(contacts, hubs, &parts);
            assembled.set_idle(&view.inertia, |slot| halo.is_shared(slot));
            assembled
        });
        let problem = &mut assembled.problem;
        (problem.inertia, problem.free_velocity) = view.take_bodies();
        let hubs = timers.time(Phase::Colour, comm, || {
            let parcels = assembled.hub.iter().map(|contact| contact.parcel.clone());
            hub::gather(parcels, machines.operators(), &view.ids, own, &mut ranks, comm)
        });
        ContactProblem { view, assembled, colours, hubs, ranks, halo, world, comm }
    }
}

impl ContactProblem<'_> {
    /// Manifolds in blocks, as sweeps visit them.
    pub fn blocks(&self) -> Blocks {
        Blocks::new(&self.assembled.problem, self.colours, |slot| self.halo.is_shared(slot))
    }

    /// For those who want all of it on one rank.
    pub fn share(&self) -> Share<'_> {
        Share {
            problem: &self.assembled.problem,
            ids: &self.view.ids,
            operators: self.world.machines.operators(),
            hubs: &self.hubs,
        }
    }

    /// Contact points on all ranks. Collective.
    pub fn count(&self) -> u64 {
        let mut count = [self.assembled.infos().count() as i64];
        self.comm.sum_i64(&mut count);
        count[0] as u64
    }

    /// Puts other impulses in place of those from which sweeps start, by point and by point of the hub; gives
    /// back those that were there.
    pub fn replace_starts(
        &mut self,
        impulses: Vec<[f64; 3]>,
        of_hub: Vec<[f64; 3]>,
    ) -> (Vec<[f64; 3]>, Vec<[f64; 3]>) {
        let points = self.assembled.problem.points.iter_mut().map(|point| &mut point.impulse);
        let hub_points = self.hubs.hub.manifolds.iter_mut().flat_map(|manifold| &mut manifold.points);
        let hub_points = hub_points.map(|point| &mut point.impulse);
        let swap = |(place, new): (&mut [f64; 3], [f64; 3])| std::mem::replace(place, new);
        (points.zip(impulses).map(swap).collect(), hub_points.zip(of_hub).map(swap).collect())
    }

    /// The largest of some number of all ranks' points, and zero. Collective.
    pub fn largest(&self, value: impl Fn(&assemble::PointInfo) -> f64) -> f64 {
        let mut largest = [self.assembled.largest(value)];
        self.comm.max_f64(&mut largest);
        largest[0]
    }
}
