"""``sumo.json``: what binds the road network of a data set to the SUMO files beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from streetflow.errors import InputError
from streetflow.roadnet.cursor import Cursor
from streetflow.roadnet.json_reader import read_json
from streetflow.sumo.approaches import Approach

FILE = "sumo.json"
FORMAT = 1


@dataclass(frozen=True)
class LightBinding:
    """A traffic light: ``signals`` by road link of its intersection, ``states`` by phase, as in ``roadnet.json``."""

    intersection: str
    light: str
    signals: tuple[tuple[int, ...], ...]
    states: tuple[str, ...]
    yellow_s: float


@dataclass(frozen=True)
class Binding:
    """config: the SUMO configuration, relative to the data set's folder. lanes: SUMO's, by lane number; ways: SUMO's lanes
    within the junctions, by lane link number. approaches: further lanes of SUMO's that are part of one of ours."""

    config: str
    begin_s: float
    step_s: float
    lanes: tuple[str, ...]
    lane_lengths_m: tuple[float, ...]
    ways: tuple[tuple[str, ...], ...]
    lights: tuple[LightBinding, ...]
    approaches: tuple[Approach, ...] = ()

    def content(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}


def read_binding(folder: Path) -> Binding:
    """The binding of a data set. InputError where the folder has none, or a faulty one."""
    file = folder / FILE
    if not file.is_file():
        fault = "missing: the SUMO engine runs data sets that `tinylight import-sumo` made"
        raise InputError(folder, FILE, fault)
    root = Cursor(read_json(file), file)
    if root["format"].integer() != FORMAT:
        raise root["format"].fault(f"must be {FORMAT}: import the network again")
    return Binding(
        config=root["config"].text(),
        begin_s=root["begin_s"].number(),
        step_s=root["step_s"].number(above=0.0),
        lanes=_texts(root["lanes"]),
        lane_lengths_m=tuple(each.number(above=0.0) for each in root["lane_lengths_m"].items()),
        ways=tuple(_texts(each) for each in root["ways"].items()),
        lights=tuple(_light(each) for each in root["lights"].items()),
        approaches=tuple(_approach(each) for each in root["approaches"].items()) if root.has("approaches") else (),
    )


def _texts(cursor: Cursor) -> tuple[str, ...]:
    return tuple(each.text() for each in cursor.items())


def _approach(cursor: Cursor) -> Approach:
    return Approach(cursor["lane"].text(), cursor["number"].integer(), cursor["before_m"].number())


def _light(cursor: Cursor) -> LightBinding:
    states = _texts(cursor["states"])
    signals: Sequence[tuple[int, ...]] = [tuple(each.integer() for each in link.items()) for link in cursor["signals"].items()]
    return LightBinding(
        cursor["intersection"].text(), cursor["light"].text(), tuple(signals), states, cursor["yellow_s"].number(above=0.0)
    )
