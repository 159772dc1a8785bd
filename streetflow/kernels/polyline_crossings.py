"""The compiled search for the points where the lane links of an intersection cross (cityflow-semantics.md, section 2.4)."""

from __future__ import annotations

import math

from streetflow.kernels.jit import entry_point, helper

TOLERANCE = 1e-8


@helper
def _sign(z: float) -> int:
    return int(z + TOLERANCE > 0.0) - int(z < TOLERANCE)


@helper
def _on_segment(px: float, py: float, ax: float, ay: float, bx: float, by: float) -> bool:
    """Whether P lies on the segment from A to B."""
    from_a_x, from_a_y = px - ax, py - ay
    cross = (bx - ax) * from_a_y - (by - ay) * from_a_x
    if _sign(cross) != 0:
        return False
    return _sign(from_a_x * (px - bx) + from_a_y * (py - by)) <= 0


@entry_point
def find_crossings(x, y, first, found_i, found_j, found_own, found_other):  # type: ignore[no-untyped-def]
    """First crossing of each pair of polylines. Polyline i has the points first[i] .. first[i + 1] - 1.

    Writes pair and distances in pair order to the ``found_`` arrays and returns their number.
    """
    n_found = 0
    n_links = first.size - 1
    for i in range(n_links):
        for j in range(i + 1, n_links):
            crossed = False
            gone_a = 0.0  # m along i up to the segment
            for a in range(first[i] + 1, first[i + 1]):
                ax, ay = x[a - 1], y[a - 1]
                ux, uy = x[a] - ax, y[a] - ay
                gone_b = 0.0  # m along j up to the segment
                for b in range(first[j] + 1, first[j + 1]):
                    bx, by = x[b - 1], y[b - 1]
                    vx, vy = x[b] - bx, y[b] - by
                    z = ux * vy - uy * vx
                    if _sign(z) == 0:
                        continue  # its length isn't added to gone_b: a quirk that is kept
                    share = ((bx - ax) * vy - (by - ay) * vx) / z
                    px, py = ax + ux * share, ay + uy * share
                    if _on_segment(px, py, ax, ay, x[a], y[a]) and _on_segment(px, py, bx, by, x[b], y[b]):
                        found_i[n_found] = i
                        found_j[n_found] = j
                        found_own[n_found] = gone_a + math.sqrt((px - ax) * (px - ax) + (py - ay) * (py - ay))
                        found_other[n_found] = gone_b + math.sqrt((px - bx) * (px - bx) + (py - by) * (py - by))
                        n_found += 1
                        crossed = True
                        break
                    gone_b += math.sqrt(vx * vx + vy * vy)
                if crossed:
                    break
                gone_a += math.sqrt(ux * ux + uy * uy)
    return n_found
