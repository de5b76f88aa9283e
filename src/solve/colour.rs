//! The order of the sweep: a colour for every manifold, so that two of one colour never share a movable body.
//!
//! Greedy in the order of a hash of the manifold's key: each takes the lowest colour free at both bodies when
//! its turn comes. Its colour depends only on the manifolds before it in that order *at its own two bodies*,
//! so a manifold may be coloured as soon as it heads the list of uncoloured manifolds of both
//! (Jones–Plassmann). Any arrangement of this work over ranks gives the colours of the serial greedy
//! algorithm, and so does any order of the input.
//!
//! A movable body with very many manifolds would need a colour for each of them: such bodies are hubs and not
//! coloured.

use crate::scene::ManifoldKey;

/// Counted from 0; small.
pub type Colour = u32;

/// A manifold's place in the global order: ascending.
pub type Priority = (u64, ManifoldKey);

pub fn priority(key: &ManifoldKey) -> Priority {
    (hash(key), *key)
}

fn hash(key: &ManifoldKey) -> u64 {
    let [one, other] = key.parts.map(u64::from);
    // The lower sixteen bits of both below the upper ones. The order of contacts depends on this number.
    let half = |shift: u32| (one >> shift & 0xffff) << 16 | (other >> shift & 0xffff);
    let parts = half(16) << 32 | half(0);
    mix(mix(mix(key.bodies[0].0) ^ key.bodies[1].0) ^ parts)
}

/// The finaliser of splitmix64.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One manifold as the colouring sees it: its key and its movable bodies' slots (`None` for a body that does
/// not move).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    pub key: ManifoldKey,
    pub slots: [Option<u32>; 2],
}

/// The result: one colour a link, and how many colours there are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Colours {
    pub of: Vec<Colour>,
    /// The same on every rank.
    pub count: usize,
}

/// News of a manifold on a shared body, between ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coloured {
    pub slot: u32,
    pub priority: Priority,
    pub colour: Colour,
}

/// Work in progress on one rank.
pub struct Colouring<'a> {
    links: &'a [Link],
    foreign: &'a [(u32, ManifoldKey)],
    /// For each slot its manifolds, foreign ones included, ascending by priority, stand in `lists` from
    /// `starts[s]` to `starts[s + 1]`. The hash of each, and its place among the links and then the foreign
    /// ones: keys are read only where hashes are equal, and the lists are shorter by half.
    starts: Vec<u32>,
    lists: Vec<(u64, u32)>,
    /// How many of each list are coloured.
    done: Vec<u32>,
    used: Vec<Mask>,
    colours: Vec<Colour>,
    remaining: usize,
    /// Links that may have become ready since the last round.
    candidates: Vec<u32>,
}

impl<'a> Colouring<'a> {
    /// `foreign` names the manifolds of other ranks on bodies of this rank: (slot, key).
    pub fn new(links: &'a [Link], slots: usize, foreign: &'a [(u32, ManifoldKey)]) -> Self {
        let mut degree = vec![0u32; slots + 1];
        let ends = links.iter().flat_map(|link| link.slots).flatten();
        for slot in ends.chain(foreign.iter().map(|(slot, _)| *slot)) {
            degree[slot as usize] += 1;
        }
        let mut starts = Vec::with_capacity(slots + 1);
        let mut sum = 0;
        for &count in &degree {
            starts.push(sum);
            sum += count;
        }
        let mut lists = vec![(0, 0); sum as usize];
        let mut next = starts.clone();
        let mut insert = |slot: u32, entry: (u64, u32)| {
            lists[next[slot as usize] as usize] = entry;
            next[slot as usize] += 1;
        };
        for (index, link) in (0..).zip(links) {
            let hash = hash(&link.key);
            for slot in link.slots.into_iter().flatten() {
                insert(slot, (hash, index));
            }
        }
        for (index, (slot, key)) in (links.len() as u32..).zip(foreign) {
            insert(*slot, (hash(key), index));
        }
        let key = |place: u32| key_at(links, foreign, place);
        for slot in 0..slots {
            lists[starts[slot] as usize..starts[slot + 1] as usize].sort_unstable_by(|one, other| {
                one.0.cmp(&other.0).then_with(|| key(one.1).cmp(key(other.1)))
            });
        }
        let colours = vec![0; links.len()];
        let (done, used) = (vec![0; slots], vec![Mask::default(); slots]);
        let candidates = (0..links.len() as u32).collect();
        Self { links, foreign, starts, lists, done, used, colours, remaining: links.len(), candidates }
    }

    pub fn remaining(&self) -> usize {
        self.remaining
    }

    /// Colours everything that waits for no other rank; calls `news` for both bodies of each.
    pub fn advance(&mut self, mut news: impl FnMut(Coloured)) {
        let mut ready = std::mem::take(&mut self.candidates);
        ready.sort_unstable();
        ready.dedup();
        ready.retain(|&link| self.is_ready(link));
        while let Some(link) = ready.pop() {
            let slots = self.links[link as usize].slots;
            let colour = Mask::lowest_free(slots.map(|slot| slot.map(|slot| &self.used[slot as usize])));
            self.colours[link as usize] = colour;
            self.remaining -= 1;
            for slot in slots.into_iter().flatten() {
                self.mark(slot, colour);
                news(Coloured { slot, priority: priority(&self.links[link as usize].key), colour });
            }
            // Its two bodies each have a new head: those may be ready now. A link that heads both lists is
            // found once.
            let heads = slots.map(|slot| slot.and_then(|slot| self.head(slot)));
            let second = if heads[0] == heads[1] { None } else { heads[1] };
            ready.extend([heads[0], second].into_iter().flatten().filter(|&head| self.is_ready(head)));
        }
    }

    /// Takes in what another rank coloured.
    pub fn receive(&mut self, news: &Coloured) {
        debug_assert_eq!(
            self.entry(news.slot).map(|entry| (entry.0, *key_at(self.links, self.foreign, entry.1))),
            Some(news.priority)
        );
        self.mark(news.slot, news.colour);
        self.candidates.extend(self.head(news.slot));
    }

    /// The colours, once nothing remains; `count` is this rank's own.
    pub fn finish(self) -> Colours {
        assert_eq!(self.remaining, 0, "every manifold has a colour");
        let count = self.colours.iter().max().map_or(0, |&most| most as usize + 1);
        Colours { of: self.colours, count }
    }

    fn is_ready(&self, link: u32) -> bool {
        self.links[link as usize].slots.into_iter().flatten().all(|slot| self.head(slot) == Some(link))
            && self.links[link as usize].slots.iter().any(|slot| slot.is_some())
    }

    /// The first uncoloured manifold of a body, if it is this rank's.
    fn head(&self, slot: u32) -> Option<u32> {
        self.entry(slot).map(|entry| entry.1).filter(|&link| (link as usize) < self.links.len())
    }

    fn entry(&self, slot: u32) -> Option<&(u64, u32)> {
        let slot = slot as usize;
        let place = self.starts[slot] + self.done[slot];
        (place < self.starts[slot + 1]).then(|| &self.lists[place as usize])
    }

    fn mark(&mut self, slot: u32, colour: u32) {
        self.used[slot as usize].insert(colour);
        self.done[slot as usize] += 1;
    }
}

/// A set of colours.
#[derive(Clone, Debug, Default)]
struct Mask(smallvec::SmallVec<[u64; 2]>);

impl Mask {
    fn insert(&mut self, colour: u32) {
        let word = colour as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (colour % 64);
    }

    /// The lowest colour in neither of two sets.
    fn lowest_free(masks: [Option<&Mask>; 2]) -> u32 {
        let word = |k: usize| {
            masks.iter().flatten().fold(0, |taken, mask| taken | mask.0.get(k).copied().unwrap_or(0))
        };
        (0..)
            .find_map(|k| (word(k) != u64::MAX).then(|| k as u32 * 64 + word(k).trailing_ones()))
            .expect("endless")
    }
}

/// The key of a manifold by its place among the links and then the foreign ones.
fn key_at<'a>(links: &'a [Link], foreign: &'a [(u32, ManifoldKey)], place: u32) -> &'a ManifoldKey {
    let place = place as usize;
    links.get(place).map_or_else(|| &foreign[place - links.len()].1, |link| &link.key)
}

/// All on one rank.
pub fn colour(links: &[Link], slots: usize) -> Colours {
    let mut colouring = Colouring::new(links, slots, &[]);
    colouring.advance(|_| {});
    colouring.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::BodyId;

    fn key(a: u64, b: u64) -> ManifoldKey {
        ManifoldKey { bodies: [BodyId(a.min(b)), BodyId(a.max(b))], parts: [0, 0] }
    }

    /// Random pairs among `bodies`; body 0 is a wall.
    fn links(bodies: u64, count: usize, seed: u64) -> Vec<Link> {
        let mut keys = std::collections::BTreeSet::new();
        let mut state = seed;
        while keys.len() < count {
            state = mix(state);
            let (a, b) = (state % bodies, (state >> 32) % bodies);
            if a != b {
                keys.insert(key(a, b));
            }
        }
        let slot = |id: BodyId| (id.0 > 0).then_some(id.0 as u32);
        keys.into_iter().map(|key| Link { key, slots: key.bodies.map(slot) }).collect()
    }

    /// The definition, word for word.
    fn serial_greedy(links: &[Link], slots: usize) -> Vec<u32> {
        let mut order: Vec<usize> = (0..links.len()).collect();
        order.sort_by_key(|&index| priority(&links[index].key));
        let mut used = vec![std::collections::BTreeSet::new(); slots];
        let mut colours = vec![0; links.len()];
        for index in order {
            let ends: Vec<usize> =
                links[index].slots.into_iter().flatten().map(|slot| slot as usize).collect();
            colours[index] =
                (0..).find(|colour| ends.iter().all(|&slot| !used[slot].contains(colour))).unwrap();
            for slot in ends {
                used[slot].insert(colours[index]);
            }
        }
        colours
    }

    #[test]
    fn equals_the_serial_greedy_order() {
        for seed in 0..20 {
            let links = links(300, 900, seed);
            assert_eq!(colour(&links, 300).of, serial_greedy(&links, 300));
        }
    }

    #[test]
    fn no_colour_twice_at_a_body_and_few_colours() {
        let links = links(1000, 3000, 5);
        let colours = colour(&links, 1000);
        let mut seen = std::collections::BTreeSet::new();
        for (link, colour) in links.iter().zip(&colours.of) {
            for slot in link.slots.into_iter().flatten() {
                assert!(seen.insert((slot, colour)));
            }
        }
        assert!(colours.count < 20, "{} colours", colours.count);
    }

    #[test]
    fn a_body_with_very_many_contacts_gets_a_colour_for_each() {
        let star: Vec<Link> =
            (2..300).map(|other| Link { key: key(1, other), slots: [Some(1), Some(other as u32)] }).collect();
        let colours = colour(&star, 300);
        assert_eq!(colours.of, serial_greedy(&star, 300));
        assert_eq!(colours.count, star.len());
    }

    /// Splits manifolds over ranks at random and plays the rounds by hand.
    #[test]
    fn any_partition_gives_the_same_colours() {
        let all = links(200, 700, 11);
        let serial = colour(&all, 200);
        for ranks in [2usize, 3, 8] {
            let owner = |link: &Link| (mix(link.key.bodies[0].0 ^ 77) % ranks as u64) as usize;
            let own: Vec<Vec<Link>> = (0..ranks)
                .map(|rank| all.iter().copied().filter(|link| owner(link) == rank).collect())
                .collect();
            let foreign: Vec<Vec<(u32, ManifoldKey)>> = (0..ranks)
                .map(|rank| {
                    let others = all.iter().filter(|link| owner(link) != rank);
                    others
                        .flat_map(|link| link.slots.into_iter().flatten().map(|slot| (slot, link.key)))
                        .collect()
                })
                .collect();
            let mut work: Vec<Colouring> =
                (0..ranks).map(|rank| Colouring::new(&own[rank], 200, &foreign[rank])).collect();
            while work.iter().any(|colouring| colouring.remaining() > 0) {
                let news: Vec<Vec<Coloured>> = work
                    .iter_mut()
                    .map(|colouring| {
                        let mut news = Vec::new();
                        colouring.advance(|one| news.push(one));
                        news
                    })
                    .collect();
                // Each body's news in order of priority, as one list is worked off from its head.
                for (rank, colouring) in work.iter_mut().enumerate() {
                    let mut arrived: Vec<Coloured> = (0..ranks)
                        .filter(|&other| other != rank)
                        .flat_map(|other| news[other].clone())
                        .collect();
                    arrived.sort_by_key(|one| (one.slot, one.priority));
                    arrived.iter().for_each(|one| colouring.receive(one));
                }
            }
            for (rank, colouring) in work.into_iter().enumerate() {
                for (link, colour) in own[rank].iter().zip(colouring.finish().of) {
                    let place = all.iter().position(|other| other.key == link.key).unwrap();
                    assert_eq!(colour, serial.of[place]);
                }
            }
        }
    }
}
