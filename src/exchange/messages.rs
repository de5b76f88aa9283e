//! Typed messages over the bytes of [`Comm`].

use decomposition::Comm;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Numbers sent for a velocity: linear and angular.
pub const TWIST: usize = 6;

/// Sends lists to ranks that do not expect them. Collective; what arrived, by ascending source.
pub fn deliver<T: Serialize + for<'a> Deserialize<'a>>(
    outgoing: BTreeMap<usize, Vec<T>>,
    comm: &dyn Comm,
) -> Vec<(usize, Vec<T>)> {
    let packed = outgoing.into_iter().map(|(rank, items)| (rank, pack(&items))).collect();
    comm.scatter(packed).into_iter().map(|(rank, bytes)| (rank, unpack(&bytes))).collect()
}

/// The value that `root` has, on every rank. Collective; the others' own value is not used.
pub fn broadcast<T: Serialize + for<'a> Deserialize<'a>>(own: T, root: usize, comm: &dyn Comm) -> T {
    if comm.size() == 1 {
        return own;
    }
    let mut bytes = if comm.rank() == root { pack(&own) } else { Vec::new() };
    comm.broadcast(root, &mut bytes);
    unpack(&bytes)
}

pub fn pack<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("plain data can be packed")
}

pub fn unpack<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> T {
    postcard::from_bytes(bytes).expect("what a rank packed, a rank unpacks")
}
