//! Whether the forces of a machine are too stiff for the time step of a scheme that takes them explicitly.
//!
//! A step maps small deviations by the scheme's amplification matrix, and the mechanism itself by the
//! exponential of its own. Deviations that grow in the first but not in the second grow because the step is
//! too long, as for `ω h > 2` and `c h / m > 2`; what grows in both is a pendulum that falls over, or an
//! actuator that drives itself.
//!
//! A law with a limit chatters where its slope is too steep, but cannot grow beyond the limit. So the slopes
//! are taken over a tiny and over a large change, and both have to be too steep.

use super::StepError;
use super::integrate::Integrator;
use crate::machine::Machine;
use crate::multibody::{Amplitudes, Tangents};
use nalgebra::{Complex, DMatrix, Schur};
use std::cmp::Ordering;

/// Growth in a step by which the scheme has to exceed the mechanism: a hundredfold in some two hundred steps.
const GROWTH: f64 = 1.02;

/// Of the step that would do, what is advised.
const ADVISED: f64 = 0.9;

/// An error if the machine, as it stands, would blow up in steps of this length.
pub(super) fn check(
    machine: &mut Machine,
    integrator: &dyn Integrator,
    time_step: f64,
) -> Result<(), StepError> {
    if machine.multibody.partition().nu() == 0 {
        return Ok(()); // all of it is prescribed
    }
    let mut limit = time_step;
    let mut stiffest = None;
    for amplitudes in [Amplitudes::SMALL, Amplitudes::LARGE] {
        // Where loops cannot be closed nearby, nothing can be said.
        let Ok(tangents) = machine.multibody.tangents(&amplitudes) else { return Ok(()) };
        let Some(largest) = largest_step(&tangents, integrator, time_step) else { return Ok(()) };
        limit = largest.min(limit);
        stiffest = stiffest_element(&tangents, time_step);
    }
    let model = machine.multibody.model();
    let element = stiffest.and_then(|index| model.force_names().nth(index)).map(str::to_string);
    Err(StepError::Unstable {
        machine: model.name().to_string(),
        element,
        time_step: format!("{time_step:?}"),
        limit: format!("{:.1e}", ADVISED * limit),
    })
}

/// The largest step below `time_step` in which deviations do not grow; none if `time_step` itself will do.
fn largest_step(tangents: &Tangents, integrator: &dyn Integrator, time_step: f64) -> Option<f64> {
    let grows = |time_step: f64| {
        let own = eigenvalues(motion(tangents, time_step), time_step);
        let grows_itself = own.map_or(1.0, |values| values.map(|value| value.re).fold(0.0, f64::max).exp());
        let scheme = integrator.amplification(tangents, time_step);
        let radius = match eigenvalues(scheme.clone(), time_step) {
            Some(values) => values.map(|value| value.norm()).fold(0.0, f64::max),
            None => spectral_radius(scheme),
        };
        // What is not a number grows.
        !matches!(radius.partial_cmp(&(GROWTH * grows_itself)), Some(Ordering::Less | Ordering::Equal))
    };
    if !grows(time_step) {
        return None;
    }
    let (mut good, mut bad) = (time_step, time_step);
    while grows(good) && good > 1e-12 * time_step {
        (good, bad) = (0.5 * good, good);
    }
    for _ in 0..20 {
        let middle = 0.5 * (good + bad);
        if grows(middle) {
            bad = middle;
        } else {
            good = middle;
        }
    }
    Some(good)
}

/// `h` times the matrix of the linear motion of `(δq, δv)`.
fn motion(tangents: &Tangents, time_step: f64) -> DMatrix<f64> {
    let nu = tangents.position.nrows();
    let mut matrix = DMatrix::zeros(2 * nu, 2 * nu);
    matrix.view_mut((0, nu), (nu, nu)).fill_with_identity();
    matrix.view_mut((nu, 0), (nu, nu)).copy_from(&tangents.position);
    matrix.view_mut((nu, nu), (nu, nu)).copy_from(&tangents.velocity);
    matrix * time_step
}

/// Of a matrix for `(δq, δv)`; none if they are not found.
fn eigenvalues(mut matrix: DMatrix<f64>, time_step: f64) -> Option<impl Iterator<Item = Complex<f64>>> {
    if matrix.iter().any(|entry| !entry.is_finite()) {
        return None;
    }
    // In positions and h times velocities entries are of like size.
    let nu = matrix.nrows() / 2;
    matrix.view_mut((0, nu), (nu, nu)).scale_mut(1.0 / time_step);
    matrix.view_mut((nu, 0), (nu, nu)).scale_mut(time_step);
    let schur = Schur::try_new(matrix, f64::EPSILON, 1000 * nu)?;
    Some(schur.complex_eigenvalues().iter().copied().collect::<Vec<_>>().into_iter())
}

/// By repeated squaring, to some per cent: for matrices whose eigenvalues are not found.
fn spectral_radius(mut matrix: DMatrix<f64>) -> f64 {
    let mut logarithm = 0.0;
    let squarings = 10;
    for _ in 0..squarings {
        let size = matrix.norm();
        if size == 0.0 || !size.is_finite() {
            return if size == 0.0 { 0.0 } else { f64::INFINITY };
        }
        matrix /= size;
        matrix = &matrix * &matrix;
        logarithm = 2.0 * (logarithm + size.ln());
    }
    ((logarithm + matrix.norm().max(f64::MIN_POSITIVE).ln()) / f64::from(1 << squarings)).exp()
}

/// The force element that is furthest beyond what the step allows.
fn stiffest_element(tangents: &Tangents, time_step: f64) -> Option<usize> {
    let steepness = |[stiffness, damping]: &[f64; 2]| {
        (-stiffness * time_step * time_step / 4.0).max(-damping * time_step / 2.0)
    };
    let all = tangents.elements.iter().map(steepness).enumerate();
    all.filter(|(_, steepness)| *steepness > 0.1).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::super::integrate::integrator;
    use super::*;
    use crate::multibody::ForceEvaluation;
    use crate::scene::Scheme;

    fn oscillator(stiffness: f64, damping: f64) -> Tangents {
        Tangents {
            position: DMatrix::from_element(1, 1, -stiffness),
            velocity: DMatrix::from_element(1, 1, -damping),
            force_evaluation: ForceEvaluation::StartVelocity,
            elements: vec![[-stiffness, -damping]],
        }
    }

    #[test]
    fn springs_and_dampers_have_the_limits_of_the_textbook() {
        for theta in [0.5, 0.75, 1.0] {
            let scheme = integrator(Scheme::MoreauJean { theta });
            // ω h = 2.
            let limit = largest_step(&oscillator(1e6, 0.0), &*scheme, 1e-2).expect("too stiff");
            assert!((limit - 2e-3).abs() < 1e-5, "{limit}");
            assert_eq!(largest_step(&oscillator(1e6, 0.0), &*scheme, 1.99e-3), None);
            // c h / m = 2.
            let limit = largest_step(&oscillator(0.0, 500.0), &*scheme, 1e-2).expect("too stiff");
            assert!((limit - 4e-3).abs() < 5e-5, "{limit}");
        }
    }

    #[test]
    fn forces_at_the_velocity_of_the_middle_have_their_own_limit() {
        // 1 − z + z²/2 never turns negative, and is beyond one from z = 2 on.
        let mut tangents = oscillator(0.0, 500.0);
        tangents.force_evaluation = ForceEvaluation::MiddleVelocity;
        let limit = largest_step(&tangents, &*integrator(Scheme::default()), 1e-2).expect("too stiff");
        assert!((limit - 4e-3).abs() < 1e-4, "{limit}");
    }

    #[test]
    fn a_damper_among_free_coordinates_is_found() {
        // A wheel that turns freely, a damped mass, a soft oscillator, coupled a little.
        let scheme = integrator(Scheme::default());
        let mut tangents = oscillator(0.0, 0.0);
        tangents.position = DMatrix::from_diagonal(&vec![0.0, -1e3, -50.0].into());
        tangents.velocity = DMatrix::from_diagonal(&vec![0.0, -3.7e5, -1.0].into());
        tangents.velocity[(0, 1)] = 1e4;
        let limit = largest_step(&tangents, &*scheme, 5e-4).expect("too stiff");
        assert!((limit - 2.0 / 3.7e5).abs() < 1e-7, "{limit}");
    }

    #[test]
    fn radii_by_squaring() {
        let matrix = DMatrix::from_row_slice(2, 2, &[0.0, 4.0, -1.0, 0.0]);
        assert!((spectral_radius(matrix) - 2.0).abs() < 0.05);
    }

    #[test]
    fn what_falls_over_is_no_alarm() {
        let scheme = integrator(Scheme::default());
        assert_eq!(largest_step(&oscillator(-1e6, 0.0), &*scheme, 1e-2), None);
        assert_eq!(largest_step(&oscillator(0.0, -300.0), &*scheme, 1e-2), None);
    }
}
