use super::*;

fn finite(patch: &Patch) -> bool {
    let vectors = patch.points.iter().flat_map(|point| [point.on_a, point.on_b]);
    (patch.normal.norm() - 1.0).abs() < 1e-12
        && vectors.chain([patch.normal]).all(|vector| vector.iter().all(|x| x.is_finite()))
        && patch.points.iter().all(|point| point.gap.is_finite())
        && !patch.points.is_empty()
}

#[test]
fn identical_shapes_at_identical_poses() {
    let mut random = Random(20);
    for case in 0..500 {
        let body = (any_shape(&mut random), random.pose());
        let patch = collide_pair(&body, &body, 0.0, &mut Hint::default()).expect("all of it overlaps");
        assert!(finite(&patch), "case {case}");
        let (facets, _) = oracle::separation(&body, &body);
        let (found, _) = oracle::search(&body, &body);
        assert!((facets - found).abs() < 1e-12, "case {case}: {found} but {facets}");
    }
}

#[test]
fn one_inside_the_other() {
    let outer = (cuboid(1.0, 1.0, 1.0), Pose::identity());
    for shift in [0.0, 1e-12, 0.3] {
        let inner = (cuboid(0.1, 0.1, 0.1), Pose::new(Quat::identity(), Vec3::x() * shift));
        let patch = collide_pair(&outer, &inner, 0.0, &mut Hint::default()).unwrap();
        assert!(finite(&patch));
        assert!((patch.points[0].gap + 1.1 - shift).abs() < 1e-12);
    }
}

#[test]
fn far_from_the_origin() {
    let mut random = Random(21);
    for _ in 0..300 {
        let [mut a, mut b] = pair_with_gap(&mut random, -0.01);
        let (here, _) = oracle::search(&a, &b);
        for body in [&mut a, &mut b] {
            body.1.position += Vec3::new(1e6, -1e6, 1e6);
        }
        let (there, _) = oracle::search(&a, &b);
        assert!((here - there).abs() < 1e-9);
        let patch = collide_pair(&a, &b, 0.0, &mut Hint::default()).expect("an overlap of 0.01");
        assert!(finite(&patch));
        for point in &patch.points {
            assert!(((point.on_b - point.on_a).dot(&patch.normal) - point.gap).abs() < 1e-9);
        }
    }
}

#[test]
fn sizes_far_apart_and_tiny_shapes() {
    let mut random = Random(22);
    for scale in [1e-6, 1e-3, 1.0] {
        for _ in 0..200 {
            let stone = stone(&mut random, 12);
            let scaled: Vec<Vec3> = stone.vertices.iter().map(|vertex| vertex * scale).collect();
            let little = (hull(&scaled), Pose::new(random.rotation(), Vec3::zeros()));
            let table = cuboid(10.0, 10.0, 1.0);
            let lowest = oracle::world(&little).iter().map(|x| x.z).fold(f64::INFINITY, f64::min);
            let pose = Pose::new(little.1.rotation, Vec3::new(0.3, 0.2, 1.0 - lowest - 1e-3 * scale));
            let body = (little.0, pose);
            let patch = collide_pair(&(table, Pose::identity()), &body, 0.0, &mut Hint::default()).unwrap();
            assert!(finite(&patch));
            assert!((patch.normal - Vec3::z()).norm() < 1e-12);
            let deepest = patch.points.iter().map(|point| point.gap).fold(0.0, f64::min);
            assert!((deepest + 1e-3 * scale).abs() < 1e-12);
        }
    }
}

#[test]
fn corner_beside_corner_still_has_a_point() {
    let cube = cuboid(0.5, 0.5, 0.5);
    for shift in [Vec3::new(1.01, 1.01, 1.01), Vec3::new(1.01, 1.005, 0.0), Vec3::new(-1.01, 1.0, 1.002)] {
        let a = (cube.clone(), Pose::identity());
        let b = (cube.clone(), Pose::new(Quat::identity(), shift));
        let patch = collide_pair(&a, &b, 0.02, &mut Hint::default()).expect("0.01 apart along an axis");
        assert!(finite(&patch));
        for point in &patch.points {
            assert!((point.gap - 0.01).abs() < 1e-12);
            assert!(oracle::outside(&a, &point.on_a).abs() < 1e-12);
            assert!(oracle::outside(&b, &point.on_b).abs() < 1e-12);
        }
        assert_eq!(collide_pair(&a, &b, 0.009, &mut Hint::default()), None);
    }
}

#[test]
fn half_spaces_and_polyhedra() {
    let floor = Pose::new(Quat::new(Vec3::x() * 0.3), Vec3::new(0.0, 0.0, 2.0));
    let up = floor.direction(&Vec3::z());
    let mut random = Random(23);
    for _ in 0..500 {
        let shape = any_shape(&mut random);
        let convex = Convex::Polyhedron(shape.clone());
        let pose = Pose::new(random.rotation(), floor.position + random.direction() * 2.0);
        let margin = 0.1;
        let heights = shape.vertices.iter().map(|vertex| up.dot(&(pose.point(vertex) - floor.position)));
        let near: Vec<f64> = heights.filter(|&height| height <= margin).collect();
        let patch = collide((&Convex::HalfSpace, &floor), (&convex, &pose), margin, &mut Hint::default());
        let mirror = collide((&convex, &pose), (&Convex::HalfSpace, &floor), margin, &mut Hint::default());
        assert_eq!(patch.clone().map(Patch::mirrored), mirror);
        let Some(patch) = patch else {
            assert!(near.is_empty());
            continue;
        };
        assert_eq!(patch.points.len(), near.len().min(patch.points.len()));
        assert!(near.len() > MAX_POINTS || patch.points.len() == near.len());
        assert_eq!(patch.normal, up);
        let deepest = patch.points.iter().map(|point| point.gap).fold(f64::INFINITY, f64::min);
        let lowest = near.iter().copied().fold(f64::INFINITY, f64::min);
        assert!((deepest - lowest).abs() < 1e-13);
        for point in &patch.points {
            assert!(up.dot(&(point.on_a - floor.position)).abs() < 1e-13);
            assert!(((point.on_b - point.on_a).dot(&up) - point.gap).abs() < 1e-13);
        }
    }
    let identity = Pose::identity();
    let plane = (&Convex::HalfSpace, &identity);
    assert_eq!(collide(plane, plane, 1.0, &mut Hint::default()), None);
}
