//! Where bodies stand in a frame, from the points that a frame holds.
//!
//! A frame has the points x_k of a body in the world, not its pose. With the same points p_k in the body's
//! own frame, the pose is the rigid motion that brings p_k closest to x_k: with centroids removed, the unit
//! quaternion that maximises Σ x_k · R p_k, the eigenvector of the largest eigenvalue of a symmetric 4 × 4
//! matrix [Horn1987]. Exact points give the exact pose; single precision gives it to about 1e-7 of the
//! distance from the origin.

use super::bodies::{SeenBody, volume_and_centre};
use crate::geometry::{Pose, Quat, Vec3};
use crate::output::StateFile;
use crate::output::reader::{Frame, is_state, reference_points};
use crate::scene::Body;
use decomposition::Solo;
use nalgebra::{Matrix3, Matrix4, Quaternion};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The rigid motion that brings `body` closest to `world`, point by point.
pub fn fit(body: &[Vec3], world: &[Vec3]) -> Pose {
    let count = body.len().min(world.len()).max(1) as f64;
    let centre = |points: &[Vec3]| points.iter().sum::<Vec3>() / count;
    let (from, to) = (centre(body), centre(world));
    let mut spread = Matrix3::zeros();
    for (p, x) in body.iter().zip(world) {
        spread += (p - from) * (x - to).transpose();
    }
    let rotation = if spread.norm() > 0.0 { turn(&spread) } else { Quat::identity() };
    Pose::new(rotation, to - rotation * from)
}

/// Horn's quaternion for Σ p xᵀ.
fn turn(s: &Matrix3<f64>) -> Quat {
    let (xx, xy, xz) = (s[(0, 0)], s[(0, 1)], s[(0, 2)]);
    let (yx, yy, yz) = (s[(1, 0)], s[(1, 1)], s[(1, 2)]);
    let (zx, zy, zz) = (s[(2, 0)], s[(2, 1)], s[(2, 2)]);
    #[rustfmt::skip]
    let n = Matrix4::new(
        xx + yy + zz, yz - zy,       zx - xz,       xy - yx,
        yz - zy,      xx - yy - zz,  xy + yx,       zx + xz,
        zx - xz,      xy + yx,       yy - xx - zz,  yz + zy,
        xy - yx,      zx + xz,       yz + zy,       zz - xx - yy,
    );
    let eigen = n.symmetric_eigen();
    let best = eigen.eigenvalues.imax();
    let v = eigen.eigenvectors.column(best);
    // One of the two quaternions of a rotation, always the same one.
    let sign = if v[0] < 0.0 { -1.0 } else { 1.0 };
    Quat::new_normalize(Quaternion::new(sign * v[0], sign * v[1], sign * v[2], sign * v[3]))
}

/// The points of one body in a frame.
pub fn world_points(frame: &Frame, body: &SeenBody) -> Vec<Vec3> {
    body.points().map(|row| Vec3::from(frame.point(row))).collect()
}

/// Bodies' points in their own frames.
#[derive(Debug, Default)]
pub struct References {
    /// With whether the points come from a state.
    points: BTreeMap<u64, (Vec<Vec3>, bool)>,
    bodies: BTreeMap<u64, Body>,
    /// The state file that the bodies came from.
    pub state: Option<PathBuf>,
}

impl References {
    /// From the newest whole state file of a run's directory; empty if there is none.
    pub fn find(directory: &Path) -> Self {
        let Some((path, file)) = newest_state(directory) else { return Self::default() };
        let Ok(bodies) = file.read_bodies(0..file.body_count()) else { return Self::default() };
        let bodies = bodies.into_iter().map(|body| (body.id.0, body)).collect();
        Self { points: BTreeMap::new(), bodies, state: Some(path) }
    }

    /// Makes sure of the body's points in its own frame: those of the state, if it has the body with as many;
    /// else those of this frame, about the centre of volume. Says which.
    pub fn learn(&mut self, frame: &Frame, body: &SeenBody) -> bool {
        let count = body.points().len();
        if let Some((points, from_state)) = self.points.get(&body.id)
            && points.len() == count
        {
            return *from_state;
        }
        let known = self.bodies.get(&body.id).and_then(|own| reference_points(own, count));
        let from_state = known.is_some();
        let points = known.unwrap_or_else(|| {
            let world = world_points(frame, body);
            let centre = centre(&world, body);
            world.iter().map(|point| point - centre).collect()
        });
        self.points.insert(body.id, (points, from_state));
        from_state
    }

    /// The points that `learn` has made sure of.
    pub fn get(&self, id: u64) -> Option<&[Vec3]> {
        self.points.get(&id).map(|(points, _)| points.as_slice())
    }

    /// Where a body that was learnt stands in a frame.
    pub fn pose(&self, frame: &Frame, body: &SeenBody) -> Option<Pose> {
        self.get(body.id).map(|points| fit(points, &world_points(frame, body)))
    }
}

/// The centre of volume of closed parts; the mean of the points if there are none.
fn centre(world: &[Vec3], body: &SeenBody) -> Vec3 {
    let first = body.points().start;
    let (mut volume, mut moment) = (0.0, Vec3::zeros());
    for part in &body.parts {
        let points = &world[part.points.start - first..part.points.end - first];
        if let Some((part_volume, centre)) = volume_and_centre(points, part) {
            volume += part_volume;
            moment += centre * part_volume;
        }
    }
    if volume > 0.0 { moment / volume } else { world.iter().sum::<Vec3>() / world.len().max(1) as f64 }
}

/// The whole state file with the highest step in a directory or in the directories right inside it.
pub fn newest_state(directory: &Path) -> Option<(PathBuf, StateFile)> {
    let list = |directory: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let mut files = Vec::new();
    for path in list(directory) {
        if path.is_dir() { files.extend(list(&path)) } else { files.push(path) }
    }
    let named = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "h5");
    let states = files.into_iter().filter(|path| named(path) && is_state(path).unwrap_or(false));
    let open = |path: PathBuf| StateFile::open(&path, &Solo).ok().map(|file| (path, file));
    states.filter_map(open).max_by_key(|(_, file)| file.header().step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_rigid_motion_is_found_again(
            points in prop::collection::vec([-1.0..1.0f64, -1.0..1.0, -1.0..1.0], 4..30),
            axis in [-1.0..1.0f64, -1.0..1.0, -1.0..1.0],
            shift in [-10.0..10.0f64, -10.0..10.0, -10.0..10.0],
        ) {
            let body: Vec<Vec3> = points.into_iter().map(Vec3::from).collect();
            let pose = Pose::new(Quat::from_scaled_axis(Vec3::from(axis) * 3.0), Vec3::from(shift));
            let world: Vec<Vec3> = body.iter().map(|point| pose.point(point)).collect();
            let found = fit(&body, &world);
            for (p, x) in body.iter().zip(&world) {
                prop_assert!((found.point(p) - x).norm() < 1e-9);
            }
        }
    }

    #[test]
    fn flat_and_single_points_have_poses_too() {
        let square = [Vec3::zeros(), Vec3::x(), Vec3::new(1.0, 1.0, 0.0), Vec3::y()];
        let pose = Pose::new(Quat::from_euler_angles(0.4, 1.0, -2.0), Vec3::new(1.0, 2.0, 3.0));
        let found = fit(&square, &square.map(|corner| pose.point(&corner)));
        assert!(
            found.rotation.angle_to(&pose.rotation) < 1e-9 && (found.position - pose.position).norm() < 1e-9
        );
        let single = fit(&[Vec3::zeros()], &[Vec3::x()]);
        assert_eq!(single, Pose::new(Quat::identity(), Vec3::x()));
    }
}
