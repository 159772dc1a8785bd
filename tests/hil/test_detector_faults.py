"""Faults of detectors: what each kind makes of what a loop really feels, and what a spec may say."""

from __future__ import annotations

import pytest

from hil.loop.detector_faults import KINDS, DetectorFaultSpec, FaultyLoops
from hil.loop.edges import Edge
from streetflow.errors import FieldError


def passes(count: int) -> list[list[Edge]]:
    """Vehicles over loop 0, one a second."""
    return [[Edge(0.2, 0, 1), Edge(0.7, 0, 0)] for _ in range(count)]


def seen(kind: str, seconds: int = 300) -> list[list[Edge]]:
    loops = FaultyLoops(DetectorFaultSpec.parse(f"{kind}:100%,seed=3"), 1)
    return [loops.step(second, edges) for second, edges in enumerate(passes(seconds))]


def rises(steps: list[list[Edge]]) -> int:
    return sum(edge.level for step in steps for edge in step)


def test_without_a_spec_all_passes_unchanged() -> None:
    loops = FaultyLoops(None, 1)
    assert [loops.step(second, edges) for second, edges in enumerate(passes(9))] == passes(9)


def test_each_kind_does_what_its_name_says() -> None:
    assert rises(seen("dead")) == 0
    assert seen("stuck") == [[Edge(0.0, 0, 1)], *[[]] * 299]
    assert 150 < rises(seen("miss")) < 250
    assert 350 < rises(seen("double")) < 450
    chatter = FaultyLoops(DetectorFaultSpec.parse("chatter:100%"), 1)
    steps = [chatter.step(second, []) for second in range(40)]
    assert [rises([step]) for step in steps] == [*[5] * 5, *[0] * 15] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_the_fault_a_wire_turns_on_and_off_in_turn_and_in_order(kind: str) -> None:
    level, last_s = 0, 0.0
    for second, step in enumerate(seen(kind)):
        for edge in step:
            assert edge.level != level
            assert second + edge.at_s >= last_s
            level, last_s = edge.level, second + edge.at_s


def test_a_share_hits_so_many_loops_the_same_ones_for_the_same_seed() -> None:
    spec = DetectorFaultSpec.parse("dead:10%,chatter:0.25,seed=5")
    drawn = spec.draw(40)
    assert sorted(drawn.values()) == ["chatter"] * 10 + ["dead"] * 4
    assert drawn == DetectorFaultSpec.parse("dead:10%,chatter:25%,seed=5").draw(40)
    assert drawn != DetectorFaultSpec.parse("dead:10%,chatter:25%,seed=6").draw(40)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("deaf:10%", "'deaf:10%' is not a fault; did you mean dead?"),
        ("dead", "'dead' needs a share of the loops, from 0 to 100 %"),
        ("dead:110%", "'dead:110%' needs a share"),
        ("dead:60%,miss:50%", "add up to more than 100 %"),
        ("dead:1%,dead:2%", "'dead:2%': dead is there already"),
        ("dead:1%,seed=x", "'seed=x' is not a fault"),
    ],
)
def test_a_wrong_spec_is_refused_in_one_line(text: str, fault: str) -> None:
    with pytest.raises(FieldError) as caught:
        DetectorFaultSpec.parse(text)
    assert fault in str(caught.value)
