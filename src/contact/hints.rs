//! What pairs of stones remember from step to step, so that they are compared sooner. Scratch: no result depends on it.

use super::narrow::{Hint, Patch};
use super::odometer::Proof;
use crate::scene::BodyId;

/// What is known of a pair, the lower id first.
pub struct Remembered {
    pub pair: (BodyId, BodyId),
    pub known: Known,
}

#[derive(Default)]
pub struct Known {
    /// That it was apart, if so.
    pub apart: Option<Proof>,
    pub hint: Hint,
    /// Whether what follows is that of the last time.
    pub looked: bool,
    /// Where the two are looked at.
    pub patch: Option<Box<Patch>>,
}

/// Takes what is known out of a stretch of what was remembered, for ascending pairs.
pub struct Recall<'a> {
    rest: std::slice::IterMut<'a, Remembered>,
}

impl<'a> Recall<'a> {
    pub fn new(remembered: &'a mut [Remembered]) -> Self {
        Self { rest: remembered.iter_mut() }
    }

    /// What is known of a pair: nothing if it was not looked at. Pairs are asked for in ascending order.
    pub fn take(&mut self, pair: (BodyId, BodyId)) -> Known {
        while let Some(next) = self.rest.as_slice().first() {
            if next.pair > pair {
                break;
            }
            let found = self.rest.next().filter(|found| found.pair == pair);
            if let Some(found) = found {
                return std::mem::take(&mut found.known);
            }
        }
        Known::default()
    }
}
