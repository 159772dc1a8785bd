"""The verdict `conduct`: each way to misbehave is found, on a model of the firmware; the real one passes."""

from dataclasses import replace

import pytest

from hil.build.firmware import NO_WATCHDOG
from hil.loop.closed_loop import Seat
from hil.loop.conduct import Conduct, run_conduct
from hil.loop.job import Job, run_job
from hil.loop.sweep_inputs import sweep_of
from hil.loop.verdict import check_conduct
from hil.wire.link import Link
from model import pretrained_policy
from model.policy.file import load_policy
from model.policy.integer import IntegerPolicy
from tests.helpers.model_firmware import ModelBoard

POLICY = load_policy(pretrained_policy("crossing"))
MIN_GREEN_S = 7
POINTS = {
    "replies twice": "one reply: 2 replies to one request",
    "computes a repeat": "a repeat is answered from memory: the chip has computed 1 decision for it",
    "forgets a repeat's count": "a repeat is answered from memory: STATS doesn't count it",
    "takes the number for the request": "another with its number is not: answered with other logits than the request's",
    "ignores the CRC": "damage is refused: answered, where BAD_CRC or MALFORMED is right",
    "counts damage": "damage is refused: the chip has computed 1 decision from it",
    "takes any intersection": "misfits are refused: answered, where BAD_INTERSECTION is right",
    "takes any length": "misfits are refused: answered, where BAD_LENGTH is right",
    "answers without a session": "no decision without a session: answered, where NO_SESSION is right",
    "stopwatch at 1": "the stopwatch tells the time: 1 cycles told, and an answer after 32000",
    "mute": "one reply: no answer",
    "silent from the second on": "a repeat is answered from memory: no answer",
    "another sequence": "one reply: answered with sequence 204 and intersection 0, where 203 and 0 were asked",
    "no watchdog": "watchdog and flash check are on: HELLO tells: watchdog off, flash check on (0x02, where 0x0A is right)",
    "a slow watchdog": "the watchdog ends a hang: it lasted 2.10 s, where 0.7 to 1.4 are right",
    "no flash check": "a damaged flash decides nothing: refused with NO_SESSION, where FLASH_CORRUPT is right",
    "tells the wrong cause": "no decision without a session: NO_SESSION with detail 1, where 2 is right",
    "takes any phase": "misfits are refused: answered, where BAD_PHASE is right",
    "ignores the minimum green": "the light's state is heeded: action {free} for {other}, {other} having been green for 0 s",
    "keeps the phase for ever": "the light's state is heeded: action {other} for {free}, {other} having been green for 7 s",
    "packs from another base": "packed values decide alike: answered with other logits than the request's",
    "ignores the CRC of parts": "a decision comes in parts: GET refused: BAD_PARTS, detail 0",
    "brings other logits": "a decision comes in parts: GET brings other logits",
    "knows every type": "frames that aren't requests are refused: refused with BAD_LENGTH, where UNKNOWN_TYPE is right",
    "tells no detail": "misfits are refused: BAD_INTERSECTION with detail 0, where 1 is right",
    "remembers across sessions": "another with its number is not: "
    "a session's request is answered from the memory of the session before",
    "counts no good frames": "STATS counts what happened: good_frames grew by 0, where 3 is right",
    "a short reply": "one reply: DECIDE reply of 2 bytes, not 8",
    "counts no range": "what leaves the range is counted: "
    "inputs beyond and units at their limit counted [0, 0], where [1, 1] is right",
    "the wrong phase": "one reply: action {free} and phase {phase} for {free} and {right}",
}


def conduct_of(wrong: str) -> Conduct:
    link = Link(ModelBoard(POLICY, wrong, MIN_GREEN_S))
    link.hello(POLICY.sha256)
    return run_conduct(POLICY, [Seat(link, 0)])


def test_a_sound_board_passes_all_points() -> None:
    conduct = conduct_of("")
    assert conduct.faults == () and len(conduct.tried) == 16 and len(conduct.not_tried) == 2
    assert check_conduct(conduct).outcome == "pass"


@pytest.mark.parametrize("wrong", ModelBoard.WRONG)
def test_each_way_to_misbehave_is_found(wrong: str) -> None:
    conduct = conduct_of(wrong)
    (part,) = POLICY.intersections
    free = int(IntegerPolicy(part).logits(sweep_of(part).inputs[0]).argmax())
    other = (free + 1) % len(part.phases)
    words = POINTS[wrong].format(free=free, other=other, phase=part.phases[free] + 1, right=part.phases[free])
    assert words in conduct.faults
    check = check_conduct(conduct)
    assert check.outcome == "fail" and check.detail == conduct.faults[0]


def test_a_board_that_falls_silent_is_a_fault_and_no_crash() -> None:
    assert conduct_of("silent from the second on").faults[-1].startswith("greeted again: no answer")


def test_a_board_that_never_stops_sending_is_a_fault_and_no_endless_wait() -> None:
    """As one whose interrupt for the sending of bytes stays on."""

    class Babbling(ModelBoard):
        babbles = False

        def read(self, deadline_us: float) -> bytes:
            if not self.babbles:
                return super().read(deadline_us)
            self._time_us += 100.0
            return b"\x55"

    board = Babbling(POLICY)
    link = Link(board)
    link.hello(POLICY.sha256)
    board.babbles = True
    assert "one reply: what comes back doesn't end" in run_conduct(POLICY, [Seat(link, 0)]).faults


def test_the_link_decides_as_before_afterwards() -> None:
    link = Link(ModelBoard(POLICY))
    link.hello(POLICY.sha256)
    run_conduct(POLICY, [Seat(link, 0)])
    assert link.decide(0, [0] * POLICY.intersections[0].n_inputs).tries == 1
    assert link.counters.sessions_lost == link.counters.retries == 0


@pytest.mark.hil
@pytest.mark.parametrize(("board", "points", "left"), [("simavr", 18, 0), ("host", 11, 7)])
def test_the_firmware_behaves(board: str, points: int, left: int) -> None:
    job = Job.named("crossing", 0, None, board=board, kernel="c", budget_s=30.0 if board == "host" else 0.1)
    verdict = run_job(replace(job, network=replace(job.network, horizon_s=200)))
    check = verdict.check("conduct")
    assert (check.outcome, check.measured) == ("pass", f"{points} of {points} points"), check
    assert len(verdict.figures["conduct"]["not_tried"]) == left  # type: ignore[index]


@pytest.mark.hil
@pytest.mark.parametrize(("watchdog", "points", "outcome"), [(False, 17, "pass"), (True, 15, "fail")])
def test_a_firmware_without_watchdog_must_be_asked_for(watchdog: bool, points: int, outcome: str) -> None:
    """As an old bootloader needs it; where a watchdog is expected, it is missed twice: HELLO tells it, and a hang lasts."""
    job = Job.named("crossing", 0, None, kernel="c", watchdog=watchdog, firmware_flags=(NO_WATCHDOG,))
    check = run_job(replace(job, network=replace(job.network, horizon_s=100))).check("conduct")
    assert (check.outcome, check.measured) == (outcome, f"{points} of {17 if not watchdog else 18} points")
    assert ("watchdog off" in check.detail) is watchdog and ("the watchdog ends a hang" in check.detail) is not watchdog
