//! What the steps of a run were like, added up.

use crate::step::StepReport;
use serde::{Deserialize, Serialize};

/// An overlap by the size of the smaller body that no packing of rigid bodies has.
pub const WORRYING: f64 = 0.1;

/// Over the steps made so far, those before a restart included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    pub steps: u64,
    contact_points: u64,
    most_contact_points: u64,
    sweeps: u64,
    most_sweeps: u64,
    /// Σ contact points × sweeps.
    visits: f64,
    pub not_converged: u64,
    /// Bodies that changed ranks.
    pub migrated: u64,
    worst_residual: f64,
    deepest: f64,
    last: Last,
    /// Deepest overlap by the size of the smaller body, and steps in which it was [`WORRYING`].
    worst_overlap: f64,
    overlapping: u64,
    /// Steps that the sweeps missed and another solver got, and those of them that it brought to the
    /// tolerance.
    pub handed_over: u64,
    pub brought_home: u64,
    /// Of `visits`, those before this process took over.
    #[serde(skip)]
    earlier_visits: f64,
}

/// Of the last step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Last {
    contact_points: u64,
    sweeps: u64,
    residual: f64,
    penetration: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub mean: f64,
    pub last: u64,
    pub max: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Worst {
    pub last: f64,
    pub max: f64,
}

impl Statistics {
    pub fn add(&mut self, report: &StepReport) {
        let sweeps = report.sweeps as u64;
        self.steps += 1;
        self.contact_points += report.contact_points;
        self.most_contact_points = self.most_contact_points.max(report.contact_points);
        self.sweeps += sweeps;
        self.most_sweeps = self.most_sweeps.max(sweeps);
        self.visits += report.contact_points as f64 * report.sweeps as f64;
        self.not_converged += u64::from(!report.converged);
        self.migrated += report.migrated;
        self.worst_residual = self.worst_residual.max(report.residual.natural_map);
        self.deepest = self.deepest.max(report.worst_penetration);
        self.worst_overlap = self.worst_overlap.max(report.overlap.share);
        self.overlapping += u64::from(report.overlap.share > WORRYING);
        self.handed_over += u64::from(report.handed_over);
        self.brought_home += u64::from(report.handed_over && report.converged);
        self.last = Last {
            contact_points: report.contact_points,
            sweeps,
            residual: report.residual.natural_map,
            penetration: report.worst_penetration,
        };
    }

    /// For a checkpoint.
    pub fn encode(&self) -> Vec<u8> {
        // Writing to memory cannot fail.
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// What was known at the checkpoint from which a run continues.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        // Checkpoints of programs that did not compare overlaps with sizes, or hand steps over, end before
        // these numbers.
        let older = [bytes, &[0; 11]].concat();
        let statistics: Statistics =
            postcard::from_bytes(bytes).or_else(|_| postcard::from_bytes(&older)).ok()?;
        Some(Statistics { earlier_visits: statistics.visits, ..statistics })
    }

    pub fn contact_points(&self) -> Spread {
        let last = self.last.contact_points;
        Spread { mean: self.mean(self.contact_points), last, max: self.most_contact_points }
    }

    pub fn sweeps(&self) -> Spread {
        Spread { mean: self.mean(self.sweeps), last: self.last.sweeps, max: self.most_sweeps }
    }

    /// The natural-map error.
    pub fn residual(&self) -> Worst {
        Worst { last: self.last.residual, max: self.worst_residual }
    }

    /// m.
    pub fn penetration(&self) -> Worst {
        Worst { last: self.last.penetration, max: self.deepest }
    }

    /// The deepest overlap by the size of the smaller body.
    pub fn overlap(&self) -> f64 {
        self.worst_overlap
    }

    /// Steps in which it was [`WORRYING`].
    pub fn overlapping(&self) -> u64 {
        self.overlapping
    }

    /// Nanoseconds for one visit of one contact point, if `seconds` went into the sweeps of this process;
    /// none if it had no contact.
    pub fn nanoseconds_per_visit(&self, seconds: f64) -> Option<f64> {
        let visits = self.visits - self.earlier_visits;
        (visits > 0.0).then(|| 1e9 * seconds / visits)
    }

    /// What became of the steps that were handed over, if there were any.
    pub fn handed_over(&self) -> Option<String> {
        let Self { handed_over, brought_home, .. } = self;
        (*handed_over > 0).then(|| {
            format!("steps handed over by solver.fallback: {handed_over}, of which {brought_home} reached the tolerance")
        })
    }

    /// Sentences about what an engineer should know before believing a force.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let overlap = (self.worst_overlap > WORRYING).then(|| {
            format!(
                "overlaps were above {:.0} % of the size of a body in {} of {} steps, {:.0} % at most: contact problems there are solved too \
                 loosely, or a prescribed motion drives into a jam that has no rigid solution; forces of these steps are not to be relied on",
                100.0 * WORRYING,
                self.overlapping,
                self.steps,
                100.0 * self.worst_overlap
            )
        });
        self.missed().into_iter().chain(overlap)
    }

    /// A sentence if some steps did not reach the tolerance.
    fn missed(&self) -> Option<String> {
        (self.not_converged > 0).then(|| {
            format!(
                "{} of {} steps did not reach the tolerance of the solver (worst residual {:.1e}); \
                 allow more sweeps with solver.maximum_sweeps, or take a smaller time step",
                self.not_converged, self.steps, self.worst_residual
            )
        })
    }

    fn mean(&self, sum: u64) -> f64 {
        sum as f64 / self.steps.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::Residual;

    #[test]
    fn means_and_extremes_of_three_steps() {
        let mut statistics = Statistics::default();
        for (points, sweeps, error) in [(10, 2, 1e-5), (40, 6, 3e-4), (10, 1, 2e-5)] {
            statistics.add(&StepReport {
                contact_points: points,
                sweeps,
                residual: Residual { natural_map: error, ..Residual::default() },
                converged: error < 1e-4,
                worst_penetration: error,
                ..StepReport::default()
            });
        }
        assert_eq!(statistics.contact_points(), Spread { mean: 20.0, last: 10, max: 40 });
        assert_eq!(statistics.sweeps(), Spread { mean: 3.0, last: 1, max: 6 });
        assert_eq!(statistics.residual(), Worst { last: 2e-5, max: 3e-4 });
        assert_eq!(statistics.penetration(), Worst { last: 2e-5, max: 3e-4 });
        assert_eq!(statistics.nanoseconds_per_visit(270e-9), Some(1.0));
        let resumed = Statistics::decode(&statistics.encode()).expect("what was encoded");
        assert_eq!((resumed.steps, resumed.sweeps()), (3, statistics.sweeps()));
        assert_eq!(resumed.nanoseconds_per_visit(1.0), None);
        assert_eq!(statistics.handed_over(), None);
        statistics.add(&StepReport { handed_over: true, converged: true, ..StepReport::default() });
        let sentence = statistics.handed_over().expect("one step");
        assert!(sentence.contains("1, of which 1"), "{sentence}");
        let older = &statistics.encode()[..statistics.encode().len() - 2];
        assert_eq!(Statistics::decode(older).map(|older| (older.steps, older.handed_over)), Some((4, 0)));
        let warning = statistics.missed().expect("one step failed");
        assert!(warning.starts_with("1 of 4 steps") && warning.contains("3.0e-4"), "{warning}");
        assert_eq!(Statistics::default().warnings().count(), 0);
        assert_eq!(Statistics::default().nanoseconds_per_visit(1.0), None);
    }
}
