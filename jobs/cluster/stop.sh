#!/usr/bin/env bash
# Ends what start.sh DIRECTORY has started, by the process ids that it left.
set -uo pipefail
dir=$(realpath "${1:?which directory?}")
for file in "$dir"/slurmd-node*.pid "$dir/slurmctld.pid" "$dir/munge/pid" "$dir"/node*.pid; do
  [ -s "$file" ] && kill "$(cat "$file")" 2>/dev/null
done
exit 0
