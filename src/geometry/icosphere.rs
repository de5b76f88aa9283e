//! A unit sphere as triangles: the icosahedron, each triangle split in four again and again.

use super::Vec3;
use std::collections::BTreeMap;

/// 12, 42, 162, 642, … vertices for refinement 0, 1, 2, 3, …
#[derive(Clone, Debug)]
pub struct Icosphere {
    pub vertices: Vec<Vec3>,
    /// Counter-clockwise seen from outside.
    pub triangles: Vec<[usize; 3]>,
}

/// More than this makes 163,842 vertices a sphere, surely a mistake.
pub const FINEST: u32 = 6;

impl Icosphere {
    /// `refinement` above [`FINEST`] counts as that.
    pub fn new(refinement: u32) -> Self {
        let mut sphere = Self::icosahedron();
        for _ in 0..refinement.min(FINEST) {
            sphere = sphere.refined();
        }
        sphere
    }

    /// Two poles and two staggered rings of five.
    fn icosahedron() -> Self {
        let height = 1.0 / 5.0_f64.sqrt();
        let ring = |k: usize, z: f64, shift: f64| {
            let angle = (k as f64 + shift) * std::f64::consts::TAU / 5.0;
            Vec3::new(2.0 * height * angle.cos(), 2.0 * height * angle.sin(), z)
        };
        let mut vertices = vec![Vec3::z()];
        vertices.extend((0..5).map(|k| ring(k, height, 0.0)));
        vertices.extend((0..5).map(|k| ring(k, -height, 0.5)));
        vertices.push(-Vec3::z());
        let (upper, lower) = (|k: usize| 1 + k % 5, |k: usize| 6 + k % 5);
        let around = |k: usize| {
            [
                [0, upper(k), upper(k + 1)],
                [upper(k), lower(k), upper(k + 1)],
                [lower(k), lower(k + 1), upper(k + 1)],
                [11, lower(k + 1), lower(k)],
            ]
        };
        Self { vertices, triangles: (0..5).flat_map(around).collect() }
    }

    fn refined(self) -> Self {
        let Icosphere { mut vertices, triangles } = self;
        let mut middles = BTreeMap::new();
        let mut middle = |a: usize, b: usize| {
            *middles.entry((a.min(b), a.max(b))).or_insert_with(|| {
                vertices.push((vertices[a] + vertices[b]).normalize());
                vertices.len() - 1
            })
        };
        let mut finer = Vec::with_capacity(4 * triangles.len());
        for [a, b, c] in triangles {
            let (ab, bc, ca) = (middle(a, b), middle(b, c), middle(c, a));
            finer.extend([[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]);
        }
        Self { vertices, triangles: finer }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_closed_outward_sphere() {
        for refinement in 0..4 {
            let sphere = Icosphere::new(refinement);
            let faces = 20 * 4_usize.pow(refinement);
            assert_eq!(sphere.triangles.len(), faces);
            assert_eq!(sphere.vertices.len(), 2 + faces / 2); // Euler's formula
            assert!(sphere.vertices.iter().all(|vertex| (vertex.norm() - 1.0).abs() < 1e-14));
            let mut edges = std::collections::BTreeSet::new();
            let mut volume = 0.0;
            for [a, b, c] in &sphere.triangles {
                for edge in [(a, b), (b, c), (c, a)] {
                    assert!(edges.insert(edge), "an edge is passed twice in one direction");
                }
                let [p, q, r] = [a, b, c].map(|&k| sphere.vertices[k]);
                let part = p.dot(&q.cross(&r)) / 6.0;
                assert!(part > 0.0, "a triangle looks inwards");
                volume += part;
            }
            assert!(edges.iter().all(|&(a, b)| edges.contains(&(b, a))), "the surface has a hole");
            let missing = 4.0 / 3.0 * std::f64::consts::PI - volume;
            assert!(missing > 0.0 && missing < 1.7 / 3.0_f64.powi(refinement as i32));
        }
    }
}
