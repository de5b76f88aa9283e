//! What is done to a block: coefficients, visits, measurement. Eight manifolds at a time, the same bits on every instruction set.
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

use super::block::{Block, Row, Weights};
#[cfg(target_arch = "x86_64")]
use super::lanes::{Avx2, Avx512};
use super::lanes::{F64x8, Isa, LANES, Plain, Vec3x8};
use super::law::solve_contact;
use super::problem::Twist;
use crate::geometry::{Mat3, Vec3};

/// What happens at a contact point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// The impulse that is there acts; it does not change.
    Start,
    Projected,
    /// The projected law where nothing rubs.
    Frictionless,
    Exact,
}

/// What threads work on together.
pub struct Shared {
    pub velocities: *mut Twist,
    pub rows: *mut Row,
}

// SAFETY: users of `visit_all` keep threads to disjoint velocities and rows.
unsafe impl Sync for Shared {}

/// Compiles `$body` once for each instruction set, `$isa` being the type that stands for it, and runs the best that the processor has.
/// No variant fuses multiplications with additions: the bits stay the same.
macro_rules! for_each_isa {
    ($(#[$doc:meta])* $vis:vis unsafe fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $body:ident) => {
        $(#[$doc])*
        $vis unsafe fn $name($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                unsafe fn avx2($($argument: $type),*) $(-> $result)? {
                    // SAFETY: as for the function itself.
                    unsafe { $body::<Avx2>($($argument),*) }
                }
                #[target_feature(enable = "avx512f,avx512vl,avx512dq")]
                unsafe fn avx512($($argument: $type),*) $(-> $result)? {
                    // SAFETY: as for the function itself.
                    unsafe { $body::<Avx512>($($argument),*) }
                }
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                {
                    // SAFETY: the features are there; the rest as for the function itself.
                    return unsafe { avx512($($argument),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the feature is there; the rest as for the function itself.
                    return unsafe { avx2($($argument),*) };
                }
            }
            // SAFETY: as for the function itself.
            unsafe { $body::<Plain>($($argument),*) }
        }
    };
}

for_each_isa! {
    /// # Safety
    /// No other thread touches the movable bodies or the rows of `blocks` meanwhile; slots and rows lie inside the arrays.
    pub unsafe fn visit_all(blocks: &[Block], shared: &Shared, visit: Visit) = visit_blocks
}

#[inline(always)]
unsafe fn visit_blocks<I: Isa>(blocks: &[Block], shared: &Shared, kind: Visit) {
    for block in blocks {
        let count = (block.end_row - block.first_row) as usize;
        // SAFETY: rows of different blocks are disjoint, and inside the array.
        let rows =
            unsafe { std::slice::from_raw_parts_mut(shared.rows.add(block.first_row as usize), count) };
        // SAFETY: as for `visit_all`.
        unsafe {
            match kind {
                Visit::Projected if block.strong == 0 => visit_block::<I, PROJECTED>(block, rows, shared),
                Visit::Projected => visit_block::<I, MIXED>(block, rows, shared),
                Visit::Exact => visit_block::<I, EXACT>(block, rows, shared),
                Visit::Start => start_block::<I>(block, rows, shared),
                Visit::Frictionless => visit_frictionless::<I>(block, rows, shared),
            }
        }
    }
}

/// One body of each lane, in registers.
struct Side {
    linear: Vec3x8,
    angular: Vec3x8,
}

impl Side {
    #[inline(always)]
    unsafe fn load<I: Isa>(slots: &[u32; LANES], velocities: *const Twist) -> Self {
        // SAFETY: slots are places in the array; nobody writes these velocities meanwhile.
        let [lx, ly, lz, _, ax, ay, az, _] =
            unsafe { I::gather(slots.map(|slot| velocities.add(slot as usize))) };
        Self { linear: Vec3x8([lx, ly, lz]), angular: Vec3x8([ax, ay, az]) }
    }

    #[inline(always)]
    unsafe fn store<I: Isa>(self, slots: &[u32; LANES], velocities: *mut Twist, movable: u8) {
        let ([lx, ly, lz], [ax, ay, az]) = (self.linear.0, self.angular.0);
        let zero = F64x8::default();
        let columns = [lx, ly, lz, zero, ax, ay, az, zero];
        // SAFETY: a movable body appears once in a colour, so this thread alone writes it.
        unsafe { I::scatter(&columns, slots.map(|slot| velocities.add(slot as usize)), movable) };
    }

    #[inline(always)]
    fn velocity_at(&self, arm: Vec3x8) -> Vec3x8 {
        self.linear + self.angular.cross(arm)
    }
}

/// `I⁻¹ x`.
#[inline(always)]
fn turned(inverse_inertia: &[F64x8; 6], x: Vec3x8) -> Vec3x8 {
    let [xx, xy, xz, yy, yz, zz] = *inverse_inertia;
    let row = |a, b, c| a * x.0[0] + b * x.0[1] + c * x.0[2];
    Vec3x8([row(xx, xy, xz), row(xy, yy, yz), row(xz, yz, zz)])
}

/// Adds `M⁻¹ H r` for an impulse in world coordinates: against the first body, along the second.
#[inline(always)]
fn push_apart(block: &Block, row: &Row, push: Vec3x8, a: &mut Side, b: &mut Side) {
    a.linear = a.linear - push.scaled(block.inverse_mass[0]);
    a.angular = a.angular - turned(&block.inverse_inertia[0], row.arms[0].cross(push));
    b.linear = b.linear + push.scaled(block.inverse_mass[1]);
    b.angular = b.angular + turned(&block.inverse_inertia[1], row.arms[1].cross(push));
}

#[inline(always)]
fn to_world(block: &Block, change: &[F64x8; 3]) -> Vec3x8 {
    block.frame[0].scaled(change[0]) + block.frame[1].scaled(change[1]) + block.frame[2].scaled(change[2])
}

/// Relative velocity with bias, contact frame.
#[inline(always)]
fn relative_velocity(block: &Block, row: &Row, a: &Side, b: &Side) -> [F64x8; 3] {
    let relative = b.velocity_at(row.arms[1]) - a.velocity_at(row.arms[0]);
    [block.frame[0].dot(relative) + row.bias, block.frame[1].dot(relative), block.frame[2].dot(relative)]
}

/// The local law of a block: numbers and not functions, since a function passed on would not be compiled for the instruction set.
const PROJECTED: u8 = 0;
const EXACT: u8 = 1;
/// Projected, and exact in the strongly coupled lanes.
const MIXED: u8 = 2;

#[inline(always)]
unsafe fn visit_block<I: Isa, const LAW: u8>(block: &Block, rows: &mut [Row], shared: &Shared) {
    // SAFETY: as for `visit_all`.
    let mut a = unsafe { Side::load::<I>(&block.slots[0], shared.velocities) };
    // SAFETY: as for `visit_all`.
    let mut b = unsafe { Side::load::<I>(&block.slots[1], shared.velocities) };
    for row in rows {
        let velocity = relative_velocity(block, row, &a, &b);
        let impulse = match LAW {
            PROJECTED => projected(block, row, &velocity),
            EXACT => exact(block, row, &velocity, u8::MAX, row.impulse),
            _ => exact(block, row, &velocity, block.strong, projected(block, row, &velocity)),
        };
        let change = [impulse[0] - row.impulse[0], impulse[1] - row.impulse[1], impulse[2] - row.impulse[2]];
        row.impulse = impulse;
        push_apart(block, row, to_world(block, &change), &mut a, &mut b);
    }
    // SAFETY: as for `visit_all`.
    unsafe {
        a.store::<I>(&block.slots[0], shared.velocities, block.movable[0]);
        b.store::<I>(&block.slots[1], shared.velocities, block.movable[1]);
    }
}

#[inline(always)]
unsafe fn start_block<I: Isa>(block: &Block, rows: &mut [Row], shared: &Shared) {
    // SAFETY: as for `visit_all`.
    unsafe {
        let mut a = Side::load::<I>(&block.slots[0], shared.velocities);
        let mut b = Side::load::<I>(&block.slots[1], shared.velocities);
        for row in rows {
            push_apart(block, row, to_world(block, &row.impulse), &mut a, &mut b);
        }
        a.store::<I>(&block.slots[0], shared.velocities, block.movable[0]);
        b.store::<I>(&block.slots[1], shared.velocities, block.movable[1]);
    }
}

/// The projected visit with μ = 0, tangential impulses being zero from the start.
#[inline(always)]
unsafe fn visit_frictionless<I: Isa>(block: &Block, rows: &mut [Row], shared: &Shared) {
    // SAFETY: as for `visit_all`.
    unsafe {
        let mut a = Side::load::<I>(&block.slots[0], shared.velocities);
        let mut b = Side::load::<I>(&block.slots[1], shared.velocities);
        for row in rows {
            let relative = b.velocity_at(row.arms[1]) - a.velocity_at(row.arms[0]);
            let velocity = block.frame[0].dot(relative) + row.bias;
            let normal = (row.impulse[0] - velocity * row.step_normal).positive_part();
            let change = normal - row.impulse[0];
            row.impulse[0] = normal;
            push_apart(block, row, block.frame[0].scaled(change), &mut a, &mut b);
        }
        a.store::<I>(&block.slots[0], shared.velocities, block.movable[0]);
        b.store::<I>(&block.slots[1], shared.velocities, block.movable[1]);
    }
}

#[inline(always)]
fn projected(block: &Block, row: &Row, velocity: &[F64x8; 3]) -> [F64x8; 3] {
    let normal = (row.impulse[0] - velocity[0] * row.step_normal).positive_part();
    let change = normal - row.impulse[0];
    let t = row.impulse[1] - (velocity[1] + row.coupling[0] * change) * row.step_tangent;
    let s = row.impulse[2] - (velocity[2] + row.coupling[1] * change) * row.step_tangent;
    let factor = (t * t + s * s).shrink_to(block.friction * normal);
    [normal, t * factor, s * factor]
}

/// Sliding, a projected visit feeds `W_nt r_t / W_nn` with ‖r_t‖ = μ r_n back into r_n: a gain of `μ ‖W_nt‖ / W_nn` at most. From 1 on
/// it may run away or circle for ever, as on Painlevé's rod; 0.9 would still take 200 visits for nine digits.
pub fn is_strongly_coupled(normal: f64, coupling: [f64; 2], friction: f64) -> bool {
    friction * (coupling[0] * coupling[0] + coupling[1] * coupling[1]).sqrt() > 0.9 * normal
}

/// Lane by lane, of those asked for: the local problem has cases. Rebuilds the Delassus block from the bodies.
#[inline(never)]
fn exact(block: &Block, row: &Row, velocity: &[F64x8; 3], lanes: u8, mut impulse: [F64x8; 3]) -> [F64x8; 3] {
    for lane in (0..LANES).filter(|&lane| lanes >> lane & 1 == 1 && row.step_normal.0[lane] != 0.0) {
        let pick = |vector: &Vec3x8| Vec3::from_fn(|axis, _| vector.0[axis].0[lane]);
        let frame = Mat3::from_columns(&[0, 1, 2].map(|axis| pick(&block.frame[axis])));
        let mut world = Mat3::zeros();
        for side in 0..2 {
            let cross = pick(&row.arms[side]).cross_matrix();
            let [xx, xy, xz, yy, yz, zz] = block.inverse_inertia[side].map(|entry| entry.0[lane]);
            let tensor = Mat3::new(xx, xy, xz, xy, yy, yz, xz, yz, zz);
            world += Mat3::identity() * block.inverse_mass[side].0[lane] - cross * tensor * cross;
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

/// The coefficients of all rows of `blocks`; `rows` and `weights` begin with the first block's. `weights` come with ones where there is a
/// point and zeros where there is none.
pub fn prepare(blocks: &mut [Block], rows: &mut [Row], weights: &mut [Weights]) {
    // SAFETY: nothing but references.
    unsafe { prepare_all(blocks, rows, weights) }
}

for_each_isa! {
    unsafe fn prepare_all(blocks: &mut [Block], rows: &mut [Row], weights: &mut [Weights]) = prepare_blocks
}

#[inline(always)]
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "compiled once for each instruction set all the same"
)]
unsafe fn prepare_blocks<I: Isa>(blocks: &mut [Block], rows: &mut [Row], weights: &mut [Weights]) {
    let first = blocks.first().map_or(0, |block| block.first_row as usize);
    for block in blocks {
        let range = block.first_row as usize - first..block.end_row as usize - first;
        for (row, weights) in rows[range.clone()].iter_mut().zip(&mut weights[range]) {
            let [w_nn, w_tn, w_sn, w_tt, w_ts, w_ss] = delassus(block, row, weights.normal);
            let (mean, half) = ((w_tt + w_ss) * F64x8::splat(0.5), (w_tt - w_ss) * F64x8::splat(0.5));
            let lambda = mean + (half * half + w_ts * w_ts).sqrt();
            *weights = Weights { normal: w_nn, tangent: lambda };
            (row.step_normal, row.step_tangent) = (w_nn.inverse_if_positive(), lambda.inverse_if_positive());
            row.coupling = [w_tn, w_sn];
            for lane in 0..LANES {
                let strong =
                    is_strongly_coupled(w_nn.0[lane], [w_tn.0[lane], w_sn.0[lane]], block.friction.0[lane]);
                block.strong |= u8::from(strong) << lane;
            }
        }
    }
}

/// The entries nn, tn, sn, tt, ts, ss of `W_αα`: with `u_k = arm × axis_k`, `W_kl = Σ (δ_kl / m + u_k · I⁻¹ u_l)`. Where `present` is zero, zero:
/// the arms are zero there already.
#[inline(always)]
fn delassus(block: &Block, row: &Row, present: F64x8) -> [F64x8; 6] {
    let mass = (block.inverse_mass[0] + block.inverse_mass[1]) * present;
    let zero = F64x8::default();
    let mut entries = [mass, zero, zero, mass, zero, mass];
    for side in 0..2 {
        let (arm, tensor) = (row.arms[side], &block.inverse_inertia[side]);
        let [n, t, s] = [arm.cross(block.frame[0]), arm.cross(block.frame[1]), arm.cross(block.frame[2])];
        let (by_n, by_t, by_s) = (turned(tensor, n), turned(tensor, t), turned(tensor, s));
        entries[0] += n.dot(by_n);
        entries[1] += t.dot(by_n);
        entries[2] += s.dot(by_n);
        entries[3] += t.dot(by_t);
        entries[4] += s.dot(by_t);
        entries[5] += s.dot(by_s);
    }
    entries
}

/// What a measurement finds at eight manifolds: by lane the sums over points of ‖F‖², ‖q‖², ‖r‖², ‖u‖², and the largest error as a velocity.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    pub sums: [F64x8; 4],
    pub worst_velocity: F64x8,
}

for_each_isa! {
    /// The terms of the residual ([`super::residual`]) of each block. `free` are the free velocities.
    ///
    /// # Safety
    /// Slots are places in both arrays of velocities; `rows` and `weights` are those of all blocks of the problem.
    pub unsafe fn measure_all(
        blocks: &[Block],
        rows: &[Row],
        weights: &[Weights],
        velocities: &[Twist],
        free: &[Twist],
        terms: &mut Vec<Terms>
    ) = measure_blocks
}

#[inline(always)]
unsafe fn measure_blocks<I: Isa>(
    blocks: &[Block],
    rows: &[Row],
    weights: &[Weights],
    velocities: &[Twist],
    free: &[Twist],
    terms: &mut Vec<Terms>,
) {
    for block in blocks {
        // SAFETY: slots are places in both arrays.
        let [a, b, free_a, free_b] = unsafe {
            [
                Side::load::<I>(&block.slots[0], velocities.as_ptr()),
                Side::load::<I>(&block.slots[1], velocities.as_ptr()),
                Side::load::<I>(&block.slots[0], free.as_ptr()),
                Side::load::<I>(&block.slots[1], free.as_ptr()),
            ]
        };
        let speeds = [a.linear.norm(), a.angular.norm(), b.linear.norm(), b.angular.norm()];
        let mut found = Terms::default();
        let range = block.first_row as usize..block.end_row as usize;
        for (row, weights) in rows[range.clone()].iter().zip(&weights[range]) {
            let velocity = relative_velocity(block, row, &a, &b);
            let free = relative_velocity(block, row, &free_a, &free_b);
            let one = F64x8::splat(1.0);
            let error = natural_map(&row.impulse, &velocity, block.friction, one);
            let squared = Vec3x8(error).dot(Vec3x8(error));
            let sizes = speeds[0]
                + speeds[1] * row.arms[0].norm()
                + speeds[2]
                + speeds[3] * row.arms[1].norm()
                + row.bias.map(f64::abs);
            let noise = (one + block.friction) * F64x8::splat(16.0 * f64::EPSILON) * sizes;
            // A NaN counts.
            let large =
                squared.zip(noise, |squared, noise| if squared <= noise * noise { 0.0 } else { squared });
            found.sums[0] += large.where_positive(weights.normal);
            let acts = row.impulse[0].zip(free[0], |r, q| if r > 0.0 || q < 0.0 { 1.0 } else { 0.0 });
            let acts = acts.where_positive(weights.normal);
            found.sums[1] += Vec3x8(free).dot(Vec3x8(free)).where_positive(acts);
            found.sums[2] += Vec3x8(row.impulse).dot(Vec3x8(row.impulse)).where_positive(acts);
            found.sums[3] += Vec3x8(velocity).dot(Vec3x8(velocity)).where_positive(acts);
            let error = natural_map(&row.impulse, &velocity, block.friction, row.step_normal);
            let as_velocity = Vec3x8(error).norm() * weights.normal;
            // A NaN must not be lost in the maximum.
            found.worst_velocity = as_velocity
                .zip(found.worst_velocity, |new, old| if new > old || new.is_nan() { new } else { old });
        }
        terms.push(found);
    }
}

/// `F = r − P_K(r − ρ û)`, as [`super::residual::natural_map`].
#[inline(always)]
fn natural_map(impulse: &[F64x8; 3], velocity: &[F64x8; 3], friction: F64x8, rho: F64x8) -> [F64x8; 3] {
    let slip = (velocity[1] * velocity[1] + velocity[2] * velocity[2]).sqrt();
    let n = impulse[0] - (velocity[0] + friction * slip) * rho;
    let t = impulse[1] - velocity[1] * rho;
    let s = impulse[2] - velocity[2] * rho;
    let tangential = (t * t + s * s).sqrt();
    let (mut normal, mut factor) = (n, n);
    for lane in 0..LANES {
        let (mu, n, tangential) = (friction.0[lane], n.0[lane], tangential.0[lane]);
        let onto = (n + mu * tangential) / (1.0 + mu * mu);
        let scale = mu * onto / tangential;
        // In the polar cone, inside the cone, or beside both. Where nothing rubs the first two overlap: the polar cone goes first.
        let (inside, polar) = (tangential <= mu * n, mu * tangential <= -n);
        let (onto, scale) = if inside { (n, 1.0) } else { (onto, scale) };
        normal.0[lane] = if polar { 0.0 } else { onto };
        factor.0[lane] = if polar { 0.0 } else { scale };
    }
    [impulse[0] - normal, impulse[1] - t * factor, impulse[2] - s * factor]
}

#[cfg(test)]
mod tests {
    use super::super::block::Blocks;
    use super::super::colour::{Link, colour};
    use super::super::problem::{Inertia, Manifold, Point, Problem, contact_frame};
    use super::super::residual::Meter;
    use super::super::solver::{Alone, LocalLaw};
    use super::super::{Hub, Sweep};
    use super::*;
    use crate::geometry::random::Random;
    use crate::scene::{BodyId, ManifoldKey};

    /// Bodies with full inertia tensors in a random network, one in eight of them fixed, one in six manifolds without friction.
    fn problem(bodies: usize, manifolds: usize) -> Problem {
        let mut random = Random::new(7, 0);
        let mut number = || random.between(-1.0, 1.0);
        let mut problem = Problem::default();
        for body in 0..bodies {
            let root = Mat3::from_fn(|_, _| number());
            let tensor = root.transpose() * root + Mat3::identity();
            let fixed = body % 8 == 7;
            problem.inertia.push(if fixed {
                Inertia::default()
            } else {
                Inertia::new(1.5 + number(), &tensor)
            });
            let mut vector = || Vec3::new(number(), number(), number());
            let twist = Twist::new(vector(), vector());
            problem.free_velocity.push(if fixed { Twist::default() } else { twist });
        }
        for index in 0..manifolds {
            let mut slot = || ((number() + 1.0) * 0.5 * bodies as f64) as u32 % bodies as u32;
            let (a, b) = (slot(), slot());
            if a == b || a % 8 == 7 && b % 8 == 7 {
                continue;
            }
            let key = ManifoldKey {
                bodies: [BodyId(a.min(b).into()), BodyId(a.max(b).into())],
                parts: [index as u16, 0],
            };
            let first_point = problem.points.len() as u32;
            let mut vector = || Vec3::new(number(), number(), number());
            let frame = contact_frame(vector().normalize());
            for _ in 0..1 + index % 3 {
                let arms = [vector(), vector()];
                let start = vector();
                let impulse = [start.x.abs(), 0.1 * start.y, 0.1 * start.z];
                problem.points.push(Point { arms, bias: 0.2 * vector().x, impulse });
            }
            let friction = if index % 6 == 0 { 0.0 } else { 0.6 };
            problem.manifolds.push(Manifold {
                key,
                slots: [a.min(b), a.max(b)],
                frame,
                friction,
                first_point,
            });
        }
        problem
    }

    fn colours(problem: &Problem) -> super::super::Colours {
        let slot = |slot: u32| problem.inertia[slot as usize].is_movable().then_some(slot);
        let links: Vec<Link> =
            problem.manifolds.iter().map(|m| Link { key: m.key, slots: m.slots.map(slot) }).collect();
        colour(&links, problem.inertia.len())
    }

    /// A sweep after a sweep, all colours, by one instruction set.
    fn run(problem: &Problem, visit: unsafe fn(&[Block], &Shared, Visit)) -> (Vec<Twist>, Vec<Row>) {
        let mut blocks = Blocks::new(problem, &colours(problem), |slot| slot % 5 == 0);
        let mut velocities = problem.free_velocity.clone();
        velocities.push(Twist::default());
        for kind in [Visit::Start, Visit::Projected, Visit::Projected, Visit::Exact] {
            for phase in &blocks.phases {
                let shared = Shared { velocities: velocities.as_mut_ptr(), rows: blocks.rows.as_mut_ptr() };
                for range in [phase.boundary.clone(), phase.interior.clone()] {
                    // SAFETY: one thread; the arrays were made for each other.
                    unsafe { visit(&blocks.blocks[range], &shared, kind) };
                }
            }
        }
        (velocities, blocks.rows)
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let problem = problem(90, 260);
        let plain = run(&problem, visit_blocks::<Plain>);
        let bits = |state: &(Vec<Twist>, Vec<Row>)| {
            let velocities = state.0.iter().flat_map(|twist| twist.linear.into_iter().chain(twist.angular));
            let impulses = state.1.iter().flat_map(|row| row.impulse.map(|entry| entry.0)).flatten();
            velocities.chain(impulses).map(f64::to_bits).collect::<Vec<_>>()
        };
        assert!(plain.0.iter().any(|twist| twist.linear[0] != 0.0));
        assert_eq!(bits(&plain), bits(&run(&problem, visit_all)));
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            assert_eq!(bits(&plain), bits(&run(&problem, visit_blocks::<Avx2>)));
        }
    }

    /// The scalar visit, straight from the equations.
    #[test]
    fn a_sweep_is_what_the_equations_say() {
        let problem = problem(40, 120);
        let colours = colours(&problem);
        let mut sweep = Sweep::new(&problem, &Hub::default(), &colours, LocalLaw::Projected, |_| false);
        sweep.start(&mut Alone);
        sweep.run(&mut Alone);
        let found = sweep.impulses(problem.points.len());

        let mut velocities = problem.free_velocity.clone();
        let mut impulses: Vec<[f64; 3]> = problem.points.iter().map(|point| point.impulse).collect();
        let mut order: Vec<usize> = (0..problem.manifolds.len()).collect();
        order.sort_by_key(|&index| colours.of[index]);
        for &index in &order {
            for place in problem.points_of(index) {
                let (manifold, point) = (&problem.manifolds[index], &problem.points[place]);
                problem.apply(manifold, point, &impulses[place], &mut velocities);
            }
        }
        for &index in &order {
            let manifold = &problem.manifolds[index];
            let blocks: Vec<Mat3> = problem
                .points_of(index)
                .map(|place| problem.delassus(manifold, &problem.points[place]))
                .collect();
            let strong = |w: &Mat3| is_strongly_coupled(w[(0, 0)], [w[(1, 0)], w[(2, 0)]], manifold.friction);
            for (place, w) in problem.points_of(index).zip(&blocks) {
                let point = &problem.points[place];
                let velocity =
                    problem.relative_velocity(manifold, point, &velocities) + Vec3::new(point.bias, 0.0, 0.0);
                let old = Vec3::from(impulses[place]);
                let new = if blocks.iter().any(strong) {
                    solve_contact(w, &(velocity - w * old), manifold.friction)
                } else {
                    let normal = (old.x - velocity.x / w[(0, 0)]).max(0.0);
                    let lambda = w.fixed_view::<2, 2>(1, 1).into_owned().symmetric_eigenvalues().max();
                    let target =
                        old.yz() - (velocity.yz() + w.fixed_view::<2, 1>(1, 0) * (normal - old.x)) / lambda;
                    let limit = manifold.friction * normal;
                    let target =
                        if target.norm() > limit { target * (limit / target.norm()) } else { target };
                    Vec3::new(normal, target.x, target.y)
                };
                problem.apply(manifold, point, &(new - old).into(), &mut velocities);
                impulses[place] = new.into();
            }
        }
        for (found, expected) in found.iter().zip(&impulses) {
            assert!((Vec3::from(*found) - Vec3::from(*expected)).norm() < 1e-11, "{found:?} {expected:?}");
        }
    }

    #[test]
    fn lanes_measure_what_the_meter_measures() {
        let problem = problem(60, 200);
        let mut sweep =
            Sweep::new(&problem, &Hub::default(), &colours(&problem), LocalLaw::Projected, |_| false);
        sweep.start(&mut Alone);
        for _ in 0..4 {
            let impulses = sweep.impulses(problem.points.len());
            let expected = Meter::new(&problem).measure(&sweep.velocities, &impulses).finish();
            let found = sweep.measure().finish();
            assert!((found.natural_map / expected.natural_map - 1.0).abs() < 1e-12);
            assert!((found.worst_velocity / expected.worst_velocity - 1.0).abs() < 1e-12);
            sweep.run(&mut Alone);
        }
    }

    /// Without friction the short visit does what the whole one does.
    #[test]
    fn frictionless_problems_take_the_short_way() {
        let mut smooth = problem(60, 200);
        smooth.manifolds.iter_mut().for_each(|manifold| manifold.friction = 0.0);
        smooth.points.iter_mut().for_each(|point| point.impulse = [point.impulse[0], 0.0, 0.0]);
        let mut rough = smooth.clone();
        // One tangential impulse that the first visit removes.
        rough.points[0].impulse[1] = f64::MIN_POSITIVE;
        let [smooth, rough] = [smooth, rough].map(|problem| {
            let mut sweep =
                Sweep::new(&problem, &Hub::default(), &colours(&problem), LocalLaw::Projected, |_| false);
            sweep.start(&mut Alone);
            (0..5).for_each(|_| sweep.run(&mut Alone));
            sweep.impulses(problem.points.len())
        });
        for (smooth, rough) in smooth.iter().zip(&rough) {
            assert!((Vec3::from(*smooth) - Vec3::from(*rough)).norm() < 1e-12);
        }
    }
}
