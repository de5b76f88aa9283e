//! Typed access to the tree of a case file. Every mistake is noted and reading continues, so that all come out
//! at once.
//!
//! A method returns `None` when the key is absent (which has been noted if it is required) or wrong (which
//! has been noted). What a value may be is looked up in the key lists, never repeated at the call.

use super::document::{Data, Entry, Origin, Source, Value, parse_value};
use super::errors::{CaseError, ErrorKind};
use super::keys::{Alternative, Key, Kind, Need, Section, Variant};
use super::values;
use super::{suspicion, units};
use crate::formula::{Expression, Scope};
use crate::words::{Choice, Choose, closest, one_of};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Mistakes that are kept; more are only counted.
const MAXIMUM_ERRORS: usize = 1000;

/// What reading needs throughout: the texts, the names that formulas know, the folder of the case, the
/// mistakes so far.
pub(in crate::input) struct Reader {
    pub sources: Vec<Source>,
    pub scope: RefCell<Scope>,
    pub folder: PathBuf,
    pub errors: RefCell<Vec<CaseError>>,
    pub left_out: Cell<usize>,
    /// What is allowed but probably not meant.
    pub warnings: RefCell<Vec<String>>,
    /// File and line by key path.
    pub places: RefCell<BTreeMap<String, String>>,
}

impl Reader {
    pub fn note(&self, origin: &Origin, key: &str, kind: ErrorKind, message: String) {
        if let Some(source) = self.sources.get(origin.source) {
            self.push(CaseError::at(source, origin, key, kind, message));
        } else if let Some(source) = self.sources.first() {
            self.push(CaseError::whole(&source.name, key, kind, message));
        }
    }

    pub fn push(&self, error: CaseError) {
        if self.errors.borrow().len() < MAXIMUM_ERRORS {
            self.errors.borrow_mut().push(error);
        } else {
            self.left_out.set(self.left_out.get() + 1);
        }
    }

    /// Notes a number that is probably not what was meant. Defaults stand in no source and are never
    /// suspicious.
    pub fn consider(&self, origin: &Origin, path: &str, unit: &str, number: f64) {
        let Some((hint, place)) = suspicion::about(path, unit, number).zip(self.place(origin)) else {
            return;
        };
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        let warning = format!("{place}: {path}: found {number}{unit}, {hint}");
        let mut warnings = self.warnings.borrow_mut();
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// File and line; what stands on the command line has no line.
    pub fn place(&self, origin: &Origin) -> Option<String> {
        let source = self.sources.get(origin.source)?;
        Some(match source.is_file {
            true => format!("{}:{}", source.name, source.line_of(origin.start).0),
            false => source.name.clone(),
        })
    }

    /// From which relative paths start: the folder of the file in which they stand.
    pub fn folder_of(&self, origin: &Origin) -> PathBuf {
        let included = self.sources.get(origin.source).filter(|source| source.is_file && origin.source > 0);
        let folder = included.and_then(|source| Path::new(&source.name).parent());
        folder.unwrap_or(&self.folder).to_path_buf()
    }

    /// The value as it is written, shortened.
    pub fn found(&self, value: &Value) -> String {
        let text = self.sources.get(value.origin.source).map_or("", |source| source.slice(&value.origin));
        match value.data {
            Data::List(_) | Data::Table(_) if text.chars().count() > 40 || text.contains('\n') => {
                value.noun().to_string()
            }
            _ if text.is_empty() => value.noun().to_string(),
            _ if text.chars().count() > 60 => format!("{}…", text.chars().take(60).collect::<String>()),
            _ => text.replace(|character: char| character.is_control(), " "),
        }
    }

    /// Notes "found …, expected …".
    pub fn wrong(&self, value: &Value, path: &str, expected: &str) {
        let message = format!("found {}, expected {expected}", self.found(value));
        self.note(&value.origin, path, ErrorKind::Value, message);
    }

    /// A formula of `variables` and the names of the case, its mistakes noted where they stand.
    pub fn compile(&self, text: &str, value: &Value, path: &str, variables: &[&str]) -> Option<Expression> {
        match Expression::compile(text, variables, &self.scope.borrow()) {
            Ok(expression) => Some(expression),
            Err(error) => {
                let mut origin = value.origin.clone();
                // Without escapes the text stands one quote behind the start of the value.
                let written = self.sources.get(origin.source).map_or("", |source| source.slice(&origin));
                if written.get(1..).is_some_and(|inside| inside.starts_with(text)) {
                    origin.start += 1 + error.at;
                    origin.end = origin.start + error.length;
                }
                let known = |name: &str| {
                    let scope = self.scope.borrow();
                    variables.contains(&name)
                        || scope.constants.contains_key(name)
                        || scope.tables.contains_key(name)
                };
                match units::explain(text, known) {
                    Some(message) => self.note(&value.origin, path, ErrorKind::Value, message),
                    None => self.note(&origin, path, ErrorKind::Value, error.to_string()),
                }
                None
            }
        }
    }
}

static EMPTY_TABLE: Value =
    Value { data: Data::Table(Vec::new()), origin: Origin { source: usize::MAX, start: 0, end: 0 } };

/// A table of the file with the keys that it may hold.
pub(in crate::input) struct TableReader<'a> {
    pub reader: &'a Reader,
    pub path: String,
    pub origin: &'a Origin,
    pub variant: Option<&'static Variant>,
    section: &'static Section,
    entries: &'a [Entry],
}

impl<'a> TableReader<'a> {
    /// Checks the keys: unknown, misplaced, missing, excluding each other.
    pub fn open(
        reader: &'a Reader,
        value: &'a Value,
        section: &'static Section,
        path: String,
    ) -> Option<Self> {
        let Data::Table(entries) = &value.data else {
            reader.wrong(value, &path, "a table");
            return None;
        };
        let mut table = Self { reader, path, origin: &value.origin, variant: None, section, entries };
        table.variant = table.find_variant();
        table.refuse_unknown_keys();
        table.check_required();
        table.check_alternatives(section.alternatives);
        table.check_alternatives(table.variant.map_or(&[], |variant| variant.alternatives));
        Some(table)
    }

    /// The path of a key of this table.
    pub fn join(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) }
    }

    pub fn entry(&self, key: &str) -> Option<&'a Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// Where to point for a mistake of `key`: its value, or the table if it is absent.
    pub fn origin_of(&self, key: &str) -> &'a Origin {
        self.entry(key).map_or(self.origin, |entry| &entry.value.origin)
    }

    /// Notes a mistake of `key` that only shows when values are compared.
    pub fn relation(&self, key: &str, message: String) {
        self.reader.note(self.origin_of(key), &self.join(key), ErrorKind::Relation, message);
    }

    fn find_variant(&self) -> Option<&'static Variant> {
        let variants = self.section.variants.as_ref()?;
        let names = || variants.cases.iter().map(|case| case.name);
        let expected = || names().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let name = match self.entry(variants.tag).map(|entry| &entry.value) {
            Some(Value { data: Data::Text(name), .. }) => name.as_str(),
            Some(value) => {
                self.reader.wrong(value, &self.join(variants.tag), &format!("one of {}", expected()));
                return None;
            }
            None if variants.default.is_some() => variants.default?,
            None => {
                let message = format!("found no such key, expected one of {}", expected());
                self.reader.note(self.origin, &self.join(variants.tag), ErrorKind::Missing, message);
                return None;
            }
        };
        let case = variants.cases.iter().find(|case| case.name == name);
        if case.is_none() {
            let hint = did_you_mean(closest(name, names()));
            let message = format!("found {name:?}, expected one of {}{hint}", expected());
            self.reader.note(
                self.origin_of(variants.tag),
                &self.join(variants.tag),
                ErrorKind::Value,
                message,
            );
        }
        case
    }

    /// The keys of this table and its variant.
    fn keys(&self) -> impl Iterator<Item = &'static Key> {
        self.section.keys.iter().chain(self.variant.map_or(&[][..], |variant| variant.keys).iter())
    }

    fn refuse_unknown_keys(&self) {
        let tag = self.section.variants.as_ref().map(|variants| variants.tag);
        // With an unknown variant every variant's keys pass, so that one mistake does not breed more.
        let undecided = tag.is_some() && self.variant.is_none();
        for entry in self.entries {
            let known = |key: &&Key| key.name == entry.key;
            if Some(entry.key.as_str()) == tag
                || self.keys().any(|key| known(&key))
                || (undecided && self.section.all_keys().any(|key| known(&key)))
            {
                continue;
            }
            let names = || tag.into_iter().chain(self.keys().map(|key| key.name));
            let list = one_of(&entry.key, names(), str::to_string);
            let message = match (tag, self.variant, self.owners(&entry.key)) {
                (Some(tag), Some(variant), owners) if !owners.is_empty() => format!(
                    "found a key of {tag} = {owners}, expected for {tag} = \"{}\" {list}",
                    variant.name
                ),
                _ => {
                    let hint = did_you_mean(closest(&entry.key, names()));
                    format!("found an unknown key, expected {list}{hint}")
                }
            };
            self.reader.note(&entry.key_origin, &self.join(&entry.key), ErrorKind::UnknownKey, message);
        }
    }

    /// The variants that know a key, as words.
    fn owners(&self, key: &str) -> String {
        let cases = self.section.variants.as_ref().map_or(&[][..], |variants| variants.cases);
        let owners = cases.iter().filter(|case| case.keys.iter().any(|known| known.name == key));
        owners.map(|case| format!("{:?}", case.name)).collect::<Vec<_>>().join(" or ")
    }

    fn check_required(&self) {
        for key in self.keys().filter(|key| matches!(key.need, Need::Required) && !self.has(key.name)) {
            let unit = if key.unit.is_empty() { String::new() } else { format!(" ({})", key.unit) };
            let message = format!("found no such key, expected {}{unit}", key.kind.describe());
            self.reader.note(self.origin, &self.join(key.name), ErrorKind::Missing, message);
        }
    }

    fn check_alternatives(&self, alternatives: &[Alternative]) {
        for alternative in alternatives {
            let mut given: Vec<&str> = alternative.sets.iter().flat_map(|set| set.iter().copied()).collect();
            given.retain(|key| self.has(key));
            given.sort_unstable();
            given.dedup();
            let fits = alternative
                .sets
                .iter()
                .any(|set| set.len() == given.len() && given.iter().all(|key| set.contains(key)));
            if fits || (given.is_empty() && !alternative.required) {
                continue;
            }
            let sets = alternative.sets.iter().map(|set| set.join(" with ")).collect::<Vec<_>>();
            let sets = sets.join(", or ");
            let (kind, found) = match given[..] {
                [] => (ErrorKind::Missing, "none of these keys".to_string()),
                _ => (ErrorKind::Relation, given.join(" and ")),
            };
            let origin = given.last().map_or(self.origin, |key| self.origin_of(key));
            self.reader.note(origin, &self.path, kind, format!("found {found}, expected either {sets}"));
        }
    }

    /// The value of a key or its default, with what the key lists say about it.
    pub fn field(&self, name: &str) -> Option<Field<'a>> {
        let key = self.keys().find(|key| key.name == name)?;
        let value = match (self.entry(name), &key.need) {
            (Some(entry), _) => Cow::Borrowed(&entry.value),
            (None, Need::Default(text)) => Cow::Owned(parse_value(text, usize::MAX)?),
            (None, _) => return None,
        };
        Some(Field { reader: self.reader, value, path: self.join(name), kind: &key.kind, unit: key.unit })
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        self.field(name)?.number()
    }

    pub fn count(&self, name: &str) -> Option<u64> {
        self.field(name)?.count()
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        self.field(name)?.flag()
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.field(name)?.text()
    }

    pub fn choice<T: Choose>(&self, name: &str) -> Option<T> {
        self.field(name)?.choice()
    }

    /// The table under a key; an empty one, in which all has defaults, where that is the key's default.
    pub fn table(&self, name: &str) -> Option<TableReader<'a>> {
        let key = self.keys().find(|key| key.name == name)?;
        let (Kind::Table(section) | Kind::ChoiceOrTable(_, section)) = &key.kind else { return None };
        let value = match (self.entry(name), &key.need) {
            (Some(entry), _) => &entry.value,
            (None, Need::Default("{}")) => &EMPTY_TABLE,
            (None, _) => return None,
        };
        TableReader::open(self.reader, value, section, self.join(name))
    }

    /// The tables under a key, named by their `name` or else by their number from 1.
    pub fn tables(&self, name: &str) -> Vec<TableReader<'a>> {
        let Some(Key { kind: Kind::Tables(section, least), .. }) = self.keys().find(|key| key.name == name)
        else {
            return Vec::new();
        };
        let Some(value) = self.entry(name).map(|entry| &entry.value) else { return Vec::new() };
        let path = self.join(name);
        let Data::List(items) = &value.data else {
            self.reader.wrong(value, &path, &format!("tables, written [[{path}]]"));
            return Vec::new();
        };
        if items.len() < *least {
            self.reader.wrong(value, &path, &Kind::Tables(section, *least).describe());
        }
        let label = |index: usize, item: &Value| match item.name() {
            Some(name) if values::is_name(name) => format!("{path}.{name}"),
            _ => format!("{path}.{}", index + 1),
        };
        let open = |(index, item)| TableReader::open(self.reader, item, section, label(index, item));
        items.iter().enumerate().filter_map(open).collect()
    }
}

/// One value with its path and what it may be.
pub(in crate::input) struct Field<'a> {
    pub reader: &'a Reader,
    pub value: Cow<'a, Value>,
    pub path: String,
    pub kind: &'static Kind,
    /// As the key lists say it.
    pub unit: &'static str,
}

impl Field<'_> {
    /// Notes that the value is not of its kind.
    pub fn wrong(&self) {
        self.reader.wrong(&self.value, &self.path, &self.kind.describe());
    }

    /// Notes a mistake of this value in other words.
    pub fn note(&self, kind: ErrorKind, message: String) {
        self.reader.note(&self.value.origin, &self.path, kind, message);
    }
}

pub(in crate::input) fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map_or(String::new(), |word| format!("; did you mean \"{word}\"?"))
}

/// The position of a word in a list of choices, or the mistake in words.
pub(in crate::input) fn choose(text: &str, choices: &[Choice], expected: &str) -> Result<usize, String> {
    let found = choices.iter().position(|choice| choice.name == text);
    found.ok_or_else(|| {
        let hint = did_you_mean(closest(text, choices.iter().map(|choice| choice.name)));
        format!("found {text:?}, expected {expected}{hint}")
    })
}
