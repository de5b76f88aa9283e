//! Where the time went: seconds, waiting, messages and bytes by phase, least, mean and most over ranks.

use crate::step::Cost;
use decomposition::Comm;
use serde::Serialize;
use std::fmt::Write as _;

/// What one phase has cost, over ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseTime {
    pub name: String,
    /// s
    pub min: f64,
    pub mean: f64,
    pub max: f64,
    /// Seconds of these in which a rank waited for others: least, mean, most.
    pub waiting: [f64; 3],
    /// Messages that a rank sent: least, mean, most.
    pub messages: [f64; 3],
    /// Bytes that a rank sent: least, mean, most.
    pub bytes: [f64; 3],
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseTable {
    pub phases: Vec<PhaseTime>,
    /// Wall time of the run's loop, on the slowest rank.
    pub total: f64,
    /// For the numbers per step.
    pub steps: u64,
    pub ranks: usize,
}

/// Numbers of a phase on one rank.
const NUMBERS: usize = 4;

impl PhaseTable {
    /// Collective. `phases` have the same names on every rank; what `total` holds beyond them becomes the
    /// phase `other`.
    pub fn gather(phases: &[(&str, Cost)], total: f64, comm: &dyn Comm) -> Self {
        let known: f64 = phases.iter().map(|(_, cost)| cost.seconds).sum();
        let mut own: Vec<(&str, Cost)> = phases.to_vec();
        let plain = |seconds: f64| Cost { seconds, ..Default::default() };
        own.push(("other", plain((total - known).max(0.0))));
        own.push(("total", plain(total)));
        let numbers = |(_, Cost { seconds, traffic }): &(&str, Cost)| -> [f64; NUMBERS] {
            [*seconds, traffic.waiting, traffic.messages as f64, traffic.bytes as f64]
        };
        let bytes: Vec<u8> = own.iter().flat_map(numbers).flat_map(f64::to_le_bytes).collect();
        let number = |eight: &[u8]| f64::from_le_bytes(eight.try_into().unwrap_or([0; 8]));
        let all: Vec<Vec<f64>> =
            comm.all_gather(&bytes).iter().map(|bytes| bytes.chunks_exact(8).map(number).collect()).collect();
        let spread = |k: usize| {
            let column = || all.iter().filter_map(|rank| rank.get(k).copied());
            let mean = column().sum::<f64>() / comm.size() as f64;
            [column().fold(f64::INFINITY, f64::min), mean, column().fold(0.0, f64::max)]
        };
        let time = |(k, (name, _)): (usize, &(&str, Cost))| {
            let [min, mean, max] = spread(NUMBERS * k);
            let [waiting, messages, bytes] = [1, 2, 3].map(|number| spread(NUMBERS * k + number));
            PhaseTime { name: name.to_string(), min, mean, max, waiting, messages, bytes }
        };
        let mut phases: Vec<PhaseTime> = own.iter().enumerate().map(time).collect();
        let total = phases.pop().map_or(0.0, |total| total.max);
        Self { phases, total, steps: 0, ranks: comm.size() }
    }

    /// Seconds in a phase on the slowest rank; 0 if there is none of that name.
    pub fn seconds(&self, name: &str) -> f64 {
        self.phases.iter().find(|phase| phase.name == name).map_or(0.0, |phase| phase.max)
    }

    /// Largest over mean time in which a rank worked and did not wait, in the phases of a step.
    pub fn imbalance(&self) -> f64 {
        // The rank that works most waits least; sums over phases of extremes are bounds, good enough for a
        // table.
        let work = |phase: &PhaseTime| [phase.mean - phase.waiting[1], phase.max - phase.waiting[0]];
        let [mean, most] = self
            .phases
            .iter()
            .filter(|phase| phase.name != "other")
            .map(work)
            .fold([0.0; 2], |[mean, most], [more_mean, more_most]| [mean + more_mean, most + more_most]);
        if mean > 0.0 { most / mean } else { 1.0 }
    }

    /// The table as LAMMPS users know it; with several ranks also who waited, and what was sent in a step.
    pub fn text(&self) -> String {
        let several = self.ranks > 1;
        let mut text =
            format!("{:<12}{:>12}{:>12}{:>12}{:>10}", "phase", "min [s]", "avg [s]", "max [s]", "share");
        if several {
            text += &format!("{:>24}{:>20}{:>22}", "waiting min/avg/max [s]", "messages/step", "bytes/step");
        }
        text.push('\n');
        for phase in &self.phases {
            let share = if self.total > 0.0 { 100.0 * phase.mean / self.total } else { 0.0 };
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "{:<12}{:>12.4}{:>12.4}{:>12.4}{:>8.1} %",
                phase.name, phase.min, phase.mean, phase.max, share
            );
            if several && phase.messages[2] > 0.0 {
                let steps = self.steps.max(1) as f64;
                let [least, mean, most] = phase.waiting;
                let waiting = format!("{least:.3}/{mean:.3}/{most:.3}");
                let [messages, bytes] = [phase.messages, phase.bytes]
                    .map(|three| three.map(|number| format!("{:.0}", number / steps)).join("/"));
                let _ = write!(text, "{waiting:>24}{messages:>20}{bytes:>22}");
            }
            text.push('\n');
        }
        let _ = write!(text, "{:<12}{:>36.4}", "total", self.total);
        if several {
            let _ = write!(text, "\nimbalance of the work: at most {:.2} of the mean", self.imbalance());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use decomposition::{Traffic, threads};

    #[test]
    fn the_table_is_the_same_on_every_rank() {
        let tables = threads::run(2, |comm| {
            let solve = 1.0 + comm.rank() as f64;
            let traffic = Traffic { messages: 10 + comm.rank() as u64, bytes: 80, waiting: 0.25 };
            let output = Cost { seconds: 0.5, ..Default::default() };
            PhaseTable::gather(&[("solve", Cost { seconds: solve, traffic }), ("output", output)], 4.0, comm)
        });
        assert_eq!(tables[0], tables[1]);
        let solve = &tables[0].phases[0];
        assert_eq!((solve.name.as_str(), solve.min, solve.mean, solve.max), ("solve", 1.0, 1.5, 2.0));
        assert_eq!((solve.waiting, solve.messages, solve.bytes), ([0.25; 3], [10.0, 10.5, 11.0], [80.0; 3]));
        let other = &tables[0].phases[2];
        assert_eq!((other.name.as_str(), other.min, other.mean, other.max), ("other", 1.5, 2.0, 2.5));
        assert_eq!(tables[0].imbalance(), (2.0 - 0.25 + 0.5) / (1.5 - 0.25 + 0.5));
        assert_eq!((tables[0].total, tables[0].seconds("solve"), tables[0].seconds("none")), (4.0, 2.0, 0.0));
        let text = tables[0].text();
        assert!(text.contains("solve") && text.contains("37.5 %"), "{text}");
        assert!(text.contains("10/10/11") && text.contains("80/80/80"), "{text}");
        assert_eq!(text.lines().count(), 6);
    }
}
