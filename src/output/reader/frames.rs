//! Reading temporal VTKHDF PolyData, step by step: the layout is in `polydata.rs`.
//!
//! All parts of a step come as one, points in the order of the file. Only steps below `NSteps` are read:
//! what lies beyond was being written when somebody stopped it.

use super::numbers::components;
use super::{Numbers, open_file};
use crate::output::error::OutputError;
use crate::output::hyperslab::{open, read_rows, row_count};
use hdf5::{Dataset, File, Group};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// In the order of the layout's tables of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    Vertices = 0,
    Lines = 1,
    Polygons = 2,
    Strips = 3,
}

const KINDS: [&str; 4] = ["Vertices", "Lines", "Polygons", "Strips"];

/// A point array of a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameArray {
    pub name: String,
    pub components: usize,
    pub values: Numbers,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub time: f64,
    /// Three numbers for each point.
    pub points: Numbers,
    pub arrays: Vec<FrameArray>,
    /// For each kind, the points of all cells in a row.
    connectivity: [Vec<u32>; 4],
    /// For each kind, where each cell's points end.
    ends: [Vec<usize>; 4],
}

impl Frame {
    pub fn point_count(&self) -> usize {
        self.points.len() / 3
    }

    pub fn point(&self, index: usize) -> [f64; 3] {
        [0, 1, 2].map(|axis| self.points.get(3 * index + axis))
    }

    /// The corners of each cell of a kind; all are below `point_count`.
    pub fn cells(&self, kind: CellKind) -> impl Iterator<Item = &[u32]> {
        let (ids, ends) = (&self.connectivity[kind as usize], &self.ends[kind as usize]);
        ends.iter().scan(0, |start, &end| Some(&ids[std::mem::replace(start, end)..end]))
    }

    pub fn cell_count(&self, kind: CellKind) -> usize {
        self.ends[kind as usize].len()
    }

    pub fn array(&self, name: &str) -> Option<&FrameArray> {
        self.arrays.iter().find(|array| array.name == name)
    }
}

pub struct FrameFile {
    path: PathBuf,
    group: Group,
    times: Vec<f64>,
    /// Name, and numbers in a row if several.
    arrays: BTreeMap<String, Option<usize>>,
    /// Last, because closing it closes the group.
    _file: File,
}

impl FrameFile {
    pub fn open(path: &Path) -> Result<Self, OutputError> {
        let file = open_file(path)?;
        let damaged = |problem: &str| OutputError::damaged(path, problem);
        let group = file.group("VTKHDF").map_err(|_| damaged("has no VTKHDF group: no frames"))?;
        let steps = group.group("Steps").and_then(|steps| steps.attr("NSteps"));
        let steps = steps.and_then(|steps| steps.read_scalar::<i64>());
        let steps = steps.map_err(|_| damaged("has no steps: it is not a series of frames"))?;
        let steps = u64::try_from(steps).map_err(|_| damaged("has a negative number of steps"))?;
        let times = match steps {
            0 => Vec::new(),
            _ => read_rows(path, &open(path, &group, "Steps/Values")?, None, 0..steps)?,
        };
        let mut arrays = BTreeMap::new();
        if let (Ok(data), true) = (group.group("PointData"), steps > 0) {
            for name in data.member_names().map_err(OutputError::hdf5(path, "list the arrays"))? {
                let width = components(path, &open(path, &data, &name)?)?;
                arrays.insert(name, width);
            }
        }
        Ok(Self { path: path.to_path_buf(), group, times, arrays, _file: file })
    }

    /// Simulated time of each step, s.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Point arrays: name and numbers in a row.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, usize)> {
        self.arrays.iter().map(|(name, width)| (name.as_str(), width.unwrap_or(1)))
    }

    /// Points and cells of a step, without reading them.
    pub fn sizes(&self, step: usize) -> Result<(u64, [u64; 4]), OutputError> {
        let parts = self.parts(step)?;
        let points: i64 = self.integers("NumberOfPoints", parts.clone())?.iter().sum();
        let mut cells = [0; 4];
        for (count, kind) in cells.iter_mut().zip(KINDS) {
            let all: i64 = self.integers(&format!("{kind}/NumberOfCells"), parts.clone())?.iter().sum();
            *count = all as u64;
        }
        Ok((points as u64, cells))
    }

    /// Reads a step; `step` is below the number of `times`.
    pub fn read(&self, step: usize) -> Result<Frame, OutputError> {
        self.read_arrays(step, |_| true)
    }

    /// Reads a step with some of its arrays.
    pub fn read_arrays(&self, step: usize, wanted: impl Fn(&str) -> bool) -> Result<Frame, OutputError> {
        let time = *self.times.get(step).ok_or_else(|| {
            let problem = format!("has {} steps; step {step} (from 0) was wanted", self.times.len());
            OutputError::damaged(&self.path, problem)
        })?;
        let parts = self.parts(step)?;
        let counts = self.counts("NumberOfPoints", parts.clone())?;
        let points = counts.iter().sum::<u64>();
        let (connectivity, ends) = self.cells(step, parts, &counts)?;
        let first = self.offset("Steps/PointOffsets", step)?;
        let dataset = open(&self.path, &self.group, "Points")?;
        let positions = Numbers::read(&self.path, &dataset, Some(3), first..first.saturating_add(points))?;
        let mut arrays = Vec::new();
        for (name, width) in self.arrays.iter().filter(|(name, _)| wanted(name)) {
            let first = self.offset(&format!("Steps/PointDataOffsets/{name}"), step)?;
            let dataset = open(&self.path, &self.group, &format!("PointData/{name}"))?;
            let rows = first..first.saturating_add(points);
            let values = Numbers::read(&self.path, &dataset, *width, rows)?;
            arrays.push(FrameArray { name: name.clone(), components: width.unwrap_or(1), values });
        }
        Ok(Frame { time, points: positions, arrays, connectivity, ends })
    }

    /// All cells, their corners counted from the first point of the step; and for each, where its corners
    /// end.
    #[allow(clippy::type_complexity)] // two tables of four kinds
    fn cells(
        &self,
        step: usize,
        parts: std::ops::Range<u64>,
        points: &[u64],
    ) -> Result<([Vec<u32>; 4], [Vec<usize>; 4]), OutputError> {
        let damaged = |problem: String| OutputError::damaged(&self.path, problem);
        let step_row = |name: &str| -> Result<Vec<i64>, OutputError> {
            let dataset = open(&self.path, &self.group, name)?;
            read_rows(&self.path, &dataset, Some(4), step as u64..step as u64 + 1)
        };
        let (cell_rows, id_rows) = (step_row("Steps/CellOffsets")?, step_row("Steps/ConnectivityIdOffsets")?);
        let (mut connectivity, mut ends): ([Vec<u32>; 4], [Vec<usize>; 4]) = Default::default();
        for (kind, name) in KINDS.iter().enumerate() {
            let cells = self.counts(&format!("{name}/NumberOfCells"), parts.clone())?;
            let ids = self.counts(&format!("{name}/NumberOfConnectivityIds"), parts.clone())?;
            // Each part has one offset more than cells.
            let mut offset_row = cell_rows[kind] as u64 + parts.start;
            let mut id_row = id_rows[kind] as u64;
            let mut first_point = 0u64;
            for ((&cells, &ids), &points) in cells.iter().zip(&ids).zip(points) {
                let bounds = self.integers(&format!("{name}/Offsets"), offset_row..offset_row + cells + 1)?;
                let corners = self.integers(&format!("{name}/Connectivity"), id_row..id_row + ids)?;
                let sound = bounds.windows(2).all(|pair| pair[0] <= pair[1])
                    && bounds.first() == Some(&0)
                    && bounds.last() == Some(&(ids as i64))
                    && corners.iter().all(|&corner| (0..points as i64).contains(&corner))
                    && first_point + points <= u64::from(u32::MAX);
                if !sound {
                    return Err(damaged(format!(
                        "step {step}: its {} do not fit together",
                        name.to_lowercase()
                    )));
                }
                let before = connectivity[kind].len();
                ends[kind].extend(bounds[1..].iter().map(|&end| before + end as usize));
                connectivity[kind].extend(corners.iter().map(|&corner| (first_point + corner as u64) as u32));
                (offset_row, id_row) = (offset_row + cells + 1, id_row + ids);
                first_point += points;
            }
        }
        Ok((connectivity, ends))
    }

    fn parts(&self, step: usize) -> Result<std::ops::Range<u64>, OutputError> {
        let first = self.offset("Steps/PartOffsets", step)?;
        let count = if self.group.link_exists("Steps/NumberOfParts") {
            self.offset("Steps/NumberOfParts", step)?
        } else {
            1
        };
        Ok(first..first.saturating_add(count))
    }

    /// One number of a table that has a row for each step.
    fn offset(&self, name: &str, step: usize) -> Result<u64, OutputError> {
        let row = self.counts(name, step as u64..step as u64 + 1)?;
        Ok(row[0])
    }

    fn counts(&self, name: &str, rows: std::ops::Range<u64>) -> Result<Vec<u64>, OutputError> {
        let numbers = self.integers(name, rows)?;
        let count = |&number: &i64| u64::try_from(number).ok().filter(|&number| number < 1 << 40);
        let counts: Option<Vec<u64>> = numbers.iter().map(count).collect();
        counts.ok_or_else(|| OutputError::damaged(&self.path, format!("{name} holds an impossible number")))
    }

    fn integers(&self, name: &str, rows: std::ops::Range<u64>) -> Result<Vec<i64>, OutputError> {
        let dataset: Dataset = open(&self.path, &self.group, name)?;
        if rows.is_empty() {
            row_count(&self.path, &dataset, None)?;
        }
        read_rows(&self.path, &dataset, None, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::samples::{self, directory};
    use crate::output::{BodyFile, BodyOptions, ContactFile, ContactOptions, Spheres};
    use crate::scene::Body;
    use decomposition::Solo;

    #[test]
    fn a_frame_is_what_was_written() {
        let directory = directory("read-frames");
        let path = directory.join("bodies.vtkhdf");
        let options = BodyOptions { spheres: Spheres::Surface, refinement: 0, ..BodyOptions::default() };
        let mut file = BodyFile::create(&path, &Solo, options).unwrap();
        let bodies: Vec<Body> = (0..4).map(samples::body).collect();
        let moved = |body: &Body| {
            let mut body = body.clone();
            body.pose.position.x += 1.0;
            body
        };
        file.write(&Solo, 0.0, &bodies).unwrap();
        file.write(&Solo, 0.5, bodies.iter().map(moved).collect::<Vec<_>>().iter()).unwrap();
        file.write(&Solo, 1.0, &bodies[..1]).unwrap();
        file.close().unwrap();
        let file = FrameFile::open(&path).unwrap();
        assert_eq!(file.times(), [0.0, 0.5, 1.0]);
        let frames: Vec<Frame> = (0..3).map(|step| file.read(step).unwrap()).collect();
        let [first, second, third] = frames.as_slice() else { unreachable!() };
        assert_eq!(third.point_count(), 12);
        assert_eq!(third.cells(CellKind::Polygons).count(), 20);
        assert_eq!(
            first.cells(CellKind::Polygons).collect::<Vec<_>>(),
            second.cells(CellKind::Polygons).collect::<Vec<_>>()
        );
        for k in 0..first.point_count() {
            let (a, b) = (first.point(k), second.point(k));
            assert!((b[0] - a[0] - 1.0).abs() < 1e-6 && b[1] == a[1] && b[2] == a[2]);
        }
        assert_eq!(first.array("id"), second.array("id"));
        assert_eq!(third.array("id").unwrap().values, Numbers::Integer(vec![bodies[0].id.0 as i64; 12]));
        assert_eq!(third.array("velocity").unwrap().components, 3);
        assert_eq!(file.sizes(2).unwrap(), (12, [0, 0, 20, 0]));
        assert!(file.read(3).is_err());
    }

    #[test]
    fn a_file_without_a_step_and_a_foreign_file() {
        let directory = directory("read-no-frames");
        let path = directory.join("contacts.vtkhdf");
        ContactFile::create(&path, &Solo, ContactOptions::default()).unwrap().close().unwrap();
        let file = FrameFile::open(&path).unwrap();
        assert!(file.times().is_empty() && file.read(0).is_err());
        let other = directory.join("other.h5");
        hdf5::File::create(&other).unwrap().close().unwrap();
        let error = FrameFile::open(&other).err().unwrap().to_string();
        assert!(error.contains("other.h5") && error.contains("no frames"), "{error}");
    }
}
