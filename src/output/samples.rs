//! Bodies for the tests of this room.

use super::state::{ImpulseRow, StateHeader};
use crate::geometry::{Convex, Edge, Face, Part, Polyhedron, Pose, Quat, Shape, Vec3};
use crate::scene::{Body, BodyId, Motion};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory of a test's own, removed at the end.
pub struct Directory(PathBuf);

impl std::ops::Deref for Directory {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn directory(name: &str) -> Directory {
    let directory = std::env::temp_dir().join(format!("breccia-output-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    Directory(directory)
}

pub fn tetrahedron(size: f64) -> Arc<Polyhedron> {
    let vertices: Vec<Vec3> = [[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
        .map(|corner| Vec3::from(corner) * size)
        .to_vec();
    let loops = [[0u32, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]];
    let face = |corners: &[u32; 3]| {
        let [a, b, c] = corners.map(|k| vertices[k as usize]);
        let normal = (b - a).cross(&(c - a)).normalize();
        Face { normal, offset: normal.dot(&a), vertices: corners[..].into() }
    };
    let faces: Vec<Face> = loops.iter().map(face).collect();
    let has = |k: u32, edge: [u32; 2]| edge.iter().all(|v| loops[k as usize].contains(v));
    let edge = |a: u32, b: u32| {
        let both: Vec<u32> = (0..4).filter(|&k| has(k, [a, b])).collect();
        Edge { vertices: [a, b], faces: [both[0], both[1]] }
    };
    let edges = vec![edge(0, 1), edge(0, 2), edge(0, 3), edge(1, 2), edge(1, 3), edge(2, 3)];
    Arc::new(Polyhedron { vertices, faces, edges, bounding_radius: size * 3.0_f64.sqrt() })
}

/// A body of every kind in turn, with numbers that use all their bits, among them -0, a denormal and
/// infinity.
pub fn body(id: u64) -> Body {
    let x = id as f64;
    let turn = Quat::from_euler_angles(0.1 * x, 0.7 - x, x / 3.0);
    let place = Vec3::new(x / 7.0, -0.0, (x + 0.1).sqrt());
    let part = |convex, shift| Part { pose: Pose::new(turn, Vec3::x() * shift), convex };
    let shape = match id % 4 {
        0 => Shape::sphere(0.1 + x / 11.0),
        1 => Shape::Convex(Convex::Polyhedron(tetrahedron(0.1 + (id % 3) as f64 / 7.0))),
        2 => Shape::Cluster(Arc::new([
            part(Convex::Sphere { radius: 0.3 }, 0.1),
            part(Convex::Polyhedron(tetrahedron(0.2)), 1.0 / 3.0),
        ])),
        _ => Shape::Convex(Convex::HalfSpace),
    };
    let (motion, mass) = match id % 4 {
        3 => (Motion::Fixed, f64::INFINITY),
        2 => (Motion::Kinematic(id as u32 + 5), f64::INFINITY),
        _ => (Motion::Free, 1.0 / (x + 0.3)),
    };
    Body {
        id: BodyId(id + (1 << 40)),
        group: (id % 3) as u32,
        material: (id % 2) as u32,
        motion,
        shape,
        mass,
        inertia: Vec3::new(0.1, 0.2, 0.3) * mass,
        pose: Pose::new(turn, place),
        velocity: Vec3::new(x.sin(), 5e-324, -x),
        angular_velocity: Vec3::new(1e300, x.cos(), 0.0),
        angular_momentum: Vec3::new(x / 13.0, -1e-300, 0.1),
        anchor: None,
        memory: (0..id % 3).map(|k| x / (k as f64 + 3.0)).collect(),
    }
}

pub fn impulse(k: u64) -> ImpulseRow {
    let x = k as f64;
    ImpulseRow {
        ids: [k, u64::MAX - k],
        parts: [k as u32, 1],
        feature: u32::MAX - k as u32,
        impulse: Vec3::new(x / 3.0, -0.0, 1e-310 * x),
    }
}

pub fn header() -> StateHeader {
    StateHeader {
        time: 0.1 + 0.2,
        step: (1 << 60) + 1,
        code_version: "0.1.0".into(),
        case: "[simulation]\nname = \"Schüttung\"\n".into(),
        groups: vec!["wall, left".into(), "stones \"A\"".into(), "tool".into()],
        materials: vec!["granite".into(), "steel".into()],
        sections: vec![("machines".into(), vec![0, 255, 7]), ("empty".into(), vec![])],
    }
}
