//! Colours of all ranks' manifolds, and what ranks send each other after each colour.
//!
//! A *participant* of a shared body is a rank that has manifolds on it, or owns it. Two manifolds of one
//! colour never share a body, so exactly one rank changes a body in a colour. All participants know who
//! visits it in which colour: the new velocity goes to the next visitor alone, if that is another rank, and
//! after the last visit of a sweep to all participants. All copies are equal then.

mod hubs;
mod plan;
mod shared;
mod together;

pub(super) use plan::{ColourExchange, Plan};
pub(super) use shared::SharedBody;

use super::halo::{Halo, PresentOn};
use super::ranks::Ranks;
use crate::scene::{BodyId, ManifoldKey};
use crate::solve::Colours;
use crate::solve::colour::{Link, colour};
use decomposition::Comm;
use shared::SharedBodies;

/// What colours depend on, as one rank sees it.
#[derive(Default, PartialEq)]
struct ColourInputs {
    links: Vec<Link>,
    /// Of the movable bodies by slot, own ones first, then the ghosts.
    ids: Vec<BodyId>,
    own: usize,
    others: Vec<PresentOn>,
    owners: Vec<u32>,
}

/// The colours of a step and who sends what to whom. The next step takes them over if it sees the same on all
/// ranks: piles come to rest.
#[derive(Default)]
pub struct Connection {
    inputs: ColourInputs,
    colours: Colours,
    hubs: Vec<BodyId>,
    plan: Plan,
}

/// How the contacts of a step are solved across ranks.
pub struct Connected<'c> {
    /// Of the contacts that have no hub, in their order.
    pub colours: &'c Colours,
    /// Bodies, besides machines, whose contacts are solved in the hub phase: ascending, the same on every
    /// rank.
    pub hubs: &'c [BodyId],
    pub ranks: Ranks<'c>,
}

impl Connection {
    /// Colours this rank's contacts together with all other ranks, and plans the exchanges, if it does not
    /// hold that already. Bodies with very many contacts become hubs. Collective.
    ///
    /// `links` are the contacts that take part, those of machines left out, ascending by key; `ids` those of
    /// the movable bodies by slot, `own` of this rank first, then the ghosts.
    pub fn connect<'c>(
        &'c mut self,
        links: Vec<Link>,
        ids: &[BodyId],
        own: usize,
        halo: &Halo,
        verify: bool,
        comm: &'c dyn Comm,
    ) -> Connected<'c> {
        let (others, owners) = (halo.others.clone(), halo.owners.clone());
        let inputs = ColourInputs { links, ids: ids.to_vec(), own, others, owners };
        let mut changed = [f64::from(inputs != self.inputs)];
        comm.max_f64(&mut changed);
        if changed[0] > 0.0 {
            *self = Self::new(inputs, halo, comm);
        }
        let Self { colours, hubs, plan, .. } = self;
        Connected { ranks: Ranks::new(plan, !hubs.is_empty(), verify, own, halo, comm), colours, hubs }
    }

    /// Collective.
    fn new(inputs: ColourInputs, halo: &Halo, comm: &dyn Comm) -> Self {
        let ColourInputs { links, ids, own, .. } = &inputs;
        let alone = comm.size() == 1;
        let mut shared =
            if alone { SharedBodies::default() } else { shared::announce(links, ids, *own, halo, comm) };
        let hubs = hubs::choose_hubs(links, ids, *own, &shared, comm);
        let coloured: &[Link] = if hubs.is_empty() {
            links
        } else {
            &links.iter().filter(|link| !is_of(&link.key, &hubs)).copied().collect::<Vec<_>>()
        };
        if !hubs.is_empty() {
            shared = shared::leave_out(&hubs, coloured, *own, halo, shared);
        }
        if alone {
            let colours = colour(coloured, ids.len());
            return Self { colours, hubs, plan: Plan::default(), inputs };
        }
        let colours = together::colour_together(coloured, ids, *own, &mut shared, comm);
        let exchanges = plan::plan(comm.rank() as u32, coloured, &colours, &shared);
        Self { colours, hubs, plan: Plan { exchanges, shared }, inputs }
    }

    #[cfg(test)]
    pub(crate) fn colours_mut(&mut self) -> &mut Colours {
        &mut self.colours
    }

    #[cfg(test)]
    pub(crate) fn links(&self) -> &[Link] {
        &self.inputs.links
    }
}

/// Whether one of these bodies takes part.
pub fn is_of(key: &ManifoldKey, bodies: &[BodyId]) -> bool {
    key.bodies.iter().any(|id| bodies.contains(id))
}
