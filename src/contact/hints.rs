//! What kept two stones apart in the last step, for a quick proof that it still does. Scratch: no result depends on it.

use super::narrow::Hint;
use crate::scene::BodyId;

/// The hint of a pair of slots, the lower slot first.
pub struct Remembered {
    pub pair: (u32, u32),
    pub hint: Hint,
}

#[derive(Default)]
pub struct Hints {
    /// Ids by slot when the pairs were remembered.
    ids: Vec<BodyId>,
    /// Ascending by pair.
    pairs: Vec<Remembered>,
    /// Ids of the step under way.
    next_ids: Vec<BodyId>,
}

/// Looks hints up for the slots of the present step.
pub struct Recall<'a> {
    pairs: &'a [Remembered],
    /// The slot of the last step by the present one, `u32::MAX` if the body was not there; none if no slot moved.
    old_slots: Option<Vec<u32>>,
}

impl Hints {
    /// To be called once a step, before [`Hints::remember`].
    pub fn recall(&mut self, ids: impl Iterator<Item = BodyId>) -> Recall<'_> {
        self.next_ids.clear();
        self.next_ids.extend(ids);
        let old_slots = (self.next_ids != self.ids && !self.pairs.is_empty()).then(|| {
            let mut by_id: Vec<(BodyId, u32)> = self.ids.iter().copied().zip(0..).collect();
            by_id.sort_unstable();
            let find = |id: &BodyId| {
                by_id.binary_search_by_key(id, |entry| entry.0).map_or(u32::MAX, |place| by_id[place].1)
            };
            self.next_ids.iter().map(find).collect()
        });
        Recall { pairs: &self.pairs, old_slots }
    }

    /// `pairs` by the slots of the present step.
    pub fn remember(&mut self, mut pairs: Vec<Remembered>) {
        std::mem::swap(&mut self.ids, &mut self.next_ids);
        pairs.sort_unstable_by_key(|remembered| remembered.pair);
        self.pairs = pairs;
    }
}

impl Recall<'_> {
    /// The hint of two slots; none if they were not looked at or touched.
    pub fn find(&self, i: u32, j: u32) -> Hint {
        let old = |slot: u32| self.old_slots.as_ref().map_or(slot, |slots| slots[slot as usize]);
        let (i, j) = (old(i), old(j));
        let pair = (i.min(j), i.max(j));
        match self.pairs.binary_search_by_key(&pair, |remembered| remembered.pair) {
            Ok(place) => self.pairs[place].hint,
            Err(_) => Hint::default(),
        }
    }
}
