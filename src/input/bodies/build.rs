//! Bodies and grains of the case.

use crate::formula::Expression;
use crate::formula::{Motion, VectorFormula};
use crate::geometry::{Aabb, Grading, Passing, Pose, Ratio, SizeDistribution, StoneParameters, Vec3};
use crate::input::bodies::shapes::{ReadShapes, read_pose};
use crate::input::build::{Users, sample_times};
use crate::input::case::*;
use crate::input::language::document::Data;
use crate::input::language::errors::ErrorKind;
use crate::input::language::keys::Range;
use crate::input::language::names::Names;
use crate::input::language::reader::{TableReader, choose};
use crate::input::language::values::unit_and_length;
use crate::words::Choose;
use nalgebra::Unit;

/// `time`: start and duration, if they are right.
pub(in crate::input) fn read_bodies(
    tables: &[TableReader],
    names: &Names,
    materials: &Names,
    shapes: &ReadShapes,
    time: Option<(f64, f64)>,
    users: &mut Users,
    warnings: &mut Vec<String>,
) -> Option<Vec<CaseBody>> {
    let mut bodies = Vec::new();
    for (table, name) in tables.iter().zip(&names.list) {
        let shape = shapes.reference(table, "shape");
        let material = materials.reference(table, "material");
        let pose = read_pose(table);
        let free = table.variant.is_some_and(|variant| variant.name == "free");
        if let Some(material) = material {
            users.add(material, free, 1, &table.path, table.origin_of("material"));
        }
        if let Some(shape) = shape.filter(|&shape| free && shapes.is_unbounded(shape)) {
            let shape = &shapes.names.list[shape];
            let message = format!(
                "found {shape:?}, a half-space, on a free body, expected motion = \"fixed\" or \"kinematic\""
            );
            table.relation("shape", message);
        }
        let motion = read_motion(table, pose.as_ref(), time, warnings);
        bodies.push((|| {
            let (shape, material, pose, motion) = (shape?, material?, pose?, motion?);
            Some(CaseBody { name: name.clone(), shape, material, pose, motion })
        })());
    }
    bodies.into_iter().collect()
}

fn read_motion(
    table: &TableReader,
    pose: Option<&Pose>,
    time: Option<(f64, f64)>,
    warnings: &mut Vec<String>,
) -> Option<BodyMotion> {
    match table.variant?.name {
        "fixed" => Some(BodyMotion::Fixed),
        "kinematic" => {
            let prescribed = table.table("prescribed")?;
            let motion = read_prescribed(&prescribed, time.map_or(0.0, |time| time.0))?;
            if let (Some(pose), Some((start, duration))) = (pose, time) {
                check_motion(&prescribed, &motion, pose, start, duration, warnings);
            }
            Some(BodyMotion::Kinematic(Box::new(motion)))
        }
        _ => {
            let velocity = table.field("velocity").and_then(|field| field.vector());
            let angular_velocity = table.field("angular_velocity").and_then(|field| field.vector());
            let mass = table.number("mass");
            Some(BodyMotion::Free { velocity: velocity?, angular_velocity: angular_velocity?, mass })
        }
    }
}

/// `rate` times the time since `start`.
fn steady(rate: f64, start: f64) -> Option<Expression> {
    if rate == 0.0 {
        return Some(Expression::constant(0.0));
    }
    Expression::compile(&format!("({rate:?})*(t - ({start:?}))"), &["t"], &Default::default()).ok()
}

fn read_prescribed(table: &TableReader, start: f64) -> Option<Motion> {
    let keys = ["position", "velocity", "rotation", "angular_velocity"];
    if !keys.iter().any(|key| table.has(key)) {
        let message = format!("found no motion, expected at least one of {}", keys.join(", "));
        table.reader.note(table.origin, &table.path, ErrorKind::Missing, message);
        return None;
    }
    let displacement = if let Some(field) = table.field("position") {
        field.formulas()
    } else if let Some(field) = table.field("velocity") {
        field.vector().and_then(|velocity| {
            let [x, y, z] = [0, 1, 2].map(|k| steady(velocity[k], start));
            Some(VectorFormula([x?, y?, z?]))
        })
    } else {
        Some(VectorFormula::constant(Vec3::zeros()))
    };
    let turn = if let Some(rotation) = table.table("rotation") {
        let axis = rotation.field("axis").and_then(|field| field.direction());
        let angle = rotation.field("angle").and_then(|field| field.formula());
        axis.zip(angle)
    } else if let Some(field) = table.field("angular_velocity") {
        field.vector().and_then(|velocity| {
            let (axis, rate) = unit_and_length(&velocity);
            Some((axis.unwrap_or(Vec3::z()), steady(rate, start)?))
        })
    } else if table.has("rotation") {
        None
    } else {
        Some((Vec3::z(), Expression::constant(0.0)))
    };
    let pivot = table.field("pivot").map(|field| field.vector());
    let (axis, angle) = turn?;
    let pivot = match pivot {
        Some(pivot) => Some(pivot?),
        None => None,
    };
    Some(Motion { displacement: displacement?, axis: Unit::new_normalize(axis), angle, pivot })
}

/// A motion must be finite at any time, and should start where the body is.
fn check_motion(
    table: &TableReader,
    motion: &Motion,
    pose: &Pose,
    start: f64,
    duration: f64,
    warnings: &mut Vec<String>,
) {
    for time in sample_times(start, duration) {
        let state = motion.at(time, pose);
        let within = |vector: Vec3, range: Range| vector.iter().all(|part| range.contains(*part));
        let right = within(state.pose.position, Range::PLACE)
            && within(state.velocity, Range::RATE)
            && within(state.angular_velocity, Range::RATE)
            && state.pose.rotation.coords.iter().all(|part| part.is_finite());
        if !right {
            let message = format!(
                "found no usable motion at t = {time} s, expected places within ±1e7 m and rates within ±1e7 at any time"
            );
            table.reader.note(table.origin, &table.path, ErrorKind::Relation, message);
            return;
        }
    }
    let first = motion.at(start, pose).pose;
    let jump = (first.position - pose.position).norm();
    if jump > 1e-12 {
        warnings.push(format!("{}: the body starts {jump} m from its `position`", table.path));
    }
    let turn = first.rotation.angle_to(&pose.rotation);
    if turn > 1e-7 {
        warnings.push(format!("{}: the body starts turned by {turn} rad from its `orientation`", table.path));
    }
}

pub(in crate::input) fn read_grains(
    tables: &[TableReader],
    names: &[String],
    materials: &Names,
    shapes: &ReadShapes,
    users: &mut Users,
) -> Option<Vec<Grains>> {
    let mut grains = Vec::new();
    for (table, name) in tables.iter().zip(names) {
        let material = materials.reference(table, "material");
        let velocity = table.field("velocity").and_then(|field| field.formulas());
        let generator = read_generator(table, shapes);
        let placing = generator.as_ref().and_then(Generator::placing);
        let count = placing.map_or(2, |placing| placing.count);
        if let Some(material) = material {
            users.add(material, true, count, &table.path, table.origin_of("material"));
        }
        if let (Some(velocity), Some(placing)) = (&velocity, placing) {
            let middle = (placing.region.min + placing.region.max) / 2.0;
            if !velocity.evaluate(middle.as_slice()).iter().all(|part| Range::RATE.contains(*part)) {
                let message = "found no usable value in the middle of the region, expected ±1e7 m/s at most";
                table.relation("velocity", message.to_string());
            }
        }
        grains.push((|| {
            let (material, generator, velocity) = (material?, generator?, velocity?);
            Some(Grains { name: name.clone(), material, generator, velocity })
        })());
    }
    grains.into_iter().collect()
}

impl Generator {
    /// Where its grains are placed, unless a file says it.
    pub fn placing(&self) -> Option<&Placing> {
        match self {
            Generator::Stones { placing, .. } | Generator::Spheres { placing, .. } => Some(placing),
            Generator::Shape { placing, .. } => Some(placing),
            Generator::File { .. } => None,
        }
    }
}

impl Generator {
    pub fn placing_mut(&mut self) -> Option<&mut Placing> {
        match self {
            Generator::Stones { placing, .. } | Generator::Spheres { placing, .. } => Some(placing),
            Generator::Shape { placing, .. } => Some(placing),
            Generator::File { .. } => None,
        }
    }
}

fn read_generator(table: &TableReader, shapes: &ReadShapes) -> Option<Generator> {
    match table.variant?.name {
        "stones" => {
            let placing = read_placing(table);
            let sizes = read_grading(table).map(SizeDistribution::Grading);
            let stone = read_stone(table);
            Some(Generator::Stones { placing: placing?, sizes: sizes?, stone: stone? })
        }
        "spheres" => {
            let placing = read_placing(table);
            let sizes = match table.field("radius") {
                Some(field) => field.span().and_then(|[least, greatest]| {
                    let sizes = SizeDistribution::uniform(2.0 * least, 2.0 * greatest);
                    sizes.inspect_err(|error| field.note(ErrorKind::Value, refused("a radius", error))).ok()
                }),
                None => read_grading(table).map(SizeDistribution::Grading),
            };
            Some(Generator::Spheres { placing: placing?, sizes: sizes? })
        }
        "shape" => {
            let placing = read_placing(table);
            let shape = shapes.reference(table, "shape");
            let orientation = table.choice("orientation");
            if let Some(shape) = shape.filter(|&shape| shapes.is_unbounded(shape)) {
                let name = &shapes.names.list[shape];
                table.relation(
                    "shape",
                    format!("found {name:?}, a half-space, expected a shape that can move"),
                );
            }
            Some(Generator::Shape { placing: placing?, shape: shape?, orientation: orientation? })
        }
        _ => {
            let file = table.field("file").and_then(|field| field.existing_file());
            let state = table.choice("state");
            let offset = table.field("offset").and_then(|field| field.vector());
            let properties = table.choice("properties");
            Some(Generator::File { file: file?, state: state?, offset: offset?, properties: properties? })
        }
    }
}

fn read_placing(table: &TableReader) -> Option<Placing> {
    let count = table.count("count");
    let seed = table.count("seed");
    let gap = table.number("gap");
    let overflow = table.choice("grow");
    let region = read_corners(&table.table("region")?)?;
    Some(Placing { count: count?, seed: seed?, region, gap: gap?, overflow: overflow? })
}

/// A box given by `min` and `max`.
pub(in crate::input) fn read_corners(table: &TableReader) -> Option<Aabb> {
    let [min, max] = ["min", "max"].map(|key| table.field(key).and_then(|field| field.vector()));
    let (min, max) = (min?, max?);
    if (0..3).any(|k| min[k] >= max[k]) {
        let [low, high] = [min, max].map(|corner| format!("[{}, {}, {}]", corner.x, corner.y, corner.z));
        table.relation("max", format!("found {high}, expected more than min, {low}, in each direction"));
        return None;
    }
    Some(Aabb { min, max })
}

fn read_stone(table: &TableReader) -> Option<StoneParameters> {
    let vertices = table.count("vertices");
    let [elongation, flatness] = ["elongation", "flatness"].map(|key| {
        let ratio = table.table(key)?;
        let (mean, standard_deviation) = (ratio.number("mean"), ratio.number("standard_deviation"));
        Some(Ratio { mean: mean?, standard_deviation: standard_deviation? })
    });
    let roughness = table.number("roughness");
    let vertices = u32::try_from(vertices?).ok()?;
    let stone =
        StoneParameters { vertices, elongation: elongation?, flatness: flatness?, roughness: roughness? };
    if let Err(error) = stone.check() {
        table.reader.note(table.origin, &table.path, ErrorKind::Relation, refused("a kind of stone", &error));
        return None;
    }
    Some(stone)
}

/// What another room refuses, in the form of this one.
pub(in crate::input) fn refused(what: &str, error: &dyn std::error::Error) -> String {
    format!("found {what} that cannot be used, expected another: {error}")
}

fn read_grading(table: &TableReader) -> Option<Grading> {
    let field = table.field("grading")?;
    if let Data::Text(text) = &field.value.data {
        return match choose(text, StandardGrading::CHOICES, &field.kind.describe()) {
            Ok(index) => Some(StandardGrading::ALL[index].curve()),
            Err(message) => {
                field.note(ErrorKind::Value, message);
                None
            }
        };
    }
    if !matches!(field.value.data, Data::Table(_)) {
        field.wrong();
        return None;
    }
    let curve = table.table("grading")?;
    let sieve = curve.field("sieve").and_then(|field| field.numbers());
    let passing = curve.field("passing").and_then(|field| field.numbers());
    let (sieve, passing) = (sieve?, passing?);
    if sieve.len() != passing.len() {
        let message = format!("found {} values for {} sieves, expected one each", passing.len(), sieve.len());
        curve.relation("passing", message);
        return None;
    }
    if let Some(pair) = sieve.windows(2).find(|pair| pair[0] >= pair[1]) {
        curve.relation("sieve", format!("found {} after {}, expected increasing sizes", pair[1], pair[0]));
        return None;
    }
    if let Some(pair) = passing.windows(2).find(|pair| pair[0] > pair[1]) {
        curve.relation(
            "passing",
            format!("found {} after {}, expected values that do not decrease", pair[1], pair[0]),
        );
        return None;
    }
    if passing[0] != 0.0 || passing[passing.len() - 1] != 100.0 {
        let (first, last) = (passing[0], passing[passing.len() - 1]);
        curve.relation(
            "passing",
            format!("found {first} first and {last} last, expected 0 first and 100 last"),
        );
        return None;
    }
    let points = sieve.iter().zip(&passing).map(|(&sieve, &percent)| Passing { sieve, percent }).collect();
    match Grading::new(points) {
        Ok(grading) => Some(grading),
        Err(error) => {
            curve.reader.note(curve.origin, &curve.path, ErrorKind::Value, refused("a grading", &error));
            None
        }
    }
}

impl StandardGrading {
    /// The middle of what the standard allows.
    pub fn curve(self) -> Grading {
        match self {
            StandardGrading::En13450A => Grading::en_13450_a(),
        }
    }
}
