"""Writes a scorecard as CSV (one line a run), JSON (everything), Markdown (to read) and SVG."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from model.report.bootstrap import Interval
from model.report.stress import Column, Score, StressRun, labels, scores
from model.report.stress_figure import draw
from model.report.write import machine, one_line_each, versions
from streetflow.files import write_whole, written_aside


def write_scorecard(
    stem: Path,
    runs: Sequence[StressRun],
    columns: Sequence[Column],
    agents: Sequence[str],
    command: str,
    *,
    figure: bool = True,
) -> None:
    """Writes stem.csv, stem.json, stem.md and, with ``figure`` (which needs matplotlib), stem.svg.

    Args:
        stem: of the files' names.
        runs: of one network.
        columns: that they are of.
        agents: those that the table and the figure show.
        command: that made it.

    Raises:
        InputError: a file can't be written.
    """
    network, found = runs[0].network, scores(runs)
    made = {"command": command, "machine": machine(), "versions": versions()}
    with written_aside(_file(stem, ".csv")) as aside, aside.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, [field.name for field in fields(StressRun)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(run) for run in runs)
    content = {
        "made": made,
        "network": network,
        "columns": [asdict(column) for column in columns],
        "scores": [_score_as_dict(score) for score in found],
        "runs": [asdict(run) for run in runs],
    }
    write_whole(_file(stem, ".json"), one_line_each(content))
    write_whole(_file(stem, ".md"), markdown(found, network, agents, made))
    if figure:
        draw(_file(stem, ".svg"), found, network, agents)


def _file(stem: Path, suffix: str) -> Path:
    return stem.with_name(stem.name + suffix)


def markdown(found: Sequence[Score], network: str, agents: Sequence[str], made: Mapping[str, Any]) -> str:
    """The table to read: a row a column, mean travel time and loss of each agent."""
    names = labels(agents)
    lines = [
        f"# {network}: robustness",
        "",
        "Mean travel time, and in brackets how far it is above the best rule's on the same traffic, with a 95 % interval of "
        "the paired differences. Below 0: better than every rule there.",
        "",
        f"Made by `{made['command']}` on {made['machine']}; {', '.join(f'{k} {v}' for k, v in made['versions'].items())}.",
        "",
        "| column | best rule | " + " | ".join(names[agent] for agent in agents) + " |",
        "| --- | --- |" + " ---: |" * len(agents),
    ]
    for column, by_agent in by_column(found).items():
        entries = [" ".join(entry(by_agent[agent])) for agent in agents]
        lines.append(f"| {column} | {best_rule(by_agent)} | " + " | ".join(entries) + " |")
    return "\n".join([*lines, ""])


def by_column(found: Sequence[Score]) -> dict[str, dict[str, Score]]:
    """Scores by agent, by column."""
    columns: dict[str, dict[str, Score]] = {}
    for score in found:
        columns.setdefault(score.column, {})[score.agent] = score
    return columns


def best_rule(by_agent: Mapping[str, Score]) -> str:
    """One column's best rule, with its mean."""
    name = next(iter(by_agent.values())).best_rule
    return f"{name} {by_agent[name].travel_time_s.mean:.1f} s"


def entry(score: Score) -> tuple[str, str]:
    """An agent's mean travel time, and its loss in brackets."""
    is_best = score.agent == score.best_rule
    return f"{score.travel_time_s.mean:.1f} s", "(best)" if is_best else f"({_percent(score.loss)})"


def _percent(loss: Interval) -> str:
    mean, low, high = (f"{100 * share:+.1f}".replace("-0.0", "+0.0") for share in loss)
    return f"{mean} %, {low} to {high}"


def _score_as_dict(score: Score) -> dict[str, Any]:
    intervals = {name: getattr(score, name)._asdict() for name in ("travel_time_s", "loss_s", "loss")}
    return {"column": score.column, "agent": score.agent, "best_rule": score.best_rule, **intervals}
