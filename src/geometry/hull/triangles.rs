//! The triangulated convex hull of points with integer coordinates, exactly.
//!
//! Quickhull with exact predicates. Coordinates lie in 0 ..= 2⁴¹, so differences need 42 bits with their
//! sign, cross products stay below 2⁸³, and the side test
//!
//! ```text
//! side(p) = ((b − a) × (c − a)) · (p − a)                                  (1)
//! ```
//!
//! is a sum of three terms below 2¹²⁴: it fits an `i128`, and its sign is never wrong.
//!
//! A triangle is *visible* from p when (1) is strictly positive. A horizon edge then borders a visible
//! triangle, so p is never on its line, and no triangle of zero area can arise; a point in the plane of a
//! face makes triangles coplanar with it, which the caller merges.

/// Largest coordinate accepted, see (1).
pub(super) const COORDINATE_BITS: i32 = 41;

pub(super) type Point = [i64; 3];

const NONE: u32 = u32::MAX;

/// A triangle of the hull, counter-clockwise seen from outside.
pub(super) struct Triangle {
    pub vertices: [u32; 3],
    /// `neighbours[i]` lies across the edge `vertices[i] → vertices[i + 1]`.
    pub neighbours: [u32; 3],
    /// (b − a) × (c − a), outward.
    pub normal: [i128; 3],
    /// Points that see this triangle and are not yet in the hull; each is on one list only.
    outside: Vec<u32>,
    alive: bool,
}

impl Triangle {
    fn new(points: &[Point], vertices: [u32; 3]) -> Self {
        let [a, b, c] = vertices.map(|v| points[v as usize]);
        let (u, w) = (minus(b, a), minus(c, a));
        let normal = std::array::from_fn(|k| {
            let (i, j) = ((k + 1) % 3, (k + 2) % 3);
            u[i] * w[j] - u[j] * w[i]
        });
        Triangle { vertices, neighbours: [NONE; 3], normal, outside: Vec::new(), alive: true }
    }

    /// (1): positive outside, zero in the plane.
    pub fn side(&self, points: &[Point], point: u32) -> i128 {
        let arm = minus(points[point as usize], points[self.vertices[0] as usize]);
        (0..3).map(|k| self.normal[k] * arm[k]).sum()
    }
}

fn minus(a: Point, b: Point) -> [i128; 3] {
    std::array::from_fn(|k| i128::from(a[k] - b[k]))
}

/// The hull of `points`, grown from four of them; `None` if those four lie in one plane.
pub(super) fn triangulated_hull(points: &[Point], simplex: [u32; 4]) -> Option<Vec<Triangle>> {
    let mut hull = Hull::from_simplex(points, simplex)?;
    while let Some(seed) = hull.pending.pop() {
        if hull.triangles[seed as usize].alive && !hull.triangles[seed as usize].outside.is_empty() {
            hull.add_farthest_of(seed);
        }
    }
    Some(hull.compacted())
}

struct Hull<'a> {
    points: &'a [Point],
    triangles: Vec<Triangle>,
    /// Triangles that may have points outside, last one first.
    pending: Vec<u32>,
    /// Scratch: the new triangle whose horizon edge starts at a vertex.
    starting_at: Vec<u32>,
}

impl<'a> Hull<'a> {
    fn from_simplex(points: &'a [Point], [a, b, c, d]: [u32; 4]) -> Option<Self> {
        let side = Triangle::new(points, [a, b, c]).side(points, d);
        // d has to be below a, b, c.
        let (b, c) = match side.signum() {
            0 => return None,
            1 => (c, b),
            _ => (b, c),
        };
        let corners = [[a, b, c], [a, d, b], [b, d, c], [c, d, a]];
        let neighbours = [[1, 2, 3], [3, 2, 0], [1, 3, 0], [2, 1, 0]];
        let mut triangles: Vec<Triangle> = corners.iter().map(|v| Triangle::new(points, *v)).collect();
        for (triangle, beside) in triangles.iter_mut().zip(neighbours) {
            triangle.neighbours = beside;
        }
        let mut hull = Hull { points, triangles, pending: Vec::new(), starting_at: vec![NONE; points.len()] };
        hull.distribute(0..points.len() as u32, 0);
        Some(hull)
    }

    /// Gives each point to the first triangle from `first` on that it sees; points that see none are inside.
    fn distribute(&mut self, candidates: impl Iterator<Item = u32>, first: usize) {
        for point in candidates {
            let seen = self.triangles[first..].iter_mut().find(|t| t.side(self.points, point) > 0);
            if let Some(triangle) = seen {
                triangle.outside.push(point);
            }
        }
        let with_points = (first..self.triangles.len()).filter(|&t| !self.triangles[t].outside.is_empty());
        self.pending.extend(with_points.map(|t| t as u32));
    }

    /// Replaces everything visible from the point farthest above `seed` by the cone from that point.
    fn add_farthest_of(&mut self, seed: u32) {
        let triangle = &self.triangles[seed as usize];
        let Some(apex) =
            triangle.outside.iter().copied().max_by_key(|&p| (triangle.side(self.points, p), u32::MAX - p))
        else {
            return;
        };
        let (visible, horizon) = self.visible_from(apex, seed);
        let orphans: Vec<u32> = visible
            .iter()
            .flat_map(|&t| std::mem::take(&mut self.triangles[t as usize].outside))
            .filter(|&p| p != apex)
            .collect();
        let first = self.triangles.len();
        for &(from, to, beyond) in &horizon {
            let new = self.triangles.len() as u32;
            self.triangles.push(Triangle::new(self.points, [from, to, apex]));
            self.triangles[new as usize].neighbours[0] = beyond;
            self.starting_at[from as usize] = new;
            let outer = &mut self.triangles[beyond as usize];
            let shared = (0..3).find(|&i| outer.vertices[i] == to && outer.vertices[(i + 1) % 3] == from);
            if let Some(shared) = shared {
                outer.neighbours[shared] = new;
            }
        }
        // The horizon is one closed loop, so the triangle that starts at `to` is the next one around the
        // apex.
        for index in first..self.triangles.len() {
            let next = self.starting_at[self.triangles[index].vertices[1] as usize];
            self.triangles[index].neighbours[1] = next;
            self.triangles[next as usize].neighbours[2] = index as u32;
        }
        self.distribute(orphans.into_iter(), first);
    }

    /// Visible triangles (marked dead), and the directed edges around them with the triangle beyond each.
    fn visible_from(&mut self, apex: u32, seed: u32) -> (Vec<u32>, Vec<(u32, u32, u32)>) {
        self.triangles[seed as usize].alive = false;
        let mut visible = vec![seed];
        let mut next = 0;
        while next < visible.len() {
            for beside in self.triangles[visible[next] as usize].neighbours {
                let triangle = &mut self.triangles[beside as usize];
                if triangle.alive && triangle.side(self.points, apex) > 0 {
                    triangle.alive = false;
                    visible.push(beside);
                }
            }
            next += 1;
        }
        let mut horizon = Vec::new();
        for &index in &visible {
            let Triangle { vertices, neighbours, .. } = &self.triangles[index as usize];
            for i in 0..3 {
                if self.triangles[neighbours[i] as usize].alive {
                    horizon.push((vertices[i], vertices[(i + 1) % 3], neighbours[i]));
                }
            }
        }
        (visible, horizon)
    }

    /// The living triangles, renumbered.
    fn compacted(self) -> Vec<Triangle> {
        let mut label = vec![NONE; self.triangles.len()];
        let living = (0..self.triangles.len()).filter(|&t| self.triangles[t].alive);
        for (new, old) in living.enumerate() {
            label[old] = new as u32;
        }
        let mut kept: Vec<Triangle> = self.triangles.into_iter().filter(|t| t.alive).collect();
        for triangle in &mut kept {
            triangle.neighbours = triangle.neighbours.map(|t| label[t as usize]);
        }
        kept
    }
}
