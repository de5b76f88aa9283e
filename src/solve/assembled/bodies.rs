//! A contact problem in the velocities of the bodies: six unknowns for each, far fewer than impulses, and a
//! matrix that is sparse where `W` is not.
//!
//! ```text
//! M v = M v_free + H r,      u = Hᵀ v + w + C r
//! ```
//!
//! Velocities stand in nodes of six, in their order: a rigid body is one.

use super::factor::{Block, FactorError, Lu, Pattern};
use super::problem::GlobalProblem;
use super::sparse::Sparse;
use super::system::ContactSystem;
use crate::geometry::{Mat3, Vec3};
use std::collections::BTreeMap;

/// Unknowns of a node.
pub const NODE: usize = 6;
/// Blocks in one factor at most: 6 GB.
const MOST_BLOCKS: usize = 20_000_000;

/// The velocities of a node.
pub type Velocity = [f64; NODE];
/// What a node's velocities add to the relative velocity of a contact.
type Row = [Velocity; 3];

#[derive(Clone, Debug, PartialEq)]
pub struct Bodies {
    problem: GlobalProblem,
    /// (row, column, block) of `M`; unknowns that are not there have a one on the diagonal.
    mass: Vec<(u32, u32, Block<NODE>)>,
    /// v_free.
    free: Vec<Velocity>,
    /// Nodes of each contact with their rows of `Hᵀ`, `ends[starts[contact]..starts[contact + 1]]`.
    starts: Vec<usize>,
    ends: Vec<(u32, Row)>,
    /// w.
    given: Vec<Vec3>,
    /// The diagonal of C.
    compliance: Vec<Vec3>,
}

impl Bodies {
    /// Of a global problem that has been checked; none of one with bilateral constraints.
    pub fn new(problem: &GlobalProblem) -> Result<Option<Self>, FactorError> {
        if problem.bilateral.is_some() {
            return Ok(None);
        }
        let nodes = problem.m.rows.div_ceil(NODE);
        let mut bodies = Self {
            problem: problem.clone(),
            mass: mass(&problem.m, nodes),
            free: vec![[0.0; NODE]; nodes],
            starts: vec![0],
            ends: Vec::new(),
            given: ContactSystem::lift(&problem.w, problem.dimension).into_iter().map(Vec3::from).collect(),
            compliance: Vec::new(),
        };
        let turned = problem.h.transposed();
        for contact in 0..problem.contacts() {
            let first = bodies.ends.len();
            for axis in 0..problem.dimension {
                for (unknown, value) in turned.row(contact * problem.dimension + axis) {
                    let (node, slot) = place(unknown);
                    let known = bodies.ends[first..].iter().position(|(other, _)| *other == node);
                    let at = known.map_or(bodies.ends.len(), |at| first + at);
                    if at == bodies.ends.len() {
                        bodies.ends.push((node, [[0.0; NODE]; 3]));
                    }
                    bodies.ends[at].1[axis][slot] = value;
                }
            }
            bodies.ends[first..].sort_by_key(|(node, _)| *node);
            bodies.starts.push(bodies.ends.len());
            let of = |list: &[f64]| list.get(contact).copied().unwrap_or(0.0);
            let tangential = of(&problem.tangential_compliance);
            bodies.compliance.push(Vec3::new(of(&problem.compliance), tangential, tangential));
        }
        let mut force = vec![[0.0; NODE]; nodes];
        for (unknown, &value) in problem.f.iter().enumerate() {
            let (node, slot) = place(unknown);
            force[node as usize][slot] = value;
        }
        let pattern = bodies.mass_pattern()?;
        bodies.factorise_mass(&pattern)?.solve(&mut force);
        bodies.free = force;
        Ok(Some(bodies))
    }

    /// What it was made of.
    pub fn problem(&self) -> &GlobalProblem {
        &self.problem
    }

    pub fn nodes(&self) -> usize {
        self.free.len()
    }

    pub fn contacts(&self) -> usize {
        self.given.len()
    }

    pub fn free(&self) -> &[Velocity] {
        &self.free
    }

    pub fn given(&self, contact: usize) -> &Vec3 {
        &self.given[contact]
    }

    pub fn compliance(&self, contact: usize) -> &Vec3 {
        &self.compliance[contact]
    }

    fn ends(&self, contact: usize) -> &[(u32, Row)] {
        &self.ends[self.starts[contact]..self.starts[contact + 1]]
    }

    /// `Hᵀ v` of a contact.
    pub fn relative(&self, contact: usize, velocities: &[Velocity]) -> Vec3 {
        let mut sum = Vec3::zeros();
        for (node, rows) in self.ends(contact) {
            let velocity = &velocities[*node as usize];
            for (axis, row) in rows.iter().enumerate() {
                sum[axis] += dot(row, velocity);
            }
        }
        sum
    }

    /// Adds `H r` of a contact.
    pub fn push(&self, contact: usize, impulse: &Vec3, momenta: &mut [Velocity]) {
        for (node, rows) in self.ends(contact) {
            let momentum = &mut momenta[*node as usize];
            for (row, &value) in rows.iter().zip(impulse) {
                for (sum, factor) in momentum.iter_mut().zip(row) {
                    *sum += factor * value;
                }
            }
        }
    }

    /// `M (v − v_free)`.
    pub fn momenta(&self, velocities: &[Velocity]) -> Vec<Velocity> {
        let mut momenta = vec![[0.0; NODE]; self.nodes()];
        for (row, column, block) in &self.mass {
            let (velocity, free) = (&velocities[*column as usize], &self.free[*column as usize]);
            for (sum, line) in momenta[*row as usize].iter_mut().zip(block) {
                *sum += (0..NODE).map(|slot| line[slot] * (velocity[slot] - free[slot])).sum::<f64>();
            }
        }
        momenta
    }

    /// `√(vᵀ M v)`.
    pub fn size(&self, velocities: &[Velocity]) -> f64 {
        let product = |(row, column, block): &(u32, u32, Block<NODE>)| {
            let (left, right) = (&velocities[*row as usize], &velocities[*column as usize]);
            left.iter().zip(block).map(|(left, line)| left * dot(line, right)).sum::<f64>()
        };
        self.mass.iter().map(product).sum::<f64>().max(0.0).sqrt()
    }

    /// `v_free + M⁻¹ H r`.
    pub fn velocities(&self, mass: &Lu<NODE>, impulses: &[Vec3]) -> Vec<Velocity> {
        let mut change = vec![[0.0; NODE]; self.nodes()];
        for (contact, impulse) in impulses.iter().enumerate() {
            self.push(contact, impulse, &mut change);
        }
        mass.solve(&mut change);
        for (change, free) in change.iter_mut().zip(&self.free) {
            for (value, free) in change.iter_mut().zip(free) {
                *value += free;
            }
        }
        change
    }

    /// Where `M` has blocks.
    pub fn mass_pattern(&self) -> Result<Pattern, FactorError> {
        self.pattern(|_| false)
    }

    pub fn factorise_mass<'p>(&self, pattern: &'p Pattern) -> Result<Lu<'p, NODE>, FactorError> {
        Lu::new(pattern, self.mass_blocks())
    }

    /// Where `M + H E Hᵀ` has blocks if E is zero but for contacts that act.
    pub fn pattern(&self, acts: impl Fn(usize) -> bool) -> Result<Pattern, FactorError> {
        let mut neighbours = vec![Vec::new(); self.nodes()];
        for (row, column, _) in self.mass.iter().filter(|(row, column, _)| row != column) {
            neighbours[*row as usize].push(*column);
        }
        for contact in (0..self.contacts()).filter(|&contact| acts(contact)) {
            for (one, _) in self.ends(contact) {
                let others = self.ends(contact).iter().map(|(other, _)| *other);
                neighbours[*one as usize].extend(others.filter(|other| other != one));
            }
        }
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        Pattern::new(neighbours, self.nodes(), MOST_BLOCKS)
    }

    /// Whether a pattern has the blocks of a contact.
    pub fn is_in(&self, pattern: &Pattern, contact: usize) -> bool {
        let ends = self.ends(contact);
        ends.iter().all(|(one, _)| ends.iter().all(|(other, _)| pattern.has(*one as usize, *other as usize)))
    }

    /// The factors of `M + H E Hᵀ`, one block E for each contact.
    pub fn factorise<'p>(&self, pattern: &'p Pattern, e: &[Mat3]) -> Result<Lu<'p, NODE>, FactorError> {
        let contacts = (0..self.contacts()).filter(|&contact| e[contact] != Mat3::zeros());
        let pairs = contacts.flat_map(|contact| {
            let ends = self.ends(contact);
            let e = &e[contact];
            ends.iter().flat_map(move |(one, left)| {
                ends.iter()
                    .map(move |(other, right)| (*one as usize, *other as usize, between(left, e, right)))
            })
        });
        Lu::new(pattern, self.mass_blocks().chain(pairs))
    }

    fn mass_blocks(&self) -> impl Iterator<Item = (usize, usize, Block<NODE>)> + '_ {
        self.mass.iter().map(|(row, column, block)| (*row as usize, *column as usize, *block))
    }
}

/// Node and slot of an unknown.
fn place(unknown: usize) -> (u32, usize) {
    ((unknown / NODE) as u32, unknown % NODE)
}

fn mass(matrix: &Sparse, nodes: usize) -> Vec<(u32, u32, Block<NODE>)> {
    let mut blocks: BTreeMap<(u32, u32), Block<NODE>> =
        (0..nodes as u32).map(|node| ((node, node), [[0.0; NODE]; NODE])).collect();
    for (row, column, value) in matrix.triplets() {
        let ((one, slot), (other, along)) = (place(row), place(column));
        let block = blocks.entry((one, other)).or_insert([[0.0; NODE]; NODE]);
        block[slot][along] = value;
    }
    if let Some(mut last) = blocks.last_entry() {
        (matrix.rows - (nodes - 1) * NODE..NODE).for_each(|slot| last.get_mut()[slot][slot] = 1.0);
    }
    blocks.into_iter().map(|((row, column), block)| (row, column, block)).collect()
}

fn dot(a: &Velocity, b: &Velocity) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `leftᵀ E right`.
fn between(left: &Row, e: &Mat3, right: &Row) -> Block<NODE> {
    let mut half = [[0.0; NODE]; 3];
    for (axis, line) in half.iter_mut().enumerate() {
        for (other, row) in right.iter().enumerate() {
            for (value, factor) in line.iter_mut().zip(row) {
                *value += e[(axis, other)] * factor;
            }
        }
    }
    let mut block = [[0.0; NODE]; NODE];
    for (row, line) in left.iter().zip(&half) {
        for (target, &factor) in block.iter_mut().zip(row) {
            for (value, other) in target.iter_mut().zip(line) {
                *value += factor * other;
            }
        }
    }
    block
}
