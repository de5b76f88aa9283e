//! Machines of the case: their bodies, and what only shows when the machine is put together.

use crate::geometry::{Mat3, Pose, Vec3};
use crate::input::bodies::build::refused;
use crate::input::bodies::shapes::{MAXIMUM_PARTS, ReadShapes, read_part, too_many};
use crate::input::build::Users;
use crate::input::case::{ClusterPart, FORCE_LISTS};
use crate::input::language::document::Data;
use crate::input::language::errors::ErrorKind;
use crate::input::language::keys::{Kind, Range};
use crate::input::language::names::Names;
use crate::input::language::reader::{Field, TableReader};
use crate::input::language::values::is_name;
use crate::input::machine::case::{CaseMachine, MachineBody, SelfContact};
use crate::input::machine::forces::{read_cuts, read_forces, read_partition, read_phases, read_quantities};
use crate::input::machine::joints::{check_tree, read_joint};
use crate::input::machine::names::{GROUND, MachineNames, NamedPoint};
use crate::multibody::{BodySpec, Law, ModelError};

/// What reading a machine needs from the rest of the case.
pub(in crate::input) struct Surroundings<'a> {
    pub materials: &'a Names,
    pub shapes: &'a ReadShapes,
    /// Start and duration, if they are right.
    pub time: Option<(f64, f64)>,
}

pub(in crate::input) fn read_machines(
    tables: &[TableReader],
    names: &[String],
    around: &Surroundings,
    users: &mut Users,
) -> Option<Vec<CaseMachine>> {
    let machines: Vec<_> = tables
        .iter()
        .zip(names)
        .enumerate()
        .map(|(number, (table, name))| read_machine(table, name, number, around, users))
        .collect();
    machines.into_iter().collect()
}

/// Keeps file and line of each joint, cut and force, for errors that come up when the machine is assembled or
/// moves.
fn keep_places(table: &TableReader) {
    for list in FORCE_LISTS.into_iter().chain(["joint", "cut"]) {
        let Some(Data::List(items)) = table.entry(list).map(|entry| &entry.value.data) else { continue };
        for item in items {
            if let Some((name, place)) = item.name().zip(table.reader.place(&item.origin)) {
                table.reader.places.borrow_mut().insert(format!("{}.{list}.{name}", table.path), place);
            }
        }
    }
}

fn read_machine(
    table: &TableReader,
    name: &str,
    number: usize,
    around: &Surroundings,
    users: &mut Users,
) -> Option<CaseMachine> {
    let mistakes = || table.reader.errors.borrow().len() + table.reader.left_out.get();
    let before = mistakes();
    let body_tables = table.tables("body");
    let body_names = Names::collect(body_tables.iter());
    let ground_points = read_points(table, "ground_points", &["origin"]);
    let bodies: Vec<_> = body_tables
        .iter()
        .zip(&body_names.list)
        .map(|(table, name)| read_body(table, name, around))
        .collect();
    let mut parts = collect_names(&bodies, &body_names.list, ground_points.as_deref());
    let joint_tables = table.tables("joint");
    let joint_names = Names::collect(joint_tables.iter());
    let mut prescribed = Some(Vec::new());
    let mut joints = Vec::new();
    for (table, name) in joint_tables.iter().zip(&joint_names.list) {
        joints.push(read_joint(table, name, &mut parts, around.time, &mut prescribed));
    }
    check_tree(&body_tables, &body_names.list, &joint_tables);
    let cuts = read_cuts(table, &parts);
    keep_places(table);
    let phase_tables = table.tables("phase");
    parts.phases = Names::collect(phase_tables.iter()).list;
    let phase_values = read_quantities(table, "phase_values", &mut parts);
    let quantities = read_quantities(table, "quantities", &mut parts);
    let phases = read_phases(&phase_tables, &parts);
    let forces = read_forces(table, &parts);
    let prescribed_names =
        prescribed.as_ref().map(|list| list.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
    let partitioning = read_partition(table, &parts, prescribed_names.as_deref().unwrap_or(&[]));
    let closure_tolerance = table.number("closure_tolerance");
    let self_contact = table.choice("self_contact");
    let force_evaluation = table.choice("force_evaluation");
    let contact_velocity = table.choice("contact_velocity");
    let machine = CaseMachine {
        name: name.to_string(),
        bodies: bodies.into_iter().collect::<Option<_>>()?,
        ground_points: ground_points?,
        joints: joints.into_iter().collect::<Option<_>>()?,
        cuts: cuts?,
        prescribed: prescribed?,
        forces: forces?,
        phase_values: phase_values?,
        quantities: quantities?,
        phases: phases?,
        partitioning: partitioning?,
        closure_tolerance: closure_tolerance?,
        self_contact: self_contact?,
        force_evaluation: force_evaluation?,
        contact_velocity: contact_velocity?,
    };
    add_users(&machine, number, &body_tables, users);
    // What the machine room finds is reported only if nothing else is wrong: it would find that again.
    if mistakes() == before {
        try_out(table, &machine);
    }
    Some(machine)
}

/// Built once without laws; a mistake is reported at the part that it is about.
fn try_out(table: &TableReader, machine: &CaseMachine) {
    let outline = |body: &MachineBody| {
        let mut spec = BodySpec::new(
            &body.name,
            body.mass.unwrap_or(1.0),
            body.centre.unwrap_or(Vec3::zeros()),
            body.inertia.unwrap_or(Mat3::zeros()),
        );
        spec.points = body.points.clone();
        spec
    };
    let bodies = machine.bodies.iter().map(outline).collect();
    let Err(error) = machine.builder(bodies, |_| Law::Constant(0.0)).build() else { return };
    let (list, name) = match &error {
        ModelError::BadBody { body, .. } | ModelError::NotAttached { body } => ("body", body.clone()),
        ModelError::Ring { bodies } => ("body", bodies.first().cloned().unwrap_or_default()),
        ModelError::BadJoint { joint, .. } => ("joint", joint.clone()),
        ModelError::BadPrescription { coordinate, .. } => {
            ("joint", coordinate.split('.').next().unwrap_or_default().to_string())
        }
        ModelError::BadCut { cut, .. } => ("cut", cut.clone()),
        ModelError::BadForce { force, .. } => {
            let named = |list: &&&str| entry_named(table, list, force).is_some();
            (FORCE_LISTS.iter().find(named).copied().unwrap_or("spring"), force.clone())
        }
        _ => ("", String::new()),
    };
    let origin = entry_named(table, list, &name).unwrap_or(table.origin);
    let path = if list.is_empty() { table.path.clone() } else { format!("{}.{list}.{name}", table.path) };
    table.reader.note(origin, &path, ErrorKind::Relation, refused("a machine", &error));
}

/// Where the table of a list stands that has this name.
fn entry_named<'a>(
    table: &TableReader<'a>,
    list: &str,
    name: &str,
) -> Option<&'a crate::input::language::document::Origin> {
    let Data::List(items) = &table.entry(list)?.value.data else { return None };
    items.iter().find(|item| item.name() == Some(name)).map(|item| &item.origin)
}

fn collect_names(
    bodies: &[Option<MachineBody>],
    names: &[String],
    ground: Option<&[(String, Vec3)]>,
) -> MachineNames {
    let mut known = Vec::new();
    for (body, name) in bodies.iter().zip(names) {
        let points = body.as_ref().map(|body| {
            let origin = ("origin".to_string(), Some(Vec3::zeros()));
            let centre = if body.parts.is_empty() { body.centre.or(origin.1) } else { body.centre };
            let mut points = vec![origin, ("centre".to_string(), centre)];
            points.extend(body.points.iter().map(known_point));
            points
        });
        known.push((name.clone(), points));
    }
    let mut points = vec![("origin".to_string(), Some(Vec3::zeros()))];
    points.extend(ground.unwrap_or_default().iter().map(known_point));
    known.push((GROUND.to_string(), Some(points)));
    MachineNames {
        bodies: known,
        coordinates: Vec::new(),
        complete: bodies.iter().all(Option::is_some),
        quantities: Vec::new(),
        phases: Vec::new(),
    }
}

fn known_point((name, position): &(String, Vec3)) -> NamedPoint {
    (name.clone(), Some(*position))
}

fn read_body(table: &TableReader, name: &str, around: &Surroundings) -> Option<MachineBody> {
    if name == GROUND {
        let message = "found \"ground\", which is the world, expected another name";
        table.relation("name", message.to_string());
    }
    let mass = table.number("mass");
    if let Some(tiny) = mass.filter(|mass| *mass > 0.0 && !Range::MASS.contains(*mass)) {
        let expected = Range::MASS.describe();
        let message =
            format!("found {tiny:e}, expected 0 for a body that only carries others, or a mass{expected} kg");
        table.relation("mass", message);
    }
    let centre = table.field("centre").map(|field| field.vector());
    let inertia = table.field("inertia").map(|field| read_inertia(&field));
    let points = read_points(table, "points", &["origin", "centre"]);
    let has_shape = table.has("shape") || table.has("parts");
    let parts = if has_shape { read_parts(table, around.shapes) } else { Some(Vec::new()) };
    let material = around.materials.reference(table, "material");
    let contacts = table.flag("contacts");
    if has_shape && !table.has("material") {
        let message = "found a shape without a material, expected the name of a [[material]]";
        table.reader.note(table.origin, &table.join("material"), ErrorKind::Missing, message.to_string());
        return None;
    }
    if !has_shape && table.has("material") {
        table.relation(
            "material",
            "found a material without a shape, expected a shape or neither".to_string(),
        );
    }
    if !has_shape && !table.has("mass") {
        let message = "found neither a mass nor a shape, expected at least one of them";
        table.reader.note(table.origin, &table.join("mass"), ErrorKind::Missing, message.to_string());
    }
    let wrong = |key: &str, value: bool| table.has(key) && !value;
    if wrong("mass", mass.is_some()) || wrong("material", material.is_some()) {
        return None;
    }
    Some(MachineBody {
        name: name.to_string(),
        mass,
        centre: present(centre)?,
        inertia: present(inertia)?,
        points: points?,
        parts: parts?,
        material,
        contacts: contacts?,
    })
}

/// Absent, or there and right; none if there and wrong.
fn present<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        Some(Some(value)) => Some(Some(value)),
        Some(None) => None,
        None => Some(None),
    }
}

fn read_inertia(field: &Field) -> Option<Mat3> {
    let range = Range::within(-1e30, 1e30);
    let items = match &field.value.data {
        Data::List(items) if items.len() == 3 || items.len() == 6 => field.numbers_of(items, &range)?,
        _ => {
            field.wrong();
            return None;
        }
    };
    // Of the lightest body that there can be, no larger than the smallest size.
    let least = Range::MASS.low * Range::SIZE.low * Range::SIZE.low;
    if let Some(tiny) = items[..3].iter().find(|moment| **moment != 0.0 && moment.abs() < least) {
        let message = format!("found a moment of {tiny:e} kg m², expected 0 or at least {least:.0e} kg m²");
        field.note(ErrorKind::Value, message);
        return None;
    }
    let [xy, yz, zx] = if items.len() == 6 { [items[3], items[4], items[5]] } else { [0.0; 3] };
    Some(Mat3::new(items[0], xy, zx, xy, items[1], yz, zx, yz, items[2]))
}

/// Named points; none of them may have a name that every body has.
fn read_points(table: &TableReader, key: &str, built_in: &[&str]) -> Option<Vec<(String, Vec3)>> {
    let Some(field) = table.field(key) else { return Some(Vec::new()) };
    let Data::Table(entries) = &field.value.data else {
        field.wrong();
        return None;
    };
    let expected = Kind::Vector(Range::PLACE).describe();
    let mut points = Vec::new();
    for entry in entries {
        let path = format!("{}.{}", field.path, entry.key);
        let name = &entry.key;
        if !is_name(name) || built_in.contains(&name.as_str()) || name == GROUND {
            let message = match is_name(name) {
                true => format!("found the name {name:?}, which is there already, expected another"),
                false => format!("found the name {name:?}, expected {}", Kind::Name.describe()),
            };
            table.reader.note(&entry.key_origin, &path, ErrorKind::Value, message);
        }
        points
            .push(field.vector_of(&entry.value, &Range::PLACE, &expected).map(|point| (name.clone(), point)));
    }
    points.into_iter().collect()
}

/// The shape of a body as plain parts in its frame.
fn read_parts(table: &TableReader, shapes: &ReadShapes) -> Option<Vec<ClusterPart>> {
    let refuse_unbounded = |table: &TableReader, shape: usize| {
        if shapes.is_unbounded(shape) {
            let name = &shapes.names.list[shape];
            let message =
                format!("found {name:?}, a half-space, on a machine, expected a shape of finite size");
            table.relation("shape", message);
        }
    };
    let placed = if table.has("shape") {
        let shape = shapes.reference(table, "shape")?;
        refuse_unbounded(table, shape);
        vec![ClusterPart { shape, pose: Pose::identity() }]
    } else {
        let mut placed = Vec::new();
        for part in table.tables("parts") {
            let copies = read_part(&part, shapes);
            if let Some(first) = copies.as_ref().and_then(|copies| copies.first()) {
                refuse_unbounded(&part, first.shape);
            }
            placed.push(copies);
        }
        placed.into_iter().collect::<Option<Vec<_>>>()?.concat()
    };
    let mut parts = Vec::new();
    for part in placed {
        parts.extend(shapes.plain_parts(part.shape, &part.pose)?);
        if parts.len() > MAXIMUM_PARTS {
            too_many(table.reader, table.origin_of("parts"), &table.join("parts"), parts.len());
            return None;
        }
    }
    Some(parts)
}

impl CaseMachine {
    /// Whether a joint or a cut connects two bodies.
    pub fn are_neighbours(&self, first: &str, second: &str) -> bool {
        use crate::multibody::CutKind;
        let ends = |a: &str, b: &str| (a == first && b == second) || (a == second && b == first);
        let body = |point: &str| point.split('.').next().unwrap_or_default().to_string();
        let cut = |kind: &CutKind| match kind {
            CutKind::Points { a, b } | CutKind::Rod { a, b, .. } => ends(&body(a), &body(b)),
            CutKind::Frames { body_a, body_b, .. } => ends(body_a, body_b),
        };
        self.joints.iter().any(|joint| ends(&joint.parent, &joint.child))
            || self.cuts.iter().any(|known| cut(&known.kind))
    }

    /// Whether two different bodies of this machine can touch each other.
    pub fn can_touch(&self, first: &MachineBody, second: &MachineBody) -> bool {
        first.contacts
            && second.contacts
            && match self.self_contact {
                SelfContact::All => true,
                SelfContact::None => false,
                SelfContact::NotNeighbours => !self.are_neighbours(&first.name, &second.name),
            }
    }
}

/// Tells which materials can meet because of this machine, the one with this number.
fn add_users(machine: &CaseMachine, number: usize, tables: &[TableReader], users: &mut Users) {
    for (k, (body, table)) in machine.bodies.iter().zip(tables).enumerate() {
        let Some(material) = body.material else { continue };
        users.mark_used(material);
        if !body.contacts {
            continue;
        }
        users.add_machine_body(material, number, &table.path, table.origin_of("material"));
        for other in machine.bodies[..k].iter().filter(|other| machine.can_touch(body, other)) {
            other.material.iter().for_each(|&other| users.add_pair_within(material, other));
        }
    }
}
