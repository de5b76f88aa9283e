//! One contact problem over grains and machines (33).

use super::hand_over::hand_over;
use super::{Coupling, Solved};
use crate::exchange::whole;
use crate::solve::{self, Options};
use crate::step::StepError;
use crate::step::contacts::ContactProblem;

pub struct Monolithic;

impl Coupling for Monolithic {
    fn solve(&self, contacts: &mut ContactProblem, options: &Options) -> Result<Solved, StepError> {
        if let Some(method) = options.method {
            let solution = whole::solve(&contacts.share(), None, method, options, contacts.comm)
                .map_err(|problem| StepError::Solver { problem })?;
            return Ok(Solved { solution, blocks: None, handed_over: false });
        }
        let blocks = contacts.blocks();
        let ContactProblem { assembled, hubs, ranks, .. } = contacts;
        ranks.let_stop(true);
        let (solution, blocks) = solve::solve_in(blocks, &assembled.problem, &hubs.hub, options, ranks);
        let stopped = ranks.stopped_by().filter(|_| !solution.converged);
        ranks.let_stop(false);
        if let Some(signal) = stopped {
            return Err(StepError::Stopped { signal });
        }
        let swept = Solved { solution, blocks: Some(blocks), handed_over: false };
        Ok(match options.fallback.method().filter(|_| !swept.solution.converged) {
            Some(method) => hand_over(contacts, method, options, swept),
            None => swept,
        })
    }
}
