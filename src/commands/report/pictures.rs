//! Pictures of the stage: which times, from where, and what is in them.

use super::raster::{Camera, Picture, Triangle, V3, count_seen, render};
use super::stage::{Actor, Form, Role, Scene, Stage};
use crate::geometry::{Aabb, Pose, Vec3};
use crate::output::reader::unit_sphere;

/// A picture and what it shows.
pub struct Shot {
    pub time: f64,
    pub step: usize,
    pub picture: Picture,
}

/// One large picture of the last scene, then some small ones over time that share a camera.
pub fn take(stage: &Stage, up: Vec3, small: usize) -> Option<(Shot, Vec<Shot>)> {
    let last = stage.scenes.last()?;
    let direction = best_direction(stage, last, up);
    let (hero_size, small_size) = ([1200, 800], [640, 480]);
    let large = shot(stage, last, std::slice::from_ref(last), direction, up, hero_size);
    let several = by_motion(stage, small);
    let chosen: Vec<Scene> = several.iter().map(|&index| stage.scenes[index].clone()).collect();
    let row = chosen.iter().map(|scene| shot(stage, scene, &chosen, direction, up, small_size)).collect();
    Some((large, row))
}

/// The bounds of some scenes and what of walls and ground is shown around them.
pub(super) fn surroundings(stage: &Stage, scenes: &[Scene]) -> Option<Aabb> {
    let bounds = stage.bounds(scenes)?;
    let share = if fill(stage) < 0.9 { 0.4 } else { 0.12 };
    Some(bounds.inflated(share * (bounds.max - bounds.min).norm()))
}

/// A few bodies want some ground around them; many are seen best from near.
fn fill(stage: &Stage) -> f32 {
    let bodies = stage.actors.iter().filter(|actor| actor.role != Role::Wall).count();
    if bodies < 8 { 0.6 } else { 0.94 }
}

/// At most `most` scenes, first and last among them, with about as much motion between each two: where
/// nothing moves, one is enough.
fn by_motion(stage: &Stage, most: usize) -> Vec<usize> {
    let count = stage.scenes.len();
    if count < 2 {
        return Vec::new();
    }
    let mut travelled = vec![0.0];
    for pair in stage.scenes.windows(2) {
        let step = |(a, b): (&Option<Pose>, &Option<Pose>)| match (a, b) {
            (Some(a), Some(b)) => (b.position - a.position).norm(),
            _ => 0.0,
        };
        let path: f64 = pair[0].poses.iter().zip(&pair[1].poses).map(step).sum();
        travelled.push(travelled[travelled.len() - 1] + path);
    }
    let whole = travelled[count - 1];
    if whole.is_nan() || whole <= 0.0 {
        return super::stage::spread(count, most);
    }
    let reached = |share: f64| travelled.iter().position(|path| *path >= share * whole).unwrap_or(count - 1);
    let mut chosen: Vec<usize> = (0..most - 1).map(|k| reached(k as f64 / (most - 1) as f64)).collect();
    chosen.push(count - 1);
    chosen.dedup();
    chosen
}

fn shot(
    stage: &Stage,
    scene: &Scene,
    framed: &[Scene],
    direction: V3,
    up: Vec3,
    [width, height]: [usize; 2],
) -> Shot {
    let bounds = surroundings(stage, framed);
    let (triangles, _) = triangles(stage, scene, bounds.as_ref());
    let points: Vec<V3> = framed.iter().flat_map(|scene| subject(stage, scene)).collect();
    let camera = Camera::around(&points, direction, single(&up), width as f32 / height as f32, fill(stage));
    let picture = render(&triangles, &camera, single(&up), width, height);
    Shot { time: scene.time, step: scene.step, picture }
}

/// The direction, out of some around the scene, from which most grains can be seen; the first unless another
/// is clearly better.
fn best_direction(stage: &Stage, scene: &Scene, up: Vec3) -> V3 {
    let bounds = surroundings(stage, std::slice::from_ref(scene));
    let (triangles, grains) = triangles(stage, scene, bounds.as_ref());
    let points: Vec<V3> = subject(stage, scene).collect();
    let helper = if up.y.abs() > 0.9 { Vec3::x() } else { Vec3::y() };
    let right = helper.cross(&up).normalize();
    let ahead = up.cross(&right);
    let candidates = [
        (-58.0, 26.0),
        (-32.0, 26.0),
        (-90.0, 14.0),
        (-122.0, 26.0),
        (0.0, 14.0),
        (58.0, 26.0),
        (122.0, 26.0),
        (-58.0, 60.0),
    ];
    let direction = |(azimuth, elevation): (f64, f64)| {
        let (azimuth, elevation) = (azimuth.to_radians(), elevation.to_radians());
        let level = right * azimuth.cos() + ahead * azimuth.sin();
        single(&(level * elevation.cos() + up * elevation.sin()))
    };
    let score = |index: usize| {
        let camera = Camera::around(&points, direction(candidates[index]), single(&up), 1.5, fill(stage));
        let seen = count_seen(&triangles, &grains, &camera, [240, 160]) as f64;
        if index == 0 { 1.15 * seen } else { seen }
    };
    let scores: Vec<f64> = (0..candidates.len()).map(score).collect();
    let best = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(b.cmp(&a)));
    direction(candidates[best.unwrap_or(0)])
}

/// Points that the picture must show: those of grains and tools, or of everything but walls.
fn subject<'a>(stage: &'a Stage, scene: &'a Scene) -> impl Iterator<Item = V3> + 'a {
    let few = stage.actors.len() < 100;
    let has_subject = stage.actors.iter().any(|actor| matches!(actor.role, Role::Grain | Role::Tool));
    let wanted = move |actor: &Actor| match actor.role {
        Role::Grain | Role::Tool => true,
        Role::Fixed => !has_subject,
        Role::Wall => false,
    };
    let there = stage.actors.iter().zip(&scene.poses).filter(move |(actor, _)| wanted(actor));
    there
        .filter_map(|(actor, pose)| pose.as_ref().map(|pose| (actor, pose)))
        .flat_map(move |(actor, pose)| points(actor, pose, few))
}

fn points(actor: &Actor, pose: &Pose, few: bool) -> Vec<V3> {
    match &actor.form {
        Form::Hull(mesh) => mesh.vertices.iter().map(|vertex| single(&pose.point(vertex))).collect(),
        Form::Sphere { radius } if few => {
            let (unit, _) = unit_sphere(1);
            unit.iter().map(|vertex| single(&(pose.position + vertex * *radius))).collect()
        }
        Form::Sphere { radius } => {
            let axes = [Vec3::x(), Vec3::y(), Vec3::z()];
            axes.iter()
                .flat_map(|axis| [axis * *radius, -axis * *radius])
                .map(|arm| single(&(pose.position + arm)))
                .collect()
        }
        Form::Plane(_) => Vec::new(),
    }
}

fn single(vector: &Vec3) -> V3 {
    V3::new(vector.x as f32, vector.y as f32, vector.z as f32)
}

/// The triangles of a scene, and for each the grain that it belongs to, if any. Walls are cut to what lies
/// around `bounds`.
fn triangles(stage: &Stage, scene: &Scene, bounds: Option<&Aabb>) -> (Vec<Triangle>, Vec<Option<u32>>) {
    let spheres = stage.actors.iter().filter(|actor| matches!(actor.form, Form::Sphere { .. })).count();
    let refinement = sphere_refinement(spheres);
    let sphere = unit_sphere(refinement);
    let planes = planes(stage, scene);
    let mut all = Vec::new();
    let mut grains = Vec::new();
    for (number, (actor, pose)) in stage.actors.iter().zip(&scene.poses).enumerate() {
        let Some(pose) = pose else { continue };
        match &actor.form {
            Form::Hull(mesh) => {
                let world: Vec<V3> = mesh.vertices.iter().map(|vertex| single(&pose.point(vertex))).collect();
                let corners = |corners: &[u32; 3]| corners.map(|corner| world[corner as usize]);
                all.extend(
                    mesh.triangles.iter().map(|triangle| Triangle::flat(corners(triangle), actor.colour)),
                );
            }
            Form::Sphere { radius } => {
                let (unit, triangles) = &sphere;
                let normals: Vec<V3> = unit.iter().map(|vertex| single(&pose.direction(vertex))).collect();
                let world: Vec<V3> =
                    unit.iter().map(|vertex| single(&pose.point(&(vertex * *radius)))).collect();
                all.extend(triangles.iter().map(|corners| Triangle {
                    corners: corners.map(|corner| world[corner]),
                    normals: corners.map(|corner| normals[corner]),
                    colour: actor.colour,
                    one_sided: false,
                }));
            }
            Form::Plane(corners) => {
                let corners: Vec<Vec3> = corners.iter().map(|corner| pose.point(corner)).collect();
                all.extend(wall(&corners, &planes, bounds, actor.colour));
            }
        }
        grains.resize(all.len(), (actor.role == Role::Grain).then_some(number as u32));
    }
    (all, grains)
}

/// Finer triangles for fewer spheres.
pub(super) fn sphere_refinement(spheres: usize) -> u32 {
    match spheres {
        0..50 => 4,
        50..2000 => 3,
        2000..20_000 => 2,
        _ => 1,
    }
}

/// A point and the normal of each wall.
pub(super) fn planes(stage: &Stage, scene: &Scene) -> Vec<(Vec3, Vec3)> {
    let planes =
        stage.actors.iter().zip(&scene.poses).filter_map(|(actor, pose)| match (&actor.form, pose) {
            (Form::Plane(corners), Some(pose)) => {
                plane(&corners.iter().map(|corner| pose.point(corner)).collect::<Vec<_>>())
            }
            _ => None,
        });
    planes.collect()
}

fn plane(corners: &[Vec3]) -> Option<(Vec3, Vec3)> {
    let [a, b, c] = [corners.first()?, corners.get(1)?, corners.get(2)?];
    (b - a).cross(&(c - a)).try_normalize(0.0).map(|normal| (*a, normal))
}

/// The part of a wall that is on the free side of the other walls and inside `bounds`.
pub(super) fn cut_wall(corners: &[Vec3], planes: &[(Vec3, Vec3)], bounds: Option<&Aabb>) -> Vec<Vec3> {
    let mut polygon = corners.to_vec();
    let Some((_, own)) = plane(corners) else { return Vec::new() };
    for (point, normal) in planes {
        // Not by itself or by a wall that is parallel to it.
        if own.cross(normal).norm() > 1e-3 {
            polygon = clip(&polygon, point, normal);
        }
    }
    if let Some(bounds) = bounds {
        for axis in 0..3 {
            let mut normal = Vec3::zeros();
            normal[axis] = 1.0;
            polygon = clip(&polygon, &bounds.min, &normal);
            polygon = clip(&polygon, &bounds.max, &-normal);
        }
    }
    polygon
}

fn wall(corners: &[Vec3], planes: &[(Vec3, Vec3)], bounds: Option<&Aabb>, colour: [f32; 3]) -> Vec<Triangle> {
    let polygon = cut_wall(corners, planes, bounds);
    let fan = |k: usize| {
        let corners = [polygon[0], polygon[k], polygon[k + 1]].map(|corner| single(&corner));
        Triangle { one_sided: true, ..Triangle::flat(corners, colour) }
    };
    (1..polygon.len().max(2) - 1).map(fan).collect()
}

/// The part of a convex polygon where normal · (x − point) ≥ 0 (Sutherland and Hodgman).
fn clip(polygon: &[Vec3], point: &Vec3, normal: &Vec3) -> Vec<Vec3> {
    let height = |corner: &Vec3| normal.dot(&(corner - point));
    let mut kept = Vec::new();
    for (k, corner) in polygon.iter().enumerate() {
        let next = &polygon[(k + 1) % polygon.len()];
        let (here, there) = (height(corner), height(next));
        if here >= 0.0 {
            kept.push(*corner);
        }
        if (here < 0.0) != (there < 0.0) {
            kept.push(corner + (next - corner) * (here / (here - there)));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_taken_where_things_move() {
        let pose = |z: f64| Some(Pose::new(crate::geometry::Quat::identity(), Vec3::z() * z));
        let scene = |z: f64| Scene { step: 0, time: 0.0, poses: vec![pose(z), None] };
        let stage = |heights: &[f64]| Stage {
            scenes: heights.iter().map(|&z| scene(z)).collect(),
            ..Stage::default()
        };
        assert_eq!(by_motion(&stage(&[9.0, 6.0, 3.0, 0.0, 0.0, 0.0, 0.0]), 4), [0, 1, 2, 6]);
        assert_eq!(by_motion(&stage(&[1.0; 7]), 4), [0, 2, 4, 6]);
        assert_eq!(by_motion(&stage(&[1.0, 0.0]), 4), [0, 1]);
        assert!(by_motion(&stage(&[1.0]), 4).is_empty());
    }

    #[test]
    fn walls_end_where_other_walls_and_the_scene_end() {
        let square = |z: f64| {
            [(-5.0, -5.0), (5.0, -5.0), (5.0, 5.0), (-5.0, 5.0)].map(|(x, y)| Vec3::new(x, y, z)).to_vec()
        };
        let floor = square(0.0);
        let west = (Vec3::new(-1.0, 0.0, 0.0), Vec3::x());
        let ceiling = (Vec3::new(0.0, 0.0, 9.0), -Vec3::z());
        let bounds = Aabb { min: Vec3::new(-3.0, -2.0, 0.0), max: Vec3::new(1.0, 2.0, 2.0) };
        let cut = cut_wall(&floor, &[west, ceiling, (Vec3::zeros(), Vec3::z())], Some(&bounds));
        let box_of = cut.iter().fold(Aabb::empty(), |all, corner| all.with_point(corner));
        assert!((box_of.min - Vec3::new(-1.0, -2.0, 0.0)).norm() < 1e-12);
        assert!((box_of.max - Vec3::new(1.0, 2.0, 0.0)).norm() < 1e-12);
        assert!(cut_wall(&square(-7.0), &[], Some(&bounds)).is_empty());
        assert!(cut_wall(&[], &[], None).is_empty());
    }
}
