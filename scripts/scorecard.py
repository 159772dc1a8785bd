"""The scorecard of all pretrained policies, decided in integers, against the best rule of every column.

python scripts/scorecard.py [NETWORK ...]   # adds to docs/results/scorecard.json; finished runs are kept in build/scorecard
python scripts/scorecard.py --show          # prints the table and draws docs/pictures/scorecard.svg from that file

In `yellow` and `all red` a policy that was trained for that clearance runs too: docs/results/policies/NETWORK/yellow.json and
all_red.json. `float_s` is the same policy in float.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from model import pretrained_policy
from model.report.cost_figure import STYLE
from model.report.stress import COLUMNS, Column, Kept, StressRun, contestants, scores, stress
from streetflow.files import write_whole, written_aside
from streetflow.networks.catalogue import Network, find_network

ROOT = Path(__file__).resolve().parent.parent
FILE, PICTURE = ROOT / "docs" / "results" / "scorecard.json", ROOT / "docs" / "pictures" / "scorecard.svg"
POLICIES = ROOT / "docs" / "results" / "policies"
NETWORKS = ("crossing", "arterial", "Hangzhou1", "Hangzhou2", "Hangzhou3", "Atlanta", "Jinan", "LosAngeles")
DRAWS = {"Jinan": 3, "LosAngeles": 5}  # the others ten
MOST_LOSS = 0.03


def main(networks: list[str]) -> None:
    for network in networks:
        rows = [row for row in json.loads(FILE.read_text()) if row["network"] != network] if FILE.is_file() else []
        rows += scorecard(find_network(network))
        rows.sort(key=lambda row: NETWORKS.index(row["network"]))
        write_whole(FILE, (json.dumps(rows, indent=1) + "\n").encode())


def scorecard(network: Network) -> list[dict[str, Any]]:
    """A row a column and policy."""
    kept, draws = Kept(ROOT / "build" / "scorecard" / f"{network.name}.jsonl"), DRAWS.get(network.name, 10)
    own = str(pretrained_policy(network.name))
    runs = stress(network, contestants([own], network.name), COLUMNS, draws, kept=kept, progress=_say)
    (in_float,) = [each for each in contestants([own], integer=False) if each.name == own]
    float_s = _means(stress(network, [in_float], COLUMNS, draws, kept=kept))
    rows = [_row(network, runs, own, column, draws) | {"float_s": float_s[column.name]} for column in COLUMNS]
    for column in COLUMNS:
        trained = POLICIES / network.name / f"{column.clearance}.json"
        if column.clearance is not None and trained.is_file():
            runs_so = stress(network, contestants([trained], network.name), [column], draws, kept=kept)
            rows.append(_row(network, runs_so, str(trained), column, draws))
    return rows


def _row(network: Network, runs: list[StressRun], agent: str, column: Column, draws: int) -> dict[str, Any]:
    (score,) = [each for each in scores(runs) if each.agent == agent and each.column == column.name]
    rule = score.travel_time_s.mean - score.loss_s.mean
    return {
        "network": network.name,
        "column": column.name,
        "policy": "pretrained" if Path(agent).parent.name == "pretrained" else f"trained for {column.name}",
        "draws": draws,
        "policy_s": score.travel_time_s.mean,
        "best_rule": score.best_rule,
        "rule_s": rule,
        "loss": {name: float(value) for name, value in score.loss._asdict().items()},
    }


def _means(runs: list[StressRun]) -> dict[str, float]:
    names = dict.fromkeys(run.column for run in runs)
    return {name: float(np.mean([run.average_travel_time_s for run in runs if run.column == name])) for name in names}


def _say(run: StressRun) -> None:
    if run.agent.endswith(".json"):
        print(f"\r{run.network}: draw {run.seed}, {run.column:12}", end="", flush=True)


def show() -> None:
    rows = json.loads(FILE.read_text())
    networks = list(dict.fromkeys(row["network"] for row in rows))
    columns = [(column.name, "pretrained") for column in COLUMNS]
    columns += [(name, f"trained for {name}") for name in ("yellow", "all red")]
    found = {(row["network"], row["column"], row["policy"]): row for row in rows}
    print("| | " + " | ".join(networks) + " |\n| --- |" + " ---: |" * len(networks))
    for name, policy in columns:
        cells = []
        for network in networks:
            row = found.get((network, name, policy))
            loss = row and row["loss"]
            cells.append(f"{loss['mean']:+.1%} ({loss['low']:+.1%} to {loss['high']:+.1%})" if loss else "-")
        print(f"| {name if policy == 'pretrained' else f'{name}, trained for it'} | " + " | ".join(cells) + " |")
    over = [row for row in rows if row["loss"]["mean"] > MOST_LOSS]
    print(f"\nmore than {MOST_LOSS:.0%} above the best rule: {len(over)} of {len(rows)}")
    apart = [row["policy_s"] / row["float_s"] - 1 for row in rows if "float_s" in row]
    print(f"integers against float: {min(apart):+.2%} to {max(apart):+.2%}")
    _draw(found, networks, [column for column in columns if any((network, *column) in found for network in networks)])


def _draw(found: dict[tuple[str, str, str], dict[str, Any]], networks: list[str], columns: list[tuple[str, str]]) -> None:
    import matplotlib
    from matplotlib.colors import SymLogNorm
    from matplotlib.figure import Figure

    losses = np.array(
        [[100 * found[key]["loss"]["mean"] if (key := (net, *col)) in found else np.nan for net in networks] for col in columns]
    )
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9.6, 1.1 + 0.29 * len(columns)))
        axes = figure.subplots()
        axes.imshow(losses, cmap="RdBu_r", norm=SymLogNorm(3, vmin=-100, vmax=100), aspect="auto")
        for (row, column), loss in np.ndenumerate(losses):
            if not np.isnan(loss):
                interval = found[(networks[column], *columns[row])]["loss"]
                sure = interval["low"] > 0 or interval["high"] < 0
                text = axes.text(column, row, f"{loss:+.1f}", ha="center", va="center", weight="bold" if sure else "normal")
                text.set_color("white" if abs(loss) > 30 else "black")
        axes.set_xticks(range(len(networks)), networks)
        axes.set_yticks(range(len(columns)), [n if p == "pretrained" else f"{n}, trained for it" for n, p in columns])
        axes.tick_params(length=0, labeltop=True, labelbottom=False)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
        title = "mean travel time against the best rule of each column, % (bold: the 95 % interval excludes 0)"
        axes.set_title(title, loc="left", fontsize=10, pad=10)
        figure.tight_layout()
        with written_aside(PICTURE) as aside:
            figure.savefig(aside, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    if "--show" not in sys.argv[1:]:
        main(sys.argv[1:] or list(NETWORKS))
    show()
