#!/usr/bin/env bash
# A run longer than the queue allows:  sbatch jobs/slurm/requeue.sh inputs/CASE.toml
# Two minutes before its time is up Slurm sends SIGUSR1; breccia writes a checkpoint and stops; the job goes back into the queue and,
# when it starts again, goes on from there. The same line begins the run and continues it, also after a node has failed.
# Variables: BRECCIA and BRECCIA_OUT as in run.sh. With srun only: Slurm's signal does not come through mpirun.
#SBATCH --job-name=breccia
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=32
#SBATCH --cpus-per-task=1
#SBATCH --time=12:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log
set -uo pipefail
case=${1:?which case? sbatch jobs/slurm/requeue.sh CASE}
shift
# Not with the number of the job: the same place each time.
out=${BRECCIA_OUT:-${SCRATCH:-out}/$(basename "$case" .toml)}
srun --kill-on-bad-exit=1 --cpu-bind=cores "${BRECCIA:-target/release/breccia}" run "$case" --out "$out" --threads "$SLURM_CPUS_PER_TASK" --restart auto "$@"
code=$?
# 138 and 143 are 128 + SIGUSR1 and SIGTERM: stopped with a checkpoint (docs/running.md). SIGTERM comes where jobs are preempted with a
# grace time, of which Slurm takes an end for the job's own; a job that was cancelled does not run any more, and stays cancelled.
if [ "$code" = 138 ] || { [ "$code" = 143 ] && scontrol show job "$SLURM_JOB_ID" | grep -q JobState=RUNNING; }; then
  scontrol requeue "$SLURM_JOB_ID"
  exit 0
fi
exit "$code"
