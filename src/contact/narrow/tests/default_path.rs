//! The default path by support functions against the functions that pairs have of their own.

use super::*;
use crate::contact::narrow::support;

type Placed = (Arc<Polyhedron>, Pose);

fn convex(piece: &Placed) -> Convex {
    Convex::Polyhedron(piece.0.clone())
}

/// Of a patch of one point: its parts fit together.
fn check(patch: &Patch) -> (Vec3, PatchPoint) {
    let [point] = patch.points[..] else { panic!("{} points", patch.points.len()) };
    assert!((patch.normal.norm() - 1.0).abs() < 1e-12 && point.feature == 0);
    assert!(((point.on_b - point.on_a).dot(&patch.normal) - point.gap).abs() < 1e-9, "{point:?}");
    (patch.normal, point)
}

#[test]
fn spheres_and_polyhedra_agree() {
    let mut random = Random(31);
    let (mut found, mut worst) = (0, 0.0f64);
    for _ in 0..4000 {
        let [a, _] = any_pair(&mut random);
        let radius = random.between(0.01, 1.0);
        let ball = Convex::Sphere { radius };
        let away = random.direction() * random.between(0.0, a.0.bounding_radius + 1.2 * radius);
        let pose = Pose::new(random.rotation(), a.1.position + away);
        let shape = convex(&a);
        let fast = collide((&shape, &a.1), (&ball, &pose), 0.1, &mut Hint::default());
        let slow = support::patch((&shape, &a.1), (&ball, &pose), 0.1);
        assert_eq!(fast.is_some(), slow.is_some());
        let (Some(fast), Some(slow)) = (fast, slow) else { continue };
        let ((_, fast), (normal, slow)) = (check(&fast), check(&slow));
        worst = worst.max((fast.gap - slow.gap).abs());
        // The same surface: where two faces are equally near, another normal is as right.
        assert!((fast.gap - slow.gap).abs() < 1e-9, "{} and {}", fast.gap, slow.gap);
        assert!(oracle::outside(&a, &slow.on_a).abs() < 1e-9, "not on the surface");
        assert!((slow.on_b + normal * radius - pose.position).norm() < 1e-9);
        found += 1;
    }
    println!("measured sphere on polyhedron, default against fast: {worst:.1e}, {found} patches");
    assert!(found > 1000);
}

#[test]
fn two_spheres_agree() {
    let mut random = Random(32);
    for _ in 0..1000 {
        let [a, b] =
            [random.between(0.1, 1.0), random.between(0.1, 1.0)].map(|radius| Convex::Sphere { radius });
        let poses = [random.pose(), random.pose()];
        let fast = collide((&a, &poses[0]), (&b, &poses[1]), 0.2, &mut Hint::default());
        let slow = support::patch((&a, &poses[0]), (&b, &poses[1]), 0.2);
        assert_eq!(fast.is_some(), slow.is_some());
        let (Some(fast), Some(slow)) = (fast, slow) else { continue };
        let ((normal, fast), (other, slow)) = (check(&fast), check(&slow));
        assert!((normal - other).norm() < 1e-12 && (fast.gap - slow.gap).abs() < 1e-12);
    }
}

#[test]
fn half_spaces_agree_with_the_lowest_point() {
    let mut random = Random(33);
    for _ in 0..1000 {
        let [a, _] = any_pair(&mut random);
        let plane = Pose::new(random.rotation(), random.pose().position);
        let shape = convex(&a);
        let fast = collide((&Convex::HalfSpace, &plane), (&shape, &a.1), 0.1, &mut Hint::default());
        let slow = support::patch((&Convex::HalfSpace, &plane), (&shape, &a.1), 0.1);
        assert_eq!(fast.is_some(), slow.is_some());
        let (Some(fast), Some(slow)) = (fast, slow) else { continue };
        let lowest = fast.points.iter().map(|point| point.gap).fold(f64::INFINITY, f64::min);
        let (normal, slow) = check(&slow);
        assert!((normal - fast.normal).norm() < 1e-12 && (slow.gap - lowest).abs() < 1e-12);
    }
    let planes = [random.pose(), random.pose()];
    assert!(
        support::patch((&Convex::HalfSpace, &planes[0]), (&Convex::HalfSpace, &planes[1]), 1.0).is_none()
    );
}

/// Inside one another: the separation of the fast path. Apart: the true distance, which that bounds from
/// below.
#[test]
fn polyhedra_agree() {
    let mut random = Random(34);
    let (mut inside, mut apart, mut worst) = (0, 0, [0.0f64; 2]);
    for case in 0..4000 {
        let [a, b] = any_pair(&mut random);
        let margin = 0.2;
        let shapes = [convex(&a), convex(&b)];
        let slow = support::patch((&shapes[0], &a.1), (&shapes[1], &b.1), margin);
        let (separation, _) = oracle::separation(&a, &b);
        let exact = if separation > 0.0 { oracle::distance(&a, &b) } else { separation };
        let Some(slow) = slow else {
            assert!(exact > margin - 1e-9, "case {case}: no patch at {exact}");
            continue;
        };
        let (normal, point) = check(&slow);
        let error = (point.gap - exact).abs();
        assert!(error < 1e-8, "case {case}: {} for {exact}", point.gap);
        let along = oracle::along(&oracle::world(&a), &oracle::world(&b), &normal);
        assert!((along - point.gap).abs() < 1e-8, "case {case}: {along} along the normal, {}", point.gap);
        let kind = usize::from(separation > 0.0);
        worst[kind] = worst[kind].max(error);
        *[&mut inside, &mut apart][kind] += 1;
    }
    println!("measured default path: {inside} inside {:.1e}, {apart} apart {:.1e}", worst[0], worst[1]);
    assert!(inside > 500 && apart > 100, "{inside} {apart}");
}

#[test]
fn swapping_mirrors_every_bit() {
    let mut random = Random(35);
    for _ in 0..500 {
        let [a, b] = any_pair(&mut random);
        let shapes = [convex(&a), convex(&b)];
        let one = support::patch((&shapes[0], &a.1), (&shapes[1], &b.1), 0.2);
        let other = support::patch((&shapes[1], &b.1), (&shapes[0], &a.1), 0.2);
        assert_eq!(one, other.map(Patch::mirrored));
    }
}

/// A pair that comes nearer and goes through: the gap is as continuous as the motion.
#[test]
fn the_gap_goes_through_zero() {
    let mut random = Random(36);
    for _ in 0..50 {
        let [a, mut b] = pair_with_gap(&mut random, 0.0);
        let shapes = [convex(&a), convex(&b)];
        let direction = (b.1.position - a.1.position).try_normalize(1e-6).unwrap_or(Vec3::z());
        let middle = b.1.position;
        let mut last: Option<f64> = None;
        for k in -20..=20 {
            let step = f64::from(k) * 1e-6;
            b.1.position = middle + direction * step;
            let patch =
                support::patch((&shapes[0], &a.1), (&shapes[1], &b.1), 0.1).expect("within the margin");
            let gap = check(&patch).1.gap;
            assert!(last.is_none_or(|last| (gap - last).abs() < 1.1e-6), "{gap} after {last:?}");
            last = Some(gap);
        }
    }
}
