//! A TOML text as a tree in which every value and key knows its place, and overrides of single values.

use super::errors::{CaseError, ErrorKind};
use super::keys::Kind;
use super::units;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A text that values come from: the case file, or an override of the command line.
pub(in crate::input) struct Source {
    pub name: String,
    pub text: String,
    /// Whether it has lines to point to.
    pub is_file: bool,
    line_starts: Vec<usize>,
}

/// A stretch of bytes of a source.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::input) struct Origin {
    pub source: usize,
    pub start: usize,
    pub end: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::input) struct Value {
    pub data: Data,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::input) enum Data {
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    Date,
    List(Vec<Value>),
    /// In the order of the text.
    Table(Vec<Entry>),
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::input) struct Entry {
    pub key: String,
    pub key_origin: Origin,
    pub value: Value,
}

impl Source {
    pub fn new(name: &str, text: &str, is_file: bool) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(starts).collect();
        Self { name: name.to_string(), text: text.to_string(), is_file, line_starts }
    }

    /// The line (from 1) that holds the byte at `at`, its text, and the column (from 0, in characters).
    pub fn line_of(&self, at: usize) -> (usize, &str, usize) {
        let line = self.line_starts.partition_point(|start| *start <= at).max(1);
        let Range { start, end } = self.line_range(at);
        let text = &self.text[start..end];
        let column = text.char_indices().take_while(|(offset, _)| start + offset < at).count();
        (line, text, column)
    }

    /// The bytes of the line that holds the byte at `at`, without its end.
    fn line_range(&self, at: usize) -> Range<usize> {
        let line = self.line_starts.partition_point(|start| *start <= at).max(1);
        let end = self.line_starts.get(line).map_or(self.text.len(), |next| next - 1);
        self.line_starts[line - 1]..end
    }

    /// Characters of a stretch on its first line.
    pub fn width(&self, origin: &Origin) -> usize {
        self.slice(origin).split('\n').next().map_or(0, |text| text.trim_end().chars().count())
    }

    /// Empty if the stretch is not one of this text.
    pub fn slice(&self, origin: &Origin) -> &str {
        self.text.get(origin.start..origin.end).unwrap_or("")
    }
}

/// The tree of a source, and what is not TOML in it. The rest is read nevertheless: lines that are not TOML
/// are blanked, a few times over, because the parser gives up behind some mistakes.
pub(in crate::input) fn parse(source: &Source, index: usize) -> (Value, Vec<CaseError>) {
    let (mut data, errors) = parse_text(&source.text, index);
    let mut bytes = source.text.clone().into_bytes();
    let mut bad = errors.clone();
    for _ in 0..4 {
        if bad.is_empty() {
            break;
        }
        for error in &bad {
            let at = error.span().map_or(0, |span| span.start);
            bytes[source.line_range(at)].fill(b' ');
        }
        (data, bad) = parse_text(&String::from_utf8_lossy(&bytes), index);
    }
    let errors = errors
        .iter()
        .map(|error| {
            let span = error.span().unwrap_or(0..0);
            let origin = Origin { source: index, start: span.start, end: span.end };
            let line = source.line_of(span.start).1;
            let value = line.split_once('=').map_or(line, |(_, value)| value);
            let hint = units::explain(value.split('#').next().unwrap_or(""), |_| false);
            let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
            let message = format!("not TOML: {}{hint}", error.message().trim());
            CaseError::at(source, &origin, "", ErrorKind::Syntax, message)
        })
        .collect();
    (Value { data, origin: Origin { source: index, start: 0, end: 0 } }, errors)
}

fn parse_text(text: &str, index: usize) -> (Data, Vec<toml::de::Error>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    (table_data(table.get_ref(), index), errors)
}

/// A single value, as in a default or an override.
pub(in crate::input) fn parse_value(text: &str, index: usize) -> Option<Value> {
    DeValue::parse(text).ok().map(|value| convert(&value, index))
}

fn place(span: Range<usize>, source: usize) -> Origin {
    Origin { source, start: span.start, end: span.end }
}

fn convert(value: &Spanned<DeValue<'_>>, source: usize) -> Value {
    let data = match value.get_ref() {
        DeValue::String(text) => Data::Text(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(integer) => Data::Integer(integer),
            Err(_) => Data::Float(number.as_str().parse().unwrap_or(f64::INFINITY)),
        },
        DeValue::Float(number) => Data::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Data::Flag(*flag),
        DeValue::Datetime(_) => Data::Date,
        DeValue::Array(list) => Data::List(list.iter().map(|item| convert(item, source)).collect()),
        DeValue::Table(table) => table_data(table, source),
    };
    Value { data, origin: place(value.span(), source) }
}

fn table_data(table: &DeTable<'_>, source: usize) -> Data {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_origin: place(key.span(), source),
            value: convert(value, source),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_origin.start);
    Data::Table(entries)
}

/// Puts the value of source `index` (an override) at `path`: table keys and, in lists of tables, names or
/// numbers from 1, joined by points (`solver.tolerance`, `body.floor.position`, `contact.1.friction`). A text
/// that is no TOML value is taken as a string, so that formulas need no quotes.
pub(in crate::input) fn apply_override(
    root: &mut Value,
    path: &str,
    source: &Source,
    index: usize,
) -> Result<(), Box<CaseError>> {
    let whole = Origin { source: index, start: 0, end: source.text.len() };
    let value = parse_value(&source.text, index)
        .unwrap_or_else(|| Value { data: Data::Text(source.text.clone()), origin: whole.clone() });
    put(root, path, value, &whole)
        .map_err(|message| Box::new(CaseError::at(source, &whole, path, ErrorKind::Relation, message)))
}

/// Puts the values under `set` in their places; `sources` are those of all files.
pub(in crate::input) fn apply_settings(root: &mut Value, sources: &[Source]) -> Vec<CaseError> {
    let Data::Table(entries) = &mut root.data else { return Vec::new() };
    let Some(place) = entries.iter().position(|entry| entry.key == "set") else { return Vec::new() };
    let Entry { value, key_origin, .. } = entries.remove(place);
    let source = |origin: &Origin| &sources[origin.source];
    let Data::Table(settings) = value.data else {
        let message = format!("found {}, expected {}", value.noun(), Kind::Settings.describe());
        return vec![CaseError::at(source(&key_origin), &value.origin, "set", ErrorKind::Value, message)];
    };
    let mut errors = Vec::new();
    for Entry { key, key_origin, value } in settings {
        if let Err(message) = put(root, &key, value, &key_origin) {
            let path = format!("set.{key}");
            errors.push(CaseError::at(source(&key_origin), &key_origin, &path, ErrorKind::Relation, message));
        }
    }
    errors
}

/// Puts a value at a key path; tables that are not there are made, as if they stood at `origin`.
fn put(root: &mut Value, path: &str, value: Value, origin: &Origin) -> Result<(), String> {
    let segments: Vec<&str> = path.split('.').collect();
    if segments.len() > 16 || segments.iter().any(|segment| segment.is_empty()) {
        return Err("found no key path, expected one such as `simulation.time_step`".to_string());
    }
    let mut at = root;
    for segment in segments {
        at = match &mut at.data {
            Data::Table(entries) => {
                let position = entries.iter().position(|entry| entry.key == segment).unwrap_or_else(|| {
                    let empty = Value { data: Data::Table(Vec::new()), origin: origin.clone() };
                    entries.push(Entry {
                        key: segment.to_string(),
                        key_origin: origin.clone(),
                        value: empty,
                    });
                    entries.len() - 1
                });
                &mut entries[position].value
            }
            Data::List(items) => {
                let named = items.iter().position(|item| item.name() == Some(segment));
                let numbered =
                    segment.parse::<usize>().ok().filter(|number| (1..=items.len()).contains(number));
                match named.or(numbered.map(|number| number - 1)) {
                    Some(position) => &mut items[position],
                    None => {
                        let message = format!(
                            "found `{segment}`, expected a name or a number from 1 to {}",
                            items.len()
                        );
                        return Err(message);
                    }
                }
            }
            _ => {
                return Err(format!("found `{segment}` below a plain value, expected a table there"));
            }
        };
    }
    *at = value;
    Ok(())
}

impl Value {
    pub fn get(&self, key: &str) -> Option<&Value> {
        match &self.data {
            Data::Table(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The `name` of a table that has one.
    pub fn name(&self) -> Option<&str> {
        match &self.get("name")?.data {
            Data::Text(name) => Some(name),
            _ => None,
        }
    }

    pub fn noun(&self) -> &'static str {
        match self.data {
            Data::Text(_) => "a text",
            Data::Integer(_) | Data::Float(_) => "a number",
            Data::Flag(_) => "a truth value",
            Data::Date => "a date",
            Data::List(_) => "a list",
            Data::Table(_) => "a table",
        }
    }
}
