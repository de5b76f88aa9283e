#!/usr/bin/env bash
# A run longer than the queue allows:  sbatch jobs/slurm/requeue.sh inputs/CASE.toml
# Two minutes before its time is up Slurm sends SIGUSR1; breccia writes a checkpoint and stops; the job goes back into the queue and,
# when it starts again, goes on from there. The same line begins the run and continues it, also after a node has failed.
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
# 138 is 128 + SIGUSR1: stopped with a checkpoint (docs/running.md).
if [ "$code" = 138 ]; then
  scontrol requeue "$SLURM_JOB_ID"
  exit 0
fi
exit "$code"
