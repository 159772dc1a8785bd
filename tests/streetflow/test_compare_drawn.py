"""The comparison of drawn networks (docs/results/drawn_networks.md): a few of them here, and that it can find a difference."""

from __future__ import annotations

import json

import pytest

from tests.helpers.oracle import Oracle
from tests.helpers.places import ROOT
from tests.streetflow.compare_drawn import compare, summary


@pytest.mark.parametrize("lane_change", [False, True], ids=["plain", "lane changing"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_drawn_networks_are_equal(seed: int, lane_change: bool) -> None:
    result = compare(seed, lane_change)
    assert result["difference"] == "" and result["vehicle_steps"] > 100


def brisk(oracle: Oracle) -> None:
    """Every vehicle accelerates a millionth faster."""
    create = oracle.create

    def brisker(name, kind, *others):  # type: ignore[no-untyped-def]
        return create(name, {**kind, "usualPosAcc": kind["usualPosAcc"] * 1.000001}, *others)

    oracle.create = brisker  # type: ignore[method-assign]


def test_a_difference_is_found() -> None:
    assert compare(0, lane_change=False, spoil=brisk)["difference"].startswith("step ")


def test_the_committed_comparison_has_300_networks_of_each_kind_and_no_difference() -> None:
    stem = ROOT / "docs" / "results" / "drawn_networks"
    results = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))["networks"]
    assert sum(name.startswith("plain") for name in results) == sum(name.startswith("lane") for name in results) >= 300
    assert stem.with_suffix(".md").read_text(encoding="utf-8") == summary(results)
    assert not [name for name, each in results.items() if each["difference"]]
