//! Reading a packing that another program wrote: convex bodies by their vertices, with a loose and a settled
//! state.
//!
//! ```text
//! verts[n, m, 3]     vertices of each body in its own frame (centre of mass, principal axes), m
//! pos0[n, 3]  quat0[n, 4]                              the loose start; quaternions are w, x, y, z
//! settled[n, 13]     position, quaternion, velocity, angular velocity after settling
//! ```
//!
//! Masses and triangles, which such files also hold, follow from the vertices and are not read.

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
}

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

    /// Some bodies, settled or as they stood at the start.
    pub fn read(&self, rows: Range<u64>, settled: bool) -> Result<Vec<SceneRow>, OutputError> {
        let states = if settled { self.settled(rows.clone())? } else { self.initial(rows.clone())? };
        let selection = ndarray::s![rows.start as usize..rows.end as usize, .., ..];
        let numbers: ndarray::Array3<f64> =
            self.vertices.read_slice(selection).map_err(OutputError::hdf5(&self.path, "read verts"))?;
        let numbers: Vec<f64> = numbers.iter().copied().collect();
        self.check_finite("verts", &numbers)?;
        let row = |(k, state): (usize, SceneState)| {
            let own = &numbers[k * self.vertices_each * 3..(k + 1) * self.vertices_each * 3];
            SceneRow { vertices: own.chunks_exact(3).map(Vec3::from_column_slice).collect(), state }
        };
        Ok(states.into_iter().enumerate().map(row).collect())
    }

    fn initial(&self, rows: Range<u64>) -> Result<Vec<SceneState>, OutputError> {
        let positions = self.column("pos0", 3, rows.clone())?;
        let rotations = self.column("quat0", 4, rows)?;
        let at_rest = |(position, rotation): (&[f64], &[f64])| {
            let pose = Pose::new(self.rotation(rotation)?, Vec3::from_column_slice(position));
            Ok(SceneState { pose, velocity: Vec3::zeros(), angular_velocity: Vec3::zeros() })
        };
        positions.chunks_exact(3).zip(rotations.chunks_exact(4)).map(at_rest).collect()
    }

    fn settled(&self, rows: Range<u64>) -> Result<Vec<SceneState>, OutputError> {
        let numbers = self.column("settled", 13, rows)?;
        let state = |row: &[f64]| {
            Ok(SceneState {
                pose: Pose::new(self.rotation(&row[3..7])?, Vec3::from_column_slice(&row[..3])),
                velocity: Vec3::from_column_slice(&row[7..10]),
                angular_velocity: Vec3::from_column_slice(&row[10..13]),
            })
        };
        numbers.chunks_exact(13).map(state).collect()
    }

    fn column(&self, name: &str, width: usize, rows: Range<u64>) -> Result<Vec<f64>, OutputError> {
        let dataset = open(&self.path, &self.file, name)?;
        let there = row_count(&self.path, &dataset, Some(width))?;
        if there != self.rows {
            let problem = format!("{name} has {there} rows, verts has {}", self.rows);
            return Err(OutputError::damaged(&self.path, problem));
        }
        let numbers = read_rows(&self.path, &dataset, Some(width), rows)?;
        self.check_finite(name, &numbers)?;
        Ok(numbers)
    }

    fn check_finite(&self, name: &str, numbers: &[f64]) -> Result<(), OutputError> {
        if numbers.iter().all(|number| number.is_finite()) {
            return Ok(());
        }
        Err(OutputError::damaged(&self.path, format!("{name} holds a number that is not finite")))
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
