//! `breccia export`: bodies, contacts and series of a result file as VTU, CSV or NPZ.

use super::bodies::{Part, SeenBody, bodies};
use super::export_files::{Exported, Target, create};
use super::export_state::state;
use super::poses::References;
use super::rows::{RowColumn, Rows};
use super::text_table::TextTable;
use super::vtu::{Cell, Grid};
use super::{InspectError, npz};
use crate::output::reader::{self, CellKind, Frame, FrameFile, Numbers};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Writes bodies, contacts or series in another format.
///
/// From bodies.vtkhdf or a state (final.h5, a checkpoint): id, group, position of the centre of mass,
/// orientation (quaternion w, x, y, z), velocities and, for vtu, the geometry. From contacts.vtkhdf: points,
/// normals, impulses, forces, gaps. From series.h5 or series.csv: all columns (csv and npz). A directory
/// stands for its bodies.vtkhdf, or else its final.h5.
///
///   breccia export out/ballast-box --step last --format vtu
///   breccia export out/ballast-box/contacts.vtkhdf --step time=0.5 --format npz --out contacts.npz
///
/// CSV has one heading line and the shortest decimals that read back to the same bits. NPZ holds one array
/// for each column, `time` and `step` of each step and `first_row`, where each step's rows begin. With --step
/// all, vtu writes a file for each step and a .pvd that ParaView opens as one.
///
/// Frames hold points, not poses. Positions and orientations are found by fitting the shapes of the state
/// file beside the frames; without one, orientations count from the first frame that shows the body.
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct ExportArguments {
    /// A result file, or the directory of a run.
    pub file: PathBuf,
    /// first, last, all, a number from 0, or time=T for the step nearest to T (s). States hold one step.
    #[arg(long, default_value = "last", value_name = "STEP")]
    pub step: StepChoice,
    #[arg(long, value_enum)]
    pub format: Format,
    /// Where to write; beside the file, with the format's extension, if not given.
    #[arg(long, value_name = "PATH")]
    pub out: Option<PathBuf>,
    /// Of a state: the contact impulses instead of the bodies (csv; npz has both).
    #[arg(long)]
    pub impulses: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Vtu,
    Csv,
    Npz,
}

impl Format {
    fn extension(self) -> &'static str {
        match self {
            Format::Vtu => "vtu",
            Format::Csv => "csv",
            Format::Npz => "npz",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepChoice {
    First,
    Last,
    All,
    Number(usize),
    Time(f64),
}

impl FromStr for StepChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let finite = |time: &f64| time.is_finite();
        match text {
            "first" => Ok(StepChoice::First),
            "last" => Ok(StepChoice::Last),
            "all" => Ok(StepChoice::All),
            _ => match text.strip_prefix("time=") {
                Some(time) => time.parse().ok().filter(finite).map(StepChoice::Time),
                None => text.parse().ok().map(StepChoice::Number),
            }
            .ok_or_else(|| "expected first, last, all, a number from 0, or time=T".into()),
        }
    }
}

impl StepChoice {
    /// The steps that are meant, of those at `times`.
    pub(super) fn pick(self, times: &[f64]) -> Result<Vec<usize>, String> {
        let last = times.len().checked_sub(1).ok_or("holds no step yet")?;
        let distance = |time: f64, step: usize| (times[step] - time).abs();
        match self {
            StepChoice::First => Ok(vec![0]),
            StepChoice::Last => Ok(vec![last]),
            StepChoice::All => Ok((0..=last).collect()),
            StepChoice::Number(step) if step <= last => Ok(vec![step]),
            StepChoice::Number(step) => Err(format!("has the steps 0 to {last}; {step} was asked for")),
            StepChoice::Time(time) => {
                let nearest = (0..=last).min_by(|&a, &b| distance(time, a).total_cmp(&distance(time, b)));
                Ok(vec![nearest.unwrap_or(last)])
            }
        }
    }
}

/// What was written, and what the user should know about it.
#[derive(Debug, Default, PartialEq)]
pub struct Done {
    pub files: Vec<PathBuf>,
    pub notes: Vec<String>,
}

/// Runs `breccia export`.
pub fn export(arguments: &ExportArguments) -> Result<Done, InspectError> {
    let path = resolve(&arguments.file)?;
    let wanted = arguments.out.clone().unwrap_or_else(|| path.with_extension(arguments.format.extension()));
    if wanted == path {
        return Err(InspectError::unfit(&path, "would be replaced; say where to write with --out"));
    }
    let mut done = Done::default();
    if reader::is_state(&path).map_err(InspectError::io(&path, "read"))? {
        state(&path, arguments, &wanted, &mut done)?;
    } else if !reader::is_hdf5(&path).map_err(InspectError::io(&path, "read"))? {
        text_series(&path, arguments, &wanted, &mut done)?;
    } else if reader::Contents::read(&path)?.has("series") {
        series(&path, arguments, &wanted, &mut done)?;
    } else {
        frames(&path, arguments, &wanted, &mut done)?;
    }
    Ok(done)
}

/// The file that a directory stands for.
fn resolve(file: &Path) -> Result<PathBuf, InspectError> {
    if !file.is_dir() {
        return Ok(file.to_path_buf());
    }
    let there = ["bodies.vtkhdf", "final.h5"].map(|name| file.join(name));
    let found = there.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| InspectError::unfit(file, "has neither bodies.vtkhdf nor final.h5"))
}

fn frames(path: &Path, arguments: &ExportArguments, out: &Path, done: &mut Done) -> Result<(), InspectError> {
    let file = FrameFile::open(path)?;
    let unfit = |problem| InspectError::unfit(path, problem);
    let steps = arguments.step.pick(file.times()).map_err(unfit)?;
    let contacts = file.arrays().any(|(name, _)| name == "body_ids");
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut references = if contacts { References::default() } else { References::find(directory) };
    if !contacts {
        if !file.arrays().any(|(name, _)| name == "id") {
            done.notes.push("the frames have no ids: bodies are counted in the order of the file".into());
        } else if arguments.format != Format::Vtu && references.state.is_none() {
            let note = "no state file beside the frames: orientations count from the first frame that shows the body";
            done.notes.push(note.into());
        }
        // Orientations count from where a body is first seen, whatever step is exported.
        if references.state.is_none() && arguments.format != Format::Vtu && steps[0] > 0 {
            let first = file.read_arrays(0, |name| name == "id" || name == "group")?;
            bodies(&first).iter().for_each(|body| {
                references.learn(&first, body);
            });
        }
    }
    let mut writer = Target::new(arguments.format, out, steps.len());
    for step in steps {
        let frame = file.read(step)?;
        let exported =
            if contacts { contact_step(step, frame) } else { body_step(step, frame, &mut references) };
        writer.add(exported)?;
    }
    writer.finish(done)
}

fn body_step(step: usize, frame: Frame, references: &mut References) -> Exported {
    let seen = bodies(&frame);
    let mut ids = Vec::new();
    let (mut groups, mut positions, mut turns) = (Vec::new(), Vec::new(), Vec::new());
    for body in &seen {
        references.learn(&frame, body);
        if let Some(pose) = references.pose(&frame, body) {
            ids.push(body.id as i64);
            groups.push(i64::from(body.group));
            positions.extend(pose.position.iter());
            let turn = pose.rotation;
            turns.extend([turn.w, turn.i, turn.j, turn.k]);
        }
    }
    let mut columns = vec![
        RowColumn::new("id", 1, Numbers::Integer(ids)),
        RowColumn::new("group", 1, Numbers::Integer(groups)),
        RowColumn::new("position", 3, Numbers::Double(positions)),
        RowColumn::new("orientation", 4, Numbers::Double(turns)),
    ];
    let firsts: Vec<usize> = seen.iter().map(|body| body.points().start).collect();
    let own = frame.arrays.iter().filter(|array| !["id", "group"].contains(&array.name.as_str()));
    columns.extend(own.map(|array| {
        let values = pick_rows(&array.values, array.components, &firsts);
        RowColumn::new(array.name.clone(), array.components, values)
    }));
    let grid = body_grid(&frame, &seen);
    Exported { step: step as u64, time: frame.time, rows: Rows { columns }, grid: Some(grid) }
}

pub(super) fn pick_rows(values: &Numbers, components: usize, rows: &[usize]) -> Numbers {
    let mut picked = values.none();
    for row in rows {
        picked.extend(values, row * components..(row + 1) * components);
    }
    picked
}

fn body_grid(frame: &Frame, seen: &[SeenBody]) -> Grid {
    let mut grid = Grid::new(frame.points.clone());
    let mut first_points = Vec::new();
    for part in seen.iter().flat_map(|body| &body.parts) {
        first_points.push(part.points.start);
        push_part(&mut grid, part);
    }
    for array in &frame.arrays {
        grid.point_data.push((array.name.clone(), array.components, array.values.clone()));
        let values = pick_rows(&array.values, array.components, &first_points);
        grid.cell_data.push((array.name.clone(), array.components, values));
    }
    grid
}

fn push_part(grid: &mut Grid, part: &Part) {
    let first = part.points.start as i64;
    let points = part.points.clone().map(|point| point as i64);
    let loops = || part.faces().map(|face| face.iter().map(|&corner| first + i64::from(corner)).collect());
    match part.face_count() {
        0 => grid.push(Cell::Vertex, points),
        1 => loops().for_each(|face: Vec<i64>| grid.push(Cell::Polygon, face)),
        _ => grid.push_polyhedron(points, &loops().collect::<Vec<Vec<i64>>>()),
    }
}

fn contact_step(step: usize, frame: Frame) -> Exported {
    let lines = frame.cell_count(CellKind::Lines) > 0;
    // A line has its numbers on both ends.
    let rows: Vec<usize> = (0..frame.point_count()).step_by(if lines { 2 } else { 1 }).collect();
    let mut columns = Vec::new();
    if lines {
        let ends: Vec<usize> = rows.iter().map(|row| row + 1).collect();
        columns.push(RowColumn::new("start", 3, pick_rows(&frame.points, 3, &rows)));
        columns.push(RowColumn::new("end", 3, pick_rows(&frame.points, 3, &ends)));
    } else {
        columns.push(RowColumn::new("point", 3, frame.points.clone()));
    }
    for array in &frame.arrays {
        let values = pick_rows(&array.values, array.components, &rows);
        columns.push(RowColumn::new(array.name.clone(), array.components, values));
    }
    let mut grid = Grid::new(frame.points.clone());
    for (kind, cell) in [(CellKind::Vertices, Cell::Vertex), (CellKind::Lines, Cell::PolyLine)] {
        frame
            .cells(kind)
            .for_each(|corners| grid.push(cell, corners.iter().map(|&corner| i64::from(corner))));
    }
    grid.point_data =
        frame.arrays.into_iter().map(|array| (array.name, array.components, array.values)).collect();
    Exported { step: step as u64, time: frame.time, rows: Rows { columns }, grid: Some(grid) }
}

fn series(path: &Path, arguments: &ExportArguments, out: &Path, done: &mut Done) -> Result<(), InspectError> {
    let columns = reader::read_series(path)?;
    let columns =
        columns.into_iter().map(|(name, values, width)| RowColumn::new(name, width, values)).collect();
    write_series(path, Rows { columns }, arguments, out, done)
}

fn text_series(
    path: &Path,
    arguments: &ExportArguments,
    out: &Path,
    done: &mut Done,
) -> Result<(), InspectError> {
    let table = TextTable::read(path)?;
    if table.torn > 0 {
        done.notes.push(format!("{} torn lines are left out", table.torn));
    }
    let integer = |name: &str| ["step", "manifolds", "contact_points", "sweeps", "converged"].contains(&name);
    let column = |(name, values): (String, Vec<f64>)| {
        let values = match integer(&name) {
            true => Numbers::Integer(values.iter().map(|&value| value as i64).collect()),
            false => Numbers::Double(values),
        };
        RowColumn::new(name, 1, values)
    };
    let columns = table.names.into_iter().zip(table.columns).map(column).collect();
    write_series(path, Rows { columns }, arguments, out, done)
}

/// Rows of a series are steps: one or all of them.
fn write_series(
    path: &Path,
    mut rows: Rows,
    arguments: &ExportArguments,
    out: &Path,
    done: &mut Done,
) -> Result<(), InspectError> {
    if arguments.format == Format::Vtu {
        return Err(InspectError::unfit(path, "is a series, which has no geometry; csv and npz can hold it"));
    }
    // A series that is being written may have columns of different lengths for a moment.
    let count = rows.columns.iter().map(|column| column.values.len() / column.components).min().unwrap_or(0);
    let time = rows.columns.iter().find(|column| column.name == "time");
    let times: Vec<f64> =
        (0..count).map(|row| time.map_or(row as f64, |time| time.values.get(row))).collect();
    let picked = arguments.step.pick(&times).map_err(|problem| InspectError::unfit(path, problem))?;
    for column in &mut rows.columns {
        column.values = pick_rows(&column.values, column.components, &picked);
    }
    let mut file = create(out)?;
    let written = match arguments.format {
        Format::Npz => npz::write(&rows.columns, &mut file),
        _ => rows.write_heading(&[], &mut file).and_then(|()| rows.write_rows("", &mut file)),
    };
    written.and_then(|()| file.flush()).map_err(InspectError::io(out, "write"))?;
    done.files.push(out.to_path_buf());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_chosen_by_number_name_and_time() {
        let times = [0.0, 0.1, 0.2, 0.4];
        let pick = |text: &str| text.parse::<StepChoice>().and_then(|choice| choice.pick(&times));
        assert_eq!(pick("first"), Ok(vec![0]));
        assert_eq!(pick("last"), Ok(vec![3]));
        assert_eq!(pick("all"), Ok(vec![0, 1, 2, 3]));
        assert_eq!(pick("2"), Ok(vec![2]));
        assert_eq!(pick("time=0.29"), Ok(vec![2]));
        assert_eq!(pick("time=-7"), Ok(vec![0]));
        assert!(pick("4").unwrap_err().contains("0 to 3"));
        for wrong in ["time=", "time=NaN", "-1", "1.5", "frist", ""] {
            assert!(wrong.parse::<StepChoice>().is_err(), "{wrong}");
        }
        assert!(StepChoice::Last.pick(&[]).is_err());
    }
}
