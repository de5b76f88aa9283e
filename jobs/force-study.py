#!/usr/bin/env python3
"""How well forces are known: the figures and tables of docs/forces.md, and one of docs/tamping.md.

    .venv/bin/python jobs/force-study.py piles        # eight piles, mean forces at two tolerances
    .venv/bin/python jobs/force-study.py tolerance    # errors of single steps and of 10 ms against solver.tolerance
    .venv/bin/python jobs/force-study.py fallback     # steps that miss their tolerance in the tamping demo

The tamping demo wants out/tamping/demo-deposit/final.h5 (make demo); `tolerance` takes its checkpoints from `fallback`, so that goes first. The
program is $BRECCIA or target/release/breccia. Results stay in out/force-study; runs that are there are not made again.
"""
import argparse
import csv
import json
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
BRECCIA = os.environ.get("BRECCIA", str(ROOT / "target/release/breccia"))
SMALL = ["grains.stones.count=90", "parameters.length=0.36", "parameters.begin=0.25", "simulation.duration=0.52"]
# Student's t, two-sided 95 %, by degrees of freedom.
STUDENT = [math.nan, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="out/force-study")
    parser.add_argument("--nice", type=int, default=0)
    parts = parser.add_subparsers(dest="part", required=True)
    piles = parts.add_parser("piles", help="means over eight piles")
    piles.add_argument("--seeds", type=int, nargs="+", default=list(range(1, 9)))
    piles.add_argument("--tolerances", nargs=2, default=["1e-3", "1e-5"])
    piles.add_argument("--sweeps", type=int, default=3000, help="solver.maximum_sweeps")
    piles.add_argument("--small", action="store_true", help="the small trough of tests/force_checks.rs")
    tolerance = parts.add_parser("tolerance", help="errors against the tolerance")
    tolerance.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    tolerance.add_argument("--picture", help="where the figure goes, e.g. docs/pictures/force-errors.svg")
    fallback = parts.add_parser("fallback", help="steps that miss their tolerance in the tamping demo")
    fallback.add_argument("--turns", type=int, default=6, help="so many pieces, which are run in turns")
    fallback.add_argument("--steps", type=int, default=3000)
    fallback.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    return parser.parse_args()


def breccia(case, out, settings, more=()):
    """Processor time, s."""
    command = [BRECCIA, "run", str(case), "--out", str(out), "--threads", "1", *more]
    for item in settings:
        command += ["--set", item]
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "log.txt", "a") as log:
        log.write(shlex.join(command) + "\n")
        log.flush()
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
        _, code, usage = os.wait4(process.pid, 0)
    if code != 0:
        sys.exit(f"that failed: see {out / 'log.txt'}")
    return usage.ru_utime + usage.ru_stime


def finished(out):
    summary = out / "summary.json"
    return summary.exists() and json.loads(summary.read_text()).get("status") == "finished"


def table(path):
    with open(path) as file:
        rows = csv.reader(file)
        names = next(rows)
        values = np.array([[float(value) for value in row] for row in rows])
    return dict(zip(names, values.T))


def forces(out):
    return table(out / "series.csv") | table(out / "machines.csv")


def vector(columns, name):
    return np.stack([columns[f"{name}/{axis}"] for axis in "xyz"], axis=1)


# Means over piles


def piles(options, out):
    first, second = options.tolerances
    # The plate pushes loose stones, packs them into the tunnel, and is stopped at the cylinder's limit.
    windows = {"loose stones": (0.5, 0.7), "packing": (0.7, 0.9), "stopped": (0.9, 1.0), "all": (0.5, 1.0)}
    if options.small:
        windows = {"loose stones": (0.25, 0.36), "packing": (0.36, 0.45), "stopped": (0.45, 0.52), "all": (0.25, 0.52)}
    names = {"plate": "digger/contact.plate.force/x", "end wall": "force/end/x"}
    found = {}
    missed = dict.fromkeys(options.tolerances, (0, 0))
    sweeps = {tolerance: [] for tolerance in options.tolerances}
    for seed in options.seeds:
        for tolerance in options.tolerances:
            folder = out / f"piles{'-small' if options.small else ''}/{seed}-{tolerance}"
            settings = [f"grains.stones.seed={seed}", f"solver.tolerance={tolerance}", f"solver.maximum_sweeps={options.sweeps}",
                        'solver.fallback="sweeps-newton"', "output.interval=0.1", "output.series_interval=5e-4"]
            if not finished(folder):
                seconds = breccia("inputs/digging.toml", folder, settings + (SMALL if options.small else []), ["--overwrite"])
                print(f"{folder.name}: {seconds:.0f} s", flush=True)
            columns = forces(folder)
            sweeps[tolerance].append(columns["sweeps"].mean())
            count, steps = missed[tolerance]
            missed[tolerance] = count + int((columns["converged"] == 0).sum()), steps + len(columns["converged"])
            for window, (begin, end) in windows.items():
                within = (columns["time"] > begin) & (columns["time"] <= end + 1e-9)
                for word, name in names.items():
                    found[window, word, seed, tolerance] = abs(columns[name][within].mean())
    n = len(options.seeds)
    for tolerance, (count, steps) in missed.items():
        print(f"tolerance {tolerance}: {count} of {steps} steps missed it; {np.mean(sweeps[tolerance]):.0f} sweeps a step")
    print(f"\n| mean force, N, over {n} piles | {first} | {second} | difference in pairs, 95 % interval | relative |\n| --- | --- | --- | --- | --- |")
    for window, (begin, end) in windows.items():
        for word in names:
            if word == "end wall" and window == "loose stones":
                continue  # nothing has reached it
            one, two = (np.array([found[window, word, seed, tolerance] for seed in options.seeds]) for tolerance in options.tolerances)
            difference = two - one
            half = STUDENT[n - 1] * difference.std(ddof=1) / math.sqrt(n)
            print(f"| {word}, {window}, {begin}–{end} s | {one.mean():.0f} | {two.mean():.0f} | {difference.mean():+.0f} ± {half:.0f} | "
                  f"{100 * difference.mean() / one.mean():+.1f} ± {100 * half / one.mean():.1f} % |")


# Errors against the tolerance


# Windows begin at the steps begin, begin + every, … of a run at the case's own tolerance: `base` is one of the part `fallback`.
CASES = {
    "digging": dict(file="inputs/digging.toml", settings=SMALL, force=["digger/contact.plate.force"], begin=640, every=20, end=1040, step=5e-4),
    "digging-rigid": dict(file="inputs/digging.toml", rigid=True, settings=SMALL, force=["digger/contact.plate.force"], begin=640, every=20, end=1040, step=5e-4),
    "plough": dict(file="inputs/plough.toml", settings=[], force=["plough/contact.blade.force"], begin=200, every=40, end=1000, step=5e-4),
    "demo": dict(file="inputs/tamping/demo.toml", settings=[], force=["tamper/contact.left.force", "tamper/contact.right.force"],
                 base="fallback/rigid", begin=300, every=100, end=2000, step=5e-4, single=True, lowest=1e-3),
    "demo-stiffness": dict(file="inputs/tamping/demo-stiffness.toml", settings=[], force=["tamper/contact.left.force", "tamper/contact.right.force"],
                           base="fallback/5e7-m", begin=300, every=100, end=2000, step=5e-4, single=True),
}
TOLERANCES = ["1e-2", "1e-3", "1e-4", "1e-5", "1e-6"]
TRUTH = "1e-9"
# Errors count only where the truth is so much better than what is compared with it. If these are less than this share of the windows, the easy ones, no error is stated.
SURE, LEAST = 0.1, 0.75


def case_file(case, out):
    """The case, or a copy without stiffness."""
    source = ROOT / case["file"]
    if not case.get("rigid"):
        return source
    copy = out / f"{source.stem}-rigid.toml"
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(re.sub(r"(?m)^(stiffness|dissipation) = .*\n", "", source.read_text()))
    return copy


def window(columns, names, first, count):
    """Force of the first step, and mean over the window."""
    at = int(np.searchsorted(columns["step"], first + 1))
    force = sum(vector(columns, name) for name in names)[at : at + count]
    assert len(force) == count, (first, count, len(force))
    return force[0], force.mean(axis=0)


def errors(name, out):
    """Of one case: of each tolerance the errors of steps and of windows by the mean force, and shares of missed steps."""
    case, folder = CASES[name], out / f"tolerance/{name}"
    file = case_file(case, folder)
    every_step = [f"output.series_interval={case['step']}", "output.interval=10"]
    settings = case["settings"] + every_step
    base = out / case["base"] if "base" in case else folder / "base"
    if not (base / "checkpoints").exists():
        steps = ["checkpoint.minutes=0", f"checkpoint.steps={case['every']}", "checkpoint.keep=1000"]
        seconds = breccia(file, base, settings + steps, ["--overwrite", "--steps", str(case["end"])])
        print(f"{name}: {seconds:.0f} s", flush=True)
    count = 1 if case.get("single") else round(0.01 / case["step"])
    begins = list(range(case["begin"], case["end"], case["every"]))
    truth = case.get("truth", TRUTH)
    tolerances = [item for item in TOLERANCES if float(item) >= case.get("lowest", 0)]
    found, missed, residuals, taken = {}, dict.fromkeys([*tolerances, truth], 0), {}, 0.0
    for begin in begins:
        start = checkpoint(base, begin)
        for tolerance in [*tolerances, truth]:
            piece = folder / f"{begin}-{tolerance}"
            if not finished(piece):
                solver = [f"solver.tolerance={tolerance}", "solver.maximum_sweeps=3000", 'solver.fallback="sweeps-newton"', "checkpoint.minutes=0"]
                more = ["--restart", str(start), "--changed-case", "--steps", str(begin + count)]
                taken += breccia(file, piece, settings + solver, more)
                (piece / "bodies.vtkhdf").unlink(missing_ok=True)
            columns = forces(piece)
            left = columns["residual"][columns["step"] > begin]
            residuals[begin, tolerance] = (left[0], left.max())
            found[begin, tolerance] = window(columns, case["force"], begin, count)
            missed[tolerance] += int((columns["converged"][columns["step"] > begin] == 0).sum())
    if taken > 0:
        print(f"{name}, windows: {taken:.0f} s", flush=True)
    # By the force of the window, a single step by that of the 10 ms which the run makes from there; a tool that touches nothing has none.
    steps = count * len(begins)
    sizes = {begin: np.linalg.norm(found[begin, truth][1]) for begin in begins}
    if count == 1:
        columns = forces(base)
        sizes = {begin: np.linalg.norm(window(columns, case["force"], begin, round(0.01 / case["step"]))[1]) for begin in begins}
    begins = [begin for begin in begins if sizes[begin] > 0]
    rows = []
    for tolerance in tolerances:
        parts = []
        # One step says nothing about 10 ms.
        for k in (0,) if count == 1 else (0, 1):
            known = [begin for begin in begins if residuals[begin, truth][k] <= SURE * float(tolerance)]
            parts.append(np.array([np.linalg.norm(found[begin, tolerance][k] - found[begin, truth][k]) / sizes[begin] for begin in known]))
        rows.append((float(tolerance), *(parts + [np.array([])])[:2], missed[tolerance] / steps))
    worst = max(residuals[begin, truth][1] for begin in begins)
    return [sizes[begin] for begin in begins], len(begins), rows, (truth, missed[truth] / steps, worst)


def checkpoint(base, step):
    places = [path for path in (base / "checkpoints").rglob("*.h5") if re.search(rf"(?<!\d)0*{step}(?!\d)", path.name)]
    if not places:
        sys.exit(f"no checkpoint of step {step} in {base}")
    return places[0]


def tolerance_study(options, out):
    results = {}
    for name in options.cases:
        results[name] = errors(name, out)
        print_errors(name, *results[name])
    if options.picture:
        draw(results, ROOT / options.picture)


def print_errors(name, size, n, rows, truth):
    print(f"\n{name}: forces of {min(size):.3g} to {max(size):.3g} N, {np.median(size):.3g} N in the median of {n} windows; truth at {truth[0]}, {100 * truth[1]:.1f} % of its steps missed, residual {truth[2]:.1e} at worst")
    print("| tolerance | single steps: n, median, 95 % | 10 ms: n, median, 95 % | missed |\n| --- | --- | --- | --- |")
    for tolerance, single, mean, missed in rows:
        cells = [f"{len(part)}: {100 * np.median(part):.2g} %, {100 * share(part):.2g} %" if len(part) >= LEAST * n else "–" for part in (single, mean)]
        print(f"| {tolerance:.0e} | {cells[0]} | {cells[1]} | {100 * missed:.1f} % |", flush=True)


def share(values):
    """What 95 % of the values do not exceed, as the summary of a run has it."""
    return np.sort(values)[math.ceil(0.95 * len(values)) - 1]


def draw(results, place):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter

    figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, constrained_layout=True)
    for name, (_, n, rows, _) in results.items():
        for axis, k in zip(axes, (1, 2)):
            known = [row for row in rows if len(row[k]) >= LEAST * n]
            tolerances = [row[0] for row in known]
            line = axis.loglog(tolerances, [np.median(row[k]) for row in known], "o-", markersize=3, label=name)[0]
            axis.loglog(tolerances, [share(row[k]) for row in known], ":", color=line.get_color())
    for axis, word in zip(axes, ("single steps", "means over 10 ms")):
        axis.set_title(word)
        axis.set_xlabel("solver.tolerance")
        axis.grid(alpha=0.3)
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axes[0].set_ylabel("error of the tool's force / its mean over the window")
    axes[0].legend(fontsize=8)
    place.parent.mkdir(parents=True, exist_ok=True)
    # The same file from the same numbers.
    matplotlib.rcParams["svg.hashsalt"] = "forces"
    figure.savefig(place, metadata={"Date": None} if place.suffix == ".svg" else None)


# Steps that miss their tolerance


# Checkpoints are for the part `tolerance`.
KEPT = ["output.interval=0.1", "checkpoint.minutes=0", "checkpoint.steps=100", "checkpoint.keep=1000"]
VARIANTS = {
    "rigid": ("inputs/tamping/demo.toml", []),
    "rigid, sweeps-newton": ("inputs/tamping/demo.toml", ['solver.fallback="sweeps-newton"']),
    "5e7 N/m": ("inputs/tamping/demo-stiffness.toml", []),
}


def fallback(options, out):
    seconds = {name: [] for name in options.variants}
    folders = {name: out / "fallback" / re.sub(r"[^0-9a-z]+", "-", name) for name in options.variants}
    for turn in range(1, options.turns + 1):
        until = options.steps * turn // options.turns
        for name in options.variants:
            file, settings = VARIANTS[name]
            times = folders[name] / "seconds.json"
            known = json.loads(times.read_text()) if times.exists() else []
            if len(known) < turn:
                more = ["--steps", str(until)] + (["--restart", "auto"] if turn > 1 else ["--overwrite"])
                known.append(breccia(file, folders[name], settings + KEPT, more))
                times.write_text(json.dumps(known))
                print(f"{name}, to step {until}: {known[-1]:.0f} s", flush=True)
            seconds[name] = known[: options.turns]
    first = np.array(seconds[options.variants[0]])
    print("\n| | sweeps, mean | most | missed 5e-3 | processor s | by the first, in turns: mean, 95 % | floor kN mean, p99, largest | deepest m | overlap mm |")
    print("| --- |" + " --- |" * 8)
    for name in options.variants:
        columns, machine = (cut(table(folders[name] / file), options.steps) for file in ("series.csv", "machines.csv"))
        floor = 1e-3 * np.abs(columns["force/floor/z"])
        ratio = np.array(seconds[name]) / first
        half = STUDENT[len(ratio) - 1] * ratio.std(ddof=1) / math.sqrt(len(ratio)) if len(ratio) > 1 else math.nan
        print(f"| {name} | {columns['sweeps'].mean():.0f} | {columns['sweeps'].max():.0f} | {int((columns['converged'] == 0).sum())} of {len(floor)} | {sum(seconds[name]):.0f} | "
              f"{ratio.mean():.2f} ± {half:.2f} | {floor.mean():.1f}, {np.quantile(floor, 0.99):.0f}, {floor.max():.0f} | "
              f"{machine['tamper/quantity.depth'].max():.3f} | {1e3 * columns['worst_penetration'].max():.1f} |")


def cut(columns, steps):
    """Without rows of steps that a later piece has begun."""
    return {name: values[columns["step"] <= steps] for name, values in columns.items()}


def main():
    options = arguments()
    os.nice(options.nice)
    out = (ROOT / options.out).resolve()
    {"piles": piles, "tolerance": tolerance_study, "fallback": fallback}[options.part](options, out)


if __name__ == "__main__":
    main()
