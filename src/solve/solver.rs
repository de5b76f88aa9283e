//! Sweeps until the residual is met.

use super::accelerate::{ConjugateGradient, Momentum};
use super::assembled::Method;
use super::block::Blocks;
use super::colour::Colours;
use super::hub::Hub;
use super::problem::{Problem, Twist};
use super::residual::{Measure, Partial, Residual, Ruler};
use super::scale::Scale;
use super::sweep::{PARALLEL_BLOCKS, Sweep};
use super::team::{self, Team};
use decomposition::ExactSum;

crate::words::choices! {
    /// What a contact point does when it is visited. The fixed point of the sweep is the exact law with
    /// either.
    #[derive(Default)]
    pub enum LocalLaw {
        #[default]
        Projected = "projected", "one projection onto the friction cone per visit: cheap, the usual choice";
        Exact = "exact", "the exact solution of the single contact at each visit";
    }
}

crate::words::choices! {
    /// What happens between sweeps: nothing, [`ConjugateGradient`] or [`Momentum`].
    #[derive(Default)]
    pub enum Acceleration {
        None = "none", "plain Gauss-Seidel sweeps";
        ConjugateGradient = "conjugate-gradient", "nonlinear conjugate gradient on the sweeps: somewhat fewer at loose tolerances";
        #[default]
        Momentum = "momentum", "Nesterov's momentum on the sweeps, watched by the residual: up to twenty times fewer where plain sweeps are slow";
    }
}

crate::words::choices! {
    /// What gets the steps that the sweeps have missed.
    #[derive(Default)]
    pub enum Fallback {
        #[default]
        None = "none", "nothing: such a step stays as the sweeps have left it, and is marked";
        SweepsNewton = "sweeps-newton", "proximal points by a nonsmooth Newton method in the velocities of the bodies, on one rank";
        ProxNewton = "prox-newton", "the same with W assembled, on one rank";
    }
}

impl Fallback {
    pub fn method(self) -> Option<Method> {
        match self {
            Fallback::None => None,
            Fallback::SweepsNewton => Some(Method::SweepsNewton),
            Fallback::ProxNewton => Some(Method::ProxNewton),
        }
    }
}

/// Measurements after which they become seldom. A step from the impulses of the last one often takes few
/// sweeps, and momentum finds its measure in the first hundred. With ten sweeps between measurements from the
/// start the piles of `inputs/` took up to three times as many, and one step in twenty missed its tolerance;
/// with five all along, a sweep of a long solve cost a sixth more.
pub const EARLY: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Stop when the natural-map error is at most this. Dimensionless, > 0.
    pub tolerance: f64,
    pub measure: Measure,
    /// Stop after this many sweeps, converged or not.
    pub maximum_sweeps: usize,
    /// Sweeps between two measurements of the residual, ≥ 1; twice as many after the first [`EARLY`] of them,
    /// and fewer where the tolerance seems near.
    pub check_every: usize,
    pub law: LocalLaw,
    pub acceleration: Acceleration,
    /// A solver for the assembled problem in place of the coloured sweep, for [`crate::step`]; the solver
    /// here does not look at it.
    pub method: Option<Method>,
    /// For [`crate::step`], too.
    pub fallback: Fallback,
    /// Larger problems are not handed over.
    pub fallback_points: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tolerance: 1e-4,
            measure: Measure::default(),
            maximum_sweeps: 2000,
            check_every: 5,
            law: LocalLaw::default(),
            acceleration: Acceleration::default(),
            method: None,
            fallback: Fallback::None,
            fallback_points: usize::MAX,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Solution {
    /// One for each slot of the problem.
    pub velocities: Vec<Twist>,
    /// One for each point, contact frame.
    pub impulses: Vec<[f64; 3]>,
    pub hub: HubSolution,
    pub sweeps: usize,
    pub residual: Residual,
    pub converged: bool,
}

/// The part of a solution that belongs to the machines. Empty but on the rank that owns them.
#[derive(Clone, Debug, Default)]
pub struct HubSolution {
    /// `v_u` of each machine at the end of the step.
    pub velocities: Vec<Vec<f64>>,
    /// One for each point of the hub, contact frame.
    pub impulses: Vec<[f64; 3]>,
}

/// The velocities of the bodies, by slot. In memory they stand by place ([`Problem::places`]).
pub struct Velocities<'a> {
    /// By line.
    pub(super) twists: &'a mut [Twist],
    /// By slot.
    pub(super) lines: &'a [u32],
}

impl Velocities<'_> {
    pub fn get(&self, slot: u32) -> &Twist {
        &self.twists[self.lines[slot as usize] as usize]
    }

    pub fn get_mut(&mut self, slot: u32) -> &mut Twist {
        &mut self.twists[self.lines[slot as usize] as usize]
    }
}

/// What the sweep needs of other ranks. [`Alone`] on one rank.
pub trait Interface {
    /// The boundary manifolds of a colour are done: send the shared bodies that it touched.
    fn begin(&mut self, colour: usize, velocities: &Velocities);

    /// Whether all that other ranks send for a colour is there, so that `finish` will not wait.
    fn has_arrived(&mut self, _colour: usize) -> bool {
        true
    }

    /// The interior is done too: take in what other ranks sent for this colour.
    fn finish(&mut self, colour: usize, velocities: &mut Velocities);

    /// Brings the velocities of the bodies that touch a machine to the machine's rank, by [`Hub::bodies`].
    fn gather_hub(&mut self, velocities: &Velocities, hub: &mut [Twist]);

    /// Takes them back to all ranks that use them.
    fn scatter_hub(&mut self, hub: &[Twist], velocities: &mut Velocities);

    /// A sweep is over: all copies of a body must be equal.
    fn end_sweep(&mut self, _velocities: &Velocities) {}

    /// Adds up exact sums over all ranks.
    fn sum(&mut self, sums: &mut [ExactSum]);

    /// Adds the residual terms of all ranks.
    fn reduce(&mut self, partial: &mut Partial);

    /// Whether the solve is to be broken off, as of the last `reduce`: the same on every rank.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// One rank, and no machine that touches a body.
pub struct Alone;

impl Interface for Alone {
    fn begin(&mut self, _colour: usize, _velocities: &Velocities) {}

    fn finish(&mut self, _colour: usize, _velocities: &mut Velocities) {}

    fn gather_hub(&mut self, _velocities: &Velocities, _hub: &mut [Twist]) {}

    fn scatter_hub(&mut self, _hub: &[Twist], _velocities: &mut Velocities) {}

    fn sum(&mut self, _sums: &mut [ExactSum]) {}

    fn reduce(&mut self, _partial: &mut Partial) {}
}

pub fn solve(
    problem: &Problem,
    hub: &Hub,
    colours: &Colours,
    options: &Options,
    shared: impl Fn(u32) -> bool + Sync,
    interface: &mut dyn Interface,
) -> Solution {
    solve_in(Blocks::new(problem, colours, shared), problem, hub, options, interface).0
}

/// In blocks that were made for `problem`; gives them back.
pub fn solve_in(
    blocks: Blocks,
    problem: &Problem,
    hub: &Hub,
    options: &Options,
    interface: &mut dyn Interface,
) -> (Solution, Blocks) {
    let shareable = blocks.phases.iter().any(|phase| phase.interior.len() >= PARALLEL_BLOCKS);
    let members = if shareable { rayon::current_num_threads() } else { 1 };
    team::with(members, |team| sweep_until(blocks, problem, hub, options, interface, team))
}

fn sweep_until(
    blocks: Blocks,
    problem: &Problem,
    hub: &Hub,
    options: &Options,
    interface: &mut dyn Interface,
    team: &Team,
) -> (Solution, Blocks) {
    let mut sweep = Sweep::of(blocks, problem, hub, options.law, team);
    sweep.start(interface);
    let mut between = match options.acceleration {
        Acceleration::None => Between::Nothing,
        Acceleration::ConjugateGradient => Between::Gradient(ConjugateGradient::new(&sweep)),
        Acceleration::Momentum => Between::Momentum(Box::new(Momentum::new())),
    };
    let mut ruler = Ruler::new(options.measure);
    let mut scale = Scale::new();
    let (mut sweeps, mut measured, mut last) = (0, 0, None);
    loop {
        let mut residual = ruler.read(&sweep, interface);
        let converged = residual.natural_map <= options.tolerance;
        let is_over = sweeps >= options.maximum_sweeps || interface.is_stopped();
        if converged || is_over || residual.natural_map.is_nan() {
            if let Between::Momentum(momentum) = &between
                && !converged
                && momentum.go_back(&mut sweep, residual.natural_map)
            {
                residual = ruler.read(&sweep, interface);
            }
            debug_assert!(sweep.idle_have_stayed(problem));
            let impulses = sweep.impulses(problem.points.len());
            let velocities = sweep.velocities_by_slot();
            let machines = std::mem::take(&mut sweep.hub.machine_velocities);
            let hub = HubSolution { impulses: sweep.hub.impulses(), velocities: machines };
            let solution = Solution { velocities, impulses, hub, sweeps, residual, converged };
            return (solution, sweep.into_blocks());
        }
        if let Between::Momentum(momentum) = &mut between
            && momentum.observe(residual.natural_map, sweeps, options, &mut sweep)
        {
            sweep.start_again(problem, hub, interface);
            last = None;
            continue;
        }
        if scale.apply(&mut sweep, hub, sweeps, interface) {
            between.begin_anew(&sweep);
            last = None;
        }
        let regular = if measured < EARLY { options.check_every } else { 2 * options.check_every };
        let expected = expected_sweeps(last, (residual.natural_map, sweeps), options.tolerance);
        last = Some((residual.natural_map, sweeps));
        measured += 1;
        for _ in 0..regular.min(expected).min(options.maximum_sweeps - sweeps) {
            // Not before the first sweep, and not before a measurement: see `accelerate`.
            between.sweep(&mut sweep, sweeps > 0, interface);
            sweeps += 1;
        }
    }
}

/// How many sweeps it takes to the tolerance if it goes on as between the last measurement and this one,
/// residuals each with the sweeps before it: rather a few more than one less, since what is left falls slower
/// than what is gone. At least two: a measurement costs more than one.
fn expected_sweeps(last: Option<(f64, usize)>, (residual, sweeps): (f64, usize), tolerance: f64) -> usize {
    let Some((before, earlier)) = last.filter(|&(before, _)| before > residual) else { return usize::MAX };
    let rate = (before / residual).ln() / (sweeps - earlier) as f64;
    (1.3 * (residual / tolerance).ln() / rate).ceil().max(2.0) as usize
}

/// What happens between sweeps, with its memory.
enum Between {
    Nothing,
    Gradient(ConjugateGradient),
    Momentum(Box<Momentum>),
}

impl Between {
    /// All impulses have changed: nothing that was seen before holds.
    fn begin_anew(&mut self, sweep: &Sweep) {
        match self {
            Between::Nothing => {}
            Between::Gradient(gradient) => *gradient = ConjugateGradient::new(sweep),
            Between::Momentum(momentum) => momentum.begin_anew(),
        }
    }

    /// An extrapolation, if asked for, and a sweep. Collective.
    fn sweep(&mut self, sweep: &mut Sweep, extrapolate: bool, interface: &mut dyn Interface) {
        match self {
            Between::Nothing => sweep.run(interface),
            Between::Gradient(gradient) => {
                if extrapolate {
                    gradient.extrapolate(sweep);
                }
                gradient.sweep(sweep, interface);
            }
            Between::Momentum(momentum) => momentum.sweep(sweep, interface),
        }
    }
}
