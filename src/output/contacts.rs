//! `contacts.vtkhdf`: the contact network, step by step, as points or as lines between the bodies' centres.

use super::error::OutputError;
use super::image::Image;
use super::piece::{Array, LINES, Precision, VERTICES};
use super::polydata::{Maker, PolyDataFile};
use crate::geometry::Vec3;
use crate::words::{choices, choices_or_none};
use decomposition::Comm;
use std::path::Path;

/// One contact point. Each is given by exactly one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContactRow {
    /// The two bodies. Rows of one pair follow each other.
    pub ids: [u64; 2],
    /// World, m.
    pub point: Vec3,
    /// World, unit, from the first body to the second or the other way round, as the contact room has it.
    pub normal: Vec3,
    /// World, N s, over the last time step.
    pub impulse: Vec3,
    /// m; negative in penetration.
    pub gap: f64,
    /// Where a line of force begins and ends: the centres of mass; for a body without one (a wall), the
    /// contact point.
    pub centres: [Vec3; 2],
}

choices! {
    /// What stands for a contact. Of a line, impulse and force are the pair's sums, normal and gap those of
    /// its deepest point.
    #[derive(Default)]
    pub enum ContactDrawing {
        #[default]
        Points = "points", "every contact point, with normal, impulse and gap";
        Chains = "chains", "a line between the centres of every touching pair: force chains";
    }
}
choices_or_none!(ContactDrawing, "none", "not at all");

#[derive(Clone, Copy, Debug)]
pub struct ContactOptions {
    pub drawing: ContactDrawing,
    pub precision: Precision,
    /// Deflate level 1–9, 0 for none.
    pub compression: u8,
}

impl Default for ContactOptions {
    fn default() -> Self {
        Self { drawing: ContactDrawing::Points, precision: Precision::Single, compression: 4 }
    }
}

pub struct ContactFile {
    file: PolyDataFile,
    drawing: ContactDrawing,
}

impl ContactFile {
    /// Collective: creates or replaces the file.
    pub fn create(path: &Path, comm: &dyn Comm, options: ContactOptions) -> Result<Self, OutputError> {
        Self::make(path, comm, options, PolyDataFile::create)
    }

    /// Collective: opens a file in order to add steps; an error if it holds other arrays.
    pub fn open(path: &Path, comm: &dyn Comm, options: ContactOptions) -> Result<Self, OutputError> {
        Self::make(path, comm, options, PolyDataFile::open)
    }

    fn make(path: &Path, comm: &dyn Comm, options: ContactOptions, make: Maker) -> Result<Self, OutputError> {
        let array = |name, components, integer| Array { name, components, integer };
        let arrays = vec![
            array("body_ids", 2, true),
            array("normal", 3, false),
            array("impulse", 3, false),
            array("force", 3, false),
            array("normal_force", 1, false),
            array("gap", 1, false),
        ];
        let file = make(path, comm, arrays, options.precision, options.compression)?;
        Ok(Self { file, drawing: options.drawing })
    }

    /// Collective: adds a step with the contacts that this rank gives, and flushes.
    ///
    /// Forces are impulses divided by `time_step`.
    pub fn write(
        &mut self,
        comm: &dyn Comm,
        time: f64,
        time_step: f64,
        contacts: &[ContactRow],
    ) -> Result<(), OutputError> {
        let mut piece = self.file.piece();
        let merged;
        let rows = match self.drawing {
            ContactDrawing::Points => contacts,
            ContactDrawing::Chains => {
                merged = pairs(contacts);
                &merged
            }
        };
        for row in rows {
            let copies = match self.drawing {
                ContactDrawing::Points => {
                    let point = piece.point(&row.point);
                    piece.cells[VERTICES].push([point]);
                    1
                }
                ContactDrawing::Chains => {
                    let ends = row.centres.map(|centre| piece.point(&centre));
                    piece.cells[LINES].push(ends);
                    2
                }
            };
            let force = row.impulse / time_step;
            for _ in 0..copies {
                row.ids.iter().for_each(|&id| piece.data[0].push_integer(id as i64));
                piece.data[1].extend(row.normal.as_slice());
                piece.data[2].extend(row.impulse.as_slice());
                piece.data[3].extend(force.as_slice());
                piece.data[4].push(force.dot(&row.normal).abs());
                piece.data[5].push(row.gap);
            }
        }
        self.file.write(comm, time, piece)
    }

    /// Collective: see [`Image`]. Rank 0 gets it.
    pub fn image(&mut self, comm: &dyn Comm) -> Result<Option<Image>, OutputError> {
        self.file.image(comm)
    }

    /// Steps in the file.
    pub fn steps(&self) -> u64 {
        self.file.steps()
    }

    /// Whether HDF5 made every transfer collectively, as it was asked to.
    pub fn was_collective(&self) -> bool {
        self.file.was_collective()
    }

    /// Collective.
    pub fn close(self) -> Result<(), OutputError> {
        self.file.close()
    }
}

/// One row for each run of rows with the same bodies.
fn pairs(contacts: &[ContactRow]) -> Vec<ContactRow> {
    let same_pair = |a: &ContactRow, b: &ContactRow| a.ids == b.ids;
    let merge = |points: &[ContactRow]| {
        let deepest = points.iter().fold(points[0], |best, row| if row.gap < best.gap { *row } else { best });
        ContactRow { impulse: points.iter().map(|row| row.impulse).sum(), ..deepest }
    };
    contacts.chunk_by(same_pair).map(merge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ids: [u64; 2], push: f64, gap: f64) -> ContactRow {
        ContactRow {
            ids,
            point: Vec3::new(gap, 0.0, 0.0),
            normal: Vec3::z(),
            impulse: Vec3::z() * push,
            gap,
            centres: [Vec3::zeros(), Vec3::x()],
        }
    }

    #[test]
    fn the_points_of_a_pair_make_one_line() {
        let rows = [row([1, 2], 1.0, 0.5), row([1, 2], 2.0, -0.25), row([1, 3], 4.0, 0.0)];
        let lines = pairs(&rows);
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].impulse.z, lines[0].gap, lines[0].point.x), (3.0, -0.25, -0.25));
        assert_eq!(lines[1], rows[2]);
        assert!(pairs(&[]).is_empty());
    }
}
