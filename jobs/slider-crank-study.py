#!/usr/bin/env python3
"""The slider-crank at several time steps against the event-driven reference: the table and the pictures of docs/machine.md.

    .venv/bin/python jobs/slider-crank-study.py [--breccia target/release/breccia] [--smallest 1e-6]

Runs take some minutes; results stay in out/slider-crank-study.
"""
import argparse
import csv
import math
import pathlib
import subprocess

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = pathlib.Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "tests/data/slider-crank"
PICTURES = ROOT / "docs/pictures"
CASES = ["chain", "cut-xy", "cut-y"]
CRANK, ROD, CLEARANCE = 0.153, 0.306, 0.001
PAPER = {"machine.slider-crank.contact_velocity": "middle"}
START = {"machine.slider-crank.force_evaluation": "start-velocity"}
LIMIT = {"solver.penetration_limit": "1e-6"}


def run(breccia, case, step, settings, series):
    """Rows of machines.csv: time, crank angle, height of the slider."""
    name = "-".join([case, step, *settings.values()])
    out = ROOT / "out/slider-crank-study" / name
    if not (out / "summary.json").exists():
        words = [breccia, "run", f"inputs/slider-crank/{case}.toml", "--out", str(out)]
        values = {"simulation.time_step": step, "output.interval": "0.1", "output.series_interval": series} | settings
        for key, value in values.items():
            words += ["--set", f"{key}={value}"]
        subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    with open(out / "machines.csv") as file:
        rows = csv.reader(file)
        place = {name.split("/", 1)[-1]: index for index, name in enumerate(next(rows))}
        found = []
        for row in rows:
            crank, rod = float(row[place["crank"]]), float(row[place["rod"]])
            found.append((float(row[1]), crank, CRANK * math.sin(crank) + ROD * math.sin(crank + rod)))
        return found


def reference():
    with open(REFERENCE / "trajectory.csv") as file:
        return [(float(row["t"]), float(row["theta_crank"]), float(row["y_slider"])) for row in csv.DictReader(file)]


def convergence(breccia, steps):
    exact = reference()[-1][1]
    figure, axes = plt.subplots(figsize=(5.5, 4), layout="constrained")
    print("| description | forces at | " + " | ".join(f"h = {step}" for step in steps) + " |")
    print("| --- | --- | " + " | ".join("---" for _ in steps) + " |")
    for word, settings, style in [("v_m", {}, "o-"), ("v_n", START, "s--")]:
        for case in CASES:
            errors = [abs(run(breccia, case, step, settings, "1e-3")[-1][1] - exact) for step in steps]
            print(f"| `{case}` | {word} | " + " | ".join(f"{error:.2e}" for error in errors) + " |", flush=True)
            axes.loglog([float(step) for step in steps], errors, style, label=f"{case}, f(q_m, {word})", alpha=0.7)
    axes.loglog([1e-6, 1e-4], [1e-4, 1e-2], "k:", label="first order")
    axes.set(xlabel="time step h, s", ylabel="error of the crank angle at 0.2 s, rad")
    axes.legend(fontsize=7)
    figure.savefig(PICTURES / "slider-crank-convergence.png", dpi=110)


def drift(breccia):
    figure, axes = plt.subplots(2, 1, figsize=(7, 5), sharex=True, layout="constrained")
    for axis, settings, title in [
        (axes[0], PAPER, "the paper's contact velocities, h = 1e-4 s"),
        (axes[1], LIMIT, "as shipped, with penetration_limit = 1e-6 m, h = 1e-4 s"),
    ]:
        for case, style in zip(CASES, ["-", "--", "-"]):
            rows = run(breccia, case, "1e-4", settings, "1e-4")
            axis.plot([row[0] for row in rows], [1e6 * row[2] for row in rows], style, label=case, linewidth=0.9)
        rows = reference()
        axis.plot([row[0] for row in rows], [1e6 * row[2] for row in rows], "k:", label="event-driven", linewidth=0.9)
        for side in (1, -1):
            axis.axhline(side * 1e6 * CLEARANCE, color="grey", linewidth=0.5)
        axis.set(ylabel="y of the slider, µm", title=title, xlim=(0, 0.05))
    axes[0].legend(fontsize=7)
    axes[1].set(xlabel="t, s")
    figure.savefig(PICTURES / "slider-crank-drift.png", dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--breccia", default="target/release/breccia")
    parser.add_argument("--smallest", default="1e-6", choices=["1e-4", "1e-5", "1e-6"])
    arguments = parser.parse_args()
    breccia = str(pathlib.Path(arguments.breccia).resolve())
    steps = [step for step in ["1e-4", "1e-5", "1e-6"] if float(step) >= float(arguments.smallest)]
    convergence(breccia, steps)
    drift(breccia)


if __name__ == "__main__":
    main()
