//! Small problems that breccia makes itself, each solver against the law and against the others.

use super::*;
use crate::law::coulomb::natural_map;
use nalgebra::{DMatrix, DVector};
use proptest::prelude::*;

/// splitmix64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        z ^ (z >> 31)
    }

    fn uniform(&mut self) -> f64 {
        2.0 * (self.next() >> 11) as f64 / (1u64 << 53) as f64 - 1.0
    }
}

/// Bodies in a chain that touch their neighbours and a floor at random points with random normals: in global
/// form. Several contacts between two bodies make W singular.
pub fn heap_problem(contacts: usize, dimension: usize, seed: u64) -> GlobalProblem {
    let mut numbers = Numbers(seed);
    let freedoms = if dimension == 3 { 6 } else { 3 };
    let bodies = contacts.div_ceil(4);
    let mut m = Vec::new();
    for body in 0..bodies {
        for k in 0..freedoms {
            let mass =
                if k < dimension { 1.0 + 0.5 * numbers.uniform() } else { 0.4 + 0.1 * numbers.uniform() };
            m.push(((body * freedoms + k) as u32, (body * freedoms + k) as u32, mass));
        }
    }
    let mut h = Vec::new();
    for contact in 0..contacts {
        let second = contact / 4;
        let first = if contact % 2 == 0 { second.checked_sub(1) } else { None };
        let frame = crate::solve::problem::contact_frame(
            Vec3::new(
                0.3 * numbers.uniform(),
                if dimension == 3 { 0.3 * numbers.uniform() } else { 0.0 },
                1.0,
            )
            .normalize(),
        );
        for (body, sign) in [(first, -1.0), (Some(second), 1.0)] {
            let Some(body) = body else { continue };
            let arm =
                Vec3::new(numbers.uniform(), if dimension == 3 { numbers.uniform() } else { 0.0 }, -sign);
            // In the plane x–z the tangent is in it too.
            let axes = if dimension == 3 { frame } else { [frame[0], frame[0].cross(&Vec3::y()), Vec3::y()] };
            for (axis, direction) in axes.iter().enumerate().take(dimension) {
                let moment = arm.cross(direction);
                let entries = match dimension {
                    3 => vec![direction.x, direction.y, direction.z, moment.x, moment.y, moment.z],
                    _ => vec![direction.x, direction.z, moment.y],
                };
                for (k, value) in entries.into_iter().enumerate() {
                    h.push(((body * freedoms + k) as u32, (contact * dimension + axis) as u32, sign * value));
                }
            }
        }
    }
    let size = bodies * freedoms;
    GlobalProblem {
        dimension,
        m: Sparse::from_triplets(size, size, &m),
        h: Sparse::from_triplets(size, contacts * dimension, &h),
        f: (0..size)
            .map(|k| if k % freedoms == dimension - 1 { -1.0 } else { 0.3 * numbers.uniform() })
            .collect(),
        w: (0..contacts * dimension).map(|_| 0.05 * numbers.uniform()).collect(),
        mu: (0..contacts).map(|k| [0.0, 0.3, 0.7][k % 3]).collect(),
        compliance: Vec::new(),
        tangential_compliance: Vec::new(),
        bilateral: None,
    }
}

pub fn heap(contacts: usize, dimension: usize, seed: u64) -> ContactSystem {
    heap_problem(contacts, dimension, seed).assemble().unwrap()
}

fn dense(matrix: &Sparse) -> DMatrix<f64> {
    let mut result = DMatrix::zeros(matrix.rows, matrix.columns);
    matrix.triplets().for_each(|(row, column, value)| result[(row, column)] += value);
    result
}

const BUDGET: Budget = Budget { tolerance: 1e-10, sweeps: 200_000 };

/// Newton and its fallback solve what plain sweeps may not; all of them satisfy the law contact by contact,
/// measured anew here.
#[test]
fn every_solver_satisfies_the_law() {
    for (contacts, dimension) in [(1, 3), (7, 3), (40, 3), (1, 2), (9, 2), (40, 2)] {
        for seed in 0..5 {
            let problem = heap_problem(contacts, dimension, seed);
            let system = problem.assemble().unwrap();
            let (h, m) = (dense(&problem.h), dense(&problem.m));
            for &method in Method::ALL {
                let outcome = solve(&system, method, BUDGET, None);
                assert!(
                    outcome.converged,
                    "{} {contacts} {dimension} {seed}: {}",
                    method.name(),
                    outcome.error
                );
                // From the global form with a dense inverse, not from W.
                let r = ContactSystem::flatten(&outcome.impulses, dimension);
                let force = &h * DVector::from(r.clone()) + DVector::from(problem.f.clone());
                let velocity = m.clone().lu().solve(&force).unwrap();
                let u = h.transpose() * &velocity + DVector::from(problem.w.clone());
                let scale = u.norm().max(DVector::from(r.clone()).norm());
                let lifted = ContactSystem::lift(u.as_slice(), dimension);
                for (contact, u) in lifted.into_iter().enumerate() {
                    let (r, u) = (outcome.impulses[contact].into(), u.into());
                    let error = natural_map(r, u, problem.mu[contact], 1.0).norm();
                    assert!(error < 2e-10 * scale.max(1.0) * 10.0, "{} {error:e}", method.name());
                }
                let recovered = problem.recover(&r).unwrap();
                assert!((DVector::from(recovered.velocities) - velocity).norm() < 1e-9 * scale.max(1.0));
            }
        }
    }
}

/// A box of mass 1 on a plane, pushed sideways: it sticks up to μ m g and slides with μ m g beyond.
#[test]
fn a_box_on_a_plane_has_a_closed_form() {
    let corners = [[0.5, 0.5], [0.5, -0.5], [-0.5, 0.5], [-0.5, -0.5]];
    for (push, friction) in [(0.25, 0.3), (0.6, 0.3), (0.6, 0.0)] {
        let mut h = Vec::new();
        for (contact, [x, y]) in corners.iter().enumerate() {
            let arm = Vec3::new(*x, *y, -0.1);
            for (axis, direction) in [Vec3::z(), Vec3::x(), Vec3::y()].iter().enumerate() {
                let moment = arm.cross(direction);
                for k in 0..3u32 {
                    h.push((k, (3 * contact + axis) as u32, direction[k as usize]));
                    h.push((3 + k, (3 * contact + axis) as u32, moment[k as usize]));
                }
            }
        }
        let mass: Vec<_> = (0..6u32).map(|k| (k, k, if k < 3 { 1.0 } else { 0.2 })).collect();
        let problem = GlobalProblem {
            dimension: 3,
            m: Sparse::from_triplets(6, 6, &mass),
            h: Sparse::from_triplets(6, 12, &h),
            f: vec![push, 0.0, -1.0, 0.0, 0.0, 0.0],
            w: vec![0.0; 12],
            mu: vec![friction; 4],
            compliance: Vec::new(),
            tangential_compliance: Vec::new(),
            bilateral: None,
        };
        let expected = (push - friction).max(0.0);
        for &method in Method::ALL {
            let outcome = solve(&problem.assemble().unwrap(), method, BUDGET, None);
            assert!(outcome.converged, "{}", method.name());
            let v = problem.recover(&ContactSystem::flatten(&outcome.impulses, 3)).unwrap().velocities;
            let error = (v[0] - expected).abs() + v[1].abs() + v[2].abs();
            assert!(error < 1e-8, "{}: {v:?}, expected {expected}", method.name());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// W and q of the sparse elimination against dense matrices, with and without bilateral constraints, M
    /// not block diagonal.
    #[test]
    fn elimination_agrees_with_dense_matrices(seed: u64, constraints in 0usize..4, couplings in 0usize..20) {
        let mut problem = heap_problem(9, 3, seed);
        let mut numbers = Numbers(seed);
        let size = problem.m.rows;
        // A symmetric coupling that keeps M positive definite.
        let mut mass: Vec<_> =
            problem.m.triplets().map(|(row, column, value)| (row as u32, column as u32, value)).collect();
        for _ in 0..couplings {
            let (i, j) = ((numbers.next() % size as u64) as u32, (numbers.next() % size as u64) as u32);
            let value = 0.5 * numbers.uniform();
            mass.extend([(i, j, value), (j, i, value), (i, i, value.abs()), (j, j, value.abs())]);
        }
        problem.m = Sparse::from_triplets(size, size, &mass);
        let entries: Vec<_> = (0..size * constraints)
            .map(|k| ((k % size) as u32, (k / size) as u32, numbers.uniform()))
            .filter(|entry| entry.2 > 0.0)
            .collect();
        let g = Sparse::from_triplets(size, constraints, &entries);
        let b: Vec<f64> = (0..constraints).map(|_| numbers.uniform()).collect();
        if constraints > 0 {
            problem.bilateral = Some(GlobalBilateral { g: g.clone(), b: b.clone() });
        }
        let mut saddle = DMatrix::zeros(size + constraints, size + constraints);
        saddle.view_mut((0, 0), (size, size)).copy_from(&dense(&problem.m));
        saddle.view_mut((0, size), (size, constraints)).copy_from(&dense(&g));
        saddle.view_mut((size, 0), (constraints, size)).copy_from(&dense(&g).transpose());
        let inverse = saddle.try_inverse();
        prop_assume!(inverse.as_ref().is_some_and(|inverse| inverse.norm() < 1e4));
        let inverse = inverse.unwrap();
        let h = dense(&problem.h);
        let right = DVector::from_iterator(
            size + constraints,
            problem.f.iter().copied().chain(b.iter().map(|value| -value)),
        );
        let w = h.transpose() * inverse.view((0, 0), (size, size)) * &h;
        let q = h.transpose() * (&inverse * right).rows(0, size) + DVector::from(problem.w.clone());
        let local = problem.local().unwrap();
        prop_assert!((dense(&local.w) - &w).norm() < 1e-9 * (1.0 + inverse.norm()));
        prop_assert!((DVector::from(local.q.clone()) - &q).norm() < 1e-9 * (1.0 + inverse.norm()));
        // v and λ of some impulses fulfil their equations.
        let r: Vec<f64> = (0..27).map(|_| numbers.uniform()).collect();
        let Recovered { velocities, multipliers } = problem.recover(&r).unwrap();
        let v = DVector::from(velocities);
        let rest = dense(&problem.m) * &v - &h * DVector::from(r) - DVector::from(problem.f.clone())
            - dense(&g) * DVector::from(multipliers);
        prop_assert!(rest.norm() < 1e-9 * (1.0 + inverse.norm()));
        prop_assert!((dense(&g).transpose() * v + DVector::from(b)).norm() < 1e-9 * (1.0 + inverse.norm()));
    }
}

/// The local form with V, R and s has λ eliminated: the velocity of any impulses is the same with λ and
/// without.
#[test]
fn local_constraints_are_eliminated() {
    let mut numbers = Numbers(3);
    let mut local = heap_problem(6, 3, 4).local().unwrap();
    let v: Vec<_> = (0..36).map(|k| (k % 18, k / 18, numbers.uniform())).collect();
    let r = Sparse::from_triplets(2, 2, &[(0, 0, -2.0), (0, 1, 0.3), (1, 0, 0.3), (1, 1, -1.0)]);
    local.bilateral = Some(LocalBilateral { v: Sparse::from_triplets(18, 2, &v), r, s: vec![0.4, -0.2] });
    let system = local.assemble().unwrap();
    let impulses: Vec<f64> = (0..18).map(|_| numbers.uniform()).collect();
    let lambda = local.recover(&impulses).unwrap().multipliers;
    let bilateral = local.bilateral.clone().unwrap();
    let mut expected = local.q.clone();
    local.w.multiply_add(&impulses, &mut expected);
    bilateral.v.multiply_add(&lambda, &mut expected);
    let mut found = vec![Vec3::zeros(); 6];
    system.delassus.velocities(&system.free, &ContactSystem::lift(&impulses, 3), &mut found);
    let expected = ContactSystem::lift(&expected, 3);
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - Vec3::from(expected)).norm() < 1e-12);
    }
    let mut rest = bilateral.s.clone();
    bilateral.v.transposed().multiply_add(&impulses, &mut rest);
    bilateral.r.multiply_add(&lambda, &mut rest);
    assert!(rest.iter().all(|value| value.abs() < 1e-12), "{rest:?}");
}

#[test]
fn wrong_problems_are_named() {
    let good = heap_problem(4, 3, 1);
    let wrong = |change: &dyn Fn(&mut GlobalProblem)| {
        let mut problem = good.clone();
        change(&mut problem);
        problem.assemble().unwrap_err().to_string()
    };
    assert_eq!(wrong(&|p| p.dimension = 4), "spacedim is 4, expected 2 or 3");
    assert_eq!(wrong(&|p| p.f.truncate(2)), "f has 2 values, expected 6");
    assert_eq!(wrong(&|p| p.mu[1] = -0.5), "mu[1] is -0.5, expected a finite number, not negative");
    assert_eq!(wrong(&|p| p.w[3] = f64::NAN), "w[3] is NaN, expected a finite number");
    assert_eq!(wrong(&|p| p.mu.truncate(1)), "mu has 1 values, expected 4");
    assert_eq!(
        wrong(&|p| p.m = Sparse::zeros(6, 6)),
        "M cannot be factorised: the matrix is singular at block row 0"
    );
}

/// No contacts, contacts that are open, and no impulses needed: nothing to do, and it is done.
#[test]
fn problems_with_nothing_to_do() {
    let empty =
        GlobalProblem { h: Sparse::zeros(6, 0), w: Vec::new(), mu: Vec::new(), ..heap_problem(4, 3, 1) };
    let mut open = heap_problem(4, 3, 1);
    open.w.iter_mut().step_by(3).for_each(|value| *value = 50.0);
    for problem in [empty, open] {
        let system = problem.assemble().unwrap();
        for &method in Method::ALL {
            let outcome = solve(&system, method, BUDGET, None);
            assert!(outcome.converged && outcome.sweeps == 0, "{}", method.name());
            assert!(outcome.impulses.iter().flatten().all(|&value| value == 0.0));
        }
    }
}

#[test]
fn names_find_their_methods() {
    for &method in Method::ALL {
        assert_eq!(Method::by_name(method.name()), Some(method));
    }
    assert_eq!(Method::by_name("newton"), None);
}
