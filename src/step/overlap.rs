//! How large overlaps are beside the bodies that overlap: a tenth of a millimetre is much for sand and
//! nothing for a boulder.

use super::contacts::ContactProblem;
use crate::scene::{Body, BodyId, Scene};
use decomposition::Comm;

/// Below this share of the smallest body it is not worth asking which bodies they are.
const SMALL: f64 = 1e-2;

/// The worst of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overlap {
    /// Of the size of the smaller body ([`Body::size`]); overlaps below a hundredth of the smallest body of
    /// the scene count by that one's.
    pub share: f64,
    /// Where it is more.
    pub bodies: Option<[BodyId; 2]>,
}

/// The size of the smallest free body, m; infinite if there is none. Collective.
pub(super) fn smallest(scene: &Scene, comm: &dyn Comm) -> f64 {
    let sizes = scene.state.grains.iter().filter_map(Body::size);
    let mut least = [-sizes.fold(f64::INFINITY, f64::min)];
    comm.max_f64(&mut least);
    -least[0]
}

impl Overlap {
    /// Among the contacts of this rank, where `deepest` is the deepest. A maximum of what each contact says
    /// by itself, so that it does not depend on which rank has which.
    pub(super) fn of(contacts: &ContactProblem, deepest: f64, smallest: f64) -> Self {
        if deepest <= SMALL * smallest {
            return Self { share: deepest / smallest, bodies: None };
        }
        let worst = contacts.overlaps().filter_map(|(bodies, overlap)| {
            if overlap <= SMALL * smallest {
                return Some(Self { share: overlap / smallest, bodies: None });
            }
            let size = bodies.iter().filter_map(|body| body.size()).fold(f64::INFINITY, f64::min);
            size.is_finite().then(|| Self { share: overlap / size, bodies: Some(bodies.map(|body| body.id)) })
        });
        worst.reduce(|worst, other| if other.share > worst.share { other } else { worst }).unwrap_or_default()
    }

    /// The worst of all ranks, given the largest share. Collective.
    pub(super) fn among(self, largest: f64, comm: &dyn Comm) -> Self {
        if largest <= SMALL {
            return Self { share: largest, bodies: None };
        }
        let own = self.bodies.filter(|_| self.share == largest);
        let bytes = own.map_or(Vec::new(), |bodies| bodies.map(|BodyId(id)| id.to_le_bytes()).concat());
        let all = comm.all_gather(&bytes);
        let id = |bytes: &[u8]| bytes.try_into().map(|bytes| BodyId(u64::from_le_bytes(bytes))).ok();
        let bodies = all.iter().filter(|bytes| bytes.len() == 16);
        let bodies = bodies.filter_map(|bytes| Some([id(&bytes[..8])?, id(&bytes[8..])?])).min();
        Self { share: largest, bodies }
    }
}
