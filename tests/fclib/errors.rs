//! The error function against NumPy (`tests/python/fclib_error.py`).

use super::support::{Directory, skip};
use super::{name, reference};
use breccia::output::fclib::{read_fclib, write_fclib_solution};
use breccia::solve::assembled::{ContactSystem, LocalProblem, Sparse};
use std::path::{Path, PathBuf};
use std::process::Command;

fn error_of(system: &ContactSystem, r: &[f64]) -> f64 {
    let mut velocities = vec![breccia::geometry::Vec3::zeros(); system.contacts()];
    system.error(&ContactSystem::lift(r, system.dimension), &mut velocities)
}

/// Sixty random problems in two and three dimensions whose errors NumPy has found; the script beside them
/// makes the file.
#[test]
fn agree_with_numpy_on_random_vectors() {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fclib-errors.json"));
    let cases: Vec<serde_json::Value> = serde_json::from_str(&text.expect("the data")).expect("JSON");
    let mut worst = 0.0_f64;
    for case in &cases {
        let numbers = |key: &str| -> Vec<f64> {
            case[key]
                .as_array()
                .expect("a list")
                .iter()
                .map(|value| value.as_f64().expect("a number"))
                .collect()
        };
        let (w, q, mu, r) = (numbers("w"), numbers("q"), numbers("friction"), numbers("r"));
        let size = q.len();
        let triplets: Vec<_> =
            w.iter().enumerate().map(|(k, &value)| ((k / size) as u32, (k % size) as u32, value)).collect();
        let problem = LocalProblem {
            dimension: case["dimension"].as_u64().expect("a number") as usize,
            w: Sparse::from_triplets(size, size, &triplets),
            q,
            mu,
            bilateral: None,
        };
        let expected = case["error"].as_f64().expect("a number");
        let found = error_of(&problem.assemble().expect("a problem"), &r);
        worst = worst.max((found - expected).abs() / expected.max(1e-3));
    }
    println!("measured worst difference to NumPy, {} problems: {worst:.1e} (tolerance 1e-12)", cases.len());
    assert!(cases.len() == 60 && worst <= 1e-12, "{worst:e}");
}

/// A Python with h5py and NumPy.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("BRECCIA_PYTHON").map(PathBuf::from);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
    let fits = |python: &PathBuf| {
        let asked = Command::new(python).args(["-c", "import h5py, numpy"]).output();
        asked.is_ok_and(|output| output.status.success())
    };
    named.into_iter().chain([own, "python3".into()]).find(fits)
}

/// The genuine files with random impulses in them, read by h5py and measured by NumPy.
#[test]
#[ignore = "needs BRECCIA_REFERENCE"]
fn agree_with_numpy_on_genuine_files() {
    let files = reference::fclib();
    let Some(python) = python() else {
        return skip::test("no Python with h5py and NumPy");
    };
    let directory = Directory::new("fclib-numpy");
    let (mut copies, mut ours) = (Vec::new(), Vec::new());
    let mut state = 1u64;
    for file in files {
        let copy = directory.file(&format!("{}.hdf5", name(&file)));
        std::fs::copy(&file, &copy).expect("a copy");
        let content = read_fclib(&copy).expect("a genuine problem");
        let mut solution = content.solution.expect("a solution");
        for value in &mut solution.r {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            *value += (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
        }
        ours.push(error_of(&content.problem.assemble().expect("a problem"), &solution.r));
        write_fclib_solution(&copy, &solution).expect("a new solution");
        copies.push(copy);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/fclib_error.py");
    let output = Command::new(python).arg(script).arg("file").args(&copies).output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let theirs: Vec<f64> = text.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(theirs.len(), ours.len());
    for ((ours, theirs), file) in ours.iter().zip(&theirs).zip(&copies) {
        println!("measured {}: {ours} and {theirs}", name(file));
        assert!((ours - theirs).abs() <= 1e-12 * theirs.max(1e-3), "{}", file.display());
    }
}
