"""The rules of scripts/sumo_distil.py, at one light of two phases: lanes 0 and 1 (100 m) or lane 2 (25 m)."""

from __future__ import annotations

import importlib
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers.places import ROOT

LIGHT = SimpleNamespace(in_lanes=(0, 1, 2), phase_in_lanes=((0, 1), (2,)), action_count=2)
ENVIRONMENT: Any = SimpleNamespace(
    intersections=(LIGHT,), engine=SimpleNamespace(lane_length_m=np.array([100.0, 100.0, 25.0])), max_width=3
)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("sumo_distil")


def scores(rule: Any, vehicles: list[int], changed: int, passed: int, current: int) -> list[float]:
    """Of an observation with the features of a LaneRule."""
    observation = np.zeros((1, 4, 3), np.int32)
    observation[0, 0], observation[0, 1, current] = vehicles, 1
    observation[0, 2, 0], observation[0, 3, 0] = changed, passed
    found: list[float] = rule.scores(ENVIRONMENT)(observation, np.array([current], np.int32))[0].tolist()
    return found


def test_vehicles_on_short_lanes_and_those_that_have_passed_count(script: ModuleType) -> None:
    assert scores(script.LaneRule(0.0, 0.0), [2, 1, 2], 0, 1, 0) == [3.0, 2.0]
    assert scores(script.LaneRule(0.5, 0.0), [2, 1, 2], 0, 1, 0) == [3.0, 4.0]
    assert scores(script.LaneRule(0.5, 2.0), [2, 1, 2], 0, 1, 0) == [5.0, 4.0]
    assert scores(script.LaneRule(0.5, 2.0), [2, 1, 2], 0, 1, 1) == [3.0, 6.0]


def test_a_phase_stays_for_a_decision_after_it_began(script: ModuleType) -> None:
    for rule in (script.LaneRule(0.5, 2.0), script.GapRule(script.LaneRule(0.5, 2.0), 0.0)):
        first, second = scores(rule, [0, 0, 9], 1, 0, 0)
        assert first > second == 18.0


def test_a_phase_in_which_nobody_passes_gives_way(script: ModuleType) -> None:
    rule = script.GapRule(script.LaneRule(0.5, 2.0), 0.5)
    assert scores(rule, [8, 8, 5], 0, 1, 0) == [18.0, 10.0]
    assert scores(rule, [8, 8, 5], 0, 0, 0) == [8.0, 10.0]
