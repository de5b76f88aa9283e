//! From text to program: a scanner and a recursive descent whose depth is counted.

use super::expression::{ExpressionError, ExpressionProblem, MAXIMUM_DEPTH, MAXIMUM_LENGTH, Scope};
use super::program::{Binary, FUNCTIONS, Function, Operation, Program, Unary};
use crate::words::closest;

pub(super) fn compile(text: &str, variables: &[&str], scope: &Scope) -> Result<Program, ExpressionError> {
    if text.len() > MAXIMUM_LENGTH {
        return Err(error(0, 0, ExpressionProblem::TooLong(text.len())));
    }
    let tokens = scan(text)?;
    if tokens.len() == 1 {
        return Err(error(0, text.len(), ExpressionProblem::Empty));
    }
    let mut parser =
        Parser { tokens: &tokens, next: 0, depth: 0, variables, scope, program: Program::empty() };
    parser.disjunction()?;
    match parser.peek() {
        Symbol::End => Ok(parser.program),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

fn error(at: usize, length: usize, problem: ExpressionProblem) -> ExpressionError {
    ExpressionError { at, length, problem }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Symbol<'a> {
    Number(f64),
    Name(&'a str),
    /// An operator, a parenthesis or a comma.
    Sign(&'a str),
    End,
}

struct Token<'a> {
    at: usize,
    length: usize,
    symbol: Symbol<'a>,
}

/// Longest first, so that `<=` is not read as `<`.
const SIGNS: &[&str] =
    &["**", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "^", "(", ")", ",", "<", ">", "!"];

/// All tokens, the last of them `End`.
fn scan(text: &str) -> Result<Vec<Token<'_>>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (length, symbol) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first.is_ascii_digit() || first == '.' {
            let length = number_length(rest);
            let value = rest[..length].parse().map_err(|_| {
                let found = format!("`{}`", &rest[..length]);
                error(at, length, ExpressionProblem::Unexpected { found, expected: "a number" })
            })?;
            (length, Symbol::Number(value))
        } else if first.is_alphabetic() || first == '_' {
            let length = name_length(rest);
            (length, Symbol::Name(&rest[..length]))
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (sign.len(), Symbol::Sign(sign))
        } else {
            let problem = ExpressionProblem::Unexpected {
                found: format!("the character {first:?}"),
                expected: "a number, a name or an operator",
            };
            return Err(error(at, first.len_utf8(), problem));
        };
        tokens.push(Token { at, length, symbol });
        at += length;
    }
    tokens.push(Token { at: text.len(), length: 0, symbol: Symbol::End });
    Ok(tokens)
}

/// Digits, a point, digits, an exponent. At least one byte.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = matches!(bytes.get(end + 1), Some(b'+' | b'-')) as usize;
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    end
}

/// Letters, digits and underscores; a point joins two names (`crank.angle`).
fn name_length(text: &str) -> usize {
    let mut end = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let joins = character == '.' && characters.peek().is_some_and(|(_, next)| next.is_alphabetic());
        if !(character.is_alphanumeric() || character == '_' || joins) {
            break;
        }
        end = at + character.len_utf8();
    }
    end
}

struct Parser<'a> {
    tokens: &'a [Token<'a>],
    next: usize,
    depth: usize,
    variables: &'a [&'a str],
    scope: &'a Scope,
    program: Program,
}

type Step = Result<(), ExpressionError>;

impl<'a> Parser<'a> {
    fn token(&self) -> &'a Token<'a> {
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> Symbol<'a> {
        self.token().symbol
    }

    /// Steps over the next token if it is one of these signs or words.
    fn take(&mut self, choices: &[&str]) -> Option<&'a str> {
        match self.peek() {
            Symbol::Sign(text) | Symbol::Name(text) if choices.contains(&text) => {
                self.next += 1;
                Some(text)
            }
            _ => None,
        }
    }

    fn unexpected(&self, expected: &'static str) -> ExpressionError {
        let token = self.token();
        let found = match token.symbol {
            Symbol::Number(value) => format!("the number {value}"),
            Symbol::Name(text) | Symbol::Sign(text) => format!("`{text}`"),
            Symbol::End => "the end".to_string(),
        };
        error(token.at, token.length, ExpressionProblem::Unexpected { found, expected })
    }

    /// Runs `inner` one level deeper.
    fn deeper(&mut self, inner: impl FnOnce(&mut Self) -> Step) -> Step {
        if self.depth >= MAXIMUM_DEPTH {
            let token = self.token();
            return Err(error(token.at, token.length, ExpressionProblem::TooDeep));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn disjunction(&mut self) -> Step {
        self.conjunction()?;
        while self.take(&["or", "||"]).is_some() {
            self.conjunction()?;
            self.program.push(Operation::Two(Binary::Or));
        }
        Ok(())
    }

    fn conjunction(&mut self) -> Step {
        self.negation()?;
        while self.take(&["and", "&&"]).is_some() {
            self.negation()?;
            self.program.push(Operation::Two(Binary::And));
        }
        Ok(())
    }

    fn negation(&mut self) -> Step {
        if self.take(&["not", "!"]).is_some() {
            self.deeper(Self::negation)?;
            self.program.push(Operation::One(Unary::Not));
            return Ok(());
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Step {
        self.sum()?;
        while let Some(sign) = self.take(&["<", "<=", ">", ">=", "==", "!="]) {
            self.sum()?;
            self.program.push(Operation::Two(match sign {
                "<" => Binary::Less,
                "<=" => Binary::LessEqual,
                ">" => Binary::Greater,
                ">=" => Binary::GreaterEqual,
                "==" => Binary::Equal,
                _ => Binary::NotEqual,
            }));
        }
        Ok(())
    }

    fn sum(&mut self) -> Step {
        self.product()?;
        while let Some(sign) = self.take(&["+", "-"]) {
            self.product()?;
            self.program.push(Operation::Two(if sign == "+" { Binary::Add } else { Binary::Subtract }));
        }
        Ok(())
    }

    fn product(&mut self) -> Step {
        self.signed()?;
        while let Some(sign) = self.take(&["*", "/"]) {
            self.signed()?;
            self.program.push(Operation::Two(if sign == "*" { Binary::Multiply } else { Binary::Divide }));
        }
        Ok(())
    }

    fn signed(&mut self) -> Step {
        match self.take(&["-", "+"]) {
            Some("-") => {
                self.deeper(Self::signed)?;
                self.program.push(Operation::One(Unary::Negate));
                Ok(())
            }
            Some(_) => self.deeper(Self::signed),
            None => self.power(),
        }
    }

    fn power(&mut self) -> Step {
        self.atom()?;
        if self.take(&["^", "**"]).is_some() {
            self.deeper(Self::signed)?;
            self.program.push(Operation::Two(Binary::Power));
        }
        Ok(())
    }

    fn atom(&mut self) -> Step {
        match self.peek() {
            Symbol::Number(value) => {
                self.next += 1;
                self.program.push(Operation::Constant(value));
                Ok(())
            }
            Symbol::Sign("(") => {
                self.next += 1;
                self.deeper(Self::disjunction)?;
                self.take(&[")"]).map(|_| ()).ok_or_else(|| self.unexpected("an operator or `)`"))
            }
            Symbol::Name(name) if !matches!(name, "and" | "or" | "not") => {
                let token = self.token();
                self.next += 1;
                if self.take(&["("]).is_some() { self.call(name, token) } else { self.name(name, token) }
            }
            _ => Err(self.unexpected("a number, a name or `(`")),
        }
    }

    fn name(&mut self, name: &str, token: &Token) -> Step {
        if let Some(index) = self.variables.iter().position(|variable| *variable == name) {
            self.program.push(Operation::Variable(index as u32));
        } else if let Some(value) = self.scope.constants.get(name) {
            self.program.push(Operation::Constant(*value));
        } else if name == "pi" {
            self.program.push(Operation::Constant(std::f64::consts::PI));
        } else if self.function(name).is_some() || self.scope.tables.contains_key(name) {
            return Err(error(token.at, token.length, ExpressionProblem::NotCalled(name.to_string())));
        } else {
            let mut known: Vec<String> = self.variables.iter().map(|name| name.to_string()).collect();
            known.extend(self.scope.constants.keys().cloned());
            known.push("pi".to_string());
            let suggestion = closest(name, known.iter().map(String::as_str)).map(str::to_string);
            let problem = ExpressionProblem::UnknownName { name: name.to_string(), known, suggestion };
            return Err(error(token.at, token.length, problem));
        }
        Ok(())
    }

    fn function(&self, name: &str) -> Option<Function> {
        FUNCTIONS.iter().find(|(known, _, _)| *known == name).map(|&(_, _, function)| function)
    }

    /// After `name (`: the arguments, `)`, and the operations.
    fn call(&mut self, name: &str, token: &Token) -> Step {
        let table = self.scope.tables.get(name).cloned();
        let function = self.function(name);
        if table.is_none() && function.is_none() {
            let mut known: Vec<String> = FUNCTIONS.iter().map(|(name, _, _)| name.to_string()).collect();
            known.extend(self.scope.tables.keys().cloned());
            let suggestion = closest(name, known.iter().map(String::as_str)).map(str::to_string);
            let problem = ExpressionProblem::UnknownFunction { name: name.to_string(), known, suggestion };
            return Err(error(token.at, token.length, problem));
        }
        let mut count = 0;
        if self.take(&[")"]).is_none() {
            loop {
                self.deeper(Self::disjunction)?;
                count += 1;
                // Further arguments of `min`, `max` and `clamp` are folded as they come.
                match function {
                    Some(Function::Many(operation)) if count >= 2 => {
                        self.program.push(Operation::Two(operation));
                    }
                    Some(Function::Clamp) if count == 2 => self.program.push(Operation::Two(Binary::Max)),
                    Some(Function::Clamp) if count == 3 => self.program.push(Operation::Two(Binary::Min)),
                    _ => {}
                }
                if self.take(&[","]).is_none() {
                    break;
                }
            }
            if self.take(&[")"]).is_none() {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
        let (right, expected) = match function {
            None | Some(Function::One(_)) => (count == 1, "1"),
            Some(Function::Two(_)) => (count == 2, "2"),
            Some(Function::Many(_)) => (count >= 2, "2 or more"),
            Some(Function::Clamp | Function::Select) => (count == 3, "3"),
        };
        if !right {
            let function = name.to_string();
            let problem =
                ExpressionProblem::Arguments { function, found: count, expected: expected.to_string() };
            return Err(error(token.at, token.length, problem));
        }
        match (table, function) {
            (Some(table), None) => self.program.push(Operation::Table(table)),
            (_, Some(Function::One(operation))) => self.program.push(Operation::One(operation)),
            (_, Some(Function::Two(operation))) => self.program.push(Operation::Two(operation)),
            (_, Some(Function::Select)) => self.program.push(Operation::Select),
            _ => {}
        }
        Ok(())
    }
}
