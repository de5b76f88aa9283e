//! Files that are not what they should be. The C library reads them too, so they are read by a process of
//! their own.

use super::support::{Directory, project};
use super::{local, reference, solve, stack};
use breccia::output::fclib::write_fclib;
use hdf5::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        ((z ^ (z >> 31)) % most as u64) as usize
    }
}

fn spoil(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut spoilt = bytes.to_vec();
    let changes = match numbers.below(4) {
        0 => {
            spoilt.truncate(numbers.below(bytes.len()));
            return spoilt;
        }
        kind => [1, 3, 20][kind - 1],
    };
    for _ in 0..changes {
        let place = numbers.below(spoilt.len());
        spoilt[place] = match numbers.below(4) {
            0 => 0,
            1 => 255,
            2 => spoilt[place] ^ (1 << numbers.below(8)),
            _ => numbers.below(256) as u8,
        };
    }
    spoilt
}

/// Ends within its time, by itself, with a code of its own and, if it fails, with one clear line.
fn check(path: &Path, kept: &Path) -> i32 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_breccia"))
        .args(["solve", "--max-sweeps", "100"])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("breccia starts");
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it can be asked") {
            break status;
        }
        if begun.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            let _ = std::fs::copy(path, kept);
            panic!("breccia solve {} hangs", kept.display());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let mut words = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().expect("a pipe"), &mut words).expect("text");
    let code = status.code().unwrap_or(-1);
    if ![0, 1, 3].contains(&code)
        || words.contains("panicked")
        || (code == 1 && !words.starts_with("error: "))
    {
        let _ = std::fs::copy(path, kept);
        panic!("breccia solve {}: {status}\n{words}", kept.display());
    }
    code
}

/// Truncated and changed files of both forms.
#[test]
fn spoilt_files_are_refused_or_read() {
    let directory = Directory::new("fclib-fuzz");
    let mut sources = Vec::new();
    for (name, content) in [("global.hdf5", stack(2, 3)), ("local.hdf5", local(&stack(2, 2)))] {
        write_fclib(&directory.file(name), &content).expect("a file");
        sources.push(std::fs::read(directory.file(name)).expect("bytes"));
    }
    spoil_and_solve(&sources, &directory, "own");
}

#[test]
#[ignore = "needs BRECCIA_REFERENCE"]
fn spoilt_genuine_files_are_refused_or_read() {
    let genuine = reference::fclib().into_iter().find(|path| path.ends_with("Rover4622.hdf5"));
    let bytes = std::fs::read(genuine.expect("a problem of that name")).expect("bytes");
    spoil_and_solve(&[bytes], &Directory::new("fclib-fuzz-genuine"), "genuine");
}

/// `BRECCIA_FUZZ` says how many files.
fn spoil_and_solve(sources: &[Vec<u8>], directory: &Directory, kind: &str) {
    let count: usize = std::env::var("BRECCIA_FUZZ").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let mut numbers = Numbers(20261116);
    let mut codes = [0; 4];
    for round in 0..count.min(20_000) {
        let path = directory.file("spoilt.hdf5");
        let kept = std::env::temp_dir().join(format!("breccia-spoilt-{kind}-{round}.hdf5"));
        std::fs::write(&path, spoil(&sources[round % sources.len()], &mut numbers)).expect("a spoilt file");
        codes[check(&path, &kept) as usize] += 1;
    }
    println!("measured of {count} spoilt files ({kind}): {} refused, {} read", codes[1], codes[0] + codes[3]);
    assert!(codes[1] > 0 && codes[0] > 0, "{codes:?}");
}

fn refused(path: &Path) -> String {
    let output = solve(&[], &[path.to_path_buf()]);
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn foreign_files_are_named() {
    let directory = Directory::new("fclib-foreign");
    let text = refused(&project("Cargo.toml"));
    assert!(text.contains("Cargo.toml: cannot open as an HDF5 file"), "{text}");
    let text = refused(&directory.file("nowhere.hdf5"));
    assert!(text.contains("nowhere.hdf5: cannot read: No such file"), "{text}");
    let other = directory.file("other.h5");
    File::create(&other).expect("a file").create_group("bodies").expect("a group");
    let text = refused(&other);
    assert!(text.contains("found neither /fclib_local nor /fclib_global"), "{text}");
}

type Change = (&'static str, fn(&File), &'static str);

/// One thing wrong at a time: the message names the dataset and what was expected.
#[test]
fn mistakes_are_named() {
    fn replace(file: &File, name: &str, values: &[i32]) {
        let _ = file.unlink(name);
        file.new_dataset::<i32>().shape([values.len()]).create(name).unwrap().write_raw(values).unwrap();
    }
    fn replace_reals(file: &File, name: &str, values: &[f64]) {
        let _ = file.unlink(name);
        file.new_dataset::<f64>().shape([values.len()]).create(name).unwrap().write_raw(values).unwrap();
    }
    let changes: &[Change] = &[
        ("no q", |f| f.unlink("fclib_local/vectors/q").unwrap(), "/fclib_local/vectors/q is missing"),
        ("no W", |f| f.unlink("fclib_local/W").unwrap(), "/fclib_local/W is missing, expected a group"),
        (
            "dimension",
            |f| replace(f, "fclib_local/spacedim", &[5]),
            "/fclib_local: spacedim is 5, expected 2 or 3",
        ),
        ("rows", |f| replace(f, "fclib_local/W/m", &[7]), "/fclib_local/W has 7 rows, expected 24"),
        (
            "huge",
            |f| replace(f, "fclib_local/W/n", &[i32::MAX]),
            "/fclib_local/W has 2147483647 columns, expected 24",
        ),
        ("layout", |f| replace(f, "fclib_local/W/nz", &[-3]), "/fclib_local/W/nz is -3, expected -2"),
        ("room", |f| replace(f, "fclib_local/W/nzmax", &[1]), "/fclib_local/W/nzmax is 1, expected at least"),
        (
            "starts",
            |f| replace(f, "fclib_local/W/p", &[0, 1]),
            "/fclib_local/W has 2 starts for 24 rows, expected 25",
        ),
        (
            "short",
            |f| replace_reals(f, "fclib_local/W/x", &[1.0]),
            "/fclib_local/W/x has 1 values, expected at least",
        ),
        (
            "friction",
            |f| replace_reals(f, "fclib_local/vectors/mu", &[-1.0; 8]),
            "mu[0] is -1, expected a finite number, not negative",
        ),
        (
            "contacts",
            |f| replace_reals(f, "fclib_local/vectors/mu", &[0.1; 3]),
            "mu has 3 values, expected 8",
        ),
        ("solution", |f| replace_reals(f, "solution/r", &[0.0]), "/solution/r has 1 values, expected 24"),
        (
            "guesses",
            |f| replace(f, "guesses/number_of_guesses", &[-1]),
            "number_of_guesses is -1, expected 0 to 1000",
        ),
        ("a guess", |f| f.unlink("guesses/2").unwrap(), "/guesses/2 is missing"),
        ("a type", |f| replace_reals(f, "fclib_local/W/i", &[1.0]), "expected integers"),
        (
            "a size",
            |f| {
                f.unlink("fclib_local/vectors/q").unwrap();
                let shape = [1usize << 40];
                f.new_dataset::<f64>().chunk([1024]).shape(shape).create("fclib_local/vectors/q").unwrap();
            },
            "q says it has 1099511627776 values, more than a file of",
        ),
    ];
    let directory = Directory::new("fclib-mistakes");
    let path: PathBuf = directory.file("wrong.hdf5");
    for (what, change, expected) in changes {
        write_fclib(&path, &local(&stack(2, 3))).expect("a file");
        let file = File::open_rw(&path).expect("an HDF5 file");
        change(&file);
        file.close().expect("closed");
        let text = refused(&path);
        assert!(text.contains(expected) && text.contains("wrong.hdf5"), "{what}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
