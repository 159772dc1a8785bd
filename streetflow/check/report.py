"""Checks files of road networks and demand: what they contain, every fault, every warning.

A *fault* keeps a file from being loaded. A *warning* is about something allowed, but probably not intended.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streetflow.check.check_flow import flow_content, flow_warnings
from streetflow.check.check_roadnet import CheckWarning, Content, roadnet_content, roadnet_warnings
from streetflow.engine.core import EngineCore
from streetflow.errors import InputError, InputWarning
from streetflow.networks.catalogue import DEFAULT_HORIZON_S, network_of
from streetflow.roadnet.config import check_interval
from streetflow.roadnet.flow import read_flows
from streetflow.roadnet.json_reader import read_json
from streetflow.roadnet.network_tables import load_network


@dataclass(frozen=True)
class FileToCheck:
    """One file to check. A demand file comes with its road network."""

    file: Path
    roadnet_file: Path | None = None
    horizon_s: int = DEFAULT_HORIZON_S


@dataclass
class Report:
    """What a file contains. faults: (JSON path, what is wrong); if there are any, content and warnings are empty."""

    file: str
    kind: str  # "road network" or "demand"
    roadnet_file: str = ""  # of a demand
    content: Content = field(default_factory=dict)
    faults: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[CheckWarning] = field(default_factory=list)


def files_to_check(places: Sequence[str]) -> list[FileToCheck]:
    """The files behind names of networks, their folders, and files, each once, road networks first.

    A demand file belongs to the road network given before it, or else to the roadnet.json beside it. InputError for a
    place where there is nothing, and for a demand file without a road network.
    """
    found: list[FileToCheck] = []
    given: Path | None = None
    for place in places:
        path = Path(place)
        if path.is_file() and not isinstance(_json_or_none(path), list):
            given = path
            found.append(FileToCheck(path))
        elif path.is_file() and given is not None:
            found.append(FileToCheck(path, given))
        else:
            network = network_of(place)
            found.append(FileToCheck(network.roadnet_file))
            found += [FileToCheck(file, network.roadnet_file, network.horizon_s) for file in network.flow_files]
    return list(dict.fromkeys(found))


def check(subject: FileToCheck, interval_s: float = 1.0) -> Report:
    """Check one file, for steps of ``interval_s``. No fault of the file raises."""
    check_interval(interval_s, "check", "interval")
    if subject.roadnet_file is None:
        return _check_roadnet(subject.file, interval_s)
    return _check_flow(subject, subject.roadnet_file, interval_s)


def _check_roadnet(file: Path, interval_s: float) -> Report:
    report = Report(str(file), "road network")
    try:
        network = load_network(file)
    except InputError as fault:
        report.faults += _faults(fault)
        return report
    report.content = roadnet_content(network)
    report.warnings += roadnet_warnings(network, interval_s)
    return report


def _check_flow(subject: FileToCheck, roadnet_file: Path, interval_s: float) -> Report:
    report = Report(str(subject.file), "demand", str(roadnet_file))
    try:
        network = load_network(roadnet_file)
    except InputError:  # given in the road network's own report
        report.faults += _faults_without_roadnet(subject.file, roadnet_file)
        return report
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # each of them is in the report's warnings
            engine = EngineCore.from_files(network, subject.file, interval_s=interval_s)
    except InputError as fault:
        report.faults += _faults(fault)
        return report
    report.content = flow_content(engine, subject.horizon_s)
    report.warnings += flow_warnings(engine, subject.horizon_s)
    return report


def _faults(fault: InputError) -> Iterator[tuple[str, str]]:
    yield fault.place, fault.fault
    yield from fault.others


def _faults_without_roadnet(flow_file: Path, roadnet_file: Path) -> Iterator[tuple[str, str]]:
    """The faults of a demand file that can be found although its road network is faulty."""
    content = _json_or_none(roadnet_file)
    roads = content.get("roads") if isinstance(content, dict) else None
    ids = {road.get("id") for road in roads if isinstance(road, dict)} if isinstance(roads, list) else set()
    names = [name for name in ids if isinstance(name, str)]
    try:
        read_flows(flow_file, {name: i for i, name in enumerate(names)})
    except InputError as fault:
        yield from _faults(fault)
    yield "", f"routes weren't checked: its road network {roadnet_file} has faults"


def _json_or_none(file: Path) -> Any:
    try:
        return read_json(file)
    except InputError:
        return None
