//! Manifolds of one colour, eight to a block, as the kernel reads them.
//!
//! Each block has as many rows as its largest manifold has points. Missing lanes and points are padded by a
//! void body and zero coefficients: they compute zeros. Blocks hold what manifolds have, rows what changes
//! from point to point; both are read once a sweep, in the order of memory. What bodies have is gathered: a
//! body has some six manifolds, and stays in a cache from one to the next.
//!
//! | | bytes |
//! | --- | --- |
//! | block of eight manifolds | 640 |
//! | row of eight points | 896 |
//! | masses of a body | 64 |
//! | velocity of a body, read and written | 64 |
//!
//! Masses stood in the blocks once, which then had 1728 bytes: from some 50,000 points on memory is what a
//! sweep waits for.

use super::colour::Colours;
use super::kernel;
use super::problem::{IDLE, Inertia, Problem};
use crate::lanes::{F64x8, LANES, Lanes, Vectors};
use crate::law::Kind;
use crate::law::coulomb::Steps;
use rayon::prelude::*;
use std::ops::Range;

/// Eight manifolds of one colour.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct Block {
    /// n and t of the contact frame; s is their product.
    pub axes: [Vectors<LANES>; 2],
    pub friction: F64x8,
    /// C, kg⁻¹.
    pub compliance: F64x8,
    /// Of all eight.
    pub kind: Kind,
    /// Of both sides' bodies, in the lists by line.
    pub lines: [[u32; LANES]; 2],
    pub first_row: u32,
    pub end_row: u32,
    /// Bit by lane: bodies that impulses move.
    pub movable: [u8; 2],
    /// Bit by lane: points are solved exactly in the projected law too, see
    /// [`is_strongly_coupled`](crate::law::coulomb::is_strongly_coupled).
    pub strong: u8,
}

/// One contact point of each of eight manifolds.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Row {
    pub arms: [Vectors<LANES>; 2],
    pub impulse: [F64x8; 3],
    pub bias: F64x8,
    /// 1 / W_nn, 1 / λ: zero in padded lanes.
    pub step_normal: F64x8,
    pub step_tangent: F64x8,
    /// W_tn, W_sn.
    pub coupling: [F64x8; 2],
}

/// How the points of a row give way in the tangent plane: beside the rows, since few problems have any.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct StretchRow {
    pub bias: [F64x8; 2],
    pub compliance: F64x8,
}

/// What only measurements ask for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weights {
    /// W_nn, λ.
    pub normal: F64x8,
    pub tangent: F64x8,
    /// q_n and ‖q‖²: the relative velocity if no impulse acted.
    pub free_normal: F64x8,
    pub free_square: F64x8,
}

/// Stretches of blocks that may run at once.
#[derive(Clone, Debug, Default)]
pub struct Phase {
    /// Blocks with bodies that other ranks share come first.
    pub boundary: Range<usize>,
    pub interior: Range<usize>,
}

#[derive(Default)]
pub struct Blocks {
    /// By slot: its line in the lists of bodies, which stand by place.
    pub lines: Vec<u32>,
    /// From this line on bodies stay as they are.
    pub idle: usize,
    /// By line, and one void body at the end.
    pub inertia: Vec<Inertia>,
    pub blocks: Vec<Block>,
    pub rows: Vec<Row>,
    /// One for each row, or none at all if no contact is stretched.
    pub stretches: Vec<StretchRow>,
    pub weights: Vec<Weights>,
    /// By colour.
    pub phases: Vec<Phase>,
    /// Where each row's lane came from in the problem: point index, or [`NOTHING`] for padding.
    pub origin: Vec<[u32; LANES]>,
}

pub const NOTHING: u32 = u32::MAX;

/// Blocks for one task of the parallel loop that fills them.
const CHUNK: usize = 32;

impl Blocks {
    /// `shared`: whether a slot's body takes part in manifolds of other ranks. The void body is the slot
    /// after the last.
    pub fn new(problem: &Problem, colours: &Colours, shared: impl Fn(u32) -> bool + Sync) -> Self {
        let lines = lines(problem);
        let inertia = by_line(&problem.inertia, &lines);
        let idle = problem.inertia.len() - problem.places.iter().filter(|&&place| place == IDLE).count();
        let mut of = Self { lines, idle, inertia, ..Default::default() };
        let groups = of.arrange(problem, colours, shared);
        let rows = of.blocks.last().map_or(0, |block| block.end_row as usize);
        empty(&mut of.rows, rows, Row::default());
        empty(&mut of.weights, rows, Weights::default());
        empty(&mut of.origin, rows, [NOTHING; LANES]);
        let (mut rows, mut weights, mut origin) = (&mut of.rows[..], &mut of.weights[..], &mut of.origin[..]);
        let mut tasks = Vec::with_capacity(groups.len() / CHUNK + 1);
        for (groups, blocks) in groups.chunks(CHUNK).zip(of.blocks.chunks_mut(CHUNK)) {
            let count = blocks.last().map_or(0, |last| last.end_row as usize) - blocks[0].first_row as usize;
            let part;
            ((part, rows), weights, origin) = {
                let (own_rows, rows) = std::mem::take(&mut rows).split_at_mut(count);
                let (own_weights, weights) = std::mem::take(&mut weights).split_at_mut(count);
                let (own_origin, origin) = std::mem::take(&mut origin).split_at_mut(count);
                (((own_rows, own_weights, own_origin), rows), weights, origin)
            };
            tasks.push((groups, blocks, part));
        }
        let (inertia, lines) = (&of.inertia[..], &of.lines[..]);
        tasks.into_par_iter().for_each(|(groups, blocks, (rows, weights, origin))| {
            let first = blocks[0].first_row as usize;
            for (group, block) in groups.iter().zip(&mut *blocks) {
                let range = block.first_row as usize - first..block.end_row as usize - first;
                block.fill(problem, lines, group, &mut rows[range.clone()], &mut origin[range]);
            }
            for (weights, origin) in weights.iter_mut().zip(&*origin) {
                weights.normal = present(origin);
            }
            kernel::prepare(blocks, rows, weights, inertia);
        });
        of.set_stretches(problem);
        of
    }

    fn set_stretches(&mut self, problem: &Problem) {
        if problem.stretches.is_empty() {
            return;
        }
        empty(&mut self.stretches, self.rows.len(), StretchRow::default());
        let rows = self.rows.iter_mut().zip(&mut self.weights).zip(&mut self.stretches);
        for (((row, weights), stretches), origin) in rows.zip(&self.origin) {
            for lane in (0..LANES).filter(|&lane| origin[lane] != NOTHING) {
                let stretch = &problem.stretches[origin[lane] as usize];
                if stretch.compliance > 0.0 {
                    stretches.compliance.0[lane] = stretch.compliance;
                    (0..2).for_each(|axis| stretches.bias[axis].0[lane] = stretch.bias[axis]);
                    let lambda = weights.tangent.0[lane] + stretch.compliance;
                    (weights.tangent.0[lane], row.step_tangent.0[lane]) = (lambda, 1.0 / lambda);
                }
            }
        }
    }

    /// The same contacts without friction and compliance, from the impulses and with the biases of `problem`.
    pub fn smooth(mut self, problem: &Problem) -> Self {
        let rigid =
            self.stretches.is_empty() && self.blocks.iter().all(|block| block.compliance == F64x8::default());
        for block in &mut self.blocks {
            (block.friction, block.compliance) = (F64x8::default(), F64x8::default());
            block.kind = Kind::Coulomb;
        }
        self.stretches.clear();
        if !rigid {
            self.prepare();
        }
        self.set_points(problem);
        self
    }

    /// The coefficients of all rows anew.
    fn prepare(&mut self) {
        for (weights, origin) in self.weights.iter_mut().zip(&self.origin) {
            weights.normal = present(origin);
        }
        kernel::prepare(&mut self.blocks, &mut self.rows, &mut self.weights, &self.inertia);
    }

    /// Impulses and biases of the same contacts.
    pub fn set_points(&mut self, problem: &Problem) {
        for (row, origin) in self.rows.iter_mut().zip(&self.origin) {
            for lane in (0..LANES).filter(|&lane| origin[lane] != NOTHING) {
                let point = &problem.points[origin[lane] as usize];
                (0..3).for_each(|axis| row.impulse[axis].0[lane] = point.impulse[axis]);
                row.bias.0[lane] = point.bias;
            }
        }
    }

    /// Decides which manifolds share a block, and where its rows are.
    ///
    /// Manifolds of one kind with equally many points share blocks, so that little is padded; blocks follow
    /// one another by where the bodies are that they move ([`Problem::places`]): a thread that has the first
    /// half of every colour has the same bodies each time.
    fn arrange(
        &mut self,
        problem: &Problem,
        colours: &Colours,
        shared: impl Fn(u32) -> bool + Sync,
    ) -> Vec<[u32; LANES]> {
        let mut by_colour: Vec<Vec<Member>> = vec![Vec::new(); colours.count];
        for (index, &colour) in colours.of.iter().enumerate() {
            by_colour[colour as usize].push(Member { index: index as u32, ..Member::default() });
        }
        let lines = &self.lines[..];
        by_colour.par_iter_mut().for_each(|members| {
            members
                .iter_mut()
                .for_each(|member| *member = Member::new(member.index, problem, lines, &shared));
            members.sort_unstable();
        });
        let mut groups = Vec::with_capacity(problem.manifolds.len() / LANES + 2 * colours.count);
        let mut rows = Vec::with_capacity(groups.capacity());
        let mut next_row = 0;
        for members in &by_colour {
            let boundary = members.partition_point(|member| !member.interior);
            let mut push = |members: &[Member]| {
                let first = groups.len();
                let kinds = members.chunk_by(|a, b| a.kind == b.kind);
                let mut together: Vec<&[Member]> = kinds.flat_map(|members| members.chunks(LANES)).collect();
                together.sort_by_key(|members| members[0].moves);
                for members in together {
                    let depth = members.iter().map(|member| member.points).max().unwrap_or(0);
                    rows.push((next_row, next_row + depth));
                    next_row += depth;
                    let member = |lane: usize| members.get(lane).map_or(NOTHING, |member| member.index);
                    groups.push(std::array::from_fn(member));
                }
                first..groups.len()
            };
            let phase = Phase { boundary: push(&members[..boundary]), interior: push(&members[boundary..]) };
            self.phases.push(phase);
        }
        let block = |&(first_row, end_row): &(u32, u32)| Block { first_row, end_row, ..Default::default() };
        rows.par_iter().with_min_len(CHUNK).map(block).collect_into_vec(&mut self.blocks);
        groups
    }
}

/// One where a lane has a point, zero where it is padded.
fn present(origin: &[u32; LANES]) -> F64x8 {
    Lanes(origin.map(|place| if place == NOTHING { 0.0 } else { 1.0 }))
}

/// Bodies stand by place, those of one place by slot, idle ones behind the others. Of 600,000 in random order
/// a sweep took 46 ns a point, by place 36; on two threads 25 and 19.
fn lines(problem: &Problem) -> Vec<u32> {
    let count = problem.inertia.len() as u32;
    if problem.places.is_empty() {
        return (0..count).collect();
    }
    let mut order: Vec<(u32, u32)> = problem.places.iter().copied().zip(0..count).collect();
    order.par_sort_unstable();
    let mut lines = vec![0; order.len()];
    for (line, (_, slot)) in (0..).zip(order) {
        lines[slot as usize] = line;
    }
    lines
}

/// What bodies have, by line, and one void body at the end.
pub fn by_line<T: Copy + Default>(by_slot: &[T], lines: &[u32]) -> Vec<T> {
    let mut list = vec![T::default(); by_slot.len() + 1];
    for (value, &line) in by_slot.iter().zip(lines) {
        list[line as usize] = *value;
    }
    list
}

/// Fills a list, on all threads: for large problems writing so much takes as long as working it out.
fn empty<T: Copy + Send + Sync>(list: &mut Vec<T>, count: usize, value: T) {
    (0..count).into_par_iter().with_min_len(1024).map(|_| value).collect_into_vec(list);
}

/// A manifold on its way into a block; the order of the fields is the order in a colour.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    interior: bool,
    kind: Kind,
    points: u32,
    /// The first line that it moves: a wall touches bodies everywhere.
    moves: u32,
    index: u32,
}

impl Member {
    fn new(index: u32, problem: &Problem, lines: &[u32], shared: impl Fn(u32) -> bool) -> Self {
        let slots = problem.manifolds[index as usize].slots;
        let movable = slots.into_iter().filter(|&slot| problem.inertia[slot as usize].is_movable());
        Self {
            interior: !slots.iter().any(|&slot| shared(slot)),
            kind: problem.manifolds[index as usize].kind,
            points: problem.points_of(index as usize).len() as u32,
            moves: movable.map(|slot| lines[slot as usize]).min().unwrap_or(NOTHING),
            index,
        }
    }
}

/// What some lanes of a block say of their manifolds.
#[derive(Clone, Copy)]
pub struct Frames<const N: usize> {
    /// n, t, s.
    pub axes: [Vectors<N>; 3],
    pub friction: Lanes<N>,
    pub compliance: Lanes<N>,
}

/// What some lanes of a row say of their points.
#[derive(Clone, Copy)]
pub struct Points<const N: usize> {
    pub arms: [Vectors<N>; 2],
    pub impulse: [Lanes<N>; 3],
    pub bias: Lanes<N>,
    pub step_normal: Lanes<N>,
    pub step_tangent: Lanes<N>,
    pub coupling: [Lanes<N>; 2],
}

/// How they give way in the tangent plane.
#[derive(Clone, Copy, Default)]
pub struct Stretches<const N: usize> {
    pub bias: [Lanes<N>; 2],
    pub compliance: Lanes<N>,
}

impl StretchRow {
    #[inline(always)]
    pub fn part<const N: usize>(&self, part: usize) -> Stretches<N> {
        Stretches {
            bias: [self.bias[0].part(part), self.bias[1].part(part)],
            compliance: self.compliance.part(part),
        }
    }
}

impl<const N: usize> Points<N> {
    #[inline(always)]
    pub fn steps(&self) -> Steps<N> {
        Steps { normal: self.step_normal, tangent: self.step_tangent, coupling: self.coupling }
    }
}

impl Row {
    #[inline(always)]
    pub fn part<const N: usize>(&self, part: usize) -> Points<N> {
        Points {
            arms: [self.arms[0].part(part), self.arms[1].part(part)],
            impulse: [self.impulse[0].part(part), self.impulse[1].part(part), self.impulse[2].part(part)],
            bias: self.bias.part(part),
            step_normal: self.step_normal.part(part),
            step_tangent: self.step_tangent.part(part),
            coupling: [self.coupling[0].part(part), self.coupling[1].part(part)],
        }
    }

    #[inline(always)]
    pub fn set_impulse<const N: usize>(&mut self, part: usize, impulse: &[Lanes<N>; 3]) {
        for (entry, lanes) in self.impulse.iter_mut().zip(impulse) {
            entry.set_part(part, *lanes);
        }
    }
}

impl Block {
    #[inline(always)]
    pub fn part<const N: usize>(&self, part: usize) -> Frames<N> {
        let (normal, tangent) = (self.axes[0].part(part), self.axes[1].part(part));
        Frames {
            axes: [normal, tangent, normal.cross(tangent)],
            friction: self.friction.part(part),
            compliance: self.compliance.part(part),
        }
    }

    /// Whether the projected law is all that its points need.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.strong == 0 && self.kind == Kind::Coulomb
    }

    /// Which of some lanes' bodies impulses move.
    #[inline(always)]
    pub fn movable_part<const N: usize>(&self, part: usize) -> [u8; 2] {
        self.movable.map(|movable| movable >> (N * part))
    }

    fn fill(
        &mut self,
        problem: &Problem,
        lines: &[u32],
        group: &[u32; LANES],
        rows: &mut [Row],
        origin: &mut [[u32; LANES]],
    ) {
        let void = problem.inertia.len() as u32;
        self.lines = [[void; LANES]; 2];
        for (lane, &index) in group.iter().enumerate().filter(|(_, index)| **index != NOTHING) {
            let manifold = &problem.manifolds[index as usize];
            for (axis, direction) in self.axes.iter_mut().zip(&manifold.frame) {
                axis.set(lane, direction.as_ref());
            }
            self.kind = manifold.kind;
            self.friction.0[lane] = manifold.friction;
            self.compliance.0[lane] = manifold.compliance;
            for side in 0..2 {
                let slot = manifold.slots[side];
                self.lines[side][lane] = lines[slot as usize];
                self.movable[side] |= u8::from(problem.inertia[slot as usize].is_movable()) << lane;
            }
            for ((row, origin), place) in
                rows.iter_mut().zip(&mut *origin).zip(problem.points_of(index as usize))
            {
                let point = &problem.points[place];
                origin[lane] = place as u32;
                for side in 0..2 {
                    row.arms[side].set(lane, point.arms[side].as_ref());
                }
                for axis in 0..3 {
                    row.impulse[axis].0[lane] = point.impulse[axis];
                }
                row.bias.0[lane] = point.bias;
            }
        }
    }
}
