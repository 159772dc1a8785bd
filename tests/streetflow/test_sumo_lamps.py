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


def test_a_controllers_lamps_are_shown_with_the_programs_letters(lamps: Lamps) -> None:
    assert lamps.lit(frozenset({0, 1}), frozenset()) == "GGGrG"
    assert lamps.lit(frozenset({1, 2}), frozenset()) == "sGGgy", "movement 2 yields there; 0 may turn on red; 4 has been green"
    assert lamps.lit(frozenset({2}), frozenset({1})) == "ryyGy", "4 has no lamp: it is closed as long as one is yellow"
    assert lamps.lit(frozenset({2}), frozenset()) == "rrrGr"


def test_between_two_phases_who_stays_green_yields_if_he_does_in_one_of_those_that_may_follow(lamps: Lamps) -> None:
    """Movement 1 alone is open in no phase, but in 0 and 2 among others; what 4 shows there differs, so it is closed."""
    assert lamps.lit(frozenset({1}), frozenset({0})) == "yGGry"
    assert lamps.lit(frozenset({1}), frozenset()) == "rGGrr"


def test_all_is_red_where_a_controller_is_dark(lamps: Lamps) -> None:
    lamps.lit(frozenset({0, 1}), frozenset())
    assert lamps.lit(frozenset(), frozenset()) == "rrrry"
    assert lamps.lit(frozenset(), frozenset()) == "rrrrr"


def test_lamps_no_phase_has_are_shown_all_the_same(lamps: Lamps) -> None:
    """A fault at the pins: movements 0 and 2 at once."""
    assert lamps.lit(frozenset({0, 2}), frozenset()) == "Grrgy"
    assert lamps.lit(frozenset({0, 2}), frozenset()) == "Grrgr"


def test_a_phase_may_follow_lamps(lamps: Lamps) -> None:
    lamps.lit(frozenset({0, 1}), frozenset())
    assert lamps.show(3) == "yyyry"
