//! Patches of stones that hardly move, carried along: (2) of `anchor`.

use super::narrow::PatchPoint;
use crate::geometry::four::{Four, each, with};
use crate::geometry::{Mat3, Vec3};
use rayon::prelude::*;

/// The small motion of a body since its anchor: (2).
#[derive(Clone, Copy, Debug)]
pub struct Carry {
    origin: Four,
    shift: Four,
    /// Columns of the rotation matrix less the identity.
    turn: [Four; 3],
}

/// Those of all bodies.
#[derive(Default)]
pub struct Carries {
    all: Vec<Carry>,
    /// Whether it is another than none: for bodies that stay at their anchor, as all do that fall, nothing is
    /// written. That would be 1.4 MB in every step for 9000 of them.
    moved: Vec<bool>,
}

/// A point of a patch where both bodies were queried.
#[derive(Clone, Copy, Debug)]
pub struct Anchored {
    /// And the gap.
    on_a: Four,
    /// And the feature.
    on_b: Four,
}

/// One point of a patch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContactPoint {
    /// Unique within the patch, persistent from step to step.
    pub feature: u32,
    /// Positive apart, m.
    pub gap: f64,
    /// World, in the middle between the two surfaces.
    pub position: Vec3,
}

impl Carries {
    pub fn renew(&mut self, carries: impl IndexedParallelIterator<Item = Option<Carry>>) {
        let Self { all, moved } = self;
        all.resize(carries.len(), Carry::NONE);
        moved.resize(carries.len(), false);
        carries.zip((all, moved)).for_each(|(carry, (entry, moved))| {
            if carry.is_some() || *moved {
                *moved = carry.is_some();
                *entry = carry.unwrap_or(Carry::NONE);
            }
        });
    }

    pub fn of(&self, place: u32) -> &Carry {
        &self.all[place as usize]
    }
}

impl Carry {
    const NONE: Self = Self { origin: [0.0; 4], shift: [0.0; 4], turn: [[0.0; 4]; 3] };

    /// `turn` is a rotation matrix less the identity.
    pub fn new(origin: &Vec3, shift: &Vec3, turn: &Mat3) -> Self {
        let column = |k: usize| with(&turn.column(k).into_owned(), 0.0);
        Self { origin: with(origin, 0.0), shift: with(shift, 0.0), turn: [column(0), column(1), column(2)] }
    }

    /// δ of (2); the fourth is zero.
    #[inline(always)]
    fn displacement(&self, point: &Four) -> Four {
        let Self { origin, shift, turn } = self;
        let from = each(|k| point[k] - origin[k]);
        each(|k| turn[0][k] * from[0] + turn[1][k] * from[1] + turn[2][k] * from[2] + shift[k])
    }
}

impl From<PatchPoint> for Anchored {
    fn from(point: PatchPoint) -> Self {
        Self { on_a: with(&point.on_a, point.gap), on_b: with(&point.on_b, f64::from(point.feature)) }
    }
}

impl Anchored {
    /// As it is after small motions of both bodies.
    #[inline(always)]
    pub fn carried(&self, normal: &Vec3, [a, b]: [&Carry; 2]) -> ContactPoint {
        let Self { on_a, on_b } = self;
        let (da, db) = (a.displacement(on_a), b.displacement(on_b));
        let apart = each(|k| db[k] - da[k]);
        let middle = each(|k| ((on_a[k] + da[k]) + (on_b[k] + db[k])) * 0.5);
        ContactPoint {
            feature: on_b[3] as u32,
            gap: on_a[3] + (normal.x * apart[0] + normal.y * apart[1] + normal.z * apart[2]),
            position: Vec3::new(middle[0], middle[1], middle[2]),
        }
    }
}

impl From<&PatchPoint> for ContactPoint {
    fn from(point: &PatchPoint) -> Self {
        let PatchPoint { feature, on_a, on_b, gap } = *point;
        Self { feature, gap, position: (on_a + on_b) * 0.5 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Quat, Random};

    #[test]
    fn points_are_carried_as_vectors_would_be() {
        let mut random = Random::new(3, 0);
        let mut vector = |size: f64| Vec3::from_fn(|_, _| size * random.between(-0.5, 0.5));
        for feature in 0..200 {
            let mut motion = |size: f64| {
                let turn = Quat::from_scaled_axis(vector(size)).to_rotation_matrix().into_inner();
                (vector(1.0), vector(size), turn - Mat3::identity())
            };
            let size = if feature % 3 == 0 { 0.0 } else { 1e-4 };
            let motions = [motion(size), motion(1e-4)];
            let normal = vector(1.0).normalize();
            let point = PatchPoint {
                feature: feature << 20,
                on_a: vector(1.0),
                on_b: vector(1.0),
                gap: vector(1.0).x,
            };
            let of = |(origin, shift, turn): &(Vec3, Vec3, Mat3), at: &Vec3| turn * (at - origin) + shift;
            let (da, db) = (of(&motions[0], &point.on_a), of(&motions[1], &point.on_b));
            let gap = point.gap + normal.dot(&(db - da));
            let moved = PatchPoint { on_a: point.on_a + da, on_b: point.on_b + db, gap, ..point };
            let carries = motions.map(|(origin, shift, turn)| Carry::new(&origin, &shift, &turn));
            let [a, b] = &carries;
            assert_eq!(Anchored::from(point).carried(&normal, [a, b]), ContactPoint::from(&moved));
            let carried = Anchored::from(point).carried(&normal, [&Carry::NONE; 2]);
            assert_eq!(carried, ContactPoint::from(&point));
        }
    }
}
