//! The JSON Schema of a case file, from the key lists: editors complete and explain keys with it.
//!
//! Draft 2020-12. It says what can be said of single values (kinds, ranges, words, required keys, excluding
//! keys); what must hold between values is checked by the reader alone.

use crate::input::language::keys::{Alternative, Key, Kind, Need, Range, Section, Variant};
use crate::input::sections::CASE;
use crate::words::Choice;
use serde_json::{Map, Value, json};

/// The schema; `breccia schema` prints it.
pub fn schema() -> Value {
    let mut schema = Map::new();
    schema.insert("$schema".to_string(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_string(), json!("breccia case file"));
    for (key, value) in section_schema(&CASE) {
        schema.insert(key, value);
    }
    Value::Object(schema)
}

fn section_schema(section: &Section) -> Map<String, Value> {
    let Some(variants) = &section.variants else {
        let mut schema = object(section.keys.iter(), None);
        add_alternatives(&mut schema, section.alternatives);
        schema.insert("description".to_string(), json!(section.about));
        return schema;
    };
    let cases: Vec<Value> = variants
        .cases
        .iter()
        .map(|case| {
            let optional = variants.default == Some(case.name);
            let mut schema =
                object(section.keys.iter().chain(case.keys), Some((variants.tag, case, optional)));
            add_alternatives(&mut schema, section.alternatives);
            add_alternatives(&mut schema, case.alternatives);
            schema.insert("title".to_string(), json!(case.name));
            schema.insert("description".to_string(), json!(case.about));
            Value::Object(schema)
        })
        .collect();
    let about = format!("{} `{}`: {}", section.about, variants.tag, variants.about);
    Map::from_iter([("description".to_string(), json!(about)), ("oneOf".to_string(), json!(cases))])
}

/// An object with these keys and no others; the tag of a variant is one word, required unless it is the
/// default.
fn object<'a>(
    keys: impl Iterator<Item = &'a Key>,
    tag: Option<(&str, &Variant, bool)>,
) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if let Some((name, case, optional)) = tag {
        properties.insert(name.to_string(), json!({ "const": case.name, "description": case.about }));
        if !optional {
            required.push(name.to_string());
        }
    }
    for key in keys {
        properties.insert(key.name.to_string(), Value::Object(key_schema(key)));
        if matches!(key.need, Need::Required) {
            required.push(key.name.to_string());
        }
    }
    Map::from_iter([
        ("type".to_string(), json!("object")),
        ("properties".to_string(), Value::Object(properties)),
        ("required".to_string(), json!(required)),
        ("additionalProperties".to_string(), json!(false)),
    ])
}

/// Of the sets of keys exactly one, or none where that is allowed.
fn add_alternatives(schema: &mut Map<String, Value>, alternatives: &[Alternative]) {
    let conditions: Vec<Value> = alternatives
        .iter()
        .map(|alternative| {
            let mut all: Vec<&str> = alternative.sets.iter().flat_map(|set| set.iter().copied()).collect();
            all.sort_unstable();
            all.dedup();
            let only = |set: &[&str]| {
                let others: Vec<Value> = all
                    .iter()
                    .filter(|key| !set.contains(key))
                    .map(|key| json!({ "required": [key] }))
                    .collect();
                match others.is_empty() {
                    true => json!({ "required": set }),
                    false => json!({ "required": set, "not": { "anyOf": others } }),
                }
            };
            let mut choices: Vec<Value> = alternative.sets.iter().map(|set| only(set)).collect();
            if !alternative.required {
                choices.push(only(&[]));
            }
            json!({ "oneOf": choices })
        })
        .collect();
    if !conditions.is_empty() {
        schema.insert("allOf".to_string(), json!(conditions));
    }
}

fn key_schema(key: &Key) -> Map<String, Value> {
    let mut schema = kind_schema(&key.kind);
    let unit = if key.unit.is_empty() { String::new() } else { format!(" Unit: {}.", key.unit) };
    let otherwise = match key.need {
        Need::Optional(text) => format!(" If left out: {text}."),
        _ => String::new(),
    };
    schema.insert("description".to_string(), json!(format!("{}{unit}{otherwise}", key.about)));
    if let Need::Default(text) = key.need
        && let Some(value) = json_of(text)
    {
        schema.insert("default".to_string(), value);
    }
    schema
}

/// A default as JSON.
fn json_of(text: &str) -> Option<Value> {
    let table: toml::Table = toml::from_str(&format!("value = {text}")).ok()?;
    serde_json::to_value(table.get("value")?).ok()
}

/// A number of the range, or a formula for it.
fn number(range: &Range) -> Value {
    let mut literal = Map::from_iter([("type".to_string(), json!("number"))]);
    if range.low.is_finite() {
        let bound = if range.low_open { "exclusiveMinimum" } else { "minimum" };
        literal.insert(bound.to_string(), json!(range.low));
    }
    if range.high.is_finite() {
        literal.insert("maximum".to_string(), json!(range.high));
    }
    json!({ "anyOf": [literal, { "type": "string", "description": "a formula" }] })
}

fn count(low: u64, high: u64) -> Value {
    let literal = json!({ "type": "integer", "minimum": low, "maximum": high });
    json!({ "anyOf": [literal, { "type": "string", "description": "a formula" }] })
}

fn list(items: Value, least: usize, most: Option<usize>) -> Value {
    match most {
        Some(most) => json!({ "type": "array", "items": items, "minItems": least, "maxItems": most }),
        None => json!({ "type": "array", "items": items, "minItems": least }),
    }
}

/// An object whose keys are names that formulas can use.
fn by_name(value: Value) -> Value {
    json!({
        "type": "object",
        "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,99}$" },
        "additionalProperties": value,
    })
}

fn words(choices: &[Choice]) -> Value {
    let word = |choice: &Choice| json!({ "const": choice.name, "description": choice.about });
    json!({ "oneOf": choices.iter().map(word).collect::<Vec<_>>() })
}

fn kind_schema(kind: &Kind) -> Map<String, Value> {
    let text = || json!({ "type": "string" });
    let name = || json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,100}$" });
    let schema = match kind {
        Kind::Text => text(),
        Kind::Name => name(),
        Kind::Identifier => json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,99}$" }),
        Kind::File => json!({ "type": "string", "minLength": 1 }),
        Kind::Files => {
            let file = json!({ "type": "string", "minLength": 1 });
            json!({ "anyOf": [file, list(file.clone(), 1, None)] })
        }
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Number(range) => number(range),
        Kind::Count(low, high) => count(*low, *high),
        Kind::Vector(range) => list(number(range), 3, Some(3)),
        Kind::Direction => list(number(&Range::ANY), 3, Some(3)),
        Kind::Quaternion => list(number(&Range::ANY), 4, Some(4)),
        Kind::Numbers(range, least) => list(number(range), *least, None),
        Kind::Exactly(range, count) => list(number(range), *count, Some(*count)),
        Kind::CountPair(low, high) => list(count(*low, *high), 2, Some(2)),
        Kind::NumberOrSpan(range) => json!({ "anyOf": [number(range), list(number(range), 2, Some(2))] }),
        Kind::Points(least) => list(list(number(&Range::PLACE), 3, Some(3)), *least, None),
        Kind::Choice(choices) => words(choices),
        Kind::Choices(choices) => {
            let names: Vec<&str> = choices.iter().map(|choice| choice.name).collect();
            json!({ "type": "array", "items": { "enum": names }, "uniqueItems": true })
        }
        Kind::Formula(_) => number(&Range::ANY),
        Kind::Formulas(_) => list(number(&Range::ANY), 3, Some(3)),
        Kind::Reference(_) => text(),
        Kind::ReferencePair(_) => list(text(), 2, Some(2)),
        Kind::Names => list(name(), 1, None),
        Kind::Table(section) => Value::Object(section_schema(section)),
        Kind::Tables(section, least) => list(Value::Object(section_schema(section)), *least, None),
        Kind::ChoiceOrTable(choices, section) => {
            json!({ "anyOf": [words(choices), section_schema(section)] })
        }
        Kind::Settings => json!({ "type": "object" }),
        Kind::Parameters | Kind::NamedLaws => by_name(number(&Range::ANY)),
        Kind::Part(_) => json!({ "type": "string", "minLength": 1 }),
        Kind::PartPair(_) => list(text(), 2, Some(2)),
        Kind::PartList(_) => list(text(), 0, None),
        Kind::Inertia => {
            let of = |count| list(number(&Range::ANY), count, Some(count));
            json!({ "anyOf": [of(3), of(6)] })
        }
        Kind::NamedPoints => by_name(list(number(&Range::PLACE), 3, Some(3))),
        Kind::Frame(section) => {
            let point = list(number(&Range::PLACE), 3, Some(3));
            json!({ "anyOf": [text(), point, section_schema(section)] })
        }
        Kind::Law => number(&Range::ANY),
        Kind::LawOrNamed(_) => json!({ "anyOf": [number(&Range::ANY), by_name(number(&Range::ANY))] }),
    };
    match schema {
        Value::Object(map) => map,
        other => Map::from_iter([("const".to_string(), other)]),
    }
}

#[cfg(test)]
mod tests;
