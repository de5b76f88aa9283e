#!/usr/bin/env python3
"""Tamping at 15, 30 and 45 Hz and with imposed vibration, over several deposits: the paper's figures 10 and 11, and a table.

    .venv/bin/python jobs/tamping-study.py                        # the slice, seeds 1 2 3
    .venv/bin/python jobs/tamping-study.py --full --seeds 1 --cases 30hz --ranks 2

Results stay in out/tamping-study (or --out); runs that are there are not made again, runs that were stopped go on.
"""
import argparse
import csv
import json
import pathlib
import shlex
import subprocess
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = {"15hz": "15 Hz", "30hz": "30 Hz", "45hz": "45 Hz", "15hz-imposed": "15 Hz, imposed"}
COLOURS = {"15hz": "tab:blue", "30hz": "tab:orange", "45hz": "tab:green", "15hz-imposed": "tab:blue"}
GRAVITY = 9.81


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--full", action="store_true", help="the whole box instead of the slice")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="passed on to the tamping runs")
    parser.add_argument("--out", default="out/tamping-study")
    parser.add_argument("--pictures", help="also put the figures there")
    parser.add_argument("--breccia", default=str(ROOT / "target/release/breccia"))
    parser.add_argument("--mpirun", default="mpirun --oversubscribe")
    return parser.parse_args()


def run(options, case, out, settings, until=None):
    """One run to its end, going on where an earlier one was stopped."""
    summary = out / "summary.json"
    if summary.exists() and json.loads(summary.read_text()).get("status") == "finished":
        return
    command = shlex.split(options.mpirun) + ["-n", str(options.ranks)] if options.ranks > 1 else []
    command += [options.breccia, "run", f"inputs/tamping/{case}.toml", "--out", str(out)]
    command += ["--threads", str(options.threads), "--restart", "auto"]
    command += ["--until", str(until)] if until else []
    for item in settings:
        command += ["--set", item]
    print(" ".join(command), flush=True)
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "log.txt", "a") as log:
        if subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT).returncode != 0:
            sys.exit(f"that failed: see {out / 'log.txt'}")


def run_all(options):
    prefix = "" if options.full else "small-"
    out = (ROOT / options.out).resolve()
    found = {}
    for seed in options.seeds:
        folder = out / f"{prefix}seed{seed}"
        run(options, prefix + "bed", folder / "bed", [f"parameters.seed={seed}"])
        start = f"start.from={folder / 'bed/final.h5'}"
        run(options, prefix + "deposit", folder / "deposit", [f"parameters.seed={seed}", start])
        start = f"start.from={folder / 'deposit/final.h5'}"
        for case in options.cases:
            run(options, prefix + case, folder / case, [start, *options.set])
            found[case, seed] = Tamping(folder / case, folder / "deposit", options.breccia)
    return found


def table(path):
    with open(path) as file:
        rows = csv.reader(file)
        names = next(rows)
        values = np.array([[float(value) for value in row] for row in rows])
    return dict(zip(names, values.T))


class Tamping:
    """What came of one run."""

    def __init__(self, folder, deposit, breccia):
        self.summary = json.loads((folder / "summary.json").read_text())
        machine = table(folder / "machines.csv")
        self.machine = {name.removeprefix("tamper/"): column for name, column in machine.items()}
        self.series = table(folder / "series.csv")
        self.time = self.machine["time"]
        self.step = self.time[1] - self.time[0]
        self.phase = self.machine["phase"]
        self.moved = moved(folder, deposit, breccia)

    def during(self, phase):
        return self.phase == phase

    def numbers(self):
        dive, squeeze = self.during(1), self.during(2)
        depth, force = self.machine["quantity.depth"], self.machine["force.cylinder"]
        # The end of a phase: one turn of the slowest flywheel.
        last = lambda what: what & (self.time > self.time[what][-1] - 1 / 15) if what.any() else what
        region = lambda name: self.series[f"region/under_sleeper.{name}"]
        some = lambda column, where: float(column[where].mean()) if where.any() else float("nan")
        balance = self.vertical_balance()
        return {
            "depth at 0.5 s [m]": float(np.interp(0.5, self.time, smooth(depth, self.window()))),
            "depth after the dive [m]": some(depth, last(dive)),
            "dive takes [s]": float(dive.sum() * self.step),
            "elongation after squeezing [mm]": 1e3 * some(self.machine["cylinder"], last(squeeze)),
            "force of the cylinder, squeezing [kN]": 1e-3 * some(force, squeeze),
            "largest force of the cylinder [kN]": 1e-3 * float(np.abs(smooth(force, self.window())[squeeze]).max())
            if squeeze.any()
            else float("nan"),
            "solid fraction under the sleeper, before": float(region("solid_fraction")[0]),
            "after": float(region("solid_fraction")[-1]),
            "coordination, before": float(region("coordination")[:20].mean()),
            "coordination, after": float(region("coordination")[-20:].mean()),
            "stones moved > 20 mm": self.moved,
            "work of the diving force [J]": self.work("diving", "dive"),
            "of the cylinder [J]": self.work("cylinder", "cylinder"),
            "of the motor [J]": self.work("motor", "wheel"),
            "lost in the mounts [J]": self.mounts(),
            "kept by the machine [J]": self.kept(),
            "into the ballast [J]": self.given(),
            "kept by the ballast [J]": self.ballast(),
            "loop closure [m]": float(self.machine["closure_error"].max()),
            "vertical balance of the machine": balance[0],
            "vertical balance of the ballast": balance[1],
            "sweeps a step": self.summary["sweeps"]["mean"],
            "steps that missed the tolerance": self.summary["not_converged"],
            "penetration, worst [mm]": 1e3 * self.summary["worst_penetration"]["max"],
            "penetration, mean of each step's worst [mm]": 1e3 * float(self.series["worst_penetration"].mean()),
        }

    def window(self):
        """Steps of one turn of the flywheel."""
        return max(1, round(2 * np.pi / abs(self.machine["wheel.velocity"]).mean() / self.step))

    def work(self, force, joint):
        return float((self.machine[f"force.{force}"][1:] * np.diff(self.machine[joint])).sum())

    def mounts(self):
        """What springs take up in all, less what is stored in them."""
        taken = -sum(self.work(f"spring_{name}", f"hang.{axis}") for name, axis in SPRINGS)
        return taken - self.stored(-1) + self.stored(0)

    def stored(self, row):
        energy = 0.0
        for (name, axis), (stiffness, rest) in zip(SPRINGS, STIFFNESS):
            energy += 0.5 * stiffness * (self.machine[f"hang.{axis}"][row] - rest) ** 2
        return energy

    def kept(self):
        """Change of kinetic energy, of height, and of what springs store."""
        energy = lambda row: self.machine["kinetic_energy"][row] + self.machine["potential_energy"][row]
        return float(energy(-1) - energy(0) + self.stored(-1) - self.stored(0))

    def given(self):
        put_in = sum(self.work(*pair) for pair in (("diving", "dive"), ("cylinder", "cylinder"), ("motor", "wheel")))
        return put_in - self.mounts() - self.kept()

    def ballast(self):
        energy = self.series["kinetic_energy"] + self.series["potential_energy"]
        return float(energy[-1] - energy[0])

    def vertical_balance(self):
        """Worst difference of the sides of Newton's law in a step, by the largest force in it: machine, ballast."""
        machine, series = self.machine, self.series
        joint, actuator = machine["joint.dive.force/z"], machine["force.diving"]
        of_machine = np.abs(joint - actuator).max() / np.abs(actuator).max()
        on_tools = machine["contact.left.force/z"] + machine["contact.right.force/z"]
        on_walls = sum(column for name, column in series.items() if name.startswith("force/") and name.endswith("/z"))
        weight = sum(group["mass"] for group in self.summary["groups"] if group["mass"] and group["kind"] != "machine") * GRAVITY
        change = np.diff(series["momentum/z"]) / self.step
        forces = -weight - (on_tools + on_walls)[1:]
        scale = np.maximum(np.abs(on_tools[1:]) + np.abs(on_walls[1:]), weight)
        return float(of_machine), float((np.abs(change - forces) / scale).max())


SPRINGS = (("x", "x"), ("z", "y"), ("turn", "angle"))
STIFFNESS = ((1e5, 0.0), (1e5, 73 * GRAVITY / 1e5), (1e5 * 0.25**2, 0.0))


def moved(folder, deposit, breccia):
    """Stones whose centres went more than 20 mm."""
    places = []
    for state in (deposit / "final.h5", folder / "final.h5"):
        arrays = folder / f"{state.parent.name}.npz"
        subprocess.run([breccia, "export", str(state), "--format", "npz", "--out", str(arrays)], check=True, capture_output=True)
        places.append(np.load(arrays))
    return count_moved(*places)


def count_moved(before, after):
    """Free stones keep their order, ascending by id, when a case takes them over."""
    rows = [np.isin(state["group"], np.flatnonzero(np.bincount(state["group"].astype(int)) > 8)) for state in (before, after)]
    first, last = (np.asarray(state["position"])[row][np.argsort(state["id"][row])] for state, row in zip((before, after), rows))
    return int((np.linalg.norm(first - last, axis=1) > 0.02).sum()) if len(first) == len(last) else -1


def smooth(column, window):
    kernel = np.ones(window) / window
    padded = np.pad(column, (window // 2, window - 1 - window // 2), mode="edge")
    return np.convolve(padded, kernel, mode="valid")


def draw(found, options, folder):
    """Figure 10: height of the chassis. Figure 11: elongation and force of the cylinder, from the start of squeezing."""
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for case in options.cases:
        runs = [found[case, seed] for seed in options.seeds]
        band(axes, runs, case, lambda run: (run.time, run.machine["quantity.chassis_z"] - run.machine["quantity.chassis_z"][0]))
    axes.set(xlabel="time [s]", ylabel="chassis, from its start [m]", title="Dive (figure 10 of the paper)", xlim=(0, 1.2))
    axes.legend()
    axes.grid(alpha=0.3)
    save(figure, "tamping-dive", options, folder)
    figure, both = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for case in options.cases:
        runs = [found[case, seed] for seed in options.seeds if found[case, seed].during(2).any()]
        for axes, name, factor in zip(both, ("cylinder", "force.cylinder"), (1e3, 1e-3)):
            band(axes, runs, case, lambda run: squeeze(run, name, factor))
    both[0].set(xlabel="time of squeezing [s]", ylabel="elongation [mm]", title="Squeezing (figure 11a)")
    both[1].set(xlabel="time of squeezing [s]", ylabel="force of the cylinder [kN]", title="Squeezing (figure 11b)")
    both[0].legend()
    for axes in both:
        axes.grid(alpha=0.3)
    save(figure, "tamping-squeeze", options, folder)


def squeeze(run, name, factor):
    during = run.during(2)
    return run.time[during] - run.time[during][0], factor * smooth(run.machine[name], run.window())[during]


def band(axes, runs, case, curve):
    """The mean over the deposits, and between the lowest and the highest of them."""
    if not runs:
        return
    curves = [curve(run) for run in runs]
    time = np.linspace(0, max(times[-1] for times, _ in curves), 2000)
    values = np.array([np.interp(time, times, value) for times, value in curves])
    style = "--" if case.endswith("imposed") else "-"
    axes.plot(time, values.mean(axis=0), style, color=COLOURS[case], label=CASES[case], linewidth=1.2)
    if len(values) > 1:
        axes.fill_between(time, values.min(axis=0), values.max(axis=0), color=COLOURS[case], alpha=0.12, linewidth=0)


def save(figure, name, options, folder):
    for place in filter(None, (folder, options.pictures)):
        path = pathlib.Path(place)
        path.mkdir(parents=True, exist_ok=True)
        figure.savefig(path / f"{name}.png", dpi=110)
        print("picture:", path / f"{name}.png")


def report(found, options, folder):
    """Mean and spread over the deposits, as CSV and as a table."""
    numbers = {key: run.numbers() for key, run in found.items()}
    names = list(next(iter(numbers.values())))
    with open(folder / "numbers.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["case", "seed", *names])
        rows.writerows([case, seed, *values.values()] for (case, seed), values in numbers.items())
    lines = ["| | " + " | ".join(CASES[case] for case in options.cases) + " |", "| --- |" + " --- |" * len(options.cases)]
    for name in names:
        cells = []
        for case in options.cases:
            values = np.array([numbers[case, seed][name] for seed in options.seeds])
            mean, spread = values.mean(), np.ptp(values) / 2
            cells.append(f"{mean:.4g} ± {spread:.2g}" if len(values) > 1 and spread > 0 else f"{mean:.4g}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    (folder / "table.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    print("numbers:", folder / "numbers.csv")


def main():
    options = arguments()
    found = run_all(options)
    folder = (ROOT / options.out).resolve() / ("full" if options.full else "small")
    folder.mkdir(parents=True, exist_ok=True)
    report(found, options, folder)
    draw(found, options, folder)


if __name__ == "__main__":
    main()
