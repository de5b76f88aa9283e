//! Joints: relative placement, motion subspace, and integration on the manifold.
//!
//! A joint sits between a frame on the parent (`parent_side`) and a frame on the child (`child_side`);
//! `transform(q)` places the second in the first. Positions and velocities, in this order:
//!
//! | kind | q | v |
//! | --- | --- | --- |
//! | revolute | angle | its rate |
//! | prismatic | slide | its rate |
//! | cylindrical | slide, angle | rates |
//! | universal | angle about `first` (fixed in the parent), then about `second` (fixed in the child) | rates |
//! | planar | x along `first`, y along `normal × first` (parent axes), angle about `normal` | rates |
//! | spherical | quaternion (w, x, y, z) | angular velocity in child-side axes |
//! | free | position (parent-side axes), quaternion | its rate, angular velocity in child-side axes |

use super::spatial::Twist;
use crate::geometry::{Pose, Quat, Vec3};
use nalgebra::{Quaternion, Unit};

/// What motion a joint allows. Axes need not be unit vectors: the builder normalises them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JointKind {
    Fixed,
    Revolute { axis: Vec3 },
    Prismatic { axis: Vec3 },
    Cylindrical { axis: Vec3 },
    Universal { first: Vec3, second: Vec3 },
    Planar { normal: Vec3, first: Vec3 },
    Spherical,
    Free,
}

impl JointKind {
    /// Number of entries in `q`.
    pub fn nq(&self) -> usize {
        match self {
            JointKind::Spherical => 4,
            JointKind::Free => 7,
            other => other.nv(),
        }
    }

    /// Number of entries in `v`: degrees of freedom.
    pub fn nv(&self) -> usize {
        self.labels().len()
    }

    /// Names of the entries of `v`.
    pub fn labels(&self) -> &'static [&'static str] {
        match self {
            JointKind::Fixed => &[],
            JointKind::Revolute { .. } => &["angle"],
            JointKind::Prismatic { .. } => &["slide"],
            JointKind::Cylindrical { .. } => &["slide", "angle"],
            JointKind::Universal { .. } => &["first", "second"],
            JointKind::Planar { .. } => &["x", "y", "angle"],
            JointKind::Spherical => &["wx", "wy", "wz"],
            JointKind::Free => &["x", "y", "z", "wx", "wy", "wz"],
        }
    }

    /// Whether entry `local` of `v` is an angular velocity.
    pub(super) fn is_rotation(&self, local: usize) -> bool {
        match self {
            JointKind::Fixed | JointKind::Prismatic { .. } => false,
            JointKind::Revolute { .. } | JointKind::Universal { .. } | JointKind::Spherical => true,
            JointKind::Cylindrical { .. } => local == 1,
            JointKind::Planar { .. } => local == 2,
            JointKind::Free => local >= 3,
        }
    }

    /// Where in the joint's `q` the integral of entry `local` of `v` stands; none for quaternions.
    pub(super) fn scalar_position(&self, local: usize) -> Option<usize> {
        match self {
            JointKind::Spherical => None,
            JointKind::Free if local >= 3 => None,
            _ => Some(local),
        }
    }

    /// Where the quaternion starts in the joint's `q`, and its angular velocity in `v`.
    pub(super) fn quaternion(&self) -> Option<(usize, usize)> {
        match self {
            JointKind::Spherical => Some((0, 0)),
            JointKind::Free => Some((3, 3)),
            _ => None,
        }
    }

    /// The position with both sides coincident.
    pub(super) fn neutral(&self, q: &mut [f64]) {
        q.fill(0.0);
        if let Some((at, _)) = self.quaternion() {
            q[at] = 1.0;
        }
    }

    /// Placement of the child side in the parent side.
    pub(super) fn transform(&self, q: &[f64]) -> Pose {
        let turn = |axis: &Vec3, angle: f64| Quat::from_axis_angle(&Unit::new_unchecked(*axis), angle);
        match self {
            JointKind::Fixed => Pose::identity(),
            JointKind::Revolute { axis } => Pose::new(turn(axis, q[0]), Vec3::zeros()),
            JointKind::Prismatic { axis } => Pose::new(Quat::identity(), axis * q[0]),
            JointKind::Cylindrical { axis } => Pose::new(turn(axis, q[1]), axis * q[0]),
            JointKind::Universal { first, second } => {
                Pose::new(turn(first, q[0]) * turn(second, q[1]), Vec3::zeros())
            }
            JointKind::Planar { normal, first } => {
                Pose::new(turn(normal, q[2]), first * q[0] + normal.cross(first) * q[1])
            }
            JointKind::Spherical => Pose::new(read_quaternion(q), Vec3::zeros()),
            JointKind::Free => Pose::new(read_quaternion(&q[3..]), Vec3::new(q[0], q[1], q[2])),
        }
    }

    /// Columns of the motion subspace in world axes about `reference`.
    pub(super) fn subspace(
        &self,
        parent_side: &Pose,
        child_side: &Pose,
        reference: &Vec3,
        columns: &mut [Twist],
    ) {
        let slide = |axis: &Vec3| Twist::translation(parent_side.direction(axis));
        let arm = child_side.position - reference;
        let turn = |world_axis: Vec3| Twist::rotation(world_axis, &arm);
        match self {
            JointKind::Fixed => {}
            JointKind::Revolute { axis } => columns[0] = turn(parent_side.direction(axis)),
            JointKind::Prismatic { axis } => columns[0] = slide(axis),
            JointKind::Cylindrical { axis } => {
                columns[0] = slide(axis);
                columns[1] = turn(parent_side.direction(axis));
            }
            JointKind::Universal { first, second } => {
                columns[0] = turn(parent_side.direction(first));
                columns[1] = turn(child_side.direction(second));
            }
            JointKind::Planar { normal, first } => {
                columns[0] = slide(first);
                columns[1] = slide(&normal.cross(first));
                columns[2] = turn(parent_side.direction(normal));
            }
            JointKind::Spherical => fill_axes(columns, |k| turn(child_side.direction(&unit(k)))),
            JointKind::Free => {
                fill_axes(&mut columns[..3], |k| slide(&unit(k)));
                fill_axes(&mut columns[3..], |k| turn(child_side.direction(&unit(k))));
            }
        }
    }

    /// Whether column `local` is fixed in the parent rather than in the child. It decides which body's twist
    /// carries the column: translations run along parent axes, and so does the first axis of a universal
    /// joint.
    pub(super) fn fixed_in_parent(&self, local: usize) -> bool {
        matches!(self, JointKind::Universal { .. }) && local == 0 || !self.is_rotation(local)
    }

    /// `q ← q ⊕ h v`: sums for scalars, the exponential map for quaternions.
    pub(super) fn integrate(&self, q: &mut [f64], v: &[f64], h: f64) {
        let scalars = self.quaternion().map_or(self.nv(), |(_, at)| at);
        for k in 0..scalars {
            q[k] += h * v[k];
        }
        if let Some((at, from)) = self.quaternion() {
            let turn = Quat::from_scaled_axis(Vec3::new(v[from], v[from + 1], v[from + 2]) * h);
            // Normalised afresh: products of unit quaternions drift off the sphere by rounding.
            let turned = Quat::new_normalize((read_quaternion(&q[at..]) * turn).into_inner());
            q[at..at + 4].copy_from_slice(&[turned.w, turned.i, turned.j, turned.k]);
        }
    }

    /// With unit axes, planar `first` made normal to `normal`; none if an axis has no direction.
    pub(super) fn normalised(&self) -> Option<JointKind> {
        let unit = |axis: &Vec3| axis.try_normalize(1e-12).filter(|a| a.iter().all(|x| x.is_finite()));
        Some(match self {
            JointKind::Fixed | JointKind::Spherical | JointKind::Free => *self,
            JointKind::Revolute { axis } => JointKind::Revolute { axis: unit(axis)? },
            JointKind::Prismatic { axis } => JointKind::Prismatic { axis: unit(axis)? },
            JointKind::Cylindrical { axis } => JointKind::Cylindrical { axis: unit(axis)? },
            JointKind::Universal { first, second } => {
                let (first, second) = (unit(first)?, unit(second)?);
                // Parallel axes would be one revolute joint twice.
                (first.cross(&second).norm() > 1e-6).then_some(JointKind::Universal { first, second })?
            }
            JointKind::Planar { normal, first } => {
                let normal = unit(normal)?;
                JointKind::Planar { normal, first: unit(&(first - normal * normal.dot(first)))? }
            }
        })
    }
}

fn unit(k: usize) -> Vec3 {
    let mut axis = Vec3::zeros();
    axis[k] = 1.0;
    axis
}

fn fill_axes(columns: &mut [Twist], twist: impl Fn(usize) -> Twist) {
    for (k, column) in columns.iter_mut().enumerate() {
        *column = twist(k);
    }
}

fn read_quaternion(q: &[f64]) -> Quat {
    Quat::new_unchecked(Quaternion::new(q[0], q[1], q[2], q[3]))
}
