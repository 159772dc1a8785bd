"""Cases in which a kernel skips a formula: the formula gives the same result."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from streetflow.engine.demand import kind_row
from streetflow.kernels import tables as t
from streetflow.kernels.action import car_following_speed, is_free_behind
from streetflow.kernels.car_following import stop_before
from streetflow.roadnet.flow import VehicleKind
from tests.helpers.drawn_networks import STEP_LENGTHS_S, drawn, vehicles


class Kinds(NamedTuple):
    """What these helpers read of a State."""

    kinds: t.Floats


@njit(error_model="numpy")  # type: ignore[untyped-decorator]
def free_and_followed(s, u, w, ul, gap, delta):  # type: ignore[no-untyped-def]
    """By the shortcut and by the formula; the vehicle is of kind 0, the one ahead of kind 1."""
    at = t.KIND_SIZE
    return is_free_behind(s, 0, u, w, at, ul, gap, delta), car_following_speed(s, 0, u, at, ul, gap, np.nan, delta)


@njit(error_model="numpy")  # type: ignore[untyped-decorator]
def speed_to_stop(s, rest, delta):  # type: ignore[no-untyped-def]
    return stop_before(rest, 0.0, 0, s, delta)


def kinds_of(parameters: list[dict[str, float]], step_s: float) -> Kinds:
    return Kinds(np.array([x for each in parameters for x in kind_row(vehicle_kind_of(each), step_s)]))


def vehicle_kind_of(each: dict[str, float]) -> VehicleKind:
    names = ("length", "width", "maxPosAcc", "maxNegAcc", "usualPosAcc", "usualNegAcc", "minGap", "maxSpeed", "headwayTime")
    return VehicleKind(*(each[name] for name in names))


SPEEDS = st.floats(0, 20)


@drawn(150)
@given(
    kinds=st.lists(vehicles(), min_size=2, max_size=2),
    equal_brakes=st.booleans(),
    step_s=st.sampled_from(STEP_LENGTHS_S),
    cases=st.lists(st.tuples(SPEEDS, SPEEDS, SPEEDS, st.floats(-5, 90)), min_size=20, max_size=60),
)
def test_who_is_free_behind_another_follows_faster_than_it_wants_to_go(
    kinds: Any, equal_brakes: bool, step_s: float, cases: Any
) -> None:
    """Looked at closely where the answer changes: the least gap that is said to be free is bracketed to its last bits."""
    if equal_brakes:
        kinds = [{**kind, "usualNegAcc": kind["maxNegAcc"]} for kind in kinds]
    s = kinds_of(kinds, step_s)
    for u, w, ul, gap in cases:
        is_free, follows = free_and_followed(s, u, w, ul, gap, step_s)
        assert not is_free or follows > w
        if not equal_brakes:
            continue
        low, high = -100.0, 1000.0
        for _ in range(60):
            middle = (low + high) / 2
            is_free, follows = free_and_followed(s, u, w, ul, middle, step_s)
            assert not is_free or follows > w
            low, high = (low, middle) if is_free else (middle, high)
        assert free_and_followed(s, u, w, ul, high, step_s)[0]


@drawn(200)
@given(kind=vehicles(), step_s=st.sampled_from(STEP_LENGTHS_S), share=st.floats(0, 1))
def test_who_stands_near_a_red_light_goes_on_standing(kind: Any, step_s: float, share: float) -> None:
    s = kinds_of([kind], step_s)
    rest = float(s.kinds[t.STANDING_REST])
    assert 0 < rest <= s.kinds[t.HORIZON]
    for near in (share * rest, rest):
        speed = speed_to_stop(s, near, step_s)
        assert speed == 0 or math.isnan(speed)
    if rest < s.kinds[t.HORIZON]:
        assert speed_to_stop(s, np.nextafter(rest, math.inf), step_s) > 0
