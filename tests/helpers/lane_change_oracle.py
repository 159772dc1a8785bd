"""Lane changing in the plainest form (docs/cityflow-semantics.md, section 10), on top of `oracle.py`.

Letters in brackets are those of the section. A vehicle's ``change`` holds the fields that section 10 adds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streetflow.roadnet.geometry import polyline_length
from tests.helpers.oracle import Oracle, Vehicle, low


@dataclass(eq=False)
class Signal:
    source: Driver
    target: int = -1  # lane
    direction: int = 0
    urgency: int = 0


@dataclass(eq=False)
class Driver(Vehicle):
    """A vehicle, single, owner or shadow."""

    born: int = -1
    shadow: Driver | None = None  # of an owner, which is changing
    owner: Driver | None = None  # of a shadow
    offset: float = 0.0
    sent: Signal | None = None
    received: Signal | None = None
    target_leader: Driver | None = None
    target_follower: Driver | None = None
    leader_gap: float = math.inf
    follower_gap: float = math.inf
    last_direction: int = 0
    segment: int = 0

    def pair(self) -> list[Driver]:
        """The vehicle, and its partner if it has one."""
        return [v for v in (self, self.shadow, self.owner) if v is not None]

    @property
    def brake(self) -> float:
        return 0.5 * self.u * self.u / self.kind["maxNegAcc"]


class LaneChangeOracle(Oracle):
    vehicle_class = Driver

    def __init__(self, folder: Path, interval: float = 1.0, seed: int = 0, own_lights: bool = False) -> None:
        super().__init__(folder, interval, seed, own_lights)
        self.n_born = 0
        self.segments: list[list[list[Driver]]] = []  # by lane
        self.width = [w for road in self.net.roadnet.roads for w in road.lane_widths_m]

    def creation_order(self) -> list[Driver]:
        return sorted(self.running(), key=lambda v: v.born)

    def create(self, name: str, kind: dict[str, float], anchors: list[int], speed: float) -> Driver:
        v = super().create(name, kind, anchors, speed)
        v.born, self.n_born = self.n_born, self.n_born + 1
        return v

    def set_route(self, v: Driver, roads: list[str]) -> bool:
        """Of both vehicles of a driver, or of none."""
        if any(one.drivable >= self.n_lanes for one in v.pair()):
            return False
        before = {one: one.roads for one in v.pair()}
        if all([super(LaneChangeOracle, self).set_route(one, roads) for one in v.pair()]):
            return True
        for one, old in before.items():
            one.roads = old
            self.begin_at(one, self.net.roadnet.lane_road[one.drivable])
        return False

    # ------------------------------------------------------------------ (a) segments

    def build_segments(self) -> None:
        roadnet = self.net.roadnet
        self.segments = []
        for lane, road in enumerate(roadnet.lane_road):
            n = max(math.ceil(polyline_length(list(roadnet.roads[road].points)) / 70), 1)
            segments: list[list[Driver]] = [[] for _ in range(n)]
            i = n - 1
            for v in self.lists[lane]:
                while v.x < i * self.length[lane] / n:
                    i -= 1
                segments[i].append(v)
                v.segment = i
            self.segments.append(segments)

    def ahead(self, lane: int, v: Driver) -> Driver | None:
        for segment in self.segments[lane][v.segment :]:
            for other in reversed(segment):
                if other.x >= v.x:
                    return other
        return None

    def behind(self, lane: int, v: Driver) -> Driver | None:
        for segment in reversed(self.segments[lane][: v.segment + 1]):
            for other in segment:
                if other.x < v.x:
                    return other
        return None

    # ------------------------------------------------------------------ (b) signals

    def neighbour(self, lane: int, shift: int) -> int:
        """The lane of the same road ``shift`` further out, or -1."""
        roads = self.net.roadnet.lane_road
        return lane + shift if 0 <= lane + shift < self.n_lanes and roads[lane + shift] == roads[lane] else -1

    def is_on_last_road(self, v: Driver) -> bool:
        """By the road's name: on an earlier visit of it, too."""
        return v.drivable < self.n_lanes and self.net.roadnet.lane_road[v.drivable] == v.roads[-1]

    def make_signal(self, v: Driver) -> None:
        if v.shadow is not None or not self.step * self.dt - 0 >= 3:
            return
        v.sent = Signal(v)
        k, lane = v.kind, v.drivable
        if lane >= self.n_lanes or not self.length[lane] - v.x >= 30:
            return
        if v.gap > 2 * v.length + 4 * self.dt * k["maxSpeed"] or v.gap < 1.5 * v.length:
            return
        on_last_road = self.is_on_last_road(v)
        seen = {1: 0.0, -1: 0.0}
        for shift in (1, -1):
            other = self.neighbour(lane, shift)
            if other < 0 or not (on_last_road or self.next_drivable(v, other) >= 0):
                continue
            first = self.ahead(other, v)
            seen[shift] = self.length[other] - v.x if first is None else first.x - v.x - first.length
            if seen[shift] > v.gap + v.length and (shift == 1 or seen[-1] > seen[1]):
                v.sent = Signal(v, other, shift, 1)

    # ------------------------------------------------------------------ (c) scheduling

    def find_neighbours(self, v: Driver, lane: int) -> None:
        v.target_leader = self.ahead(lane, v)
        if v.target_leader is not None:
            v.leader_gap = v.target_leader.x - v.x - v.target_leader.length
        else:
            rest = v.leader_gap = self.length[v.drivable] - v.x
            best = math.inf
            for link, _ in self.net.router.lane_links[lane]:
                for c in self.lists[link][-1:]:
                    if c.x + rest < best:
                        best = c.x + rest
                        if best < c.length:
                            v.target_leader, v.leader_gap = c, rest - (c.length - best)
                            self.events["leader on a lane link"] += 1
        v.target_follower = self.behind(lane, v)
        v.follower_gap = math.inf if v.target_follower is None else v.x - v.target_follower.x - v.length

    def send(self, v: Driver, other: Driver | None) -> None:
        if other is None or other.shadow is not None:
            return
        if other.received is not None and not other.received.source.priority < v.priority:
            self.events["signal kept"] += 1
            return
        if other.sent is None or other.priority < v.priority:
            other.received = v.sent
        else:
            self.events["signal refused"] += 1

    def insert_shadow(self, v: Driver, lane: int) -> None:
        self.events["change"] += 1
        taken = {other.priority for other in self.present()}
        while True:
            priority = self.draw()
            priority -= 2**32 if priority >= 2**31 else 0
            if priority not in taken:
                break
        s = Driver(
            f"{v.id}_shadow", v.kind, v.roads, priority, v.enter_time, v.u, v.x, self, lane
        )  # at the route's first place
        s.custom = v.custom
        s.previous, s.link_entry, s.leader, s.gap, s.segment = v.previous, v.link_entry, v.leader, v.gap, v.segment
        s.waited, s.owner, v.shadow = v.waited, v, s
        s.born, self.n_born = self.n_born, self.n_born + 1
        follower = v.target_follower
        on_lane, segment = self.lists[lane], self.segments[lane][v.segment]
        on_lane.insert(len(on_lane) if follower is None else on_lane.index(follower), s)
        segment.insert(next((i for i, other in enumerate(segment) if other.x <= s.x), len(segment)), s)
        if v.target_leader in on_lane:
            s.leader = v.target_leader
            s.gap = s.leader.x - s.leader.length - s.x
        else:
            self.search(s)

    def change_lanes(self) -> None:
        self.build_segments()
        planning = []
        for v in self.creation_order():
            if v.owner is None:
                self.make_signal(v)
                if v.shadow is not None or (v.sent is not None and v.sent.target >= 0):
                    planning.append(v)
        for v in planning:
            assert v.sent is not None
            lane = v.sent.target
            self.find_neighbours(v, lane)
            self.send(v, v.target_leader)
            self.send(v, v.target_follower)
            follower_brake = v.target_follower.brake if v.target_follower is not None else 0.0
            if v.received is None and v.shadow is None and v.leader_gap >= v.brake and v.follower_gap >= follower_brake:
                self.insert_shadow(v, lane)
        for v in self.running():
            self.look_ahead(v)

    # ------------------------------------------------------------------ actions

    def limit_sideways(self, v: Driver, w: float) -> float:
        yield_limit = 100.0
        source = v.received.source if v.received is not None else None
        if source is not None and source.target_leader is not v:
            self.events["let in after the change"] += source.finished
            g = source.follower_gap - (source.target_follower.brake if source.target_follower is not None else 0)
            f = self.no_collision(source.u, source.kind["maxNegAcc"], v.u, v.kind["maxNegAcc"], g, 0)
            self.events["let in"] += 1
            yield_limit = 100.0 if f < 0 else f
        w = low(w, yield_limit)
        if v.following < 0 and v.drivable < self.n_lanes and not self.is_on_last_road(v):
            self.events["before a dead end"] += 1
            rest = self.length[v.drivable] - v.x
            w = low(w, self.no_collision(0, 1, v.u, v.kind["maxNegAcc"], rest, v.kind["minGap"]))
        return w

    def act(self, everyone: list[Any], notes: dict[Any, Any]) -> None:
        chosen: dict[Driver, Any] = {}
        for v in sorted(everyone, key=lambda v: v.born):
            if v not in chosen:
                chosen[v] = self.choose(v, notes)
                if v.shadow is not None:
                    other = self.choose(v.shadow, notes)
                    w = low(other[0], chosen[v][0])
                    chosen[v], chosen[v.shadow] = (w, chosen[v][1]), (w, other[1])
            self.travel(v, *chosen[v])
            if v.shadow is not None:
                self.move_over(v)
            elif v.owner is not None and (v.new["passed"] or v.owner.new["passed"]):
                self.abort(v)

    def move_over(self, v: Driver) -> None:
        s = v.shadow
        assert s is not None and v.sent is not None
        direction = v.sent.direction
        bound = (self.width[s.drivable] + self.width[v.drivable]) / 2
        step = max(0.2 * v.new["u"], 1) * self.dt * direction
        v.offset = min(abs(v.offset + step), bound) * direction
        if abs(v.offset) >= bound:
            self.events["change done"] += 1
            v.finished, v.shadow = True, None
            v.target_leader = v.target_follower = None  # at once; who holds its signal keeps it until commit
            s.id, s.owner = v.id, None
            v.new["passed"] = -1

    def abort(self, s: Driver) -> None:
        self.events["change aborted" if s.new["passed"] else "change aborted by the owner"] += 1
        self.events["shadow counted as a trip"] += 1
        assert s.owner is not None
        s.owner.shadow, s.owner.offset = None, 0.0
        s.new["passed"] = -1
        s.received = None

    def next_step(self) -> None:
        super().next_step()
        for v in self.running():
            v.target_leader = v.target_follower = None
            v.last_direction = v.sent.direction if v.sent is not None else 0
            if v.shadow is None:
                v.sent = v.received = None
