//! The coloured Gauss–Seidel sweep (33): colour after colour, and last the contacts of machines.
//!
//! The manifolds of a colour stand in blocks of eight lanes ([`super::block`]), which [`super::kernel`]
//! visits. No lane ever sees another one's numbers, so neither the grouping nor the width of the machine's
//! registers changes a bit.

use super::block::{Block, Blocks, NOTHING, Phase, Row, by_line};
use super::colour::Colours;
use super::hub::{Hub, HubState, HubSweep};
use super::kernel::{self, Ahead, MeasuredRows, Shared, SharedWeights, Terms, Visit};
use super::problem::{Inertia, Problem, Twist};
use super::residual::{Grids, Measure, Partial};
use super::solver::{Interface, LocalLaw, Velocities};
use super::team::{Share, Team};
use crate::lanes::{F64x8, LANES};
use decomposition::ExactSum;
use std::ops::Range;

/// Eight impulses, contact frame.
pub type Impulse = [F64x8; 3];

pub struct Sweep<'t> {
    blocks: Blocks,
    /// By line, and one void body at the end.
    pub(super) velocities: Vec<Twist>,
    /// The same without any impulse.
    free: Vec<Twist>,
    /// The contacts of machines: after the last colour.
    pub hub: HubSweep,
    visit: Visit,
    team: &'t Team,
}

/// Below this many blocks a colour stays on one thread: the caches of another are as far away as the work is
/// long.
pub const PARALLEL_BLOCKS: usize = 16;

/// Below this many bodies what happens between sweeps stays on one thread.
const PARALLEL_BODIES: usize = 1000;

/// Blocks whose terms of the residual stay in the nearest cache until they are added up.
const MEASURED_TOGETHER: usize = 32;

/// Blocks between two queries for messages while ranks wait for each other: some microseconds, as long as a
/// message takes.
const AHEAD_BLOCKS: usize = 8;

impl<'t> Sweep<'t> {
    /// `shared`: whether a slot's body takes part in manifolds of other ranks.
    pub fn new(
        problem: &Problem,
        hub: &Hub,
        colours: &Colours,
        law: LocalLaw,
        shared: impl Fn(u32) -> bool + Sync,
        team: &'t Team,
    ) -> Self {
        Self::of(Blocks::new(problem, colours, shared), problem, hub, law, team)
    }

    /// With the blocks of `problem`.
    pub fn of(blocks: Blocks, problem: &Problem, hub: &Hub, law: LocalLaw, team: &'t Team) -> Self {
        let velocities = by_line(&problem.free_velocity, &blocks.lines);
        let smooth = problem.manifolds.iter().all(|manifold| manifold.friction == 0.0)
            && problem.points.iter().all(|point| point.impulse[1..] == [0.0; 2]);
        let mut sweep = Self {
            blocks,
            free: velocities.clone(),
            velocities,
            hub: HubSweep::new(hub),
            visit: match law {
                LocalLaw::Projected if smooth => Visit::Frictionless,
                LocalLaw::Projected => Visit::Projected,
                LocalLaw::Exact => Visit::Exact,
            },
            team,
        };
        sweep.note_free();
        sweep
    }

    /// Keeps what measurements want to know of the free velocities.
    fn note_free(&mut self) {
        let Blocks { blocks, rows, stretches, weights, phases, .. } = &mut self.blocks;
        let (rows, stretches, velocities) = (&rows[..], &stretches[..], &self.velocities[..]);
        let weights = SharedWeights(weights.as_mut_ptr());
        // SAFETY: slots and rows were made for these arrays, and no two blocks share a row.
        let note = |blocks: &[Block]| unsafe {
            kernel::note_free_all(blocks, rows, stretches, weights, velocities);
        };
        if self.team.size() == 1 || blocks.len() < PARALLEL_BLOCKS {
            note(blocks);
        } else {
            self.team.run(&|share| of_each_colour(share, blocks, phases).for_each(note));
        }
    }

    /// Lets the starting impulses act on the velocities: in the order of a sweep, so that a body shared by
    /// ranks adds up its impulses in one order everywhere.
    pub fn start(&mut self, interface: &mut dyn Interface) {
        self.run_all(Visit::Start, interface);
    }

    /// Begins again, from the starting impulses of the same problem.
    pub(super) fn start_again(&mut self, problem: &Problem, hub: &Hub, interface: &mut dyn Interface) {
        self.velocities.copy_from_slice(&self.free);
        self.blocks.set_points(problem);
        self.hub = HubSweep::new(hub);
        self.start(interface);
    }

    /// One visit to every contact point.
    pub fn run(&mut self, interface: &mut dyn Interface) {
        self.run_all(self.visit, interface);
    }

    fn run_all(&mut self, visit: Visit, interface: &mut dyn Interface) {
        let mut begun = self.blocks.phases.first().map_or(0, |first| first.interior.start);
        for colour in 0..self.blocks.phases.len() {
            let Phase { boundary, interior } = self.blocks.phases[colour].clone();
            self.run_blocks(boundary, visit);
            interface.begin(colour, &self.by_slot());
            self.run_blocks(begun..interior.end, visit);
            begun = self.work_ahead(colour, visit, interface);
            interface.finish(colour, &mut self.by_slot());
        }
        let Self { blocks, velocities, hub, .. } = self;
        let mut velocities = Velocities { twists: velocities, lines: &blocks.lines };
        interface.gather_hub(&velocities, &mut hub.velocities);
        match visit {
            Visit::Start => hub.start(),
            Visit::Projected | Visit::Frictionless | Visit::Exact | Visit::Momentum(..) => hub.run(),
        }
        interface.scatter_hub(&hub.velocities, &mut velocities);
        interface.end_sweep(&velocities);
    }

    pub fn by_slot(&mut self) -> Velocities<'_> {
        Velocities { twists: &mut self.velocities, lines: &self.blocks.lines }
    }

    pub fn velocities_by_slot(&self) -> Vec<Twist> {
        self.blocks.lines.iter().map(|&line| self.velocities[line as usize]).collect()
    }

    /// Whether the bodies that nothing was to change are as they were.
    pub(super) fn idle_have_stayed(&self, problem: &Problem) -> bool {
        let Blocks { lines, idle, .. } = &self.blocks;
        let bits = |twist: &Twist| [twist.linear, twist.angular].map(|part| part.map(f64::to_bits));
        let stays = |(&line, free): (&u32, _)| {
            (line as usize) < *idle || bits(&self.velocities[line as usize]) == bits(free)
        };
        lines.iter().zip(&problem.free_velocity).all(stays)
    }

    /// By line: the velocities that contacts change.
    fn changing(&self) -> &[Twist] {
        &self.velocities[..self.blocks.idle]
    }

    /// Instead of waiting for other ranks, visits the interior of the next colour: it touches no body that
    /// they have changed. Returns the first of its blocks that is left.
    fn work_ahead(&mut self, colour: usize, visit: Visit, interface: &mut dyn Interface) -> usize {
        let Some(Phase { interior, .. }) = self.blocks.phases.get(colour + 1).cloned() else { return 0 };
        let mut next = interior.start;
        while next < interior.end && !interface.has_arrived(colour) {
            let end = interior.end.min(next + AHEAD_BLOCKS);
            self.run_blocks(next..end, visit);
            next = end;
        }
        next
    }

    fn run_blocks(&mut self, range: Range<usize>, visit: Visit) {
        let blocks = &self.blocks.blocks[range];
        if blocks.is_empty() {
            return;
        }
        let shared = Shared {
            velocities: self.velocities.as_mut_ptr(),
            inertia: self.blocks.inertia.as_ptr(),
            rows: self.blocks.rows.as_mut_ptr(),
            stretches: self.blocks.stretches.as_ptr(),
        };
        if self.team.size() == 1 || blocks.len() < PARALLEL_BLOCKS {
            // SAFETY: one thread, and `self` is borrowed mutably; slots and rows were made for these arrays.
            unsafe { kernel::visit_all(blocks, &shared, visit) };
        } else {
            // SAFETY: blocks of one colour share no movable body (only those are written) and no row.
            self.team.share(blocks, |part| unsafe { kernel::visit_all(part, &shared, visit) });
        }
    }

    /// The terms of the residual of this rank's points, machines included. For
    /// [`Ruler`](super::residual::Ruler).
    pub(super) fn measure(&self, measure: Measure, grids: Option<&Grids>) -> Partial {
        let scaled = measure == Measure::Scaled;
        let Blocks { blocks, rows, stretches, weights, phases, .. } = &self.blocks;
        let (rows, velocities) = (MeasuredRows { rows, stretches, weights }, &self.velocities[..]);
        let measured = |lists: &mut dyn Iterator<Item = &[Block]>| {
            let mut partial = Partial::new(grids);
            let mut terms: Vec<Terms> = Vec::with_capacity(MEASURED_TOGETHER);
            for blocks in lists.flat_map(|blocks| blocks.chunks(MEASURED_TOGETHER)) {
                // SAFETY: slots, rows and weights were made for these arrays.
                unsafe {
                    kernel::measure_all(blocks, &rows, velocities, scaled, &mut terms);
                }
                partial.add_lanes(&terms);
                terms.clear();
            }
            partial
        };
        let mut partial = if self.team.size() == 1 || blocks.len() < PARALLEL_BLOCKS {
            measured(&mut std::iter::once(&blocks[..]))
        } else {
            let mut all = Partial::new(grids);
            let parts = self.team.gather(|share| measured(&mut of_each_colour(share, blocks, phases)));
            parts.for_each(|part| all.merge(&part));
            all
        };
        self.hub.measure(measure, &mut partial);
        partial
    }

    /// Adds `r · q̂` and `r · W r` of this rank's points: see [`scale`](super::scale).
    pub(super) fn add_scale_terms(&self, sums: &mut [ExactSum; 2]) {
        let Blocks { blocks, rows, stretches, weights, .. } = &self.blocks;
        let rows = MeasuredRows { rows, stretches, weights };
        let mut terms = Vec::with_capacity(blocks.len());
        // SAFETY: slots and rows were made for these arrays.
        unsafe { kernel::scale_all(blocks, &rows, &self.velocities, &self.free, &mut terms) };
        for terms in &terms {
            for (sum, term) in sums.iter_mut().zip(terms) {
                term.0.into_iter().filter(|&term| term != 0.0).for_each(|term| sum.add(term));
            }
        }
        self.hub.add_scale_terms(sums);
    }

    /// All impulses by a factor; velocities follow. `hub` is the one of this problem.
    pub(super) fn take_by(&mut self, factor: f64, hub: &Hub) {
        let lanes = F64x8::splat(factor);
        for impulse in self.blocks.rows.iter_mut().flat_map(|row| &mut row.impulse) {
            *impulse = *impulse * lanes;
        }
        let idle = self.blocks.idle;
        for (twist, free) in self.velocities[..idle].iter_mut().zip(&self.free) {
            twist.take_from(free, factor);
        }
        self.hub.take_by(factor, hub);
    }

    /// What a sweep reads and writes at least, if nothing stays in a cache: blocks, rows, and the velocities
    /// and masses of the lanes' bodies.
    pub fn bytes_per_sweep(&self) -> usize {
        let Blocks { blocks, rows, .. } = &self.blocks;
        let (block, row, impulse) = (size_of::<Block>(), size_of::<Row>(), size_of::<Impulse>());
        let bodies = 2 * LANES * (2 * size_of::<Twist>() + size_of::<Inertia>());
        blocks.len() * (block + bodies) + rows.len() * (row + impulse)
    }

    pub fn into_blocks(self) -> Blocks {
        self.blocks
    }

    /// The impulses in the problem's order.
    pub fn impulses(&self, points: usize) -> Vec<[f64; 3]> {
        let mut impulses = vec![[0.0; 3]; points];
        for (row, origin) in self.blocks.rows.iter().zip(&self.blocks.origin) {
            for lane in (0..LANES).filter(|&lane| origin[lane] != NOTHING) {
                impulses[origin[lane] as usize] = std::array::from_fn(|axis| row.impulse[axis].0[lane]);
            }
        }
        impulses
    }

    /// The impulses in the order of the rows.
    pub(super) fn row_impulses(&self) -> impl Iterator<Item = Impulse> {
        self.blocks.rows.iter().map(|row| row.impulse)
    }

    /// Adds, for each manifold, the squared change since `before`, weighted with the diagonal of the Delassus
    /// operator.
    pub(super) fn add_squared_steps(&self, before: &[Impulse], sum: &mut ExactSum) {
        let Blocks { blocks, rows, weights, .. } = &self.blocks;
        for block in blocks {
            let range = block.first_row as usize..block.end_row as usize;
            let mut square = F64x8::default();
            for place in range {
                let (row, before, weights): (&Row, _, _) = (&rows[place], &before[place], &weights[place]);
                let change: Impulse = std::array::from_fn(|axis| row.impulse[axis] - before[axis]);
                square += change[0] * change[0] * weights.normal
                    + (change[1] * change[1] + change[2] * change[2]) * weights.tangent;
            }
            square.0.into_iter().filter(|&square| square != 0.0).for_each(|square| sum.add(square));
        }
        self.hub.add_squared_steps(sum);
    }

    /// `r ← r + β p`, `p ← β p + (r − before)`.
    pub(super) fn move_impulses(&mut self, beta: f64, before: &[Impulse], direction: &mut [Impulse]) {
        let factor = F64x8::splat(beta);
        for ((row, before), direction) in self.blocks.rows.iter_mut().zip(before).zip(direction) {
            for axis in 0..3 {
                let step = row.impulse[axis] - before[axis];
                let carried = factor * direction[axis];
                row.impulse[axis] += carried;
                direction[axis] = carried + step;
            }
        }
        self.hub.extrapolate(beta);
    }

    /// One visit to every contact point, from where `memory` says that the way goes on; what it says next is
    /// that `plan` be done.
    pub(super) fn run_ahead(&mut self, plan: Plan, memory: &mut Memory, interface: &mut dyn Interface) {
        let (threads, due) = (self.team.size(), std::mem::replace(&mut memory.plan, plan));
        let (last, start) = (&mut memory.last[..], &mut memory.start[..]);
        let velocities = &mut self.velocities[..self.blocks.idle];
        if threads == 1 || velocities.len() < PARALLEL_BODIES {
            kernel::extrapolate_velocities(velocities, last, start, &due);
        } else {
            let share = velocities.len().div_ceil(threads);
            let memory = last.chunks_mut(share).zip(start.chunks_mut(share));
            let bodies = velocities.chunks_mut(share).zip(memory);
            self.team.each(bodies.collect(), |(velocities, (last, start))| {
                kernel::extrapolate_velocities(velocities, last, start, &due);
            });
        }
        self.hub.add_momentum(&due);
        let ahead = Ahead { plan, stay: due == Plan::STAY, directions: memory.directions.as_mut_ptr() };
        self.run_all(Visit::Momentum(ahead, self.visit == Visit::Exact), interface);
    }
}

/// What a part of a sweep's rounds visits, colour after colour: where cores have no cache in common, threads
/// that measured other points than they visit took a fifth longer for a solve.
fn of_each_colour<'a>(
    share: Share,
    blocks: &'a [Block],
    phases: &'a [Phase],
) -> impl Iterator<Item = &'a [Block]> {
    let ranges = phases.iter().flat_map(|Phase { boundary, interior }| [boundary.clone(), interior.clone()]);
    ranges.map(move |range| share.of(&blocks[range]))
}

/// The unknowns.
#[derive(Default)]
pub(super) struct State {
    impulses: Vec<Impulse>,
    velocities: Vec<Twist>,
    hub: HubState,
}

impl Sweep<'_> {
    /// Into a state whose room is used again.
    pub(super) fn save(&self, state: &mut State) {
        state.impulses.clear();
        state.impulses.extend(self.row_impulses());
        state.velocities.clear();
        state.velocities.extend_from_slice(self.changing());
        state.hub = self.hub.state();
    }

    pub(super) fn set_state(&mut self, state: &State) {
        for (row, impulse) in self.blocks.rows.iter_mut().zip(&state.impulses) {
            row.impulse = *impulse;
        }
        self.velocities[..self.blocks.idle].copy_from_slice(&state.velocities);
        self.hub.set_state(&state.hub);
    }
}

/// How the way goes on from `r`, the last sweep having begun at `y` and the one before having ended at
/// `last`: to `r + onward (r − last) + further (r − y)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    pub onward: f64,
    pub further: f64,
}

impl Plan {
    pub const STAY: Plan = Plan { onward: 0.0, further: 0.0 };

    /// Takes `value` on its way. By differences: a rounding of the values themselves in each of thousands of
    /// sweeps could be seen.
    #[inline(always)]
    pub fn go_on(&self, value: &mut f64, last: &mut f64, start: &mut f64) {
        let now = *value;
        *value += self.onward * (now - *last) + self.further * (now - *start);
        (*last, *start) = (now, *value);
    }
}

/// What momentum remembers from sweep to sweep.
pub(super) struct Memory {
    /// By row: how far the impulses go on, by the plan.
    directions: Vec<Impulse>,
    /// By line, as far as contacts change them: the velocities when the sweep before the last one had ended,
    /// and where the last one began.
    last: Vec<Twist>,
    start: Vec<Twist>,
    plan: Plan,
}

impl Memory {
    pub fn of(sweep: &mut Sweep) -> Self {
        sweep.hub.remember();
        Self {
            directions: vec![Default::default(); sweep.blocks.rows.len()],
            last: sweep.changing().to_vec(),
            start: sweep.changing().to_vec(),
            plan: Plan::STAY,
        }
    }

    /// The next sweep begins where the last one has ended.
    pub fn stay(&mut self) {
        self.plan = Plan::STAY;
    }
}
