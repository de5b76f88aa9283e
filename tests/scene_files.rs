//! Scene files whose mass, inertia or triangles no body can have, or that are not those of the vertices:
//! refused with file, dataset and row; taken in place of the shape's only on request.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A process that is started while another test has its file open inherits the lock of that file: one test
/// at a time.
static TURN: Mutex<()> = Mutex::new(());

struct Scene {
    directory: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Scene {
    /// A copy of the packing that is shipped, and the case beside it.
    fn new(name: &str) -> Self {
        // A test that has failed has left nothing behind that the others look at.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("scene-{name}"));
        std::fs::create_dir_all(directory.join("data")).expect("a folder");
        std::fs::copy(root.join("inputs/data/stones1000.h5"), directory.join("data/stones1000.h5"))
            .expect("a scene");
        std::fs::copy(root.join("inputs/stones1000-settled.toml"), directory.join("case.toml"))
            .expect("a case");
        Self { directory, _turn: turn }
    }

    fn number(&self, dataset: &str, change: impl Fn(&mut [f64])) {
        let file = hdf5::File::open_rw(self.directory.join("data/stones1000.h5")).expect("a scene");
        let dataset = file.dataset(dataset).expect("a dataset");
        let mut numbers = dataset.read_raw::<f64>().expect("numbers");
        change(&mut numbers);
        let shaped = ndarray::ArrayD::from_shape_vec(dataset.shape(), numbers).expect("as many");
        dataset.write(&shaped).expect("it is written");
    }

    /// Exit code, and all that it says.
    fn check(&self, set: &[&str]) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_breccia"));
        command.arg("check").arg(self.directory.join("case.toml"));
        set.iter().for_each(|set| {
            command.args(["--set", set]);
        });
        let output = command.output().expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
    }

    fn refused(&self, set: &[&str], words: &[&str]) {
        let (code, text) = self.check(set);
        assert_eq!(code, 1, "{text}");
        assert!(words.iter().all(|word| text.contains(word)) && text.contains("stones1000.h5"), "{text}");
    }
}

const FILE: &str = "grains.stones.properties=\"file\"";
const SHAPE: &str = "grains.stones.properties=\"shape\"";

#[test]
fn masses_are_positive_and_those_of_the_shape_unless_the_case_says_otherwise() {
    let scene = Scene::new("mass");
    assert_eq!(scene.check(&[]).0, 0);
    scene.number("mass", |mass| mass[7] *= 1.005);
    assert_eq!(scene.check(&[]).0, 0, "within the tolerance");
    scene.number("mass", |mass| mass[7] *= 1.5);
    scene.refused(&[], &["body 7", "mass", "properties"]);
    let [shape, file] = [SHAPE, FILE].map(|set| scene.check(&[set]));
    assert!(shape.0 == 0 && file.0 == 0, "{shape:?} {file:?}");
    assert_ne!(shape.1, file.1, "the mass of the file counts on request only");
    for wrong in [-1.0, 0.0, f64::NAN] {
        scene.number("mass", |mass| mass[7] = wrong);
        for set in [&[][..], &[SHAPE], &[FILE]] {
            scene.refused(set, &["mass, row 7"]);
        }
    }
}

#[test]
fn moments_are_those_of_a_body() {
    let scene = Scene::new("inertia");
    scene.number("inertia", |moments| moments[3 * 40] *= 1.2);
    scene.refused(&[], &["body 40", "inertia"]);
    scene.number("inertia", |moments| moments[3 * 40] *= 10.0);
    scene.refused(&[FILE], &["inertia, row 40", "no moments of a body"]);
}

#[test]
fn triangles_are_the_surface_of_the_hull() {
    let scene = Scene::new("triangles");
    let path = scene.directory.join("data/stones1000.h5");
    let change = |corner: i32| {
        let file = hdf5::File::open_rw(&path).expect("a scene");
        let dataset = file.dataset("tris").expect("a dataset");
        let mut corners = dataset.read_raw::<i32>().expect("numbers");
        corners[3 * 36 * 12] = corner;
        let shaped = ndarray::ArrayD::from_shape_vec(dataset.shape(), corners).expect("as many");
        dataset.write(&shaped).expect("it is written");
    };
    change(20);
    scene.refused(&[], &["tris, row 12", "20 is no vertex"]);
    let file = hdf5::File::open(&path).expect("a scene");
    let second =
        file.dataset("tris").and_then(|data| data.read_raw::<i32>()).expect("numbers")[3 * 36 * 12 + 1];
    file.close().expect("it closes");
    change(second);
    scene.refused(&[], &["body 12", "tris enclose"]);
}
