"""README's table: each network's planned policy against the strongest rule there, rules tuned on flow 0 included.

python scripts/strongest_rules.py          # writes docs/results/strongest_rules.json and prints the table's rows
python scripts/strongest_rules.py --show   # prints the rows from that file and overview.json

Of the tuned rules (docs/results/tuned_rules.json) the three best on flow 0 run on all flows. The strongest rule is the one of
least mean on flows 1 to 9, among these and the rules of overview.json.
"""

import json
import sys
from pathlib import Path

import numpy as np

from model.evaluate import evaluate
from model.report.bootstrap import mean_interval
from streetflow.networks.catalogue import find_network

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results"
FILE = RESULTS / "strongest_rules.json"
TUNED = 3


def main() -> None:
    tuned = json.loads((RESULTS / "tuned_rules.json").read_text())["rows"]
    times: dict[str, dict[str, list[float]]] = {}
    for network in dict.fromkeys(row["network"] for row in tuned):
        best = sorted((row for row in tuned if row["network"] == network), key=lambda row: row["tuned_s"])[:TUNED]
        for rule in (f"{row['rule']}.tuned" for row in best):
            rows = evaluate(find_network(network), rule, range(10))
            times.setdefault(network, {})[rule] = [row.average_travel_time_s for row in rows]
    FILE.write_text(json.dumps(times, indent=1) + "\n")


def show() -> None:
    overview = json.loads((RESULTS / "overview.json").read_text())
    for network, tuned in json.loads(FILE.read_text()).items():
        times: dict[str, list[float]] = {}
        for row in overview:
            if row["network"] == network and row["arithmetic"] != "float":
                times.setdefault(row["agent"], []).append(row["average_travel_time_s"])
        policy = np.array(times.pop(f"{network}.json"))
        rules = {name: np.array(each) for name, each in (times | tuned).items()}
        strongest = min(rules, key=lambda name: rules[name][1:].mean())
        low = mean_interval(list((policy - rules[strongest])[1:]))
        paper = " | ".join(f"{rules[name][1:].mean():.2f}" for name in ("FixedTime", "MaxPressure"))
        unseen = f"**{policy[1:].mean():.2f} ± {policy[1:].std():.2f}**"
        difference = f"{low.mean:+.2f} ({low.low:+.2f} to {low.high:+.2f})"
        rule = f"{rules[strongest][1:].mean():.2f} {strongest}"
        print(f"| {network} | {paper} | {rule} | {unseen} | {difference} | {policy[0]:.2f} |")


if __name__ == "__main__":
    if "--show" not in sys.argv[1:]:
        main()
    show()
