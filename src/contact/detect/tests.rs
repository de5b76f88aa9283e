use super::*;
use crate::contact::anchor::{renew, slack};
use crate::geometry::{Convex, Part, Pose, Quat, Shape, convex_hull};
use crate::scene::{BodyId, Motion};

struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn vector(&mut self) -> Vec3 {
        Vec3::new(self.unit(), self.unit(), self.unit()).add_scalar(-0.5)
    }
}

fn stone(id: u64, random: &mut Random) -> Body {
    let corners: Vec<Vec3> = (0..14).map(|_| random.vector().normalize() * 0.5).collect();
    Body {
        id: BodyId(id),
        group: 0,
        material: 0,
        motion: Motion::Free,
        shape: Shape::polyhedron(convex_hull(&corners).expect("a volume")),
        mass: 1.0,
        inertia: Vec3::repeat(1.0),
        pose: Pose::new(Quat::from_scaled_axis(random.vector() * 5.0), random.vector() * 3.0),
        velocity: Vec3::zeros(),
        angular_velocity: Vec3::zeros(),
        angular_momentum: Vec3::zeros(),
        anchor: None,
    }
}

fn all(lists: &[Contacts]) -> Vec<Contact<'_>> {
    lists.iter().flat_map(Contacts::iter).collect()
}

/// Each moves by a speed of its own, which changes now and then: none, or from a billionth to a few hundredths.
fn shake(stones: &mut [Body], step: usize, random: &mut Random) {
    for (index, body) in stones.iter_mut().enumerate() {
        let speed = [0.0, 1e-9, 1e-5, 1e-3, 3e-2][(index + step / 30) % 5];
        body.pose.position += random.vector() * speed;
        body.pose.rotation = Quat::from_scaled_axis(random.vector() * speed) * body.pose.rotation;
    }
}

/// A floor that nobody is above, a sphere and two stones as one.
fn others(random: &mut Random) -> Vec<Body> {
    let part = |random: &mut Random| match stone(0, random).shape {
        Shape::Convex(convex) => Part { pose: Pose::new(Quat::identity(), random.vector()), convex },
        Shape::Cluster(_) => unreachable!("a stone is one piece"),
    };
    let shapes = [
        Shape::Convex(Convex::HalfSpace),
        Shape::sphere(0.4),
        Shape::Cluster([part(random), part(random)].into()),
    ];
    let body = |(id, shape)| Body { shape, motion: Motion::Fixed, ..stone(id, random) };
    (40..).zip(shapes).map(body).collect()
}

/// Stones that rest, creep, fly, and now and then are away for a step, also of another rank: what is found is what a new detector finds.
#[test]
fn what_is_remembered_changes_nothing() {
    let mut random = Random(7);
    for reuse in [0.0, 1e-3] {
        let mut stones: Vec<Body> = (0..40).map(|id| stone(id, &mut random)).collect();
        stones.extend(others(&mut random));
        let mut detector = Detector::default();
        let mut most = 0;
        for step in 0..150 {
            shake(&mut stones, step, &mut random);
            let away = random.0 as usize % 80;
            let reach = 0.02 * random.unit();
            stones.iter_mut().for_each(|body| renew(body, reach, slack(body, reuse)));
            let present = stones.iter().enumerate().filter(|(index, _)| *index != away);
            let candidate = |(_, body)| Candidate { body, reach, movable: true, slack: slack(body, reuse) };
            let candidates: Vec<Candidate> = present.map(candidate).collect();
            let mut fresh = Detector::default();
            // Space is shared anew every 20 steps.
            let owns = |_: &Body, _: &Body, place: &Vec3| place.x > -0.5 || step / 20 % 2 == 0;
            let meet =
                |a: &Body, b: &Body| [Some(1.0), Some(0.0), Some(0.5), None][(a.id.0 + b.id.0) as usize % 4];
            let [found, expected] =
                [&mut detector, &mut fresh].map(|detector| all(detector.detect(&candidates, owns, meet)));
            most = most.max(found.len());
            assert_eq!(found, expected, "step {step}");
        }
        assert!(most > 20, "{most}");
    }
}

/// Against the full search where the stones stand: every closed pair is found, and but for a few whose axis is about to change as deep up to a tenth of
/// what the two may have moved.
#[test]
fn carried_patches_are_those_of_the_stones_where_they_stand() {
    const REUSE: f64 = 1e-3;
    let mut random = Random(11);
    let mut stones: Vec<Body> = (0..40).map(|id| stone(id, &mut random)).collect();
    let mut detector = Detector::default();
    let (mut carried, mut compared, mut different) = (0, 0, 0);
    for step in 0..150 {
        shake(&mut stones, step, &mut random);
        stones.iter_mut().for_each(|body| renew(body, 0.01, slack(body, REUSE)));
        carried += stones.iter().filter(|body| body.anchor.is_some_and(|a| a.pose != body.pose)).count();
        let look = |detector: &mut Detector, reuse: f64, factor: f64| {
            let candidate = |body| Candidate { body, reach: 0.01, movable: true, slack: slack(body, reuse) };
            let candidates: Vec<Candidate> = stones.iter().map(candidate).collect();
            let found = all(detector.detect(&candidates, |_, _, _| true, |_, _| Some(factor)));
            let depth = |contact: &Contact| {
                let gaps = contact.points.iter().map(|point| point.gap);
                (contact.key, gaps.fold(f64::INFINITY, f64::min))
            };
            found.iter().map(depth).collect::<std::collections::BTreeMap<_, _>>()
        };
        // Also where contacts act only once closed: nothing may be missed that closes between two looks.
        let factor = if step < 75 { 1.0 } else { 0.0 };
        if step == 75 {
            detector = Detector::default();
        }
        let (here, there) = (look(&mut Detector::default(), 0.0, factor), look(&mut detector, REUSE, factor));
        for (key, depth) in here.iter().filter(|(_, depth)| **depth < -1e-5) {
            let found = there.get(key).unwrap_or_else(|| panic!("step {step}: {key:?}, {depth}"));
            different += usize::from((found - depth).abs() > 0.1 * REUSE);
            compared += 1;
        }
    }
    assert!(carried > 1000 && compared > 500, "{carried}, {compared}");
    assert!(100 * different < compared, "{different} of {compared}");
}
