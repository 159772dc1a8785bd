"""A SUMO scenario: a network, demand and further files with the options of a run, from a ``.sumocfg`` or named one by one."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from streetflow.errors import FieldError, InputError
from streetflow.sumo.xml_file import Element, read_xml

_LONG = {"net": "net-file", "n": "net-file", "routes": "route-files", "route": "route-files", "r": "route-files",
         "additional": "additional-files", "a": "additional-files", "b": "begin", "e": "end"}  # fmt: skip
_FILES = ("net-file", "route-files", "additional-files")
_DROPPED_SECTIONS = {"output", "report", "gui_only", "traci_server"}
_DROPPED = {"seed", "random", "verbose", "no-step-log", "no-warnings", "quit-on-end", "start", "gui-settings-file", "log"}
REFUSED = {"load-state": "a saved state", "weight-files": "weights of edges", "remote-port": "a program that steers it"}
MOST_STEPS_A_SECOND = 1000


@dataclass(frozen=True)
class Scenario:
    """options: those of SUMO's that change a run, files and times aside. dropped: names of those that don't."""

    net: Path
    routes: tuple[Path, ...]
    additional: tuple[Path, ...]
    begin_s: float
    end_s: float | None
    step_s: float
    options: Mapping[str, str]
    dropped: tuple[str, ...]

    def config(self, names: Mapping[Path, str], end_s: float) -> bytes:
        """A ``.sumocfg`` of it. names: of its files, beside the configuration."""
        root = ET.Element("configuration")
        files = (("net-file", (self.net,)), ("route-files", self.routes), ("additional-files", self.additional))
        section = ET.SubElement(root, "input")
        for option, paths in files:
            if paths:
                ET.SubElement(section, option, value=",".join(names[path] for path in paths))
        section = ET.SubElement(root, "time")
        for option, value in (("begin", self.begin_s), ("end", end_s), ("step-length", self.step_s)):
            ET.SubElement(section, option, value=f"{value:g}" if value < 1e6 else repr(value))
        section = ET.SubElement(root, "processing")
        for option, text in self.options.items():
            ET.SubElement(section, option, value=text)
        ET.indent(root)
        return ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def read_scenario(files: Sequence[Path], begin_s: float | None = None, end_s: float | None = None) -> Scenario:
    """The scenario of a ``.sumocfg``, or of a network and the files with its demand.

    Args:
        files: the configuration alone; or the network first, then routes.
        begin_s, end_s: in place of the configuration's.

    Raises:
        InputError: a file can't be read, or the options make no run of ours.
    """
    if len(files) == 1 and not files[0].name.endswith((".net.xml", ".net.xml.gz")):
        found = _of_config(files[0])
    else:
        if len(files) < 2:
            raise InputError(files[0], "", "is a network alone: name files with its demand (.rou.xml) behind it")
        found = Scenario(files[0], tuple(files[1:]), (), 0.0, None, 1.0, {}, ())
    begin_s = found.begin_s if begin_s is None else begin_s
    end_s = found.end_s if end_s is None else end_s
    if end_s is not None and end_s <= begin_s:
        raise FieldError("end", f"must be after the begin, {begin_s:g} s, is {end_s:g} s")
    return Scenario(found.net, found.routes, found.additional, begin_s, end_s, found.step_s, found.options, found.dropped)


def _of_config(file: Path) -> Scenario:
    root = read_xml(file, ("configuration", "sumoConfiguration"), "a SUMO configuration (.sumocfg)")
    files: dict[str, list[Path]] = {option: [] for option in _FILES}
    times: dict[str, Element] = {}
    kept: dict[str, str] = {}
    dropped: list[str] = []
    for section, element in _options(root):
        name = _LONG.get(element.tag, element.tag)
        value = element.get("value", element.get("v"))
        if name in REFUSED:
            raise element.fault(f"the scenario needs {REFUSED[name]}, which can't be imported")
        if name in files:
            files[name] += [_beside(file, word, element) for word in value.replace(",", " ").split()]
        elif name in ("begin", "end", "step-length"):
            times[name] = Element(file, element.line, element.tag, {"value": value})
        elif section in _DROPPED_SECTIONS or name in _DROPPED or name.endswith(("output", "log", "log-file")):
            dropped.append(name)
        elif name.endswith(("file", "files")):
            raise element.fault("names files of a kind that can't be imported")
        else:
            kept[name] = value
    if len(files["net-file"]) != 1:
        raise InputError(file, "", f"names {len(files['net-file'])} networks (net-file), there must be one")
    if not files["route-files"]:
        raise InputError(file, "", "names no demand (route-files)")
    step_s = times["step-length"].time_s("value") if "step-length" in times else 1.0
    if not 1 / MOST_STEPS_A_SECOND <= step_s <= 1 or abs(round(1 / step_s) * step_s - 1) > 1e-9:
        raise times["step-length"].fault(f"a step must divide a second, is {step_s:g} s")
    end_s = times["end"].time_s("value") if "end" in times else -1.0
    return Scenario(
        net=files["net-file"][0],
        routes=tuple(files["route-files"]),
        additional=tuple(files["additional-files"]),
        begin_s=times["begin"].time_s("value") if "begin" in times else 0.0,
        end_s=end_s if end_s >= 0 else None,
        step_s=step_s,
        options=kept,
        dropped=tuple(dropped),
    )


def _options(root: Element) -> list[tuple[str, Element]]:
    """(section, option) of all options, which may stand in sections or not."""
    found = []
    for each in root.children:
        found += [(each.tag, option) for option in each.children] if each.children else [("", each)]
    return [(section, option) for section, option in found if {"value", "v"} & set(option.attributes)]


def _beside(config: Path, name: str, element: Element) -> Path:
    path = config.parent / name
    if not path.is_file():
        raise element.fault(f"there is no file {path}")
    return path
