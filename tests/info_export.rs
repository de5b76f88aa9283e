//! `breccia info` and `breccia export` on the files of a real run: kinds and numbers, damage, and what NumPy
//! and VTK read.

mod support;

use breccia::commands::inspect::text_table::TextTable;
use breccia::output::StateFile;
use breccia::scene::Body;
use decomposition::Solo;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Directory, project};

/// Thirty stones fall for a moment, on two ranks, with two frames between the first and the last.
fn fallen(name: &str) -> (Directory, PathBuf) {
    let directory = Directory::new(name);
    let out = directory.file("run");
    let more = [
        "--steps",
        "60",
        "--set",
        "grains.ballast.count=30",
        "--set",
        "output.interval=0.01",
        "--set",
        "output.contacts=\"points\"",
        "--set",
        "grains.ballast.region={ min = [-0.2, -0.2, 0.0], max = [0.2, 0.2, 0.25] }",
    ];
    support::run(&project("inputs/ballast-box.toml"), 2, &out, &more);
    (directory, out)
}

fn breccia(arguments: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_breccia")).args(arguments).output().expect("breccia starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn python() -> Option<PathBuf> {
    let named = std::env::var_os("BRECCIA_PYTHON").map(PathBuf::from);
    let has_both = |python: &PathBuf| {
        let asked = Command::new(python).args(["-c", "import vtk, numpy"]).output();
        asked.is_ok_and(|output| output.status.success())
    };
    named.into_iter().chain([project(".venv/bin/python"), "python3".into()]).find(has_both)
}

fn state(path: &Path) -> Vec<Body> {
    let file = StateFile::open(path, &Solo).expect("the final state is whole");
    let mut bodies = file.read_bodies(0..file.body_count()).expect("bodies can be read");
    bodies.sort_by_key(|body| body.id);
    bodies
}

#[test]
fn info_tells_kinds_steps_and_damage() {
    let (_kept, out) = fallen("info");
    let name = out.display().to_string();
    let (code, text, words) = breccia(&["info", "--json", &name]);
    assert_eq!(code, 0, "{words}");
    let all: Value = serde_json::from_str(&text).expect("--json prints JSON");
    let file = |name: &str| {
        let found =
            all.as_array().unwrap().iter().find(|file| file["path"].as_str().unwrap().ends_with(name));
        found.unwrap_or_else(|| panic!("{name} is not told: {text}")).clone()
    };
    let frames = file("bodies.vtkhdf");
    assert_eq!((frames["kind"].as_str(), frames["facts"]["steps"].as_u64()), (Some("frames"), Some(4)));
    assert_eq!(frames["facts"]["last_time"].as_f64(), Some(0.03));
    assert!(
        frames["datasets"]
            .as_array()
            .unwrap()
            .iter()
            .any(|set| set["name"] == "VTKHDF/Points" && set["type"] == "f32")
    );
    assert_eq!(file("contacts.vtkhdf")["kind"], "contacts");
    assert_eq!(file("series.h5")["facts"]["rows"], 60);
    assert_eq!(file("series.csv")["facts"]["rows"], 60);
    let end = file("final.h5");
    assert_eq!((end["kind"].as_str(), end["facts"]["seal"].as_str()), (Some("state"), Some("whole")));
    assert_eq!((end["facts"]["step"].as_u64(), end["facts"]["bodies"].as_u64()), (Some(60), Some(35)));
    assert_eq!(end["facts"]["case_title"], "Ballast in a box");
    assert_eq!(end["facts"]["case_hash"].as_str().unwrap().len(), 32);
    assert_eq!(file("summary.json")["facts"]["status"], "finished");
    let (code, text, _) = breccia(&["info", &name]);
    assert!(code == 0 && text.contains("velocity (f32 x 3)") && text.contains("deflate"), "{text}");

    // One flipped byte in the state, a foreign file, a missing one, an empty directory.
    let mut bytes = std::fs::read(out.join("final.h5")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(out.join("broken.h5"), &bytes).unwrap();
    let broken = out.join("broken.h5").display().to_string();
    let (code, text, words) = breccia(&["info", &broken]);
    assert!(
        code == 4 && text.contains("broken") && text.contains("checksum") && words.contains("not all"),
        "{text}{words}"
    );
    std::fs::write(out.join("poem.txt"), "Roses are red").unwrap();
    let (code, text, _) = breccia(&["info", &out.join("poem.txt").display().to_string()]);
    assert!(code == 4 && text.contains("not a result file"), "{text}");
    let (code, _, words) = breccia(&["info", "/nowhere/at/all.h5"]);
    assert!(code == 4 && words.contains("/nowhere/at/all.h5"), "{words}");
    std::fs::create_dir(out.join("empty")).unwrap();
    let (code, _, words) = breccia(&["info", &out.join("empty").display().to_string()]);
    assert!(code == 4 && words.contains("no result files"), "{words}");
}

#[test]
fn exported_bodies_are_the_bodies() {
    let (kept, out) = fallen("export");
    let bodies = state(&out.join("final.h5"));
    let path = |name: &str| kept.file(name).display().to_string();
    let table = |name: &str, arguments: &[&str]| {
        let (code, _, words) = breccia(&[arguments, &["--format", "csv", "--out", &path(name)]].concat());
        assert_eq!(code, 0, "{words}");
        TextTable::read(&kept.file(name)).expect("a table")
    };
    // From the state: every number comes back with its bits.
    let exact = table("state.csv", &["export", &out.join("final.h5").display().to_string()]);
    let column =
        |table: &TextTable, name: &str| table.column(name).unwrap_or_else(|| panic!("no {name}")).to_vec();
    assert_eq!(exact.rows(), bodies.len());
    for (axis, name) in ["x", "y", "z"].iter().enumerate() {
        let wanted: Vec<f64> = bodies.iter().map(|body| body.pose.position[axis]).collect();
        assert_eq!(column(&exact, &format!("position/{name}")), wanted);
        let wanted: Vec<f64> = bodies.iter().map(|body| body.angular_velocity[axis]).collect();
        assert_eq!(column(&exact, &format!("angular_velocity/{name}")), wanted);
    }
    assert_eq!(
        column(&exact, "orientation/w"),
        bodies.iter().map(|body| body.pose.rotation.w).collect::<Vec<_>>()
    );
    // From the last frame, in single precision: poses fitted to the state's shapes are the state's, nearly.
    let seen = table("frame.csv", &["export", &out.display().to_string(), "--step", "last"]);
    assert_eq!(seen.rows(), bodies.len());
    compare_poses(&seen, &bodies, 1e-6);
    // Without a state beside, centres of mass still follow from the shapes; orientations count from the first
    // frame.
    let alone = kept.file("alone");
    std::fs::create_dir(&alone).unwrap();
    std::fs::copy(out.join("bodies.vtkhdf"), alone.join("bodies.vtkhdf")).unwrap();
    let first = table("first.csv", &["export", &alone.display().to_string(), "--step", "first"]);
    assert!(column(&first, "orientation/w").iter().all(|w| (w - 1.0).abs() < 1e-6));
    let relative = table("relative.csv", &["export", &alone.display().to_string(), "--step", "time=99"]);
    let ids = column(&relative, "id");
    for (row, id) in ids.iter().enumerate() {
        let body = &bodies[*id as usize];
        if body.mass.is_finite() {
            let x = column(&relative, "position/x")[row];
            assert!((x - body.pose.position.x).abs() < 1e-6, "body {id}: {x}");
        }
    }
    let all = table("all.csv", &["export", &out.display().to_string(), "--step", "all"]);
    assert_eq!(all.rows(), 4 * bodies.len());
    // The series is what the run's own table says.
    let series =
        table("series.csv", &["export", &out.join("series.h5").display().to_string(), "--step", "all"]);
    let own = TextTable::read(&out.join("series.csv")).unwrap();
    for name in &own.names {
        assert_eq!(series.column(name), own.column(name), "{name}");
    }
    // What cannot be done is said.
    let (code, _, words) =
        breccia(&["export", &out.join("series.h5").display().to_string(), "--format", "vtu"]);
    assert!(code == 4 && words.contains("no geometry"), "{words}");
    let (code, _, words) =
        breccia(&["export", &out.display().to_string(), "--format", "csv", "--step", "17"]);
    assert!(code == 4 && words.contains("steps 0 to 3"), "{words}");
    let (code, _, words) =
        breccia(&["export", &out.display().to_string(), "--format", "csv", "--step", "soon"]);
    assert!(code == 2 && words.contains("time=T"), "{words}");
    let (code, _, words) =
        breccia(&["export", &out.join("final.h5").display().to_string(), "--format", "csv", "--step", "2"]);
    assert!(code == 4 && words.contains("2 was asked for"), "{words}");
    let (code, _, words) = breccia(&["export", &path("frame.csv"), "--format", "csv"]);
    assert!(code == 4 && words.contains("--out"), "{words}");
}

fn compare_poses(seen: &TextTable, bodies: &[Body], near: f64) {
    let column = |name: &str| seen.column(name).unwrap_or_else(|| panic!("no {name}"));
    for (row, id) in column("id").iter().enumerate() {
        let body = &bodies[*id as usize];
        if !body.mass.is_finite() {
            continue;
        }
        let place = |axis: &str| column(&format!("position/{axis}"))[row];
        let apart = breccia::geometry::Vec3::new(place("x"), place("y"), place("z")) - body.pose.position;
        assert!(apart.norm() < near, "body {id} is {} m away", apart.norm());
        let turn = |axis: &str| column(&format!("orientation/{axis}"))[row];
        let turn = nalgebra::Quaternion::new(turn("w"), turn("x"), turn("y"), turn("z"));
        let angle = nalgebra::UnitQuaternion::from_quaternion(turn).angle_to(&body.pose.rotation);
        assert!(angle < 1e-4, "body {id} is turned by {angle}");
    }
}

#[test]
fn numpy_and_vtk_read_what_is_exported() {
    let Some(python) = python() else {
        return support::skip::test("no Python with VTK and NumPy (make setup)");
    };
    let (kept, out) = fallen("readers");
    let path = |name: &str| kept.file(name).display().to_string();
    let contacts = out.join("contacts.vtkhdf").display().to_string();
    let (run, end) = (out.display().to_string(), out.join("final.h5").display().to_string());
    let wanted = [
        ("bodies.npz", vec!["export", &run, "--step", "all", "--format", "npz"]),
        ("state.npz", vec!["export", &end, "--format", "npz"]),
        ("contacts.npz", vec!["export", &contacts, "--format", "npz"]),
        ("bodies.vtu", vec!["export", &run, "--format", "vtu"]),
        ("state.vtu", vec!["export", &end, "--format", "vtu"]),
        ("contacts.vtu", vec!["export", &contacts, "--format", "vtu"]),
    ];
    for (name, arguments) in &wanted {
        let (code, _, words) = breccia(&[&arguments[..], &["--out", &path(name)]].concat());
        assert_eq!(code, 0, "{name}: {words}");
    }
    let (code, text, words) =
        breccia(&["export", &run, "--step", "all", "--format", "vtu", "--out", &path("all.vtu")]);
    assert!(code == 0 && text.lines().count() == 5 && kept.file("all.pvd").exists(), "{text}{words}");
    let output = Command::new(&python)
        .arg(project("tests/python/read_exports.py"))
        .args(wanted.iter().map(|(name, _)| path(name)))
        .arg(path("all_000003.vtu"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let bodies = state(&out.join("final.h5"));
    let free = || bodies.iter().filter(|body| body.mass.is_finite());
    assert_eq!(seen[0]["position"]["shape"], serde_json::json!([4 * bodies.len(), 3]));
    assert_eq!(
        (&seen[0]["velocity"]["type"], &seen[0]["time"]["shape"]),
        (&"float32".into(), &serde_json::json!([4]))
    );
    assert_eq!(seen[1]["mass"]["shape"], serde_json::json!([bodies.len()]));
    let height: f64 = bodies.iter().map(|body| body.pose.position.z).sum();
    assert!((seen[1]["position"]["sum"].as_f64().unwrap() - height).abs() < 10.0);
    assert_eq!(seen[1]["impulse"]["shape"][1], 3);
    assert_eq!(seen[2]["point"]["shape"][0], seen[5]["cells"]);
    // Stones have 2700 kg/m³: what VTK measures of their polyhedra is their mass.
    let volume: f64 = free().map(|body| body.mass / 2700.0).sum();
    for (k, cells) in [(3, bodies.len()), (4, free().count()), (6, bodies.len())] {
        assert_eq!(seen[k]["cells"].as_u64(), Some(cells as u64));
        let found = seen[k]["volume"].as_f64().unwrap();
        assert!((found - volume).abs() < 1e-5 * volume, "{found} is not {volume}");
        assert_eq!(seen[k]["time"].as_f64(), Some(0.03));
    }
    let ids: u64 = free().map(|body| body.id.0).sum();
    assert_eq!(seen[4]["arrays"]["id"][0].as_f64(), Some(ids as f64));
}
