//! A global problem of rigid bodies in the form that coloured sweeps take: bodies and arms in place of M
//! and H.
//!
//! The first unknowns are those of bodies, six each, `M = diag(m, m, m, I)`; what follows is one machine. A
//! column of H holds `± n` and `± arm × n` for each of the bodies of a contact, and a row of a Jacobian for
//! the machine. Directions are taken from the last body of a contact, which they push along.

use super::problem::GlobalProblem;
use super::sparse::Sparse;
use crate::geometry::{Mat3, Vec3};
use crate::law::Kind;
use crate::scene::{BodyId, ManifoldKey};
use crate::solve::colour::{Colours, Link, colour};
use crate::solve::problem::{Inertia, Manifold, Point, Problem, Twist};
use crate::solve::solver::{Interface, Solution, Velocities};
use crate::solve::{End, Hub, HubMachine, HubManifold, HubPoint, MachineSlot, Partial, Stretch};
use decomposition::ExactSum;
use nalgebra::{DMatrix, DVector};
use std::collections::BTreeMap;

/// The bodies' form of a problem.
pub struct Coloured {
    pub problem: Problem,
    pub hub: Hub,
    pub colours: Colours,
    /// By contact: a point of the problem, or of the hub.
    places: Vec<Place>,
    /// Of the hub's bodies.
    slots: Vec<u32>,
}

#[derive(Clone, Copy)]
enum Place {
    Point(usize),
    Hub(usize),
}

/// One contact as H has it.
struct Ends {
    /// Body and arm; the last one is pushed along the frame.
    bodies: Vec<(usize, Vec3)>,
    frame: [Vec3; 3],
    /// World, 3 × nu: what the machine's coordinates add to the relative velocity.
    jacobian: Option<Vec<f64>>,
}

impl Coloured {
    /// None where M and H are not those of rigid bodies in space. `start` has three numbers a contact.
    pub fn new(global: &GlobalProblem, start: &[f64]) -> Option<Self> {
        if global.dimension != 3 || global.bilateral.is_some() {
            return None;
        }
        let bodies = bodies(&global.m);
        let (inertia, free) = (inertia(&global.m, bodies)?, free_velocity(global)?);
        let twist = |body: usize| {
            let at = |first: usize| Vec3::from_fn(|axis, _| free[6 * body + first + axis]);
            Twist::new(at(0), at(3))
        };
        let mut problem = Problem {
            free_velocity: (0..bodies).map(twist).collect(),
            inertia: inertia.clone(),
            ..Problem::default()
        };
        let machine = machine(global, &free, bodies)?;
        let mut hub = Hub { machines: vec![machine], ..Hub::default() };
        let (transposed, mut places, mut slots) = (global.h.transposed(), Vec::new(), BTreeMap::new());
        for contact in 0..global.mu.len() {
            let ends = Ends::new(&transposed, contact, bodies)?;
            if !ends.is_held(global, contact) {
                return None;
            }
            let impulse: [f64; 3] =
                std::array::from_fn(|axis| start.get(3 * contact + axis).copied().unwrap_or(0.0));
            let key = ManifoldKey { bodies: [BodyId(contact as u64); 2], parts: [0; 2] };
            match &ends.jacobian {
                None => {
                    places.push(Place::Point(problem.points.len()));
                    ends.add_to(&mut problem, key, global, contact, impulse);
                }
                Some(jacobian) => {
                    places.push(Place::Hub(hub.manifolds.len()));
                    for (body, _) in &ends.bodies {
                        slots.entry(*body as u32).or_insert(0);
                    }
                    hub.manifolds.push(ends.hub_manifold(jacobian, key, global, contact, impulse));
                }
            }
        }
        let slots: Vec<u32> = slots.into_keys().collect();
        hub.bodies = slots.iter().map(|&slot| (inertia[slot as usize], twist(slot as usize))).collect();
        for end in hub.manifolds.iter_mut().flat_map(|manifold| &mut manifold.ends) {
            if let End::Body(body) = end {
                *body = slots.binary_search(body).ok()? as u32;
            }
        }
        let movable = |slot: u32| ((slot as usize) < bodies).then_some(slot);
        let links: Vec<Link> =
            problem.manifolds.iter().map(|m| Link { key: m.key, slots: m.slots.map(movable) }).collect();
        let colours = colour(&links, bodies);
        Some(Self { problem, hub, colours, places, slots })
    }

    /// What sweeps on one rank need.
    pub fn interface(&self) -> impl Interface + '_ {
        HubBodies { slots: &self.slots }
    }

    /// Three numbers for each contact of the file.
    pub fn impulses(&self, solution: &Solution) -> Vec<[f64; 3]> {
        let impulse = |place: &Place| match *place {
            Place::Point(place) => solution.impulses[place],
            Place::Hub(place) => solution.hub.impulses[place],
        };
        self.places.iter().map(impulse).collect()
    }
}

/// Velocities of the hub's bodies go to and fro on one rank.
struct HubBodies<'a> {
    slots: &'a [u32],
}

impl Interface for HubBodies<'_> {
    fn begin(&mut self, _colour: usize, _velocities: &Velocities) {}

    fn finish(&mut self, _colour: usize, _velocities: &mut Velocities) {}

    fn gather_hub(&mut self, velocities: &Velocities, hub: &mut [Twist]) {
        self.slots.iter().zip(hub).for_each(|(&slot, twist)| *twist = *velocities.get(slot));
    }

    fn scatter_hub(&mut self, hub: &[Twist], velocities: &mut Velocities) {
        self.slots.iter().zip(hub).for_each(|(&slot, twist)| *velocities.get_mut(slot) = *twist);
    }

    fn sum(&mut self, _sums: &mut [ExactSum]) {}

    fn reduce(&mut self, _partial: &mut Partial) {}
}

/// How a contact gives way in the tangent plane.
fn stretch(global: &GlobalProblem, contact: usize) -> Stretch {
    let compliance = global.tangential_compliance.get(contact).copied().unwrap_or(0.0);
    Stretch { compliance, ..Stretch::default() }
}

/// How many bodies come first.
fn bodies(m: &Sparse) -> usize {
    let is_body = |body: &usize| {
        let first = 6 * body;
        let alone = |row: usize| m.row(row).all(|(column, value)| column == row || value == 0.0);
        let turns = |row: usize| (first + 3..first + 6).contains(&row);
        (first..first + 3).all(alone)
            && (first + 3..first + 6)
                .all(|row| m.row(row).all(|(column, value)| turns(column) || value == 0.0))
    };
    (0..m.rows / 6).take_while(is_body).count()
}

fn entry(m: &Sparse, row: usize, column: usize) -> f64 {
    m.row(row).filter(|&(place, _)| place == column).map(|(_, value)| value).sum()
}

fn inertia(m: &Sparse, bodies: usize) -> Option<Vec<Inertia>> {
    let of = |body: usize| {
        let first = 6 * body;
        let tensor = Mat3::from_fn(|row, column| entry(m, first + 3 + row, first + 3 + column));
        Some(Inertia::new(1.0 / entry(m, first, first), &tensor.try_inverse()?))
    };
    (0..bodies).map(of).collect()
}

/// `M_red` of what comes after the bodies.
fn machine_mass(m: &Sparse, bodies: usize) -> DMatrix<f64> {
    let (first, size) = (6 * bodies, m.rows - 6 * bodies);
    DMatrix::from_fn(size, size, |row, column| entry(m, first + row, first + column))
}

fn machine(global: &GlobalProblem, free: &[f64], bodies: usize) -> Option<HubMachine> {
    let inverse = machine_mass(&global.m, bodies).try_inverse()?;
    let free_velocity = free[6 * bodies..].to_vec();
    Some(HubMachine { inverse_mass: inverse.transpose().as_slice().to_vec(), free_velocity })
}

/// `M⁻¹ f`.
fn free_velocity(global: &GlobalProblem) -> Option<Vec<f64>> {
    let bodies = bodies(&global.m);
    let mut free = vec![0.0; global.f.len()];
    for (body, inertia) in inertia(&global.m, bodies)?.iter().enumerate() {
        let at = |first: usize| Vec3::from_fn(|axis, _| global.f[6 * body + first + axis]);
        let (linear, angular) = (at(0) * inertia.inverse_mass, inertia.inverse_tensor() * at(3));
        free[6 * body..6 * body + 3].copy_from_slice(linear.as_slice());
        free[6 * body + 3..6 * body + 6].copy_from_slice(angular.as_slice());
    }
    let rest = DVector::from_column_slice(&global.f[6 * bodies..]);
    let rest = machine_mass(&global.m, bodies).try_inverse()? * rest;
    free[6 * bodies..].copy_from_slice(rest.as_slice());
    Some(free)
}

impl Ends {
    fn new(transposed: &Sparse, contact: usize, bodies: usize) -> Option<Self> {
        let nu = transposed.columns - 6 * bodies;
        let mut rows: BTreeMap<usize, [[f64; 6]; 3]> = BTreeMap::new();
        let mut jacobian = vec![[0.0; 3]; nu];
        let entries = |axis: usize| transposed.row(3 * contact + axis).map(move |entry| (axis, entry));
        for (axis, (place, value)) in (0..3).flat_map(entries).filter(|(_, (_, value))| *value != 0.0) {
            if place < 6 * bodies {
                rows.entry(place / 6).or_default()[axis][place % 6] = value;
            } else {
                jacobian[place - 6 * bodies][axis] = value;
            }
        }
        let axes = |rows: &[[f64; 6]; 3]| rows.map(|row| Vec3::new(row[0], row[1], row[2]));
        let frame = rows.values().next_back().map_or([Vec3::x(), Vec3::y(), Vec3::z()], axes);
        let [n, t, s] = frame;
        // (arm × n) · t = arm · s, and so on.
        let arm = |rows: &[[f64; 6]; 3]| {
            let sign = axes(rows)[0].dot(&n);
            let [m_n, m_t, m_s] = rows.map(|row| Vec3::new(row[3], row[4], row[5]) * sign);
            n * m_t.dot(&s) + t * m_s.dot(&n) + s * m_n.dot(&t)
        };
        let ends: Vec<(usize, Vec3)> = rows.iter().map(|(&body, rows)| (body, arm(rows))).collect();
        let touches = jacobian.iter().any(|row| *row != [0.0; 3]);
        let world = |place: usize| {
            let (row, k) = (place / nu, place % nu);
            (0..3).map(|axis| frame[axis][row] * jacobian[k][axis]).sum()
        };
        let jacobian = touches.then(|| (0..3 * nu).map(world).collect());
        let is_frame = (n.norm() - 1.0).abs() < 1e-6 && n.dot(&t).abs() < 1e-6;
        (ends.len() <= 2 && is_frame).then_some(Self { bodies: ends, frame, jacobian })
    }

    /// Whether sweeps have a place for what is given along the tangents: two bodies only where the contact is
    /// stretched.
    fn is_held(&self, global: &GlobalProblem, contact: usize) -> bool {
        self.bodies.len() < 2
            || stretch(global, contact).compliance > 0.0
            || global.w[3 * contact + 1..3 * contact + 3] == [0.0; 2]
    }

    fn given(&self, global: &GlobalProblem, contact: usize) -> Vec3 {
        (0..3).map(|axis| self.frame[axis] * global.w[3 * contact + axis]).sum()
    }

    /// As a manifold of one point; what is given is the velocity of a body that nothing moves.
    fn add_to(
        &self,
        problem: &mut Problem,
        key: ManifoldKey,
        global: &GlobalProblem,
        contact: usize,
        impulse: [f64; 3],
    ) {
        let [w_n, w_t, w_s] = [0, 1, 2].map(|axis| global.w[3 * contact + axis]);
        let mut stretch = stretch(global, contact);
        let (slots, arms, bias) = match self.bodies[..] {
            [(a, arm_a), (b, arm_b)] => {
                stretch.bias = [w_t, w_s];
                ([a as u32, b as u32], [arm_a, arm_b], w_n)
            }
            _ => {
                let given = problem.inertia.len() as u32;
                problem.inertia.push(Inertia::default());
                problem.free_velocity.push(Twist::new(-self.given(global, contact), Vec3::zeros()));
                let (body, arm) = self.bodies.first().copied().unwrap_or((given as usize, Vec3::zeros()));
                ([given, body as u32], [Vec3::zeros(), arm], 0.0)
            }
        };
        problem.manifolds.push(Manifold {
            key,
            slots,
            frame: self.frame,
            kind: if stretch.compliance > 0.0 { Kind::Stretched } else { Kind::Coulomb },
            friction: global.mu[contact],
            compliance: global.compliance.get(contact).copied().unwrap_or(0.0),
            first_point: problem.points.len() as u32,
        });
        problem.points.push(Point { arms, bias, impulse });
        if !global.tangential_compliance.is_empty() {
            problem.stretches.push(stretch);
        }
    }

    fn hub_manifold(
        &self,
        jacobian: &[f64],
        key: ManifoldKey,
        global: &GlobalProblem,
        contact: usize,
        impulse: [f64; 3],
    ) -> HubManifold {
        let machine = End::Machine(MachineSlot { machine: 0, slot: 0 });
        let turned: Vec<f64> = jacobian.iter().map(|value| -value).collect();
        let (ends, arms, jacobians) = match self.bodies.first() {
            Some(&(body, arm)) => {
                ([machine, End::Body(body as u32)], [Vec3::zeros(), arm], [turned, Vec::new()])
            }
            None => ([End::Given, machine], [Vec3::zeros(); 2], [Vec::new(), jacobian.to_vec()]),
        };
        let given = self.given(global, contact);
        let stretch = stretch(global, contact);
        let point = HubPoint { arms, jacobians, given, bias: 0.0, stretch, impulse };
        HubManifold {
            key,
            ends,
            frame: self.frame,
            friction: global.mu[contact],
            compliance: global.compliance.get(contact).copied().unwrap_or(0.0),
            points: vec![point],
        }
    }
}
