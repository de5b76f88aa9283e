//! Energy that nobody has put in: a step that would leave too much of it is not taken.

use super::StepError;
use super::machines::Machines;
use super::observe::kinetic_energy;
use super::world::World;
use crate::exchange::OWNER;
use crate::machine::Machine;
use crate::multibody::BodyIndex;
use crate::scene::BodyId;
use decomposition::{Comm, ExactSum};
use serde::{Deserialize, Serialize};

/// How much more energy there may be than was put in.
#[derive(Clone, Copy, Debug)]
pub struct EnergyLimit {
    /// J.
    pub margin: f64,
    /// Of the work done so far, besides.
    pub share: f64,
}

/// Energy that nobody has put in: the same on every rank. Numbers are text, since an error is compared and
/// sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excess {
    /// J.
    pub excess: String,
    pub allowed: String,
    /// Where it would be.
    pub parts: String,
    /// The free body that would be the fastest, and its speed.
    pub fastest: Option<(BodyId, String)>,
    /// The same of bodies of machines, in words.
    pub fastest_of_machines: Option<String>,
}

impl EnergyLimit {
    /// An error if there is more. Collective: one reduction.
    ///
    /// What springs of contacts store is left out: it is known where contacts were found, and a body that
    /// comes upon a spring that is stiffer than the step resolves seems to store many times what it had. An
    /// explosion shows as soon as they give it back.
    pub(super) fn check(&self, world: &World, comm: &dyn Comm) -> Result<(), StepError> {
        let World { scene, physics, machines, account } = world;
        let Some(start) = account.start else { return Ok(()) };
        let gravity = (physics.gravity)(physics.time(scene.state.step));
        let mut energy = ExactSum::default();
        for body in &scene.state.grains {
            energy.add(kinetic_energy(body) - body.mass * gravity.dot(&body.pose.position));
        }
        machines.energies(comm).into_iter().flatten().for_each(|part| energy.add(part));
        let mut sums = vec![energy];
        sums.extend(account.sums().iter().cloned());
        ExactSum::reduce(&mut sums, comm);
        let [energy, work @ ..] = &sums[..] else { return Ok(()) };
        let work: Vec<f64> = work.iter().map(ExactSum::value).collect();
        let excess = energy.value() - start - work.iter().sum::<f64>();
        let allowed = self.margin + self.share * work.iter().map(|work| work.abs()).sum::<f64>();
        // Not a number is too much.
        if excess <= allowed { Ok(()) } else { Err(error(world, [excess, allowed], comm)) }
    }
}

/// Collective.
fn error(world: &World, [excess, allowed]: [f64; 2], comm: &dyn Comm) -> StepError {
    let World { scene, machines, .. } = world;
    let mut sums: [ExactSum; 3] = Default::default();
    scene.state.grains.iter().for_each(|body| sums[0].add(kinetic_energy(body)));
    for [moving, _, stored] in machines.energies(comm) {
        sums[1].add(moving);
        sums[2].add(stored);
    }
    ExactSum::reduce(&mut sums, comm);
    let [grains, moving, stored] = sums.map(|sum| sum.value());
    StepError::TooMuchEnergy(Box::new(Excess {
        excess: format!("{excess:.3e}"),
        allowed: format!("{allowed:.3e}"),
        parts: format!(
            "grains {grains:.3e} J of motion, machines {moving:.3e} J of motion and {stored:.3e} J in springs"
        ),
        fastest: fastest(world, comm),
        fastest_of_machines: fastest_of_machines(machines, comm),
    }))
}

/// The free body that is the fastest; of several that with the lowest id. Collective.
fn fastest(world: &World, comm: &dyn Comm) -> Option<(BodyId, String)> {
    let speeds = || world.scene.state.grains.iter().map(|body| (body.id, body.velocity.norm()));
    let mut most = [speeds().map(|(_, speed)| speed).fold(f64::NEG_INFINITY, f64::max)];
    comm.max_f64(&mut most);
    let own = speeds().find(|(_, speed)| *speed >= most[0]);
    let mut lowest = [own.map_or(f64::NEG_INFINITY, |(id, _)| -(id.0 as f64))];
    comm.max_f64(&mut lowest);
    (lowest[0].is_finite()).then(|| (BodyId(-lowest[0] as u64), format!("{:.3e} m/s", most[0])))
}

/// As the owner of the machines knows it. Collective.
fn fastest_of_machines(machines: &Machines, comm: &dyn Comm) -> Option<String> {
    let bodies = machines.all().iter().flat_map(|Machine { multibody, .. }| {
        (0..multibody.model().body_count()).map(BodyIndex).map(move |body| {
            let twist = multibody.body_twist(body, &multibody.pose(body).position);
            (multibody.model(), body, [twist.linear.norm(), twist.angular.norm()])
        })
    });
    let found = bodies
        .max_by(|one, other| one.2[0].total_cmp(&other.2[0]).then_with(|| one.2[1].total_cmp(&other.2[1])));
    let text = found.map(|(model, body, [speed, turning])| {
        let (body, machine) = (model.body_name(body), model.name());
        format!("{body:?} of machine {machine:?} at {speed:.3e} m/s and {turning:.3e} rad/s")
    });
    let mut bytes = text.unwrap_or_default().into_bytes();
    comm.broadcast(OWNER, &mut bytes);
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}
