//! Proximal points in the velocities of the bodies, by a nonsmooth Newton method.
//!
//! ```text
//! M (v − v_free) = H r,    u = Hᵀ v + w + C r + Σ (r − r_k),    r and u obey the law             (a)
//! ```
//!
//! C and Σ are diagonal, so that (a) gives the impulse of each contact as a function of v alone, contact by
//! contact and in closed form, with `a = Σ r_k − Hᵀ v − w` and `K = C + Σ`. What is left are equations in v,
//! of which Newton's matrix is `M + H E Hᵀ`, `E = ∂r/∂a`.

use super::bodies::{Bodies, NODE, Velocity};
use super::factor::{FactorError, Lu, Pattern};
use crate::geometry::{Mat3, Vec3};

/// What the impulses of a contact have to obey.
#[derive(Clone, Copy)]
pub enum Law<'a> {
    /// Coulomb's law.
    Coulomb,
    /// The convex one of given slip speeds.
    Given(&'a [f64]),
}

pub struct Proximal<'a> {
    pub bodies: &'a Bodies,
    pub pattern: &'a Pattern,
    pub friction: &'a [f64],
    pub law: Law<'a>,
    /// The diagonal of Σ.
    pub sigma: Vec<f64>,
    /// r_k.
    pub centre: &'a [Vec3],
}

/// At one v.
pub struct Point {
    pub velocities: Vec<Velocity>,
    pub impulses: Vec<Vec3>,
    slopes: Vec<Mat3>,
    /// `H r − M (v − v_free)`.
    force: Vec<Velocity>,
    pub merit: f64,
}

impl Proximal<'_> {
    pub fn at(&self, mass: &Lu<NODE>, velocities: Vec<Velocity>) -> Point {
        let mut force = self.bodies.momenta(&velocities);
        force.iter_mut().flatten().for_each(|value| *value = -*value);
        let contacts = self.bodies.contacts();
        let (mut impulses, mut slopes) = (Vec::with_capacity(contacts), Vec::with_capacity(contacts));
        for contact in 0..contacts {
            let relative = self.bodies.relative(contact, &velocities) + self.bodies.given(contact);
            let a = self.centre[contact] * self.sigma[contact] - relative;
            let k = self.bodies.compliance(contact).add_scalar(self.sigma[contact]);
            let mu = self.friction[contact];
            let (impulse, slope) = match self.law {
                Law::Coulomb => coulomb(&a, &k, mu),
                Law::Given(slip) => convex(&(a - Vec3::new(mu * slip[contact], 0.0, 0.0)), &k, mu),
            };
            self.bodies.push(contact, &impulse, &mut force);
            impulses.push(impulse);
            slopes.push(slope);
        }
        let mut image = force.clone();
        mass.solve(&mut image);
        let merit = force.iter().flatten().zip(image.iter().flatten()).map(|(a, b)| a * b).sum::<f64>();
        let merit = if merit.is_finite() { merit.max(0.0).sqrt() } else { f64::INFINITY };
        Point { velocities, impulses, slopes, force, merit }
    }

    /// One Newton step, shortened until the merit falls; none if that does not help.
    pub fn step(&self, mass: &Lu<NODE>, point: &Point, halvings: usize) -> Result<Option<(Point, f64)>, FactorError> {
        let lu = self.bodies.factorise(self.pattern, &point.slopes)?;
        let mut direction = point.force.clone();
        lu.solve(&mut direction);
        if direction.iter().flatten().any(|value| !value.is_finite()) {
            return Ok(None);
        }
        let mut length = 1.0;
        for _ in 0..=halvings {
            let mut velocities = point.velocities.clone();
            for (velocity, change) in velocities.iter_mut().zip(&direction) {
                velocity.iter_mut().zip(change).for_each(|(value, change)| *value += length * change);
            }
            let next = self.at(mass, velocities);
            if next.merit <= (1.0 - 1e-2 * length) * point.merit {
                return Ok(Some((next, length)));
            }
            length *= 0.5;
        }
        Ok(None)
    }
}

/// r and ∂r/∂a of `r_n ≥ 0 ⊥ u_n ≥ 0`, `‖r_t‖ ≤ μ r_n`, for `u = K r − a`.
fn coulomb(a: &Vec3, k: &Vec3, mu: f64) -> (Vec3, Mat3) {
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
    slide(&mut slope, [a.y / length, a.z / length], mu, mu * normal / length, [1.0 / k.x, 0.0]);
    (Vec3::new(normal, mu * normal * a.y / length, mu * normal * a.z / length), slope)
}

/// Rows of the tangent plane where `r_t = μ r_n t`, t the unit direction of a_t: `normal` holds ∂r_n/∂a_n and
/// ∂r_n/∂‖a_t‖.
fn slide(slope: &mut Mat3, t: [f64; 2], mu: f64, turn: f64, normal: [f64; 2]) {
    for i in 0..2 {
        slope[(1 + i, 0)] = mu * normal[0] * t[i];
        for j in 0..2 {
            let identity = if i == j { 1.0 } else { 0.0 };
            slope[(1 + i, 1 + j)] = mu * normal[1] * t[i] * t[j] + turn * (identity - t[i] * t[j]);
        }
    }
}

/// The same of the projection on the cone in the metric K.
fn convex(a: &Vec3, k: &Vec3, mu: f64) -> (Vec3, Mat3) {
    let mut slope = Mat3::zeros();
    let length = a.y.hypot(a.z);
    // In y = (r_n, ratio r_t) the metric is that of r_n alone, and the cone that of μ ratio.
    let ratio = (k.y / k.x).sqrt();
    let (y, along, wide) = (a.x / k.x, length / (ratio * k.x), mu * ratio);
    if along <= wide * y {
        for axis in 0..3 {
            slope[(axis, axis)] = 1.0 / k[axis];
        }
        return (a.component_div(k), slope);
    }
    if wide * along <= -y {
        return (Vec3::zeros(), slope);
    }
    let share = 1.0 / (1.0 + wide * wide);
    let normal = (y + wide * along) * share;
    let t = [a.y / length, a.z / length];
    let slopes = [share / k.x, share * wide / (ratio * k.x)];
    slope[(0, 0)] = slopes[0];
    slope[(0, 1)] = slopes[1] * t[0];
    slope[(0, 2)] = slopes[1] * t[1];
    slide(&mut slope, t, mu, mu * normal / length, slopes);
    (Vec3::new(normal, mu * normal * t[0], mu * normal * t[1]), slope)
}
