"""Loop detectors made from the simulated vehicles: what passes between two steps of the engine, interpolated.

Two loops a lane, as docs/controller.md has them: the entry loop covers the lane's first 2 m, the stop-line loop the 2 m
behind its end. A loop is occupied from a front's passing of its beginning to that vehicle's rear's passing of its end.
Within a step a vehicle is taken to move evenly. Who changes lanes between the loops is felt by one lane's entry loop and by
the other's stop-line loop, as on a street.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.light.tracks import Step, Ways, tracks_of
from hil.loop.edges import Edge
from streetflow.control.environment import Environment
from streetflow.engine.vehicles import Places

LOOP_M = 2.0
GAP_S = 0.04  # between two vehicles that overlap
LEAST_WAY_M = 1.0  # in a second, of a vehicle that leaves the network
GAIN_M = 3.0  # by how much a second's way may be longer than the speed before it says
ENTRY, STOP_LINE = 0, 1

Mark = tuple[float, int, int]  # when, loop, +1 or -1 vehicle over it


class _Seen:
    """The running vehicles, and behind them, where index -1 finds it, none."""

    def __init__(self, places: Places) -> None:
        self.number = np.append(places.number, -1)
        self.drivable = np.append(places.drivable, np.int32(-1))
        self.distance_m = np.append(places.distance_m, np.nan)
        self.speed_mps = np.append(places.speed_mps, 0.0)
        self.length_m = np.append(places.length_m, 0.0)
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
    """The loops of these lanes of an environment: loop 2k is lane k's entry loop, 2k + 1 its stop-line loop."""

    def __init__(self, environment: Environment, lanes: Sequence[int]) -> None:
        network = environment.changes.network
        self._tracks, self._ways = tracks_of(environment), Ways(network)
        self._lengths_m = self._tracks.lengths_m
        loops = np.full(len(self._lengths_m), -1, np.int64)
        loops[np.asarray(lanes, np.int64)] = 2 * np.arange(len(lanes))
        whole_lane = self._tracks.whole_lane
        is_whole = whole_lane == np.arange(len(whole_lane))
        ways = loops[len(whole_lane) :]  # none has a loop
        self._entry_loop = np.append(loops[whole_lane], ways)
        self._exit_loop = np.append(np.where(is_whole, loops[: len(whole_lane)], -1), ways)
        roads = np.repeat(np.arange(len(network.roadnet.roads)), [road.n_lanes for road in network.roadnet.roads])
        self._road = np.append(roads[whole_lane], np.full(len(ways), -1))  # that a drivable is counted as part of
        self._count = 2 * len(lanes)
        self.reset()

    def reset(self) -> None:
        """As the engine is now; loops begin free."""
        self._before = _Seen(self._tracks.places())
        self._over: list[_Over] = []
        self._gone: list[_Gone] = []
        self.occupied = np.zeros(self._count, np.int32)

    def step(self) -> list[Edge]:
        """What has passed in the step that the engine has just made, in the order of time."""
        before, after = self._before, _Seen(self._tracks.places())
        self._before = after
        was = before.places(after.number)  # of each vehicle now: its place before
        steps = self._steps(before, after, was)
        moved_m = self._moved(before, after, was, steps)
        put = np.flatnonzero((was >= 0) & np.isnan(moved_m))
        marks: list[Mark] = []
        self._over = self._let_go(after, moved_m, marks)
        marks += [(each.left_s, each.loop, -1) for each in self._gone if each.left_s <= 1.0]
        self._gone = [each._replace(left_s=each.left_s - 1.0) for each in self._gone if each.left_s > 1.0]
        for n, way in steps.items():
            if way and not np.isnan(moved_m[n]):
                self._drive(float(before.distance_m[was[n]]), after, n, way, float(moved_m[n]), marks)
        self._appear(after, np.append(np.flatnonzero(was < 0), put), marks)
        is_here = np.zeros(len(before.number), np.bool_)
        is_here[was] = True
        self._vanish(before, np.append(np.flatnonzero(~is_here), was[put]), marks)
        return self._edges(sorted(marks))

    def _steps(self, before: _Seen, after: _Seen, was: NDArray[np.int64]) -> dict[int, tuple[Step, ...] | None]:
        """Of each vehicle that has come to another drivable: how; None: it can't have driven there."""
        changed = np.flatnonzero((was >= 0) & (before.drivable[was] != after.drivable)).tolist()
        return {n: self._ways.between(int(before.drivable[was[n]]), int(after.drivable[n])) for n in changed}

    def _moved(
        self, before: _Seen, after: _Seen, was: NDArray[np.int64], steps: dict[int, tuple[Step, ...] | None]
    ) -> NDArray[np.float64]:
        """How far each vehicle has come in the step; NaN for one that wasn't there, or was put where it is (teleported)."""
        moved_m = after.distance_m - before.distance_m[was]
        for n, way in steps.items():
            for left, _ in way or ():
                moved_m[n] += self._lengths_m[left]
            if way is None or (
                self._tracks.appears_anywhere and moved_m[n] > max(before.speed_mps[was[n]], after.speed_mps[n]) + GAIN_M
            ):
                moved_m[n] = np.nan
        return moved_m

    def _let_go(self, after: _Seen, moved_m: NDArray[np.float64], marks: list[Mark]) -> list[_Over]:
        """Rears that leave their loops; returns the vehicles that stay over theirs."""
        stay: list[_Over] = []
        if not self._over:
            return stay
        entries = after.places(np.array([each.vehicle for each in self._over], np.int64))
        for each, n in zip(self._over, entries.tolist(), strict=True):
            if n < 0 or np.isnan(moved_m[n]):  # it has left the network, or was put elsewhere
                marks.append((0.0, each.loop, -1))
            elif moved_m[n] >= each.left_m:
                marks.append((each.left_m / max(float(moved_m[n]), 1e-9), each.loop, -1))
            else:
                stay.append(each._replace(left_m=each.left_m - float(moved_m[n])))
        return stay

    def _drive(self, before_m: float, after: _Seen, n: int, way: Sequence[Step], way_m: float, marks: list[Mark]) -> None:
        """One vehicle's fronts that pass a lane's end and come onto a lane, on its way of `way_m`, from `before_m` of its first
        drivable on."""
        vehicle, length_m, done_m = int(after.number[n]), float(after.length_m[n]), -before_m
        for number, (left, entered) in enumerate(way, 1):
            done_m += float(self._lengths_m[left])
            if (loop := int(self._exit_loop[left])) >= 0:
                begin_s = min(done_m / way_m, 1.0) if way_m > 0 else 1.0
                self._pass_over(loop + STOP_LINE, vehicle, length_m, (begin_s, way_m - done_m, way_m), marks)
            comes_from = self._road[self._ways.start_lane.get(left, left)]
            if (loop := int(self._entry_loop[entered])) >= 0 and comes_from != self._road[entered]:
                inside_m = float(after.distance_m[n]) if number == len(way) else way_m - done_m
                begin_s = 1.0 - inside_m / way_m if way_m > 0 else 1.0
                self._pass_over(loop + ENTRY, vehicle, length_m, (begin_s, inside_m, way_m), marks)

    def _appear(self, after: _Seen, numbers: NDArray[np.intp], marks: list[Mark]) -> None:
        """Vehicles that weren't there before, on a lane with loops."""
        for n in numbers.tolist():
            loop, inside_m = int(self._entry_loop[after.drivable[n]]), float(after.distance_m[n])
            vehicle, length_m = int(after.number[n]), float(after.length_m[n])
            if loop < 0 or vehicle < 0:
                continue
            if not self._tracks.appears_anywhere:
                begin_s = 0.0 if inside_m > 0 else 1.0
                self._pass_over(loop + ENTRY, vehicle, length_m, (begin_s, inside_m, inside_m), marks)
                continue
            speed_mps = float(after.speed_mps[n])
            if inside_m - self._tracks.driven_s * speed_mps < LOOP_M + length_m:  # began over it
                way_m = max(speed_mps, inside_m, LEAST_WAY_M)
                self._pass_over(loop + ENTRY, vehicle, length_m, (1.0 - inside_m / way_m, inside_m, way_m), marks)

    def _vanish(self, before: _Seen, numbers: NDArray[np.intp], marks: list[Mark]) -> None:
        """Vehicles that aren't there any more, and were on a lane with loops."""
        for n in numbers.tolist():
            loop = int(self._exit_loop[before.drivable[n]])
            if loop < 0 or before.number[n] < 0:
                continue
            left_m, speed_mps = float(self._lengths_m[before.drivable[n]] - before.distance_m[n]), float(before.speed_mps[n])
            if self._tracks.appears_anywhere and left_m > speed_mps + GAIN_M:
                continue
            way_m = max(speed_mps, left_m, LEAST_WAY_M)
            passing = (min(left_m / way_m, 1.0), way_m - left_m, way_m)
            self._pass_over(loop + STOP_LINE, int(before.number[n]), float(before.length_m[n]), passing, marks, has_gone=True)

    def _pass_over(
        self,
        loop: int,
        vehicle: int,
        length_m: float,
        passing: tuple[float, float, float],
        marks: list[Mark],
        *,
        has_gone: bool = False,
    ) -> None:
        """passing: when the front came, how far it is beyond by the step's end, and the way of the whole step; has_gone: the
        vehicle has left the network, and drives on as fast as it did."""
        begin_s, beyond_m, way_m = passing
        marks.append((begin_s, loop, 1))
        covers_m = LOOP_M + length_m
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
