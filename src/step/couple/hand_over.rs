//! A step that the sweeps have missed, handed to a solver that gets further: what it finds is measured as
//! sweeps are, and kept if it is better.

use super::Solved;
use crate::exchange::whole;
use crate::solve::assembled::Method;
use crate::solve::{self, Options};
use crate::step::contacts::ContactProblem;

/// By so much nearer than is asked: the residual of the assembled problem is measured in its own way.
const NEARER: f64 = 0.3;

/// Collective, the same on every rank.
pub fn hand_over(contacts: &mut ContactProblem, method: Method, options: &Options, swept: Solved) -> Solved {
    if contacts.count() > options.fallback_points as u64 {
        return swept;
    }
    let nearer = Options { tolerance: NEARER * options.tolerance, ..*options };
    let comm = contacts.comm;
    // A problem that cannot be assembled, or is too large for that, stays as the sweeps have left it.
    let Ok(found) = whole::solve(&contacts.share(), Some(&swept.solution), method, &nearer, comm) else {
        return Solved { handed_over: true, ..swept };
    };
    let starts = contacts.replace_starts(found.impulses, found.hub.impulses);
    let measured = measure(contacts, options);
    contacts.replace_starts(starts.0, starts.1);
    let sweeps = swept.solution.sweeps + found.sweeps;
    let better = measured.solution.residual.natural_map < swept.solution.residual.natural_map;
    let mut best = if better { measured } else { swept };
    best.solution.sweeps = sweeps;
    Solved { handed_over: true, ..best }
}

/// The impulses from which sweeps would start, as they are.
fn measure(contacts: &mut ContactProblem, options: &Options) -> Solved {
    let blocks = contacts.blocks();
    let ContactProblem { assembled, hubs, ranks, .. } = contacts;
    let options = Options { maximum_sweeps: 0, ..*options };
    let (solution, blocks) = solve::solve_in(blocks, &assembled.problem, &hubs.hub, &options, ranks);
    Solved { solution, blocks: Some(blocks), handed_over: true }
}
