"""Runs rules and pretrained policies over all flows of the networks that have one, and draws a picture of it.

python scripts/results_overview.py            # writes docs/results/overview.json and docs/pictures/travel_time.svg
python scripts/results_overview.py --draw     # the picture alone, from overview.json
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from statistics import mean, pstdev

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

from model import pretrained_policy
from model.evaluate import EvaluationRow, evaluate
from model.report.paper_table import PAPER_NETWORKS
from streetflow.networks.catalogue import find_network

NETWORKS = ("crossing", "arterial", *PAPER_NETWORKS)
RULES = ("FixedTime", "SOTL", "MaxPressure", "MaxQueue", "MaxCount", "EfficientPressure")
COLOURS = ("#d8dde5", "#c3cad5", "#a7b1c0", "#8f9bad", "#78869b", "#5d6b81", "#e8a33d", "#2f7d4f")
WIDTH = 0.11
DOCS = Path(__file__).resolve().parent.parent / "docs"


def main() -> None:
    rows = []
    for name in NETWORKS:
        network = find_network(name)
        flows = range(len(network.flow_files))
        for rule in RULES:
            rows += evaluate(network, rule, flows)
        for integer in (False, True):
            rows += evaluate(network, pretrained_policy(name), flows, integer=integer)
    (DOCS / "results" / "overview.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def draw() -> None:
    rows = [EvaluationRow(**row) for row in json.loads((DOCS / "results" / "overview.json").read_text())]
    labels = [*RULES, "TinyLight, float", "TinyLight, int8 as on the chip"]
    figure, axes = plt.subplots(figsize=(14, 4.5))
    for k, label in enumerate(labels):
        for n, name in enumerate(NETWORKS):
            times = [
                row.average_travel_time_s for row in rows if row.network == name and _label(row.agent, row.arithmetic) == label
            ]
            x = n + (k - (len(labels) - 1) / 2) * WIDTH
            axes.bar(
                x,
                mean(times),
                0.9 * WIDTH,
                yerr=pstdev(times),
                color=COLOURS[k],
                label=label if n == 0 else None,
                error_kw={"elinewidth": 1, "ecolor": "#333"},
            )
            axes.text(x, mean(times) + pstdev(times) + 6, f"{mean(times):.0f}", ha="center", fontsize=6, rotation=90)
            print(f"{name:10} {label:28} {mean(times):8.2f} ± {pstdev(times):.2f} s")
    axes.set_xticks(range(len(NETWORKS)), NETWORKS)
    axes.set_ylabel("average travel time [s]")
    axes.set_ylim(top=1.25 * axes.get_ylim()[1])  # for the legend
    axes.set_title("ten flows each, mean and deviation; TinyLight planned on flow 0", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    figure.tight_layout()
    matplotlib.rcParams["svg.hashsalt"] = "tinylight"
    figure.savefig(DOCS / "pictures" / "travel_time.svg", metadata={"Date": None})


def _label(agent: str, arithmetic: str) -> str:
    if arithmetic == "float":
        return "TinyLight, float"
    return "TinyLight, int8 as on the chip" if arithmetic == "integer" else agent


if __name__ == "__main__":
    if "--draw" not in sys.argv[1:]:
        main()
    draw()
