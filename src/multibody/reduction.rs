//! Elimination of the loops: (20), (24)–(26).
//!
//! With prescribed velocities `v_p` beside the independent `v_u` and dependent `v_v`,
//!
//! ```text
//! v  = B v_u + d          B = [1; B_vu; 0]     B_vu = −J_v⁻¹ J_u      d = [0; −J_v⁻¹ J_p v_p; v_p]         (20)
//! dv = B dv_u + a dt      a = [0; −J_v⁻¹ (dJ/dt v + J_p a_p); a_p]                                          (24)
//! M_red = Bᵀ M B          f_red = Bᵀ (f − M a)                                                             (25), (26)
//! ```

use super::dense::{Lu, cholesky, cholesky_inverse};
use super::error::MultibodyError;
use super::kinematics::Data;
use super::model::Model;
use super::partition::Partition;
use super::spatial::Twist;
use nalgebra::{DMatrix, DVector};

/// The reduced system at one position.
#[derive(Clone, Debug)]
pub struct Reduced {
    /// Factors of `J_v`.
    pub(super) closure: Lu,
    /// `B_vu`, dependent × independent.
    pub(super) dependence: DMatrix<f64>,
    /// `B`, nv × nu.
    pub map: DMatrix<f64>,
    /// `a`, nv.
    pub bias: DVector<f64>,
    /// `M_red`, nu × nu.
    pub mass: DMatrix<f64>,
    /// Its Cholesky factor in the lower triangle.
    pub factor: DMatrix<f64>,
    /// `M_red⁻¹`.
    pub mass_inverse: DMatrix<f64>,
    /// `f_red`, nu.
    pub force: DVector<f64>,
    /// Inverse of the Cholesky factor.
    inverse_root: DMatrix<f64>,
    /// `M B`.
    mass_map: DMatrix<f64>,
    right_side: Vec<f64>,
    /// Twist of each body about the reference per independent velocity, body by body.
    pub(super) body_map: Vec<Twist>,
    /// `f − M a`.
    net_force: DVector<f64>,
}

impl Reduced {
    pub(super) fn new(model: &Model, partition: &Partition) -> Self {
        let (nv, nu, r) = (model.nv(), partition.nu(), partition.rows.len());
        Self {
            closure: Lu::new(r),
            dependence: DMatrix::zeros(r, nu),
            map: DMatrix::zeros(nv, nu),
            bias: DVector::zeros(nv),
            mass: DMatrix::zeros(nu, nu),
            factor: DMatrix::zeros(nu, nu),
            mass_inverse: DMatrix::zeros(nu, nu),
            force: DVector::zeros(nu),
            inverse_root: DMatrix::zeros(nu, nu),
            mass_map: DMatrix::zeros(nv, nu),
            right_side: vec![0.0; r],
            body_map: vec![Twist::zero(); model.body_count() * nu],
            net_force: DVector::zeros(nv),
        }
    }

    /// Factorises `J_v` at the current position.
    pub(super) fn factor_closure(
        &mut self,
        model: &Model,
        data: &Data,
        partition: &Partition,
    ) -> Result<(), MultibodyError> {
        for (j, &column) in partition.dependent.iter().enumerate() {
            for (i, &row) in partition.rows.iter().enumerate() {
                self.closure.matrix[(i, j)] = data.jacobian[(row, column)];
            }
        }
        self.closure.factor().map_err(|k| {
            let row = partition.rows[k];
            MultibodyError::Singular { cut: model.cut_of_row(row).to_string(), pivot: 0.0 }
        })
    }

    /// `B_vu` and `B` at the current position.
    pub(super) fn update_map(
        &mut self,
        model: &Model,
        data: &Data,
        partition: &Partition,
    ) -> Result<(), MultibodyError> {
        self.factor_closure(model, data, partition)?;
        let r = partition.rows.len();
        self.map.fill(0.0);
        for (k, &column) in partition.independent.iter().enumerate() {
            self.map[(column, k)] = 1.0;
            for (i, &row) in partition.rows.iter().enumerate() {
                self.right_side[i] = -data.jacobian[(row, column)];
            }
            if self.right_side.iter().any(|x| *x != 0.0) {
                self.closure.solve(&mut self.right_side);
            }
            for i in 0..r {
                self.dependence[(i, k)] = self.right_side[i];
                self.map[(partition.dependent[i], k)] = self.right_side[i];
            }
        }
        Ok(())
    }

    /// Jacobians of all bodies in one pass from the ground to the tips: each adds its own joint to what
    /// carries it.
    pub(super) fn update_body_map(&mut self, model: &Model, data: &Data) {
        let nu = self.map.ncols();
        for (i, joint) in model.joints.iter().enumerate() {
            for k in 0..nu {
                let mut twist = joint.parent.map_or(Twist::zero(), |parent| self.body_map[parent * nu + k]);
                for column in joint.columns() {
                    let weight = self.map[(column, k)];
                    if weight != 0.0 {
                        twist += data.subspace[column] * weight;
                    }
                }
                self.body_map[i * nu + k] = twist;
            }
        }
    }

    /// Largest entry of `B_vu`, arcs against arcs: how ill-conditioned the partition is.
    pub(super) fn condition(&self, model: &Model, partition: &Partition) -> f64 {
        let mut worst: f64 = 0.0;
        for (k, &independent) in partition.independent.iter().enumerate() {
            for (i, &dependent) in partition.dependent.iter().enumerate() {
                let ratio = model.column_length(dependent) / model.column_length(independent);
                worst = worst.max((self.dependence[(i, k)] * ratio).abs());
            }
        }
        worst
    }

    /// `v = B v_u + d` (20) with the prescribed velocities already in `v`; dependent entries are overwritten.
    pub(super) fn complete_velocity(
        &mut self,
        model: &Model,
        data: &Data,
        partition: &Partition,
        v: &mut [f64],
    ) {
        self.drift(model, data, partition, v);
        for (k, &independent) in partition.independent.iter().enumerate() {
            for (i, &dependent) in partition.dependent.iter().enumerate() {
                v[dependent] += self.dependence[(i, k)] * v[independent];
            }
        }
    }

    /// The dependent part of `d` from the prescribed entries of `v`.
    pub(super) fn drift(&mut self, model: &Model, data: &Data, partition: &Partition, v: &mut [f64]) {
        self.right_side.fill(0.0);
        self.add_prescribed(model, data, partition, v);
        self.solve_into(partition, v);
    }

    /// The dependent part of `−J_v⁻¹ dJ/dt v`: accelerations that loops cause by their velocities alone.
    pub(super) fn closure_bias(&mut self, data: &Data, partition: &Partition, x: &mut [f64]) {
        for (i, &row) in partition.rows.iter().enumerate() {
            self.right_side[i] = -data.jacobian_rate[row];
        }
        self.solve_into(partition, x);
    }

    /// `a` of (24) from `dJ/dt v` and prescribed accelerations.
    pub(super) fn update_bias(
        &mut self,
        model: &Model,
        data: &Data,
        partition: &Partition,
        accelerations: &[f64],
    ) {
        self.bias.fill(0.0);
        for (i, &row) in partition.rows.iter().enumerate() {
            self.right_side[i] = -data.jacobian_rate[row];
        }
        for (&acceleration, (column, _)) in accelerations.iter().zip(&model.prescribed) {
            self.bias[*column] = acceleration;
        }
        let mut bias = std::mem::replace(&mut self.bias, DVector::zeros(0));
        self.add_prescribed(model, data, partition, bias.as_slice());
        self.solve_into(partition, bias.as_mut_slice());
        self.bias = bias;
    }

    /// `right_side −= J_p x_p`
    fn add_prescribed(&mut self, model: &Model, data: &Data, partition: &Partition, x: &[f64]) {
        for (column, _) in &model.prescribed {
            if x[*column] != 0.0 {
                for (i, &row) in partition.rows.iter().enumerate() {
                    self.right_side[i] -= data.jacobian[(row, *column)] * x[*column];
                }
            }
        }
    }

    fn solve_into(&mut self, partition: &Partition, x: &mut [f64]) {
        self.closure.solve(&mut self.right_side);
        for (i, &dependent) in partition.dependent.iter().enumerate() {
            x[dependent] = self.right_side[i];
        }
    }

    /// `f_red` of (25). Needs map, bias, and the mass and force of `data`.
    pub(super) fn update_force(&mut self, data: &Data, partition: &Partition) {
        let nv = data.mass.nrows();
        for i in 0..nv {
            self.net_force[i] = data.force[i];
        }
        for j in 0..nv {
            let a = self.bias[j];
            if a != 0.0 {
                self.net_force.axpy(-a, &data.mass.column(j), 1.0);
            }
        }
        for (k, &column) in partition.independent.iter().enumerate() {
            let mut sum = self.net_force[column];
            for (i, &dependent) in partition.dependent.iter().enumerate() {
                sum += self.dependence[(i, k)] * self.net_force[dependent];
            }
            self.force[k] = sum;
        }
    }

    /// `M_red` of (25) with its factor and inverse. Needs the map, and the mass of `data`.
    pub(super) fn update_mass(
        &mut self,
        model: &Model,
        data: &Data,
        partition: &Partition,
    ) -> Result<(), MultibodyError> {
        let nu = partition.nu();
        for (k, &column) in partition.independent.iter().enumerate() {
            let mut target = self.mass_map.column_mut(k);
            target.copy_from(&data.mass.column(column));
            for (i, &dependent) in partition.dependent.iter().enumerate() {
                let weight = self.dependence[(i, k)];
                if weight != 0.0 {
                    target.axpy(weight, &data.mass.column(dependent), 1.0);
                }
            }
        }
        for k in 0..nu {
            for j in k..nu {
                let mut entry = self.mass_map[(partition.independent[j], k)];
                for (i, &dependent) in partition.dependent.iter().enumerate() {
                    entry += self.dependence[(i, j)] * self.mass_map[(dependent, k)];
                }
                self.mass[(j, k)] = entry;
                self.mass[(k, j)] = entry;
            }
        }
        self.factor.copy_from(&self.mass);
        let massless = |k: usize| MultibodyError::Massless {
            coordinate: model.coordinate_name(partition.independent[k]).to_string(),
        };
        cholesky(&mut self.factor).map_err(massless)?;
        cholesky_inverse(&self.factor, &mut self.inverse_root, &mut self.mass_inverse);
        Ok(())
    }
}
