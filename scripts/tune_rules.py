"""Tunes the rules' parameters for each network, on its flow 0 alone: a grid for each rule, the least travel time wins.

python scripts/tune_rules.py                  # writes streetflow/control/tuned_rules.json and docs/results/tuned_rules.json
"""

import itertools
import json
import sys
from pathlib import Path

from model.report.paper_table import PAPER_NETWORKS
from streetflow.control.controllers import CONTROLLERS, run
from streetflow.control.environment import Environment
from streetflow.control.tuned import PARAMETERS_FILE, TUNABLE
from streetflow.files import write_whole

NETWORKS = ("crossing", "arterial", *PAPER_NETWORKS)
FLOW = 0
HELD_BACK = {"min_green_s": (0, 20, 40), "lead": (0, 1, 2, 4, 8)}
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {rule: HELD_BACK for rule in TUNABLE} | {
    "SOTL": {"min_elapsed_s": (10, 20, 40), "threshold": (0, 1, 2, 3, 5, 8, 12, 20)},
    "Actuated": {"min_green_s": (0, 20), "max_green_s": (40, 60, 80, 120), "few": (0, 1, 2, 4, 6), "zone": (1, 2, 4)},
    "Webster": {"lost_s": (1.0, 2.0, 5.0, 10.0), "max_cycle_s": (80, 100, 120, 180, 240)},
}
RESULTS_FILE = Path(__file__).resolve().parent.parent / "docs" / "results" / "tuned_rules.json"


def main() -> None:
    rows = [tune(network, rule) for network in NETWORKS for rule in TUNABLE]
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    made = {"command": "python scripts/tune_rules.py", "flow": FLOW, "grids": GRIDS}
    write_whole(RESULTS_FILE, f'{{\n "made": {json.dumps(made)},\n "rows": [\n  {lines}\n ]\n}}\n')
    by_network = {name: {row["rule"]: row["parameters"] for row in rows if row["network"] == name} for name in NETWORKS}
    entries = ",\n".join(f" {json.dumps(name)}: {json.dumps(own)}" for name, own in by_network.items())
    write_whole(PARAMETERS_FILE, f"{{\n{entries}\n}}\n")


def tune(network: str, rule: str) -> dict[str, object]:
    """The grid's best; what is nearest to the defaults wins among equals, since these run first."""
    default_s = travel_time_s(network, rule, {})
    best_s, best, tried = default_s, dict[str, float](), 1
    for values in itertools.product(*GRIDS[rule].values()):
        parameters = dict(zip(GRIDS[rule], values, strict=True))
        own_s, tried = travel_time_s(network, rule, parameters), tried + 1
        if own_s < best_s:
            best_s, best = own_s, parameters
    print(f"{network:10} {rule:18} {default_s:8.2f} s, tuned {best_s:8.2f} s {best}", file=sys.stderr)
    times = {"default_s": round(default_s, 3), "tuned_s": round(best_s, 3)}
    return {"network": network, "rule": rule, "parameters": best, "tried": tried} | times


def travel_time_s(network: str, rule: str, parameters: dict[str, float]) -> float:
    """Of flow 0 with its own seed."""
    controller = CONTROLLERS[rule](**parameters)
    environment = Environment(network, FLOW, features=controller.features)
    run(environment, controller)
    return environment.average_travel_time_s()


if __name__ == "__main__":
    main()
