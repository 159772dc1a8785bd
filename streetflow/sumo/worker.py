"""The process in which one simulation of SUMO runs, since libsumo has one a process: `process.py` starts it and talks to it.

It is a program of its own that imports nothing of ours, so that it starts fast. A request is a pickled (name, arguments), a
reply a pickled (True, result) or (False, text of the fault). What SUMO prints goes to the standard error stream.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

WAITING_SPEED_MPS = 0.1
LENGTH = struct.Struct("<Q")


class Simulation:
    """SUMO, and what is noted about its vehicles. Times are SUMO's own, in s."""

    def __init__(self) -> None:
        import libsumo

        self._sumo = libsumo
        self._drivables: dict[str, tuple[int, float]] = {}
        self._is_loaded = False

    def load(
        self, options: list[str], lanes: list[str], ways: list[list[str]], approaches: list[tuple[str, int, float]]
    ) -> dict[str, Any]:
        """Start from the beginning. lanes, ways, approaches: as in a `Binding`."""
        if self._is_loaded:
            self._sumo.load(options)
        else:
            self._sumo.start(["sumo", *options])
            self._is_loaded = True
        known = set(self._sumo.lane.getIDList())
        length_m = self._sumo.lane.getLength
        lengths_m = [length_m(name) if name in known else 0.0 for name in lanes]
        self._own_places = {name: (number, 0.0) for number, name in enumerate(lanes)}
        for number, way in enumerate(ways, len(lanes)):
            before_m = 0.0
            for name in way:
                self._own_places[name] = number, before_m
                before_m += length_m(name) if name in known else 0.0
            lengths_m.append(before_m)
        self._drivables = self._own_places | {name: (number, before_m) for name, number, before_m in approaches}
        self._numbers: dict[str, int] = {}  # by vehicle, in the order in which they depart
        self._created_s: list[float] = []
        self._entered_s: list[float] = []
        self._vehicle_m: list[float] = []
        self._ended: dict[int, float] = {}
        self._step_s = self._sumo.simulation.getDeltaT()
        return {
            "version": self._sumo.getVersion()[1],
            "lengths_m": lengths_m,
            "unknown_lanes": sorted(set(self._drivables) - known),
            "lights": {name: len(self._sumo.trafficlight.getRedYellowGreenState(name)) for name in self._lights()},
        }

    def _lights(self) -> tuple[str, ...]:
        return tuple(self._sumo.trafficlight.getIDList())

    def step(self, steps: int, states: dict[str, str]) -> tuple[float, int, int]:
        """Show these states, and then so many steps. Returns the time, the vehicles that have arrived and those that wait to
        enter."""
        simulation, vehicle = self._sumo.simulation, self._sumo.vehicle
        for light, state in states.items():
            self._sumo.trafficlight.setRedYellowGreenState(light, state)
        for _ in range(steps):
            began_s = simulation.getTime()
            self._sumo.simulationStep()
            for name in simulation.getDepartedIDList():
                self._numbers[name] = len(self._numbers)
                try:
                    entered_s, delay_s = vehicle.getDeparture(name), vehicle.getDepartDelay(name)
                    vehicle_m = vehicle.getLength(name)
                except self._sumo.TraCIException:  # it has arrived already
                    entered_s, delay_s, vehicle_m = began_s, 0.0, 0.0
                self._vehicle_m.append(vehicle_m)
                self._created_s.append(entered_s - delay_s)
                self._entered_s.append(entered_s)
            for name in simulation.getArrivedIDList():
                if name in self._numbers:  # not one that was taken out before it entered
                    self._ended[self._numbers[name]] = began_s
        return simulation.getTime(), len(self._ended), len(simulation.getPendingVehicles())

    def look(self) -> tuple[np.ndarray, ...]:
        """Of each vehicle on a lane of ours: drivable, number, distance_m, created_s, speed_mps, waiting_s."""
        vehicle = self._sumo.vehicle
        rows = sorted(
            (drivable, -along_m, number, self._created_s[number], vehicle.getSpeed(name), vehicle.getWaitingTime(name))
            for name, number, drivable, along_m in self._placed(self._drivables)
        )
        columns = np.array(rows, np.float64).reshape(-1, 6).T
        drivable, before_m, serial, created_s, speed_mps, waiting_s = (np.ascontiguousarray(each) for each in columns)
        return drivable.astype(np.int32), serial.astype(np.int64), -before_m, created_s, speed_mps, waiting_s

    def places(self) -> tuple[np.ndarray, ...]:
        """Of each vehicle on a lane of ours, as SUMO has it: number, drivable, distance_m, speed_mps, length_m."""
        vehicle = self._sumo.vehicle
        rows = [
            (number, drivable, along_m, vehicle.getSpeed(name), self._vehicle_m[number])
            for name, number, drivable, along_m in self._placed(self._own_places)
        ]
        columns = np.array(rows, np.float64).reshape(-1, 5).T
        numbers, drivables, along_m, speed_mps, length_m = (np.ascontiguousarray(each) for each in columns)
        return numbers.astype(np.int64), drivables.astype(np.int32), along_m, speed_mps, length_m

    def _placed(self, places: dict[str, tuple[int, float]]) -> Iterator[tuple[str, int, int, float]]:
        """Of each vehicle on one of these lanes: name, number, drivable, distance_m."""
        vehicle = self._sumo.vehicle
        for name in vehicle.getIDList():
            place = places.get(vehicle.getLaneID(name))
            if place is not None and name in self._numbers:
                yield name, self._numbers[name], place[0], place[1] + vehicle.getLanePosition(name)

    def trips(self) -> tuple[np.ndarray, ...]:
        """Of each vehicle: number, created_s, entered_s, ended_s. Those that have ended in the order of their ends, those under
        way, those that wait to enter (their numbers follow); NaN: not yet."""
        ended = list(self._ended)
        number = np.array(ended + [each for each in range(len(self._numbers)) if each not in self._ended], np.int64)
        created_s, entered_s = np.array(self._created_s)[number], np.array(self._entered_s)[number]
        ended_s = np.concatenate([np.array(list(self._ended.values()), np.float64), np.full(len(number) - len(ended), np.nan)])
        now_s = self._sumo.simulation.getTime()
        delay_s = [self._sumo.vehicle.getDepartDelay(each) for each in self._sumo.simulation.getPendingVehicles()]
        nothing = np.full(len(delay_s), np.nan)
        return (
            np.concatenate([number, np.arange(len(self._numbers), len(self._numbers) + len(delay_s))]),
            np.concatenate([created_s, now_s - np.array(delay_s, np.float64)]),
            np.concatenate([entered_s, nothing]),
            np.concatenate([ended_s, nothing]),
        )

    def states(self) -> dict[str, str]:
        """What each light shows."""
        return {name: self._sumo.trafficlight.getRedYellowGreenState(name) for name in self._lights()}

    def vehicle_ids(self) -> list[str]:
        """SUMO's ids, by number."""
        return list(self._numbers)

    def close(self) -> None:
        """End the simulation, so that SUMO completes its output files."""
        if self._is_loaded:
            self._sumo.close()
            self._is_loaded = False


def send(stream: IO[bytes], content: object) -> None:
    data = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """EOFError where the other side has gone."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    return pickle.loads(stream.read(LENGTH.unpack(head)[0]))


def serve() -> None:
    """Answer requests until there are no more."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    try:
        simulation = Simulation()
    except ImportError as fault:
        send(replies, (False, str(fault)))
        return
    send(replies, (True, None))
    while True:
        try:
            name, arguments = receive(requests)
        except EOFError:
            break
        try:
            reply = True, getattr(simulation, name)(*arguments)
        except Exception as fault:  # every fault of SUMO's is the other side's to tell
            reply = False, str(fault)
        send(replies, reply)


if __name__ == "__main__":
    serve()
