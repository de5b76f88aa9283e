//! Tables of numbers with named columns, each in its own type; and as CSV text.

use crate::output::reader::Numbers;
use std::fmt::Write as _;
use std::io::{self, Write};

/// A column; `components` numbers in each row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowColumn {
    pub name: String,
    pub components: usize,
    pub values: Numbers,
}

impl RowColumn {
    pub fn new(name: impl Into<String>, components: usize, values: Numbers) -> Self {
        Self { name: name.into(), components, values }
    }

    /// One heading for each component, as the series has them: `velocity/x`.
    pub fn headings(&self) -> Vec<String> {
        let labels: &[&str] = match self.components {
            1 => return vec![self.name.clone()],
            3 => &["x", "y", "z"],
            4 => &["w", "x", "y", "z"],
            _ => &[],
        };
        let label = |k: usize| labels.get(k).map_or(k.to_string(), |label| label.to_string());
        (0..self.components).map(|k| format!("{}/{}", self.name, label(k))).collect()
    }
}

/// Columns with equally many rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    pub columns: Vec<RowColumn>,
}

impl Rows {
    pub fn count(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len() / column.components.max(1))
    }

    /// Adds the rows of another table with the same columns.
    pub fn append(&mut self, other: &Rows) {
        if self.columns.is_empty() {
            *self = other.clone();
            return;
        }
        for column in &mut self.columns {
            if let Some(more) = other.columns.iter().find(|more| more.name == column.name) {
                column.values.extend(&more.values, 0..more.values.len());
            }
        }
    }

    pub fn write_heading(&self, before: &[&str], out: &mut dyn Write) -> io::Result<()> {
        let own = self.columns.iter().flat_map(RowColumn::headings).map(|name| quoted(&name));
        let names: Vec<String> = before.iter().map(|name| name.to_string()).chain(own).collect();
        writeln!(out, "{}", names.join(","))
    }

    /// Every row, each behind the text `before`.
    pub fn write_rows(&self, before: &str, out: &mut dyn Write) -> io::Result<()> {
        let mut line = String::new();
        for row in 0..self.count() {
            line.clear();
            line.push_str(before);
            for column in &self.columns {
                for k in 0..column.components {
                    if !line.is_empty() {
                        line.push(',');
                    }
                    // Writing to a String cannot fail.
                    let _ = write!(line, "{}", column.values.text(row * column.components + k));
                }
            }
            line.push('\n');
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    }
}

/// As RFC 4180 wants it.
fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_become_text_and_grow() {
        let column = |values: Vec<f64>| RowColumn::new("a, b", 3, Numbers::Double(values));
        let id = |id| RowColumn::new("id", 1, Numbers::Integer(vec![id]));
        let mut rows = Rows { columns: vec![id(7), column(vec![0.1, 2.0, -0.0])] };
        rows.append(&Rows { columns: vec![id(8), column(vec![1.0, 1e300, f64::NAN])] });
        assert_eq!(rows.count(), 2);
        let mut text = Vec::new();
        rows.write_heading(&["step"], &mut text).unwrap();
        rows.write_rows("3", &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text, "step,id,\"a, b/x\",\"a, b/y\",\"a, b/z\"\n3,7,0.1,2.0,-0.0\n3,8,1.0,1e300,NaN\n");
        assert_eq!(Rows::default().count(), 0);
    }
}
