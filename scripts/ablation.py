"""What features and weights are worth: policies of fewer features to search, or of other limits, each with two seeds.

python scripts/ablation.py [NETWORK ...]   # writes docs/results/ablation.json; goes on where it was stopped
python scripts/ablation.py --show          # prints the table and draws docs/pictures/ablation.svg from that file

Each policy is distilled on flow 0 and runs, in integers, on all ten flows. All have the same narrower layers to choose from,
so that the smallest fits. The intervals are of the mean over seeds of the flows 1 to 9, paired with the strongest rule.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from model.planning.settings import PlanConfig
from model.report.bootstrap import Interval, mean_interval
from model.report.cost_figure import STYLE
from model.train.planned_policy import PlannedSettings, plan_policy
from streetflow.files import write_whole, written_aside
from streetflow.networks.catalogue import find_network

DOCS = Path(__file__).resolve().parent.parent / "docs"
FILE, PICTURE = DOCS / "results" / "ablation.json", DOCS / "pictures" / "ablation.svg"
NETWORKS, SEEDS = ("crossing", "Hangzhou1", "Hangzhou2"), (0, 1)
CASES = {  # features to search, weights at most
    "release, 11 features": ("release", 1001),
    "deployable, 13": ("deployable", 1001),
    "all 37, 250 weights": ("all", 250),
    "all 37, 500 weights": ("all", 500),
    "all 37, 1,001 weights": ("all", 1001),
    "all 37, 2,000 weights": ("all", 2000),
}
DIMS = (4, 8, 12, 16, 20, 24)


def main(networks: list[str]) -> None:
    rows = json.loads(FILE.read_text()) if FILE.is_file() else []
    done = {(row["network"], row["case"], row["seed"]) for row in rows}
    for network in networks:
        for seed in SEEDS:
            for case in CASES:
                if (network, case, seed) not in done:
                    rows.append(_row(network, case, seed))
                    write_whole(FILE, (json.dumps(rows, indent=1) + "\n").encode())
                    print(network, case, f"seed {seed}: {np.mean(rows[-1]['times_s'][1:]):.2f} s", flush=True)


def _row(network: str, case: str, seed: int) -> dict[str, Any]:
    features, most = CASES[case]
    config = PlanConfig(max_parameters=most, layer2_dims=DIMS, layer3_dims=DIMS)
    policy = plan_policy(find_network(network), 0, seed, PlannedSettings(features, config=config))
    times_s = [each.integer_average_travel_time_s for each in policy.measured]
    kept = [[feature.name for feature in part.features] for part in policy.intersections]
    return {"network": network, "case": case, "seed": seed, "kept": kept, "times_s": times_s}


def intervals(rows: list[dict[str, Any]], network: str) -> tuple[dict[str, Interval], dict[str, Interval]]:
    """By case: mean travel time on flows never seen, and its difference to the strongest rule, in s."""
    rule_s = _strongest_rule_s(network)
    means, differences = {}, {}
    for case in CASES:
        runs = np.array([row["times_s"][1:] for row in rows if (row["network"], row["case"]) == (network, case)])
        means[case] = mean_interval(list(runs.mean(axis=0)))
        differences[case] = mean_interval(list(runs.mean(axis=0) - rule_s))
    return means, differences


def _strongest_rule_s(network: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Travel times on flows 1 to 9, as README's table has them."""
    overview = json.loads((DOCS / "results" / "overview.json").read_text())
    times: dict[str, list[float]] = dict(json.loads((DOCS / "results" / "strongest_rules.json").read_text())[network])
    for row in overview:
        if row["network"] == network and row["arithmetic"] == "":
            times.setdefault(row["agent"], []).append(row["average_travel_time_s"])
    return min((np.array(each[1:]) for each in times.values()), key=lambda each: float(each.mean()))


def show() -> None:
    rows = json.loads(FILE.read_text())
    networks = list(dict.fromkeys(row["network"] for row in rows))
    print("| | " + " | ".join(f"{network}, s | minus the strongest rule" for network in networks) + " |")
    print("| --- |" + " ---: | ---: |" * len(networks))
    found = {network: intervals(rows, network) for network in networks}
    for case in CASES:
        cells = []
        for means, differences in found.values():
            mean = means[case]
            cells += [f"{mean.mean:.2f} ({mean.low:.2f} to {mean.high:.2f})", str(differences[case])]
        print(f"| {case} | " + " | ".join(cells) + " |")
    _draw({network: differences for network, (_, differences) in found.items()})


def _draw(found: dict[str, dict[str, Interval]]) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(3.0 * len(found) + 1.8, 3.1))
        panels = np.atleast_1d(figure.subplots(1, len(found), sharey=True))
        for axes, (network, by_case) in zip(panels, found.items(), strict=True):
            for place, interval in enumerate(by_case.values()):
                axes.plot([interval.low, interval.high], [place, place], color="#0072B2", linewidth=2)
                axes.plot(interval.mean, place, "o", color="#0072B2")
            axes.axvline(0, color="#7F7F7F", linewidth=1)
            axes.set_title(network, loc="left", weight="bold")
            axes.set_xlabel("s more than the strongest rule")
            axes.set_yticks(range(len(CASES)), list(CASES))
            axes.grid(axis="x", color="#E5E5E5")
            axes.set_axisbelow(True)
        panels[0].invert_yaxis()
        figure.tight_layout()
        with written_aside(PICTURE) as aside:
            figure.savefig(aside, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    if "--show" not in sys.argv[1:]:
        main(sys.argv[1:] or list(NETWORKS))
    show()
