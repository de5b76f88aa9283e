//! One time step: the paper's Algorithm 1. The only physics that talks to other ranks.

pub mod assemble;
mod correct;
pub mod halo;
pub mod interface;
pub mod motion;
pub mod observe;
#[cfg(test)]
mod tests;
pub mod timers;

pub use observe::Observation;
pub use timers::{Phase, Timers};

use crate::contact::detect::{Candidate, Detector};
use crate::geometry::{Aabb, Vec3};
use crate::scene::{Activation, Body, BodyId, Physics, Scene};
use crate::solve::{self, Inertia, Residual, Solution, Twist};
use assemble::Assembled;
use decomposition::{Cells, Comm, ExactSum, Partition};
use halo::Halo;

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
    /// Deepest overlap found at `q_m`, m, ≥ 0.
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

/// A scene with everything needed to step it.
pub struct Stepper<'c> {
    scene: Scene,
    physics: Physics,
    options: solve::Options,
    comm: &'c dyn Comm,
    decomposition: DecompositionOptions,
    partition: Partition,
    detector: Detector,
    timers: Timers,
    contacts: Vec<ContactView>,
    /// Three sums for each static body: what contacts gave it in the last step.
    wall_impulses: Vec<ExactSum>,
}

/// Edge of a cell by the radius of the largest grain: small enough to balance well, large enough that few grains cross a border.
const CELL_EDGE_BY_RADIUS: f64 = 2.0;
/// Steps between two looks at the balance: stones fall a few of their sizes in that time.
const BALANCE_EVERY: u64 = 100;
/// Cells in all: the table that every rank holds.
const MOST_CELLS: usize = 1 << 20;

impl<'c> Stepper<'c> {
    /// Collective. `scene.grains` may hold any share of the free bodies on each rank; they are sent to their owners.
    pub fn new(
        scene: Scene,
        physics: Physics,
        options: solve::Options,
        decomposition: DecompositionOptions,
        comm: &'c dyn Comm,
    ) -> Self {
        let partition = partition(&scene, &decomposition, comm);
        let mut stepper = Self {
            wall_impulses: vec![ExactSum::default(); 3 * scene.statics.len()],
            scene,
            physics,
            options,
            comm,
            decomposition,
            partition,
            detector: Detector::default(),
            timers: Timers::default(),
            contacts: Vec::new(),
        };
        stepper.scene.grains.sort_unstable_by_key(|body| body.id);
        halo::migrate(&mut stepper.scene, &stepper.partition, comm);
        stepper
    }

    pub fn scene(&self) -> &Scene {
        &self.scene
    }

    pub fn physics(&self) -> &Physics {
        &self.physics
    }

    pub fn timers(&self) -> &Timers {
        &self.timers
    }

    /// This rank's contact points of the last step, ascending by bodies.
    pub fn contacts(&self) -> impl Iterator<Item = ContactView> {
        self.contacts.iter().copied()
    }

    /// Collective.
    pub fn observe(&self) -> Observation {
        observe::observe(&self.scene, &self.physics, &self.wall_impulses, self.comm)
    }

    /// Algorithm 1. Collective.
    pub fn step(&mut self) -> StepReport {
        let Self { scene, physics, options, comm, partition, detector, timers, .. } = self;
        let comm: &dyn Comm = *comm;
        let gravity = (physics.gravity)(physics.time(scene.step));

        let boxes = timers.time(Phase::Predict, || {
            motion::predict(scene, physics); // (29)
            reach_boxes(scene, physics, &gravity)
        });
        let halo = timers.time(Phase::Halo, || halo::exchange_ghosts(scene, &boxes, partition, comm));
        let view = View::new(scene, &halo, physics, &gravity);
        let contacts = timers.time(Phase::Detect, || {
            let owns = |place: &Vec3| partition.owner_of_point((*place).into()) == comm.rank();
            detector.detect(&view.candidates, owns, |a, b| looks_ahead(scene, a, b))
        });
        let assembled = timers.time(Phase::Assemble, || view.assemble(&contacts, scene, &halo, physics));
        let (colours, mut ranks) = timers.time(Phase::Colour, || {
            interface::connect(&assembled.problem, &view.ids, scene.grains.len(), &halo, comm)
        });
        let shared = |slot: u32| halo.others.get(slot as usize).is_some_and(|others| !others.is_empty());
        let solution = timers.time(Phase::Solve, || {
            solve::solve(&assembled.problem, &colours, options, shared, &mut ranks) // (33)
        });
        let shifts = timers.time(Phase::Correct, || {
            correct::correct(&assembled, &colours, physics, shared, &mut ranks, comm)
        });
        let impulses = halo::store_impulses(
            assemble::impulses_of(&view.candidates, &assembled, &solution.impulses),
            |home| view.owner_of(home, scene.grains.len(), &halo),
            comm,
        );
        self.contacts = contact_views(&view, &assembled, &solution);
        let View { inertia, free_velocity, .. } = view;
        timers.time(Phase::Finish, || {
            for (slot, body) in scene.grains.iter_mut().enumerate() {
                motion::finish(
                    body,
                    &inertia[slot],
                    &free_velocity[slot],
                    &solution.velocities[slot],
                    physics,
                ); // (30)
            }
            correct::apply(&mut scene.grains, shifts.as_deref(), physics);
            motion::finish_statics(scene, physics);
            scene.impulses = impulses;
            scene.step += 1;
        });
        let moved = timers.time(Phase::Migrate, || {
            if imbalance(scene, comm) > self.decomposition.imbalance_threshold {
                *partition = crate::step::partition(scene, &self.decomposition, comm);
            }
            halo::migrate(scene, partition, comm)
        });
        self.gather_wall_impulses();
        self.report(&assembled, &solution, colours.count, moved)
    }

    fn gather_wall_impulses(&mut self) {
        self.wall_impulses = vec![ExactSum::default(); 3 * self.scene.statics.len()];
        for contact in &self.contacts {
            for (side, sign) in [(0, -1.0), (1, 1.0)] {
                let place = self.scene.statics.binary_search_by_key(&contact.bodies[side], |body| body.id);
                if let Ok(place) = place {
                    for axis in 0..3 {
                        self.wall_impulses[3 * place + axis].add(sign * contact.impulse[axis]);
                    }
                }
            }
        }
    }

    fn report(&self, assembled: &Assembled, solution: &Solution, colours: usize, moved: usize) -> StepReport {
        let problem = &assembled.problem;
        let mut counts = [problem.manifolds.len() as i64, problem.points.len() as i64, moved as i64];
        self.comm.sum_i64(&mut counts);
        let mut deepest = [assembled.points.iter().map(|point| -point.gap).fold(0.0, f64::max)];
        self.comm.max_f64(&mut deepest);
        StepReport {
            step: self.scene.step,
            time: self.physics.time(self.scene.step),
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

/// The bodies of a step by slot: own ones, ghosts, then fixed and kinematic ones.
struct View<'a> {
    candidates: Vec<Candidate<'a>>,
    /// Of the movable ones.
    ids: Vec<BodyId>,
    inertia: Vec<Inertia>,
    free_velocity: Vec<Twist>,
}

impl<'a> View<'a> {
    fn new(scene: &'a Scene, halo: &'a Halo, physics: &Physics, gravity: &Vec3) -> Self {
        let count = scene.grains.len() + halo.ghosts.len() + scene.statics.len();
        let mut view = Self {
            candidates: Vec::with_capacity(count),
            ids: scene.grains.iter().chain(&halo.ghosts).map(|body| body.id).collect(),
            inertia: Vec::with_capacity(count),
            free_velocity: Vec::with_capacity(count),
        };
        for body in scene.grains.iter().chain(&halo.ghosts).chain(&scene.statics) {
            let (inertia, free) = motion::free_motion(body, gravity, physics.time_step);
            let reach = motion::reach(body, &free, physics);
            view.candidates.push(Candidate { body, reach, movable: inertia.is_movable() });
            view.inertia.push(inertia);
            view.free_velocity.push(free);
        }
        view
    }

    fn assemble(
        &self,
        contacts: &[crate::contact::detect::Contact],
        scene: &Scene,
        halo: &Halo,
        physics: &Physics,
    ) -> Assembled {
        let stored =
            if physics.warm_start { [Some(&scene.impulses), Some(&halo.impulses)] } else { [None; 2] };
        assemble::assemble(
            &self.candidates,
            contacts,
            self.inertia.clone(),
            self.free_velocity.clone(),
            &scene.laws,
            stored,
            physics.time_step,
        )
    }

    /// The rank that owns a contact's home, if it is not this one.
    fn owner_of(&self, home: BodyId, own: usize, halo: &Halo) -> Option<usize> {
        let ghost = self.ids[own..].binary_search(&home).ok()?;
        Some(halo.owners[ghost] as usize)
    }
}

/// The boxes within which the own bodies look for contacts.
fn reach_boxes(scene: &Scene, physics: &Physics, gravity: &Vec3) -> Vec<Aabb> {
    let bounds = |body: &Body| {
        let (_, free) = motion::free_motion(body, gravity, physics.time_step);
        body.shape.aabb(&body.pose).inflated(motion::reach(body, &free, physics))
    };
    scene.grains.iter().map(bounds).collect()
}

/// How far a pair looks for contacts, as a share of its reach; none if the two never touch.
fn looks_ahead(scene: &Scene, a: &Body, b: &Body) -> Option<f64> {
    let law = scene.laws.between(a.material, b.material)?;
    Some(if law.activation == Activation::Predictive { 1.0 } else { 0.0 })
}

fn contact_views(view: &View, assembled: &Assembled, solution: &Solution) -> Vec<ContactView> {
    let problem = &assembled.problem;
    let mut views = Vec::with_capacity(problem.points.len());
    for (index, manifold) in problem.manifolds.iter().enumerate() {
        let centres = manifold.slots.map(|slot| view.candidates[slot as usize].body.pose.position);
        for place in problem.points_of(index) {
            let impulse = &solution.impulses[place];
            views.push(ContactView {
                bodies: manifold.key.bodies,
                centres,
                point: assembled.points[place].position,
                normal: manifold.frame[0],
                impulse: (0..3).map(|axis| manifold.frame[axis] * impulse[axis]).sum(),
                gap: assembled.points[place].gap,
            });
        }
    }
    views
}

/// Largest over mean number of bodies on a rank, looked at every [`BALANCE_EVERY`] steps (else 0). Collective. Nothing that
/// is computed depends on it, only where.
fn imbalance(scene: &Scene, comm: &dyn Comm) -> f64 {
    if comm.size() == 1 || !scene.step.is_multiple_of(BALANCE_EVERY) {
        return 0.0;
    }
    let mut total = [scene.grains.len() as i64];
    let mut most = [scene.grains.len() as f64];
    comm.sum_i64(&mut total);
    comm.max_f64(&mut most);
    most[0] * comm.size() as f64 / (total[0] as f64).max(1.0)
}

/// Cuts the space that the grains take up. Collective.
pub(crate) fn partition(scene: &Scene, options: &DecompositionOptions, comm: &dyn Comm) -> Partition {
    let mut extent = [f64::NEG_INFINITY; 7];
    for body in &scene.grains {
        for axis in 0..3 {
            extent[axis] = extent[axis].max(-body.pose.position[axis]);
            extent[3 + axis] = extent[3 + axis].max(body.pose.position[axis]);
        }
        extent[6] = extent[6].max(body.shape.bounding_radius());
    }
    comm.max_f64(&mut extent);
    if !extent.iter().all(|bound| bound.is_finite()) {
        extent = [0.0; 7]; // no grains at all
    }
    let min = [-extent[0], -extent[1], -extent[2]];
    let max = [extent[3], extent[4], extent[5]];
    let size = options.cell_size.unwrap_or(CELL_EDGE_BY_RADIUS * extent[6]).max(1e-9);
    let cells = Cells::covering(min, max, size, MOST_CELLS);
    let mut work = vec![0; cells.count()];
    for body in &scene.grains {
        work[cells.cell_of(body.pose.position.into())] += 1;
    }
    Partition::balanced(cells, &mut work, None, comm)
}
