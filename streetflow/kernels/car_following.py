"""The car-following and crossing formulas (docs/cityflow-semantics.md, sections 5 and 6.4), on scalars.

``min(p, q)`` of the text is "p if p < q else q": with NaN that gives q. It is spelled out here because numba's and
Python's own min and max treat NaN differently. Terms that depend only on a vehicle's kind come from its row of
``kinds``, computed once by the same operations.
"""

from __future__ import annotations

import math

from streetflow.kernels.jit import helper
from streetflow.kernels.tables import (
    LENGTH,
    MAX_NEG_ACC,
    MAX_SPEED,
    USUAL_NEG_ACC,
    USUAL_POS_ACC,
    USUAL_POS_STEP,
    State,
)

YIELD_DISTANCE_M = 5.0
TURNING_SPEED_MPS = 8.3333
NO_SPEED = -100.0  # "would collide whatever it does"


@helper
def lesser(p: float, q: float) -> float:
    return p if p < q else q


@helper
def greater(p: float, q: float) -> float:
    return p if p > q else q


@helper
def to_int32(z: float) -> int:
    """C's int(z) on x86-64: truncation, and -2**31 for what doesn't fit (or NaN)."""
    if z > -2147483649.0 and z < 2147483648.0:
        return int(z)
    return -2147483648


@helper
def no_collision_root(c: float, delta: float, four_a: float, half_over_a: float, bound: float) -> float:
    """N of section 5 from its c; ``bound`` is its second term, 2*vL - dL*delta + 2*(g - t)/delta."""
    b = 0.5 * delta
    product = four_a * c
    if b * b < product:
        return NO_SPEED
    return lesser(half_over_a * (math.sqrt(b * b - product) - b), bound)


@helper
def stop_before(d: float, u: float, k: int, s: State, delta: float) -> float:
    """B(d): the speed with which a vehicle of kind row k stops before a point d ahead."""
    n = u + s.kinds[k + USUAL_POS_STEP]
    if (u + n) * delta / 2 + (n * n / s.kinds[k + USUAL_NEG_ACC] / 2) < d:
        return n
    steps = 2 * d / (u + 1e-8) / delta
    if steps >= 1:
        return u - u / to_int32(steps)
    return u - u / steps


@helper
def can_stop(d: float, u: float, k: int, s: State) -> bool:
    """Whether a vehicle at signed distance d to a crossing can still let others pass."""
    if d > 0:
        return 0.5 * u * u / s.kinds[k + MAX_NEG_ACC] < d - YIELD_DISTANCE_M
    return d < 0 and d + s.kinds[k + LENGTH] < 0


@helper
def steps_to_reach(d: float, u: float, k: int, is_turn: int, s: State, delta: float) -> int:
    """How many steps a vehicle needs to a crossing at distance d. The quirks of section 6.4 are kept."""
    if d <= 0:
        return 0
    target = TURNING_SPEED_MPS if is_turn else s.kinds[k + MAX_SPEED]
    acc = s.kinds[k + USUAL_POS_ACC]
    if u > target:
        return to_int32(math.ceil(d / u))
    gaining = 0.0
    if target > u:
        n = to_int32(math.floor((target - u) / acc / delta))
        w = u + n * acc / delta
        gaining = (u + w) * (n * delta) / 2 + ((w + target) * delta / 2 if w < target else 0.0)
    if gaining > d:
        return to_int32(math.ceil((math.sqrt(u * u + 2 * acc * d) - u) / acc / delta))
    return to_int32(math.ceil((target - u) / acc / delta) + math.ceil((d - gaining) / target / delta))
