"""How long the link waits for a board that is slow, silent or late, and which times it reports."""

import pytest

from hil.wire.link import Link, NoAnswer
from hil.wire.protocol import Frame
from tests.helpers.fake_board import ANSWER_TIME_US, DECISION, SHA256, FakeBoard, Late, reply_to, silent
from tests.helpers.scripted_link import VALUES, failure, linked, slow


@pytest.mark.parametrize("compute_us", [30_000, 45_000, 70_000, 90_000])
def test_a_slow_chip_is_given_its_time(compute_us: float) -> None:
    """From the first decision on, where it is known how long one can take."""
    link = Link(slow(compute_us), most_decision_cycles=95_000)
    link.hello(SHA256)
    assert [link.decide(0, VALUES).tries for _ in range(5)] == [1] * 5


def test_a_slow_chip_is_given_its_time_once_it_has_told_it() -> None:
    link = Link(slow(40_000))
    link.hello(SHA256)
    assert [link.decide(0, VALUES).tries for _ in range(5)] == [2, 1, 1, 1, 1]


@pytest.mark.parametrize("compute_us", [40_000, 60_000, 90_000])
def test_an_answer_within_the_budget_is_taken_however_long_the_chip_was_silent(compute_us: float) -> None:
    """Even the first, when nothing is known of the chip: silence is no sign of damage, so nothing goes in parts."""
    link = Link(slow(compute_us))
    link.hello(SHA256)
    assert link.decide(0, VALUES).round_trip_us <= 100_000
    assert link.counters.in_parts == 0 and link.decide(0, VALUES).tries == 1


@pytest.mark.parametrize("lost", [0, 3])
def test_a_slow_chips_lost_request_is_asked_again(lost: int) -> None:
    link = Link(slow(30_000, lost=lost), most_decision_cycles=40_000)
    link.hello(SHA256)
    assert [link.decide(0, VALUES).tries for _ in range(5)] == [1 + (number == lost) for number in range(5)]


def test_a_try_takes_the_time_that_is_too_short_for_another() -> None:
    """Its share of the time, which is that of its bytes, ends before the reply begins."""
    board = slow(25_000)
    board.byte_us = 2_200
    link = Link(board)
    link.hello(SHA256)
    assert link.decide(0, VALUES).tries == 1


def test_silence_is_retried_with_the_same_sequence_number() -> None:
    link, board = linked(silent, silent)
    decision = link.decide(0, VALUES)
    assert decision.tries == 3
    first, second, third = board.requests[1:]
    assert first == second == third
    assert [data.startswith(b"\0") for data in board.written[1:]] == [False, True, True]
    assert link.counters.retries == 2
    assert 66_000 < decision.round_trip_us < 75_000, "from the first try on: two tries of a third of 0.1 s each"
    assert decision.response_us == pytest.approx(ANSWER_TIME_US), "of the try that was answered"


def test_a_silent_board_costs_the_budget_and_no_more() -> None:
    link, board = linked(afterwards=silent)
    begin = board.now_us()
    fault = failure(NoAnswer, lambda: link.decide(0, VALUES))
    assert board.now_us() - begin == pytest.approx(100_000)
    assert fault.tries == 3 and "(fake, 3 tries in 100 ms)" in str(fault)
    assert link.counters.unanswered == 1
    with pytest.raises(NoAnswer, match=r"\(fake, 1 try in 6 ms\)"):
        Link(FakeBoard(afterwards=silent)).hello(patience_s=0.006)


def test_an_answer_after_the_budget_is_no_answer_and_not_taken_for_the_next() -> None:
    def slow(request: Frame) -> list[Late]:
        return [Late(120_000, reply_to(request))]

    link, board = linked(slow, slow, slow)
    failure(NoAnswer, lambda: link.decide(0, VALUES))
    assert link.decide(0, VALUES).logits_crc == DECISION.logits_crc
    assert link.counters.stale_frames == 3
    assert [request.sequence for request in board.requests[1:]] == [2, 2, 2, 3, 3, 3]


def test_a_late_answer_to_an_earlier_try_counts_from_that_try() -> None:
    def late(request: Frame) -> list[Late]:
        return [Late(40_000, reply_to(request))]

    link, _ = linked(late, silent)
    decision = link.decide(0, VALUES)
    assert decision.tries == 2
    assert 0 < decision.response_us < 40_000
    assert decision.round_trip_us > 40_000


@pytest.mark.parametrize(
    ("compute_us", "response_us"), [(30_000, pytest.approx(30_000)), (40_000, None), (60_000, None)], ids=str
)
def test_no_response_is_shorter_than_the_chip_has_computed(compute_us: float, response_us: float | None) -> None:
    """The first try's answer, after a second try that was sent while the chip was still computing."""
    link = Link(slow(compute_us))
    link.hello(SHA256)
    decision = link.decide(0, VALUES)
    assert decision.response_us == response_us and decision.tries == (2 if response_us is None else 1)
    assert decision.round_trip_us > compute_us


def test_an_answer_from_memory_has_no_response_time() -> None:
    """The chip sends again at once what it had computed for the damaged first reply."""

    def damaged(request: Frame) -> list[bytes]:
        return [b"\x05" + reply_to(request)[1:]]

    def remembered(request: Frame) -> list[Late]:
        return [Late(300, reply_to(request))]

    link, _ = linked(damaged, remembered)
    decision = link.decide(0, VALUES)
    assert decision.tries == 2 and decision.compute_cycles == DECISION.compute_cycles
    assert decision.response_us is None
