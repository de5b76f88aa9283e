#!/usr/bin/env bash
# One run on a cluster:  sbatch jobs/slurm/run.sh inputs/CASE.toml [more options of breccia run]
# Variables, with what they are if not set:
#   BRECCIA         target/release/breccia
#   BRECCIA_OUT     $SCRATCH (or out) /CASE-JOB
#   BRECCIA_LAUNCH  srun --kill-on-bad-exit=1 --cpu-bind=cores; or mpirun and its options
#SBATCH --job-name=breccia
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=32
#SBATCH --cpus-per-task=1
#SBATCH --time=24:00:00
#SBATCH --output=%x-%j.log
set -euo pipefail
case=${1:?which case? sbatch jobs/slurm/run.sh CASE}
shift
out=${BRECCIA_OUT:-${SCRATCH:-out}/$(basename "$case" .toml)-$SLURM_JOB_ID}
${BRECCIA_LAUNCH:-srun --kill-on-bad-exit=1 --cpu-bind=cores} "${BRECCIA:-target/release/breccia}" run "$case" --out "$out" --threads "$SLURM_CPUS_PER_TASK" "$@"
