#!/bin/bash
# Write throughput of a frame of a million spheres on 1 and 2 ranks, against plain MPI-IO of as many bytes in the same run.
# DIRECTORY (by default a new one below the present folder's target/) says which disk.
set -euo pipefail
cd "$(dirname "$0")/.."
directory=${1:-target/write-study}
mkdir -p "$directory"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
bench=$(cargo bench --bench frames --no-run --message-format=json 2> /dev/null |
  sed -n 's/.*"executable":"\([^"]*frames[^"]*\)".*/\1/p' | tail -1)
for ranks in 1 2; do
  mpirun --oversubscribe -n "$ranks" "$bench" "$directory" "${2:-1000000}"
done
