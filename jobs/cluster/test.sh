#!/usr/bin/env bash
# The scripts of jobs/slurm on a real Slurm of two nodes on this machine (start.sh), with accidents. Closing line:
# "N passed, M failed, K skipped". Needs root, slurm-wlm and munge (`make setup-cluster`); skipped where it cannot run.
#   jobs/cluster/test.sh [NAME ...]      all scenarios, or some
set -uo pipefail
cd "$(dirname "$0")/../.."
# shellcheck disable=SC2207 # names without blanks
all=($(sed -n 's/^scenario_\([a-z_]*\)() .*/\1/p' "$0"))
[ $# -gt 0 ] && all=("$@")
skip() { echo "skipped: $1"; echo "0 passed, 0 failed, ${#all[@]} skipped"; exit 0; }
[ "$(id -u)" = 0 ] || skip "namespaces need root"
for tool in slurmctld slurmd munged nsenter ip; do command -v "$tool" >/dev/null || skip "no $tool here, see make setup-cluster"; done
unshare --net --uts true 2>/dev/null || skip "namespaces are not permitted here"

work=$(mktemp -d) && chmod 711 "$work"
export BRECCIA=${BRECCIA:-$PWD/target/release/breccia} SLURM_CONF=$work/cluster/slurm.conf SLURM_MPI_TYPE=pmix
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mkdir "$work/cluster"
finish() {
  jobs/cluster/stop.sh "$work/cluster"
  [ -n "${KEEP:-}" ] && echo "kept: $work" || rm -rf "$work"
}
trap finish EXIT
jobs/cluster/start.sh "$work/cluster" >"$work/start.log" 2>&1 || { cat "$work/start.log"; skip "the cluster does not start"; }
on() { local node=$1; shift; nsenter --target "$(cat "$work/cluster/node$node.pid")" --net --uts "$@"; }

CASE=inputs/deposit.toml STEPS=${STEPS:-300}
small=(--parsable --nodes=2 --ntasks-per-node=1 --cpus-per-task=1)
submit() { on 1 sbatch --output="$work/%x-%A-%a.log" "$@" | cut -d';' -f1; }
state() { on 1 scontrol show job "$1" -o 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'; }
# wait_for JOB SECONDS: until no part of the job runs or waits; the last state, or TIMEOUT.
wait_for() {
  local end=$((SECONDS + $2)) now
  while now=$(state "$1" | tr '\n' ' '); do
    [[ $now =~ PENDING|RUNNING|COMPLETING|CONFIGURING|SUSPENDED|REQUEUED ]] || { echo "$now"; return; }
    ((SECONDS > end)) && { echo TIMEOUT; return; }
    sleep 0.5
  done
}
# running JOB OUT: until the run has written its first checkpoint.
running() {
  for _ in $(seq 120); do compgen -G "$2/checkpoints/*.h5" >/dev/null && return 0; sleep 0.5; done
  echo "job $1 does not get going"; return 1
}
straight() {
  [ -f "$work/straight/final.h5" ] || "$BRECCIA" run $CASE --steps "$STEPS" --threads 1 --out "$work/straight" >"$work/straight.log" 2>&1
  "$BRECCIA" digest "$work/straight"
}
same() { [ "$("$BRECCIA" digest "$1")" = "$(straight)" ] || { echo "another digest than that of a straight run"; return 1; }; }
done_well() { local state; state=$(wait_for "$1" "$2"); [ "$state" = "COMPLETED " ] || { echo "job $1: $state"; return 1; }; }
often=(--set checkpoint.steps=20)

scenario_srun() { done_well "$(BRECCIA_OUT=$work/srun submit "${small[@]}" jobs/slurm/run.sh $CASE --steps "$STEPS")" 120 && same "$work/srun"; }
scenario_mpirun() {
  local job; job=$(submit "${small[@]}" --wrap "mpirun --bind-to none -n 2 $BRECCIA run $CASE --steps $STEPS --out $work/mpirun")
  done_well "$job" 120 && grep -q '"ranks": 2' "$work/mpirun/summary.json" && same "$work/mpirun"
}
scenario_lonely() {
  on 1 srun --mpi=none -N 2 -n 2 "$BRECCIA" run $CASE --steps 5 --out "$work/lonely" >"$work/lonely.log" 2>&1 && return 1
  grep -q SLURM_MPI_TYPE=pmix "$work/lonely.log" && [ ! -e "$work/lonely" ]
}
scenario_sweep() {
  local job; job=$(BRECCIA_OUT=$work/sweep submit --parsable --nodes=1 --ntasks-per-node=1 --cpus-per-task=1 --array=0-1 jobs/slurm/sweep.sh inputs/bouncing-ball.toml simulation.duration 0.1 0.2)
  sleep 2; [ "$(wait_for "$job" 60)" = "COMPLETED COMPLETED " ] && [ -f "$work/sweep-0/final.h5" ] && [ -f "$work/sweep-1/final.h5" ]
}
scenario_scaling() {
  local job; job=$(BRECCIA_OUT=$work/scaling BRECCIA_CASE=$CASE BRECCIA_REST=40 BRECCIA_STEPS=10 BRECCIA_REPEATS=1 submit "${small[@]}" jobs/slurm/scaling.sh strong)
  done_well "$job" 120 && [ -f "$work/scaling/strong-2/final.h5" ]
}
scenario_tamping() {
  local job; job=$(BRECCIA_OUT=$work/tamping BRECCIA_STAGES="demo-bed demo-deposit demo" BRECCIA_STEPS=20 submit "${small[@]}" jobs/slurm/tamping.sh)
  done_well "$job" 600 && [ -f "$work/tamping/demo/report.html" ]
}
scenario_requeue() {
  local job out=$work/requeue; job=$(BRECCIA_OUT=$out submit "${small[@]}" jobs/slurm/requeue.sh $CASE --steps "$STEPS" "${often[@]}")
  running "$job" "$out" && on 1 scontrol requeue "$job" && sleep 2 && done_well "$job" 180 && same "$out"
}
# The signal comes ten seconds after the start, as the limit is a minute; the script puts the job back into the queue.
scenario_time_limit() {
  local job out=$work/limit steps=$((STEPS * 4)); job=$(BRECCIA_OUT=$out submit "${small[@]}" --time=1 --signal=USR1@50 jobs/slurm/requeue.sh $CASE --steps $steps)
  done_well "$job" 300 || return 1
  "$BRECCIA" run $CASE --steps $steps --threads 1 --out "$work/longer" >"$work/longer.log" 2>&1
  grep -q "SIGUSR1: ending" "$work"/breccia-"$job"-*.log && [ "$("$BRECCIA" digest "$out")" = "$("$BRECCIA" digest "$work/longer")" ]
}
ranks_of() { pgrep -f -- "$BRECCIA run .*--out $1" | while read -r pid; do [ "$(readlink "/proc/$pid/ns/net")" = "$(readlink "/proc/$(cat "$work/cluster/node$2.pid")/ns/net")" ] && [ "$(cat "/proc/$pid/comm")" = breccia ] && echo "$pid"; done; }
scenario_killed_rank() {
  local job out=$work/killed begun; job=$(BRECCIA_OUT=$out submit "${small[@]}" jobs/slurm/run.sh $CASE --steps 100000 "${often[@]}")
  running "$job" "$out" || return 1
  kill -9 $(ranks_of "$out" 2); begun=$SECONDS
  [ "$(wait_for "$job" 30)" = "FAILED " ] && echo "gone after $((SECONDS - begun)) s"
}
scenario_network_cut() {
  local job out=$work/cut begun; job=$(BRECCIA_OUT=$out submit "${small[@]}" --no-requeue jobs/slurm/run.sh $CASE --steps 100000 "${often[@]}")
  running "$job" "$out" || return 1
  on 2 ip link set veth2 down; begun=$SECONDS
  local state; state=$(wait_for "$job" 90); on 2 ip link set veth2 up
  echo "$state after $((SECONDS - begun)) s"; [[ $state =~ NODE_FAIL|FAILED ]]
}

passed=0 failed=0
for name in "${all[@]}"; do
  begun=$SECONDS
  if said=$("scenario_$name" 2>&1); then passed=$((passed + 1)) word=ok; else failed=$((failed + 1)) word=FAILED; fi
  echo "$name ... $word ($((SECONDS - begun)) s) $said"
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
