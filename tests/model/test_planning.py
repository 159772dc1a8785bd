"""The compiled planner against the same thing done in plain Python with the environment, the observer and numpy's integers."""

from __future__ import annotations

import numpy as np
import pytest

from model.evaluate import evaluate
from model.kernels import rollout as kernel
from model.planning.arrivals import Arrivals
from model.planning.base import packed
from model.planning.planner import MAX_QUEUE, Planner
from model.planning.rollouts import Rollouts
from model.policy.agent import PolicyAgent
from model.policy.file import Policy
from model.policy.inputs import gather_inputs, input_indices
from model.policy.integer import IntegerPolicy
from model.policy.synthetic import random_intersection, random_policy
from streetflow.control.controllers import run
from streetflow.control.environment import Environment
from streetflow.control.features import FEATURES, find_feature
from streetflow.control.rules import GreatestFeature
from streetflow.engine.core import EngineCore
from streetflow.errors import InputError
from streetflow.kernels import tables

VISIBLE = [name for name in FEATURES if name != "inter_2_vehicle_position_image"]
HORIZON = 4


def driven(environment: Environment, decisions: int, seed: int = 0) -> np.ndarray:
    """The observation after some random decisions."""
    rng = np.random.default_rng(seed)
    counts = [each.action_count for each in environment.intersections]
    observation = environment.reset()
    for _ in range(decisions):
        observation, _, _ = environment.step(rng.integers(0, counts).astype(np.int32))
    return observation


def policy_for(environment: Environment, names: list[str], seed: int) -> Policy:
    """A random policy that looks at these features, at this network's lights."""
    specs = [find_feature(name) for name in names]
    parts = [
        random_intersection(
            seed + number,
            intersection_id=each.id,
            widths=[spec.width(each) for spec in specs],
            hidden=(6, 5),
            n_phases=each.action_count,
        )
        for number, each in enumerate(environment.intersections)
    ]
    fitting = []
    for part, each in zip(parts, environment.intersections, strict=True):
        kept = [
            feature.model_copy(update={"name": spec.name, "lsb_per_unit": spec.lsb_per_unit})
            for feature, spec in zip(part.features, specs, strict=True)
        ]
        fitting.append(part.model_copy(update={"phases": list(each.phases), "features": kept}))
    return random_policy(fitting, network=environment.network.name)


def spent_s(engine: EngineCore) -> float:
    """Vehicle-seconds since the start: all trips, finished or not, those that wait to enter included."""
    return float(engine.trips().travel_time_s.sum())


@pytest.mark.parametrize("network", ["crossing", "arterial"])
@pytest.mark.parametrize("features", [["phase_2_num_waiting_vehicle"], ["inlane_2_num_vehicle", "inter_2_current_phase"]])
@pytest.mark.parametrize("clearance", ["hold", "computed"])
def test_costs_are_those_of_a_simulation_in_python(clearance: str, network: str, features: list[str]) -> None:
    environment = Environment(network, 0, features=features, clearance=clearance)
    policy = policy_for(environment, features, 3) if len(features) > 1 else None
    controller = GreatestFeature(MAX_QUEUE) if policy is None else PolicyAgent(policy, integer=True)
    observation = driven(environment, 12)
    controller.reset(environment)
    wishes = controller.act(observation)
    planned = Rollouts(environment, policy.intersections if policy else MAX_QUEUE, horizon=HORIZON).plan(wishes)

    decided = wishes.copy()
    for light, each in enumerate(environment.intersections):
        costs = []
        for action in range(each.action_count):
            copy = Environment(network, 0, features=features, clearance=clearance)
            seen = driven(copy, 12)
            controller.reset(copy)
            before_s = spent_s(copy.engine)  # type: ignore[arg-type]
            actions = decided.copy()
            actions[light] = action
            for _ in range(HORIZON):
                seen, _, _ = copy.step(actions)
                actions = controller.act(seen)
            costs.append(spent_s(copy.engine) - before_s)  # type: ignore[arg-type]
        assert planned.costs_s[light, : each.action_count].tolist() == costs
        if min(costs) < costs[wishes[light]]:
            decided[light] = costs.index(min(costs)) if costs.count(min(costs)) == 1 else planned.actions[light]
    assert planned.actions.tolist() == decided.tolist()


def test_a_rollout_sees_what_the_observer_sees() -> None:
    """Every feature but images, from decision to decision, those that compare with the last one included."""
    environment = Environment("arterial", 0, features=VISIBLE)
    driven(environment, 20)
    policy = policy_for(environment, VISIBLE, 1)
    rollouts = Rollouts(environment, policy.intersections, horizon=2)
    blocks, sight = rollouts._scratch()
    engine, state = environment.engine, environment.signals.state.copy()
    assert isinstance(engine, EngineCore)
    memory = engine.memory
    kernel.copy_blocks(*memory[:4], *blocks)
    kernel.restart(*memory[:4], *blocks, memory[4])
    current = state[:, 0].copy()
    sight.last_action[:] = current
    kernel.look(*blocks, memory[4], rollouts._eyes, sight, current)
    counts = [each.action_count for each in environment.intersections]
    rng = np.random.default_rng(5)
    seen_features = set()
    for _ in range(6):
        actions = rng.integers(0, counts).astype(np.int32)
        observation, _, _ = environment.step(actions)
        assert kernel.play(*blocks, memory[4], rollouts._lights, state, actions) == 0
        kernel.look(*blocks, memory[4], rollouts._eyes, sight, state[:, 0].copy())
        assert sight.seen[: observation.size].reshape(observation.shape).tolist() == observation.tolist()
        seen_features |= set(np.flatnonzero(np.abs(observation).sum(axis=(0, 2))))
    assert len(seen_features) >= len(VISIBLE) - 1, "the comparison needs traffic"


def test_compiled_integers_are_those_of_numpy() -> None:
    environment = Environment("arterial", 0, features=VISIBLE)
    names = ["inlane_2_sum_waiting_time", "phase_2_pressure", "inter_2_current_phase"]
    policy = policy_for(environment, names, 9)
    specs, widths = [VISIBLE.index(name) for name in names], environment.feature_widths
    places = [
        input_indices(part, VISIBLE, row, environment.max_width) for part, row in zip(policy.intersections, widths, strict=True)
    ]
    rollouts = Rollouts(environment, policy.intersections)
    networks = packed(policy.intersections, places)
    rng, actions = np.random.default_rng(2), np.zeros(len(places), np.int32)
    eyes = rollouts._eyes._replace(places=np.array([len(VISIBLE) * environment.max_width, 0, 0, 0, -1], np.int32))
    chosen = set()
    for _ in range(500):
        seen = np.zeros((len(places), len(VISIBLE), environment.max_width), np.int32)
        seen[:, specs] = rng.integers(-60, 400, seen[:, specs].shape)
        kernel.wish(rollouts._lights, eyes, networks, seen.ravel(), actions)
        expected = [
            IntegerPolicy(part).act(gather_inputs(own, place))
            for part, own, place in zip(policy.intersections, seen, places, strict=True)
        ]
        assert actions.tolist() == expected
        chosen |= set(expected)
    assert len(chosen) > 3


def test_planning_leaves_the_environment_as_it_is() -> None:
    environment = Environment("crossing", 0, features=[MAX_QUEUE])
    driven(environment, 30)
    engine = environment.engine
    assert isinstance(engine, EngineCore)
    rollouts, wishes = Rollouts(environment, MAX_QUEUE), np.zeros(1, np.int32)
    first = rollouts.plan(wishes)  # which may make room for more vehicles
    before = [block.tobytes() for block in engine.memory], environment.signals.state.tobytes()
    again = rollouts.plan(wishes)
    assert ([block.tobytes() for block in engine.memory], environment.signals.state.tobytes()) == before
    assert again.costs_s.tolist() == first.costs_s.tolist()


def test_rollouts_far_behind_may_be_cut_short() -> None:
    environment = Environment("crossing", 0, features=[MAX_QUEUE])
    driven(environment, 40)
    whole = Rollouts(environment, MAX_QUEUE).plan(np.zeros(1, np.int32))
    cut = Rollouts(environment, MAX_QUEUE, cut_s=200.0).plan(np.zeros(1, np.int32))
    same = whole.costs_s == cut.costs_s
    assert cut.actions.tolist() == whole.actions.tolist() and 1 < same.sum() < same.size
    assert (cut.costs_s[~same] > cut.costs_s[0, 0] + 200.0).all()


def test_the_planner_is_ahead_of_its_base() -> None:
    base, planner = GreatestFeature(MAX_QUEUE), Planner()
    environment = Environment("crossing", 0, features=planner.features)
    run(environment, base)
    base_s = environment.average_travel_time_s()
    run(environment, planner)
    assert environment.average_travel_time_s() < 0.97 * base_s


def test_what_rollouts_cannot_do_is_refused() -> None:
    environment = Environment("crossing", 0, features=[MAX_QUEUE])
    with pytest.raises(InputError, match="images"):
        Rollouts(environment, "inter_2_vehicle_position_image")


def test_the_planner_is_an_agent_like_a_rule() -> None:
    (row,) = evaluate("crossing", "Planner", [1])
    (rule,) = evaluate("crossing", "MaxQueue", [1])
    assert row.agent == "Planner" and row.average_travel_time_s < rule.average_travel_time_s


def test_a_blind_planner_draws_the_arrivals() -> None:
    """Vehicles that have come stay; the others' number, times and routes are drawn, and differ from draw to draw."""
    environment = Environment("crossing", 0, features=[MAX_QUEUE])
    driven(environment, 60)
    engine = environment.engine
    assert isinstance(engine, EngineCore)
    state, now_s = engine.state, engine.get_current_time()
    begun = state.flow_order[: int(state.counters[tables.NEXT_EVENT])]
    demand = Arrivals(state, seed=1).draw(state, now_s, 200.0, draws=40)
    assert (demand.start_s[:, begun] == state.flow_start[begun]).all()
    coming = (demand.start_s > now_s) & (demand.start_s <= now_s + 200)
    expected = state.flow_start.size / (state.flow_start.max() - state.flow_start.min()) * 200
    assert coming.sum(axis=1).mean() == pytest.approx(expected, rel=0.1) and len(set(coming.sum(axis=1))) > 5
    for row, order in zip(demand.start_s, demand.order, strict=True):
        assert sorted(order) == list(range(row.size)) and (np.diff(row[order]) >= 0).all()
    shares = [np.bincount(routes[known], minlength=state.flow_route.max() + 1) for routes, known in
              ((state.flow_route, slice(None)), (demand.route[coming], slice(None)))]  # fmt: skip
    drawn, real = shares[1] / shares[1].sum(), shares[0] / shares[0].sum()
    assert np.abs(drawn - real).max() < 0.03


def test_the_blind_planner_lies_between_its_base_and_the_one_that_knows() -> None:
    seconds = {
        agent: evaluate("crossing", agent, [0])[0].average_travel_time_s for agent in ("MaxQueue", "Planner.blind", "Planner")
    }
    assert seconds["Planner"] < seconds["Planner.blind"] < seconds["MaxQueue"]
    again = evaluate("crossing", "Planner.blind", [0])[0].average_travel_time_s
    assert again == seconds["Planner.blind"]
