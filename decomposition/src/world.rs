//! Ranks as MPI processes.
//!
//! MPI is initialised "funneled": only the thread that made the `World` calls it. Non-blocking messages go through
//! the C interface, since the safe wrapper ties every request to a scope and ours outlive the call that posts them.

use crate::comm::{Comm, Exchange, Message};
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

const TAG_EXCHANGE: c_int = 1;
/// Two tags by turns: a rank that still polls for one scatter must not take a message of the next. Nobody gets two ahead, since a scatter
/// ends only when all have entered its barrier.
const TAGS_SCATTER: [c_int; 2] = [2, 3];
const TAG_SWAP: c_int = 4;

pub struct World {
    comm: SimpleCommunicator,
    scatters: AtomicUsize,
    _universe: Universe,
}

// SAFETY: `World` holds handles only; by the contract of this module only the thread that made it calls its methods,
// other threads at most carry a reference.
unsafe impl Sync for World {}

/// MPI counts with a C int; one message beyond it would be cut silently.
fn count(length: usize) -> c_int {
    c_int::try_from(length).expect("one message holds less than 2^31 entries: use more ranks")
}

impl World {
    /// Starts MPI. A program started without `mpirun` is a world of one rank. `None` if MPI runs already or offers no threads.
    pub fn initialize() -> Option<World> {
        let (universe, threading) = mpi::initialize_with_threading(mpi::Threading::Funneled)?;
        (threading >= mpi::Threading::Funneled).then(|| World {
            comm: universe.world(),
            scatters: AtomicUsize::new(0),
            _universe: universe,
        })
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
        self.comm.barrier();
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) {
        let root = self.comm.process_at_rank(root as i32);
        let mut length = bytes.len() as u64;
        root.broadcast_into(&mut length);
        bytes.resize(length as usize, 0);
        // MPI counts with a C int: long messages go in pieces.
        for piece in bytes.chunks_mut(1 << 30) {
            root.broadcast_into(piece);
        }
    }

    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lengths = vec![0i32; self.size()];
        self.comm.all_gather_into(&count(bytes.len()), &mut lengths[..]);
        let displacements: Vec<i32> = lengths
            .iter()
            .scan(0, |sum, &length| {
                let start = *sum;
                *sum += length;
                Some(start)
            })
            .collect();
        // The address of an empty slice of bytes is 1, which is what Open MPI calls MPI_IN_PLACE: a real address is needed
        // even for nothing.
        let mut sent = Vec::with_capacity(bytes.len().max(1));
        sent.extend_from_slice(bytes);
        let total = lengths.iter().map(|&length| length as usize).sum();
        let mut all = Vec::with_capacity(std::cmp::max(total, 1));
        all.resize(total, 0u8);
        let mut target = mpi::datatype::PartitionMut::new(&mut all[..], &lengths[..], &displacements[..]);
        self.comm.all_gather_varcount_into(&sent[..], &mut target);
        let cut = |(&start, &length): (&i32, &i32)| all[start as usize..(start + length) as usize].to_vec();
        displacements.iter().zip(&lengths).map(cut).collect()
    }

    fn max_f64(&self, values: &mut [f64]) {
        let sent: Vec<f64> = values.iter().map(|&v| if v.is_nan() { f64::INFINITY } else { v }).collect();
        self.comm.all_reduce_into(&sent[..], values, SystemOperation::max());
    }

    fn sum_i64(&self, values: &mut [i64]) {
        let sent = values.to_vec();
        self.comm.all_reduce_into(&sent[..], values, SystemOperation::sum());
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
        let receive = |rank: usize| {
            let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
            // SAFETY: the probe returns when a message is there, and fills `status`.
            let status = unsafe {
                ffi::MPI_Probe(rank as c_int, TAG_SWAP, self.handle(), status.as_mut_ptr());
                status.assume_init()
            };
            receive_probed(self.handle(), &status)
        };
        let arrived = partners.into_iter().map(receive).collect();
        // SAFETY: the requests are those posted above.
        unsafe { ffi::MPI_Waitall(count(sends.len()), sends.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE) };
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
            // SAFETY: the buffer lives in `exchange`, which cannot be resized, read or dropped until `finish`.
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
        let mut done: c_int = 0;
        // SAFETY: the requests are those of `begin`; completed ones become null requests, for which `finish` does not wait.
        unsafe {
            ffi::MPI_Testall(
                exchange.requests.len() as c_int,
                exchange.requests.as_mut_ptr(),
                &mut done,
                ffi::RSMPI_STATUSES_IGNORE,
            );
        }
        exchange.under_way = done == 0;
        done != 0
    }

    fn finish(&self, exchange: &mut Exchange) {
        if !exchange.under_way {
            return;
        }
        // SAFETY: the requests are those of `begin`, each completed exactly once here.
        unsafe {
            ffi::MPI_Waitall(
                exchange.requests.len() as c_int,
                exchange.requests.as_mut_ptr(),
                ffi::RSMPI_STATUSES_IGNORE,
            );
        }
        exchange.under_way = false;
    }

    fn abort(&self, code: i32) -> ! {
        self.comm.abort(code)
    }

    fn raw(&self) -> Option<RawComm> {
        Some(self.handle())
    }
}

/// Sparse exchange without an all-to-all: synchronous sends, and a non-blocking barrier that each rank enters when its
/// own messages have been taken; when the barrier completes, all messages of all ranks have been taken.
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
    loop {
        while let Some(message) = receive_if_any(comm, tag) {
            arrived.push(message);
        }
        let mut done: c_int = 0;
        match &mut barrier {
            // SAFETY: the requests are those posted above; a completed one becomes a null request.
            None => unsafe {
                let count = sends.len() as c_int;
                ffi::MPI_Testall(count, sends.as_mut_ptr(), &mut done, ffi::RSMPI_STATUSES_IGNORE);
                if done != 0 {
                    let mut request = MaybeUninit::uninit();
                    ffi::MPI_Ibarrier(comm, request.as_mut_ptr());
                    barrier = Some(request.assume_init());
                }
            },
            // SAFETY: the request is the barrier posted above.
            Some(request) => unsafe {
                ffi::MPI_Test(request, &mut done, ffi::RSMPI_STATUS_IGNORE);
                if done != 0 {
                    break;
                }
            },
        }
    }
    arrived.sort_by_key(|(rank, _)| *rank);
    arrived
}

fn receive_if_any(comm: ffi::MPI_Comm, tag: c_int) -> Option<(usize, Vec<u8>)> {
    let mut there: c_int = 0;
    let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
    // SAFETY: the probe fills `status` when `there` is set.
    let status = unsafe {
        ffi::MPI_Iprobe(ffi::RSMPI_ANY_SOURCE, tag, comm, &mut there, status.as_mut_ptr());
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
