"""Writes a table as CSV (one line a run), JSON (everything) and Markdown (to read)."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from model.report.cells import Cell
from model.report.compare import Pair, Row, by_network, paired, paired_with_strongest, strongest_rule, table_rows
from model.report.paper_table import PAPER_NETWORKS
from streetflow.control.measures import Summary
from streetflow.files import write_whole, written_aside

PACKAGES = ("tinylight-hil", "numpy", "numba", "torch")


def write_report(
    stem: Path, cells: Sequence[Cell], dashes: Mapping[tuple[str, str], str], reference: str, command: str
) -> None:
    """Writes stem.csv, stem.json and stem.md. dashes: why a (network, model) is missing; reference: label of the row that the
    others are compared with, flow by flow."""
    rows = table_rows(cells)
    pairs = paired(rows, reference)
    made = {"command": command, "machine": machine(), "versions": versions()}
    stem.parent.mkdir(parents=True, exist_ok=True)
    _write_csv(stem.with_suffix(".csv"), cells)
    content = {
        "made": made,
        "rows": [_row_as_dict(row) for row in rows],
        "dashes": [{"network": network, "model": model, "why": why} for (network, model), why in dashes.items()],
        "pairs": [dataclasses.asdict(pair) for pair in pairs],
        "pairs_with_strongest_rule": [dataclasses.asdict(pair) for pair in paired_with_strongest(rows)],
        "made_from": _inputs(cells),
    }
    write_whole(stem.with_suffix(".json"), one_line_each(content))
    write_whole(stem.with_suffix(".md"), markdown(rows, dashes, pairs, made))


def markdown(rows: Sequence[Row], dashes: Mapping[tuple[str, str], str], pairs: Sequence[Pair], made: Mapping[str, Any]) -> str:
    """The table to read: ours and the paper's beside each other, network by network, then the paired comparison."""
    runs = max((len(row.flows) for row in rows), default=0)
    lines = [
        "# Table 1: ours and the paper's",
        "",
        f"Mean ± population deviation over the runs ({runs} runs; flow k with the k-th engine seed, trained and run per flow); "
        "below the table of a network its strongest rule. Intervals are those of the mean by the bootstrap, 95 %.",
        "",
        f"Made by `{made['command']}` on {made['machine']}; {', '.join(f'{k} {v}' for k, v in made['versions'].items())}.",
        f"Wall time of all runs, one after the other: {_duration(sum(r.wall_s for r in rows if r.arithmetic != 'integer'))}.",
        "",
    ]
    for network, members in by_network(rows).items():
        lines += [
            f"## {network}",
            "",
            "| model | travel time s | 95 % interval | paper | throughput veh/min | paper | against the paper | wall time |",
            "| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |",
        ]
        for row in members:
            papers = ("-", "-") if row.paper is None else (_sd(row.paper.travel_time_s), _sd(row.paper.throughput_veh_per_min))
            fewer = "" if len(row.flows) == runs else f" ({len(row.flows)} runs)"
            lines.append(
                f"| {row.label}{fewer} | {_sd(row.travel_time_s)} | {_interval(row)} | {papers[0]} "
                f"| {_sd(row.throughput_veh_per_min)} | {papers[1]} | {row.verdict} | {_duration(row.wall_s)} |"
            )
        for (dashed, model), _why in dashes.items():
            if dashed == network:
                lines.append(f"| {model} | - | - | - | - | - | - | - |")
        lines.append("")
        best = strongest_rule(members)
        if best is not None:
            lines += [f"Strongest rule: {best.label}, {best.travel_time_s.mean:.2f} s.", ""]
    if dashes:
        lines += ["## Dashes", "", *(f"* {model} on {network}: {why}" for (network, model), why in dashes.items()), ""]
    if pairs:
        lines += _paired(f"Flow by flow: against {pairs[0].reference}", pairs)
    strongest = paired_with_strongest(rows)
    if strongest:
        lines += _paired("Flow by flow: against each network's strongest rule", strongest)
        lines += ["The strongest rule is chosen on these very runs, which flatters it.", ""]
    return "\n".join(lines)


def _paired(title: str, pairs: Sequence[Pair]) -> list[str]:
    lines = [
        f"## {title}",
        "",
        "Travel time minus that of the other on the same flow: mean ± deviation of the differences (s), the mean's 95 % "
        "interval, in how many runs the model is the better one, and p of an exact two-sided sign-flip test of the mean.",
        "",
        "| network | model | against | difference s | 95 % interval | better | p |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {pair.network} | {pair.label} | {pair.reference} | {pair.mean_difference_s:+.2f} ± {pair.deviation_s:.2f} "
        f"| {pair.low_s:+.2f} to {pair.high_s:+.2f} | {pair.better_runs}/{pair.runs} | {pair.p:.3f} |"
        for pair in pairs
    ]
    return [*lines, ""]


def ordered(networks: Sequence[str]) -> list[str]:
    """The paper's networks in its order, then all others."""
    return [name for name in PAPER_NETWORKS if name in networks] + [name for name in networks if name not in PAPER_NETWORKS]


def machine() -> str:
    """Processor, cores and system, in words."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass
    return f"{os.cpu_count()} cores of {name}, {platform.system()}"


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _write_csv(file: Path, cells: Sequence[Cell]) -> None:
    fields = ["network", "model", "arithmetic", "flow", "seed", "average_travel_time_s", "throughput_veh_per_min", "wall_s"]
    with written_aside(file) as aside, aside.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(fields)
        for cell in cells:
            for arithmetic, outcome in cell.outcomes.items():
                figures = [outcome.average_travel_time_s, outcome.throughput_veh_per_min, cell.wall_s]
                writer.writerow([cell.network, cell.model, arithmetic, cell.flow, cell.seed, *figures])


def one_line_each(content: Mapping[str, Any]) -> str:
    """JSON with one line per entry of each list, for readable diffs."""
    parts = []
    for name, value in content.items():
        if isinstance(value, list):
            lines = ",\n  ".join(json.dumps(entry) for entry in value)
            parts.append(f" {json.dumps(name)}: [\n  {lines}\n ]" if value else f" {json.dumps(name)}: []")
        else:
            parts.append(f" {json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _inputs(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """The inputs of the runs (files' hashes, settings), each once."""
    found: dict[str, dict[str, Any]] = {}
    for cell in cells:
        entry = {"network": cell.network, "flow": cell.flow} | cell.identity
        found.setdefault(json.dumps(entry, sort_keys=True), entry)
    return list(found.values())


def _row_as_dict(row: Row) -> dict[str, Any]:
    interval = row.travel_time_interval_s
    own = {"label": row.label, "verdict": row.verdict, "travel_time_interval_s": [interval.low, interval.high]}
    return dataclasses.asdict(row) | own


def _interval(row: Row) -> str:
    """A dash where there is one run only."""
    interval = row.travel_time_interval_s
    return f"{interval.low:.2f} to {interval.high:.2f}" if len(row.flows) > 1 else "-"


def _sd(summary: Summary) -> str:
    return f"{summary.mean:.2f} ± {summary.deviation:.2f}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
