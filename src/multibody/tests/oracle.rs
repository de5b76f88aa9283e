//! An independent formulation to check against: every body has six absolute degrees of freedom, and joints
//! and cuts are textbook constraints (coincident points, constant dot products, distance) with Lagrange
//! multipliers.
//!
//! It shares with the production code only the poses and twists of the bodies, and checks even those:
//! positions and velocities have to satisfy every constraint. It also makes random mechanisms.

use super::super::builder::MultibodyBuilder;
use super::super::model::CutLaw;
use super::super::spec::{BodySpec, CutKind, JointSpec};
use super::super::{BodyIndex, Data, JointKind, Model};
use crate::geometry::{Mat3, Pose, Quat, Vec3};
use nalgebra::{DMatrix, DVector};

/// Small deterministic random numbers (splitmix64).
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In [-1, 1).
    pub fn signed(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn vector(&mut self) -> Vec3 {
        Vec3::new(self.signed(), self.signed(), self.signed())
    }

    pub fn turn(&mut self) -> Quat {
        Quat::from_scaled_axis(self.vector() * 2.0)
    }

    pub fn pose(&mut self) -> Pose {
        Pose::new(self.turn(), self.vector() * 0.5)
    }
}

pub(super) fn random_body(random: &mut Random, name: &str) -> BodySpec {
    let [a, b, c] = [0; 3].map(|_| 0.06 + 0.05 * random.signed());
    let turn = random.turn().to_rotation_matrix().into_inner();
    let inertia = turn * Mat3::from_diagonal(&Vec3::new(b + c, a + c, a + b)) * turn.transpose();
    BodySpec::new(name, 1.5 + random.signed(), random.vector() * 0.3, inertia)
        .point("tip", random.vector() * 0.5)
        .with_contacts()
}

fn random_kind(random: &mut Random) -> JointKind {
    let axis = random.vector();
    match random.below(9) {
        0 | 1 => JointKind::Revolute { axis },
        2 => JointKind::Prismatic { axis },
        3 => JointKind::Cylindrical { axis },
        4 => JointKind::Universal { first: axis, second: random.vector() },
        5 => JointKind::Planar { normal: axis, first: random.vector() },
        6 => JointKind::Spherical,
        7 => JointKind::Free,
        _ => JointKind::Fixed,
    }
}

/// A random tree at a random position with random velocities. Body 0 is never fixed, so that something moves.
pub(super) fn random_tree(random: &mut Random, bodies: usize) -> MultibodyBuilder {
    let mut builder = MultibodyBuilder::new("random");
    builder.gravity(random.vector() * 10.0);
    for i in 0..bodies {
        builder.body(random_body(random, &format!("b{i}")));
        let parent =
            if i == 0 || random.below(5) == 0 { "ground".into() } else { format!("b{}", random.below(i)) };
        let kind = loop {
            let kind = random_kind(random);
            if (i > 0 || kind != JointKind::Fixed) && kind.normalised().is_some() {
                break kind;
            }
        };
        let q: Vec<f64> = (0..kind.nq()).map(|_| random.signed() * 2.0).collect();
        let v: Vec<f64> = (0..kind.nv()).map(|_| random.signed() * 3.0).collect();
        builder.joint(
            JointSpec::new(&format!("j{i}"), kind, &parent, &format!("b{i}"))
                .frames(random.pose(), random.pose())
                .start(&q, &v),
        );
    }
    builder
}

/// Adds a cut that is closed at the position of `model`, which is the same machine without it.
pub(super) fn random_cut(random: &mut Random, builder: &mut MultibodyBuilder, model: &Model, name: &str) {
    let mut initial = model.initial().clone();
    model.normalise(&mut initial).expect("finite");
    let mut data = Data::new(model);
    data.update_positions(model, &initial.q);
    let b = random.below(model.body_count());
    let a = match random.below(model.body_count() + 1) {
        other if other == model.body_count() || other == b => None,
        other => Some(other),
    };
    let (pose_a, pose_b) = (a.map_or(Pose::identity(), |i| data.poses[i]), data.poses[b]);
    let body = |index: Option<usize>| index.map_or("ground".to_string(), |i| format!("b{i}"));
    let inside = |outer: &Pose, inner: &Pose| {
        Pose::new(outer.rotation.inverse() * inner.rotation, outer.inverse_point(&inner.position))
    };
    let place = random.pose();
    let kind = match random.below(4) {
        0 => {
            let (frame_a, frame_b) = (inside(&pose_a, &place), inside(&pose_b, &place));
            CutKind::Frames { body_a: body(a), frame_a, body_b: body(Some(b)), frame_b }
        }
        1 => {
            let (frame_a, frame_b) = (inside(&pose_a, &place), inside(&pose_b, &place));
            CutKind::Frames { body_a: body(Some(b)), frame_a: frame_b, body_b: body(a), frame_b: frame_a }
        }
        _ => {
            let (point, far) = (place.position, place.position + random.vector());
            let is_rod = random.below(2) == 0;
            let end_b = if is_rod { far } else { point };
            let (name_a, name_b) = (format!("{name}a"), format!("{name}b"));
            match a {
                Some(i) => builder.add_point(&format!("b{i}"), &name_a, pose_a.inverse_point(&point)),
                None => builder.ground_point(&name_a, point),
            };
            builder.add_point(&format!("b{b}"), &name_b, pose_b.inverse_point(&end_b));
            let (a, b) = (format!("{}.{name_a}", body(a)), format!("b{b}.{name_b}"));
            if is_rod {
                CutKind::Rod { a, b, length: (far - point).norm() }
            } else {
                CutKind::Points { a, b }
            }
        }
    };
    builder.cut(name, kind);
}

/// Absolute state of a body, or of the ground.
#[derive(Clone, Copy)]
struct Absolute {
    index: Option<usize>,
    centre: Vec3,
    velocity: Vec3,
    omega: Vec3,
}

/// One scalar constraint: `a·x_a + b·x_b = gamma` for accelerations `x = (linear at the centre, angular)`.
struct Row {
    a: (Option<usize>, Vec3, Vec3),
    b: (Option<usize>, Vec3, Vec3),
    gamma: f64,
    position: f64,
    velocity: f64,
    /// The joint that the row belongs to; cuts have none.
    joint: Option<usize>,
}

/// The mechanism in absolute coordinates.
pub(super) struct Multipliers {
    bodies: Vec<Absolute>,
    rows: Vec<Row>,
    mass: DMatrix<f64>,
    force: DVector<f64>,
}

/// Accelerations `(linear at the centre, angular)` of all bodies, and what joints put on their child (force,
/// moment about the child's centre).
pub(super) struct Solution {
    pub accelerations: Vec<(Vec3, Vec3)>,
    pub reactions: Vec<(Vec3, Vec3)>,
}

impl Multipliers {
    /// At the position and velocity of `data`; no forces but gravity.
    pub fn new(model: &Model, data: &Data) -> Self {
        let n = model.body_count();
        let (mut mass, mut force) = (DMatrix::zeros(6 * n, 6 * n), DVector::zeros(6 * n));
        let mut bodies = Vec::new();
        for i in 0..n {
            let pose = data.pose(BodyIndex(i));
            let centre = pose.point(&model.centre(BodyIndex(i)));
            let twist = data.body_twist(BodyIndex(i), &centre);
            let turn = pose.rotation.to_rotation_matrix().into_inner();
            let inertia = turn * model.inertia(BodyIndex(i)) * turn.transpose();
            let m = model.mass(BodyIndex(i));
            mass.fixed_view_mut::<3, 3>(6 * i, 6 * i).copy_from(&(Mat3::identity() * m));
            mass.fixed_view_mut::<3, 3>(6 * i + 3, 6 * i + 3).copy_from(&inertia);
            force.fixed_rows_mut::<3>(6 * i).copy_from(&(model.gravity * m));
            let gyroscopic = -twist.angular.cross(&(inertia * twist.angular));
            force.fixed_rows_mut::<3>(6 * i + 3).copy_from(&gyroscopic);
            bodies.push(Absolute { index: Some(i), centre, velocity: twist.linear, omega: twist.angular });
        }
        let mut system = Self { bodies, rows: Vec::new(), mass, force };
        system.add_joints(model, data);
        system.add_cuts(model, data);
        system
    }

    /// A force at a world point of a body, and a torque.
    pub fn push(&mut self, body: usize, point: &Vec3, force: &Vec3, torque: &Vec3) {
        let moment = (point - self.bodies[body].centre).cross(force) + torque;
        let mut linear = self.force.fixed_rows_mut::<3>(6 * body);
        linear += force;
        let mut angular = self.force.fixed_rows_mut::<3>(6 * body + 3);
        angular += moment;
    }

    /// Forgets all forces and velocity terms: what follows from `solve` are then velocity changes by
    /// impulses.
    pub fn make_impulsive(&mut self) {
        self.force.fill(0.0);
        self.rows.iter_mut().for_each(|row| row.gamma = 0.0);
    }

    /// Largest violation of any constraint in position and velocity.
    pub fn violation(&self) -> (f64, f64) {
        let worst = |of: fn(&Row) -> f64| self.rows.iter().map(|row| of(row).abs()).fold(0.0, f64::max);
        (worst(|row| row.position), worst(|row| row.velocity))
    }

    /// Prescribes the relative acceleration along a joint's world axis, which is fixed in the parent: of its
    /// angle or its slide.
    pub fn prescribe(
        &mut self,
        parent: Option<usize>,
        child: usize,
        axis: Vec3,
        turns: bool,
        origin: &Vec3,
        value: f64,
    ) {
        let (a, b) = (self.absolute(parent), self.bodies[child]);
        let mut row = if turns {
            let rate = a.omega.cross(&axis).dot(&(b.omega - a.omega));
            Row {
                a: (a.index, Vec3::zeros(), -axis),
                b: (b.index, Vec3::zeros(), axis),
                gamma: -rate,
                position: 0.0,
                velocity: 0.0,
                joint: None,
            }
        } else {
            dot_two(&a, axis, &(origin - a.centre), &b, &(origin - b.centre), Vec3::zeros())
        };
        row.gamma += value;
        (row.position, row.velocity) = (0.0, 0.0);
        self.rows.push(row);
    }

    fn absolute(&self, body: Option<usize>) -> Absolute {
        let ground =
            Absolute { index: None, centre: Vec3::zeros(), velocity: Vec3::zeros(), omega: Vec3::zeros() };
        body.map_or(ground, |i| self.bodies[i])
    }

    fn add_joints(&mut self, model: &Model, data: &Data) {
        for (i, joint) in model.joints.iter().enumerate() {
            let parent_pose = joint.parent.map_or(Pose::identity(), |p| data.poses[p]);
            let fa = parent_pose.compose(&joint.parent_frame);
            let back = &joint.from_child_side;
            let in_child = Pose::new(back.rotation.inverse(), back.inverse_point(&Vec3::zeros()));
            let fb = data.poses[i].compose(&in_child);
            let (a, b) = (self.absolute(joint.parent), self.bodies[i]);
            let first = self.rows.len();
            let mut add = Adder { rows: &mut self.rows, a, b, fa, fb };
            match joint.kind {
                JointKind::Fixed => {
                    add.point();
                    add.parallel_frames();
                }
                JointKind::Revolute { axis } => {
                    add.point();
                    add.parallel_axes(&axis);
                }
                JointKind::Prismatic { axis } => {
                    add.on_line(&axis);
                    add.parallel_frames();
                }
                JointKind::Cylindrical { axis } => {
                    add.on_line(&axis);
                    add.parallel_axes(&axis);
                }
                JointKind::Universal { first, second } => {
                    add.point();
                    add.angle(&first, &second);
                }
                JointKind::Planar { normal, .. } => {
                    add.in_plane(&normal);
                    add.parallel_axes(&normal);
                }
                JointKind::Spherical => add.point(),
                JointKind::Free => {}
            }
            self.rows[first..].iter_mut().for_each(|row| row.joint = Some(i));
        }
    }

    fn add_cuts(&mut self, model: &Model, data: &Data) {
        for cut in &model.cuts {
            let place =
                |body: Option<usize>, frame: &Pose| body.map_or(*frame, |i| data.poses[i].compose(frame));
            let (fa, fb) = (place(cut.body_a, &cut.frame_a), place(cut.body_b, &cut.frame_b));
            let (a, b) = (self.absolute(cut.body_a), self.absolute(cut.body_b));
            let mut add = Adder { rows: &mut self.rows, a, b, fa, fb };
            match cut.law {
                CutLaw::Points => add.point(),
                CutLaw::Rod { length } => add.distance(length),
                CutLaw::Frames => {
                    add.point();
                    add.parallel_frames();
                }
            }
        }
    }

    /// Solves `M x = f + Φᵀ λ`, `Φ x = γ`; redundant rows get the least multipliers.
    pub fn solve(&self) -> Solution {
        let (n, m) = (self.force.len(), self.rows.len());
        let mut phi = DMatrix::zeros(m, n);
        for (k, row) in self.rows.iter().enumerate() {
            for (body, linear, angular) in [row.a, row.b] {
                if let Some(i) = body {
                    let mut at = phi.fixed_view_mut::<1, 3>(k, 6 * i);
                    at += linear.transpose();
                    let mut at = phi.fixed_view_mut::<1, 3>(k, 6 * i + 3);
                    at += angular.transpose();
                }
            }
        }
        let gamma = DVector::from_fn(m, |k, _| self.rows[k].gamma);
        // With M = L Lᵀ and y = Lᵀ x: the y nearest to the free one with A y = γ, A = Φ L⁻ᵀ. Decomposing A
        // itself rather than Φ M⁻¹ Φᵀ does not square the condition of near-singular loops.
        let root = self.mass.clone().cholesky().expect("bodies have mass").l();
        let a = root.solve_lower_triangular(&phi.transpose()).expect("regular").transpose();
        let mut y = root.solve_lower_triangular(&self.force).expect("regular");
        let mut lambda = DVector::zeros(m);
        if m > 0 {
            let (w, v) = orthogonal_rows(&a);
            let squares: Vec<f64> = w.column_iter().map(|column| column.norm_squared()).collect();
            let tolerance = 1e-18 * squares.iter().copied().fold(0.0, f64::max);
            // Two rounds of refinement: the decomposition itself costs some digits.
            for _ in 0..3 {
                let mut weights = v.transpose() * (&gamma - &a * &y);
                for (weight, square) in weights.iter_mut().zip(&squares) {
                    *weight *= if *square > tolerance { 1.0 / square } else { 0.0 };
                }
                y += &w * &weights;
                lambda += &v * weights;
            }
        }
        let x = root.transpose().solve_upper_triangular(&y).expect("regular");
        let three = |v: &DVector<f64>, at: usize| Vec3::new(v[at], v[at + 1], v[at + 2]);
        let accelerations =
            (0..self.bodies.len()).map(|i| (three(&x, 6 * i), three(&x, 6 * i + 3))).collect();
        let mut reactions = vec![(Vec3::zeros(), Vec3::zeros()); self.bodies.len()];
        for (row, lambda) in self.rows.iter().zip(&lambda) {
            if let Some(i) = row.joint {
                reactions[i].0 += row.b.1 * *lambda;
                reactions[i].1 += row.b.2 * *lambda;
            }
        }
        Solution { accelerations, reactions }
    }
}

/// Rotates the rows of `a` among each other until they are orthogonal: `aᵀ v = w` with orthogonal columns in
/// `w` (one-sided Jacobi). nalgebra's own SVD was off by 1e-3 on one rank-deficient system in four thousand.
fn orthogonal_rows(a: &DMatrix<f64>) -> (DMatrix<f64>, DMatrix<f64>) {
    let m = a.nrows();
    let (mut w, mut v) = (a.transpose(), DMatrix::identity(m, m));
    for _ in 0..60 {
        let mut turned = false;
        for i in 0..m {
            for j in i + 1..m {
                let (p, q, r) =
                    (w.column(i).norm_squared(), w.column(j).norm_squared(), w.column(i).dot(&w.column(j)));
                // Rows that are only rounding have no direction.
                if r == 0.0 || r.abs() <= 1e-15 * (p * q).sqrt() || p.min(q) < 1e-30 * p.max(q) {
                    continue;
                }
                turned = true;
                let ratio = (q - p) / (2.0 * r);
                let tangent = ratio.signum() / (ratio.abs() + (1.0 + ratio * ratio).sqrt());
                let cosine = 1.0 / (1.0 + tangent * tangent).sqrt();
                let sine = cosine * tangent;
                for matrix in [&mut w, &mut v] {
                    for k in 0..matrix.nrows() {
                        let (x, y) = (matrix[(k, i)], matrix[(k, j)]);
                        matrix[(k, i)] = cosine * x - sine * y;
                        matrix[(k, j)] = sine * x + cosine * y;
                    }
                }
            }
        }
        if !turned {
            break;
        }
    }
    (w, v)
}

/// Adds constraints between frame `fa` on body `a` and `fb` on body `b`.
struct Adder<'a> {
    rows: &'a mut Vec<Row>,
    a: Absolute,
    b: Absolute,
    fa: Pose,
    fb: Pose,
}

fn unit(k: usize) -> Vec3 {
    Vec3::from_fn(|i, _| f64::from(u8::from(i == k)))
}

fn two_normals(axis: &Vec3) -> [Vec3; 2] {
    let first = axis.cross(&unit(axis.iamin())).normalize();
    [first, axis.cross(&first)]
}

impl Adder<'_> {
    fn arms(&self) -> (Vec3, Vec3) {
        (self.fa.position - self.a.centre, self.fb.position - self.b.centre)
    }

    /// The two origins coincide: a point that is fixed in b has no components along three directions fixed in
    /// the world.
    fn point(&mut self) {
        let (arm_a, arm_b) = self.arms();
        let (a, b) = (&self.a, &self.b);
        let centripetal = |body: &Absolute, arm: &Vec3| body.omega.cross(&body.omega.cross(arm));
        let span = self.fb.position - self.fa.position;
        let rate = b.velocity + b.omega.cross(&arm_b) - a.velocity - a.omega.cross(&arm_a);
        let gamma = centripetal(a, &arm_a) - centripetal(b, &arm_b);
        for k in 0..3 {
            let axis = unit(k);
            self.rows.push(Row {
                a: (a.index, -axis, -arm_a.cross(&axis)),
                b: (b.index, axis, arm_b.cross(&axis)),
                gamma: gamma[k],
                position: span[k],
                velocity: rate[k],
                joint: None,
            });
        }
    }

    /// `u` fixed in a and `w` fixed in b keep their dot product, which is `value`.
    fn dot(&mut self, u: Vec3, w: Vec3, value: f64) {
        let (oa, ob) = (self.a.omega, self.b.omega);
        let turn = oa.cross(&oa.cross(&u)).dot(&w)
            + 2.0 * oa.cross(&u).dot(&ob.cross(&w))
            + u.dot(&ob.cross(&ob.cross(&w)));
        self.rows.push(Row {
            a: (self.a.index, Vec3::zeros(), u.cross(&w)),
            b: (self.b.index, Vec3::zeros(), w.cross(&u)),
            gamma: -turn,
            position: u.dot(&w) - value,
            velocity: oa.cross(&u).dot(&w) + u.dot(&ob.cross(&w)),
            joint: None,
        });
    }

    fn parallel_axes(&mut self, axis: &Vec3) {
        let on_b = self.fb.direction(axis);
        for normal in two_normals(axis) {
            self.dot(self.fa.direction(&normal), on_b, 0.0);
        }
    }

    fn parallel_frames(&mut self) {
        for (j, k) in [(0, 1), (1, 2), (2, 0)] {
            self.dot(self.fa.direction(&unit(j)), self.fb.direction(&unit(k)), 0.0);
        }
    }

    fn angle(&mut self, first: &Vec3, second: &Vec3) {
        self.dot(self.fa.direction(first), self.fb.direction(second), first.dot(second));
    }

    fn on_line(&mut self, axis: &Vec3) {
        two_normals(axis).iter().for_each(|normal| self.in_plane(normal));
    }

    fn in_plane(&mut self, normal: &Vec3) {
        let (arm_a, arm_b) = self.arms();
        let span = self.fb.position - self.fa.position;
        self.rows.push(dot_two(&self.a, self.fa.direction(normal), &arm_a, &self.b, &arm_b, span));
    }

    fn distance(&mut self, length: f64) {
        let (arm_a, arm_b) = self.arms();
        let (a, b) = (&self.a, &self.b);
        let d = self.fb.position - self.fa.position;
        let rate = b.velocity + b.omega.cross(&arm_b) - a.velocity - a.omega.cross(&arm_a);
        let centripetal = b.omega.cross(&b.omega.cross(&arm_b)) - a.omega.cross(&a.omega.cross(&arm_a));
        self.rows.push(Row {
            a: (a.index, -d, -arm_a.cross(&d)),
            b: (b.index, d, arm_b.cross(&d)),
            gamma: -rate.norm_squared() - d.dot(&centripetal),
            position: 0.5 * (d.norm_squared() - length * length),
            velocity: d.dot(&rate),
            joint: None,
        });
    }
}

/// `u`, fixed in a, keeps its dot product 0 with the span from a point of a to a point of b.
fn dot_two(a: &Absolute, u: Vec3, arm_a: &Vec3, b: &Absolute, arm_b: &Vec3, span: Vec3) -> Row {
    let du = a.omega.cross(&u);
    let rate = b.velocity + b.omega.cross(arm_b) - a.velocity - a.omega.cross(arm_a);
    let centripetal = b.omega.cross(&b.omega.cross(arm_b)) - a.omega.cross(&a.omega.cross(arm_a));
    Row {
        a: (a.index, -u, u.cross(&span) - arm_a.cross(&u)),
        b: (b.index, u, arm_b.cross(&u)),
        gamma: -(a.omega.cross(&du).dot(&span) + 2.0 * du.dot(&rate) + u.dot(&centripetal)),
        position: u.dot(&span),
        velocity: du.dot(&span) + u.dot(&rate),
        joint: None,
    }
}
