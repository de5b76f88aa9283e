//! The files that an export writes: one table, one archive, or a grid for each step and a list of them.

use super::InspectError;
use super::export::{Done, Format};
use super::npz;
use super::rows::{RowColumn, Rows};
use super::vtu::{self, Grid};
use crate::output::reader::Numbers;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// One step, ready to be written.
pub(super) struct Exported {
    pub step: u64,
    pub time: f64,
    pub rows: Rows,
    pub grid: Option<Grid>,
}

pub(super) fn create(path: &Path) -> Result<BufWriter<File>, InspectError> {
    File::create(path).map(BufWriter::new).map_err(InspectError::io(path, "create"))
}

/// The files under way, step after step.
pub(super) struct Target<'a> {
    format: Format,
    out: &'a Path,
    steps: usize,
    csv: Option<BufWriter<File>>,
    /// For NPZ: all rows, and of each step its number, time and first row.
    rows: Rows,
    numbers: Vec<u64>,
    times: Vec<f64>,
    first_rows: Vec<u64>,
    files: Vec<PathBuf>,
    collected: Vec<(f64, String)>,
}

impl<'a> Target<'a> {
    pub fn new(format: Format, out: &'a Path, steps: usize) -> Self {
        Self {
            format,
            out,
            steps,
            csv: None,
            rows: Rows::default(),
            numbers: Vec::new(),
            times: Vec::new(),
            first_rows: Vec::new(),
            files: Vec::new(),
            collected: Vec::new(),
        }
    }

    pub fn add(&mut self, exported: Exported) -> Result<(), InspectError> {
        let Exported { step, time, rows, grid } = exported;
        match self.format {
            Format::Csv => {
                let fresh = self.csv.is_none();
                let csv = match &mut self.csv {
                    Some(csv) => csv,
                    none => none.insert(create(self.out)?),
                };
                let heading = if fresh { rows.write_heading(&["step", "time"], csv) } else { Ok(()) };
                let written = heading.and_then(|()| rows.write_rows(&format!("{step},{time:?}"), csv));
                written.map_err(InspectError::io(self.out, "write"))
            }
            Format::Npz => {
                self.numbers.push(step);
                self.times.push(time);
                self.first_rows.push(self.rows.count() as u64);
                self.rows.append(&rows);
                Ok(())
            }
            Format::Vtu => {
                let Some(grid) = grid else { return Ok(()) };
                let path = if self.steps > 1 { numbered(self.out, step) } else { self.out.to_path_buf() };
                let mut file = create(&path)?;
                let written = grid.write(time, &mut file).and_then(|()| file.flush());
                written.map_err(InspectError::io(&path, "write"))?;
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                self.collected.push((time, name));
                self.files.push(path);
                Ok(())
            }
        }
    }

    pub fn finish(mut self, done: &mut Done) -> Result<(), InspectError> {
        match self.format {
            Format::Csv => {
                if let Some(mut csv) = self.csv {
                    csv.flush().map_err(InspectError::io(self.out, "write"))?;
                    self.files.push(self.out.to_path_buf());
                }
            }
            Format::Npz => {
                let mut columns = vec![
                    RowColumn::new("step", 1, Numbers::Unsigned(self.numbers)),
                    RowColumn::new("time", 1, Numbers::Double(self.times)),
                    RowColumn::new("first_row", 1, Numbers::Unsigned(self.first_rows)),
                ];
                columns.extend(self.rows.columns);
                let mut file = create(self.out)?;
                let written = npz::write(&columns, &mut file).and_then(|()| file.flush());
                written.map_err(InspectError::io(self.out, "write"))?;
                self.files.push(self.out.to_path_buf());
            }
            Format::Vtu if self.steps > 1 => {
                let path = self.out.with_extension("pvd");
                let text = vtu::collection(&self.collected);
                std::fs::write(&path, text).map_err(InspectError::io(&path, "write"))?;
                self.files.push(path);
            }
            Format::Vtu => {}
        }
        done.files.extend(self.files);
        Ok(())
    }
}

/// `bodies.vtu` and step 7 make `bodies_000007.vtu`.
fn numbered(path: &Path, step: u64) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or("vtu".into(), |extension| extension.to_string_lossy());
    path.with_file_name(format!("{stem}_{step:06}.{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_several_steps_are_numbered() {
        assert_eq!(numbered(Path::new("a/b.vtu"), 7), Path::new("a/b_000007.vtu"));
    }
}
