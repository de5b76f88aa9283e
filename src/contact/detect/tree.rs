//! A tree of boxes: which of many overlap a given one.

use crate::geometry::Aabb;

/// Boxes that are compared one by one.
const LEAF: usize = 4;

/// A range of boxes and the box around them. The first of two children follows its parent.
struct Node {
    bounds: Aabb,
    start: u32,
    end: u32,
    /// Place of the second child; 0 for a leaf.
    second: u32,
}

pub struct Tree {
    nodes: Vec<Node>,
    /// Places in the list of boxes, by range.
    order: Vec<u32>,
    /// In that order.
    boxes: Vec<Aabb>,
}

impl Tree {
    /// Halves ranges at the median along the longest side of the box around the centres.
    pub fn new(boxes: &[Aabb]) -> Self {
        let mut order: Vec<u32> = (0..boxes.len() as u32).collect();
        let mut nodes = Vec::with_capacity(boxes.len() / LEAF * 2 + 1);
        build(boxes, &mut order, 0, &mut nodes);
        let boxes = order.iter().map(|&place| boxes[place as usize]).collect();
        Self { nodes, order, boxes }
    }

    /// Calls `found` with the place of each box that overlaps `query`, in no particular order.
    pub fn overlapping(&self, query: &Aabb, mut found: impl FnMut(u32)) {
        let mut open = vec![0];
        while let Some(place) = open.pop() {
            let Some(node) = self.nodes.get(place as usize).filter(|node| node.bounds.overlaps(query)) else {
                continue;
            };
            if node.second != 0 {
                open.extend([place + 1, node.second]);
                continue;
            }
            for k in node.start as usize..node.end as usize {
                if self.boxes[k].overlaps(query) {
                    found(self.order[k]);
                }
            }
        }
    }
}

/// `order` is the range that begins at `start`.
fn build(boxes: &[Aabb], order: &mut [u32], start: u32, nodes: &mut Vec<Node>) {
    let of = |place: &u32| &boxes[*place as usize];
    let bounds = order.iter().map(of).fold(Aabb::empty(), |all, one| all.union(one));
    let place = nodes.len();
    nodes.push(Node { bounds, start, end: start + order.len() as u32, second: 0 });
    if order.len() <= LEAF {
        return;
    }
    let centre = |place: &u32, axis: usize| of(place).min[axis] + of(place).max[axis];
    let extent = |axis: usize| {
        let centres = order.iter().map(|place| centre(place, axis));
        centres.clone().fold(f64::NEG_INFINITY, f64::max) - centres.fold(f64::INFINITY, f64::min)
    };
    let axis = [0, 1, 2].into_iter().max_by(|&a, &b| extent(a).total_cmp(&extent(b))).unwrap_or(0);
    let half = order.len() / 2;
    order.select_nth_unstable_by(half, |a, b| centre(a, axis).total_cmp(&centre(b, axis)).then(a.cmp(b)));
    let (first, second) = order.split_at_mut(half);
    build(boxes, first, start, nodes);
    nodes[place].second = nodes.len() as u32;
    build(boxes, second, start + half as u32, nodes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Random, Vec3};

    #[test]
    fn a_tree_finds_what_all_pairs_find() {
        let mut random = Random::new(3, 1);
        for count in [0, 1, 4, 5, 17, 300] {
            let mut one = |size: f64| {
                let centre = random.direction() * random.uniform();
                Aabb { min: centre, max: centre }.inflated(size * random.uniform())
            };
            let mut boxes: Vec<Aabb> = (0..count).map(|_| one(0.2)).collect();
            if count == 17 {
                boxes[3] = Aabb { min: Vec3::repeat(f64::NEG_INFINITY), max: Vec3::repeat(f64::INFINITY) };
                boxes[7] = boxes[8];
            }
            let tree = Tree::new(&boxes);
            for _ in 0..50 {
                let query = one(0.4);
                let mut found = Vec::new();
                tree.overlapping(&query, |place| found.push(place));
                found.sort_unstable();
                let expected = (0..count as u32).filter(|place| boxes[*place as usize].overlaps(&query));
                assert!(found.into_iter().eq(expected));
            }
        }
    }
}
