"""Replay files for CityFlow's web viewer: one line per step (section 9.3)."""

from __future__ import annotations

import json
import warnings
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from streetflow.engine.roadnet_log import roadnet_log
from streetflow.errors import InputError, InputWarning, cannot_be
from streetflow.files import write_whole
from streetflow.kernels import tables as t
from streetflow.kernels.decimal_text import powers_of_ten
from streetflow.kernels.replay import LONGEST_VEHICLE, write_vehicles
from streetflow.roadnet.flow import VehicleKind
from streetflow.roadnet.network_tables import NetworkTables

_BLOCK_BYTES = 16384  # lines go to the file in blocks of about this size; a block is of whole lines

_owners: weakref.WeakValueDictionary[Path, ReplayLog] = weakref.WeakValueDictionary()  # by file: the log that writes to it


class ReplayLog:
    """Writes the replay of one engine, line by line, as it runs: a replay may be large, and is useful if a run is stopped
    early. A file belongs to the engine that opened it last."""

    def __init__(
        self, network: NetworkTables, kinds: Sequence[VehicleKind], roadnet_log_file: str, replay_log_file: str
    ) -> None:
        """kinds: of the engine's vehicles, by number; it may grow."""
        self._enabled = True
        self._file: BinaryIO | None = None
        self._key: Path | None = None
        write_whole(roadnet_log_file, json.dumps(roadnet_log(network)))
        self.open(replay_log_file)
        shapes = network.lane_shapes + network.link_shapes
        self._shapes = shapes.first, shapes.x, shapes.y, shapes.segment_m, shapes.angle_rad
        self._powers = powers_of_ten()
        self._endings = _Endings(kinds)
        self._lights = _Lights(network)
        self._line = np.zeros(0, np.uint8)

    def open(self, path: str) -> None:
        """Continue in another file, which starts empty. InputError, with the old file kept, if the new one can't be written.

        An engine that is writing to the new file loses it: its next step raises InputError. (So a program may make a
        new engine with the same config while it still holds the old one.)
        """
        try:
            key = Path(path).resolve()
            owner = _owners.get(key)
            if owner is not None:
                owner._flush()  # otherwise closing it would write into the new, empty file
            file = key.open("wb", buffering=_BLOCK_BYTES)
        except (OSError, ValueError) as fault:
            raise cannot_be("written", path, fault) from None
        for loser in (owner, self):
            if loser is not None:
                loser._give_up()
        self._file, self._path, self._key = file, path, key
        weakref.finalize(self, _close, file, path)
        _owners[key] = self

    def _give_up(self) -> None:
        if self._key is not None and _owners.get(self._key) is self:
            del _owners[self._key]
            _close(self._own_file(), self._path)

    def set_enabled(self, enabled: bool) -> None:
        self._enabled = enabled
        self._flush()

    def _flush(self) -> None:
        try:
            self._own_file().flush()
        except OSError as fault:
            raise cannot_be("written", self._path, fault) from None

    def _own_file(self) -> BinaryIO:
        assert self._file is not None
        if self._file.closed:
            raise InputError(
                self._path, "", "another engine has begun its replay in this file, so this one can't continue in it"
            )
        return self._file

    def write(self, memory: tuple[NDArray[Any], ...], state: t.State, running: NDArray[np.intp]) -> None:
        """One line: the vehicles, in order of priority, and the state of the lanes' ends.

        Args:
            memory, state: of the engine.
            running: the slots of its vehicles.
        """
        if not self._enabled:
            return
        file = self._own_file()
        lights, endings = self._lights.text(state.is_open), self._endings
        endings.follow()
        most = running.size * (LONGEST_VEHICLE + endings.longest) + lights.size
        if most > self._line.size:
            self._line = np.zeros(2 * most, np.uint8)
        order = running[np.argsort(state.priority[running])]
        size = write_vehicles(*memory, order, *self._shapes, endings.texts, endings.first, self._powers, self._line)
        self._line[size : size + lights.size] = lights
        try:
            file.write(self._line[: size + lights.size].data)  # in one call: an interrupt leaves no part of a line behind
        except OSError as fault:
            raise cannot_be("written", self._path, fault) from None


def _close(file: BinaryIO, path: str) -> None:
    """A warning if the last lines can't be written."""
    try:
        file.close()
    except OSError as fault:
        warnings.warn(f"{cannot_be('written', path, fault)}: its end is missing", InputWarning, stacklevel=2)


class _Endings:
    """What ends the entry of a vehicle: the size of its kind."""

    def __init__(self, kinds: Sequence[VehicleKind]) -> None:
        self._kinds = kinds
        self.first = np.zeros(1, np.int64)  # int64[kinds + 1], into texts
        self.texts = np.zeros(0, np.uint8)
        self.longest = 0

    def follow(self) -> None:
        """Take up kinds that are new."""
        if len(self._kinds) == self.first.size - 1:
            return
        texts = [f" {kind.length_m!r} {kind.width_m!r},".encode() for kind in self._kinds]
        self.first = np.cumsum([0, *map(len, texts)])
        self.texts = np.frombuffer(b"".join(texts), np.uint8)
        self.longest = max(map(len, texts))


class _Lights:
    """The end of a line: for each road that ends at an intersection its id, and a letter for each of its lanes."""

    def __init__(self, network: NetworkTables) -> None:
        text = bytearray(b";")
        places: list[int] = []  # in the text, of the letters that change
        links: list[list[int]] = []  # that leave the lanes of these letters
        n_lanes = len(network.lane_shapes)
        roadnet = network.roadnet
        for road in roadnet.roads:
            end = roadnet.intersections[road.end_intersection]
            if end.virtual:
                continue
            text += road.id.encode()
            for lane in range(road.first_lane, road.first_lane + road.n_lanes):
                has_lights = len(end.phases) > 1
                text += b" g" if has_lights else b" i"
                if has_lights and (of_lane := [drivable - n_lanes for drivable, _ in network.router.lane_links[lane]]):
                    places.append(len(text) - 1)
                    links.append(of_lane)
            text += b","
        text += b"\n"
        self._text = np.frombuffer(text, np.uint8)
        self._places = np.array(places, np.int64)
        self._links = np.array([link for of_lane in links for link in of_lane], np.int64)
        self._first = np.cumsum([0, *map(len, links)])[:-1]
        self._is_open = np.zeros(0, np.int32)  # of each lane link, as the text shows it

    def text(self, is_open: NDArray[np.int32]) -> NDArray[np.uint8]:
        """uint8: "g" where all lane links of a lane are open, "r" where one isn't, "i" where an intersection has no lights."""
        if not np.array_equal(is_open, self._is_open):
            self._is_open = is_open.copy()
            if self._places.size:
                open_lanes = np.minimum.reduceat(is_open[self._links], self._first)
                self._text[self._places] = np.where(open_lanes, ord("g"), ord("r"))
        return self._text
