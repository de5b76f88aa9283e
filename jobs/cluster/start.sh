#!/usr/bin/env bash
# A Slurm cluster of two nodes on this machine, for jobs/cluster/test.sh:
#   start.sh DIRECTORY [DELAY_MS DROP]      stop.sh DIRECTORY
#
# A node is a network and a UTS namespace, held by a sleeping process. A veth pair joins the two; with a delay it is
# bridge.py, which lets frames wait and loses a share of them. Addresses 10.77.0.1 and 10.77.0.2 exist inside these
# namespaces only. Own munge key and socket, a spool and a TmpFS for each node.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
mkdir -p "${1:?which directory?}"
dir=$(realpath "$1")
mkdir -p "$dir"/{state,munge}
export SLURM_CONF=$dir/slurm.conf
for node in 1 2; do
  # In a session of its own: what ends the caller's group leaves it for stop.sh.
  setsid unshare --net --uts sleep 100000 &
  echo $! >"$dir/node$node.pid"
  mkdir -p "$dir/spool-node$node" "$dir/tmp-node$node"
done
one=$(cat "$dir/node1.pid") two=$(cat "$dir/node2.pid")
# Until both sleep in namespaces of their own.
for _ in $(seq 50); do
  [ "$(cat "/proc/$one/comm" "/proc/$two/comm" | sort -u)" = sleep ] && break
  sleep 0.1
done
for node in 1 2; do readlink "/proc/$(cat "$dir/node$node.pid")/ns/net" >"$dir/node$node.net"; done
if [ -n "${2:-}" ]; then
  setsid python3 "$here/bridge.py" "$one" "$two" "$2" "${3:-0}" >"$dir/bridge.log" 2>&1 &
  echo $! >"$dir/bridge.pid"
  for _ in $(seq 50); do
    grep -q up "$dir/bridge.log" && break
    sleep 0.1
  done
else
  ip link add name link1 netns "$one" type veth peer name link2 netns "$two"
fi
for node in 1 2; do
  inside="nsenter --target $(cat "$dir/node$node.pid") --net --uts"
  $inside hostname "node$node"
  $inside ip link set lo up
  $inside ip address add "10.77.0.$node/24" dev "link$node"
  $inside ip link set "link$node" up
done

head -c 1024 /dev/urandom >"$dir/munge/key"
chmod -R go-rwx "$dir/munge" && chmod 711 "$dir/munge"
munged --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
  --log-file="$dir/munge/log" --seed-file="$dir/munge/seed"
cores=$(nproc)
# No binding: each node takes itself for the owner of all cores, and the ranks of both would share the first.
# A requeued job waits until credentials of its first life have expired: cred_expire, not two minutes as usual.
cat >"$SLURM_CONF" <<CONF
ClusterName=breccia
SlurmctldHost=node1(10.77.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket,cred_expire=5
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
TmpFS=$dir/tmp-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,bf_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
MpiDefault=none
SlurmdTimeout=30
KillWait=10
ReturnToService=2
JobRequeue=1
NodeName=node[1-2] NodeAddr=10.77.0.[1-2] CPUs=$cores RealMemory=1000 State=UNKNOWN
PartitionName=test Nodes=node[1-2] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO PriorityTier=1
PartitionName=grace Nodes=node[1-2] MaxTime=INFINITE State=UP OverSubscribe=NO PriorityTier=1 GraceTime=30
PartitionName=urgent Nodes=node[1-2] MaxTime=INFINITE State=UP OverSubscribe=NO PriorityTier=10 PreemptMode=OFF
CONF
nsenter --target "$one" --net --uts slurmctld
for node in 1 2; do nsenter --target "$(cat "$dir/node$node.pid")" --net --uts slurmd -N "node$node"; done
for _ in $(seq 60); do
  [ "$(nsenter --target "$one" --net --uts sinfo -h -p test -o %T -N 2>/dev/null | grep -c idle)" = 2 ] && exit 0
  sleep 0.5
done
echo "start.sh: the nodes did not come up; see $dir/*.log" >&2
exit 1
