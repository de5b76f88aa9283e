//! The coloured Gauss–Seidel sweep (33), four manifolds at a time.
//!
//! Visiting a contact point, with everything else as it stands, in the *projected* law:
//!
//! ```text
//! V     = Hᵀ v                                  relative velocity, contact frame
//! r_n'  = max(0, r_n − (V_n + bias) / W_nn)
//! V_t'  = V_t + W_tn (r_n' − r_n)
//! r_t'  = P_disc(μ r_n')( r_t − V_t' / λ )      λ = largest eigenvalue of W_tt
//! v    += M⁻¹ H (r' − r)
//! ```
//!
//! Its fixed points are exactly the states that satisfy (32): r_n' = r_n gives Signorini's condition and r_t' = r_t, λ being a number
//! and not a matrix, Coulomb's. In the *exact* law the point's own problem is solved to the end instead ([`super::law`]);
//! so it is in the projected law for manifolds with a point whose normal and tangent are so coupled that the above may run away.
//!
//! Layout: the manifolds of a colour stand in blocks of four lanes, each block with as many point rows as its largest manifold.
//! Missing lanes and points are padded by a void body and zero coefficients: they compute zeros. No lane ever sees another one's
//! numbers, so neither the grouping nor the width of the machine's registers changes a bit.

use super::colour::Colours;
use super::hub::{Hub, HubSweep};
use super::lanes::{F64x4, LANES, Vec3x4};
use super::law::{eigen_2x2, solve_contact};
use super::problem::{Inertia, Problem, Twist};
use super::solver::{Interface, LocalLaw};
use crate::geometry::{Mat3, Vec3};
use decomposition::ExactSum;
use rayon::prelude::*;
use std::ops::Range;

/// Four manifolds of one colour.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Block {
    frame: [Vec3x4; 3],
    friction: F64x4,
    slots: [[u32; LANES]; 2],
    rows: Range<u32>,
    /// Lanes whose points are solved exactly in the projected law too, see [`is_strongly_coupled`].
    strong: [bool; LANES],
}

/// One contact point of each of four manifolds.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct Row {
    arms: [Vec3x4; 2],
    impulse: [F64x4; 3],
    bias: F64x4,
    /// 1 / W_nn, 1 / λ: zero in padded lanes.
    step_normal: F64x4,
    step_tangent: F64x4,
    /// W_nn, λ.
    weight_normal: F64x4,
    weight_tangent: F64x4,
    /// W_tn, W_sn.
    coupling: [F64x4; 2],
}

/// Four impulses, contact frame.
pub type Impulse = [F64x4; 3];

/// A stretch of blocks that may run at once.
#[derive(Clone, Debug)]
struct Phase {
    /// Blocks with bodies that other ranks share come first.
    boundary: Range<usize>,
    interior: Range<usize>,
}

pub struct Sweep {
    blocks: Vec<Block>,
    rows: Vec<Row>,
    phases: Vec<Phase>,
    /// Where each row's lane came from in the problem: point index, or `u32::MAX` for padding.
    origin: Vec<[u32; LANES]>,
    /// The problem's, and one void body at the end.
    inertia: Vec<Inertia>,
    pub velocities: Vec<Twist>,
    /// The contacts of machines: after the last colour.
    pub hub: HubSweep,
    visit: Visit,
}

/// What happens at a contact point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visit {
    /// The impulse that is there acts; it does not change.
    Start,
    Projected,
    Exact,
}

const NOTHING: u32 = u32::MAX;
/// Below this many blocks a colour stays on one thread: waking another costs more than it saves. Where the break-even lies was not measured.
const PARALLEL_BLOCKS: usize = 96;

impl Sweep {
    /// `shared` tells whether a slot's body takes part in manifolds of other ranks.
    pub fn new(
        problem: &Problem,
        hub: &Hub,
        colours: &Colours,
        law: LocalLaw,
        shared: impl Fn(u32) -> bool,
    ) -> Self {
        let mut sweep = Self {
            blocks: Vec::with_capacity(problem.manifolds.len() / LANES + colours.count + 1),
            rows: Vec::with_capacity(problem.points.len() / LANES * 5 / 4 + 8),
            phases: Vec::with_capacity(colours.count + 1),
            origin: Vec::new(),
            inertia: problem.inertia.clone(),
            velocities: problem.free_velocity.clone(),
            hub: HubSweep::new(hub),
            visit: match law {
                LocalLaw::Projected => Visit::Projected,
                LocalLaw::Exact => Visit::Exact,
            },
        };
        sweep.inertia.push(Inertia::default());
        sweep.velocities.push(Twist::default());
        let is_shared =
            |manifold: u32| problem.manifolds[manifold as usize].slots.iter().any(|&slot| shared(slot));
        let mut by_colour: Vec<Vec<u32>> = vec![Vec::new(); colours.count];
        for (index, &colour) in colours.of.iter().enumerate() {
            by_colour[colour as usize].push(index as u32);
        }
        for manifolds in &by_colour {
            let (mut boundary, mut interior): (Vec<u32>, Vec<u32>) =
                manifolds.iter().partition(|&&manifold| is_shared(manifold));
            let boundary = sweep.push_blocks(problem, &mut boundary);
            let interior = sweep.push_blocks(problem, &mut interior);
            sweep.phases.push(Phase { boundary, interior });
        }
        sweep
    }

    /// Lets the starting impulses act on the velocities: in the order of a sweep, so that a body shared by ranks adds up its
    /// impulses in one order everywhere.
    pub fn start(&mut self, interface: &mut dyn Interface) {
        self.run_all(Visit::Start, interface);
    }

    /// One visit to every contact point.
    pub fn run(&mut self, interface: &mut dyn Interface) {
        self.run_all(self.visit, interface);
    }

    fn run_all(&mut self, visit: Visit, interface: &mut dyn Interface) {
        for (colour, phase) in self.phases.clone().into_iter().enumerate() {
            self.run_blocks(phase.boundary, visit);
            interface.begin(colour, &self.velocities);
            self.run_blocks(phase.interior, visit);
            interface.finish(colour, &mut self.velocities);
        }
        interface.gather_hub(&self.velocities, &mut self.hub.velocities);
        match visit {
            Visit::Start => self.hub.start(),
            Visit::Projected | Visit::Exact => self.hub.run(),
        }
        interface.scatter_hub(&self.hub.velocities, &mut self.velocities);
    }

    /// The impulses in the problem's order.
    pub fn impulses(&self, points: usize) -> Vec<[f64; 3]> {
        let mut impulses = vec![[0.0; 3]; points];
        for (row, origin) in self.rows.iter().zip(&self.origin) {
            for lane in (0..LANES).filter(|&lane| origin[lane] != NOTHING) {
                impulses[origin[lane] as usize] = std::array::from_fn(|axis| row.impulse[axis].0[lane]);
            }
        }
        impulses
    }

    /// The impulses in the order of the rows.
    pub(super) fn row_impulses(&self) -> impl Iterator<Item = Impulse> {
        self.rows.iter().map(|row| row.impulse)
    }

    /// Adds, for each manifold, the squared change since `before`, weighted with the diagonal of the Delassus operator.
    pub(super) fn add_squared_steps(&self, before: &[Impulse], sum: &mut ExactSum) {
        for block in &self.blocks {
            let range = block.rows.start as usize..block.rows.end as usize;
            let mut square = F64x4::default();
            for (row, before) in self.rows[range.clone()].iter().zip(&before[range]) {
                let change: Impulse = std::array::from_fn(|axis| row.impulse[axis] - before[axis]);
                square += change[0] * change[0] * row.weight_normal
                    + (change[1] * change[1] + change[2] * change[2]) * row.weight_tangent;
            }
            square.0.into_iter().filter(|&square| square != 0.0).for_each(|square| sum.add(square));
        }
        self.hub.add_squared_steps(sum);
    }

    /// `r ← r + β p`, `p ← β p + (r − before)`.
    pub(super) fn move_impulses(&mut self, beta: f64, before: &[Impulse], direction: &mut [Impulse]) {
        let factor = F64x4([beta; LANES]);
        for ((row, before), direction) in self.rows.iter_mut().zip(before).zip(direction) {
            for axis in 0..3 {
                let step = row.impulse[axis] - before[axis];
                let carried = factor * direction[axis];
                row.impulse[axis] += carried;
                direction[axis] = carried + step;
            }
        }
        self.hub.extrapolate(beta);
    }

    fn push_blocks(&mut self, problem: &Problem, manifolds: &mut [u32]) -> Range<usize> {
        let first = self.blocks.len();
        let count = |manifold: u32| problem.points_of(manifold as usize).len();
        // Manifolds with equally many points share blocks, so that little is padded.
        manifolds.sort_by_key(|&manifold| (count(manifold), manifold));
        for group in manifolds.chunks(LANES) {
            self.push_block(problem, group);
        }
        first..self.blocks.len()
    }

    fn push_block(&mut self, problem: &Problem, group: &[u32]) {
        let void = problem.inertia.len() as u32;
        let first_row = self.rows.len();
        let depth =
            group.iter().map(|&manifold| problem.points_of(manifold as usize).len()).max().unwrap_or(0);
        self.rows.resize(first_row + depth, Row::default());
        self.origin.resize(first_row + depth, [NOTHING; LANES]);
        let mut block = Block {
            frame: Default::default(),
            friction: F64x4::default(),
            slots: [[void; LANES]; 2],
            rows: first_row as u32..(first_row + depth) as u32,
            strong: [false; LANES],
        };
        for (lane, &index) in group.iter().enumerate() {
            let manifold = &problem.manifolds[index as usize];
            for (axis, direction) in manifold.frame.iter().enumerate() {
                block.frame[axis].set(lane, direction.as_ref());
            }
            block.friction.0[lane] = manifold.friction;
            for side in 0..2 {
                block.slots[side][lane] = manifold.slots[side];
            }
            for (row, place) in (first_row..).zip(problem.points_of(index as usize)) {
                let point = &problem.points[place];
                self.origin[row][lane] = place as u32;
                let delassus = problem.delassus(manifold, point);
                block.strong[lane] |= is_strongly_coupled(&delassus, manifold.friction);
                self.rows[row].set(lane, point, &delassus);
            }
        }
        self.blocks.push(block);
    }

    fn run_blocks(&mut self, range: Range<usize>, visit: Visit) {
        let blocks = &self.blocks[range];
        let Some(first) = blocks.first() else { return };
        let rows_start = first.rows.start as usize;
        let rows_end = blocks.last().map_or(rows_start, |block| block.rows.end as usize);
        let shared = Shared {
            velocities: self.velocities.as_mut_ptr(),
            rows: self.rows[..rows_end].as_mut_ptr(),
            inertia: &self.inertia,
            visit,
        };
        let threads = rayon::current_num_threads();
        if threads == 1 || blocks.len() < PARALLEL_BLOCKS {
            // SAFETY: one thread, and `self` is borrowed mutably.
            unsafe { visit_all(blocks, &shared) };
        } else {
            let share = blocks.len().div_ceil(threads);
            blocks.par_chunks(share).for_each(|chunk| {
                // SAFETY: blocks of one colour share no movable body (only those are written) and no row.
                unsafe { visit_all(chunk, &shared) }
            });
        }
    }
}

impl Row {
    fn set(&mut self, lane: usize, point: &super::problem::Point, w: &Mat3) {
        for side in 0..2 {
            self.arms[side].set(lane, point.arms[side].as_ref());
        }
        for axis in 0..3 {
            self.impulse[axis].0[lane] = point.impulse[axis];
        }
        self.bias.0[lane] = point.bias;
        let lambda = eigen_2x2(w[(1, 1)], w[(1, 2)], w[(2, 2)]).0[0];
        (self.weight_normal.0[lane], self.weight_tangent.0[lane]) = (w[(0, 0)], lambda);
        (self.step_normal.0[lane], self.step_tangent.0[lane]) = (1.0 / w[(0, 0)], 1.0 / lambda);
        self.coupling[0].0[lane] = w[(1, 0)];
        self.coupling[1].0[lane] = w[(2, 0)];
    }
}

/// What threads work on together.
struct Shared<'a> {
    velocities: *mut Twist,
    rows: *mut Row,
    inertia: &'a [Inertia],
    visit: Visit,
}

// SAFETY: see `run_blocks`: threads write disjoint velocities and rows.
unsafe impl Sync for Shared<'_> {}

/// # Safety
/// No other thread touches the movable bodies or the rows of `blocks` meanwhile.
unsafe fn visit_all(blocks: &[Block], shared: &Shared) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the feature is there; the rest as for this function.
        return unsafe { visit_all_avx2(blocks, shared) };
    }
    // SAFETY: as for this function.
    unsafe { visit_all_any(blocks, shared) }
}

/// The same code, compiled for wider registers. It does not fuse multiplications with additions: the bits stay the same.
///
/// # Safety
/// As `visit_all`, and the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn visit_all_avx2(blocks: &[Block], shared: &Shared) {
    // SAFETY: as for this function.
    unsafe { visit_all_any(blocks, shared) }
}

#[inline(always)]
unsafe fn visit_all_any(blocks: &[Block], shared: &Shared) {
    for block in blocks {
        // SAFETY: rows of different blocks are disjoint, and `block.rows` lies inside the array.
        let rows = unsafe {
            std::slice::from_raw_parts_mut(shared.rows.add(block.rows.start as usize), block.rows.len())
        };
        // SAFETY: as for this function.
        unsafe { visit(block, rows, shared) };
    }
}

/// Two bodies of each lane, in registers.
struct Side {
    linear: Vec3x4,
    angular: Vec3x4,
    inverse_mass: F64x4,
    inverse_inertia: [F64x4; 6],
}

impl Side {
    #[inline(always)]
    unsafe fn load(slots: &[u32; LANES], shared: &Shared) -> Self {
        // SAFETY: slots are places in both arrays; nobody writes these velocities meanwhile.
        let twists: [&Twist; LANES] = slots.map(|slot| unsafe { &*shared.velocities.add(slot as usize) });
        let inertias: [&Inertia; LANES] = slots.map(|slot| &shared.inertia[slot as usize]);
        let gather = |get: &dyn Fn(usize) -> f64| F64x4(std::array::from_fn(get));
        Self {
            linear: Vec3x4(std::array::from_fn(|axis| gather(&|lane| twists[lane].linear[axis]))),
            angular: Vec3x4(std::array::from_fn(|axis| gather(&|lane| twists[lane].angular[axis]))),
            inverse_mass: gather(&|lane| inertias[lane].inverse_mass),
            inverse_inertia: std::array::from_fn(|k| gather(&|lane| inertias[lane].inverse_inertia[k])),
        }
    }

    #[inline(always)]
    unsafe fn store(&self, slots: &[u32; LANES], shared: &Shared) {
        for (lane, &slot) in slots.iter().enumerate() {
            if self.inverse_mass.0[lane] > 0.0 {
                // SAFETY: a movable body appears once in a colour, so this thread alone writes it.
                let twist = unsafe { &mut *shared.velocities.add(slot as usize) };
                for axis in 0..3 {
                    twist.linear[axis] = self.linear.0[axis].0[lane];
                    twist.angular[axis] = self.angular.0[axis].0[lane];
                }
            }
        }
    }

    #[inline(always)]
    fn velocity_at(&self, arm: Vec3x4) -> Vec3x4 {
        self.linear + self.angular.cross(arm)
    }

    /// `M⁻¹` on an impulse at `arm`: the change of linear and angular velocity.
    #[inline(always)]
    fn response(&self, arm: Vec3x4, impulse: Vec3x4) -> (Vec3x4, Vec3x4) {
        let torque = arm.cross(impulse).0;
        let [xx, xy, xz, yy, yz, zz] = self.inverse_inertia;
        let row = |a, b, c| a * torque[0] + b * torque[1] + c * torque[2];
        (impulse.scaled(self.inverse_mass), Vec3x4([row(xx, xy, xz), row(xy, yy, yz), row(xz, yz, zz)]))
    }
}

#[inline(always)]
unsafe fn visit(block: &Block, rows: &mut [Row], shared: &Shared) {
    // SAFETY: as for `visit_all`.
    let (mut a, mut b) =
        unsafe { (Side::load(&block.slots[0], shared), Side::load(&block.slots[1], shared)) };
    for row in rows {
        let relative = b.velocity_at(row.arms[1]) - a.velocity_at(row.arms[0]);
        let velocity = [
            block.frame[0].dot(relative) + row.bias,
            block.frame[1].dot(relative),
            block.frame[2].dot(relative),
        ];
        let impulse = match shared.visit {
            Visit::Start => row.impulse,
            Visit::Projected if block.strong == [false; LANES] => projected(row, &velocity, block.friction),
            Visit::Projected => {
                let all = projected(row, &velocity, block.friction);
                exact(row, &velocity, block, shared, block.strong, all)
            }
            Visit::Exact => exact(row, &velocity, block, shared, [true; LANES], row.impulse),
        };
        let change: [F64x4; 3] = match shared.visit {
            Visit::Start => impulse,
            _ => std::array::from_fn(|axis| impulse[axis] - row.impulse[axis]),
        };
        row.impulse = impulse;
        let push = block.frame[0].scaled(change[0])
            + block.frame[1].scaled(change[1])
            + block.frame[2].scaled(change[2]);
        let (linear, angular) = a.response(row.arms[0], push);
        (a.linear, a.angular) = (a.linear - linear, a.angular - angular);
        let (linear, angular) = b.response(row.arms[1], push);
        (b.linear, b.angular) = (b.linear + linear, b.angular + angular);
    }
    // SAFETY: as for `visit_all`.
    unsafe {
        a.store(&block.slots[0], shared);
        b.store(&block.slots[1], shared);
    }
}

#[inline(always)]
fn projected(row: &Row, velocity: &[F64x4; 3], friction: F64x4) -> [F64x4; 3] {
    let normal = (row.impulse[0] - velocity[0] * row.step_normal).positive_part();
    let change = normal - row.impulse[0];
    let t = row.impulse[1] - (velocity[1] + row.coupling[0] * change) * row.step_tangent;
    let s = row.impulse[2] - (velocity[2] + row.coupling[1] * change) * row.step_tangent;
    let factor = (t * t + s * s).shrink_to(friction * normal);
    [normal, t * factor, s * factor]
}

/// Sliding, a projected visit feeds `W_nt r_t / W_nn` with ‖r_t‖ = μ r_n back into r_n: a gain of `μ ‖W_nt‖ / W_nn` at most. From 1 on
/// it may run away or circle for ever, as on Painlevé's rod; 0.9 would still take 200 visits for nine digits.
fn is_strongly_coupled(delassus: &Mat3, friction: f64) -> bool {
    let coupling = (delassus[(1, 0)].powi(2) + delassus[(2, 0)].powi(2)).sqrt();
    friction * coupling > 0.9 * delassus[(0, 0)]
}

/// Lane by lane, of those asked for: the local problem has cases. Rebuilds the Delassus block from the bodies.
#[inline(never)]
fn exact(
    row: &Row,
    velocity: &[F64x4; 3],
    block: &Block,
    shared: &Shared,
    lanes: [bool; LANES],
    mut impulse: [F64x4; 3],
) -> [F64x4; 3] {
    for lane in (0..LANES).filter(|&lane| lanes[lane] && row.step_normal.0[lane] != 0.0) {
        let pick = |vector: &Vec3x4| Vec3::from_fn(|axis, _| vector.0[axis].0[lane]);
        let frame = Mat3::from_columns(&[0, 1, 2].map(|axis| pick(&block.frame[axis])));
        let mut world = Mat3::zeros();
        for side in 0..2 {
            let inertia = &shared.inertia[block.slots[side][lane] as usize];
            let cross = pick(&row.arms[side]).cross_matrix();
            world += Mat3::identity() * inertia.inverse_mass - cross * inertia.inverse_tensor() * cross;
        }
        let delassus = frame.transpose() * world * frame;
        let old = Vec3::from_fn(|axis, _| row.impulse[axis].0[lane]);
        let free = Vec3::from_fn(|axis, _| velocity[axis].0[lane]) - delassus * old;
        let new = solve_contact(&delassus, &free, block.friction.0[lane]);
        for axis in 0..3 {
            impulse[axis].0[lane] = new[axis];
        }
    }
    impulse
}
