//! The assembled contact problem that is solved, and its error in Siconos' measure.

use super::blocks::BlockMatrix;
use super::bodies::Bodies;
use crate::geometry::Vec3;
use crate::law::coulomb::natural_map;

/// `u = W r + q`, one cone for each contact. Contact order is (n, t, s); in two dimensions s is there and
/// stays zero.
#[derive(Clone, Debug, PartialEq)]
pub struct ContactSystem {
    /// 2 or 3: what was given.
    pub dimension: usize,
    pub delassus: BlockMatrix,
    /// q.
    pub free: Vec<Vec3>,
    /// μ of each contact, ≥ 0.
    pub friction: Vec<f64>,
    /// How well each contact's velocity is known, if the error is to be that of the time step: see
    /// [`ContactSystem::error`].
    pub noise: Option<Vec<f64>>,
    /// The same in the velocities of the bodies, where that is known.
    pub bodies: Option<Bodies>,
}

impl ContactSystem {
    pub fn contacts(&self) -> usize {
        self.free.len()
    }

    /// The full natural-map error, and the velocities that belong to the impulses:
    ///
    /// ```text
    /// sqrt( Σ ‖ r − P_K( r − û ) ‖² ) / max( ‖q‖, ‖r‖, ‖u‖ )          (not divided where that is zero)
    /// ```
    ///
    /// in two and three dimensions alike [Acary2018]. Infinite if it is not a number. With `noise` as
    /// [`crate::solve::residual`] has it: a term within the noise counts as zero, and below the bar only
    /// contacts count that act or would close.
    pub fn error(&self, impulses: &[[f64; 3]], velocities: &mut [Vec3]) -> f64 {
        self.delassus.velocities(&self.free, impulses, velocities);
        let [mut error, mut free, mut impulse, mut velocity] = [0.0; 4];
        for (contact, u) in velocities.iter().enumerate() {
            let r = Vec3::from(impulses[contact]);
            let square = natural_map(r, *u, self.friction[contact], 1.0).norm_squared();
            if let Some(noise) = &self.noise {
                let bound = (1.0 + self.friction[contact]) * noise[contact];
                error += if square <= bound * bound { 0.0 } else { square };
                if r.x <= 0.0 && self.free[contact].x >= 0.0 {
                    continue;
                }
            } else {
                error += square;
            }
            free += self.free[contact].norm_squared();
            impulse += r.norm_squared();
            velocity += u.norm_squared();
        }
        let scale = free.max(impulse).max(velocity).sqrt();
        let error = if scale > f64::EPSILON { error.sqrt() / scale } else { error.sqrt() };
        if error.is_nan() { f64::INFINITY } else { error }
    }

    /// Numbers as files have them (`dimension` for each contact), contact by contact.
    pub fn lift(values: &[f64], dimension: usize) -> Vec<[f64; 3]> {
        let contact = |chunk: &[f64]| std::array::from_fn(|axis| chunk.get(axis).copied().unwrap_or(0.0));
        values.chunks(dimension).map(contact).collect()
    }

    /// And back.
    pub fn flatten<'a>(values: impl IntoIterator<Item = &'a [f64; 3]>, dimension: usize) -> Vec<f64> {
        values.into_iter().flat_map(|value| value[..dimension].iter().copied()).collect()
    }
}
