//! Reading FCLib files that may be anything.

use super::{COMPLIANCE, FclibFile, FclibInfo, FclibProblem, FclibSolution, TANGENTIAL_COMPLIANCE};
use crate::output::OutputError;
use crate::solve::assembled::{
    GlobalBilateral, GlobalProblem, LocalBilateral, LocalProblem, ProblemError, Sparse,
};
use hdf5::types::TypeDescriptor;
use hdf5::{Dataset, File, Group, H5Type, h5check};
use hdf5_sys::h5d::H5Dread;
use hdf5_sys::h5p::H5P_DEFAULT;
use hdf5_sys::h5s::H5S_ALL;
use std::path::Path;

/// Deflate, the densest filter that HDF5 has, packs at most about 1030 bytes into one.
const DENSEST: u64 = 1100;
/// Starting points that a file may offer.
const MOST_GUESSES: i32 = 1000;

/// Reads a problem and what else the file has. If both forms are there, the global one: solutions belong to
/// it.
pub fn read_fclib(path: &Path) -> Result<FclibFile, OutputError> {
    let bytes = std::fs::metadata(path).map_err(OutputError::io(path, "read"))?.len();
    hdf5::silence_errors(true);
    let file = File::open(path).map_err(OutputError::hdf5(path, "open as an HDF5 file"))?;
    let reader = Reader { path, bytes };
    let (problem, info) = if file.link_exists("fclib_global") {
        let group = reader.group(&file, "fclib_global")?;
        (FclibProblem::Global(reader.global(&group)?), reader.info(&group)?)
    } else if file.link_exists("fclib_local") {
        let group = reader.group(&file, "fclib_local")?;
        (FclibProblem::Local(reader.local(&group)?), reader.info(&group)?)
    } else {
        let problem = "found neither /fclib_local nor /fclib_global, expected a contact problem of FCLib";
        return Err(OutputError::damaged(path, problem));
    };
    let solution = match file.link_exists("solution") {
        true => Some(reader.solution(&reader.group(&file, "solution")?, &problem)?),
        false => None,
    };
    let guesses = reader.guesses(&file, &problem)?;
    Ok(FclibFile { problem, info, solution, guesses })
}

struct Reader<'a> {
    path: &'a Path,
    /// Of the file.
    bytes: u64,
}

impl Reader<'_> {
    fn damaged(&self, problem: impl Into<String>) -> OutputError {
        OutputError::damaged(self.path, problem)
    }

    /// A problem inside a group, said with the group's name.
    fn wrong(&self, parent: &Group) -> impl Fn(ProblemError) -> OutputError {
        let name = parent.name();
        move |problem| self.damaged(format!("{name}: {problem}"))
    }

    fn group(&self, parent: &Group, name: &str) -> Result<Group, OutputError> {
        if !parent.link_exists(name) {
            return Err(self.damaged(format!("{} is missing, expected a group", joined(parent, name))));
        }
        let action = format!("open the group {}", joined(parent, name));
        parent.group(name).map_err(OutputError::hdf5(self.path, action))
    }

    fn dataset(&self, parent: &Group, name: &str) -> Result<Dataset, OutputError> {
        if !parent.link_exists(name) {
            return Err(self.damaged(format!("{} is missing, expected a dataset", joined(parent, name))));
        }
        let action = format!("open the dataset {}", joined(parent, name));
        parent.dataset(name).map_err(OutputError::hdf5(self.path, action))
    }

    /// The numbers of a dataset with one dimension (or of a scalar).
    fn numbers<T: H5Type>(&self, parent: &Group, name: &str, kind: &str) -> Result<Vec<T>, OutputError> {
        let dataset = self.dataset(parent, name)?;
        let name = joined(parent, name);
        let error = |action: &str| OutputError::hdf5(self.path, format!("{action} {name}"));
        let descriptor =
            dataset.dtype().and_then(|dtype| dtype.to_descriptor()).map_err(error("read the type of"))?;
        let fits = match descriptor {
            TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_) => true,
            TypeDescriptor::Float(_) => kind == "numbers",
            _ => false,
        };
        if !fits {
            return Err(self.damaged(format!("{name} holds values of type {descriptor}, expected {kind}")));
        }
        let shape = dataset.get_shape().map_err(error("read the size of"))?;
        if shape.len() > 1 {
            return Err(self.damaged(format!("{name} has {} dimensions, expected one", shape.len())));
        }
        let count = shape.first().copied().unwrap_or(1) as u64;
        if count.saturating_mul(descriptor.size() as u64) > self.bytes.saturating_mul(DENSEST) {
            let problem = format!(
                "{name} says it has {count} values, more than a file of {} bytes can hold",
                self.bytes
            );
            return Err(self.damaged(problem));
        }
        dataset.read_raw::<T>().map_err(error("read"))
    }

    fn integers(&self, parent: &Group, name: &str) -> Result<Vec<i32>, OutputError> {
        self.numbers(parent, name, "integers")
    }

    fn reals(&self, parent: &Group, name: &str) -> Result<Vec<f64>, OutputError> {
        self.numbers(parent, name, "numbers")
    }

    fn integer(&self, parent: &Group, name: &str) -> Result<i32, OutputError> {
        match self.integers(parent, name)?.as_slice() {
            [value] => Ok(*value),
            values => {
                let name = joined(parent, name);
                Err(self.damaged(format!("{name} has {} values, expected one", values.len())))
            }
        }
    }

    fn sized(&self, parent: &Group, name: &str, expected: usize) -> Result<Vec<f64>, OutputError> {
        let values = self.reals(parent, name)?;
        if values.len() == expected {
            return Ok(values);
        }
        let name = joined(parent, name);
        Err(self.damaged(format!("{name} has {} values, expected {expected}", values.len())))
    }

    fn dimension(&self, group: &Group) -> Result<usize, OutputError> {
        let dimension = self.integer(group, "spacedim")?;
        usize::try_from(dimension)
            .ok()
            .filter(|dimension| (2..=3).contains(dimension))
            .ok_or_else(|| self.wrong(group)(ProblemError::Dimension(dimension.into())))
    }

    fn local(&self, group: &Group) -> Result<LocalProblem, OutputError> {
        let dimension = self.dimension(group)?;
        let vectors = self.group(group, "vectors")?;
        let q = self.reals(&vectors, "q")?;
        let bilateral = if group.link_exists("V") || group.link_exists("R") {
            let s = self.reals(&vectors, "s")?;
            Some(LocalBilateral {
                v: self.matrix(group, "V", q.len(), s.len())?,
                r: self.matrix(group, "R", s.len(), s.len())?,
                s,
            })
        } else {
            None
        };
        let problem = LocalProblem {
            dimension,
            w: self.matrix(group, "W", q.len(), q.len())?,
            mu: self.reals(&vectors, "mu")?,
            q,
            bilateral,
        };
        problem.check().map_err(self.wrong(group))?;
        Ok(problem)
    }

    fn global(&self, group: &Group) -> Result<GlobalProblem, OutputError> {
        let dimension = self.dimension(group)?;
        let vectors = self.group(group, "vectors")?;
        let (f, w) = (self.reals(&vectors, "f")?, self.reals(&vectors, "w")?);
        let bilateral = if group.link_exists("G") {
            let b = self.reals(&vectors, "b")?;
            Some(GlobalBilateral { g: self.matrix(group, "G", f.len(), b.len())?, b })
        } else {
            None
        };
        let compliances = |name: &str| match vectors.link_exists(name) {
            true => self.reals(&vectors, name),
            false => Ok(Vec::new()),
        };
        let problem = GlobalProblem {
            compliance: compliances(COMPLIANCE)?,
            tangential_compliance: compliances(TANGENTIAL_COMPLIANCE)?,
            dimension,
            m: self.matrix(group, "M", f.len(), f.len())?,
            h: self.matrix(group, "H", f.len(), w.len())?,
            f,
            mu: self.reals(&vectors, "mu")?,
            w,
            bilateral,
        };
        problem.check().map_err(self.wrong(group))?;
        Ok(problem)
    }

    /// A matrix that must have the size that the vectors say: so its size needs no other bound.
    fn matrix(&self, parent: &Group, name: &str, rows: usize, columns: usize) -> Result<Sparse, OutputError> {
        let group = self.group(parent, name)?;
        let name = group.name();
        for (key, expected) in [("m", rows), ("n", columns)] {
            let found = self.integer(&group, key)?;
            if i64::from(found) != expected as i64 {
                let what = if key == "m" { "rows" } else { "columns" };
                return Err(self.damaged(format!("{name} has {found} {what}, expected {expected}")));
            }
        }
        let (layout, room) = (self.integer(&group, "nz")?, self.integer(&group, "nzmax")?);
        let (starts, indices) = (self.integers(&group, "p")?, self.integers(&group, "i")?);
        let values = self.reals(&group, "x")?;
        let used = match layout {
            -2 | -1 => starts.last().copied().unwrap_or(0),
            0.. => layout,
            _ => {
                let expected = "expected -2 (by rows), -1 (by columns) or the number of triplets";
                return Err(self.damaged(format!("{name}/nz is {layout}, {expected}")));
            }
        };
        let used = usize::try_from(used).map_err(|_| {
            self.damaged(format!("{name}/p ends with {used}, expected the number of entries"))
        })?;
        if used > usize::try_from(room).unwrap_or(0) {
            return Err(self.damaged(format!("{name}/nzmax is {room}, expected at least {used}")));
        }
        let mut lengths = vec![("i", indices.len()), ("x", values.len())];
        if layout >= 0 {
            lengths.push(("p", starts.len()));
        }
        for (key, found) in lengths {
            if found < used {
                let problem = format!("{name}/{key} has {found} values, expected at least {used}");
                return Err(self.damaged(problem));
            }
        }
        let (indices, values) = (&indices[..used], &values[..used]);
        let matrix = match layout {
            -2 => Sparse::from_rows(rows, columns, &starts, indices, values),
            -1 => Sparse::from_columns(rows, columns, &starts, indices, values),
            _ => Sparse::from_coordinates(rows, columns, indices, &starts[..used], values),
        };
        matrix.map_err(|problem| self.damaged(format!("{name} {problem}")))
    }

    fn solution(&self, group: &Group, problem: &FclibProblem) -> Result<FclibSolution, OutputError> {
        let [velocities, contacts, multipliers] = problem.solution_sizes();
        let optional = |name: &str, size: usize| match size {
            0 => Ok(Vec::new()),
            _ => self.sized(group, name, size),
        };
        Ok(FclibSolution {
            v: optional("v", velocities)?,
            u: self.sized(group, "u", contacts)?,
            r: self.sized(group, "r", contacts)?,
            l: optional("l", multipliers)?,
        })
    }

    fn guesses(&self, file: &File, problem: &FclibProblem) -> Result<Vec<FclibSolution>, OutputError> {
        if !file.link_exists("guesses") {
            return Ok(Vec::new());
        }
        let group = self.group(file, "guesses")?;
        let count = self.integer(&group, "number_of_guesses")?;
        if !(0..=MOST_GUESSES).contains(&count) {
            let problem = format!("/guesses/number_of_guesses is {count}, expected 0 to {MOST_GUESSES}");
            return Err(self.damaged(problem));
        }
        (1..=count).map(|number| self.solution(&self.group(&group, &number.to_string())?, problem)).collect()
    }

    fn info(&self, parent: &Group) -> Result<FclibInfo, OutputError> {
        if !parent.link_exists("info") {
            return Ok(FclibInfo::default());
        }
        let group = self.group(parent, "info")?;
        Ok(FclibInfo {
            title: self.text(&group, "title")?,
            description: self.text(&group, "description")?,
            math_info: self.text(&group, "math_info")?,
        })
    }

    /// A string of fixed length; what does not fit is said, what is not there is none.
    fn text(&self, parent: &Group, name: &str) -> Result<Option<String>, OutputError> {
        if !parent.link_exists(name) {
            return Ok(None);
        }
        let dataset = self.dataset(parent, name)?;
        let name = joined(parent, name);
        let error = || OutputError::hdf5(self.path, format!("read {name}"));
        let dtype = dataset.dtype().map_err(error())?;
        let descriptor = dtype.to_descriptor().map_err(error())?;
        let length = match descriptor {
            TypeDescriptor::FixedAscii(length) | TypeDescriptor::FixedUnicode(length) => length,
            _ => {
                let problem =
                    format!("{name} holds values of type {descriptor}, expected text of fixed length");
                return Err(self.damaged(problem));
            }
        };
        let shape = dataset.get_shape().map_err(error())?;
        if shape.iter().product::<usize>() != 1 || length as u64 > self.bytes || length > dtype.size() {
            return Err(self.damaged(format!("{name} is not one string within the file")));
        }
        let mut text = vec![0u8; dtype.size()];
        hdf5::sync::sync(|| {
            // SAFETY: the dataset has one element of `dtype`, and `text` has room for it.
            h5check(unsafe {
                H5Dread(dataset.id(), dtype.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.as_mut_ptr().cast())
            })
        })
        .map_err(error())?;
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        Ok(Some(String::from_utf8_lossy(&text[..end]).into_owned()))
    }
}

fn joined(parent: &Group, name: &str) -> String {
    let parent = parent.name();
    format!("{}/{name}", parent.trim_end_matches('/'))
}
