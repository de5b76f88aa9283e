use super::super::block::Blocks;
use super::super::colour::{Link, colour};
use super::super::problem::{IDLE, Inertia, Manifold, Point, Problem, Stretch, contact_frame};
use super::super::residual::{Measure, MeasuredPoint, Partial, ROUNDING, Residual, Ruler};
use super::super::solver::{Acceleration, Alone, LocalLaw, Options, solve};
use super::super::sweep::{Memory, Plan};
use super::super::{Hub, Sweep, Team};
use super::*;
use crate::geometry::random::Random;
use crate::lanes::{Avx2, Plain};
use crate::law::Kind;
use crate::law::coulomb::is_strongly_coupled;
use crate::scene::{BodyId, ManifoldKey};

/// Bodies with full inertia tensors in a random network, one in eight of them fixed, one in six manifolds
/// without friction, one in four compliant, one in five stretched.
fn problem(bodies: usize, manifolds: usize) -> Problem {
    let mut random = Random::new(7, 0);
    let mut number = || random.between(-1.0, 1.0);
    let mut problem = Problem::default();
    for body in 0..bodies {
        let root = Mat3::from_fn(|_, _| number());
        let tensor = root.transpose() * root + Mat3::identity();
        let fixed = body % 8 == 7;
        problem.inertia.push(if fixed { Inertia::default() } else { Inertia::new(1.5 + number(), &tensor) });
        let mut vector = || Vec3::new(number(), number(), number());
        let twist = Twist::new(vector(), vector());
        problem.free_velocity.push(if fixed { Twist::default() } else { twist });
    }
    for index in 0..manifolds {
        let mut slot = || ((number() + 1.0) * 0.5 * bodies as f64) as u32 % bodies as u32;
        let (a, b) = (slot(), slot());
        if a == b || a % 8 == 7 && b % 8 == 7 {
            continue;
        }
        let key = ManifoldKey {
            bodies: [BodyId(a.min(b).into()), BodyId(a.max(b).into())],
            parts: [index as u32, 0],
        };
        let first_point = problem.points.len() as u32;
        let mut vector = || Vec3::new(number(), number(), number());
        let frame = contact_frame(vector().normalize());
        for _ in 0..1 + index % 3 {
            let arms = [vector(), vector()];
            let start = vector();
            let impulse = [start.x.abs(), 0.1 * start.y, 0.1 * start.z];
            problem.points.push(Point { arms, bias: 0.2 * vector().x, impulse });
            let bias = vector() * 0.1;
            let stretch = Stretch { bias: [bias.x, bias.y], compliance: 0.4 };
            problem.stretches.push(if index % 5 == 2 { stretch } else { Stretch::default() });
        }
        let friction = if index % 6 == 0 { 0.0 } else { 0.6 };
        problem.manifolds.push(Manifold {
            key,
            slots: [a.min(b), a.max(b)],
            frame,
            kind: if index % 5 == 2 { Kind::Stretched } else { Kind::Coulomb },
            friction,
            compliance: if index % 4 == 1 { 0.3 } else { 0.0 },
            first_point,
        });
    }
    problem
}

/// Relative velocity with bias and compliance, contact frame.
fn velocity_in_law(
    problem: &Problem,
    manifold: &Manifold,
    place: usize,
    impulse: &Vec3,
    velocities: &[Twist],
) -> Vec3 {
    let (point, Stretch { bias: [t, s], compliance }) = (&problem.points[place], problem.stretches[place]);
    let bias = Vec3::new(point.bias, t, s);
    let squeezed = Vec3::new(manifold.compliance, compliance, compliance).component_mul(impulse);
    problem.relative_velocity(manifold, point, velocities) + bias + squeezed
}

fn colours(problem: &Problem) -> super::super::Colours {
    let slot = |slot: u32| problem.inertia[slot as usize].is_movable().then_some(slot);
    let links: Vec<Link> =
        problem.manifolds.iter().map(|m| Link { key: m.key, slots: m.slots.map(slot) }).collect();
    colour(&links, problem.inertia.len())
}

/// A sweep after a sweep, all colours, by one instruction set.
fn run(problem: &Problem, visit: unsafe fn(&[Block], &Shared, Visit)) -> (Vec<Twist>, Vec<Row>) {
    let mut blocks = Blocks::new(problem, &colours(problem), |slot| slot % 5 == 0);
    let mut velocities = problem.free_velocity.clone();
    velocities.push(Twist::default());
    let mut directions: Vec<_> = blocks.rows.iter().map(|row| row.impulse).collect();
    let plan = Plan { onward: 0.7, further: 0.3 };
    let ahead = Ahead { plan, stay: false, directions: directions.as_mut_ptr() };
    let momentum = Visit::Momentum(ahead, false);
    for kind in [Visit::Start, Visit::Projected, momentum, momentum, Visit::Projected, Visit::Exact] {
        for phase in &blocks.phases {
            let shared = Shared {
                velocities: velocities.as_mut_ptr(),
                inertia: blocks.inertia.as_ptr(),
                rows: blocks.rows.as_mut_ptr(),
                stretches: blocks.stretches.as_ptr(),
            };
            for range in [phase.boundary.clone(), phase.interior.clone()] {
                // SAFETY: one thread; the arrays were made for each other.
                unsafe { visit(&blocks.blocks[range], &shared, kind) };
            }
        }
    }
    (velocities, blocks.rows)
}

#[test]
fn every_instruction_set_and_width_gives_the_same_bits() {
    let problem = problem(90, 260);
    let plain = run(&problem, visit_blocks::<Plain, 8>);
    let bits = |state: &(Vec<Twist>, Vec<Row>)| {
        let velocities = state.0.iter().flat_map(|twist| twist.linear.into_iter().chain(twist.angular));
        let impulses = state.1.iter().flat_map(|row| row.impulse.map(|entry| entry.0)).flatten();
        velocities.chain(impulses).map(f64::to_bits).collect::<Vec<_>>()
    };
    assert!(plain.0.iter().any(|twist| twist.linear[0] != 0.0));
    assert_eq!(bits(&plain), bits(&run(&problem, visit_all)));
    for narrow in [visit_blocks::<Plain, 1>, visit_blocks::<Plain, 2>, visit_blocks::<Plain, 4>] {
        assert_eq!(bits(&plain), bits(&run(&problem, narrow)));
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        assert_eq!(bits(&plain), bits(&run(&problem, visit_blocks::<Avx2, 4>)));
    }
}

#[test]
fn where_bodies_stand_in_memory_changes_no_bit() {
    let plain = problem(90, 60);
    let mut placed = plain.clone();
    let touched = |slot: u32| plain.manifolds.iter().any(|manifold| manifold.slots.contains(&slot));
    let changes = |slot: u32| plain.inertia[slot as usize].is_movable() && touched(slot);
    let place = |slot: u32| if changes(slot) { (slot * 37) % 11 } else { IDLE };
    placed.places = (0..plain.inertia.len() as u32).map(place).collect();
    let idle = placed.places.iter().filter(|&&place| place == IDLE).count();
    assert!((20..70).contains(&idle), "{idle} of 90 bodies are idle");
    // Momentum, and the state that it keeps.
    for acceleration in [Acceleration::None, Acceleration::Momentum] {
        let options = Options { tolerance: 0.0, maximum_sweeps: 23, acceleration, ..Options::default() };
        let [plain, placed] = [&plain, &placed].map(|problem| {
            let found = solve(problem, &Hub::default(), &colours(problem), &options, |_| false, &mut Alone);
            (found.velocities, found.impulses, found.residual)
        });
        assert!(plain == placed && plain.2.natural_map > 0.0, "{acceleration:?}");
    }
}

/// The scalar visit, straight from the equations.
#[test]
fn a_sweep_is_what_the_equations_say() {
    let problem = problem(40, 120);
    let colours = colours(&problem);
    let team = Team::alone();
    let mut sweep = Sweep::new(&problem, &Hub::default(), &colours, LocalLaw::Projected, |_| false, &team);
    sweep.start(&mut Alone);
    sweep.run(&mut Alone);
    let found = sweep.impulses(problem.points.len());

    let mut velocities = problem.free_velocity.clone();
    let mut impulses: Vec<[f64; 3]> = problem.points.iter().map(|point| point.impulse).collect();
    let mut order: Vec<usize> = (0..problem.manifolds.len()).collect();
    order.sort_by_key(|&index| colours.of[index]);
    for &index in &order {
        for place in problem.points_of(index) {
            let (manifold, point) = (&problem.manifolds[index], &problem.points[place]);
            problem.apply(manifold, point, &impulses[place], &mut velocities);
        }
    }
    for &index in &order {
        let manifold = &problem.manifolds[index];
        let blocks: Vec<Mat3> =
            problem.points_of(index).map(|place| problem.delassus(manifold, place)).collect();
        let strong = |w: &Mat3| is_strongly_coupled(w[(0, 0)], [w[(1, 0)], w[(2, 0)]], manifold.friction);
        for (place, w) in problem.points_of(index).zip(&blocks) {
            let point = &problem.points[place];
            let old = Vec3::from(impulses[place]);
            let velocity = velocity_in_law(&problem, manifold, place, &old, &velocities);
            let new = if blocks.iter().any(strong) {
                coulomb::solve(w, &(velocity - w * old), manifold.friction)
            } else {
                let normal = (old.x - velocity.x / w[(0, 0)]).max(0.0);
                let lambda = w.fixed_view::<2, 2>(1, 1).into_owned().symmetric_eigenvalues().max();
                let target =
                    old.yz() - (velocity.yz() + w.fixed_view::<2, 1>(1, 0) * (normal - old.x)) / lambda;
                let limit = manifold.friction * normal;
                let target = if target.norm() > limit { target * (limit / target.norm()) } else { target };
                Vec3::new(normal, target.x, target.y)
            };
            problem.apply(manifold, point, &(new - old).into(), &mut velocities);
            impulses[place] = new.into();
        }
    }
    for (found, expected) in found.iter().zip(&impulses) {
        assert!((Vec3::from(*found) - Vec3::from(*expected)).norm() < 1e-11, "{found:?} {expected:?}");
    }
}

/// How well a relative velocity is known, see [`ROUNDING`].
fn rounding(manifold: &Manifold, point: &Point, stretch: &Stretch, velocities: &[Twist]) -> f64 {
    let square = |side: usize| {
        let twist = &velocities[manifold.slots[side] as usize];
        let turning = Vec3::from(twist.angular).norm_squared() * point.arms[side].norm_squared();
        Vec3::from(twist.linear).norm_squared() + turning
    };
    let bias = Vec3::new(point.bias, stretch.bias[0], stretch.bias[1]);
    ROUNDING * (square(0) + square(1) + bias.norm_squared()).sqrt()
}

/// The residual of a problem, point by point: what lanes are compared with.
struct Meter<'a> {
    problem: &'a Problem,
    /// By point: the free relative velocity with its bias, and W_nn.
    free: Vec<(Vec3, f64)>,
}

impl<'a> Meter<'a> {
    fn new(problem: &'a Problem) -> Self {
        let mut free = Vec::with_capacity(problem.points.len());
        for (index, manifold) in problem.manifolds.iter().enumerate() {
            for place in problem.points_of(index) {
                let (none, free_velocity) = (Vec3::zeros(), &problem.free_velocity);
                let velocity = velocity_in_law(problem, manifold, place, &none, free_velocity);
                free.push((velocity, problem.delassus(manifold, place)[(0, 0)]));
            }
        }
        Self { problem, free }
    }

    /// Of all points, one by one.
    fn measure(&self, velocities: &[Twist], impulses: &[[f64; 3]], measure: Measure) -> Residual {
        let problem = self.problem;
        let mut partial = Partial::new(None);
        for (index, manifold) in problem.manifolds.iter().enumerate() {
            let mut sums = [0.0; 4];
            for place in problem.points_of(index) {
                let point = &problem.points[place];
                let (free, delassus) = self.free[place];
                let impulse = impulses[place].into();
                let seen = MeasuredPoint {
                    impulse,
                    velocity: velocity_in_law(problem, manifold, place, &impulse, velocities),
                    free,
                    friction: manifold.friction,
                    delassus,
                    rounding: rounding(manifold, point, &problem.stretches[place], velocities),
                };
                let (terms, worst) = seen.terms(measure);
                sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
                partial.add_worst(worst);
                partial.worst_approach = partial.worst_approach.max(-seen.velocity.x);
            }
            partial.sums.add(sums);
        }
        partial.sums.values().map(|sums| partial.finish(sums)).expect("exact sums have any size")
    }
}

#[test]
fn lanes_measure_what_the_meter_measures() {
    let problem = problem(60, 200);
    let team = Team::alone();
    let mut sweep =
        Sweep::new(&problem, &Hub::default(), &colours(&problem), LocalLaw::Projected, |_| false, &team);
    sweep.start(&mut Alone);
    let mut rulers = [Measure::Fclib, Measure::Scaled].map(|measure| (measure, Ruler::new(measure)));
    for _ in 0..4 {
        let impulses = sweep.impulses(problem.points.len());
        for (measure, ruler) in &mut rulers {
            let expected = Meter::new(&problem).measure(&sweep.velocities, &impulses, *measure);
            let found = Ruler::new(*measure).read(&sweep, &mut Alone);
            assert!((found.natural_map / expected.natural_map - 1.0).abs() < 1e-12);
            assert!((found.worst_velocity / expected.worst_velocity - 1.0).abs() < 1e-12);
            assert!((found.worst_approach / expected.worst_approach - 1.0).abs() < 1e-12);
            let rounded = ruler.read(&sweep, &mut Alone);
            assert!((rounded.natural_map / found.natural_map - 1.0).abs() < 1e-9);
            assert_eq!(rounded.worst_velocity, found.worst_velocity);
            assert_eq!(rounded.worst_approach, found.worst_approach);
        }
        sweep.run(&mut Alone);
    }
}

/// What was measured before decides how sums are rounded, and so must not be trusted where they have become
/// much larger or smaller.
#[test]
fn a_ruler_notices_that_all_is_of_another_size() {
    let team = Team::alone();
    let large = problem(60, 200);
    let mut small = large.clone();
    for twist in &mut small.free_velocity {
        *twist = Twist::new(Vec3::from(twist.linear) * 1e-3, Vec3::from(twist.angular) * 1e-3);
    }
    for point in &mut small.points {
        (point.bias, point.impulse) = (point.bias * 1e-3, point.impulse.map(|number| number * 1e-3));
    }
    let none = |_| false;
    let [large, small] = [large, small].map(|problem| {
        Sweep::new(&problem, &Hub::default(), &colours(&problem), LocalLaw::Projected, none, &team)
    });
    for measure in [Measure::Fclib, Measure::Scaled] {
        let mut ruler = Ruler::new(measure);
        for sweep in [&large, &small, &large] {
            assert_eq!(ruler.read(sweep, &mut Alone), Ruler::new(measure).read(sweep, &mut Alone));
        }
        assert_ne!(ruler.read(&large, &mut Alone), ruler.read(&small, &mut Alone));
    }
}

/// Impulses go on row by row, velocities body by body: they must still belong to each other.
#[test]
fn momentum_keeps_velocities_and_impulses_together() {
    let problem = problem(60, 200);
    let team = Team::alone();
    let mut sweep =
        Sweep::new(&problem, &Hub::default(), &colours(&problem), LocalLaw::Projected, |_| false, &team);
    sweep.start(&mut Alone);
    let mut memory = Memory::of(&mut sweep);
    for k in 0..40 {
        if k == 20 {
            memory.stay();
        }
        let onward = 0.02 * f64::from(k);
        sweep.run_ahead(Plan { onward, further: 0.5 * onward }, &mut memory, &mut Alone);
        let impulses = sweep.impulses(problem.points.len());
        let mut velocities = problem.free_velocity.clone();
        for (index, manifold) in problem.manifolds.iter().enumerate() {
            for place in problem.points_of(index) {
                problem.apply(manifold, &problem.points[place], &impulses[place], &mut velocities);
            }
        }
        for (expected, found) in velocities.iter().zip(&sweep.velocities) {
            let off = Vec3::from(expected.linear) - Vec3::from(found.linear);
            let turned_off = Vec3::from(expected.angular) - Vec3::from(found.angular);
            assert!(off.norm() + turned_off.norm() < 1e-11, "sweep {k}: {off} {turned_off}");
        }
    }
}

/// Without friction the short visit does what the whole one does.
#[test]
fn frictionless_problems_take_the_short_way() {
    let mut smooth = problem(60, 200);
    smooth.manifolds.iter_mut().for_each(|manifold| manifold.friction = 0.0);
    smooth.points.iter_mut().for_each(|point| point.impulse = [point.impulse[0], 0.0, 0.0]);
    let mut rough = smooth.clone();
    // One tangential impulse that the first visit removes.
    rough.points[0].impulse[1] = f64::MIN_POSITIVE;
    let [smooth, rough] = [smooth, rough].map(|problem| {
        let team = Team::alone();
        let mut sweep =
            Sweep::new(&problem, &Hub::default(), &colours(&problem), LocalLaw::Projected, |_| false, &team);
        sweep.start(&mut Alone);
        (0..5).for_each(|_| sweep.run(&mut Alone));
        sweep.impulses(problem.points.len())
    });
    for (smooth, rough) in smooth.iter().zip(&rough) {
        assert!((Vec3::from(*smooth) - Vec3::from(*rough)).norm() < 1e-12);
    }
}
