//! One contact alone, solved exactly, again and again: the family of candidates of [`super::exact`] with all
//! that does not depend on the velocity kept, and the search for the slip begun where the last one ended.
//!
//! ```text
//! r_t(s) = −(S + s I)⁻¹ p,    r_n(s) = −(q_n + W_nt·r_t(s)) / W_nn,    ‖r_t(s)‖ = μ r_n(s)
//! ```
//!
//! With normal and tangent uncoupled and `S` a multiple of the identity, `1/‖r_t(s)‖` is linear in s; so
//! Newton's method on `1/‖r_t‖ − 1/(μ r_n)`, inside a bracket that every value tightens, mostly needs two or
//! three steps.

use super::exact::eigen_2x2;
use crate::geometry::{Mat3, Vec3};

/// What a visit to one contact needs of its block of `W`.
#[derive(Clone, Copy, Debug)]
pub struct Repeated {
    /// Eigenvalues of the tangential Schur complement `S`, not negative.
    stiffness: [f64; 2],
    /// One over each; infinite for a direction without stiffness.
    softness: [f64; 2],
    /// The eigenvector of the first; the second is turned by +90°.
    axis: [f64; 2],
    /// `W_nt` in the eigenframe.
    coupling: [f64; 2],
    /// `W_nt / W_nn`, contact frame.
    share: [f64; 2],
    /// 1 / W_nn; zero for a contact that nothing can move.
    inverse_normal: f64,
    friction: f64,
    /// Where the last slip was found.
    slip: f64,
}

/// Relative accuracy of `‖r_t‖ = μ r_n`: far below any residual asked for, above the rounding of ψ.
const ACCURACY: f64 = 1e-14;
const STEPS: usize = 100;

impl Repeated {
    /// Of `block` only the symmetric part counts: which symmetric operator a visit uses does not change what
    /// the sweep converges to, as long as the velocity it starts from is the true one.
    pub fn new(block: &Mat3, friction: f64) -> Self {
        let w = (block + block.transpose()) * 0.5;
        let (w_nn, w_nt, w_ns) = (w[(0, 0)], w[(0, 1)], w[(0, 2)]);
        let inverse_normal = if w_nn > 0.0 { 1.0 / w_nn } else { 0.0 };
        let share = [w_nt * inverse_normal, w_ns * inverse_normal];
        let (stiffness, axis) =
            eigen_2x2(w[(1, 1)] - w_nt * share[0], w[(1, 2)] - w_nt * share[1], w[(2, 2)] - w_ns * share[1]);
        let stiffness = stiffness.map(|value| value.max(0.0));
        Self {
            stiffness,
            softness: stiffness.map(|value| 1.0 / value),
            axis,
            coupling: turn(axis, [w_nt, w_ns]),
            share,
            inverse_normal,
            friction,
            slip: stiffness[0],
        }
    }

    /// The impulse that satisfies the law, given the velocity `q` without it.
    #[inline(always)]
    pub fn solve(&mut self, q: &Vec3) -> [f64; 3] {
        if q.x >= 0.0 || self.inverse_normal == 0.0 {
            return [0.0; 3];
        }
        if self.friction == 0.0 {
            return [-q.x * self.inverse_normal, 0.0, 0.0];
        }
        let drive = turn(self.axis, [q.y - self.share[0] * q.x, q.z - self.share[1] * q.x]);
        let entry = |k: usize| if drive[k] == 0.0 { 0.0 } else { -drive[k] * self.softness[k] };
        let tangential = [entry(0), entry(1)];
        let normal = self.normal(q.x, tangential);
        let bound = self.friction * normal;
        let square = tangential[0] * tangential[0] + tangential[1] * tangential[1];
        if bound >= 0.0 && square <= bound * bound {
            return self.impulse(normal, tangential);
        }
        self.sliding(q.x, drive)
    }

    fn normal(&self, drive: f64, tangential: [f64; 2]) -> f64 {
        -(drive + self.coupling[0] * tangential[0] + self.coupling[1] * tangential[1]) * self.inverse_normal
    }

    fn impulse(&self, normal: f64, [x, y]: [f64; 2]) -> [f64; 3] {
        let [c, s] = self.axis;
        [normal, c * x - s * y, s * x + c * y]
    }

    /// Sticking failed: ψ(0) > 0, and ψ(∞) < 0.
    fn sliding(&mut self, normal_drive: f64, drive: [f64; 2]) -> [f64; 3] {
        let scale = self.stiffness[0].max(f64::MIN_POSITIVE * 1e16);
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let mut s = if self.slip > 0.0 { self.slip } else { scale };
        let (mut normal, mut tangential, mut length) = (0.0, [0.0; 2], 0.0);
        for _ in 0..STEPS {
            let inverse = [1.0 / (self.stiffness[0] + s), 1.0 / (self.stiffness[1] + s)];
            tangential = [-drive[0] * inverse[0], -drive[1] * inverse[1]];
            normal = self.normal(normal_drive, tangential);
            let square = tangential[0] * tangential[0] + tangential[1] * tangential[1];
            length = square.sqrt();
            let bound = self.friction * normal;
            let excess = length - bound;
            if excess.abs() <= ACCURACY * length {
                break;
            }
            if excess > 0.0 {
                low = s;
            } else {
                high = s;
            }
            // d r_t/ds = −r_t/(λ + s).
            let change = [-tangential[0] * inverse[0], -tangential[1] * inverse[1]];
            let length_change = (tangential[0] * change[0] + tangential[1] * change[1]) / length;
            let normal_change =
                -(self.coupling[0] * change[0] + self.coupling[1] * change[1]) * self.inverse_normal;
            let numerator = length - square / bound;
            let denominator = -length_change + self.friction * normal_change * square / (bound * bound);
            let next = s - numerator / denominator;
            let usable = bound > 0.0 && next > low && next < high;
            let fallback = if high.is_finite() { 0.5 * (low + high) } else { (s * 16.0).max(scale) };
            let next = if usable { next } else { fallback };
            if next == s || !next.is_finite() {
                break;
            }
            s = next;
        }
        self.slip = s;
        // What rounding or a search cut short leaves outside the cone comes back to its surface.
        let normal = normal.max(0.0);
        let scale = if length > 0.0 { (self.friction * normal / length).min(1.0) } else { 0.0 };
        self.impulse(normal, [tangential[0] * scale, tangential[1] * scale])
    }
}

#[inline(always)]
fn turn([c, s]: [f64; 2], v: [f64; 2]) -> [f64; 2] {
    [c * v[0] + s * v[1], c * v[1] - s * v[0]]
}

#[cfg(test)]
mod tests {
    use super::super::natural_map;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// The law itself, from a cold and from a warm start, for blocks with eigenvalues over eight decades.
        #[test]
        fn the_law_holds(
            roots in prop::array::uniform3(-2.0..2.0f64), turn in prop::array::uniform3(-3.0..3.0f64),
            q in prop::array::uniform3(-1.0..1.0f64), other in prop::array::uniform3(-1.0..1.0f64),
            size in -6.0..3.0f64, friction in 0.0..1.5f64,
        ) {
            let rotation = crate::geometry::Quat::from_scaled_axis(Vec3::from(turn)).to_rotation_matrix();
            let root = Mat3::from_diagonal(&Vec3::from(roots).map(|power| 10f64.powf(power))) * rotation.matrix();
            let w = root.transpose() * root;
            let mut local = Repeated::new(&w, friction);
            for q in [Vec3::from(q) * 10f64.powf(size), Vec3::from(other), Vec3::from(q) * 10f64.powf(size)] {
                let r = Vec3::from(local.solve(&q));
                let u = q + w * r;
                let rho = 1.0 / w.norm();
                let error = natural_map(r, u, friction, rho).norm() / rho / (q.norm() + w.norm() * r.norm());
                prop_assert!(error < 1e-11, "{error:e} {w} {q} {friction} {r}");
                prop_assert!(r.y.hypot(r.z) <= friction * r.x * (1.0 + 1e-12));
            }
        }
    }

    #[test]
    fn a_contact_that_nothing_moves_gets_no_impulse() {
        let mut local = Repeated::new(&Mat3::zeros(), 0.5);
        assert_eq!(local.solve(&Vec3::new(-1.0, 1.0, 0.0)), [0.0; 3]);
    }

    #[test]
    fn without_friction_only_the_normal_counts() {
        let mut local = Repeated::new(&Mat3::from_diagonal(&Vec3::new(4.0, 1.0, 1.0)), 0.0);
        assert_eq!(local.solve(&Vec3::new(-1.0, 1.0, 0.0)), [0.25, 0.0, 0.0]);
    }
}
