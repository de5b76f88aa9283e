#!/usr/bin/env python3
"""The tamping unit of inputs/tamping/machine.toml with its dimensions: docs/pictures/tamping-unit.png.

    .venv/bin/python jobs/tamping-drawing.py

Lengths are read from the parameters of the two included files, so that the drawing shows what is simulated.
"""
import pathlib
import tomllib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Circle, Polygon, Rectangle

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEEL, TOOL, STONE, CONCRETE = "#5b6770", "#b5651d", "#d9cdb8", "#a8a8a0"


def parameters():
    numbers = {}
    for name in ("ballast.include.toml", "machine.toml"):
        with open(ROOT / "inputs/tamping" / name, "rb") as file:
            numbers |= tomllib.load(file)["parameters"]
    return numbers


def main():
    p = parameters()
    hinge, lower, upper, axle = p["hinge_x"], p["lower"], p["upper"], p["axle_z"]
    z = p["ballast_top"] + p["clearance"] + lower
    figure, axes = plt.subplots(figsize=(9, 9.5), layout="constrained")
    box(axes, 0, p["ballast_top"] / 2, p["length"], p["ballast_top"], STONE)
    box(axes, 0, p["sleeper_bottom"] + p["sleeper_height"] / 2, p["sleeper_width"], p["sleeper_height"], CONCRETE)
    axes.text(0, p["sleeper_bottom"] + p["sleeper_height"] / 2, "sleeper", ha="center", va="center")
    box(axes, 0, z + 0.3, 0.7, 0.06, STEEL)
    axes.text(0, z + 0.3, "support, 50 kg", color="white", ha="center", va="center", fontsize=9)
    for x in (-p["spring_x"], p["spring_x"]):
        spring(axes, x, z + 0.03, z + 0.27)
    box(axes, 0, z, 2 * hinge + 0.08, 0.05, STEEL)
    axes.text(-0.13, z, "chassis, 20 kg", color="white", ha="center", va="center", fontsize=8)
    axes.add_patch(Circle((0, z + axle), 0.1, fill=False, color=STEEL, linewidth=2))
    axes.plot([0], [z + axle], "o", color=STEEL, markersize=4)
    axes.plot([0.02], [z + axle], "o", color="tab:red", markersize=6)
    axes.text(0, z + axle + 0.045, "flywheel, 15 kg,\n20 mm out of balance", fontsize=8, ha="center", va="center")
    for x, sign in ((-hinge, -1), (hinge, 1)):
        box(axes, x, z + (upper - lower + 0.1) / 2, 0.02, lower + upper - 0.1, TOOL)
        tip = z - lower
        blade = [(x - 0.01, tip + 0.1), (x + 0.01, tip + 0.1), (x + 0.01, tip + 0.04), (x + 0.002, tip), (x - 0.002, tip), (x - 0.01, tip + 0.04)]
        axes.add_patch(Polygon(blade, color=TOOL))
        axes.plot([x], [z], "o", color="white", markeredgecolor="black", markersize=7)
        axes.text(x + sign * 0.03, z - 0.3, "arm, 15 kg", rotation=90, ha="center", va="center", fontsize=9)
    box(axes, -hinge + 0.14, z + upper, 0.28, 0.05, STEEL)
    box(axes, hinge - 0.15, z + upper, 0.3, 0.025, "#8a98a3")
    axes.text(-hinge + 0.14, z + upper + 0.045, "barrel, 3 kg", ha="center", fontsize=8)
    axes.text(hinge - 0.12, z + upper + 0.045, "rod, 2 kg", ha="center", fontsize=8)
    axes.plot([-hinge, hinge], [z + 0.12, z - 0.12], color="#333333", linewidth=3)
    axes.text(0.06, z - 0.09, "link, 3 kg", fontsize=8)
    for point in ((-hinge, z + upper), (hinge, z + upper), (-hinge, z + 0.12), (hinge, z - 0.12)):
        axes.plot(*point, "o", color="white", markeredgecolor="black", markersize=6)
    measure(axes, (-0.55, z - lower), (-0.55, z), f"{lower * 1e3:.0f}")
    measure(axes, (-0.55, z), (-0.55, z + upper), f"{upper * 1e3:.0f}")
    measure(axes, (-hinge, z + upper + 0.13), (hinge, z + upper + 0.13), f"{2e3 * hinge:.0f}")
    measure(axes, (0.45, z), (0.45, z + axle), f"{axle * 1e3:.0f}")
    measure(axes, (0.52, z - 0.12), (0.52, z + 0.12), "2 x 120")
    measure(axes, (0.58, 0), (0.58, p["ballast_top"]), f"{p['ballast_top'] * 1e3:.0f}")
    measure(axes, (0.2, 0), (0.2, p["sleeper_bottom"]), f"{p['sleeper_bottom'] * 1e3:.0f}")
    measure(axes, (-p["sleeper_width"] / 2, 0.56), (p["sleeper_width"] / 2, 0.56), f"{p['sleeper_width'] * 1e3:.0f}")
    measure(axes, (-p["length"] / 2, -0.06), (p["length"] / 2, -0.06), f"{p['length'] * 1e3:.0f} (and {p['width'] * 1e3:.0f} across)")
    axes.set(xlim=(-0.75, 0.75), ylim=(-0.12, z + upper + 0.2), aspect="equal")
    axes.axis("off")
    axes.set_title("The tamping unit at its start; lengths in mm, blades 80 wide and 20 thick")
    path = ROOT / "docs/pictures/tamping-unit.png"
    figure.savefig(path, dpi=80)
    print("picture:", path)


def box(axes, x, z, width, height, colour):
    axes.add_patch(Rectangle((x - width / 2, z - height / 2), width, height, color=colour))


def spring(axes, x, low, high):
    heights = [low + (high - low) * k / 12 for k in range(13)]
    shifts = [0] + [0.015 * (-1) ** k for k in range(11)] + [0]
    axes.plot([x + shift for shift in shifts], heights, color="#333333", linewidth=1)


def measure(axes, start, end, text):
    axes.annotate("", start, end, arrowprops={"arrowstyle": "<->", "color": "tab:blue"})
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    upright = start[0] == end[0]
    axes.text(middle[0] + (0.012 if upright else 0), middle[1] + (0 if upright else 0.012), text, color="tab:blue", fontsize=9,
              ha="left" if upright else "center", va="center" if upright else "bottom")


if __name__ == "__main__":
    main()
