//! One time step: the paper's Algorithm 1, with a time integrator and a coupling of grains and machines that
//! a case may choose.

pub mod account;
pub mod assemble;
pub mod contacts;
pub mod correct;
pub mod couple;
mod energy;
pub mod integrate;
pub mod machines;
pub mod observe;
mod overlap;
pub mod reach;
pub mod region;
pub mod results;
mod speed;
mod stability;
mod start;
#[cfg(test)]
mod tests;
pub mod timers;
mod tried;
mod view;
pub mod world;

pub use crate::exchange::{DecompositionOptions, Dump};
pub use account::Account;
pub use energy::{EnergyLimit, Excess};
pub use machines::{Loads, Machines};
pub use observe::Observation;
use observe::StepSums;
pub use overlap::Overlap;
pub use region::RegionMeasure;
pub use results::ContactView;
pub use timers::{Cost, Phase, Timers};
pub use world::{Territory, World};

use crate::exchange::{OWNER, balance, halo, whole};
use crate::geometry::Aabb;
use crate::machine::SavedMachine;
use crate::scene::{BodyId, Motion, Physics, Scene, State};
use crate::solve::{self, Inertia, Residual, Solution, Twist};
use account::Source;
use assemble::TakesPart;
use contacts::{Pipeline, Query};
use correct::Shifts;
use correct::project::Projector;
use couple::{Coupling, Monolithic};
use decomposition::{Comm, ExactSum, Partition};
use integrate::{Integrator, Moved};
use results::{Counts, Results};
use serde::{Deserialize, Serialize};
use start::Start;

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
    /// The sweeps had missed their tolerance, and another solver has tried.
    pub handed_over: bool,
    /// Deepest overlap where contacts were found, m, ≥ 0; with a limit of penetration that at the end of the
    /// step.
    pub worst_penetration: f64,
    /// Where contacts were found, by the sizes of bodies.
    pub overlap: Overlap,
    /// Bodies that changed ranks.
    pub migrated: u64,
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
    /// The step was not made.
    #[error(
        "machine {machine:?}: {} too stiff for steps of {time_step} s, forces being taken explicitly: they would blow up\n  \
         a time step of {limit} s would do; --force goes on all the same",
        element.as_ref().map_or("its forces are".into(), |element| format!("the force {element:?} is"))
    )]
    Unstable {
        machine: String,
        /// The force element that is the stiffest.
        element: Option<String>,
        /// s, as text: an error is compared and sent.
        time_step: String,
        limit: String,
    },
    #[error("{body:?} of machine {machine:?}, carried by joint {joint:?}, would move at {speed}{force}")]
    MachineTooFast {
        machine: String,
        body: String,
        joint: String,
        speed: String,
        /// What drives it most, in words.
        force: String,
    },
    #[error("the contact problem cannot be solved by this method: {problem}")]
    Solver { problem: String },
    /// The state is that of the start of the step.
    #[error("stopped by signal {signal} during the solve")]
    Stopped { signal: usize },
    /// The state is that of the start of the step.
    #[error("body {} would move at {speed}", body.0)]
    TooFast { body: BodyId, speed: String },
    /// The state is that of the start of the step.
    #[error("there would be {} J more than were put in, beyond the {} J that are let pass", .0.excess, .0.allowed)]
    TooMuchEnergy(Box<Excess>),
}

/// A world with everything needed to step it.
pub struct Stepper<'c> {
    world: World,
    options: solve::Options,
    integrator: Box<dyn Integrator>,
    coupling: Box<dyn Coupling>,
    territory: Territory<'c>,
    pipeline: Pipeline,
    projector: Projector,
    timers: Timers,
    /// Boxes in which it is measured how densely grains lie.
    regions: Vec<Aabb>,
    /// Of the last step.
    contacts: Vec<ContactView>,
    sums: StepSums,
    /// Whether the next step is to keep its contact problem.
    dump_due: bool,
    dump: Option<Dump>,
    /// Of the step under way, if it may be broken off.
    start: Option<Start>,
    /// Whether the step has changed what cannot be put back.
    past_start: bool,
    is_put_back: bool,
    /// Beyond which a step is not taken, m/s.
    speed_limit: Option<f64>,
    /// The size of the smallest free body, m.
    smallest: f64,
    energy_limit: Option<EnergyLimit>,
}

/// All that a step changes and the next ones depend on, of this rank: to try a step and take it back.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    state: State,
    machines: Vec<SavedMachine>,
    partition: Partition,
    account: Account,
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

    /// Collective. The scene may hold any share of the free bodies on each rank; they are sent to their
    /// owners.
    pub fn with_machines(
        mut scene: Scene,
        machines: Machines,
        physics: Physics,
        options: solve::Options,
        decomposition: DecompositionOptions,
        comm: &'c dyn Comm,
    ) -> Self {
        let partition = balance::first_partition(&scene, &decomposition, comm);
        machines.place_bodies(&mut scene);
        scene.state.grains.sort_unstable_by_key(|body| body.id);
        halo::migrate(&mut scene, &partition, comm);
        Self {
            sums: StepSums {
                wall_impulses: vec![ExactSum::default(); 3 * scene.state.statics.len()],
                changes: ExactSum::default(),
            },
            smallest: overlap::smallest(&scene, comm),
            integrator: integrate::integrator(physics.scheme),
            coupling: Box::new(Monolithic),
            world: World { scene, machines, physics, account: Account::default() },
            options,
            territory: Territory { comm, partition, options: decomposition, verify: false },
            pipeline: Pipeline::default(),
            projector: Projector::default(),
            timers: Timers::default(),
            regions: Vec::new(),
            contacts: Vec::new(),
            dump_due: false,
            dump: None,
            start: None,
            past_start: false,
            is_put_back: false,
            speed_limit: None,
            energy_limit: None,
        }
    }

    /// Algorithm 1. Collective. After an error the state is that before the step, if
    /// [`is_put_back`](Self::is_put_back) says so.
    pub fn step(&mut self) -> Result<StepReport, StepError> {
        if let Some(start) = &mut self.start {
            start.remember(&self.world);
        }
        let made = self.make_step();
        let (Some(start), Err(_)) = (&mut self.start, &made) else { return made };
        if !self.past_start {
            self.is_put_back = start.put_back(&mut self.world).is_ok();
            // Those that were found belong to the step that is not taken.
            self.contacts.clear();
        }
        made
    }

    fn make_step(&mut self) -> Result<StepReport, StepError> {
        (self.past_start, self.is_put_back) = (false, false);
        let free = self.predict()?; // (29), (16)–(27), v_free of (28)
        let Self { world, pipeline, territory, timers, .. } = self;
        let query = query(world, &*self.integrator);
        let near = timers
            .time(Phase::Halo, territory.comm, || pipeline.neighbourhood(world, free, &query, territory));
        let mut contacts = pipeline.find(world, &near, &query, territory, timers).assemble(territory, timers); // (31)
        let solved =
            timers.time(Phase::Solve, territory.comm, || self.coupling.solve(&mut contacts, &self.options)); // (33)
        let mut solved = solved?;
        if let Some(limit) = self.speed_limit {
            let limits = speed::Limits { speed: limit, duration: world.physics.time_step };
            speed::check(&world.scene.state.grains, &solved.solution.velocities, &limits, territory.comm)?;
        }
        if std::mem::take(&mut self.dump_due) {
            let whole = whole::gather(&contacts.share(), Some(&solved.solution), territory.comm);
            self.dump = whole.map(|whole| whole.dump());
        }
        let shifts = timers.time(Phase::Correct, territory.comm, || {
            correct::shifts(&mut contacts, &mut solved, &world.physics)
        });
        let handed_over = solved.handed_over;
        let (solution, views, smallest) = (solved.solution, &mut self.contacts, self.smallest);
        let results =
            timers.time(Phase::Finish, territory.comm, || contacts.finish(&solution, views, smallest));
        let counts = results.counts;
        self.finish(&solution, results, &shifts)?; // (28), (30), (16), (20)
        let left = self.limit_overlap()?;
        self.gather_wall_impulses();
        if let Some(limit) = &self.energy_limit {
            limit.check(&self.world, self.territory.comm)?;
        }
        self.past_start = true; // up to here a step can be put back from `Start`
        if let Some(start) = &mut self.start {
            start.let_go();
        }
        let migrated = self.migrate();
        Ok(StepReport { handed_over, ..self.report(&solution, counts, left, migrated) })
    }

    /// Bodies and machines stand where contacts are looked for. The free motion of this rank's bodies.
    /// Collective.
    fn predict(&mut self) -> Result<Vec<(Inertia, Twist)>, StepError> {
        let Self { world, integrator, timers, territory, .. } = self;
        let (clock, gravity, comm) = (world.clock(), world.gravity(), territory.comm);
        let World { scene, machines, physics, .. } = world;
        timers.time(Phase::Machine, comm, || machines.begin(scene, &**integrator, &clock, comm))?;
        Ok(timers.time(Phase::Predict, comm, || {
            let state = &mut scene.state;
            let approach = integrator.approach(clock.time_step);
            integrator.predict(&mut state.grains, &clock);
            integrate::predict_prescribed(&mut state.statics, &scene.model.motions, &approach, &clock);
            let free = integrator.free_motions(&state.grains, &gravity, &clock);
            reach::renew_anchors(&mut state.grains, &free, physics);
            free
        }))
    }

    /// Velocities are taken over, positions follow. Collective.
    fn finish(
        &mut self,
        solution: &Solution,
        results: Results,
        shifts: &Option<Shifts>,
    ) -> Result<(), StepError> {
        let Self { world, integrator, timers, territory, start, sums, .. } = self;
        let (clock, comm) = (world.clock(), territory.comm);
        let World { scene, machines, physics, account } = world;
        let Results { inertia, free_velocity, impulses, touched, .. } = results;
        let displacements = correct::machine_displacements(shifts, physics);
        let velocities = &solution.hub.velocities;
        let end = machines::End { velocities, shifts: &displacements, touched: &touched };
        timers.time(Phase::Machine, comm, || machines.finish(scene, &**integrator, &end, comm))?;
        machines.account(account);
        timers.time(Phase::Finish, comm, || {
            sums.changes = observe::changes(&world.scene.state.grains, &solution.velocities);
            let moved = Moved { inertia: &inertia, free: &free_velocity, solved: &solution.velocities };
            integrator.finish(&mut world.scene.state.grains, &moved, &clock);
            correct::apply(world, shifts);
            world.change_gravity();
            let World { scene, physics, .. } = world;
            let state = &mut scene.state;
            let time = physics.time(state.step + 1);
            integrate::finish_prescribed(&mut state.statics, &scene.model.motions, time);
            let before = std::mem::replace(&mut state.impulses, impulses);
            if let Some(start) = start {
                start.keep(before);
            }
            state.step += 1;
        });
        Ok(())
    }

    /// The deepest overlap that is left at the end of the step, if overlap is limited. Collective.
    fn limit_overlap(&mut self) -> Result<Option<f64>, StepError> {
        let Self { world, integrator, projector, timers, territory, .. } = self;
        timers.time(Phase::Correct, territory.comm, || projector.project(world, &**integrator, territory))
    }

    /// Bodies go to the ranks that own their places; space is cut anew where work is uneven. How many left
    /// this rank. Collective.
    fn migrate(&mut self) -> usize {
        let Self { world: World { scene, .. }, timers, territory, contacts, .. } = self;
        let comm = territory.comm;
        timers.time(Phase::Migrate, comm, || {
            let pairs = contacts.iter().map(|contact| contact.bodies);
            if let Some(work) = balance::due(scene, pairs, &territory.options, comm) {
                let before = Some(&territory.partition);
                territory.partition = balance::partition(scene, &work, &territory.options, before, comm);
            }
            halo::migrate(scene, &territory.partition, comm)
        })
    }

    /// What contacts gave to walls, and the work of walls that move.
    fn gather_wall_impulses(&mut self) {
        let World { scene, account, .. } = &mut self.world;
        let statics = &scene.state.statics;
        let sums = &mut self.sums.wall_impulses;
        *sums = vec![ExactSum::default(); 3 * statics.len()];
        for contact in &self.contacts {
            for (side, sign) in [(0, -1.0), (1, 1.0)] {
                if let Ok(place) = statics.binary_search_by_key(&contact.bodies[side], |body| body.id) {
                    for axis in 0..3 {
                        sums[3 * place + axis].add(sign * contact.impulse[axis]);
                    }
                    let wall = &statics[place];
                    if matches!(wall.motion, Motion::Kinematic(_)) {
                        let arm = contact.point - wall.pose.position;
                        let velocity = wall.velocity + wall.angular_velocity.cross(&arm);
                        account.add(Source::Motions, -sign * contact.impulse.dot(&velocity));
                    }
                }
            }
        }
    }

    fn report(&self, solution: &Solution, counts: Counts, left: Option<f64>, migrated: usize) -> StepReport {
        let (comm, step) = (self.territory.comm, self.world.scene.state.step);
        let mut sums = [counts.manifolds as i64, counts.points as i64, migrated as i64];
        comm.sum_i64(&mut sums);
        let mut deepest = [counts.deepest, counts.overlap.share];
        comm.max_f64(&mut deepest);
        StepReport {
            step,
            time: self.world.physics.time(step),
            manifolds: sums[0] as u64,
            contact_points: sums[1] as u64,
            colours: counts.colours,
            sweeps: solution.sweeps,
            residual: solution.residual,
            converged: solution.converged,
            handed_over: false,
            worst_penetration: left.unwrap_or(deepest[0]),
            overlap: counts.overlap.among(deepest[1], comm),
            migrated: sums[2] as u64,
        }
    }
}

/// The contacts of a step's velocities.
fn query<'a>(world: &World, integrator: &'a dyn Integrator) -> Query<'a> {
    let limited = world.physics.penetration_limit > 0.0;
    Query {
        integrator,
        gravity: world.gravity(),
        clock: world.clock(),
        reuse: world.physics.patch_reuse,
        takes_part: if limited { TakesPart::Closing } else { TakesPart::Closed },
    }
}

impl Stepper<'_> {
    pub fn scene(&self) -> &Scene {
        &self.world.scene
    }

    pub fn machines(&self) -> &Machines {
        &self.world.machines
    }

    pub fn physics(&self) -> &Physics {
        &self.world.physics
    }

    pub fn timers(&self) -> &Timers {
        &self.timers
    }

    /// This rank's contact points of the last step, ascending by bodies, those of machines and other hubs
    /// last.
    pub fn contacts(&self) -> impl Iterator<Item = ContactView> {
        self.contacts.iter().copied()
    }

    /// Compares, from now on and after each sweep, all copies of shared bodies bit by bit, and panics if two
    /// differ. Slow: for tests.
    pub fn verify_copies(&mut self) {
        self.territory.verify = true;
    }

    /// From now on a signal breaks a step off where its residual is measured. All ranks ask alike.
    pub fn let_stop(&mut self) {
        self.start = Some(Start::default());
    }

    /// From now on a step that would leave a body faster than this, m/s, is not taken. All ranks ask alike,
    /// after [`let_stop`](Self::let_stop).
    pub fn set_speed_limit(&mut self, limit: f64) {
        self.speed_limit = Some(limit);
        self.world.machines.speed_limit = Some(limit);
    }

    /// From now on a step that would leave more energy than was put in is not taken. All ranks ask alike,
    /// after [`let_stop`](Self::let_stop), when an account is open.
    pub fn set_energy_limit(&mut self, limit: EnergyLimit) {
        self.energy_limit = Some(limit);
    }

    pub fn comm(&self) -> &dyn Comm {
        self.territory.comm
    }

    /// Whether the state after a step that failed is that before it.
    pub fn is_put_back(&self) -> bool {
        self.is_put_back
    }

    /// m/s, if there is one.
    pub fn speed_limit(&self) -> Option<f64> {
        self.speed_limit
    }

    /// If there is one.
    pub fn energy_limit(&self) -> Option<EnergyLimit> {
        self.energy_limit
    }

    /// Lets the next step keep its contact problem. All ranks ask alike.
    pub fn keep_problem(&mut self) {
        self.dump_due = true;
    }

    /// The problem that was asked for, on rank 0, once.
    pub fn take_problem(&mut self) -> Option<Dump> {
        self.dump.take()
    }

    /// From now on [`observe`](Self::observe) measures how densely grains lie in these boxes.
    pub fn set_regions(&mut self, regions: Vec<Aabb>) {
        self.regions = regions;
    }

    /// Collective.
    pub fn observe(&self) -> Observation {
        let (world @ World { scene, .. }, comm) = (&self.world, self.territory.comm);
        let regions = region::measure(&self.regions, scene, &self.contacts, comm);
        Observation { regions, ..observe::observe(world, &self.contacts, &self.sums, comm) }
    }

    /// Collective, once, before the first step: from here on work is accounted for.
    pub fn open_account(&mut self) {
        self.world.account = Account::open(self.observe().energy());
    }

    pub fn account(&self) -> &Account {
        &self.world.account
    }

    /// Goes on with an account from a checkpoint, the same on every rank.
    pub fn resume_account(&mut self, account: &Account) {
        let is_owner = self.territory.comm.rank() == OWNER;
        self.world.account = if is_owner { account.clone() } else { account.without_work() };
    }

    /// From now on machines whose forces are too stiff for the time step are let through.
    pub fn let_stiff_forces(&mut self) {
        self.world.machines.unchecked = true;
    }

    /// The state between two steps.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            state: self.world.scene.state.clone(),
            machines: self.world.machines.save(),
            partition: self.territory.partition.clone(),
            account: self.world.account.clone(),
        }
    }

    /// Back to a snapshot of this run: the steps from there on have the same bits again. All ranks go back to
    /// the same step.
    pub fn take_back(&mut self, snapshot: &Snapshot) -> Result<(), StepError> {
        self.world.scene.state.clone_from(&snapshot.state);
        self.territory.partition.clone_from(&snapshot.partition);
        self.world.account.clone_from(&snapshot.account);
        self.world.machines.take_back(&snapshot.machines)
    }
}
