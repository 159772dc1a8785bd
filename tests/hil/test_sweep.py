"""The sweep's inputs show what is wrong with a chip's arithmetic or weights, even where no traffic of the run leads."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import model.policy.integer as integer
from hil.loop.job import Job, run_job
from hil.loop.sweep import SweepResult
from hil.loop.sweep_inputs import sweep_of
from hil.loop.verdict import check_sweep
from model import pretrained_policies, pretrained_policy
from model.policy.agent import PolicyAgent
from model.policy.file import IntersectionPolicy, load_policy
from model.policy.integer import IntegerPolicy
from streetflow.control.controllers import run
from streetflow.control.environment import Environment
from tests.helpers.random_policy import write_random_policy

CROSSING = load_policy(pretrained_policy("crossing")).intersections[0]


def test_the_same_network_gets_the_same_inputs_whatever_its_light_is_called() -> None:
    sweep = sweep_of(CROSSING)
    assert sweep_of(CROSSING.model_copy(update={"id": "another"})) is sweep
    assert sweep.inputs.min() >= -(1 << 15) and sweep.inputs.max() < 1 << 15
    assert len(np.unique(sweep.inputs, axis=0)) == len(sweep.inputs)


@pytest.mark.parametrize("name", pretrained_policies())
def test_there_are_few_inputs_and_they_show_nearly_all(name: str) -> None:
    for part in load_policy(pretrained_policy(name)).intersections[:2]:
        sweep = sweep_of(part)
        assert 40 <= len(sweep.inputs) <= 400 and sweep.shown > 0.85 * sweep.total


def test_a_network_that_is_always_the_same_has_a_sweep() -> None:
    """And a board that holds it can be tried."""
    still = CROSSING.model_copy(update={"layer3": CROSSING.layer3.model_copy(update={
        "weights": [[0] * len(row) for row in CROSSING.layer3.weights]})})  # fmt: skip
    layer1 = still.layer1.model_copy(update={
        "weights": [[[0] * len(row) for row in branch] for branch in still.layer1.weights],
        "biases": [[-1] * len(branch) for branch in still.layer1.biases]})  # fmt: skip
    layer2 = still.layer2.model_copy(update={"biases": [-1] * len(still.layer2.biases)})
    assert len(sweep_of(still.model_copy(update={"layer1": layer1, "layer2": layer2})).inputs) >= 1


def test_every_border_of_every_input_is_visited() -> None:
    inputs, first = sweep_of(CROSSING).inputs, 0
    for feature in CROSSING.features:
        least, greatest = feature.covered
        for number in range(first, first + feature.width):
            borders = {least, greatest, min(greatest + 1, (1 << 15) - 1), max(least - 1, -(1 << 15)), (1 << 15) - 1, -(1 << 15)}
            assert borders - set(inputs[:, number].tolist()) == set(), (feature.name, number)
        first += feature.width


def flipped(part: IntersectionPolicy, step: int) -> Iterator[IntegerPolicy]:
    """Every step-th weight with each of its bits flipped in turn."""
    policy, number = IntegerPolicy(part), 0
    for weights in (*policy._w1, policy._w2, policy._w3):
        for place in np.ndindex(weights.shape):
            number += 1
            if number % step == 0:
                right = weights[place]
                for bit in range(8):
                    weights[place] = np.int64(right).astype(np.int8) ^ np.uint8(1 << bit).view(np.int8)
                    yield policy
                weights[place] = right


@pytest.mark.parametrize("which", ["crossing", "arterial", "Atlanta"])
def test_flipped_bits_of_weights_are_found(which: str) -> None:
    """Of a ninth of the weights; those that 10,000 drawn inputs don't show either count as no fault."""
    part = load_policy(pretrained_policy(which)).intersections[0]
    sweep, rng = sweep_of(part).inputs, np.random.default_rng(1)
    covered = np.repeat([feature.covered for feature in part.features], [feature.width for feature in part.features], axis=0)
    drawn = rng.integers(covered[:, 0], covered[:, 1] + 2, (10_000, len(covered)))
    drawn = np.where(rng.random(drawn.shape) < rng.uniform(0, 1, (len(drawn), 1)), drawn, covered[:, 0]).clip(
        -(1 << 15), (1 << 15) - 1
    )
    right, right_drawn = IntegerPolicy(part).logits(sweep), IntegerPolicy(part).logits(drawn)
    found = missed = 0
    for policy in flipped(part, 9):
        if (policy.logits(sweep) != right).any():
            found += 1
        elif (policy.logits(drawn) != right_drawn).any():
            missed += 1
    assert missed <= 0.001 * (found + missed) and found > 500, (found, missed)


def without_high_clip(x: Any, offset: Any, multiplier: Any, shift: Any) -> Any:
    above = np.maximum(x.astype(np.int64) - offset, 0)
    return ((above * multiplier + ((1 << shift) >> 1)) >> shift) & 255


def without_low_clip(x: Any, offset: Any, multiplier: Any, shift: Any) -> Any:
    raw = ((x.astype(np.int64) - offset) * multiplier + ((1 << shift) >> 1)) >> shift
    return np.where(raw < 0, raw & 255, np.minimum(raw, 255))


def clip_at_254(x: Any, offset: Any, multiplier: Any, shift: Any) -> Any:
    above = np.maximum(x.astype(np.int64) - offset, 0)
    return np.minimum((above * multiplier + ((1 << shift) >> 1)) >> shift, 254)


def clip_from_512(x: Any, offset: Any, multiplier: Any, shift: Any) -> Any:
    raw = (np.maximum(x.astype(np.int64) - offset, 0) * multiplier + ((1 << shift) >> 1)) >> shift
    return np.where(raw >= 512, 255, raw & 255)


def truncated_input(x: Any, offset: Any, multiplier: Any, shift: Any) -> Any:
    return np.minimum((np.maximum(x.astype(np.int64) - offset, 0) * multiplier) >> shift, 255)


def late_by_one(x: Any, offset: Any, multiplier: Any, shift: Any) -> Any:
    return integer.np.minimum((np.maximum(x.astype(np.int64) - offset - 1, 0) * multiplier + ((1 << shift) >> 1)) >> shift, 255)


def wrapped_unit(sums: Any, multipliers: Any, shifts: Any) -> Any:
    return ((sums * multipliers + (1 << (shifts - 1))) >> shifts) & 255


def truncated_unit(sums: Any, multipliers: Any, shifts: Any) -> Any:
    return np.minimum((sums * multipliers) >> shifts, 255)


def unit_at_254(sums: Any, multipliers: Any, shifts: Any) -> Any:
    return np.minimum((sums * multipliers + (1 << (shifts - 1))) >> shifts, 254)


def one_relu_for_all_branches(inputs: Any, weights: Any, biases: Any) -> Any:
    return np.maximum(sum(q @ w.T + b for q, w, b in zip(inputs, weights, biases, strict=True)), 0)


def last_branch_unclipped(inputs: Any, weights: Any, biases: Any) -> Any:
    parts = [np.maximum(q @ w.T + b, 0) for q, w, b in zip(inputs[:-1], weights[:-1], biases[:-1], strict=True)]
    return np.maximum(sum(parts) + inputs[-1] @ weights[-1].T + biases[-1], 0)


def sums_of_16_bits(inputs: Any, weights: Any, biases: Any) -> Any:
    total = sum(np.maximum(q @ w.T + b, 0) for q, w, b in zip(inputs, weights, biases, strict=True))
    return total & 0xFFFF


MUTANTS = {
    "quantise_inputs": [without_high_clip, without_low_clip, clip_at_254, clip_from_512, truncated_input, late_by_one],
    "requantise": [wrapped_unit, truncated_unit, unit_at_254],
    "branch_sums": [one_relu_for_all_branches, last_branch_unclipped, sums_of_16_bits],
}


@pytest.mark.parametrize(("name", "mutant"), [(name, each) for name, all_of in MUTANTS.items() for each in all_of])
def test_wrong_arithmetic_is_found(
    name: str, mutant: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On a drawn policy, whose units reach all limits: a trained one has headroom so that its never do."""
    write_random_policy(tmp_path / "random.json")
    part = load_policy(tmp_path / "random.json").intersections[0]
    sweep = sweep_of(part).inputs
    right = IntegerPolicy(part).logits(sweep)
    monkeypatch.setattr(integer, name, mutant)
    assert (IntegerPolicy(part).logits(sweep) != right).any()


class Watched:
    """A policy whose inputs at its first light are kept."""

    def __init__(self, agent: PolicyAgent, inputs: list[Any]) -> None:
        self.features, self.reset, self._agent, self._inputs = agent.features, agent.reset, agent, inputs

    def act(self, observation: Any) -> Any:
        self._inputs.append(self._agent.infer(observation)[0].inputs)
        return self._agent.act(observation)


@pytest.mark.hil
@pytest.mark.parametrize("board", ["simavr", "host"])
def test_a_weight_that_the_traffic_never_shows_fails_the_sweep(board: str) -> None:
    """A flipped bit of a unit that is silent in a short run. The same run without the sweep passes."""
    job = Job.named("crossing", 0, None, board=board, kernel="c" if board == "host" else "table", budget_s=30.0)
    job = replace(job, network=replace(job.network, horizon_s=200))
    inputs: list[Any] = []
    agent = PolicyAgent(load_policy(job.policy_file), integer=True)
    run(Environment(job.network, 0, features=agent.features), Watched(agent, inputs))
    activations = IntegerPolicy(CROSSING).activations(np.array(inputs))
    silent = int(np.flatnonzero(activations.h2.max(axis=0) == 0)[0])
    job = replace(job, firmware_flags=(f"-DTL_FLIP_WEIGHT={silent}",))
    verdict, blind = run_job(job), run_job(replace(job, sweep=False))
    assert [each.name for each in verdict.checks if each.outcome == "fail"] == ["sweep"]
    assert "of intersection_1_1" in verdict.check("sweep").detail and verdict.figures["sweep"]["wrong"]  # type: ignore[index]
    assert blind.passed and blind.check("sweep").outcome == "not measured"


def test_an_input_without_an_answer_fails_the_sweep() -> None:
    check = check_sweep(SweepResult(100, ("input 3 of a: phase 1 for 2",), ("input 9 of a: NoAnswer",), 5000, 90, 100))
    assert (check.outcome, check.measured, check.detail) == ("fail", "98 of 100 inputs", "input 3 of a: phase 1 for 2")
    assert check_sweep(SweepResult(100, (), ("input 9 of a: NoAnswer",), 5000, 90, 100)).detail == "input 9 of a: NoAnswer"
    assert check_sweep(SweepResult(100, (), (), 5000, 90, 100)).outcome == "pass"
