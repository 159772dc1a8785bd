"""The verdict `range` on the emulated chip: a policy that keeps its range passes, one that leaves it fails."""

from dataclasses import replace
from pathlib import Path

import pytest

from hil.loop.closed_loop import DecisionRecord, LoopResult
from hil.loop.job import Job, run_job
from hil.loop.range_counts import ChipRange, RangeCount, expected_range
from hil.loop.verdict import check_range
from hil.wire.protocol import decode_stats_reply
from model.evaluate import evaluate
from model.policy.file import IntersectionPolicy, Policy, save_policy
from tests.model.test_evaluate import fitting_policy

OLDER = {"beyond_range": None, "at_limit": None}  # what STATS of firmware before 2.1 lacks

WALL_CLOCK_BUDGET_S = 30.0  # of the host build, which a busy machine may leave waiting
BOARDS = [("simavr", "auto"), ("simavr", "table"), ("simavr", "c"), ("host", "c")]  # auto: unrolled, which fits


def sealed(policy: Policy, parts: list[IntersectionPolicy]) -> Policy:
    draft = policy.model_copy(update={"intersections": parts})
    return draft.model_copy(update={"sha256": draft.compute_sha256()})


def wide(policy: Policy) -> Policy:
    """Inputs cover 0 to 255 vehicles, and no sum of any input takes a hidden unit to 255."""
    parts = []
    for part in policy.intersections:
        inputs = [feature.model_copy(update={"offset": 0, "multiplier": 1, "shift": 0}) for feature in part.features]
        update: dict[str, object] = {"features": inputs}
        for name in ("layer1", "layer2"):
            layer = getattr(part, name)
            update[name] = layer.model_copy(update={"shifts": [shift + 3 for shift in layer.shifts]})
        parts.append(part.model_copy(update=update))
    return sealed(policy, parts)


def narrow(policy: Policy, number: int) -> Policy:
    """The light `number` covers 0 to 4 vehicles only, and its last unit of layer 2 reaches 255 at a sum of 1."""
    parts = list(wide(policy).intersections)
    part = parts[number]
    first = part.features[0].model_copy(update={"multiplier": 60})
    layer2 = part.layer2
    scales = {"multipliers": [*layer2.multipliers[:-1], 255], "shifts": [*layer2.shifts[:-1], 1]}
    changed = {"features": [first, *part.features[1:]], "layer2": layer2.model_copy(update=scales)}
    parts[number] = part.model_copy(update=changed)
    return sealed(policy, parts)


def job(policy: Policy, folder: Path, **options: object) -> Job:
    file = folder / "policy.json"
    save_policy(policy, file)
    if options.get("board") == "host":
        options["budget_s"] = WALL_CLOCK_BUDGET_S
    return Job.named(policy.network, 0, file, **options)


@pytest.mark.hil
@pytest.mark.parametrize(("board", "kernel"), BOARDS)
def test_a_policy_that_keeps_its_range_passes(board: str, kernel: str, tmp_path: Path) -> None:
    verdict = run_job(job(wide(fitting_policy("crossing")), tmp_path, board=board, kernel=kernel))
    check = verdict.check("range")
    assert (check.outcome, check.measured, check.detail) == ("pass", "left in 0 of 180 decisions", "")
    assert verdict.passed and verdict.figures["range"] == {"decisions": 180, "beyond_range": 0, "at_limit": 0}


@pytest.mark.hil
@pytest.mark.parametrize("boards", ["one", "per-intersection"])
def test_a_policy_that_leaves_its_range_fails(boards: str, tmp_path: Path) -> None:
    """With the counts and the light that leaves it most; the chip is right all the same. `evaluate` counts the same."""
    policy = narrow(fitting_policy("arterial"), 1)
    verdict = run_job(job(policy, tmp_path, boards=boards, kernel="table"))
    check = verdict.check("range")
    assert [each.name for each in verdict.checks if each.outcome == "fail"] == ["range"]
    (row,) = evaluate("arterial", policy, [0], integer=True)
    left = sum(record.beyond_range or record.at_limit for record in verdict.records)
    assert row.decisions_beyond_range and row.decisions_at_limit and left > 0.01 * 540
    assert check.measured == f"left in {left} of 540 decisions"
    light = policy.intersections[1].id
    counts = f"inputs beyond range in {row.decisions_beyond_range}, units at their limit in {row.decisions_at_limit}"
    assert check.detail == f"{counts}; most at {light}: {left}"


@pytest.mark.hil
def test_firmware_that_does_not_count_is_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hil.wire.link.decode_stats_reply", lambda payload: replace(decode_stats_reply(payload), **OLDER))
    verdict = run_job(job(narrow(fitting_policy("crossing"), 0), tmp_path, sweep=False))
    assert verdict.check("range").outcome == "not measured" and verdict.passed
    assert verdict.check("range").detail.startswith(
        "the board's firmware doesn't count this (it does from 2.1 on); inputs beyond"
    )


@pytest.mark.hil
def test_a_chip_that_restarts_on_the_way_is_not_judged(tmp_path: Path) -> None:
    from hil.loop.fault_spec import FaultSpec

    verdict = run_job(replace(job(wide(fitting_policy("crossing")), tmp_path), faults=FaultSpec.parse("reset@60")))
    check = verdict.check("range")
    assert check.outcome == "not measured" and "decisions, the run had 180" in check.detail
    assert verdict.passed


def record(number: int, *, beyond: bool = False, limit: bool = False) -> DecisionRecord:
    return DecisionRecord(number, f"light_{number % 2}", 0, 0, (1,), (1,), 0, 0, beyond, limit, 1, 1.0, 1.0, 1)


def test_at_most_one_decision_in_a_hundred_may_leave_the_range() -> None:
    for count, outcome in ((2, "pass"), (3, "fail")):
        records = [record(n, beyond=n < count, limit=n == 0) for n in range(200)]
        expected = expected_range(records)
        assert expected == RangeCount(200, count, 1)
        check = check_range(LoopResult(records), [ChipRange(expected, expected)])
        assert check.outcome == outcome and check.measured == f"left in {count} of 200 decisions"
        assert check.detail == f"inputs beyond range in {count}, units at their limit in 1; most at light_0: {(count + 1) // 2}"


@pytest.mark.parametrize("counted", [RangeCount(200, 1, 1), RangeCount(200, 0, 0), RangeCount(199, 0, 1)])
def test_a_chip_that_counts_otherwise_fails(counted: RangeCount) -> None:
    records = [record(n, limit=n == 7) for n in range(200)]
    sound, check = (
        check_range(LoopResult(records), [ChipRange(each, expected_range(records))])
        for each in (RangeCount(200, 0, 1), counted)
    )
    assert (sound.outcome, check.outcome) == ("pass", "fail")
    assert check.measured.startswith(
        f"chip {counted.beyond_range} beyond, {counted.at_limit} at limit of {counted.decisions}, host"
    )
