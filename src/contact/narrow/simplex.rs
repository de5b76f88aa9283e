//! Simplices of a difference of two pieces, reduced to what is nearest to the origin.

use crate::geometry::Vec3;

/// A corner: the points of the two pieces, and their difference.
#[derive(Clone, Copy, Debug)]
pub struct Vertex {
    pub difference: Vec3,
    pub on_a: Vec3,
    pub on_b: Vec3,
}

/// One to four corners with the weights of the point nearest to the origin. Below four corners every weight
/// is positive: others are left out.
#[derive(Clone, Copy, Debug)]
pub struct Simplex {
    corners: [Vertex; 4],
    weights: [f64; 4],
    count: usize,
}

impl Simplex {
    pub fn new(vertex: Vertex) -> Self {
        Self { corners: [vertex; 4], weights: [1.0, 0.0, 0.0, 0.0], count: 1 }
    }

    pub fn corners(&self) -> &[Vertex] {
        &self.corners[..self.count]
    }

    /// Whether it is a tetrahedron with the origin inside.
    pub fn encloses(&self) -> bool {
        self.count == 4
    }

    pub fn has(&self, vertex: &Vertex) -> bool {
        self.corners().iter().any(|corner| corner.difference == vertex.difference)
    }

    fn weighted(&self, of: impl Fn(&Vertex) -> Vec3) -> Vec3 {
        self.corners().iter().zip(&self.weights).map(|(corner, weight)| of(corner) * *weight).sum()
    }

    /// Its point nearest to the origin.
    pub fn nearest(&self) -> Vec3 {
        self.weighted(|corner| corner.difference)
    }

    /// The points of the two pieces that belong to it.
    pub fn points(&self) -> [Vec3; 2] {
        [self.weighted(|corner| corner.on_a), self.weighted(|corner| corner.on_b)]
    }

    /// Adds a corner to at most three and leaves out those that do not bear the nearest point.
    pub fn push(&mut self, vertex: Vertex) {
        self.corners[self.count] = vertex;
        self.count += 1;
        match self.count {
            2 => self.reduce(&[&[1], &[0, 1]]),
            3 => self.reduce(&[&[2], &[0, 2], &[1, 2], &[0, 1, 2]]),
            _ => {
                let inside = barycentric(self.corners().iter().map(|corner| corner.difference));
                match inside.filter(|weights| weights[..4].iter().all(|weight| *weight >= 0.0)) {
                    Some(weights) => self.weights = weights,
                    None => self.reduce(&[
                        &[3],
                        &[0, 3],
                        &[1, 3],
                        &[2, 3],
                        &[0, 1, 3],
                        &[0, 2, 3],
                        &[1, 2, 3],
                        &[0, 1, 2],
                    ]),
                }
            }
        }
    }

    /// Keeps the one of some sub-simplices whose nearest point is nearest. The new corner bears that point
    /// but for rounding.
    fn reduce(&mut self, choices: &[&[usize]]) {
        let mut best: Option<(f64, Simplex)> = None;
        for choice in choices {
            let points = choice.iter().map(|&k| self.corners[k].difference);
            let Some(weights) = barycentric(points) else { continue };
            if weights[..choice.len()].iter().any(|weight| *weight < 0.0) {
                continue;
            }
            let mut part = Simplex { weights, count: choice.len(), ..*self };
            choice.iter().enumerate().for_each(|(place, &k)| part.corners[place] = self.corners[k]);
            let squared = part.nearest().norm_squared();
            if best.as_ref().is_none_or(|(least, _)| squared < *least) {
                best = Some((squared, part));
            }
        }
        if let Some((_, part)) = best {
            *self = part;
        }
    }
}

/// Weights, of sum 1, of the point nearest to the origin in the affine hull of one to four points; none where
/// that is degenerate. Of four points: of the origin itself.
fn barycentric(points: impl Iterator<Item = Vec3>) -> Option<[f64; 4]> {
    let mut all = [Vec3::zeros(); 4];
    let mut count = 0;
    for point in points {
        all[count] = point;
        count += 1;
    }
    let [a, b, c, d] = all;
    let weights = match count {
        1 => [1.0, 0.0, 0.0, 0.0],
        2 => {
            let along = b - a;
            let t = -a.dot(&along) / along.norm_squared();
            [1.0 - t, t, 0.0, 0.0]
        }
        3 => {
            let normal = (b - a).cross(&(c - a));
            let whole = normal.norm_squared();
            // Areas of the triangles with the foot of the origin; the foot falls out of a triple product with
            // the normal.
            let area = |p: &Vec3, q: &Vec3| p.cross(q).dot(&normal) / whole;
            [area(&b, &c), area(&c, &a), area(&a, &b), 0.0]
        }
        _ => {
            let volume = |p: &Vec3, q: &Vec3, r: &Vec3| p.dot(&q.cross(r));
            let parts = [volume(&b, &d, &c), volume(&a, &c, &d), volume(&a, &d, &b), volume(&a, &b, &c)];
            let whole: f64 = parts.iter().sum();
            parts.map(|part| part / whole)
        }
    };
    weights.iter().all(|weight| weight.is_finite()).then_some(weights)
}
