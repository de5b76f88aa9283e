//! The algebra of the cone `{ ‖x_t‖ ≤ x_0 }` that interior points need, for one contact.
//!
//! ```text
//! x ∘ y = (x·y, x_0 y_t + y_0 x_t),      Q_w = 2 w wᵀ − det(w) J,      J = diag(1, −1, −1)
//! ```
//!
//! A contact without friction has the half-line in place of the cone: its tangential parts are zero.

use crate::geometry::{Mat3, Vec3};

pub fn slip(x: &Vec3) -> f64 {
    (x.y * x.y + x.z * x.z).sqrt()
}

/// `x_0² − ‖x_t‖²`, without cancellation of squares.
pub fn determinant(x: &Vec3) -> f64 {
    let slip = slip(x);
    (x.x - slip) * (x.x + slip)
}

pub fn product(x: &Vec3, y: &Vec3) -> Vec3 {
    Vec3::new(x.dot(y), x.x * y.y + y.x * x.y, x.x * y.z + y.x * x.z)
}

/// y of `x ∘ y = right`.
pub fn divide(right: &Vec3, x: &Vec3) -> Vec3 {
    let along = x.y * right.y + x.z * right.z;
    let first = (x.x * right.x - along) / determinant(x);
    Vec3::new(first, (right.y - first * x.y) / x.x, (right.z - first * x.z) / x.x)
}

/// The longest step along `direction`, at most 1, that stays in the cone.
pub fn longest_step(x: &Vec3, direction: &Vec3) -> f64 {
    // ‖x_t + a d_t‖² = (x_0 + a d_0)², in a.
    let a = direction.x * direction.x - direction.y * direction.y - direction.z * direction.z;
    let b = x.x * direction.x - x.y * direction.y - x.z * direction.z;
    let c = determinant(x).max(0.0);
    let mut longest = 1.0f64;
    if direction.x < 0.0 {
        longest = longest.min(-x.x / direction.x);
    }
    let discriminant = b * b - a * c;
    if discriminant >= 0.0 {
        let root = discriminant.sqrt();
        let sum = if b >= 0.0 { -(b + root) } else { -(b - root) };
        let candidates = [sum / a, c / sum];
        for step in candidates.into_iter().filter(|step| step.is_finite() && *step > 0.0) {
            longest = longest.min(step);
        }
    }
    longest
}

/// Nesterov's and Todd's scaling of two points inside: `scale · Q_w` takes the second to the first.
pub struct Scaling {
    scale: f64,
    w: Vec3,
    root: Vec3,
}

impl Scaling {
    /// None if one is not inside.
    pub fn new(x: &Vec3, z: &Vec3) -> Option<Self> {
        let (dx, dz) = (determinant(x), determinant(z));
        if !(x.x > 0.0 && z.x > 0.0 && dx > 0.0 && dz > 0.0) {
            return None;
        }
        let (x, z) = (x / dx.sqrt(), z / dz.sqrt());
        let gamma = ((1.0 + x.dot(&z)).max(2.0) * 0.5).sqrt();
        let w = Vec3::new(x.x + z.x, x.y - z.y, x.z - z.z) / (2.0 * gamma);
        // Exactly on det = 1.
        let w = Vec3::new((1.0 + w.y * w.y + w.z * w.z).sqrt(), w.y, w.z);
        let root = Vec3::new(w.x + 1.0, w.y, w.z) / (2.0 * (w.x + 1.0)).sqrt();
        Some(Self { scale: (dx / dz).sqrt(), w, root })
    }

    /// P: what takes the second to the first.
    pub fn matrix(&self) -> Mat3 {
        quadratic(&self.w) * self.scale
    }

    /// `P^½ y`.
    pub fn root(&self, y: &Vec3) -> Vec3 {
        apply(&self.root, y) * self.scale.sqrt()
    }

    /// `P^−½ y`.
    pub fn inverse_root(&self, y: &Vec3) -> Vec3 {
        apply(&Vec3::new(self.root.x, -self.root.y, -self.root.z), y) / self.scale.sqrt()
    }
}

fn quadratic(w: &Vec3) -> Mat3 {
    w * w.transpose() * 2.0 - Mat3::from_diagonal(&Vec3::new(1.0, -1.0, -1.0))
}

fn apply(w: &Vec3, y: &Vec3) -> Vec3 {
    w * (2.0 * w.dot(y)) - Vec3::new(y.x, -y.y, -y.z)
}
