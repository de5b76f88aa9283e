#!/usr/bin/env bash
# One case for several values of a key, as an array job, a run for each:
#   sbatch --array=0-3 jobs/slurm/sweep.sh inputs/plough.toml parameters.speed 0.5 1 1.5 2
# Variables, with what they are if not set:
#   BRECCIA         target/release/breccia
#   BRECCIA_OUT     $SCRATCH (or out) /CASE, and the number in the array behind it
#   BRECCIA_LAUNCH  srun --kill-on-bad-exit=1 --cpu-bind=cores; or mpirun and its options
#SBATCH --job-name=breccia-sweep
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=32
#SBATCH --cpus-per-task=1
#SBATCH --time=12:00:00
#SBATCH --output=%x-%A-%a.log
set -euo pipefail
case=${1:?which case? sbatch --array=0-N jobs/slurm/sweep.sh CASE KEY VALUE...}
key=${2:?which key?}
values=("${@:3}")
value=${values[$SLURM_ARRAY_TASK_ID]:?the array has more entries than there are values}
out=${BRECCIA_OUT:-${SCRATCH:-out}/$(basename "$case" .toml)}-$SLURM_ARRAY_TASK_ID
${BRECCIA_LAUNCH:-srun --kill-on-bad-exit=1 --cpu-bind=cores} "${BRECCIA:-target/release/breccia}" run "$case" --set "$key=$value" --out "$out" \
  --threads "$SLURM_CPUS_PER_TASK" --restart auto
