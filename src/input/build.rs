//! From the tree of a case file to a [`Case`]: the sections that are not bodies, and what must hold between
//! sections.

use crate::formula::functions;
use crate::formula::{Interpolation, Table, columns};
use crate::input::bodies::build::{read_bodies, read_corners, read_grains};
use crate::input::bodies::shapes::{ReadShapes, read_shapes};
use crate::input::case::*;
use crate::input::contacts::read_contacts;
use crate::input::language::document::{Data, Entry, Origin, Value};
use crate::input::language::errors::{CaseError, ErrorKind};
use crate::input::language::keys::{Kind, Range};
use crate::input::language::listing::Listing;
use crate::input::language::names::Names;
use crate::input::language::reader::{Reader, TableReader};
use crate::input::language::values::is_identifier;
use crate::input::machine::build::{Surroundings, read_machines};
use crate::input::results::{read_checkpoint, read_output};
use crate::input::sections::CASE;
use crate::scene::Scheme;
use crate::solve::Fallback;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most steps of a run: times stay exact multiples of the time step in a double.
const MAXIMUM_STEPS: f64 = (1u64 << 50) as f64;

pub(super) fn build(reader: &Reader, root: &Value, name: &str, included: Vec<PathBuf>) -> Option<Case> {
    let table = TableReader::open(reader, root, &CASE, String::new())?;
    // Parameters and tables first: every other number may use them.
    read_parameters(&table);
    read_tables(&table);
    let title = table.text("title");
    let simulation = table.table("simulation").and_then(|table| read_simulation(&table));
    let solver_table = table.table("solver");
    let solver = solver_table.as_ref().and_then(read_solver);
    let material_tables = table.tables("material");
    let material_names = Names::collect(material_tables.iter());
    let materials = read_materials(&material_tables, &material_names);
    let contact_tables = table.tables("contact");
    let contacts = read_contacts(&contact_tables, &material_names);
    let shapes = read_shapes(&table.tables("shape"));
    let body_tables = table.tables("body");
    let grain_tables = table.tables("grains");
    let machine_tables = table.tables("machine");
    let group_names = Names::collect(body_tables.iter().chain(&grain_tables).chain(&machine_tables));
    let time = simulation.as_ref().map(|simulation| (simulation.start_time, simulation.duration));
    let mut users = Users::new(material_names.list.len());
    let mut warnings = Vec::new();
    let bodies =
        read_bodies(&body_tables, &group_names, &material_names, &shapes, time, &mut users, &mut warnings);
    let (grain_names, machine_names) = group_names.list[body_tables.len()..].split_at(grain_tables.len());
    let grains = read_grains(&grain_tables, grain_names, &material_names, &shapes, &mut users);
    let around = Surroundings { materials: &material_names, shapes: &shapes, time };
    let machines = read_machines(&machine_tables, machine_names, &around, &mut users);
    check_for_machines(&table, &machine_tables, simulation.as_ref());
    let regions = read_regions(&table.tables("region"));
    let start_table = table.table("start");
    let start = start_table.as_ref().and_then(|table| read_start(table, &material_names, &mut users));
    let time_step = simulation.as_ref().map(|simulation| simulation.time_step);
    let output = table.table("output").and_then(|table| read_output(&table, time_step));
    if let (Some(table), Some(Output { force_check: None, .. })) = (&solver_table, &output)
        && table.has("force_tolerance")
    {
        let message = "found it without output.force_check, expected both: how large errors are is known from these checks";
        table.relation("force_tolerance", message.to_string());
    }
    let checkpoint = table.table("checkpoint").and_then(|table| read_checkpoint(&table));
    let decomposition = table.table("decomposition").and_then(|table| read_decomposition(&table));
    if let Some(contacts) = &contacts {
        users.check_pairs(reader, contacts, &material_names);
    }
    let free_start =
        start_table.is_some() && !start_table.as_ref().is_some_and(|table| table.has("material"));
    warn_unused(&mut warnings, &material_names, &users, &shapes, free_start);
    warnings.splice(0..0, reader.warnings.take());
    let shapes = shapes.finish()?;
    Some(Case {
        file: Path::new(name).to_path_buf(),
        included,
        title: title?,
        scope: reader.scope.borrow().clone(),
        simulation: simulation?,
        solver: solver?,
        materials: materials?,
        contacts: contacts?,
        shapes,
        bodies: bodies?,
        grains: grains?,
        machines: machines?,
        regions: regions?,
        start,
        output: output?,
        checkpoint: checkpoint?,
        decomposition: decomposition?,
        warnings,
        places: reader.places.take(),
        listing: Listing::new(),
    })
}

/// Names that formulas already know.
pub(super) fn is_taken(name: &str) -> bool {
    ["t", "x", "y", "z", "pi", "and", "or", "not"].contains(&name)
        || functions().any(|(known, _)| known == name)
}

fn read_parameters(table: &TableReader) {
    let Some(entry) = table.entry("parameters") else { return };
    let reader = table.reader;
    let Data::Table(entries) = &entry.value.data else {
        reader.wrong(&entry.value, "parameters", &Kind::Parameters.describe());
        return;
    };
    for Entry { key, key_origin, value } in entries {
        let path = format!("parameters.{key}");
        if !is_identifier(key) {
            let message = format!("found the name {key:?}, expected {}", Kind::Identifier.describe());
            reader.note(key_origin, &path, ErrorKind::Value, message);
            continue;
        }
        if is_taken(key) {
            let message = format!("found the name {key:?}, which formulas already know, expected another");
            reader.note(key_origin, &path, ErrorKind::Value, message);
            continue;
        }
        let number = match &value.data {
            Data::Integer(integer) => Some(*integer as f64),
            Data::Float(number) => Some(*number),
            Data::Text(text) => reader.compile(text, value, &path, &[]).map(|formula| formula.evaluate(&[])),
            _ => {
                reader.wrong(value, &path, "a number or a formula of the parameters above");
                None
            }
        };
        if number.is_some_and(|number| !number.is_finite()) {
            reader.wrong(value, &path, "a finite number");
        }
        // A wrong parameter is still known, so that its mistake is reported once and not at every use.
        reader.scope.borrow_mut().constants.insert(key.clone(), number.unwrap_or(1.0));
    }
}

fn read_tables(table: &TableReader) {
    let tables = table.tables("table");
    let names = Names::collect(tables.iter());
    for (table, name) in tables.iter().zip(names.list) {
        if is_taken(&name) || table.reader.scope.borrow().constants.contains_key(&name) {
            let message = format!("found the name {name:?}, which formulas already know, expected another");
            table.relation("name", message);
        }
        let points = read_points(table);
        let interpolation = table.choice::<Interpolation>("interpolation").unwrap_or(Interpolation::Linear);
        let read =
            points.and_then(|[arguments, values]| match Table::new(arguments, values, interpolation) {
                Ok(table) => Some(table),
                Err(error) => {
                    let key = if table.has("file") { "file" } else { "arguments" };
                    table.reader.note(
                        table.origin_of(key),
                        &table.join(key),
                        ErrorKind::Value,
                        error.to_string(),
                    );
                    None
                }
            });
        // As with parameters: a wrong table is known nevertheless.
        let stand_in = || Table::new(vec![0.0, 1.0], vec![1.0, 1.0], Interpolation::Linear).ok();
        if let Some(read) = read.or_else(stand_in) {
            table.reader.scope.borrow_mut().tables.insert(name, Arc::new(read));
        }
    }
}

/// Arguments and values, from the case or from a file of columns.
fn read_points(table: &TableReader) -> Option<[Vec<f64>; 2]> {
    if !table.has("file") {
        let arguments = table.field("arguments").and_then(|field| field.numbers());
        let values = table.field("values").and_then(|field| field.numbers());
        return Some([arguments?, values?]);
    }
    let chosen = table.field("columns")?.count_pair()?.map(|column| column as usize);
    let field = table.field("file")?;
    let path = field.existing_file()?;
    let text = match super::read_text(&path) {
        Ok(text) => text,
        Err(message) => {
            field.note(ErrorKind::Value, message);
            return None;
        }
    };
    match columns(&text, chosen) {
        Ok(points) => Some(points),
        Err((line, message)) => {
            let mut error =
                CaseError::whole(&path.display().to_string(), &field.path, ErrorKind::Value, message);
            error.line = Some(line);
            table.reader.push(error);
            None
        }
    }
}

fn read_regions(tables: &[TableReader]) -> Option<Vec<Region>> {
    let names = Names::collect(tables.iter()).list;
    let read = |(table, name): (&TableReader, String)| Some(Region { name, bounds: read_corners(table)? });
    let read: Vec<Option<Region>> = tables.iter().zip(names).map(read).collect();
    read.into_iter().collect()
}

/// The time integrator with its parameters.
fn read_scheme(table: &TableReader) -> Option<Scheme> {
    Some(Scheme::MoreauJean { theta: table.number("theta")? })
}

fn read_simulation(table: &TableReader) -> Option<Simulation> {
    let time_step = table.number("time_step");
    let duration = table.number("duration");
    let start_time = table.number("start_time");
    let scheme = read_scheme(table);
    let maximum_speed = table.number("maximum_speed");
    let gravity = table.field("gravity").and_then(|field| field.formulas());
    if let (Some(time_step), Some(duration), Some(start_time)) = (time_step, duration, start_time) {
        if duration / time_step > MAXIMUM_STEPS {
            let message =
                format!("found {duration} s in steps of {time_step} s, expected at most 2^50 steps");
            table.relation("duration", message);
        }
        if time_step > duration * (1.0 + 1e-9) {
            let message = format!("found {time_step} s, expected at most the duration, {duration} s");
            table.relation("time_step", message);
        }
        if !(start_time + duration).is_finite() {
            table.relation("duration", format!("found {duration} s, expected a finite end"));
        }
        if let Some(gravity) = &gravity {
            let bad = sample_times(start_time, duration)
                .find(|t| !gravity.evaluate(&[*t]).iter().all(|part| Range::RATE.contains(*part)));
            if let Some(t) = bad {
                table.relation(
                    "gravity",
                    format!("found no usable value at t = {t} s, expected ±1e7 m/s² at most at any time"),
                );
            }
        }
    }
    Some(Simulation {
        time_step: time_step?,
        duration: duration?,
        start_time: start_time?,
        scheme: scheme?,
        gravity: gravity?,
        maximum_speed,
    })
}

/// What holds only in a case with machines.
fn check_for_machines(table: &TableReader, machines: &[TableReader], simulation: Option<&Simulation>) {
    if machines.is_empty() {
        return;
    }
    if simulation.is_some_and(|simulation| simulation.gravity.as_constant().is_none()) {
        let origin = table.entry("simulation").and_then(|entry| entry.value.get("gravity"));
        let message =
            "found gravity that changes with time, expected a constant one in a case with a [[machine]]";
        let origin = origin.map_or(table.origin, |value| &value.origin);
        table.reader.note(origin, "simulation.gravity", ErrorKind::Relation, message.to_string());
    }
    if let Some(Entry { value: Value { data: Data::Table(entries), .. }, .. }) = table.entry("parameters")
        && let Some(entry) = entries.iter().find(|entry| entry.key == "v")
    {
        let message = "found the name \"v\", which laws of a [[machine]] already know, expected another";
        table.reader.note(&entry.key_origin, "parameters.v", ErrorKind::Relation, message.to_string());
    }
}

/// Some times of the run, at which formulas are tried.
pub(super) fn sample_times(start: f64, duration: f64) -> impl Iterator<Item = f64> {
    (0..=64).map(move |k| start + duration * (k as f64 / 64.0))
}

fn read_solver(table: &TableReader) -> Option<Solver> {
    let tolerance = table.number("tolerance");
    let force_tolerance = table.number("force_tolerance");
    let measure = table.choice("measure");
    let maximum_sweeps = table.count("maximum_sweeps");
    let check_every = table.count("check_every");
    let warm_start = table.flag("warm_start");
    let local_law = table.choice("local_law");
    let acceleration = table.choice("acceleration");
    let method = table.choice("method");
    let fallback = table.choice("fallback");
    if matches!((method, fallback), (Some(Some(_)), Some(other)) if other != Fallback::None) {
        table.relation(
            "fallback",
            "solver.fallback gets what coloured sweeps have missed, and solver.method is another one: leave one of them out".into(),
        );
    }
    let fallback_points = table.count("fallback_points");
    let fallback_steps = table.count("fallback_steps");
    let penetration_correction = table.number("penetration_correction");
    let correction_slop = table.number("correction_slop");
    let penetration_limit = table.number("penetration_limit");
    let patch_reuse = table.number("patch_reuse");
    let contact_margin = table.number("contact_margin");
    Some(Solver {
        tolerance: tolerance?,
        force_tolerance,
        measure: measure?,
        maximum_sweeps: maximum_sweeps?,
        check_every: check_every?,
        warm_start: warm_start?,
        local_law: local_law?,
        acceleration: acceleration?,
        method: method?,
        fallback: fallback?,
        fallback_points: fallback_points?,
        fallback_steps: fallback_steps?,
        penetration_correction: penetration_correction?,
        correction_slop: correction_slop?,
        penetration_limit: penetration_limit?,
        patch_reuse: patch_reuse?,
        contact_margin,
    })
}

fn read_materials(tables: &[TableReader], names: &Names) -> Option<Vec<Material>> {
    let read = |(table, name): (&TableReader, &String)| {
        Some(Material { name: name.clone(), density: table.number("density")? })
    };
    tables.iter().zip(&names.list).map(read).collect::<Vec<_>>().into_iter().collect()
}

fn read_start(table: &TableReader, materials: &Names, users: &mut Users) -> Option<Start> {
    let from = table.field("from").and_then(|field| field.path());
    let groups = table.field("groups").and_then(|field| {
        let mut groups = Vec::new();
        for item in field.items()? {
            match &item.data {
                Data::Text(name) if crate::input::language::values::is_name(name) => {
                    groups.push(name.clone())
                }
                _ => table.reader.wrong(item, &field.path, &Kind::Name.describe()),
            }
        }
        if groups.is_empty() {
            field.note(ErrorKind::Value, "found no name, expected at least one, or no such key".to_string());
        }
        Some(groups)
    });
    let material = materials.reference(table, "material");
    if let Some(material) = material {
        users.add(material, true, 2, "[start]", table.origin);
    }
    let keep_velocities = table.flag("keep_velocities");
    let copies = table.field("copies").and_then(|field| field.count_pair());
    let spacing = table.field("spacing").map(|field| field.numbers());
    if spacing.is_none() && copies.is_some_and(|copies| copies != [1, 1]) {
        table.relation("copies", "found copies without a spacing, expected `spacing = [x, y]`".to_string());
    }
    let spacing = spacing.map_or(Some([0.0; 2]), |spacing| {
        spacing?[..].try_into().ok().or_else(|| {
            table.relation("spacing", "found more than two numbers, expected [x, y]".to_string());
            None
        })
    });
    Some(Start {
        from: from?,
        groups,
        material,
        keep_velocities: keep_velocities?,
        copies: copies?,
        spacing: spacing?,
    })
}

fn read_decomposition(table: &TableReader) -> Option<Decomposition> {
    let imbalance_threshold = table.number("imbalance_threshold");
    let cell_size = table.number("cell_size");
    Some(Decomposition { imbalance_threshold: imbalance_threshold?, cell_size })
}

/// Who is made of each material, to know which materials can meet.
pub(super) struct Users {
    materials: Vec<Use>,
    /// Of bodies of one machine that can touch each other.
    within_machines: BTreeSet<[usize; 2]>,
}

#[derive(Clone, Default)]
struct Use {
    used: bool,
    users: Vec<User>,
}

#[derive(Clone)]
struct User {
    label: String,
    origin: Origin,
    free: bool,
    several: bool,
    machine: Option<usize>,
}

impl User {
    /// Whether two of them can meet; within a machine other rules hold.
    fn meets(&self, other: &User) -> bool {
        let different = !std::ptr::eq(self, other) || self.several;
        different && (self.machine.is_none() || self.machine != other.machine)
    }
}

impl Users {
    fn new(materials: usize) -> Self {
        Self { materials: vec![Use::default(); materials], within_machines: BTreeSet::new() }
    }

    pub fn add(&mut self, material: usize, free: bool, bodies: u64, label: &str, origin: &Origin) {
        self.materials[material].used = true;
        let (label, origin) = (label.to_string(), origin.clone());
        self.materials[material].users.push(User { label, origin, free, several: bodies > 1, machine: None });
    }

    /// Something of the material is there that touches nothing.
    pub fn mark_used(&mut self, material: usize) {
        self.materials[material].used = true;
    }

    /// A body of the machine with this number that touches others.
    pub fn add_machine_body(&mut self, material: usize, machine: usize, label: &str, origin: &Origin) {
        self.add(material, true, 1, label, origin);
        if let Some(user) = self.materials[material].users.last_mut() {
            user.machine = Some(machine);
        }
    }

    /// Bodies of these materials meet within a machine.
    pub fn add_pair_within(&mut self, first: usize, second: usize) {
        self.within_machines.insert([first.min(second), first.max(second)]);
    }

    /// Two bodies can meet if at least one is free; their materials then need an entry.
    fn check_pairs(&self, reader: &Reader, contacts: &[ContactPair], names: &Names) {
        let known: BTreeSet<_> = contacts.iter().map(|contact| contact.materials).collect();
        for first in 0..self.materials.len() {
            for second in first..self.materials.len() {
                if known.contains(&[first, second]) {
                    continue;
                }
                let Some((free, other)) = self.meeting(first, second) else { continue };
                let [a, b] = [first, second].map(|index| &names.list[index]);
                let who = match first == second {
                    true => free.label.clone(),
                    false => format!("{} and {}", free.label, other.label),
                };
                let message = format!(
                    "found no entry for {a:?} with {b:?}, which can meet ({who}), \
                     expected a [[contact]] with materials = [{a:?}, {b:?}]"
                );
                reader.note(&free.origin, "contact", ErrorKind::Relation, message);
            }
        }
    }

    /// One that moves and another, if bodies of these two materials can meet.
    fn meeting(&self, first: usize, second: usize) -> Option<(&User, &User)> {
        let [one, two] = [first, second].map(|material| &self.materials[material].users);
        let partner = |free: &'_ User, others: &'_ [User]| others.iter().position(|other| free.meets(other));
        let search = |movers: &'_ [User], others: &'_ [User]| {
            let mut free = movers.iter().enumerate().filter(|(_, user)| user.free);
            free.find_map(|(mover, user)| Some((mover, partner(user, others)?)))
        };
        if let Some((mover, other)) = search(one, two) {
            return Some((&one[mover], &two[other]));
        }
        if let Some((mover, other)) = search(two, one) {
            return Some((&two[mover], &one[other]));
        }
        let inside = |user: &&User| user.machine.is_some();
        let within = self.within_machines.contains(&[first, second]);
        within.then(|| one.iter().find(inside).zip(two.iter().rev().find(inside)))?
    }
}

fn warn_unused(
    warnings: &mut Vec<String>,
    materials: &Names,
    users: &Users,
    shapes: &ReadShapes,
    free_start: bool,
) {
    // Bodies of another run may bring any material.
    for (name, user) in materials.list.iter().zip(&users.materials).filter(|_| !free_start) {
        if !user.used {
            warnings.push(format!("material.{name} is not used"));
        }
    }
    for name in shapes.unused() {
        warnings.push(format!("shape.{name} is not used"));
    }
}
