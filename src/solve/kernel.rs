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

mod measure;
mod momentum;

pub use measure::{SharedWeights, Terms, measure_all, note_free_all};
use momentum::visit_ahead;
pub use momentum::{Ahead, extrapolate_velocities};

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
                Visit::Momentum(ahead, true) => visit_ahead::<I, EXACT>(block, rows, shared, &ahead),
                Visit::Momentum(ahead, false) if block.strong == 0 => {
                    visit_ahead::<I, PROJECTED>(block, rows, shared, &ahead)
                }
                Visit::Momentum(ahead, false) => visit_ahead::<I, MIXED>(block, rows, shared, &ahead),
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
            (weights.normal, weights.tangent) = (w_nn, lambda);
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

#[cfg(test)]
mod tests;
