//! The schema is checked with a validator of the few words of JSON Schema that it uses, written here.

use super::*;
use std::path::{Path, PathBuf};

/// Why `value` does not match `schema`; a word of the schema that is not known is an error too.
fn mismatch(schema: &Value, value: &Value) -> Option<String> {
    let schema = schema.as_object().expect("a schema is an object");
    let matches = |schema: &Value| mismatch(schema, value).is_none();
    schema.iter().find_map(|(word, rule)| {
        let holds = match word.as_str() {
            "$schema" | "title" | "description" | "default" => true,
            "type" => match rule.as_str().expect("a type is a word") {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "number" => value.is_number(),
                "integer" => value.is_u64() || value.is_i64(),
                other => panic!("the type {other}"),
            },
            "const" => value == rule,
            "enum" => rule.as_array().expect("a list").contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().expect("a number")),
            "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().expect("a number")),
            "exclusiveMinimum" => {
                value.as_f64().is_none_or(|number| number > rule.as_f64().expect("a number"))
            }
            "minItems" => {
                value.as_array().is_none_or(|list| list.len() as u64 >= rule.as_u64().expect("a count"))
            }
            "maxItems" => {
                value.as_array().is_none_or(|list| list.len() as u64 <= rule.as_u64().expect("a count"))
            }
            "minLength" => {
                value.as_str().is_none_or(|text| text.len() as u64 >= rule.as_u64().expect("a count"))
            }
            "uniqueItems" => {
                value.as_array().is_none_or(|list| (1..list.len()).all(|k| !list[..k].contains(&list[k])))
            }
            "items" => {
                let failed =
                    value.as_array().and_then(|list| list.iter().find_map(|item| mismatch(rule, item)));
                return failed.map(|why| format!("item: {why}"));
            }
            "required" => value.as_object().is_none_or(|object| {
                rule.as_array()
                    .expect("a list")
                    .iter()
                    .all(|key| object.contains_key(key.as_str().expect("a key")))
            }),
            "properties" => {
                let known = rule.as_object().expect("an object");
                return value.as_object().and_then(|object| {
                    object.iter().find_map(|(key, value)| {
                        mismatch(known.get(key)?, value).map(|why| format!("{key}: {why}"))
                    })
                });
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                value.as_object().is_none_or(|object| {
                    let mut others =
                        object.iter().filter(|(key, _)| known.is_none_or(|known| !known.contains_key(*key)));
                    others.all(|(_, value)| rule.is_object() && mismatch(rule, value).is_none())
                })
            }
            "pattern" | "propertyNames" => true,
            "allOf" => rule.as_array().expect("a list").iter().all(matches),
            "anyOf" => rule.as_array().expect("a list").iter().any(matches),
            "oneOf" => rule.as_array().expect("a list").iter().filter(|schema| matches(schema)).count() == 1,
            "not" => !matches(rule),
            other => panic!("{other} is no word of the schemas made here"),
        };
        (!holds).then(|| format!("{word} {rule} does not hold for {value}"))
    })
}

fn json(text: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Table>(text).expect("TOML")).expect("JSON")
}

/// Every case in `inputs/` and below; files that cases include are named `*.include.toml`.
fn shipped() -> Vec<PathBuf> {
    let mut cases = Vec::new();
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![project.join("inputs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of inputs") {
            let path = entry.expect("an entry").path();
            let name = path.display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".toml")
                // Without it a file is a part of cases.
                && std::fs::read_to_string(&path).expect("a text").contains("[simulation]")
            {
                cases.push(path);
            }
        }
    }
    cases
}

#[test]
fn shipped_cases_match_the_schema() {
    let cases = shipped();
    for path in &cases {
        let text = std::fs::read_to_string(path).expect("a text");
        assert_eq!(mismatch(&schema(), &json(&text)), None, "{}", path.display());
    }
    assert!(cases.len() >= 10, "{} cases", cases.len());
}

const MACHINE: &str = r#"[[machine]]
name = "m"
partition = { dependent = ["j"] }
[[machine.body]]
name = "b"
mass = 1
inertia = [1, 1, 1]
points = { tip = [0, 0, 1] }
[[machine.joint]]
name = "j"
kind = "revolute"
child = "b"
axis = [0, 0, 1]
on_parent = "tip"
on_child = { position = [0, 0, 1] }
[[machine.actuator]]
name = "motor"
joint = "j"
law = { a = "x" }
[machine.quantities]
depth = "j.position"
"#;

#[test]
fn mistakes_do_not_match() {
    let right = "[simulation]\ntime_step = 1e-3\nduration = \"2*0.5\"\n";
    assert_eq!(mismatch(&schema(), &json(right)), None);
    for wrong in [
        "[simulation]\nduration = 1.0\n".to_string(),
        "[simulation]\ntime_step = -1\nduration = 1.0\n".to_string(),
        format!("{right}tehta = 0.5\n"),
        format!("{right}theta = 1.5\n"),
        format!("{right}[[shape]]\nname = \"a\"\nkind = \"ball\"\n"),
        format!("{right}[[shape]]\nname = \"a\"\nkind = \"sphere\"\nsize = [1, 1, 1]\n"),
        format!("{right}[[shape]]\nname = \"a\"\nkind = \"polyhedron\"\n"),
        format!(
            "{right}[[shape]]\nname = \"a\"\nkind = \"polyhedron\"\nfile = \"a.stl\"\nvertices = [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]\n"
        ),
        format!(
            "{right}[[body]]\nname = \"a\"\nshape = \"b\"\nmaterial = \"c\"\nmotion = \"fixed\"\nmass = 1\n"
        ),
        format!(
            "{right}[[body]]\nname = \"a\"\nshape = \"b\"\nmaterial = \"c\"\norientation = {{ axis = [0, 0, 1] }}\n"
        ),
        format!("{right}[solver]\nlocal_law = \"magic\"\n"),
        format!("include = 3\n{right}"),
        format!("{right}[[machine]]\nname = \"m\"\n"),
        format!("{right}{}", MACHINE.replace("axis = [0, 0, 1]\n", "")),
        format!("{right}{}", MACHINE.replace("revolute", "hinge")),
        format!("{right}{}", MACHINE.replace("inertia = [1, 1, 1]", "inertia = [1, 1]")),
        format!("{right}{}", MACHINE.replace("law = { a = \"x\" }", "law = [1]")),
        format!("{right}{}", MACHINE.replace("on_parent = \"tip\"", "on_parent = [0, 0]")),
        format!("{right}{}", MACHINE.replace("joint = \"j\"\n", "")),
        format!("{right}[output]\nfields = [\"id\", \"id\"]\n"),
    ] {
        assert!(mismatch(&schema(), &json(&wrong)).is_some(), "{wrong}");
    }
    for right in [
        format!("include = [\"a.toml\"]\n{right}{MACHINE}"),
        format!("{right}[[body]]\nname = \"a\"\nshape = \"b\"\nmaterial = \"c\"\nmass = 1\n"),
        format!(
            "{right}[[body]]\nname = \"a\"\nshape = \"b\"\nmaterial = \"c\"\norientation = {{ z_axis = [0, 0, 1] }}\n"
        ),
    ] {
        assert_eq!(mismatch(&schema(), &json(&right)), None, "{right}");
    }
}

/// Every default is read by the reader without a mistake, which a wrong one would make in every case.
#[test]
fn defaults_are_right() {
    let mut stack = vec![&CASE];
    let mut defaults = 0;
    while let Some(section) = stack.pop() {
        for key in section.all_keys() {
            if let Some(inner) = key.kind.section() {
                stack.push(inner);
            }
            if let Need::Default(text) = key.need {
                let value = json_of(text).unwrap_or_else(|| panic!("{}: {text}", key.name));
                assert_eq!(mismatch(&Value::Object(key_schema(key)), &value), None, "{}", key.name);
                defaults += 1;
            }
            assert!(!key.about.is_empty(), "{}", key.name);
        }
    }
    assert!(defaults > 30, "{defaults}");
}
