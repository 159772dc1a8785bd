"""What any board must do: `pytest --hil=simavr | host | PORT | URL tests/hil/test_on_board.py`.

The board holds the firmware of one policy (--hil-network, --hil-policy) and is open once for the whole session.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from hil.boards import Board
from hil.loop.fault_spec import FaultSpec
from hil.loop.faults_on_purpose import FaultyBoard
from hil.loop.job import Job
from hil.wire.deadline import Deadline
from hil.wire.link import BoardError, Link, LinkError, WrongPolicy
from hil.wire.parts import decide_in_parts
from hil.wire.protocol import (
    DecideRequest,
    ErrorCode,
    ErrorReply,
    Frame,
    FrameError,
    FrameSplitter,
    MessageType,
    decode_error_reply,
    decode_frame,
    encode_decide,
    encode_frame,
    logits_checksum,
)
from model.policy.file import Policy, load_policy
from model.policy.integer import IntegerPolicy

pytestmark = pytest.mark.hil
PATIENCE_US = 5e6
FAR_BUDGET_S = 30.0


@pytest.fixture(scope="module")
def policy(hil_job: Job) -> Policy:
    return load_policy(hil_job.policy_file)


@pytest.fixture
def link(board: Board, policy: Policy, hil_job: Job) -> Link:
    """A session of its own."""
    link = Link(board, budget_s=hil_job.budget_s)
    link.hello(policy.sha256, hil_job.setting)
    return link


def inputs(policy: Policy, count: int) -> Iterator[tuple[int, list[int]]]:
    """Intersections in turn, with extreme and random feature values."""
    rng = np.random.default_rng(7)
    for k in range(count):
        number = k % len(policy.intersections)
        n = policy.intersections[number].n_inputs
        extreme = [-32768, 32767, 0, -1]
        yield number, [extreme[k]] * n if k < len(extreme) else rng.integers(-50, 10 ** rng.integers(2, 5), n).tolist()


def exchange(board: Board, data: bytes) -> Frame:
    """The first sound frame that comes back for these bytes."""
    board.drain()
    board.write(data)
    splitter, deadline_us = FrameSplitter(), board.now_us() + PATIENCE_US
    while received := board.read(deadline_us):
        for part in splitter.feed(received):
            try:
                return decode_frame(part)
            except FrameError:
                continue
    pytest.fail(f"no answer to {data.hex()}")


def request(policy: Policy, value: int, sequence: int, number: int = 0) -> bytes:
    payload = encode_decide(DecideRequest([value] * policy.intersections[0].n_inputs))
    return encode_frame(Frame(MessageType.DECIDE, sequence, number, payload))


def test_it_says_who_it_is(link: Link, policy: Policy) -> None:
    greeting = link.greeting
    assert greeting is not None
    assert greeting.policy_sha256 == policy.sha256
    assert greeting.intersections == len(policy.intersections)
    assert greeting.max_payload_bytes >= 48


def test_another_policy_is_refused(board: Board) -> None:
    with pytest.raises(WrongPolicy):
        Link(board).hello("cd" * 32)


def test_every_logit_is_the_references(link: Link, policy: Policy) -> None:
    references = [IntegerPolicy(part) for part in policy.intersections]
    for number, values in inputs(policy, 60):
        decision = link.decide(number, values, logits=True)
        logits = references[number].logits(np.array(values))
        assert decision.logits == tuple(logits.tolist())
        assert decision.action == int(np.argmax(logits))
        assert decision.phase == policy.intersections[number].phases[decision.action]


def test_a_repeated_request_is_no_new_work(link: Link, board: Board, policy: Policy) -> None:
    before = link.stats().decisions
    first, again = (exchange(board, request(policy, 9, 77)) for _ in range(2))
    assert first == again and first.type == MessageType.DECIDE_REPLY
    assert link.stats().decisions == before + 1


def test_a_decision_in_parts_is_the_same(link: Link, board: Board, policy: Policy) -> None:
    for number, values in inputs(policy, 12):
        whole = link.decide(number, values)
        deadline = Deadline.after(board, FAR_BUDGET_S * 1e6)
        reply = decide_in_parts(link._exchanger, number, DecideRequest(values), deadline).reply
        assert (reply.action, reply.phase, reply.logits_crc) == (whole.action, whole.phase, whole.logits_crc)


def test_parts_that_do_not_belong_together_are_refused(link: Link, board: Board, policy: Policy) -> None:
    get = encode_frame(Frame(MessageType.GET, 5, 0, bytes((200, 0, 12))))
    assert decode_error_reply(exchange(board, get).payload) == ErrorReply(ErrorCode.BAD_PARTS, 0)
    n_inputs = policy.intersections[0].n_inputs
    exchange(board, encode_frame(Frame(MessageType.PUT, 6, 0, bytes((0, 1, 2, 3)))))
    decide = encode_frame(Frame(MessageType.DECIDE, 7, 0, bytes((4, n_inputs, 0x12, 0x34))))
    assert decode_error_reply(exchange(board, decide).payload) == ErrorReply(ErrorCode.BAD_PARTS, 0)
    overlong = encode_frame(Frame(MessageType.PUT, 8, 0, bytes((255, 1, 2))))
    assert decode_error_reply(exchange(board, overlong).payload).code == ErrorCode.BAD_LENGTH
    empty = encode_frame(Frame(MessageType.PUT, 9, 0))
    assert decode_error_reply(exchange(board, empty).payload).code == ErrorCode.BAD_LENGTH


def test_refusals_are_typed(link: Link, board: Board, policy: Policy) -> None:
    with pytest.raises(BoardError) as caught:
        link.decide(len(policy.intersections), [0] * policy.intersections[0].n_inputs)
    assert caught.value.code == ErrorCode.BAD_INTERSECTION
    assert decode_error_reply(exchange(board, b"\x02\x01\x00").payload).code == ErrorCode.MALFORMED
    damaged = bytearray(request(policy, 0x0505, 3))
    damaged[-5] ^= 0x40
    assert decode_error_reply(exchange(board, bytes(damaged)).payload).code == ErrorCode.BAD_CRC


def test_what_lies_half_received_is_flushed_by_a_delimiter(link: Link, board: Board, policy: Policy) -> None:
    board.write(request(policy, 3, 4)[:9])
    link.hello(policy.sha256)
    assert link.decide(0, [3] * policy.intersections[0].n_inputs).action >= 0


def test_a_reset_ends_the_session(link: Link, board: Board, policy: Policy) -> None:
    values = [4] * policy.intersections[0].n_inputs
    expected = link.decide(0, values).logits_crc
    board.reset()
    link.hello(policy.sha256)
    assert link.stats().decisions == 0
    assert link.decide(0, values).logits_crc == expected


def test_no_wrong_decision_is_taken_from_a_noisy_line(link: Link, board: Board, policy: Policy) -> None:
    """One byte in fifty, in both directions; decisions may get lost, but those that arrive are right."""
    noisy = FaultyBoard(board, FaultSpec.parse("bytes=0.02,seed=5"))
    references = [IntegerPolicy(part) for part in policy.intersections]
    through = Link(noisy, budget_s=FAR_BUDGET_S)
    through.hello(policy.sha256, patience_s=FAR_BUDGET_S)
    for number, values in inputs(policy, 20):
        logits = references[number].logits(np.array(values))
        try:
            assert through.decide(number, values).logits_crc == logits_checksum(logits)
        except LinkError as fault:
            pytest.fail(f"not even in {FAR_BUDGET_S} s: {fault}")
    assert through.counters.retries > 5 and noisy.injected.total() > 20


def test_the_closed_loop(closed_loop) -> None:
    verdict = closed_loop()
    assert verdict.passed, [check for check in verdict.checks if check.outcome == "fail"]
    assert len(verdict.records) >= 180 and not verdict.figures["traffic"]["unequal"]
