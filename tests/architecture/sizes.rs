//! Files and functions that fit a reader.

use super::source::{files, is_test, project, read};

const FILE: usize = 600;
const FUNCTION: usize = 80;
const COLUMNS: usize = 110;

#[test]
fn no_file_is_longer_than_a_reader_likes() {
    for folder in ["src", "decomposition/src", "tests", "benches"] {
        for path in files(&project().join(folder)) {
            let lines = read(&path).lines().count();
            assert!(lines <= FILE, "{}: {lines} lines", path.display());
        }
    }
}

/// First line and length of each function: rustfmt closes it at the indentation of its first line.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let opens = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.starts_with("//")).collect();
        let place = words.iter().position(|word| *word == "fn");
        place.is_some_and(|place| {
            words[..place].iter().all(|word| !word.contains(['=', '|', '(']) || word.starts_with("pub("))
        })
    };
    let mut found = Vec::new();
    for first in (0..lines.len()).filter(|&first| opens(lines[first])) {
        let ends = |line: &str| {
            let own = indentation(line) == indentation(lines[first]);
            own && (line.trim() == "}" || line.ends_with("{}") || line.ends_with(';') || line.ends_with(" }"))
        };
        let Some(last) = lines[first..].iter().position(|line| ends(line)) else { continue };
        found.push((first + 1, last + 1));
    }
    found
}

#[test]
fn functions_fit_a_screen() {
    let mut long = Vec::new();
    for folder in ["src", "decomposition/src"] {
        for path in files(&project().join(folder)).into_iter().filter(|path| !is_test(path)) {
            for (line, length) in functions(&read(&path)) {
                if length > FUNCTION {
                    long.push(format!("{}:{line}: {length} lines", path.display()));
                }
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn the_length_of_a_function_is_found() {
    let text =
        "impl A {\n    pub(super) fn one(\n        a: u32,\n    ) {\n        a;\n    }\n}\nfn two() {\n}\n";
    assert_eq!(functions(text), [(2, 5), (8, 2)]);
}

#[test]
fn comments_stay_within_their_columns() {
    let mut wide = Vec::new();
    for folder in ["src", "decomposition/src", "tests", "benches"] {
        for path in files(&project().join(folder)) {
            for (line, text) in (1..).zip(read(&path).lines()) {
                let comment = text.trim_start().strip_prefix("//");
                // A row of a table cannot be wrapped.
                let table =
                    comment.is_some_and(|text| text.trim_start_matches(['/', '!', ' ']).starts_with('|'));
                if comment.is_some() && !table && text.chars().count() > COLUMNS {
                    wide.push(format!("{}:{line}", path.display()));
                }
            }
        }
    }
    assert!(wide.is_empty(), "{} comment lines:\n{}", wide.len(), wide.join("\n"));
}
