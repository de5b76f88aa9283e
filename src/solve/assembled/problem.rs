//! Contact problems as files state them: the local form in impulses, the global form in velocities too, and
//! from both the [`ContactSystem`] that is solved.
//!
//! ```text
//! local                                     global
//!   u = W r + V λ + q                         M v = H r + G λ + f
//!   Vᵀ r + R λ + s = 0                        Gᵀ v + b = 0
//!                                             u = Hᵀ v + w + C r
//! ```
//!
//! with the law of [`super`] on u and r; the rows with λ and the compliances C need not be there. From the
//! global form, with `K =
//! [M G; Gᵀ 0]`,
//!
//! ```text
//! W = Hᵀ (K⁻¹)_vv H + C,  q = Hᵀ (K⁻¹ [f; −b])_v + w
//! ```
//!
//! one connected part of `K` after the other: for rigid bodies these are 6 × 6, and nothing larger is ever
//! factorised.

use super::blocks::BlockMatrix;
use super::bodies::Bodies;
use super::factor::{FactorError, Lu, Pattern};
use super::sparse::Sparse;
use super::system::ContactSystem;
use crate::geometry::Vec3;
use thiserror::Error;

/// Blocks in the factors of one matrix at most: 800 MB.
const MOST_BLOCKS: usize = 50_000_000;

#[derive(Clone, Debug, PartialEq)]
pub struct LocalProblem {
    /// 2 or 3.
    pub dimension: usize,
    pub w: Sparse,
    pub q: Vec<f64>,
    pub mu: Vec<f64>,
    pub bilateral: Option<LocalBilateral>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LocalBilateral {
    pub v: Sparse,
    pub r: Sparse,
    pub s: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GlobalProblem {
    /// 2 or 3.
    pub dimension: usize,
    pub m: Sparse,
    pub h: Sparse,
    pub f: Vec<f64>,
    pub w: Vec<f64>,
    pub mu: Vec<f64>,
    /// By contact, along the normal and in the tangent plane, kg⁻¹; empty where all are rigid.
    pub compliance: Vec<f64>,
    pub tangential_compliance: Vec<f64>,
    pub bilateral: Option<GlobalBilateral>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GlobalBilateral {
    pub g: Sparse,
    pub b: Vec<f64>,
}

/// Why numbers are no contact problem. `what` is the name in the files.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ProblemError {
    #[error("spacedim is {0}, expected 2 or 3")]
    Dimension(i64),
    #[error("{what} has {found} {unit}, expected {expected}")]
    Size { what: &'static str, unit: &'static str, found: usize, expected: usize },
    #[error("{what} has {found} {unit}, expected a multiple of {dimension}")]
    NotContacts { what: &'static str, unit: &'static str, found: usize, dimension: usize },
    #[error("{what}[{place}] is {value}, expected {expected}")]
    Value { what: &'static str, place: usize, value: f64, expected: &'static str },
    #[error("{what} cannot be factorised: {problem}")]
    Factor { what: &'static str, problem: FactorError },
}

/// What goes with the impulses of a solution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovered {
    /// v, of a global problem.
    pub velocities: Vec<f64>,
    /// λ, where there are bilateral constraints.
    pub multipliers: Vec<f64>,
}

impl LocalProblem {
    pub fn contacts(&self) -> usize {
        self.mu.len()
    }

    pub fn check(&self) -> Result<(), ProblemError> {
        let contacts = contacts("W", "rows", self.w.rows, self.dimension)?;
        size("W", "columns", self.w.columns, self.w.rows)?;
        size("q", "values", self.q.len(), self.w.rows)?;
        friction(&self.mu, contacts)?;
        finite("q", &self.q)?;
        let Some(LocalBilateral { v, r, s }) = &self.bilateral else { return Ok(()) };
        size("V", "rows", v.rows, self.w.rows)?;
        size("R", "rows", r.rows, v.columns)?;
        size("R", "columns", r.columns, v.columns)?;
        size("s", "values", s.len(), v.columns)?;
        finite("s", s)
    }

    /// Checks, and eliminates λ.
    pub fn assemble(&self) -> Result<ContactSystem, ProblemError> {
        self.check()?;
        let Some(LocalBilateral { v, r, s }) = &self.bilateral else {
            return Ok(system(self.dimension, &self.w, &self.q, &self.mu));
        };
        let parts = Parts::new(r, r.rows).map_err(factor("R"))?;
        let turned = v.transposed();
        let mut triplets: Vec<_> = entries(&self.w).collect();
        parts.condense(&turned, -1.0, &mut triplets).map_err(factor("R"))?;
        let w = Sparse::from_triplets(self.w.rows, self.w.columns, &triplets);
        let mut multipliers = s.clone();
        parts.solve(&mut multipliers).map_err(factor("R"))?;
        multipliers.iter_mut().for_each(|value| *value = -*value);
        let mut q = self.q.clone();
        v.multiply_add(&multipliers, &mut q);
        Ok(system(self.dimension, &w, &q, &self.mu))
    }

    /// λ of impulses.
    pub fn recover(&self, impulses: &[f64]) -> Result<Recovered, ProblemError> {
        let Some(LocalBilateral { v, r, s }) = &self.bilateral else { return Ok(Recovered::default()) };
        let mut multipliers = s.clone();
        v.transposed().multiply_add(impulses, &mut multipliers);
        Parts::new(r, r.rows).and_then(|parts| parts.solve(&mut multipliers)).map_err(factor("R"))?;
        multipliers.iter_mut().for_each(|value| *value = -*value);
        Ok(Recovered { velocities: Vec::new(), multipliers })
    }
}

impl GlobalProblem {
    pub fn contacts(&self) -> usize {
        self.mu.len()
    }

    pub fn check(&self) -> Result<(), ProblemError> {
        let contacts = contacts("H", "columns", self.h.columns, self.dimension)?;
        size("M", "columns", self.m.columns, self.m.rows)?;
        size("H", "rows", self.h.rows, self.m.rows)?;
        size("f", "values", self.f.len(), self.m.rows)?;
        size("w", "values", self.w.len(), self.h.columns)?;
        friction(&self.mu, contacts)?;
        finite("f", &self.f)?;
        finite("w", &self.w)?;
        let compliances = [&self.compliance, &self.tangential_compliance];
        for (name, list) in ["compliance", "tangential_compliance"].into_iter().zip(compliances) {
            if !list.is_empty() {
                size(name, "values", list.len(), contacts)?;
                not_negative(name, list)?;
            }
        }
        let Some(GlobalBilateral { g, b }) = &self.bilateral else { return Ok(()) };
        size("G", "rows", g.rows, self.m.rows)?;
        size("b", "values", b.len(), g.columns)?;
        finite("b", b)
    }

    /// Checks, and eliminates v and λ.
    pub fn assemble(&self) -> Result<ContactSystem, ProblemError> {
        let local = self.local()?;
        let bodies = Bodies::new(self).map_err(factor("M"))?;
        Ok(ContactSystem { bodies, ..system(self.dimension, &local.w, &local.q, &local.mu) })
    }

    /// The local form.
    pub fn local(&self) -> Result<LocalProblem, ProblemError> {
        self.check()?;
        let (matrix, name) = self.saddle_point();
        let parts = Parts::new(&matrix, self.m.rows).map_err(factor(name))?;
        let mut triplets = Vec::new();
        parts.condense(&self.h, 1.0, &mut triplets).map_err(factor(name))?;
        let normals = (0..).step_by(self.dimension).zip(&self.compliance);
        triplets.extend(normals.map(|(row, &compliance)| (row, row, compliance)));
        for axis in 1..self.dimension as u32 {
            let along = (axis..).step_by(self.dimension).zip(&self.tangential_compliance);
            triplets.extend(along.map(|(row, &compliance)| (row, row, compliance)));
        }
        let mut velocities = self.right_side(None);
        parts.solve(&mut velocities).map_err(factor(name))?;
        let mut q = self.w.clone();
        self.h.transposed().multiply_add(&velocities[..self.m.rows], &mut q);
        Ok(LocalProblem {
            dimension: self.dimension,
            w: Sparse::from_triplets(self.h.columns, self.h.columns, &triplets),
            q,
            mu: self.mu.clone(),
            bilateral: None,
        })
    }

    /// v and λ of impulses.
    pub fn recover(&self, impulses: &[f64]) -> Result<Recovered, ProblemError> {
        let (matrix, name) = self.saddle_point();
        let mut values = self.right_side(Some(impulses));
        let parts = Parts::new(&matrix, self.m.rows).map_err(factor(name))?;
        parts.solve(&mut values).map_err(factor(name))?;
        let multipliers = values.split_off(self.m.rows).into_iter().map(|value| -value).collect();
        Ok(Recovered { velocities: values, multipliers })
    }

    /// `[M G; Gᵀ 0]`, whose second unknown is −λ.
    fn saddle_point(&self) -> (Sparse, &'static str) {
        let Some(GlobalBilateral { g, .. }) = &self.bilateral else { return (self.m.clone(), "M") };
        let first = self.m.rows as u32;
        let mut triplets: Vec<_> = entries(&self.m).collect();
        for (row, column, value) in entries(g) {
            triplets.push((row, first + column, value));
            triplets.push((first + column, row, value));
        }
        let size = self.m.rows + g.columns;
        (Sparse::from_triplets(size, size, &triplets), "M with G")
    }

    /// `[f + H r; −b]`.
    fn right_side(&self, impulses: Option<&[f64]>) -> Vec<f64> {
        let mut values = self.f.clone();
        if let Some(impulses) = impulses {
            self.h.multiply_add(impulses, &mut values);
        }
        values.extend(self.bilateral.iter().flat_map(|bilateral| &bilateral.b).map(|value| -value));
        values
    }
}

fn entries(matrix: &Sparse) -> impl Iterator<Item = (u32, u32, f64)> + '_ {
    matrix.triplets().map(|(row, column, value)| (row as u32, column as u32, value))
}

fn system(dimension: usize, w: &Sparse, q: &[f64], mu: &[f64]) -> ContactSystem {
    ContactSystem {
        dimension,
        delassus: BlockMatrix::new(w, dimension),
        free: ContactSystem::lift(q, dimension).into_iter().map(Vec3::from).collect(),
        friction: mu.to_vec(),
        noise: None,
        bodies: None,
    }
}

fn contacts(
    what: &'static str,
    unit: &'static str,
    found: usize,
    dimension: usize,
) -> Result<usize, ProblemError> {
    if !(2..=3).contains(&dimension) {
        return Err(ProblemError::Dimension(dimension as i64));
    }
    if !found.is_multiple_of(dimension) {
        return Err(ProblemError::NotContacts { what, unit, found, dimension });
    }
    Ok(found / dimension)
}

fn size(what: &'static str, unit: &'static str, found: usize, expected: usize) -> Result<(), ProblemError> {
    if found == expected { Ok(()) } else { Err(ProblemError::Size { what, unit, found, expected }) }
}

fn finite(what: &'static str, values: &[f64]) -> Result<(), ProblemError> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(place) => {
            Err(ProblemError::Value { what, place, value: values[place], expected: "a finite number" })
        }
        None => Ok(()),
    }
}

fn friction(mu: &[f64], contacts: usize) -> Result<(), ProblemError> {
    size("mu", "values", mu.len(), contacts)?;
    not_negative("mu", mu)
}

fn not_negative(what: &'static str, values: &[f64]) -> Result<(), ProblemError> {
    match values.iter().position(|value| !(value.is_finite() && *value >= 0.0)) {
        Some(place) => Err(ProblemError::Value {
            what,
            place,
            value: values[place],
            expected: "a finite number, not negative",
        }),
        None => Ok(()),
    }
}

fn factor(what: &'static str) -> impl Fn(FactorError) -> ProblemError {
    move |problem| ProblemError::Factor { what, problem }
}

/// A square matrix cut into its connected parts.
struct Parts<'a> {
    matrix: &'a Sparse,
    /// Rows of each part, ascending: first those to be eliminated first.
    parts: Vec<Vec<u32>>,
    patterns: Vec<Pattern>,
}

impl<'a> Parts<'a> {
    /// Rows from `last` on are multipliers: their pivots exist once the others are eliminated.
    fn new(matrix: &'a Sparse, last: usize) -> Result<Self, FactorError> {
        let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); matrix.rows];
        for (row, column, _) in entries(matrix).filter(|(row, column, _)| row != column) {
            neighbours[row as usize].push(column);
            neighbours[column as usize].push(row);
        }
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        let parts = connected(&neighbours);
        let mut place = vec![0; matrix.rows];
        let patterns = parts.iter().map(|part| {
            for (index, &row) in part.iter().enumerate() {
                place[row as usize] = index as u32;
            }
            let lists = part
                .iter()
                .map(|&row| neighbours[row as usize].iter().map(|&other| place[other as usize]).collect());
            Pattern::new(lists.collect(), part.partition_point(|&row| (row as usize) < last), MOST_BLOCKS)
        });
        let patterns = patterns.collect::<Result<_, _>>()?;
        Ok(Self { matrix, parts, patterns })
    }

    fn factorise(&self, part: usize, place: &mut [u32]) -> Result<Lu<'_, 1>, FactorError> {
        let rows = &self.parts[part];
        for (index, &row) in rows.iter().enumerate() {
            place[row as usize] = index as u32;
        }
        let entries = rows.iter().enumerate().flat_map(|(index, &row)| {
            let line = self.matrix.row(row as usize);
            line.map(move |(column, value)| (index, column, [[value]]))
        });
        let local = entries.map(|(index, column, block)| (index, place[column] as usize, block));
        Lu::new(&self.patterns[part], local).map_err(|error| match error {
            FactorError::Singular { node } => FactorError::Singular { node: rows[node] as usize },
            other => other,
        })
    }

    /// `x ← K⁻¹ x`.
    fn solve(&self, values: &mut [f64]) -> Result<(), FactorError> {
        let mut place = vec![0; self.matrix.rows];
        for (index, rows) in self.parts.iter().enumerate() {
            let lu = self.factorise(index, &mut place)?;
            let mut part: Vec<[f64; 1]> = rows.iter().map(|&row| [values[row as usize]]).collect();
            lu.solve(&mut part);
            for (&row, [value]) in rows.iter().zip(part) {
                values[row as usize] = value;
            }
        }
        Ok(())
    }

    /// Adds the entries of `sign · Hᵀ K⁻¹ H`. `H` may have fewer rows than `K`: the rest is zero.
    fn condense(
        &self,
        h: &Sparse,
        sign: f64,
        triplets: &mut Vec<(u32, u32, f64)>,
    ) -> Result<(), FactorError> {
        let mut place = vec![0; self.matrix.rows];
        let mut column_place = vec![usize::MAX; h.columns];
        for (index, rows) in self.parts.iter().enumerate() {
            let inside: Vec<(usize, usize)> = rows
                .iter()
                .enumerate()
                .filter(|&(_, &row)| (row as usize) < h.rows)
                .map(|(at, &row)| (at, row as usize))
                .collect();
            let mut columns: Vec<usize> =
                inside.iter().flat_map(|&(_, row)| h.row(row).map(|(column, _)| column)).collect();
            columns.sort_unstable();
            columns.dedup();
            if columns.is_empty() {
                continue;
            }
            for (at, &column) in columns.iter().enumerate() {
                column_place[column] = at;
            }
            // Column by column of H: its entries in this part.
            let mut by_column: Vec<Vec<(usize, f64)>> = vec![Vec::new(); columns.len()];
            for &(at, row) in &inside {
                for (column, value) in h.row(row) {
                    by_column[column_place[column]].push((at, value));
                }
            }
            let lu = self.factorise(index, &mut place)?;
            let mut x = vec![[0.0]; rows.len()];
            for (right, list) in by_column.iter().enumerate() {
                x.fill([0.0]);
                list.iter().for_each(|&(at, value)| x[at] = [value]);
                lu.solve(&mut x);
                for (left, list) in by_column.iter().enumerate() {
                    let value: f64 = list.iter().map(|&(at, value)| value * x[at][0]).sum();
                    triplets.push((columns[left] as u32, columns[right] as u32, sign * value));
                }
            }
        }
        Ok(())
    }
}

/// The connected parts of a graph, each ascending, in the order of their first node.
pub(super) fn connected(neighbours: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut seen = vec![false; neighbours.len()];
    let mut parts = Vec::new();
    for first in 0..neighbours.len() {
        if std::mem::replace(&mut seen[first], true) {
            continue;
        }
        let mut part = vec![first as u32];
        let mut next = 0;
        while let Some(&node) = part.get(next) {
            next += 1;
            for &other in &neighbours[node as usize] {
                if !std::mem::replace(&mut seen[other as usize], true) {
                    part.push(other);
                }
            }
        }
        part.sort_unstable();
        parts.push(part);
    }
    parts
}
