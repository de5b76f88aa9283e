//! Who may use whom: the table in docs/architecture.md, and nothing else.

use super::source::{code, files, is_test, project, read};
use std::collections::{BTreeMap, BTreeSet};

type Rooms = BTreeMap<String, BTreeSet<String>>;

/// The rows `| room | uses |` of the section "Who may use whom".
fn allowed() -> Rooms {
    let page = read(&project().join("docs/architecture.md"));
    let section = page.split("## Who may use whom").nth(1).expect("the section is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let word = |text: &str| text.trim().trim_matches('`').to_string();
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let uses = cells.get(1)?.split(',').map(word).filter(|name| !name.is_empty() && name != "–");
        Some((word(cells[0]), uses.collect()))
    };
    section.lines().filter(|line| line.starts_with("| `")).filter_map(row).collect()
}

/// The rooms that a text names as `crate::room`, in whatever form of `use`.
fn named(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rest in text.split("crate::").skip(1) {
        let word = |text: &str| -> String {
            text.chars().take_while(|letter| letter.is_ascii_lowercase() || *letter == '_').collect()
        };
        match rest.strip_prefix('{') {
            Some(list) => {
                let list = list.split('}').next().unwrap_or_default();
                found.extend(list.split(',').map(|entry| word(entry.trim())));
            }
            None => drop(found.insert(word(rest))),
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

/// Uses that the table does not allow, of files of one room.
fn forbidden(room: &str, text: &str, allowed: &Rooms) -> Vec<String> {
    let uses = allowed.get(room).unwrap_or_else(|| panic!("docs/architecture.md has no row for `{room}`"));
    let known = |name: &String| allowed.contains_key(name) && name != room && !uses.contains(name);
    named(&code(text)).into_iter().filter(known).collect()
}

#[test]
fn rooms_use_only_what_the_table_allows() {
    let (source, allowed) = (project().join("src"), allowed());
    let mut wrong = Vec::new();
    for path in files(&source).into_iter().filter(|path| !is_test(path)) {
        let inside = path.strip_prefix(&source).expect("below src");
        // `main.rs`, `lib.rs` and the command line belong to no room.
        let Some(room) = inside.parent().and_then(|folder| folder.iter().next()) else { continue };
        for other in forbidden(&room.to_string_lossy(), &read(&path), &allowed) {
            wrong.push(format!("{} uses {other}", inside.display()));
        }
    }
    assert!(wrong.is_empty(), "docs/architecture.md, \"Who may use whom\":\n{}", wrong.join("\n"));
}

#[test]
fn the_table_has_no_circles() {
    let mut left = allowed();
    while !left.is_empty() {
        let names: BTreeSet<String> = left.keys().cloned().collect();
        let before = left.len();
        left.retain(|_, uses| uses.iter().any(|name| names.contains(name)));
        assert!(left.len() < before, "these use each other: {:?}", left.keys());
    }
}

#[test]
fn an_edge_that_the_table_forbids_is_found() {
    let allowed = allowed();
    assert_eq!(forbidden("solve", "use crate::output::StateFile;", &allowed), ["output"]);
    assert_eq!(forbidden("solve", "use crate::{geometry::Vec3, step::Stepper};", &allowed), ["step"]);
    assert!(forbidden("solve", "// as crate::step does\nuse crate::law::coulomb;", &allowed).is_empty());
}

/// Messages between ranks are the business of few rooms.
#[test]
fn only_some_rooms_know_other_ranks() {
    let may = ["commands", "exchange", "output", "setup", "step"];
    for path in files(&project().join("src")).into_iter().filter(|path| !is_test(path)) {
        let inside = path.strip_prefix(project().join("src")).expect("below src").to_path_buf();
        let Some(room) = inside.parent().and_then(|folder| folder.iter().next()) else { continue };
        let knows =
            code(&read(&path)).split(|letter: char| !letter.is_alphanumeric()).any(|word| word == "Comm");
        assert!(!knows || may.iter().any(|name| *name == room), "{} uses Comm", inside.display());
    }
}
