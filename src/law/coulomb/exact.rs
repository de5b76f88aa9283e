//! One contact alone, solved exactly.
//!
//! Given `q` (relative velocity with bias, without this contact's own impulse) and the Delassus block `W`,
//! find `r` with
//!
//! ```text
//! u = q + W r,   0 ≤ u_n ⊥ r_n ≥ 0,   ‖r_t‖ ≤ μ r_n,   u_t ≠ 0 ⇒ r_t = −μ r_n u_t/‖u_t‖        (32)
//! ```
//!
//! Three cases. *Take-off*: q_n ≥ 0, r = 0. *Stick*: u = 0, r = −W⁻¹q inside the cone. *Slip*: u_n = 0 and
//! `u_t = −s r_t` with s > 0. Eliminating r_n through u_n = 0 leaves the Schur complement `S = W_tt − W_tn
//! W_nt / W_nn` and `p = q_t − W_tn q_n / W_nn`:
//!
//! ```text
//! r_t(s) = −(S + s I)⁻¹ p,    r_n(s) = −(q_n + W_nt·r_t(s)) / W_nn,    ψ(s) = ‖r_t(s)‖ − μ r_n(s) = 0
//! ```
//!
//! ψ(0) > 0 when sticking fails, and ψ(∞) = μ q_n / W_nn < 0: a root with r_n ≥ 0 always lies between, and
//! bracketing finds it. Stick is the limit s = 0.
//!
//! Precondition: `W` symmetric positive definite; semi-definite in the tangent plane is fine.

use crate::geometry::{Mat3, Vec3};

/// The impulse (n, t, s) that satisfies the law.
pub fn solve(delassus: &Mat3, velocity: &Vec3, friction: f64) -> Vec3 {
    if velocity.x >= 0.0 {
        return Vec3::zeros();
    }
    let slip = Slip::new(delassus, velocity, friction);
    let stick = slip.at(0.0);
    if slip.excess(&stick) <= 0.0 {
        return stick.impulse();
    }
    if friction == 0.0 {
        return Vec3::new(-velocity.x / delassus[(0, 0)], 0.0, 0.0);
    }
    slip.root().impulse()
}

/// The one-parameter family of candidate impulses.
struct Slip {
    /// Eigenvalues of `S`, not negative.
    stiffness: [f64; 2],
    /// `p` in the eigenframe of `S`.
    drive: [f64; 2],
    /// Eigenframe: the first axis in (t, s), the second turned by +90°.
    axis: [f64; 2],
    /// `W_nt` in the eigenframe.
    coupling: [f64; 2],
    normal_drive: f64,
    normal_stiffness: f64,
    friction: f64,
}

struct Candidate {
    normal: f64,
    /// In the eigenframe.
    tangential: [f64; 2],
    axis: [f64; 2],
}

impl Slip {
    fn new(w: &Mat3, q: &Vec3, friction: f64) -> Self {
        let (w_nn, w_nt, w_ns) = (w[(0, 0)], w[(0, 1)], w[(0, 2)]);
        let s_tt = w[(1, 1)] - w_nt * w_nt / w_nn;
        let s_ts = w[(1, 2)] - w_nt * w_ns / w_nn;
        let s_ss = w[(2, 2)] - w_ns * w_ns / w_nn;
        let p = [q.y - w_nt * q.x / w_nn, q.z - w_ns * q.x / w_nn];
        let (stiffness, axis) = eigen_2x2(s_tt, s_ts, s_ss);
        let turn = |v: [f64; 2]| [axis[0] * v[0] + axis[1] * v[1], axis[0] * v[1] - axis[1] * v[0]];
        Self {
            stiffness: stiffness.map(|value| value.max(0.0)),
            drive: turn(p),
            axis,
            coupling: turn([w_nt, w_ns]),
            normal_drive: q.x,
            normal_stiffness: w_nn,
            friction,
        }
    }

    fn at(&self, s: f64) -> Candidate {
        // 0/0 (no drive along a direction without stiffness) is no impulse.
        let entry = |k: usize| {
            if self.drive[k] == 0.0 { 0.0 } else { -self.drive[k] / (self.stiffness[k] + s) }
        };
        let tangential = [entry(0), entry(1)];
        let pull = self.coupling[0] * tangential[0] + self.coupling[1] * tangential[1];
        let normal = -(self.normal_drive + pull) / self.normal_stiffness;
        Candidate { normal, tangential, axis: self.axis }
    }

    /// ψ: how far outside the cone. Infinite impulses count as outside.
    fn excess(&self, candidate: &Candidate) -> f64 {
        let [x, y] = candidate.tangential;
        let excess = (x * x + y * y).sqrt() - self.friction * candidate.normal;
        if excess.is_nan() { f64::INFINITY } else { excess }
    }

    /// A bracket by factors of 16, upwards or downwards from the stiffness, then regula falsi inside it:
    /// every step keeps the sign change, so nothing can go wrong, and the numbers of steps are bounded by the
    /// range of f64 and by 200. What is not finite has no bracket; the impulse is not finite either then.
    fn root(&self) -> Candidate {
        let mut high = self.stiffness[0].max(self.stiffness[1]).max(f64::MIN_POSITIVE * 1e16);
        let mut low = 0.0;
        while high.is_finite() && self.excess(&self.at(high)) > 0.0 {
            low = high;
            high *= 16.0;
        }
        while low == 0.0 && high > f64::MIN_POSITIVE * 1e16 {
            let middle = high / 16.0;
            if self.excess(&self.at(middle)) > 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        // Regula falsi (Illinois) keeps the bracket and converges faster than linearly; ψ is smooth here.
        let (mut at_low, mut at_high) = (self.excess(&self.at(low)), self.excess(&self.at(high)));
        for _ in 0..200 {
            let secant = high - at_high * (high - low) / (at_high - at_low);
            let middle = if secant > low && secant < high { secant } else { low + 0.5 * (high - low) };
            if middle <= low || middle >= high {
                break;
            }
            let value = self.excess(&self.at(middle));
            if value > 0.0 {
                (low, at_low) = (middle, value);
                at_high *= 0.5;
            } else {
                (high, at_high) = (middle, value);
                at_low *= 0.5;
            }
            if value == 0.0 {
                break;
            }
        }
        // The end inside the cone: friction never exceeds its bound by more than rounding.
        self.at(high)
    }
}

impl Candidate {
    fn impulse(&self) -> Vec3 {
        let [c, s] = self.axis;
        let [x, y] = self.tangential;
        Vec3::new(self.normal, c * x - s * y, s * x + c * y)
    }
}

/// Eigenvalues (larger first) and the unit eigenvector of the first, of a symmetric 2 × 2 matrix.
pub(super) fn eigen_2x2(a: f64, b: f64, c: f64) -> ([f64; 2], [f64; 2]) {
    let (mean, half) = (0.5 * (a + c), 0.5 * (a - c));
    let radius = (half * half + b * b).sqrt();
    if radius == 0.0 {
        return ([mean, mean], [1.0, 0.0]);
    }
    // The eigenvector as (radius + half, b) or (b, radius − half), whichever is not a difference of equals.
    let (x, y) = if half >= 0.0 { (radius + half, b) } else { (b, radius - half) };
    let length = (x * x + y * y).sqrt();
    // The smaller eigenvalue through the determinant, so that it does not cancel.
    let large = mean + radius;
    let small = if large > 0.0 { (a * c - b * b) / large } else { mean - radius };
    ([large, small], [x / length, y / length])
}

#[cfg(test)]
mod tests {
    use super::super::natural_map;
    use super::*;

    /// splitmix64: the tests must not depend on anything else.
    struct Numbers(u64);

    impl Numbers {
        fn uniform(&mut self, low: f64, high: f64) -> f64 {
            self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
            low + (high - low) * ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        fn block(&mut self) -> (Mat3, Vec3, f64) {
            let kind = (self.uniform(0.0, 4.0)) as u32;
            // Square roots of eigenvalues spread over up to six decades; kind 3 makes normal and tangent
            // strongly coupled.
            let spread = [0.3, 1.0, 3.0, 0.5][kind as usize];
            let diagonal = Vec3::from_fn(|_, _| 10f64.powf(self.uniform(-spread, spread)));
            let axis = Vec3::from_fn(|_, _| self.uniform(-1.0, 1.0));
            let rotation = crate::geometry::Quat::from_scaled_axis(axis * 3.0).to_rotation_matrix();
            let root = Mat3::from_diagonal(&diagonal) * rotation.matrix();
            let mut w = root.transpose() * root;
            if kind == 3 {
                // Nearly parallel columns: W_nt² close to W_nn W_tt.
                let c = self.uniform(0.9, 0.999);
                let scale = (w[(0, 0)] * w[(1, 1)]).sqrt() * c;
                w = Mat3::new(w[(0, 0)], scale, 0.0, scale, w[(1, 1)], 0.0, 0.0, 0.0, w[(2, 2)]);
            }
            let q = Vec3::from_fn(|_, _| self.uniform(-1.0, 1.0)) * 10f64.powf(self.uniform(-6.0, 2.0));
            let friction = if self.uniform(0.0, 1.0) < 0.05 { 0.0 } else { self.uniform(0.0, 1.5) };
            (w, q, friction)
        }
    }

    /// Scale-free backward error: against ‖q‖ + ‖W‖‖r‖, since u = q + W r is itself rounded at that size.
    fn error(w: &Mat3, q: &Vec3, friction: f64, r: &Vec3) -> f64 {
        let u = q + w * r;
        let rho = 1.0 / w.norm();
        natural_map(*r, u, friction, rho).norm() / rho / (q.norm() + w.norm() * r.norm())
    }

    #[test]
    fn the_law_holds_on_random_blocks() {
        let mut numbers = Numbers(1);
        let mut cases = [0; 3];
        for _ in 0..100_000 {
            let (w, q, friction) = numbers.block();
            let r = solve(&w, &q, friction);
            let found = error(&w, &q, friction, &r);
            assert!(found < 1e-14, "error {found:e}: W {w} q {q} mu {friction} r {r}");
            let u = q + w * r;
            cases[if r.x == 0.0 {
                0
            } else if u.norm() < 1e-9 * q.norm() {
                1
            } else {
                2
            }] += 1;
        }
        assert!(cases.iter().all(|&count| count > 5_000), "take-off, stick, slip: {cases:?}");
    }

    /// Independent and slow: every slip direction on a fine circle, then bisection of the cross product of
    /// u_t and the direction.
    fn all_slip_solutions(w: &Mat3, q: &Vec3, friction: f64) -> Vec<Vec3> {
        let impulse = |angle: f64| {
            let d = [angle.cos(), angle.sin()];
            let slope = w[(0, 0)] - friction * (w[(0, 1)] * d[0] + w[(0, 2)] * d[1]);
            let n = -q.x / slope;
            Vec3::new(n, -friction * n * d[0], -friction * n * d[1])
        };
        let misfit = |angle: f64| {
            let u = q + w * impulse(angle);
            u.y * angle.sin() - u.z * angle.cos()
        };
        let count = 2000;
        let step = std::f64::consts::TAU / f64::from(count);
        let mut found = Vec::new();
        for k in 0..count {
            let (mut a, mut b) = (f64::from(k) * step, f64::from(k + 1) * step);
            if misfit(a) * misfit(b) > 0.0 {
                continue;
            }
            for _ in 0..60 {
                let middle = 0.5 * (a + b);
                if misfit(a) * misfit(middle) <= 0.0 { b = middle } else { a = middle }
            }
            let r = impulse(a);
            let u = q + w * r;
            if r.x > 0.0 && u.y * a.cos() + u.z * a.sin() > 0.0 {
                found.push(r);
            }
        }
        found
    }

    #[test]
    fn slip_agrees_with_a_search_over_directions() {
        let mut numbers = Numbers(2);
        let mut compared = 0;
        for _ in 0..2_000 {
            let (w, q, friction) = numbers.block();
            let r = solve(&w, &q, friction);
            let slipping = r.x > 0.0 && (q + w * r).norm() > 1e-6 * q.norm() && friction > 0.0;
            // The fine circle resolves directions only where W is not too stretched.
            if !slipping || w.norm() * w.try_inverse().unwrap().norm() > 1e3 {
                continue;
            }
            let all = all_slip_solutions(&w, &q, friction);
            let nearest = all.iter().map(|other| (other - r).norm()).fold(f64::INFINITY, f64::min);
            assert!(nearest < 1e-7 * r.norm(), "nearest {nearest:e}, {r} among {all:?}");
            compared += 1;
        }
        assert!(compared > 200, "{compared}");
    }

    /// It went on for ever once: a plough that was drawn through the wall of its trough hung the run.
    #[test]
    fn what_is_not_finite_has_no_finite_answer() {
        let w = Mat3::new(1.0, 0.4, 0.1, 0.4, 2.0, 0.0, 0.1, 0.0, 1.5);
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        for q in [
            [nan, 0.0, 0.0],
            [-1.0, nan, 0.0],
            [-1.0, 0.0, nan],
            [-infinity, 0.0, 0.0],
            [-1.0, infinity, 0.0],
        ] {
            let r = solve(&w, &q.into(), 0.5);
            assert!(!r.iter().all(|x| x.is_finite()), "{q:?}: {r}");
        }
        let r = solve(&(w * nan), &Vec3::new(-1.0, 0.2, 0.0), 0.5);
        assert!(!r.iter().all(|x| x.is_finite()), "{r}");
    }

    #[test]
    fn degenerate_blocks_have_finite_answers() {
        for w in
            [Mat3::from_diagonal(&Vec3::new(1.0, 0.0, 0.0)), Mat3::from_diagonal(&Vec3::new(1.0, 1.0, 0.0))]
        {
            for q in [Vec3::new(-1.0, 0.0, 0.0), Vec3::new(-1.0, 0.0, 0.3), Vec3::new(-1e-300, 1.0, 1.0)] {
                let r = solve(&w, &q, 0.5);
                assert!(r.iter().all(|x| x.is_finite()), "{r}");
                assert!(error(&w, &q, 0.5, &r) < 1e-14);
            }
        }
    }
}
