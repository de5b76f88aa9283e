#!/usr/bin/env bash
# A Slurm cluster of two nodes on this machine, for jobs/cluster/test.sh:  start.sh DIRECTORY, stop.sh DIRECTORY
#
# A node is a network and a UTS namespace, held by a sleeping process; a veth pair joins the two. Addresses 10.77.0.1 and
# 10.77.0.2 exist inside these namespaces only. Own munge key and socket, a spool and a TmpFS for each node.
set -euo pipefail
dir=$(realpath "${1:?which directory?}")
mkdir -p "$dir"/{state,munge}
export SLURM_CONF=$dir/slurm.conf
for node in 1 2; do
  unshare --net --uts sleep 100000 &
  echo $! >"$dir/node$node.pid"
  mkdir -p "$dir/spool-node$node" "$dir/tmp-node$node"
done
sleep 0.5
one=$(cat "$dir/node1.pid") two=$(cat "$dir/node2.pid")
ip link add name veth1 netns "$one" type veth peer name veth2 netns "$two"
for node in 1 2; do
  inside="nsenter --target $(cat "$dir/node$node.pid") --net --uts"
  $inside hostname "node$node"
  $inside ip link set lo up
  $inside ip address add "10.77.0.$node/24" dev "veth$node"
  $inside ip link set "veth$node" up
done

head -c 1024 /dev/urandom >"$dir/munge/key"
chmod -R go-rwx "$dir/munge" && chmod 711 "$dir/munge"
munged --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
  --log-file="$dir/munge/log" --seed-file="$dir/munge/seed"
cores=$(nproc)
cat >"$SLURM_CONF" <<CONF
ClusterName=breccia
SlurmctldHost=node1(10.77.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket,cred_expire=10
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
TmpFS=$dir/tmp-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,bf_interval=2
MpiDefault=none
SlurmdTimeout=10
KillWait=5
ReturnToService=2
JobRequeue=1
NodeName=node[1-2] NodeAddr=10.77.0.[1-2] CPUs=$cores State=UNKNOWN
PartitionName=test Nodes=node[1-2] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
CONF
nsenter --target "$one" --net --uts slurmctld
for node in 1 2; do nsenter --target "$(cat "$dir/node$node.pid")" --net --uts slurmd -N "node$node"; done
for _ in $(seq 30); do
  [ "$(nsenter --target "$one" --net --uts sinfo -h -o %T -N 2>/dev/null | grep -c idle)" = 2 ] && exit 0
  sleep 1
done
echo "start.sh: the nodes did not come up; see $dir/*.log" >&2
exit 1
