#!/usr/bin/env bash
# Cost of contact detection per body and step, from a thousand to a million spheres of mixed size, and the memory they need.
# One run each, one thread; the table in docs/performance.md comes from here.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
printf '%10s %14s %16s %16s %12s\n' bodies "points/body" "detect ns/body" "step ns/body" "memory MB"
for count in ${*:-1000 10000 100000 1000000}; do
  steps=$((count < 100000 ? 40 : 10))
  target/release/breccia run inputs/mixed-spheres.toml --threads 1 --steps $steps --set parameters.spheres=$count --out "$out/$count" >/dev/null
  python3 - "$out/$count/summary.json" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
bodies, steps = run["bodies"], run["steps"]
seconds = {phase["name"]: phase["max"] for phase in run["phases"]}
step = sum(time for name, time in seconds.items() if name not in ("output", "other"))
per_body = 1e9 / steps / bodies
memory = max(run["peak_memory"]) / 1e6
print(f'{bodies:>10} {run["contact_points"]["mean"] / bodies:>14.2f} {seconds["detect"] * per_body:>16.0f} {step * per_body:>16.0f} {memory:>12.0f}')
PY
done
