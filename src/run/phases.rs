//! Where the time went: seconds by phase, least, mean and most over ranks.

use decomposition::Comm;
use serde::Serialize;
use std::fmt::Write as _;

/// Seconds in one phase, over ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseTime {
    pub name: String,
    pub min: f64,
    pub mean: f64,
    pub max: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseTable {
    pub phases: Vec<PhaseTime>,
    /// Wall time of the run's loop, on the slowest rank.
    pub total: f64,
}

impl PhaseTable {
    /// Collective. `phases` have the same names on every rank; what `total` holds beyond them becomes the phase `other`.
    pub fn gather(phases: &[(&str, f64)], total: f64, comm: &dyn Comm) -> Self {
        let known: f64 = phases.iter().map(|(_, seconds)| seconds).sum();
        let mut own: Vec<(&str, f64)> = phases.to_vec();
        own.push(("other", (total - known).max(0.0)));
        own.push(("total", total));
        let bytes: Vec<u8> = own.iter().flat_map(|(_, seconds)| seconds.to_le_bytes()).collect();
        let seconds = |eight: &[u8]| f64::from_le_bytes(eight.try_into().unwrap_or([0; 8]));
        let all: Vec<Vec<f64>> = comm
            .all_gather(&bytes)
            .iter()
            .map(|bytes| bytes.chunks_exact(8).map(seconds).collect())
            .collect();
        let column = |k: usize| all.iter().filter_map(move |rank| rank.get(k).copied());
        let time = |(k, (name, _)): (usize, &(&str, f64))| PhaseTime {
            name: name.to_string(),
            min: column(k).fold(f64::INFINITY, f64::min),
            mean: column(k).sum::<f64>() / comm.size() as f64,
            max: column(k).fold(0.0, f64::max),
        };
        let mut phases: Vec<PhaseTime> = own.iter().enumerate().map(time).collect();
        let total = phases.pop().map_or(0.0, |total| total.max);
        Self { phases, total }
    }

    /// Seconds in a phase on the slowest rank; 0 if there is none of that name.
    pub fn seconds(&self, name: &str) -> f64 {
        self.phases.iter().find(|phase| phase.name == name).map_or(0.0, |phase| phase.max)
    }

    /// The table as LAMMPS users know it.
    pub fn text(&self) -> String {
        let mut text =
            format!("{:<12}{:>12}{:>12}{:>12}{:>10}\n", "phase", "min [s]", "avg [s]", "max [s]", "share");
        for phase in &self.phases {
            let share = if self.total > 0.0 { 100.0 * phase.mean / self.total } else { 0.0 };
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{:<12}{:>12.4}{:>12.4}{:>12.4}{:>8.1} %",
                phase.name, phase.min, phase.mean, phase.max, share
            );
        }
        let _ = write!(text, "{:<12}{:>36.4}", "total", self.total);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use decomposition::threads;

    #[test]
    fn the_table_is_the_same_on_every_rank() {
        let tables = threads::run(2, |comm| {
            let solve = 1.0 + comm.rank() as f64;
            PhaseTable::gather(&[("solve", solve), ("output", 0.5)], 4.0, comm)
        });
        assert_eq!(tables[0], tables[1]);
        let solve = PhaseTime { name: "solve".into(), min: 1.0, mean: 1.5, max: 2.0 };
        assert_eq!(tables[0].phases[0], solve);
        assert_eq!(tables[0].phases[2], PhaseTime { name: "other".into(), min: 1.5, mean: 2.0, max: 2.5 });
        assert_eq!((tables[0].total, tables[0].seconds("solve"), tables[0].seconds("none")), (4.0, 2.0, 0.0));
        let text = tables[0].text();
        assert!(text.contains("solve") && text.contains("37.5 %"), "{text}");
        assert_eq!(text.lines().count(), 5);
    }
}
