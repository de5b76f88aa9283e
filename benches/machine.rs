//! Cost of the machine in one time step, and proof that a step allocates nothing.
//!
//! `cargo bench --bench machine`. Measured per step: two loop closures, one reduction, one completion of
//! velocities. Limits of the project: 20 µs for the 8-body machine with two loops.

use breccia::geometry::{Mat3, Vec3};
use breccia::multibody::{
    BodySpec, CutKind, ForceEvaluation, ForceSpec, JointKind, JointSpec, Law, LinkLaw, Multibody,
    MultibodyBuilder,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The system's allocator, counting.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `System` by `alloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn hinge() -> JointKind {
    JointKind::Revolute { axis: Vec3::y() }
}

fn part(name: &str, mass: f64, half: f64) -> BodySpec {
    let moment = mass * half * half / 3.0;
    BodySpec::new(name, mass, Vec3::zeros(), Mat3::from_diagonal(&Vec3::new(moment, moment, moment)))
}

/// A tamping unit after [Docquier2020, section 6]: eight bodies, ten coordinates, two planar loops closed by
/// points in space.
fn tamping_unit() -> Multibody {
    let mut builder = MultibodyBuilder::new("tamping unit");
    let at = |x: f64, z: f64| Vec3::new(x, 0.0, z);
    builder.gravity(at(0.0, -9.81));
    builder.body(part("support", 50.0, 0.3).point("lug", at(0.6, 0.1)));
    builder.body(part("chassis", 20.0, 0.3));
    builder.body(BodySpec::new("flywheel", 15.0, at(0.02, 0.0), Mat3::identity() * 0.2));
    for (name, side) in [("left arm", -1.0), ("right arm", 1.0)] {
        builder.body(part(name, 15.0, 0.5).point("top", at(-0.1 * side, 0.3)).with_contacts());
    }
    builder.body(part("barrel", 3.0, 0.2)).body(part("ram", 2.0, 0.2).point("eye", at(0.25, 0.0)));
    builder.body(part("connecting rod", 3.0, 0.2).point("end", at(0.2, 0.35)));
    let joint = |name: &str, kind: JointKind, parent: &str, place: Vec3| {
        JointSpec::new(name, kind, parent, name).parent_at(place)
    };
    let prismatic = |axis: Vec3| JointKind::Prismatic { axis };
    builder.joint(joint("support", prismatic(Vec3::z()), "ground", Vec3::zeros()));
    let planar = JointKind::Planar { normal: Vec3::y(), first: Vec3::z() };
    builder.joint(joint("chassis", planar, "support", at(0.0, -0.2)));
    builder.joint(joint("flywheel", hinge(), "chassis", at(0.0, 0.1)).start(&[0.0], &[220.0]));
    builder.joint(joint("left arm", hinge(), "chassis", at(-0.3, -0.2)));
    builder.joint(joint("right arm", hinge(), "chassis", at(0.3, -0.2)));
    builder.joint(joint("barrel", hinge(), "left arm", at(0.1, 0.3)));
    builder.joint(joint("ram", prismatic(Vec3::x()), "barrel", Vec3::zeros()).start(&[0.15], &[0.0]));
    builder.joint(joint("connecting rod", hinge(), "right arm", at(0.1, 0.1)));
    let points = |a: &str, b: &str| CutKind::Points { a: a.into(), b: b.into() };
    builder.cut("squeeze", points("ram.eye", "right arm.top"));
    builder.cut("guide", points("connecting rod.end", "support.lug"));
    for (name, coordinate) in
        [("spring x", "chassis.x"), ("spring y", "chassis.y"), ("spring turn", "chassis.angle")]
    {
        let coordinate = coordinate.to_string();
        builder.force(name, ForceSpec::JointSpring { coordinate, stiffness: 5e4, damping: 200.0, rest: 0.0 });
    }
    let dive = Law::function(|input| 600.0 - 3e3 * input.rate);
    builder.force("dive", ForceSpec::Actuator { coordinate: "support".into(), law: dive });
    let squeeze = Law::function(|input| -5e4 * (input.value - 0.15) - 1e3 * input.rate);
    builder.force("squeeze", ForceSpec::Actuator { coordinate: "ram".into(), law: squeeze });
    let hold = LinkLaw::SpringDamper { stiffness: 1e3, damping: 50.0, rest_length: 0.5 };
    builder.force("hold", ForceSpec::Link { a: "left arm".into(), b: "right arm".into(), law: hold });
    Multibody::new(builder.build().expect("valid"), 0.0).expect("assembles")
}

/// A closed belt: a ring of links in a plane, cut once.
fn belt(links: usize) -> Multibody {
    let mut builder = MultibodyBuilder::new("belt");
    builder.gravity(Vec3::new(0.0, 0.0, -9.81));
    let turn = 2.0 * std::f64::consts::PI / links as f64;
    let length = 0.1;
    for k in 0..links {
        let (name, tip) = (format!("link{k}"), Vec3::new(length, 0.0, 0.0));
        let moment = 0.2 * length * length / 12.0;
        builder.body(
            BodySpec::new(&name, 0.2, tip * 0.5, Mat3::identity() * moment).point("tip", tip).with_contacts(),
        );
        let (parent, place) =
            if k == 0 { ("ground".to_string(), Vec3::zeros()) } else { (format!("link{}", k - 1), tip) };
        builder.joint(
            JointSpec::new(&name, hinge(), &parent, &name)
                .parent_at(place)
                .start(&[if k == 0 { 0.0 } else { turn }], &[0.0]),
        );
    }
    let tip = format!("link{}.tip", links - 1);
    builder.cut("clasp", CutKind::Points { a: "ground.origin".into(), b: tip });
    Multibody::new(builder.build().expect("valid"), 0.0).expect("assembles")
}

fn step(machine: &mut Multibody, velocities: &mut Vec<f64>, h: f64) {
    let t = machine.time();
    machine.advance_positions(0.5 * h);
    machine.close_loops().expect("closes");
    let operators = machine.reduce(t, h).expect("regular");
    velocities.clear();
    velocities.extend_from_slice(&operators.free_velocity);
    machine.finish(velocities).expect("closes");
}

/// Least and median time of a step in µs over short batches (on a busy computer only the least tells the
/// cost), and the number of allocations.
fn measure(machine: &mut Multibody, h: f64, steps: usize) -> (f64, f64, usize) {
    let mut velocities = Vec::new();
    for _ in 0..100 {
        step(machine, &mut velocities, h);
    }
    let partition = machine.partition().clone();
    let batches = 201;
    let mut times = Vec::with_capacity(batches);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..batches {
        let start = Instant::now();
        for _ in 0..steps {
            step(machine, &mut velocities, h);
        }
        times.push(start.elapsed().as_secs_f64() * 1e6 / steps as f64);
    }
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert_eq!(
        partition,
        *machine.partition(),
        "a change of partition may allocate: measure where there is none"
    );
    times.sort_by(f64::total_cmp);
    (times[0], times[batches / 2], allocations)
}

fn report(name: &str, machine: &mut Multibody, h: f64, steps: usize, limit: f64) {
    for evaluation in [ForceEvaluation::StartVelocity, ForceEvaluation::MiddleVelocity] {
        machine.set_force_evaluation(evaluation);
        let (least, median, allocations) = measure(machine, h, steps);
        let nu = machine.partition().nu();
        println!(
            "{name}, {nu} degrees of freedom, {evaluation:?}: {least:.2} µs a step (median {median:.2}), {allocations} allocations"
        );
        assert_eq!(allocations, 0, "a step must not allocate");
        assert!(least < limit, "{least:.2} µs exceed {limit} µs");
    }
}

fn main() {
    let mut unit = tamping_unit();
    print!("{}", unit.describe());
    report("tamping unit", &mut unit, 1e-5, 50, 20.0);
    report("belt of 50 links", &mut belt(50), 1e-5, 3, 1000.0);
}
