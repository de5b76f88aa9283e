//! A step whose solve is broken off by a signal leaves the state of its start, and the steps from there on
//! have the same bits as if nothing had been.

use breccia::input::read_case_with;
use breccia::setup::{self, Setup};
use breccia::step::{Snapshot, StepError, Stepper};
use decomposition::{Comm, Exchange, threads};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Keys and values in place of the file's.
type Settings = &'static [(&'static str, &'static str)];

/// A rank that can be asked to stop.
struct Asked<'a> {
    inner: &'a dyn Comm,
    signal: AtomicUsize,
}

impl Comm for Asked<'_> {
    fn rank(&self) -> usize {
        self.inner.rank()
    }
    fn size(&self) -> usize {
        self.inner.size()
    }
    fn barrier(&self) {
        self.inner.barrier();
    }
    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) {
        self.inner.broadcast(root, bytes);
    }
    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.inner.all_gather(bytes)
    }
    fn max_f64(&self, values: &mut [f64]) {
        self.inner.max_f64(values);
    }
    fn sum_i64(&self, values: &mut [i64]) {
        self.inner.sum_i64(values);
    }
    fn scatter(&self, outgoing: Vec<(usize, Vec<u8>)>) -> Vec<(usize, Vec<u8>)> {
        self.inner.scatter(outgoing)
    }
    fn swap(&self, outgoing: Vec<(usize, Vec<u8>)>) -> Vec<(usize, Vec<u8>)> {
        self.inner.swap(outgoing)
    }
    fn begin(&self, exchange: &mut Exchange) {
        self.inner.begin(exchange);
    }
    fn has_arrived(&self, exchange: &mut Exchange) -> bool {
        self.inner.has_arrived(exchange)
    }
    fn finish(&self, exchange: &mut Exchange) {
        self.inner.finish(exchange);
    }
    fn abort(&self, code: i32) -> ! {
        self.inner.abort(code)
    }
    fn asked_to_stop(&self) -> usize {
        self.signal.load(Ordering::Relaxed)
    }
}

/// The state after the first step with `points` contact points, a step that is broken off where `stops`, and
/// some more.
fn steps(case: &str, set: Settings, points: u64, stops: bool, comm: &dyn Comm) -> Snapshot {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs").join(case);
    let set: Vec<(String, String)> =
        set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let case = read_case_with(&path, &set).expect("a shipped case");
    let asked = Asked { inner: comm, signal: AtomicUsize::new(0) };
    let Setup { scene, machines, physics, solver, decomposition, .. } =
        setup::build(&case, &asked).expect("a scene");
    let mut stepper = Stepper::with_machines(scene, machines, physics, solver, decomposition, &asked);
    stepper.let_stop();
    while stepper.step().expect("a step").contact_points < points {
        assert!(stepper.scene().state.step < 2000, "nothing touches");
    }
    if stops {
        let (start, start_step) = (stepper.snapshot(), stepper.scene().state.step);
        // One rank is enough.
        asked.signal.store(if comm.rank() + 1 == comm.size() { 15 } else { 0 }, Ordering::Relaxed);
        assert_eq!(stepper.step(), Err(StepError::Stopped { signal: 15 }));
        assert!(stepper.snapshot() == start, "the start of step {} is there again", start_step + 1);
        asked.signal.store(0, Ordering::Relaxed);
    }
    for _ in 0..3 {
        stepper.step().expect("a step");
    }
    stepper.snapshot()
}

#[test]
fn a_step_that_is_broken_off_leaves_its_start() {
    const EXACT: (&str, &str) = ("solver.tolerance", "1e-18");
    const FEW: (&str, &str) = ("solver.maximum_sweeps", "40");
    let cases: [(&str, Settings, u64); 3] = [
        // Kinematic plates.
        ("rotating-drum.toml", &[("grains.balls.count", "60"), EXACT, FEW], 40),
        // Stones with anchors.
        ("ballast-box.toml", &[EXACT, FEW], 40),
        // A machine with loops and phases.
        ("scoop.toml", &[EXACT, FEW], 10),
    ];
    for (case, set, points) in cases {
        for ranks in [1, 3] {
            let run = |stops: bool| threads::run(ranks, |comm| steps(case, set, points, stops, comm));
            assert!(run(true) == run(false), "{case} on {ranks} ranks");
        }
    }
}
