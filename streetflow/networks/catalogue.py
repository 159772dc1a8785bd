"""Networks by name: the built-in ones, and data-set folders found through ``TINYLIGHT_DATA``.

``TINYLIGHT_DATA`` is a list of folders, separated as ``PATH`` is. A sub-folder NAME of one of them that holds
``roadnet.json`` and ``flow_0.json``, ``flow_1.json``, ... is the network NAME; an optional ``network.json``
beside them may give ``{"horizon_s": 1800, "decision_interval_s": 10}`` (and ``made_of``, for its readers). Built-in
networks come first, then the folders in the order given.
"""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from streetflow.errors import FieldError, InputError, InputWarning, whole_number
from streetflow.near import did_you_mean, near_matches
from streetflow.networks import scenarios
from streetflow.roadnet.json_reader import read_json

DATA_VARIABLE = "TINYLIGHT_DATA"
DEFAULT_HORIZON_S = 3600
DECISION_INTERVAL_S = 20

MOST_FLOW_DIGITS = 9  # of a flow's number

NETWORK_FILE_KEYS = ("horizon_s", "decision_interval_s", "made_of")

RUN_SEEDS = (992832, 284765, 905873, 776383, 198876, 192223, 223341, 182228, 885746, 992817)
"""Engine seed of the run on flow file K, as in the paper's released experiment."""

HORIZONS_S = {
    "Hangzhou1": 3600,
    "Hangzhou2": 3600,
    "Hangzhou3": 3600,
    "Jinan": 3600,
    "Atlanta": 900,
    "LosAngeles": 1800,
}
"""Horizons of the paper's six data sets; any other network has DEFAULT_HORIZON_S or its own ``network.json``."""


@dataclass(frozen=True)
class Network:
    """A road network with its demand files. ``flow_files[K]`` is flow K; times are in whole seconds."""

    name: str
    roadnet_file: Path
    flow_files: tuple[Path, ...]
    horizon_s: int
    decision_interval_s: int = DECISION_INTERVAL_S
    source: str = "data set"

    def flow_file(self, flow: int) -> Path:
        """Demand file of flow ``flow``; raises InputError naming the flows that exist."""
        if not 0 <= whole_number(flow, "flow") < len(self.flow_files):
            last = len(self.flow_files) - 1
            raise InputError(f"network {self.name}", f"flow {flow}", f"no such flow; there are 0 to {last}")
        return self.flow_files[flow]


class UnknownNetwork(InputError):
    """No network of that name; ``near_matches`` holds the names that look like it. files: the name may be that of a file."""

    def __init__(self, name: str, known: list[str], *, files: bool = False) -> None:
        names = [*known, *(each for each in HORIZONS_S if each != name and each not in known)]
        self.near_matches = near_matches(name, names)
        hint = did_you_mean(name, names, files=files)
        fault = f"{'no such file, and ' * files}unknown network{hint}"
        fault += f" Known: {', '.join(known)}." if hint else f"; known: {', '.join(known)}."
        if not _listed_folders():
            fault += f" {DATA_VARIABLE} is not set: it lists the folders that hold data sets."
        for folder, why in _unreadable_folders():
            fault += f" {DATA_VARIABLE} lists {folder}, which can't be read: {why}."
        super().__init__(name, "", fault)


def default_seed(flow: int) -> int:
    """Engine seed that goes with flow ``flow``: the release's, repeated beyond its ten flows."""
    return RUN_SEEDS[flow % len(RUN_SEEDS)]


def find_network(name: str) -> Network:
    """The network called ``name``; raises UnknownNetwork (an InputError) if there is none, InputError if it has no flows."""
    if name in scenarios.SCENARIOS:
        return _built_in(name)
    for folder in _folders_called(name):
        if _is_network(folder):
            return _data_set(folder)
    for folder in _folders_called(name):
        _require_flows(folder)
    raise UnknownNetwork(name, network_names())


def find_networks(names: Iterable[str]) -> list[Network]:
    """The networks of these names, each once. UnknownNetwork for a name that is mistyped, rather than for a data set of
    the paper that is not here."""
    different = list(dict.fromkeys(names))
    found = {name: find_network(name) for name in sorted(different, key=lambda name: name in HORIZONS_S)}
    return [found[name] for name in different]


def network_of(place: str) -> Network:
    """The network called ``place``, or in the folder ``place``, or of the flow file ``place`` (that flow alone).

    A flow file's roadnet.json and network.json are those beside it. InputError if there is no such network.
    """
    path = Path(place)
    if place in network_names():
        return find_network(place)
    if not os.path.exists(path):
        for folder in _folders_called(place):
            _require_flows(folder)
        if os.path.islink(path):
            raise InputError(place, "", "is a link that leads to nothing")
        raise UnknownNetwork(place, network_names(), files=True)
    if not (path.is_dir() or path.is_file()):
        raise InputError(place, "", "is neither a file nor a folder")
    folder = (path if path.is_dir() else path.parent).absolute()
    if not (folder / "roadnet.json").is_file():
        raise InputError(folder, "roadnet.json", "missing: a network's folder, or a flow file's, holds it")
    if path.is_file():
        return Network(folder.name, folder / "roadnet.json", (path,), *_times_s(folder))
    _require_flows(folder)
    return _data_set(folder)


def roadnet_of(place: str) -> tuple[Path, int]:
    """The road network file of a network, with or without demand, and its horizon in s.

    Args:
        place: the file itself, a folder that holds a roadnet.json, or a network's name.

    Raises:
        InputError: there is none.
    """
    path = Path(place)
    folders = [path] if os.path.exists(path) and place not in network_names() else _folders_called(place)
    for folder in folders:
        if folder.is_file():
            return folder, _times_s(folder.absolute().parent)[0]
        if _has_roadnet(folder):
            return folder / "roadnet.json", _times_s(folder.absolute())[0]
    network = network_of(place)
    return network.roadnet_file, network.horizon_s


def network_names() -> list[str]:
    """Names of all networks in search order, each once. Cheap: nothing is written or parsed."""
    return list(dict.fromkeys([*scenarios.SCENARIOS, *_names(_is_network)]))


def list_networks() -> list[Network]:
    """All networks in search order; the first of equal names wins. A folder or data set that can't be read is left out, with an
    InputWarning, and so is one without flows. InputError where the built-in ones can't be made."""
    for folder, why in _unreadable_folders():
        warnings.warn(f"{DATA_VARIABLE} lists {folder}, which can't be read: {why}", InputWarning, stacklevel=2)
    found = [find_network(name) for name in scenarios.SCENARIOS]
    for name in dict.fromkeys([*network_names(), *_names(_has_roadnet)]):
        if name in scenarios.SCENARIOS:
            continue
        try:
            found.append(find_network(name))
        except InputError as fault:
            warnings.warn(f"the network {name} is left out: {fault}", InputWarning, stacklevel=2)
    return found


def parse_flows(text: str, count: int, field: str = "flows") -> list[int]:
    """Flow numbers of `0-4,7` in order, each once. FieldError, naming ``field``, if it isn't such a list or names a flow
    >= count."""
    numbers: list[int] = []
    for start, end in _ranges(text, field):
        for number in (start, end):
            if number >= count:
                raise FieldError(field, f"there is no flow {str(number)!r}: the network has flows 0 to {count - 1}")
        numbers += [number for number in range(start, end + 1) if number not in numbers]
    return numbers


def require_flow_list(text: str, field: str = "flows") -> None:
    """FieldError, naming ``field``, unless it is a list as `parse_flows` reads, whatever flows the network has."""
    for _ in _ranges(text, field):
        pass


def _ranges(text: str, field: str) -> Iterator[tuple[int, int]]:
    """First and last flow of each part of `0-4,7`."""
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise FieldError(field, f"{_shown(part)} is not a number or a range such as 0-9")
        start, end = (_flow_number(digits, field) for digits in (first, last if dash else first))
        if end < start:
            raise FieldError(field, f"{part!r} runs backwards")
        yield start, end


def _flow_number(digits: str, field: str) -> int:
    if len(digits) > MOST_FLOW_DIGITS:
        raise FieldError(field, f"there is no flow {_shown(digits)}")
    return int(digits)


def _shown(text: str) -> str:
    """Short enough for an error message."""
    return repr(text) if len(text) <= 40 else f"{text[:40]!r}... ({len(text)} characters)"


def _built_in(name: str) -> Network:
    folder = scenarios.scenario_folder(name)
    flows = tuple(folder / f"flow_{k}.json" for k in range(scenarios.FLOW_COUNT))
    return Network(name, folder / "roadnet.json", flows, scenarios.HORIZON_S, source="built-in")


def data_setting() -> str | None:
    """What TINYLIGHT_DATA says; None where it isn't set."""
    return os.environ.get(DATA_VARIABLE)


def set_data(setting: str) -> None:
    """Let TINYLIGHT_DATA say so, in this process and those that it starts."""
    os.environ[DATA_VARIABLE] = setting


def _listed_folders() -> list[Path]:
    entries = (data_setting() or "").split(os.pathsep)
    return [Path(os.path.expanduser(entry.strip())) for entry in entries if entry.strip()]


def _folders_called(name: str) -> list[Path]:
    """The folders where a network of that name could be. A name is that of one folder: "../x" or "a/b" or "" would leave the
    folders that the user listed."""
    return [base / name for base in _listed_folders()] if name and name == Path(name).name else []


def _unreadable_folders() -> list[tuple[Path, str]]:
    """Folders of TINYLIGHT_DATA that can't be searched for networks, and why. As with PATH they are skipped."""
    found = []
    for folder in _listed_folders():
        try:
            next(folder.iterdir(), None)
        except OSError as fault:
            found.append((folder, fault.strerror or str(fault)))
    return found


def _names(belongs: Callable[[Path], bool]) -> list[str]:
    """Names of the networks in the listed folders."""
    names = []
    for base in _listed_folders():
        with contextlib.suppress(OSError):
            names += sorted(entry.name for entry in base.iterdir() if belongs(entry))
    return names


def _has_roadnet(folder: Path) -> bool:
    return os.path.isfile(folder / "roadnet.json")  # never raises, as Path's may


def _is_network(folder: Path) -> bool:
    return _has_roadnet(folder) and os.path.isfile(folder / "flow_0.json")


def _require_flows(folder: Path) -> None:
    """InputError for a road network without demand."""
    if _has_roadnet(folder) and not _is_network(folder):
        raise InputError(
            folder, "flow_0.json", "missing: a network's folder holds flow_0.json, flow_1.json, ... beside roadnet.json"
        )


def _data_set(folder: Path) -> Network:
    numbers = sorted(
        int(match[1]) for each in folder.iterdir() if (match := re.fullmatch(r"flow_(0|[1-9]\d*)\.json", each.name))
    )
    missing = set(range(len(numbers))) - set(numbers)
    if missing:
        raise InputError(folder, f"flow_{min(missing)}.json", "missing: flow files are numbered 0, 1, 2, ...")
    flows = tuple(folder / f"flow_{k}.json" for k in numbers)
    return Network(folder.name, folder / "roadnet.json", flows, *_times_s(folder))


def _times_s(folder: Path) -> tuple[int, int]:
    """Horizon and decision interval."""
    own = _own_times_s(folder / "network.json")
    horizon_s = own.get("horizon_s", HORIZONS_S.get(folder.name, DEFAULT_HORIZON_S))
    return horizon_s, own.get("decision_interval_s", DECISION_INTERVAL_S)


def _own_times_s(file: Path) -> dict[str, int]:
    """The times of a ``network.json``; none without the file."""
    if not file.is_file():
        return {}
    content = read_json(file)
    if not isinstance(content, dict):
        raise InputError(file, "", "must be an object")
    unknown = set(content) - set(NETWORK_FILE_KEYS)
    if unknown:
        known = f"{', '.join(NETWORK_FILE_KEYS[:-1])} and {NETWORK_FILE_KEYS[-1]}"
        raise InputError(file, min(unknown), f"unknown; a network's description has {known}")
    times_s: dict[str, int] = {}
    for key in [key for key in NETWORK_FILE_KEYS[:-1] if key in content or key == "horizon_s"]:
        value = content.get(key)
        if type(value) is not int or value <= 0:
            raise InputError(file, key, f"must be a whole number of seconds above 0, not {value!r}")
        times_s[key] = value
    return times_s
