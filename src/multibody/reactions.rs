//! Forces that the joints and loops transmit, averaged over a step: (18), and Newton–Euler from the tips to
//! the ground.
//!
//! To be asked between `reduce` and `finish`, while the scratch stands at `q_m`.

use super::error::MultibodyError;
use super::law::PrescribedMotion;
use super::model::BodyIndex;
use super::spatial::{Twist, Wrench};
use super::stepping::{BodyImpulse, Multibody};
use nalgebra::DVector;

impl Multibody {
    /// `dv = B dv_u + a h` (24) over the step.
    fn velocity_change(&self, v_u_new: &[f64]) -> Result<DVector<f64>, MultibodyError> {
        let needed = self.partition.nu();
        if v_u_new.len() != needed {
            return Err(MultibodyError::WrongLength { what: "v_u", given: v_u_new.len(), needed });
        }
        let dv_u = DVector::from_fn(needed, |k, _| v_u_new[k] - self.velocity[self.partition.independent[k]]);
        Ok(&self.reduced.map * dv_u + &self.reduced.bias * self.time_step)
    }

    /// (18): impulses of the closure equations over the step, N s and N m s in the axes of side *a* of each
    /// cut. Rows that the others imply carry nothing. `contacts` are the impulses that contacts gave to
    /// bodies.
    pub fn constraint_impulses(
        &self,
        v_u_new: &[f64],
        contacts: &[BodyImpulse],
    ) -> Result<DVector<f64>, MultibodyError> {
        let dv = self.velocity_change(v_u_new)?;
        let mut balance = &self.data.mass * dv - &self.data.force * self.time_step;
        for contact in contacts {
            let wrench = self.contact_wrench(contact);
            let mut next = Some(contact.body.0);
            while let Some(i) = next {
                for column in self.model.joints[i].columns() {
                    balance[column] -= self.data.subspace[column].power(&wrench);
                }
                next = self.model.joints[i].parent;
            }
        }
        let mut kept: Vec<f64> = self.partition.dependent.iter().map(|&column| balance[column]).collect();
        self.reduced.closure.solve_transposed(&mut kept);
        let mut impulses = DVector::zeros(self.model.closure_rows());
        for (&row, impulse) in self.partition.rows.iter().zip(kept) {
            impulses[row] = impulse;
        }
        Ok(impulses)
    }

    /// Force (N) and moment (N m, about the joint frame's origin on the child), world axes, that the joint of
    /// each body puts on it, averaged over the step: springs, dampers and actuators of that joint included.
    pub fn joint_wrenches(
        &self,
        v_u_new: &[f64],
        contacts: &[BodyImpulse],
    ) -> Result<Vec<Wrench>, MultibodyError> {
        let impulses = self.constraint_impulses(v_u_new, contacts)?;
        self.joint_wrenches_with(v_u_new, contacts, &impulses)
    }

    /// As [`joint_wrenches`](Self::joint_wrenches), where the
    /// [`constraint_impulses`](Self::constraint_impulses) are known already.
    pub fn joint_wrenches_with(
        &self,
        v_u_new: &[f64],
        contacts: &[BodyImpulse],
        impulses: &DVector<f64>,
    ) -> Result<Vec<Wrench>, MultibodyError> {
        let (model, data) = (&self.model, &self.data);
        let dv = self.velocity_change(v_u_new)?;
        let per_second = 1.0 / self.time_step;
        let mut wrenches: Vec<Wrench> = Vec::with_capacity(model.body_count());
        let mut accelerations: Vec<Twist> = Vec::with_capacity(model.body_count());
        for (i, joint) in model.joints.iter().enumerate() {
            let mut gain = joint.parent.map_or(Twist::zero(), |parent| accelerations[parent]);
            for column in joint.columns() {
                gain += data.subspace[column] * (dv[column] * per_second);
            }
            accelerations.push(gain);
            let total = gain + data.bias_accelerations[i] + Twist::translation(-model.gravity);
            let momentum = data.inertias[i].apply(&data.twists[i]);
            let inertial = data.inertias[i].apply(&total) + data.twists[i].carry_wrench(&momentum);
            wrenches.push(inertial - data.applied[i]);
        }
        for contact in contacts {
            wrenches[contact.body.0] += self.contact_wrench(contact) * -per_second;
        }
        for cut in &model.cuts {
            let rows = impulses.rows(cut.row, cut.row_count());
            let (on_a, on_b) = data.cut_wrenches(cut, rows.as_slice());
            for (body, wrench) in [(cut.body_a, on_a), (cut.body_b, on_b)] {
                if let Some(i) = body {
                    wrenches[i] += wrench * -per_second;
                }
            }
        }
        for i in (0..wrenches.len()).rev() {
            if let Some(parent) = model.joints[i].parent {
                let carried = wrenches[i];
                wrenches[parent] += carried;
            }
        }
        for (i, wrench) in wrenches.iter_mut().enumerate() {
            let arm = self.joint_origin(BodyIndex(i)) - data.reference;
            wrench.moment = wrench.moment_about(&arm);
        }
        Ok(wrenches)
    }

    /// Work of prescribed joints over the step, J, from what [`joint_wrenches`](Self::joint_wrenches) gives:
    /// without what force elements do in the same coordinates.
    pub fn work_of_motions(&self, wrenches: &[Wrench]) -> f64 {
        let work = |(column, motion): &(usize, PrescribedMotion)| {
            let body = self.model.joints.iter().position(|joint| joint.columns().contains(column));
            let Some(body) = body else { return 0.0 };
            let (arm, wrench) = (self.joint_origin(BodyIndex(body)) - self.data.reference, &wrenches[body]);
            let about = Wrench { force: wrench.force, moment: wrench.moment + arm.cross(&wrench.force) };
            let force = self.data.subspace[*column].power(&about) - self.data.joint_force[*column];
            let rates = [self.time(), self.time() + self.time_step].map(|time| motion.sample(time).velocity);
            force * 0.5 * (rates[0] + rates[1]) * self.time_step
        };
        self.model.prescribed.iter().map(work).sum()
    }

    /// World place of the joint frame on the child.
    fn joint_origin(&self, body: BodyIndex) -> crate::geometry::Vec3 {
        let back = &self.model.joints[body.0].from_child_side;
        self.data.poses[body.0].point(&back.inverse_point(&crate::geometry::Vec3::zeros()))
    }

    fn contact_wrench(&self, contact: &BodyImpulse) -> Wrench {
        let arm = self.data.poses[contact.body.0].position - self.data.reference;
        Wrench { force: contact.linear, moment: contact.angular + arm.cross(&contact.linear) }
    }
}
