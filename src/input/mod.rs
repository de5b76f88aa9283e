//! The case file: types, units, validation, and errors that name file, line and key.
//!
//! [`read_case`] turns a TOML file into a [`Case`]: plain data in SI units that has been checked as far as a
//! file can be checked without building the scene. All mistakes come out at once ([`CaseErrors`]). The keys
//! are listed once, in `sections.rs` and `contacts.rs` here and in the folders; [`schema`] (for editors) and
//! [`manual_markdown`] (`docs/case-file.md`) are made from the same lists.

mod bodies;
mod build;
mod case;
mod contacts;
mod language;
mod machine;
mod results;
mod sections;

pub use crate::formula::{Motion, MotionState, VectorFormula};
pub use case::*;
pub use language::errors::{CaseError, CaseErrors, ErrorKind};
pub use language::listing::{Change, Listing, changes, is_physics};
pub use language::manual::manual_markdown;
pub use language::schema::schema;
pub use machine::case::*;

use crate::formula::Scope;
use language::document::{self, Source, Value, apply_override};
use language::reader::Reader;
use std::cell::{Cell, RefCell};
use std::io::Read;
use std::path::Path;

/// Largest case file, in bytes.
const MAXIMUM_SIZE: u64 = 64 << 20;

/// Reads and checks a case file.
pub fn read_case(path: &Path) -> Result<Case, CaseErrors> {
    read_case_with(path, &[])
}

/// The same with values put in place of the file's, as `(key path, value)`: see [`parse_case`].
pub fn read_case_with(path: &Path, overrides: &[(String, String)]) -> Result<Case, CaseErrors> {
    let name = path.display().to_string();
    let text = read_text(path).map_err(|message| CaseErrors {
        errors: vec![CaseError::whole(&name, "", ErrorKind::Value, message)],
        left_out: 0,
    })?;
    parse_case(&name, &text, overrides)
}

/// Reads a case from a text; `name` is the path that errors show and whose folder relative paths start from.
///
/// An override's path joins keys by points and picks from lists by name or by number from 1:
/// `simulation.time_step`, `parameters.mu`, `body.floor.position`, `contact.1.friction`. Its value is TOML,
/// or a formula without quotes.
pub fn parse_case(name: &str, text: &str, overrides: &[(String, String)]) -> Result<Case, CaseErrors> {
    let mut sources = vec![Source::new(name, text, true)];
    let folder = Path::new(name).parent().map(Path::to_path_buf).unwrap_or_default();
    let (mut root, mut errors) = document::parse(&sources[0], 0);
    let mut replace = |root: &mut Value, sources: &mut Vec<Source>, (path, value): &(String, String)| {
        let source = Source::new(&format!("override {path}={value}"), value, false);
        if let Err(error) = apply_override(root, path, &source, sources.len()) {
            errors.push(*error);
        }
        sources.push(source);
    };
    // What is included must be there before values in it can be replaced.
    let (first, rest): (Vec<_>, Vec<_>) = overrides.iter().partition(|(path, _)| path.starts_with("include"));
    first.into_iter().for_each(|change| replace(&mut root, &mut sources, change));
    let included = machine::include::include(&mut root, &mut sources, &folder);
    let settings = document::apply_settings(&mut root, &sources);
    rest.into_iter().for_each(|change| replace(&mut root, &mut sources, change));
    errors.extend(included.errors);
    errors.extend(settings);
    if included.missing {
        // Half of the names would be unknown: that is one mistake, not many.
        return Err(CaseErrors { errors, left_out: 0 });
    }
    let unreadable = errors.iter().any(|error| error.kind == ErrorKind::Syntax);
    let scope = RefCell::new(Scope::default());
    let (errors, left_out) = (RefCell::new(errors), Cell::new(0));
    let (warnings, places) = (RefCell::default(), RefCell::default());
    let reader = Reader { sources, scope, folder, errors, left_out, warnings, places };
    let case = build::build(&reader, &root, name, included.files);
    let mut errors = reader.errors.into_inner();
    if unreadable {
        // What the parser had to leave out is not there to be found: only what stands by itself is worth
        // telling.
        errors.retain(|error| matches!(error.kind, ErrorKind::Syntax | ErrorKind::Value));
    }
    errors.sort_by(|a, b| (a.file != name, &a.file, a.line).cmp(&(b.file != name, &b.file, b.line)));
    match case {
        Some(mut case) if errors.is_empty() => {
            case.listing = language::listing::list(&root, &reader.sources);
            Ok(case)
        }
        _ => Err(CaseErrors { errors, left_out: reader.left_out.get() }),
    }
}

/// The text of a file of bearable size, or what is wrong with it.
fn read_text(path: &Path) -> Result<String, String> {
    let problem =
        |error: std::io::Error| format!("found a file that cannot be read ({error}), expected a text file");
    let file = std::fs::File::open(path).map_err(problem)?;
    let mut bytes = Vec::new();
    file.take(MAXIMUM_SIZE + 1).read_to_end(&mut bytes).map_err(problem)?;
    if bytes.len() as u64 > MAXIMUM_SIZE {
        return Err(format!("found a file of more than {MAXIMUM_SIZE} bytes, expected a smaller one"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count();
        format!("found bytes that are not UTF-8 text on line {line}, expected UTF-8")
    })
}
