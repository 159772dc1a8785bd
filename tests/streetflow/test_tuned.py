"""Rules held back by a minimum green and a lead, and their parameters by network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from streetflow.control import tuned
from streetflow.control.controllers import CONTROLLERS, SECOND_BY_SECOND, Controller, run
from streetflow.control.environment import Environment
from streetflow.control.rules import EfficientPressure, GreatestFeature
from streetflow.control.tuned import RULES, SUFFIX, TUNABLE, TUNED, Tuned, refusal, rules_for, tuned_parameters
from streetflow.errors import InputError
from streetflow.networks.catalogue import HORIZONS_S, find_network
from tests.helpers.places import ROOT
from tests.streetflow.test_features import LIGHT

RESULTS = json.loads((ROOT / "docs" / "results" / "tuned_rules.json").read_text())["rows"]


class Lights:
    """What a rule reads of an environment: one light, one feature."""

    intersections = (LIGHT,)
    max_width = 3
    feature_widths = np.array([[3]])
    current_action = np.array([1], np.int32)

    def __init__(self, elapsed_s: int) -> None:
        self.elapsed_s = np.array([elapsed_s], np.int32)

    @staticmethod
    def feature_columns(_names: tuple[str, ...]) -> list[int]:
        return [0]


@pytest.mark.parametrize(
    ("elapsed_s", "scores", "action"),
    [
        (37, (4, 2, 3), 0),  # leads by 2
        (37, (3, 2, 3), 1),  # by 1
        (37, (0, 2, 4), 2),
        (20, (0, 2, 4), 2),
        (19, (0, 2, 4), 1),  # green for too short a time
    ],
)
def test_held_back(elapsed_s: int, scores: tuple[int, ...], action: int) -> None:
    rule = GreatestFeature("phase_2_num_vehicle", min_green_s=20, lead=2)
    rule.reset(Lights(elapsed_s))  # type: ignore[arg-type]
    assert rule.act(np.array([[scores]], np.int32)).tolist() == [action]


def test_pressure_is_held_back_too() -> None:
    """Out-lanes are empty: action 0 counts lane 0, action 1 lane 1, action 2 lane 0 and, twice, lane 2."""
    for lead, action in ((0.0, 0), (1.0, 0), (1.5, 1)):
        rule = EfficientPressure("lane_2_num_vehicle", lead=lead)
        lights = Lights(0)
        lights.max_width = 6
        rule.reset(lights)  # type: ignore[arg-type]
        assert rule.act(np.array([[[4, 3, 0, 0, 0, 0]]], np.int32)).tolist() == [action]


def actions_of(rule: Controller, name: str = "crossing") -> list[list[int]]:
    environment = Environment(name, 0, features=rule.features, horizon_s=900)
    seen: list[list[int]] = []

    class Noting:
        features: Sequence[str] = rule.features
        reset = staticmethod(rule.reset)

        def act(self, observation: np.ndarray) -> np.ndarray:
            seen.append(rule.act(observation).tolist())
            return np.array(seen[-1], np.int32)

    run(environment, Noting())
    return seen


def test_a_tuned_rule_is_the_rule_with_the_networks_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"crossing": {"MaxQueue": {"min_green_s": 20, "lead": 4}}, "arterial": {"MaxQueue": {}}}
    monkeypatch.setattr(tuned, "tuned_parameters", lambda: own)
    held_back = actions_of(CONTROLLERS["MaxQueue"](min_green_s=20, lead=4))
    assert actions_of(Tuned("MaxQueue")) == held_back != actions_of(CONTROLLERS["MaxQueue"]())
    assert actions_of(Tuned("MaxQueue"), "arterial") == actions_of(CONTROLLERS["MaxQueue"](), "arterial")
    assert rules_for("crossing") == [*CONTROLLERS, "MaxQueue.tuned"]
    assert rules_for("arterial") == rules_for("elsewhere") == list(CONTROLLERS)


def test_on_another_network_it_is_refused() -> None:
    rule = TUNED["MaxQueue.tuned"]()
    environment = Environment(replace(find_network("crossing"), name="mine"), 0, features=rule.features)
    with pytest.raises(InputError, match=r"MaxQueue\.tuned: not tuned for mine \(scripts/tune_rules.py does that\)"):
        rule.reset(environment)
    assert refusal("MaxQueue", "mine") is None and refusal("MaxQueue.tuned", "crossing") is None


def test_all_networks_and_rules_are_tuned_and_the_results_tell_how() -> None:
    assert set(tuned_parameters()) == {"crossing", "arterial", *HORIZONS_S}
    assert set(RULES) == {*CONTROLLERS, *SECOND_BY_SECOND, *(rule + SUFFIX for rule in TUNABLE)}
    for own in tuned_parameters().values():
        assert list(own) == list(TUNABLE)
    assert {(row["network"], row["rule"]): row["parameters"] for row in RESULTS} == {
        (network, rule): parameters for network, own in tuned_parameters().items() for rule, parameters in own.items()
    }
    assert all(
        row["tuned_s"] < row["default_s"] if row["parameters"] else row["tuned_s"] == row["default_s"] for row in RESULTS
    )


@pytest.mark.parametrize("rule", TUNABLE)
def test_the_results_are_what_flow_0_gives(rule: str) -> None:
    (row,) = (row for row in RESULTS if (row["network"], row["rule"]) == ("crossing", rule))
    for controller, expected_s in ((CONTROLLERS[rule](), row["default_s"]), (Tuned(rule), row["tuned_s"])):
        environment = Environment("crossing", 0, features=controller.features)
        run(environment, controller)
        assert environment.average_travel_time_s() == pytest.approx(expected_s, abs=0.001)
