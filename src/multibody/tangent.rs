//! How the accelerations of a mechanism answer to changes of its positions and velocities, by central
//! differences through closed loops: `δa_u = A δq_u + B δv_u`. For checks between steps, not for stepping.

use super::error::MultibodyError;
use super::stepping::{ForceEvaluation, Multibody};
use nalgebra::{DMatrix, DVector};

/// How far positions and velocities are changed for a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amplitudes {
    /// m or rad
    pub position: f64,
    /// m/s or rad/s
    pub velocity: f64,
}

impl Amplitudes {
    /// Slopes of a smooth law.
    pub const SMALL: Self = Self { position: 1e-7, velocity: 1e-6 };
    /// Far enough that a law with a limit, or a regularised sign, shows that it cannot grow.
    pub const LARGE: Self = Self { position: 1e-3, velocity: 1.0 };
}

/// Slopes at one state, for the independent coordinates.
#[derive(Clone, Debug, PartialEq)]
pub struct Tangents {
    /// A, s⁻².
    pub position: DMatrix<f64>,
    /// B, s⁻¹.
    pub velocity: DMatrix<f64>,
    pub force_evaluation: ForceEvaluation,
    /// By force element: what it alone adds to A and B along the motion that it drives, s⁻² and s⁻¹: minus
    /// its stiffness, and its damping, by the mass that it moves.
    pub elements: Vec<[f64; 2]>,
}

/// What a state gives: accelerations, values of force elements, their rates.
struct Response {
    acceleration: DVector<f64>,
    forces: DVector<f64>,
    rates: DVector<f64>,
}

impl Multibody {
    /// The state is the same afterwards, bit by bit. An error where loops cannot be closed nearby.
    pub fn tangents(&mut self, amplitudes: &Amplitudes) -> Result<Tangents, MultibodyError> {
        let before = self.state();
        let found = self.differences(amplitudes);
        self.take_back(&before)?;
        found
    }

    /// An error if a coordinate moves no mass, as the mechanism stands.
    pub fn require_mass(&mut self) -> Result<(), MultibodyError> {
        if self.partition().nu() == 0 {
            return Ok(()); // all of it is prescribed
        }
        let before = self.state();
        let found = self.accelerations();
        self.take_back(&before)?;
        match found {
            Err(massless @ MultibodyError::Massless { .. }) => Err(massless),
            // What else there may be comes up where it happens.
            _ => Ok(()),
        }
    }

    fn differences(&mut self, amplitudes: &Amplitudes) -> Result<Tangents, MultibodyError> {
        let state = self.state();
        let (nu, elements) = (self.partition().nu(), self.model().force_names().count());
        let mut tangents = [DMatrix::zeros(nu, nu), DMatrix::zeros(nu, nu)];
        let mut forces = [DMatrix::zeros(elements, nu), DMatrix::zeros(elements, nu)];
        let mut rates = DMatrix::zeros(elements, nu);
        for column in 0..nu {
            for (level, amplitude) in [(0, amplitudes.position), (1, amplitudes.velocity)] {
                let mut respond = |change: f64| {
                    self.take_back(&state)?;
                    self.change(level, column, change)?;
                    self.response()
                };
                let (low, high) = (respond(-amplitude)?, respond(amplitude)?);
                let slope = |low: &DVector<f64>, high: &DVector<f64>| (high - low) / (2.0 * amplitude);
                tangents[level].set_column(column, &slope(&low.acceleration, &high.acceleration));
                forces[level].set_column(column, &slope(&low.forces, &high.forces));
                if level == 1 {
                    rates.set_column(column, &slope(&low.rates, &high.rates));
                }
            }
        }
        self.take_back(&state)?;
        self.accelerations()?;
        // Of an element with value f and rate r(q)·v_u the generalized force is r f.
        let driven = &rates * &self.reduced.mass_inverse;
        let alone = |level: usize, element: usize| driven.row(element).dot(&forces[level].row(element));
        let elements = (0..elements).map(|element| [alone(0, element), alone(1, element)]).collect();
        let [position, velocity] = tangents;
        Ok(Tangents { position, velocity, force_evaluation: self.force_evaluation(), elements })
    }

    /// One independent position (`level` 0) or velocity (1).
    fn change(&mut self, level: usize, column: usize, by: f64) -> Result<(), MultibodyError> {
        if level == 0 {
            let mut shift = vec![0.0; self.partition().nu()];
            shift[column] = by;
            return self.shift(&shift);
        }
        let independent = self.partition.independent[column];
        self.coordinates.v[independent] += by;
        self.complete_velocities();
        Ok(())
    }

    fn response(&mut self) -> Result<Response, MultibodyError> {
        let all = self.accelerations()?;
        let independent = self.partition.independent.iter().map(|&column| all[column]);
        Ok(Response {
            acceleration: DVector::from_iterator(self.partition.nu(), independent),
            forces: DVector::from_column_slice(self.force_values()),
            rates: DVector::from_vec(self.force_rates()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::ForceSpec;
    use super::super::{BodySpec, JointKind, JointSpec, MultibodyBuilder};
    use super::*;
    use crate::geometry::{Mat3, Vec3};

    /// A mass on a spring and damper along x.
    fn oscillator(stiffness: f64, damping: f64) -> Multibody {
        let mut builder = MultibodyBuilder::new("oscillator");
        builder.body(BodySpec::new("mass", 2.0, Vec3::zeros(), Mat3::identity()));
        let slide = JointKind::Prismatic { axis: Vec3::x() };
        builder.joint(JointSpec::new("slide", slide, "ground", "mass").start(&[0.1], &[0.3]));
        let coordinate = "slide".into();
        builder.force("spring", ForceSpec::JointSpring { coordinate, stiffness, damping, rest: 0.0 });
        Multibody::new(builder.build().expect("valid"), 0.0).expect("tree")
    }

    #[test]
    fn a_spring_and_a_damper_have_the_slopes_of_their_numbers() {
        for amplitudes in [Amplitudes::SMALL, Amplitudes::LARGE] {
            let mut machine = oscillator(800.0, 6.0);
            let before = machine.state();
            let found = machine.tangents(&amplitudes).expect("regular");
            assert_eq!(machine.state(), before);
            assert!((found.position[(0, 0)] + 400.0).abs() < 1e-5);
            assert!((found.velocity[(0, 0)] + 3.0).abs() < 1e-7);
            let [stiffness, damping] = found.elements[0];
            assert!((stiffness + 400.0).abs() < 1e-5 && (damping + 3.0).abs() < 1e-7);
        }
    }
}
