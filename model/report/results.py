"""Result files: the rows of evaluations as JSON and CSV, with the commands that make them again.

python -m model.report.results --network Hangzhou1 --policy model/pretrained/Hangzhou1.json --flows 0-9 --out
docs/results/hangzhou1_release
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from model.evaluate import EvaluationRow, evaluate
from model.policy.file import load_policy
from streetflow.errors import InputError, fields_from
from streetflow.files import require_writable, write_whole, written_aside
from streetflow.networks.catalogue import find_network, parse_flows


def summary(rows: Sequence[EvaluationRow]) -> dict[str, Any]:
    """Mean and population standard deviation over the runs, as in the paper's Table 1."""
    times = [row.average_travel_time_s for row in rows]
    flows = [row.throughput_veh_per_min for row in rows]
    return {
        "runs": len(rows),
        "average_travel_time_s": {"mean": fmean(times), "deviation": pstdev(times)},
        "throughput_veh_per_min": {"mean": fmean(flows), "deviation": pstdev(flows)},
    }


def write_results(network: str, policy_file: Path, flows: Sequence[int], stem: Path, command: str) -> dict[str, Any]:
    """Runs the policy in float and in integers on the flows and writes stem.json and stem.csv; returns the JSON's content."""
    policy = load_policy(policy_file)
    stem.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".json", ".csv"):
        require_writable(stem.with_suffix(suffix))
    by_arithmetic = {
        "float": evaluate(network, policy_file, flows, integer=False),
        "integer": evaluate(network, policy_file, flows, integer=True),
    }
    rows = [dataclasses.asdict(row) for part in by_arithmetic.values() for row in part]
    summaries = {arithmetic: summary(part) for arithmetic, part in by_arithmetic.items()}
    means = {arithmetic: part["average_travel_time_s"]["mean"] for arithmetic, part in summaries.items()}
    content = {
        "command": command,
        "policy_command": policy.provenance.command,
        "policy_sha256": policy.sha256,
        "policy_notes": policy.provenance.notes,
        "summary": summaries,
        "integer_against_float": means["integer"] / means["float"] - 1.0,
        "rows": rows,
    }
    write_whole(stem.with_suffix(".json"), json.dumps(content, indent=1) + "\n")
    with written_aside(stem.with_suffix(".csv")) as aside, aside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return content


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m model.report.results", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--network", required=True)
    parser.add_argument("--policy", required=True, type=Path)
    parser.add_argument("--flows", default="0-9", help="numbers and ranges, such as 0-4,7")
    parser.add_argument("--out", required=True, type=Path, help="without suffix: .json and .csv are written")
    options = parser.parse_args()
    command = (
        f"python -m model.report.results --network {options.network} --policy {options.policy} "
        f"--flows {options.flows} --out {options.out}"
    )
    try:
        with fields_from(lambda field: (f"--{field}", "")):
            flows = parse_flows(options.flows, len(find_network(options.network).flow_files))
            content = write_results(options.network, options.policy, flows, options.out, command)
    except InputError as fault:
        parser.exit(2, f"{parser.prog}: {fault}\n")
    for arithmetic, part in content["summary"].items():
        time_s = part["average_travel_time_s"]
        print(f"{arithmetic}: {time_s['mean']:.2f} +- {time_s['deviation']:.2f} s over {part['runs']} runs")
    print(f"integer against float: {100 * content['integer_against_float']:+.2f} %")


if __name__ == "__main__":
    main()
