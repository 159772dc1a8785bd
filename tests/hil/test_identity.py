"""The verdict `build`: which program the board runs, and whether its size is that of the build judged."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hil.build.build_id import BuildId, read_build_id
from hil.build.firmware import build_firmware
from hil.build.one_intersection import policy_for
from hil.loop.identity import Identity
from hil.loop.job import Job, build, judge, run_job
from hil.loop.verdict import check_build
from hil.wire.link import Link, WrongFirmware
from model import pretrained_policy
from model.policy.file import load_policy
from streetflow.errors import FieldError, InputError
from tests.helpers.board_at import board_at
from tests.helpers.fake_board import HELLO, FakeBoard, reply_to

pytestmark = pytest.mark.hil

BUDGET_S = 30.0  # a busy machine may leave a board in real time waiting
OURS, OTHER = BuildId(0x1234ABCD, 13_048), BuildId(0x55, 27_070)
AVR = ("unrolled", "unrolled")


@pytest.fixture(scope="module")
def job() -> Job:
    """Ten decisions."""
    job = Job.named("crossing", 0, pretrained_policy("crossing"), budget_s=BUDGET_S, sweep=False)
    return replace(job, network=replace(job.network, horizon_s=100))


@pytest.mark.parametrize(
    ("identity", "outcome", "words"),
    [
        (Identity(OURS, OURS, AVR, 412, 412), "pass", ""),
        (Identity(OURS, OURS, AVR, None, 412), "pass", ""),
        (Identity(OURS, OURS, AVR, 411, 412), "fail", ""),
        (
            Identity(OTHER, OURS, ("table", "unrolled"), 411, 412),
            "not measured",
            "(00000055, 27070 B, kernel table for unrolled)",
        ),
        (Identity(None, OURS, AVR, 412, 412), "not measured", "older than 2.2"),
        (Identity(None, None, ("c", "c"), None, None), "not measured", "not an AVR"),
    ],
)
def test_what_a_board_tells_beside_the_build_that_is_judged(identity: Identity, outcome: str, words: str) -> None:
    check = check_build([identity])
    assert check.outcome == outcome and words in check.detail
    assert bool(identity.why_not) is (outcome == "not measured" and identity.judged is not None)
    both = check_build([Identity(OURS, OURS, AVR, 412, 412), identity])
    assert both.outcome == outcome


def test_a_board_that_is_swapped_for_another_build_of_the_same_policy_is_not_followed() -> None:
    told = replace(HELLO, build_id=OURS.number, program_bytes=OURS.program_bytes, conditions=10)
    builds = [told, told, replace(told, build_id=OTHER.number)]
    board = FakeBoard([lambda request, hello=hello: [reply_to(request, hello)] for hello in builds])
    link = Link(board)
    link.hello()
    link.greet_again()
    with pytest.raises(WrongFirmware, match="it holds another build than before"):
        link.greet_again()


def test_files_without_a_build(tmp_path: Path) -> None:
    text, older = tmp_path / "text.elf", tmp_path / "older.elf"
    text.write_text("no program")
    subprocess.run(["avr-gcc", "-mmcu=atmega328p", "-xc", "-", "-o", older], input=b"int main(void) { return 0; }", check=True)
    for file, fault in ((text, "not an ELF file"), (tmp_path / "none.elf", "can't be read"), (older, "older than 2.2")):
        with pytest.raises(InputError, match=fault):
            read_build_id(file)


OTHER_BUILDS = [
    pytest.param({"kernel": "table"}, ", kernel table for unrolled", id="kernel"),
    pytest.param({"firmware_flags": ("-Os", "-DTL_BALLAST_BYTES=99")}, "", id="flags"),
]


@pytest.mark.filterwarnings("ignore:set.*deprecated:DeprecationWarning")  # in pyserial's client
@pytest.mark.parametrize("where", ["simavr", "pty", "rfc2217"])
@pytest.mark.parametrize(("built", "named"), OTHER_BUILDS)
def test_a_board_with_another_build_is_named_and_its_size_not_judged(
    job: Job, built: dict[str, object], named: str, where: str
) -> None:
    """Right decisions, but of another program than the one whose flash, RAM and stack are known here."""
    judged, other = (build(each)[0] for each in (job, replace(job, **built)))  # type: ignore[arg-type]
    policy = load_policy(job.policy_file)
    with board_at(where, other) as board:
        verdict = judge(job, policy, job.environment(policy), board, judged)
    assert verdict.passed and judged.build != other.build
    sizes = [verdict.check(name) for name in ("flash", "RAM", "stack")]
    assert {check.outcome for check in sizes} == {"not measured"}
    check = verdict.check("build")
    assert (check.outcome, check.measured, check.limit) == ("not measured", f"build {other.build}", f"build {judged.build}")
    assert f"the board holds another build ({other.build}{named})" in check.detail
    assert "footprint" not in verdict.figures


def test_the_firmware_of_one_intersection_is_that_of_a_run_with_a_board_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    file = pretrained_policy("arterial")
    name = load_policy(file).intersections[1].id
    with policy_for(file, name) as alone:
        flashed = build_firmware(alone)
    run: list[BuildId | None] = []

    def noting(job: Job) -> object:
        built = build(job)
        run.append(built[0].build)
        return built

    monkeypatch.setattr("hil.loop.job.build", noting)
    job = Job.named("arterial", 0, file, boards="per-intersection", sweep=False)
    verdict = run_job(replace(job, network=replace(job.network, horizon_s=50)))
    assert verdict.passed and verdict.check("build").measured == "3 boards, each its own"
    assert flashed.build == run[1] and len(set(run)) == 3
    with pytest.raises(FieldError, match="has no 'intersection_9_9'"), policy_for(file, "intersection_9_9"):
        pass


@pytest.mark.parametrize("where", ["simavr", "pty"])
def test_the_build_that_is_judged_passes(job: Job, where: str) -> None:
    firmware, policy = build(job)[0], load_policy(job.policy_file)
    with board_at(where, firmware) as board:
        verdict = judge(job, policy, job.environment(policy), board, firmware)
    assert verdict.passed and verdict.check("build").outcome == verdict.check("flash").outcome == "pass"
