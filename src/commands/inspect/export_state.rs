//! Bodies and impulses of a state file, to be exported.

use super::InspectError;
use super::export::{Done, ExportArguments, Format, pick_rows};
use super::export_files::{Exported, Target};
use super::rows::{RowColumn, Rows};
use super::vtu::Grid;
use crate::geometry::{Drawing, Face, Vec3};
use crate::output::StateFile;
use crate::output::reader::{self, Numbers};
use crate::scene::{Body, Motion};
use decomposition::Solo;
use std::path::Path;

pub(super) fn state(
    path: &Path,
    arguments: &ExportArguments,
    out: &Path,
    done: &mut Done,
) -> Result<(), InspectError> {
    let file = StateFile::open(path, &Solo)?;
    let (step, time) = (file.header().step, file.header().time);
    arguments.step.pick(&[time]).map_err(|problem| InspectError::unfit(path, problem))?;
    let mut rows = Rows::default();
    let mut grid = None;
    if arguments.format != Format::Csv || !arguments.impulses {
        let mut bodies = file.read_bodies(0..file.body_count())?;
        bodies.sort_by_key(|body| body.id);
        rows.columns = body_columns(&bodies);
        if arguments.format == Format::Vtu {
            grid = Some(state_grid(&bodies, done));
        }
    }
    if arguments.impulses || arguments.format == Format::Npz {
        let impulses = file.read_impulses(0..file.impulse_count())?;
        let vectors = impulses.iter().flat_map(|row| row.impulse.data.0[0]).collect();
        let unsigned = |values: Vec<u64>| Numbers::Unsigned(values);
        rows.columns.extend([
            RowColumn::new("impulse_ids", 2, unsigned(impulses.iter().flat_map(|row| row.ids).collect())),
            RowColumn::new(
                "impulse_parts",
                2,
                unsigned(impulses.iter().flat_map(|row| row.parts.map(u64::from)).collect()),
            ),
            RowColumn::new(
                "impulse_feature",
                1,
                unsigned(impulses.iter().map(|row| u64::from(row.feature)).collect()),
            ),
            RowColumn::new("impulse", 3, Numbers::Double(vectors)),
        ]);
    }
    let mut writer = Target::new(arguments.format, out, 1);
    writer.add(Exported { step, time, rows, grid })?;
    writer.finish(done)
}

fn body_columns(bodies: &[Body]) -> Vec<RowColumn> {
    let unsigned = |name: &str, value: fn(&Body) -> u64| {
        RowColumn::new(name, 1, Numbers::Unsigned(bodies.iter().map(value).collect()))
    };
    let vector = |name: &str, value: fn(&Body) -> Vec3| {
        RowColumn::new(
            name,
            3,
            Numbers::Double(bodies.iter().flat_map(|body| value(body).data.0[0]).collect()),
        )
    };
    let turn = |body: &Body| {
        let turn = body.pose.rotation;
        [turn.w, turn.i, turn.j, turn.k]
    };
    vec![
        unsigned("id", |body| body.id.0),
        unsigned("group", |body| u64::from(body.group)),
        unsigned("material", |body| u64::from(body.material)),
        unsigned("free", |body| u64::from(body.motion == Motion::Free)),
        RowColumn::new("mass", 1, Numbers::Double(bodies.iter().map(|body| body.mass).collect())),
        vector("inertia", |body| body.inertia),
        vector("position", |body| body.pose.position),
        RowColumn::new("orientation", 4, Numbers::Double(bodies.iter().flat_map(turn).collect())),
        vector("velocity", |body| body.velocity),
        vector("angular_velocity", |body| body.angular_velocity),
        vector("angular_momentum", |body| body.angular_momentum),
    ]
}

fn state_grid(bodies: &[Body], done: &mut Done) -> Grid {
    let (sphere, triangles) = reader::unit_sphere(2);
    let triangles: Vec<Vec<i64>> =
        triangles.iter().map(|corners| corners.iter().map(|&corner| corner as i64).collect()).collect();
    let mut points = Vec::new();
    let mut cells: Vec<(i64, i64, Vec<Vec<i64>>)> = Vec::new();
    let (mut owners, mut walls) = (Vec::new(), 0);
    for (row, body) in bodies.iter().enumerate() {
        for (place, convex) in body.shape.parts() {
            let pose = body.pose.compose(&place);
            let (corners, faces): (Vec<Vec3>, Vec<Vec<i64>>) = match convex.drawing() {
                Drawing::Sphere { radius } => {
                    (sphere.iter().map(|unit| pose.point(&(unit * radius))).collect(), triangles.clone())
                }
                Drawing::Polyhedron(polyhedron) => {
                    let face = |face: &Face| face.vertices.iter().map(|&k| i64::from(k)).collect();
                    let corners = polyhedron.vertices.iter().map(|vertex| pose.point(vertex)).collect();
                    (corners, polyhedron.faces.iter().map(face).collect())
                }
                Drawing::Plane => {
                    walls += 1;
                    continue;
                }
            };
            let first = points.len() as i64 / 3;
            let shifted = |face: Vec<i64>| face.into_iter().map(|corner| first + corner).collect();
            cells.push((first, corners.len() as i64, faces.into_iter().map(shifted).collect()));
            points.extend(corners.iter().flat_map(|corner| corner.data.0[0]));
            owners.push(row);
        }
    }
    if walls > 0 {
        let what = if walls == 1 { "half-space is" } else { "half-spaces are" };
        done.notes.push(format!("{walls} {what} left out: a state does not know how large to draw it"));
    }
    let mut grid = Grid::new(Numbers::Double(points));
    for (first, count, faces) in &cells {
        grid.push_polyhedron(*first..first + count, faces);
    }
    for column in body_columns(bodies) {
        let values = pick_rows(&column.values, column.components, &owners);
        grid.cell_data.push((column.name, column.components, values));
    }
    grid
}
