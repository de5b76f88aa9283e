#!/usr/bin/env bash
# Instructions of the sweep per contact point, counted by callgrind (AVX2: valgrind knows no AVX-512): a number that does not depend on how busy
# the machine is. Needs valgrind.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo bench --bench sweep --no-run
bench=$(ls -t target/release/deps/sweep-* | grep -v '\.d$' | head -1)
out=$(mktemp)
trap 'rm -f "$out"' EXIT
RAYON_NUM_THREADS=1 valgrind --tool=callgrind --callgrind-out-file="$out" --toggle-collect='*sweep_to_count*' "$bench" count 2>&1 | tee "$out.log" | tail -3
total=$(awk '/^summary:|^totals:/ {print $2; exit}' "$out")
points=$(awk '/points, 10 sweeps/ {print $1}' "$out.log")
rm -f "$out.log"
awk -v total="$total" -v points="$points" 'BEGIN { printf "%d instructions, %.0f per contact point and sweep\n", total, total / points / 10 }'
