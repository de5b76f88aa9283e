//! Reading `series.h5`: its columns, each in the type it was written.

use super::{Numbers, open_file};
use crate::output::error::OutputError;
use crate::output::hyperslab::open;
use hdf5::Group;
use std::path::Path;

/// Name, numbers and numbers in a row of every column, `step` and `time` first, then by name.
pub fn read_series(path: &Path) -> Result<Vec<(String, Numbers, usize)>, OutputError> {
    let file = open_file(path)?;
    let root = file.group("series").map_err(OutputError::hdf5(path, "open series"))?;
    let mut columns = Vec::new();
    collect(path, &root, "", &mut columns)?;
    let rank = |name: &str| match name {
        "step" => 0,
        "time" => 1,
        _ => 2,
    };
    columns.sort_by(|(a, ..), (b, ..)| (rank(a), a).cmp(&(rank(b), b)));
    Ok(columns)
}

fn collect(
    path: &Path,
    group: &Group,
    prefix: &str,
    columns: &mut Vec<(String, Numbers, usize)>,
) -> Result<(), OutputError> {
    let names = group.member_names().map_err(OutputError::hdf5(path, "list the columns"))?;
    for name in names {
        let full = format!("{prefix}{name}");
        match group.group(&name) {
            Ok(inner) => collect(path, &inner, &format!("{full}/"), columns)?,
            Err(_) => {
                let (numbers, width) = Numbers::read_whole(path, &open(path, group, &name)?)?;
                columns.push((full, numbers, width));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::samples::directory;
    use crate::output::{Column, Series};
    use decomposition::Solo;

    #[test]
    fn reads_what_a_series_wrote() {
        let directory = directory("read-series");
        let path = directory.join("series.h5");
        let columns = vec![Column::vector("force/wall"), Column::integer("step"), Column::real("a")];
        let mut series = Series::create(&path, &Solo, columns, 1).unwrap();
        series.append(&[1.0, 2.0, 3.0, 7.0, 0.1]).unwrap();
        series.append(&[4.0, 5.0, 6.0, 8.0, f64::NAN]).unwrap();
        series.close().unwrap();
        let read = read_series(&path).unwrap();
        let names: Vec<&str> = read.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["step", "a", "force/wall"]);
        assert_eq!(read[0].1, Numbers::Integer(vec![7, 8]));
        assert_eq!(read[2].1, Numbers::Double(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        assert_eq!(read[2].2, 3);
    }
}
