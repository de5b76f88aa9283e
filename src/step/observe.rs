//! Energies, momenta and forces of the whole scene: sums that are the same to the last bit on any number of
//! ranks.

use super::{ContactView, RegionMeasure, World};
use crate::geometry::Vec3;
use crate::scene::Body;
use crate::solve::Twist;
use decomposition::{Comm, ExactSum};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Free bodies.
    pub bodies: u64,
    /// J.
    pub kinetic_energy: f64,
    /// In the present gravity, zero at the origin, J.
    pub potential_energy: f64,
    /// Of all machines: kinetic energy, that of weight and that of springs, J.
    pub machines: [f64; 3],
    /// Of the springs of contacts, where contacts were looked for in the last step, J.
    pub contact_energy: f64,
    /// Since the start: of motions, forces and corrections, J.
    pub work: [f64; 3],
    /// What is left of the energy of the start and the work since: negative where contacts took it up, J.
    pub balance: f64,
    /// kg m/s.
    pub momentum: Vec3,
    /// About the origin, kg m²/s.
    pub angular_momentum: Vec3,
    /// The mean of what moves free bodies in the last step, mass times acceleration, by the mean force
    /// between two bodies that press on each other; 1 if none do.
    pub unbalanced: f64,
    /// On each fixed and kinematic body in the last step, by contacts, mean over the step, N.
    pub forces: Vec<Vec3>,
    /// How densely grains lie, for each box that is to be watched.
    pub regions: Vec<RegionMeasure>,
}

pub fn kinetic_energy(body: &Body) -> f64 {
    0.5 * (body.mass * body.velocity.norm_squared() + body.angular_velocity.dot(&body.angular_momentum))
}

/// Sums of the last step, this rank's share.
#[derive(Clone, Debug, Default)]
pub struct StepSums {
    /// Three for each of the scene's statics: what contacts gave it.
    pub wall_impulses: Vec<ExactSum>,
    /// Σ ‖m (v_{n+1} − v_n)‖ of free bodies, N s.
    pub changes: ExactSum,
}

/// Σ ‖m (v_{n+1} − v_n)‖ of bodies that still have the velocities of the start of the step.
pub(super) fn changes(bodies: &[Body], solved: &[Twist]) -> ExactSum {
    let mut sum = ExactSum::default();
    for (body, solved) in bodies.iter().zip(solved) {
        sum.add(body.mass * (Vec3::from(solved.linear) - body.velocity).norm());
    }
    sum
}

/// Σ of the impulses between two bodies, as magnitudes, and how many pairs have one. The contacts of a pair
/// stand one after the other, on one rank.
fn pressing(contacts: &[ContactView]) -> (ExactSum, i64) {
    let (mut sum, mut pairs) = (ExactSum::default(), 0);
    for pair in contacts.chunk_by(|one, next| one.bodies == next.bodies) {
        let impulse = pair.iter().map(|contact| contact.impulse).sum::<Vec3>().norm();
        if impulse > 0.0 {
            sum.add(impulse);
            pairs += 1;
        }
    }
    (sum, pairs)
}

/// Collective.
pub fn observe(
    world: &World,
    contacts: &[ContactView],
    sums_of_step: &StepSums,
    comm: &dyn Comm,
) -> Observation {
    let World { scene, physics, machines, account } = world;
    let gravity = (physics.gravity)(physics.time(scene.state.step));
    let mut sums = vec![ExactSum::default(); 8];
    for body in &scene.state.grains {
        sums[0].add(kinetic_energy(body));
        sums[1].add(-body.mass * gravity.dot(&body.pose.position));
        let momentum = body.velocity * body.mass;
        let angular = body.pose.position.cross(&momentum) + body.angular_momentum;
        for axis in 0..3 {
            sums[2 + axis].add(momentum[axis]);
            sums[5 + axis].add(angular[axis]);
        }
    }
    let mut energies: [ExactSum; 3] = Default::default();
    for machine in machines.energies(comm) {
        energies.iter_mut().zip(machine).for_each(|(sum, energy)| sum.add(energy));
    }
    sums.extend(energies);
    let mut springs = ExactSum::default();
    let stored = contacts.iter().map(|contact| contact.elastic_energy);
    stored.filter(|energy| *energy > 0.0).for_each(|energy| springs.add(energy));
    sums.push(springs);
    sums.extend(account.sums().iter().cloned());
    let (pressing, pairs) = pressing(contacts);
    sums.extend([pressing, sums_of_step.changes.clone()]);
    sums.extend(sums_of_step.wall_impulses.iter().cloned());
    ExactSum::reduce(&mut sums, comm);
    let mut count = [scene.state.grains.len() as i64, pairs];
    comm.sum_i64(&mut count);
    let vector = |first: usize| Vec3::from_fn(|axis, _| sums[first + axis].value());
    let three = |first: usize| [0, 1, 2].map(|place| sums[first + place].value());
    let mut observed = Observation {
        bodies: count[0] as u64,
        kinetic_energy: sums[0].value(),
        potential_energy: sums[1].value(),
        momentum: vector(2),
        angular_momentum: vector(5),
        machines: three(8),
        contact_energy: sums[11].value(),
        work: three(12),
        balance: 0.0,
        unbalanced: {
            let [force, change] = [sums[15].value() / count[1] as f64, sums[16].value() / count[0] as f64];
            if force > 0.0 && count[0] > 0 { change / force } else { 1.0 }
        },
        forces: (17..sums.len()).step_by(3).map(|first| vector(first) / physics.time_step).collect(),
        regions: Vec::new(),
    };
    let expected = account.start.map(|start| start + observed.work.iter().sum::<f64>());
    observed.balance = expected.map_or(0.0, |expected| observed.energy() - expected);
    observed
}

impl Observation {
    /// Of free bodies and machines, J.
    pub fn all_kinetic_energy(&self) -> f64 {
        self.kinetic_energy + self.machines[0]
    }

    /// Of the weight of free bodies and machines, J.
    pub fn all_potential_energy(&self) -> f64 {
        self.potential_energy + self.machines[1]
    }

    /// Of the springs of machines and contacts, J.
    pub fn spring_energy(&self) -> f64 {
        self.machines[2] + self.contact_energy
    }

    /// Of all bodies and machines, J.
    pub fn energy(&self) -> f64 {
        self.kinetic_energy + self.potential_energy + self.contact_energy + self.machines.iter().sum::<f64>()
    }
}
