//! A step solved with `W` assembled: on rank 0, and the answer to all.

use super::{OWNER, Share, Whole, gather};
use crate::law::coulomb::natural_map;
use crate::scene::{BodyId, ManifoldKey};
use crate::solve::assembled::{self, Budget, ContactSystem, Method, ProblemError};
use crate::solve::{HubSolution, Options, Residual, Solution, Twist};
use decomposition::Comm;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What rank 0 has found, for all.
#[derive(Serialize, Deserialize)]
struct Answer {
    impulses: BTreeMap<ManifoldKey, Vec<[f64; 3]>>,
    velocities: BTreeMap<BodyId, Twist>,
    machines: Vec<Vec<f64>>,
    sweeps: usize,
    natural_map: f64,
    worst_velocity: f64,
    converged: bool,
}

/// Solves a step with `W` assembled, on rank 0. Collective; the same bits for any number of ranks.
pub(in crate::step) fn solve(share: &Share, method: Method, options: &Options, comm: &dyn Comm) -> Solution {
    let mut bytes = Vec::new();
    if let Some(whole) = gather(share, None, comm) {
        let answer = whole.solve(method, options);
        bytes = postcard::to_stdvec(&answer).expect("plain numbers");
    }
    comm.broadcast(OWNER, &mut bytes);
    let answer: Answer = postcard::from_bytes(&bytes).expect("what rank 0 has just written");
    let problem = &share.assembled.problem;
    let mut velocities = problem.free_velocity.clone();
    for (velocity, id) in velocities.iter_mut().zip(share.ids) {
        if let Some(solved) = answer.velocities.get(id) {
            *velocity = *solved;
        }
    }
    let of = |key: &ManifoldKey| answer.impulses.get(key).into_iter().flatten().copied();
    Solution {
        velocities,
        impulses: problem.manifolds.iter().flat_map(|manifold| of(&manifold.key)).collect(),
        hub: HubSolution {
            impulses: share.hub.manifolds.iter().flat_map(|manifold| of(&manifold.key)).collect(),
            velocities: if comm.rank() == OWNER { answer.machines } else { Vec::new() },
        },
        sweeps: answer.sweeps,
        residual: Residual { natural_map: answer.natural_map, worst_velocity: answer.worst_velocity },
        converged: answer.converged,
    }
}

impl Whole {
    fn solve(&self, method: Method, options: &Options) -> Answer {
        let start: Vec<[f64; 3]> = self.points().map(|(_, point)| point.impulse).collect();
        let budget = Budget { tolerance: options.tolerance, sweeps: options.maximum_sweeps };
        let (solved, outcome) = match self.system() {
            Ok(system) => {
                let outcome = assembled::solve(&system, method, budget, Some(&start));
                (outcome.impulses.clone(), Some((system, outcome)))
            }
            // A mass matrix that cannot be inverted: nothing moves, and the step says that it did not converge.
            Err(_) => (start, None),
        };
        let mut impulses: BTreeMap<ManifoldKey, Vec<[f64; 3]>> =
            self.parcels.iter().map(|parcel| (parcel.key, vec![[0.0; 3]; parcel.points.len()])).collect();
        for (&(parcel, place), impulse) in self.contacts.iter().zip(&solved) {
            if let Some(list) = impulses.get_mut(&self.parcels[parcel as usize].key) {
                list[place as usize] = *impulse;
            }
        }
        let (velocities, machines) = self.velocities(&solved);
        let mut answer = Answer {
            impulses,
            velocities,
            machines,
            sweeps: 0,
            natural_map: f64::INFINITY,
            worst_velocity: f64::INFINITY,
            converged: false,
        };
        if let Some((system, outcome)) = outcome {
            answer.sweeps = outcome.sweeps + outcome.newton_steps;
            answer.natural_map = outcome.error;
            answer.converged = outcome.converged;
            answer.worst_velocity = worst_velocity(&system, &outcome);
        }
        answer
    }

    fn system(&self) -> Result<ContactSystem, ProblemError> {
        let system = self.problem().assemble()?;
        Ok(ContactSystem { noise: Some(self.noise()), ..system })
    }
}

/// Largest violation of the law at a contact, as in [`Residual`].
fn worst_velocity(system: &ContactSystem, outcome: &assembled::Outcome) -> f64 {
    let mut worst = 0.0;
    for (contact, velocity) in outcome.velocities.iter().enumerate() {
        let weight = system.delassus.diagonal(contact)[(0, 0)];
        let impulse = outcome.impulses[contact].into();
        let error = natural_map(impulse, *velocity, system.friction[contact], 1.0 / weight).norm() * weight;
        if error > worst || error.is_nan() {
            worst = error;
        }
    }
    worst
}
