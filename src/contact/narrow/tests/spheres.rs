use super::*;

fn sphere(radius: f64) -> Convex {
    Convex::Sphere { radius }
}

fn at(position: Vec3) -> Pose {
    Pose::new(Quat::identity(), position)
}

fn single(patch: Option<Patch>) -> (Vec3, PatchPoint) {
    let patch = patch.expect("a contact");
    assert_eq!(patch.points.len(), 1);
    let point = patch.points[0];
    assert!((patch.normal.norm() - 1.0).abs() < 1e-14);
    assert!(((point.on_b - point.on_a).dot(&patch.normal) - point.gap).abs() < 1e-12);
    (patch.normal, point)
}

#[test]
fn two_spheres() {
    let hint = &mut Hint::default();
    let (a, b) = (sphere(1.0), sphere(0.5));
    let (pose_a, pose_b) = (at(Vec3::new(1.0, 2.0, 3.0)), at(Vec3::new(1.0, 2.0, 4.6)));
    let (normal, point) = single(collide((&a, &pose_a), (&b, &pose_b), 0.2, hint));
    assert_eq!(normal, Vec3::z());
    assert!((point.gap - 0.1).abs() < 1e-15);
    assert_eq!(point.on_a, Vec3::new(1.0, 2.0, 4.0));
    assert_eq!(collide((&a, &pose_a), (&b, &pose_b), 0.05, hint), None);
    // Concentric: some unit normal, the right depth, and mirrored when swapped.
    let forward = collide((&a, &pose_a), (&b, &pose_a), 0.0, hint);
    assert!((single(forward.clone()).1.gap + 1.5).abs() < 1e-15);
    assert_eq!(forward.map(Patch::mirrored), collide((&b, &pose_a), (&a, &pose_a), 0.0, hint));
    assert!(single(collide((&a, &pose_a), (&a, &pose_a), 0.0, hint)).0.norm() == 1.0);
    // So close that the square of the distance underflows.
    let close = at(Vec3::x() * 1e-200);
    assert!(single(collide((&a, &at(Vec3::zeros())), (&b, &close), 0.0, hint)).1.gap.is_finite());
}

#[test]
fn sphere_and_half_space() {
    let hint = &mut Hint::default();
    let wall = at(Vec3::z());
    let (normal, point) = single(collide(
        (&sphere(0.5), &at(Vec3::new(3.0, 4.0, 1.4))),
        (&Convex::HalfSpace, &wall),
        0.0,
        hint,
    ));
    assert_eq!(normal, -Vec3::z());
    assert!((point.gap + 0.1).abs() < 1e-15);
    assert!((point.on_b - Vec3::new(3.0, 4.0, 1.0)).norm() < 1e-15);
    assert!((point.on_a - Vec3::new(3.0, 4.0, 0.9)).norm() < 1e-15);
}

/// Against the closest point found by descending over all faces, edges and vertices one by one.
#[test]
fn sphere_and_polyhedron_keep_the_true_distance() {
    let mut random = Random(30);
    let (mut touching, mut inside) = (0, 0);
    for case in 0..3000 {
        let body = (any_shape(&mut random), random.pose());
        let centre = body.1.position + random.direction() * 1.5 * random.unit();
        let radius = random.between(0.05, 0.5);
        let convex = Convex::Polyhedron(body.0.clone());
        let depth = oracle::outside(&body, &centre);
        // A tiny tetrahedron around the centre has its distance up to its own size.
        let distance = if depth <= 0.0 { depth } else { oracle::distance(&body, &dot(centre)) };
        let patch = collide((&convex, &body.1), (&sphere(radius), &at(centre)), 0.05, &mut Hint::default());
        let mirror = collide((&sphere(radius), &at(centre)), (&convex, &body.1), 0.05, &mut Hint::default());
        assert_eq!(patch.clone().map(Patch::mirrored), mirror);
        if (distance - radius - 0.05).abs() < 1e-6 {
            continue;
        }
        assert_eq!(patch.is_some(), distance - radius <= 0.05, "case {case}");
        if patch.is_some() {
            touching += 1;
            inside += usize::from(depth <= 0.0);
            let (_, point) = single(patch);
            assert!((point.gap - (distance - radius)).abs() < 2e-7, "case {case}");
            assert!(oracle::outside(&body, &point.on_a).abs() < 1e-9);
            assert!(((point.on_b - centre).norm() - radius).abs() < 1e-12);
        }
    }
    assert!(touching > 500 && inside > 100);
}

/// A tetrahedron of size 1e-7.
fn dot(centre: Vec3) -> (Arc<Polyhedron>, Pose) {
    let corners = [[1, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]];
    let points: Vec<Vec3> = corners.iter().map(|c| Vec3::from_fn(|k, _| f64::from(c[k]) * 5e-8)).collect();
    (hull(&points), at(centre))
}

#[test]
fn centre_on_the_surface() {
    let cube = Convex::Polyhedron(cuboid(1.0, 1.0, 1.0));
    for centre in [Vec3::z(), Vec3::new(1.0, 0.0, 1.0), Vec3::new(1.0, 1.0, 1.0), Vec3::zeros()] {
        for nudge in [0.0, 1e-300, 1e-17, 1e-13, -1e-13] {
            let pose = at(centre * (1.0 + nudge));
            let patch =
                collide((&cube, &Pose::identity()), (&sphere(0.25), &pose), 0.0, &mut Hint::default());
            let (normal, point) = single(patch);
            let expected = if centre == Vec3::zeros() { -1.25 } else { -0.25 };
            assert!((point.gap - expected).abs() < 1e-12);
            assert!(normal.dot(&centre) >= -1e-9);
        }
    }
}
