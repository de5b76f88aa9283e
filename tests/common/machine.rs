//! Cases with machines, built as `breccia run` builds them, and stepped in the test.

use breccia::input::{Case, parse_case, read_case_with};
use breccia::multibody::Multibody;
use breccia::setup;
use breccia::step::Stepper;
use decomposition::{Comm, Solo};
use std::path::Path;

pub fn case(text: &str) -> Case {
    parse_case("test", text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

/// A shipped case with overrides `key=value`.
pub fn shipped(name: &str, overrides: &[&str]) -> Case {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs").join(name);
    let pairs: Vec<(String, String)> = overrides
        .iter()
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    assert_eq!(pairs.len(), overrides.len(), "{overrides:?}");
    read_case_with(&path, &pairs).unwrap_or_else(|errors| panic!("{errors}"))
}

pub fn stepper(case: &Case) -> Stepper<'static> {
    stepper_on(case, &Solo)
}

pub fn stepper_on<'c>(case: &Case, comm: &'c dyn Comm) -> Stepper<'c> {
    let built = setup::build(case, comm).unwrap_or_else(|error| panic!("{error}"));
    let setup::Setup { scene, machines, physics, solver, decomposition, .. } = built;
    Stepper::with_machines(scene, machines, physics, solver, decomposition, comm)
}

pub fn machine<'a>(stepper: &'a Stepper, index: usize) -> &'a Multibody {
    &stepper.machines().all()[index].multibody
}
