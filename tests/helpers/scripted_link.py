"""Links to scripted boards, for the tests of the link."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

import pytest

from hil.wire.link import Link, LinkError
from hil.wire.protocol import (
    ErrorReply,
    Frame,
    MessageType,
    encode_decide_reply,
    encode_error_reply,
    encode_frame,
    encode_hello_reply,
)
from tests.helpers.fake_board import ANSWER_TIME_US, DECISION, HELLO, SHA256, Answer, FakeBoard, Late, reply_to, sound

VALUES = [1, -2, 300]
T = TypeVar("T", bound=LinkError)


def linked(*script: Answer, afterwards: Answer = sound) -> tuple[Link, FakeBoard]:
    """A link after its handshake, and its board; the board's script starts with the next request."""
    board = FakeBoard([sound, *script], afterwards=afterwards)
    link = Link(board)
    link.hello(SHA256)
    return link, board


def refusing(code: int, detail: int = 0, sequence: int | None = None) -> Answer:
    def answer(request: Frame) -> list[bytes]:
        payload = encode_error_reply(ErrorReply(code, detail))
        number = request.sequence if sequence is None else sequence
        return [encode_frame(Frame(MessageType.ERROR, number, request.intersection, payload))]

    return answer


def saying(*data: bytes) -> Answer:
    return lambda request: data


def instead(change: Callable[[Frame], Frame]) -> Answer:
    """Answers a changed request: a reply that does not belong to the one in hand."""
    return lambda request: [reply_to(change(request))]


def failure(kind: type[T], act: Callable[[], object]) -> T:
    with pytest.raises(kind) as caught:
        act()
    assert type(caught.value) is kind
    return caught.value


def slow(compute_us: float, *, lost: int | None = None) -> FakeBoard:
    """A board that takes this long for each decision, at 1 MHz, and reports it; it doesn't answer decision `lost` the first
    time."""
    asked = itertools.count()

    def answer(request: Frame) -> Iterable[bytes | Late]:
        if request.type == MessageType.HELLO:
            payload = encode_hello_reply(replace(HELLO, f_cpu_hz=1_000_000))
        elif request.type == MessageType.DECIDE and next(asked) != lost:
            payload = encode_decide_reply(replace(DECISION, compute_cycles=int(compute_us)))
        else:
            return []
        reply = encode_frame(Frame(request.type | 0x80, request.sequence, request.intersection, payload))
        return [Late(compute_us if request.type == MessageType.DECIDE else ANSWER_TIME_US, reply)]

    return FakeBoard(afterwards=answer)
