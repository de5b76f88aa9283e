//! Energy of a machine, and what displacements of its positions alone do to it.

use super::error::MultibodyError;
use super::stepping::Multibody;
use nalgebra::DVector;

impl Multibody {
    /// Kinetic energy, that of weight and that of springs at the current state, J.
    pub fn energy(&mut self) -> [f64; 3] {
        self.data.update_velocities(&self.model, &self.coordinates.v);
        self.data.update_mass(&self.model);
        self.energy_now()
    }

    /// The same where velocities and masses are current: at the start, and after [`energy`](Self::energy) has
    /// been asked for at the end of a step.
    pub fn energy_now(&self) -> [f64; 3] {
        [self.data.kinetic_energy(), self.data.gravity_energy(&self.model), self.spring_energy()]
    }

    /// Of springs with a stiffness, J.
    pub fn spring_energy(&self) -> f64 {
        self.data.spring_energy(&self.model, &self.coordinates.q)
    }

    /// Energy of weight and that of springs at the positions of the moment, J.
    fn potentials(&mut self) -> [f64; 2] {
        self.data.update_positions(&self.model, &self.coordinates.q);
        [self.data.gravity_energy(&self.model), self.spring_energy()]
    }

    /// What the displacement of positions alone in the last step, or since, has changed: energy of weight and
    /// that of springs, J. Zero if there was none.
    pub fn displaced(&self) -> [f64; 2] {
        self.displaced
    }

    /// Moves the independent positions by `shift`, and keeps what that has changed of the energy. Leaves the
    /// loops open.
    pub(super) fn move_by(&mut self, shift: &[f64]) -> Result<(), MultibodyError> {
        let needed = self.partition.nu();
        if shift.len() != needed {
            return Err(MultibodyError::WrongLength { what: "shift", given: shift.len(), needed });
        }
        let before = self.potentials();
        let all = &self.reduced.map * DVector::from_column_slice(shift);
        self.model.integrate(&mut self.coordinates.q, all.as_slice(), 1.0);
        let after = self.potentials();
        self.displaced = [0, 1].map(|kind| after[kind] - before[kind]);
        Ok(())
    }
}
