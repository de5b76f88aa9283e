use super::*;
use crate::contact::anchor::{renew, slack};
use crate::contact::narrow::{Hint, collide};
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
        memory: Box::default(),
    }
}

fn all(lists: &[Contacts]) -> Vec<Contact<'_>> {
    lists.iter().flat_map(Contacts::iter).collect()
}

/// Each moves by a speed of its own, which changes now and then: none, or from a billionth to a few
/// hundredths.
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

/// Stones that rest, creep, fly, and now and then are away for a step, also of another rank: what is found is
/// what a new detector finds.
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

/// Against the full search where the stones stand: every closed pair is found, and but for a few whose axis
/// is about to change as deep up to a tenth of what the two may have moved.
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
        // Also where contacts act only once closed: nothing may be missed that closes between two queries.
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

/// A cluster of parts of all kinds, in a cube of side 4.
fn cluster(id: u64, count: usize, random: &mut Random) -> Body {
    let part = |k: usize, random: &mut Random| {
        let convex = match (k % 3, stone(0, random).shape) {
            (0, _) | (_, Shape::Cluster(_)) => Convex::Sphere { radius: 0.05 + 0.1 * random.unit() },
            (_, Shape::Convex(convex)) => convex,
        };
        Part { pose: Pose::new(Quat::from_scaled_axis(random.vector() * 5.0), random.vector() * 8.0), convex }
    };
    let parts: Vec<Part> = (0..count).map(|k| part(k, random)).collect();
    Body { shape: Shape::Cluster(parts.into()), ..stone(id, random) }
}

type Found = Vec<([u32; 2], Vec3, Vec<u32>)>;

/// Parts, normals and features of a pair, by the detector and by all pairs of parts.
fn by_tree_and_by_all_pairs(bodies: &[Body; 2], reach: f64) -> [Found; 2] {
    let candidate = |body| Candidate { body, reach, movable: true, slack: 0.0 };
    let candidates: Vec<Candidate> = bodies.iter().map(candidate).collect();
    let mut detector = Detector::default();
    let found = all(detector.detect(&candidates, |_, _, _| true, |_, _| Some(1.0)));
    let features = |points: &[ContactPoint]| points.iter().map(|point| point.feature).collect();
    let tree = found.iter().map(|contact| (contact.key.parts, contact.normal, features(contact.points)));
    let tree = tree.collect();
    let [_, margin] = Candidate::margins([&candidates[0], &candidates[1]], 1.0);
    let mut pairs = Vec::new();
    for (part_a, (place_a, convex_a)) in bodies[0].shape.parts().enumerate() {
        let pose_a = bodies[0].pose.compose(&place_a);
        for (part_b, (place_b, convex_b)) in bodies[1].shape.parts().enumerate() {
            let pose_b = bodies[1].pose.compose(&place_b);
            let hint = &mut Hint::default();
            if let Some(patch) = collide((convex_a, &pose_a), (convex_b, &pose_b), margin, hint) {
                let features = patch.points.iter().map(|point| point.feature).collect();
                pairs.push(([part_a as u32, part_b as u32], patch.normal, features));
            }
        }
    }
    [tree, pairs]
}

#[test]
fn parts_found_by_a_tree_are_those_of_all_pairs() {
    let mut random = Random(23);
    let mut most = 0;
    for sizes in [[3, 40], [40, 3], [20, 60], [60, 20], [15, 15], [100, 100]] {
        for reach in [0.0, 0.01, 0.3] {
            let bodies = [cluster(1, sizes[0], &mut random), cluster(2, sizes[1], &mut random)];
            let [tree, pairs] = by_tree_and_by_all_pairs(&bodies, reach);
            assert_eq!(tree, pairs, "{sizes:?}, reach {reach}");
            most = most.max(tree.len());
        }
    }
    assert!(most > 50, "{most}");
    // Against single pieces, the lower id on either side.
    for id in [0, 2] {
        for shape in [Shape::sphere(1.0), Shape::Convex(Convex::HalfSpace), stone(0, &mut random).shape] {
            let other = Body { shape, pose: Pose::identity(), ..stone(id, &mut random) };
            let many = cluster(1, 50, &mut random);
            let bodies = if id == 0 { [other, many] } else { [many, other] };
            let [tree, pairs] = by_tree_and_by_all_pairs(&bodies, 0.05);
            assert_eq!(tree, pairs);
        }
    }
}

#[test]
fn two_clusters_of_a_thousand_parts() {
    let mut random = Random(29);
    let bodies = [cluster(1, 1000, &mut random), cluster(2, 1000, &mut random)];
    let [tree, pairs] = by_tree_and_by_all_pairs(&bodies, 0.01);
    assert!(tree.len() > 1000, "{}", tree.len());
    assert_eq!(tree, pairs);
}

/// More parts than sixteen bits count: the last ones are named by their own numbers.
#[test]
fn more_parts_than_sixteen_bits_count() {
    let ball = |x: usize| Part {
        pose: Pose::new(Quat::identity(), Vec3::x() * x as f64),
        convex: Convex::Sphere { radius: 0.4 },
    };
    let mut random = Random(31);
    let row: Vec<Part> = (0..70_000).map(ball).collect();
    let chain = Body { shape: Shape::Cluster(row.into()), pose: Pose::identity(), ..stone(1, &mut random) };
    let place = Pose::new(Quat::identity(), Vec3::new(69_998.5, 0.0, 0.0));
    let last = Body { shape: Shape::sphere(0.2), pose: place, ..stone(2, &mut random) };
    let [tree, pairs] = by_tree_and_by_all_pairs(&[chain, last], 0.0);
    assert_eq!(tree.iter().map(|(parts, ..)| parts[0]).collect::<Vec<_>>(), [69_998, 69_999]);
    assert_eq!(tree, pairs);
}
