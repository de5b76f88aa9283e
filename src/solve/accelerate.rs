//! Fewer sweeps: a nonlinear conjugate gradient on the Gauss–Seidel iteration [SilcowitzHansen2010].
//!
//! A sweep takes impulses `r` to `G(r)`; its step `d = G(r) − r` plays the negative gradient. With Fletcher and Reeves' factor
//!
//! ```text
//! β = ‖d_k‖² / ‖d_{k−1}‖²,      r_{k+1} = G(r_k) + β p_{k−1},      p_k = β p_{k−1} + d_k,      restart (p = 0) when β > 1
//! ```
//!
//! The norm weights each entry with the diagonal of `W`, so that it does not depend on units or on how heavy a stone is. Velocities are
//! linear in the impulses: the direction is kept in both spaces and nothing is rebuilt. `‖d‖²` is summed exactly over manifolds, so β has the
//! same bits on any number of ranks. An extrapolated impulse may leave its cone; the next visit puts it back, and
//! residuals are measured right after a sweep, never after an extrapolation.

use super::problem::Twist;
use super::solver::Interface;
use super::sweep::Sweep;
use decomposition::ExactSum;

pub struct ConjugateGradient {
    /// State before the sweep.
    impulses: Vec<super::sweep::Impulse>,
    velocities: Vec<Twist>,
    /// p, in both spaces.
    impulse_direction: Vec<super::sweep::Impulse>,
    velocity_direction: Vec<Twist>,
    /// ‖d_{k−1}‖²; none before the first sweep.
    last: Option<f64>,
    /// β of the sweep just done, to be used by `extrapolate`.
    factor: f64,
}

impl ConjugateGradient {
    pub fn new(sweep: &Sweep) -> Self {
        let impulses: Vec<_> = sweep.row_impulses().collect();
        Self {
            impulse_direction: vec![Default::default(); impulses.len()],
            velocity_direction: vec![Twist::default(); sweep.velocities.len()],
            velocities: sweep.velocities.clone(),
            impulses,
            last: None,
            factor: 0.0,
        }
    }

    /// One sweep, and the factor that belongs to it. Collective.
    pub fn sweep(&mut self, sweep: &mut Sweep, interface: &mut dyn Interface) {
        self.velocities.copy_from_slice(&sweep.velocities);
        for (saved, impulse) in self.impulses.iter_mut().zip(sweep.row_impulses()) {
            *saved = impulse;
        }
        sweep.hub.remember();
        sweep.run(interface);
        let mut sum = [ExactSum::default()];
        sweep.add_squared_steps(&self.impulses, &mut sum[0]);
        interface.sum(&mut sum);
        let now = sum[0].value();
        self.factor = match self.last {
            Some(last) if now < last => now / last,
            _ => 0.0,
        };
        self.last = Some(now);
    }

    /// Goes on along the old direction, and turns it.
    pub fn extrapolate(&mut self, sweep: &mut Sweep) {
        let beta = self.factor;
        sweep.move_impulses(beta, &self.impulses, &mut self.impulse_direction);
        let bodies = sweep.velocities.iter_mut().zip(&self.velocities).zip(&mut self.velocity_direction);
        for ((velocity, before), direction) in bodies {
            let parts = [
                (&mut velocity.linear, &before.linear, &mut direction.linear),
                (&mut velocity.angular, &before.angular, &mut direction.angular),
            ];
            for (velocity, before, direction) in parts {
                for axis in 0..3 {
                    let step = velocity[axis] - before[axis];
                    let carried = beta * direction[axis];
                    velocity[axis] += carried;
                    direction[axis] = carried + step;
                }
            }
        }
    }
}
