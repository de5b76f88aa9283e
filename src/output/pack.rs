//! Bodies as columns of numbers, and back, to the last bit.
//!
//! Shapes are nested lists (bodies have parts, parts have vertices, faces and edges, faces have corners).
//! Each level is a table; a row names the first of its children and how many there are, and children of
//! consecutive rows are consecutive. So any range of bodies finds its own rows in every table.

use crate::geometry::{Columns, Convex, Edge, Face, Part, Polyhedron, Pose, Quat, Shape, Vec3};
use crate::scene::{Anchor, Body, BodyId, Motion};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// First child and number of children of each row.
#[derive(Debug, Default)]
pub(super) struct Children {
    pub first: Vec<u64>,
    pub count: Vec<u32>,
}

impl Children {
    fn push(&mut self, count: usize) {
        let next = self.first.last().map_or(0, |first| first + u64::from(self.count[self.count.len() - 1]));
        self.first.push(next);
        self.count.push(count as u32);
    }

    /// Counts `first` from a later row.
    pub fn shift(&mut self, by: u64) {
        self.first.iter_mut().for_each(|first| *first += by);
    }

    /// The rows of all children; an error if they are not consecutive.
    pub fn range(&self) -> Result<Range<u64>, String> {
        let start = self.first.first().copied().unwrap_or(0);
        let mut next = start;
        for (&first, &count) in self.first.iter().zip(&self.count) {
            if first != next {
                return Err(format!("a row begins its list at {first}, not at {next}"));
            }
            next = next.checked_add(u64::from(count)).ok_or("a list has no end")?;
        }
        Ok(start..next)
    }

    /// Where the children of a row stand among the children of all rows here.
    fn of(&self, row: usize) -> Range<usize> {
        let start = (self.first[row] - self.first[0]) as usize;
        start..start + self.count[row] as usize
    }
}

/// Numbers of an anchor.
pub(super) const ANCHOR: usize = 8;

/// The columns of some consecutive bodies, named as the datasets are.
#[derive(Debug, Default)]
pub(super) struct Packed {
    pub id: Vec<u64>,
    pub group: Vec<u32>,
    pub material: Vec<u32>,
    /// 0 fixed, 1 kinematic, 2 free.
    pub motion: Vec<u8>,
    /// Which prescribed motion; 0 unless kinematic.
    pub prescribed: Vec<u32>,
    /// 0: a single convex; 1: a cluster.
    pub cluster: Vec<u8>,
    pub mass: Vec<f64>,
    pub inertia: Vec<f64>,
    pub position: Vec<f64>,
    /// Quaternion i, j, k, w.
    pub rotation: Vec<f64>,
    pub velocity: Vec<f64>,
    pub angular_velocity: Vec<f64>,
    pub angular_momentum: Vec<f64>,
    /// Position, rotation and reach; a reach below zero where there is none.
    pub anchor: Vec<f64>,
    /// What integrators remember of bodies.
    pub memories: Children,
    pub memory: Vec<f64>,
    pub parts: Children,
    /// The code of its kind, see [`Primitive`](crate::geometry::Primitive).
    pub part_kind: Vec<u8>,
    pub part_position: Vec<f64>,
    pub part_rotation: Vec<f64>,
    /// [`Columns::radius`]: of a sphere; of a polyhedron the bounding radius.
    pub part_radius: Vec<f64>,
    pub vertices: Children,
    pub faces: Children,
    pub edges: Children,
    pub vertex: Vec<f64>,
    pub face_normal: Vec<f64>,
    pub face_offset: Vec<f64>,
    pub corners: Children,
    pub corner: Vec<u32>,
    /// Two vertices, two faces.
    pub edge: Vec<u32>,
}

impl Packed {
    pub fn new<'a>(bodies: impl IntoIterator<Item = &'a Body>) -> Self {
        let mut packed = Packed::default();
        bodies.into_iter().for_each(|body| packed.push(body));
        packed
    }

    /// About what the columns take.
    pub fn bytes(&self) -> u64 {
        let (bodies, parts, faces) = (self.id.len(), self.part_kind.len(), self.face_offset.len());
        let rest = 8 * (self.vertex.len() + self.memory.len()) + 4 * (self.corner.len() + self.edge.len());
        (276 * bodies + 104 * parts + 44 * faces + rest) as u64
    }

    fn push(&mut self, body: &Body) {
        let (motion, prescribed) = match body.motion {
            Motion::Fixed => (0, 0),
            Motion::Kinematic(index) => (1, index),
            Motion::Free => (2, 0),
            Motion::Machine(index) => (3, index),
        };
        self.id.push(body.id.0);
        self.group.push(body.group);
        self.material.push(body.material);
        self.motion.push(motion);
        self.prescribed.push(prescribed);
        self.cluster.push(u8::from(matches!(body.shape, Shape::Cluster(_))));
        self.mass.push(body.mass);
        self.inertia.extend(body.inertia.as_slice());
        self.position.extend(body.pose.position.as_slice());
        self.rotation.extend(body.pose.rotation.coords.as_slice());
        self.velocity.extend(body.velocity.as_slice());
        self.angular_velocity.extend(body.angular_velocity.as_slice());
        self.angular_momentum.extend(body.angular_momentum.as_slice());
        let Anchor { pose, reach } = body.anchor.unwrap_or(Anchor { pose: Pose::identity(), reach: -1.0 });
        self.anchor.extend(pose.position.as_slice());
        self.anchor.extend(pose.rotation.coords.as_slice());
        self.anchor.push(reach);
        self.memories.push(body.memory.len());
        self.memory.extend(&body.memory);
        self.parts.push(body.shape.parts().count());
        body.shape.parts().for_each(|(pose, convex)| self.push_part(&pose, convex));
    }

    fn push_part(&mut self, pose: &Pose, convex: &Convex) {
        let columns = convex.columns();
        self.part_kind.push(columns.code);
        self.part_position.extend(pose.position.as_slice());
        self.part_rotation.extend(pose.rotation.coords.as_slice());
        self.part_radius.push(columns.radius);
        self.vertices.push(columns.vertices().len());
        columns.vertices().iter().for_each(|vertex| self.vertex.extend(vertex.as_slice()));
        let Some(polyhedron) = columns.solid else {
            for children in [&mut self.faces, &mut self.edges] {
                children.push(0);
            }
            return;
        };
        self.faces.push(polyhedron.faces.len());
        self.edges.push(polyhedron.edges.len());
        for face in &polyhedron.faces {
            self.face_normal.extend(face.normal.as_slice());
            self.face_offset.push(face.offset);
            self.corners.push(face.vertices.len());
            self.corner.extend(&face.vertices);
        }
        for Edge { vertices: [a, b], faces: [left, right] } in &polyhedron.edges {
            self.edge.extend([a, b, left, right]);
        }
    }

    /// Precondition: all columns of a level are as long as its rows, and the ranges of the children cover
    /// their tables.
    pub fn unpack(&self) -> Result<Vec<Body>, String> {
        let mut known = HashMap::new();
        let mut parts = Vec::with_capacity(self.part_kind.len());
        for row in 0..self.part_kind.len() {
            let pose = Pose::new(quaternion(&self.part_rotation, row), vector(&self.part_position, row));
            let convex = Convex::from_columns(self.columns(row, &mut known))?;
            parts.push(Part { pose, convex });
        }
        (0..self.id.len()).map(|row| self.body(row, &parts)).collect()
    }

    fn body(&self, row: usize, parts: &[Part]) -> Result<Body, String> {
        let id = self.id[row];
        let parts = &parts[self.parts.of(row)];
        let shape = match (self.cluster[row], parts) {
            (0, [part]) => Shape::Convex(part.convex.clone()),
            (1, parts) => Shape::Cluster(parts.into()),
            (cluster, parts) => {
                return Err(format!("body {id} has the cluster flag {cluster} and {} parts", parts.len()));
            }
        };
        let motion = match self.motion[row] {
            0 => Motion::Fixed,
            1 => Motion::Kinematic(self.prescribed[row]),
            2 => Motion::Free,
            3 => Motion::Machine(self.prescribed[row]),
            other => return Err(format!("body {id} has the unknown motion {other}")),
        };
        Ok(Body {
            id: BodyId(id),
            group: self.group[row],
            material: self.material[row],
            motion,
            shape,
            mass: self.mass[row],
            inertia: vector(&self.inertia, row),
            pose: Pose::new(quaternion(&self.rotation, row), vector(&self.position, row)),
            velocity: vector(&self.velocity, row),
            angular_velocity: vector(&self.angular_velocity, row),
            angular_momentum: vector(&self.angular_momentum, row),
            anchor: self.anchor.get(ANCHOR * row..ANCHOR * (row + 1)).and_then(anchor),
            memory: match self.memories.first.is_empty() {
                true => Box::default(),
                false => self.memory[self.memories.of(row)].into(),
            },
        })
    }

    fn columns(&self, row: usize, known: &mut HashMap<u128, Arc<Polyhedron>>) -> Columns {
        let vertices = self.vertices.of(row).map(|row| vector(&self.vertex, row));
        let faces = self.faces.of(row).map(|row| Face {
            normal: vector(&self.face_normal, row),
            offset: self.face_offset[row],
            vertices: self.corner[self.corners.of(row)].into(),
        });
        let faces: Vec<Face> = faces.collect();
        let (code, radius) = (self.part_kind[row], self.part_radius[row]);
        if faces.is_empty() {
            return Columns { code, radius, sizes: vertices.collect(), solid: None };
        }
        let edges: Vec<Edge> = self.edges.of(row).map(|row| edge(&self.edge, row)).collect();
        let solid = Polyhedron { vertices: vertices.collect(), faces, edges, bounding_radius: radius };
        Columns { code, radius, sizes: Default::default(), solid: Some(shared(known, solid)) }
    }
}

/// Equal polyhedra of one reading share their memory, as they did when they were made.
fn shared(known: &mut HashMap<u128, Arc<Polyhedron>>, polyhedron: Polyhedron) -> Arc<Polyhedron> {
    let mut hash = Xxh3::new();
    let planes = polyhedron.faces.iter().flat_map(|face| face.normal.iter().chain([&face.offset]));
    for number in polyhedron.vertices.iter().flatten().chain(planes).chain([&polyhedron.bounding_radius]) {
        hash.update(&number.to_bits().to_le_bytes());
    }
    let first = known.entry(hash.digest128()).or_insert_with(|| Arc::new(polyhedron.clone()));
    if **first == polyhedron { first.clone() } else { Arc::new(polyhedron) }
}

fn vector(column: &[f64], row: usize) -> Vec3 {
    Vec3::from_column_slice(&column[3 * row..3 * row + 3])
}

fn quaternion(column: &[f64], row: usize) -> Quat {
    let [i, j, k, w] = [0, 1, 2, 3].map(|n| column[4 * row + n]);
    // Not normalised again: that could change the last bit.
    Quat::new_unchecked(nalgebra::Quaternion::new(w, i, j, k))
}

/// None too where a file of an older version has no such column.
fn anchor(numbers: &[f64]) -> Option<Anchor> {
    let pose = Pose::new(quaternion(&numbers[3..7], 0), vector(numbers, 0));
    (numbers[7] >= 0.0).then_some(Anchor { pose, reach: numbers[7] })
}

fn edge(column: &[u32], row: usize) -> Edge {
    let [a, b, left, right] = [0, 1, 2, 3].map(|n| column[4 * row + n]);
    Edge { vertices: [a, b], faces: [left, right] }
}
