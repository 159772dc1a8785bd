"""Loop detectors made from the simulated vehicles: what passes between two steps of the engine, interpolated.

Two loops a lane, as docs/controller.md has them: the entry loop covers the lane's first 2 m, the stop-line loop the 2 m
behind its end. A loop is occupied from a front's passing of its beginning to that vehicle's rear's passing of its end.
Within a step a vehicle is taken to move evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.loop.edges import Edge
from streetflow.engine.cityflow_names import Engine
from streetflow.engine.vehicles import VehicleTable

LOOP_M = 2.0
GAP_S = 0.04  # between two vehicles that overlap
LEAST_WAY_M = 1.0  # in a second, of a vehicle that leaves the network
ENTRY, STOP_LINE = 0, 1
_FLOW_SHIFT = 32  # of a vehicle's number


class _Seen:
    """The running vehicles, and behind them, where index -1 finds it, none."""

    def __init__(self, table: VehicleTable) -> None:
        self.number = np.append(table.number, -1)
        self.drivable = np.append(table.drivable, np.int32(-1))
        self.distance_m = np.append(table.distance_m, np.nan)
        self.speed_mps = np.append(table.speed_mps, 0.0)
        self._order = np.argsort(self.number)
        self._sorted = self.number[self._order]

    def places(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where each of `numbers` is; -1: nowhere."""
        at = self._order[np.minimum(np.searchsorted(self._sorted, numbers), len(self._order) - 1)]
        return np.where((self.number[at] == numbers) & (numbers >= 0), at, -1)


class _Over(NamedTuple):
    """A vehicle over a loop, and how far its rear is from the loop's end."""

    loop: int
    vehicle: int
    left_m: float


class _Gone(NamedTuple):
    """A vehicle over a loop at the network's edge, which the engine knows no more, and how long it still is."""

    loop: int
    left_s: float


class Loops:
    """The loops of these lanes: loop 2k is lane k's entry loop, 2k + 1 its stop-line loop."""

    def __init__(self, engine: Engine, lanes: Sequence[int]) -> None:
        self._engine = engine
        self._lengths_m = np.asarray(engine.state.length, np.float64).copy()
        self._count = len(engine.lane_ids)
        self._loop_of = np.full(len(self._lengths_m), -1, np.int64)
        self._loop_of[np.asarray(lanes, np.int64)] = 2 * np.arange(len(lanes))
        state = engine.state
        first = self._count
        ends = zip(state.start_lane.tolist(), state.end_lane.tolist(), strict=True)
        self._link_m = {pair: float(self._lengths_m[first + k]) for k, pair in enumerate(ends)}
        self._vehicle_m = np.array([flow.kind.length_m for flow in engine.flows])
        self.reset()

    def reset(self) -> None:
        """As the engine is now; loops begin free."""
        self._before = _Seen(self._engine.vehicle_table())
        self._over: list[_Over] = []
        self._gone: list[_Gone] = []
        self.occupied = np.zeros(2 * int((self._loop_of >= 0).sum()), np.int32)

    def step(self) -> list[Edge]:
        """What has passed in the step that the engine has just made, in the order of time."""
        before, after = self._before, _Seen(self._engine.vehicle_table())
        self._before = after
        was = before.places(after.number)  # of each vehicle now: its place before
        moved_m = self._moved(before, after, was)
        marks: list[tuple[float, int, int]] = []  # when, loop, +1 or -1 vehicle over it
        self._over = self._let_go(after, moved_m, marks)
        marks += [(each.left_s, each.loop, -1) for each in self._gone if each.left_s <= 1.0]
        self._gone = [each._replace(left_s=each.left_s - 1.0) for each in self._gone if each.left_s > 1.0]
        self._enter(before, after, was, moved_m, marks)
        self._leave(before, after, was, moved_m, marks)
        return self._edges(sorted(marks))

    def _moved(self, before: _Seen, after: _Seen, was: NDArray[np.int64]) -> NDArray[np.float64]:
        """How far each vehicle has come in the step; NaN for one that wasn't there."""
        moved = after.distance_m - before.distance_m[was]
        start = before.drivable[was]
        changed = np.flatnonzero((was >= 0) & (start != after.drivable))
        moved[changed] += self._lengths_m[start[changed]]
        for n in changed[(start[changed] < self._count) & (after.drivable[changed] < self._count)].tolist():
            moved[n] += self._link_m.get((int(start[n]), int(after.drivable[n])), 0.0)  # a link that one step led over
        return moved

    def _let_go(self, after: _Seen, moved_m: NDArray[np.float64], marks: list[tuple[float, int, int]]) -> list[_Over]:
        """Rears that leave their loops; returns the vehicles that stay over theirs."""
        stay: list[_Over] = []
        if not self._over:
            return stay
        entries = after.places(np.array([each.vehicle for each in self._over], np.int64))
        for each, n in zip(self._over, entries.tolist(), strict=True):
            if n < 0:  # it has left the network
                marks.append((0.0, each.loop, -1))
            elif moved_m[n] >= each.left_m:
                marks.append((each.left_m / max(float(moved_m[n]), 1e-9), each.loop, -1))
            else:
                stay.append(each._replace(left_m=each.left_m - float(moved_m[n])))
        return stay

    def _enter(
        self, before: _Seen, after: _Seen, was: NDArray[np.int64], moved_m: NDArray[np.float64],
        marks: list[tuple[float, int, int]],
    ) -> None:  # fmt: skip
        """Fronts that have come onto a lane."""
        loops = np.where(after.number >= 0, self._loop_of[after.drivable], -1)
        new = (loops >= 0) & ((was < 0) | (before.drivable[was] != after.drivable))
        for n in np.flatnonzero(new).tolist():
            inside_m, way_m = float(after.distance_m[n]), float(moved_m[n])
            if not way_m > 0:  # it has entered the network here
                way_m = inside_m
            begin_s = 1.0 - inside_m / way_m if way_m > 0 else 1.0
            self._pass_over(int(loops[n]) + ENTRY, int(after.number[n]), (begin_s, inside_m, way_m), marks)

    def _leave(
        self, before: _Seen, after: _Seen, was: NDArray[np.int64], moved_m: NDArray[np.float64],
        marks: list[tuple[float, int, int]],
    ) -> None:  # fmt: skip
        """Fronts that have passed a lane's end."""
        now = np.full(len(before.number), -1, np.int64)
        now[was] = np.arange(len(was))
        now[-1] = -1
        loops = np.where(before.number >= 0, self._loop_of[before.drivable], -1)
        gone = (loops >= 0) & ((now < 0) | (after.drivable[now] != before.drivable))
        for n in np.flatnonzero(gone).tolist():
            left_m = float(self._lengths_m[before.drivable[n]] - before.distance_m[n])
            way_m = float(moved_m[now[n]]) if now[n] >= 0 else max(float(before.speed_mps[n]), left_m, LEAST_WAY_M)
            begin_s = min(left_m / way_m, 1.0) if way_m > 0 else 1.0
            passing = (begin_s, way_m - left_m, way_m)
            self._pass_over(int(loops[n]) + STOP_LINE, int(before.number[n]), passing, marks, has_gone=now[n] < 0)

    def _pass_over(
        self,
        loop: int,
        vehicle: int,
        passing: tuple[float, float, float],
        marks: list[tuple[float, int, int]],
        has_gone: bool = False,
    ) -> None:
        """passing: when the front came, how far it is beyond by the step's end, and the way of the whole step; has_gone: the
        vehicle has left the network, and drives on as fast as it did."""
        begin_s, beyond_m, way_m = passing
        marks.append((begin_s, loop, 1))
        flow = max(vehicle, 0) >> _FLOW_SHIFT
        covers_m = LOOP_M + (float(self._vehicle_m[flow]) if flow < len(self._vehicle_m) else 5.0)
        if beyond_m >= covers_m:
            marks.append((begin_s + covers_m / way_m, loop, -1))
        elif has_gone:
            self._gone.append(_Gone(loop, begin_s + covers_m / way_m - 1.0))
        else:
            self._over.append(_Over(loop, vehicle, covers_m - beyond_m))

    def _edges(self, marks: list[tuple[float, int, int]]) -> list[Edge]:
        edges: list[Edge] = []
        last_s: dict[int, float] = {}  # when each loop's level has changed last
        for when_s, loop, change in marks:
            at_s = min(max(when_s, last_s.get(loop, 0.0)), 1.0)
            level = self.occupied[loop] > 0
            self.occupied[loop] += change
            if (self.occupied[loop] > 0) != level:
                edges.append(Edge(at_s, loop, int(not level)))
            elif change > 0:
                at_s = _parted(edges, loop, at_s, last_s.get(loop, 0.0))
            else:
                continue
            last_s[loop] = max(at_s, last_s.get(loop, 0.0))
        return sorted(edges, key=lambda edge: edge.at_s)


def _parted(edges: list[Edge], loop: int, at_s: float, last_s: float) -> float:
    """A vehicle comes while another one is over the loop, which the engine lets happen where ways join: they are felt one after
    the other, as on a street. Returns when the second one is."""
    gap_s = min(GAP_S, (1.0 - last_s) / 3)
    free_s = min(max(at_s, last_s + gap_s), 1.0 - 2 * gap_s)
    edges += [Edge(free_s, loop, 0), Edge(free_s + gap_s, loop, 1)]
    return free_s + gap_s
