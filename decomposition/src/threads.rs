//! Ranks as threads of one process: the parallel code under test without MPI.

use crate::comm::{Comm, Exchange};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};

/// One rank of a group made by [`run`].
pub struct ThreadComm {
    rank: usize,
    shared: Arc<Shared>,
}

struct Shared {
    size: usize,
    barrier: Turnstile,
    /// One slot a rank, for collectives: written, barrier, read by all, barrier.
    slots: Vec<Mutex<Vec<u8>>>,
    /// `mail[to][from]`, first in first out.
    mail: Vec<Vec<Mailbox<f64>>>,
    /// The same for [`Comm::swap`].
    parcels: Vec<Vec<Mailbox<u8>>>,
}

struct Mailbox<T> {
    queue: Mutex<VecDeque<Vec<T>>>,
    arrived: Condvar,
}

impl<T> Mailbox<T> {
    /// One for each pair of ranks.
    fn all(size: usize) -> Vec<Vec<Self>> {
        let new = || Self { queue: Mutex::default(), arrived: Condvar::new() };
        (0..size).map(|_| (0..size).map(|_| new()).collect()).collect()
    }

    fn put(&self, data: Vec<T>) {
        self.queue.lock().unwrap().push_back(data);
        self.arrived.notify_one();
    }

    fn take(&self, turnstile: &Turnstile) -> Vec<T> {
        let mut queue = self.queue.lock().unwrap();
        loop {
            if let Some(data) = queue.pop_front() {
                return data;
            }
            assert!(!turnstile.state.lock().unwrap().broken, "another rank panicked");
            queue = self.arrived.wait(queue).unwrap();
        }
    }
}

/// A barrier that opens for all, with a panic, when one rank panicked: a failing test ends instead of
/// hanging.
#[derive(Default)]
struct Turnstile {
    state: Mutex<TurnstileState>,
    changed: Condvar,
}

#[derive(Default)]
struct TurnstileState {
    waiting: usize,
    round: usize,
    broken: bool,
}

impl Turnstile {
    fn wait(&self, size: usize) {
        let mut state = self.state.lock().unwrap();
        let round = state.round;
        state.waiting += 1;
        if state.waiting == size {
            state.waiting = 0;
            state.round += 1;
            self.changed.notify_all();
        }
        while state.round == round && !state.broken {
            state = self.changed.wait(state).unwrap();
        }
        assert!(!state.broken, "another rank panicked");
    }

    fn break_open(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.broken = true;
        }
        self.changed.notify_all();
    }
}

impl Drop for ThreadComm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.barrier.break_open();
            for mailbox in self.shared.mail.iter().flatten() {
                mailbox.arrived.notify_all();
            }
            for mailbox in self.shared.parcels.iter().flatten() {
                mailbox.arrived.notify_all();
            }
        }
    }
}

/// Runs `work` on `size` ranks, each on its own thread; returns the results by rank.
pub fn run<R: Send>(size: usize, work: impl Fn(&ThreadComm) -> R + Sync) -> Vec<R> {
    let shared = Arc::new(Shared {
        size,
        barrier: Turnstile::default(),
        slots: (0..size).map(|_| Mutex::default()).collect(),
        mail: Mailbox::all(size),
        parcels: Mailbox::all(size),
    });
    std::thread::scope(|scope| {
        let start = |rank| {
            let comm = ThreadComm { rank, shared: shared.clone() };
            let work = &work;
            scope.spawn(move || work(&comm))
        };
        let threads: Vec<_> = (0..size).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank panicked")).collect()
    })
}

impl ThreadComm {
    /// Everybody's bytes, reduced by `read`, which sees the slots while nobody changes them.
    fn collect<R>(&self, bytes: Vec<u8>, read: impl FnOnce(&[Mutex<Vec<u8>>]) -> R) -> R {
        *self.shared.slots[self.rank].lock().unwrap() = bytes;
        self.barrier();
        let result = read(&self.shared.slots);
        self.barrier();
        result
    }

    fn reduce<T: Copy, const N: usize>(
        &self,
        values: &mut [T],
        encode: fn(T) -> [u8; N],
        decode: fn([u8; N]) -> T,
        combine: fn(T, T) -> T,
    ) {
        let bytes = values.iter().flat_map(|&value| encode(value)).collect();
        let all = self.collect(bytes, |slots| {
            slots.iter().map(|slot| slot.lock().unwrap().clone()).collect::<Vec<_>>()
        });
        for (index, value) in values.iter_mut().enumerate() {
            let entries =
                all.iter().map(|bytes| decode(bytes[index * N..][..N].try_into().expect("N bytes a value")));
            *value = entries.reduce(combine).expect("at least one rank");
        }
    }
}

impl Comm for ThreadComm {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.size
    }

    fn barrier(&self) {
        self.shared.barrier.wait(self.shared.size);
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) {
        *bytes = self.collect(std::mem::take(bytes), |slots| slots[root].lock().unwrap().clone());
    }

    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.collect(bytes.to_vec(), |slots| slots.iter().map(|slot| slot.lock().unwrap().clone()).collect())
    }

    fn max_f64(&self, values: &mut [f64]) {
        let finite = |value: f64| if value.is_nan() { f64::INFINITY } else { value };
        for value in values.iter_mut() {
            *value = finite(*value);
        }
        self.reduce(values, f64::to_le_bytes, f64::from_le_bytes, f64::max);
    }

    fn sum_i64(&self, values: &mut [i64]) {
        self.reduce(values, i64::to_le_bytes, i64::from_le_bytes, i64::wrapping_add);
    }

    fn scatter(&self, outgoing: Vec<(usize, Vec<u8>)>) -> Vec<(usize, Vec<u8>)> {
        let mut packed = Vec::new();
        for (rank, bytes) in &outgoing {
            packed.extend((*rank as u64).to_le_bytes());
            packed.extend((bytes.len() as u64).to_le_bytes());
            packed.extend(bytes);
        }
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
        self.collect(packed, |slots| {
            let mut arrived = Vec::new();
            for (source, slot) in slots.iter().enumerate() {
                let packed = slot.lock().unwrap();
                let mut rest = &packed[..];
                while !rest.is_empty() {
                    let (to, length) = (number(rest), number(&rest[8..]));
                    if to == self.rank {
                        arrived.push((source, rest[16..16 + length].to_vec()));
                    }
                    rest = &rest[16 + length..];
                }
            }
            arrived
        })
    }

    fn swap(&self, outgoing: Vec<(usize, Vec<u8>)>) -> Vec<(usize, Vec<u8>)> {
        let mut partners: Vec<usize> = outgoing.iter().map(|(rank, _)| *rank).collect();
        partners.sort_unstable();
        for (rank, bytes) in outgoing {
            self.shared.parcels[rank][self.rank].put(bytes);
        }
        let take = |rank: usize| self.shared.parcels[self.rank][rank].take(&self.shared.barrier);
        partners.into_iter().map(|rank| (rank, take(rank))).collect()
    }

    fn begin(&self, exchange: &mut Exchange) {
        exchange.under_way = true;
        for message in exchange.buffers().0 {
            self.shared.mail[message.rank][self.rank].put(message.data.clone());
        }
    }

    fn has_arrived(&self, exchange: &mut Exchange) -> bool {
        let there = |rank: usize| !self.shared.mail[self.rank][rank].queue.lock().unwrap().is_empty();
        !exchange.under_way || exchange.buffers().1.iter().all(|message| there(message.rank))
    }

    fn finish(&self, exchange: &mut Exchange) {
        if !exchange.under_way {
            return;
        }
        for message in exchange.buffers().1 {
            let data = self.shared.mail[self.rank][message.rank].take(&self.shared.barrier);
            assert_eq!(data.len(), message.data.len(), "both sides of an exchange agree on its length");
            message.data.copy_from_slice(&data);
        }
        exchange.under_way = false;
    }

    fn abort(&self, code: i32) -> ! {
        panic!("rank {} aborts with code {code}", self.rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::Message;

    #[test]
    fn collectives_agree_on_every_rank() {
        for size in [1, 2, 5] {
            let results = run(size, |comm| {
                let mut sums = [comm.rank() as i64, 1];
                comm.sum_i64(&mut sums);
                let mut largest = [-(comm.rank() as f64), if comm.rank() == 0 { f64::NAN } else { 0.0 }];
                comm.max_f64(&mut largest);
                let mut word = if comm.rank() == size - 1 { b"stone".to_vec() } else { Vec::new() };
                comm.broadcast(size - 1, &mut word);
                (sums, largest, word, comm.all_gather(&[comm.rank() as u8; 2]))
            });
            for (sums, largest, word, gathered) in results {
                assert_eq!(sums, [(0..size as i64).sum(), size as i64]);
                assert_eq!(largest, [0.0, f64::INFINITY]);
                assert_eq!(word, b"stone");
                assert_eq!(gathered, (0..size).map(|rank| vec![rank as u8; 2]).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn messages_reach_their_ranks() {
        let received = run(4, |comm| {
            let next = (comm.rank() + 1) % 4;
            comm.scatter(vec![(next, vec![comm.rank() as u8; 3]), (comm.rank(), vec![9])])
        });
        for (rank, mut messages) in received.into_iter().enumerate() {
            messages.sort();
            let mut expected = vec![((rank + 3) % 4, vec![((rank + 3) % 4) as u8; 3]), (rank, vec![9])];
            expected.sort();
            assert_eq!(messages, expected);
        }
    }

    #[test]
    fn partners_swap_and_others_need_not_be_there() {
        // A chain 0 - 1 - 2 whose ends swap different numbers of times; rank 3 has no partner.
        run(4, |comm| {
            let partners: &[usize] = [&[1][..], &[0, 2], &[1], &[]][comm.rank()];
            for round in 0..5u8 {
                let active = partners.iter().filter(|&&other| other + comm.rank() == 3 || round < 2);
                let outgoing: Vec<_> =
                    active.map(|&other| (other, vec![comm.rank() as u8; round as usize])).collect();
                let expected: Vec<_> =
                    outgoing.iter().map(|(other, _)| (*other, vec![*other as u8; round as usize])).collect();
                assert_eq!(comm.swap(outgoing), expected);
            }
        });
    }

    #[test]
    fn an_exchange_is_reusable_and_ordered() {
        run(3, |comm| {
            let (left, right) = ((comm.rank() + 2) % 3, (comm.rank() + 1) % 3);
            let mut exchange = Exchange::new(
                vec![Message { rank: right, data: vec![0.0; 2] }],
                vec![Message { rank: left, data: vec![0.0; 2] }],
            );
            for round in 0..10 {
                for (_, data) in exchange.outgoing_mut() {
                    data.copy_from_slice(&[comm.rank() as f64, round as f64]);
                }
                comm.begin(&mut exchange);
                comm.finish(&mut exchange);
                assert_eq!(exchange.incoming()[0].data, [left as f64, round as f64]);
            }
        });
    }
}
