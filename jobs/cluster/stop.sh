#!/usr/bin/env bash
# Ends what start.sh DIRECTORY has started: all that lives in the networks of its nodes, its munged, its bridge.
set -uo pipefail
dir=$(realpath "${1:?which directory?}")
for file in "$dir"/node[12].net; do
  [ -s "$file" ] || continue
  network=$(cat "$file")
  # Never the network that this script itself lives in.
  [ "$network" != "$(readlink /proc/self/ns/net)" ] || continue
  for process in /proc/[0-9]*; do
    [ "$(readlink "$process/ns/net" 2>/dev/null)" = "$network" ] && kill -9 "${process#/proc/}" 2>/dev/null
  done
done
for file in "$dir/munge/pid" "$dir/bridge.pid"; do
  [ -s "$file" ] && kill "$(cat "$file")" 2>/dev/null
done
exit 0
