//! Names that other keys refer to.

use super::document::{Data, Value};
use super::errors::ErrorKind;
use super::keys::{Kind, Namespace};
use super::reader::{Field, TableReader, did_you_mean};
use crate::words::{closest, one_of};
use std::collections::BTreeMap;

/// The names of a list of tables, in their order.
pub(in crate::input) struct Names {
    pub list: Vec<String>,
    index: BTreeMap<String, usize>,
}

impl Names {
    /// Reads the `name` of every table and refuses those that come again. A wrong name keeps its place in the
    /// list.
    pub fn collect<'a, 'b: 'a>(tables: impl Iterator<Item = &'a TableReader<'b>>) -> Self {
        let mut names = Self { list: Vec::new(), index: BTreeMap::new() };
        for table in tables {
            // A wrong name can be referred to, so that it is reported only once.
            let written = || match table.entry("name").map(|entry| &entry.value.data) {
                Some(Data::Text(name)) => name.clone(),
                _ => String::new(),
            };
            let name = table.text("name").unwrap_or_else(written);
            if !name.is_empty() && names.index.contains_key(&name) {
                table.relation("name", format!("found {name:?} once more, expected another name"));
            } else if !name.is_empty() {
                names.index.insert(name.clone(), names.list.len());
            }
            names.list.push(name);
        }
        names
    }

    fn find(&self, field: &Field, value: &Value, namespace: Namespace) -> Option<usize> {
        let Data::Text(name) = &value.data else {
            field.reader.wrong(value, &field.path, &Kind::Reference(namespace).describe());
            return None;
        };
        let found = self.index.get(name).copied();
        if found.is_none() {
            let known = || self.index.keys().map(String::as_str);
            let expected = match self.index.is_empty() {
                true => format!("the name of a [[{}]], of which there is none", namespace.noun()),
                false => {
                    format!("a {}: {}", namespace.noun(), one_of(name, known(), |name| format!("{name:?}")))
                }
            };
            let hint = did_you_mean(closest(name, known()));
            let message = format!("found the unknown name {name:?}, expected {expected}{hint}");
            field.reader.note(&value.origin, &field.path, ErrorKind::Relation, message);
        }
        found
    }

    /// The place in the list of what a key names.
    pub fn reference(&self, table: &TableReader, key: &str) -> Option<usize> {
        let field = table.field(key)?;
        let Kind::Reference(namespace) = field.kind else { return None };
        self.find(&field, &field.value, *namespace)
    }

    /// The places of the two that a key names.
    pub fn reference_pair(&self, table: &TableReader, key: &str) -> Option<[usize; 2]> {
        let field = table.field(key)?;
        let Kind::ReferencePair(namespace) = field.kind else { return None };
        match &field.value.data {
            Data::List(items) if items.len() == 2 => {
                let [first, second] = [0, 1].map(|k| self.find(&field, &items[k], *namespace));
                Some([first?, second?])
            }
            _ => {
                field.wrong();
                None
            }
        }
    }
}
