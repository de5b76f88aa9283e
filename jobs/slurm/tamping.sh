#!/usr/bin/env bash
# Tamping a stretch of track, 100,000 stones:  sbatch jobs/slurm/tamping.sh
# Deposits the ballast first if it is not there, goes on after a time limit, and is queued again until the end.
#SBATCH --job-name=tamping
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=32
#SBATCH --cpus-per-task=1
#SBATCH --time=12:00:00
#SBATCH --signal=USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log
set -uo pipefail
breccia=${BRECCIA:-target/release/breccia}
out=${BRECCIA_OUT:-${SCRATCH:-out}/tamping}

# 138 is 128 + SIGUSR1: stopped with a checkpoint (docs/running.md).
stage() {
  srun --kill-on-bad-exit=1 --cpu-bind=cores "$breccia" run "inputs/tamping/$1.toml" --out "$out/$1" --restart auto --threads "$SLURM_CPUS_PER_TASK" "${@:2}"
  local code=$?
  if [ "$code" -eq 138 ]; then
    scontrol requeue "$SLURM_JOB_ID"
    exit 0
  fi
  [ "$code" -eq 0 ] || exit "$code"
}

stage bed
stage deposit --set "start.from=$(realpath "$out")/bed/final.h5"
stage large --set "start.from=$(realpath "$out")/deposit/final.h5"
"$breccia" report "$out/large"
