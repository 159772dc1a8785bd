"""The policies that ship: those for a chip that answers, and those for one that is the light."""

from __future__ import annotations

import pytest

from model import MODES, PRETRAINED_FOLDER, pretrained_policies, pretrained_policy
from model.evaluate import evaluate
from model.policy.file import load_policy
from streetflow.control.features import DEPLOYABLE
from streetflow.networks.catalogue import HORIZONS_S

MOST_WEIGHTS = 1001


def test_every_network_has_one_for_each_mode() -> None:
    assert {*pretrained_policies()} == {"crossing", "arterial", *HORIZONS_S}
    assert pretrained_policies("light") == pretrained_policies("alone")
    assert {"crossing", "arterial", "Hangzhou1"} <= {*pretrained_policies("alone")} <= {*pretrained_policies()}
    named = {pretrained_policy(name, mode) for mode in MODES for name in pretrained_policies(mode)}
    assert named == {*PRETRAINED_FOLDER.glob("*.json")}
    for mode in MODES:
        for name in pretrained_policies(mode):
            assert load_policy(pretrained_policy(name, mode)).network == name


@pytest.mark.parametrize("name", pretrained_policies("alone"))
def test_one_for_a_light_fits_its_chip_and_its_loops(name: str) -> None:
    policy = load_policy(pretrained_policy(name, "alone"))
    assert policy.clearance in ("computed", "shell") and policy.provenance.feature_preset == "deployable"
    assert {row.flow for row in policy.measured} == set(range(10))
    for part in policy.intersections:
        assert part.n_parameters <= MOST_WEIGHTS
        assert {feature.name for feature in part.features} <= DEPLOYABLE.keys()


def test_what_a_file_says_is_what_it_does() -> None:
    (row,) = evaluate("crossing", pretrained_policy("crossing", "alone"), [3], integer=True)
    (said,) = [each for each in load_policy(pretrained_policy("crossing", "alone")).measured if each.flow == 3]
    assert row.clearance == "computed" and row.average_travel_time_s == said.integer_average_travel_time_s


def test_what_is_missing_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"policy for the mode alone called 'village' .*crossing"):
        pretrained_policy("village", "alone")
    with pytest.raises(FileNotFoundError, match=r"policy called 'village' .*Jinan, LosAngeles"):
        pretrained_policy("village")
    with pytest.raises(ValueError, match="unknown mode 'dark'; there are answer, light, alone"):
        pretrained_policies("dark")
