//! State, series and frames on one rank. Several ranks and VTK's own reader: `tests/vtk_reads.rs`.

use super::samples::{body, directory, header, impulse};
use super::*;
use crate::scene::Body;
use decomposition::Solo;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestRunner};
use std::path::Path;

fn bodies(count: u64) -> Vec<Body> {
    (0..count).map(body).collect()
}

fn impulses(count: u64) -> Vec<ImpulseRow> {
    (0..count).map(impulse).collect()
}

/// Equal to the last bit, which `==` is not for zeros.
fn assert_same_bits(a: &[Body], b: &[Body]) {
    assert_eq!(a, b);
    let sum = |bodies: &[Body]| {
        let mut digest = Digest::new();
        bodies.iter().for_each(|body| digest.add_body(body));
        digest
    };
    assert_eq!(sum(a), sum(b));
}

#[test]
fn a_state_comes_back_to_the_last_bit() {
    let directory = directory("state");
    let path = directory.join("final.h5");
    for (count, points, compression) in [(0, 0, 0), (1, 0, 4), (23, 41, 0), (23, 41, 4)] {
        let (bodies, impulses, header) = (bodies(count), impulses(points), header());
        write_state(&path, &Solo, &header, &bodies, &impulses, compression).unwrap();
        let file = StateFile::open(&path, &Solo).unwrap();
        assert_eq!(file.header(), &header);
        assert_eq!((file.body_count(), file.impulse_count()), (count, points));
        assert_same_bits(&file.read_bodies(0..count).unwrap(), &bodies);
        assert_eq!(file.read_impulses(0..points).unwrap(), impulses);
        // Any cut into ranks gives the same rows.
        for size in [2, 3, 7] {
            let cut = |rank| file.read_bodies(share(count, rank, size)).unwrap();
            assert_same_bits(&(0..size).flat_map(cut).collect::<Vec<_>>(), &bodies);
            let cut = |rank| file.read_impulses(share(points, rank, size)).unwrap();
            assert_eq!((0..size).flat_map(cut).collect::<Vec<_>>(), impulses);
        }
        assert!(file.read_bodies(0..count + 1).is_err());
        assert!(!path.with_extension("h5.tmp").exists());
    }
}

#[test]
fn equal_polyhedra_share_memory_after_reading() {
    let directory = directory("sharing");
    let path = directory.join("final.h5");
    let twins = [body(1), Body { id: crate::scene::BodyId(9), ..body(1) }];
    write_state(&path, &Solo, &header(), &twins, &[], 0).unwrap();
    let read = StateFile::open(&path, &Solo).unwrap().read_bodies(0..2).unwrap();
    let polyhedron = |body: &Body| match body.shape.parts().next() {
        Some((_, crate::geometry::Convex::Polyhedron(polyhedron))) => polyhedron.clone(),
        _ => panic!("not a polyhedron"),
    };
    assert!(std::sync::Arc::ptr_eq(&polyhedron(&read[0]), &polyhedron(&read[1])));
}

#[test]
fn the_digest_depends_on_the_state_and_on_nothing_else() {
    let directory = directory("digest");
    let path = directory.join("final.h5");
    let (mut bodies, mut impulses, mut header) = (bodies(9), impulses(5), header());
    let of = |header: &StateHeader, bodies: &[Body], impulses: &[ImpulseRow]| {
        write_state(&path, &Solo, header, bodies, impulses, 1).unwrap();
        digest(&path).unwrap()
    };
    let first = of(&header, &bodies, &impulses);
    assert!(first.len() == 32 && first.bytes().all(|digit| digit.is_ascii_hexdigit()));
    // Rows in another order, another case text, and the sums of two ranks: the same.
    bodies.rotate_left(4);
    impulses.reverse();
    header.case.push('#');
    assert_eq!(of(&header, &bodies, &impulses), first);
    let (mut one, mut two) = (Digest::new(), Digest::new());
    bodies[..4].iter().for_each(|body| one.add_body(body));
    impulses[..1].iter().for_each(|row| one.add_impulse(row));
    bodies[4..].iter().for_each(|body| two.add_body(body));
    impulses[1..].iter().for_each(|row| two.add_impulse(row));
    header.sections.iter().for_each(|(name, bytes)| two.add_section(name, bytes));
    one.merge(two.parts());
    assert_eq!(one.finish(header.time, header.step), first);
    // The last bit of anything: another one.
    let next = |value: f64| f64::from_bits(value.to_bits() ^ 1);
    let changed = |change: &dyn Fn(&mut StateHeader, &mut Body, &mut ImpulseRow)| {
        let (mut header, mut bodies, mut impulses) = (header.clone(), bodies.clone(), impulses.clone());
        change(&mut header, &mut bodies[3], &mut impulses[2]);
        of(&header, &bodies, &impulses)
    };
    let others = [
        changed(&|header, _, _| header.time = next(header.time)),
        changed(&|header, _, _| header.step += 1),
        changed(&|header, _, _| header.sections[0].1[1] ^= 1),
        changed(&|header, _, _| header.sections[0].0.push('s')),
        changed(&|header, _, _| header.sections.truncate(1)),
        changed(&|_, body, _| body.id.0 ^= 1),
        changed(&|_, body, _| body.pose.position.y = 0.0), // it was -0
        changed(&|_, body, _| body.pose.rotation.as_mut_unchecked().coords.w *= 1.0 + 1e-15),
        changed(&|_, body, _| body.velocity.x = next(body.velocity.x)),
        changed(&|_, body, _| body.angular_velocity.y = next(body.angular_velocity.y)),
        changed(&|_, body, _| body.angular_momentum.z = next(body.angular_momentum.z)),
        changed(&|_, body, _| body.memory[0] = next(body.memory[0])),
        changed(&|_, body, _| body.memory = Box::default()),
        changed(&|_, _, row| row.feature ^= 1),
        changed(&|_, _, row| row.parts.swap(0, 1)),
        changed(&|_, _, row| row.impulse.x = next(row.impulse.x)),
    ];
    for (k, other) in others.iter().enumerate() {
        assert!(*other != first && !others[..k].contains(other), "change {k} was not seen");
    }
}

/// What a reader does with all of a file.
fn read_everything(path: &Path) -> Result<(), OutputError> {
    let file = StateFile::open(path, &Solo)?;
    file.read_bodies(0..file.body_count())?;
    file.read_impulses(0..file.impulse_count())?;
    Ok(())
}

#[test]
fn a_damaged_file_is_refused() {
    let directory = directory("damage");
    let (good, bad) = (directory.join("good.h5"), directory.join("bad.h5"));
    write_state(&good, &Solo, &header(), &bodies(8), &impulses(6), 4).unwrap();
    let whole = std::fs::read(&good).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(&bad, bytes).unwrap();
        let error = read_everything(&bad).expect_err("damage was not seen").to_string();
        assert!(error.contains("bad.h5"), "the error does not name the file: {error}");
    };
    let mut runner = TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
    let cut = (0..whole.len()).prop_map(|end| whole[..end].to_vec());
    let flip = (0..whole.len(), 0..8).prop_map(|(at, bit)| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1u8 << bit;
        bytes
    });
    let grown =
        proptest::collection::vec(proptest::num::u8::ANY, 1..9).prop_map(|more| [&whole[..], &more].concat());
    runner
        .run(&proptest::prop_oneof![cut, flip, grown], |bytes| {
            refused(&bytes);
            Ok(())
        })
        .unwrap();
    // The seal itself, byte by byte.
    for at in 0..seal::LENGTH as usize {
        let mut bytes = whole.clone();
        bytes[at] = !bytes[at];
        refused(&bytes);
    }
    refused(b"");
    refused(b"\x89HDF\r\n\x1a\n");
    assert!(matches!(read_everything(&directory.join("absent.h5")), Err(OutputError::Io { .. })));
    std::fs::write(&bad, &whole).unwrap();
    read_everything(&bad).unwrap();
}

/// Numbers of a dataset replaced, then sealed again: what a wrong program could write. Never a panic.
#[test]
fn a_file_that_contradicts_itself_is_refused() {
    let directory = directory("contradiction");
    let (good, bad) = (directory.join("good.h5"), directory.join("bad.h5"));
    write_state(&good, &Solo, &header(), &bodies(8), &impulses(6), 0).unwrap();
    let spoil = |change: &dyn Fn(&hdf5::File) -> hdf5::Result<()>| {
        std::fs::copy(&good, &bad).unwrap();
        let file = hdf5::File::open_rw(&bad).unwrap();
        change(&file).unwrap();
        file.close().unwrap();
        seal::close(&bad, &Solo).unwrap();
        read_everything(&bad)
    };
    spoil(&|_| Ok(())).unwrap();
    let lists = ["bodies/first_part", "parts/first_vertex", "parts/first_face", "parts/first_edge"];
    for name in lists.into_iter().chain(["polyhedra/first_corner"]) {
        for value in [5u64, 7, 1 << 40, u64::MAX] {
            for row in [0, 1] {
                let set = |file: &hdf5::File| file.dataset(name)?.write_slice(&[value], row..row + 1);
                assert!(spoil(&set).is_err(), "{name}[{row}] = {value} was accepted");
            }
        }
    }
    let counts = ["bodies/part_count", "parts/vertex_count", "parts/face_count", "parts/edge_count"];
    let small = ["polyhedra/corner_count", "polyhedra/corner", "polyhedra/edge", "bodies/group"];
    for name in counts.into_iter().chain(small) {
        for value in [99u32, u32::MAX] {
            let set = |file: &hdf5::File| {
                let dataset = file.dataset(name)?;
                if dataset.ndim() == 2 {
                    dataset.write_slice(ndarray::Array2::from_elem((1, 4), value).view(), (0..1, ..))
                } else {
                    dataset.write_slice(&[value], 0..1)
                }
            };
            assert!(spoil(&set).is_err(), "{name} = {value} was accepted");
        }
    }
    for name in ["bodies/motion", "bodies/cluster", "parts/kind"] {
        assert!(spoil(&|file| file.dataset(name)?.write_slice(&[9u8], 0..1)).is_err());
    }
    for name in [
        "bodies/id",
        "bodies/velocity",
        "impulses",
        "impulses/feature",
        "header",
        "time",
        "sections/machines",
    ] {
        assert!(spoil(&|file| file.unlink(name)).is_err(), "nobody missed {name}");
    }
    // A column with too few rows, of another width, of another type.
    for name in ["bodies/mass", "impulses/feature"] {
        assert!(spoil(&|file| file.dataset(name)?.resize(3)).is_err());
    }
    let replace = |file: &hdf5::File| {
        file.unlink("bodies/mass")?;
        file.new_dataset::<f32>().shape(8).create("bodies/mass").map(|_| ())
    };
    assert!(spoil(&replace).is_err());
    assert!(spoil(&|file| file.dataset("header")?.write_slice(&[0xffu8], 0..1)).is_err());
}

#[test]
fn a_failed_write_names_the_path_and_leaves_the_old_file() {
    let directory = directory("failure");
    let path = directory.join("final.h5");
    write_state(&path, &Solo, &header(), &bodies(3), &[], 0).unwrap();
    let before = std::fs::read(&path).unwrap();
    let mut odd = header();
    odd.sections.push(("a/b".into(), vec![]));
    assert!(write_state(&path, &Solo, &odd, &bodies(3), &[], 0).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let nowhere = directory.join("absent").join("final.h5");
    let error = write_state(&nowhere, &Solo, &header(), &bodies(3), &[], 0).unwrap_err().to_string();
    assert!(error.contains("absent"), "{error}");
    assert!(BodyFile::create(&nowhere, &Solo, BodyOptions::default()).is_err());
    assert!(Series::create(&nowhere, &Solo, vec![Column::real("time")], 1).is_err());
}

fn columns() -> Vec<Column> {
    vec![
        Column::integer("step"),
        Column::real("time"),
        Column::vector("force/wall, left"),
        Column::vector("force/tool"),
    ]
}

fn row(k: u64) -> Vec<f64> {
    let x = k as f64;
    vec![x, 0.1 * x, x / 3.0, -0.0, 1e-300, f64::INFINITY, 1e22 * x, f64::NAN]
}

#[test]
fn a_series_reads_back_from_both_files() {
    let directory = directory("series");
    let path = directory.join("series.h5");
    let mut series = Series::create(&path, &Solo, columns(), 4).unwrap();
    assert_eq!(series.width(), 8);
    for k in 0..10 {
        series.append(&row(k)).unwrap();
        assert!(series.append(&row(k)[1..]).is_err());
    }
    assert_eq!(series.rows(), 10);
    series.close().unwrap();
    let text = std::fs::read_to_string(path.with_extension("csv")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let names = "step,time,\"force/wall, left/x\",\"force/wall, left/y\",\"force/wall, left/z\",";
    assert_eq!(lines[0], format!("{names}force/tool/x,force/tool/y,force/tool/z"));
    assert_eq!(lines.len(), 11);
    let file = hdf5::File::open(&path).unwrap();
    let steps: Vec<i64> = file.dataset("series/step").unwrap().read_raw().unwrap();
    let times: Vec<f64> = file.dataset("series/time").unwrap().read_raw().unwrap();
    let left: Vec<f64> = file.dataset("series/force/wall, left").unwrap().read_raw().unwrap();
    let tool: Vec<f64> = file.dataset("series/force/tool").unwrap().read_raw().unwrap();
    for k in 0..10 {
        let stored =
            [&[steps[k] as f64, times[k]], &left[3 * k..3 * k + 3], &tool[3 * k..3 * k + 3]].concat();
        let written: Vec<f64> = lines[k + 1].split(',').map(|cell| cell.parse().unwrap()).collect();
        let bits = |row: &[f64]| row.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&stored), bits(&row(k as u64)));
        assert_eq!(bits(&written), bits(&row(k as u64)));
    }
}

#[test]
fn flushed_rows_of_a_series_are_there_while_it_is_open() {
    let directory = directory("open-series");
    let path = directory.join("series.h5");
    let mut series = Series::create(&path, &Solo, columns(), 4).unwrap();
    (0..7).for_each(|k| series.append(&row(k)).unwrap());
    // A copy is what a kill would leave.
    let copy = path.with_file_name("copy.h5");
    std::fs::copy(&path, &copy).unwrap();
    let file = hdf5::File::open(&copy).unwrap();
    let steps: Vec<i64> = file.dataset("series/step").unwrap().read_raw().unwrap();
    assert_eq!(steps, [0, 1, 2, 3]);
    assert_eq!(std::fs::read_to_string(path.with_extension("csv")).unwrap().lines().count(), 5);
    drop(series);
    assert_eq!(std::fs::read_to_string(path.with_extension("csv")).unwrap().lines().count(), 8);
}

#[test]
fn columns_need_names_of_their_own() {
    let directory = directory("names");
    let path = directory.join("series.h5");
    let refused = |names: &[&str]| {
        let columns = names.iter().map(|name| Column::real(*name)).collect();
        assert!(Series::create(&path, &Solo, columns, 1).is_err(), "{names:?} was accepted");
    };
    refused(&[]);
    refused(&[""]);
    refused(&["a", "a"]);
    refused(&["a", "a/b"]);
    refused(&["a//b"]);
    refused(&["../a"]);
    assert!(Series::create(&path, &Solo, vec![Column::real("b/a"), Column::real("b/c")], 1).is_ok());
}

#[test]
fn frames_store_again_only_what_changed() {
    let directory = directory("frames");
    let path = directory.join("bodies.vtkhdf");
    let options = BodyOptions { compression: 0, precision: Precision::Double, ..BodyOptions::default() };
    let mut file = BodyFile::create(&path, &Solo, options).unwrap();
    let mut moving = vec![body(0), body(1), body(2)];
    let points = 162 + 4 + (162 + 4);
    file.write(&Solo, 0.0, &moving).unwrap();
    file.write(&Solo, 0.1, &moving).unwrap(); // nothing changed
    moving[1].pose.position.x += 1.0;
    file.write(&Solo, 0.2, &moving).unwrap(); // a place
    moving.pop();
    file.write(&Solo, 0.3, &moving).unwrap(); // the bodies
    assert_eq!(file.steps(), 4);
    assert!(file.was_collective());
    file.close().unwrap();
    let file = hdf5::File::open(&path).unwrap();
    let read = |name: &str| file.dataset(&format!("VTKHDF/{name}")).unwrap().read_raw::<i64>().unwrap();
    assert_eq!(read("Steps/PartOffsets"), [0, 0, 0, 1]);
    assert_eq!(read("NumberOfPoints"), [points, 166]);
    assert_eq!(read("Steps/PointOffsets"), [0, 0, points, 2 * points]);
    assert_eq!(read("Steps/PointDataOffsets/id"), [0, 0, 0, points]);
    assert_eq!(read("Polygons/NumberOfCells"), [320 + 4 + 324, 324]);
    assert_eq!(read("Steps/CellOffsets")[12..], [1, 1, 649, 1]);
    assert_eq!(read("Vertices/Offsets"), [0, 0, 0]);
    let stored = file.dataset("VTKHDF/Points").unwrap().shape();
    assert_eq!(stored, [2 * points as usize + 166, 3]);
}
