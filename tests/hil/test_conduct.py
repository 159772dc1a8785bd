"""The verdict `conduct`: each way to misbehave is found, on a model of the firmware; the real one passes."""

from dataclasses import replace

import pytest

from hil.loop.closed_loop import Seat
from hil.loop.conduct import Conduct, run_conduct
from hil.loop.job import Job, run_job
from hil.loop.verdict import check_conduct
from hil.wire.link import Link
from model import pretrained_policy
from model.policy.file import load_policy
from tests.helpers.model_firmware import ModelBoard

POLICY = load_policy(pretrained_policy("crossing"))
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
}


def conduct_of(wrong: str) -> Conduct:
    link = Link(ModelBoard(POLICY, wrong))
    link.hello(POLICY.sha256)
    return run_conduct(POLICY, [Seat(link, 0)])


def test_a_sound_board_passes_all_points() -> None:
    conduct = conduct_of("")
    assert conduct.faults == () and len(conduct.tried) == 7 and conduct.not_tried == ()
    assert check_conduct(conduct).outcome == "pass"


@pytest.mark.parametrize("wrong", ModelBoard.WRONG)
def test_each_way_to_misbehave_is_found(wrong: str) -> None:
    conduct = conduct_of(wrong)
    assert POINTS[wrong] in conduct.faults
    check = check_conduct(conduct)
    assert check.outcome == "fail" and check.detail == conduct.faults[0]


def test_a_board_that_falls_silent_is_a_fault_and_no_crash() -> None:
    assert conduct_of("silent from the second on").faults[-1].startswith("greeted again: no answer")


def test_the_link_decides_as_before_afterwards() -> None:
    link = Link(ModelBoard(POLICY))
    link.hello(POLICY.sha256)
    run_conduct(POLICY, [Seat(link, 0)])
    assert link.decide(0, [0] * POLICY.intersections[0].n_inputs).tries == 1
    assert link.counters.sessions_lost == link.counters.retries == 0


@pytest.mark.hil
@pytest.mark.parametrize(("board", "points", "left"), [("simavr", 7, 0), ("host", 5, 2)])
def test_the_firmware_behaves(board: str, points: int, left: int) -> None:
    job = Job.named("crossing", 0, None, board=board, kernel="c", budget_s=30.0 if board == "host" else 0.1)
    verdict = run_job(replace(job, network=replace(job.network, horizon_s=200)))
    check = verdict.check("conduct")
    assert (check.outcome, check.measured) == ("pass", f"{points} of {points} points"), check
    assert len(verdict.figures["conduct"]["not_tried"]) == left  # type: ignore[index]
