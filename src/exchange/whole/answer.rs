//! A step solved with `W` assembled: on rank 0, and the answer to all.

use super::{OWNER, Share, Whole, gather};
use crate::exchange::messages::broadcast;
use crate::law::coulomb::natural_map;
use crate::scene::{BodyId, ManifoldKey};
use crate::solve::assembled::{self, Budget, ContactSystem, Method, ProblemError};
use crate::solve::{HubSolution, Options, Residual, Solution, Twist};
use decomposition::Comm;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What rank 0 has found, for all.
#[derive(Default, Serialize, Deserialize)]
struct Answer {
    impulses: BTreeMap<ManifoldKey, Vec<[f64; 3]>>,
    velocities: BTreeMap<BodyId, Twist>,
    machines: Vec<Vec<f64>>,
    sweeps: usize,
    residual: Residual,
    converged: bool,
}

/// Solves a step with `W` assembled, on rank 0, from the impulses of another solution or, if there is none,
/// from those of the problem. Collective; the same bits for any number of ranks. The error is that of a
/// problem which cannot be assembled.
pub fn solve(
    share: &Share,
    from: Option<&Solution>,
    method: Method,
    options: &Options,
    comm: &dyn Comm,
) -> Result<Solution, String> {
    let own = match gather(share, from, comm) {
        Some(whole) => whole.solve(method, options).map_err(|problem| problem.to_string()),
        None => Ok(Answer::default()),
    };
    let answer = broadcast(own, OWNER, comm)?;
    let mut velocities = share.problem.free_velocity.clone();
    for (velocity, id) in velocities.iter_mut().zip(share.ids) {
        if let Some(solved) = answer.velocities.get(id) {
            *velocity = *solved;
        }
    }
    let of = |key: &ManifoldKey| answer.impulses.get(key).into_iter().flatten().copied();
    Ok(Solution {
        velocities,
        impulses: share.problem.manifolds.iter().flat_map(|manifold| of(&manifold.key)).collect(),
        hub: HubSolution {
            impulses: share.hubs.parcels().flat_map(|parcel| of(&parcel.key)).collect(),
            velocities: if comm.rank() == OWNER { answer.machines } else { Vec::new() },
        },
        sweeps: answer.sweeps,
        residual: answer.residual,
        converged: answer.converged,
    })
}

impl Whole {
    fn solve(&self, method: Method, options: &Options) -> Result<Answer, ProblemError> {
        let start: Vec<[f64; 3]> = match &self.solved[..] {
            [] => self.contacts().map(|row| row.impulse.into()).collect(),
            solved => self.rows.iter().zip(solved).filter(|(row, _)| row.acts).map(|(_, r)| *r).collect(),
        };
        let budget = Budget { tolerance: options.tolerance, sweeps: options.maximum_sweeps };
        let system = ContactSystem { noise: Some(self.noise()), ..self.problem().assemble()? };
        let outcome = assembled::solve(&system, method, budget, Some(&start));
        let mut impulses = BTreeMap::<ManifoldKey, Vec<[f64; 3]>>::new();
        let mut solved = outcome.impulses.iter();
        let mut rows = self.rows.iter();
        for manifold in &self.hub.manifolds {
            let of_row = |acts: bool| if acts { solved.next().copied() } else { None }.unwrap_or([0.0; 3]);
            let rows = rows.by_ref().take(manifold.points.len());
            impulses.insert(manifold.key, rows.map(|row| row.acts).map(of_row).collect());
        }
        let (bodies, machines) = self.velocities(&outcome.impulses);
        Ok(Answer {
            impulses,
            velocities: self.ids.iter().copied().zip(bodies).collect(),
            machines,
            sweeps: outcome.sweeps + outcome.newton_steps,
            residual: Residual {
                natural_map: outcome.error,
                worst_velocity: worst_velocity(&system, &outcome),
                worst_approach: outcome.velocities.iter().map(|velocity| -velocity.x).fold(0.0, f64::max),
            },
            converged: outcome.converged,
        })
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
