//! Contact problems in FCLib's HDF5 layout, as Siconos, LMGC90 and the benchmark collection keep them
//! [Acary2014].
//!
//! ```text
//! /fclib_local  spacedim, W/, [V/, R/], vectors/{q, mu, [s]}, [info/]
//! /fclib_global spacedim, M/, H/, [G/], [info/],
//!               vectors/{f, w, mu, [b], [compliance], [tangential_compliance]}
//! matrix        {m, n, nz, nzmax} int32[1], p int32, i int32, x float64
//!               nz = −2: by rows (p: m + 1 starts, i: columns), −1: by columns (p: n + 1 starts, i: rows),
//!               ≥ 0: triplets (i: rows, p: columns)
//! info          {title, description, math_info} strings
//! /solution     u, r, [v], [l]
//! /guesses      number_of_guesses, 1/, 2/, … each like /solution
//! ```
//!
//! The compliances are an extension of ours: u = Hᵀ v + w + C r with C = (C_n, C_t, C_t) for each contact.
//! Other readers skip them; in the local form they are part of W.
//!
//! Reading trusts nothing: a size is compared with the bytes of the file before memory is allocated, and
//! every index is checked.

mod read;
mod write;

pub use read::read_fclib;
pub use write::{write_fclib, write_fclib_solution};

use crate::solve::assembled::{ContactSystem, GlobalProblem, LocalProblem, ProblemError, Recovered};

/// The datasets of the compliances, by contact.
const COMPLIANCE: &str = "compliance";
const TANGENTIAL_COMPLIANCE: &str = "tangential_compliance";

/// What a file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct FclibFile {
    pub problem: FclibProblem,
    pub info: FclibInfo,
    pub solution: Option<FclibSolution>,
    pub guesses: Vec<FclibSolution>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FclibProblem {
    Local(LocalProblem),
    Global(GlobalProblem),
}

/// What people wrote about a problem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FclibInfo {
    pub title: Option<String>,
    pub description: Option<String>,
    pub math_info: Option<String>,
}

/// `u` and `r` have spacedim numbers for each contact; `v` and `l` are empty where the problem has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FclibSolution {
    pub v: Vec<f64>,
    pub u: Vec<f64>,
    pub r: Vec<f64>,
    pub l: Vec<f64>,
}

impl FclibProblem {
    /// `local` or `global`.
    pub fn form(&self) -> &'static str {
        match self {
            FclibProblem::Local(_) => "local",
            FclibProblem::Global(_) => "global",
        }
    }

    pub fn dimension(&self) -> usize {
        match self {
            FclibProblem::Local(problem) => problem.dimension,
            FclibProblem::Global(problem) => problem.dimension,
        }
    }

    pub fn contacts(&self) -> usize {
        match self {
            FclibProblem::Local(problem) => problem.contacts(),
            FclibProblem::Global(problem) => problem.contacts(),
        }
    }

    /// The problem as it is solved.
    pub fn assemble(&self) -> Result<ContactSystem, ProblemError> {
        match self {
            FclibProblem::Local(problem) => problem.assemble(),
            FclibProblem::Global(problem) => problem.assemble(),
        }
    }

    /// What goes with the impulses `r`.
    pub fn recover(&self, impulses: &[f64]) -> Result<Recovered, ProblemError> {
        match self {
            FclibProblem::Local(problem) => problem.recover(impulses),
            FclibProblem::Global(problem) => problem.recover(impulses),
        }
    }

    /// Numbers of v, of u and r, and of l that a solution has.
    fn solution_sizes(&self) -> [usize; 3] {
        match self {
            FclibProblem::Local(problem) => {
                [0, problem.q.len(), problem.bilateral.as_ref().map_or(0, |bilateral| bilateral.s.len())]
            }
            FclibProblem::Global(problem) => [
                problem.f.len(),
                problem.w.len(),
                problem.bilateral.as_ref().map_or(0, |bilateral| bilateral.b.len()),
            ],
        }
    }
}
