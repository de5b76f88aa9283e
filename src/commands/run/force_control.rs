//! `solver.force_tolerance`: how exactly contact problems are solved follows from the errors of forces that
//! the checks find.

use super::force_check::ForceChecks;
use crate::geometry::Vec3;
use crate::solve;
use decomposition::Comm;
use serde::{Deserialize, Serialize};

/// A change of the solver's tolerance at a check, where the error is too large: by how much the error is, but
/// between these.
const TIGHTEN: [f64; 2] = [2.0, 4.0];
/// And where it is far below what is wanted: errors of single steps vary by more than this, and what is too
/// loose costs more than what is too tight.
const LOOSEN: f64 = 1.5;
const FAR: f64 = 0.25;
/// Of the tolerance of the case, at least.
const LEAST: f64 = 1e-6;
/// Of the largest forces of its unit: a smaller force counts as one of this size.
const SMALL: f64 = 0.1;

/// What the checks of a run have come to: the same on every rank, and kept in checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Control {
    /// The last step that was checked.
    pub done: Option<u64>,
    /// By which the tolerance of the case is multiplied.
    pub share: f64,
    /// Checks so far, and for each unit the sum of the largest forces that they found.
    checks: u64,
    largest: [f64; 2],
}

impl Default for Control {
    fn default() -> Self {
        Self { done: None, share: 1.0, checks: 0, largest: [0.0; 2] }
    }
}

impl Control {
    /// The error of the worst force, by its size. On the rank that knows the forces of machines.
    ///
    /// `is_moment` says which forces are moments. Those of a unit are as large as a tenth of its largest ones
    /// at least, as the mean over the checks so far: the error of what is next to nothing says nothing.
    pub fn worst(&mut self, is_moment: &[bool], accurate: &[Vec3], own: &[Vec3]) -> f64 {
        self.checks += 1;
        for unit in [false, true] {
            let of_unit = accurate.iter().zip(is_moment).filter(|(_, moment)| **moment == unit);
            self.largest[usize::from(unit)] += of_unit.map(|(force, _)| force.norm()).fold(0.0, f64::max);
        }
        let least = self.largest.map(|sum| SMALL * sum / self.checks as f64);
        let of_force = |((accurate, own), moment): ((&Vec3, &Vec3), &bool)| {
            let error = (own - accurate).norm();
            if error > 0.0 { error / accurate.norm().max(least[usize::from(*moment)]) } else { 0.0 }
        };
        accurate.iter().zip(own).zip(is_moment).map(of_force).fold(0.0, f64::max)
    }

    /// How exactly the steps from here on are solved, so that errors stay below what is wanted.
    pub fn follow(&mut self, error: f64, wanted: f64) {
        if error > wanted {
            self.share = (self.share / (error / wanted).clamp(TIGHTEN[0], TIGHTEN[1])).max(LEAST);
        } else if error < FAR * wanted {
            self.share = (self.share * LOOSEN).min(1.0);
        }
    }

    /// Collective: all ranks take over what rank 0 has.
    pub fn share_out(&mut self, comm: &dyn Comm) {
        // Writing to memory cannot fail.
        let mut bytes = postcard::to_allocvec(self).unwrap_or_default();
        comm.broadcast(0, &mut bytes);
        *self = Self::decode(&bytes).unwrap_or(*self);
    }

    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap_or_default()
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let control: Self = postcard::from_bytes(bytes).ok()?;
        (control.share > 0.0 && control.share <= 1.0).then_some(control)
    }
}

impl ForceChecks {
    /// The options of the solves between checks, given those of the case.
    pub fn chosen(&self, case: solve::Options) -> solve::Options {
        let share = if self.wanted.is_some() { self.control.share } else { 1.0 };
        solve::Options { tolerance: share * case.tolerance, ..case }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances_follow_errors() {
        let mut control = Control::default();
        let shares = [0.05, 0.03, 0.015, 0.004, 0.001, 1.0, f64::NAN, 0.0, 0.0, 0.0, 0.0, 0.0];
        let shares = shares.map(|error| {
            control.follow(error, 0.02);
            control.share
        });
        let expected = [0.4, 0.2, 0.2, 0.3, 0.45, 0.1125, 0.1125, 0.16875];
        for (share, expected) in shares.iter().zip(expected) {
            assert!((share - expected).abs() < 1e-12, "{shares:?}");
        }
        assert!(shares[11] <= 1.0);
        for _ in 0..20 {
            control.follow(1.0, 0.02);
        }
        assert_eq!(control.share, LEAST);
        assert_eq!(Control::decode(&control.encode()), Some(control));
        assert_eq!(Control::decode(&[1, 2, 3]), None);
    }

    #[test]
    fn small_forces_count_as_some_of_the_large_ones() {
        let force = |size: f64| Vec3::x() * size;
        let (accurate, own) = ([100.0, 1.0, 1e-3].map(force), [101.0, 1.5, 2e-3].map(force));
        let mut control = Control::default();
        // 1 of 100, 0.5 of 10; the moment by itself: 1e-3 of 1e-3.
        assert!((control.worst(&[false, false, false], &accurate, &own) - 0.05).abs() < 1e-12);
        assert!((control.worst(&[false, false, true], &accurate, &own) - 1.0).abs() < 1e-12);
        // Where nothing touches: by what there was.
        let none = [force(0.0); 3];
        assert_eq!(control.worst(&[false; 3], &none, &none), 0.0);
    }
}
