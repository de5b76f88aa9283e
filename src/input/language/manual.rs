//! The manual of the case file, from the key lists.

use super::keys::{Alternative, Key, Kind, Need, Section};
use crate::formula::functions;
use crate::input::sections::CASE;
use crate::words::Choice;
use std::fmt::Write;

const INTRODUCTION: &str = "\
# The case file

<!-- Made from the key lists in src/input/sections.rs: `BRECCIA_WRITE_MANUAL=1 cargo test --test case_files manual` -->

A case is one [TOML](https://toml.io) file. Units are SI throughout: m, s, kg, N, rad (angles in degrees say so in their
name). Keys that are not listed here are refused. `breccia check CASE` lists every mistake of a file with its line;
`breccia schema` prints a JSON Schema with which editors complete and explain keys. Start from one of the files in
`inputs/`.

## Formulas

Every number may be a formula in quotes: `radius = \"0.5*diameter\"`. Formulas know `pi`, the names under `[parameters]`, the
tables under `[[table]]`, and where it is said below variables such as the time `t`. Operators, loosest first: `or`, `and`,
`not`, comparisons (`< <= > >= == !=`, giving 1 or 0), `+ -`, `* /`, the sign, `^` (right to left; -2^2 is -4). Functions:

";

const OVERRIDES: &str = "\
## Changing values without editing

Single values can be replaced when a case is read, by key path and value: `simulation.time_step=1e-4`, `parameters.mu=0.5`.
In lists, tables are picked by their name or their number from 1: `body.floor.position=[0, 0, 1]`, `contact.1.friction=0.3`.

";

/// The text of `docs/case-file.md`.
pub fn manual_markdown() -> String {
    let mut text = INTRODUCTION.to_string();
    for (_, about) in functions() {
        let (call, meaning) = about.split_once(": ").unwrap_or((about, ""));
        line(&mut text, &format!("- `{call}`: {meaning}"));
    }
    text.push('\n');
    text.push_str(OVERRIDES);
    text.push_str("## Top level\n\n");
    key_table(&mut text, CASE.keys);
    for key in CASE.keys {
        if let Kind::Table(section) | Kind::Tables(section, _) = key.kind {
            let title = match key.kind {
                Kind::Tables(..) => format!("[[{}]]", key.name),
                _ => format!("[{}]", key.name),
            };
            section_text(&mut text, &title, key.name, section, 2);
        }
    }
    section_text(&mut text, ORIENTATION_TITLE, "orientation", orientation(), 2);
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

const ORIENTATION_TITLE: &str = "orientation = { … }";

/// The one section that several others share: it is explained once, at the end.
fn orientation() -> &'static Section {
    &crate::input::bodies::sections::ORIENTATION
}

fn line(text: &mut String, more: &str) {
    text.push_str(more);
    text.push('\n');
}

fn section_text(text: &mut String, title: &str, path: &str, section: &'static Section, level: usize) {
    // Writing to a String cannot fail.
    let _ = write!(text, "{} `{title}`\n\n{}\n\n", "#".repeat(level), section.about);
    if !section.keys.is_empty() {
        key_table(text, section.keys);
    }
    alternatives_text(text, section.alternatives);
    if let Some(variants) = &section.variants {
        let default = match variants.default {
            Some(name) => format!("default `\"{name}\"`"),
            None => "required".to_string(),
        };
        let _ = write!(text, "The key `{}` ({default}): {}\n\n", variants.tag, lower(variants.about));
        for case in variants.cases {
            let _ = write!(
                text,
                "{}# `{} = \"{}\"`\n\n{}\n\n",
                "#".repeat(level),
                variants.tag,
                case.name,
                case.about
            );
            if !case.keys.is_empty() {
                key_table(text, case.keys);
            }
            alternatives_text(text, case.alternatives);
        }
    }
    let mut described: Vec<*const Section> = vec![orientation()];
    for key in section.all_keys() {
        if let Some(inner) = key.kind.section()
            && !described.contains(&std::ptr::from_ref(inner))
        {
            described.push(inner);
            let path = format!("{path}.{}", key.name);
            section_text(text, &path, &path, inner, level + 1);
        }
    }
}

fn lower(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_lowercase().chain(characters).collect())
}

fn alternatives_text(text: &mut String, alternatives: &[Alternative]) {
    for alternative in alternatives {
        let quoted =
            |set: &&[&str]| set.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" with ");
        let sets = alternative.sets.iter().map(quoted).collect::<Vec<_>>().join(", or ");
        let rule = if alternative.required { "Exactly one of:" } else { "At most one of:" };
        line(text, &format!("{rule} {sets}.\n"));
    }
}

fn key_table(text: &mut String, keys: &[Key]) {
    line(text, "| key | value | unit | if left out | meaning |");
    line(text, "| --- | --- | --- | --- | --- |");
    for key in keys {
        let otherwise = match key.need {
            Need::Required => "**required**".to_string(),
            Need::Default("{}") => "all defaults".to_string(),
            Need::Default(text) => format!("`{text}`"),
            Need::Optional(text) => text.to_string(),
        };
        let value = key.kind.describe().replace('|', "\\|");
        let about = format!("{}{}", key.about, choice_list(&key.kind));
        line(text, &format!("| `{}` | {value} | {} | {otherwise} | {about} |", key.name, key.unit));
    }
    text.push('\n');
}

/// What each word means.
fn choice_list(kind: &Kind) -> String {
    let (Kind::Choice(choices) | Kind::Choices(choices) | Kind::ChoiceOrTable(choices, _)) = kind else {
        return String::new();
    };
    let meaning = |choice: &Choice| format!(" `\"{}\"`: {}.", choice.name, choice.about);
    choices.iter().map(meaning).collect()
}
