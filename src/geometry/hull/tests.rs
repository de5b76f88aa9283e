use super::*;
use crate::geometry::Quat;
use proptest::prelude::*;
use std::f64::consts::TAU;

fn extent(points: &[Vec3]) -> f64 {
    let (min, max) = points.iter().fold((points[0], points[0]), |(a, b), p| (a.inf(p), b.sup(p)));
    (max - min).max()
}

/// Every promise of `Polyhedron` and of `convex_hull`, checked from scratch.
fn assert_sound(polyhedron: &Polyhedron, points: &[Vec3]) {
    let tolerance = 4.0 * RELATIVE_TOLERANCE * extent(points);
    let Polyhedron { vertices, faces, edges, bounding_radius } = polyhedron;
    assert_eq!(vertices.len() + faces.len(), edges.len() + 2, "Euler");
    for face in faces {
        assert!(face.vertices.len() >= 3);
        assert!((face.normal.norm() - 1.0).abs() < 1e-14);
        for point in points {
            assert!(face.normal.dot(point) - face.offset <= tolerance, "a point is outside");
        }
        for &v in &face.vertices {
            let gap = face.normal.dot(&vertices[v as usize]) - face.offset;
            assert!(gap.abs() <= tolerance, "a vertex of a face is {gap:e} off its plane");
        }
    }
    let mut borders = 0;
    for (index, face) in faces.iter().enumerate() {
        for (i, &from) in face.vertices.iter().enumerate() {
            let to = face.vertices[(i + 1) % face.vertices.len()];
            let side = usize::from(from > to);
            let edge = edges.iter().find(|e| e.vertices == [from.min(to), from.max(to)]).expect("no edge");
            assert_eq!(edge.faces[side] as usize, index);
            borders += 1;
        }
    }
    assert_eq!(borders, 2 * edges.len());
    for vertex in 0..vertices.len() as u32 {
        assert!(faces.iter().filter(|f| f.vertices.contains(&vertex)).count() >= 3);
    }
    let mut rest = points.iter();
    assert!(vertices.iter().all(|v| rest.any(|p| p == v)), "vertices are input points in input order");
    assert_eq!(*bounding_radius, vertices.iter().map(|v| v.norm()).fold(0.0, f64::max));
}

fn hull(points: &[Vec3]) -> Polyhedron {
    let polyhedron = convex_hull(points).expect("a hull");
    assert_sound(&polyhedron, points);
    polyhedron
}

/// Small deterministic numbers in [0, 1).
fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn turned(points: &[Vec3], seed: u64) -> Vec<Vec3> {
    let mut next = numbers(seed);
    let rotation = Quat::from_euler_angles(next() * TAU, next() * TAU, next() * TAU);
    let shift = Vec3::new(next(), next(), next());
    points.iter().map(|p| rotation * p + shift).collect()
}

/// A cube with points all over its faces, its edges and its inside.
fn lattice(per_side: usize) -> Vec<Vec3> {
    let at = |i: usize| i as f64 / (per_side - 1) as f64 - 0.5;
    (0..per_side.pow(3))
        .map(|n| Vec3::new(at(n % per_side), at(n / per_side % per_side), at(n / per_side / per_side)))
        .collect()
}

#[test]
fn a_lattice_is_a_cube() {
    for per_side in [2, 3, 6] {
        let cube = hull(&lattice(per_side));
        assert_eq!((cube.vertices.len(), cube.faces.len(), cube.edges.len()), (8, 6, 12));
        assert!(cube.faces.iter().all(|f| f.offset == 0.5 && f.normal.amax() == 1.0), "exact planes");
        for seed in 0..20 {
            let cube = hull(&turned(&lattice(per_side), seed));
            assert_eq!((cube.vertices.len(), cube.faces.len(), cube.edges.len()), (8, 6, 12), "seed {seed}");
        }
    }
}

#[test]
fn a_prism_has_two_caps() {
    for sides in [3, 5, 12, 60] {
        let ring = |z: f64| {
            (0..sides).map(move |i| {
                let angle = TAU * i as f64 / sides as f64;
                Vec3::new(angle.cos(), angle.sin(), z)
            })
        };
        let points: Vec<Vec3> = ring(0.0).chain(ring(3.0)).collect();
        for seed in 0..10 {
            let prism = hull(&turned(&points, seed));
            assert_eq!((prism.vertices.len(), prism.faces.len()), (2 * sides, sides + 2));
            assert_eq!(prism.faces.iter().filter(|f| f.vertices.len() == sides).count(), 2);
        }
    }
}

#[test]
fn a_random_sphere_keeps_all_its_points() {
    let mut next = numbers(7);
    let points: Vec<Vec3> =
        (0..2000).map(|_| Vec3::new(next() - 0.5, next() - 0.5, next() - 0.5).normalize()).collect();
    let points = &points[..];
    let polyhedron = convex_hull(points).expect("a hull");
    assert_eq!(polyhedron.vertices, points, "all of them, in order");
    assert_eq!(polyhedron.edges.len(), 3 * 2000 - 6);
}

/// The hull's triangles by trying all triples of points: those with everything on one side.
fn brute_force_faces(points: &[Vec3]) -> Vec<[usize; 3]> {
    let mut found = Vec::new();
    for a in 0..points.len() {
        for b in a + 1..points.len() {
            for c in b + 1..points.len() {
                let normal = (points[b] - points[a]).cross(&(points[c] - points[a]));
                let sides: Vec<f64> = points.iter().map(|p| normal.dot(&(p - points[a]))).collect();
                let others = (0..points.len()).filter(|i| ![a, b, c].contains(i));
                let above = others.clone().filter(|&i| sides[i] > 0.0).count();
                if above == 0 || above == points.len() - 3 {
                    found.push([a, b, c]);
                }
            }
        }
    }
    found
}

#[test]
fn agrees_with_all_triples() {
    for seed in 0..40 {
        let mut next = numbers(seed);
        let points: Vec<Vec3> = (0..18).map(|_| Vec3::new(next(), next(), next())).collect();
        let polyhedron = hull(&points);
        let index =
            |v: u32| points.iter().position(|p| *p == polyhedron.vertices[v as usize]).expect("a point");
        let mut faces: Vec<[usize; 3]> = polyhedron
            .faces
            .iter()
            .map(|f| {
                let mut corners = [0, 1, 2].map(|i| index(f.vertices[i]));
                corners.sort_unstable();
                corners
            })
            .collect();
        faces.sort_unstable();
        assert_eq!(faces, brute_force_faces(&points), "seed {seed}");
    }
}

#[test]
fn slivers_and_needles_stay_sound() {
    for seed in 0..60 {
        for thickness in [1e-2, 1e-5, 1e-7, 1e-8, 3e-9] {
            let mut next = numbers(seed);
            let flat: Vec<Vec3> = (0..40).map(|_| Vec3::new(next(), next(), thickness * next())).collect();
            let needle: Vec<Vec3> =
                (0..40).map(|_| Vec3::new(next(), thickness * next(), thickness * next())).collect();
            for cloud in [flat, needle] {
                match convex_hull(&turned(&cloud, seed)) {
                    Ok(polyhedron) => assert_sound(&polyhedron, &turned(&cloud, seed)),
                    Err(error) => assert!(thickness < 1e-7, "thickness {thickness:e}: {error}"),
                }
            }
        }
    }
}

#[test]
fn faces_that_are_flat_but_for_noise_merge() {
    for seed in 0..30 {
        let mut next = numbers(seed);
        let noisy: Vec<Vec3> = turned(&lattice(5), seed)
            .iter()
            .map(|p| p + 1e-10 * Vec3::new(next() - 0.5, next() - 0.5, next() - 0.5))
            .collect();
        let cube = hull(&noisy);
        assert_eq!((cube.vertices.len(), cube.faces.len()), (8, 6), "seed {seed}");
    }
}

#[test]
fn repeated_points_count_once() {
    let cube = lattice(2);
    let many: Vec<Vec3> = cube.iter().chain(&cube).chain(&cube).copied().collect();
    assert_eq!(hull(&many), hull(&cube));
    let near: Vec<Vec3> = cube.iter().map(|p| p.add_scalar(3e-10)).collect();
    assert_eq!(hull(&[cube.clone(), near].concat()), hull(&cube));
}

#[test]
fn tiny_huge_and_distant_bodies() {
    for scale in [1e-29, 1e-6, 1e6, 1e29] {
        let points: Vec<Vec3> = turned(&lattice(3), 1).iter().map(|p| p * scale).collect();
        assert_eq!(hull(&points).faces.len(), 6);
    }
    let distant: Vec<Vec3> = turned(&lattice(4), 2).iter().map(|p| p + Vec3::new(1e9, -3e9, 2e9)).collect();
    assert_eq!(convex_hull(&distant).expect("a hull").faces.len(), 6);
}

#[test]
fn what_has_no_volume_is_refused() {
    let point = |x: f64, y: f64| Vec3::new(x, y, 0.3 * x - 0.1 * y);
    assert_eq!(convex_hull(&[Vec3::zeros(); 3]), Err(HullError::TooFew { found: 3 }));
    assert!(matches!(convex_hull(&[point(1.0, 2.0); 9]), Err(HullError::Coincident { .. })));
    assert!(matches!(convex_hull(&[Vec3::zeros(); 9]), Err(HullError::Coincident { .. })));
    let line: Vec<Vec3> = (0..9).map(|i| point(f64::from(i) * 0.1, f64::from(i) * 0.7)).collect();
    assert!(matches!(convex_hull(&line), Err(HullError::Collinear { .. })));
    let plane: Vec<Vec3> = (0..50).map(|i| point(f64::from(i % 7) * 0.1, f64::from(i / 7) * 0.7)).collect();
    for seed in 0..20 {
        assert!(matches!(convex_hull(&turned(&plane, seed)), Err(HullError::Coplanar { .. })));
    }
    for bad in [f64::NAN, f64::INFINITY] {
        let mut points = lattice(2);
        points[5].y = bad;
        assert!(matches!(convex_hull(&points), Err(HullError::NotFinite { index: 5, .. })));
    }
    for scale in [1e200, f64::MAX] {
        let huge: Vec<Vec3> = lattice(2).iter().map(|p| p * 2.0 * scale).collect();
        assert!(matches!(convex_hull(&huge), Err(HullError::Size { .. })));
    }
    let tiny: Vec<Vec3> = lattice(2).iter().map(|p| p * 1e-200).collect();
    assert!(matches!(convex_hull(&tiny), Err(HullError::Size { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Small integers give every kind of coplanar, collinear and repeated points.
    #[test]
    fn small_integers(coordinates in prop::collection::vec([0i8..4, 0i8..4, 0i8..4], 4..40), seed in 0u64..1000) {
        let points: Vec<Vec3> = coordinates.iter().map(|c| Vec3::from(c.map(f64::from))).collect();
        let turned = turned(&points, seed);
        match (convex_hull(&points), convex_hull(&turned)) {
            (Ok(straight), Ok(oblique)) => {
                assert_sound(&straight, &points);
                assert_sound(&oblique, &turned);
                // Rotation rounds the coordinates, and must not change the combinatorics.
                let loops = |p: &Polyhedron| p.faces.iter().map(|f| f.vertices.clone()).collect::<Vec<_>>();
                prop_assert_eq!(loops(&straight), loops(&oblique));
            }
            (straight, oblique) => prop_assert!(straight.is_err() && oblique.is_err()),
        }
    }

    /// Anything goes in, and what comes out is sound.
    #[test]
    fn clouds(coordinates in prop::collection::vec([-1.0f64..1.0, -1.0f64..1.0, -1.0f64..1.0], 4..200), power in 0i32..12) {
        let points: Vec<Vec3> =
            coordinates.iter().map(|c| Vec3::new(c[0], c[1] * 0.1f64.powi(power), c[2].powi(power))).collect();
        if let Ok(polyhedron) = convex_hull(&points) {
            assert_sound(&polyhedron, &points);
        }
    }
}
