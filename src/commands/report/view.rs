//! The data of the interactive view: shapes once, poses by frame, in few bytes.
//!
//! A JSON head says how many there are of each; the body is one block of bytes, compressed by gzip and
//! written as base64:
//!
//! ```text
//! shapes:  vertices   i16 x 3 of each shape, in units of its radius / 32767
//!          triangles  u16 x 3 of each shape
//! actors:  shape u16, group u16, colour u8 x 3 (sRGB), role u8, scale f32 (m)
//! frames:  for each frame: x, y, z u16 over the bounds (65535 in all three: not there), qx, qy, qz, qw i16
//! ```
//!
//! Numbers of 16 bits are stored plane by plane (all x of a frame, then all y, …), low bytes then high bytes.
//! A frame holds differences to the frame before, modulo 2¹⁶: bodies at rest cost next to nothing. 16 bits
//! are 1/65536 of the extent of the scene and about 0.002° in orientation: for looking only.

use super::pictures::{cut_wall, planes, sphere_refinement, surroundings};
use super::stage::{Actor, Form, Mesh, Role, Stage};
use crate::geometry::{Aabb, Pose, Vec3};
use crate::output::reader::unit_sphere;
use serde_json::{Value, json};

/// Shapes beyond this many bytes are replaced by samples.
const SHAPE_BUDGET: usize = 4_000_000;
const SAMPLE_SHAPES: usize = 256;
/// Actors beyond these are left out.
const MOST_ACTORS: usize = 250_000;

pub struct View {
    pub head: Value,
    pub body: Vec<u8>,
    pub notes: Vec<String>,
}

/// None if there is nothing to see.
pub fn pack(stage: &Stage, up: Vec3) -> Option<View> {
    let bounds = stage.bounds(&stage.scenes)?;
    let mut notes = Vec::new();
    let mut shown: Vec<usize> =
        (0..stage.actors.len()).filter(|&k| stage.actors[k].role != Role::Wall).collect();
    if shown.len() > MOST_ACTORS {
        notes.push(format!("The 3D view shows {MOST_ACTORS} of {} bodies.", shown.len()));
        shown.truncate(MOST_ACTORS);
    }
    let (shapes, mut choice) = shapes(stage, &shown, &mut notes);
    // Actors of one shape stand together: they are drawn in one go.
    let mut order: Vec<usize> = (0..shown.len()).collect();
    order.sort_by_key(|&k| (choice[k].0, k));
    shown = order.iter().map(|&k| shown[k]).collect();
    choice = order.iter().map(|&k| choice[k]).collect();

    let mut body = Vec::new();
    for shape in &shapes {
        let scale = shape.vertices.iter().map(|vertex| vertex.norm()).fold(1e-30, f64::max);
        for part in shape.vertices.iter().flat_map(|vertex| vertex.iter()) {
            body.extend(((part / scale * 32767.0).round() as i16).to_le_bytes());
        }
        body.extend(shape.triangles.iter().flatten().flat_map(|&corner| (corner as u16).to_le_bytes()));
    }
    for (&index, &(shape, scale)) in shown.iter().zip(&choice) {
        let actor = &stage.actors[index];
        body.extend((shape as u16).to_le_bytes());
        body.extend((actor.group.min(65535) as u16).to_le_bytes());
        body.extend(actor.colour.map(to_srgb));
        body.push(if actor.role == Role::Grain { 0 } else { 1 });
        body.extend((scale as f32).to_le_bytes());
    }
    frames(stage, &shown, &bounds, &mut body);
    let head = json!({
        "shapes": shapes.iter().map(|shape| [shape.vertices.len(), shape.triangles.len()]).collect::<Vec<_>>(),
        "smooth": shapes.iter().map(|shape| shape.smooth).collect::<Vec<_>>(),
        "actors": shown.len(),
        "times": stage.scenes.iter().map(|scene| scene.time).collect::<Vec<f64>>(),
        "low": <[f64; 3]>::from(bounds.min),
        "high": <[f64; 3]>::from(bounds.max),
        "up": <[f64; 3]>::from(up),
        "walls": walls(stage),
    });
    Some(View { head, body, notes })
}

struct Shape {
    vertices: Vec<Vec3>,
    triangles: Vec<[u32; 3]>,
    smooth: bool,
}

/// The shapes, and for each shown actor which of them it has and how large.
fn shapes(stage: &Stage, shown: &[usize], notes: &mut Vec<String>) -> (Vec<Shape>, Vec<(usize, f64)>) {
    let spheres = shown.iter().filter(|&&k| matches!(stage.actors[k].form, Form::Sphere { .. })).count();
    let (vertices, triangles) = unit_sphere(sphere_refinement(spheres).min(3));
    let triangles = triangles.iter().map(|corners| corners.map(|corner| corner as u32)).collect();
    let mut all = vec![Shape { vertices, triangles, smooth: true }];
    let cost = |mesh: &Mesh| 6 * mesh.vertices.len() + 6 * mesh.triangles.len();
    let drawable = |mesh: &Mesh| mesh.vertices.len() < 65536 && !mesh.triangles.is_empty();
    let total: usize = shown.iter().filter_map(|&k| hull(&stage.actors[k])).map(cost).sum();
    let sampled = total > SHAPE_BUDGET;
    if sampled {
        notes.push(format!(
            "In the 3D view grains are drawn with {SAMPLE_SHAPES} sample shapes scaled to their sizes, to keep this page small."
        ));
    }
    let mut samples: Vec<usize> = Vec::new();
    let choose = |&index: &usize| {
        let actor = &stage.actors[index];
        let Some(mesh) = hull(actor).filter(|mesh| drawable(mesh)) else { return (0, actor.radius()) };
        if sampled && actor.role == Role::Grain && samples.len() >= SAMPLE_SHAPES {
            return (samples[actor.id as usize % samples.len()], actor.radius());
        }
        // Bodies that share a shape share its entry.
        let same = |shape: &Shape| shape.vertices == mesh.vertices && shape.triangles == mesh.triangles;
        let known = if all.len() < 400 { all.iter().position(same) } else { None };
        let place = known.unwrap_or_else(|| {
            all.push(Shape {
                vertices: mesh.vertices.clone(),
                triangles: mesh.triangles.clone(),
                smooth: false,
            });
            all.len() - 1
        });
        if actor.role == Role::Grain {
            samples.push(place);
        }
        (place, actor.radius())
    };
    let choice = shown.iter().map(choose).collect();
    (all, choice)
}

fn hull(actor: &Actor) -> Option<&Mesh> {
    if let Form::Hull(mesh) = &actor.form { Some(mesh) } else { None }
}

fn to_srgb(linear: f32) -> u8 {
    let linear = linear.clamp(0.0, 1.0);
    let curved = if linear <= 0.003_130_8 { 12.92 * linear } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 };
    (255.0 * curved).round() as u8
}

fn frames(stage: &Stage, shown: &[usize], bounds: &Aabb, body: &mut Vec<u8>) {
    let mut before = vec![[0u16; 7]; shown.len()];
    for scene in &stage.scenes {
        let now: Vec<[u16; 7]> = shown
            .iter()
            .zip(&before)
            .map(|(&k, before)| quantised(scene.poses[k].as_ref(), bounds, before))
            .collect();
        for part in 0..7 {
            let change = |(now, before): (&[u16; 7], &[u16; 7])| now[part].wrapping_sub(before[part]);
            let words: Vec<u16> = now.iter().zip(&before).map(change).collect();
            body.extend(words.iter().map(|word| *word as u8));
            body.extend(words.iter().map(|word| (word >> 8) as u8));
        }
        before = now;
    }
}

fn quantised(pose: Option<&Pose>, bounds: &Aabb, before: &[u16; 7]) -> [u16; 7] {
    let Some(pose) = pose else { return [65535, 65535, 65535, before[3], before[4], before[5], before[6]] };
    let part = |axis: usize| {
        let extent = (bounds.max[axis] - bounds.min[axis]).max(1e-30);
        ((pose.position[axis] - bounds.min[axis]) / extent * 65534.0).round().clamp(0.0, 65534.0) as u16
    };
    let turn = pose.rotation.coords;
    // Of the two quaternions of a rotation, the one nearer to the last: small differences, and no flips on
    // the way.
    let last: [f64; 4] = std::array::from_fn(|k| f64::from(before[3 + k] as i16));
    let near: f64 = (0..4).map(|k| turn[k] * last[k]).sum();
    let sign = if near < 0.0 { -1.0 } else { 1.0 };
    let turned = |k: usize| (sign * turn[k] * 32767.0).round() as i16 as u16;
    [part(0), part(1), part(2), turned(0), turned(1), turned(2), turned(3)]
}

/// Walls, cut to the scene, as lists of corners. Where they stood in the last scene.
fn walls(stage: &Stage) -> Vec<Vec<[f64; 3]>> {
    let (Some(scene), Some(bounds)) = (stage.scenes.last(), surroundings(stage, &stage.scenes)) else {
        return Vec::new();
    };
    let planes = planes(stage, scene);
    let mut all = Vec::new();
    for (actor, pose) in stage.actors.iter().zip(&scene.poses) {
        if let (Form::Plane(corners), Some(pose)) = (&actor.form, pose) {
            let corners: Vec<Vec3> = corners.iter().map(|corner| pose.point(corner)).collect();
            let polygon = cut_wall(&corners, &planes, Some(&bounds));
            if polygon.len() >= 3 {
                all.push(polygon.into_iter().map(<[f64; 3]>::from).collect());
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::report::stage::Scene;
    use crate::geometry::Quat;

    fn stage() -> Stage {
        let actor = |id: u64| Actor {
            id,
            group: 0,
            role: Role::Grain,
            form: Form::Sphere { radius: 0.5 },
            colour: [0.2; 3],
        };
        let pose = |x: f64| Some(Pose::new(Quat::from_euler_angles(x, 0.3, 0.0), Vec3::new(x, 0.0, 1.0)));
        let scene = |time: f64, poses: Vec<Option<Pose>>| Scene { step: 0, time, poses };
        let scenes = vec![scene(0.0, vec![pose(0.0), pose(4.0)]), scene(1.0, vec![pose(2.0), None])];
        Stage { actors: vec![actor(0), actor(1)], scenes, frames: 2, notes: Vec::new() }
    }

    /// Decodes as the page does.
    #[test]
    fn poses_come_back_to_a_65000th_of_the_extent() {
        let stage = stage();
        let view = pack(&stage, Vec3::z()).unwrap();
        let (points, triangles) = unit_sphere(3);
        let mut at = 6 * points.len() + 6 * triangles.len() + 2 * 12;
        assert_eq!(view.body.len(), at + 2 * 2 * 7 * 2);
        let mut state = [[0u16; 7]; 2];
        for scene in &stage.scenes {
            for part in 0..7 {
                for (k, own) in state.iter_mut().enumerate() {
                    let word = u16::from(view.body[at + k]) | u16::from(view.body[at + 2 + k]) << 8;
                    own[part] = own[part].wrapping_add(word);
                }
                at += 4;
            }
            for (own, pose) in state.iter().zip(&scene.poses) {
                let Some(pose) = pose else {
                    assert_eq!(own[..3], [65535; 3]);
                    continue;
                };
                let x = -0.5 + f64::from(own[0]) / 65534.0 * 5.0;
                assert!((x - pose.position.x).abs() < 5.0 / 65534.0, "{x}");
                let turn: Vec<f64> = (3..7).map(|k| f64::from(own[k] as i16) / 32767.0).collect();
                let near: f64 = turn.iter().zip(pose.rotation.coords.iter()).map(|(a, b)| a * b).sum();
                assert!(near.abs() > 1.0 - 1e-4);
            }
        }
    }

    #[test]
    fn nothing_to_see_makes_no_view() {
        assert!(pack(&Stage::default(), Vec3::z()).is_none());
    }
}
