//! What a solved contact problem leaves: impulses for the next step, contacts for output, numbers for the
//! report.

use super::assemble::{Assembled, HubContact, PointInfo, home};
use super::contacts::ContactProblem;
use super::overlap::Overlap;
use crate::exchange::halo;
use crate::geometry::Vec3;
use crate::multibody::BodyImpulse;
use crate::scene::{Body, BodyId, Impulses, ManifoldKey, StoredImpulse};
use crate::solve::{Inertia, Manifold, Solution, Twist};

/// A contact point of the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContactView {
    pub bodies: [BodyId; 2],
    /// Centres of mass of both where contacts were found.
    pub centres: [Vec3; 2],
    pub point: Vec3,
    pub normal: Vec3,
    /// World, on the second body, N s.
    pub impulse: Vec3,
    pub gap: f64,
    /// What its spring stores, J; zero for rigid.
    pub elastic_energy: f64,
}

/// What is left when the contact problem itself is gone.
pub struct Results {
    /// Of the contacts whose home this rank owns.
    pub impulses: Impulses,
    /// By machine: what contacts gave to its bodies; on the owner.
    pub touched: Vec<Vec<BodyImpulse>>,
    /// By slot.
    pub inertia: Vec<Inertia>,
    pub free_velocity: Vec<Twist>,
    /// Of this rank.
    pub counts: Counts,
}

/// Sizes of a contact problem.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub manifolds: usize,
    pub points: usize,
    pub colours: usize,
    /// Deepest overlap, m, ≥ 0.
    pub deepest: f64,
    pub overlap: Overlap,
}

impl ContactProblem<'_> {
    /// Sends impulses to where they are kept, and writes the contacts of this rank into `views`, in place of
    /// those of the last step. Collective.
    pub fn finish(self, solution: &Solution, views: &mut Vec<ContactView>, smallest: f64) -> Results {
        let deepest = self.assembled.largest(|point| -point.gap);
        let hub_impulses = self.hubs.impulses_back(&solution.hub.impulses, self.comm);
        let own = self.world.scene.state.grains.len();
        let owner_of = |home: BodyId| {
            let ghost = self.view.ids[own..].binary_search(&home).ok()?;
            Some(self.halo.owners[ghost] as usize)
        };
        let solved = self.stored_impulses(&solution.impulses, &hub_impulses);
        let impulses = halo::store_impulses(solved, owner_of, self.comm);
        self.write_views(views, &solution.impulses, &hub_impulses);
        let operators = self.world.machines.operators();
        let (problem, hub) = (&self.assembled.problem, &self.assembled.hub);
        Results {
            impulses,
            touched: self.hubs.body_impulses(&solution.hub.impulses, operators),
            counts: Counts {
                manifolds: problem.manifolds.len() + hub.len(),
                points: self.assembled.infos().count(),
                colours: self.colours.count,
                deepest,
                overlap: Overlap::of(&self, deepest, smallest),
            },
            inertia: self.assembled.problem.inertia,
            free_velocity: self.assembled.problem.free_velocity,
        }
    }

    /// The bodies of each contact of this rank and its deepest overlap, m, where there is one.
    pub(super) fn overlaps(&self) -> impl Iterator<Item = ([&Body; 2], f64)> {
        let problem = &self.assembled.problem;
        let deepest = |infos: &[PointInfo]| infos.iter().map(|info| -info.gap).fold(0.0, f64::max);
        let grains = problem.manifolds.iter().enumerate().map(move |(index, manifold)| {
            (self.bodies(manifold.slots), deepest(&self.assembled.points[problem.points_of(index)]))
        });
        let hubs = self.assembled.hub.iter().map(move |hub| (self.bodies(hub.slots), deepest(&hub.infos)));
        grains.chain(hubs).filter(|(_, overlap)| *overlap > 0.0)
    }

    fn bodies(&self, slots: [u32; 2]) -> [&Body; 2] {
        slots.map(|slot| self.view.candidates[slot as usize].body)
    }

    /// (home, key, points), in the order of the manifolds, and then of the contacts of hubs.
    fn stored_impulses<'a>(
        &'a self,
        solved: &'a [[f64; 3]],
        mut hub: &'a [[f64; 3]],
    ) -> impl Iterator<Item = (BodyId, ManifoldKey, impl Iterator<Item = StoredImpulse>)> {
        let Assembled { problem, points: infos, hub: contacts } = &self.assembled;
        let grains = problem.manifolds.iter().enumerate().map(move |(index, manifold)| {
            let places = problem.points_of(index);
            let points = stored_points(&manifold.frame, &infos[places.clone()], &solved[places]);
            (home(self.bodies(manifold.slots)), manifold.key, points)
        });
        let hubs = contacts.iter().map(move |HubContact { slots, parcel, infos }| {
            let (own, others) = hub.split_at(infos.len());
            hub = others;
            (home(self.bodies(*slots)), parcel.key, stored_points(&parcel.frame, infos, own))
        });
        grains.chain(hubs)
    }

    fn write_views(&self, views: &mut Vec<ContactView>, solved: &[[f64; 3]], hub: &[[f64; 3]]) {
        let problem = &self.assembled.problem;
        views.clear();
        views.reserve(problem.points.len() + hub.len());
        let point =
            |key: &ManifoldKey, slots, frame: &[Vec3; 3], info: &PointInfo, impulse: &[f64; 3]| ContactView {
                bodies: key.bodies,
                centres: self.bodies(slots).map(|body| body.pose.position),
                point: info.position,
                normal: frame[0],
                impulse: world(frame, impulse),
                gap: info.gap,
                elastic_energy: info.elastic_energy(),
            };
        for (index, Manifold { key, slots, frame, .. }) in problem.manifolds.iter().enumerate() {
            let at = |place: usize| point(key, *slots, frame, &self.assembled.points[place], &solved[place]);
            views.extend(problem.points_of(index).map(at));
        }
        for ((view, stretch), impulse) in views.iter_mut().zip(&problem.stretches).zip(solved) {
            view.elastic_energy += stretch.energy(impulse);
        }
        let mut next = hub.iter();
        for HubContact { slots, parcel, infos } in &self.assembled.hub {
            let points = infos.iter().zip(&parcel.points).zip(next.by_ref());
            views.extend(points.map(|((info, sent), impulse)| {
                let mut view = point(&parcel.key, *slots, &parcel.frame, info, impulse);
                view.elastic_energy += sent.stretch.energy(impulse);
                view
            }));
        }
    }
}

fn stored_points<'a>(
    frame: &'a [Vec3; 3],
    infos: &'a [PointInfo],
    impulses: &'a [[f64; 3]],
) -> impl Iterator<Item = StoredImpulse> + 'a {
    let stored = |(info, impulse): (&PointInfo, _)| StoredImpulse {
        feature: info.feature,
        impulse: world(frame, impulse),
    };
    infos.iter().zip(impulses).map(stored)
}

/// An impulse in the frame of a contact, world axes.
fn world(frame: &[Vec3; 3], impulse: &[f64; 3]) -> Vec3 {
    (0..3).map(|axis| frame[axis] * impulse[axis]).sum()
}
