"""The README's picture of the paper's Table 1: its rows, and ours as decided by the chip.

python scripts/table_figure.py --on-chip docs/results/on_chip.json --out docs/pictures/table1.svg
"""

import argparse
import json
from pathlib import Path
from statistics import mean, pstdev

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from model.report.paper_table import PAPER_NETWORKS, paper_models

GREY, PAPER, OURS = "#9aa5b4", "#e8a33d", "#2f7d4f"
MODELS = ("FixedTime", "SOTL", "MaxPressure", "EcoLight", "TLRP", "FRAP", "MPLight", "CoLight", "TinyLight")


def main() -> None:
    parser = argparse.ArgumentParser(description="The paper's Table 1 and ours, as a picture.")
    parser.add_argument("--on-chip", type=Path, required=True, metavar="JSON", help="made by scripts/on_chip.py")
    parser.add_argument("--out", type=Path, required=True, metavar="SVG")
    arguments = parser.parse_args()
    runs = json.loads(arguments.on_chip.read_text())["runs"]
    figure, grid = plt.subplots(2, 3, figsize=(10.5, 5.4), sharey=True)
    for axes, name in zip(grid.flat, PAPER_NETWORKS, strict=True):
        draw(axes, name, [run["average_travel_time_s"] for run in runs if run["network"] == name])
    figure.supxlabel("average travel time [s], mean ± standard deviation over ten runs: less is better", fontsize=9)
    figure.tight_layout()
    matplotlib.rcParams["svg.hashsalt"] = "tinylight"
    figure.savefig(arguments.out, metadata={"Date": None})


def draw(axes: Axes, name: str, ours: list[float]) -> None:
    """One network: a line for each row of the paper's table, and ours below."""
    papers = paper_models(name)
    for y, model in enumerate(MODELS):
        colour = PAPER if model == "TinyLight" else GREY
        if model in papers:
            time = papers[model].travel_time_s
            axes.errorbar(time.mean, y, xerr=time.deviation, fmt="o", ms=4.5, color=colour, elinewidth=1)
    if ours:
        time_s, deviation_s, row = mean(ours), pstdev(ours), len(MODELS)
        axes.axvline(time_s, color=OURS, lw=0.7, ls=":")
        axes.plot(time_s, row, "D", ms=3.5, color=OURS)
        # Under the marker, since the deviation is often less than the marker's width.
        axes.errorbar(time_s, row + 0.45, xerr=deviation_s, fmt="none", color=OURS, elinewidth=1.4, capsize=3, capthick=1.4)
        text = f"{time_s:.2f} ± {deviation_s:.2f} s"
        axes.annotate(text, (time_s + deviation_s, row), (8, -5), textcoords="offset points", color=OURS, fontsize=8)
    axes.set_yticks(range(len(MODELS) + 1), [*MODELS[:-1], "TinyLight (paper)", "ours, on the chip"], fontsize=8)
    axes.set_ylim(len(MODELS) + 0.9, -0.7)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlim(left=0)
    axes.set_title(name, fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
