//! Work done on bodies and machines since the start of a run, and what the energy was then: with the energy
//! of the moment this is a balance.
//!
//! ```text
//! energy now = energy at the start + work of motions + work of forces + work of corrections + rest
//! ```
//!
//! The rest is what contacts have taken up, and what the time integrator has lost or made. Each rank keeps
//! its share; sums are exact, so that neither the number of ranks nor a restart changes a bit.

use crate::geometry::Vec3;
use decomposition::{Comm, ExactSum};

/// What does work on a scene from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Prescribed joints, kinematic bodies, and gravity that changes in time.
    Motions,
    /// Force elements of machines, without what their springs store.
    Forces,
    /// Corrections of overlap: what they lift of grains and machines, and do to the springs of machines.
    Corrections,
}

impl Source {
    const COUNT: usize = 3;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Energy when the account was opened, J.
    pub start: Option<f64>,
    /// This rank's share, by [`Source`].
    sums: [ExactSum; Source::COUNT],
}

impl Account {
    /// From here on, with the energy of the moment, J.
    pub fn open(energy: f64) -> Self {
        Self { start: Some(energy), ..Self::default() }
    }

    /// J.
    pub fn add(&mut self, source: Source, work: f64) {
        self.sums[source as usize].add(work);
    }

    /// Of a weight that is moved.
    pub fn lift(&mut self, mass: f64, gravity: &Vec3, displacement: &Vec3) {
        self.add(Source::Corrections, -mass * gravity.dot(displacement));
    }

    /// Of a weight that gets heavier, or lighter, where it is.
    pub fn reweigh(&mut self, mass: f64, change: &Vec3, position: &Vec3) {
        self.add(Source::Motions, -mass * change.dot(position));
    }

    pub(super) fn sums(&self) -> &[ExactSum] {
        &self.sums
    }

    /// For a checkpoint: the same bytes on every rank. Collective.
    pub fn encode(&self, comm: &dyn Comm) -> Vec<u8> {
        let mut sums = self.sums.clone();
        ExactSum::reduce(&mut sums, comm);
        let words = sums.iter_mut().flat_map(|sum| sum.words());
        let start = self.start.map_or(f64::NAN, |start| start).to_le_bytes();
        start.into_iter().chain(words.flat_map(|word| word.to_le_bytes())).collect()
    }

    /// What [`encode`](Self::encode) has written; the whole account is this rank's share.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let words: Vec<[u8; 8]> = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok()).collect();
        let (start, words) = words.split_first()?;
        let start = f64::from_le_bytes(*start);
        let words: Vec<i64> = words.iter().map(|word| i64::from_le_bytes(*word)).collect();
        let each = words.len() / Source::COUNT;
        let mut account = Self { start: (!start.is_nan()).then_some(start), ..Self::default() };
        for (sum, words) in account.sums.iter_mut().zip(words.chunks(each.max(1))) {
            *sum = ExactSum::from_words(words)?;
        }
        Some(account)
    }

    /// The start alone: the work stands on another rank.
    pub fn without_work(&self) -> Self {
        Self { start: self.start, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use decomposition::{Solo, threads};

    #[test]
    fn an_account_comes_back_whatever_the_ranks() {
        let all = [0.1, -3.7e9, 2.5e-12, 8.0];
        let mut whole = Account::open(1.5);
        all.iter().for_each(|work| whole.add(Source::Forces, *work));
        let bytes = whole.encode(&Solo);
        let shares = threads::run(2, |comm| {
            let mut share = Account::open(1.5);
            all.iter().skip(comm.rank()).step_by(2).for_each(|work| share.add(Source::Forces, *work));
            share.encode(comm)
        });
        assert!(shares.iter().all(|share| *share == bytes));
        let back = Account::decode(&bytes).expect("whole");
        assert_eq!(back.start, Some(1.5));
        assert_eq!(back.sums[1].value(), whole.sums[1].value());
        assert_eq!(Account::decode(&bytes[..40]), None);
    }
}
