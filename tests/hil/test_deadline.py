"""Deadlines on a clock that the test moves."""

import pytest

from hil.wire.deadline import Deadline


class HandClock:
    def __init__(self, time_us: float = 1_000.0) -> None:
        self.time_us = time_us

    def now_us(self) -> float:
        return self.time_us


def test_a_deadline_comes_nearer_and_passes() -> None:
    clock = HandClock()
    deadline = Deadline.after(clock, 500)
    assert (deadline.end_us, deadline.remaining_us, deadline.expired) == (1_500, 500, False)
    clock.time_us = 1_499
    assert (deadline.remaining_us, deadline.expired) == (1, False)
    clock.time_us = 1_500
    assert (deadline.remaining_us, deadline.expired) == (0, True)
    clock.time_us = 9_000
    assert (deadline.remaining_us, deadline.expired) == (0, True)


def test_tries_share_what_is_left_evenly_and_the_last_gets_the_rest() -> None:
    clock = HandClock()
    whole = Deadline.after(clock, 900)
    assert whole.share(3).end_us == pytest.approx(1_300)
    clock.time_us = 1_100  # the first try ended early
    assert whole.share(2).end_us == pytest.approx(1_500)
    clock.time_us = 1_500
    assert whole.share(1).end_us == pytest.approx(1_900)


def test_no_share_reaches_beyond_the_whole() -> None:
    clock = HandClock()
    whole = Deadline.after(clock, 100)
    clock.time_us = 5_000
    assert whole.share(3).expired
    assert whole.share(1).end_us == whole.end_us
