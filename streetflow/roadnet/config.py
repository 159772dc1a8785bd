"""The engine's config file (docs/cityflow-semantics.md, section 1.2)."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path

from streetflow.errors import InputError, InputWarning, Problems
from streetflow.roadnet.cursor import Cursor
from streetflow.roadnet.json_reader import parse_json, read_json

_LONGEST_STEP_S = 60.0  # flows create vehicles step by step: a longer one would create crowds at once


@dataclass(frozen=True)
class Config:
    """The checked content of a config file. File names already have ``dir`` put before them."""

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
    config_file: str = ""  # "" where there is none

    def check_replay_file(self, path: str) -> None:
        """InputError if a replay in this file would overwrite an input or the other log."""
        files = {
            "config": self.config_file,
            "roadnetFile": self.roadnet_file,
            "flowFile": self.flow_file,
            "roadnetLogFile": self.roadnet_log_file,
        }
        for owner, name in files.items():
            if name and "\0" not in path and os.path.realpath(name) == os.path.realpath(path):
                raise InputError(path, "", f"is the file of {owner}: it would be overwritten")


def check_interval(interval_s: float, file: str | Path, place: str) -> None:
    """InputError unless the step length is positive and at most a minute; a warning where car following becomes inaccurate."""
    if not 0 < interval_s <= _LONGEST_STEP_S:
        raise InputError(file, place, f"must be above 0 s and at most {_LONGEST_STEP_S:g} s, is {interval_s:g}")
    if not 0.2 <= interval_s <= 1.5:
        message = f"{file}: {place}: {interval_s:g} s is outside 0.2 to 1.5 s, where the car-following model is sound"
        warnings.warn(message, InputWarning, stacklevel=3)


def _check_distinct(problems: Problems, config_file: str, directory: str, files: dict[str, str]) -> None:
    """Logs are emptied when an engine starts, so none may be an input or another log."""
    owner = {os.path.realpath(config_file): "the config"} if config_file else {}
    for field, name in files.items():
        path = os.path.realpath(directory + name)
        if path in owner and field.endswith("LogFile"):
            problems.add(field, f"is the file of {owner[path]}, {directory + name!r}: it would be overwritten")
        owner.setdefault(path, field)


def _check_slash(problems: Problems, directory: str, *names: str) -> None:
    """``dir`` and a file's name are put together as they are, as CityFlow does it."""
    if directory and not directory.endswith("/"):
        missing = [name for name in names if name and not os.path.exists(directory + name)]
        if missing and os.path.isdir(directory):
            fault = f"must end with a slash: {directory!r} and {missing[0]!r} are put together as {directory + missing[0]!r}"
            problems.add("dir", f"{fault}, and there is no such file")


def load_config(path: str | Path) -> Config:
    """Read and check a config file, or a text that is the JSON object itself. InputError names every faulty field."""
    if isinstance(path, str) and path.lstrip().startswith("{"):
        text, path, config_file = path, "config", ""
        root = Cursor(parse_json(text, path), path)
    else:
        root, config_file = Cursor(read_json(path), path), str(path)
    root.members()
    problems = Problems(path)

    interval_s = problems.take(lambda: root["interval"].number(above=0), default=1.0)
    seed = problems.take(lambda: root["seed"].integer(-(2**31), 2**31 - 1))
    directory = problems.take(lambda: root["dir"].file_name(), default="")
    roadnet_file = problems.take(lambda: root["roadnetFile"].file_name(), default="")
    flow_file = problems.take(lambda: root["flowFile"].file_name(), default="")
    rl_traffic_light = problems.take(lambda: root["rlTrafficLight"].boolean())
    save_replay = problems.take(lambda: root["saveReplay"].boolean(), default=False)
    roadnet_log_file = problems.take(lambda: root["roadnetLogFile"].file_name(), default="") if save_replay else ""
    replay_log_file = problems.take(lambda: root["replayLogFile"].file_name(), default="") if save_replay else ""
    lane_change = problems.take(lambda: root["laneChange"].boolean()) if root.has("laneChange") else False
    _check_slash(problems, directory, roadnet_file, flow_file)
    problems.raise_if_any()
    if save_replay:
        names = ("roadnetFile", "flowFile", "roadnetLogFile", "replayLogFile")
        files = dict(zip(names, (roadnet_file, flow_file, roadnet_log_file, replay_log_file), strict=True))
        _check_distinct(problems, config_file, directory, files)
        problems.raise_if_any()
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
        config_file=config_file,
    )
