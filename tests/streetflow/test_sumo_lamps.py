"""What SUMO's signals show between two phases: yellow, then red, and no jump from green to red."""

from __future__ import annotations

import pytest

from streetflow.roadnet.reader import Phase
from streetflow.sumo.binding import LightBinding
from streetflow.sumo.lamps import Lamps, legs

LIGHT = LightBinding("J", "light", ((0,), (1, 2), (3,)), ("GGGrG", "rrrGr", "sGGgr"), 3.0)
"""Movements 0, 1 (of two signals) and 2; signal 4 is of no movement (a footway, say)."""
OWN = (Phase(30, (0, 1)), Phase(20, (2,)), Phase(10, (1, 2)))
CLEAR = (Phase(3, ()), Phase(3, (1,)), Phase(3, (2,)))  # 3: nothing stays open, 4: movement 1 does, 5: movement 2 does


@pytest.fixture
def lamps() -> Lamps:
    return Lamps(LIGHT, (*OWN, *CLEAR))


def test_what_closes_shows_yellow_and_what_stays_keeps_its_state(lamps: Lamps) -> None:
    assert lamps.show(0) == "GGGrG"
    assert lamps.show(4) == "yGGry"
    assert lamps.show(2) == "sGGgr"
    assert lamps.show(5) == "syygr"  # a turn on red isn't green
    assert lamps.show(1) == "rrrGr"


def test_yellow_turns_red_after_its_time_in_mid_run(lamps: Lamps) -> None:
    lamps.show(0)
    assert lamps.show(3) == "yyyry"
    assert list(legs([lamps], 2)) == [(2, {})]
    assert list(legs([lamps], 4)) == [(1, {"light": "rrrrr"}), (3, {})]
    assert lamps.state == "rrrrr" and lamps.show(1) == "rrrGr"


def test_one_clearance_after_another_goes_from_yellow_to_red(lamps: Lamps) -> None:
    lamps.show(0)
    assert lamps.show(4) == "yGGry"
    assert lamps.show(4) == "yGGry"
    assert lamps.show(3) == "ryyrr"


def test_a_jump_from_green_to_red_is_refused(lamps: Lamps) -> None:
    lamps.show(0)
    with pytest.raises(ValueError, match="signal 0 of the light 'light' would go from green to red without yellow"):
        lamps.show(1)


def test_the_first_phase_may_follow_anything(lamps: Lamps) -> None:
    assert lamps.show(1) == "rrrGr"
    lamps.forget()
    assert lamps.show(0) == "GGGrG"
    lamps.forget()
    assert lamps.show(3) == "yyyry"  # from the first phase's, as nothing was shown


def test_without_lights_time_goes_on() -> None:
    assert list(legs([], 7)) == [(7, {})]
