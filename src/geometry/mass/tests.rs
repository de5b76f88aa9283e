use super::super::random::Random;
use super::*;
use crate::geometry::convex_hull;
use std::sync::Arc;

fn polyhedron(points: &[Vec3]) -> Shape {
    Shape::polyhedron(convex_hull(points).expect("a hull"))
}

fn box_shape(half: Vec3) -> Shape {
    Shape::polyhedron(Polyhedron::from_box(half))
}

fn random_stone(seed: u64) -> Polyhedron {
    let mut random = Random::new(seed, 0);
    let stretch = Vec3::new(1.0, 0.7, 0.5);
    let shift = random.direction() * 3.0;
    let turn = random.rotation();
    let points: Vec<Vec3> =
        (0..25).map(|_| turn * random.direction().component_mul(&stretch) + shift).collect();
    convex_hull(&points).expect("a hull")
}

/// The full inertia about the centre, in the frame of the shape.
fn inertia(properties: &MassProperties) -> Mat3 {
    let turn = properties.principal_rotation.to_rotation_matrix();
    turn.matrix() * Mat3::from_diagonal(&properties.principal_inertia) * turn.matrix().transpose()
}

#[test]
fn a_box_and_a_sphere_have_their_closed_forms() {
    let half = Vec3::new(0.3, 0.5, 0.11);
    let found = mass_properties(&box_shape(half), 2000.0).expect("a box");
    let mass = 2000.0 * 8.0 * half.product();
    let square = half.component_mul(&half);
    let expected = Vec3::repeat(square.sum()) - square;
    assert!((found.mass / mass - 1.0).abs() < 1e-14);
    assert!((found.principal_inertia / mass - expected / 3.0).amax() < 1e-15);
    assert_eq!(found.principal_rotation, Quat::identity(), "an aligned box stays as it is");
    assert!(found.centre.norm() < 1e-16);

    let ball = mass_properties(&Shape::sphere(0.2), 1000.0).expect("a sphere");
    assert!((ball.mass / (1000.0 * 4.0 / 3.0 * std::f64::consts::PI * 0.008) - 1.0).abs() < 1e-15);
    assert!((ball.principal_inertia / ball.mass - Vec3::repeat(0.4 * 0.04)).amax() < 1e-17);
}

/// The corner tetrahedron (0, e_x, e_y, e_z): V = 1/6, centre 1/4, ∫x² = 1/60, ∫xy = 1/120.
#[test]
fn a_tetrahedron_has_its_closed_form() {
    let corner = [Vec3::zeros(), Vec3::x(), Vec3::y(), Vec3::z()];
    let found = mass_properties(&polyhedron(&corner), 6.0).expect("a tetrahedron");
    assert!((found.mass - 1.0).abs() < 1e-15 && (found.centre - Vec3::repeat(0.25)).amax() < 1e-15);
    let (square, mixed) = (6.0 / 60.0 - 1.0 / 16.0, 6.0 / 120.0 - 1.0 / 16.0);
    let expected = Mat3::from_fn(|i, j| if i == j { 2.0 * square } else { -mixed });
    assert!((inertia(&found) - expected).amax() < 1e-15);
}

/// A pyramid over a regular n-gon of circumradius r, height h: centre at h/4; the polygon's ∫x² = A r² (2 +
/// cos φ)/12.
#[test]
fn a_pyramid_has_its_closed_form() {
    let (sides, r, h) = (7, 0.4, 0.9);
    let angle = std::f64::consts::TAU / sides as f64;
    let mut points: Vec<Vec3> = (0..sides)
        .map(|i| Vec3::new(r * (angle * i as f64).cos(), r * (angle * i as f64).sin(), 0.0))
        .collect();
    points.push(Vec3::new(0.0, 0.0, h));
    let found = mass_properties(&polyhedron(&points), 1.0).expect("a pyramid");
    let area = 0.5 * sides as f64 * r * r * angle.sin();
    let volume = area * h / 3.0;
    assert!((found.mass / volume - 1.0).abs() < 1e-14);
    assert!((found.centre - Vec3::new(0.0, 0.0, h / 4.0)).amax() < 1e-15);
    // A slice at height z is scaled by 1 − z/h: ∫ (1 − z/h)⁴ dz = h/5.
    let square = area * r * r * (2.0 + angle.cos()) / 12.0 * h / 5.0;
    let vertical = volume * h * h * 3.0 / 80.0;
    let expected = Vec3::new(square + vertical, square + vertical, 2.0 * square);
    assert!((found.principal_inertia - expected).amax() < 1e-15, "{found:?}");
    assert!(found.principal_rotation.angle() < 1e-12, "two equal moments leave the frame alone");
}

/// Integrals over the surface instead of the volume, by the divergence theorem with exact quadrature.
#[test]
fn agrees_with_the_divergence_theorem() {
    for seed in 0..40 {
        let stone = random_stone(seed);
        let found = Moments::of_polyhedron(&stone);
        let (mut volume, mut first, mut second) = (0.0, Vec3::zeros(), Mat3::zeros());
        for face in &stone.faces {
            let at = |i: usize| stone.vertices[face.vertices[i] as usize] - found.centre;
            for i in 1..face.vertices.len() - 1 {
                let (a, b, c) = (at(0), at(i), at(i + 1));
                let area = 0.5 * (b - a).cross(&(c - a)).norm();
                // Simpson-like rule, exact for cubics: corners 3, middles of sides 8, centre 27, of 60.
                let nodes = [a, b, c, (a + b) / 2.0, (b + c) / 2.0, (c + a) / 2.0, (a + b + c) / 3.0];
                let weights = [3.0, 3.0, 3.0, 8.0, 8.0, 8.0, 27.0];
                for (x, weight) in nodes.iter().zip(weights) {
                    let flux = area * weight / 60.0 * x.dot(&face.normal);
                    volume += flux / 3.0; // div x = 3
                    first += x * (flux / 4.0); // div (x_i x) = 4 x_i
                    second += x * x.transpose() * (flux / 5.0); // div (x_i x_j x) = 5 x_i x_j
                }
            }
        }
        assert!((volume / found.volume - 1.0).abs() < 1e-12, "seed {seed}");
        assert!(first.amax() < 1e-13);
        assert!((second - found.spread).amax() < 1e-12 * found.spread.amax());
    }
}

/// Random points in the bounding box: 2·10⁵ of them give about 0.4 %.
#[test]
fn agrees_with_monte_carlo() {
    for seed in 0..3 {
        let stone = random_stone(seed);
        let found = Moments::of_polyhedron(&stone);
        let mut random = Random::new(seed, 1);
        let around = crate::geometry::Aabb::empty();
        let around = stone.vertices.iter().fold(around, |all, v| all.with_point(v));
        let (mut count, mut second) = (0.0, Mat3::zeros());
        const N: usize = 200_000;
        for _ in 0..N {
            let point = Vec3::from_fn(|k, _| random.between(around.min[k], around.max[k]));
            let x = point - found.centre;
            if stone.faces.iter().all(|f| f.normal.dot(&point) <= f.offset) {
                count += 1.0;
                second += x * x.transpose();
            }
        }
        let cell = (around.max - around.min).product() / N as f64;
        assert!((count * cell / found.volume - 1.0).abs() < 0.02, "seed {seed}");
        assert!((second * cell - found.spread).amax() < 0.02 * found.spread.amax(), "seed {seed}");
    }
}

#[test]
fn recentred_shapes_are_centred_and_aligned() {
    for seed in 0..40 {
        let stone = Shape::polyhedron(random_stone(seed));
        let mut random = Random::new(seed, 2);
        let pose = Pose::new(random.rotation(), random.direction());
        let cluster = Shape::Cluster(Arc::new([
            Part { pose, convex: Convex::Sphere { radius: 0.3 } },
            Part { pose: Pose::identity(), convex: Convex::Polyhedron(Arc::new(random_stone(seed + 100))) },
        ]));
        for shape in [stone, cluster] {
            let before = mass_properties(&shape, 2700.0).expect("a mass");
            assert!(inertia(&before).symmetric_eigenvalues().min() > 0.0);
            let after = mass_properties(&shape.recentred(&before), 2700.0).expect("a mass");
            let radius = shape.bounding_radius();
            assert!((after.mass / before.mass - 1.0).abs() < 1e-13);
            assert!(after.centre.norm() < 1e-14 * radius, "seed {seed}: {:e}", after.centre.norm());
            assert!(after.principal_rotation.angle() < 1e-10, "seed {seed}: {:?}", after.principal_rotation);
            let change = after.principal_inertia - before.principal_inertia;
            assert!(change.amax() < 1e-12 * before.principal_inertia.amax());
        }
    }
}

#[test]
fn two_half_boxes_are_one_box() {
    let whole = mass_properties(&box_shape(Vec3::new(1.0, 0.3, 0.2)), 5.0).expect("a box");
    let half = Convex::Polyhedron(Arc::new(Polyhedron::from_box(Vec3::new(0.3, 0.5, 0.2))));
    // The halves lie on their side, turned by 90° about z.
    let turn = Quat::from_axis_angle(&Vec3::z_axis(), std::f64::consts::FRAC_PI_2);
    let part = |x: f64| Part { pose: Pose::new(turn, Vec3::new(x, 0.0, 0.0)), convex: half.clone() };
    let pair = mass_properties(&Shape::Cluster(Arc::new([part(-0.5), part(0.5)])), 5.0).expect("a cluster");
    assert!((pair.mass - whole.mass).abs() < 1e-14);
    assert!((inertia(&pair) - inertia(&whole)).amax() < 1e-14);
}

#[test]
fn the_principal_frame_is_the_nearest_one() {
    let mut random = Random::new(77, 0);
    let half = Vec3::new(0.3, 0.5, 0.11);
    for _ in 0..200 {
        let turn = random.rotation();
        let shape = polyhedron(&Polyhedron::from_box(half).rotated(turn).vertices);
        let found = mass_properties(&shape, 1.0).expect("a box");
        // All 24 ways to name the box's axes; none is nearer to the identity.
        let mut nearest = f64::INFINITY;
        let quarter = |axis| Quat::from_axis_angle(&axis, std::f64::consts::FRAC_PI_2);
        for i in 0..4 {
            for j in 0..4 {
                for k in 0..4 {
                    let powers = [(Vec3::x_axis(), i), (Vec3::y_axis(), j), (Vec3::z_axis(), k)];
                    let named =
                        powers.iter().fold(turn, |q, &(axis, n)| (0..n).fold(q, |q, _| q * quarter(axis)));
                    nearest = nearest.min(named.angle());
                }
            }
        }
        assert!((found.principal_rotation.angle() - nearest).abs() < 1e-7);
    }
}

#[test]
fn equal_moments_do_not_turn_the_shape_by_noise() {
    let mut random = Random::new(78, 0);
    for _ in 0..50 {
        let turn = random.rotation();
        let cube = polyhedron(&Polyhedron::from_box(Vec3::repeat(0.3)).rotated(turn).vertices);
        let found = mass_properties(&cube, 1.0).expect("a cube");
        assert_eq!(found.principal_rotation, Quat::identity());
        // A square rod: its axis is found, and the turn about it stays the smallest.
        let rod = polyhedron(&Polyhedron::from_box(Vec3::new(0.3, 0.3, 0.8)).rotated(turn).vertices);
        let found = mass_properties(&rod, 1.0).expect("a rod");
        let axis = turn * Vec3::z();
        let near = axis.iamax();
        let image = found.principal_rotation.to_rotation_matrix().matrix().column(near).into_owned();
        assert!((image.dot(&axis).abs() - 1.0).abs() < 1e-13);
        assert!((found.principal_rotation.angle().cos() - axis[near].abs()).abs() < 1e-12);
        assert!(found.principal_inertia[near] < found.principal_inertia[(near + 1) % 3]);
    }
}

#[test]
fn what_has_no_mass_is_refused() {
    let wall = Shape::Convex(Convex::HalfSpace);
    assert_eq!(mass_properties(&wall, 1.0), Err(MassError::HalfSpace));
    for found in [0.0, -1.0, f64::INFINITY] {
        assert_eq!(mass_properties(&Shape::sphere(1.0), found), Err(MassError::Density { found }));
    }
    assert!(mass_properties(&Shape::sphere(1.0), f64::NAN).is_err());
    assert!(matches!(mass_properties(&Shape::sphere(0.0), 1.0), Err(MassError::Volume { .. })));
    assert!(matches!(mass_properties(&Shape::Cluster(Arc::new([])), 1.0), Err(MassError::Volume { .. })));
}
