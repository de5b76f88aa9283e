//! What is wrong with a case file, for the person who wrote it.

use super::document::{Origin, Source};
use std::fmt;
use thiserror::Error;

/// One mistake: where it is, which key, what was found and what would be right.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseError {
    /// The case file as it was named, another file that it uses, or the override of the command line.
    pub file: String,
    /// Counts from 1; none where no line is to blame.
    pub line: Option<usize>,
    /// Path of the key, for instance `body.floor.shape`; empty for a mistake of the file as a whole.
    pub key: String,
    /// "found …, expected …".
    pub message: String,
    pub kind: ErrorKind,
    excerpt: Option<Excerpt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Not TOML.
    Syntax,
    /// A value that is wrong by itself.
    Value,
    /// A key that no one knows, or that does not belong there.
    UnknownKey,
    /// A key that must be there.
    Missing,
    /// A value that does not fit the others: names, pairs, cycles.
    Relation,
}

#[derive(Clone, Debug, PartialEq)]
struct Excerpt {
    text: String,
    column: usize,
    width: usize,
}

/// Longest excerpt of a line, in characters.
const EXCERPT: usize = 100;

impl CaseError {
    pub(in crate::input) fn at(
        source: &Source,
        origin: &Origin,
        key: &str,
        kind: ErrorKind,
        message: String,
    ) -> Self {
        let mut error = Self::whole(&source.name, key, kind, message);
        if source.is_file {
            let (line, text, column) = source.line_of(origin.start);
            let skipped = column.saturating_sub(EXCERPT * 3 / 4);
            let shown: String = text.chars().skip(skipped).take(EXCERPT).map(printable).collect();
            let width = source.width(origin).clamp(1, EXCERPT.saturating_sub(column - skipped).max(1));
            error.line = Some(line);
            error.excerpt = Some(Excerpt { text: shown, column: column - skipped, width });
        }
        error
    }

    /// Without a line.
    pub(in crate::input) fn whole(file: &str, key: &str, kind: ErrorKind, message: String) -> Self {
        Self { file: file.to_string(), line: None, key: key.to_string(), message, kind, excerpt: None }
    }
}

/// Tabs and control characters would tear the caret from its place or the terminal from its senses.
fn printable(character: char) -> char {
    if character.is_control() { ' ' } else { character }
}

impl fmt::Display for CaseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:", self.file)?;
        if let Some(line) = self.line {
            write!(formatter, "{line}:")?;
        }
        if !self.key.is_empty() {
            write!(formatter, " {}:", self.key)?;
        }
        write!(formatter, " {}", self.message)?;
        if let (Some(excerpt), Some(line)) = (&self.excerpt, self.line) {
            let gutter = line.to_string();
            let (text, margin) = (excerpt.text.trim_end(), " ".repeat(gutter.len()));
            write!(formatter, "\n  {gutter} | {text}")?;
            write!(formatter, "\n  {margin} | {}{}", " ".repeat(excerpt.column), "^".repeat(excerpt.width))?;
        }
        Ok(())
    }
}

/// Every mistake of a case, in the order of the file.
#[derive(Clone, Debug, PartialEq, Error)]
pub struct CaseErrors {
    pub errors: Vec<CaseError>,
    /// How many more there were after the first thousand.
    pub left_out: usize,
}

impl fmt::Display for CaseErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for error in &self.errors {
            writeln!(formatter, "{error}")?;
        }
        match self.errors.len() + self.left_out {
            1 => write!(formatter, "1 error"),
            count if self.left_out > 0 => {
                write!(formatter, "{count} errors, of which the first {} are shown", self.errors.len())
            }
            count => write!(formatter, "{count} errors"),
        }
    }
}
