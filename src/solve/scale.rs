//! Impulses that no longer fit: one factor for all of them.
//!
//! A solve starts from the impulses of the last step. After a jam they are a network of forces that hold one
//! another, which sweeps take down slowly: contact by contact there is little wrong with it. Of all multiples
//! `α r` the best one makes the work of the impulses stationary,
//!
//! ```text
//! α = − r · q̂ / r · W r,      q̂ = q + μ ‖u_t‖ n,      u = q + W r
//! ```
//!
//! which is 1 at every solution. What is wrong from contact to contact, say an impulse that is missing where
//! features have changed, makes `r · W r` large and α small though the whole is right; sweeps remove it
//! first. So α is asked for after some sweeps. Where it is not above zero then, the impulses do the work of
//! the wrong sign and are forgotten; where it is above one they grow by it.
//!
//! Steps of the tamping demo, α after 40 sweeps: ordinary ones 0.95, in jams 0.55 to 1.5, after jams −0.3 to
//! −5.9. Factors between zero and one are better left to sweeps: taken by 0.55 the tool's impulse in a jam
//! was off by 26 % after 300 sweeps in place of 10 %.
//!
//! Velocities are linear in the impulses and follow: `v = v_free + α (v − v_free)`.

use super::hub::Hub;
use super::solver::Interface;
use super::sweep::Sweep;
use decomposition::ExactSum;

/// Sweeps before α is asked for the first time; then after twice as many each time.
const FIRST: usize = 40;
/// A factor that is worth beginning anew for.
const LARGE: f64 = 1.1;
/// As far as one factor takes the impulses.
const LARGEST: f64 = 2.0;

/// When the impulses of a solve are looked at as a whole.
pub struct Scale {
    next: usize,
}

impl Scale {
    pub fn new() -> Self {
        Self { next: FIRST }
    }

    /// After so many sweeps: takes all impulses by a factor if it is time and one is needed; whether it did.
    /// Collective, the same on every rank.
    pub fn apply(
        &mut self,
        sweep: &mut Sweep,
        hub: &Hub,
        sweeps: usize,
        interface: &mut dyn Interface,
    ) -> bool {
        if sweeps < self.next {
            return false;
        }
        self.next = 2 * sweeps;
        let mut sums = [ExactSum::default(), ExactSum::default()];
        sweep.add_scale_terms(&mut sums);
        interface.sum(&mut sums);
        let [free, gained] = sums.map(|sum| sum.value());
        match -free / gained {
            factor if factor <= 0.0 && gained > 0.0 => sweep.take_by(0.0, hub),
            factor if factor > LARGE && gained > 0.0 => sweep.take_by(factor.min(LARGEST), hub),
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::geometry::{Mat3, Vec3};
    use crate::law::Kind;
    use crate::scene::{BodyId, ManifoldKey};
    use crate::solve::colour::{Link, colour};
    use crate::solve::problem::contact_frame;
    use crate::solve::solver::Alone;
    use crate::solve::{Acceleration, Hub, Inertia, Manifold, Options, Point, Problem, Twist, solve};

    const COUNT: u32 = 30;

    /// A column of spheres between a floor and a ceiling, squeezed by some impulse in the last step; in this
    /// one they fall by 0.01 m/s, and the ceiling goes away.
    fn squeezed(impulse: f64) -> Problem {
        let mut problem = Problem::default();
        for body in 0..COUNT + 2 {
            let wall = body >= COUNT;
            let tensor = Mat3::identity() * 2.5;
            problem.inertia.push(if wall { Inertia::default() } else { Inertia::new(1.0, &tensor) });
            let speed = match body {
                COUNT => 0.0,
                body if body > COUNT => 0.1,
                _ => -1e-2,
            };
            problem.free_velocity.push(Twist::new(Vec3::z() * speed, Vec3::zeros()));
        }
        for contact in 0..=COUNT {
            let (lower, upper) = match contact {
                0 => (COUNT, 0),
                COUNT => (COUNT - 1, COUNT + 1),
                _ => (contact - 1, contact),
            };
            problem.manifolds.push(Manifold {
                key: ManifoldKey { bodies: [BodyId(contact.into()); 2], parts: [0; 2] },
                slots: [lower, upper],
                frame: contact_frame(Vec3::z()),
                kind: Kind::Coulomb,
                friction: 0.5,
                compliance: 0.0,
                first_point: contact,
            });
            let impulse = [impulse, 0.0, 0.0];
            problem.points.push(Point { arms: [Vec3::z(), -Vec3::z()], bias: 0.0, impulse });
        }
        problem
    }

    /// What squeezes the column holds itself, and sweeps alone would take a thousand to forget it.
    #[test]
    fn a_jam_that_is_over_is_forgotten() {
        let problem = squeezed(100.0);
        let movable = |slot: u32| (slot < COUNT).then_some(slot);
        let links: Vec<Link> =
            problem.manifolds.iter().map(|m| Link { key: m.key, slots: m.slots.map(movable) }).collect();
        let colours = colour(&links, COUNT as usize);
        for acceleration in [Acceleration::None, Acceleration::ConjugateGradient, Acceleration::Momentum] {
            let options =
                Options { tolerance: 1e-9, maximum_sweeps: 400, acceleration, ..Options::default() };
            let solution = solve(&problem, &Hub::default(), &colours, &options, |_| false, &mut Alone);
            let largest = solution.impulses.iter().map(|impulse| impulse[0]).fold(0.0, f64::max);
            // The floor carries 30 of them.
            assert!(largest < 0.31, "{acceleration:?}: {largest}");
        }
    }
}
