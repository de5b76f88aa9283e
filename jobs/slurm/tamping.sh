#!/usr/bin/env bash
# Tamping a stretch of track, 100,000 stones:  sbatch jobs/slurm/tamping.sh
# Deposits the ballast first if it is not there, goes on after a time limit, and is queued again until the end.
# Variables, with what they are if not set:
#   BRECCIA         target/release/breccia
#   BRECCIA_OUT     $SCRATCH (or out) /tamping
#   BRECCIA_STAGES  "bed deposit large": cases of inputs/tamping, each of which starts from the one before
#   BRECCIA_STEPS   steps of the last stage, the duration of its case; the others come to rest before the next begins
#   BRECCIA_OPTIONS of breccia run, for every stage; none
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

# 138 and 143 are 128 + SIGUSR1 and SIGTERM: stopped with a checkpoint; see requeue.sh.
stage() {
  srun --kill-on-bad-exit=1 --cpu-bind=cores "$breccia" run "inputs/tamping/$1.toml" --out "$out/$1" --restart auto \
    --threads "$SLURM_CPUS_PER_TASK" ${BRECCIA_OPTIONS:-} "${@:2}"
  local code=$?
  if [ "$code" = 138 ] || { [ "$code" = 143 ] && scontrol show job "$SLURM_JOB_ID" | grep -q JobState=RUNNING; }; then
    scontrol requeue "$SLURM_JOB_ID"
    exit 0
  fi
  [ "$code" -eq 0 ] || exit "$code"
}

stages=(${BRECCIA_STAGES:-bed deposit large})
last=${stages[-1]}
before=
for name in "${stages[@]}"; do
  options=()
  [ -n "$before" ] && options+=(--set "start.from=$(realpath "$out")/$before/final.h5")
  [ "$name" = "$last" ] && [ -n "${BRECCIA_STEPS:-}" ] && options+=(--steps "$BRECCIA_STEPS")
  stage "$name" "${options[@]}"
  before=$name
done
"$breccia" report "$out/$last"
