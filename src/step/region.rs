//! How densely grains lie in a part of space: solid fraction and coordination number, the same bits on any
//! number of ranks.

use super::ContactView;
use crate::geometry::{Aabb, share::volume_within};
use crate::scene::{Body, BodyId, Scene};
use decomposition::{Comm, ExactSum};
use rayon::prelude::*;
use std::collections::BTreeSet;

/// What is measured in a box.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RegionMeasure {
    /// Volume of grains by volume of the box; parts of grains count.
    pub solid_fraction: f64,
    /// Bodies that press on a grain, on average over the grains whose centres of mass are in the box; 0 if
    /// there are none.
    pub coordination: f64,
    /// Grains whose centres of mass are in the box.
    pub grains: u64,
}

/// Collective. `contacts` are this rank's, of the last step.
pub fn measure(
    regions: &[Aabb],
    scene: &Scene,
    contacts: &[ContactView],
    comm: &dyn Comm,
) -> Vec<RegionMeasure> {
    if regions.is_empty() {
        return Vec::new();
    }
    let others: BTreeSet<BodyId> =
        scene.state.statics.iter().chain(&scene.state.machine_bodies).map(|body| body.id).collect();
    let pressing = contacts.iter().filter(|contact| contact.impulse.norm_squared() > 0.0);
    let mut pairs: Vec<_> = pressing.map(|contact| (contact.bodies, contact.centres)).collect();
    pairs.sort_by_key(|(bodies, _)| *bodies);
    pairs.dedup_by_key(|(bodies, _)| *bodies);
    let mut volumes = vec![ExactSum::default(); regions.len()];
    let mut counts = vec![0i64; 2 * regions.len()];
    for (place, region) in regions.iter().enumerate() {
        let within = |body: &Body| volume_within(&body.shape, &body.pose, region);
        let shares: Vec<f64> = scene.state.grains.par_iter().with_min_len(64).map(within).collect();
        shares.into_iter().filter(|&share| share > 0.0).for_each(|share| volumes[place].add(share));
        let centres = scene.state.grains.iter().map(|body| &body.pose.position);
        counts[2 * place] = centres.filter(|centre| region.contains(centre)).count() as i64;
        let ends = pairs.iter().flat_map(|(bodies, centres)| bodies.iter().zip(centres));
        let inside = ends.filter(|(id, centre)| region.contains(centre) && !others.contains(id));
        counts[2 * place + 1] = inside.count() as i64;
    }
    ExactSum::reduce(&mut volumes, comm);
    comm.sum_i64(&mut counts);
    let measured = |(place, region): (usize, &Aabb)| {
        let (grains, ends) = (counts[2 * place], counts[2 * place + 1]);
        RegionMeasure {
            solid_fraction: volumes[place].value() / (region.max - region.min).product(),
            coordination: ends as f64 / grains.max(1) as f64,
            grains: grains as u64,
        }
    };
    regions.iter().enumerate().map(measured).collect()
}
