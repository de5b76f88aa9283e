//! Where the parts of clusters stand, computed once in a call and not for every body that may touch them, and
//! which parts of two bodies may touch.

use super::tree::Tree;
use crate::geometry::{Aabb, Convex, Pose, Shape};
use crate::scene::Body;

/// Clusters of fewer parts have no tree: their parts are compared one by one.
const TREE: usize = 16;
/// By which the box around a part is wider than it need be, relative to its radius and its coordinates: above
/// rounding.
const WIDER: f64 = 1e-9;

#[derive(Default)]
pub struct Parts {
    /// World.
    poses: Vec<Pose>,
    /// By body: past its last one.
    ends: Vec<u32>,
    /// Of bodies with many parts, ascending by place.
    trees: Vec<(u32, Tree)>,
}

impl Parts {
    pub fn place<'a>(&mut self, bodies: impl Iterator<Item = &'a Body>) {
        let Self { poses, ends, trees } = self;
        poses.clear();
        ends.clear();
        trees.clear();
        for (place, body) in bodies.enumerate() {
            if let Shape::Cluster(parts) = &body.shape {
                let first = poses.len();
                poses.extend(parts.iter().map(|part| body.pose.compose(&part.pose)));
                if parts.len() >= TREE {
                    let pieces = parts.iter().zip(&poses[first..]);
                    let boxes: Vec<Aabb> = pieces.map(|(part, pose)| around(&part.convex, pose)).collect();
                    trees.push((place as u32, Tree::new(&boxes)));
                }
            }
            ends.push(poses.len() as u32);
        }
    }

    /// Of the body at a place in that list; none for one that is no cluster.
    pub fn of(&self, place: u32) -> &[Pose] {
        let end = |place: usize| self.ends[place] as usize;
        let place = place as usize;
        let start = if place == 0 { 0 } else { end(place - 1) };
        &self.poses[start..end(place)]
    }

    fn tree(&self, place: u32) -> Option<&Tree> {
        let found = self.trees.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        Some(&self.trees[found].1)
    }

    /// Pairs of parts of two bodies that may be within `margin` of each other, ascending; none if neither has
    /// a tree and all are to be compared. Only pairs are left out whose bounding spheres prove that they have
    /// no patch.
    pub fn near(
        &self,
        places: [u32; 2],
        shapes: [&Shape; 2],
        poses: [&[Pose]; 2],
        margin: f64,
    ) -> Option<Vec<[usize; 2]>> {
        let trees = places.map(|place| self.tree(place));
        // The tree of the body with more parts is searched for each part of the other.
        let searched = match &trees {
            [None, None] => return None,
            [Some(_), Some(_)] => usize::from(poses[1].len() >= poses[0].len()),
            [first, _] => usize::from(first.is_none()),
        };
        let tree = trees[searched]?;
        let other = 1 - searched;
        let mut pairs = Vec::new();
        for (part, pose) in poses[other].iter().enumerate() {
            let query = around(shapes[other].part(part), pose).inflated(margin);
            tree.overlapping(&query, |found| {
                let mut pair = [part; 2];
                pair[searched] = found as usize;
                pairs.push(pair);
            });
        }
        pairs.sort_unstable();
        Some(pairs)
    }
}

/// The box around the bounding sphere of a part.
///
/// Not the smallest: two polyhedra whose distance exceeds the margin may have a patch, because the narrow
/// phase measures along axes of theirs, but none if their bounding spheres are farther apart.
fn around(convex: &Convex, pose: &Pose) -> Aabb {
    let at = pose.position;
    let wider = WIDER * (convex.bounding_radius() + at.amax());
    Aabb { min: at, max: at }.inflated(convex.bounding_radius() + wider)
}
