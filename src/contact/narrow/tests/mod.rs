//! Oracles: every axis without any pruning, and the true distance over all pairs of features.

mod default_path;
mod degenerate;
mod oracle;
mod patches;
mod separations;
mod spheres;

use super::*;
use crate::geometry::{Polyhedron, Quat, convex_hull};
use std::sync::Arc;

/// A small generator of its own, so that a failure replays.
pub struct Random(pub u64);

impl Random {
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    pub fn below(&mut self, count: usize) -> usize {
        (self.unit() * count as f64) as usize
    }

    pub fn direction(&mut self) -> Vec3 {
        loop {
            let inside = Vec3::new(self.unit(), self.unit(), self.unit()).add_scalar(-0.5);
            if (0.01..0.25).contains(&inside.norm_squared()) {
                return inside.normalize();
            }
        }
    }

    pub fn rotation(&mut self) -> Quat {
        let angle = self.between(-3.1, 3.1);
        Quat::new(self.direction() * angle)
    }

    pub fn pose(&mut self) -> Pose {
        let position = self.direction() * self.unit();
        Pose::new(self.rotation(), position)
    }
}

pub fn hull(points: &[Vec3]) -> Arc<Polyhedron> {
    Arc::new(convex_hull(points).expect("test shapes have a volume"))
}

pub fn cuboid(x: f64, y: f64, z: f64) -> Arc<Polyhedron> {
    let corners: Vec<Vec3> = (0..8)
        .map(|k| {
            Vec3::new(
                if k & 1 == 0 { -x } else { x },
                if k & 2 == 0 { -y } else { y },
                if k & 4 == 0 { -z } else { z },
            )
        })
        .collect();
    hull(&corners)
}

pub fn prism(sides: usize, radius: f64, height: f64) -> Arc<Polyhedron> {
    let corners: Vec<Vec3> = (0..2 * sides)
        .map(|k| {
            let angle = (k / 2) as f64 * std::f64::consts::TAU / sides as f64;
            Vec3::new(radius * angle.cos(), radius * angle.sin(), if k % 2 == 0 { -height } else { height })
        })
        .collect();
    hull(&corners)
}

/// A stone: points on an ellipsoid, roughly centred.
pub fn stone(random: &mut Random, vertices: usize) -> Arc<Polyhedron> {
    let axes = Vec3::new(random.between(0.5, 1.0), random.between(0.5, 1.0), random.between(0.4, 1.0));
    let size = random.between(0.5, 2.0);
    loop {
        let points: Vec<Vec3> =
            (0..vertices).map(|_| random.direction().component_mul(&axes) * size).collect();
        let centre: Vec3 = points.iter().sum::<Vec3>() / vertices as f64;
        let centred: Vec<Vec3> = points.iter().map(|point| point - centre).collect();
        if let Ok(polyhedron) = convex_hull(&centred) {
            return Arc::new(polyhedron);
        }
    }
}

/// All kinds of shapes, mostly small ones since the oracle is slow.
pub fn any_shape(random: &mut Random) -> Arc<Polyhedron> {
    match random.below(8) {
        0 => cuboid(1.0, 1.0, 1.0),
        1 => cuboid(random.between(0.2, 1.0), random.between(0.2, 1.0), random.between(0.2, 1.0)),
        2 => prism(3 + random.below(5), random.between(0.3, 1.0), random.between(0.2, 1.0)),
        3 => prism(3 + random.below(3), 0.05, 1.5),
        4 => cuboid(1.0, 0.8, 0.01),
        _ => {
            let vertices = 4 + random.below(12);
            stone(random, vertices)
        }
    }
}

/// Rotations that are apt to give parallel faces and edges.
pub fn special_rotation(random: &mut Random) -> Quat {
    let quarter = std::f64::consts::FRAC_PI_2;
    let turns =
        [Vec3::x(), Vec3::y(), Vec3::z()].map(|axis| Quat::new(axis * quarter * random.below(4) as f64));
    let exact = turns[0] * turns[1] * turns[2];
    match random.below(3) {
        0 => exact,
        1 => {
            let axis = [Vec3::x(), Vec3::y(), Vec3::z()][random.below(3)];
            Quat::new(axis * random.between(-1.5, 1.5)) * exact
        }
        _ => {
            let tiny = f64::powf(10.0, random.between(-12.0, -2.0));
            Quat::new(random.direction() * tiny) * exact
        }
    }
}

/// A pair from deep inside one another to apart.
pub fn any_pair(random: &mut Random) -> [(Arc<Polyhedron>, Pose); 2] {
    let a = any_shape(random);
    let b = if random.below(5) == 0 { a.clone() } else { any_shape(random) };
    let special = random.below(3) == 0;
    let pose_a = if special { Pose::identity() } else { random.pose() };
    let rotation = if special { special_rotation(random) } else { random.rotation() };
    let direction = if special && random.below(2) == 0 {
        [Vec3::x(), -Vec3::y(), Vec3::z()][random.below(3)]
    } else {
        random.direction()
    };
    let reach = a.bounding_radius + b.bounding_radius;
    let distance = match random.below(10) {
        0 => 0.0,
        1 => random.between(0.0, 1e-3),
        _ => random.between(0.0, 1.2),
    };
    let pose_b = Pose::new(rotation, pose_a.position + direction * reach * distance);
    [(a, pose_a), (b, pose_b)]
}

/// A pair whose separation is `gap` up to 1e-9, by moving b along a line.
pub fn pair_with_gap(random: &mut Random, gap: f64) -> [(Arc<Polyhedron>, Pose); 2] {
    let [a, mut b] = any_pair(random);
    let direction = random.direction();
    let reach = 2.0 * (a.0.bounding_radius + b.0.bounding_radius) + gap.abs();
    let (mut near, mut far) = (0.0, reach);
    while far - near > 1e-10 {
        let middle = 0.5 * (near + far);
        b.1.position = a.1.position + direction * middle;
        if oracle::search(&a, &b).0 < gap { near = middle } else { far = middle }
    }
    [a, b]
}

pub fn collide_pair(
    a: &(Arc<Polyhedron>, Pose),
    b: &(Arc<Polyhedron>, Pose),
    margin: f64,
    hint: &mut Hint,
) -> Option<Patch> {
    let (shape_a, shape_b) = (Convex::Polyhedron(a.0.clone()), Convex::Polyhedron(b.0.clone()));
    collide((&shape_a, &a.1), (&shape_b, &b.1), margin, hint)
}
