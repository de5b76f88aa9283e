//! What pairs of stones remember from step to step, so that they are compared sooner. Scratch: no result depends on it.

use super::narrow::Hint;
use crate::scene::BodyId;

/// The hint of a pair, the lower id first. Boxed: pairs are put in order every step, and hints are large.
pub struct Remembered {
    pub pair: (BodyId, BodyId),
    pub hint: Box<Hint>,
}

/// Takes hints out of a stretch of what was remembered, for ascending pairs.
pub struct Recall<'a> {
    rest: std::slice::IterMut<'a, Remembered>,
}

impl<'a> Recall<'a> {
    pub fn new(remembered: &'a mut [Remembered]) -> Self {
        Self { rest: remembered.iter_mut() }
    }

    /// The hint of a pair, an empty one if it was not looked at. Pairs are asked for in ascending order.
    pub fn take(&mut self, pair: (BodyId, BodyId)) -> Box<Hint> {
        while let Some(next) = self.rest.as_slice().first() {
            if next.pair > pair {
                break;
            }
            let found = self.rest.next().filter(|found| found.pair == pair);
            if let Some(found) = found {
                return std::mem::take(&mut found.hint);
            }
        }
        Box::default()
    }
}
