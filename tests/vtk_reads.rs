//! Files written by 1, 2 and 3 real MPI ranks, read by VTK's own reader and by the state reader.
//!
//! The test starts itself under `mpirun`: the ignored test `role_write` is one rank's part. VTK is the one of
//! `BRECCIA_PYTHON`, `.venv/bin/python` or `python3`, whichever has it first; without any the VTK part counts
//! as skipped.

#[path = "support/skip.rs"]
#[allow(dead_code)]
mod skip;

use breccia::geometry::{Aabb, Convex, Edge, Face, Part, Polyhedron, Pose, Quat, Shape, Vec3};
use breccia::output::{
    BodyFile, BodyOptions, Column, ContactDrawing, ContactFile, ContactOptions, ContactRow, ImpulseRow,
    Precision, Series, Spheres, StateFile, StateHeader, digest, share, write_state,
};
use breccia::scene::{Body, BodyId, Motion};
use decomposition::{Comm, World};
use serde_json::Value;
use std::f64::consts::PI;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const STEPS: usize = 7;
const TIME_STEP: f64 = 0.25;
const DIRECTORY: &str = "BRECCIA_TEST_DIRECTORY";

fn cube(half: f64) -> Arc<Polyhedron> {
    let corner = |k: usize| Vec3::from([1, 2, 4].map(|bit| if k & bit == 0 { -half } else { half }));
    let vertices: Vec<Vec3> = (0..8).map(corner).collect();
    let loops = [[0, 4, 6, 2], [1, 3, 7, 5], [0, 1, 5, 4], [2, 6, 7, 3], [0, 2, 3, 1], [4, 5, 7, 6]];
    let face = |corners: &[u32; 4]| {
        let normal = corners.iter().map(|&k| vertices[k as usize]).sum::<Vec3>().normalize();
        Face { normal, offset: half, vertices: corners[..].into() }
    };
    let faces: Vec<Face> = loops.iter().map(face).collect();
    let mut edges = Vec::new();
    for a in 0..8u32 {
        for b in [a | 1, a | 2, a | 4].into_iter().filter(|&b| b != a) {
            let of_both = |k: &u32| [a, b].iter().all(|v| loops[*k as usize].contains(v));
            let both: Vec<u32> = (0..6).filter(of_both).collect();
            edges.push(Edge { vertices: [a, b], faces: [both[0], both[1]] });
        }
    }
    Arc::new(Polyhedron { vertices, faces, edges, bounding_radius: half * 3.0_f64.sqrt() })
}

fn body(id: u64, shape: Shape, position: Vec3, velocity: Vec3) -> Body {
    let turn = Quat::from_euler_angles(0.2 * id as f64, 0.5, position.z);
    let motion = if id == 0 { Motion::Fixed } else { Motion::Free };
    Body {
        id: BodyId(id),
        group: (id % 2) as u32,
        material: 0,
        motion,
        shape,
        mass: 2.0,
        inertia: Vec3::repeat(0.4),
        pose: Pose::new(if id == 0 { Quat::identity() } else { turn }, position),
        velocity,
        angular_velocity: Vec3::new(0.0, 0.0, id as f64),
        angular_momentum: Vec3::new(0.0, 0.0, 0.4 * id as f64),
        anchor: None,
        memory: Box::default(),
    }
}

/// All bodies of a step: a floor, a cube and a sphere that move after the first step and rest from the second
/// to the third, a cluster from the fourth on; none in the last.
fn bodies(step: usize) -> Vec<Body> {
    if step == STEPS - 1 {
        return Vec::new();
    }
    let height = if step == 2 { 1.0 } else { step as f64 };
    let (up, fall) = (Vec3::z() * height, Vec3::new(0.0, 0.5, -height));
    let arm = |x: f64, convex: Convex| Part { pose: Pose::new(Quat::identity(), Vec3::x() * x), convex };
    let tool = [arm(-1.0, Convex::Sphere { radius: 0.25 }), arm(1.0, Convex::Polyhedron(cube(0.3)))];
    let mut all = vec![
        body(0, Shape::Convex(Convex::HalfSpace), Vec3::zeros(), Vec3::zeros()),
        body(1, Shape::Convex(Convex::Polyhedron(cube(0.5))), Vec3::new(0.0, 0.0, 1.0) + up, fall),
        body(2, Shape::sphere(0.5), Vec3::new(2.0, 0.0, 1.0) + up, fall),
    ];
    if step >= 3 {
        all.push(body(7, Shape::Cluster(Arc::new(tool)), Vec3::new(0.0, 3.0, 2.0), -fall));
    }
    all
}

/// Bodies change their ranks in step 4; in step 5 the last rank has all.
fn owner(id: u64, step: usize, ranks: usize) -> usize {
    match step {
        0..=3 => id as usize % ranks,
        4 => (id as usize + 1) % ranks,
        _ => ranks - 1,
    }
}

fn contacts(step: usize) -> Vec<ContactRow> {
    let point = |a: u64, b: u64, k: usize| ContactRow {
        ids: [a, b],
        point: Vec3::new(a as f64, b as f64, k as f64),
        normal: Vec3::z(),
        impulse: Vec3::new(0.5, 0.0, 1.0 + k as f64),
        gap: -0.125 * k as f64,
        centres: [Vec3::x() * a as f64, Vec3::y() * b as f64],
    };
    let pairs = [(0, 1), (0, 2), (1, 2), (2, 7)];
    let some = &pairs[..step.min(4)];
    some.iter().flat_map(|&(a, b)| (0..=a as usize).map(move |k| point(a, b, k))).collect()
}

fn impulses() -> Vec<ImpulseRow> {
    let row = |k: u64| ImpulseRow {
        ids: [k % 3, k % 3 + 1 + k],
        parts: [0, k as u32],
        feature: 3 * k as u32,
        impulse: Vec3::new(1.0 / (k as f64 + 1.0), -0.0, k as f64),
    };
    (0..40).map(row).collect()
}

fn header() -> StateHeader {
    StateHeader {
        time: 0.1 + 0.2,
        step: 5,
        code_version: "test".into(),
        case: "text of the case".into(),
        groups: vec!["even".into(), "odd".into()],
        materials: vec!["stone".into()],
        sections: vec![("machines".into(), vec![1, 2, 3])],
    }
}

fn domain() -> Aabb {
    Aabb { min: Vec3::new(-2.0, -2.0, 0.0), max: Vec3::new(4.0, 4.0, 8.0) }
}

/// What one rank does under `mpirun`.
#[test]
#[ignore = "started by the other tests under mpirun"]
fn role_write() {
    let directory = PathBuf::from(std::env::var_os(DIRECTORY).expect("started by the other tests"));
    let world = World::initialize().expect("MPI starts once");
    let (rank, ranks) = (world.rank(), world.size());
    write_frames(&directory, &world);
    let mine = |id: u64| owner(id, 3, ranks) == rank;
    let all = bodies(3);
    let own: Vec<&Body> = all.iter().filter(|body| mine(body.id.0)).collect();
    let rows: Vec<ImpulseRow> = impulses().into_iter().filter(|row| mine(row.ids[1])).collect();
    write_state(&directory.join("final.h5"), &world, &header(), own, &rows, 4).unwrap();
    let file = StateFile::open(&directory.join("final.h5"), &world).unwrap();
    let read = file.read_bodies(share(file.body_count(), rank, ranks)).unwrap();
    let mut count = [read.len() as i64];
    world.sum_i64(&mut count);
    assert_eq!(count, [4]);
    // All ranks learn of a failure, and none waits for ever.
    let nowhere = directory.join("absent/final.h5");
    assert!(write_state(&nowhere, &world, &header(), &all, &[], 0).is_err());
    assert!(BodyFile::create(&nowhere, &world, BodyOptions::default()).is_err());
    assert!(StateFile::open(&nowhere, &world).is_err());
    assert!(Series::create(&nowhere, &world, vec![Column::real("time")], 1).is_err());
    let mut series =
        Series::create(&directory.join("series.h5"), &world, vec![Column::real("time")], 2).unwrap();
    (0..3).for_each(|k| series.append(&[0.1 * k as f64]).unwrap());
    series.close().unwrap();
}

fn write_frames(directory: &Path, world: &World) {
    let (rank, ranks) = (world.rank(), world.size());
    let surface = BodyOptions {
        spheres: Spheres::Surface,
        refinement: 1,
        domain: Some(domain()),
        ..BodyOptions::default()
    };
    let points = BodyOptions {
        spheres: Spheres::Points,
        precision: Precision::Double,
        compression: 0,
        ..surface.clone()
    };
    let chains = ContactOptions { drawing: ContactDrawing::Chains, compression: 0, ..Default::default() };
    let create = |name: &str, options| BodyFile::create(&directory.join(name), world, options).unwrap();
    let network = |name: &str, options| ContactFile::create(&directory.join(name), world, options).unwrap();
    let mut files = [create("bodies.vtkhdf", surface), create("points.vtkhdf", points)];
    let mut networks = [network("contacts.vtkhdf", Default::default()), network("chains.vtkhdf", chains)];
    for step in 0..STEPS {
        let time = TIME_STEP * step as f64;
        let all = bodies(step);
        let mine = |body: &&Body| owner(body.id.0, step, ranks) == rank;
        for file in &mut files {
            file.write(world, time, all.iter().filter(mine)).unwrap();
        }
        let own: Vec<ContactRow> =
            contacts(step).into_iter().filter(|row| row.ids[1] as usize % ranks == rank).collect();
        for file in &mut networks {
            file.write(world, time, TIME_STEP, &own).unwrap();
        }
    }
    for file in files {
        assert!(file.was_collective() && file.steps() == STEPS as u64);
        file.close().unwrap();
    }
    for file in networks {
        assert!(file.was_collective() && file.steps() == STEPS as u64);
        file.close().unwrap();
    }
}

/// A directory with what `ranks` ranks wrote.
fn written_by(ranks: usize, purpose: &str) -> PathBuf {
    let name = format!("breccia-{purpose}-{}-{ranks}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let output = Command::new("mpirun")
        .args(["--oversubscribe", "-n", &ranks.to_string()])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "role_write", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, &directory)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .output()
        .expect("mpirun is installed by `make setup`");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{ranks} ranks: {text}");
    assert!(!text.contains("HDF5-DIAG"), "HDF5 prints its errors: {text}");
    directory
}

#[test]
fn any_number_of_ranks_writes_the_same_state() {
    let mut digests = Vec::new();
    for ranks in 1..=3 {
        let directory = written_by(ranks, "state");
        let path = directory.join("final.h5");
        let file = StateFile::open(&path, &decomposition::Solo).unwrap();
        assert_eq!(file.header(), &header());
        let mut read = file.read_bodies(0..file.body_count()).unwrap();
        read.sort_by_key(|body| body.id);
        assert_eq!(read, bodies(3));
        let mut rows = file.read_impulses(0..file.impulse_count()).unwrap();
        rows.sort_by_key(|row| row.parts[1]);
        assert_eq!(rows, impulses());
        digests.push(digest(&path).unwrap());
        let csv = std::fs::read_to_string(directory.join("series.csv")).unwrap();
        assert_eq!(csv, "time\n0.0\n0.1\n0.2\n");
        std::fs::remove_dir_all(directory).unwrap();
    }
    assert!(digests.iter().all(|digest| *digest == digests[0]));
}

/// A Python that has VTK.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("BRECCIA_PYTHON").map(PathBuf::from);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
    let has_vtk = |python: &PathBuf| {
        let asked = Command::new(python).arg(script()).arg("--version").output();
        asked.is_ok_and(|output| output.status.success())
    };
    named.into_iter().chain([own, "python3".into()]).find(has_vtk)
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/read_vtkhdf.py")
}

#[test]
fn vtk_reads_every_step_of_every_file() {
    let Some(python) = python() else {
        return skip::test("no Python with VTK (make setup)");
    };
    for ranks in 1..=3 {
        let directory = written_by(ranks, "vtk");
        let names = ["bodies.vtkhdf", "points.vtkhdf", "contacts.vtkhdf", "chains.vtkhdf"];
        let paths = names.map(|name| directory.join(name));
        let output = Command::new(&python).arg(script()).args(&paths).output().unwrap();
        let problem = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && problem.is_empty(), "{ranks} ranks: {problem}");
        let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
        let files = seen["files"].as_array().unwrap();
        for step in 0..STEPS {
            for (file, name) in files.iter().zip(names) {
                assert_eq!(file.as_array().unwrap().len(), STEPS);
                check_step(&file[step], name, step, &format!("{name}, step {step}, {ranks} ranks"));
            }
        }
        std::fs::remove_dir_all(directory).unwrap();
    }
}

/// What a step must hold, worked out by hand for each file.
fn check_step(seen: &Value, name: &str, step: usize, place: &str) {
    let number = |key: &str| seen[key].as_u64().unwrap() as usize;
    let counts = [number("points"), number("vertices"), number("lines"), number("polygons")];
    assert_eq!(seen["time"].as_f64(), Some(TIME_STEP * step as f64), "{place}");
    let sum = |array: &str, component: usize| seen["arrays"][array][component].as_f64().unwrap_or(0.0);
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-5 * (1.0 + b.abs()), "{place}: {a} is not {b}");
    let rows = contacts(step);
    let (last, tool) = (step == STEPS - 1, step >= 3);
    match name {
        "contacts.vtkhdf" => {
            assert_eq!(counts, [rows.len(), rows.len(), 0, 0], "{place}");
            near(sum("impulse", 2), rows.iter().map(|row| row.impulse.z).sum());
            near(sum("force", 0), rows.iter().map(|row| row.impulse.x / TIME_STEP).sum());
            near(sum("gap", 0), rows.iter().map(|row| row.gap).sum());
            near(sum("body_ids", 1), rows.iter().map(|row| row.ids[1] as f64).sum());
        }
        "chains.vtkhdf" => {
            let pairs = step.min(4);
            assert_eq!(counts, [2 * pairs, 0, pairs, 0], "{place}");
            let total: f64 = rows.iter().map(|row| row.impulse.z / TIME_STEP).sum();
            near(sum("normal_force", 0), 2.0 * total);
            let ends: std::collections::BTreeMap<_, _> =
                rows.iter().map(|row| (row.ids, row.centres)).collect();
            near(seen["length"].as_f64().unwrap(), ends.values().map(|[a, b]| (a - b).norm()).sum());
        }
        _ if last => assert_eq!(counts, [0; 4], "{place}"),
        _ => {
            // Points, vertices and polygons of a sphere in this file; then floor, cube, sphere, tool.
            let (points, vertices, polygons) = if name == "points.vtkhdf" { (1, 1, 0) } else { (42, 0, 80) };
            let more = if tool { 1 } else { 0 };
            let expected = [
                4 + 8 + points + more * (8 + points),
                (1 + more) * vertices,
                0,
                1 + 6 + polygons + more * (6 + polygons),
            ];
            assert_eq!(counts, expected, "{place}");
            let on_tool = (more * (8 + points)) as f64;
            near(sum("id", 0), (8 + 2 * points) as f64 + 7.0 * on_tool);
            near(sum("group", 0), 8.0 + on_tool);
            near(sum("velocity", 1), 0.5 * ((8 + points) as f64 - on_tool));
            near(sum("angular_velocity", 2), (8 + 2 * points) as f64 + 7.0 * on_tool);
            if name == "points.vtkhdf" {
                near(sum("radius", 0), if tool { 0.75 } else { 0.5 });
            }
            check_bounds(seen, name, step);
            let floor = (domain().max - domain().min).norm_squared();
            let round = 4.0 * PI * (0.25 + if tool { 0.0625 } else { 0.0 });
            let flat = floor + 6.0 + if tool { 6.0 * 0.36 } else { 0.0 };
            let area = seen["area"].as_f64().unwrap();
            if name == "points.vtkhdf" {
                near(area, flat);
            } else {
                assert!((0.9 * round..round).contains(&(area - flat)), "{place}: the area is {area}");
            }
        }
    }
}

fn check_bounds(seen: &Value, name: &str, step: usize) {
    let around = |point: &Vec3| Aabb { min: *point, max: *point };
    let half = (domain().max - domain().min).norm() / 2.0;
    let mut expected =
        around(&Vec3::new(1.0 - half, 1.0 - half, 0.0)).with_point(&Vec3::new(1.0 + half, 1.0 + half, 0.0));
    for body in &bodies(step)[1..] {
        for (pose, convex) in body.shape.parts() {
            let pose = body.pose.compose(&pose);
            expected = match convex {
                Convex::Sphere { .. } if name == "points.vtkhdf" => expected.with_point(&pose.position),
                _ => expected.union(&convex.aabb(&pose)),
            };
        }
    }
    // A tessellated sphere stays inside the true one, by less than 6 % of its radius at refinement 1.
    let slack = if name == "points.vtkhdf" { 1e-12 } else { 0.03 };
    for axis in 0..3 {
        let (low, high) = (&seen["bounds"][2 * axis], &seen["bounds"][2 * axis + 1]);
        let (low, high) = (low.as_f64().unwrap(), high.as_f64().unwrap());
        let inside = (expected.min[axis]..=expected.min[axis] + slack + 1e-6).contains(&(low + 1e-6));
        assert!(inside, "{name}, step {step}, axis {axis}: {low}, {}", expected.min[axis]);
        let inside = (expected.max[axis] - slack - 1e-6..=expected.max[axis]).contains(&(high - 1e-6));
        assert!(inside, "{name}, step {step}, axis {axis}: {high}, {}", expected.max[axis]);
    }
}
