//! Reading a CSV file of numbers: `series.csv` and the tables beside it.
//!
//! A run that was killed may leave a torn last line; it is left out, and counted.

use super::InspectError;
use std::path::Path;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextTable {
    pub names: Vec<String>,
    /// By column.
    pub columns: Vec<Vec<f64>>,
    /// Lines that are not rows of numbers.
    pub torn: usize,
}

impl TextTable {
    pub fn read(path: &Path) -> Result<Self, InspectError> {
        let text = std::fs::read(path).map_err(InspectError::io(path, "read"))?;
        let text = String::from_utf8(text).map_err(|_| InspectError::unfit(path, "is not text"))?;
        Self::parse(&text).map_err(|problem| InspectError::unfit(path, problem))
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.split_inclusive('\n');
        let heading = lines.next().filter(|line| line.ends_with('\n')).ok_or("has no heading line")?;
        let names = fields(heading.trim_end_matches(['\n', '\r']));
        if names.iter().all(|name| name.parse::<f64>().is_ok()) {
            return Err("has numbers in its first line where names of columns should be".into());
        }
        let mut columns = vec![Vec::new(); names.len()];
        let mut torn = 0;
        for line in lines {
            let whole = line.ends_with('\n');
            let line = line.trim_end_matches(['\n', '\r']);
            let numbers: Option<Vec<f64>> = line.split(',').map(|field| field.trim().parse().ok()).collect();
            match numbers {
                Some(numbers) if numbers.len() == columns.len() && whole => {
                    columns.iter_mut().zip(numbers).for_each(|(column, number)| column.push(number));
                }
                _ if line.is_empty() => {}
                _ => torn += 1,
            }
        }
        Ok(Self { names, columns, torn })
    }

    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.names.iter().position(|own| own == name).map(|k| self.columns[k].as_slice())
    }
}

/// The fields of a line, with RFC 4180's quotes undone.
fn fields(line: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let last = all.len() - 1;
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                all[last].push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            other => all[last].push(other),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_torn_lines() {
        let table = TextTable::parse("step,\"a \"\"b\"\", c\"\n1,0.1\n2,NaN\n3,1e-3\n4,0.").unwrap();
        assert_eq!(table.names, ["step", "a \"b\", c"]);
        assert_eq!(table.rows(), 3);
        assert_eq!(table.column("step"), Some(&[1.0, 2.0, 3.0][..]));
        assert!(table.columns[1][1].is_nan() && table.torn == 1);
        assert_eq!(table.column("other"), None);
        assert!(TextTable::parse("").is_err() && TextTable::parse("1,2\n3,4\n").is_err());
        assert_eq!(TextTable::parse("a,b\n").unwrap().rows(), 0);
        assert_eq!(TextTable::parse("a,b\n1\n1,2,3\n").unwrap().torn, 2);
    }
}
