//! The function of Alart and Curnier [AlartCurnier1991] at one contact, and its derivative, for Newton's
//! method:
//!
//! ```text
//! y_n = r_n − ρ u_n,   y_t = r_t − ρ u_t
//! F_n = r_n − max(0, y_n),      F_t = r_t − P_disc(μ max(0, y_n))(y_t)                          (b)
//! dF = A dr + B du
//! ```

use crate::geometry::{Mat3, Vec3};

/// The blocks of (b)'s derivative at one contact.
#[derive(Clone, Copy)]
pub struct Slope {
    pub a: Mat3,
    pub b: Mat3,
}

/// (b) and its slope; no slope where the contact is open: there F = r.
pub fn alart_curnier(r: &Vec3, u: &Vec3, rho: f64, friction: f64) -> (Vec3, Option<Slope>) {
    let y = r - u * rho;
    if y.x <= 0.0 {
        return (*r, None);
    }
    let (mut a, mut b) = (Mat3::zeros(), Mat3::zeros());
    b[(0, 0)] = rho;
    let bound = friction * y.x;
    let length = (y.y * y.y + y.z * y.z).sqrt();
    if length <= bound {
        b[(1, 1)] = rho;
        b[(2, 2)] = rho;
        return (u * rho, Some(Slope { a, b }));
    }
    let z = [y.y / length, y.z / length];
    let share = bound / length;
    for i in 0..2 {
        for j in 0..2 {
            let identity = f64::from(u8::from(i == j));
            let across = share * (identity - z[i] * z[j]);
            a[(1 + i, 1 + j)] = identity - across;
            b[(1 + i, 1 + j)] = across * rho;
        }
        a[(1 + i, 0)] = -friction * z[i];
        b[(1 + i, 0)] = friction * rho * z[i];
    }
    let value = Vec3::new(u.x * rho, r.y - bound * z[0], r.z - bound * z[1]);
    (value, Some(Slope { a, b }))
}
