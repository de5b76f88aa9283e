//! Reading single values: numbers, vectors, formulas, words, paths.

use super::document::{Data, Value};
use super::errors::ErrorKind;
use super::keys::{Kind, Range};
use super::reader::{Field, choose};
use crate::formula::Expression;
use crate::formula::VectorFormula;
use crate::geometry::{Quat, Vec3};
use crate::words::Choose;
use nalgebra::Quaternion;
use std::path::PathBuf;

/// Letters, digits, `_` and `-`, at most 100 of them: fit for key paths, HDF5 groups and VTK arrays.
pub(in crate::input) fn is_name(text: &str) -> bool {
    let fits = |character: char| character.is_ascii_alphanumeric() || character == '_' || character == '-';
    !text.is_empty() && text.len() <= 100 && text.chars().all(fits)
}

/// A name that formulas can use.
pub(in crate::input) fn is_identifier(text: &str) -> bool {
    is_name(text) && !text.contains('-') && !text.starts_with(|character: char| character.is_ascii_digit())
}

/// Direction and length; scaled first, so that a very long or very short vector keeps its direction.
pub(in crate::input) fn unit_and_length(vector: &Vec3) -> (Option<Vec3>, f64) {
    let largest = vector.amax();
    if largest == 0.0 {
        return (None, 0.0);
    }
    let scaled = vector / largest;
    (Some(scaled.normalize()), largest * scaled.norm())
}

impl Field<'_> {
    /// One finite number of `range`, as a literal or as a formula of the case's parameters.
    pub fn number_of(&self, value: &Value, range: &Range, expected: &str) -> Option<f64> {
        let (number, found) = match &value.data {
            Data::Integer(integer) => (*integer as f64, None),
            Data::Float(number) => (*number, None),
            Data::Text(text) => {
                let number = self.reader.compile(text, value, &self.path, &[])?.evaluate(&[]);
                (number, Some(number))
            }
            _ => {
                self.reader.wrong(value, &self.path, expected);
                return None;
            }
        };
        if range.contains(number) {
            self.reader.consider(&value.origin, &self.path, self.unit, number);
            return Some(number);
        }
        match found {
            Some(number) => {
                let message = format!("found {} = {number}, expected {expected}", self.reader.found(value));
                self.reader.note(&value.origin, &self.path, ErrorKind::Value, message);
            }
            None => self.reader.wrong(value, &self.path, expected),
        }
        None
    }

    /// Some numbers of `range`; all are read even if one is wrong.
    pub fn numbers_of(&self, items: &[Value], range: &Range) -> Option<Vec<f64>> {
        let expected = Kind::Number(*range).describe();
        let numbers: Vec<_> = items.iter().map(|item| self.number_of(item, range, &expected)).collect();
        numbers.into_iter().collect()
    }

    /// The items of a list of exactly `count`.
    fn items_of<'b>(&self, value: &'b Value, count: usize, expected: &str) -> Option<&'b [Value]> {
        match &value.data {
            Data::List(items) if items.len() == count => Some(items),
            Data::List(items) => {
                let message = format!(
                    "found {} with {} item(s), expected {expected}",
                    self.reader.found(value),
                    items.len()
                );
                self.reader.note(&value.origin, &self.path, ErrorKind::Value, message);
                None
            }
            _ => {
                self.reader.wrong(value, &self.path, expected);
                None
            }
        }
    }

    pub fn vector_of(&self, value: &Value, range: &Range, expected: &str) -> Option<Vec3> {
        Some(Vec3::from_vec(self.numbers_of(self.items_of(value, 3, expected)?, range)?))
    }

    pub fn number(&self) -> Option<f64> {
        let range = if let Kind::Number(range) = self.kind { range } else { &Range::ANY };
        self.number_of(&self.value, range, &self.kind.describe())
    }

    pub fn count(&self) -> Option<u64> {
        let Kind::Count(low, high) = self.kind else { return None };
        self.count_of(&self.value, *low, *high)
    }

    fn count_of(&self, value: &Value, low: u64, high: u64) -> Option<u64> {
        let expected = Kind::Count(low, high).describe();
        if let Data::Integer(integer) = value.data {
            let count = u64::try_from(integer).ok().filter(|count| (low..=high).contains(count));
            if count.is_none() {
                self.reader.wrong(value, &self.path, &expected);
            }
            return count;
        }
        let number = self.number_of(value, &Range::within(low as f64, high as f64), &expected)?;
        if number.fract() != 0.0 || number > (1u64 << 53) as f64 {
            self.reader.wrong(value, &self.path, &expected);
            return None;
        }
        Some(number as u64)
    }

    pub fn count_pair(&self) -> Option<[u64; 2]> {
        let Kind::CountPair(low, high) = self.kind else { return None };
        let items = self.items_of(&self.value, 2, &self.kind.describe())?;
        let counts: Vec<_> = items.iter().map(|item| self.count_of(item, *low, *high)).collect();
        Some([counts[0]?, counts[1]?])
    }

    pub fn flag(&self) -> Option<bool> {
        match self.value.data {
            Data::Flag(flag) => Some(flag),
            _ => {
                self.wrong();
                None
            }
        }
    }

    /// Texts, names, identifiers.
    pub fn text(&self) -> Option<String> {
        let right = |text: &str| match self.kind {
            Kind::Name => is_name(text),
            Kind::Identifier => is_identifier(text),
            _ => true,
        };
        match &self.value.data {
            Data::Text(text) if right(text) => Some(text.clone()),
            _ => {
                self.wrong();
                None
            }
        }
    }

    pub fn vector(&self) -> Option<Vec3> {
        let range = if let Kind::Vector(range) = self.kind { range } else { &Range::ANY };
        self.vector_of(&self.value, range, &self.kind.describe())
    }

    /// Of unit length.
    pub fn direction(&self) -> Option<Vec3> {
        let vector = self.vector_of(&self.value, &Range::ANY, &self.kind.describe())?;
        let (unit, _) = unit_and_length(&vector);
        if unit.is_none() {
            self.wrong();
        }
        unit
    }

    pub fn quaternion(&self) -> Option<Quat> {
        let parts = self.numbers_of(self.items_of(&self.value, 4, &self.kind.describe())?, &Range::ANY)?;
        let largest = parts.iter().fold(0.0, |all: f64, part| all.max(part.abs()));
        if largest == 0.0 {
            self.wrong();
            return None;
        }
        let [w, x, y, z] = [0, 1, 2, 3].map(|k| parts[k] / largest);
        Some(Quat::from_quaternion(Quaternion::new(w, x, y, z)))
    }

    pub fn numbers(&self) -> Option<Vec<f64>> {
        let Kind::Numbers(range, least) = self.kind else { return None };
        match &self.value.data {
            Data::List(items) if items.len() >= *least => self.numbers_of(items, range),
            _ => {
                self.wrong();
                None
            }
        }
    }

    /// As many as the key lists say.
    pub fn exactly(&self) -> Option<Vec<f64>> {
        let Kind::Exactly(range, count) = self.kind else { return None };
        self.numbers_of(self.items_of(&self.value, *count, &self.kind.describe())?, range)
    }

    /// [smallest, largest]; a single number is both.
    pub fn span(&self) -> Option<[f64; 2]> {
        let Kind::NumberOrSpan(range) = self.kind else { return None };
        let expected = self.kind.describe();
        if !matches!(self.value.data, Data::List(_)) {
            let number = self.number_of(&self.value, range, &expected)?;
            return Some([number; 2]);
        }
        let numbers = self.numbers_of(self.items_of(&self.value, 2, &expected)?, range)?;
        if numbers[0] > numbers[1] {
            self.wrong();
            return None;
        }
        Some([numbers[0], numbers[1]])
    }

    pub fn points(&self) -> Option<Vec<Vec3>> {
        let Kind::Points(least) = self.kind else { return None };
        match &self.value.data {
            Data::List(items) if items.len() >= *least => {
                let expected = Kind::Vector(Range::PLACE).describe();
                let points: Vec<_> =
                    items.iter().map(|item| self.vector_of(item, &Range::PLACE, &expected)).collect();
                points.into_iter().collect()
            }
            Data::List(items) => {
                let message = format!("found {} point(s), expected {}", items.len(), self.kind.describe());
                self.note(ErrorKind::Value, message);
                None
            }
            _ => {
                self.wrong();
                None
            }
        }
    }

    pub fn choice<T: Choose>(&self) -> Option<T> {
        let Data::Text(text) = &self.value.data else {
            self.wrong();
            return None;
        };
        match choose(text, T::CHOICES, &self.kind.describe()) {
            Ok(index) => Some(T::ALL[index]),
            Err(message) => {
                self.note(ErrorKind::Value, message);
                None
            }
        }
    }

    /// A list of different words, in the order given.
    pub fn choices<T: Choose>(&self) -> Option<Vec<T>> {
        let mut seen = Vec::new();
        for item in self.items()? {
            let Data::Text(text) = &item.data else {
                self.reader.wrong(item, &self.path, &Kind::Choice(T::CHOICES).describe());
                continue;
            };
            match choose(text, T::CHOICES, &Kind::Choice(T::CHOICES).describe()) {
                Ok(index) if seen.contains(&index) => {
                    self.reader.wrong(item, &self.path, "each word only once");
                }
                Ok(index) => seen.push(index),
                Err(message) => self.reader.note(&item.origin, &self.path, ErrorKind::Value, message),
            }
        }
        Some(seen.into_iter().map(|index| T::ALL[index]).collect())
    }

    /// The items of a list of any length.
    pub fn items(&self) -> Option<&[Value]> {
        match &self.value.data {
            Data::List(items) => Some(items),
            _ => {
                self.wrong();
                None
            }
        }
    }

    pub fn formula_of(&self, value: &Value, variables: &[&str]) -> Option<Expression> {
        match &value.data {
            Data::Text(text) => {
                let expression = self.reader.compile(text, value, &self.path, variables)?;
                if expression.as_constant().is_some_and(|number| !number.is_finite()) {
                    self.reader.wrong(value, &self.path, "a formula with a finite value");
                    return None;
                }
                Some(expression)
            }
            _ => {
                let expected = Kind::Number(Range::ANY).describe();
                self.number_of(value, &Range::ANY, &format!("{expected} or a formula"))
                    .map(Expression::constant)
            }
        }
    }

    pub fn formula(&self) -> Option<Expression> {
        let Kind::Formula(variables) = self.kind else { return None };
        self.formula_of(&self.value, variables)
    }

    pub fn formulas(&self) -> Option<VectorFormula> {
        let Kind::Formulas(variables) = self.kind else { return None };
        let items = self.items_of(&self.value, 3, &self.kind.describe())?;
        let [x, y, z] = [0, 1, 2].map(|k| self.formula_of(&items[k], variables));
        Some(VectorFormula([x?, y?, z?]))
    }

    /// A path, resolved against the folder of the case file. Whether the file is there is not checked.
    pub fn path(&self) -> Option<PathBuf> {
        match &self.value.data {
            Data::Text(text) if !text.is_empty() && !text.contains('\0') => {
                Some(self.reader.folder_of(&self.value.origin).join(text))
            }
            _ => {
                self.wrong();
                None
            }
        }
    }

    /// A path at which there is a file.
    pub fn existing_file(&self) -> Option<PathBuf> {
        let path = self.path()?;
        if path.is_file() {
            return Some(path);
        }
        let found = self.reader.found(&self.value);
        self.note(ErrorKind::Value, format!("found no file at {found} ({}), expected one", path.display()));
        None
    }
}
