//! Files that a case includes: lists and parameters that several cases share, above all machines.
//!
//! The tables of an included file are put behind those of the case as if they stood there; what is wrong in them is reported with their own file and line. A parameter that the case sets itself keeps the case's value,
//! so an included file may bring defaults.

use crate::input::language::document::{self, Data, Entry, Source, Value};
use crate::input::language::errors::{CaseError, ErrorKind};
use crate::input::language::keys::Kind;
use crate::input::read_text;
use std::path::{Path, PathBuf};

/// What an included file may hold.
pub(in crate::input) const INCLUDABLE: &[&str] =
    &["parameters", "table", "material", "contact", "shape", "body", "grains", "machine", "region"];

/// Most files that a case includes.
const MAXIMUM_FILES: usize = 100;

/// What came of including.
#[derive(Default)]
pub(in crate::input) struct Included {
    pub files: Vec<PathBuf>,
    pub errors: Vec<CaseError>,
    /// Whether a file could not be read.
    pub missing: bool,
}

/// Reads the files under `include` and adds what is in them to `root`. Mistakes of the key itself are reported, too.
pub(in crate::input) fn include(root: &mut Value, sources: &mut Vec<Source>, folder: &Path) -> Included {
    let mut included = Included::default();
    let Some(listed) = root.get("include").cloned() else { return included };
    let Included { files, errors, missing } = &mut included;
    let items = match listed.data {
        Data::List(items) if !items.is_empty() && items.len() <= MAXIMUM_FILES => items,
        _ => vec![listed],
    };
    for item in items {
        let refuse = |message: String| {
            CaseError::at(&sources[item.origin.source], &item.origin, "include", ErrorKind::Value, message)
        };
        let path = match &item.data {
            Data::Text(text) if !text.is_empty() && !text.contains('\0') => folder.join(text),
            _ => {
                errors.push(refuse(format!("found {}, expected {}", item.noun(), Kind::Files.describe())));
                *missing = true;
                continue;
            }
        };
        if files.contains(&path) {
            errors.push(refuse(format!("found {} once more, expected each file once", path.display())));
            continue;
        }
        if !path.is_file() {
            errors.push(refuse(format!("found no file at {}, expected one", path.display())));
            *missing = true;
            continue;
        }
        files.push(path.clone());
        match read_text(&path) {
            Ok(text) => {
                let source = Source::new(&path.display().to_string(), &text, true);
                let (value, mistakes) = document::parse(&source, sources.len());
                errors.extend(mistakes);
                merge(root, value, &source, errors);
                sources.push(source);
            }
            Err(message) => {
                errors.push(CaseError::whole(&path.display().to_string(), "", ErrorKind::Value, message));
                *missing = true;
            }
        }
    }
    included
}

fn merge(root: &mut Value, included: Value, source: &Source, errors: &mut Vec<CaseError>) {
    let (Data::Table(own), Data::Table(entries)) = (&mut root.data, included.data) else { return };
    for entry in entries {
        if !INCLUDABLE.contains(&entry.key.as_str()) {
            let message = format!(
                "found a key that an included file cannot hold, expected one of {}",
                INCLUDABLE.join(", ")
            );
            errors.push(CaseError::at(source, &entry.key_origin, &entry.key, ErrorKind::UnknownKey, message));
            continue;
        }
        match own.iter_mut().find(|known| known.key == entry.key) {
            Some(known) => extend(known, entry, source, errors),
            None => own.push(entry),
        }
    }
}

/// Lists grow; of parameters those are taken that the case does not have.
fn extend(known: &mut Entry, entry: Entry, source: &Source, errors: &mut Vec<CaseError>) {
    match (&mut known.value.data, entry.value.data) {
        (Data::List(items), Data::List(more)) => items.extend(more),
        (Data::Table(parameters), Data::Table(more)) => {
            for parameter in more {
                if !parameters.iter().any(|known| known.key == parameter.key) {
                    parameters.push(parameter);
                }
            }
        }
        _ => {
            let message = format!(
                "found {:?} of another kind here than in the case, expected the same: a list of tables, or a table",
                entry.key
            );
            errors.push(CaseError::at(source, &entry.key_origin, &entry.key, ErrorKind::Relation, message));
        }
    }
}
