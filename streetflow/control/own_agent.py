"""Agents from outside: a controller of the user's own, named `module:Class` or by an entry point of another package.

Whatever goes wrong in such code becomes one InputError that names the agent, the file and the line.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streetflow.control.environment import Environment
from streetflow.control.features import PRESETS, resolve_features
from streetflow.errors import InputError
from streetflow.near import or_else

GROUP = "tinylight.agents"
"""Entry points by which an installed package offers agents: a name for each `module:Class`."""
METHODS = ("reset", "act")


class OwnAgent:
    """A controller made from the user's class, with its faults reported and its actions checked.

    Args:
        name: `module:Class` (or a function that returns a controller), with the module on Python's path or in the current
            folder, or the name of an entry point of the group `tinylight.agents`.

    Attributes:
        name: as given.
        features: those that the agent observes.
        sha256: of the file that holds the class: another one may act otherwise.
        decision_interval_s: seconds between its decisions, where it has an attribute of that name; None: the network's.

    Raises:
        InputError: there is no such module or class, it lacks `features`, `reset` or `act`, or its code raises an error.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        with _reported(name, "making it"):
            made = _find(name)
            self.sha256 = _file_sha256(made)
            self._agent: Any = made()
        for method in METHODS:
            if not callable(getattr(self._agent, method, None)):
                raise InputError(name, method, f"the agent has no such method; it needs {' and '.join(METHODS)}")
        self.features = _features(name, self._agent)
        self.decision_interval_s = _interval_s(name, self._agent)

    def reset(self, environment: Environment) -> None:
        self._environment = environment
        self._counts = np.array([each.action_count for each in environment.intersections])
        with _reported(self.name, "reset"):
            self._agent.reset(environment)

    def act(self, observation: NDArray[np.int32]) -> NDArray[np.int32]:
        place = f"act at second {self._environment.time_s}"
        with _reported(self.name, place):
            actions = np.asarray(self._agent.act(observation))
        fault = _fault(actions, self._counts)
        if fault is not None:
            raise InputError(self.name, place, fault)
        return actions.astype(np.int32)


def _interval_s(name: str, agent: Any) -> int | None:
    interval_s = getattr(agent, "decision_interval_s", None)
    if interval_s is None:
        return None
    if not isinstance(interval_s, int) or interval_s < 1:
        raise InputError(name, "decision_interval_s", f"must be a whole number of seconds, at least 1, is {interval_s!r}")
    return interval_s


def is_own_agent(name: str) -> bool:
    """Whether a name is one for `OwnAgent`: it has a colon and isn't a file, or an installed package offers it."""
    return (":" in name and not os.path.isfile(name)) or name in offered_agents()


def offered_agents() -> list[str]:
    """Names of the agents that installed packages offer."""
    return sorted({each.name for each in metadata.entry_points(group=GROUP)})


def _find(name: str) -> Callable[[], Any]:
    """What makes the agent."""
    offered = metadata.entry_points(group=GROUP, name=name)
    target = next(iter(offered)).value if offered else name
    module_name, _, attribute = (part.strip() for part in target.partition(":"))
    if not all(part.isidentifier() for part in (*module_name.split("."), attribute)):
        raise InputError(name, "", "not an agent: write module:Class, such as my_agent:MyAgent")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # behind all others, so that no file there hides a package
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # one that the module itself imports
        raise InputError(name, "", f"no module {error.name} on Python's path or in this folder") from None
    if not hasattr(module, attribute):
        own = [key for key, value in vars(module).items() if inspect.isclass(value) and value.__module__ == module_name]
        raise InputError(name, "", f"{module.__file__} has no {attribute}{or_else(attribute, own) if own else ''}")
    made = getattr(module, attribute)
    if not callable(made):
        raise InputError(name, "", f"{attribute} is neither a class nor a function")
    return made


def _file_sha256(made: object) -> str:
    file = inspect.getsourcefile(inspect.unwrap(made))  # type: ignore[arg-type]
    return hashlib.sha256(Path(file).read_bytes() if file else repr(made).encode()).hexdigest()


def _features(name: str, agent: object) -> Sequence[str]:
    """The agent's `features`, checked: a preset's names, or its own list."""
    features = getattr(agent, "features", None)
    is_list = isinstance(features, list | tuple) and all(isinstance(each, str) for each in features)
    if not (isinstance(features, str) or is_list):
        presets = ", ".join(PRESETS)
        raise InputError(name, "features", f"must be a preset ({presets}) or a list of features' names, is {features!r}")
    try:
        return tuple(spec.name for spec in resolve_features(features))  # type: ignore[arg-type]
    except InputError as error:
        raise InputError(name, "features", f"{error.place}: {error.fault}") from None


def _fault(actions: NDArray[Any], counts: NDArray[np.int64]) -> str | None:
    """What is wrong with an agent's actions, if anything."""
    if actions.shape != counts.shape or actions.dtype.kind not in "iu":
        kind = f"{actions.dtype} of shape {actions.shape}"
        return f"returned {kind}; it must return {len(counts)} integer{'s' * (len(counts) > 1)}, one a light"
    bad = np.flatnonzero((actions < 0) | (actions >= counts))
    if len(bad):
        return f"returned action {actions[bad[0]]} for light {bad[0]}, which has 0 to {counts[bad[0]] - 1}"
    return None


@contextmanager
def _reported(name: str, place: str) -> Iterator[None]:
    """Errors of the agent's code become an InputError with the last line of that code."""
    try:
        yield
    except InputError:
        raise
    except SyntaxError as error:
        raise InputError(name, f"{error.filename}:{error.lineno}", f"{type(error).__name__}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename != __file__]
        own = [each for each in frames if not _is_library(each.filename)] or frames
        at = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
        raise InputError(name, place, f"{type(error).__name__}: {error}{at}") from error


def _is_library(filename: str) -> bool:
    return filename.startswith("<") or "site-packages" in filename or filename.startswith((sys.base_prefix, str(_OWN)))


_OWN = Path(__file__).resolve().parents[1]
