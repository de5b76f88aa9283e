//! What an integrator remembers of bodies travels with them, and is taken back with a step.

use super::*;
use crate::multibody::{Multibody, MultibodyError, ReducedOperators, Tangents};
use crate::step::integrate::{Approach, Clock, MoreauJean};
use nalgebra::DMatrix;

/// Moreau and Jean's scheme that also counts the steps of each body, and keeps where it stood before the last
/// one.
struct Remembering(MoreauJean);

impl Integrator for Remembering {
    fn approach(&self, time_step: f64) -> Approach {
        self.0.approach(time_step)
    }

    fn predict(&self, bodies: &mut [Body], clock: &Clock) {
        for body in &mut *bodies {
            let count = body.memory.first().copied().unwrap_or(0.0);
            let place = body.pose.position;
            body.memory = [count + 1.0, place.x, place.y, place.z].into();
        }
        self.0.predict(bodies, clock);
    }

    fn free_motions(&self, bodies: &[Body], gravity: &Vec3, clock: &Clock) -> Vec<(Inertia, Twist)> {
        self.0.free_motions(bodies, gravity, clock)
    }

    fn finish(&self, bodies: &mut [Body], moved: &Moved, clock: &Clock) {
        self.0.finish(bodies, moved, clock);
    }

    fn amplification(&self, tangents: &Tangents, time_step: f64) -> DMatrix<f64> {
        self.0.amplification(tangents, time_step)
    }

    fn predict_machine<'m>(
        &self,
        multibody: &'m mut Multibody,
        clock: &Clock,
    ) -> Result<&'m ReducedOperators, MultibodyError> {
        self.0.predict_machine(multibody, clock)
    }

    fn finish_machine(
        &self,
        multibody: &mut Multibody,
        velocity: &[f64],
        shift: &[f64],
    ) -> Result<(), MultibodyError> {
        self.0.finish_machine(multibody, velocity, shift)
    }
}

fn remembering(comm: &dyn Comm) -> (Vec<Body>, u64) {
    let scene = scene(comm.rank(), comm.size(), Activation::Predictive);
    let (options, decomposition) = (solve::Options::default(), DecompositionOptions::default());
    let mut stepper = Stepper::new(scene, physics(), options, decomposition, comm);
    stepper.integrator = Box::new(Remembering(MoreauJean { theta: 0.5 }));
    let mut migrated = 0;
    let mut before = None;
    for step in 1..=95 {
        if step == 95 {
            before = Some((stepper.snapshot(), stepper.scene().state.grains.clone()));
        }
        migrated += stepper.step().expect("no machine can fail").migrated;
    }
    let grains = stepper.scene().state.grains.clone();
    let (snapshot, stood) = before.expect("kept at the last step");
    stepper.take_back(&snapshot).expect("no machine can fail");
    assert_eq!(stepper.scene().state.grains, stood, "what is remembered goes back too");
    stepper.step().expect("no machine can fail");
    assert_eq!(stepper.scene().state.grains, grains);
    (grains, migrated)
}

#[test]
fn what_a_scheme_remembers_travels_with_bodies() {
    let (alone, _) = remembering(&Solo);
    assert!(alone.iter().all(|body| body.memory.len() == 4 && body.memory[0] == 95.0));
    for size in [2, 3, 8] {
        let parts = threads::run(size, |comm| remembering(comm));
        assert!(parts[0].1 > 10, "bodies must have changed ranks: {}", parts[0].1);
        let mut together: Vec<Body> = parts.into_iter().flat_map(|(bodies, _)| bodies).collect();
        together.sort_by_key(|body| body.id);
        assert_eq!(together, alone, "{size} ranks");
    }
}
