//! The cone of Coulomb's law, and how far a state is from the law.
//!
//! ```text
//! K = { ‖p_t‖ ≤ μ p_n },      F(r, u) = r − P_K( r − ρ (u + μ ‖u_t‖ n) ),      F = 0  ⇔  (32)
//! ```

use crate::geometry::Vec3;

/// Projection onto the friction cone `{ ‖p_t‖ ≤ μ p_n }`.
pub fn project_on_cone(p: Vec3, friction: f64) -> Vec3 {
    let tangential = (p.y * p.y + p.z * p.z).sqrt();
    // The polar cone first: without friction the two overlap in this test, since 0 ≤ 0 · p_n holds for every
    // p_n.
    if friction * tangential <= -p.x {
        return Vec3::zeros();
    }
    if tangential <= friction * p.x {
        return p;
    }
    let normal = (p.x + friction * tangential) / (1.0 + friction * friction);
    let scale = friction * normal / tangential;
    Vec3::new(normal, scale * p.y, scale * p.z)
}

/// `F` of one contact point.
pub fn natural_map(impulse: Vec3, velocity: Vec3, friction: f64, rho: f64) -> Vec3 {
    let slip = (velocity.y * velocity.y + velocity.z * velocity.z).sqrt();
    let shifted = velocity + Vec3::new(friction * slip, 0.0, 0.0);
    impulse - project_on_cone(impulse - shifted * rho, friction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vector() -> impl Strategy<Value = Vec3> {
        (-2.0..2.0, -2.0..2.0, -2.0..2.0).prop_map(|(x, y, z)| Vec3::new(x, y, z))
    }

    /// Without friction the cone is a half-line: found by a bouncing ball that parted and was reported as not
    /// converged.
    #[test]
    fn the_cone_without_friction_is_a_half_line() {
        for (p, projected) in [(-5.5, 0.0), (0.0, 0.0), (5.5, 5.5)] {
            for tangential in [Vec3::zeros(), Vec3::new(0.0, 0.3, -0.4)] {
                let found = project_on_cone(Vec3::x() * p + tangential, 0.0);
                assert_eq!(found, Vec3::x() * projected);
            }
        }
        assert_eq!(natural_map(Vec3::zeros(), Vec3::new(2.0, 1.0, 0.0), 0.0, 1.0), Vec3::zeros());
    }

    proptest! {
        /// The projection is the nearest point of the cone: the remainder is orthogonal to it and in the
        /// polar cone.
        #[test]
        fn projection_is_nearest(p in vector(), friction in 0.0..2.0) {
            let projected = project_on_cone(p, friction);
            prop_assert!(projected.y.hypot(projected.z) <= friction * projected.x + 1e-12);
            let rest = p - projected;
            prop_assert!(rest.dot(&projected).abs() < 1e-12 * (1.0 + p.norm_squared()));
            prop_assert!(rest.x + friction * rest.y.hypot(rest.z) <= 1e-12 * (1.0 + p.norm()));
        }

        /// Zero exactly for states that satisfy the law: take-off, stick and slip.
        #[test]
        fn zero_on_the_law(n in 0.01..2.0, angle in 0.0..6.0, slip in 0.0..3.0, friction in 0.0..1.5, inside in 0.0..0.99, rho in 0.1..10.0) {
            let direction = Vec3::new(0.0, f64::cos(angle), f64::sin(angle));
            let stick = Vec3::new(n, 0.0, 0.0) + direction * (friction * n * inside);
            let sliding = Vec3::new(n, 0.0, 0.0) - direction * (friction * n);
            let states = [
                (Vec3::zeros(), Vec3::new(n, 0.0, 0.0) + direction * slip),
                (stick, Vec3::zeros()),
                (sliding, direction * slip),
            ];
            for (impulse, velocity) in states {
                prop_assert!(natural_map(impulse, velocity, friction, rho).norm() < 1e-12 * (1.0 + rho * slip) * 10.0);
            }
        }

        #[test]
        fn positive_off_the_law(impulse in vector(), velocity in vector(), friction in 0.05..1.5) {
            let violates = impulse.x < -1e-3
                || velocity.x < -1e-3
                || impulse.x.min(velocity.x) > 1e-3
                || impulse.y.hypot(impulse.z) > friction * impulse.x.max(0.0) + 1e-3;
            if violates {
                prop_assert!(natural_map(impulse, velocity, friction, 1.0).norm() > 1e-5);
            }
        }
    }
}
