//! How far bodies have gone: pairs that were apart need not be examined before they may have come close.
//!
//! Scratch: a pair is left out only where it is proved to be apart still. With w the displacements that both
//! origins have gone together since the proof, along their whole path, φ the angles that both have turned (as
//! chords), t the distance of the origins then and ρ bounding radii,
//!
//! ```text
//! along a face's normal:  points of one body as seen from the other have moved by at most
//!                             w + φ (t + w + max ρ)                                        (1)
//! along the centres:      the direction has turned by at most 1.2 w / t if w < t / 4:
//!                             w (1 + 1.2 (ρ_a + ρ_b) / t) + φ max ρ                        (2)
//! ```

use super::narrow::Gap;
use crate::geometry::{Pose, Vec3};
use crate::scene::BodyId;

/// What a body has gone since it was first seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Displacement {
    /// Of the origin, m.
    pub length: f64,
    /// Chords of the unit circle.
    pub turn: f64,
}

impl std::ops::Add for Displacement {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { length: self.length + other.length, turn: self.turn + other.turn }
    }
}

/// Counts the displacements of all bodies. One that was away begins anew.
#[derive(Default)]
pub struct Odometer {
    /// Ascending by id.
    displacements: Vec<Entry>,
    before: Vec<Entry>,
    /// In the same order: pose and reach are those of the last call.
    still: Vec<bool>,
    all_still: bool,
}

struct Entry {
    id: BodyId,
    pose: Pose,
    reach: f64,
    displacement: Displacement,
}

impl Odometer {
    /// Bodies ascending by id, where they are queried, and their reach. Whether they are those of the last
    /// call.
    pub fn advance<'a>(&mut self, bodies: impl Iterator<Item = (BodyId, &'a Pose, f64)>) -> bool {
        std::mem::swap(&mut self.displacements, &mut self.before);
        let mut before = self.before.iter().peekable();
        let (mut same, mut all_still) = (true, true);
        self.displacements.clear();
        self.still.clear();
        self.displacements.extend(bodies.map(|(id, pose, reach)| {
            while before.next_if(|last| last.id < id).is_some() {
                same = false;
            }
            let (displacement, still) = match before.next_if(|last| last.id == id) {
                None => {
                    same = false;
                    (Displacement::default(), false)
                }
                Some(last) if last.pose == *pose => (last.displacement, last.reach == reach),
                Some(last) => (last.displacement + step(&last.pose, pose), false),
            };
            all_still &= still;
            self.still.push(still);
            Entry { id, pose: *pose, reach, displacement }
        }));
        same &= before.next().is_none();
        self.all_still = all_still;
        same
    }

    /// Of the body at a place in the order of ids.
    pub fn displacement(&self, place: u32) -> Displacement {
        self.displacements[place as usize].displacement
    }

    /// Whether that body is queried where it was in the last call, with the same reach.
    pub fn is_still(&self, place: u32) -> bool {
        self.still[place as usize]
    }

    pub fn all_still(&self) -> bool {
        self.all_still
    }
}

/// From one pose to another.
pub fn step(from: &Pose, to: &Pose) -> Displacement {
    let (p, q) = (from.rotation.coords, to.rotation.coords);
    // |p − q| is 2 sin(θ/4); −q is the same rotation.
    let turn = 2.0 * (p - q).norm().min((p + q).norm());
    Displacement { length: (to.position - from.position).norm(), turn }
}

/// That a pair was apart, and when.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    separation: f64,
    /// Of both.
    displacement: Displacement,
    /// t, max ρ, and the factor of w in (1) or (2).
    distance: f64,
    radius: f64,
    rate: f64,
}

impl Proof {
    /// `between` the origins. `displacement`: of both bodies, now.
    pub fn new(gap: Gap, between: &Vec3, radii: [f64; 2], displacement: Displacement) -> Self {
        let distance = between.norm();
        let rate = if gap.along_centres { 1.0 + 1.2 * (radii[0] + radii[1]) / distance } else { 1.0 };
        Self { separation: gap.separation, displacement, distance, radius: radii[0].max(radii[1]), rate }
    }

    /// Whether the separation is still above the margin.
    pub fn holds(&self, displacement: Displacement, margin: f64) -> bool {
        let (gone, turned) =
            (displacement.length - self.displacement.length, displacement.turn - self.displacement.turn);
        let lost = gone * self.rate + turned * (self.distance + gone + self.radius);
        // More than the rounding of the sums.
        let slack = 1e-9 * (self.distance + self.radius);
        gone < 0.25 * self.distance && self.separation - lost > margin + slack
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Quat;

    #[test]
    fn ways_add_up_and_begin_anew() {
        let mut odometer = Odometer::default();
        let pose = |x: f64, angle: f64| Pose::new(Quat::from_scaled_axis(Vec3::z() * angle), Vec3::x() * x);
        let (a, b) = (BodyId(3), BodyId(7));
        let mut advance = |bodies: &[(BodyId, Pose, f64)]| {
            odometer.advance(bodies.iter().map(|(id, pose, reach)| (*id, pose, *reach)))
        };
        assert!(!advance(&[(a, pose(0.0, 0.0), 0.0), (b, pose(5.0, 0.0), 0.0)]));
        assert!(advance(&[(a, pose(1.0, 0.1), 0.0), (b, pose(5.0, 0.0), 0.0)]));
        assert!(!advance(&[(a, pose(0.0, 0.0), 0.0)]));
        assert!(!advance(&[(a, pose(0.0, 0.0), 0.0), (b, pose(9.0, 1.0), 0.0)]));
        assert!(odometer.is_still(0) && !odometer.is_still(1) && !odometer.all_still());
        assert_eq!(odometer.displacement(0).length, 2.0);
        assert!((odometer.displacement(0).turn - 0.2).abs() < 1e-4);
        assert_eq!(odometer.displacement(1), Displacement::default());
        assert!(odometer.advance([(a, &pose(0.0, 0.0), 0.0), (b, &pose(9.0, 1.0), 0.0)].into_iter()));
        assert!(odometer.all_still());
        // A longer reach is not still.
        assert!(odometer.advance([(a, &pose(0.0, 0.0), 0.1), (b, &pose(9.0, 1.0), 0.0)].into_iter()));
        assert!(!odometer.is_still(0) && odometer.is_still(1));
    }
}
