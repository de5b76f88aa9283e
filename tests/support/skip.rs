//! What a test could not check is written down, and counted by `make test` (`jobs/test.sh`) as skipped.

use std::io::Write;

/// The whole test checked nothing: it counts as skipped, not as passed.
pub fn test(reason: &str) {
    note("test", reason);
}

/// A part of a test checked nothing: it counts as skipped, the test for itself.
pub fn part(reason: &str) {
    note("part", reason);
}

fn note(kind: &str, reason: &str) {
    let thread = std::thread::current();
    let line =
        format!("{kind} {}::{}: {reason}\n", env!("CARGO_CRATE_NAME"), thread.name().unwrap_or("main"));
    print!("skipped {line}");
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/skipped.log");
    // One write of a line: lines of tests that run side by side stay whole.
    let written = std::fs::OpenOptions::new().create(true).append(true).open(path);
    written.and_then(|mut file| file.write_all(line.as_bytes())).expect("a place for notes in target/tmp");
}
