//! Ranks as MPI processes.
//!
//! MPI is initialised "funneled": only the thread that made the `World` calls it. Non-blocking messages go
//! through the C interface, since the safe wrapper ties every request to a scope and ours outlive the call
//! that posts them.

use crate::comm::{Comm, Exchange, Message};
use crate::sigterm::held_back;
use crate::wait::Wait;
use crate::watch::{self, blocking};
use mpi::collective::SystemOperation;
use mpi::environment::Universe;
use mpi::ffi;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use std::mem::MaybeUninit;
use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The handle that parallel HDF5 wants.
pub type RawComm = ffi::MPI_Comm;

/// A setting of Open MPI; other implementations pay no attention to it.
const YIELD_WHEN_IDLE: &str = "OMPI_MCA_mpi_yield_when_idle";

const TAG_EXCHANGE: c_int = 1;
/// Two tags by turns: a rank that still polls for one scatter must not take a message of the next. Nobody
/// gets two ahead, since a scatter ends only when all have entered its barrier.
const TAGS_SCATTER: [c_int; 2] = [2, 3];
const TAG_SWAP: c_int = 4;

pub struct World {
    comm: SimpleCommunicator,
    scatters: AtomicUsize,
    _universe: Universe,
}

// SAFETY: `World` holds handles only; by the contract of this module only the thread that made it calls its
// methods, other threads at most carry a reference.
unsafe impl Sync for World {}

/// MPI counts with a C int; one message beyond it would be cut silently.
fn count(length: usize) -> c_int {
    c_int::try_from(length).expect("one message holds less than 2^31 entries: use more ranks")
}

impl World {
    /// Starts MPI. A program started without `mpirun` is a world of one rank. `None` if MPI runs already or
    /// offers no threads.
    ///
    /// To be called before the program starts threads that use the environment.
    pub fn initialize() -> Option<World> {
        // Collectives wait inside Open MPI, by default without ever yielding: two ranks on a busy machine are
        // then 3 to 10 times slower.
        if std::env::var_os(YIELD_WHEN_IDLE).is_none() {
            // SAFETY: no other thread uses the environment, by the contract of this function.
            unsafe { std::env::set_var(YIELD_WHEN_IDLE, "1") };
        }
        let (universe, threading) = held_back(|| mpi::initialize_with_threading(mpi::Threading::Funneled))?;
        if threading < mpi::Threading::Funneled {
            return None;
        }
        let comm = universe.world();
        watch::adopt_thread(comm.rank() as usize);
        Some(World { comm, scatters: AtomicUsize::new(0), _universe: universe })
    }

    fn handle(&self) -> ffi::MPI_Comm {
        self.comm.as_raw()
    }
}

impl Comm for World {
    fn rank(&self) -> usize {
        self.comm.rank() as usize
    }

    fn size(&self) -> usize {
        self.comm.size() as usize
    }

    fn barrier(&self) {
        blocking(&"a barrier", || self.comm.barrier());
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) {
        let root = self.comm.process_at_rank(root as i32);
        let mut length = bytes.len() as u64;
        blocking(&"a broadcast", || root.broadcast_into(&mut length));
        bytes.resize(length as usize, 0);
        // MPI counts with a C int: long messages go in pieces.
        for piece in bytes.chunks_mut(1 << 30) {
            blocking(&"a broadcast", || root.broadcast_into(piece));
        }
    }

    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lengths = vec![0i32; self.size()];
        let length = count(bytes.len());
        blocking(&"a gathering", || self.comm.all_gather_into(&length, &mut lengths[..]));
        let displacements: Vec<i32> = lengths
            .iter()
            .scan(0, |sum, &length| {
                let start = *sum;
                *sum += length;
                Some(start)
            })
            .collect();
        // The address of an empty slice of bytes is 1, which is what Open MPI calls MPI_IN_PLACE: a real
        // address is needed even for nothing.
        let mut sent = Vec::with_capacity(bytes.len().max(1));
        sent.extend_from_slice(bytes);
        let total = lengths.iter().map(|&length| length as usize).sum();
        let mut all = Vec::with_capacity(std::cmp::max(total, 1));
        all.resize(total, 0u8);
        let mut target = mpi::datatype::PartitionMut::new(&mut all[..], &lengths[..], &displacements[..]);
        blocking(&"a gathering", || self.comm.all_gather_varcount_into(&sent[..], &mut target));
        let cut = |(&start, &length): (&i32, &i32)| all[start as usize..(start + length) as usize].to_vec();
        displacements.iter().zip(&lengths).map(cut).collect()
    }

    fn max_f64(&self, values: &mut [f64]) {
        let sent: Vec<f64> = values.iter().map(|&v| if v.is_nan() { f64::INFINITY } else { v }).collect();
        blocking(&"a maximum", || self.comm.all_reduce_into(&sent[..], values, SystemOperation::max()));
    }

    fn sum_i64(&self, values: &mut [i64]) {
        let sent = values.to_vec();
        blocking(&"a sum", || self.comm.all_reduce_into(&sent[..], values, SystemOperation::sum()));
    }

    fn scatter(&self, outgoing: Vec<(usize, Vec<u8>)>) -> Vec<(usize, Vec<u8>)> {
        let turn = self.scatters.fetch_add(1, Ordering::Relaxed);
        scatter_by_consensus(self.handle(), TAGS_SCATTER[turn % 2], &outgoing)
    }

    fn swap(&self, outgoing: Vec<(usize, Vec<u8>)>) -> Vec<(usize, Vec<u8>)> {
        let mut sends: Vec<ffi::MPI_Request> = Vec::with_capacity(outgoing.len());
        for (rank, bytes) in &outgoing {
            let mut request = MaybeUninit::uninit();
            // SAFETY: `outgoing` lives until the end of this function, after all sends completed.
            unsafe {
                ffi::MPI_Isend(
                    bytes.as_ptr().cast::<c_void>(),
                    count(bytes.len()),
                    ffi::RSMPI_UINT8_T,
                    *rank as c_int,
                    TAG_SWAP,
                    self.handle(),
                    request.as_mut_ptr(),
                );
                sends.push(request.assume_init());
            }
        }
        let mut partners: Vec<usize> = outgoing.iter().map(|(rank, _)| *rank).collect();
        partners.sort_unstable();
        let mut arrived = Vec::with_capacity(partners.len());
        for rank in partners {
            let mut wait = Wait::default();
            let message = loop {
                if let Some(message) = receive_if_any(self.handle(), rank as c_int, TAG_SWAP) {
                    break message;
                }
                if wait.pause() {
                    watch::judge(wait.waited(), || format!("a message of rank {rank}"));
                }
            };
            arrived.push(message);
        }
        complete(&mut sends, |late| taken_by(outgoing.iter().map(|(rank, _)| *rank), late));
        arrived
    }

    fn begin(&self, exchange: &mut Exchange) {
        assert!(!exchange.under_way, "an exchange begins once");
        exchange.under_way = true;
        let mut requests = std::mem::take(&mut exchange.requests);
        requests.clear();
        let (outgoing, incoming) = exchange.buffers();
        let post = |message: &mut Message, receive: bool, requests: &mut Vec<ffi::MPI_Request>| {
            let mut request = MaybeUninit::uninit();
            let (data, length) = (message.data.as_mut_ptr().cast::<c_void>(), count(message.data.len()));
            let (rank, request_place) = (message.rank as c_int, request.as_mut_ptr());
            // SAFETY: the buffer lives in `exchange`, which cannot be resized, read or dropped until
            // `finish`.
            unsafe {
                if receive {
                    ffi::MPI_Irecv(
                        data,
                        length,
                        ffi::RSMPI_DOUBLE,
                        rank,
                        TAG_EXCHANGE,
                        self.handle(),
                        request_place,
                    );
                } else {
                    ffi::MPI_Isend(
                        data,
                        length,
                        ffi::RSMPI_DOUBLE,
                        rank,
                        TAG_EXCHANGE,
                        self.handle(),
                        request_place,
                    );
                }
                requests.push(request.assume_init());
            }
        };
        incoming.iter_mut().for_each(|message| post(message, true, &mut requests));
        outgoing.iter_mut().for_each(|message| post(message, false, &mut requests));
        exchange.requests = requests;
    }

    fn has_arrived(&self, exchange: &mut Exchange) -> bool {
        if !exchange.under_way {
            return true;
        }
        // Completed requests become null requests, for which `finish` does not wait.
        exchange.under_way = !are_complete(&mut exchange.requests);
        !exchange.under_way
    }

    fn finish(&self, exchange: &mut Exchange) {
        if exchange.under_way {
            let mut requests = std::mem::take(&mut exchange.requests);
            let (outgoing, incoming) = exchange.buffers();
            // In the order in which they were posted.
            complete(&mut requests, |late| {
                let (not_here, not_there) = late.split_at(incoming.len());
                let list = |messages: &[Message], late: &[bool]| {
                    ranks_of(messages.iter().map(|message| message.rank), late)
                };
                match list(incoming, not_here) {
                    Some(ranks) => format!("velocities of {ranks}"),
                    None => taken_by(outgoing.iter().map(|message| message.rank), not_there),
                }
            });
            exchange.requests = requests;
            exchange.under_way = false;
        }
    }

    fn abort(&self, code: i32) -> ! {
        self.comm.abort(code)
    }

    fn asked_to_stop(&self) -> usize {
        watch::signal()
    }

    fn raw(&self) -> Option<RawComm> {
        Some(self.handle())
    }
}

/// Waits until all of these messages have been sent or received. `whom` says, from which of them are late,
/// whom the rank waits for.
fn complete(requests: &mut [ffi::MPI_Request], whom: impl Fn(&[bool]) -> String) {
    let mut wait = Wait::default();
    while !are_complete(requests) {
        if wait.pause() {
            watch::judge(wait.waited(), || whom(&late(requests)));
        }
    }
}

/// Which of these messages have not been sent or received.
fn late(requests: &[ffi::MPI_Request]) -> Vec<bool> {
    let is_late = |request: &ffi::MPI_Request| {
        let mut done: c_int = 0;
        // SAFETY: posted by this rank, or null; the request stays as it is.
        unsafe { ffi::MPI_Request_get_status(*request, &mut done, ffi::RSMPI_STATUS_IGNORE) };
        done == 0
    };
    requests.iter().map(is_late).collect()
}

/// The ranks of late messages, at most some of them; none if there are none.
fn ranks_of(ranks: impl Iterator<Item = usize>, late: &[bool]) -> Option<String> {
    const SHOWN: usize = 8;
    let all: Vec<String> =
        ranks.zip(late).filter(|(_, late)| **late).map(|(rank, _)| rank.to_string()).collect();
    let more = all.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let word = if all.len() == 1 { "rank" } else { "ranks" };
    (!all.is_empty()).then(|| format!("{word} {}{more}", all[..all.len().min(SHOWN)].join(", ")))
}

/// Who has not taken what was sent.
fn taken_by(ranks: impl Iterator<Item = usize>, late: &[bool]) -> String {
    let ranks = ranks_of(ranks, late).unwrap_or_else(|| "other ranks".into());
    format!("{ranks} to take a message")
}

/// Whether all of these messages have been sent or received. Completed requests become null requests, which
/// count as complete.
fn are_complete(requests: &mut [ffi::MPI_Request]) -> bool {
    let mut done: c_int = 0;
    // SAFETY: the requests have been posted by this rank or are null.
    unsafe {
        let length = count(requests.len());
        ffi::MPI_Testall(length, requests.as_mut_ptr(), &mut done, ffi::RSMPI_STATUSES_IGNORE);
    }
    done != 0
}

/// Sparse exchange without an all-to-all: synchronous sends, and a non-blocking barrier that each rank enters
/// when its own messages have been taken; when the barrier completes, all messages of all ranks have been
/// taken.
fn scatter_by_consensus(
    comm: ffi::MPI_Comm,
    tag: c_int,
    outgoing: &[(usize, Vec<u8>)],
) -> Vec<(usize, Vec<u8>)> {
    let mut sends: Vec<ffi::MPI_Request> = Vec::with_capacity(outgoing.len());
    for (rank, bytes) in outgoing {
        let mut request = MaybeUninit::uninit();
        // SAFETY: `outgoing` is borrowed until this function returns, after all sends completed.
        unsafe {
            ffi::MPI_Issend(
                bytes.as_ptr().cast::<c_void>(),
                count(bytes.len()),
                ffi::RSMPI_UINT8_T,
                *rank as c_int,
                tag,
                comm,
                request.as_mut_ptr(),
            );
            sends.push(request.assume_init());
        }
    }
    let mut arrived = Vec::new();
    let mut barrier: Option<ffi::MPI_Request> = None;
    // SAFETY: a constant of the MPI library.
    let any = unsafe { ffi::RSMPI_ANY_SOURCE };
    let mut wait = Wait::default();
    loop {
        while let Some(message) = receive_if_any(comm, any, tag) {
            arrived.push(message);
        }
        let is_over = match &mut barrier {
            None if are_complete(&mut sends) => {
                let mut request = MaybeUninit::uninit();
                // SAFETY: the barrier is waited for below; the call fills `request`.
                barrier = Some(unsafe {
                    ffi::MPI_Ibarrier(comm, request.as_mut_ptr());
                    request.assume_init()
                });
                false
            }
            None => false,
            Some(request) => are_complete(std::slice::from_mut(request)),
        };
        if is_over {
            break;
        }
        if wait.pause() {
            watch::judge(wait.waited(), || match barrier {
                None => taken_by(outgoing.iter().map(|(rank, _)| *rank), &late(&sends)),
                Some(_) => "all ranks to take the messages of an exchange".into(),
            });
        }
    }
    arrived.sort_by_key(|(rank, _)| *rank);
    arrived
}

fn receive_if_any(comm: ffi::MPI_Comm, source: c_int, tag: c_int) -> Option<(usize, Vec<u8>)> {
    let mut there: c_int = 0;
    let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
    // SAFETY: the probe fills `status` when `there` is set.
    let status = unsafe {
        ffi::MPI_Iprobe(source, tag, comm, &mut there, status.as_mut_ptr());
        if there == 0 {
            return None;
        }
        status.assume_init()
    };
    Some(receive_probed(comm, &status))
}

/// Takes the message of bytes that a probe has found.
fn receive_probed(comm: ffi::MPI_Comm, status: &ffi::MPI_Status) -> (usize, Vec<u8>) {
    let mut length: c_int = 0;
    // SAFETY: the status is that of a probe, and the buffer has the probed length.
    unsafe {
        ffi::MPI_Get_count(status, ffi::RSMPI_UINT8_T, &mut length);
        let mut bytes = vec![0u8; length as usize];
        ffi::MPI_Recv(
            bytes.as_mut_ptr().cast::<c_void>(),
            length,
            ffi::RSMPI_UINT8_T,
            status.MPI_SOURCE,
            status.MPI_TAG,
            comm,
            ffi::RSMPI_STATUS_IGNORE,
        );
        (status.MPI_SOURCE as usize, bytes)
    }
}
