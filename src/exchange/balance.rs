//! How space is shared among ranks, and when it is shared anew. Nothing that is computed depends on it, only
//! where.

use crate::scene::{Body, BodyId, Scene};
use decomposition::{Cells, Comm, Partition};

/// Edge of a cell by the radius of the largest grain: small enough to balance well, large enough that few
/// grains cross a border.
const CELL_EDGE_BY_RADIUS: f64 = 2.0;
/// Steps between two checks of the balance: stones fall a few of their sizes in that time.
const BALANCE_EVERY: u64 = 100;
/// Cells in all: the table that every rank holds.
const MOST_CELLS: usize = 1 << 20;
/// Work of a grain that touches nothing, in contact points.
const WORK_OF_A_GRAIN: i64 = 2;

/// How space is shared among ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecompositionOptions {
    /// Edge of the cells, m; if none, a few of the largest grains.
    pub cell_size: Option<f64>,
    /// Largest over mean work of a rank beyond which space is cut anew, ≥ 1.
    pub imbalance_threshold: f64,
}

impl Default for DecompositionOptions {
    fn default() -> Self {
        Self { cell_size: None, imbalance_threshold: 1.2 }
    }
}

/// What each grain of this rank cost in the last step, in contact points.
fn work(scene: &Scene, contacts: impl Iterator<Item = [BodyId; 2]>) -> Vec<i64> {
    let mut work = vec![WORK_OF_A_GRAIN; scene.state.grains.len()];
    for id in contacts.flatten() {
        if let Ok(place) = scene.state.grains.binary_search_by_key(&id, |body| body.id) {
            work[place] += 1;
        }
    }
    work
}

/// What each grain cost, if it is time to cut space anew: checked every [`BALANCE_EVERY`] steps. Collective.
pub fn due(
    scene: &Scene,
    contacts: impl Iterator<Item = [BodyId; 2]>,
    options: &DecompositionOptions,
    comm: &dyn Comm,
) -> Option<Vec<i64>> {
    if comm.size() == 1 || !scene.state.step.is_multiple_of(BALANCE_EVERY) {
        return None;
    }
    let work = work(scene, contacts);
    let own: i64 = work.iter().sum();
    let (mut total, mut most) = ([own], [own as f64]);
    comm.sum_i64(&mut total);
    comm.max_f64(&mut most);
    let uneven = most[0] * comm.size() as f64 > options.imbalance_threshold * (total[0] as f64).max(1.0);
    uneven.then_some(work)
}

/// Cuts the space that the grains take up; `work` has an entry for each grain of this rank. Collective.
pub fn partition(
    scene: &Scene,
    work: &[i64],
    options: &DecompositionOptions,
    previous: Option<&Partition>,
    comm: &dyn Comm,
) -> Partition {
    let mut extent = [f64::NEG_INFINITY; 7];
    for body in &scene.state.grains {
        for axis in 0..3 {
            extent[axis] = extent[axis].max(-body.pose.position[axis]);
            extent[3 + axis] = extent[3 + axis].max(body.pose.position[axis]);
        }
        extent[6] = extent[6].max(body.shape.bounding_radius());
    }
    comm.max_f64(&mut extent);
    if !extent.iter().all(|bound| bound.is_finite()) {
        extent = [0.0; 7]; // no grains at all
    }
    let min = [-extent[0], -extent[1], -extent[2]];
    let max = [extent[3], extent[4], extent[5]];
    let size = options.cell_size.unwrap_or(CELL_EDGE_BY_RADIUS * extent[6]).max(1e-9);
    let cells = Cells::covering(min, max, size, MOST_CELLS);
    let mut by_cell = vec![0; cells.count()];
    for (body, work) in scene.state.grains.iter().zip(work) {
        by_cell[cells.cell_of(place(body))] += work;
    }
    Partition::balanced(cells, &mut by_cell, previous, comm)
}

/// Before the first step only the impulses of a restart tell where work will be: each stands with one of its
/// two bodies.
pub fn first_partition(scene: &Scene, options: &DecompositionOptions, comm: &dyn Comm) -> Partition {
    let points = |body: &Body| {
        scene.state.impulses.of_home(body.id).map(|(_, points)| points.len() as i64).sum::<i64>()
    };
    let work: Vec<i64> = scene.state.grains.iter().map(|body| WORK_OF_A_GRAIN + 2 * points(body)).collect();
    partition(scene, &work, options, None, comm)
}

fn place(body: &Body) -> [f64; 3] {
    body.pose.position.into()
}
