#!/usr/bin/env python3
"""Strong or weak scaling with plain mpirun: one table, one CSV file, one picture.

Strong: the same case on each number of ranks. Weak: the parameter named by --grow is multiplied by the number of ranks.
Runs take turns (1, 2, 4, 1, 2, 4, ...), so that a machine that gets slower or faster meanwhile does so for all, and
the fastest of the repeats counts. Digests of a strong study must be equal, or the study stops.

  breccia run inputs/scaling.toml --out out/rest
  jobs/scaling-study.py --case inputs/scaling.toml --restart out/rest/final.h5 --ranks 1 2 --steps 40
  jobs/scaling-study.py --weak --case inputs/mixed-spheres.toml --grow parameters.spheres=20000 --ranks 1 2 4 8
"""
import argparse
import csv
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", default="inputs/scaling.toml")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--weak", action="store_true")
    parser.add_argument("--grow", default="parameters.spheres=20000", help="KEY=VALUE on one rank, for --weak")
    parser.add_argument("--restart", help="a checkpoint or final state of the case to go on from")
    parser.add_argument("--set", action="append", default=[], help="passed on to breccia")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--out", default="out/scaling")
    parser.add_argument("--breccia", default=str(ROOT / "target/release/breccia"))
    parser.add_argument("--mpirun", default="mpirun --oversubscribe")
    return parser.parse_args()


def first_step(options):
    if options.restart is None:
        return 0
    found = subprocess.run([options.breccia, "info", "--json", options.restart], capture_output=True, text=True, check=True)
    words = json.loads(found.stdout)
    words = words[0] if isinstance(words, list) else words
    return int(words["facts"]["step"])


def run(options, ranks, repeat):
    out = pathlib.Path(options.out) / f"{'weak' if options.weak else 'strong'}-{ranks}"
    command = shlex.split(options.mpirun) + ["-n", str(ranks), options.breccia, "run", options.case]
    command += ["--out", str(out), "--steps", str(first_step(options) + options.steps), "--threads", options.threads]
    command += ["--restart", options.restart] if options.restart else []
    command += ["--overwrite"]
    for item in options.set:
        command += ["--set", item]
    if options.weak:
        key, value = options.grow.split("=")
        command += ["--set", f"{key}={int(value) * ranks}"]
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    summary = json.load(open(out / "summary.json"))
    rows = list(csv.DictReader(open(out / "series.csv")))
    mean = lambda column: sum(float(row[column]) for row in rows) / len(rows)
    phases = {phase["name"]: phase for phase in summary["phases"]}
    # What a step costs: without reading, writing and what only the run's loop does.
    in_step = [phase for phase in phases.values() if phase["name"] not in ("output", "other")]
    return {
        "ranks": ranks,
        "repeat": repeat,
        "steps": options.steps,
        "bodies": summary["free_bodies"],
        "contact_points": round(mean("contact_points")),
        "sweeps": mean("sweeps"),
        "step_ms": 1e3 * summary["seconds_steps"] / options.steps,
        "solve_ms": 1e3 * phases["solve"]["max"] / options.steps,
        "detect_ms": 1e3 * phases["detect"]["max"] / options.steps,
        "waiting_ms": 1e3 * sum(phase["waiting"][2] for phase in in_step) / options.steps,
        "messages_per_step": sum(phase["messages"][2] for phase in in_step) / options.steps,
        "bytes_per_step": sum(phase["bytes"][2] for phase in in_step) / options.steps,
        "memory_MB": max(summary["peak_memory"]) / 1e6,
        "digest": summary["digest"],
    }


def table(options, rows):
    """The fastest repeat of each, with speed-ups of the step and of the solve against the fewest ranks."""
    best = {}
    for row in rows:
        if row["ranks"] not in best or row["step_ms"] < best[row["ranks"]]["step_ms"]:
            best[row["ranks"]] = row
    solve = {n: min(row["solve_ms"] for row in rows if row["ranks"] == n) for n in best}
    first = min(best)
    lines = [
        "| ranks | bodies | contact points | sweeps | step [ms] | solve [ms] | speed-up step | speed-up solve | efficiency step "
        "| waiting [ms] | messages/step | kB/step | memory/rank [MB] |",
        "| --- " * 13 + "|",
    ]
    for n, row in sorted(best.items()):
        grown = n / first if options.weak else 1.0
        up = grown * best[first]["step_ms"] / row["step_ms"]
        up_solve = grown * solve[first] / solve[n]
        row.update(speedup_step=up, speedup_solve=up_solve, efficiency=up * first / n)
        lines.append(
            f"| {n} | {row['bodies']} | {row['contact_points']} | {row['sweeps']:.1f} | {row['step_ms']:.2f} | {solve[n]:.2f} "
            f"| {up:.2f} | {up_solve:.2f} | {up * first / n:.2f} | {row['waiting_ms']:.2f} | {row['messages_per_step']:.0f} "
            f"| {row['bytes_per_step'] / 1e3:.0f} | {row['memory_MB']:.0f} |"
        )
    return [row for _, row in sorted(best.items())], "\n".join(lines)


def picture(options, best, path):
    try:
        import matplotlib
    except ImportError:
        print("no matplotlib here, so no picture (make setup installs it with VTK)")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ranks = [row["ranks"] for row in best]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    left.plot(ranks, [n / ranks[0] for n in ranks], color="0.7", label="ideal")
    left.plot(ranks, [row["speedup_step"] for row in best], "o-", label="whole step")
    left.plot(ranks, [row["speedup_solve"] for row in best], "s-", label="contact solve")
    left.set(xlabel="ranks", ylabel="speed-up", xticks=ranks, ylim=(0, None))
    left.legend(frameon=False)
    other = [row["step_ms"] - row["solve_ms"] - row["detect_ms"] for row in best]
    places = range(len(ranks))
    bottom = [0.0] * len(ranks)
    for name, values in (("solve", [r["solve_ms"] for r in best]), ("detect", [r["detect_ms"] for r in best]), ("rest", other)):
        right.bar(places, values, bottom=bottom, label=name, width=0.6)
        bottom = [b + v for b, v in zip(bottom, values)]
    right.set(xlabel="ranks", ylabel="ms per step", xticks=list(places), xticklabels=ranks)
    right.legend(frameon=False)
    figure.suptitle(f"{'Weak' if options.weak else 'Strong'} scaling, {options.case}")
    figure.savefig(path)
    print(f"picture: {path}")


def main():
    options = arguments()
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for repeat in range(options.repeats):
        for ranks in options.ranks:
            rows.append(run(options, ranks, repeat))
            print(f"{ranks} ranks: {rows[-1]['step_ms']:.2f} ms a step, {rows[-1]['solve_ms']:.2f} ms of it solving", flush=True)
    if not options.weak and len({row["digest"] for row in rows}) != 1:
        sys.exit(f"the digests differ: {[(row['ranks'], row['digest']) for row in rows]}")
    kind = "weak" if options.weak else "strong"
    with open(out / f"{kind}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows([{key: row[key] for key in rows[0]} for row in rows])
    best, text = table(options, rows)
    (out / f"{kind}.md").write_text(text + "\n")
    print(text)
    print(f"numbers: {out / f'{kind}.csv'}, table: {out / f'{kind}.md'}")
    picture(options, best, out / f"{kind}.svg")


if __name__ == "__main__":
    main()
