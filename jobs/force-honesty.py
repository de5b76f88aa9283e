#!/usr/bin/env python3
"""Whether the stated errors of forces hold: over random steps of four cases, how often the true error of a force lies within its band.

    python3 jobs/force-honesty.py [--breccia target/release/breccia] [--checks 20] [--steps 50] [--seed 1]

Each case runs twice, with the same bits. The first run checks its forces as a user would have it, to a hundredth of its tolerance; its band for a
force is what `breccia` makes of every fifth check. The second solves the same steps to a ten-thousandth: the true errors. Of the steps that are
no checks of the band, `--steps` are drawn at random. Printed: the share of forces within the band, with its 95 % interval, and how far the
estimates of single steps are from the true errors. Results stay in out/force-honesty.
"""
import argparse
import csv
import math
import pathlib
import random
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = {
    "digging": {"simulation.duration": 1.0},
    "plough": {"simulation.duration": 0.5},
    "rotating-drum": {"simulation.duration": 1.0},
    "tamper": {"simulation.duration": 0.4, "solver.tolerance": 1e-3},
}
STRIDE = 5
# A force far below the largest of its unit is left out: its error says nothing to anybody.
SMALL = 0.01


def run(breccia, case, settings, checks, accuracy):
    """Rows of force_errors.csv."""
    out = ROOT / f"out/force-honesty/{case}-{checks}-{accuracy}"
    if not (out / "final.h5").exists():
        duration = settings["simulation.duration"]
        values = settings | {
            "output.force_check": duration / (STRIDE * checks),
            "output.force_window": 1e-9,
            "output.force_accuracy": accuracy,
            "output.interval": duration,
        }
        words = [breccia, "run", f"inputs/{case}.toml", "--out", str(out), "--threads", "1", "--overwrite"]
        for key, value in values.items():
            words += ["--set", f"{key}={value}"]
        subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    with open(out / "force_errors.csv") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def band(rows, name):
    """As in src/commands/run/force_check.rs."""
    errors = sorted(row[name + ".error"] for row in rows if row[name + ".force"] > 0 or row[name + ".error"] > 0)
    n = len(errors)
    if n == 0:
        return 0.0
    place = math.ceil(0.95 * (n + 1))
    return 1.5 * (errors[place - 1] if place <= n else errors[-1] * max(20 / (n + 1), 1))


def interval(hits, n):
    """Wilson's, 95 %."""
    z, p = 1.96, hits / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--breccia", default="target/release/breccia")
    parser.add_argument("--checks", type=int, default=20)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    total = [0, 0]
    for case in arguments.cases:
        estimates, truth = (run(arguments.breccia, case, CASES[case], arguments.checks, share) for share in ("1e-2", "1e-4"))
        assert [row["step"] for row in estimates] == [row["step"] for row in truth]
        # The first rows may be before anything touches.
        names = [name[: -len(".force")] for name in truth[0] if name.endswith(".force") and ".window" not in name]
        mean = {name: sum(row[name + ".force"] for row in truth) / len(truth) for name in names}
        names = [name for name in names if mean[name] > SMALL * max(mean.values()) and any(row[name + ".error"] > 0 for row in truth)]
        bands = {name: band(estimates[::STRIDE], name) for name in names}
        others = [k for k in range(len(truth)) if k % STRIDE]
        chosen = draw.sample(others, min(arguments.steps, len(others)))
        hits = sum(truth[k][name + ".error"] <= bands[name] for k in chosen for name in names)
        n = len(chosen) * len(names)
        total[0] += hits
        total[1] += n
        off = sorted(
            abs(estimates[k][name + ".error"] - truth[k][name + ".error"]) / truth[k][name + ".error"]
            for k in chosen
            for name in names
            if truth[k][name + ".error"] > 1e-6 * mean[name]
        )
        low, high = interval(hits, n)
        print(
            f"{case}: {len(chosen)} steps, {len(names)} forces: {hits} of {n} within the band, {100 * hits / n:.1f} % ({100 * low:.1f} to {100 * high:.1f}); "
            f"estimates off by {100 * off[len(off) // 2]:.1f} % in the middle, {100 * off[int(0.95 * len(off))]:.0f} % in the worst twentieth; "
            f"residual of true solves {max(row['residual'] for row in truth):.1e}"
        )
    low, high = interval(*total)
    print(f"all: {total[0]} of {total[1]}, {100 * total[0] / total[1]:.1f} % ({100 * low:.1f} to {100 * high:.1f})")


if __name__ == "__main__":
    main()
