"""What a decision's cycles and the flash buy: policies with smaller weights, and with fewer.

python scripts/pareto.py [NETWORK ...]   # writes docs/results/pareto.json; goes on where it was stopped
python scripts/pareto.py --measure       # measures the policies in build/pareto again, after a change of the kernel
python scripts/pareto.py --show          # prints the table and draws docs/pictures/pareto.svg from that file

Each policy is distilled on flow 0 with one seed, runs in integers on all flows, and decides on the emulated chip: all
decisions of flow 0 and all inputs of the sweep. All have the same narrower layers to choose from, so that the smallest fits,
and drop what is silent. Up to a limit of 31 sums are narrow and multipliers powers of two as well.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from hil.loop.job import Job, run_job
from model.planning.settings import PlanConfig
from model.policy.file import save_policy
from model.report.cost_figure import STYLE
from model.train.planned_policy import PlannedSettings, plan_policy
from streetflow.files import write_whole, written_aside
from streetflow.networks.catalogue import find_network

ROOT = Path(__file__).resolve().parent.parent
FILE, PICTURE = ROOT / "docs" / "results" / "pareto.json", ROOT / "docs" / "pictures" / "pareto.svg"
POLICIES = ROOT / "build" / "pareto"
FEATURES = {"Hangzhou1": "all", "crossing": "deployable"}
LIMITS, WEIGHTS = (7, 15, 31, 63, 127), (250, 500, 1001)
NARROW_LIMIT = 31
DIMS = (4, 8, 12, 16, 20, 24)
COLOURS = ("#56B4E9", "#0072B2", "#009E73", "#E69F00", "#D55E00")
MARKERS = ("v", "s", "o")
TICKS_S = (100, 150, 200, 300, 400)


def main(networks: list[str], *, measure_again: bool) -> None:
    rows: list[dict[str, Any]] = json.loads(FILE.read_text()) if FILE.is_file() else []
    for network in networks:
        for weights in reversed(WEIGHTS):
            for limit in LIMITS:
                case = {"network": network, "weight_limit": limit, "max_parameters": weights}
                row = next((row for row in rows if case.items() <= row.items()), None)
                if measure_again and row is not None:
                    row |= _measured(**case)
                elif not measure_again and row is None:
                    rows.append(case | _made(**case) | _measured(**case))
                else:
                    continue
                write_whole(FILE, (json.dumps(rows, indent=1) + "\n").encode())
                print(row or rows[-1], flush=True)


def _made(network: str, weight_limit: int, max_parameters: int) -> dict[str, Any]:
    """Trains a policy, keeps it, and says what it achieves."""
    is_narrow = weight_limit <= NARROW_LIMIT
    config = PlanConfig(
        max_parameters=max_parameters,
        weight_limit=weight_limit,
        shifts_only=is_narrow,
        narrow_sums=is_narrow,
        drop_silent=True,
        layer2_dims=DIMS,
        layer3_dims=DIMS,
    )
    policy = plan_policy(find_network(network), 0, 0, PlannedSettings(FEATURES[network], config=config))
    save_policy(policy, _file(network, weight_limit, max_parameters))
    (part,) = policy.intersections
    return {
        "parameters": part.n_parameters,
        "hidden": part.hidden,
        "times_s": [each.integer_average_travel_time_s for each in policy.measured],
    }


def _measured(network: str, weight_limit: int, max_parameters: int) -> dict[str, Any]:
    """The largest decision on the emulated chip, and the flash."""
    figures: dict[str, Any] = dict(run_job(Job.named(network, 0, _file(network, weight_limit, max_parameters))).figures)
    return {
        "cycles_traffic": int(figures["latency"]["compute_cycles"]["max"]),
        "cycles_sweep": int(figures["sweep"]["largest_compute_cycles"]),
        "flash_bytes": int(figures["footprint"]["flash_bytes"]),
    }


def _file(network: str, weight_limit: int, max_parameters: int) -> Path:
    return POLICIES / f"{network}_{weight_limit}_{max_parameters}.json"


def show() -> None:
    rows = json.loads(FILE.read_text())
    print("| network | weights at most | weight limit | largest decision, cycles | flash B | flow 0, s | flows 1 to 9, s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in sorted(rows, key=lambda row: (row["network"], row["max_parameters"], row["weight_limit"])):
        own_s, *others_s = row["times_s"]
        cells = f"{_cycles(row):,} | {row['flash_bytes']:,} | {own_s:.2f} | {np.mean(others_s):.2f}"
        print(f"| {row['network']} | {row['max_parameters']:,} | {row['weight_limit']} | {cells} |")
    _draw(rows)


def _cycles(row: dict[str, Any]) -> int:
    return max(row["cycles_traffic"], row["cycles_sweep"])


def _draw(rows: list[dict[str, Any]]) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    networks = list(dict.fromkeys(row["network"] for row in rows))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10.2, 3.0 * len(networks)))
        panels = np.atleast_2d(figure.subplots(len(networks), 2, sharey="row"))
        for line, network in zip(panels, networks, strict=True):
            own = [row for row in rows if row["network"] == network]
            times_s = [float(np.mean(row["times_s"][1:])) for row in own]
            for axes, label in zip(line, ("largest decision, cycles", "flash, B"), strict=True):
                sizes = [_cycles(row) if "cycles" in label else row["flash_bytes"] for row in own]
                points = list(zip(sizes, times_s, strict=True))
                front = [p for p in sorted(points) if all(p[1] < q[1] for q in points if q[0] <= p[0] and q != p)]
                axes.plot(*zip(*front, strict=True), color="#BFBFBF", linewidth=1, drawstyle="steps-post")
                for row, point in zip(own, points, strict=True):
                    colour, marker = COLOURS[LIMITS.index(row["weight_limit"])], MARKERS[WEIGHTS.index(row["max_parameters"])]
                    axes.plot(*point, marker, color=colour, markersize=6)
                if max(times_s) > 2 * min(times_s):
                    axes.set_yscale("log")
                    axes.set_yticks(TICKS_S, TICKS_S)
                    axes.minorticks_off()
                axes.xaxis.set_major_formatter("{x:,.0f}")
                axes.set_xlabel(label)
                axes.grid(color="#E5E5E5")
                axes.set_axisbelow(True)
            line[0].set_title(network, loc="left", weight="bold")
            line[0].set_ylabel("s, flows 1 to 9")
        _legend(panels[0][1])
        figure.tight_layout()
        with written_aside(PICTURE) as aside:
            figure.savefig(aside, format="svg", metadata={"Date": None})


def _legend(axes: Any) -> None:
    for limit, colour in zip(LIMITS, COLOURS, strict=True):
        axes.plot([], [], "o", color=colour, label=f"weights up to ±{limit}")
    for weights, marker in zip(WEIGHTS, MARKERS, strict=True):
        axes.plot([], [], marker, color="#7F7F7F", label=f"at most {weights:,} weights")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


if __name__ == "__main__":
    options = [each for each in sys.argv[1:] if each.startswith("--")]
    if "--show" not in options:
        names = [each for each in sys.argv[1:] if each not in options]
        main(names or list(FEATURES), measure_again="--measure" in options)
    show()
