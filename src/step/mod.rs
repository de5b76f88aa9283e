//! One time step: the paper's Algorithm 1. The only physics that talks to other ranks.

pub mod assemble;
pub(crate) mod balance;
mod correct;
pub mod halo;
mod hub;
mod impact;
pub mod interface;
pub mod machines;
pub mod motion;
pub mod observe;
mod project;
pub mod region;
#[cfg(test)]
mod tests;
pub mod timers;
pub mod whole;

pub use machines::{Loads, Machines};
pub use observe::Observation;
pub use region::RegionMeasure;
pub use timers::{Cost, Phase, Timers};
pub use whole::Dump;

use crate::contact::anchor;
use crate::contact::detect::{Candidate, Contacts, Detector};
use crate::geometry::{Aabb, Vec3};
use crate::scene::{Activation, Body, BodyId, ManifoldKey, Motion, Physics, Scene};
use crate::solve::{self, Blocks, Inertia, Manifold, Residual, Solution, Twist};
use assemble::{Assembled, HubContact, Parts, PointInfo, TakesPart};
use decomposition::{Comm, ExactSum, Partition};
use halo::{Halo, HaloMemory};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How space is shared among ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecompositionOptions {
    /// Edge of the cells, m; if none, a few of the largest grains.
    pub cell_size: Option<f64>,
    /// Largest over mean work of a rank beyond which space is cut anew, ≥ 1.
    pub imbalance_threshold: f64,
}

impl Default for DecompositionOptions {
    fn default() -> Self {
        Self { cell_size: None, imbalance_threshold: 1.2 }
    }
}

/// What happened in a step: the same on every rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepReport {
    /// Steps done, this one included.
    pub step: u64,
    /// At its end, s.
    pub time: f64,
    pub manifolds: u64,
    pub contact_points: u64,
    pub colours: usize,
    pub sweeps: usize,
    pub residual: Residual,
    pub converged: bool,
    /// Deepest overlap found at `q_m`, m, ≥ 0; with a limit of penetration that at the end of the step.
    pub worst_penetration: f64,
    /// Bodies that changed ranks.
    pub migrated: u64,
}

/// A contact point of the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContactView {
    pub bodies: [BodyId; 2],
    /// Centres of mass of both at `q_m`.
    pub centres: [Vec3; 2],
    pub point: Vec3,
    pub normal: Vec3,
    /// World, on the second body, N s.
    pub impulse: Vec3,
    pub gap: f64,
}

/// Why a step could not be made: the same on every rank.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum StepError {
    #[error("machine {machine:?}: {problem}")]
    Machine {
        machine: String,
        /// Of the loop that it is about.
        cut: Option<String>,
        problem: String,
    },
}

/// A scene with everything needed to step it.
pub struct Stepper<'c> {
    scene: Scene,
    machines: Machines,
    physics: Physics,
    options: solve::Options,
    comm: &'c dyn Comm,
    decomposition: DecompositionOptions,
    partition: Partition,
    detector: Detector,
    memory: HaloMemory,
    /// Whether copies of shared bodies are compared after each sweep.
    verify: bool,
    /// Boxes in which it is measured how densely grains lie.
    regions: Vec<Aabb>,
    projector: project::Projector,
    /// Of the last step.
    connection: interface::Connection,
    timers: Timers,
    contacts: Vec<ContactView>,
    /// Three sums for each static body: what contacts gave it in the last step.
    wall_impulses: Vec<ExactSum>,
    /// Whether the next step is to keep its contact problem.
    dump_due: bool,
    dump: Option<Dump>,
}

impl<'c> Stepper<'c> {
    /// A scene without machines. Collective, see [`with_machines`](Self::with_machines).
    pub fn new(
        scene: Scene,
        physics: Physics,
        options: solve::Options,
        decomposition: DecompositionOptions,
        comm: &'c dyn Comm,
    ) -> Self {
        Self::with_machines(scene, Machines::default(), physics, options, decomposition, comm)
    }

    /// Collective. `scene.state.grains` may hold any share of the free bodies on each rank; they are sent to their owners.
    pub fn with_machines(
        scene: Scene,
        machines: Machines,
        physics: Physics,
        options: solve::Options,
        decomposition: DecompositionOptions,
        comm: &'c dyn Comm,
    ) -> Self {
        let partition = balance::first_partition(&scene, &decomposition, comm);
        let mut stepper = Self {
            wall_impulses: vec![ExactSum::default(); 3 * scene.state.statics.len()],
            scene,
            machines,
            physics,
            options,
            comm,
            decomposition,
            partition,
            detector: Detector::default(),
            memory: HaloMemory::default(),
            verify: false,
            regions: Vec::new(),
            projector: project::Projector::default(),
            connection: interface::Connection::default(),
            timers: Timers::default(),
            contacts: Vec::new(),
            dump_due: false,
            dump: None,
        };
        stepper.machines.place_bodies(&mut stepper.scene);
        stepper.scene.state.grains.sort_unstable_by_key(|body| body.id);
        halo::migrate(&mut stepper.scene, &stepper.partition, comm);
        stepper
    }

    /// Compares, from now on and after each sweep, all copies of shared bodies bit by bit, and panics if two differ. Slow: for tests.
    pub fn verify_copies(&mut self) {
        self.verify = true;
    }

    pub fn scene(&self) -> &Scene {
        &self.scene
    }

    pub fn machines(&self) -> &Machines {
        &self.machines
    }

    pub fn physics(&self) -> &Physics {
        &self.physics
    }

    pub fn timers(&self) -> &Timers {
        &self.timers
    }

    /// This rank's contact points of the last step, ascending by bodies, those of machines and other hubs last.
    pub fn contacts(&self) -> impl Iterator<Item = ContactView> {
        self.contacts.iter().copied()
    }

    /// Lets the next step keep its contact problem. All ranks ask alike.
    pub fn keep_problem(&mut self) {
        self.dump_due = true;
    }

    /// The problem that was asked for, on rank 0, once.
    pub fn take_problem(&mut self) -> Option<Dump> {
        self.dump.take()
    }

    /// Collective.
    pub fn observe(&self) -> Observation {
        let regions = region::measure(&self.regions, &self.scene, &self.contacts, self.comm);
        let observed = observe::observe(&self.scene, &self.physics, &self.wall_impulses, self.comm);
        Observation { regions, ..observed }
    }

    /// From now on [`observe`](Self::observe) tells how densely grains lie in these boxes.
    pub fn set_regions(&mut self, regions: Vec<Aabb>) {
        self.regions = regions;
    }

    /// Algorithm 1. Collective.
    pub fn step(&mut self) -> Result<StepReport, StepError> {
        let Self {
            scene,
            machines,
            physics,
            options,
            comm,
            partition,
            detector,
            projector,
            connection,
            timers,
            dump_due,
            dump,
            ..
        } = self;
        let comm: &dyn Comm = *comm;
        let gravity = (physics.gravity)(physics.time(scene.state.step));

        timers.time(Phase::Machine, comm, || machines.begin(scene, physics, comm))?; // (16)–(27)
        let reuse = physics.patch_reuse;
        let (free, boxes) = timers.time(Phase::Predict, comm, || {
            motion::predict(scene, physics); // (29)
            let free = motion::free_motions(&scene.state.grains, &gravity, physics);
            motion::anchor(&mut scene.state.grains, &free, physics);
            let boxes = reach_boxes(scene, &free, physics, reuse, comm);
            (free, boxes)
        });
        let halo = timers.time(Phase::Halo, comm, || {
            halo::exchange_ghosts(scene, &boxes, partition, &mut self.memory, comm)
        });
        let view = timers
            .time(Phase::Predict, comm, || View::new(scene, &halo, machines, physics, &gravity, free, reuse));
        let contacts = timers.time(Phase::Detect, comm, || {
            let (rank, alone) = (comm.rank(), comm.size() == 1);
            let owns = |a: &Body, b: &Body, place: &Vec3| alone || pair_owner(a, b, place, partition) == rank;
            detector.detect(&view.candidates, owns, |a, b| looks_ahead(scene, machines, physics, a, b))
        });
        let takes_part = if physics.penetration_limit > 0.0 { TakesPart::Closing } else { TakesPart::Closed };
        let mut assembled = timers.time(Phase::Assemble, comm, || {
            view.assemble(contacts, scene, machines, &halo, physics, takes_part)
        });
        let (colours, mut ranks) = timers.time(Phase::Colour, comm, || {
            let (ids, own) = (&view.ids, scene.state.grains.len());
            interface::connect(connection, &mut assembled, ids, own, &halo, self.verify, comm)
        });
        let colour_count = colours.count;
        let gathered = timers.time(Phase::Colour, comm, || {
            let here = hub::Here { view: &view, scene, halo: &halo, comm };
            let (gathered, exchange) = hub::gather(&assembled.hub, machines, &here, &ranks);
            ranks.set_hub(exchange);
            gathered
        });
        let shared = |slot: u32| halo.is_shared(slot);
        let share = whole::Share { assembled: &assembled, ids: &view.ids, hub: &gathered.hub };
        let (solution, blocks) = timers.time(Phase::Solve, comm, || match options.method {
            None => {
                let blocks = Blocks::new(&assembled.problem, colours, shared);
                let (solution, blocks) =
                    solve::solve_in(blocks, &assembled.problem, &gathered.hub, options, &mut ranks); // (33)
                (solution, Some(blocks))
            }
            Some(method) => (whole::solve(&share, method, options, comm), None),
        });
        if std::mem::take(dump_due) {
            *dump = whole::gather(&share, Some(&solution), comm).map(|whole| whole.dump());
        }
        let shifts = timers.time(Phase::Correct, comm, || {
            let step = correct::Step { assembled: &assembled, gathered: &gathered, colours };
            let struck = impact::shifts(&step, &solution, physics, shared, &mut ranks, comm);
            let corrected = correct::correct(&step, blocks, physics, shared, &mut ranks, comm);
            correct::Shifts::sum(struck, corrected)
        });
        let views = &mut self.contacts;
        let impulses = timers.time(Phase::Finish, comm, || {
            let hub_impulses = gathered.impulses_back(&solution.hub.impulses, comm);
            let solved =
                assemble::impulses_of(&view.candidates, &assembled, &solution.impulses, &hub_impulses);
            let owner_of = |home| view.owner_of(home, scene.state.grains.len(), &halo);
            let impulses = halo::store_impulses(solved, owner_of, comm);
            write_contact_views(views, &view, &assembled, &solution.impulses, &hub_impulses);
            impulses
        });
        let View { inertia, free_velocity, .. } = view;
        let ways = correct::machine_ways(&shifts, physics);
        timers.time(Phase::Machine, comm, || {
            let touched = gathered.body_impulses(&solution.hub.impulses, scene);
            machines.finish(scene, &solution.hub.velocities, &ways, &touched, comm)
        })?;
        timers.time(Phase::Finish, comm, || {
            scene.state.grains.par_iter_mut().with_min_len(256).enumerate().for_each(|(slot, body)| {
                let (inertia, free) = (&inertia[slot], &free_velocity[slot]);
                motion::finish(body, inertia, free, &solution.velocities[slot], physics); // (30)
            });
            correct::apply(&mut scene.state.grains, &shifts, physics);
            motion::finish_statics(scene, physics);
            scene.state.impulses = impulses;
            scene.state.step += 1;
        });
        let left = timers
            .time(Phase::Correct, comm, || projector.project(scene, machines, physics, partition, comm))?;
        let moved = timers.time(Phase::Migrate, comm, || {
            if let Some(work) = balance::due(scene, &self.contacts, &self.decomposition, comm) {
                *partition = balance::partition(scene, &work, &self.decomposition, Some(partition), comm);
            }
            halo::migrate(scene, partition, comm)
        });
        self.gather_wall_impulses();
        let mut report = self.report(&assembled, &solution, colour_count, moved);
        report.worst_penetration = left.unwrap_or(report.worst_penetration);
        Ok(report)
    }

    fn gather_wall_impulses(&mut self) {
        self.wall_impulses = vec![ExactSum::default(); 3 * self.scene.state.statics.len()];
        for contact in &self.contacts {
            for (side, sign) in [(0, -1.0), (1, 1.0)] {
                let place =
                    self.scene.state.statics.binary_search_by_key(&contact.bodies[side], |body| body.id);
                if let Ok(place) = place {
                    for axis in 0..3 {
                        self.wall_impulses[3 * place + axis].add(sign * contact.impulse[axis]);
                    }
                }
            }
        }
    }

    fn report(&self, assembled: &Assembled, solution: &Solution, colours: usize, moved: usize) -> StepReport {
        let (problem, hub) = (&assembled.problem, &assembled.hub);
        let manifolds = problem.manifolds.len() + hub.len();
        let infos = assembled.points.iter().chain(hub.iter().flat_map(|contact| &contact.infos));
        let points = infos.clone().count();
        let mut counts = [manifolds as i64, points as i64, moved as i64];
        self.comm.sum_i64(&mut counts);
        let mut deepest = [infos.map(|point| -point.gap).fold(0.0, f64::max)];
        self.comm.max_f64(&mut deepest);
        StepReport {
            step: self.scene.state.step,
            time: self.physics.time(self.scene.state.step),
            manifolds: counts[0] as u64,
            contact_points: counts[1] as u64,
            colours,
            sweeps: solution.sweeps,
            residual: solution.residual,
            converged: solution.converged,
            worst_penetration: deepest[0],
            migrated: counts[2] as u64,
        }
    }
}

/// The bodies of a step by slot: own ones, ghosts, then fixed and kinematic ones, then those of machines that touch others.
struct View<'a> {
    candidates: Vec<Candidate<'a>>,
    /// Of the movable ones.
    ids: Vec<BodyId>,
    inertia: Vec<Inertia>,
    free_velocity: Vec<Twist>,
}

impl<'a> View<'a> {
    /// `free` is the free motion of the scene's own bodies. `reuse`: how far stones may have moved from their anchors, by their radius; 0 to look at all
    /// where they stand.
    fn new(
        scene: &'a Scene,
        halo: &'a Halo,
        machines: &Machines,
        physics: &Physics,
        gravity: &Vec3,
        mut free: Vec<(Inertia, Twist)>,
        reuse: f64,
    ) -> Self {
        let count = scene.state.grains.len()
            + halo.ghosts.len()
            + scene.state.statics.len()
            + scene.state.machine_bodies.len();
        let mut view = Self {
            candidates: Vec::with_capacity(count),
            ids: scene.state.grains.iter().chain(&halo.ghosts).map(|body| body.id).collect(),
            inertia: Vec::with_capacity(count),
            free_velocity: Vec::with_capacity(count),
        };
        free.extend(motion::free_motions(&halo.ghosts, gravity, physics));
        free.extend(motion::free_motions(&scene.state.statics, gravity, physics));
        for (body, free) in
            scene.state.grains.iter().chain(&halo.ghosts).chain(&scene.state.statics).zip(free)
        {
            view.candidates.push(candidate(body, &free, physics, reuse));
            view.inertia.push(free.0);
            view.free_velocity.push(free.1);
        }
        for body in &scene.state.machine_bodies {
            if let Some(free) = machines.free_twist(scene, body) {
                let reach = motion::reach(body, &free, physics);
                view.candidates.push(Candidate { body, reach, movable: true, slack: 0.0 });
                view.inertia.push(Inertia::default());
                view.free_velocity.push(free);
            }
        }
        view
    }

    fn assemble(
        &self,
        contacts: &[Contacts],
        scene: &Scene,
        machines: &Machines,
        halo: &Halo,
        physics: &Physics,
        takes_part: TakesPart,
    ) -> Assembled {
        let stored = [&scene.state.impulses, &halo.impulses];
        let Physics { time_step, theta, warm_start, .. } = *physics;
        let View { candidates, free_velocity, .. } = self;
        let parts = Parts {
            candidates,
            scene,
            machines,
            stored,
            warm_start,
            free_velocity,
            time_step,
            theta,
            takes_part,
        };
        let mut assembled =
            assemble::assemble(contacts, self.inertia.clone(), self.free_velocity.clone(), &parts);
        assembled.set_idle(|slot| halo.is_shared(slot));
        assembled
    }

    /// The rank that owns a contact's home, if it is not this one.
    fn owner_of(&self, home: BodyId, own: usize, halo: &Halo) -> Option<usize> {
        let ghost = self.ids[own..].binary_search(&home).ok()?;
        Some(halo.owners[ghost] as usize)
    }
}

fn candidate<'a>(body: &'a Body, free: &(Inertia, Twist), physics: &Physics, reuse: f64) -> Candidate<'a> {
    let (inertia, twist) = free;
    let reach = motion::reach(body, twist, physics);
    Candidate { body, reach, movable: inertia.is_movable(), slack: anchor::slack(body, reuse) }
}

/// The boxes within which the own bodies look for contacts, for other ranks if there are any.
fn reach_boxes(
    scene: &Scene,
    free: &[(Inertia, Twist)],
    physics: &Physics,
    reuse: f64,
    comm: &dyn Comm,
) -> Vec<Aabb> {
    if comm.size() == 1 {
        return Vec::new();
    }
    let bodies = scene.state.grains.iter().zip(free);
    bodies.map(|(body, free)| candidate(body, free, physics, reuse).bounds()).collect()
}

/// The rank that looks at a pair. Where there is no grain to be near to, that of the machines, which keeps the impulses of such contacts.
fn pair_owner(a: &Body, b: &Body, place: &Vec3, partition: &Partition) -> usize {
    if a.motion != Motion::Free && b.motion != Motion::Free {
        return machines::OWNER;
    }
    partition.owner_of_point((*place).into())
}

/// How far a pair looks for contacts, as a share of its reach; none if the two never touch.
fn looks_ahead(scene: &Scene, machines: &Machines, physics: &Physics, a: &Body, b: &Body) -> Option<f64> {
    if !machines.can_touch(scene, a, b) {
        return None;
    }
    let law = scene.model.laws.between(a.material, b.material)?;
    let ahead = law.activation == Activation::Predictive || physics.penetration_limit > 0.0;
    Some(if ahead { 1.0 } else { 0.0 })
}

/// In place of those of the last step, whose room they take.
fn write_contact_views(
    views: &mut Vec<ContactView>,
    view: &View,
    assembled: &Assembled,
    impulses: &[[f64; 3]],
    hub_impulses: &[[f64; 3]],
) {
    let problem = &assembled.problem;
    views.clear();
    views.reserve(problem.points.len() + hub_impulses.len());
    let centres = |slots: [u32; 2]| slots.map(|slot| view.candidates[slot as usize].body.pose.position);
    let point =
        |key: &ManifoldKey, slots, frame: &[Vec3; 3], info: &PointInfo, impulse: &[f64; 3]| ContactView {
            bodies: key.bodies,
            centres: centres(slots),
            point: info.position,
            normal: frame[0],
            impulse: (0..3).map(|axis| frame[axis] * impulse[axis]).sum(),
            gap: info.gap,
        };
    for (index, Manifold { key, slots, frame, .. }) in problem.manifolds.iter().enumerate() {
        let places = problem.points_of(index);
        views.extend(
            places.map(|place| point(key, *slots, frame, &assembled.points[place], &impulses[place])),
        );
    }
    let mut next = hub_impulses.iter();
    for HubContact { key, slots, frame, infos, .. } in &assembled.hub {
        let points = infos.iter().zip(next.by_ref());
        views.extend(points.map(|(info, impulse)| point(key, *slots, frame, info, impulse)));
    }
}
