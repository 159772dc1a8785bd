"""A second implementation of the engine's rules, in the plainest form: one object per vehicle, no tricks, slow.

Written from docs/cityflow-semantics.md (numbers in brackets are its sections) for networks of a few crossings. Geometry,
crossings and route planning are taken from `streetflow`: the golden traces check those. Over 400 lines, since it is one rule
book to be read beside the specification, from front to back.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import count, groupby
from pathlib import Path
from typing import Any

import numpy as np

from streetflow.roadnet.crossings import intersection_crossings
from streetflow.roadnet.network_tables import load_network

NEVER = 2147483647
YIELD_M = 5.0
TURN_MPS = 8.3333


def low(p: float, q: float) -> float:
    return p if p < q else q


def high(p: float, q: float) -> float:
    return p if p > q else q


def c_int(z: float) -> int:
    return int(z) if -2147483649 < z < 2147483648 else -2147483648


def quotient(p: float, q: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(p) / np.float64(q))


class LostError(Exception):
    """A vehicle looks for its road behind the last visit of it: CityFlow aborts."""


@dataclass(eq=False)
class Vehicle:
    id: str
    kind: dict[str, float]
    roads: tuple[int, ...]
    priority: int
    enter_time: float
    u: float = 0.0
    x: float = 0.0
    oracle: Oracle | None = None
    drivable: int = -1
    ahead: list[int] = field(default_factory=list)  # drivables planned so far after its own
    place: int = 0  # in the route
    previous: int = -1
    link_entry: int = NEVER
    leader: Vehicle | None = None
    gap: float = math.inf
    blocker: Vehicle | None = None
    custom: float | None = None
    gone: bool = False
    finished: bool = False  # [10] an owner whose change is complete: its shadow goes on
    waited: int = 0
    new: dict[str, Any] = field(default_factory=dict)

    @property
    def following(self) -> int:
        assert self.oracle is not None
        return self.oracle.look_up(self, 0)

    @property
    def length(self) -> float:
        return self.kind["length"]


class Oracle:
    vehicle_class = Vehicle

    def __init__(self, folder: Path, interval: float = 1.0, seed: int = 0, own_lights: bool = False) -> None:
        self.net = load_network(folder / "roadnet.json")
        roadnet = self.net.roadnet
        self.road_index = roadnet.road_index
        self.flows = json.loads((folder / "flow.json").read_text())
        self.dt, self.own_lights = interval, own_lights
        self.random = np.random.RandomState(seed % 2**32)
        self.n_lanes = len(roadnet.lane_ids)
        self.length = self.net.arrays["length"].tolist()
        self.limit = self.net.arrays["speed_limit"].tolist()
        self.crossings: list[list[tuple[float, int, float]]] = []
        for _, links in groupby(range(len(self.net.links)), lambda k: self.net.links[k][0]):
            beside = list(links)
            shapes = [self.net.link_shapes[k] for k in beside]
            for of_link in intersection_crossings(shapes):
                self.crossings.append([(c.own_m, beside[c.other_link], c.other_m) for c in of_link])
        self.phase = [0 for _ in roadnet.intersections]
        self.remaining = [i.phases[0].time_s if i.phases else 0.0 for i in roadnet.intersections]
        self.lists: list[list[Vehicle]] = [[] for _ in self.length]
        self.queues: list[list[Vehicle]] = [[] for _ in range(self.n_lanes)]
        self.pending: list[Vehicle] = []
        self.clock = [0.0 for _ in self.flows]
        self.credit = [float(flow["interval"]) for flow in self.flows]
        self.made = [0 for _ in self.flows]
        self.dropped = [False for _ in self.flows]
        self.step = self.n_pushed = self.finished = 0
        self.finished_time = 0.0
        self.events: Counter[str] = Counter()  # what the run has exercised

    # ------------------------------------------------------------------ vehicles present

    def running(self) -> list[Vehicle]:
        return [v for of_drivable in self.lists for v in of_drivable]

    def present(self) -> list[Vehicle]:
        return [*self.running(), *(v for queue in self.queues for v in queue), *self.pending]

    def average_travel_time(self) -> float:
        total = self.finished_time
        present = sorted(self.present(), key=lambda v: v.priority)
        for v in present:
            total += self.step * self.dt - v.enter_time
        n = self.finished + len(present)
        return total / n if n else 0.0

    # ------------------------------------------------------------------ [3] creation

    def draw(self) -> int:
        return int(self.random.randint(0, 2**32, dtype=np.uint32))

    def create(self, name: str, kind: dict[str, float], anchors: list[int], speed: float) -> Vehicle:
        taken = {v.priority for v in self.present()}
        while True:
            priority = self.draw()
            priority -= 2**32 if priority >= 2**31 else 0
            if priority not in taken:
                break
        self.draw()
        v = self.vehicle_class(name, kind, tuple(anchors), priority, self.step * self.dt, u=speed)
        v.oracle = self
        self.pending.append(v)
        return v

    def push(self, kind: dict[str, float], roads: list[str], speed: float = 0.0) -> None:
        self.create(f"manually_pushed_{self.n_pushed}", kind, [self.road_index[r] for r in roads], speed)
        self.n_pushed += 1

    def set_route(self, v: Vehicle, roads: list[str]) -> bool:
        if v.drivable >= self.n_lanes:
            return False
        road = self.net.roadnet.lane_road[v.drivable]
        route = self.net.router.plan([road, *(self.road_index[r] for r in roads)])
        before, accepted = v.roads, False
        if route is not None:
            v.roads, v.place = route, 0
            accepted = self.next_drivable(v, v.drivable) >= 0 or route[-1] == road
        if not accepted:
            v.roads = before
        self.begin_at(v, road)
        return accepted

    # ------------------------------------------------------------------ [3.3] the way ahead, piece by piece

    def begin_at(self, v: Vehicle, road: int) -> None:
        """Plan anew from the first visit of a road on."""
        v.place, v.ahead = v.roads.index(road), []

    def visit(self, v: Vehicle, road: int) -> int:
        """The position of a road in v's route, by its name, from v's place on."""
        if road not in v.roads[v.place :]:
            raise LostError(v.id)
        return v.roads.index(road, v.place)

    def next_drivable(self, v: Vehicle, drivable: int) -> int:
        """-1 where the trip ends, -2 at a dead end."""
        if drivable >= self.n_lanes:
            end_lane: int = self.net.links[drivable - self.n_lanes][2].end_lane
            return end_lane
        lane_road, roads = self.net.roadnet.lane_road, self.net.roadnet.roads
        after = v.roads[self.visit(v, lane_road[drivable]) + 1 :]
        if not after:
            return -1
        best, best_shift = (-1 if lane_road[drivable] == v.roads[-1] else -2), math.inf
        own = drivable - roads[lane_road[drivable]].first_lane
        for link, end in self.net.router.lane_links[drivable]:
            onwards = {lane_road[lane] for _, lane in self.net.router.lane_links[end]}
            if lane_road[end] == after[0] and (len(after) < 2 or after[1] in onwards):
                shift = abs(end - roads[after[0]].first_lane - own)
                if shift < best_shift:
                    best, best_shift = link, shift
        return best

    def look_up(self, v: Vehicle, i: int) -> int:
        """The i-th drivable after v's own. What has been looked up once stays planned."""
        while len(v.ahead) <= i:
            found = self.next_drivable(v, v.ahead[-1] if v.ahead else v.drivable)
            if found < 0:
                return found
            v.ahead.append(found)
        return v.ahead[i]

    def drive_to(self, v: Vehicle, passed: int) -> None:
        """v is now on the last one of so many drivables ahead."""
        v.drivable = v.ahead[passed - 1]
        del v.ahead[:passed]
        if v.drivable < self.n_lanes:
            v.place = self.visit(v, self.net.roadnet.lane_road[v.drivable])

    def run_flows(self) -> None:
        for i, flow in enumerate(self.flows):
            end = flow.get("endTime", -1)
            if self.dropped[i] or (end != -1 and self.clock[i] > end):
                continue
            if self.clock[i] >= flow.get("startTime", 0):
                while self.credit[i] >= flow["interval"]:
                    anchors = [self.road_index[r] for r in flow["route"]]
                    self.create(f"flow_{i}_{self.made[i]}", flow["vehicle"], anchors, 0.0)
                    self.made[i] += 1
                    self.credit[i] -= flow["interval"]
                self.credit[i] += self.dt
            self.clock[i] += self.dt

    def plan(self) -> None:
        router = self.net.router
        for v in sorted(self.pending, key=lambda v: v.roads[0]):
            route = router.plan(v.roads)
            if route is None:
                self.events["dropped"] += 1
                if v.id.startswith("flow"):
                    self.dropped[int(v.id.split("_")[1])] = True
                continue
            lanes = router.entry_lanes(route)
            lane = lanes[self.draw() % len(lanes)]
            v.roads, v.drivable = route, lane
            self.queues[lane].append(v)
        self.pending = []

    def enter(self) -> None:
        for lane, queue in enumerate(self.queues):
            if not queue:
                continue
            v, on_lane = queue[0], self.lists[lane]
            if on_lane and not on_lane[-1].x > on_lane[-1].length + v.kind["minGap"]:
                self.events["entry refused"] += 1
                continue
            queue.pop(0)
            on_lane.append(v)
            self.look_ahead(v)

    # ------------------------------------------------------------------ [7] leader and gap

    def look_ahead(self, v: Vehicle) -> None:
        of_drivable = self.lists[v.drivable]
        place = of_drivable.index(v)
        if place > 0:
            v.leader = of_drivable[place - 1]
            v.gap = v.leader.x - v.leader.length - v.x
        else:
            self.search(v)

    def search(self, v: Vehicle) -> None:
        """The leader of the first vehicle of a list. Without one the gap keeps its value."""
        v.leader = None
        top, a = v.kind["maxSpeed"], v.kind["usualNegAcc"]
        horizon = top * top / a / 2 + top * self.dt * 2
        s = self.length[v.drivable] - v.x
        for i in count():
            e = self.look_up(v, i)
            if e < 0:
                return
            drivables = [e]
            if e >= self.n_lanes:
                start = self.net.links[e - self.n_lanes][2].start_lane
                drivables = [link for link, _ in self.net.router.lane_links[start]]
            for c in (self.lists[d][-1] for d in drivables if self.lists[d]):
                gap = s + c.x - c.length
                if v.leader is None or gap < v.gap:
                    v.leader, v.gap = c, gap
            if v.leader is not None:
                return
            s += self.length[e]
            if s > horizon:
                return

    # ------------------------------------------------------------------ [5] speeds

    def no_collision(self, ul: float, dl: float, u: float, d: float, g: float, t: float) -> float:
        c = u * self.dt / 2 + t - 0.5 * ul * ul / dl - g
        a = 0.5 / d
        b = 0.5 * self.dt
        if b * b < 4 * a * c:
            return -100.0
        return low(0.5 / a * (math.sqrt(b * b - 4 * a * c) - b), 2 * ul - dl * self.dt + 2 * (g - t) / self.dt)

    def car_following(self, v: Vehicle) -> float:
        k, u, lead, g = v.kind, v.u, v.leader, v.gap
        if lead is None:
            return k["maxSpeed"] if v.custom is None else v.custom
        f = self.no_collision(lead.u, lead.kind["maxNegAcc"], u, k["maxNegAcc"], g, 0)
        if v.custom is not None:
            return low(v.custom, f)
        soft = self.no_collision(lead.u, lead.kind["usualNegAcc"], u, k["usualNegAcc"], g, k["minGap"])
        f = low(f, soft)
        r = u - lead.u if u > lead.u else 0
        f = low(f, (g + (lead.u + r / 2) * self.dt - u * self.dt / 2) / (k["headwayTime"] + self.dt / 2))
        return f

    def stop_before(self, v: Vehicle, d: float) -> float:
        u = v.u
        n = u + v.kind["usualPosAcc"] * self.dt
        if (u + n) * self.dt / 2 + (n * n / v.kind["usualNegAcc"] / 2) < d:
            return n
        k = 2 * d / (u + 1e-8) / self.dt
        return u - u / c_int(k) if k >= 1 else u - quotient(u, k)

    # ------------------------------------------------------------------ [6] intersections

    def is_open(self, link: int) -> bool:
        number, road_link, _ = self.net.links[link]
        intersection = self.net.roadnet.intersections[number]
        return intersection.road_links.index(road_link) in intersection.phases[self.phase[number]].road_links

    def announce(self) -> dict[tuple[int, int], tuple[Vehicle, float]]:
        """(link, place among its crossings) -> announced vehicle and its signed distance."""
        notes = {}
        for link, crossings in enumerate(self.crossings):
            drivable, lane_link = self.n_lanes + link, self.net.links[link][2]
            for place, (q, _, _) in enumerate(crossings):
                last = self.lists[lane_link.end_lane][-1:]
                to_end = self.length[drivable] - q
                on_link = [v for v in self.lists[drivable] if v.x <= q or v.x - q - v.length <= 0]
                first = self.lists[lane_link.start_lane][:1]
                if last and last[0].previous == drivable and to_end + (last[0].x - last[0].length) < 0:
                    notes[link, place] = last[0], -(last[0].x + to_end)
                elif on_link:
                    notes[link, place] = on_link[0], q - on_link[0].x
                elif first and first[0].following == drivable and self.is_open(link):
                    notes[link, place] = first[0], (self.length[lane_link.start_lane] - first[0].x) + q
        return notes

    def can_stop(self, v: Vehicle, d: float) -> bool:
        brake = 0.5 * v.u * v.u / v.kind["maxNegAcc"]
        return (d > 0 and brake < d - YIELD_M) or (d < 0 and d + v.length < 0)

    def steps_to(self, v: Vehicle, d: float, link: int) -> int:
        u, a = v.u, v.kind["usualPosAcc"]
        target = TURN_MPS if self.net.links[link][1].is_turn else v.kind["maxSpeed"]
        if d <= 0:
            return 0
        if u > target:
            return math.ceil(d / u)
        gained = 0.0
        if target > u:
            k = math.floor((target - u) / a / self.dt)
            w = u + k * a / self.dt
            gained = (u + w) * (k * self.dt) / 2 + ((w + target) * self.dt / 2 if w < target else 0)
        if gained > d:
            return math.ceil((math.sqrt(u * u + 2 * a * d) - u) / a / self.dt)
        return math.ceil((target - u) / a / self.dt) + math.ceil((d - gained) / target / self.dt)

    def yields(self, v: Vehicle, d1: float, link: int, foe: Vehicle, d2: float, foe_link: int) -> bool:
        if not self.can_stop(v, d1):
            return False
        if not self.can_stop(foe, d2):
            return True
        rank, foe_rank = self.net.links[link][1].rank, self.net.links[foe_link][1].rank
        if rank > foe_rank:
            return False
        if d2 <= 0:
            return not d2 + foe.length < 0
        steps, foe_steps = self.steps_to(v, d1, link), self.steps_to(foe, d2, foe_link)
        if foe_steps > steps:
            return False
        if rank < foe_rank or foe_steps < steps:
            return True
        self.events["tie"] += 1
        if v.link_entry != foe.link_entry:
            return not v.link_entry < foe.link_entry
        if d1 != d2:
            return not d1 < d2
        return not v.priority > foe.priority

    def deadlock(self, foe: Vehicle) -> bool:
        p: Vehicle | None = foe
        q: Vehicle | None = foe
        while q is not None and q.blocker is not None:
            assert p is not None
            p = p.blocker
            q = q.blocker.blocker
            if p is q:
                self.events["deadlock"] += 1
                return True
        return False

    def intersection_speed(self, v: Vehicle, notes: dict[Any, Any]) -> tuple[float, Vehicle | None]:
        speed = v.kind["maxSpeed"]
        rest = self.length[v.drivable] - v.x
        link = (v.following if v.drivable < self.n_lanes else v.drivable) - self.n_lanes
        if v.drivable < self.n_lanes:
            exits = self.lists[self.net.links[link][2].end_lane]
            admitted = not exits or exits[-1].x > exits[-1].length + v.length or exits[-1].u >= 2
            if not (self.is_open(link) and admitted):
                if not 0.5 * v.u * v.u / v.kind["maxNegAcc"] > rest:
                    self.events["full exit" if self.is_open(link) else "red"] += 1
                    return low(speed, self.stop_before(v, rest)), None
                self.events["ran the red"] += 1
            if self.net.links[link][1].is_turn:
                speed = low(speed, TURN_MPS)
        s = v.x if v.drivable >= self.n_lanes else -rest
        for q, foe_link, foe_q in self.crossings[link]:
            if q < s:
                continue
            place = next(
                i for i, (own, other, back) in enumerate(self.crossings[foe_link]) if (own, other, back) == (foe_q, link, q)
            )
            if (foe_link, place) not in notes:
                continue
            foe, d2 = notes[foe_link, place]
            if self.yields(v, q - s, link, foe, d2, foe_link) and not self.deadlock(foe):
                self.events["yield"] += 1
                return low(speed, self.stop_before(v, q - s - YIELD_M)), foe
        return speed, None

    def choose(self, v: Vehicle, notes: dict[Any, Any]) -> tuple[float, Vehicle | None]:
        """The new speed, which may be negative, and the blocker."""
        k, u = v.kind, v.u
        w = k["maxSpeed"]
        w = low(w, u + k["maxPosAcc"] * self.dt)
        w = low(w, self.limit[v.drivable])
        w = low(w, self.car_following(v))
        blocker = None
        top, a = k["maxSpeed"], k["usualNegAcc"]
        near = self.length[v.drivable] - v.x <= top * top / a / 2 + top * self.dt * 2
        if v.drivable >= self.n_lanes or (v.following >= 0 and near):
            limit, blocker = self.intersection_speed(v, notes)
            w = low(w, limit)
        w = self.limit_sideways(v, w)
        return high(w, u - k["maxNegAcc"] * self.dt), blocker

    def limit_sideways(self, v: Vehicle, w: float) -> float:
        """The effect of lane changing on a choice of speed."""
        return w

    def travel(self, v: Vehicle, w: float, blocker: Vehicle | None) -> None:
        if w < 0:
            moved, w = 0.5 * v.u * v.u / v.kind["maxNegAcc"], 0.0
        else:
            moved = (v.u + w) * self.dt / 2
        d, passed, drivable = moved + v.x, 0, v.drivable
        while drivable >= 0 and d > self.length[drivable]:
            d -= self.length[drivable]
            drivable = self.look_up(v, passed)
            passed += 1
        v.new = {"u": w, "x": d, "passed": passed if drivable >= 0 else -1, "blocker": blocker}

    # ------------------------------------------------------------------ [4] one step

    def change_lanes(self) -> None:
        """See `lane_change_oracle.py`."""

    def act(self, everyone: list[Vehicle], notes: dict[Any, Any]) -> None:
        for v in everyone:
            self.travel(v, *self.choose(v, notes))

    def next_step(self) -> None:
        self.run_flows()
        self.plan()
        self.enter()
        self.change_lanes()
        notes = self.announce()
        everyone = self.running()
        self.act(everyone, notes)
        movers = [v for v in everyone if v.new["passed"]]
        arrivals = sorted((v for v in movers if v.new["passed"] > 0), key=lambda v: -v.new["x"])
        for v in movers:
            if self.lists[v.drivable][0] is not v:
                self.events["overtook"] += 1
            self.lists[v.drivable].remove(v)
            if v.new["passed"] < 0:
                v.gone = True
                if not v.finished:
                    self.finished += 1
                    self.finished_time += self.step * self.dt - v.enter_time
        for v in arrivals:
            target = v.ahead[v.new["passed"] - 1]
            if any(v.new["x"] > other.new["x"] for other in self.lists[target]):
                self.events["ahead though behind"] += 1
            if any(other in arrivals and other.drivable > v.drivable for other in self.lists[target]):
                self.events["arrived in another order than found"] += 1
            self.lists[target].append(v)
            v.previous = v.drivable
            v.link_entry = self.step if target >= self.n_lanes else NEVER
        for v in everyone:
            v.u, v.x, v.custom = v.new["u"], v.new["x"], None
            if v.new["passed"] > 0:
                self.drive_to(v, v.new["passed"])
            blocker = v.new["blocker"]
            v.blocker = None if blocker is None or blocker.gone else blocker
            v.waited = v.waited + 1 if v.u < 0.1 else 0
        for v in self.running():
            self.look_ahead(v)
        if self.own_lights:
            for i, intersection in enumerate(self.net.roadnet.intersections):
                if intersection.phases:
                    self.remaining[i] -= self.dt
                    while self.remaining[i] <= 0:
                        self.phase[i] = (self.phase[i] + 1) % len(intersection.phases)
                        self.remaining[i] += intersection.phases[self.phase[i]].time_s
        self.step += 1
