//! The seam between one rank and the others.
//!
//! Every method but `rank`, `size`, `swap`, `has_arrived`, `abort`, `asked_to_stop`, `raw` and `traffic` is
//! collective: all ranks call it, in the same order. Nothing here sums floating-point numbers: such a sum
//! would depend on the number of ranks (see [`crate::ExactSum`] for sums that do not).

use crate::metered::Traffic;
use crate::world::RawComm;

/// A numbered group of processes that work on one run.
pub trait Comm: Sync {
    fn rank(&self) -> usize;

    fn size(&self) -> usize;

    fn barrier(&self);

    /// Afterwards every rank holds the bytes that `root` had.
    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>);

    /// What every rank gave, by rank. For a few bytes a rank: the answer is O(ranks).
    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>>;

    /// Entry by entry, the largest over all ranks. A NaN counts as +infinity.
    fn max_f64(&self, values: &mut [f64]);

    /// Entry by entry, the sum over all ranks (wrapping).
    fn sum_i64(&self, values: &mut [i64]);

    /// Sends bytes to any ranks, not knowing who sends here; returns what arrived, by ascending source rank.
    /// A rank may send to itself. At most one message for each destination.
    fn scatter(&self, outgoing: Vec<(usize, Vec<u8>)>) -> Vec<(usize, Vec<u8>)>;

    /// Sends one message, maybe empty, to each partner and returns theirs, by ascending rank. Only partners
    /// take part: if this rank names another one, that one names this one too, and calls as often. No partner
    /// twice, and not this rank itself.
    fn swap(&self, outgoing: Vec<(usize, Vec<u8>)>) -> Vec<(usize, Vec<u8>)>;

    /// Starts an exchange whose partners and sizes both sides know; returns at once.
    fn begin(&self, exchange: &mut Exchange);

    /// Whether all that `exchange` receives is there, so that `finish` will not wait for it; returns at once.
    /// Not collective.
    fn has_arrived(&self, exchange: &mut Exchange) -> bool;

    /// Waits until `exchange` has sent and received everything.
    fn finish(&self, exchange: &mut Exchange);

    /// Ends all ranks at once.
    fn abort(&self, code: i32) -> !;

    /// The number of the signal by which this rank was asked to stop; 0 if it was not. Not collective: ranks
    /// agree on it where they reduce anyway.
    fn asked_to_stop(&self) -> usize {
        0
    }

    /// The MPI communicator, for parallel HDF5; `None` without MPI.
    fn raw(&self) -> Option<RawComm> {
        None
    }

    /// What has passed through so far on this rank; nothing unless somebody counts, see [`crate::Metered`].
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}

/// Numbers for or from one rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    pub rank: usize,
    pub data: Vec<f64>,
}

/// A set of messages between ranks that know each other, reused sweep after sweep without allocation.
///
/// Precondition of [`Comm::begin`]: for every outgoing message there is one incoming message of the same
/// length on its rank, and of several exchanges under way at once all ranks begin them in one order.
#[derive(Debug, Default)]
pub struct Exchange {
    outgoing: Vec<Message>,
    incoming: Vec<Message>,
    pub(crate) requests: Vec<mpi::ffi::MPI_Request>,
    pub(crate) under_way: bool,
}

// SAFETY: MPI requests are handles that only the rank's own thread passes to MPI (see `World`).
unsafe impl Send for Exchange {}

impl Exchange {
    pub fn new(outgoing: Vec<Message>, incoming: Vec<Message>) -> Self {
        Self { outgoing, incoming, requests: Vec::new(), under_way: false }
    }

    pub fn is_empty(&self) -> bool {
        self.outgoing.is_empty() && self.incoming.is_empty()
    }

    pub fn outgoing(&self) -> &[Message] {
        &self.outgoing
    }

    pub fn incoming(&self) -> &[Message] {
        assert!(!self.under_way, "an exchange is read only after it finished");
        &self.incoming
    }

    /// The numbers to send. Lengths are part of the agreement with the other ranks and stay as they are.
    pub fn outgoing_mut(&mut self) -> impl Iterator<Item = (usize, &mut [f64])> {
        assert!(!self.under_way, "an exchange is filled before it begins");
        self.outgoing.iter_mut().map(|message| (message.rank, message.data.as_mut_slice()))
    }

    pub(crate) fn buffers(&mut self) -> (&mut [Message], &mut [Message]) {
        (&mut self.outgoing, &mut self.incoming)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // Freeing the buffers would let MPI write into memory that is no longer ours.
        if self.under_way && !std::thread::panicking() {
            panic!("an exchange was dropped while under way");
        }
    }
}

/// One rank, no MPI.
#[derive(Clone, Copy, Debug, Default)]
pub struct Solo;

impl Comm for Solo {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn barrier(&self) {}

    fn broadcast(&self, _root: usize, _bytes: &mut Vec<u8>) {}

    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        vec![bytes.to_vec()]
    }

    fn max_f64(&self, values: &mut [f64]) {
        for value in values.iter_mut().filter(|value| value.is_nan()) {
            *value = f64::INFINITY;
        }
    }

    fn sum_i64(&self, _values: &mut [i64]) {}

    fn scatter(&self, outgoing: Vec<(usize, Vec<u8>)>) -> Vec<(usize, Vec<u8>)> {
        outgoing
    }

    fn swap(&self, outgoing: Vec<(usize, Vec<u8>)>) -> Vec<(usize, Vec<u8>)> {
        assert!(outgoing.is_empty(), "one rank has no partners");
        outgoing
    }

    fn begin(&self, exchange: &mut Exchange) {
        assert!(exchange.is_empty(), "one rank has nobody to exchange with");
    }

    fn has_arrived(&self, _exchange: &mut Exchange) -> bool {
        true
    }

    fn finish(&self, _exchange: &mut Exchange) {}

    fn abort(&self, code: i32) -> ! {
        std::process::exit(code)
    }
}
