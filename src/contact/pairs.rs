//! Pairs of bodies that may touch, and what they remember from step to step, so that they are compared
//! sooner. Scratch: no result depends on it.

use super::carry::Anchored;
use super::narrow::Hint;
use super::odometer::Proof;
use super::patches::Patches;
use crate::scene::BodyId;

/// Pairs whose patches stand in one list, which is written anew when one of their bodies has moved.
pub const CHUNK: usize = 64;

/// What the next comparison of two bodies can use.
#[derive(Default)]
pub struct Known {
    /// That they were apart, if so.
    pub apart: Option<Proof>,
    pub hint: Hint,
}

/// Whose patch it is.
#[derive(Clone, Copy)]
pub struct Label {
    /// Place of the pair.
    pub pair: u32,
    /// Factor of its law on the reach, see [`super::detect::Detector::detect`].
    pub factor: f64,
}

/// What pairs of stones gave where they were queried.
pub type Kept = Patches<Label, Anchored>;

#[derive(Default)]
pub struct Pairs {
    /// Of all bodies, ascending.
    pub ids: Vec<BodyId>,
    /// Two places among the ids, ascending.
    pub places: Vec<(u32, u32)>,
    /// By pair; none for those not worth remembering.
    pub known: Vec<Option<Box<Known>>>,
    /// By pair: whether `kept` has what it gave where its bodies were queried in the last call. Of others
    /// than two stones only where that is nothing, their boxes being apart.
    pub reusable: Vec<bool>,
    /// By chunks of pairs.
    pub kept: Vec<Kept>,
}

impl Pairs {
    /// Other bodies, or other pairs of them, which `find` writes into a list: what is known of pairs that
    /// stay is kept. `old` is room to work in.
    pub fn renew(
        &mut self,
        ids: impl Iterator<Item = BodyId>,
        find: impl FnOnce(&mut Vec<(u32, u32)>),
        old: &mut Pairs,
    ) {
        std::mem::swap(self, old);
        self.clear();
        self.ids.extend(ids);
        find(&mut self.places);
        self.kept.resize_with(self.places.len().div_ceil(CHUNK), Patches::default);
        let of = |ids: &[BodyId], (i, j): (u32, u32)| (ids[i as usize], ids[j as usize]);
        let mut patches = old.kept.iter().flat_map(Patches::iter).peekable();
        let mut next = 0;
        for (place, &places) in self.places.iter().enumerate() {
            let pair = of(&self.ids, places);
            while next < old.places.len() && of(&old.ids, old.places[next]) < pair {
                next += 1;
            }
            let stays = old.places.get(next).is_some_and(|&places| of(&old.ids, places) == pair);
            let reusable = stays && old.reusable[next];
            // Only then: reading the next patch costs time.
            if reusable {
                while patches.next_if(|patch| (patch.label.pair as usize) < next).is_some() {}
                if let Some(patch) = patches.next_if(|patch| patch.label.pair as usize == next) {
                    let label = Label { pair: place as u32, ..patch.label };
                    self.kept[place / CHUNK].push(label, patch.normal, patch.points.iter().copied());
                }
            }
            self.known.push(if stays { old.known[next].take() } else { None });
            self.reusable.push(reusable);
        }
    }

    fn clear(&mut self) {
        let Self { ids, places, known, reusable, kept } = self;
        ids.clear();
        places.clear();
        known.clear();
        reusable.clear();
        kept.iter_mut().for_each(Patches::clear);
    }
}
