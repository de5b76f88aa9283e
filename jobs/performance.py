#!/usr/bin/env python3
"""Everything that docs/performance.md says about speed, measured on this machine in one go: tables and a picture.

Runs that are compared take turns, and the fastest of each counts: machines are shared, and get slower and faster meanwhile.

  make bench                          # all of it, some twenty-five minutes
  jobs/performance.py sweep scaling   # parts: sweep, residual, cases, rest, scaling, rapier
"""
import json
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "out/performance"
BRECCIA = str(ROOT / "target/release/breccia")
PARTS = ["sweep", "residual", "cases", "rest", "scaling", "rapier"]
# With so many steps.
CASES = {
    "ballast-box": 3000,
    "column-collapse": 1500,
    "light-tool": 1500,
    "mixed-spheres": 1500,
    "plough": 1200,
    "rotating-drum": 1500,
    "scaling": 400,
    "scoop": 3000,
    "stones1000": 1500,
    "stones1000-settled": 900,
    "tamper": 3000,
}
REPEATS = 3


def call(command, **environment):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **environment)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def run(case, out, steps, ranks=1, threads=1, settings=(), restart=None):
    """One run; milliseconds a step, without output, by phase, and its digest."""
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), BRECCIA, "run", case, "--out", str(out), "--overwrite"]
    command += ["--steps", str(steps), "--threads", str(threads)]
    command += [word for setting in settings for word in ("--set", setting)]
    first = 0
    if restart:
        command += ["--restart", str(restart)]
        found = json.loads(call([BRECCIA, "info", "--json", str(restart)]))
        found = found[0] if isinstance(found, list) else found
        first = int(found["facts"]["step"])
    call(command)
    summary = json.load(open(pathlib.Path(out) / "summary.json"))
    steps -= first
    phases = {phase["name"]: 1e3 * phase["max"] / steps for phase in summary["phases"]}
    return {
        "step": 1e3 * summary["seconds_steps"] / steps,
        "points": summary["contact_points"]["mean"],
        "digest": summary["digest"],
        "phases": phases,
        "sweeps": summary["sweeps"]["mean"],
        "missed": summary["not_converged"],
        "left": summary["residual"]["max"],
    }


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def machine():
    words = dict(line.split(":", 1) for line in call(["lscpu"]).splitlines() if ":" in line)
    name, cores, cache = (words.get(key, "?").strip() for key in ("Model name", "CPU(s)", "L2 cache"))
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) / 2**20
    return f"{cores} cores of {name}, L2 {cache}, {memory:.0f} GiB, {platform.system()} {platform.release()}"


def sweep():
    """The sweep on one thread and on all, by size of the problem; the bandwidth of a plain copy beside it."""
    if not (OUT / "rest/final.h5").exists():
        rest()
    five = OUT / "five-thousand"
    run("benches/cases/side-by-side.toml", five, 20, settings=["parameters.columns=5", "parameters.rows=1", "start.copies=[5, 1]"])
    found, copy, labels = {}, 0.0, {}
    pattern = r"Projected, (\d+) points.*?: ([\d.]+) ns a point and sweep \((\d+) bytes a point.*measuring [\d.]+ \(scaled\) and ([\d.]+)"
    for _ in range(REPEATS):
        for threads in (1, os.cpu_count()):
            text = call(["cargo", "bench", "--quiet", "--bench", "sweep", "--", "speed", str(five / "final.h5")], RAYON_NUM_THREADS=str(threads))
            stones, points = re.search(r"final.h5: (\d+) stones\n.*?, (\d+) points", text).groups()
            labels[int(points)] = f" ({int(stones):,} stones in one box)"
            copy = max(copy, float(re.search(r"copying memory: ([\d.]+)", text).group(1)))
            for points, time, bytes_moved, measuring in re.findall(pattern, text):
                key = (int(points), threads)
                best = found.setdefault(key, [float(time), int(bytes_moved), float(measuring)])
                best[0], best[2] = min(best[0], float(time)), min(best[2], float(measuring))
    rows = []
    for points in sorted({points for points, _ in found}):
        (one, moved, measuring), many = found[points, 1], found[points, os.cpu_count()][0]
        rows.append([f"{points:,}{labels.get(points, '')}", one, f"{moved / one:.1f}", f"{100 * moved / one / copy:.0f} %", many, f"{one / many:.2f}", measuring])
    head = ["contact points", "ns a point and sweep", "GB/s", "of a plain copy", f"{os.cpu_count()} threads, ns", "speed-up", "measuring the residual, ns"]
    narrow = call(["cargo", "bench", "--quiet", "--bench", "sweep", "--", "speed", "avx2"], RAYON_NUM_THREADS="1") if "avx2" in open("/proc/cpuinfo").read() else ""
    narrow = "; ".join(f"{int(points):,} points {time} ns" for points, time, *_ in re.findall(pattern, narrow))
    orders = {order: [] for order in ("in rows", "anywhere", "anywhere, by place")}
    for threads in (1, os.cpu_count()):
        found_orders = call(["cargo", "bench", "--quiet", "--bench", "sweep", "--", "order"], RAYON_NUM_THREADS=str(threads))
        for order, time in re.findall(r"bodies (.*):\n.*?: ([\d.]+) ns", found_orders):
            orders[order].append(time)
    order_table = table(["bodies stand", "1 thread, ns", f"{os.cpu_count()} threads, ns"], [[order, *times] for order, times in orders.items()])
    text = table(head, rows) + f"\n\nBy AVX2, one thread: {narrow}.\n\n3,081,600 points:\n\n{order_table}\n\nA plain copy of 256 MB moves {copy:.1f} GB/s, read and written together.\n"
    return text, {"points": [p for p, t in sorted(found) if t == 1], "found": {f"{p} {t}": v[0] for (p, t), v in found.items()}}


def residual():
    """Sweeps and time to a residual: as the bench prints them."""
    text = call(["cargo", "bench", "--quiet", "--bench", "sweep", "--", "residual"], RAYON_NUM_THREADS="1")
    entry = r"(\w+) (\d+) sweeps, ([\d.]+) ms(?: \((\d+ of \d+) reached, worst (\S+)\))?;"
    lines, times = {"Scaled": [], "Fclib": []}, []
    cold, warm = text.split("steps of a run")
    found = [(words, where) for words, where in ((cold, ""), (warm, ", warm"))]
    found = [(name + where, *more) for words, where in found for name, *more in re.findall(r"(.*), (\d+) points, (\w+), to (\S+):(.*)", words)]
    for name, points, measure, tolerance, rest in found:
        (_, *plain), (_, *momentum) = re.findall(entry, rest)
        cell = lambda sweeps, time, reached, left: f"{sweeps}, {time}" + (f" ({reached} get there, {left} left)" if reached else "")
        ratio = float(plain[1]) / float(momentum[1])
        sign = "> " if plain[2] and not momentum[2] else ""
        ratio = "" if momentum[2] else f"{sign}{ratio:.1f}"
        lines[measure].append([name, f"{int(points):,}", tolerance, cell(*plain), cell(*momentum), ratio])
        if measure == "Scaled" and tolerance != "1e-2":
            times.append([name, tolerance, float(plain[1]), float(momentum[1])])
    head = ["problem", "points", "to", "plain: sweeps, ms", "momentum: sweeps, ms", "plain / momentum, time"]
    return "\n\n".join(f"Measure: {measure.lower()}.\n\n{table(head, rows)}" for measure, rows in lines.items()) + "\n", times


def cases():
    """Shipped cases from their start, with and without momentum: the solve of all steps."""
    rows = []
    for case, steps in CASES.items():
        found = {"none": [], "momentum": []}
        for _ in range(2):
            for way, runs in found.items():
                runs.append(run(f"inputs/{case}.toml", OUT / f"case-{way}", steps, settings=[f"solver.acceleration={way}"]))
        plain, momentum = (min(runs, key=lambda one: one["phases"]["solve"]) for runs in found.values())
        cells = [f"{one['sweeps']:.1f}, {one['phases']['solve']:.3f}" for one in (plain, momentum)]
        ratio = plain["phases"]["solve"] / momentum["phases"]["solve"]
        missed = [f"{one['missed']} ({one['left']:.1e})" if one["missed"] else "0" for one in (plain, momentum)]
        rows.append([f"`{case}`", steps, f"{momentum['points']:,.0f}", *cells, f"{ratio:.2f}", *missed])
    head = ["case", "steps", "points", "plain: sweeps, ms a step", "momentum", "plain / momentum, time", "plain: steps that miss the tolerance (residual at most)", "momentum"]
    return table(head, rows) + "\n", rows


def rest():
    """A pile that has come to rest, step by step on one thread; makes the start of `scaling`."""
    start = OUT / "rest/final.h5"
    run("inputs/stones1000-settled.toml", OUT / "rest", 1500)
    best = min((run("inputs/stones1000-settled.toml", OUT / "at-rest", 2000, restart=start) for _ in range(REPEATS)), key=lambda found: found["step"])
    rows = [[name, f"{time:.2f}", f"{100 * time / best['step']:.0f} %"] for name, time in best["phases"].items() if time > 0.005 and name != "output"]
    rows.append(["whole step", f"{best['step']:.2f}", ""])
    return table(["phase", "ms a step", "share"], rows) + "\n", best["phases"]


def scaling():
    """The same stones on more threads and ranks, and as many more stones."""
    if not (OUT / "rest/final.h5").exists():
        rest()
    cores = os.cpu_count()
    ways = [(1, 1), (1, cores), (cores, 1)]
    lists = {"strong": {way: (6, 2) for way in ways}, "weak": {way: (6, way[0] * way[1]) for way in ways}}
    text, numbers = "", {}
    for kind, sizes in lists.items():
        found = {}
        # A first few steps, so that what follows knows where contacts are and shares space accordingly.
        for columns, rows in set(sizes.values()):
            settings = [f"parameters.columns={columns}", f"parameters.rows={rows}", f"start.copies=[{columns}, {rows}]"]
            run("benches/cases/side-by-side.toml", OUT / f"start-{columns}x{rows}", 10, 1, cores, settings)
        for _ in range(REPEATS):
            for (ranks, threads), (columns, rows) in sizes.items():
                settings = [f"parameters.columns={columns}", f"parameters.rows={rows}", f"start.copies=[{columns}, {rows}]"]
                out = OUT / f"{kind}-{ranks}x{threads}"
                start = OUT / f"start-{columns}x{rows}/final.h5"
                one = run("benches/cases/side-by-side.toml", out, 30, ranks, threads, settings, start)
                found.setdefault((ranks, threads), []).append(one)
        digests = {one["digest"] for runs in found.values() for one in runs}
        if kind == "strong" and len(digests) != 1:
            sys.exit(f"the digests differ: {digests}")
        of_each = (lambda one: one["step"], lambda one: one["phases"]["solve"])
        least = {way: [min(map(of, runs)) for of in of_each] for way, runs in found.items()}
        rows = []
        for (ranks, threads), (whole, solve) in least.items():
            grown = ranks * threads if kind == "weak" else 1
            points = found[ranks, threads][0]["points"]
            first = least[1, 1]
            rows.append([ranks, threads, f"{points:,.0f}", f"{whole:.0f}", f"{grown * first[0] / whole:.2f}", f"{solve:.0f}", f"{grown * first[1] / solve:.2f}"])
        numbers[kind] = {f"{ranks} x {threads}": values for (ranks, threads), values in least.items()}
        head = ["ranks", "threads", "contact points", "step, ms", "speed-up", "solve, ms", "speed-up"]
        text += f"{kind.capitalize()}:\n\n{table(head, rows)}\n\n"
    return text, numbers


def rapier():
    """The settled stones in rapier, side by side, as rapier is set and with stiffer contacts."""
    folder = str(ROOT / "benches/rapier")
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=folder, check=True)
    text, numbers = "", {}
    for name, frequency in (("rapier as it is set", "30"), ("rapier with contacts of 2 kHz", "2000")):
        said = call([f"{folder}/target/release/side-by-side", "1000"], RAPIER_FREQUENCY=frequency)
        numbers[name] = dict(re.findall(r"(breccia|rapier) +[\d.]+ +([\d.]+)", said))
        text += f"{name}:\n\n```text\n{said}```\n\n"
    return text, numbers


def picture(results, path):
    try:
        import matplotlib
    except ImportError:
        print("no matplotlib here, so no picture (make setup installs it with VTK)")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(10, 7), constrained_layout=True)
    if "sweep" in results:
        axis, numbers = axes[0][0], results["sweep"]
        for threads in (1, os.cpu_count()):
            times = [numbers["found"][f"{points} {threads}"] for points in numbers["points"]]
            axis.semilogx(numbers["points"], times, "o-", label=f"{threads} thread{'s' if threads > 1 else ''}")
        axis.set(title="The sweep", xlabel="contact points", ylabel="ns a point and sweep", ylim=(0, None))
        axis.legend(frameon=False)
    if "residual" in results:
        axis, rows = axes[0][1], results["residual"]
        places = range(len(rows))
        axis.barh([k + 0.2 for k in places], [row[2] for row in rows], 0.4, label="plain")
        axis.barh([k - 0.2 for k in places], [row[3] for row in rows], 0.4, label="momentum")
        axis.set(title="Time to a residual, scaled measure", xlabel="ms", xscale="log", yticks=list(places))
        axis.set_yticklabels([f"{row[0]}, {row[1]}" for row in rows], fontsize=6)
        axis.invert_yaxis()
        axis.set_xlim(right=50 * max(row[2] for row in rows))
        axis.legend(frameon=False, loc="upper right", fontsize=8)
    if "scaling" in results:
        axis, width = axes[1][0], 0.35
        for place, (kind, numbers) in enumerate(results["scaling"].items()):
            ways = list(numbers)
            grown = [1 if kind == "strong" else eval(way.replace("x", "*")) for way in ways]
            speed = [grow * numbers[ways[0]][1] / numbers[way][1] for way, grow in zip(ways, grown)]
            axis.bar([k + (place - 0.5) * width for k in range(len(ways))], speed, width, label=f"{kind}, solve")
        axis.set(title="Ranks x threads", ylabel="speed-up", xticks=range(len(ways)))
        axis.set_xticklabels(ways)
        axis.set_ylim(0, 1.3 * axis.get_ylim()[1])
        axis.legend(frameon=False, loc="upper left")
    if "rapier" in results:
        axis = axes[1][1]
        for place, (name, times) in enumerate(results["rapier"].items()):
            for k, program in enumerate(("breccia", "rapier")):
                axis.bar(place + (k - 0.5) * 0.35, float(times[program]), 0.35, color=f"C{k}", label=program if place == 0 else None)
        axis.set(title="stones1000, beside rapier3d", ylabel="ms a step, median", xticks=range(len(results["rapier"])))
        axis.set_xticklabels(results["rapier"], fontsize=7)
        axis.set_ylim(0, 1.3 * axis.get_ylim()[1])
        axis.legend(frameon=False, loc="upper left")
    figure.savefig(path)
    print(f"picture: {path}")


def main():
    parts = sys.argv[1:] or PARTS
    if unknown := [part for part in parts if part not in PARTS]:
        sys.exit(f"no such part: {' '.join(unknown)}; there are {', '.join(PARTS)}")
    OUT.mkdir(parents=True, exist_ok=True)
    pages, results = [f"Measured on {machine()}.\n"], {}
    for part in parts:
        text, results[part] = globals()[part]()
        pages.append(f"## {part}\n\n{globals()[part].__doc__}\n\n{text}")
        print(pages[-1], flush=True)
    before = OUT / "performance.json"
    results = {**(json.loads(before.read_text()) if before.exists() else {}), **results}
    (OUT / "performance.md").write_text("\n".join(pages))
    before.write_text(json.dumps(results, indent=1))
    print(f"tables: {OUT / 'performance.md'}")
    picture(results, OUT / "performance.svg")


if __name__ == "__main__":
    main()
