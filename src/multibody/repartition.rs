//! When the split into independent and dependent coordinates changes during a run, and to what.
//!
//! Coordinates and velocities stay as they are, to the bit; only the roles change. So there is no jump.

use super::error::MultibodyError;
use super::partition::{
    ILL_CONDITIONED, PIVOT_TOLERANCE, PREFERRED_AGAIN, PREFERRED_ILL_CONDITIONED, Partition, Partitioning,
};
use super::stepping::Multibody;

impl Multibody {
    /// Largest entry of `B_vu` (arcs against arcs): how strongly dependent velocities exceed independent
    /// ones.
    pub fn condition(&self) -> f64 {
        self.reduced.condition(&self.model, &self.partition)
    }

    /// Whether the end of the next step would search for a better partition (where the model allows one).
    pub fn ill_conditioned(&self) -> bool {
        let condition = self.condition();
        let limit = match &self.model.partitioning {
            Partitioning::Preferred(_) => PREFERRED_ILL_CONDITIONED,
            _ => ILL_CONDITIONED,
        };
        condition > limit || condition.is_nan()
    }

    /// Follows the rule of the model; called at the end of every step.
    pub(super) fn choose_partition(&mut self) -> Result<(), MultibodyError> {
        if self.model.cuts.is_empty() {
            return Ok(());
        }
        let ill = self.ill_conditioned();
        match &self.model.partitioning {
            Partitioning::Automatic if ill => self.improve(),
            Partitioning::Preferred(names) => {
                let wanted = |k: &usize| names.iter().any(|name| self.model.coordinate(name) == Some(*k));
                let preferred = self.partition.dependent.iter().all(wanted);
                if preferred { if ill { self.improve() } else { Ok(()) } } else { self.prefer(ill) }
            }
            _ => Ok(()),
        }
    }

    /// Goes back to the preferred partition if it is well-conditioned here.
    fn prefer(&mut self, ill: bool) -> Result<(), MultibodyError> {
        let Partitioning::Preferred(names) = &self.model.partitioning else { return Ok(()) };
        let wanted = |k: usize| names.iter().any(|name| self.model.coordinate(name) == Some(k)).then_some(0);
        let (partition, _) = Partition::choose(&self.model, &self.data, wanted);
        if partition.rows.len() == self.partition.rows.len() {
            let (kept, before) = (self.partition.clone(), self.condition());
            self.adopt(partition)?;
            let condition = self.condition();
            if condition < PREFERRED_AGAIN || condition < before {
                return Ok(());
            }
            self.adopt(kept)?;
        }
        if ill { self.improve() } else { Ok(()) }
    }

    /// Takes the best partition if it is much better than the present one, so that no step goes to and fro.
    fn improve(&mut self) -> Result<(), MultibodyError> {
        let (kept, before) = (self.partition.clone(), self.condition());
        if self.repartition()? && self.condition() > 0.5 * before {
            self.adopt(kept)?;
        }
        Ok(())
    }

    /// Chooses the best partition at the current position. Coordinates and velocities stay as they are, to
    /// the bit; only the roles change. Returns whether they did.
    pub fn repartition(&mut self) -> Result<bool, MultibodyError> {
        let (partition, left_over) = Partition::choose(&self.model, &self.data, |_| Some(0));
        if partition.rows.len() < self.partition.rows.len() {
            let kept = &self.partition.rows;
            let row =
                kept.iter().copied().find(|row| partition.rows.binary_search(row).is_err()).unwrap_or(0);
            let pivot = left_over.map_or(PIVOT_TOLERANCE, |(_, pivot)| pivot);
            return Err(MultibodyError::Singular { cut: self.model.cut_of_row(row).to_string(), pivot });
        }
        if partition == self.partition || partition.rows.len() > self.partition.rows.len() {
            return Ok(false);
        }
        self.adopt(partition)?;
        Ok(true)
    }

    fn adopt(&mut self, partition: Partition) -> Result<(), MultibodyError> {
        self.partition = partition;
        self.reduced.update_map(&self.model, &self.data, &self.partition)
    }
}
