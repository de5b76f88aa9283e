//! Checkpoints that were cut, spoilt, mixed up or made by something else: always an error that says so, never
//! a result.

use super::runs::{Out, Random, soak};
use breccia::output::{Digest, OutputError, StateFile};
use decomposition::Solo;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Everything a restart reads.
fn read(path: &Path) -> Result<(), OutputError> {
    let file = StateFile::open(path, &Solo)?;
    let mut digest = Digest::new();
    file.read_bodies(0..file.body_count())?.iter().for_each(|body| digest.add_body(body));
    file.read_impulses(0..file.impulse_count())?.iter().for_each(|row| digest.add_impulse(row));
    file.header().sections.iter().for_each(|(name, bytes)| digest.add_section(name, bytes));
    for name in ["case", "position", "statistics", "bodies.vtkhdf", "contacts.vtkhdf"] {
        file.attachment(name)?;
    }
    file.check_digest(&digest).map(|_| ())
}

/// Two datasets of one shape and type change places, as a wrong tool might do it, and the file is sealed
/// again.
fn swap(path: &Path, names: [&str; 2]) {
    let file = hdf5::File::open_rw(path).expect("a whole file");
    file.relink(names[0], "aside").and_then(|()| file.relink(names[1], names[0])).expect("a dataset");
    file.relink("aside", names[1]).expect("a dataset");
    file.close().expect("it closes");
}

fn seal(path: &Path) {
    let mut bytes = std::fs::read(path).expect("a file");
    let blocks = bytes[512..].chunks(1 << 20).enumerate();
    let sum = blocks.fold(0u128, |sum, (k, block)| sum.wrapping_add(xxh3_128_with_seed(block, k as u64)));
    let length = bytes.len() as u64;
    bytes[24..32].copy_from_slice(&length.to_le_bytes());
    bytes[32..48].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(path, bytes).expect("a file");
}

const PAIRS: [[&str; 2]; 9] = [
    ["bodies/velocity", "bodies/angular_velocity"],
    ["bodies/position", "bodies/angular_momentum"],
    ["bodies/inertia", "bodies/velocity"],
    ["bodies/group", "bodies/prescribed"],
    ["bodies/id", "bodies/first_part"],
    ["bodies/group", "bodies/material"],
    ["parts/position", "bodies/inertia"],
    ["polyhedra/vertex", "polyhedra/face_normal"],
    ["attachments/bodies.vtkhdf", "attachments/contacts.vtkhdf"],
];

#[test]
fn damaged_checkpoints_are_refused_with_a_reason() {
    let mut random = Random::new(3);
    let out = Out::new("damage");
    out.finish(1, 30, &[]);
    let good = out.checkpoints().pop().expect("a checkpoint");
    let whole = std::fs::read(&good).expect("a checkpoint");
    let bad = out.beside("bad.h5");
    let name = bad.display().to_string();
    let (count, every) = if soak() { (1000, 1) } else { (60, 6) };
    for k in 0..count {
        let kind = k % 4;
        match kind {
            0 => std::fs::write(&bad, &whole[..random.below(whole.len() as u64) as usize]).expect("a file"),
            1 | 2 => {
                let mut bytes = whole.clone();
                for _ in 0..=random.below(3) {
                    bytes[random.below(whole.len() as u64) as usize] ^= 1 << random.below(8);
                }
                if bytes == whole {
                    continue; // the same bit twice
                }
                std::fs::write(&bad, bytes).expect("a file");
            }
            _ => {
                std::fs::write(&bad, &whole).expect("a file");
                swap(&bad, PAIRS[random.below(PAIRS.len() as u64) as usize]);
                if k % 8 == 7 {
                    seal(&bad);
                }
            }
        }
        let found = read(&bad);
        let error = found.expect_err(&format!("damage {k} is seen"));
        assert!(error.to_string().contains("bad.h5"), "{k}: {error}");
        if k % every == 0 {
            let (code, words) = out.run(1, 40, &["--restart", &name]);
            assert!((code == 1 || code == 4) && words.contains("bad.h5"), "{k}: {code}: {words}");
            assert!(!words.contains("mistake in breccia"), "{k}: {words}");
        }
    }
    println!("{count} damaged checkpoints refused");
}

#[test]
fn each_kind_of_damage_is_named_and_the_one_before_is_taken() {
    let (straight, out) = (Out::new("whole"), Out::new("fallback"));
    straight.finish(1, 60, &[]);
    out.finish(2, 50, &[]);
    let all = out.checkpoints();
    let last = &all[all.len() - 1];
    let whole = std::fs::read(last).expect("a checkpoint");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    let mut newer = whole.clone();
    newer[16] = 99;
    let foreign = std::fs::read(out.path.join("series.h5")).expect("a series");
    let half = whole[..whole.len() / 2].to_vec();
    let kinds = [
        (half, "truncated"),
        (flipped, "checksum"),
        (foreign, "not a breccia state"),
        (newer, "newer breccia"),
    ];
    for (bytes, expected) in &kinds {
        std::fs::write(last, bytes).expect("a file");
        let (code, words) = out.run(2, 60, &["--restart", &last.display().to_string()]);
        assert!(code == 4 && words.contains(expected), "{expected}: {code}: {words}");
    }
    let words = out.finish(2, 60, &["--restart", "latest"]);
    assert!(
        words.contains("warning") && words.contains("newer breccia") && words.contains("step 46"),
        "{words}"
    );
    straight.results().assert_same(&out.results(), "from the checkpoint before a bad one");
    let aside = last.with_extension("h5.set-aside");
    assert!(aside.exists(), "what could not be read is not thrown away");
    for path in out.checkpoints() {
        std::fs::write(path, b"nothing").expect("a file");
    }
    let (code, words) = out.run(1, 90, &["--restart", "auto"]);
    assert!(code == 1 && words.contains("none of the checkpoints"), "{code}: {words}");
}

/// All datasets of a file, by path.
fn datasets(group: &hdf5::Group) -> Vec<String> {
    let mut all: Vec<String> =
        group.datasets().expect("its tables").iter().map(|table| table.name()).collect();
    for inner in group.groups().expect("its groups") {
        all.extend(datasets(&inner));
    }
    all
}

/// The dataset grows by some rows of zeros.
fn lengthen(path: &Path, name: &str, rows: usize) {
    let file = hdf5::File::open_rw(path).expect("a whole file");
    let dataset = file.dataset(name).expect("a dataset");
    let mut shape = dataset.shape();
    shape[0] += rows;
    dataset.resize(shape).expect("it can grow");
    drop(dataset);
    file.close().expect("it closes");
}

#[test]
fn surplus_rows_are_refused_in_every_table() {
    let out = Out::new("surplus");
    out.finish(1, 30, &[]);
    let good = out.checkpoints().pop().expect("a checkpoint");
    let whole = std::fs::read(&good).expect("a checkpoint");
    let bad = out.beside("bad.h5");
    let names = datasets(&hdf5::File::open(&good).expect("a checkpoint"));
    assert!(names.len() > 35, "{names:?}");
    for name in &names {
        for rows in [1, 7] {
            std::fs::write(&bad, &whole).expect("a file");
            lengthen(&bad, name, rows);
            seal(&bad);
            let error = read(&bad).expect_err(&format!("{rows} rows more in {name} are seen"));
            assert!(error.to_string().contains("bad.h5"), "{name}: {error}");
        }
    }
    std::fs::write(&bad, &whole).expect("a file");
    lengthen(&bad, "bodies/mass", 1);
    seal(&bad);
    let (code, words) = out.run(1, 40, &["--restart", &bad.display().to_string()]);
    assert!(
        code == 4 && words.contains("/bodies/mass has") && words.contains("were expected"),
        "{code}: {words}"
    );
    println!("{} tables with surplus rows refused", names.len());
}
