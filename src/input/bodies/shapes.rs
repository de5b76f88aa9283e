//! Shapes of the case: reading, orientation, and clusters flattened to plain parts.

use crate::geometry::{Convex, MeshFile, Polyhedron, Pose, Quat, Vec3, convex_hull};
use crate::input::bodies::build::refused;
use crate::input::case::{ClusterPart, NamedShape, ShapeKind};
use crate::input::language::document::Origin;
use crate::input::language::errors::ErrorKind;
use crate::input::language::keys::Range;
use crate::input::language::names::Names;
use crate::input::language::reader::{Reader, TableReader};
use nalgebra::Unit;
use std::cell::RefCell;
use std::sync::Arc;

/// Most parts of a cluster after flattening.
pub(in crate::input) const MAXIMUM_PARTS: usize = 1_000_000;

/// Shapes as far as they could be read, in the order of the file.
pub(in crate::input) struct ReadShapes {
    pub names: Names,
    kinds: Vec<Option<ShapeKind>>,
    used: RefCell<Vec<bool>>,
}

impl ReadShapes {
    /// The shape that a key names.
    pub fn reference(&self, table: &TableReader, key: &str) -> Option<usize> {
        let shape = self.names.reference(table, key)?;
        self.used.borrow_mut()[shape] = true;
        Some(shape)
    }

    /// Whether a shape is known to reach to infinity.
    pub fn is_unbounded(&self, shape: usize) -> bool {
        match &self.kinds[shape] {
            Some(ShapeKind::Convex(convex)) => convex.bounding_radius().is_infinite(),
            Some(ShapeKind::Cluster { parts }) => parts.iter().any(|part| self.is_unbounded(part.shape)),
            None => false,
        }
    }

    /// The plain parts of a shape at `pose`; none if the shape is wrong.
    pub fn plain_parts(&self, shape: usize, pose: &Pose) -> Option<Vec<ClusterPart>> {
        Some(match self.kinds[shape].as_ref()? {
            ShapeKind::Cluster { parts } => parts
                .iter()
                .map(|part| ClusterPart { shape: part.shape, pose: pose.compose(&part.pose) })
                .collect(),
            _ => vec![ClusterPart { shape, pose: *pose }],
        })
    }

    pub fn unused(&self) -> impl Iterator<Item = &String> {
        let used = self.used.borrow().clone();
        self.names.list.iter().zip(used).filter(|(_, used)| !used).map(|(name, _)| name)
    }

    /// The shapes, if all are right.
    pub fn finish(self) -> Option<Vec<NamedShape>> {
        let named = |(name, kind): (String, Option<ShapeKind>)| Some(NamedShape { name, kind: kind? });
        self.names.list.into_iter().zip(self.kinds).map(named).collect()
    }
}

pub(in crate::input) fn read_shapes(tables: &[TableReader]) -> ReadShapes {
    let names = Names::collect(tables.iter());
    let used = RefCell::new(vec![false; tables.len()]);
    let mut shapes = ReadShapes { names, kinds: Vec::new(), used };
    let kinds = tables.iter().map(|table| read_shape(table, &shapes)).collect();
    shapes.kinds = flatten(tables, kinds, &shapes.names);
    shapes
}

/// One shape; a cluster as it is written, so that its parts may be clusters.
fn read_shape(table: &TableReader, shapes: &ReadShapes) -> Option<ShapeKind> {
    match table.variant?.name {
        "sphere" => Some(ShapeKind::Convex(Convex::Sphere { radius: table.number("radius")? })),
        "box" => Some(polyhedron(Polyhedron::from_box(table.field("size")?.vector()? / 2.0))),
        "polyhedron" => read_polyhedron(table),
        "half-space" => Some(ShapeKind::Convex(Convex::HalfSpace)),
        _ => {
            let parts: Vec<_> = table.tables("parts").iter().map(|part| read_part(part, shapes)).collect();
            let parts: Option<Vec<_>> = parts.into_iter().collect();
            let parts = parts?.concat();
            if parts.is_empty() {
                return None;
            }
            if parts.len() > MAXIMUM_PARTS {
                too_many(table.reader, table.origin_of("parts"), &table.join("parts"), parts.len());
                return None;
            }
            Some(ShapeKind::Cluster { parts })
        }
    }
}

pub(in crate::input) fn too_many(reader: &Reader, origin: &Origin, path: &str, found: usize) {
    let message = format!("found {found} parts or more, expected at most {MAXIMUM_PARTS}");
    reader.note(origin, path, ErrorKind::Relation, message);
}

fn polyhedron(polyhedron: Polyhedron) -> ShapeKind {
    ShapeKind::Convex(Convex::Polyhedron(Arc::new(polyhedron)))
}

/// The hull of the points in the case or in a file, scaled.
fn read_polyhedron(table: &TableReader) -> Option<ShapeKind> {
    let scale = table.number("scale");
    let field = table.field("file").or_else(|| table.field("vertices"))?;
    let points = match table.has("file") {
        true => {
            let mesh =
                MeshFile::read(&field.existing_file()?).and_then(|mesh| mesh.check_closed().map(|_| mesh));
            match mesh {
                Ok(mesh) => mesh.vertices,
                Err(error) => {
                    field.note(ErrorKind::Value, refused("a mesh", &error));
                    return None;
                }
            }
        }
        false => field.points()?,
    };
    let scale = scale?;
    let points: Vec<Vec3> = points.iter().map(|point| point * scale).collect();
    match convex_hull(&points) {
        Ok(hull) if Range::SIZE.contains(hull.bounding_radius) => Some(polyhedron(hull)),
        Ok(hull) => {
            let (found, range) = (hull.bounding_radius, Range::SIZE.describe());
            field.note(ErrorKind::Value, format!("found a size of {found} m, expected a size{range}"));
            None
        }
        Err(error) => {
            let message = format!("found points that enclose no volume, expected others: {error}");
            field.note(ErrorKind::Value, message);
            None
        }
    }
}

/// A part and its copies.
pub(in crate::input) fn read_part(table: &TableReader, shapes: &ReadShapes) -> Option<Vec<ClusterPart>> {
    let shape = shapes.reference(table, "shape");
    let pose = read_pose(table);
    let copies = match table.table("copies_around") {
        Some(copies) => {
            let axis = copies.field("axis").and_then(|field| field.direction());
            let count = copies.count("count");
            (Unit::new_normalize(axis?), count?)
        }
        None => (Vec3::z_axis(), 1),
    };
    let (shape, pose) = (shape?, pose?);
    let (axis, count) = copies;
    let turned = |k: u64| {
        let angle = std::f64::consts::TAU * (k as f64 / count as f64);
        let turn = Pose::new(Quat::from_axis_angle(&axis, angle), Vec3::zeros());
        ClusterPart { shape, pose: if k == 0 { pose } else { turn.compose(&pose) } }
    };
    Some((0..count).map(turned).collect())
}

/// `position` and `orientation`.
pub(in crate::input) fn read_pose(table: &TableReader) -> Option<Pose> {
    let position = table.field("position").and_then(|field| field.vector());
    let rotation = match table.has("orientation") {
        true => table.table("orientation").and_then(|table| read_orientation(&table)),
        false => Some(Quat::identity()),
    };
    Some(Pose::new(rotation?, position?))
}

pub(in crate::input) fn read_orientation(table: &TableReader) -> Option<Quat> {
    let angle = table.number("radians").or(table.number("degrees").map(f64::to_radians));
    if let Some(axis) = table.field("axis") {
        return Some(Quat::from_axis_angle(&Unit::new_normalize(axis.direction()?), angle?));
    }
    if let Some(field) = table.field("z_axis") {
        let axis = field.direction()?;
        // The shortest way is not unique for −z: a half turn about x then.
        let half_turn = Quat::from_axis_angle(&Vec3::x_axis(), std::f64::consts::PI);
        return Some(Quat::rotation_between(&Vec3::z(), &axis).unwrap_or(half_turn));
    }
    if let Some(field) = table.field("quaternion") {
        return field.quaternion();
    }
    let angles = table.field("roll_pitch_yaw_degrees")?.vector()?.map(f64::to_radians);
    Some(Quat::from_euler_angles(angles.x, angles.y, angles.z))
}

#[derive(Clone, Copy, PartialEq)]
enum Visit {
    Open,
    Done,
}

/// Replaces parts that are clusters by their parts, and refuses clusters that contain themselves.
fn flatten(tables: &[TableReader], kinds: Vec<Option<ShapeKind>>, names: &Names) -> Vec<Option<ShapeKind>> {
    let mut flattener = Flattener { tables, names, visits: vec![None; kinds.len()], kinds };
    for shape in 0..tables.len() {
        flattener.visit(shape, &mut Vec::new());
    }
    flattener.kinds
}

struct Flattener<'a, 'b> {
    tables: &'a [TableReader<'b>],
    names: &'a Names,
    visits: Vec<Option<Visit>>,
    kinds: Vec<Option<ShapeKind>>,
}

/// Deepest nesting of clusters.
const MAXIMUM_NESTING: usize = 64;

impl Flattener<'_, '_> {
    fn visit(&mut self, shape: usize, path: &mut Vec<usize>) {
        let Some(ShapeKind::Cluster { parts }) = &self.kinds[shape] else { return };
        if self.visits[shape] == Some(Visit::Done) {
            return;
        }
        path.push(shape);
        if self.visits[shape] == Some(Visit::Open) || path.len() > MAXIMUM_NESTING {
            self.refuse_nesting(shape, path);
            path.pop();
            return;
        }
        let parts = parts.clone();
        self.visits[shape] = Some(Visit::Open);
        let mut flat = Vec::new();
        let mut seen = Vec::new();
        for part in &parts {
            if !seen.contains(&part.shape) {
                seen.push(part.shape);
                self.visit(part.shape, path);
            }
            match &self.kinds[part.shape] {
                Some(ShapeKind::Cluster { parts: inner }) if flat.len() + inner.len() <= MAXIMUM_PARTS => {
                    let placed = |inner: &ClusterPart| ClusterPart {
                        shape: inner.shape,
                        pose: part.pose.compose(&inner.pose),
                    };
                    flat.extend(inner.iter().map(placed));
                }
                Some(ShapeKind::Cluster { .. }) => {
                    let table = &self.tables[shape];
                    too_many(table.reader, table.origin_of("parts"), &table.join("parts"), MAXIMUM_PARTS + 1);
                    flat.clear();
                    break;
                }
                _ => flat.push(part.clone()),
            }
        }
        self.visits[shape] = Some(Visit::Done);
        // A cluster that was refused on the way is gone already.
        if self.kinds[shape].is_some() {
            self.kinds[shape] = (!flat.is_empty()).then_some(ShapeKind::Cluster { parts: flat });
        }
        path.pop();
    }

    fn refuse_nesting(&mut self, shape: usize, path: &[usize]) {
        let table = &self.tables[shape];
        let first = path.iter().position(|other| *other == shape).unwrap_or(0);
        let chain: Vec<&str> = path[first..].iter().map(|shape| self.names.list[*shape].as_str()).collect();
        let message = match chain.len() {
            0..=1 => format!("found clusters nested deeper than {MAXIMUM_NESTING}, expected fewer levels"),
            _ => format!(
                "found the cycle {}, expected clusters that do not contain themselves",
                chain.join(" → ")
            ),
        };
        table.relation("parts", message);
        self.kinds[shape] = None;
    }
}
