//! The case of these tests, and what must be equal between two runs of it.

use crate::support::{Directory, breccia, project};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Balls in a drum that turns, between fixed walls: generated grains, a kinematic body, pictures and rows at
/// odd intervals.
pub const CASE: &str = "inputs/rotating-drum.toml";
pub const SETTINGS: [&str; 10] = [
    "--set",
    "grains.balls.count=120",
    "--set",
    "output.interval=0.0085",
    "--set",
    "output.series_interval=0.0015",
    "--set",
    "solver.tolerance=1e-2",
    "--set",
    "checkpoint.steps=23",
];

/// What takes longer hangs. It takes seconds; a machine with other work may need many more.
pub const PATIENCE: Duration = Duration::from_secs(300);

pub fn soak() -> bool {
    std::env::var_os("BRECCIA_SOAK").is_some()
}

/// Numbers that are the same in every `make test`, others in every `make soak`.
pub struct Random(u64);

impl Random {
    pub fn new(purpose: u64) -> Self {
        let moment =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.as_nanos());
        let seed = if soak() { moment as u64 } else { 7 };
        println!("random numbers from {seed}, {purpose}");
        Self(seed ^ purpose << 32)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

/// A directory for results.
pub struct Out {
    directory: Directory,
    pub path: PathBuf,
    case: &'static str,
    settings: &'static [&'static str],
}

impl Out {
    pub fn new(name: &str) -> Self {
        Self::of(name, CASE, &SETTINGS)
    }

    pub fn of(name: &str, case: &'static str, settings: &'static [&'static str]) -> Self {
        let directory = Directory::new(&format!("restart-{name}"));
        let path = directory.file("out");
        Self { directory, path, case, settings }
    }

    /// A place beside the results.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.directory.file(name)
    }

    /// Runs the case here; the exit code and what was said.
    pub fn run(&self, ranks: usize, steps: u64, more: &[&str]) -> (i32, String) {
        let (case, out) = (project(self.case).display().to_string(), self.path.display().to_string());
        let steps = steps.to_string();
        let mut arguments = vec!["run", &case, "--out", &out, "--threads", "1", "--steps", &steps];
        arguments.extend(self.settings);
        arguments.extend(more);
        if ranks > 1 {
            return breccia(ranks, &arguments);
        }
        // One rank needs no mpirun, which takes longer to start than some of these runs.
        let output = Command::new(env!("CARGO_BIN_EXE_breccia"))
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("the program starts");
        let words = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&words).into_owned())
    }

    /// The same, which must succeed.
    pub fn finish(&self, ranks: usize, steps: u64, more: &[&str]) -> String {
        let (code, words) = self.run(ranks, steps, more);
        assert_eq!(code, 0, "{words}");
        words
    }

    /// The same in the background, of one rank without mpirun or of several with it.
    pub fn start(&self, ranks: usize, steps: u64, more: &[&str]) -> Child {
        let mut command = self.command(ranks, steps, more);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("the program starts")
    }

    /// What starts it.
    pub fn command(&self, ranks: usize, steps: u64, more: &[&str]) -> Command {
        let binary = env!("CARGO_BIN_EXE_breccia");
        let mut command = if ranks == 1 { Command::new(binary) } else { Command::new("mpirun") };
        if ranks > 1 {
            command.args(["--oversubscribe", "-n", &ranks.to_string(), binary]);
        }
        command
            .arg("run")
            .arg(project(self.case))
            .arg("--out")
            .arg(&self.path)
            .args(["--threads", "1", "--steps", &steps.to_string()])
            .args(self.settings)
            .args(more)
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .env("OMPI_MCA_mpi_yield_when_idle", "1");
        command
    }

    pub fn results(&self) -> Results {
        Results::of(&self.path)
    }

    pub fn checkpoints(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path.join("checkpoints")).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|e| e == "h5"))
            .collect();
        found.sort();
        found
    }
}

/// A process and its children, children first.
pub fn family(process: u32) -> Vec<u32> {
    let children = format!("/proc/{process}/task/{process}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let mut all: Vec<u32> =
        children.split_whitespace().filter_map(|id| id.parse().ok()).flat_map(family).collect();
    all.push(process);
    all
}

pub fn send(signal: &str, processes: &[u32]) {
    let ids: Vec<String> = processes.iter().map(u32::to_string).collect();
    let _ = Command::new("kill").arg(format!("-{signal}")).args(ids).stderr(Stdio::null()).status();
}

/// Waits until a run has ended. One that hangs is ended here, with all its ranks.
pub fn ended(child: &mut Child, what: &str) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("the run can be asked") {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            send("KILL", &family(child.id()));
            panic!("{what}: the run hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What a run leaves that may not depend on how it came about.
#[derive(PartialEq)]
pub struct Results {
    pub digest: String,
    pub series: String,
    pub machines: Option<String>,
    pub pictures: Vec<Vec<Picture>>,
}

/// One step of a frame file: its time, and its points in an order that does not depend on ranks.
#[derive(PartialEq)]
pub struct Picture {
    pub time: f64,
    pub points: Vec<[u32; 3]>,
}

impl Results {
    fn of(path: &Path) -> Self {
        let series = std::fs::read_to_string(path.join("series.csv")).expect("a series");
        let file = hdf5::File::open(path.join("series.h5")).expect("a readable series");
        let steps: Vec<i64> = file.dataset("series/step").and_then(|data| data.read_raw()).expect("a column");
        let lines = series.lines().skip(1).map(|line| line.split(',').next().unwrap_or_default());
        assert!(lines.eq(steps.iter().map(i64::to_string)), "series.csv and series.h5 differ");
        Results {
            digest: breccia::output::digest(&path.join("final.h5")).expect("a final state"),
            series,
            machines: std::fs::read_to_string(path.join("machines.csv")).ok(),
            pictures: ["bodies.vtkhdf", "contacts.vtkhdf"].map(|name| pictures(&path.join(name))).into(),
        }
    }

    /// With words for what differs.
    pub fn assert_same(&self, other: &Results, what: &str) {
        assert_eq!(self.digest, other.digest, "{what}: the digest");
        let same = self.series == other.series;
        assert!(
            same,
            "{what}: the series has {} and {} lines",
            self.series.lines().count(),
            other.series.lines().count()
        );
        assert!(self.machines == other.machines, "{what}: the series of the machines");
        for (own, other) in self.pictures.iter().zip(&other.pictures) {
            let times =
                |pictures: &[Picture]| pictures.iter().map(|picture| picture.time).collect::<Vec<_>>();
            assert_eq!(times(own), times(other), "{what}: times of pictures");
            for (own, other) in own.iter().zip(other) {
                assert!(own.points == other.points, "{what}: the picture at t = {}", own.time);
            }
        }
    }
}

pub fn pictures(path: &Path) -> Vec<Picture> {
    let file = hdf5::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let group = file.group("VTKHDF").expect("VTKHDF");
    let integers =
        |name: &str| -> Vec<i64> { group.dataset(name).and_then(|data| data.read_raw()).expect("a column") };
    let count: i64 = group.group("Steps").and_then(|g| g.attr("NSteps")?.read_scalar()).expect("NSteps");
    if count == 0 {
        return Vec::new();
    }
    let times: Vec<f64> = group.dataset("Steps/Values").and_then(|data| data.read_raw()).expect("times");
    assert_eq!(times.len() as i64, count);
    let (first, parts, part_counts) =
        (integers("Steps/PointOffsets"), integers("Steps/PartOffsets"), integers("Steps/NumberOfParts"));
    let numbers = integers("NumberOfPoints");
    let points: Vec<f32> = group.dataset("Points").and_then(|data| data.read_raw()).expect("points");
    let picture = |step: usize| {
        let own = &numbers[parts[step] as usize..(parts[step] + part_counts[step]) as usize];
        let range = 3 * first[step] as usize..3 * (first[step] + own.iter().sum::<i64>()) as usize;
        let mut points: Vec<[u32; 3]> =
            points[range].chunks_exact(3).map(|point| [0, 1, 2].map(|axis| point[axis].to_bits())).collect();
        points.sort_unstable();
        Picture { time: times[step], points }
    };
    (0..times.len()).map(picture).collect()
}
