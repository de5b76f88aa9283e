//! Impacts at their own time within a step, where overlap is limited.
//!
//! Moreau's scheme lets an impulse act from `q_m` on, whenever in the step the surfaces met, and compares
//! velocities at the ends of the step. Both are first order: bodies sink in, and bounces shift by about a
//! step each. Here each contact point is looked at as if nothing else touched: its gap goes along the
//! parabola through the gap at `q_m` with the speeds `V⁻` at the start of the step and `V_free` at its end.
//! With `a = (V_free − V⁻)/h` the surfaces meet after a time `s`, at the speed `V*`:
//!
//! ```text
//! g_n + s V⁻ + a s²/2 = 0,     V* = V⁻ + a s = −√(V⁻² − 2 a g_n),     g_n = g_m − (1 − θ) h V⁻
//! ```
//!
//! Afterwards it flies on with `−e V*`, or stays if that would bring it back in this step. The law of the
//! contact problem becomes
//!
//! ```text
//! 0 ≤ V + bias ⊥ r ≥ 0,     bias = e V* − a (h − s) if it flies on, 0 if it stays
//! ```
//!
//! and never less than what keeps energy. Relative to the free motion an impulse r changes kinetic energy by
//! `½ r (V + V_free)`, and gravity's work by `−r a (θ h + τ)` with τ below; with `V = −bias` that is no gain
//! for any r ≥ 0, whatever else touches, if
//!
//! ```text
//! bias ≥ V_free − 2 a (θ h + τ)
//! ```
//!
//! An elastic impact of two bodies has equality. It matters where surfaces that part are driven together by
//! other contacts of the same step: they may come back as fast as they went.
//!
//! Positions get what is missing because the impulse acts from `s` on and not from `q_m` on,
//!
//! ```text
//! q_{n+1} = q_m + θ h v_{n+1} + Σ τ M⁻¹ H r,     τ = ( p ((1 − θ) h − s) − p' s/2 ) / (p + p')
//! p = −(1 + e) V* of the impact,              p' = e V* − a (h − s) if it stays, of what holds it afterwards
//! ```
//!
//! the points of a manifold that close in the step with one `s` and one τ, those of their mean; those that
//! were closed all the time have none. With θ = ½ a bouncing ball is exact at the ends of steps. What curved
//! motions and contacts that hinder each other leave is the business of [`super::project`].

use super::{Shifts, at_rest};
use crate::scene::Physics;
use crate::solve::{self, Acceleration, Fallback, LocalLaw, Measure, Options, Solution};
use crate::step::contacts::ContactProblem;

/// A contact point on its way through a step, as if nothing touched.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// At `q_m`, m.
    pub gap: f64,
    /// How fast the gap opens at the start of the step, m/s.
    pub before: f64,
    /// The same at its end.
    pub free: f64,
    /// From the start of the step to `q_m`, and from there to its end, s.
    pub durations: [f64; 2],
}

/// What the points of a manifold that close in a step do, all together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impact {
    /// `s`, from the start of the step to the meeting of the surfaces, s.
    pub time: f64,
    /// Whether they come to lie.
    pub stays: bool,
    /// τ: how long before `q_m` the impulse acts, s.
    pub since: f64,
}

impl Flight {
    /// Of points that strike together. With a time for each of them, two corners that strike in one step an
    /// instant apart would tilt their body a hundred times as much as it was tilted, impact after impact.
    pub fn mean(flights: &[Flight]) -> Option<Flight> {
        let first = flights.first()?;
        let mean = |value: fn(&Flight) -> f64| flights.iter().map(value).sum::<f64>() / flights.len() as f64;
        Some(Flight { gap: mean(|f| f.gap), before: mean(|f| f.before), free: mean(|f| f.free), ..*first })
    }

    /// Whether the gap would be closed at the end of the step.
    pub fn closes(&self) -> bool {
        self.gap + self.durations[1] * self.free < 0.0
    }

    pub fn impact(&self, restitution: f64) -> Impact {
        let (time, speed) = self.meeting();
        let bias = restitution * speed - self.acceleration() * (self.step() - time);
        let stays = bias > -restitution * speed;
        let (impact, hold) = (-(1.0 + restitution) * speed, if stays { bias } else { 0.0 });
        let both = impact + hold;
        let since = impact * (self.durations[0] - time) - hold * 0.5 * time;
        Impact { time, stays, since: if both > 0.0 { since / both } else { 0.0 } }
    }

    /// What is added to this point's normal velocity in the contact law for an impact of its manifold, m/s.
    pub fn bias(&self, impact: &Impact, restitution: f64) -> f64 {
        let keeping = self.free - 2.0 * self.acceleration() * (self.durations[1] + impact.since);
        if impact.stays || impact.time >= self.step() {
            return keeping.max(0.0);
        }
        let speed = (self.before + self.acceleration() * impact.time).min(0.0);
        keeping.max(restitution * speed - self.acceleration() * (self.step() - impact.time))
    }

    fn step(&self) -> f64 {
        self.durations[0] + self.durations[1]
    }

    fn acceleration(&self) -> f64 {
        (self.free - self.before) / self.step()
    }

    /// `s` and `V*`; the end of the step and no speed if the surfaces do not meet before.
    fn meeting(&self) -> (f64, f64) {
        let gap = (self.gap - self.durations[0] * self.before).max(0.0);
        let square = self.before * self.before - 2.0 * self.acceleration() * gap;
        let speed = square.max(0.0).sqrt();
        let time = match self.before > 0.0 {
            true => (self.before + speed) / -self.acceleration(),
            false if gap == 0.0 => 0.0,
            false => 2.0 * gap / (speed - self.before),
        };
        if square >= 0.0 && (0.0..=self.step()).contains(&time) { (time, -speed) } else { (self.step(), 0.0) }
    }
}

/// No sweeps: the impulses are known, they only have to act, in the order in which all ranks add them up.
const OPTIONS: Options = Options {
    tolerance: 1.0,
    measure: Measure::Fclib,
    maximum_sweeps: 0,
    check_every: 1,
    law: LocalLaw::Projected,
    acceleration: Acceleration::None,
    method: None,
    fallback: Fallback::None,
    fallback_points: 0,
};

/// `Σ τ M⁻¹ H r / h`. None if no contact has a τ anywhere, or overlap is not limited. Collective.
pub fn shifts(contacts: &mut ContactProblem, solution: &Solution, physics: &Physics) -> Option<Shifts> {
    if physics.penetration_limit == 0.0 || contacts.largest(|point| point.since_impact.abs()) == 0.0 {
        return None;
    }
    let mut problem = at_rest(&contacts.assembled, |_| 0.0);
    let points = problem.points.iter_mut().zip(&contacts.assembled.points).zip(&solution.impulses);
    for ((point, info), impulse) in points {
        point.impulse = impulse.map(|entry| entry * info.since_impact / physics.time_step);
    }
    let hub = contacts.hubs.pushed(&solution.hub.impulses, physics.time_step);
    let ContactProblem { colours, halo, ranks, .. } = contacts;
    let moved = solve::solve(&problem, &hub, colours, &OPTIONS, |slot| halo.is_shared(slot), ranks);
    Some(Shifts::of(moved))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gap and speed at the end of a step by the scheme, for one body that only this contact touches.
    fn stepped(gap: f64, before: f64, acceleration: f64, restitution: f64, step: f64) -> (f64, f64) {
        let durations = [0.5 * step; 2];
        let free = before + acceleration * step;
        let flight = Flight { gap: gap + durations[0] * before, before, free, durations };
        if flight.gap > 0.0 && !flight.closes() {
            return (flight.gap + durations[1] * free, free);
        }
        let impact = flight.impact(restitution);
        let after = free.max(-flight.bias(&impact, restitution));
        (flight.gap + durations[1] * after + impact.since * (after - free), after)
    }

    /// The same by events: impact after impact, until one is so weak that the body stays.
    fn exact(gap: f64, before: f64, acceleration: f64, restitution: f64, step: f64) -> (f64, f64) {
        let (mut time, mut gap, mut speed) = (0.0, gap, before);
        for _ in 0..2 {
            let root = (speed * speed - 2.0 * acceleration * gap).sqrt();
            // From the surface it comes back at the speed with which it left.
            let meets = if gap == 0.0 && speed >= 0.0 {
                if acceleration < 0.0 { -2.0 * speed / acceleration } else { f64::INFINITY }
            } else if root > speed {
                2.0 * gap / (root - speed)
            } else {
                f64::INFINITY
            };
            if time + meets > step {
                let rest = step - time;
                return (gap + rest * speed + 0.5 * acceleration * rest * rest, speed + acceleration * rest);
            }
            (time, gap, speed) = (time + meets, 0.0, restitution * root);
            if restitution == 0.0 && acceleration <= 0.0 {
                return (0.0, 0.0);
            }
        }
        (f64::NAN, f64::NAN)
    }

    #[test]
    fn a_step_with_an_impact_is_exact_for_one_body() {
        let mut struck = 0;
        for gap in [0.0, 1e-7, 2.5e-5, 1.1e-4, 2.2e-4, 3e-3] {
            for before in [-2.0, -0.3, -0.02, 0.0, 0.004, 0.1] {
                for acceleration in [-40.0, -9.81, 0.0, 15.0] {
                    for restitution in [0.0, 0.4, 1.0] {
                        let wanted = exact(gap, before, acceleration, restitution, 1e-3);
                        // Several impacts within the step end at rest, which the exact motion reaches only
                        // later.
                        if wanted.0.is_nan() || (gap == 0.0 && before == 0.0) {
                            continue;
                        }
                        let found = stepped(gap, before, acceleration, restitution, 1e-3);
                        let close = (found.0 - wanted.0).abs() < 1e-15 && (found.1 - wanted.1).abs() < 1e-13;
                        assert!(
                            close,
                            "{gap} {before} {acceleration} {restitution}: {found:?}, not {wanted:?}"
                        );
                        struck += usize::from(wanted.1 > before + acceleration * 1e-3);
                    }
                }
            }
        }
        assert!(struck > 100, "{struck}");
    }

    #[test]
    fn what_lies_on_a_surface_stays_there() {
        for restitution in [0.0, 0.7] {
            for depth in [0.0, 1e-6] {
                let found = stepped(-depth, 0.0, -9.81, restitution, 1e-3);
                assert_eq!(found, (-depth, 0.0));
            }
        }
    }
}
