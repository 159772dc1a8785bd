"""The static picture of a road network that CityFlow's web viewer shows (section 9.3)."""

from __future__ import annotations

import math

from streetflow.roadnet.geometry import polyline_length
from streetflow.roadnet.network_tables import NetworkTables
from streetflow.roadnet.reader import Point


def roadnet_log(network: NetworkTables) -> dict[str, object]:
    """The static picture of a network: nodes with outlines to fill, edges with their lanes."""
    roadnet = network.roadnet
    nodes: list[dict[str, object]] = []
    for number, intersection in enumerate(roadnet.intersections):
        node: dict[str, object] = {
            "id": intersection.id,
            "point": list(intersection.point),
            "virtual": intersection.virtual,
        }
        if not intersection.virtual:
            node["width"] = intersection.width_m
        node["outline"] = [c for point in _outline(network, number) for c in point]
        nodes.append(node)
    edges = [
        {
            "id": road.id,
            "from": roadnet.intersections[road.start_intersection].id,
            "to": roadnet.intersections[road.end_intersection].id,
            "points": [list(point) for point in road.points],
            "nLane": road.n_lanes,
            "laneWidths": list(road.lane_widths_m),
        }
        for road in roadnet.roads
    ]
    return {"static": {"nodes": nodes, "edges": edges}}


def _outline(network: NetworkTables, number: int) -> list[Point]:
    roadnet = network.roadnet
    intersection = roadnet.intersections[number]
    centre, width = intersection.point, intersection.width_m
    points = [centre]
    for road_number in intersection.roads:
        road = roadnet.roads[road_number]
        start = roadnet.intersections[road.start_intersection].point
        end = roadnet.intersections[road.end_intersection].point
        length = math.hypot(end[0] - start[0], end[1] - start[1])
        if length == 0.0:
            continue
        rx, ry = (end[0] - start[0]) / length, (end[1] - start[1]) / length
        nx, ny = -ry, rx
        if road.start_intersection == number:
            rx, ry = -rx, -ry
        road_width = sum(road.lane_widths_m)
        depth = max(0.5 * min(width, road_width), 5.0)
        a = centre[0] - rx * width, centre[1] - ry * width
        b = a[0] - nx * road_width, a[1] - ny * road_width
        points += [a, b]
        lanes = range(road.first_lane, road.first_lane + road.n_lanes)
        average = sum(polyline_length(network.lane_shapes[lane]) for lane in lanes) / max(len(lanes), 1)
        if depth < average:
            points.append((a[0] - rx * depth, a[1] - ry * depth))
            points.append((b[0] - rx * depth, b[1] - ry * depth))
    return _convex_hull(points)


def _convex_hull(points: list[Point]) -> list[Point]:
    """Counter-clockwise hull (monotone chain)."""
    ordered = sorted(set(points))
    if len(ordered) <= 2:
        return ordered

    def half(side: list[Point]) -> list[Point]:
        hull: list[Point] = []
        for p in side:
            while len(hull) >= 2:
                (ax, ay), (bx, by) = hull[-2], hull[-1]
                if (bx - ax) * (p[1] - ay) - (by - ay) * (p[0] - ax) > 0:
                    break
                hull.pop()
            hull.append(p)
        return hull[:-1]

    return half(ordered) + half(ordered[::-1])
