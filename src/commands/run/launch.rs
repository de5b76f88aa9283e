//! Whether the launcher has made one job of the processes that it started.

/// What to say to a process that is alone although Slurm has started it as one of several: they do not know
/// of each other, each would do the whole run, in one directory. `variable` reads the environment.
pub fn lonely(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let number = |name: &str| variable(name)?.trim().parse::<u64>().ok();
    // A batch script that calls the program itself, or through mpirun, is no step of srun's.
    let step = variable("SLURM_STEP_ID").and(number("SLURM_STEP_NUM_TASKS"))?;
    if step < 2 || variable("OMPI_COMM_WORLD_SIZE").is_some() || variable("SLURM_PROCID").is_none() {
        return None;
    }
    Some(format!(
        "srun has started {step} processes, but MPI sees one only: they would do the same run {step} times\n  \
         give srun --mpi=pmix, or export SLURM_MPI_TYPE=pmix before (srun --mpi=list shows what there is), or start with mpirun"
    ))
}

/// The same before MPI is started: Open MPI, started by `srun` without an interface to it, ends in its own
/// words about how it was built. None if some interface has left its variables.
pub fn unlinked(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let linked = ["PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK", "PMI_FD", "PMI_JOBID"];
    if linked.iter().any(|name| variable(name).is_some()) { None } else { lonely(variable) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_steps_of_several_processes_are_meant() {
        let seen = |pairs: &'static [(&str, &str)]| {
            lonely(move |name| pairs.iter().find(|(own, _)| *own == name).map(|(_, value)| value.to_string()))
        };
        let step = [("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "2")];
        assert!(
            lonely(|name| step.iter().find(|(own, _)| *own == name).map(|(_, value)| value.to_string()))
                .is_some_and(|text| text.contains("SLURM_MPI_TYPE=pmix"))
        );
        assert_eq!(seen(&[("SLURM_NTASKS", "4"), ("SLURM_PROCID", "0")]), None, "a batch script");
        assert_eq!(
            seen(&[("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_PROCID", "0")]),
            None
        );
        assert_eq!(seen(&[]), None);
        let linked = |name: &str| match name {
            "PMIX_RANK" => Some("2".to_string()),
            _ => step.iter().find(|(own, _)| *own == name).map(|(_, value)| value.to_string()),
        };
        assert!(unlinked(linked).is_none() && lonely(linked).is_some());
    }
}
