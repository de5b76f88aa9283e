//! Other people's reference runs: read from the folder that `BRECCIA_REFERENCE` names, never copied into the
//! project.
//!
//! A test that uses this is `#[ignore = "needs BRECCIA_REFERENCE"]`, so that it does not count as passed
//! where the data is absent. Where the variable is set, `make test` runs it (`jobs/test.sh`); by hand: `cargo
//! test --test NAME -- --ignored`.

use std::path::PathBuf;

/// The rows of one of Siconos' `.ref` files (first line: rows, columns).
pub fn siconos(name: &str) -> Vec<Vec<f64>> {
    let path = folder().join("siconos").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = text.lines();
    let numbers = |line: &str| -> Vec<f64> {
        line.split_whitespace().map(|word| word.parse().expect("a number")).collect()
    };
    let shape = numbers(lines.next().expect("a first line"));
    let rows: Vec<Vec<f64>> = lines.map(numbers).filter(|row| !row.is_empty()).collect();
    assert_eq!(rows.len(), shape[0] as usize, "{}", path.display());
    assert!(rows.iter().all(|row| row.len() == shape[1] as usize), "{}", path.display());
    rows
}

/// The contact problems in FCLib files, ascending by name.
pub fn fclib() -> Vec<PathBuf> {
    let folder = folder().join("fclib");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let entries = entries.map(|entry| entry.expect("a readable folder").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "hdf5")).collect();
    files.sort();
    assert!(!files.is_empty(), "no problems in {}", folder.display());
    files
}

fn folder() -> PathBuf {
    std::env::var_os("BRECCIA_REFERENCE").map(PathBuf::from).expect("BRECCIA_REFERENCE names the folder")
}

/// One of our own hard problems.
pub fn dense(name: &str) -> PathBuf {
    folder().join("dense").join(format!("{name}.hdf5"))
}
