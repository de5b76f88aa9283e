#!/usr/bin/env bash
# Strong and weak scaling on up to the nodes of the job, table and picture as jobs/scaling-study.py makes them:
#   sbatch jobs/slurm/scaling.sh strong      or      sbatch --nodes=8 jobs/slurm/scaling.sh weak
# Ranks are 1, 2, 4 … up to nodes times tasks per node. Variables, with what they are if not set:
#   BRECCIA          target/release/breccia
#   BRECCIA_OUT      $SCRATCH (or out) /scaling-JOB
#   BRECCIA_LAUNCH   srun --kill-on-bad-exit=1 --cpu-bind=cores; or mpirun and its options
#   BRECCIA_CASE     inputs/scaling.toml for strong, inputs/mixed-spheres.toml for weak
#   BRECCIA_STEPS    steps of each run: 40 for strong, 100 for weak
#   BRECCIA_REST     steps until the stones rest, before a strong study; the duration of the case
#   BRECCIA_GROW     parameters.spheres=100000: for weak, KEY=VALUE on one rank
#   BRECCIA_REPEATS  3: runs on each number of ranks, of which the fastest counts
#SBATCH --job-name=breccia-scaling
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=32
#SBATCH --cpus-per-task=1
#SBATCH --exclusive
#SBATCH --time=04:00:00
#SBATCH --output=%x-%j.log
set -euo pipefail
kind=${1:-strong}
most=$((SLURM_JOB_NUM_NODES * SLURM_NTASKS_PER_NODE))
ranks=()
for ((n = 1; n <= most; n *= 2)); do ranks+=("$n"); done
python=python3
[ -x .venv/bin/python ] && python=.venv/bin/python
out=${BRECCIA_OUT:-${SCRATCH:-out}/scaling-$SLURM_JOB_ID}
breccia=${BRECCIA:-target/release/breccia}
launch=${BRECCIA_LAUNCH:-srun --kill-on-bad-exit=1 --cpu-bind=cores}
options=(--breccia "$breccia" --repeats "${BRECCIA_REPEATS:-3}" --ranks "${ranks[@]}" --mpirun "$launch" --out "$out")
if [ "$kind" = weak ]; then
  "$python" jobs/scaling-study.py --weak --case "${BRECCIA_CASE:-inputs/mixed-spheres.toml}" \
    --grow "${BRECCIA_GROW:-parameters.spheres=100000}" --steps "${BRECCIA_STEPS:-100}" "${options[@]}"
else
  case=${BRECCIA_CASE:-inputs/scaling.toml}
  # The stones come to rest first, once.
  [ -f "$out/rest/final.h5" ] || $launch "$breccia" run "$case" --out "$out/rest" ${BRECCIA_REST:+--steps "$BRECCIA_REST"}
  "$python" jobs/scaling-study.py --case "$case" --restart "$out/rest/final.h5" --steps "${BRECCIA_STEPS:-40}" "${options[@]}"
fi
