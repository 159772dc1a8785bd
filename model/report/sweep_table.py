"""The results of a sweep: every training, and the mean over the seeds of each setting, as JSON, CSV and Markdown.

They hold neither times nor machines, so that the same sweep gives the same bytes wherever it ran.
"""

from __future__ import annotations

import csv
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from model.report.sweep import Sweep, as_text
from model.report.write import one_line_each
from streetflow.control.measures import Summary, summarise
from streetflow.files import write_whole, written_aside

SEED = "seed"


@dataclass(frozen=True)
class SweepRow:
    """One training. `point`: the fields that vary. `held_out_s`: the mean over the flows that it wasn't trained on, None where
    there are none. Times are the integers' average travel times."""

    point: dict[str, Any]
    policy: str
    policy_sha256: str
    parameters: int  # of the largest light
    float_s: float
    integer_s: float
    held_out_s: float | None


@dataclass(frozen=True)
class SettingRow:
    """All seeds of one setting."""

    point: dict[str, Any]  # without the seed
    seeds: int
    integer_s: Summary
    held_out_s: Summary | None


def sweep_rows(sweep: Sweep, work: Path) -> list[SweepRow]:
    """Of the finished trainings, in the file's order."""
    rows = []
    for training, point in zip(sweep.trainings, sweep.points, strict=True):
        result = training.result(work)
        if result is None:
            continue
        measured = {run["flow"]: run for run in result["measured"]}
        trained = {training.flow, *training.settings.training.get("also_flows", ())}
        others = [run["integer_average_travel_time_s"] for flow, run in measured.items() if flow not in trained]
        own = measured[training.flow]
        rows.append(
            SweepRow(
                point=point,
                policy=training.policy_file(work).name,
                policy_sha256=result["policy_sha256"],
                parameters=max(result["parameters"]),
                float_s=own["float_average_travel_time_s"],
                integer_s=own["integer_average_travel_time_s"],
                held_out_s=fmean(others) if others else None,
            )
        )
    return rows


def setting_rows(rows: list[SweepRow]) -> list[SettingRow]:
    """The same by setting, in order of appearance."""
    groups: dict[str, list[SweepRow]] = {}
    for row in rows:
        point = {name: value for name, value in row.point.items() if name != SEED}
        groups.setdefault(repr(point), []).append(row)
    found = []
    for members in groups.values():
        held_out = [row.held_out_s for row in members if row.held_out_s is not None]
        point = {name: value for name, value in members[0].point.items() if name != SEED}
        own = summarise([row.integer_s for row in members])
        found.append(SettingRow(point, len(members), own, summarise(held_out) if held_out else None))
    return found


def write_sweep(sweep: Sweep, rows: list[SweepRow], work: Path) -> None:
    """Writes sweep.json, sweep.csv and sweep.md into the work folder."""
    settings = setting_rows(rows)
    content = {
        "sweep": sweep.file.name,
        "settings": [dataclasses.asdict(row) for row in settings],
        "trainings": [dataclasses.asdict(row) for row in rows],
    }
    write_whole(work / "sweep.json", one_line_each(content))
    columns = [field.name for field in dataclasses.fields(SweepRow)][1:]
    with written_aside(work / "sweep.csv") as aside, aside.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*sweep.varied, *columns])
        for row in rows:
            writer.writerow([*map(as_text, row.point.values()), *(getattr(row, name) for name in columns)])
    write_whole(work / "sweep.md", _markdown(sweep, rows, settings))


def headings(sweep: Sweep) -> list[str]:
    """Of the table of settings."""
    return [*(name for name in sweep.varied if name != SEED), "seeds", "travel time s", "on held-out flows s"]


def shown(row: SettingRow) -> list[str]:
    """Its cells."""
    return [*map(as_text, row.point.values()), str(row.seeds), _sd(row.integer_s), _sd(row.held_out_s)]


def _markdown(sweep: Sweep, rows: list[SweepRow], settings: list[SettingRow]) -> str:
    text = [
        "# A sweep",
        "",
        f"{len(rows)} of {len(sweep.trainings)} trainings of {sweep.file.name}; travel times of the integers.",
    ]
    text += ["", "Mean ± population deviation over the seeds:", "", *_table(headings(sweep), [shown(row) for row in settings])]
    cells = [
        [*map(as_text, row.point.values()), f"{row.integer_s:.2f}", "-" if row.held_out_s is None else f"{row.held_out_s:.2f}",
         str(row.parameters), row.policy]
        for row in rows
    ]  # fmt: skip
    heads = [*sweep.varied, "travel time s", "on held-out flows s", "parameters", "policy"]
    return "\n".join([*text, "", "Every training:", "", *_table(heads, cells), ""])


def _table(heads: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(each)} |" for each in (heads, ["---"] * len(heads), *rows)]


def _sd(summary: Summary | None) -> str:
    return "-" if summary is None else f"{summary.mean:.2f} ± {summary.deviation:.2f}"
