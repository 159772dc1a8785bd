"""A sweep: one training for each point of a grid, or for points drawn at random, from a TOML or JSON file.

[fixed]                      # the same in all trainings
network = "crossing"
[grid]                       # all combinations of these
seed = [0, 1, 2]
kept_features = [2, 3]
[random]                     # with `draws = 20` at the top: so many draws of these, each with all combinations of the grid
learning_rate = {least = 1e-4, most = 1e-2, log = true}
"""

from __future__ import annotations

import json
import math
import random
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from model.report.training import Training
from streetflow.errors import InputError, fields_from
from streetflow.networks.catalogue import find_network
from streetflow.roadnet.json_reader import read_json, read_text

MOST_TRAININGS = 10_000
DIGITS = 4  # of a number drawn from a range


class _Range(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    least: int | float
    most: int | float
    log: bool = False

    def draw(self, generator: random.Random) -> int | float:
        """Whole numbers from whole limits."""
        if isinstance(self.least, int) and isinstance(self.most, int) and not self.log:
            return generator.randint(self.least, self.most)
        if self.log:
            drawn = math.exp(generator.uniform(math.log(self.least), math.log(self.most)))
        else:
            drawn = generator.uniform(self.least, self.most)
        return min(max(float(f"{drawn:.{DIGITS}g}"), self.least), self.most)

    @property
    def fault(self) -> str | None:
        if not self.least < self.most or not math.isfinite(self.most - self.least):
            return f"least must be below most, is {self.least} with {self.most}"
        return f"log needs a least above 0, is {self.least}" if self.log and self.least <= 0 else None


class _SweepFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    draws: int = Field(default=0, ge=0)
    draws_seed: int = 0
    fixed: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}
    random: dict[str, list[Any] | _Range] = {}


class Sweep:
    """The trainings of a file. `varied`: names of the fields that aren't the same in all, in the file's order; `points`: their
    values, training by training."""

    def __init__(self, file: Path) -> None:
        """InputError for a faulty file, and for a training that is impossible; networks and flows are looked for last."""
        self.file = file
        content = _validated(file)
        self.varied = [*content.random, *content.grid]
        self.trainings: list[Training] = []
        self.points: list[dict[str, Any]] = []
        seen = set()
        for point in _points(content):
            place = ", ".join(f"{name} {point[name]}" for name in self.varied)
            with fields_from(lambda field, place=place: (file, f"{field} ({place})" if place else field)):  # type: ignore[misc]
                training = Training.of(content.fixed | point, str(file))
            if training.name not in seen:
                seen.add(training.name)
                self.trainings.append(training)
                self.points.append(point)
        for training in self.trainings:
            try:
                find_network(training.network).flow_file(training.flow)
            except InputError as fault:
                raise InputError(file, "", str(fault)) from None


def _points(content: _SweepFile) -> list[dict[str, Any]]:
    generator = random.Random(content.draws_seed)
    draws = [
        {
            name: each.draw(generator) if isinstance(each, _Range) else generator.choice(each)
            for name, each in content.random.items()
        }
        for _ in range(content.draws)
    ]
    combinations = [dict(zip(content.grid, values, strict=True)) for values in product(*content.grid.values())]
    return [draw | combination for draw in draws or [{}] for combination in combinations]


def _validated(file: Path) -> _SweepFile:
    try:
        content = _SweepFile.model_validate(_read(file))
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(file, ".".join(str(part) for part in first["loc"]), first["msg"]) from None
    for name in [*content.grid, *content.random]:
        tables = [table for table in ("fixed", "grid", "random") if name in getattr(content, table)]
        if len(tables) > 1:
            raise InputError(file, name, f"is in {' and '.join(tables)}")
    for table in ("grid", "random"):
        for name, values in getattr(content, table).items():
            fault = values.fault if isinstance(values, _Range) else None if values else "has no value to choose from"
            if fault is not None:
                raise InputError(file, f"{table}.{name}", fault)
    if bool(content.draws) != bool(content.random):
        fault = "needs fields in random to draw" if content.draws else "is missing, how often to draw"
        raise InputError(file, "draws", fault)
    count = max(content.draws, 1) * math.prod(len(values) for values in content.grid.values())
    if count > MOST_TRAININGS:
        raise InputError(file, "", f"{count} trainings; a sweep has {MOST_TRAININGS} at the most")
    return content


def _read(file: Path) -> Any:
    if file.suffix != ".toml":
        return read_json(file, exact=True)
    try:
        return tomllib.loads(read_text(file))
    except tomllib.TOMLDecodeError as fault:
        raise InputError(file, "", str(fault)) from None


def as_text(value: object) -> str:
    """A field's value in a table."""
    return value if isinstance(value, str) else json.dumps(value)
