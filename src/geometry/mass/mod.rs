//! Mass, centre and principal axes of a shape of uniform density.
//!
//! A polyhedron is cut into tetrahedra from one inner point o to triangles (a, b, c) of its faces, all
//! relative to o:
//!
//! ```text
//! volume       Σ v,  v = a · (b × c) / 6                                    (1)
//! centre       Σ v (a + b + c) / 4 / Σ v                                    (2)
//! ∫ x xᵀ dx    Σ v (a aᵀ + b bᵀ + c cᵀ + s sᵀ) / 20,  s = a + b + c          (3)
//! inertia      ρ (tr(C) 1 − C),  C = (3) about the centre                   (4)
//! ```
//!
//! A cluster is the sum of its parts by the parallel-axis theorem. **Where parts overlap, the overlap counts
//! twice**: as for a tool welded from pieces, the parts are taken as they are. Use parts that only touch
//! where that matters.
//!
//! The principal frame is the one nearest to the shape's own frame: no axis moves farther than it must, a
//! shape that is already aligned stays as it is, and equal moments (a cube, a disc) leave what they leave
//! open unturned.

use super::{Convex, Mat3, Part, Polyhedron, Pose, Quat, Shape, Vec3};
use thiserror::Error;

/// Moments closer than this, relative to the largest, count as equal.
const EQUAL_MOMENTS: f64 = 1e-12;

/// Mass, centre of mass and principal moments, in the frame of the shape they belong to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MassProperties {
    /// kg.
    pub mass: f64,
    /// m, in the frame of the shape.
    pub centre: Vec3,
    /// About the centre, kg m²; in the order of the axes of `principal_rotation`.
    pub principal_inertia: Vec3,
    /// Turns the principal axes into the frame of the shape.
    pub principal_rotation: Quat,
}

#[derive(Clone, Debug, PartialEq, Error)]
pub enum MassError {
    #[error("a half-space is infinite and has no mass; only a fixed or moving wall can be one")]
    HalfSpace,
    #[error("the density has to be positive and finite, found {found}")]
    Density { found: f64 },
    #[error("the shape has no volume (computed: {found:e} m³)")]
    Volume { found: f64 },
}

impl MassProperties {
    /// The body frame (centre of mass, principal axes) as it stands in the frame of the shape.
    pub fn frame(&self) -> Pose {
        Pose::new(self.principal_rotation, self.centre)
    }
}

/// Mass properties of a shape filled with `density` (kg/m³).
pub fn mass_properties(shape: &Shape, density: f64) -> Result<MassProperties, MassError> {
    if !(density > 0.0 && density.is_finite()) {
        return Err(MassError::Density { found: density });
    }
    let total = Moments::of_shape(shape)?;
    if !(total.volume > 0.0 && total.volume.is_finite()) {
        return Err(MassError::Volume { found: total.volume });
    }
    let spread = total.spread * density;
    let inertia = Mat3::from_diagonal_element(spread.trace()) - spread; // (4)
    let (principal_inertia, principal_rotation) = principal_axes(&inertia);
    Ok(MassProperties {
        mass: total.volume * density,
        centre: total.centre,
        principal_inertia,
        principal_rotation,
    })
}

impl Shape {
    /// The same shape in its body frame: centre of mass at the origin, principal axes along x, y, z.
    pub fn recentred(&self, properties: &MassProperties) -> Shape {
        let frame = properties.frame();
        let back = frame.rotation.inverse();
        let inverse = Pose::new(back, -(back * frame.position));
        match self {
            Shape::Convex(Convex::Polyhedron(polyhedron)) => {
                Shape::polyhedron(polyhedron.transformed(&inverse))
            }
            // Other kinds stand at their centre along their principal axes, or have no mass properties.
            Shape::Convex(_) => self.clone(),
            Shape::Cluster(parts) => {
                let moved =
                    |part: &Part| Part { pose: inverse.compose(&part.pose), convex: part.convex.clone() };
                Shape::Cluster(parts.iter().map(moved).collect())
            }
        }
    }
}

impl Polyhedron {
    /// (1).
    pub fn volume(&self) -> f64 {
        let inner = self.vertices.iter().sum::<Vec3>() / self.vertices.len() as f64;
        let mut volume = 0.0;
        for face in &self.faces {
            let at = |i: usize| self.vertices[face.vertices[i] as usize] - inner;
            let first = at(0);
            for i in 1..face.vertices.len() - 1 {
                volume += first.dot(&at(i).cross(&at(i + 1)));
            }
        }
        volume / 6.0
    }
}

/// Of a solid of unit density.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    /// m³.
    pub volume: f64,
    pub centre: Vec3,
    /// C of (4), m⁵.
    pub spread: Mat3,
}

impl Moments {
    fn of_shape(shape: &Shape) -> Result<Moments, MassError> {
        let mut parts = Vec::new();
        for (pose, convex) in shape.parts() {
            parts.push(convex.moments()?.at(&pose));
        }
        let volume: f64 = parts.iter().map(|part| part.volume).sum();
        let centre: Vec3 = parts.iter().map(|part| part.centre * (part.volume / volume)).sum();
        let about_centre = |part: &Moments| {
            let arm = part.centre - centre;
            part.spread + arm * arm.transpose() * part.volume
        };
        let spread = parts.iter().map(about_centre).sum();
        Ok(Moments { volume, centre, spread })
    }

    /// (1)–(3).
    pub fn of_polyhedron(polyhedron: &Polyhedron) -> Moments {
        let vertices = &polyhedron.vertices;
        let inner = vertices.iter().sum::<Vec3>() / vertices.len() as f64;
        let (mut volume, mut first, mut second) = (0.0, Vec3::zeros(), Mat3::zeros());
        for face in &polyhedron.faces {
            let at = |i: usize| vertices[face.vertices[i] as usize] - inner;
            for i in 1..face.vertices.len() - 1 {
                let (a, b, c) = (at(0), at(i), at(i + 1));
                let v = a.dot(&b.cross(&c)) / 6.0;
                let s = a + b + c;
                volume += v;
                first += s * (v / 4.0);
                let squares = a * a.transpose() + b * b.transpose() + c * c.transpose() + s * s.transpose();
                second += squares * (v / 20.0);
            }
        }
        let arm = first / volume;
        Moments { volume, centre: inner + arm, spread: second - arm * arm.transpose() * volume }
    }

    fn at(&self, pose: &Pose) -> Moments {
        let turn = pose.rotation.to_rotation_matrix();
        let spread = turn.matrix() * self.spread * turn.matrix().transpose();
        Moments { volume: self.volume, centre: pose.point(&self.centre), spread }
    }
}

/// Principal moments and the rotation from the principal frame, the one nearest to the identity.
fn principal_axes(inertia: &Mat3) -> (Vec3, Quat) {
    let (moments, axes) = eigen(inertia);
    let largest = moments.max();
    let equal = |i: usize, j: usize| (moments[i] - moments[j]).abs() <= EQUAL_MOMENTS * largest;
    // Which of the three differs from two equal ones?
    let single = (0..3).find(|&k| equal((k + 1) % 3, (k + 2) % 3));
    match single {
        Some(k) if equal(k, (k + 1) % 3) || equal(k, (k + 2) % 3) => {
            (Vec3::repeat(moments.mean()), Quat::identity())
        }
        Some(k) => {
            let axis = Vec3::from(axes.column(k));
            let near = axis.iamax();
            let axis = if axis[near] < 0.0 { -axis } else { axis };
            let mut sorted = Vec3::repeat(0.5 * (moments[(k + 1) % 3] + moments[(k + 2) % 3]));
            sorted[near] = moments[k];
            (sorted, shortest_turn(near, &axis))
        }
        None => nearest_frame(&moments, &axes),
    }
}

/// The smallest rotation that takes coordinate axis `k` to the unit vector `to`, less than 90° away.
fn shortest_turn(k: usize, to: &Vec3) -> Quat {
    let mut from = Vec3::zeros();
    from[k] = 1.0;
    // Half-angle formula without trigonometry: q ∝ (1 + from · to, from × to).
    let cross = from.cross(to);
    Quat::new_normalize(nalgebra::Quaternion::new(1.0 + from.dot(to), cross.x, cross.y, cross.z))
}

/// Of all orders and signs of three axes that make a rotation, the one with the smallest angle.
fn nearest_frame(moments: &Vec3, axes: &Mat3) -> (Vec3, Quat) {
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [2, 1, 0], [1, 0, 2]];
    let mut best = (f64::NEG_INFINITY, Vec3::zeros(), Mat3::identity());
    for order in ORDERS {
        let mut frame = Mat3::from_columns(&order.map(|k| axes.column(k)));
        for k in 0..3 {
            if frame[(k, k)] < 0.0 {
                frame.column_mut(k).neg_mut();
            }
        }
        if frame.determinant() < 0.0 {
            // Turning the axis that matters least around costs least of the trace, 1 + 2 cos(angle).
            let least = frame.diagonal().imin();
            frame.column_mut(least).neg_mut();
        }
        if frame.trace() > best.0 {
            best = (frame.trace(), Vec3::from(order.map(|k| moments[k])), frame);
        }
    }
    let (_, moments, frame) = best;
    (moments, Quat::from_rotation_matrix(&nalgebra::Rotation3::from_matrix_unchecked(frame)))
}

/// Eigenvalues and eigenvectors (columns) of a symmetric matrix, by cyclic Jacobi rotations.
fn eigen(matrix: &Mat3) -> (Vec3, Mat3) {
    let mut a = *matrix;
    let mut axes = Mat3::identity();
    // Below rounding of the input: turning by it would only add noise to shapes that are aligned already.
    let negligible = 1e-15 * matrix.trace().abs();
    for _ in 0..30 {
        let mut turned = false;
        for (p, q) in [(0, 1), (0, 2), (1, 2)] {
            if a[(p, q)].abs() <= negligible {
                continue;
            }
            turned = true;
            let ratio = (a[(q, q)] - a[(p, p)]) / (2.0 * a[(p, q)]);
            let tangent = ratio.signum() / (ratio.abs() + (ratio * ratio + 1.0).sqrt());
            let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
            let sine = tangent * cosine;
            let mut turn = Mat3::identity();
            turn[(p, p)] = cosine;
            turn[(q, q)] = cosine;
            turn[(p, q)] = sine;
            turn[(q, p)] = -sine;
            a = turn.transpose() * a * turn;
            axes *= turn;
        }
        if !turned {
            break;
        }
    }
    (a.diagonal(), axes)
}

#[cfg(test)]
mod tests;
