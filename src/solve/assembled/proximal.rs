//! One proximal point in the velocities of the bodies, by a nonsmooth Newton method.
//!
//! ```text
//! M (v − v_free) = H r,    u = Hᵀ v + w + C r + Σ (r − r_k),    r and u obey Coulomb's law          (a)
//! ```
//!
//! C and Σ are diagonal, so that (a) gives the impulse of each contact as a function of v alone, contact by
//! contact and in closed form, with `a = Σ r_k − Hᵀ v − w` and `K = C + Σ`:
//!
//! ```text
//! r_n = max(0, a_n)/k_n,    r_t = a_t/k_t,  shortened to μ r_n                                      (b)
//! ```
//!
//! What is left are equations in v, six for each body, of which Newton's matrix is `M + H E Hᵀ`,
//! `E = ∂r/∂a`. Only contacts that act have an E that is not zero, so open ones cost nothing.

use super::bodies::{Bodies, NODE, Velocity};
use super::factor::{FactorError, Lu, Pattern};
use crate::geometry::{Mat3, Vec3};

/// Halvings of a step before it is given up.
const MOST_HALVINGS: usize = 11;
/// Of the length of a step: by so much the merit must fall.
const DECREASE: f64 = 1e-2;

pub struct Proximal<'a> {
    pub bodies: &'a Bodies,
    /// The factors of M.
    pub mass: &'a Lu<'a, NODE>,
    pub friction: &'a [f64],
    /// The diagonal of Σ, one number for each contact.
    pub sigma: Vec<f64>,
    /// r_k.
    pub centre: &'a [Vec3],
}

/// (a) at one v.
pub struct Point {
    pub velocities: Vec<Velocity>,
    pub impulses: Vec<Vec3>,
    /// E.
    slopes: Vec<Mat3>,
    /// `H r − M (v − v_free)`.
    force: Vec<Velocity>,
    /// `‖force‖` in the metric of M⁻¹.
    pub merit: f64,
}

impl Proximal<'_> {
    pub fn at(&self, velocities: Vec<Velocity>) -> Point {
        let mut force = self.bodies.momenta(&velocities);
        force.iter_mut().flatten().for_each(|value| *value = -*value);
        let contacts = self.bodies.contacts();
        let (mut impulses, mut slopes) = (Vec::with_capacity(contacts), Vec::with_capacity(contacts));
        for contact in 0..contacts {
            let relative = self.bodies.relative(contact, &velocities) + self.bodies.given(contact);
            let a = self.centre[contact] * self.sigma[contact] - relative;
            let k = self.bodies.compliance(contact).add_scalar(self.sigma[contact]);
            let (impulse, slope) = regularised(&a, &k, self.friction[contact]);
            self.bodies.push(contact, &impulse, &mut force);
            impulses.push(impulse);
            slopes.push(slope);
        }
        let mut image = force.clone();
        self.mass.solve(&mut image);
        let merit = force.iter().flatten().zip(image.iter().flatten()).map(|(a, b)| a * b).sum::<f64>();
        let merit = if merit.is_finite() { merit.max(0.0).sqrt() } else { f64::INFINITY };
        Point { velocities, impulses, slopes, force, merit }
    }

    /// One Newton step and its length, shortened until the merit falls; none if that does not help.
    pub fn step(&self, pattern: &mut Acting, point: &Point) -> Result<Option<(Point, f64)>, FactorError> {
        let pattern = pattern.of(self.bodies, &point.slopes)?;
        let lu = self.bodies.factorise(pattern, &point.slopes)?;
        let mut direction = point.force.clone();
        lu.solve(&mut direction);
        if direction.iter().flatten().any(|value| !value.is_finite()) {
            return Ok(None);
        }
        let mut length = 1.0;
        for _ in 0..=MOST_HALVINGS {
            let mut velocities = point.velocities.clone();
            for (velocity, change) in velocities.iter_mut().zip(&direction) {
                velocity.iter_mut().zip(change).for_each(|(value, change)| *value += length * change);
            }
            let next = self.at(velocities);
            if next.merit <= (1.0 - DECREASE * length) * point.merit {
                return Ok(Some((next, length)));
            }
            length *= 0.5;
        }
        Ok(None)
    }
}

/// The pattern of the contacts that act, kept while it serves.
#[derive(Default)]
pub struct Acting {
    known: Option<(Pattern, usize)>,
}

impl Acting {
    /// A pattern is made anew when a contact acts whose blocks it lacks, or when few of its contacts are
    /// left.
    fn of(&mut self, bodies: &Bodies, slopes: &[Mat3]) -> Result<&Pattern, FactorError> {
        let acts = |contact: usize| slopes[contact] != Mat3::zeros();
        let count = (0..slopes.len()).filter(|&contact| acts(contact)).count();
        let serves = self.known.as_ref().is_some_and(|(pattern, made_for)| {
            2 * count >= *made_for
                && (0..slopes.len()).all(|contact| !acts(contact) || bodies.is_in(pattern, contact))
        });
        if !serves {
            self.known = None;
        }
        match &mut self.known {
            Some((pattern, _)) => Ok(pattern),
            none => Ok(&none.insert((bodies.pattern(acts)?, count)).0),
        }
    }
}

/// (b), and ∂r/∂a.
fn regularised(a: &Vec3, k: &Vec3, mu: f64) -> (Vec3, Mat3) {
    let mut slope = Mat3::zeros();
    if a.x <= 0.0 {
        return (Vec3::zeros(), slope);
    }
    let normal = a.x / k.x;
    slope[(0, 0)] = 1.0 / k.x;
    let length = a.y.hypot(a.z);
    if length <= mu * normal * k.y {
        slope[(1, 1)] = 1.0 / k.y;
        slope[(2, 2)] = 1.0 / k.z;
        return (Vec3::new(normal, a.y / k.y, a.z / k.z), slope);
    }
    let t = [a.y / length, a.z / length];
    let turn = mu * normal / length;
    for i in 0..2 {
        slope[(1 + i, 0)] = mu / k.x * t[i];
        for j in 0..2 {
            let identity = if i == j { 1.0 } else { 0.0 };
            slope[(1 + i, 1 + j)] = turn * (identity - t[i] * t[j]);
        }
    }
    (Vec3::new(normal, mu * normal * t[0], mu * normal * t[1]), slope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// r obeys the law for u = K r − a, and its slope is that of finite differences away from kinks.
        #[test]
        fn impulses_obey_the_law(
            a in prop::array::uniform3(-1.0..1.0f64),
            (k_n, k_t, mu) in (0.1..2.0f64, 0.1..2.0f64, 0.0..1.5f64),
        ) {
            let (a, k) = (Vec3::from(a), Vec3::new(k_n, k_t, k_t));
            let (r, slope) = regularised(&a, &k, mu);
            let u = k.component_mul(&r) - a;
            prop_assert!(crate::law::coulomb::natural_map(r, u, mu, 1.0).norm() < 1e-12);
            let slip = (r.y.hypot(r.z) - mu * r.x).abs();
            let stick = (a.y.hypot(a.z) / k_t - mu * r.x).abs();
            prop_assume!(a.x.abs() > 1e-3 && (slip > 1e-3 || stick > 1e-3));
            for axis in 0..3 {
                let mut side = [a; 2];
                side[0][axis] -= 1e-6;
                side[1][axis] += 1e-6;
                let [low, high] = side.map(|a| regularised(&a, &k, mu).0);
                let difference = (high - low) / 2e-6 - slope.column(axis);
                prop_assert!(difference.norm() < 1e-4, "{difference}");
            }
        }
    }
}
