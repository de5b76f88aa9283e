//! Loop closure: `h_B(q)` (16), its Jacobian `J_B` and `dJ_B/dt v` (22).
//!
//! Rows are written in the frame of side *a*, not in world axes: then a redundant row of a planar loop stays
//! redundant when the whole loop is carried around, and the rows that were kept stay the right ones. With
//! `F_a`, `F_b` the frames of the two sides (rotations `R`, origins `o`), `d = o_b − o_a`, and `u`, `w` the
//! velocity of the point `o_b` and the angular velocity of b as seen from a:
//!
//! ```text
//! points   h = R_aᵀ d                 dh/dt = R_aᵀ u                 d²h/dt² = R_aᵀ (du/dt − ω_a × u)
//! rod      h = (d·d − l²) / 2l        dh/dt = d·u / l                d²h/dt² = (ḋ·ḋ + d·d̈) / l
//! frames   as points, and with the unit quaternion (s, e) of R_aᵀ R_b and w in axes of a
//!          h = 2 e                    dh/dt = s w + w × e
//! ```
//!
//! All derivatives are exact off the closed position too, so Newton converges quadratically from anywhere
//! near.

use super::kinematics::Data;
use super::model::{CutLaw, CutModel, Model};
use super::spatial::{Twist, Wrench};
use crate::geometry::{Pose, Vec3};

/// Where the two sides of a cut stand.
struct Sides {
    a: Pose,
    b: Pose,
    /// From the reference to `o_b`.
    arm: Vec3,
    span: Vec3,
}

impl Sides {
    fn new(data: &Data, cut: &CutModel) -> Self {
        let place = |body: Option<usize>, frame: &Pose| body.map_or(*frame, |i| data.poses[i].compose(frame));
        let (a, b) = (place(cut.body_a, &cut.frame_a), place(cut.body_b, &cut.frame_b));
        Self { a, b, arm: b.position - data.reference, span: b.position - a.position }
    }

    /// Quaternion of b in a, scalar and vector part, with the scalar part not negative.
    fn turn(&self) -> (f64, Vec3) {
        let turn = self.a.rotation.inverse() * self.b.rotation;
        let sign = if turn.w < 0.0 { -1.0 } else { 1.0 };
        (sign * turn.w, turn.imag() * sign)
    }
}

/// `s w + w × e`
fn turn_rate(scalar: f64, vector: &Vec3, w: &Vec3) -> Vec3 {
    w * scalar + w.cross(vector)
}

impl Data {
    /// `h_B` at current positions.
    pub(super) fn update_residual(&mut self, model: &Model) {
        for cut in &model.cuts {
            let sides = Sides::new(self, cut);
            match cut.law {
                CutLaw::Points => self.write_residual(cut.row, &sides.a.inverse_direction(&sides.span)),
                CutLaw::Rod { length } => {
                    self.residual[cut.row] = (sides.span.norm_squared() - length * length) / (2.0 * length);
                }
                CutLaw::Frames => {
                    self.write_residual(cut.row, &sides.a.inverse_direction(&sides.span));
                    self.write_residual(cut.row + 3, &(sides.turn().1 * 2.0));
                }
            }
        }
    }

    fn write_residual(&mut self, row: usize, value: &Vec3) {
        self.residual.fixed_rows_mut::<3>(row).copy_from(value);
    }

    /// `J_B` at current positions. Entries off the loops stay zero from the start.
    pub(super) fn update_loop_jacobian(&mut self, model: &Model) {
        for cut in &model.cuts {
            let sides = Sides::new(self, cut);
            let (scalar, vector) = sides.turn();
            for &(column, sign) in &cut.columns {
                let twist = self.subspace[column] * sign;
                let point = twist.at(&sides.arm);
                match cut.law {
                    CutLaw::Rod { length } => {
                        self.jacobian[(cut.row, column)] = sides.span.dot(&point) / length
                    }
                    CutLaw::Points => self.write_column(cut.row, column, &sides.a.inverse_direction(&point)),
                    CutLaw::Frames => {
                        self.write_column(cut.row, column, &sides.a.inverse_direction(&point));
                        let w = sides.a.inverse_direction(&twist.angular);
                        self.write_column(cut.row + 3, column, &turn_rate(scalar, &vector, &w));
                    }
                }
            }
        }
    }

    fn write_column(&mut self, row: usize, column: usize, value: &Vec3) {
        self.jacobian.fixed_view_mut::<3, 1>(row, column).copy_from(value);
    }

    /// `dJ_B/dt v` at current positions and velocities.
    pub(super) fn update_loop_jacobian_rate(&mut self, model: &Model) {
        for cut in &model.cuts {
            let sides = Sides::new(self, cut);
            let (twist_a, twist_b) = (self.twist_of(cut.body_a), self.twist_of(cut.body_b));
            let (bias_a, bias_b) = (self.bias_of(cut.body_a), self.bias_of(cut.body_b));
            let relative = Motion { twist: twist_b - twist_a, bias: bias_b - bias_a };
            let point = || {
                let u = relative.twist.at(&sides.arm);
                let du = relative.point_acceleration(&sides.arm, &twist_b.at(&sides.arm));
                sides.a.inverse_direction(&(du - twist_a.angular.cross(&u)))
            };
            match cut.law {
                CutLaw::Points => self.write_rate(cut.row, &point()),
                CutLaw::Rod { length } => {
                    let arm_a = sides.a.position - self.reference;
                    let velocity = twist_b.at(&sides.arm) - twist_a.at(&arm_a);
                    let a = Motion { twist: twist_a, bias: bias_a };
                    let b = Motion { twist: twist_b, bias: bias_b };
                    let acceleration = b.point_acceleration(&sides.arm, &twist_b.at(&sides.arm))
                        - a.point_acceleration(&arm_a, &twist_a.at(&arm_a));
                    self.jacobian_rate[cut.row] =
                        (velocity.norm_squared() + sides.span.dot(&acceleration)) / length;
                }
                CutLaw::Frames => {
                    self.write_rate(cut.row, &point());
                    let w = sides.a.inverse_direction(&relative.twist.angular);
                    let turning = relative.bias.angular - twist_a.angular.cross(&relative.twist.angular);
                    let dw = sides.a.inverse_direction(&turning);
                    let (scalar, vector) = sides.turn();
                    let scalar_rate = -0.5 * w.dot(&vector);
                    let vector_rate = turn_rate(scalar, &vector, &w) * 0.5;
                    let rate = turn_rate(scalar, &vector, &dw) + turn_rate(scalar_rate, &vector_rate, &w);
                    self.write_rate(cut.row + 3, &rate);
                }
            }
        }
    }

    fn write_rate(&mut self, row: usize, value: &Vec3) {
        self.jacobian_rate.fixed_rows_mut::<3>(row).copy_from(value);
    }

    /// Wrenches on side a and side b of a cut from the multipliers of its rows: `J_Bᵀ λ`, body by body. Both
    /// are written about the reference, so they are opposite.
    pub(super) fn cut_wrenches(&self, cut: &CutModel, multipliers: &[f64]) -> (Wrench, Wrench) {
        let sides = Sides::new(self, cut);
        let vector = |from: usize| Vec3::new(multipliers[from], multipliers[from + 1], multipliers[from + 2]);
        let on_b = match cut.law {
            CutLaw::Points => Wrench::at(sides.a.direction(&vector(0)), &sides.arm),
            CutLaw::Rod { length } => Wrench::at(sides.span * (multipliers[0] / length), &sides.arm),
            CutLaw::Frames => {
                let (scalar, turn) = sides.turn();
                // Transpose of w → s w + w × e.
                let moment = vector(3) * scalar + turn.cross(&vector(3));
                let mut wrench = Wrench::at(sides.a.direction(&vector(0)), &sides.arm);
                wrench.moment += sides.a.direction(&moment);
                wrench
            }
        };
        (on_b * -1.0, on_b)
    }

    /// Unit of a closure row in lengths: the machine's size for an angle, 1 for a distance.
    pub(super) fn row_length(model: &Model, row: usize) -> f64 {
        let turns = |cut: &CutModel| cut.law == CutLaw::Frames && row >= cut.row + 3;
        match model.cuts.iter().find(|cut| cut.rows().contains(&row)) {
            Some(cut) if turns(cut) => model.length,
            _ => 1.0,
        }
    }
}

/// A twist and its rate without `dv`.
struct Motion {
    twist: Twist,
    bias: Twist,
}

impl Motion {
    /// Rate of `twist.at(arm)` when the point at `arm` moves with `velocity`.
    fn point_acceleration(&self, arm: &Vec3, velocity: &Vec3) -> Vec3 {
        self.bias.at(arm) + self.twist.angular.cross(velocity)
    }
}
