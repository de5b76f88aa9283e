//! The layout: as genuine files have it, in every storage that FCLib knows.

use super::support::{Directory, skip};
use super::{local, name, reference, stack};
use breccia::output::fclib::{FclibProblem, read_fclib, write_fclib};
use hdf5::File;
use std::path::Path;
use std::process::Command;

/// What h5dump says, but for the name of the file; none if it is not installed.
fn h5dump(path: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("h5dump").args(arguments).arg(path).output().ok()?;
    assert!(output.status.success(), "h5dump {}", path.display());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.split_once('\n')?.1.to_string())
}

/// A genuine file, read and written again, is the same to h5dump: every name, type, shape and attribute, and
/// every string and number unless the entries of a row are not in ascending order there (one of the files),
/// as breccia writes them.
#[test]
#[ignore = "needs BRECCIA_REFERENCE"]
fn genuine_files_are_written_as_they_were() {
    let directory = Directory::new("fclib-layout");
    let (mut compared, mut equal) = (0, 0);
    for file in reference::fclib() {
        let copy = directory.file(&format!("{}.hdf5", name(&file)));
        let content = read_fclib(&file).expect("a genuine problem");
        write_fclib(&copy, &content).expect("a copy");
        assert_eq!(read_fclib(&copy).expect("the copy"), content);
        let (Some(theirs), Some(ours)) = (h5dump(&file, &["-A"]), h5dump(&copy, &["-A"])) else {
            return skip::test("no h5dump");
        };
        assert!(theirs == ours, "{}: h5dump -A differs", file.display());
        compared += 1;
        equal += usize::from(h5dump(&file, &[]) == h5dump(&copy, &[]));
    }
    println!(
        "measured {compared} genuine files of equal layout after reading and writing, {equal} equal in every number"
    );
    assert!(equal + 1 >= compared, "{equal} of {compared}");
}

/// What the library of that name would find in a global file, by h5dump's words.
#[test]
fn names_and_types_of_a_global_file() {
    let directory = Directory::new("fclib-names");
    let path = directory.file("stack.hdf5");
    write_fclib(&path, &stack(3, 3)).expect("a file");
    let file = File::open(&path).expect("an HDF5 file");
    let integers = [
        "M/m", "M/n", "M/nz", "M/nzmax", "M/p", "M/i", "H/m", "H/n", "H/nz", "H/nzmax", "H/p", "H/i",
        "spacedim",
    ];
    for name in integers {
        let dataset = file.dataset(&format!("fclib_global/{name}")).expect(name);
        assert!(dataset.dtype().expect("a type").is::<i32>() && dataset.ndim() == 1, "{name}");
    }
    for name in ["M/x", "H/x", "vectors/f", "vectors/w", "vectors/mu"] {
        let dataset = file.dataset(&format!("fclib_global/{name}")).expect(name);
        assert!(dataset.dtype().expect("a type").is::<f64>() && dataset.ndim() == 1, "{name}");
    }
    for name in
        ["solution/v", "solution/u", "solution/r", "guesses/number_of_guesses", "guesses/1/r", "guesses/2/u"]
    {
        file.dataset(name).expect(name);
    }
    if let Some(text) = h5dump(&path, &[]) {
        for words in [
            "STRPAD H5T_STR_NULLTERM",
            "CSET H5T_CSET_ASCII",
            "H5T_STD_I32LE",
            "H5T_IEEE_F64LE",
            "DATASPACE  SCALAR",
        ] {
            assert!(text.contains(words), "{words}");
        }
    }
}

#[test]
fn reading_gives_back_what_was_written() {
    let directory = Directory::new("fclib-back");
    for dimension in [2, 3] {
        for content in [stack(3, dimension), local(&stack(3, dimension))] {
            let path = directory.file("problem.hdf5");
            write_fclib(&path, &content).expect("a file");
            assert_eq!(read_fclib(&path).expect("what was written"), content);
            // Equal content, equal bytes.
            let bytes = std::fs::read(&path).expect("bytes");
            std::thread::sleep(std::time::Duration::from_millis(1100));
            write_fclib(&path, &content).expect("a file");
            assert!(bytes == std::fs::read(&path).expect("bytes"), "a second later the bytes are the same");
        }
    }
}

/// The same matrix by rows, by columns and as triplets, with room for more entries than there are.
#[test]
fn all_storages_are_read() {
    let directory = Directory::new("fclib-storages");
    let content = local(&stack(3, 3));
    let FclibProblem::Local(problem) = &content.problem else { panic!("a local problem") };
    let entries: Vec<_> = problem.w.triplets().collect();
    for layout in [-1, entries.len() as i32] {
        let path = directory.file("problem.hdf5");
        write_fclib(&path, &content).expect("a file");
        let file = File::open_rw(&path).expect("an HDF5 file");
        let group = file.group("fclib_local/W").expect("W");
        let mut sorted = entries.clone();
        sorted.sort_by_key(|&(row, column, _)| (column, row));
        let mut p: Vec<i32> = match layout {
            -1 => (0..=problem.w.columns)
                .map(|column| sorted.iter().filter(|entry| entry.1 < column).count() as i32)
                .collect(),
            _ => sorted.iter().map(|entry| entry.1 as i32).collect(),
        };
        let mut i: Vec<i32> = sorted.iter().map(|entry| entry.0 as i32).collect();
        let mut x: Vec<f64> = sorted.iter().map(|entry| entry.2).collect();
        // Room that is not used.
        i.extend([77, -3]);
        x.extend([f64::NAN, 1.0]);
        if layout >= 0 {
            p.extend([0, 99]);
        }
        for name in ["p", "i", "x", "nz", "nzmax"] {
            group.unlink(name).expect(name);
        }
        let integers = |name: &str, values: &[i32]| {
            group.new_dataset::<i32>().shape([values.len()]).create(name).unwrap().write_raw(values).unwrap();
        };
        integers("p", &p);
        integers("i", &i);
        integers("nz", &[layout]);
        integers("nzmax", &[i.len() as i32]);
        group.new_dataset::<f64>().shape([x.len()]).create("x").unwrap().write_raw(&x).unwrap();
        file.close().expect("closed");
        assert_eq!(read_fclib(&path).expect("a problem").problem, content.problem, "nz = {layout}");
    }
}
