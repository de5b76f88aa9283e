//! The hub against dense matrices that are written down here once more, with contacts of every kind: machine
//! and machine, both ends on one machine, machine and body, machine and something that moves as it likes, and
//! a machine without freedom.

use super::super::problem::Stretch;
use super::*;
use crate::geometry::Mat3;
use crate::law::Kind;
use crate::law::coulomb::natural_map;
use crate::scene::BodyId;
use crate::solve::MachineSlot;
use crate::solve::{
    Acceleration, Colours, Interface, LocalLaw, Manifold, Options, Point, Problem, Solution, Sweep, Team,
    Velocities,
    colour::{Link, colour},
    solve,
};
use nalgebra::{DMatrix, DVector};

/// Of every point.
const STRETCH: Stretch = Stretch { bias: [0.05, -0.02], compliance: 0.2 };

/// A small generator of numbers in [−1, 1).
struct Random(u64);

impl Random {
    fn signed(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn vector(&mut self) -> Vec3 {
        Vec3::new(self.signed(), self.signed(), self.signed())
    }

    fn list(&mut self, length: usize) -> Vec<f64> {
        (0..length).map(|_| self.signed()).collect()
    }
}

const FREEDOM: [usize; 3] = [4, 3, 0];
const BODIES: usize = 3;

fn key(index: u64) -> ManifoldKey {
    ManifoldKey { bodies: [BodyId(index), BodyId(100 + index)], parts: [0, 0] }
}

/// Every pair of ends that can occur, two points each. All at rest satisfies the law, so that there is a
/// solution.
fn hub(seed: u64) -> Hub {
    let mut random = Random(seed);
    let machines = FREEDOM.map(|nu| {
        let root = DMatrix::from_vec(nu, nu, random.list(nu * nu));
        let inverse = &root * root.transpose() + DMatrix::identity(nu, nu) * 0.1;
        HubMachine { inverse_mass: inverse.as_slice().to_vec(), free_velocity: random.list(nu) }
    });
    let bodies = (0..BODIES).map(|_| {
        let root = Mat3::from_vec(random.list(9));
        let inertia =
            Inertia::new(0.5 + random.signed().abs(), &(root * root.transpose() + Mat3::identity()));
        (inertia, Twist::new(random.vector(), random.vector()))
    });
    let bodies = bodies.collect();
    use End::{Body, Given};
    let on = |machine: u32| End::Machine(MachineSlot { machine, slot: 0 });
    let ends = [
        [on(0), on(0)],
        [on(0), on(1)],
        [Body(0), on(0)],
        [on(1), Body(0)],
        [Given, on(1)],
        [on(0), Given],
        [on(2), Body(1)],
        [on(0), Body(2)],
    ];
    let manifolds = ends.iter().zip(0..).map(|(ends, index)| {
        let normal = random.vector().normalize();
        let points = (0..2).map(|_| HubPoint {
            arms: [random.vector(), random.vector()],
            jacobians: [0, 1].map(|side| match ends[side] {
                End::Machine(place) => random.list(3 * FREEDOM[place.machine as usize]),
                _ => Vec::new(),
            }),
            given: Vec3::zeros(),
            bias: 0.1 * random.signed().abs(),
            stretch: STRETCH,
            impulse: [0.0; 3],
        });
        let points = points.collect();
        let frame = crate::solve::problem::contact_frame(normal);
        HubManifold { key: key(index), ends: *ends, frame, friction: 0.4, compliance: 0.1, points }
    });
    Hub { manifolds: manifolds.collect(), machines: machines.into(), bodies }
}

/// `H` with one row for each direction of each point, `M⁻¹`, and the velocities without contacts.
fn dense(hub: &Hub) -> (DMatrix<f64>, DMatrix<f64>, DVector<f64>) {
    let first = |machine: usize| FREEDOM[..machine].iter().sum::<usize>();
    let body_first = |body: usize| first(FREEDOM.len()) + 6 * body;
    let size = body_first(BODIES);
    let mut inverse = DMatrix::zeros(size, size);
    let mut free = DVector::zeros(size);
    for (index, machine) in hub.machines.iter().enumerate() {
        let (nu, at) = (FREEDOM[index], first(index));
        let block = DMatrix::from_row_slice(nu, nu, &machine.inverse_mass);
        inverse.view_mut((at, at), (nu, nu)).copy_from(&block);
        free.rows_mut(at, nu).copy_from_slice(&machine.free_velocity);
    }
    for (index, (inertia, twist)) in hub.bodies.iter().enumerate() {
        let at = body_first(index);
        for axis in 0..3 {
            inverse[(at + axis, at + axis)] = inertia.inverse_mass;
            free[at + axis] = twist.linear[axis];
            free[at + 3 + axis] = twist.angular[axis];
        }
        inverse.fixed_view_mut::<3, 3>(at + 3, at + 3).copy_from(&inertia.inverse_tensor());
    }
    let points: usize = hub.manifolds.iter().map(|manifold| manifold.points.len()).sum();
    let mut map = DMatrix::zeros(3 * points, size);
    let mut row = 0;
    for manifold in &hub.manifolds {
        for point in &manifold.points {
            for direction in manifold.frame {
                for (side, sign) in [(0, -1.0), (1, 1.0)] {
                    match manifold.ends[side] {
                        End::Given => {}
                        End::Machine(MachineSlot { machine, .. }) => {
                            let nu = FREEDOM[machine as usize];
                            let jacobian = DMatrix::from_row_slice(3, nu, &point.jacobians[side]);
                            let own = jacobian.transpose() * DVector::from_column_slice(direction.as_slice());
                            for k in 0..nu {
                                map[(row, first(machine as usize) + k)] += sign * own[k];
                            }
                        }
                        End::Body(body) => {
                            let at = body_first(body as usize);
                            let turning = point.arms[side].cross(&direction);
                            for axis in 0..3 {
                                map[(row, at + axis)] += sign * direction[axis];
                                map[(row, at + 3 + axis)] += sign * turning[axis];
                            }
                        }
                    }
                }
                row += 1;
            }
        }
    }
    (map, inverse, free)
}

/// What is given at the points is shifted so that some velocity other than rest satisfies the law.
fn moving(mut hub: Hub, seed: u64) -> Hub {
    let (map, _, free) = dense(&hub);
    let mut random = Random(seed + 500);
    let seen = &map * DVector::from_vec(random.list(free.len()));
    let mut row = 0;
    for manifold in &mut hub.manifolds {
        let frame = Mat3::from_columns(&manifold.frame);
        for point in &mut manifold.points {
            point.given = -(frame * seen.fixed_rows::<3>(row));
            row += 3;
        }
    }
    hub
}

fn state(sweep: &HubSweep) -> DVector<f64> {
    let machines = sweep.machine_velocities.iter().flatten().copied();
    let bodies = sweep.velocities.iter().flat_map(|twist| twist.linear.into_iter().chain(twist.angular));
    DVector::from_iterator(FREEDOM.iter().sum::<usize>() + 6 * BODIES, machines.chain(bodies))
}

#[test]
fn rows_are_those_of_the_dense_delassus_operator() {
    for seed in 0..20 {
        let hub = hub(seed);
        let (map, inverse, free) = dense(&hub);
        let delassus = &map * &inverse * map.transpose();
        let compliance = hub.manifolds[0].compliance;
        let sweep = HubSweep::new(&hub);
        assert_eq!(state(&sweep), free);
        for (i, row) in sweep.rows.iter().enumerate() {
            let mut block = delassus.fixed_view::<3, 3>(3 * i, 3 * i).into_owned();
            block[(0, 0)] += compliance;
            (1..3).for_each(|axis| block[(axis, axis)] += STRETCH.compliance);
            assert!((row.delassus - block).amax() < 1e-12 * (1.0 + block.amax()), "seed {seed} point {i}");
            // An impulse here is felt at every other point as the matrix says.
            for axis in 0..3 {
                let mut struck = HubSweep::new(&hub);
                let impulse = Vec3::from_fn(|k, _| if k == axis { 1.0 } else { 0.0 });
                let HubSweep { rows, inertia, velocities, machine_velocities, .. } = &mut struck;
                rows[i].apply(&impulse, inertia, velocities, machine_velocities);
                for (j, other) in struck.rows.iter().enumerate() {
                    let gain =
                        other.relative_velocity(&struck.velocities, &struck.machine_velocities) - other.free;
                    let column = delassus.fixed_view::<3, 1>(3 * j, 3 * i + axis).into_owned();
                    assert!(
                        (gain - column).amax() < 1e-12 * (1.0 + delassus.amax()),
                        "seed {seed}: {i} on {j}"
                    );
                }
            }
        }
    }
}

#[test]
fn sweeps_end_at_a_solution_of_the_dense_problem() {
    for seed in 0..20 {
        let hub = moving(hub(seed), seed);
        let (map, inverse, free) = dense(&hub);
        let mut sweep = HubSweep::new(&hub);
        sweep.start();
        for _ in 0..3000 {
            sweep.run();
        }
        let impulses: Vec<f64> = sweep.impulses().concat();
        let impulses = DVector::from_vec(impulses);
        let velocity = &free + &inverse * map.transpose() * &impulses;
        assert!(
            (&velocity - state(&sweep)).amax() < 1e-10,
            "seed {seed}: what was added up is what the impulses do"
        );
        let mut points = hub.manifolds.iter().flat_map(|manifold| &manifold.points);
        let seen = &map * &velocity;
        for (i, row) in sweep.rows.iter().enumerate() {
            let point = points.next().expect("as many as rows");
            let frame = Mat3::from_columns(&row.frame);
            let mut u = seen.fixed_rows::<3>(3 * i).into_owned() + frame.transpose() * point.given;
            u.x += point.bias + row.compliance * impulses[3 * i];
            for axis in 1..3 {
                u[axis] += STRETCH.bias[axis - 1] + STRETCH.compliance * impulses[3 * i + axis];
            }
            let error = natural_map(impulses.fixed_rows::<3>(3 * i).into_owned(), u, 0.4, 1.0).norm();
            assert!(error < 1e-6, "seed {seed} point {i}: {error:.1e}");
        }
    }
}

#[test]
fn a_point_that_cannot_give_way_carries_nothing() {
    let mut hub = hub(3);
    hub.manifolds.truncate(1);
    hub.manifolds[0].ends = [End::Machine(MachineSlot { machine: 2, slot: 0 }), End::Given];
    let closing = -hub.manifolds[0].frame[0];
    for point in &mut hub.manifolds[0].points {
        point.jacobians = [Vec::new(), Vec::new()];
        point.given = closing;
        point.impulse = [1.0, 0.0, 0.0];
    }
    let mut sweep = HubSweep::new(&hub);
    sweep.start();
    sweep.run();
    assert_eq!(sweep.impulses(), [[0.0; 3]; 2]);
    let mut partial = Partial::new(None);
    sweep.measure(Measure::Fclib, &mut partial);
    assert_eq!(partial.sums.values(), Some([0.0; 4]));
}

/// One rank: hub bodies are the first slots of the problem.
struct Here;

impl Interface for Here {
    fn begin(&mut self, _: usize, _: &Velocities) {}
    fn finish(&mut self, _: usize, _: &mut Velocities) {}
    fn gather_hub(&mut self, velocities: &Velocities, hub: &mut [Twist]) {
        (0..).zip(hub).for_each(|(slot, twist)| *twist = *velocities.get(slot));
    }
    fn scatter_hub(&mut self, hub: &[Twist], velocities: &mut Velocities) {
        (0..).zip(hub).for_each(|(slot, twist)| *velocities.get_mut(slot) = *twist);
    }
    fn sum(&mut self, _: &mut [ExactSum]) {}
    fn reduce(&mut self, _: &mut Partial) {}
}

/// The hub's bodies touch each other too.
fn touching(hub: &Hub, seed: u64) -> (Problem, Colours) {
    let mut random = Random(seed + 1000);
    let (inertia, free_velocity) = hub.bodies.iter().copied().unzip();
    let mut problem = Problem { inertia, free_velocity, ..Default::default() };
    for (index, slots) in [[0, 1], [1, 2], [0, 2]].into_iter().enumerate() {
        let first_point = problem.points.len() as u32;
        for _ in 0..2 {
            problem.points.push(Point {
                arms: [random.vector(), random.vector()],
                bias: 0.0,
                impulse: [0.0; 3],
            });
        }
        let frame = crate::solve::problem::contact_frame(random.vector().normalize());
        problem.manifolds.push(Manifold {
            key: key(50 + index as u64),
            slots,
            frame,
            kind: Kind::Coulomb,
            friction: 0.3,
            compliance: 0.0,
            first_point,
        });
    }
    let links: Vec<Link> =
        problem.manifolds.iter().map(|m| Link { key: m.key, slots: m.slots.map(Some) }).collect();
    let colours = colour(&links, BODIES);
    (problem, colours)
}

fn solved(seed: u64, acceleration: Acceleration) -> Solution {
    let hub = hub(seed);
    let (problem, colours) = touching(&hub, seed);
    let options = Options {
        tolerance: 1e-10,
        maximum_sweeps: 20_000,
        check_every: 5,
        acceleration,
        ..Options::default()
    };
    solve(&problem, &hub, &colours, &options, |_| false, &mut Here)
}

/// Whatever happened in between, and from impulses that are not zero.
#[test]
fn a_solve_that_begins_again_is_where_it_began() {
    for seed in 0..10 {
        let mut hub = hub(seed);
        let mut random = Random(seed + 2000);
        let mut impulse = || [random.signed().abs(), random.signed(), random.signed()];
        hub.manifolds
            .iter_mut()
            .flat_map(|manifold| &mut manifold.points)
            .for_each(|point| point.impulse = impulse());
        let (mut problem, colours) = touching(&hub, seed);
        problem.points.iter_mut().for_each(|point| point.impulse = impulse());
        let team = Team::alone();
        let mut sweep = Sweep::new(&problem, &hub, &colours, LocalLaw::Projected, |_| false, &team);
        let state = |sweep: &Sweep| {
            let (own, machines) = (sweep.hub.impulses(), sweep.hub.machine_velocities.clone());
            (sweep.impulses(problem.points.len()), sweep.velocities_by_slot(), own, machines)
        };
        sweep.start(&mut Here);
        let began = state(&sweep);
        (0..30).for_each(|_| sweep.run(&mut Here));
        assert!(state(&sweep) != began, "seed {seed}: thirty sweeps did nothing");
        sweep.start_again(&problem, &hub, &mut Here);
        assert!(state(&sweep) == began, "seed {seed}");
    }
}

#[test]
fn the_conjugate_gradient_finds_the_same_velocities() {
    let mut sweeps = [0; 2];
    for seed in 0..10 {
        let [plain, fast] = [Acceleration::None, Acceleration::ConjugateGradient]
            .map(|acceleration| solved(seed, acceleration));
        assert!(plain.converged && fast.converged, "seed {seed}: {:?} {:?}", plain.residual, fast.residual);
        let all = |solution: &Solution| {
            let bodies =
                solution.velocities.iter().flat_map(|twist| twist.linear.into_iter().chain(twist.angular));
            bodies.chain(solution.hub.velocities.iter().flatten().copied()).collect::<Vec<f64>>()
        };
        for (a, b) in all(&plain).into_iter().zip(all(&fast)) {
            assert!((a - b).abs() < 1e-6, "seed {seed}: {a} {b}");
        }
        sweeps[0] += plain.sweeps;
        sweeps[1] += fast.sweeps;
    }
    println!("measured sweeps, plain and with conjugate gradient: {sweeps:?}");
}
