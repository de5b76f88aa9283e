//! Mass matrix by composite bodies, generalized force by Newton–Euler recursion: `M(q) dv = f(q, v, t)` (11).

use super::kinematics::Data;
use super::model::Model;
use super::spatial::{SpatialInertia, Twist};
use nalgebra::{DMatrix, DVector};

impl Data {
    /// Inertias of the bodies in world axes about the reference. Needs current positions.
    fn update_inertias(&mut self, model: &Model) {
        for (i, body) in model.bodies.iter().enumerate() {
            let pose = &self.poses[i];
            let turn = pose.rotation.to_rotation_matrix().into_inner();
            let arm = pose.point(&body.centre) - self.reference;
            self.inertias[i] =
                SpatialInertia::of_body(body.mass, &arm, &(turn * body.inertia * turn.transpose()));
        }
    }

    /// `M(q)`: entry (j, k) is `S_k · I_c S_j`, where `I_c` is the inertia of all that joint j carries and k
    /// lies on the way from j to the ground. Needs current positions.
    pub fn update_mass(&mut self, model: &Model) {
        self.update_inertias(model);
        self.composites.copy_from_slice(&self.inertias);
        for i in (0..model.joints.len()).rev() {
            if let Some(parent) = model.joints[i].parent {
                let composite = self.composites[i];
                self.composites[parent] += composite;
            }
        }
        self.mass.fill(0.0);
        for (i, joint) in model.joints.iter().enumerate() {
            for column in joint.columns() {
                let momentum = self.composites[i].apply(&self.subspace[column]);
                let mut next = Some(i);
                while let Some(ancestor) = next {
                    for other in model.joints[ancestor].columns() {
                        let entry = self.subspace[other].power(&momentum);
                        self.mass[(other, column)] = entry;
                        self.mass[(column, other)] = entry;
                    }
                    next = model.joints[ancestor].parent;
                }
            }
        }
    }

    /// `f(q, v, t)`: gravity, gyroscopic and Coriolis terms, and whatever `update_forces` put in. Needs
    /// current positions, velocities, mass and forces.
    pub fn update_force(&mut self, model: &Model) {
        // Gravity is an upward acceleration of the ground.
        let rising = Twist::translation(-model.gravity);
        for i in 0..model.joints.len() {
            let inertia = &self.inertias[i];
            let momentum = inertia.apply(&self.twists[i]);
            self.wrenches[i] = inertia.apply(&(self.bias_accelerations[i] + rising))
                + self.twists[i].carry_wrench(&momentum)
                + self.applied[i] * -1.0;
        }
        for i in (0..model.joints.len()).rev() {
            let wrench = self.wrenches[i];
            for column in model.joints[i].columns() {
                self.force[column] = self.joint_force[column] - self.subspace[column].power(&wrench);
            }
            if let Some(parent) = model.joints[i].parent {
                self.wrenches[parent] += wrench;
            }
        }
    }

    /// M(q), as last updated.
    pub fn mass(&self) -> &DMatrix<f64> {
        &self.mass
    }

    /// f(q, v, t), as last updated.
    pub fn force(&self) -> &DVector<f64> {
        &self.force
    }

    /// Kinetic energy, J. Needs current velocities and mass.
    pub fn kinetic_energy(&self) -> f64 {
        let energies =
            self.twists.iter().zip(&self.inertias).map(|(twist, inertia)| twist.power(&inertia.apply(twist)));
        0.5 * energies.sum::<f64>()
    }

    /// Energy of weight, J, zero at the world's origin. Needs current positions.
    pub fn gravity_energy(&self, model: &Model) -> f64 {
        let bodies = model.bodies.iter().zip(&self.poses);
        -bodies.map(|(body, pose)| body.mass * model.gravity.dot(&pose.point(&body.centre))).sum::<f64>()
    }
}
