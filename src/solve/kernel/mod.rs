//! What is done to a block: coefficients, visits, measurement. As many manifolds at a time as a register has
//! lanes, the same bits on every instruction set.
//!
//! Visiting a contact point, with everything else as it stands:
//!
//! ```text
//! V   = Hᵀ v + (bias + C r_n) n   relative velocity, contact frame; C is the compliance
//!       + bias_t + C_t r_t        where a contact is stretched
//! r'  = law(r, V, W)              W_nn with C; by the kind of the contact: [`crate::law`]
//! v  += M⁻¹ H (r' − r)
//! ```
//!
//! In the *projected* form of Coulomb's law r' is one projected step, in the *exact* form the solution of the
//! point's own problem; so it is in the projected form for manifolds with a point whose normal and tangent
//! are strongly coupled.

use super::block::{Block, Frames, Points, Row, StretchRow, Stretches, Weights};
use super::end::delassus_of_body;
use super::problem::{Inertia, Twist};
use crate::geometry::{Mat3, Vec3};
use crate::lanes::{Isa, LANES, Lanes, Line, Vectors, for_each_isa};
use crate::law::{Kind, coulomb};

/// What happens at a contact point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Visit {
    /// The impulse that is there acts; it does not change.
    Start,
    Projected,
    /// The projected law where nothing rubs.
    Frictionless,
    Exact,
    /// The projected law, or the exact one if `true`, from an extrapolated impulse.
    Momentum(Ahead, bool),
}

/// What threads work on together.
pub struct Shared {
    /// By line, as the inertia.
    pub velocities: *mut Twist,
    pub inertia: *const Inertia,
    pub rows: *mut Row,
    /// As many as rows, where a block is stretched.
    pub stretches: *const StretchRow,
}

// SAFETY: users of `visit_all` keep threads to disjoint velocities and rows.
unsafe impl Sync for Shared {}

mod measure;
mod momentum;
mod scale;

pub use measure::{MeasuredRows, SharedWeights, Terms, add_rounded, measure_all, note_free_all};
use momentum::visit_ahead;
pub use momentum::{Ahead, extrapolate_velocities};
pub use scale::scale_all;

for_each_isa! {
    /// # Safety
    /// No other thread touches the movable bodies or the rows of `blocks` meanwhile; lines and rows lie
    /// inside the arrays.
    pub unsafe fn visit_all(blocks: &[Block], shared: &Shared, visit: Visit) = visit_blocks
}

#[inline(always)]
unsafe fn visit_blocks<I: Isa<N>, const N: usize>(blocks: &[Block], shared: &Shared, kind: Visit) {
    for block in blocks {
        let count = (block.end_row - block.first_row) as usize;
        // SAFETY: rows of different blocks are disjoint, and inside the array.
        let rows =
            unsafe { std::slice::from_raw_parts_mut(shared.rows.add(block.first_row as usize), count) };
        for part in 0..LANES / N {
            // Nothing but padding.
            if N < LANES && block.movable_part::<N>(part) == [0, 0] {
                continue;
            }
            // SAFETY: as for `visit_all`.
            unsafe {
                match block.kind {
                    Kind::Coulomb | Kind::Stretched => visit_coulomb::<I, N>(block, rows, shared, part, kind),
                }
            }
        }
    }
}

/// # Safety
/// As for [`visit_all`].
#[inline(always)]
unsafe fn visit_coulomb<I: Isa<N>, const N: usize>(
    block: &Block,
    rows: &mut [Row],
    shared: &Shared,
    part: usize,
    kind: Visit,
) {
    // SAFETY: as for `visit_all`.
    unsafe {
        match kind {
            Visit::Projected if block.is_plain() => {
                visit_block::<I, N, PROJECTED>(block, rows, shared, part);
            }
            Visit::Projected => visit_block::<I, N, MIXED>(block, rows, shared, part),
            Visit::Exact => visit_block::<I, N, EXACT>(block, rows, shared, part),
            Visit::Start => start_block::<I, N>(block, rows, shared, part),
            Visit::Frictionless => visit_frictionless::<I, N>(block, rows, shared, part),
            Visit::Momentum(ahead, true) => visit_ahead::<I, N, EXACT>(block, rows, shared, part, &ahead),
            Visit::Momentum(ahead, false) if block.is_plain() => {
                visit_ahead::<I, N, PROJECTED>(block, rows, shared, part, &ahead);
            }
            Visit::Momentum(ahead, false) => visit_ahead::<I, N, MIXED>(block, rows, shared, part, &ahead),
        }
    }
}

/// The velocity of one body of each lane, in registers.
struct Motion<const N: usize> {
    linear: Vectors<N>,
    angular: Vectors<N>,
}

/// Which of a list of bodies some lanes have on one side.
#[inline(always)]
fn part_of<const N: usize>(lines: &[u32; LANES], part: usize) -> [usize; N] {
    std::array::from_fn(|lane| lines[N * part + lane] as usize)
}

impl<const N: usize> Motion<N> {
    #[inline(always)]
    unsafe fn load<I: Isa<N>>(lines: [usize; N], velocities: *const Twist) -> Self {
        // SAFETY: lines are places in the array; nobody writes these velocities meanwhile.
        let [lx, ly, lz, _, ax, ay, az, _] =
            unsafe { I::gather(lines.map(|line| velocities.add(line).cast::<Line>())) };
        Self { linear: Vectors([lx, ly, lz]), angular: Vectors([ax, ay, az]) }
    }

    #[inline(always)]
    unsafe fn store<I: Isa<N>>(&self, lines: [usize; N], velocities: *mut Twist, movable: u8) {
        let ([lx, ly, lz], [ax, ay, az]) = (self.linear.0, self.angular.0);
        let zero = Lanes::default();
        let columns = [lx, ly, lz, zero, ax, ay, az, zero];
        // SAFETY: a movable body appears once in a colour, so this thread alone writes it.
        unsafe {
            I::scatter(&columns, lines.map(|line| velocities.add(line).cast::<Line>()), movable);
        }
    }
}

/// Inverse mass and inertia of one body of each lane.
struct Masses<const N: usize> {
    inverse_mass: Lanes<N>,
    /// xx, xy, xz, yy, yz, zz.
    inverse_inertia: [Lanes<N>; 6],
}

impl<const N: usize> Masses<N> {
    #[inline(always)]
    unsafe fn load<I: Isa<N>>(lines: [usize; N], inertia: *const Inertia) -> Self {
        // SAFETY: lines are places in the array, which nobody writes.
        let [inverse_mass, xx, xy, xz, yy, yz, zz, _] =
            unsafe { I::gather(lines.map(|line| inertia.add(line).cast::<Line>())) };
        Self { inverse_mass, inverse_inertia: [xx, xy, xz, yy, yz, zz] }
    }

    fn of_lane(&self, lane: usize) -> Inertia {
        let [xx, xy, xz, yy, yz, zz] = self.inverse_inertia.map(|entry| entry.0[lane]);
        Inertia::new(self.inverse_mass.0[lane], &Mat3::new(xx, xy, xz, xy, yy, yz, xz, yz, zz))
    }

    /// `I⁻¹ x + sum`.
    #[inline(always)]
    fn turned(&self, x: Vectors<N>, sum: Vectors<N>) -> Vectors<N> {
        let [xx, xy, xz, yy, yz, zz] = self.inverse_inertia;
        let rows = [Vectors([xx, xy, xz]), Vectors([xy, yy, yz]), Vectors([xz, yz, zz])];
        let [p, q, r] = sum.0;
        Vectors([rows[0].dot_and(x, p), rows[1].dot_and(x, q), rows[2].dot_and(x, r)])
    }
}

/// The two bodies of some lanes, while their manifolds are visited.
struct Pair<const N: usize> {
    motions: [Motion<N>; 2],
    masses: [Masses<N>; 2],
}

impl<const N: usize> Pair<N> {
    #[inline(always)]
    unsafe fn load<I: Isa<N>>(block: &Block, shared: &Shared, part: usize) -> Self {
        let [a, b] = [part_of(&block.lines[0], part), part_of(&block.lines[1], part)];
        // SAFETY: as for `visit_all`.
        unsafe {
            Self {
                motions: [Motion::load::<I>(a, shared.velocities), Motion::load::<I>(b, shared.velocities)],
                masses: [Masses::load::<I>(a, shared.inertia), Masses::load::<I>(b, shared.inertia)],
            }
        }
    }

    #[inline(always)]
    unsafe fn store<I: Isa<N>>(&self, block: &Block, shared: &Shared, part: usize) {
        let movable = block.movable_part::<N>(part);
        let [a, b] = [part_of(&block.lines[0], part), part_of(&block.lines[1], part)];
        // SAFETY: as for `visit_all`.
        unsafe {
            self.motions[0].store::<I>(a, shared.velocities, movable[0]);
            self.motions[1].store::<I>(b, shared.velocities, movable[1]);
        }
    }

    /// Adds `M⁻¹ H r` for an impulse in world coordinates: against the first body, along the second.
    #[inline(always)]
    fn push_apart(&mut self, arms: &[Vectors<N>; 2], push: Vectors<N>) {
        let moments = [push.cross(arms[0]), arms[1].cross(push)];
        for (side, push) in [-push, push].into_iter().enumerate() {
            let (Motion { linear, angular }, masses) = (&mut self.motions[side], &self.masses[side]);
            *linear = push.times(masses.inverse_mass, *linear);
            *angular = masses.turned(moments[side], *angular);
        }
    }
}

#[inline(always)]
fn to_world<const N: usize>(frames: &Frames<N>, change: &[Lanes<N>; 3]) -> Vectors<N> {
    let [n, t, s] = frames.axes;
    s.times(change[2], t.times(change[1], n.scaled(change[0])))
}

/// Relative velocity with bias and compliance, contact frame.
#[inline(always)]
fn relative_velocity<const N: usize>(
    frames: &Frames<N>,
    points: &Points<N>,
    [a, b]: &[Motion<N>; 2],
) -> [Lanes<N>; 3] {
    // v_b + ω_b × r_b − v_a − ω_a × r_a
    let relative = b.angular.cross_and(points.arms[1], b.linear - a.linear);
    let relative = points.arms[0].cross_and(a.angular, relative);
    let [n, t, s] = frames.axes;
    let bias = frames.compliance.times(points.impulse[0], points.bias);
    [n.dot_and(relative, bias), t.dot(relative), s.dot(relative)]
}

/// Adds what points that are stretched have beside it.
#[inline(always)]
fn add_stretch<const N: usize>(
    velocity: &mut [Lanes<N>; 3],
    impulse: &[Lanes<N>; 3],
    Stretches { bias, compliance }: &Stretches<N>,
) {
    for axis in 1..3 {
        velocity[axis] = compliance.times(impulse[axis], velocity[axis] + bias[axis - 1]);
    }
}

/// The local law of a block: numbers and not functions, since a function passed on would not be compiled for
/// the instruction set.
const PROJECTED: u8 = 0;
const EXACT: u8 = 1;
/// Projected, and exact in the strongly coupled lanes.
const MIXED: u8 = 2;

/// What a stretched block has beside a row; the projected law alone has none.
///
/// # Safety
/// If the block is stretched, `place` lies in the list.
#[inline(always)]
unsafe fn stretch_at<const N: usize, const LAW: u8>(
    block: &Block,
    shared: &Shared,
    place: usize,
    part: usize,
) -> Option<Stretches<N>> {
    let stretched = LAW != PROJECTED && block.kind == Kind::Stretched;
    // SAFETY: as above; nobody writes the list.
    stretched.then(|| unsafe { (*shared.stretches.add(place)).part(part) })
}

/// The impulses after a visit.
#[inline(always)]
fn visited<const N: usize, const LAW: u8>(
    frames: &Frames<N>,
    points: &Points<N>,
    pair: &Pair<N>,
    stretch: Option<&Stretches<N>>,
    strong: u8,
) -> [Lanes<N>; 3] {
    let mut velocity = relative_velocity(frames, points, &pair.motions);
    if let Some(stretch) = stretch {
        add_stretch(&mut velocity, &points.impulse, stretch);
    }
    match LAW {
        PROJECTED => projected(frames, points, &velocity),
        EXACT => exact(frames, points, pair, &velocity, stretch, u8::MAX, points.impulse),
        _ => exact(frames, points, pair, &velocity, stretch, strong, projected(frames, points, &velocity)),
    }
}

#[inline(always)]
unsafe fn visit_block<I: Isa<N>, const N: usize, const LAW: u8>(
    block: &Block,
    rows: &mut [Row],
    shared: &Shared,
    part: usize,
) {
    // SAFETY: as for `visit_all`.
    let mut pair = unsafe { Pair::load::<I>(block, shared, part) };
    let frames = block.part(part);
    for (row, place) in rows.iter_mut().zip(block.first_row as usize..) {
        let points = row.part(part);
        // SAFETY: stretched blocks have as many stretches as rows.
        let stretch = unsafe { stretch_at::<N, LAW>(block, shared, place, part) };
        let strong = block.strong >> (N * part);
        let impulse = visited::<N, LAW>(&frames, &points, &pair, stretch.as_ref(), strong);
        let change: [_; 3] = std::array::from_fn(|axis| impulse[axis] - points.impulse[axis]);
        row.set_impulse(part, &impulse);
        pair.push_apart(&points.arms, to_world(&frames, &change));
    }
    // SAFETY: as for `visit_all`.
    unsafe { pair.store::<I>(block, shared, part) };
}

#[inline(always)]
unsafe fn start_block<I: Isa<N>, const N: usize>(block: &Block, rows: &[Row], shared: &Shared, part: usize) {
    // SAFETY: as for `visit_all`.
    let mut pair = unsafe { Pair::load::<I>(block, shared, part) };
    let frames = block.part(part);
    for row in rows {
        let points = row.part(part);
        pair.push_apart(&points.arms, to_world(&frames, &points.impulse));
    }
    // SAFETY: as for `visit_all`.
    unsafe { pair.store::<I>(block, shared, part) };
}

/// The projected visit with μ = 0, tangential impulses being zero from the start.
#[inline(always)]
unsafe fn visit_frictionless<I: Isa<N>, const N: usize>(
    block: &Block,
    rows: &mut [Row],
    shared: &Shared,
    part: usize,
) {
    // SAFETY: as for `visit_all`.
    let mut pair = unsafe { Pair::load::<I>(block, shared, part) };
    let frames = block.part(part);
    for row in rows {
        let points = row.part(part);
        let [velocity, ..] = relative_velocity(&frames, &points, &pair.motions);
        let normal = coulomb::frictionless(points.impulse[0], velocity, points.step_normal);
        let change = normal - points.impulse[0];
        row.impulse[0].set_part(part, normal);
        pair.push_apart(&points.arms, frames.axes[0].scaled(change));
    }
    // SAFETY: as for `visit_all`.
    unsafe { pair.store::<I>(block, shared, part) };
}

#[inline(always)]
fn projected<const N: usize>(
    frames: &Frames<N>,
    points: &Points<N>,
    velocity: &[Lanes<N>; 3],
) -> [Lanes<N>; 3] {
    coulomb::projected(frames.friction, &points.impulse, velocity, &points.steps())
}

/// Lane by lane, of those asked for: the local problem has cases. Rebuilds the Delassus block from the
/// bodies.
#[inline(never)]
fn exact<const N: usize>(
    frames: &Frames<N>,
    points: &Points<N>,
    pair: &Pair<N>,
    velocity: &[Lanes<N>; 3],
    stretch: Option<&Stretches<N>>,
    lanes: u8,
    mut impulse: [Lanes<N>; 3],
) -> [Lanes<N>; 3] {
    for lane in (0..N).filter(|&lane| lanes >> lane & 1 == 1 && points.step_normal.0[lane] != 0.0) {
        let pick = |vector: &Vectors<N>| Vec3::from_fn(|axis, _| vector.0[axis].0[lane]);
        let frame = Mat3::from_columns(&[0, 1, 2].map(|axis| pick(&frames.axes[axis])));
        let mut world = Mat3::zeros();
        for side in 0..2 {
            world += delassus_of_body(&pair.masses[side].of_lane(lane), &pick(&points.arms[side]));
        }
        let mut delassus = frame.transpose() * world * frame;
        delassus[(0, 0)] += frames.compliance.0[lane];
        if let Some(stretch) = stretch {
            (1..3).for_each(|axis| delassus[(axis, axis)] += stretch.compliance.0[lane]);
        }
        let old = Vec3::from_fn(|axis, _| points.impulse[axis].0[lane]);
        let free = Vec3::from_fn(|axis, _| velocity[axis].0[lane]) - delassus * old;
        let new = coulomb::solve(&delassus, &free, frames.friction.0[lane]);
        for axis in 0..3 {
            impulse[axis].0[lane] = new[axis];
        }
    }
    impulse
}

/// The coefficients of all rows of `blocks`; `rows` and `weights` begin with the first block's. `weights`
/// come with ones where there is a point and zeros where there is none. `inertia` is that of
/// [`super::Blocks`].
pub fn prepare(blocks: &mut [Block], rows: &mut [Row], weights: &mut [Weights], inertia: &[Inertia]) {
    // SAFETY: blocks have lines of that list.
    unsafe { prepare_all(blocks, rows, weights, inertia) }
}

for_each_isa! {
    unsafe fn prepare_all(blocks: &mut [Block], rows: &mut [Row], weights: &mut [Weights], inertia: &[Inertia])
        = prepare_blocks
}

#[inline(always)]
unsafe fn prepare_blocks<I: Isa<N>, const N: usize>(
    blocks: &mut [Block],
    rows: &mut [Row],
    weights: &mut [Weights],
    inertia: &[Inertia],
) {
    let first = blocks.first().map_or(0, |block| block.first_row as usize);
    for block in blocks {
        let range = block.first_row as usize - first..block.end_row as usize - first;
        for part in 0..LANES / N {
            let [a, b] = [part_of(&block.lines[0], part), part_of(&block.lines[1], part)];
            let inertia = inertia.as_ptr();
            // SAFETY: lines are places in the list.
            let masses = unsafe { [Masses::load::<I>(a, inertia), Masses::load::<I>(b, inertia)] };
            let frames = block.part::<N>(part);
            for (row, weights) in rows[range.clone()].iter_mut().zip(&mut weights[range.clone()]) {
                let present = weights.normal.part(part);
                let [w_nn, w_tn, w_sn, w_tt, w_ts, w_ss] =
                    delassus(&frames, &row.part(part), &masses, present);
                let w_nn = frames.compliance.times(present, w_nn);
                let half = Lanes::splat(0.5);
                let (mean, half) = ((w_tt + w_ss) * half, (w_tt - w_ss) * half);
                let lambda = mean + half.times(half, w_ts * w_ts).sqrt();
                weights.normal.set_part(part, w_nn);
                weights.tangent.set_part(part, lambda);
                row.step_normal.set_part(part, w_nn.inverse_if_positive());
                row.step_tangent.set_part(part, lambda.inverse_if_positive());
                row.coupling[0].set_part(part, w_tn);
                row.coupling[1].set_part(part, w_sn);
                for lane in 0..N {
                    let coupling = [w_tn.0[lane], w_sn.0[lane]];
                    let strong =
                        coulomb::is_strongly_coupled(w_nn.0[lane], coupling, frames.friction.0[lane]);
                    block.strong |= u8::from(strong) << (N * part + lane);
                }
            }
        }
    }
}

/// The entries nn, tn, sn, tt, ts, ss of `W_αα`: with `u_k = arm × axis_k`, `W_kl = Σ (δ_kl / m + u_k · I⁻¹
/// u_l)`. Where `present` is zero, zero: the arms are zero there already.
#[inline(always)]
fn delassus<const N: usize>(
    frames: &Frames<N>,
    points: &Points<N>,
    masses: &[Masses<N>; 2],
    present: Lanes<N>,
) -> [Lanes<N>; 6] {
    let mass = (masses[0].inverse_mass + masses[1].inverse_mass) * present;
    let (none, zero) = (Vectors::default(), Lanes::default());
    let mut entries = [mass, zero, zero, mass, zero, mass];
    for side in 0..2 {
        let (arm, masses, [n, t, s]) = (points.arms[side], &masses[side], frames.axes);
        let (n, t, s) = (arm.cross(n), arm.cross(t), arm.cross(s));
        let (by_n, by_t, by_s) = (masses.turned(n, none), masses.turned(t, none), masses.turned(s, none));
        entries[0] = n.dot_and(by_n, entries[0]);
        entries[1] = t.dot_and(by_n, entries[1]);
        entries[2] = s.dot_and(by_n, entries[2]);
        entries[3] = t.dot_and(by_t, entries[3]);
        entries[4] = s.dot_and(by_t, entries[4]);
        entries[5] = s.dot_and(by_s, entries[5]);
    }
    entries
}

#[cfg(test)]
mod tests;
