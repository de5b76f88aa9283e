//! A communicator that keeps account: messages, bytes, and the time spent waiting for other ranks.

use crate::comm::{Comm, Exchange};
use crate::world::RawComm;
use std::ops::{AddAssign, Sub};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What a rank has sent, and how long it waited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Point-to-point messages sent, and one for each collective call.
    pub messages: u64,
    /// Of the messages sent.
    pub bytes: u64,
    /// In calls that end only when other ranks have got there too, s.
    pub waiting: f64,
}

impl Sub for Traffic {
    type Output = Traffic;

    fn sub(self, before: Traffic) -> Traffic {
        Traffic {
            messages: self.messages - before.messages,
            bytes: self.bytes - before.bytes,
            waiting: self.waiting - before.waiting,
        }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, more: Traffic) {
        self.messages += more.messages;
        self.bytes += more.bytes;
        self.waiting += more.waiting;
    }
}

/// Passes everything on to another communicator and counts.
pub struct Metered<'a> {
    inner: &'a dyn Comm,
    messages: AtomicU64,
    bytes: AtomicU64,
    nanoseconds: AtomicU64,
}

impl<'a> Metered<'a> {
    pub fn new(inner: &'a dyn Comm) -> Self {
        let zero = || AtomicU64::new(0);
        Self { inner, messages: zero(), bytes: zero(), nanoseconds: zero() }
    }

    fn sent(&self, messages: usize, bytes: usize) {
        self.messages.fetch_add(messages as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn waited<R>(&self, work: impl FnOnce() -> R) -> R {
        let begun = Instant::now();
        let result = work();
        self.nanoseconds.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        result
    }
}

impl Comm for Metered<'_> {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn barrier(&self) {
        self.sent(1, 0);
        self.waited(|| self.inner.barrier());
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) {
        self.sent(1, if root == self.rank() { bytes.len() } else { 0 });
        self.waited(|| self.inner.broadcast(root, bytes));
    }

    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.sent(1, bytes.len());
        self.waited(|| self.inner.all_gather(bytes))
    }

    fn max_f64(&self, values: &mut [f64]) {
        self.sent(1, size_of_val(values));
        self.waited(|| self.inner.max_f64(values));
    }

    fn sum_i64(&self, values: &mut [i64]) {
        self.sent(1, size_of_val(values));
        self.waited(|| self.inner.sum_i64(values));
    }

    fn scatter(&self, outgoing: Vec<(usize, Vec<u8>)>) -> Vec<(usize, Vec<u8>)> {
        let others = outgoing.iter().filter(|(rank, _)| *rank != self.rank());
        self.sent(1 + others.clone().count(), others.map(|(_, bytes)| bytes.len()).sum());
        self.waited(|| self.inner.scatter(outgoing))
    }

    fn swap(&self, outgoing: Vec<(usize, Vec<u8>)>) -> Vec<(usize, Vec<u8>)> {
        self.sent(outgoing.len(), outgoing.iter().map(|(_, bytes)| bytes.len()).sum());
        self.waited(|| self.inner.swap(outgoing))
    }

    fn begin(&self, exchange: &mut Exchange) {
        let messages = exchange.outgoing();
        self.sent(messages.len(), messages.iter().map(|message| size_of_val(&message.data[..])).sum());
        self.inner.begin(exchange);
    }

    fn has_arrived(&self, exchange: &mut Exchange) -> bool {
        self.inner.has_arrived(exchange)
    }

    fn finish(&self, exchange: &mut Exchange) {
        self.waited(|| self.inner.finish(exchange));
    }

    fn abort(&self, code: i32) -> ! {
        self.inner.abort(code)
    }

    fn asked_to_stop(&self) -> usize {
        self.inner.asked_to_stop()
    }

    fn raw(&self) -> Option<RawComm> {
        self.inner.raw()
    }

    fn traffic(&self) -> Traffic {
        Traffic {
            messages: self.messages.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            waiting: self.nanoseconds.load(Ordering::Relaxed) as f64 * 1e-9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::Message;
    use crate::threads;

    #[test]
    fn counts_what_is_sent() {
        let found = threads::run(2, |comm| {
            let metered = Metered::new(comm);
            let other = 1 - metered.rank();
            let message = |rank| Message { rank, data: vec![1.0; 6] };
            let mut exchange = Exchange::new(vec![message(other)], vec![message(other)]);
            metered.begin(&mut exchange);
            metered.finish(&mut exchange);
            assert_eq!(metered.scatter(vec![(metered.rank(), vec![1]), (other, vec![2; 9])]).len(), 2);
            metered.barrier();
            metered.traffic()
        });
        for Traffic { messages, bytes, waiting } in found {
            assert_eq!((messages, bytes), (4, 48 + 9));
            assert!(waiting > 0.0);
        }
    }
}
