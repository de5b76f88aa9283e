//! FCLib files in and out, through the library and the real binary.
//!
//! Tests on other people's problems need `BRECCIA_REFERENCE` (`tests/common/reference.rs`); beside each
//! stands one on problems that breccia makes itself.

mod errors;
mod fuzz;
mod layout;
mod ranks;
#[path = "../common/reference.rs"]
#[allow(dead_code)]
mod reference;
mod reference_problems;
#[path = "../support/mod.rs"]
mod support;

use breccia::output::fclib::{FclibFile, FclibInfo, FclibProblem, FclibSolution};
use breccia::solve::assembled::{GlobalProblem, Sparse};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// `breccia solve` with some arguments.
fn solve(arguments: &[&str], files: &[PathBuf]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_breccia"))
        .arg("solve")
        .args(arguments)
        .args(files)
        .stdin(Stdio::null())
        .output()
        .expect("breccia starts")
}

/// What `--json` says, and the exit code.
fn solve_json(arguments: &[&str], files: &[PathBuf]) -> (Vec<serde_json::Value>, i32) {
    let output = solve(&[&["--json"], arguments].concat(), files);
    let rows = serde_json::from_slice(&output.stdout).expect("a list in JSON");
    (rows, output.status.code().expect("it ends by itself"))
}

fn name(path: &Path) -> String {
    path.file_stem().expect("a name").to_string_lossy().into_owned()
}

/// Stacked boxes on four corners each, pushed sideways, in global form: more contacts than W has rank.
fn stack(boxes: usize, dimension: usize) -> FclibFile {
    let freedoms = if dimension == 3 { 6 } else { 3 };
    let (mut mass, mut h) = (Vec::new(), Vec::new());
    let corners: &[[f64; 2]] = match dimension {
        3 => &[[0.5, 0.5], [0.5, -0.5], [-0.5, 0.5], [-0.5, -0.5]],
        _ => &[[0.5, 0.0], [-0.5, 0.0]],
    };
    let contacts = boxes * corners.len();
    for body in 0..boxes {
        for k in 0..freedoms {
            mass.push(((body * freedoms + k) as u32, (body * freedoms + k) as u32, 1.0 + 0.1 * k as f64));
        }
        for (corner, [x, y]) in corners.iter().enumerate() {
            let contact = body * corners.len() + corner;
            for (other, sign) in [(Some(body), 1.0), (body.checked_sub(1), -1.0)] {
                let Some(other) = other else { continue };
                let z = -0.3 * sign;
                // Normal z, tangents x and y; rows: velocity, then moment arm × direction.
                let columns: Vec<Vec<f64>> = match dimension {
                    3 => vec![
                        vec![0.0, 0.0, 1.0, *y, -x, 0.0],
                        vec![1.0, 0.0, 0.0, 0.0, z, -y],
                        vec![0.0, 1.0, 0.0, -z, 0.0, *x],
                    ],
                    _ => vec![vec![0.0, 1.0, *x], vec![1.0, 0.0, -z]],
                };
                for (axis, column) in columns.iter().enumerate() {
                    for (k, value) in column.iter().enumerate() {
                        let row = (other * freedoms + k) as u32;
                        h.push((row, (contact * dimension + axis) as u32, sign * value));
                    }
                }
            }
        }
    }
    let size = boxes * freedoms;
    let vertical = dimension - 1;
    let problem = GlobalProblem {
        dimension,
        m: Sparse::from_triplets(size, size, &mass),
        h: Sparse::from_triplets(size, contacts * dimension, &h),
        f: (0..size)
            .map(|k| match k % freedoms {
                0 => 0.1,
                k if k == vertical => -1.0,
                _ => 0.0,
            })
            .collect(),
        w: vec![0.0; contacts * dimension],
        mu: vec![0.4; contacts],
        compliance: Vec::new(),
        tangential_compliance: Vec::new(),
        bilateral: None,
    };
    let zeros = FclibSolution {
        v: vec![0.0; size],
        u: vec![0.0; contacts * dimension],
        r: vec![0.0; contacts * dimension],
        l: Vec::new(),
    };
    FclibFile {
        problem: FclibProblem::Global(problem),
        info: FclibInfo {
            title: Some("Stack".into()),
            description: Some("Boxes, µ = 0.4".into()),
            math_info: None,
        },
        solution: Some(zeros.clone()),
        guesses: vec![zeros.clone(), FclibSolution { r: vec![0.1; contacts * dimension], ..zeros }],
    }
}

/// The same in local form.
fn local(file: &FclibFile) -> FclibFile {
    let FclibProblem::Global(problem) = &file.problem else { panic!("a global problem") };
    let without = |solution: &FclibSolution| FclibSolution { v: Vec::new(), ..solution.clone() };
    FclibFile {
        problem: FclibProblem::Local(problem.local().expect("a mass matrix")),
        info: file.info.clone(),
        solution: file.solution.as_ref().map(without),
        guesses: file.guesses.iter().map(without).collect(),
    }
}
