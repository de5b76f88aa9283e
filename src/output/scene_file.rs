//! Reading a packing that another program wrote: convex bodies by their vertices, with a loose and a settled
//! state.
//!
//! ```text
//! verts[n, m, 3]     vertices of each body in its own frame (centre of mass, principal axes), m
//! pos0[n, 3]  quat0[n, 4]                              the loose start; quaternions are w, x, y, z
//! settled[n, 13]     position, quaternion, velocity, angular velocity after settling
//! mass[n]  inertia[n, 3]    kg, and kg m² about the axes of that frame; either may be missing
//! tris[n, k, 3]      triangles of the surface by vertex; rows of −1 fill up; may be missing
//! ```
//!
//! What no body can have is refused here. Whether mass, moments and triangles are those of the vertices is
//! for who knows the density to say.

use super::error::OutputError;
use super::hyperslab::{open, read_rows, row_count};
use crate::geometry::{Pose, Quat, Vec3};
use hdf5::{Dataset, File};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Where a body of the file is and how it moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SceneState {
    pub pose: Pose,
    pub velocity: Vec3,
    pub angular_velocity: Vec3,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SceneRow {
    pub vertices: Vec<Vec3>,
    pub state: SceneState,
    /// Positive.
    pub mass: Option<f64>,
    /// Moments that a body can have.
    pub inertia: Option<Vec3>,
    /// Inside the triangles, in any sense of turning.
    pub volume: Option<f64>,
}

/// Share of the largest moment by which one may exceed the sum of the two others, for rounding.
const MOMENT_ROUNDING: f64 = 1e-6;

pub struct SceneFile {
    path: PathBuf,
    vertices: Dataset,
    rows: u64,
    vertices_each: usize,
    /// Last, because closing it closes what is in it.
    file: File,
}

impl SceneFile {
    /// Independent of other ranks, as is everything here.
    pub fn open(path: &Path) -> Result<Self, OutputError> {
        hdf5::silence_errors(true);
        let file = File::open(path).map_err(OutputError::hdf5(path, "open"))?;
        let vertices = open(path, &file, "verts")?;
        let shape = vertices.get_shape().map_err(OutputError::hdf5(path, "read the size of verts"))?;
        let [rows, vertices_each, 3] = shape.as_slice() else {
            let problem = format!("verts has the shape {shape:?}; [bodies, vertices, 3] was expected");
            return Err(OutputError::damaged(path, problem));
        };
        let (rows, vertices_each) = (*rows as u64, *vertices_each);
        Ok(Self { path: path.to_path_buf(), vertices, rows, vertices_each, file })
    }

    /// Number of bodies.
    pub fn count(&self) -> u64 {
        self.rows
    }

    pub fn vertices_each(&self) -> u64 {
        self.vertices_each as u64
    }

    /// Some bodies, settled or as they stood at the start.
    pub fn read(&self, rows: Range<u64>, settled: bool) -> Result<Vec<SceneRow>, OutputError> {
        let states = if settled { self.settled(rows.clone())? } else { self.initial(rows.clone())? };
        let selection = ndarray::s![rows.start as usize..rows.end as usize, .., ..];
        let numbers: ndarray::Array3<f64> =
            self.vertices.read_slice(selection).map_err(OutputError::hdf5(&self.path, "read verts"))?;
        let numbers: Vec<f64> = numbers.iter().copied().collect();
        self.check_finite("verts", rows.start, 3 * self.vertices_each, &numbers)?;
        let (masses, moments) = (self.masses(rows.clone())?, self.moments(rows.clone())?);
        let triangles = self.triangles(rows.clone())?;
        let row = |(k, state): (usize, SceneState)| {
            let own = &numbers[k * self.vertices_each * 3..(k + 1) * self.vertices_each * 3];
            let vertices: Vec<Vec3> = own.chunks_exact(3).map(Vec3::from_column_slice).collect();
            let volume = triangles.as_ref().map(|(each, all)| {
                self.volume(rows.start + k as u64, &vertices, &all[k * each * 3..(k + 1) * each * 3])
            });
            let (mass, inertia) = (masses.as_ref().map(|all| all[k]), moments.as_ref().map(|all| all[k]));
            Ok(SceneRow { vertices, state, mass, inertia, volume: volume.transpose()? })
        };
        states.into_iter().enumerate().map(row).collect()
    }

    fn masses(&self, rows: Range<u64>) -> Result<Option<Vec<f64>>, OutputError> {
        if !self.file.link_exists("mass") {
            return Ok(None);
        }
        let masses: Vec<f64> = self.numbers("mass", None, rows.clone())?;
        match masses.iter().position(|mass| *mass <= 0.0) {
            Some(k) => Err(self.wrong("mass", rows.start + k as u64, format!("{} kg is no mass", masses[k]))),
            None => Ok(Some(masses)),
        }
    }

    fn moments(&self, rows: Range<u64>) -> Result<Option<Vec<Vec3>>, OutputError> {
        if !self.file.link_exists("inertia") {
            return Ok(None);
        }
        let numbers: Vec<f64> = self.numbers("inertia", Some(3), rows.clone())?;
        let moments: Vec<Vec3> = numbers.chunks_exact(3).map(Vec3::from_column_slice).collect();
        let possible = |moments: &Vec3| {
            moments.min() > 0.0 && 2.0 * moments.max() <= moments.sum() + MOMENT_ROUNDING * moments.max()
        };
        match moments.iter().position(|moments| !possible(moments)) {
            Some(k) => {
                let found = moments[k].as_slice();
                let problem = format!(
                    "{found:?} kg m² are no moments of a body: each is positive and at most the sum of the others"
                );
                Err(self.wrong("inertia", rows.start + k as u64, problem))
            }
            None => Ok(Some(moments)),
        }
    }

    /// How many each body has, and their vertices, body by body.
    fn triangles(&self, rows: Range<u64>) -> Result<Option<(usize, Vec<i64>)>, OutputError> {
        if !self.file.link_exists("tris") {
            return Ok(None);
        }
        let dataset = open(&self.path, &self.file, "tris")?;
        let shape = dataset.get_shape().map_err(OutputError::hdf5(&self.path, "read the size of tris"))?;
        let each = match shape.as_slice() {
            [bodies, each, 3] if *bodies as u64 == self.rows => *each,
            _ => {
                let problem =
                    format!("tris has the shape {shape:?}; [{}, triangles, 3] was expected", self.rows);
                return Err(OutputError::damaged(&self.path, problem));
            }
        };
        let selection = ndarray::s![rows.start as usize..rows.end as usize, .., ..];
        let read: ndarray::Array3<i64> =
            dataset.read_slice(selection).map_err(OutputError::hdf5(&self.path, "read tris"))?;
        Ok(Some((each, read.iter().copied().collect())))
    }

    /// `V = |Σ a · (b × c)| / 6` over the triangles, by the divergence theorem.
    fn volume(&self, row: u64, vertices: &[Vec3], triangles: &[i64]) -> Result<f64, OutputError> {
        let mut sixfold = 0.0;
        for triangle in triangles.chunks_exact(3).filter(|triangle| *triangle != [-1; 3]) {
            let corner = |k: usize| {
                let found = usize::try_from(triangle[k]).ok().and_then(|index| vertices.get(index));
                found.ok_or_else(|| {
                    let last = vertices.len().saturating_sub(1);
                    self.wrong("tris", row, format!("{} is no vertex, they go from 0 to {last}", triangle[k]))
                })
            };
            sixfold += corner(0)?.dot(&corner(1)?.cross(corner(2)?));
        }
        Ok(sixfold.abs() / 6.0)
    }

    fn wrong(&self, name: &str, row: u64, problem: String) -> OutputError {
        OutputError::damaged(&self.path, format!("{name}, row {row}: {problem}"))
    }

    fn initial(&self, rows: Range<u64>) -> Result<Vec<SceneState>, OutputError> {
        let positions = self.numbers("pos0", Some(3), rows.clone())?;
        let rotations = self.numbers("quat0", Some(4), rows)?;
        let at_rest = |(position, rotation): (&[f64], &[f64])| {
            let pose = Pose::new(self.rotation(rotation)?, Vec3::from_column_slice(position));
            Ok(SceneState { pose, velocity: Vec3::zeros(), angular_velocity: Vec3::zeros() })
        };
        positions.chunks_exact(3).zip(rotations.chunks_exact(4)).map(at_rest).collect()
    }

    fn settled(&self, rows: Range<u64>) -> Result<Vec<SceneState>, OutputError> {
        let numbers = self.numbers("settled", Some(13), rows)?;
        let state = |row: &[f64]| {
            Ok(SceneState {
                pose: Pose::new(self.rotation(&row[3..7])?, Vec3::from_column_slice(&row[..3])),
                velocity: Vec3::from_column_slice(&row[7..10]),
                angular_velocity: Vec3::from_column_slice(&row[10..13]),
            })
        };
        numbers.chunks_exact(13).map(state).collect()
    }

    fn numbers(&self, name: &str, width: Option<usize>, rows: Range<u64>) -> Result<Vec<f64>, OutputError> {
        let dataset = open(&self.path, &self.file, name)?;
        let there = row_count(&self.path, &dataset, width)?;
        if there != self.rows {
            let problem = format!("{name} has {there} rows, verts has {}", self.rows);
            return Err(OutputError::damaged(&self.path, problem));
        }
        let numbers = read_rows(&self.path, &dataset, width, rows.clone())?;
        self.check_finite(name, rows.start, width.unwrap_or(1), &numbers)?;
        Ok(numbers)
    }

    /// Rows of `width` numbers from row `first` on.
    fn check_finite(&self, name: &str, first: u64, width: usize, numbers: &[f64]) -> Result<(), OutputError> {
        match numbers.iter().position(|number| !number.is_finite()) {
            None => Ok(()),
            Some(k) => {
                let row = first + (k / width.max(1)) as u64;
                Err(self.wrong(name, row, format!("{} is not a finite number", numbers[k])))
            }
        }
    }

    fn rotation(&self, numbers: &[f64]) -> Result<Quat, OutputError> {
        let [w, x, y, z] = [0, 1, 2, 3].map(|k| numbers[k]);
        let quaternion = nalgebra::Quaternion::new(w, x, y, z);
        if (quaternion.norm() - 1.0).abs() > 1e-3 {
            return Err(OutputError::damaged(&self.path, format!("{numbers:?} is not a unit quaternion")));
        }
        Ok(Quat::new_normalize(quaternion))
    }
}
