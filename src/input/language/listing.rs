//! What a case says, key by key, in a form that does not depend on how it is written: to find what changed
//! between two runs.
//!
//! Keys are those of overrides (`body.floor.position`, `contact.1.friction`), with included files and
//! overrides in place; numbers are written one way (`1` and `1.0` are equal), lists of named tables have a
//! key of their own with the names in order, and a key that names a file is followed by the hash of its
//! contents. Defaults that are not written are not listed.

use super::document::{Data, Source, Value};
use std::collections::BTreeMap;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

/// Keys (or what they begin with) that do not change what is computed, only how long, where and what is
/// written of it.
const FREE: &[&str] = &[
    "title",
    "include",
    "simulation.duration",
    "output.",
    "checkpoint.",
    "decomposition.",
    "region",
    "region.",
];

/// Text of each key's value.
pub type Listing = BTreeMap<String, String>;

/// Whether the results of a run depend on a key.
pub fn is_physics(key: &str) -> bool {
    !FREE.iter().any(|free| if free.ends_with('.') { key.starts_with(free) } else { key == *free })
}

/// A key that two cases do not agree on: the key, the text in the old one and in the new one.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub key: String,
    pub old: Option<String>,
    pub new: Option<String>,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "(not given)".into());
        write!(f, "{}: {} -> {}", self.key, text(&self.old), text(&self.new))
    }
}

/// The changes of physics, by key.
pub fn changes(old: &Listing, new: &Listing) -> Vec<Change> {
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    keys.into_iter()
        .filter(|key| is_physics(key) && old.get(*key) != new.get(*key))
        .map(|key| Change { key: key.clone(), old: old.get(key).cloned(), new: new.get(key).cloned() })
        .collect()
}

pub(in crate::input) fn list(root: &Value, sources: &[Source]) -> Listing {
    let mut listing = Listing::new();
    add(&mut listing, "", root, sources);
    listing
}

fn add(listing: &mut Listing, place: &str, value: &Value, sources: &[Source]) {
    let below = |key: &str| if place.is_empty() { key.to_string() } else { format!("{place}.{key}") };
    match &value.data {
        Data::Table(entries) => {
            for entry in entries {
                add(listing, &below(&entry.key), &entry.value, sources);
                if let (true, Data::Text(file)) = (entry.key == "file", &entry.value.data) {
                    let contents = hash(&sources[entry.value.origin.source], file);
                    listing.insert(below("file (contents)"), contents);
                }
            }
        }
        Data::List(items) if items.iter().any(|item| matches!(item.data, Data::Table(_))) => {
            let names: Vec<String> = items
                .iter()
                .enumerate()
                .map(|(k, item)| item.name().map_or_else(|| (k + 1).to_string(), str::to_string))
                .collect();
            for (name, item) in names.iter().zip(items) {
                add(listing, &below(name), item, sources);
            }
            listing.insert(place.to_string(), names.join(", "));
        }
        _ => {
            listing.insert(place.to_string(), text(value));
        }
    }
}

fn text(value: &Value) -> String {
    match &value.data {
        Data::Text(text) => format!("{text:?}"),
        Data::Integer(number) if number.unsigned_abs() < 1 << 53 => format!("{:?}", *number as f64),
        Data::Integer(number) => number.to_string(),
        Data::Float(number) => format!("{number:?}"),
        Data::Flag(flag) => flag.to_string(),
        Data::Date => "a date".into(),
        Data::List(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        Data::Table(entries) => {
            let entry = |entry: &super::document::Entry| format!("{} = {}", entry.key, text(&entry.value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

fn hash(source: &Source, file: &str) -> String {
    let folder = Path::new(&source.name).parent().unwrap_or(Path::new(""));
    match std::fs::read(folder.join(file)) {
        Ok(bytes) => format!("xxh3 {:032x}", xxh3_128(&bytes)),
        Err(_) => "cannot be read".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::{apply_override, parse};
    use super::*;

    fn listed(text: &str, overrides: &[(&str, &str)]) -> Listing {
        let mut sources = vec![Source::new("case.toml", text, true)];
        let (mut root, errors) = parse(&sources[0], 0);
        assert!(errors.is_empty());
        for (path, value) in overrides {
            let source = Source::new("override", value, false);
            apply_override(&mut root, path, &source, sources.len()).unwrap();
            sources.push(source);
        }
        list(&root, &sources)
    }

    const CASE: &str = "title = \"A\"\n[simulation]\ntime_step = 1\nduration = 2\n[[body]]\nname = \"floor\"\n\
        position = [0, 0, 0.5]\n[[body]]\nname = \"lid\"\n[[contact]]\nfriction = \"mu\"\n[output]\ninterval = 1\n";

    #[test]
    fn writing_it_another_way_changes_nothing() {
        let other = "# comment\n[output]\ninterval = 7\n[[contact]]\nfriction = 'mu'\n[[body]]\nposition = [0.0, 0, 5e-1]\n\
            name = \"floor\"\n[[body]]\nname = \"lid\"\n[simulation]\nduration = 99\ntime_step = 1.0\n";
        assert_eq!(changes(&listed(CASE, &[]), &listed(other, &[])), []);
    }

    #[test]
    fn changes_name_the_key_and_both_values() {
        let old = listed(CASE, &[]);
        let new = listed(CASE, &[("body.floor.position", "[0, 0, 1]"), ("contact.1.restitution", "0.5")]);
        let said: Vec<String> = changes(&old, &new).iter().map(Change::to_string).collect();
        assert_eq!(
            said,
            [
                "body.floor.position: [0.0, 0.0, 0.5] -> [0.0, 0.0, 1.0]",
                "contact.1.restitution: (not given) -> 0.5"
            ]
        );
        let swapped = CASE.replace("lid", "x").replace("floor", "lid").replace("\"x\"", "\"floor\"");
        assert!(changes(&old, &listed(&swapped, &[])).iter().any(|change| change.key == "body"));
    }
}
