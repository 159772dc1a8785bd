"""Faults on the line and the chip: they happen as specified, and the closed loop survives them."""

from dataclasses import replace
from pathlib import Path

import pytest

from hil.boards import HostBoard, SimavrBoard, open_board
from hil.build.firmware import Firmware, build_firmware
from hil.loop.fault_spec import FaultSpec
from hil.loop.faults_on_purpose import FaultyBoard
from hil.loop.job import Job, run_job
from hil.loop.verdict import Verdict
from hil.wire.link import Link, LinkError, NoAnswer, WrongPolicy
from hil.wire.protocol import Frame, MessageType, decode_frame, encode_frame
from model import pretrained_policy
from model.policy.file import Policy, load_policy
from streetflow.errors import InputError
from tests.helpers.fake_board import SHA256, FakeBoard, reply_to
from tests.helpers.random_policy import write_random_policy

F_CPU_HZ, BAUD = 16_000_000, 500_000
HELLO_REQUEST = encode_frame(Frame(MessageType.HELLO, 1, 0))


class TestTheSpecification:
    def test_rates_and_script(self) -> None:
        spec = FaultSpec.parse("bytes=0.06, drop=0.01,reset@20,silence@7:2.5,hang=0.1,seed=9")
        assert spec.rates == pytest.approx({"drop": 0.03, "flip": 0.02, "double": 0.02, "hang": 0.1})
        assert [(event.kind, event.request, event.argument) for event in spec.script] == [
            ("silence", 7, "2.5"),
            ("reset", 20, ""),
        ]
        assert spec.seed == 9

    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ("", "is not a fault"),
            ("bits=0.1", r"'bits=0.1' is not a fault; did you mean bytes\?; there are bytes=P, drop=P"),
            ("drop=two", "probability from 0 to 1"),
            ("drop=1.5", "probability from 0 to 1"),
            ("drop=0.6,flip=0.6", "add up to more than 1"),
            ("reset@0", "is not a valid event"),
            ("drop@3", "is not a valid event"),
            ("silence@3", r"length in seconds, such as silence@3:2"),
            ("silence@3:-1", "length in seconds"),
            ("swap@3:/nowhere", "ELF file"),
            ("reset@3:5", "takes nothing after"),
            ("seed=x", "is not a fault"),
        ],
    )
    def test_what_makes_no_sense(self, text: str, fault: str) -> None:
        with pytest.raises(InputError, match=fault):
            FaultSpec.parse(text)


def looped(spec: str) -> FaultyBoard:
    return FaultyBoard(FakeBoard(), FaultSpec.parse(spec))


class TestByteFaults:
    @pytest.mark.parametrize(
        ("spec", "kept"), [("drop=1", b""), ("double=1", b"aabbcc"), ("cut=1", b""), ("drop=0", b"abc"), ("delay=1", b"abc")]
    )
    def test_what_the_board_gets(self, spec: str, kept: bytes) -> None:
        board = looped(spec)
        passed = b"".join(piece for piece, _ in board._damage(b"abc"))
        assert passed == kept

    def test_a_flip_always_changes_the_byte(self) -> None:
        board = looped("flip=1")
        ((flipped, _),) = board._damage(bytes(1000))
        assert len(flipped) == 1000 and 0 not in flipped
        assert board.injected["flip"] == 1000

    def test_the_rate_is_met_and_the_seed_repeats_it(self) -> None:
        first, second, other = (looped(f"bytes=0.05,seed={seed}") for seed in (1, 1, 2))
        data = bytes(range(1, 101)) * 100
        assert first._damage(data) == second._damage(data) != other._damage(data)
        counts = [first.injected[kind] for kind in ("drop", "flip", "double")]
        assert 400 < sum(counts) < 600 and min(counts) > 100

    def test_a_delayed_reply_arrives_later_and_whole(self) -> None:
        board = looped("delay=0.05,seed=3")
        board.board.write(HELLO_REQUEST)
        begin_us, received = board.now_us(), b""
        while not received.endswith(b"\0"):
            received += board.read(begin_us + 1e6)
        assert board.injected["delay"] > 0
        assert received == reply_to(decode_frame(HELLO_REQUEST[:-1]))
        assert board.timing().reply_end_us == board.now_us() > begin_us + 5_000 * board.injected["delay"]

    def test_a_silent_line_swallows_both_ways(self) -> None:
        board = looped("silence@2:0.25")
        link = Link(board)
        link.hello(SHA256)
        with pytest.raises(NoAnswer, match="1 silence"):
            link.decide(0, [1])
        begin = board.now_us()
        with pytest.raises(NoAnswer):
            link.decide(0, [1])
        assert link.decide(0, [1]).action >= 0
        assert board.now_us() - begin < 200_000


@pytest.fixture(scope="module")
def policy_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("policy") / "policy.json"
    write_random_policy(file)
    return file


@pytest.fixture(scope="module")
def policy(policy_file: Path) -> Policy:
    return load_policy(policy_file)


@pytest.fixture(scope="module")
def firmware(policy_file: Path) -> Firmware:
    return build_firmware(policy_file, f_cpu_hz=F_CPU_HZ, baud=BAUD)


def faulty_chip(firmware: Firmware, spec: str) -> FaultyBoard:
    return FaultyBoard(open_board("simavr", firmware, f_cpu_hz=F_CPU_HZ, baud=BAUD), FaultSpec.parse(spec))


class TestChipFaults:
    @pytest.mark.parametrize(("kind", "cause"), [("reset", 0b0010), ("brownout", 0b0100)])
    def test_a_restart_within_a_decision_costs_a_handshake(
        self, firmware: Firmware, policy: Policy, kind: str, cause: int
    ) -> None:
        with faulty_chip(firmware, f"{kind}@3") as board:
            link = Link(board)
            link.hello(policy.sha256)
            before = link.decide(0, [3] * 21)
            after = link.decide(0, [3] * 21)
            assert after.logits_crc == before.logits_crc and after.tries > before.tries == 1
            assert link.counters.sessions_lost == 1
            assert link.greeting is not None and link.greeting.reset_cause == cause
            assert link.stats().decisions == 1

    def test_a_hang_lasts_until_the_watchdog_bites(self, firmware: Firmware, policy: Policy) -> None:
        with faulty_chip(firmware, "hang@3") as board:
            link = Link(board)
            link.hello(policy.sha256)
            expected = link.decide(0, [3] * 21).logits_crc
            lost = 0
            while True:
                try:
                    assert link.decide(0, [3] * 21).logits_crc == expected
                    break
                except LinkError:
                    lost += 1
            assert 5 <= lost <= 12, "one second, in budgets of 0.1 s"
            assert link.greeting is not None and link.greeting.reset_cause == 0b1000
            assert isinstance(board.board, SimavrBoard) and board.board.watchdog_resets == 1

    def test_another_firmware_is_never_obeyed(self, firmware: Firmware, policy: Policy) -> None:
        elf = build_firmware(pretrained_policy("crossing"), f_cpu_hz=F_CPU_HZ, baud=BAUD).elf
        with faulty_chip(firmware, f"swap@3:{elf}") as board:
            link = Link(board)
            link.hello(policy.sha256)
            link.decide(0, [3] * 21)
            for _ in range(3):
                with pytest.raises(WrongPolicy):
                    link.decide(0, [3] * 21)
            assert isinstance(board.board, SimavrBoard)
            board.board.swap(firmware.elf)
            assert link.decide(0, [3] * 21).action >= 0, "and when the right one is back, it goes on"

    def test_boards_that_cannot_hang_say_so(self) -> None:
        with pytest.raises(InputError, match="can't do 'hang' on demand"):
            FaultyBoard(HostBoard(Path("program")), FaultSpec.parse("hang@3"))


def crossing(faults: str | None, baud: int = BAUD, **options: object) -> Verdict:
    spec = FaultSpec.parse(faults) if faults is not None else None
    return run_job(Job.named("crossing", 0, pretrained_policy("crossing"), baud=baud, faults=spec, **options))


def phases(verdict: Verdict) -> list[int | None]:
    return [record.phase for record in verdict.records]


class TestTheClosedLoop:
    @pytest.mark.parametrize("faults", ["bytes=0.05,seed=7", "drop=0.01,flip=0.01,double=0.01,delay=0.0002,cut=0.005,seed=3"])
    def test_five_percent_of_all_bytes_damaged_and_every_decision_right(self, faults: str) -> None:
        quiet, noisy = crossing(None, 1_000_000), crossing(faults, 1_000_000)
        assert noisy.passed, [check for check in noisy.checks if check.outcome == "fail"]
        assert phases(noisy) == phases(quiet)
        assert noisy.figures["traffic"] == quiet.figures["traffic"]
        link, line = noisy.figures["link"], noisy.check("line")
        assert isinstance(link, dict) and link["retries"] > 1_000 and link["in_parts"] > 90
        assert f"{link['retries']} retries" in line.detail and "injected: " in line.detail
        assert quiet.check("line").detail == "0 retries"

    def test_the_same_seed_gives_the_same_run(self) -> None:
        first, second = (crossing("bytes=0.02,reset=0.01,seed=4") for _ in range(2))
        assert first.records == second.records and first.figures == second.figures

    def test_resets_and_brown_outs_are_survived(self) -> None:
        verdict = crossing("reset@20,brownout@60,reset@100,brownout@140,reset@180,seed=1")
        assert verdict.passed, [check for check in verdict.checks if check.outcome == "fail"]
        link = verdict.figures["link"]
        assert isinstance(link, dict) and link["sessions_lost"] == 5
        assert "restarts of the chip" in verdict.check("line").detail

    @pytest.mark.parametrize(("fault", "allowed"), [("hang@60", 13), ("silence@60:2", 21), ("reset@9,hang@60,hang@90", 28)])
    def test_what_takes_longer_than_the_budget_keeps_the_phase_and_is_recovered_from(self, fault: str, allowed: int) -> None:
        verdict = crossing(fault)
        missing = [record for record in verdict.records if not record.answered]
        assert 5 <= len(missing) <= allowed
        assert len(verdict.records) == 180 and verdict.records[-1].equal
        assert verdict.passed, [check for check in verdict.checks if check.outcome == "fail"]
        check = verdict.check("recovery")
        assert (check.measured, check.limit) == (f"{len(missing)} decisions lost", f"<= {allowed} lost")
        assert verdict.check("traffic").outcome == "not measured"
        assert f"{len(missing)} decisions without an answer: phase kept" in verdict.check("line").detail

    def test_a_chip_that_hangs_for_good_does_not_recover(self) -> None:
        """Without its watchdog."""
        verdict = crossing("hang@60", watchdog=False)
        failed = {check.name for check in verdict.checks if check.outcome == "fail"}
        assert {"recovery", "latency"} <= failed
        lost = int(verdict.check("recovery").measured.split()[0])
        assert 100 < lost == sum(not record.answered for record in verdict.records)

    def test_lost_decisions_that_no_fault_of_the_chip_explains_are_not_excused(self) -> None:
        verdict = crossing("bytes=0.08,seed=3")
        assert any(not record.answered for record in verdict.records)
        assert verdict.check("latency").outcome == "fail" and "recovery" not in [check.name for check in verdict.checks]

    def test_a_swapped_firmware_is_not_followed(self, firmware: Firmware) -> None:
        """The random policy's firmware from request 50 on: no phase of it is ever shown."""
        verdict = crossing(f"swap@50:{firmware.elf}")
        assert not verdict.passed
        assert [record.answered for record in verdict.records] == [True] * 48 + [False] * 132
        assert all("WrongPolicy" in (record.fault or "") for record in verdict.records[50:])
        assert verdict.check("line").outcome == "pass"

    def test_a_budget_of_ones_own(self) -> None:
        job = Job.named("crossing", 0, pretrained_policy("crossing"), budget_s=0.011)
        verdict = run_job(job)
        assert verdict.check("latency").limit == "<= 11 ms, each"
        assert run_job(replace(job, budget_s=0.005)).check("latency").outcome == "fail"
