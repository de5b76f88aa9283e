//! Writing FCLib files: the same names, types and shapes as the library of that name writes.
//!
//! Matrices go out by rows. No times are kept in the file, so that equal problems give equal bytes.

use super::{COMPLIANCE, FclibFile, FclibInfo, FclibProblem, FclibSolution, TANGENTIAL_COMPLIANCE};
use crate::output::OutputError;
use crate::solve::assembled::Sparse;
use hdf5::{File, Group, H5Type, h5check};
use hdf5_sys::h5d::{H5Dclose, H5Dcreate2, H5Dwrite};
use hdf5_sys::h5i::hid_t;
use hdf5_sys::h5p::{H5P_CLS_DATASET_CREATE, H5P_DEFAULT, H5Pclose, H5Pcreate, H5Pset_obj_track_times};
use hdf5_sys::h5s::{H5S_ALL, H5S_SCALAR, H5Sclose, H5Screate};
use hdf5_sys::h5t::{H5T_C_S1, H5Tclose, H5Tcopy, H5Tset_size};
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// Writes a file, in place of one that is there; it appears when it is whole.
pub fn write_fclib(path: &Path, content: &FclibFile) -> Result<(), OutputError> {
    replacing(path, |partial| {
        let file = File::create(partial).map_err(OutputError::hdf5(path, "create"))?;
        let writer = Writer { path };
        match &content.problem {
            FclibProblem::Local(problem) => {
                let group = writer.group(&file, "fclib_local")?;
                writer.numbers(&group, "spacedim", &[problem.dimension as i32])?;
                writer.matrix(&group, "W", &problem.w)?;
                let vectors = writer.group(&group, "vectors")?;
                writer.numbers(&vectors, "q", &problem.q)?;
                writer.numbers(&vectors, "mu", &problem.mu)?;
                if let Some(bilateral) = &problem.bilateral {
                    writer.matrix(&group, "V", &bilateral.v)?;
                    writer.matrix(&group, "R", &bilateral.r)?;
                    writer.numbers(&vectors, "s", &bilateral.s)?;
                }
                writer.info(&group, &content.info)?;
            }
            FclibProblem::Global(problem) => {
                let group = writer.group(&file, "fclib_global")?;
                writer.numbers(&group, "spacedim", &[problem.dimension as i32])?;
                writer.matrix(&group, "M", &problem.m)?;
                writer.matrix(&group, "H", &problem.h)?;
                let vectors = writer.group(&group, "vectors")?;
                writer.numbers(&vectors, "f", &problem.f)?;
                writer.numbers(&vectors, "w", &problem.w)?;
                writer.numbers(&vectors, "mu", &problem.mu)?;
                let compliances = [
                    (COMPLIANCE, &problem.compliance),
                    (TANGENTIAL_COMPLIANCE, &problem.tangential_compliance),
                ];
                for (name, list) in compliances.into_iter().filter(|(_, list)| !list.is_empty()) {
                    writer.numbers(&vectors, name, list)?;
                }
                if let Some(bilateral) = &problem.bilateral {
                    writer.matrix(&group, "G", &bilateral.g)?;
                    writer.numbers(&vectors, "b", &bilateral.b)?;
                }
                writer.info(&group, &content.info)?;
            }
        }
        if let Some(solution) = &content.solution {
            writer.solution(&file, "solution", solution)?;
        }
        if !content.guesses.is_empty() {
            let group = writer.group(&file, "guesses")?;
            writer.numbers(&group, "number_of_guesses", &[content.guesses.len() as i32])?;
            for (index, guess) in content.guesses.iter().enumerate() {
                writer.solution(&group, &(index + 1).to_string(), guess)?;
            }
        }
        file.close().map_err(OutputError::hdf5(path, "close"))
    })
}

/// Puts a solution into a file, in place of one that is there. Everything else stays.
pub fn write_fclib_solution(path: &Path, solution: &FclibSolution) -> Result<(), OutputError> {
    replacing(path, |partial| {
        std::fs::copy(path, partial).map_err(OutputError::io(path, "copy"))?;
        let file = File::open_rw(partial).map_err(OutputError::hdf5(path, "open for writing"))?;
        if file.link_exists("solution") {
            file.unlink("solution").map_err(OutputError::hdf5(path, "replace /solution in"))?;
        }
        Writer { path }.solution(&file, "solution", solution)?;
        file.close().map_err(OutputError::hdf5(path, "close"))
    })
}

/// Lets `write` make a file beside `path`, which then takes its place; on failure nothing is left.
fn replacing(path: &Path, write: impl FnOnce(&Path) -> Result<(), OutputError>) -> Result<(), OutputError> {
    hdf5::silence_errors(true);
    let partial = PathBuf::from(format!("{}.partial", path.display()));
    let written = write(&partial)
        .and_then(|()| std::fs::rename(&partial, path).map_err(OutputError::io(path, "rename")));
    if written.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    written
}

struct Writer<'a> {
    path: &'a Path,
}

impl Writer<'_> {
    fn group(&self, parent: &Group, name: &str) -> Result<Group, OutputError> {
        parent.create_group(name).map_err(OutputError::hdf5(self.path, format!("create the group {name}")))
    }

    fn numbers<T: H5Type>(&self, parent: &Group, name: &str, values: &[T]) -> Result<(), OutputError> {
        let error = || OutputError::hdf5(self.path, format!("write the dataset {name}"));
        let dataset = parent.new_dataset::<T>().shape([values.len()]).create(name).map_err(error())?;
        if values.is_empty() {
            return Ok(());
        }
        dataset.write_raw(values).map_err(error())
    }

    fn matrix(&self, parent: &Group, name: &str, matrix: &Sparse) -> Result<(), OutputError> {
        let most = i32::MAX as usize;
        if matrix.stored() > most || matrix.rows > most || matrix.columns > most {
            let problem = format!("{name} has {} entries, FCLib files hold at most {most}", matrix.stored());
            return Err(OutputError::misuse(self.path, problem));
        }
        let group = self.group(parent, name)?;
        self.numbers(&group, "nzmax", &[matrix.stored() as i32])?;
        self.numbers(&group, "m", &[matrix.rows as i32])?;
        self.numbers(&group, "n", &[matrix.columns as i32])?;
        self.numbers(&group, "nz", &[-2])?;
        let starts: Vec<i32> = matrix.starts().iter().map(|&start| start as i32).collect();
        let indices: Vec<i32> = matrix.indices().iter().map(|&index| index as i32).collect();
        self.numbers(&group, "p", &starts)?;
        self.numbers(&group, "i", &indices)?;
        self.numbers(&group, "x", matrix.values())
    }

    fn solution(&self, parent: &Group, name: &str, solution: &FclibSolution) -> Result<(), OutputError> {
        let group = self.group(parent, name)?;
        for (name, values) in [("v", &solution.v), ("l", &solution.l)] {
            if !values.is_empty() {
                self.numbers(&group, name, values)?;
            }
        }
        self.numbers(&group, "u", &solution.u)?;
        self.numbers(&group, "r", &solution.r)
    }

    fn info(&self, parent: &Group, info: &FclibInfo) -> Result<(), OutputError> {
        let parts =
            [("title", &info.title), ("description", &info.description), ("math_info", &info.math_info)];
        if parts.iter().all(|(_, text)| text.is_none()) {
            return Ok(());
        }
        let group = self.group(parent, "info")?;
        for (name, text) in parts {
            if let Some(text) = text {
                let error = OutputError::hdf5(self.path, format!("write {name}"));
                write_text(&group, name, text).map_err(error)?;
            }
        }
        Ok(())
    }
}

/// A scalar string of fixed length that ends with a zero, which the `hdf5` crate cannot write.
fn write_text(group: &Group, name: &str, text: &str) -> hdf5::Result<()> {
    // A zero inside would end it there.
    let text: Vec<u8> = text.bytes().filter(|&byte| byte != 0).chain([0]).collect();
    let name = CString::new(name).map_err(|_| hdf5::Error::Internal("a name with a zero".into()))?;
    hdf5::sync::sync(|| {
        // SAFETY: all identifiers are made here and closed here; `text` has as many bytes as the type says.
        unsafe {
            let kind = h5check(H5Tcopy(*H5T_C_S1))?;
            let space = h5check(H5Screate(H5S_SCALAR));
            let list = h5check(H5Pcreate(*H5P_CLS_DATASET_CREATE));
            let result = (|| {
                let (space, list): (hid_t, hid_t) = (space.clone()?, list.clone()?);
                h5check(H5Tset_size(kind, text.len()))?;
                h5check(H5Pset_obj_track_times(list, 0))?;
                let name = name.as_ptr();
                let dataset =
                    h5check(H5Dcreate2(group.id(), name, kind, space, H5P_DEFAULT, list, H5P_DEFAULT))?;
                let written =
                    h5check(H5Dwrite(dataset, kind, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.as_ptr().cast()));
                H5Dclose(dataset);
                written.map(|_| ())
            })();
            H5Tclose(kind);
            if let Ok(space) = space {
                H5Sclose(space);
            }
            if let Ok(list) = list {
                H5Pclose(list);
            }
            result
        }
    })
}
