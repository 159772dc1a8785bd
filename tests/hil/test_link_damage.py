"""The link where the line spoils frames, or brings others than the reply: garbage, damage, strays, typed errors."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from hil.wire.link import BoardError, GarbageAnswer, NoAnswer
from hil.wire.protocol import ErrorCode, Frame, MessageType
from tests.helpers.fake_board import DECISION, STATS, Late, reply_to, silent
from tests.helpers.scripted_link import VALUES, failure, instead, linked, refusing, saying


def test_garbage_before_the_reply_is_passed_over() -> None:
    def noisy(request: Frame) -> list[bytes]:
        return [b"\x05\x01", b"\x02\x00", b"\x00", reply_to(request)]

    link, _ = linked(noisy)
    assert link.decide(0, VALUES).tries == 1
    assert (link.counters.bad_frames, link.counters.garbage_bytes) == (1, 3)


@pytest.mark.parametrize(
    "garbage",
    [b"\xff" * 7, b"\x03\x01\x02\x00", bytes(range(1, 256)) * 20, b"\x00"],
    ids=["no delimiter", "frames", "endless", "delimiters"],
)
def test_nothing_but_garbage(garbage: bytes) -> None:
    link, board = linked(afterwards=saying(garbage))
    kind = NoAnswer if garbage == b"\x00" else GarbageAnswer
    assert failure(kind, lambda: link.decide(0, VALUES)).tries in range(2, 30)
    assert board.now_us() < 200_000


def test_an_endless_stream_of_frames_ends_with_the_budget() -> None:
    link, board = linked(afterwards=saying(*[b"\x03\x01\x02\x00"] * 5_000))
    failure(GarbageAnswer, lambda: link.decide(0, VALUES))
    assert board.now_us() < 150_000


def test_a_damaged_reply_is_retried() -> None:
    def damaged(request: Frame) -> list[bytes]:
        reply = bytearray(reply_to(request))
        reply[5] ^= 0x10 if reply[5] != 0x10 else 0x20
        return [bytes(reply)]

    link, _ = linked(damaged)
    decision = link.decide(0, VALUES)
    assert decision.logits_crc == DECISION.logits_crc
    assert decision.tries == 2
    assert link.counters.bad_frames == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda request: replace(request, sequence=(request.sequence - 1) % 256),
        lambda request: replace(request, intersection=request.intersection + 1),
        lambda request: replace(request, type=MessageType.STATS),
    ],
    ids=["sequence", "intersection", "type"],
)
def test_a_reply_to_something_else_is_discarded(change: Callable[[Frame], Frame]) -> None:
    def mixed(request: Frame) -> list[bytes]:
        return [reply_to(change(request)), reply_to(request)]

    link, _ = linked(mixed)
    assert link.decide(0, VALUES).tries == 1
    assert link.counters.stale_frames == 1
    only_wrong, _ = linked(afterwards=instead(change))
    failure(NoAnswer, lambda: only_wrong.decide(0, VALUES))


def test_a_duplicated_reply_does_not_answer_the_next_request() -> None:
    def twice(request: Frame) -> list[bytes]:
        return [reply_to(request), reply_to(request)]

    link, _ = linked(twice)
    link.decide(0, VALUES)
    assert link.stats() == STATS
    assert link.decide(0, VALUES).action == DECISION.action
    assert link.counters.stale_frames == 1


@pytest.mark.parametrize("code", [ErrorCode.BAD_CRC, ErrorCode.MALFORMED, ErrorCode.TOO_LONG])
def test_an_error_that_the_wire_explains_is_retried_at_once(code: ErrorCode) -> None:
    link, _ = linked(refusing(code, sequence=99))
    decision = link.decide(0, VALUES)
    assert decision.tries == 2
    assert decision.round_trip_us < 30_000, "no waiting for the first try's share to end"
    assert link.counters.error_replies == 1


def test_an_error_about_the_flush_does_not_hide_the_last_tries_reply() -> None:
    def flushed(request: Frame) -> Iterable[bytes | Late]:
        return [*refusing(ErrorCode.MALFORMED)(request), reply_to(request)]

    link, _ = linked(silent, silent, flushed)
    assert link.decide(0, VALUES).tries == 3


def test_a_wire_error_on_every_try_is_reported() -> None:
    link, _ = linked(afterwards=refusing(ErrorCode.BAD_CRC))
    fault = failure(BoardError, lambda: link.decide(0, VALUES))
    assert fault.code == ErrorCode.BAD_CRC
    assert 10 < fault.tries < 40, "each is answered at once, so there is time for many"
    assert "BAD_CRC" in str(fault)


def test_an_error_that_a_retry_cannot_help_is_reported_at_once() -> None:
    link, board = linked(refusing(ErrorCode.BAD_INTERSECTION, 2))
    fault = failure(BoardError, lambda: link.decide(7, VALUES))
    assert (fault.code, fault.detail, fault.tries) == (5, 2, 1)
    assert "BAD_INTERSECTION, detail 2" in str(fault)
    assert len(board.requests) == 2


def test_a_stale_error_is_not_taken_for_this_request() -> None:
    def stale(request: Frame) -> Iterable[bytes | Late]:
        return [*refusing(ErrorCode.BAD_LENGTH, 9, sequence=request.sequence - 1)(request), reply_to(request)]

    link, _ = linked(stale)
    assert link.decide(0, VALUES).tries == 1
    assert link.counters.stale_frames == 1


def test_an_unknown_error_code_is_reported_as_such() -> None:
    link, _ = linked(refusing(77))
    assert "77 (unknown)" in str(failure(BoardError, lambda: link.decide(0, VALUES)))
