//! The page about the columns, from the lists of columns.

use super::{Group, Value, forces, machines, scene};
use std::fmt::Write;

const INTRODUCTION: &str = "# Columns of the time series

This page is made from the lists in `src/commands/run/series/`; `BRECCIA_WRITE_MANUAL=1 cargo test --lib series` writes it anew.

In the CSV files a vector is three columns: `force/floor` is `force/floor/x`, `force/floor/y` and `force/floor/z`. `NAME` stands
for a name of the case. Forces are means over the step before the row.
";

const ERRORS: &str = "
## `force_errors.csv`, `force_errors.h5`

With `output.force_check`: every so often the next steps (`output.force_window`) are made twice from the same state, as the run makes
them and with contact problems solved to high accuracy, and taken back. `FORCE` stands for each column above whose unit is N or N m;
of vectors there is the magnitude.

| column | meaning |
| --- | --- |
";

/// `docs/series.md`.
pub fn series_markdown() -> String {
    let mut page = INTRODUCTION.to_string();
    section(&mut page, "`series.csv`, `series.h5`", "", &scene::GROUPS);
    section(&mut page, "`machines.csv`, `machines.h5`", "", &machines::COMMON);
    section(&mut page, "For each machine", "MACHINE/", &machines::EACH);
    errors(&mut page);
    page
}

/// The columns of the errors of forces.
fn errors(page: &mut String) {
    page.push_str(ERRORS);
    let each = forces::EACH.map(|(ending, about)| (format!("FORCE{ending}"), about));
    let common = forces::COMMON.map(|(name, about)| (name.to_string(), about));
    for (name, about) in common.iter().chain(&each) {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| `{name}` | {about} |");
    }
}

fn section(page: &mut String, heading: &str, prefix: &str, groups: &[Group]) {
    // Writing to a String cannot fail.
    let _ = writeln!(page, "\n## {heading}\n\n| column | kind | unit | meaning |\n| --- | --- | --- | --- |");
    for entry in groups.iter().flat_map(|group| group.entries) {
        let kind = match entry.value {
            Value::Integer(_) => "integer",
            Value::Real(_) => "real",
            Value::Vector(_) => "vector",
        };
        let _ = writeln!(page, "| `{prefix}{}` | {kind} | {} | {} |", entry.name, entry.unit, entry.about);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_that_of_the_lists() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/series.md");
        if std::env::var_os("BRECCIA_WRITE_MANUAL").is_some() {
            std::fs::write(&path, series_markdown()).expect("docs/series.md is written");
        }
        let page = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            page == series_markdown(),
            "write docs/series.md anew: BRECCIA_WRITE_MANUAL=1 cargo test --lib series"
        );
    }
}
