"""The CityFlow interface, keyed by names (docs/cityflow-semantics.md, section 9.1), on top of `EngineCore`.

Dictionaries come sorted by key. Where CityFlow prints and carries on, or crashes, these methods raise.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from streetflow.engine.archive import Archive
from streetflow.engine.arguments import is_finite, plain_number, road_names
from streetflow.engine.reading import ReadingEngine
from streetflow.engine.replay_log import ReplayLog
from streetflow.engine.start import add_free_slots, next_pushed
from streetflow.errors import InputError, InputWarning, UnknownIdError
from streetflow.kernels import step as kernel_step
from streetflow.kernels import tables as t
from streetflow.roadnet.config import Config
from streetflow.roadnet.cursor import Cursor
from streetflow.roadnet.flow import PUSHED_DEFAULTS, Flow, vehicle_kind
from streetflow.roadnet.network_tables import NetworkTables


class Engine(ReadingEngine):
    """A running simulation, used like ``cityflow.Engine``; `EngineCore` has the array interface."""

    _replay: ReplayLog | None = None

    def _construct(self, config: Config, network: NetworkTables, flows: Sequence[Flow]) -> None:
        super()._construct(config, network, flows)
        if config.save_replay:
            self._replay = ReplayLog(network, self.demand.kinds, config.roadnet_log_file, config.replay_log_file)

    # ------------------------------------------------------------------ steps

    def next_step(self) -> None:
        """Simulate one step of `interval` seconds. StepError if a vehicle comes to a dead end of its route."""
        while self._step_kernel(*self.memory, 1):
            self._after_fault()
        if self._replay is not None:
            self._replay.write(self.memory, self.state, self.drivers())

    def step_many(self, n: int) -> None:
        """Simulate several steps in compiled code (one by one where a replay is written).

        Args:
            n: how many.

        Raises:
            StepError, ValueError: as in `EngineCore`.
        """
        if self._replay is None:
            super().step_many(n)
            return
        for _ in range(self._step_count(n)):
            self.next_step()

    # ------------------------------------------------------------------ control

    def set_tl_phase(self, intersection_id: str, phase_id: int) -> None:
        """Show a phase from the next step on.

        Args:
            intersection_id: as in the road network's file.
            phase_id: the phase's number there, from 0.

        Raises:
            UnknownIdError: there is no such intersection.
            IndexError: it has no such phase, or is virtual.
            StepError: the lights run by their own plan.
        """
        number = self.intersection_index.get(intersection_id)
        if number is None:
            raise UnknownIdError("intersection", intersection_id, lambda: self.intersection_ids)
        self.set_phase_by_index(number, phase_id)

    def set_vehicle_speed(self, vehicle_id: str, speed: float) -> None:
        """Set the speed that a vehicle tries to drive at in the next step only.

        Args:
            vehicle_id: as `get_vehicles` gives it.
            speed: m/s.

        Raises:
            UnknownVehicleError: no vehicle that is present has the id.
            ValueError: the speed isn't finite.
        """
        v = self._require(vehicle_id)
        if not is_finite(speed):
            raise ValueError(f"a speed must be a finite number, is {plain_number(speed)}")
        self.state.custom_speed[v] = speed

    def push_vehicle(self, info: Mapping[str, float], roads: Sequence[str]) -> None:
        """Add a vehicle that will enter on the first of some roads.

        Args:
            info: any of speed, length, width, maxPosAcc, maxNegAcc, usualPosAcc, usualNegAcc, minGap, maxSpeed, headwayTime.
            roads: ids that its route leads through. If no route can be planned, the vehicle is dropped in the next step, with
                a warning.

        Raises:
            InputError: a value is bad, or there is no road in the list.
            UnknownIdError: there is no such road.
        """
        cursor = Cursor({name: plain_number(value) for name, value in dict(info).items()}, "push_vehicle", "info")
        kind = vehicle_kind(cursor, PUSHED_DEFAULTS)
        speed = cursor["speed"].number(least=0) if cursor.has("speed") else PUSHED_DEFAULTS["speed"]
        names = road_names(roads)
        if not names:
            raise InputError("push_vehicle", "roads", "must hold at least 1 road")
        index = self.network.roadnet.road_index
        for name in names:
            if name not in index:
                raise UnknownIdError("road", name, lambda: index)
        anchors = [index[name] for name in names]
        route = self.demand.route(anchors)
        if not self.demand.valid[route]:
            fault = self.network.router.fault(anchors)
            warnings.warn(f"push_vehicle: roads: {fault}: the vehicle is dropped", InputWarning, stacklevel=2)
        self.make_room(1)
        number = self.demand.kind(kind)
        if self.demand.write(self._tables):
            self._refresh()
        kernel_step.push(*self.memory, number, route, self._n_pushed, float(speed))
        self._n_pushed += 1

    def set_vehicle_route(self, vehicle_id: str, route: Sequence[str]) -> bool:
        """Give a vehicle a new route, from its current road on.

        Args:
            vehicle_id: as `get_vehicles` gives it.
            route: ids of the roads that it leads through.

        Returns:
            False, and nothing changes, if the vehicle or a road is unknown or the vehicle is on a lane link. False, too, if
            there is no such route from its lane (while it changes lanes: from either of its two); then, as in CityFlow, it
            goes on from the first visit of its road in its old route.
        """
        v = self._find(vehicle_id)
        roadnet = self.network.roadnet
        wanted = [roadnet.road_index.get(name, -1) for name in road_names(route)]
        if v < 0 or -1 in wanted:
            return False
        state = self.state
        vehicles = [v] if state.role[v] == t.SINGLE else [v, int(state.partner[v])]
        pending = state.status[v] == t.PENDING
        lanes = [] if pending else [int(state.path[state.path_index[one]]) for one in vehicles]
        if any(lane >= self._n_lanes for lane in lanes):
            return False
        here = int(state.route_road[state.route[v]]) if pending else roadnet.lane_road[lanes[0]]
        number = self.demand.route_from([here, *wanted], lanes)
        if not (accepted := number >= 0):
            if pending:
                return False
            number = int(state.route[v])
        roads = self.demand.routes[number]
        place = roads.index(here)
        starts = [self.demand.lane_path_start(roads, place, lane) for lane in lanes] or [-1]
        if self.demand.write(self._tables):
            self._refresh()
        state = self.state
        state.route[vehicles], state.place[vehicles] = number, place
        state.path_index[vehicles], state.jump_from[vehicles], state.planned_end[vehicles] = starts, -1, -1
        if not pending:
            state.following[vehicles] = state.path[np.array(starts) + 1]
        return accepted

    # ------------------------------------------------------------------ snapshots and replays

    def snapshot(self) -> Archive:
        """The full state: vehicles, queues, flow clocks, lights, step, counts, random generator.

        Raises:
            RuntimeError: the engine stopped in the middle of a step.
        """
        return Archive(self)

    def load(self, archive: Archive) -> None:
        """Go back to a snapshot.

        Args:
            archive: of this engine or of another one on the same input.

        Raises:
            InputError: it is of another road network, demand, step length or setting of lane changing.
        """
        if not isinstance(archive, Archive):
            raise TypeError(f"needs an Archive, not {archive!r}; load_from_file reads one from a file")
        archive.restore(self._tables, self.demand, self.inputs_sha256)
        if self.config.lane_change:
            self._tables.grow("changers", self._tables.sizes["slots"])
        self._refresh()
        self._n_pushed = max(self._n_pushed, next_pushed(self.state))
        self._directory.forget()
        n_slots = archive.n_slots
        if n_slots < self._tables.sizes["slots"]:
            add_free_slots(self.state, n_slots)

    def load_from_file(self, path: str | Path) -> None:
        """Go back to a snapshot that `Archive.dump` wrote.

        Args:
            path: of the file.

        Raises:
            InputError: the file can't be read, was damaged or edited, or isn't of an engine on the same input.
        """
        self.load(Archive.read(path))

    def set_save_replay(self, open: bool) -> None:
        """Pause or continue the replay.

        Args:
            open: whether to continue.

        Raises:
            RuntimeError: saveReplay is false in the config.
        """
        self._require_replay().set_enabled(bool(open))

    def set_replay_file(self, replay_file: str) -> None:
        """Write the replay to another file from now on.

        Args:
            replay_file: its path, relative to the config's dir.

        Raises:
            RuntimeError: saveReplay is false in the config.
            InputError: the file can't be written, or is an input or the other log.
        """
        replay, path = self._require_replay(), self.config.directory + replay_file
        self.config.check_replay_file(path)
        replay.open(path)

    def _require_replay(self) -> ReplayLog:
        if self._replay is None:
            raise RuntimeError("saveReplay is false in the config file: no replay is written")
        return self._replay
