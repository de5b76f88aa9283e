#!/usr/bin/env python3
"""How far the dive of the slice can be trusted, and what it depends on: the last two tables of docs/tamping.md.

    .venv/bin/python jobs/tamping-study.py --seeds 1 2 3
    .venv/bin/python jobs/tamping-checks.py --seeds 1 2 3

Starts from the deposits of the study and compares with its runs. Results stay in out/tamping-checks; runs that are there are not made again.
"""
import argparse
import importlib.util
import json
import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPEC = importlib.util.spec_from_file_location("study", ROOT / "jobs/tamping-study.py")
study = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(study)

# name: case, until, settings
CHECKS = {
    "step": ("30hz", 0.5, ["simulation.time_step=2.5e-4"]),
    "tolerance": ("30hz", 0.5, ["solver.tolerance=5e-4", "solver.maximum_sweeps=5000"]),
}
# All dives end at the same depth, so that squeezing can be compared.
CHECKS |= {f"shallow-{case}": (case, 1.1, ["parameters.lowest=0.34"]) for case in study.CASES}
WORDS = {"30hz": "h = 0.5 ms, tolerance 5e-3", "step": "h = 0.25 ms", "tolerance": "tolerance 5e-4, at most 5,000 sweeps"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--checks", nargs="+", default=list(CHECKS), choices=list(CHECKS))
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--study", default="out/tamping-study")
    parser.add_argument("--out", default="out/tamping-checks")
    parser.add_argument("--breccia", default=str(ROOT / "target/release/breccia"))
    parser.add_argument("--mpirun", default="mpirun --oversubscribe")
    return parser.parse_args()


def depth(folder, time):
    """Of the tips, m: the mean of the turn of a slow flywheel that ends then."""
    machine = study.table(folder / "machines.csv")
    turn = (machine["time"] > time - 1 / 15) & (machine["time"] <= time + 1e-9)
    return float(machine["tamper/quantity.depth"][turn].mean())


def row(word, folders, times):
    cells = []
    for time in times:
        values = [depth(folder, time) for folder in folders]
        each = ", ".join(f"{value:.3f}" for value in values)
        cells.append(f"{np.mean(values):.3f} ({each})")
    summaries = [json.loads((folder / "summary.json").read_text()) for folder in folders]
    sweeps = np.mean([summary["sweeps"]["mean"] for summary in summaries])
    missed = np.mean([summary["not_converged"] / summary["steps"] for summary in summaries])
    return f"| {word} | " + " | ".join(cells) + f" | {sweeps:.0f} | {100 * missed:.0f} % |"


def squeezing(name, folders, deposits, breccia):
    runs = [study.Tamping(*pair, breccia).numbers() for pair in zip(folders, deposits)]
    words = ["depth after the dive [m]", "elongation after squeezing [mm]", "force of the cylinder, squeezing [kN]", "largest force of the cylinder [kN]"]
    cells = []
    for word in words:
        values = [run[word] for run in runs]
        cells.append(f"{np.mean(values):.3g} ({', '.join(f'{value:.3g}' for value in values)})")
    return f"| {study.CASES[name.removeprefix('shallow-')]} | " + " | ".join(cells) + " |"


def main():
    options = arguments()
    out, source = ((ROOT / place).resolve() for place in (options.out, options.study))
    done = {}
    for name in options.checks:
        case, until, settings = CHECKS[name]
        for seed in options.seeds:
            start = f"start.from={source / f'small-seed{seed}/deposit/final.h5'}"
            folder = out / f"seed{seed}/{name}"
            study.run(options, f"small-{case}", folder, [start, *settings], until)
            done.setdefault(name, []).append(folder)
    times = [0.3, 0.4, 0.5]
    print("\n| | " + " | ".join(f"depth at {time} s [m]: mean (deposits)" for time in times) + " | sweeps a step | steps that miss the tolerance |")
    print("| --- |" + " --- |" * (len(times) + 2))
    print(row(WORDS["30hz"], [source / f"small-seed{seed}/30hz" for seed in options.seeds], times))
    for name in filter(done.get, WORDS):
        print(row(WORDS[name], done[name], times))
    print("\n| | depth [m]: mean (deposits) | elongation [mm] | mean force [kN] | largest force [kN] |\n| --- | --- | --- | --- | --- |")
    for name in (name for name in done if name.startswith("shallow-")):
        print(squeezing(name, done[name], [source / f"small-seed{seed}/deposit" for seed in options.seeds], options.breccia))


if __name__ == "__main__":
    main()
