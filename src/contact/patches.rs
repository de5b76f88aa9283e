//! Contact patches one after the other, all their points in one list: what is read in every step stands side
//! by side in memory, and nothing is allocated once the lists have grown.

use crate::geometry::Vec3;

/// Patches of points `P`, each with a label.
#[derive(Clone, Debug)]
pub struct Patches<L, P> {
    heads: Vec<Head<L>>,
    points: Vec<P>,
}

#[derive(Clone, Copy, Debug)]
struct Head<L> {
    label: L,
    normal: Vec3,
    /// Past its last point.
    end: u32,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Labelled<'a, L, P> {
    pub label: L,
    /// Unit, world, from a to b.
    pub normal: Vec3,
    pub points: &'a [P],
}

impl<L, P> Default for Patches<L, P> {
    fn default() -> Self {
        Self { heads: Vec::new(), points: Vec::new() }
    }
}

impl<L: Copy, P> Patches<L, P> {
    pub fn clear(&mut self) {
        self.heads.clear();
        self.points.clear();
    }

    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Of all patches.
    pub fn points(&self) -> usize {
        self.points.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = Labelled<'_, L, P>> {
        let mut start = 0;
        self.heads.iter().map(move |&Head { label, normal, end }| {
            let points = &self.points[start..end as usize];
            start = end as usize;
            Labelled { label, normal, points }
        })
    }

    /// Adds a patch, which may have no points.
    pub fn push(
        &mut self,
        label: L,
        normal: Vec3,
        points: impl IntoIterator<Item = P>,
    ) -> Labelled<'_, L, P> {
        let start = self.points.len();
        self.points.extend(points);
        self.heads.push(Head { label, normal, end: self.points.len() as u32 });
        Labelled { label, normal, points: &self.points[start..] }
    }

    /// Adds those points of a patch that stay, if there are any. First all, without a question in between:
    /// mostly all stay.
    pub fn push_some(
        &mut self,
        label: L,
        normal: Vec3,
        points: impl ExactSizeIterator<Item = P>,
        stays: impl Fn(&P) -> bool,
    ) where
        P: Copy,
    {
        let start = self.points.len();
        self.points.extend(points);
        let mut end = self.points.len();
        if !self.points[start..].iter().all(&stays) {
            end = start;
            for place in start..self.points.len() {
                self.points[end] = self.points[place];
                end += usize::from(stays(&self.points[place]));
            }
            self.points.truncate(end);
        }
        if end > start {
            self.heads.push(Head { label, normal, end: end as u32 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_come_back_with_their_points() {
        let lists = [&[1.0, 2.0][..], &[], &[3.0], &[]];
        let (mut all, mut some) = (Patches::default(), Patches::default());
        for (label, points) in (0..).zip(lists) {
            let last = all.push(label, Vec3::z(), points.iter().copied());
            some.push_some(label, Vec3::z(), points.iter().copied(), |&point| point != 2.0);
            assert_eq!((last.label, last.points), (label, points));
        }
        let read = |patches: &Patches<u32, f64>| {
            patches.iter().map(|patch| (patch.label, patch.points.to_vec())).collect::<Vec<_>>()
        };
        let expected = (0..).zip(lists.map(<[f64]>::to_vec));
        assert_eq!(read(&all), expected.collect::<Vec<_>>());
        assert_eq!(read(&some), [(0, vec![1.0]), (2, vec![3.0])]);
        assert_eq!((all.len(), some.len(), all.points(), some.points()), (4, 2, 3, 2));
    }
}
