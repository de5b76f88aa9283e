//! The project's own Rust files.

use std::path::{Path, PathBuf};

pub fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below a folder, ascending.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of the project") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            // What a build has left is nobody's writing.
            found.extend(if path.ends_with("target") { Vec::new() } else { files(&path) });
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a readable file")
}

/// Whether a file holds nothing but tests.
pub fn is_test(path: &Path) -> bool {
    path.iter().any(|part| part == "tests" || part == "tests.rs")
}

/// The code of a file: no comments, and nothing from its `mod tests` on.
pub fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let line = |line: &str| line.split("//").next().unwrap_or_default().to_string();
    code.lines().map(line).collect::<Vec<_>>().join("\n")
}
