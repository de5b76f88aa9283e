//! A fingerprint of the physical state that does not depend on how a run was arranged.
//!
//! Every body and every impulse is hashed by itself (xxh3, 128 bits, over the bits of its numbers) and the
//! hashes are added, wrapping: the order of rows and their distribution over ranks drop out. Sections that
//! other rooms add to the state count the same way. Time and step close the digest.
//!
//! Beside it goes a sum over what bodies are rather than do (shape, mass, group, material, kind of motion):
//! it detects a damaged file, and is no part of the digest, which compares states of one case.

use super::ranks::gather;
use super::state::ImpulseRow;
use crate::scene::{Anchor, Body};
use decomposition::Comm;
use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

/// Sums so far: of bodies, of impulses and of the sections that other rooms add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    bodies: u128,
    impulses: u128,
    sections: u128,
    /// What bodies are.
    properties: u128,
}

// Different seeds, so that a body can never stand for an impulse.
const BODY_SEED: u64 = 1;
const IMPULSE_SEED: u64 = 2;
const SECTION_SEED: u64 = 3;
const PROPERTIES_SEED: u64 = 4;
const MEMORY_SEED: u64 = 5;

/// The sums as numbers that can be sent to another rank.
pub type DigestParts = [u64; 8];

impl Digest {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn add_body(&mut self, body: &Body) {
        let numbers = [
            body.pose.position.as_slice(),
            body.pose.rotation.coords.as_slice(),
            body.velocity.as_slice(),
            body.angular_velocity.as_slice(),
            body.angular_momentum.as_slice(),
        ];
        let mut bytes = [0u8; 8 * 25];
        let words = std::iter::once(body.id.0).chain(numbers.concat().into_iter().map(f64::to_bits));
        fill(&mut bytes, words);
        let mut used = 8 * 17;
        if let Some(Anchor { pose, reach }) = &body.anchor {
            let numbers = [pose.position.as_slice(), pose.rotation.coords.as_slice(), &[*reach]];
            fill(&mut bytes[used..], numbers.concat().into_iter().map(f64::to_bits));
            used = bytes.len();
        }
        self.bodies = self.bodies.wrapping_add(xxh3_128_with_seed(&bytes[..used], BODY_SEED));
        if !body.memory.is_empty() {
            let words = std::iter::once(body.id.0).chain(body.memory.iter().map(|number| number.to_bits()));
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            self.bodies = self.bodies.wrapping_add(xxh3_128_with_seed(&bytes, MEMORY_SEED));
        }
        let properties =
            (body.id, body.group, body.material, body.motion, body.mass, body.inertia, &body.shape);
        // Writing to memory cannot fail.
        let bytes = postcard::to_stdvec(&properties).unwrap_or_default();
        self.properties = self.properties.wrapping_add(xxh3_128_with_seed(&bytes, PROPERTIES_SEED));
    }

    pub fn add_impulse(&mut self, row: &ImpulseRow) {
        let key = [
            row.ids[0],
            row.ids[1],
            u64::from(row.parts[0]),
            u64::from(row.parts[1]),
            u64::from(row.feature),
        ];
        let mut bytes = [0u8; 8 * 8];
        fill(&mut bytes, key.into_iter().chain(row.impulse.iter().map(|value| value.to_bits())));
        self.impulses = self.impulses.wrapping_add(xxh3_128_with_seed(&bytes, IMPULSE_SEED));
    }

    /// A part of the state that only its maker can read.
    pub fn add_section(&mut self, name: &str, content: &[u8]) {
        let mut bytes = (name.len() as u64).to_le_bytes().to_vec();
        bytes.extend(name.as_bytes());
        bytes.extend(content);
        self.sections = self.sections.wrapping_add(xxh3_128_with_seed(&bytes, SECTION_SEED));
    }

    /// Bodies, impulses, sections, properties.
    pub fn parts(&self) -> DigestParts {
        let sums = [self.bodies, self.impulses, self.sections, self.properties];
        std::array::from_fn(|k| (sums[k / 2] >> (64 * (k % 2))) as u64)
    }

    /// Adds the sums of another rank.
    pub fn merge(&mut self, parts: DigestParts) {
        let whole = |k: usize| u128::from(parts[2 * k]) | u128::from(parts[2 * k + 1]) << 64;
        let sums = [&mut self.bodies, &mut self.impulses, &mut self.sections, &mut self.properties];
        for (k, sum) in sums.into_iter().enumerate() {
            *sum = sum.wrapping_add(whole(k));
        }
    }

    /// Collective: the sums of all ranks.
    pub fn over_ranks(&self, comm: &dyn Comm) -> Digest {
        let mut all = Digest::new();
        gather(comm, self.parts()).into_iter().for_each(|parts| all.merge(parts));
        all
    }

    /// 32 hexadecimal digits.
    pub fn finish(&self, time: f64, step: u64) -> String {
        let parts = self.parts();
        // Without sections the digest is what it was before there were any.
        let sections = if self.sections == 0 { &[] } else { &parts[4..6] };
        let words = parts[..4].iter().copied().chain([time.to_bits(), step]).chain(sections.iter().copied());
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        format!("{:032x}", xxh3_128(&bytes))
    }

    /// The sum over what bodies are, 32 hexadecimal digits.
    pub(super) fn properties(&self) -> String {
        format!("{:032x}", self.properties)
    }
}

fn fill(bytes: &mut [u8], words: impl Iterator<Item = u64>) {
    for (eight, word) in bytes.chunks_exact_mut(8).zip(words) {
        eight.copy_from_slice(&word.to_le_bytes());
    }
}
