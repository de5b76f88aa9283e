use super::*;

/// What every patch has to satisfy.
fn check(a: &(Arc<Polyhedron>, Pose), b: &(Arc<Polyhedron>, Pose), patch: &Patch, margin: f64) {
    let scale = a.0.bounding_radius + b.0.bounding_radius;
    assert!((patch.normal.norm() - 1.0).abs() < 1e-14);
    assert!((1..=MAX_POINTS).contains(&patch.points.len()));
    for (place, point) in patch.points.iter().enumerate() {
        let gap = (point.on_b - point.on_a).dot(&patch.normal);
        assert!((gap - point.gap).abs() < 1e-13 * scale, "gap {gap} but {}", point.gap);
        assert!(point.gap <= margin);
        assert!(oracle::outside(a, &point.on_a).abs() < 1e-9 * scale, "on_a off the surface of a");
        assert!(oracle::outside(b, &point.on_b).abs() < 1e-9 * scale, "on_b off the surface of b");
        if point.gap < 0.0 {
            // At least one of the two points is inside the other body: the overlap is real at this place.
            let inside = oracle::outside(b, &point.on_a).min(oracle::outside(a, &point.on_b));
            assert!(inside < 1e-9 * scale, "no overlap here: {inside}");
        }
        assert!(patch.points[..place].iter().all(|other| other.feature != point.feature));
    }
    let deepest = patch.points.iter().map(|point| point.gap).fold(f64::INFINITY, f64::min);
    let (separation, face) = oracle::search(a, b);
    assert!(deepest >= separation.min(face) - (NEARLY * scale).max(0.011 * separation.abs()));
    // Apart, the lowest vertex may be beside the face; the points are those that face each other.
    assert!(
        separation > 0.0 || deepest <= separation + NEARLY * scale + 0.011 * separation.abs(),
        "{deepest} but {separation}"
    );
}

#[test]
fn patches_lie_on_both_surfaces() {
    let mut random = Random(10);
    let mut counts = [0; MAX_POINTS + 1];
    for _ in 0..20_000 {
        let gap = random.between(-0.05, 0.05);
        let [a, b] =
            if random.below(4) == 0 { pair_with_gap(&mut random, gap) } else { any_pair(&mut random) };
        let margin = 0.1;
        let patch = collide_pair(&a, &b, margin, &mut Hint::default());
        let (separation, _) = oracle::search(&a, &b);
        let reach = a.0.bounding_radius + b.0.bounding_radius + margin;
        let between = b.1.position - a.1.position;
        let centres = oracle::along(&oracle::world(&a), &oracle::world(&b), &between) / between.norm();
        let provably_apart = between.norm() > reach || centres > margin;
        assert_eq!(patch.is_some(), separation <= margin && !provably_apart);
        if let Some(patch) = patch {
            // Deep overlaps may reach through a thin body; the properties are those of contact.
            if separation > -0.005 {
                check(&a, &b, &patch, margin);
            }
            counts[patch.points.len()] += 1;
        }
    }
    println!("patches by number of points: {counts:?}");
    assert!(counts[1..=6].iter().all(|&count| count > 20));
}

/// Without parallel faces in play, the deepest point of an overlap is as deep as the separation, but for the
/// preference of faces.
#[test]
fn the_deepest_point_shows_the_separation() {
    let mut random = Random(15);
    let (mut exact, mut all) = (0, 0);
    for case in 0..4000 {
        let vertices = 6 + random.below(24);
        let a = (stone(&mut random, vertices), random.pose());
        let mut b = (stone(&mut random, vertices), random.pose());
        let direction = random.direction();
        let (mut near, mut far) = (0.0, a.0.bounding_radius + b.0.bounding_radius);
        let target = -f64::powf(10.0, random.between(-6.0, -1.0));
        while far - near > 1e-9 {
            let middle = 0.5 * (near + far);
            b.1.position = a.1.position + direction * middle;
            if oracle::search(&a, &b).0 < target { near = middle } else { far = middle }
        }
        let (separation, _) = oracle::search(&a, &b);
        if separation >= 0.0 {
            continue;
        }
        let patch = collide_pair(&a, &b, 0.0, &mut Hint::default()).expect("they overlap");
        let deepest = patch.points.iter().map(|point| point.gap).fold(f64::INFINITY, f64::min);
        let allowed = 0.011 * separation.abs() + 2e-6 * a.0.bounding_radius.min(b.0.bounding_radius);
        assert!((deepest - separation).abs() <= 1e-3, "case {case}: {deepest} but {separation}");
        exact += usize::from((deepest - separation).abs() <= allowed);
        all += 1;
    }
    println!("{exact} of {all} overlaps show their separation");
    assert!(all > 3900 && exact * 100 >= all * 99);
}

#[test]
fn swapping_mirrors_every_bit() {
    let mut random = Random(11);
    let mut compared = 0;
    for _ in 0..10_000 {
        let [a, b] = any_pair(&mut random);
        if a == b {
            continue;
        }
        let forward = collide_pair(&a, &b, 0.1, &mut Hint::default());
        let backward = collide_pair(&b, &a, 0.1, &mut Hint::default()).map(Patch::mirrored);
        assert_eq!(forward, backward);
        compared += usize::from(forward.is_some());
    }
    assert!(compared > 3000);
}

#[test]
fn rigid_motion_moves_the_patch() {
    let mut random = Random(12);
    let mut compared = 0;
    for case in 0..3000 {
        let vertices = 6 + random.below(20);
        let a = (stone(&mut random, vertices), random.pose());
        let mut b = (stone(&mut random, vertices), random.pose());
        let reach = a.0.bounding_radius + b.0.bounding_radius;
        b.1.position = a.1.position + random.direction() * reach * random.between(0.3, 0.8);
        let motion = random.pose();
        let (moved_a, moved_b) = ((a.0.clone(), motion.compose(&a.1)), (b.0.clone(), motion.compose(&b.1)));
        let here = collide_pair(&a, &b, 0.05, &mut Hint::default());
        let there = collide_pair(&moved_a, &moved_b, 0.05, &mut Hint::default());
        assert_eq!(here.is_some(), there.is_some(), "case {case}");
        let (Some(here), Some(there)) = (here, there) else { continue };
        compared += 1;
        assert!((motion.direction(&here.normal) - there.normal).norm() < 1e-11, "case {case}");
        assert_eq!(here.points.len(), there.points.len());
        for point in &here.points {
            let same = |other: &&PatchPoint| {
                (motion.point(&point.on_a) - other.on_a).norm() < 1e-10
                    && (motion.point(&point.on_b) - other.on_b).norm() < 1e-10
                    && (point.gap - other.gap).abs() < 1e-12
            };
            assert!(there.points.iter().any(|other| same(&other)), "case {case}");
        }
    }
    assert!(compared > 1000);
}

fn sorted_features(patch: &Patch) -> Vec<u32> {
    let mut features: Vec<u32> = patch.points.iter().map(|point| point.feature).collect();
    features.sort_unstable();
    features
}

#[test]
fn stacked_boxes_keep_their_points_while_they_rock() {
    let mut random = Random(13);
    let cube = cuboid(0.5, 0.5, 0.5);
    let slab = cuboid(1.0, 0.7, 0.25);
    let small = cuboid(0.3, 0.2, 0.4);
    // (lower, upper, shift): aligned equal cubes, shifted ones, a small box on a slab, a slab on a small box,
    // a cross.
    let stacks = [
        (&cube, &cube, Vec3::zeros()),
        (&cube, &cube, Vec3::new(0.2, 0.0, 0.0)),
        (&cube, &cube, Vec3::new(0.2, -0.3, 0.0)),
        (&slab, &small, Vec3::new(0.1, 0.05, 0.0)),
        (&small, &slab, Vec3::new(-0.2, 0.1, 0.0)),
        (&slab, &cube, Vec3::new(0.9, 0.0, 0.0)),
    ];
    for (lower, upper, shift) in stacks {
        let height = |shape: &Polyhedron| shape.vertices.iter().map(|vertex| vertex.z).fold(0.0, f64::max);
        let base = (lower.clone(), Pose::identity());
        let rest = shift + Vec3::z() * (height(lower) + height(upper));
        let still = (upper.clone(), Pose::new(Quat::identity(), rest));
        let reference = collide_pair(&base, &still, 0.01, &mut Hint::default()).expect("they touch");
        assert_eq!(reference.points.len(), 4);
        assert_eq!(reference.normal, Vec3::z());
        for _ in 0..500 {
            let angle = f64::powf(10.0, random.between(-9.0, -3.0));
            let wiggle = Quat::new(random.direction() * angle);
            let sink = random.between(-1.0, 1.0) * angle;
            let pose = Pose::new(wiggle, rest + Vec3::z() * sink);
            let rocked = collide_pair(&base, &(upper.clone(), pose), 0.01, &mut Hint::default());
            let rocked = rocked.expect("they still touch");
            assert_eq!(sorted_features(&rocked), sorted_features(&reference), "angle {angle}");
            assert!(rocked.normal.cross(&Vec3::z()).norm() <= angle * 1.001 + 1e-15);
            for point in &rocked.points {
                assert!((point.gap - sink).abs() <= 1.5 * angle);
            }
        }
    }
}

#[test]
fn the_gap_goes_through_zero() {
    let base = (cuboid(1.0, 1.0, 1.0), Pose::identity());
    let on_top = cuboid(0.5, 0.5, 0.5);
    for step in -10..=10 {
        let gap = 1e-4 * f64::from(step);
        let pose = Pose::new(Quat::new(Vec3::z() * 0.3), Vec3::new(0.2, 0.1, 1.5 + gap));
        let patch = collide_pair(&base, &(on_top.clone(), pose), 0.01, &mut Hint::default()).unwrap();
        assert_eq!(patch.points.len(), 4);
        assert!(patch.points.iter().all(|point| (point.gap - gap).abs() < 1e-15));
        // On its corner, and on its edge.
        let corner = Quat::rotation_between(&Vec3::new(1.0, 1.0, 1.0), &-Vec3::z()).unwrap();
        let pose = Pose::new(corner, Vec3::z() * (1.0 + 0.5 * 3.0_f64.sqrt() + gap));
        let patch = collide_pair(&base, &(on_top.clone(), pose), 0.01, &mut Hint::default()).unwrap();
        assert_eq!(patch.points.len(), 1);
        assert!((patch.points[0].gap - gap).abs() < 1e-14);
        assert!((patch.points[0].on_a - Vec3::z()).norm() < 1e-14);
        let pose = Pose::new(
            Quat::new(Vec3::x() * std::f64::consts::FRAC_PI_4),
            Vec3::z() * (1.0 + 0.5 * 2.0_f64.sqrt() + gap),
        );
        let patch = collide_pair(&base, &(on_top.clone(), pose), 0.01, &mut Hint::default()).unwrap();
        assert_eq!(patch.points.len(), 2);
        for point in &patch.points {
            assert!((point.gap - gap).abs() < 1e-14);
            assert!((point.on_a.x.abs() - 0.5).abs() < 1e-14 && point.on_a.y.abs() < 1e-14);
        }
    }
}

#[test]
fn crossing_edges_touch_in_one_point() {
    // Two cubes on their edges, one along x, the other along y.
    let cube = cuboid(0.5, 0.5, 0.5);
    let eighth = std::f64::consts::FRAC_PI_4;
    let lower = (cube.clone(), Pose::new(Quat::new(Vec3::x() * eighth), Vec3::zeros()));
    for gap in [-0.01, 0.0, 0.01] {
        let position = Vec3::new(0.1, 0.2, 2.0_f64.sqrt() + gap);
        let upper = (cube.clone(), Pose::new(Quat::new(Vec3::y() * eighth), position));
        let patch = collide_pair(&lower, &upper, 0.02, &mut Hint::default()).unwrap();
        assert_eq!(patch.points.len(), 1);
        assert!((patch.normal - Vec3::z()).norm() < 1e-14);
        let point = patch.points[0];
        assert!((point.gap - gap).abs() < 1e-14);
        assert!((point.on_a - Vec3::new(0.1, 0.0, 0.5_f64.sqrt())).norm() < 1e-14);
        assert!((point.on_b - Vec3::new(0.1, 0.0, 0.5_f64.sqrt() + gap)).norm() < 1e-14);
    }
}

#[test]
fn nearly_parallel_edges_touch_at_both_ends() {
    // Ridge on ridge, 0.01 % to 0.4 % from parallel, both along x: one is two long, the other one.
    let eighth = std::f64::consts::FRAC_PI_4;
    let lower = (cuboid(1.0, 0.5, 0.5), Pose::new(Quat::new(Vec3::x() * eighth), Vec3::zeros()));
    for angle in [0.0, 1e-9, 1e-4, 2e-4, 1e-3, 4e-3] {
        let rotation = Quat::new(Vec3::z() * angle) * Quat::new(Vec3::x() * eighth);
        let position = Vec3::new(0.2, 0.0, 2.0_f64.sqrt() - 0.001);
        let upper = (cuboid(0.5, 0.5, 0.5), Pose::new(rotation, position));
        let patch = collide_pair(&lower, &upper, 0.01, &mut Hint::default()).unwrap();
        let mut places: Vec<f64> = patch.points.iter().map(|point| point.on_a.x).collect();
        places.sort_by(f64::total_cmp);
        assert_eq!(places.len(), 2, "angle {angle}");
        assert!((places[0] + 0.3).abs() < 0.01 && (places[1] - 0.7).abs() < 0.01, "{places:?} at {angle}");
        assert!(patch.points.iter().all(|point| point.gap < 0.0 && point.gap > -0.0011));
    }
}

#[test]
fn many_cornered_faces() {
    // A hexagon on a large face: its six corners. A twelve-sided one: eight of twelve, most of the area.
    let table = (cuboid(3.0, 3.0, 0.5), Pose::identity());
    for (sides, expected) in [(6, 6), (8, 8), (12, 8), (40, 8)] {
        let body = (prism(sides, 1.0, 0.5), Pose::new(Quat::new(Vec3::z() * 0.1), Vec3::z() * 0.999));
        let patch = collide_pair(&table, &body, 0.01, &mut Hint::default()).unwrap();
        assert_eq!(patch.points.len(), expected);
        let mut corners: Vec<Vec3> = patch.points.iter().map(|point| point.on_a).collect();
        corners.sort_by(|p, q| p.y.atan2(p.x).total_cmp(&q.y.atan2(q.x)));
        let area: f64 =
            (0..corners.len()).map(|k| 0.5 * corners[k].cross(&corners[(k + 1) % corners.len()]).z).sum();
        let whole = 0.5 * sides as f64 * (std::f64::consts::TAU / sides as f64).sin();
        assert!(area >= 0.88 * whole, "{sides} sides: {area} of {whole}");
    }
}

#[test]
fn ten_corners_reduced_to_eight_hold_the_area() {
    let mut random = Random(14);
    for _ in 0..500 {
        let (width, phase) = (random.between(0.3, 1.0), random.between(0.0, 6.0));
        let mut angles: Vec<f64> = (0..10).map(|k| (f64::from(k) + 0.8 * random.unit()) * 0.6283).collect();
        angles.iter_mut().for_each(|angle| *angle += phase);
        let corners: Vec<Vec3> = angles.iter().map(|a| Vec3::new(width * a.cos(), a.sin(), 0.0)).collect();
        let inside = Vec3::new(0.01, 0.02, 0.0);
        let all = corners.iter().map(|&corner| (corner, 0.0)).chain([(inside, 0.0), (inside, 0.5)]);
        let all: Vec<(Vec3, f64)> = all.collect();
        let kept = reduce::keep(&Vec3::z(), all.iter().copied());
        assert_eq!(kept.len(), 8);
        let area = |corners: &[Vec3]| -> f64 {
            (0..corners.len()).map(|k| corners[k].cross(&corners[(k + 1) % corners.len()]).z).sum()
        };
        let left: Vec<Vec3> = kept.iter().map(|&index| all[index].0).collect();
        assert!(area(&left) >= 0.92 * area(&corners), "{}", area(&left) / area(&corners));
        // A deepest point inside stays.
        let mut deep = all.clone();
        deep[10].1 = -1.0;
        assert!(reduce::keep(&Vec3::z(), deep.into_iter()).contains(&10));
    }
}
