//! The bodies of a run as actors with fixed shapes, and where each stood in some of the frames.
//!
//! Frames hold points in the world; shapes and poses are found again as in
//! [`crate::commands::inspect::poses`].

use crate::commands::inspect::InspectError;
use crate::commands::inspect::bodies::{SeenBody, bodies};
use crate::commands::inspect::poses::References;
use crate::geometry::{Aabb, Pose, Vec3};
use crate::output::reader::{Frame, FrameFile, unit_sphere};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// What a body is to the story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A half-space, drawn as a piece of its plane.
    Wall,
    /// Never moves.
    Fixed,
    /// Moves as prescribed or belongs to a machine.
    Tool,
    Grain,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mesh {
    /// In the body's own frame.
    pub vertices: Vec<Vec3>,
    /// Counter-clockwise seen from outside.
    pub triangles: Vec<[u32; 3]>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    Sphere {
        radius: f64,
    },
    Hull(Mesh),
    /// The corners of a square in the body's own frame, counter-clockwise seen from the free side.
    Plane(Vec<Vec3>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Actor {
    pub id: u64,
    pub group: u32,
    pub role: Role,
    pub form: Form,
    /// Linear red, green, blue.
    pub colour: [f32; 3],
}

impl Actor {
    /// Largest distance of a vertex from the origin of the body.
    pub fn radius(&self) -> f64 {
        let furthest = |points: &[Vec3]| points.iter().map(|point| point.norm()).fold(0.0, f64::max);
        match &self.form {
            Form::Sphere { radius } => *radius,
            Form::Hull(mesh) => furthest(&mesh.vertices),
            Form::Plane(corners) => furthest(corners),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Scene {
    pub step: usize,
    pub time: f64,
    /// By actor; none if the body is not there.
    pub poses: Vec<Option<Pose>>,
}

#[derive(Clone, Debug, Default)]
pub struct Stage {
    pub actors: Vec<Actor>,
    pub scenes: Vec<Scene>,
    /// Frames in the file.
    pub frames: usize,
    pub notes: Vec<String>,
}

/// Name and kind of a group, as `summary.json` has them.
pub type GroupKind = (String, String);

impl Stage {
    /// Reads evenly spread frames, at most `most` and no more than make `poses` poses altogether, first and
    /// last among them.
    pub fn read(
        file: &FrameFile,
        references: &mut References,
        groups: &[GroupKind],
        most: usize,
        poses: usize,
    ) -> Result<Self, InspectError> {
        let mut stage = Stage { frames: file.times().len(), ..Stage::default() };
        let Some(last) = stage.frames.checked_sub(1) else { return Ok(stage) };
        let has_ids = file.arrays().any(|(name, _)| name == "id");
        let end = read_frame(file, last)?;
        let seen = bodies(&end);
        let afford = (poses / seen.len().max(1)).clamp(2, most);
        let mut steps = spread(stage.frames, afford);
        if !has_ids && !same_bodies(file, &steps, &seen)? {
            steps = vec![last];
            stage
                .notes
                .push("The frames have no ids and bodies change places: only the last is shown.".into());
        }
        let mut places = BTreeMap::new();
        for step in steps {
            let frame = if step == last { end.clone() } else { read_frame(file, step)? };
            stage.add(&frame, step, references, &mut places);
        }
        let count = stage.actors.len();
        stage.scenes.iter_mut().for_each(|scene| scene.poses.resize(count, None));
        stage.cast(groups);
        Ok(stage)
    }

    fn add(
        &mut self,
        frame: &Frame,
        step: usize,
        references: &mut References,
        places: &mut BTreeMap<u64, usize>,
    ) {
        let seen = bodies(frame);
        for body in &seen {
            references.learn(frame, body);
            if let Entry::Vacant(place) = places.entry(body.id) {
                place.insert(self.actors.len());
                let own = references.get(body.id).unwrap_or_default();
                let (id, group, form) = (body.id, body.group, form(own, frame, body));
                self.actors.push(Actor { id, group, role: Role::Grain, form, colour: [0.5; 3] });
            }
        }
        let references = &*references;
        let found: Vec<Option<Pose>> = seen.par_iter().map(|body| references.pose(frame, body)).collect();
        let mut poses = vec![None; self.actors.len()];
        for (body, pose) in seen.iter().zip(found) {
            if let Some(place) = places.get(&body.id) {
                poses[*place] = pose.filter(is_finite);
            }
        }
        self.scenes.push(Scene { step, time: frame.time, poses });
    }

    /// Gives every actor its role and colour.
    fn cast(&mut self, groups: &[GroupKind]) {
        let mut sizes = BTreeMap::new();
        self.actors.iter().for_each(|actor| *sizes.entry(actor.group).or_insert(0usize) += 1);
        let moves: Vec<bool> = (0..self.actors.len()).map(|index| self.moves(index)).collect();
        let mut tools = BTreeMap::new();
        let mut grains = BTreeMap::new();
        for (actor, moves) in self.actors.iter_mut().zip(moves) {
            let kind = groups.get(actor.group as usize).map(|(_, kind)| kind.as_str());
            actor.role = match (&actor.form, kind) {
                (Form::Plane(_), _) => Role::Wall,
                (_, Some("fixed")) => Role::Fixed,
                (_, Some("free" | "stones" | "spheres" | "shape" | "file" | "start")) => Role::Grain,
                (_, Some(_)) => Role::Tool,
                (_, None) if sizes[&actor.group] > 2 => Role::Grain,
                (_, None) if moves => Role::Tool,
                (_, None) => Role::Fixed,
            };
            let next = |table: &mut BTreeMap<u32, usize>| {
                let number = table.len();
                *table.entry(actor.group).or_insert(number)
            };
            actor.colour = match actor.role {
                Role::Wall => linear([0xd3, 0xce, 0xc4]),
                Role::Fixed => linear([0xa9, 0xa5, 0x9d]),
                Role::Tool => linear(TOOLS[next(&mut tools) % TOOLS.len()]),
                Role::Grain => varied(linear(GRAINS[next(&mut grains) % GRAINS.len()]), actor.id),
            };
        }
    }

    fn moves(&self, index: usize) -> bool {
        let mut poses = self.scenes.iter().filter_map(|scene| scene.poses.get(index).copied().flatten());
        let Some(first) = poses.next() else { return false };
        poses.any(|pose| {
            (pose.position - first.position).norm() > 1e-4 * (1.0 + first.position.norm())
                || pose.rotation.angle_to(&first.rotation) > 1e-3
        })
    }

    /// The box around all that is not a wall, in some scenes.
    pub fn bounds(&self, scenes: &[Scene]) -> Option<Aabb> {
        let mut bounds = Aabb::empty();
        for scene in scenes {
            for (actor, pose) in self.actors.iter().zip(&scene.poses) {
                if let (Some(pose), false) = (pose, actor.role == Role::Wall) {
                    let radius = actor.radius();
                    let around = match &actor.form {
                        Form::Hull(mesh) if actor.role != Role::Grain => mesh
                            .vertices
                            .iter()
                            .fold(Aabb::empty(), |all, vertex| all.with_point(&pose.point(vertex))),
                        _ => Aabb { min: pose.position, max: pose.position }.inflated(radius),
                    };
                    bounds = bounds.union(&around);
                }
            }
        }
        bounds.min.iter().chain(&bounds.max).all(|bound| bound.is_finite()).then_some(bounds)
    }
}

/// Colours of grains, group by group: stones first.
const GRAINS: [[u8; 3]; 5] =
    [[0x9a, 0x8f, 0x80], [0x72, 0x86, 0x94], [0xa9, 0x7e, 0x5c], [0x86, 0x90, 0x6c], [0x93, 0x7a, 0x94]];
const TOOLS: [[u8; 3]; 4] = [[0xe0, 0x84, 0x2a], [0x3f, 0x76, 0xa8], [0xc9, 0xa2, 0x2c], [0x4f, 0x8a, 0x6d]];

fn linear(colour: [u8; 3]) -> [f32; 3] {
    colour.map(|part| {
        let part = f32::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    })
}

/// No two stones are quite alike: lighter or darker, warmer or cooler, by id.
fn varied(colour: [f32; 3], id: u64) -> [f32; 3] {
    let hash = xxhash_rust::xxh3::xxh3_64(&id.to_le_bytes());
    let fraction = |shift: u32| ((hash >> shift) & 0xffff) as f32 / 65535.0 - 0.5;
    let (light, warm) = (1.0 + 0.5 * fraction(0), 0.16 * fraction(16));
    [colour[0] * light * (1.0 + warm), colour[1] * light, colour[2] * light * (1.0 - warm)]
}

fn read_frame(file: &FrameFile, step: usize) -> Result<Frame, InspectError> {
    Ok(file.read_arrays(step, |name| ["id", "group", "radius"].contains(&name))?)
}

fn is_finite(pose: &Pose) -> bool {
    pose.position.iter().all(|part| part.is_finite())
        && pose.rotation.coords.iter().all(|part| part.is_finite())
}

/// At most `most` numbers below `count`, evenly spread, first and last among them.
pub fn spread(count: usize, most: usize) -> Vec<usize> {
    let wanted = most.min(count);
    match (count, wanted) {
        (0, _) | (_, 0) => Vec::new(),
        (_, 1) => vec![count - 1],
        _ => (0..wanted).map(|k| (k * (count - 1) + (wanted - 1) / 2) / (wanted - 1)).collect(),
    }
}

/// Whether all frames show bodies of the same sizes in the same order.
fn same_bodies(file: &FrameFile, steps: &[usize], seen: &[SeenBody]) -> Result<bool, InspectError> {
    for &step in steps {
        let others = bodies(&read_frame(file, step)?);
        let same = others.len() == seen.len()
            && others.iter().zip(seen).all(|(a, b)| a.points().len() == b.points().len());
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The shape of a body whose points in its own frame are `own`.
fn form(own: &[Vec3], frame: &Frame, body: &SeenBody) -> Form {
    if body.is_wall() {
        let corners = body.parts[0].faces().next().unwrap_or_default();
        return Form::Plane(corners.iter().map(|&corner| own[corner as usize]).collect());
    }
    let radius_of = |row: usize| frame.array("radius").map_or(0.0, |radii| radii.values.get(row));
    if let [part] = body.parts.as_slice() {
        if part.is_point() {
            return Form::Sphere { radius: radius_of(part.points.start) };
        }
        if let Some(radius) = sphere_radius(own).filter(|_| part.face_count() >= 20) {
            return Form::Sphere { radius };
        }
    }
    let first = body.points().start;
    let mut mesh = Mesh::default();
    let (unit, unit_triangles) = unit_sphere(1);
    for part in &body.parts {
        let before = mesh.vertices.len() as u32;
        let points = &own[part.points.start - first..part.points.end - first];
        if part.is_point() {
            let radius = radius_of(part.points.start);
            mesh.vertices.extend(unit.iter().map(|vertex| points[0] + vertex * radius));
            mesh.triangles.extend(unit_triangles.iter().map(|corners| corners.map(|k| before + k as u32)));
        } else {
            mesh.vertices.extend(points);
            for face in part.faces() {
                let fan = (1..face.len() - 1)
                    .map(|k| [face[0], face[k], face[k + 1]].map(|corner| before + corner));
                mesh.triangles.extend(fan);
            }
        }
    }
    Form::Hull(mesh)
}

/// The radius, if all points are equally far from the origin: single precision blurs it a little.
fn sphere_radius(points: &[Vec3]) -> Option<f64> {
    let distances = points.iter().map(|point| point.norm());
    let (low, high) = distances.fold((f64::INFINITY, 0.0f64), |(low, high), d| (low.min(d), high.max(d)));
    (points.len() >= 12 && high > 0.0 && high - low < 1e-3 * high).then_some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_spread_evenly_with_both_ends() {
        assert_eq!(spread(76, 4), [0, 25, 50, 75]);
        assert_eq!(spread(3, 10), [0, 1, 2]);
        assert_eq!(spread(9, 1), [8]);
        assert!(spread(0, 5).is_empty());
        for count in 2..60 {
            for most in 2..count {
                let steps = spread(count, most);
                assert_eq!((steps.len(), steps[0], steps[most - 1]), (most, 0, count - 1));
                assert!(steps.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }

    #[test]
    fn spheres_are_recognised_and_stones_are_not() {
        let (unit, _) = unit_sphere(1);
        let ball: Vec<Vec3> = unit.iter().map(|vertex| vertex * 0.25).collect();
        assert!((sphere_radius(&ball).unwrap() - 0.25).abs() < 1e-12);
        let stone: Vec<Vec3> =
            unit.iter().map(|vertex| Vec3::new(vertex.x, vertex.y, 1.1 * vertex.z)).collect();
        assert_eq!(sphere_radius(&stone), None);
    }

    #[test]
    fn colours_vary_with_the_id_and_stay_in_range() {
        let base = linear(GRAINS[0]);
        assert_eq!(varied(base, 3), varied(base, 3));
        assert_ne!(varied(base, 3), varied(base, 4));
        assert!((0..1000).all(|id| varied(base, id).iter().all(|part| (0.05..1.0).contains(part))));
    }
}
