//! Time integrators: where contacts are looked for, the free motion and the effective mass, what biases a
//! contact, and how positions follow from the solved velocities, for grains and machines alike.
//!
//! A step asks its [`Integrator`] in this order:
//!
//! ```text
//! predict, predict_machine    bodies and machines stand where contacts are looked for; reduced operators
//! free_motions                effective inverse masses and v_free (28)
//! approach                    how a gap and its rate become the bias of a contact
//! ...contact solve...
//! finish, finish_machine      velocities are taken over, positions follow (30)
//! ```
//!
//! What a scheme wants to know again in the next step it keeps in [`Body::memory`] and [`Multibody::memory`]:
//! they travel with their body, and are in snapshots, checkpoints and digests.

mod moreau_jean;
mod prescribed;

pub use moreau_jean::MoreauJean;
pub use prescribed::{finish_prescribed, predict_prescribed};

use crate::geometry::{Pose, Quat, Vec3};
use crate::multibody::{Multibody, MultibodyError, ReducedOperators, Tangents};
use crate::scene::{Body, Scheme, Spring, SpringAt};
use crate::solve::{Inertia, Twist};
use nalgebra::DMatrix;

/// The time of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// Of its start, s.
    pub start: f64,
    /// h, s.
    pub time_step: f64,
}

/// How contacts are seen by a scheme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Approach {
    /// From the start of the step to where contacts are looked for, and from there to its end, s.
    pub durations: [f64; 2],
    /// How long a gap that is open there takes to close at the velocity of the contact law, s: `g / closing`
    /// is the bias of the predictive law.
    pub closing: f64,
}

impl Approach {
    /// How the spring of a contact enters the law `0 ≤ V_n + bias + C r_n ⊥ r_n ≥ 0`: (bias, C).
    ///
    /// Contacts are looked for at positions that follow one another by `g' = g + h V_n`, whatever θ is. The
    /// mean force of the step is `r_n / h = −k (g* + τ V*)`, with
    ///
    /// ```text
    /// end      g* = g + h V_n                          V* = V_n
    /// middle   g* = g + h (V_n − V_n⁻) / 4             V* = (V_n + V_n⁻) / 2
    /// ```
    ///
    /// where V_n⁻ is the velocity before. `end` is the implicit Euler scheme: of an oscillation with ω a step
    /// leaves `1 / (1 + ω² h²)` of the energy. `middle` is the trapezoidal rule, which keeps it. Solved for
    /// V_n, with `D = h + τ` or `h/4 + τ/2`: `C = 1 / (h k D)`, and the bias is `g / D` or
    /// `(g + (τ/2 − h/4) V_n⁻) / D`. Where the gap is still open, bodies that approach must not meet the
    /// damper before they meet: the bias is that without τ. With the same C the damper then acts for the part
    /// of the step that is left after they met.
    pub fn spring(&self, spring: &Spring, gap: f64, before: f64) -> (f64, f64) {
        let (h, tau) = (self.closing, spring.dissipation);
        // While the gap is open the damper waits.
        let waiting = if gap > 0.0 { 0.0 } else { tau };
        let (bias, divisor) = match spring.spring_at {
            SpringAt::End => (gap / (h + waiting), h + tau),
            SpringAt::Middle => {
                let gap = gap + (0.5 * waiting - 0.25 * h) * before;
                (gap / (0.25 * h + 0.5 * waiting), 0.25 * h + 0.5 * tau)
            }
        };
        (bias, 1.0 / (h * spring.normal * divisor))
    }

    /// `C_t` of the spring in the tangent plane, which enters Coulomb's law by `V_t + C_t (r_t − r_t⁻)` in
    /// place of `V_t`; `r_t⁻` is the impulse of the last step.
    ///
    /// The stretch ξ follows the motion of the points along each other less their slip s, `ξ' = ξ + h (V_t −
    /// s)`, and its force acts at the end of the step, `r_t = −h k_t ξ'`. So the impulse of a step is the
    /// stretch that it leaves, and with `C_t = 1 / (h² k_t)` slip is `s = V_t + C_t (r_t − r_t⁻)`: zero while
    /// r_t is inside its disc, against r_t on its rim. It is the implicit Euler scheme, as `end` is along the
    /// normal.
    pub fn tangential(&self, spring: &Spring) -> f64 {
        1.0 / (self.closing * self.closing * spring.tangential)
    }
}

/// What the contact solve has found for the bodies of a list.
pub struct Moved<'a> {
    pub inertia: &'a [Inertia],
    pub free: &'a [Twist],
    pub solved: &'a [Twist],
}

/// A scheme that moves bodies and machines from the start of a step to its end.
pub trait Integrator: Send + Sync {
    fn approach(&self, time_step: f64) -> Approach;

    /// Free bodies move to where their contacts are looked for.
    fn predict(&self, bodies: &mut [Body], clock: &Clock);

    /// By body: inverse masses of the contact problem, and the velocity at the end of the step if nothing
    /// touches. Bodies that are not free have none, and their own velocity.
    fn free_motions(&self, bodies: &[Body], gravity: &Vec3, clock: &Clock) -> Vec<(Inertia, Twist)>;

    /// Free bodies take over the solved velocities and move to the end of the step. `moved` may have more
    /// entries than there are bodies.
    fn finish(&self, bodies: &mut [Body], moved: &Moved, clock: &Clock);

    /// A machine moves to where its contacts are looked for; what the contact solve needs of it there.
    fn predict_machine<'m>(
        &self,
        multibody: &'m mut Multibody,
        clock: &Clock,
    ) -> Result<&'m ReducedOperators, MultibodyError>;

    /// A machine takes over the solved velocities and moves to the end of the step; `shift` moves positions
    /// alone, and may be empty.
    fn finish_machine(
        &self,
        multibody: &mut Multibody,
        velocity: &[f64],
        shift: &[f64],
    ) -> Result<(), MultibodyError>;

    /// What a step makes of small deviations `(δq_u, δv_u)` of a machine from its motion: its eigenvalues
    /// tell whether they grow.
    fn amplification(&self, tangents: &Tangents, time_step: f64) -> DMatrix<f64>;
}

/// The integrator of a scheme.
pub fn integrator(scheme: Scheme) -> Box<dyn Integrator> {
    match scheme {
        Scheme::MoreauJean { theta } => Box::new(MoreauJean { theta }),
    }
}

/// Moves a pose by velocities for a while.
pub fn moved(pose: &Pose, velocity: &Vec3, angular_velocity: &Vec3, duration: f64) -> Pose {
    let turn = Quat::from_scaled_axis(angular_velocity * duration);
    Pose {
        // Kept at unit length: rounding would let it drift by 1e-16 a step.
        rotation: Quat::new_normalize((turn * pose.rotation).into_inner()),
        position: pose.position + velocity * duration,
    }
}
