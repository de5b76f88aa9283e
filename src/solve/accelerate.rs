//! Fewer sweeps: extrapolation between the sweeps of the Gauss–Seidel iteration.
//!
//! A sweep takes impulses `r` to `G(r)`; its step `d = G(r) − r` plays the negative gradient.
//!
//! *Conjugate gradient* [SilcowitzHansen2010], with Fletcher and Reeves' factor:
//!
//! ```text
//! β = ‖d_k‖² / ‖d_{k−1}‖²,   r_{k+1} = G(r_k) + β p_{k−1},   p_k = β p_{k−1} + d_k,   p = 0 when β > 1
//! ```
//!
//! *Momentum* [Nesterov1983], with the further step of [Kim2016]:
//!
//! ```text
//! y_{k+1} = r_k + β_k (r_k − r_{k−1}) + c β_k (r_k − y_k),   r_k = G(y_k),   β_k = min( k / (k + 3), 1 − g )
//! ```
//!
//! *How much.* Where plain sweeps take the slowest mode down by `exp(−γ)` each, the best g is about `2 √(1.4
//! γ)`, and takes it down by `exp(−g/2)`: too much swings, too little creeps. So g begins at 0.3, and falls
//! by a fifth with each measurement in which the residual has fallen by less than `exp(−0.3 g)` a sweep, down
//! to 0.05. With friction no function must fall from sweep to sweep, and there is a β from which on the
//! sweeps of a problem swing ever more; the measured residual has the last word: where it is a tenth above
//! the least since k last began, k begins anew, g grows by a half, and c, 0.4 at first, is halved. A swing
//! dies out in the first sweeps afterwards: residuals fall by factors of two to three in five of them.
//! (Allowed to double from one measurement to the next, beds of spheres on the move took 400 sweeps to a
//! residual of 1e-3 instead of 100; compared with the last measurement only, one of them swung for 70
//! sweeps.)
//!
//! Where the residual has come near the tolerance and falls no more, the sweeps until the next measurement
//! are plain: often what is missing is no more than the swing.
//!
//! Without a better residual for 300 sweeps the momentum is halved, and where little is left of it sweeps are
//! plain again. Where they have not got there after as many sweeps again, the solve begins again from its
//! first impulses, with g of at least 0.2 for as long as it gets better: too much momentum may have gone
//! where no sweeps lead on. Where the tolerance is not met in all the sweeps that are allowed, nearly the
//! best of the states that were measured after the first quarter of them is the result: a swing that is cut
//! short may be far from the law.
//!
//! For the conjugate gradient: the norm weights each entry with the diagonal of `W`, so that it does not
//! depend on units or on how heavy a stone is. Velocities are linear in the impulses: the direction is kept
//! in both spaces and nothing is rebuilt. `‖d‖²` is summed exactly over manifolds, so β has the same bits on
//! any number of ranks. An extrapolated impulse may leave its cone; the next visit puts it back, and
//! residuals are measured right after a sweep, never after an extrapolation.

use super::problem::Twist;
use super::solver::{Interface, Options};
use super::sweep::{Memory, Plan, State, Sweep};
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

/// What the sweeps of an iteration with momentum are like.
///
/// ```text
/// Begin ──first measurement──▶ Ahead ──near the tolerance, and no better──▶ Calm ──next measurement──▶ Ahead
///                               │ stalls until little momentum is left
///                               ▼
///                            GivenUp ──as many sweeps again, once──▶ Begin, from the first impulses
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing has been measured yet.
    Begin,
    /// Each sweep begins ahead of where the last one ended.
    Ahead,
    /// Plain until the next measurement.
    Calm,
    /// Plain since so many sweeps were done: nothing had helped.
    GivenUp { after: usize },
}

/// Nesterov's momentum on the sweep.
pub struct Momentum {
    stage: Stage,
    /// Whether the solve has begun again from its first impulses, which it does once.
    is_second: bool,
    /// None before the first measurement and after momentum was given up.
    memory: Option<Memory>,
    /// Sweeps since the last restart.
    age: u32,
    /// g: 1 − β at least, now.
    gap: f64,
    /// The step further on the way of the last sweep, by β.
    further: f64,
    /// What g must not fall below: doubled when nothing else helps.
    least: f64,
    /// Residuals measured so far: the last one, after how many sweeps; the least since k began anew; the
    /// best.
    last: Option<(f64, usize)>,
    least_since: f64,
    best: f64,
    /// The least residual at which sweeps were calm.
    calmed: f64,
    /// A state with nearly the best, and its residual.
    kept_state: Option<State>,
    kept: f64,
    /// Sweeps since the residual was last much better than ever before.
    waited: usize,
    /// Sweeps of that kind before the momentum is halved.
    patience: usize,
}

/// How slowly β grows: `k / (k + 3)`.
const GROWTH: f64 = 3.0;
/// The step further on the way of the last sweep, by β, at the start. With 1 modes that a sweep removes would
/// come back in full.
const FURTHER: f64 = 0.4;
/// Of `1 − β` at the start: what a problem wants in which plain sweeps take 50 for each factor of 3.
const GAP: f64 = 0.3;
/// Of `1 − β` in the long run: twenty times the step of plain sweeps; beyond, it swings.
const LEAST_GAP: f64 = 0.05;
/// By what `1 − β` falls at a measurement.
const SHRINK: f64 = 1.25;
/// A residual that falls by less than `exp(−RATE g)` a sweep is that of modes which want more momentum. With
/// the best β it is `exp(−g/2)`.
const RATE: f64 = 0.3;
/// A residual that is larger than the least since k began anew by this factor has grown.
const GROWN: f64 = 1.1;
/// By what `1 − β` grows then, and by what the step further shrinks.
const WIDEN: f64 = 1.5;
const SHORTEN: f64 = 0.5;
/// A residual is near the tolerance within this factor.
const NEAR: f64 = 1.5;
/// Sweeps without a better residual before the momentum is halved.
const PATIENCE: usize = 300;
/// A residual is better than the best so far if it is less by this factor.
const BETTER: f64 = 0.9;
/// A state is worth remembering if its residual is less by this factor than that of the one remembered: it
/// takes as long as a third of a sweep.
const MUCH_BETTER: f64 = 0.8;
/// A least `1 − β` at which momentum gains nothing that it would be worth its price for.
const GIVE_UP: f64 = 0.9;
/// Times the sweeps after which momentum was given up: when the solve begins again.
const LATER: usize = 2;
/// Of `1 − β`, the second time, at least.
const MILD_GAP: f64 = 0.2;

impl Momentum {
    pub fn new() -> Self {
        Self {
            stage: Stage::Begin,
            is_second: false,
            memory: None,
            age: 0,
            gap: GAP,
            further: FURTHER,
            least: LEAST_GAP,
            last: None,
            least_since: f64::INFINITY,
            best: f64::INFINITY,
            calmed: f64::INFINITY,
            kept_state: None,
            kept: f64::INFINITY,
            waited: 0,
            patience: PATIENCE,
        }
    }

    /// Takes a residual measured after so many sweeps; whether the solve should begin again. The same on
    /// every rank.
    pub fn observe(&mut self, residual: f64, done: usize, options: &Options, sweep: &mut Sweep) -> bool {
        let last = self.last.replace((residual, done));
        if done >= options.maximum_sweeps / 4 {
            self.keep(residual, sweep);
        }
        let (before, sweeps) = last.map_or((f64::INFINITY, 0), |(before, earlier)| (before, done - earlier));
        match self.stage {
            Stage::GivenUp { after } => {
                let again = !self.is_second && done >= LATER * after;
                if again {
                    self.begin_again(done);
                }
                return again;
            }
            Stage::Begin => (self.stage, self.memory) = (Stage::Ahead, Some(Memory::of(sweep))),
            Stage::Calm => {
                (self.stage, self.calmed) = (Stage::Ahead, residual.min(self.calmed));
                self.begin_anew();
            }
            Stage::Ahead => self.steer(residual, before, sweeps, options.tolerance),
        }
        self.least_since = self.least_since.min(residual);
        if residual < BETTER * self.best {
            (self.best, self.waited) = (residual, 0);
            return false;
        }
        self.waited += sweeps;
        if self.waited >= self.patience {
            self.waited = 0;
            self.give_way(done);
        }
        false
    }

    /// More or less momentum, by the residual before and after some sweeps.
    fn steer(&mut self, residual: f64, before: f64, sweeps: usize, tolerance: f64) {
        if residual <= NEAR * tolerance && self.least_since < residual && residual < self.calmed {
            (self.stage, self.calmed) = (Stage::Calm, residual);
        } else if residual > GROWN * self.least_since {
            (self.gap, self.further) = ((WIDEN * self.gap).min(1.0), SHORTEN * self.further);
            self.begin_anew();
        } else if (before / residual).ln() < RATE * self.gap * sweeps as f64 {
            self.gap = (self.gap / SHRINK).max(self.least);
        }
    }

    /// From the first impulses, with less momentum and more patience. What was kept stays.
    fn begin_again(&mut self, done: usize) {
        let (kept_state, kept) = (self.kept_state.take(), self.kept);
        *self =
            Self { kept_state, kept, patience: done / 2, least: MILD_GAP, is_second: true, ..Self::new() };
    }

    /// Remembers the state if it is much better than the one remembered.
    fn keep(&mut self, residual: f64, sweep: &Sweep) {
        if residual < MUCH_BETTER * self.kept {
            self.kept = residual;
            sweep.save(self.kept_state.get_or_insert_default());
        }
    }

    /// From here on as if nothing had been measured.
    pub fn begin_anew(&mut self) {
        (self.age, self.least_since) = (0, f64::INFINITY);
        self.memory.iter_mut().for_each(Memory::stay);
    }

    /// The residual stalls: halves the momentum and begins anew; where little is left of it, or the second
    /// time, gives up.
    fn give_way(&mut self, done: usize) {
        self.least = 2.0 * self.least.max(self.gap);
        self.gap = self.least;
        self.begin_anew();
        if self.is_second || self.least > GIVE_UP {
            (self.stage, self.memory) = (Stage::GivenUp { after: done }, None);
        }
    }

    /// At the end of all sweeps that are allowed: back to the state that was kept if it was better than this
    /// one, with `residual`. The same on every rank.
    pub fn go_back(&self, sweep: &mut Sweep, residual: f64) -> bool {
        let better = self.kept_state.as_ref().filter(|_| residual.is_nan() || self.kept < residual);
        better.inspect(|state| sweep.set_state(state)).is_some()
    }

    /// A sweep from a little further on the way of the last ones. Collective.
    pub fn sweep(&mut self, sweep: &mut Sweep, interface: &mut dyn Interface) {
        let ahead = self.stage == Stage::Ahead;
        let Some(memory) = self.memory.as_mut().filter(|_| ahead) else { return sweep.run(interface) };
        self.age += 1;
        let age = f64::from(self.age);
        let onward = (age / (age + GROWTH)).min(1.0 - self.gap);
        sweep.run_ahead(Plan { onward, further: self.further * onward }, memory, interface);
    }
}

#[cfg(test)]
mod tests {
    use super::super::colour::{Colours, Link, colour};
    use super::super::problem::{Inertia, Manifold, Point, Problem, contact_frame};
    use super::super::solver::{Acceleration, Alone, LocalLaw, Options, solve};
    use super::super::{Hub, Sweep, Team, problem::Twist};
    use super::{LATER, MILD_GAP, Momentum, PATIENCE, Stage};
    use crate::geometry::{Mat3, Vec3};
    use crate::law::Kind;
    use crate::scene::{BodyId, ManifoldKey};

    /// A column of spheres on a floor: the weight of all has to find its way down, contact by contact.
    fn column(count: u32) -> Problem {
        let mut problem = Problem::default();
        for body in 0..=count {
            let floor = body == count;
            problem.inertia.push(if floor {
                Inertia::default()
            } else {
                Inertia::new(1.0, &(Mat3::identity() * 2.5))
            });
            let falling = Vec3::new(0.0, 0.0, if floor { 0.0 } else { -1e-2 });
            problem.free_velocity.push(Twist::new(falling, Vec3::zeros()));
            let (lower, upper) = if body == 0 { (0, count) } else { (body - 1, body % count) };
            if body < count {
                let slots = [lower.min(upper), lower.max(upper)];
                let up = if body == 0 { -Vec3::z() } else { Vec3::z() };
                let key = ManifoldKey { bodies: slots.map(|slot| BodyId(slot.into())), parts: [0, 0] };
                let first_point = problem.points.len() as u32;
                problem.manifolds.push(Manifold {
                    key,
                    slots,
                    frame: contact_frame(up),
                    kind: Kind::Coulomb,
                    friction: 0.5,
                    compliance: 0.0,
                    first_point,
                });
                problem.points.push(Point { arms: [up, -up], bias: 0.0, impulse: [0.0; 3] });
            }
        }
        problem
    }

    fn coloured(problem: &Problem, count: u32) -> Colours {
        let slot = |slot: u32| (slot < count).then_some(slot);
        let links: Vec<Link> =
            problem.manifolds.iter().map(|m| Link { key: m.key, slots: m.slots.map(slot) }).collect();
        colour(&links, count as usize)
    }

    /// However the sweeps go on after momentum was given up, the best state that was measured is the result.
    #[test]
    fn the_best_state_is_kept_after_giving_up() {
        let problem = column(30);
        let colours = coloured(&problem, 30);
        let team = Team::alone();
        let mut sweep =
            Sweep::new(&problem, &Hub::default(), &colours, LocalLaw::Projected, |_| false, &team);
        let options = Options { maximum_sweeps: 100, ..Options::default() };
        let stage = Stage::GivenUp { after: 0 };
        let mut momentum = Momentum { stage, is_second: true, ..Momentum::new() };
        let states: Vec<Vec<[f64; 3]>> = [(10, 1e-3), (50, 0.2), (60, 0.1), (70, 0.3)]
            .into_iter()
            .map(|(done, residual)| {
                momentum.observe(residual, done, &options, &mut sweep);
                let impulses = sweep.impulses(problem.points.len());
                momentum.sweep(&mut sweep, &mut Alone);
                impulses
            })
            .collect();
        assert!(!momentum.go_back(&mut sweep, 0.05), "this one is better");
        assert!(momentum.go_back(&mut sweep, 0.3));
        // Not the first one: nothing is kept in the first quarter of the sweeps.
        assert_eq!(sweep.impulses(problem.points.len()), states[2]);
        assert_ne!(states[2], states[3]);
    }

    /// A residual that never falls: momentum is given up, plain sweeps get as long as it had, and the second
    /// time is the last.
    #[test]
    fn a_solve_that_stalls_begins_again_once() {
        let problem = column(30);
        let colours = coloured(&problem, 30);
        let team = Team::alone();
        let mut sweep =
            Sweep::new(&problem, &Hub::default(), &colours, LocalLaw::Projected, |_| false, &team);
        let options = Options { maximum_sweeps: 20_000, ..Options::default() };
        let mut momentum = Momentum::new();
        let (mut given_up, mut begun) = (Vec::new(), Vec::new());
        for done in (0..options.maximum_sweeps).step_by(10) {
            let given_up_now = |momentum: &Momentum| matches!(momentum.stage, Stage::GivenUp { .. });
            let plain = given_up_now(&momentum);
            if momentum.observe(1.0, done, &options, &mut sweep) {
                begun.push(done);
                assert!(momentum.least >= MILD_GAP && momentum.patience >= PATIENCE);
            }
            if !plain && given_up_now(&momentum) {
                given_up.push(done);
            }
        }
        let [first, second] = given_up[..] else { panic!("given up after {given_up:?} sweeps") };
        assert_eq!(begun, [LATER * first]);
        assert!(second >= begun[0] + begun[0] / 2, "patience: {second}");
        assert!(momentum.memory.is_none(), "sweeps are plain");
        // What was kept of the first time is still there.
        assert!(momentum.go_back(&mut sweep, 2.0));
    }

    #[test]
    fn a_velocity_that_is_not_a_number_ends_every_solve() {
        let mut problem = column(30);
        problem.free_velocity[7].linear[2] = f64::NAN;
        let colours = coloured(&problem, 30);
        for law in [LocalLaw::Projected, LocalLaw::Exact] {
            for acceleration in [Acceleration::None, Acceleration::ConjugateGradient, Acceleration::Momentum]
            {
                let options = Options { law, acceleration, ..Options::default() };
                let solution = solve(&problem, &Hub::default(), &colours, &options, |_| false, &mut Alone);
                assert!(!solution.converged, "{law:?}, {acceleration:?}");
                assert!(solution.velocities[7].linear[2].is_nan(), "{law:?}, {acceleration:?}");
            }
        }
    }

    #[test]
    fn every_acceleration_finds_the_weight_of_a_column() {
        let count = 30;
        let problem = column(count);
        let colours = coloured(&problem, count);
        let mut sweeps = Vec::new();
        for acceleration in [Acceleration::None, Acceleration::ConjugateGradient, Acceleration::Momentum] {
            let options =
                Options { tolerance: 1e-6, maximum_sweeps: 20_000, acceleration, ..Options::default() };
            let solution = solve(&problem, &Hub::default(), &colours, &options, |_| false, &mut Alone);
            assert!(solution.converged, "{acceleration:?}");
            // The floor carries all of them, the topmost contact one.
            let carried: Vec<f64> = solution.impulses.iter().map(|impulse| impulse[0] / 1e-2).collect();
            for (contact, carried) in carried.iter().enumerate() {
                let above = f64::from(count) - contact as f64;
                assert!(
                    (carried - above).abs() < 1e-2,
                    "{acceleration:?}: contact {contact} carries {carried}"
                );
            }
            sweeps.push(solution.sweeps);
        }
        assert!(4 * sweeps[1] < sweeps[0] && 4 * sweeps[2] < sweeps[0], "{sweeps:?}");
    }
}
