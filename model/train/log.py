"""The log of a training as CSV, a row a replica and episode: written by `tinylight train --log`, drawn by `tinylight plot`."""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from model.train.search_and_refine import EpisodeRow
from streetflow.errors import InputError
from streetflow.files import written_aside
from streetflow.roadnet.json_reader import read_text

ALPHA_COLUMNS = ("alpha_feature", "alpha_layer2", "alpha_layer3")
"""Prefixes: alpha_feature:inlane_2_delay, alpha_layer2:16, ... hold the mean alphas over the replica's intersections."""

WHOLE = ("replica", "train_seed", "episode")
CURVES = ("loss", "average_travel_time_s")
ENTROPIES = ("entropy_features", "entropy_layer2", "entropy_layer3")


def write_log(
    rows: Sequence[EpisodeRow], file: Path, features: Sequence[str], layer2_dims: Sequence[int], layer3_dims: Sequence[int]
) -> None:
    """All rows; the alphas' columns are empty in the refinement."""
    names = [field.name for field in dataclasses.fields(EpisodeRow) if field.name != "alphas"]
    components = (features, layer2_dims, layer3_dims)
    alphas = [[f"{prefix}:{each}" for each in layer] for prefix, layer in zip(ALPHA_COLUMNS, components, strict=True)]
    with written_aside(file) as aside, aside.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow([*names, *(name for layer in alphas for name in layer)])
        for row in rows:
            held = [f"{value:.6g}" for layer in row.alphas for value in layer]
            table.writerow([*(getattr(row, name) for name in names), *(held or [""] * sum(map(len, alphas)))])


@dataclass(frozen=True)
class ReplicaLog:
    """One replica's columns, episode by episode; search and refinement one after the other."""

    replica: int
    train_seed: int
    searched: int  # episodes of the search
    columns: dict[str, list[float]]  # NaN where a column is empty

    @property
    def gaps(self) -> dict[str, int]:
        """For each curve that every episode should have: in how many episodes it has no number, where there are any."""
        missing = {name: sum(not math.isfinite(value) for value in self.columns[name]) for name in CURVES}
        return {name: count for name, count in missing.items() if count}


def read_log(file: Path) -> list[ReplicaLog]:
    """The replicas of a log. InputError names the file, line and column of a fault."""
    table = csv.DictReader(read_text(file).splitlines())
    needed = {*WHOLE, "stage", *CURVES, *ENTROPIES}
    missing = needed.difference(table.fieldnames or [])
    if missing:
        raise InputError(file, "line 1", f"not a training log: no column {', '.join(sorted(missing))}")
    by_replica: dict[int, ReplicaLog] = {}
    for number, line in enumerate(table, start=2):
        values = {name: _number(file, number, name, text) for name, text in line.items() if name != "stage"}
        for name in WHOLE:
            if not values[name].is_integer():
                raise InputError(file, f"line {number}, {name}", f"must be a whole number, is {values[name]}")
        replica = int(values["replica"])
        known = by_replica.setdefault(replica, ReplicaLog(replica, int(values["train_seed"]), 0, {name: [] for name in values}))
        for name, value in values.items():
            known.columns[name].append(value)
        if line["stage"] == "search":
            by_replica[replica] = dataclasses.replace(known, searched=known.searched + 1)
    if not by_replica:
        raise InputError(file, "line 2", "the log holds no episode")
    replicas = list(by_replica.values())
    for each in replicas:
        if (len(each.columns["episode"]), each.searched) != (len(replicas[0].columns["episode"]), replicas[0].searched):
            raise InputError(file, "", f"replica {each.replica} has other episodes than replica {replicas[0].replica}")
    return replicas


def _number(file: Path, line: int, column: str | None, text: str | None) -> float:
    if column is None or text is None:
        raise InputError(file, f"line {line}", "more or fewer columns than the heading")
    try:
        return float(text) if text else math.nan
    except ValueError:
        raise InputError(file, f"line {line}, {column}", f"{text!r} is no number") from None
