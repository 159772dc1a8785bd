"""The monitor's table from a road network file: which lamps may never be green or yellow together.

    python -m firmware.monitor.derive ROADNET.json INTERSECTION FOLDER      # writes FOLDER/monitor_table.h

Written from the words of docs/controller.md alone, beside the controller's own derivation: a test compares both. Road links
the same phases open share lamps; phases that open nothing count for nothing. Lamps are numbered by their first road link.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GROUPS_MAX = 16
CURVE_STEPS = 16
Point = tuple[float, float]
Json = dict[str, Any]


class DeriveError(ValueError):
    """A road network, or a crossing of it, that the monitor can't watch."""


@dataclass(frozen=True)
class MonitorTable:
    """Per lamp head: its road links, and a bit for each other head that conflicts with it."""

    road_links: tuple[tuple[int, ...], ...]
    conflicts: tuple[int, ...]


@dataclass(frozen=True)
class _Path:
    """A lane link: whose it is, where it leads from and to, and its way."""

    road_link: int
    start: tuple[str, int]
    end: tuple[str, int]
    way: list[Point]


def derive(roadnet: Json, intersection: str) -> MonitorTable:
    """DeriveError if there is no such crossing, or it needs more lamps than there are wires."""
    crossing = next((each for each in roadnet["intersections"] if each["id"] == intersection), None)
    if crossing is None or crossing.get("virtual", True):
        raise DeriveError(f"no crossing {intersection!r}")
    phases = [set(phase["availableRoadLinks"]) for phase in crossing["trafficLight"]["lightphases"]]
    phases = [phase for phase in phases if phase]
    opened_in = [
        tuple(number for number, phase in enumerate(phases) if link in phase) for link in range(len(crossing["roadLinks"]))
    ]
    heads = list(dict.fromkeys(opened_in))
    if not 1 <= len(heads) <= GROUPS_MAX:
        raise DeriveError(f"{len(heads)} lamp heads, the wires carry 1 to {GROUPS_MAX}")
    head_of = [heads.index(pattern) for pattern in opened_in]
    conflicts = [0] * len(heads)
    paths = _paths(roadnet, crossing)
    for number, one in enumerate(paths):
        for other in paths[:number]:
            a, b = head_of[one.road_link], head_of[other.road_link]
            if not set(heads[a]) & set(heads[b]) and not conflicts[a] >> b & 1 and _meet(one, other):
                conflicts[a] |= 1 << b
                conflicts[b] |= 1 << a
    members = tuple(tuple(link for link, head in enumerate(head_of) if head == number) for number in range(len(heads)))
    return MonitorTable(members, tuple(conflicts))


def _paths(roadnet: Json, crossing: Json) -> list[_Path]:
    roads = {road["id"]: road for road in roadnet["roads"]}
    widths = {each["id"]: float(each.get("width") or 0.0) for each in roadnet["intersections"]}
    found = []
    for number, link in enumerate(crossing["roadLinks"]):
        for lane_link in link["laneLinks"]:
            start, end = (link["startRoad"], lane_link["startLaneIndex"]), (link["endRoad"], lane_link["endLaneIndex"])
            way = [(point["x"], point["y"]) for point in lane_link.get("points") or ()]
            if not way:
                width = widths[crossing["id"]]
                way = _curve(_lane_end(roads[start[0]], start[1], -1, width), _lane_end(roads[end[0]], end[1], 0, width))
            found.append(_Path(number, start, end, way))
    return found


def _lane_end(road: Json, lane: int, end: int, width_m: float) -> tuple[Point, Point]:
    """(place, direction) where a lane meets the crossing: at its last point (end -1) or its first (0), a width away from it."""
    points = [(point["x"], point["y"]) for point in road["points"]]
    behind, ahead = (points[-2], points[-1]) if end else (points[0], points[1])
    length = math.dist(behind, ahead)
    ux, uy = (ahead[0] - behind[0]) / length, (ahead[1] - behind[1]) / length
    widths = [each["width"] for each in road["lanes"]]
    right = sum(widths[:lane]) + widths[lane] / 2
    at, away = (ahead, -width_m) if end else (behind, width_m)
    return (at[0] + ux * away + uy * right, at[1] + uy * away - ux * right), (ux, uy)


def _curve(start: tuple[Point, Point], end: tuple[Point, Point]) -> list[Point]:
    """A cubic curve from lane to lane, tangent to both."""
    (a, u), (d, v) = start, end
    reach = math.dist(a, d) / 2
    b, c = (a[0] + u[0] * reach, a[1] + u[1] * reach), (d[0] - v[0] * reach, d[1] - v[1] * reach)
    way = []
    for step in range(CURVE_STEPS + 1):
        t = step / CURVE_STEPS
        w = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
        way.append(tuple(sum(weight * point[axis] for weight, point in zip(w, (a, b, c, d), strict=True)) for axis in (0, 1)))
    return [(x, y) for x, y in way]


def _meet(one: _Path, other: _Path) -> bool:
    """Whether vehicles on both could touch: the ways cross, or end in one lane. Ways out of one lane only part."""
    if one.start == other.start or one.road_link == other.road_link:
        return False
    if one.end == other.end:
        return True
    segments = [(other.way[k], other.way[k + 1]) for k in range(len(other.way) - 1)]
    return any(_cross(one.way[k], one.way[k + 1], *segment) for k in range(len(one.way) - 1) for segment in segments)


def _cross(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether two segments have a point in common."""
    sides = _side(a, b, c), _side(a, b, d), _side(c, d, a), _side(c, d, b)
    if sides[0] * sides[1] < 0 and sides[2] * sides[3] < 0:
        return True
    ends = ((a, b, c), (a, b, d), (c, d, a), (c, d, b))
    return any(side == 0 and _is_within(*points) for side, points in zip(sides, ends, strict=True))


def _side(a: Point, b: Point, p: Point) -> float:
    """Above 0: p lies to the left of the line from a to b."""
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])


def _is_within(a: Point, b: Point, p: Point) -> bool:
    """Whether p, on the line through a and b, lies between them."""
    return all(min(a[axis], b[axis]) <= p[axis] <= max(a[axis], b[axis]) for axis in (0, 1))


def header(table: MonitorTable) -> str:
    """monitor_table.h, with the CRC that the monitor checks at its start."""
    conflicts = [*table.conflicts, *[0] * (GROUPS_MAX - len(table.conflicts))]
    words = [len(table.conflicts), *conflicts]
    content = b"".join(word.to_bytes(2, "little") for word in words)
    return "\n".join(
        [
            "/* Generated by firmware/monitor/derive.py from the road network. */",
            "const IN_FLASH struct monitor_table monitor_table = {",
            f"    .groups = {words[0]},",
            f"    .conflicts = {{{', '.join(map(str, conflicts))}}},",
            f"    .crc = {_crc(content)},",
            "};",
            "",
        ]
    )


def _crc(content: bytes) -> int:
    """CRC-16/XMODEM."""
    crc = 0
    for byte in content:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def main() -> int:
    if len(sys.argv) != 4:
        print("usage: python -m firmware.monitor.derive ROADNET.json INTERSECTION FOLDER", file=sys.stderr)
        return 2
    file, intersection, folder = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    try:
        text = header(derive(json.loads(file.read_text(encoding="utf-8")), intersection))
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        print(
            f"{file}: {error if isinstance(error, DeriveError | OSError) else f'not a road network ({error!r})'}",
            file=sys.stderr,
        )
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "monitor_table.h").write_text(text, encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
