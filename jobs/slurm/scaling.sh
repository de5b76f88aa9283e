#!/usr/bin/env bash
# Strong and weak scaling on up to the nodes of the job, table and picture as jobs/scaling-study.py makes them:
#   sbatch jobs/slurm/scaling.sh strong      or      sbatch --nodes=8 jobs/slurm/scaling.sh weak
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
launch="srun --kill-on-bad-exit=1 --cpu-bind=cores"
if [ "$kind" = weak ]; then
  "$python" jobs/scaling-study.py --weak --case inputs/mixed-spheres.toml --grow parameters.spheres=100000 --ranks "${ranks[@]}" \
    --steps 100 --mpirun "$launch" --out "$out"
else
  # The stones come to rest first, once.
  [ -f "$out/rest/final.h5" ] || srun --kill-on-bad-exit=1 --cpu-bind=cores target/release/breccia run inputs/scaling.toml --out "$out/rest"
  "$python" jobs/scaling-study.py --case inputs/scaling.toml --restart "$out/rest/final.h5" --ranks "${ranks[@]}" --mpirun "$launch" --out "$out"
fi
