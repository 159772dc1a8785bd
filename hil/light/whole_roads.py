"""What two loops a lane can tell where vehicles change lanes between them: whole roads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from model.policy.file import IntersectionPolicy
from streetflow.control.features import find_feature
from streetflow.control.intersection import Intersection
from streetflow.kernels.sources import PASSED, Source


def whole_road_sums(part: IntersectionPolicy, intersection: Intersection) -> NDArray[np.int64]:
    """int64[sums, values]: sums of a policy's values that stay the same wherever on its road a vehicle is.

    Of a feature with a value for each lane these are the roads' sums; of other counts the values that weigh all lanes of a
    road alike. What isn't counted on lanes stays as it is, but for the vehicles that have passed, which are counted by lanes.
    """
    roads = (*intersection.in_road_lanes, *intersection.out_road_lanes)
    rows: list[set[int]] = []
    first = 0
    for feature in part.features:
        spec = find_feature(feature.name)
        cells = spec.cells(intersection)
        if spec.source is Source.VEHICLES:
            rows += [{first + place for place in places} for places in _of_roads([dict(cell) for cell in cells], roads)]
        elif not (spec.source is Source.OWN and cells[0][0][0] == PASSED):
            rows += [{first + place} for place in range(feature.width)]
        first += feature.width
    return np.array([[place in row for place in range(first)] for row in rows], np.int64).reshape(-1, first)


def _of_roads(cells: Sequence[Mapping[int, int]], roads: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """cells: the lanes' weights of each value of a feature."""
    alone = {next(iter(cell)): place for place, cell in enumerate(cells) if len(cell) == 1}
    for road in roads:
        places = [alone[lane] for lane in road if lane in alone]
        if len(places) == len(road) and len({cells[place][lane] for place, lane in zip(places, road, strict=True)}) == 1:
            yield places
    for place, cell in enumerate(cells):
        if len(cell) > 1 and all(len({cell.get(lane, 0) for lane in road}) == 1 for road in roads):
            yield [place]
