//! One step's contact problem in matrix-free form.
//!
//! With `H` the map (8) from contact to body coordinates and `M` the mass matrix,
//!
//! ```text
//! v = v_free + M⁻¹ H r                                                   (28)
//! V = Hᵀ v                    relative velocity at each contact point      (9)
//! 0 ≤ V_n + bias + C r_n ⊥ r_n ≥ 0,   ‖r_t‖ ≤ μ r_n,   V_t ≠ 0 ⇒ r_t = −μ r_n V_t/‖V_t‖   (32)
//! ```
//!
//! `bias` is `e V_n⁻` for Newton's impact law, or `g/h` for the predictive law.
//! C is the compliance of a contact, zero where it is rigid: the part of a relative velocity that goes into
//! squeezing the two surfaces. It adds to `W_nn`. Where a contact is *stretched*, `V_t + bias_t + C_t r_t`
//! takes the place of `V_t`, and C_t adds to `W_tt`.
//! `W = Hᵀ M⁻¹ H` is never formed; only its diagonal blocks are, point by point.

use super::end::delassus_of_body;
use crate::geometry::{Mat3, Vec3};
use crate::lanes::Line;
use crate::law::Kind;
use crate::scene::ManifoldKey;
use serde::{Deserialize, Serialize};

/// Linear and angular velocity, world frame. Half a cache line each, so that the sweep loads four numbers at
/// once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct Twist {
    pub linear: [f64; 3],
    padding_linear: f64,
    pub angular: [f64; 3],
    padding_angular: f64,
}

impl Twist {
    pub fn new(linear: Vec3, angular: Vec3) -> Self {
        Self { linear: linear.into(), angular: angular.into(), ..Default::default() }
    }

    /// `free + factor (self − free)`.
    pub(super) fn take_from(&mut self, free: &Twist, factor: f64) {
        for axis in 0..3 {
            self.linear[axis] = free.linear[axis] + factor * (self.linear[axis] - free.linear[axis]);
            self.angular[axis] = free.angular[axis] + factor * (self.angular[axis] - free.angular[axis]);
        }
    }

    /// All of it, padding included, as one register holds it.
    #[inline(always)]
    pub(super) fn numbers(&mut self) -> &mut Line {
        const { assert!(size_of::<Self>() == size_of::<Line>()) };
        // SAFETY: eight f64 without gaps, in the layout of C.
        unsafe { &mut *(&raw mut *self).cast() }
    }
}

/// Inverse mass and inverse inertia tensor in the world frame; all zero for a body that contacts cannot move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct Inertia {
    pub inverse_mass: f64,
    /// xx, xy, xz, yy, yz, zz.
    pub inverse_inertia: [f64; 6],
    padding: f64,
}

impl Inertia {
    /// `inverse_tensor` is symmetric, world frame.
    pub fn new(inverse_mass: f64, inverse_tensor: &Mat3) -> Self {
        let m = inverse_tensor;
        let inverse_inertia = [m[(0, 0)], m[(0, 1)], m[(0, 2)], m[(1, 1)], m[(1, 2)], m[(2, 2)]];
        Self { inverse_mass, inverse_inertia, padding: 0.0 }
    }

    pub fn inverse_tensor(&self) -> Mat3 {
        let [xx, xy, xz, yy, yz, zz] = self.inverse_inertia;
        Mat3::new(xx, xy, xz, xy, yy, yz, xz, yz, zz)
    }

    pub fn is_movable(&self) -> bool {
        self.inverse_mass > 0.0
    }
}

/// The contact of two convex parts: one frame, several points.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifold {
    pub key: ManifoldKey,
    /// Which bodies, as places in [`Problem::inertia`]. Impulses push the second along `+normal`, the first
    /// along `−normal`.
    pub slots: [u32; 2],
    /// The contact frame (n, t, s), world, right-handed.
    pub frame: [Vec3; 3],
    pub kind: Kind,
    pub friction: f64,
    /// C ≥ 0, kg⁻¹; zero for rigid.
    pub compliance: f64,
    /// First of its points; they end where the next manifold's begin.
    pub first_point: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// From each body's centre of mass to the contact point, world.
    pub arms: [Vec3; 2],
    /// Added to the normal velocity in the contact law, m/s.
    pub bias: f64,
    /// Where the iteration starts, contact frame (n, t, s), N s.
    pub impulse: [f64; 3],
}

/// How a point gives way in the tangent plane: `V_t + bias + C_t r_t` takes the place of `V_t` in the law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stretch {
    /// Along t and s, m/s.
    pub bias: [f64; 2],
    /// C_t ≥ 0, kg⁻¹; zero for rigid.
    pub compliance: f64,
}

impl Stretch {
    /// What the spring stores that gives this impulse, contact frame, J.
    pub fn energy(&self, impulse: &[f64; 3]) -> f64 {
        0.5 * self.compliance * (impulse[1] * impulse[1] + impulse[2] * impulse[2])
    }
}

#[derive(Clone, Debug, Default)]
pub struct Problem {
    pub inertia: Vec<Inertia>,
    /// `v_free` of (28); the velocity itself for bodies that contacts cannot move.
    pub free_velocity: Vec<Twist>,
    /// Ascending by key.
    pub manifolds: Vec<Manifold>,
    pub points: Vec<Point>,
    /// One for each point, or none at all if no contact is [stretched](Kind::Stretched).
    pub stretches: Vec<Stretch>,
    /// By slot: where the body is along some line through all of them, neighbours close together, or
    /// [`IDLE`]; as the slots stand if empty. It decides what stands beside what in memory, and nothing else.
    pub places: Vec<u32>,
}

/// The place of a body that no contact changes, here or on another rank.
pub const IDLE: u32 = u32::MAX;

impl Problem {
    pub fn points_of(&self, manifold: usize) -> std::ops::Range<usize> {
        let end =
            self.manifolds.get(manifold + 1).map_or(self.points.len(), |next| next.first_point as usize);
        self.manifolds[manifold].first_point as usize..end
    }

    /// `W_αα`, contact frame (n, t, s), of the point at `place`, compliances included.
    pub fn delassus(&self, manifold: &Manifold, place: usize) -> Mat3 {
        let point = &self.points[place];
        let frame = Mat3::from_columns(&manifold.frame);
        let mut world = Mat3::zeros();
        for side in 0..2 {
            let inertia = &self.inertia[manifold.slots[side] as usize];
            if inertia.is_movable() {
                world += delassus_of_body(inertia, &point.arms[side]);
            }
        }
        let local = frame.transpose() * world * frame;
        let mut delassus = (local + local.transpose()) * 0.5;
        delassus[(0, 0)] += manifold.compliance;
        let tangential = self.stretches.get(place).map_or(0.0, |stretch| stretch.compliance);
        (1..3).for_each(|axis| delassus[(axis, axis)] += tangential);
        delassus
    }

    /// Relative velocity at a point, contact frame, without bias.
    pub fn relative_velocity(&self, manifold: &Manifold, point: &Point, velocities: &[Twist]) -> Vec3 {
        let at = |side: usize| {
            let twist = &velocities[manifold.slots[side] as usize];
            Vec3::from(twist.linear) + Vec3::from(twist.angular).cross(&point.arms[side])
        };
        let difference = at(1) - at(0);
        Vec3::from_fn(|axis, _| manifold.frame[axis].dot(&difference))
    }

    /// Adds `M⁻¹ H r` of one point to the velocities: what the impulse `r` (contact frame) does to the two
    /// bodies.
    pub fn apply(&self, manifold: &Manifold, point: &Point, impulse: &[f64; 3], velocities: &mut [Twist]) {
        let world: Vec3 = (0..3).map(|axis| manifold.frame[axis] * impulse[axis]).sum();
        for (side, sign) in [(0, -1.0), (1, 1.0)] {
            let slot = manifold.slots[side] as usize;
            let inertia = &self.inertia[slot];
            if inertia.is_movable() {
                let push = world * sign;
                let spin = inertia.inverse_tensor() * point.arms[side].cross(&push);
                for axis in 0..3 {
                    velocities[slot].linear[axis] += push[axis] * inertia.inverse_mass;
                    velocities[slot].angular[axis] += spin[axis];
                }
            }
        }
    }
}

/// A right-handed frame (n, t, s) for a unit normal: a pure function of the normal.
pub fn contact_frame(normal: Vec3) -> [Vec3; 3] {
    // The tangent starts from the axis that the normal is least along, so the cross product is never short.
    let axis = normal.iamin();
    let tangent = normal.cross(&Vec3::ith(axis, 1.0)).normalize();
    [normal, tangent, normal.cross(&tangent)]
}
