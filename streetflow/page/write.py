"""Writes a recording as one self-contained HTML page that plays in any browser, without a server.

Vehicles are stored as tracks: the first position, then differences, in units of 1/65535 of the extent, split into bytes
and deflated. The page (`replay_page.html`) unpacks them.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streetflow.engine.roadnet_log import roadnet_log
from streetflow.files import write_whole
from streetflow.page.recorder import Recording
from streetflow.roadnet.network_tables import NetworkTables

TEMPLATE = Path(__file__).with_name("replay_page.html")
ANGLE_STEPS = 256
GRID = 65535


@dataclass(frozen=True)
class Signals:
    """What the lamps and the loops of controllers did, frame by frame, to be drawn in place of the engine's lights.

    Lamp states are bits: 1 red, 2 yellow, 4 green, 8 the monitor has let its relay go and all flashes.
    """

    heads: list[tuple[int, int]]  # (lane, lamp): at the end of which lane, which of the lamps
    lamps: NDArray[np.uint8]  # [frames, lamps]
    loop_lanes: list[int]  # which lanes have loops
    loops: NDArray[
        np.uint8
    ]  # [frames, loop lanes]: bit 0 the entry loop was occupied in this frame's second, bit 1 the stop line's


def write_replay_page(
    recording: Recording, network: NetworkTables, title: str, file: Path, signals: Signals | None = None
) -> None:
    """Write the page. InputError where the file can't be written."""
    shown = page_content(recording, network, title) | ({"signals": _signals(signals)} if signals is not None else {})
    content = json.dumps(shown, separators=(",", ":"))
    page = TEMPLATE.read_text(encoding="utf-8").replace("/*CONTENT*/null", content.replace("</", "<\\/"), 1)
    write_whole(file, page)


def page_content(recording: Recording, network: NetworkTables, title: str) -> dict[str, object]:
    """Everything that the page shows, as JSON: road shapes, lights by phase, vehicle tracks, phases by frame."""
    shapes = np.concatenate([np.array(shape) for shape in network.lane_shapes])
    low, high = shapes.min(axis=0) - 20.0, shapes.max(axis=0) + 20.0
    unit_m = float((high - low).max()) / GRID
    grid = np.rint((recording.position_m - low) / unit_m).astype(np.int64)
    heading = np.rint(recording.angle_rad / (2 * np.pi) * ANGLE_STEPS).astype(np.int64) % ANGLE_STEPS
    first = recording.vehicle_first[:-1]
    return {
        "title": title,
        "origin_m": low.tolist(),
        "unit_m": unit_m,
        "interval_s": recording.interval_s,
        "first_step": recording.first_step,
        "frames": recording.n_frames,
        "lanes": _lanes(network),
        "outlines": [node["outline"] for node in _nodes(network) if not node["virtual"]],
        "lights": _lights(network),
        "vehicles": {
            "ids": recording.vehicle_ids,
            "size_m": [[round(float(x), 2) for x in size] for size in recording.vehicle_size_m],
            "first_frame": recording.frame[first].tolist(),
            "counts": np.diff(recording.vehicle_first).tolist(),
            "x": _packed(_differences(grid[:, 0], first), np.int32),
            "y": _packed(_differences(grid[:, 1], first), np.int32),
            "heading": _packed(_differences(heading, first) % ANGLE_STEPS, np.uint8),
        },
        "phases": _packed(recording.phases.reshape(-1), np.int32),
        "intersections": recording.phases.shape[1],
    }


def _signals(signals: Signals) -> dict[str, object]:
    return {
        "heads": [list(head) for head in signals.heads],
        "lamps": _packed(signals.lamps.reshape(-1), np.uint8),
        "lamp_count": signals.lamps.shape[1],
        "loop_lanes": signals.loop_lanes,
        "loops": _packed(signals.loops.reshape(-1), np.uint8),
    }


def _nodes(network: NetworkTables) -> list[dict[str, object]]:
    static = roadnet_log(network)["static"]
    assert isinstance(static, dict)
    nodes: list[dict[str, object]] = static["nodes"]
    return nodes


def _lanes(network: NetworkTables) -> list[dict[str, object]]:
    widths = [width for road in network.roadnet.roads for width in road.lane_widths_m]
    return [
        {"id": lane_id, "width": width, "points": [round(c, 2) for point in shape for c in point]}
        for lane_id, width, shape in zip(network.roadnet.lane_ids, widths, network.lane_shapes, strict=True)
    ]


def _lights(network: NetworkTables) -> list[dict[str, object]]:
    """One light per lane that ends at an intersection with phases: by phase, one letter.

    g: all lane links from the lane are open; p: some are; r: none is.
    """
    n_lanes = len(network.lane_shapes)
    lights: list[dict[str, object]] = []
    phase_links: list[set[int]] = []
    for number, intersection in enumerate(network.roadnet.intersections):
        own = [(k, link) for k, link in enumerate(network.links) if link[0] == number]
        open_roads = [set(phase.road_links) for phase in intersection.phases]
        roads = {id(road_link): r for r, road_link in enumerate(intersection.road_links)}
        phase_links = [{k for k, (_, road_link, _) in own if roads[id(road_link)] in opened} for opened in open_roads]
        for lane in dict.fromkeys(lane_link.start_lane for _, (_, _, lane_link) in own):
            links = {drivable - n_lanes for drivable, _ in network.router.lane_links[lane]}
            letters = "".join("g" if links <= opened else "p" if links & opened else "r" for opened in phase_links)
            lights.append({"lane": lane, "intersection": number, "by_phase": letters})
    return lights


def _differences(values: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Differences to the previous record; the value itself where a vehicle's records begin."""
    steps = np.diff(values, prepend=0)
    steps[first] = values[first]
    return steps


def _packed(values: NDArray[np.integer], dtype: type) -> str:
    """Little-endian, all first bytes before all second ones (they compress better so), deflated, base64."""
    raw = np.ascontiguousarray(values.astype(np.dtype(dtype).newbyteorder("<"))).view(np.uint8)
    planes = raw.reshape(-1, np.dtype(dtype).itemsize).T
    return base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode("ascii")
