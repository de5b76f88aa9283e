//! Where the parts of clusters stand: worked out once in a call and not for every body that may touch them.

use crate::geometry::{Pose, Shape};
use crate::scene::Body;

#[derive(Default)]
pub struct Parts {
    /// World.
    poses: Vec<Pose>,
    /// By body: past its last one.
    ends: Vec<u32>,
}

impl Parts {
    pub fn place<'a>(&mut self, bodies: impl Iterator<Item = &'a Body>) {
        let Self { poses, ends } = self;
        poses.clear();
        ends.clear();
        ends.extend(bodies.map(|body| {
            if let Shape::Cluster(parts) = &body.shape {
                poses.extend(parts.iter().map(|part| body.pose.compose(&part.pose)));
            }
            poses.len() as u32
        }));
    }

    /// Of the body at a place in that list; none for one that is no cluster.
    pub fn of(&self, place: u32) -> &[Pose] {
        let end = |place: usize| self.ends[place] as usize;
        let place = place as usize;
        let start = if place == 0 { 0 } else { end(place - 1) };
        &self.poses[start..end(place)]
    }
}
