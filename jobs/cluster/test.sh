#!/usr/bin/env bash
# The scripts of jobs/slurm on a real Slurm of two nodes on this machine (start.sh), with accidents; then some of them
# again over a network that delays and loses frames (bridge.py). Closing line: "N passed, M failed, K skipped". Needs root,
# slurm-wlm and munge (`make setup-cluster`); what cannot run here is counted as skipped.
#   jobs/cluster/test.sh [NAME ... | delayed:NAME ...]      all scenarios, or some
#   KEEP=1 leaves the directory with the logs; BRECCIA is the program, target/release/breccia if not set
set -uo pipefail
cd "$(dirname "$0")/../.."
# shellcheck disable=SC2207 # names without blanks
direct=($(sed -n 's/^scenario_\([a-z_]*\)() .*/\1/p' "$0"))
delayed=(srun mpirun requeue preempted killed_rank killed_node network_cut)
if [ $# -gt 0 ]; then
  direct=() delayed=()
  for name in "$@"; do
    case $name in delayed:*) delayed+=("${name#delayed:}") ;; *) direct+=("$name") ;; esac
  done
fi
passed=0 failed=0 skipped=0
# skip NUMBER REASON
skip() { [ "$1" = 0 ] || echo "skipped: $2"; skipped=$((skipped + $1)); }
finish() { echo "$passed passed, $failed failed, $skipped skipped"; [ "$failed" = 0 ]; exit; }
unable() { skip $((${#direct[@]} + ${#delayed[@]})) "$1"; finish; }
[ "$(id -u)" = 0 ] || unable "namespaces need root"
for tool in slurmctld slurmd munged nsenter ip; do
  command -v "$tool" >/dev/null || unable "no $tool here, see make setup-cluster"
done
unshare --net --uts true 2>/dev/null || unable "namespaces are not permitted here"

base=$(mktemp -d) && chmod 711 "$base"
work=$base
export BRECCIA=${BRECCIA:-$PWD/target/release/breccia} SLURM_MPI_TYPE=pmix
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
clean() {
  for cluster in "$base"/*/cluster; do [ -d "$cluster" ] && jobs/cluster/stop.sh "$cluster"; done
  if [ -n "${KEEP:-}" ]; then echo "kept: $base"; else rm -rf "$base"; fi
}
trap clean EXIT

CASE=inputs/deposit.toml
small=(--parsable --nodes=2 --ntasks-per-node=1 --cpus-per-task=1)
often=(--set checkpoint.steps=20)
on() { local node=$1; shift; nsenter --target "$(cat "$work/cluster/node$node.pid")" --net --uts "$@"; }
submit() { on 1 sbatch --output="$work/%x-%A-%a.log" "$@" | cut -d';' -f1; }
field() { on 1 scontrol show job "$1" -o 2>/dev/null | sed -n "s/.* $2=\([A-Za-z0-9_]*\).*/\1/p"; }
# wait_for JOB SECONDS: until no part of the job runs or waits; the last state, or TIMEOUT.
wait_for() {
  local end=$((SECONDS + $2)) now
  while now=$(field "$1" JobState | tr '\n' ' '); do
    [[ $now =~ PENDING|RUNNING|COMPLETING|CONFIGURING|SUSPENDED|REQUEUE|SIGNALING|STOPPED ]] || { echo "$now"; return; }
    ((SECONDS > end)) && { echo TIMEOUT; return; }
    sleep 0.3
  done
}
# until_true SECONDS COMMAND...
until_true() {
  local end=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do ((SECONDS > end)) && return 1; sleep 0.3; done
}
newer() { [ -n "$(find "$1/checkpoints" -name '*.h5' -newer "$2" 2>/dev/null)" ]; }
# running OUT: until the run has written a checkpoint from now on.
running() { touch "$1.mark"; until_true 600 newer "$1" "$1.mark" || { echo "$1 does not get going"; return 1; }; }
idle() { [ "$(on 1 sinfo -h -p test -o %T -N | grep -c '^idle$')" = 2 ]; }
# straight STEPS: the digest of a run of so many steps without a cluster.
straight() {
  local out=$base/straight-$1
  [ -f "$out/final.h5" ] || "$BRECCIA" run $CASE --steps "$1" --threads 1 --out "$out" >"$out.log" 2>&1
  "$BRECCIA" digest "$out"
}
# lasting SECONDS: steps that take one core so long; their straight run is made on the way.
lasting() {
  local out=$base/straight-lasting steps
  "$BRECCIA" run $CASE --steps 1000000 --max-time "${1}s" --threads 1 --out "$out" >"$out.log" 2>&1
  steps=$(sed -n 's/.*"last_step": \([0-9]*\).*/\1/p' "$out/summary.json")
  mv "$out" "$base/straight-$steps" && echo "$steps"
}
same() {
  [ "$("$BRECCIA" digest "$1")" = "$(straight "$2")" ] || { echo "another digest than that of a straight run"; return 1; }
}
done_well() {
  local state; state=$(wait_for "$1" "$2")
  [ "$state" = "COMPLETED " ] || { echo "job $1: $state"; return 1; }
}
# living NODE: processes in the network of a node, but for the one that holds it.
living() {
  local holder network process; holder=$(cat "$work/cluster/node$1.pid")
  network=$(readlink "/proc/$holder/ns/net")
  for process in /proc/[0-9]*; do
    [ "$(readlink "$process/ns/net" 2>/dev/null)" = "$network" ] && [ "${process#/proc/}" != "$holder" ] && echo "${process#/proc/}"
  done
}
# ranks NODE: of breccia, there.
ranks() { local pid; for pid in $(living "$1"); do [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$(basename "$BRECCIA")" ] && echo "$pid"; done; }
no_ranks() { [ -z "$(ranks 1)$(ranks 2)" ]; }

scenario_srun() {
  done_well "$(BRECCIA_OUT=$work/srun submit "${small[@]}" jobs/slurm/run.sh $CASE --steps "$STEPS")" 1800 || return 1
  grep -q '"ranks": 2' "$work/srun/summary.json" && same "$work/srun" "$STEPS"
}
scenario_mpirun() {
  local job
  job=$(BRECCIA_OUT=$work/mpirun BRECCIA_LAUNCH="mpirun --bind-to none" submit "${small[@]}" jobs/slurm/run.sh $CASE --steps "$STEPS")
  done_well "$job" 1800 && grep -q '"ranks": 2' "$work/mpirun/summary.json" && same "$work/mpirun" "$STEPS"
}
# srun without an interface to MPI is refused with what to set, and nothing is written.
scenario_without_mpi() {
  on 1 srun --mpi=none -N 2 -n 2 "$BRECCIA" run $CASE --steps 5 --out "$work/lonely" >"$work/lonely.log" 2>&1 && return 1
  grep -q SLURM_MPI_TYPE=pmix "$work/lonely.log" && [ ! -e "$work/lonely" ]
}
# More memory than Slurm allows the job is refused before anything is built.
scenario_memory() {
  local job; job=$(BRECCIA_OUT=$work/memory submit "${small[@]}" --mem=100 jobs/slurm/run.sh inputs/mixed-spheres.toml --set parameters.spheres=100000)
  [ "$(wait_for "$job" 60)" = "FAILED " ] && grep -q "SLURM_MEM_PER_NODE" "$work"/breccia-"$job"-*.log && [ ! -e "$work/memory" ]
}
scenario_sweep() {
  local job launch=
  for launch in "" "mpirun --bind-to none"; do
    rm -rf "$work"/sweep-*
    job=$(BRECCIA_OUT=$work/sweep BRECCIA_LAUNCH=$launch submit --parsable --nodes=1 --ntasks-per-node=1 --cpus-per-task=1 --array=0-1 \
      jobs/slurm/sweep.sh inputs/bouncing-ball.toml simulation.duration 0.1 0.2)
    sleep 1
    [ "$(wait_for "$job" 60)" = "COMPLETED COMPLETED " ] && [ -f "$work/sweep-0/final.h5" ] && [ -f "$work/sweep-1/final.h5" ] || return 1
  done
}
scenario_scaling() {
  local job launch=
  for launch in "" "mpirun --bind-to none"; do
    rm -rf "$work/scaling"
    job=$(BRECCIA_OUT=$work/scaling BRECCIA_LAUNCH=$launch BRECCIA_CASE=$CASE BRECCIA_REST=40 BRECCIA_STEPS=10 BRECCIA_REPEATS=1 \
      submit "${small[@]}" jobs/slurm/scaling.sh strong)
    done_well "$job" 1800 && [ -f "$work/scaling/strong-2/final.h5" ] || return 1
  done
}
scenario_tamping() {
  local job
  job=$(BRECCIA_OUT=$work/tamping BRECCIA_STAGES="demo-bed demo-deposit demo" BRECCIA_STEPS=20 \
    BRECCIA_OPTIONS="--set solver.maximum_sweeps=20" submit "${small[@]}" jobs/slurm/tamping.sh)
  done_well "$job" 1800 && [ -f "$work/tamping/demo/report.html" ]
}
scenario_requeue() {
  local job out=$work/requeue steps=$((STEPS < 150 ? 150 : STEPS * 2))
  job=$(BRECCIA_OUT=$out submit "${small[@]}" jobs/slurm/requeue.sh $CASE --steps $steps "${often[@]}")
  running "$out" && on 1 scontrol requeue "$job" && sleep 1 && done_well "$job" 1800 && same "$out" $steps \
    && [ "$(field "$job" Restarts)" = 1 ]
}
# A job that is cancelled leaves a checkpoint and stays cancelled.
scenario_cancelled() {
  local job out=$work/cancelled; job=$(BRECCIA_OUT=$out submit "${small[@]}" jobs/slurm/requeue.sh $CASE --steps 100000 "${often[@]}")
  running "$out" && on 1 scancel "$job" && [ "$(wait_for "$job" 60)" = "CANCELLED " ] && no_ranks && grep -q '"stopped"' "$out/summary.json"
}
# The signal comes within ten seconds of the start, as the limit is a minute, and the run takes longer; the script puts the job back into the queue.
scenario_time_limit() {
  local job out=$work/limit steps; steps=$(lasting 30)
  job=$(BRECCIA_OUT=$out submit "${small[@]}" --time=1 --signal=USR1@50 jobs/slurm/requeue.sh $CASE --steps $steps)
  done_well "$job" 1800 && grep -q "SIGUSR1: ending" "$work"/breccia-"$job"-*.log && same "$out" $steps
}
# preempt PARTITION: three times, each after the job has got on.
preempt() {
  local job out=$work/preempted-$1 k steps=$((STEPS < 150 ? 300 : STEPS * 2)) urgent
  job=$(BRECCIA_OUT=$out submit "${small[@]}" --partition="$1" jobs/slurm/requeue.sh $CASE --steps $steps "${often[@]}")
  for k in 1 2 3; do
    running "$out" || return 1
    urgent=$(submit --parsable --partition=urgent --nodes=2 --exclusive --wrap "true")
    done_well "$urgent" 1800 || return 1
  done
  done_well "$job" 1800 && same "$out" $steps && [ "$(field "$job" Restarts)" = 3 ] || { echo "restarts: $(field "$job" Restarts)"; return 1; }
}
scenario_preempted() { preempt test; }
# Slurm asks the steps to end and takes the nodes half a minute later.
scenario_preempted_with_grace() { preempt grace; }
scenario_killed_rank() {
  local job out=$work/killed begun; job=$(BRECCIA_OUT=$out submit "${small[@]}" jobs/slurm/run.sh $CASE --steps 100000 "${often[@]}")
  running "$out" || return 1
  # shellcheck disable=SC2046 # one word for each
  kill -9 $(ranks 2); begun=$SECONDS
  [ "$(wait_for "$job" 30)" = "FAILED " ] && no_ranks && echo "gone after $((SECONDS - begun)) s"
}
# All that lives on the second node ends at once; it comes back when the job has been put into the queue again.
scenario_killed_node() {
  # Long enough for the node to go while it runs, on a fast machine too.
  local job out=$work/node begun steps=$((STEPS < 150 ? 150 : STEPS * 2))
  job=$(BRECCIA_OUT=$out submit "${small[@]}" jobs/slurm/requeue.sh $CASE --steps $steps "${often[@]}")
  running "$out" || return 1
  # shellcheck disable=SC2046
  kill -9 $(living 2); begun=$SECONDS
  requeued() { [ "$(field "$job" Restarts)" = 1 ]; }
  until_true 90 requeued; local came=$?
  echo "$(field "$job" JobState) after $((SECONDS - begun)) s"
  # As after a boot: Slurm's pmix would not start a step whose socket is still in the spool directory.
  rm -rf "$work"/cluster/{spool,tmp}-node2/*
  on 2 slurmd -N node2
  [ "$came" = 0 ] && done_well "$job" 1800 && same "$out" $steps
}
# Slurm would notice after half a minute, and has no way to the second node: the ranks themselves end there.
scenario_network_cut() {
  local job out=$work/cut begun limit=12
  job=$(BRECCIA_OUT=$out submit "${small[@]}" --no-requeue jobs/slurm/run.sh $CASE --steps 100000 --stall-limit ${limit}s "${often[@]}")
  running "$out" || return 1
  on 2 ip link set link2 down; begun=$SECONDS
  until_true $((limit + 10)) no_ranks; local gone=$?
  echo "ranks gone after $((SECONDS - begun)) s, stall limit $limit s"
  # For good: the job has to go while the node is out of reach.
  local state; state=$(wait_for "$job" 90)
  on 2 ip link set link2 up
  echo "$state"; [ "$gone" = 0 ] && [[ $state =~ NODE_FAIL|FAILED ]]
}

# series NAME STEPS DELAY DROP SCENARIO...: on a cluster of its own.
series() {
  local kind=$1 delay=$3 drop=$4 name said begun word; STEPS=$2; shift 4
  [ $# -gt 0 ] || return 0
  work=$base/$kind; mkdir -p "$work" && chmod 711 "$work"
  export SLURM_CONF=$work/cluster/slurm.conf
  if ! jobs/cluster/start.sh "$work/cluster" $delay $drop >"$work/start.log" 2>&1; then
    cat "$work/start.log"
    skip $# "the $kind cluster does not start"
    return
  fi
  for name in "$@"; do
    begun=$SECONDS
    until_true 60 idle || on 1 scontrol update nodename=node[1-2] state=resume 2>/dev/null
    if said=$("scenario_$name" 2>&1); then passed=$((passed + 1)) word=ok; else failed=$((failed + 1)) word=FAILED; fi
    echo "$kind $name ... $word ($((SECONDS - begun)) s) ${said//$'\n'/; }"
    on 1 scancel --user=root 2>/dev/null
  done
  jobs/cluster/stop.sh "$work/cluster"
}
series direct 300 "" "" "${direct[@]}"
if [ ${#delayed[@]} -gt 0 ] && ! [ -c /dev/net/tun ]; then
  skip ${#delayed[@]} "no /dev/net/tun here, which a delayed network needs"
else
  # Half a millisecond each way, every five-hundredth frame lost: TCP sends it again after 0.2 s or more.
  series delayed 40 0.5 0.002 "${delayed[@]}"
fi
finish
