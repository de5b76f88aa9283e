//! The convex problem that is left when the slip speeds in the law are given numbers, by interior points.
//!
//! With `û_n = u_n + μ s` for given s the law is a pair of cones [AcaryCadoux2013], here scaled to one that is
//! its own dual, `x = (μ r_n, r_t)`, `z = (û_n / μ, u_t)`:
//!
//! ```text
//! M (v − v_free) = H S x,    z = S (Hᵀ v + w) + s e + S C S x,    S = diag(1/μ, 1, 1)           (a)
//! x ∘ z = τ e,   x, z inside the cone,   τ → 0                                                  (b)
//! ```
//!
//! Newton's method on (a) and (b) in the scaling of Nesterov and Todd [NesterovTodd1998], with Mehrotra's
//! predictor and corrector: each step factorises `M + H S E S Hᵀ`, E of 3 × 3 blocks, positive definite.

use super::bodies::{Bodies, Velocity};
use super::factor::{FactorError, Pattern};
use super::lorentz::{Scaling, divide, longest_step, product};
use crate::geometry::{Mat3, Vec3};

const MOST_STEPS: usize = 80;
/// Share of the way to the border of the cones.
const TO_THE_BORDER: f64 = 0.995;

/// A point inside.
#[derive(Clone, Debug)]
pub struct Interior {
    pub velocities: Vec<Velocity>,
    x: Vec<Vec3>,
    z: Vec<Vec3>,
    pub steps: usize,
}

pub struct Convex<'a> {
    pub bodies: &'a Bodies,
    pub pattern: &'a Pattern,
    pub friction: &'a [f64],
    /// s of each contact.
    pub slip: &'a [f64],
}

/// A contact at the present point.
enum Local {
    Cone(Scaling),
    /// Without friction: x/z.
    Line(f64, f64),
}

impl Convex<'_> {
    fn s(&self, contact: usize) -> Vec3 {
        let mu = self.friction[contact];
        if mu > 0.0 { Vec3::new(1.0 / mu, 1.0, 1.0) } else { Vec3::new(1.0, 0.0, 0.0) }
    }

    /// r of a point inside.
    pub fn impulses(&self, point: &Interior) -> Vec<Vec3> {
        point.x.iter().enumerate().map(|(contact, x)| self.s(contact).component_mul(x)).collect()
    }

    /// From impulses and relative speeds of the sizes given.
    pub fn start(&self, impulse: f64, speed: f64) -> Interior {
        let of = |size: f64| vec![Vec3::new(size, 0.0, 0.0); self.bodies.contacts()];
        Interior { velocities: self.bodies.free().to_vec(), x: of(impulse), z: of(speed), steps: 0 }
    }
}

impl Convex<'_> {
    /// Steps from a point inside until `is_done` says so, and not longer than they do any good.
    pub fn solve(
        &self,
        mut point: Interior,
        mut is_done: impl FnMut(&Self, &Interior) -> bool,
    ) -> Result<Interior, FactorError> {
        for _ in 0..MOST_STEPS {
            if is_done(self, &point) {
                break;
            }
            let length = match self.step(&mut point) {
                Ok(length) => length,
                Err(FactorError::Singular { .. }) => break,
                Err(error) => return Err(error),
            };
            point.steps += 1;
            if length < 1e-8 {
                break;
            }
        }
        Ok(point)
    }

    /// One factorisation; the length of the step.
    fn step(&self, point: &mut Interior) -> Result<f64, FactorError> {
        let contacts = self.bodies.contacts();
        let Some(locals) = self.locals(point) else { return Ok(0.0) };
        let matrices: Vec<Mat3> = locals.iter().map(Local::matrix).collect();
        let compliance = |contact: usize| {
            let s = self.s(contact);
            s.component_mul(&s).component_mul(self.bodies.compliance(contact))
        };
        // B = (1 + P C)⁻¹ and E = B P.
        let damped: Vec<Mat3> = (0..contacts)
            .map(|contact| {
                let c = compliance(contact);
                if c == Vec3::zeros() {
                    return Mat3::identity();
                }
                let matrix = Mat3::identity() + matrices[contact] * Mat3::from_diagonal(&c);
                matrix.try_inverse().unwrap_or_else(Mat3::zeros)
            })
            .collect();
        let e: Vec<Mat3> = (0..contacts).map(|contact| damped[contact] * matrices[contact]).collect();
        let scaled = |contact: usize| {
            let s = Mat3::from_diagonal(&self.s(contact));
            s * e[contact] * s
        };
        let lu = self.bodies.factorise(self.pattern, &(0..contacts).map(scaled).collect::<Vec<_>>())?;
        let (force, offsets) = self.residuals(point);
        let direction = |targets: &[Vec3]| {
            let mut right = force.clone();
            let own: Vec<Vec3> = (0..contacts)
                .map(|contact| damped[contact] * (targets[contact] - matrices[contact] * offsets[contact]))
                .collect();
            for (contact, own) in own.iter().enumerate() {
                self.bodies.push(contact, &self.s(contact).component_mul(own), &mut right);
            }
            lu.solve(&mut right);
            let mut dx = Vec::with_capacity(contacts);
            let mut dz = Vec::with_capacity(contacts);
            for (contact, own) in own.iter().enumerate() {
                let relative = self.s(contact).component_mul(&self.bodies.relative(contact, &right));
                let x = own - e[contact] * relative;
                dz.push(relative + compliance(contact).component_mul(&x) + offsets[contact]);
                dx.push(x);
            }
            (right, dx, dz)
        };
        let gap = gap(&point.x, &point.z);
        let (_, dx, dz) = direction(&point.x.iter().map(|x| -x).collect::<Vec<_>>());
        let length = longest(&point.x, &dx).min(longest(&point.z, &dz));
        let moved = |list: &[Vec3], change: &[Vec3]| -> Vec<Vec3> {
            list.iter().zip(change).map(|(value, change)| value + change * length).collect()
        };
        let predicted = self::gap(&moved(&point.x, &dx), &moved(&point.z, &dz));
        let centre = (predicted / gap).clamp(0.0, 1.0).powi(3) * gap;
        let targets: Vec<Vec3> = (0..contacts)
            .map(|contact| locals[contact].target(centre, &point.z[contact], &dx[contact], &dz[contact]))
            .collect();
        let (dv, dx, dz) = direction(&targets);
        let length = (TO_THE_BORDER * longest(&point.x, &dx).min(longest(&point.z, &dz))).min(1.0);
        if !length.is_finite() || dv.iter().flatten().any(|value| !value.is_finite()) {
            return Ok(0.0);
        }
        for (velocity, change) in point.velocities.iter_mut().zip(&dv) {
            velocity.iter_mut().zip(change).for_each(|(value, change)| *value += length * change);
        }
        point.x.iter_mut().zip(&dx).for_each(|(value, change)| *value += change * length);
        point.z.iter_mut().zip(&dz).for_each(|(value, change)| *value += change * length);
        if std::env::var("BRECCIA_TRACE").is_ok() {
            let f = force.iter().flatten().map(|v| v * v).sum::<f64>().sqrt();
            let o = offsets.iter().map(|v| v.norm_squared()).sum::<f64>().sqrt();
            eprintln!("  ip {} gap {gap:.2e} centre {centre:.1e} length {length:.3} force {f:.1e} offset {o:.1e}", point.steps);
        }
        Ok(length)
    }

    fn locals(&self, point: &Interior) -> Option<Vec<Local>> {
        let of = |contact: usize| {
            let (x, z) = (&point.x[contact], &point.z[contact]);
            if self.friction[contact] > 0.0 {
                return Scaling::new(x, z).map(Local::Cone);
            }
            (x.x > 0.0 && z.x > 0.0).then(|| Local::Line(x.x, z.x))
        };
        (0..self.bodies.contacts()).map(of).collect()
    }

    /// What is missing in (a): forces of the bodies, velocities of the contacts.
    fn residuals(&self, point: &Interior) -> (Vec<Velocity>, Vec<Vec3>) {
        let mut force = self.bodies.momenta(&point.velocities);
        force.iter_mut().flatten().for_each(|value| *value = -*value);
        let mut offsets = Vec::with_capacity(self.bodies.contacts());
        for contact in 0..self.bodies.contacts() {
            let s = self.s(contact);
            let impulse = s.component_mul(&point.x[contact]);
            self.bodies.push(contact, &impulse, &mut force);
            let relative = self.bodies.relative(contact, &point.velocities) + self.bodies.given(contact);
            let relative = relative + self.bodies.compliance(contact).component_mul(&impulse);
            let slip = if self.friction[contact] > 0.0 { self.slip[contact] } else { 0.0 };
            offsets.push(s.component_mul(&relative) + Vec3::new(slip, 0.0, 0.0) - point.z[contact]);
        }
        (force, offsets)
    }
}

impl Local {
    /// P.
    fn matrix(&self) -> Mat3 {
        match self {
            Local::Cone(scaling) => scaling.matrix(),
            Local::Line(x, z) => Mat3::from_diagonal(&Vec3::new(x / z, 0.0, 0.0)),
        }
    }

    /// `P^½ (λ⁻¹ ∘ (τ e − λ ∘ λ − P^−½ dx ∘ P^½ dz))`.
    fn target(&self, centre: f64, z: &Vec3, dx: &Vec3, dz: &Vec3) -> Vec3 {
        match self {
            Local::Cone(scaling) => {
                let middle = scaling.root(z);
                let bent = product(&scaling.inverse_root(dx), &scaling.root(dz));
                let right = Vec3::new(centre, 0.0, 0.0) - product(&middle, &middle) - bent;
                scaling.root(&divide(&right, &middle))
            }
            Local::Line(x, z) => Vec3::new((centre - x * z - dx.x * dz.x) / z, 0.0, 0.0),
        }
    }
}

fn gap(x: &[Vec3], z: &[Vec3]) -> f64 {
    x.iter().zip(z).map(|(x, z)| x.dot(z)).sum::<f64>() / x.len().max(1) as f64
}

fn longest(list: &[Vec3], change: &[Vec3]) -> f64 {
    list.iter().zip(change).map(|(x, dx)| longest_step(x, dx)).fold(1.0, f64::min)
}
