"""Small seeded road networks and demand for the engine's tests, as the JSON that CityFlow reads."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

CAR: dict[str, float] = {
    "length": 5.0, "width": 2.0, "maxPosAcc": 2.0, "maxNegAcc": 4.5, "usualPosAcc": 2.0, "usualNegAcc": 4.5,
    "minGap": 2.5, "maxSpeed": 11.11, "headwayTime": 2.0,
}  # fmt: skip
TRUCK: dict[str, float] = {
    "length": 12.0, "width": 2.5, "maxPosAcc": 1.2, "maxNegAcc": 4.0, "usualPosAcc": 1.0, "usualNegAcc": 2.0,
    "minGap": 3.0, "maxSpeed": 9.0, "headwayTime": 1.5,
}  # fmt: skip
STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))  # east, north, west, south


def grid(n_columns: int = 1, n_rows: int = 1, seed: int = 0, n_lanes: int = 2, length_m: float = 120.0) -> Any:
    """A grid of signalled crossings with virtual ends all round. Shapes of lane links are left to the engine.

    Phases: 0 right turns only, then north-south, east-west (through and right), then each road alone.
    """
    rng = random.Random(seed)
    width = 12.0

    def name(x: int, y: int) -> str:
        return f"i_{x}_{y}"

    inner = {(x, y) for x in range(n_columns) for y in range(n_rows)}
    ends = {(x + dx, y + dy) for x, y in inner for dx, dy in STEPS} - inner
    where = {p: (p[0] * length_m + rng.uniform(-8, 8), p[1] * length_m + rng.uniform(-8, 8)) for p in sorted(inner | ends)}
    roads: list[dict[str, Any]] = []
    leaving: dict[tuple[int, int], dict[int, str]] = {p: {} for p in where}
    arriving: dict[tuple[int, int], dict[int, str]] = {p: {} for p in where}
    for p in sorted(where):
        for heading, (dx, dy) in enumerate(STEPS):
            q = (p[0] + dx, p[1] + dy)
            if q not in where or (p in ends and q in ends):
                continue
            road = f"r_{p[0]}_{p[1]}_{heading}"
            points = [where[p], where[q]]
            if rng.random() < 0.3:  # a bend
                (ax, ay), (bx, by) = points
                points.insert(1, ((ax + bx) / 2 + rng.uniform(-6, 6), (ay + by) / 2 + rng.uniform(-6, 6)))
            roads.append({
                "id": road,
                "startIntersection": name(*p),
                "endIntersection": name(*q),
                "points": [{"x": x, "y": y} for x, y in points],
                "lanes": [{"width": 3.5, "maxSpeed": 13.9} for _ in range(n_lanes)],
            })  # fmt: skip
            leaving[p][heading] = road
            arriving[q][heading] = road
    intersections: list[dict[str, Any]] = []
    for p in sorted(where):
        x, y = where[p]
        common = {"id": name(*p), "point": {"x": x, "y": y}, "roads": [*arriving[p].values(), *leaving[p].values()]}
        if p in ends:
            intersections.append({**common, "virtual": True})
            continue
        links: list[dict[str, Any]] = []
        headings: list[int] = []
        for heading, start in arriving[p].items():
            for turn, kind in ((0, "go_straight"), (1, "turn_left"), (3, "turn_right")):
                end = leaving[p].get((heading + turn) % 4)
                if end is None:
                    continue
                lanes = {"go_straight": range(n_lanes), "turn_left": [0], "turn_right": [n_lanes - 1]}[kind]
                lane_links = [{"startLaneIndex": i, "endLaneIndex": j} for i in lanes for j in range(n_lanes)]
                links.append({"type": kind, "startRoad": start, "endRoad": end, "laneLinks": lane_links})
                headings.append(heading)
        right = [i for i, link in enumerate(links) if link["type"] == "turn_right"]
        ahead = [i for i, link in enumerate(links) if link["type"] != "turn_left"]
        phases = [right, [i for i in ahead if headings[i] % 2], [i for i in ahead if headings[i] % 2 == 0]]
        phases += [[i for i in range(len(links)) if headings[i] == heading] for heading in range(4)]
        phases.append(list(range(len(links))))  # everything at once: yields, blockers, deadlocks
        intersections.append({
            **common,
            "virtual": False,
            "width": width,
            "roadLinks": links,
            "trafficLight": {"lightphases": [{"time": 5 + 3 * i, "availableRoadLinks": p} for i, p in enumerate(phases)]},
        })  # fmt: skip
    return {"intersections": intersections, "roads": roads}


def demand(roadnet: Any, n_flows: int, horizon_s: int, seed: int = 0) -> list[dict[str, Any]]:
    """Random flows from end to end: single vehicles and streams, cars and trucks, routes by their ends only."""
    rng = random.Random(seed)
    virtual = {i["id"] for i in roadnet["intersections"] if i["virtual"]}
    entries = [r["id"] for r in roadnet["roads"] if r["startIntersection"] in virtual]
    exits = [r["id"] for r in roadnet["roads"] if r["endIntersection"] in virtual]
    of_exit = {r["id"]: r["endIntersection"] for r in roadnet["roads"]}
    of_entry = {r["id"]: r["startIntersection"] for r in roadnet["roads"]}
    flows = []
    while len(flows) < n_flows:
        start, end = rng.choice(entries), rng.choice(exits)
        if of_entry[start] == of_exit[end]:
            continue
        time = rng.randrange(horizon_s)
        stream = rng.random() < 0.3
        flows.append({
            "vehicle": dict(TRUCK if rng.random() < 0.2 else CAR),
            "route": [start, end],
            "interval": rng.choice([3.0, 5, 7.5]) if stream else 1.0,
            "startTime": time,
            "endTime": rng.choice([-1, time + 60]) if stream else time,
        })  # fmt: skip
    return flows


def write(folder: Path, roadnet: Any, flows: Any, **config: Any) -> Path:
    """Write roadnet.json, flow.json and config.json to a folder; returns the config's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "roadnet.json").write_text(json.dumps(roadnet))
    (folder / "flow.json").write_text(json.dumps(flows))
    content = {
        "interval": 1.0, "seed": 0, "dir": f"{folder}/", "roadnetFile": "roadnet.json", "flowFile": "flow.json",
        "rlTrafficLight": True, "laneChange": False, "saveReplay": False,
        "roadnetLogFile": "roadnet_log.json", "replayLogFile": "replay.txt", **config,
    }  # fmt: skip
    path = folder / "config.json"
    path.write_text(json.dumps(content))
    return path


def line(length_m: float = 1000.0, n_arms: int = 1, exit_m: float = 30.0) -> Any:
    """Roads in_0, in_1, ... of one lane that lead through one crossing (width 0) to the road out, y = 10 m apart.

    Phase 0 opens all, phase 1 nothing. The lane links don't cross: vehicles of several arms merge blindly.
    """
    lane = [{"width": 4, "maxSpeed": 20}]
    ends = {f"end_{k}": (-length_m, 10 * k) for k in range(n_arms)} | {"exit": (exit_m, 0)}
    roads: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    for k in range(n_arms):
        y = 10 * k
        roads.append({
            "id": f"in_{k}", "startIntersection": f"end_{k}", "endIntersection": "mid", "lanes": lane,
            "points": [{"x": -length_m, "y": y}, {"x": 0, "y": y}],
        })  # fmt: skip
        lane_link = {"startLaneIndex": 0, "endLaneIndex": 0, "points": [{"x": 0, "y": y}, {"x": 1, "y": y}]}
        links.append({"type": "go_straight", "startRoad": f"in_{k}", "endRoad": "out", "laneLinks": [lane_link]})
    roads.append({
        "id": "out", "startIntersection": "mid", "endIntersection": "exit", "lanes": lane,
        "points": [{"x": 0, "y": 0}, {"x": exit_m, "y": 0}],
    })  # fmt: skip
    phases = [{"time": 30, "availableRoadLinks": list(range(n_arms))}, {"time": 30, "availableRoadLinks": []}]
    mid = {
        "id": "mid", "point": {"x": 0, "y": 0}, "virtual": False, "width": 0, "roads": [r["id"] for r in roads],
        "roadLinks": links, "trafficLight": {"lightphases": phases},
    }  # fmt: skip
    virtual = [{"id": name, "point": {"x": x, "y": y}, "virtual": True, "roads": []} for name, (x, y) in ends.items()]
    return {"intersections": [mid, *virtual], "roads": roads}


def dead_end() -> Any:
    """Lane 1's link to the second road is taken away where lane 0's leads on to a lane without a path onwards."""
    roadnet = grid(2, 1)
    for intersection in roadnet["intersections"]:
        if intersection["id"] == "i_1_0":
            for link in intersection["roadLinks"]:
                if link["startRoad"] == "r_0_0_0" and link["type"] == "go_straight":
                    link["laneLinks"] = [x for x in link["laneLinks"] if x["startLaneIndex"] == 0]
        if intersection["id"] == "i_0_0":
            for link in intersection["roadLinks"]:
                if link["startRoad"] == "r_-1_0_0" and link["type"] == "go_straight":
                    link["laneLinks"] = [x for x in link["laneLinks"] if x["startLaneIndex"] == x["endLaneIndex"]]
    return roadnet
