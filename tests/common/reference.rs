//! Other people's reference runs, where they are at hand. They are read, never copied into the project.

use std::path::{Path, PathBuf};

/// The rows of one of Siconos' `.ref` files (first line: rows, columns); none where the folder is absent.
pub fn siconos(name: &str) -> Option<Vec<Vec<f64>>> {
    let Some(path) = folder().map(|folder| folder.join("siconos").join(name)).filter(|path| path.is_file())
    else {
        println!("skipped: no reference/siconos/{name} here");
        return None;
    };
    let text = std::fs::read_to_string(&path).expect("the reference run can be read");
    let mut lines = text.lines();
    let numbers = |line: &str| -> Vec<f64> {
        line.split_whitespace().map(|word| word.parse().expect("a number")).collect()
    };
    let shape = numbers(lines.next().expect("a first line"));
    let rows: Vec<Vec<f64>> = lines.map(numbers).filter(|row| !row.is_empty()).collect();
    assert_eq!(rows.len(), shape[0] as usize, "{}", path.display());
    assert!(rows.iter().all(|row| row.len() == shape[1] as usize), "{}", path.display());
    Some(rows)
}

/// The contact problems in FCLib files, ascending by name; none where the folder is absent.
pub fn fclib() -> Vec<PathBuf> {
    let listed = folder().and_then(|folder| std::fs::read_dir(folder.join("fclib")).ok());
    let entries = listed.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "hdf5")).collect();
    files.sort();
    if files.is_empty() {
        println!("skipped: no reference/fclib here");
    }
    files
}

/// `../shared/reference` seen from the project, or where the machine of the project's makers has it.
fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/reference");
    [beside, PathBuf::from("/work/shared/reference")].into_iter().find(|folder| folder.is_dir())
}
