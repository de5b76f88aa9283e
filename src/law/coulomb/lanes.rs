//! Coulomb's law for some contact points side by side, as sweeps visit and measure them.
//!
//! A *projected* visit, `V` including the bias:
//!
//! ```text
//! r_n'  = max(0, r_n − V_n / W_nn)
//! V_t'  = V_t + W_tn (r_n' − r_n)
//! r_t'  = P_disc(μ r_n')( r_t − V_t' / λ )      λ = largest eigenvalue of W_tt
//! ```
//!
//! Its fixed points are exactly the states that satisfy (32): r_n' = r_n gives Signorini's condition and r_t'
//! = r_t, λ being a number and not a matrix, Coulomb's.

use crate::lanes::Lanes;
use std::hint::black_box;

/// What a projected visit needs of `W_αα`.
#[derive(Clone, Copy)]
pub struct Steps<const N: usize> {
    /// 1 / W_nn, 1 / λ: zero in padded lanes.
    pub normal: Lanes<N>,
    pub tangent: Lanes<N>,
    /// W_tn, W_sn.
    pub coupling: [Lanes<N>; 2],
}

/// The impulse after a projected visit.
#[inline(always)]
pub fn projected<const N: usize>(
    friction: Lanes<N>,
    impulse: &[Lanes<N>; 3],
    velocity: &[Lanes<N>; 3],
    steps: &Steps<N>,
) -> [Lanes<N>; 3] {
    let normal = frictionless(impulse[0], velocity[0], steps.normal);
    let change = normal - impulse[0];
    let t = (-steps.coupling[0].times(change, velocity[1])).times(steps.tangent, impulse[1]);
    let s = (-steps.coupling[1].times(change, velocity[2])).times(steps.tangent, impulse[2]);
    let factor = t.times(t, s * s).shrink_to(friction * normal);
    [normal, t * factor, s * factor]
}

/// The normal impulse after it.
#[inline(always)]
pub fn frictionless<const N: usize>(
    impulse: Lanes<N>,
    velocity: Lanes<N>,
    step_normal: Lanes<N>,
) -> Lanes<N> {
    (-velocity).times(step_normal, impulse).positive_part()
}

/// Sliding, a projected visit feeds `W_nt r_t / W_nn` with ‖r_t‖ = μ r_n back into r_n: a gain of `μ ‖W_nt‖ /
/// W_nn` at most. From 1 on it may run away or circle for ever, as on Painlevé's rod; 0.9 would still take
/// 200 visits for nine digits.
pub fn is_strongly_coupled(normal: f64, coupling: [f64; 2], friction: f64) -> bool {
    friction * (coupling[0] * coupling[0] + coupling[1] * coupling[1]).sqrt() > 0.9 * normal
}

/// `F = r − P_K(r − ρ û)`, as [`natural_map`](super::natural_map).
#[inline(always)]
pub fn natural_map_lanes<const N: usize>(
    impulse: &[Lanes<N>; 3],
    velocity: &[Lanes<N>; 3],
    friction: Lanes<N>,
    rho: Lanes<N>,
) -> [Lanes<N>; 3] {
    let slip = (velocity[1] * velocity[1] + velocity[2] * velocity[2]).sqrt();
    let n = impulse[0] - (velocity[0] + friction * slip) * rho;
    let t = impulse[1] - velocity[1] * rho;
    let s = impulse[2] - velocity[2] * rho;
    let tangential = (t * t + s * s).sqrt();
    let (bound, pull) = (friction * n, friction * tangential);
    let onto = (n + pull) / (Lanes::splat(1.0) + friction * friction);
    let scale = friction * onto / tangential;
    // Inside the cone; then in the polar cone. Where nothing rubs the two overlap: the polar cone has the
    // last word.
    let (zero, one) = (Lanes::splat(0.0), Lanes::splat(1.0));
    let (normal, factor) =
        (n.where_at_most(tangential, bound, onto), one.where_at_most(tangential, bound, scale));
    let away = -n;
    let (normal, factor) = (zero.where_at_most(pull, away, normal), zero.where_at_most(pull, away, factor));
    black_box([impulse[0] - normal, impulse[1] - t * factor, impulse[2] - s * factor])
}

#[cfg(test)]
mod tests {
    use super::super::{natural_map, solve};
    use super::*;
    use crate::geometry::{Mat3, Vec3};
    use proptest::prelude::*;

    fn splat(vector: [f64; 3]) -> [Lanes<4>; 3] {
        vector.map(Lanes::splat)
    }

    proptest! {
        /// Side by side as one by one.
        #[test]
        fn the_natural_map_is_that_of_one_point(
            impulse in prop::array::uniform3(-2.0..2.0f64), velocity in prop::array::uniform3(-2.0..2.0f64),
            friction in prop_oneof![Just(0.0), 0.0..1.5f64], rho in 0.1..10.0f64,
        ) {
            let found =
                natural_map_lanes(&splat(impulse), &splat(velocity), Lanes::splat(friction), Lanes::splat(rho));
            let expected = natural_map(impulse.into(), velocity.into(), friction, rho);
            for axis in 0..3 {
                prop_assert!((found[axis].0[2] - expected[axis]).abs() < 1e-13 * (1.0 + rho));
            }
        }

        /// What solves a contact exactly, a projected visit leaves as it is.
        #[test]
        fn solutions_are_fixed_points(
            roots in prop::array::uniform3(0.3..3.0f64), free in prop::array::uniform3(-1.0..1.0f64),
            friction in 0.0..1.2f64,
        ) {
            let block = Mat3::from_diagonal(&Vec3::from(roots));
            let impulse = solve(&block, &free.into(), friction);
            let velocity = Vec3::from(free) + block * impulse;
            let steps = Steps {
                normal: Lanes::splat(1.0 / roots[0]),
                tangent: Lanes::splat(1.0 / roots[1].max(roots[2])),
                coupling: [Lanes::splat(0.0); 2],
            };
            let visited =
                projected(Lanes::<4>::splat(friction), &splat(impulse.into()), &splat(velocity.into()), &steps);
            for axis in 0..3 {
                prop_assert!((visited[axis].0[0] - impulse[axis]).abs() < 1e-12, "{visited:?} {impulse}");
            }
        }
    }
}
