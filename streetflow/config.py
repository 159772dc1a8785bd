"""The engine's config file (cityflow-semantics.md, section 1.2)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from streetflow.cursor import Cursor
from streetflow.errors import InputError, InputWarning, Problems
from streetflow.json_reader import read_json

_T = TypeVar("_T")


@dataclass(frozen=True)
class Config:
    """What a config file says, checked. File names already have ``dir`` put before them."""

    interval_s: float
    seed: int
    directory: str
    roadnet_file: str
    flow_file: str
    rl_traffic_light: bool
    save_replay: bool = False
    roadnet_log_file: str = ""
    replay_log_file: str = ""
    lane_change: bool = False


def check_interval(interval_s: float, file: str | Path, place: str) -> None:
    """InputError unless the step length is positive and finite; a warning where car following gets coarse."""
    if not 0 < interval_s < float("inf"):
        raise InputError(file, place, f"must be above 0 s, is {interval_s:g}")
    if not 0.2 <= interval_s <= 1.5:
        message = f"{file}: {place}: {interval_s:g} s is outside 0.2 to 1.5 s, where the car-following model is sound"
        warnings.warn(message, InputWarning, stacklevel=3)


def load_config(path: str | Path) -> Config:
    """Read and check a config file. InputError names every faulty field."""
    root = Cursor(read_json(path), path)
    root.members()
    problems = Problems(path)

    def take(name: str, read: Callable[[Cursor], _T], default: _T) -> _T:
        try:
            return read(root[name])
        except InputError as fault:
            problems.add(fault.place, fault.fault)
            return default

    interval_s = take("interval", lambda c: c.number(above=0), 1.0)
    seed = take("seed", lambda c: c.integer(-(2**31), 2**31 - 1), 0)
    directory = take("dir", Cursor.text, "")
    roadnet_file = take("roadnetFile", Cursor.text, "")
    flow_file = take("flowFile", Cursor.text, "")
    rl_traffic_light = take("rlTrafficLight", Cursor.boolean, True)
    save_replay = take("saveReplay", Cursor.boolean, False)
    roadnet_log_file = take("roadnetLogFile", Cursor.text, "") if save_replay else ""
    replay_log_file = take("replayLogFile", Cursor.text, "") if save_replay else ""
    lane_change = root.value.get("laneChange", False)
    problems.raise_if_any()
    if not isinstance(lane_change, bool):
        message = f"{path}: laneChange: neither true nor false: lanes aren't changed, as in CityFlow"
        warnings.warn(message, InputWarning, stacklevel=2)
    check_interval(interval_s, path, "interval")
    return Config(
        interval_s=interval_s,
        seed=seed,
        directory=directory,
        roadnet_file=directory + roadnet_file,
        flow_file=directory + flow_file,
        rl_traffic_light=rl_traffic_light,
        save_replay=save_replay,
        roadnet_log_file=directory + roadnet_log_file,
        replay_log_file=directory + replay_log_file,
        lane_change=lane_change is True,
    )
