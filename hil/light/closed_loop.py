"""The closed loop through the pins: the simulated traffic obeys the lamps, and the loops at the chips' pins feel the traffic.

The traffic's second 0 is the moment when phase 0 begins on a chip, each chip's own. Second k of the engine is played from
k + `LAG_S` on: the lamps that the pins show at that moment hold for the whole second, and what passes a loop within it
reaches the pins within it. So lamps and detectors both lag `LAG_S` behind the engine: the time that a decision has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hil.light.crossing import Crossing
from hil.light.loops import Loops
from hil.light.street import street_of
from hil.light.told import record_of, ways_of
from hil.light.whole_roads import whole_road_sums
from hil.loop.closed_loop import DecisionRecord, Expected, LoopResult, Seat, decide
from hil.loop.edges import Edge
from model.policy.agent import Inference, PolicyAgent
from model.policy.file import Policy
from streetflow.control.environment import Environment
from streetflow.control.features import resolve_features
from streetflow.control.measures import ThroughputMeter
from streetflow.control.observation import Observer

LAG_S = 0.1


@dataclass
class LightResult(LoopResult):
    """The outcome of one run: beside the decisions what the lamps showed. ``records`` of mode ``alone`` have what the chip told
    of its own decisions, on its own counts; ``sensed`` has for each of them the chip's values less the engine's, or where
    vehicles change lanes (on SUMO) their sums over whole roads."""

    sensed: list[tuple[int, ...]] = field(default_factory=list)
    ways: list[tuple[int, ...]] = field(default_factory=list)
    """For each of ``sensed``: by how much a single vehicle moves each value."""
    by_lanes: list[tuple[int, ...]] | None = None
    """Where ``sensed`` is of whole roads: the values themselves."""
    mismatches: list[str] = field(default_factory=list)
    """Lamps that the engine can't show, and when: all was closed."""
    silent: int = 0
    """Decisions that the chip should have told, and didn't."""


class Decider(Protocol):
    """What the chips are asked, and what they should answer."""

    def reset(self, environment: Environment) -> None: ...

    def infer(self, observation: NDArray[np.int32]) -> list[Inference]: ...


class _Run:
    def __init__(
        self, environment: Environment, decider: Decider, crossings: Sequence[Crossing], seats: Sequence[Seat]
    ) -> None:
        self.environment, self.crossings, self.seats = environment, crossings, seats
        self.engine, self.result = environment.engine, LightResult()
        environment.reset()
        self._agent = decider
        self._agent.reset(environment)
        self._observer = Observer(environment.intersections, resolve_features(environment.feature_names), self.engine)
        lanes = sorted({lane for each in crossings for lane in each.lanes})
        self._loops, self._street = Loops(environment, lanes), street_of(environment)
        self._wires: dict[int, list[tuple[Crossing, int]]] = {lane: [] for lane in range(len(lanes))}
        for crossing in crossings:
            for k, lane in enumerate(crossing.lanes):
                self._wires[lanes.index(lane)].append((crossing, k))
        self._truth: list[list[tuple[int, ...]]] = []

    def second(self, second: int) -> None:
        """One second of the engine, and then what it brings is on its way to the pins."""
        begin_s = second + LAG_S
        for crossing in self.crossings:
            crossing.run(begin_s)
        self.result.mismatches += [f"{second} s, {what}" for what in self._street.show(self.crossings)]
        self.engine.step_many(1)
        edges: dict[int, list[Edge]] = {crossing.number: [] for crossing in self.crossings}
        for edge in self._loops.step():
            for crossing, k in self._wires[edge.loop // 2]:
                edges[crossing.number].append(edge._replace(loop=2 * k + edge.loop % 2))
        counts = self.engine.lane_vehicle_counts()
        for crossing in self.crossings:
            crossing.sense(second, edges[crossing.number], begin_s)
            crossing.judge.calls(crossing.start_us + 1e6 * (begin_s + 1), _called(crossing, counts))

    def observe(self) -> NDArray[np.int32]:
        actions = np.array([crossing.action for crossing in self.crossings], np.int32)
        return self._observer.observe(self.engine, actions)[0]

    def ask(self, decision: int) -> list[DecisionRecord]:
        """Mode ``light``: each chip is asked, at the second at which it decides."""
        step = []
        inferences = self._agent.infer(self.observe())
        for crossing, seat, inference in zip(self.crossings, self.seats, inferences, strict=True):
            crossing.run(float(decision * self.environment.decision_interval_s))
            assert inference.saturation is not None
            expected = Expected(
                decision=decision, intersection=crossing.plan.intersection, expected_action=inference.action,
                expected_logits=tuple(inference.logits.tolist()), expected_phase=crossing.plan.phase_numbers[inference.action],
                beyond_range=bool(inference.saturation.inputs), at_limit=bool(inference.saturation.units),
            )  # fmt: skip
            step.append(decide(seat, inference.inputs.tolist(), None, expected, False))
        self.result.records += step
        return step

    def note_truth(self) -> None:
        """Mode ``alone``: what the engine counts at the moment of a decision."""
        self._truth.append([tuple(each.inputs.tolist()) for each in self._agent.infer(self.observe())])

    def judge_told(self, policy: Policy) -> None:
        """Mode ``alone``: what the chips have told of their decisions, against numpy on the same values and the engine's."""
        for number, crossing in enumerate(self.crossings):
            if crossing.chip_faults.done:  # it may have begun to count anew, and its line may have been cut
                self.result.records += [
                    record_of(policy.intersections[number], crossing, each) for each in crossing.told.decisions
                ]
                continue
            told = {each.number: each for each in crossing.told.decisions}
            part, light = policy.intersections[number], self.environment.intersections[number]
            ways, sums = ways_of(part, light), np.eye(part.n_inputs, dtype=np.int64)
            if self._street.changes_lanes:
                sums = whole_road_sums(part, light)
                ways = (sums * ways).max(axis=1, initial=0)
                self.result.by_lanes = self.result.by_lanes or []
            for decision, truth in enumerate(self._truth):
                if (found := told.get(decision)) is None:
                    self.result.silent += 1
                    continue
                self.result.records.append(record_of(part, crossing, found))
                off = np.subtract(found.values, truth[number])
                self.result.ways.append(tuple(ways.tolist()))
                self.result.sensed.append(tuple((sums @ off).tolist()))
                if self.result.by_lanes is not None:
                    self.result.by_lanes.append(tuple(off.tolist()))


def run_light_loop(
    environment: Environment,
    policy: Policy,
    crossings: Sequence[Crossing],
    seats: Sequence[Seat] = (),
    *,
    policy_file: str = "policy",
    decider: Decider | None = None,
    on_decision: Callable[[int], None] | None = None,
) -> LightResult:
    """One episode with chips that have come to their first green. Their lamps rule, whoever decides.

    Args:
        environment: with the clearance ``computed``, whose phases the lamps' are looked up in; on the built-in engine or SUMO.
        policy: what the chips hold, each its own crossing's part.
        crossings: one for each of the environment's lights, started.
        seats: mode ``light``: a link for each; none: the chips decide alone, and tell.
        policy_file: its name, for errors.
        decider: mode ``light``: decides in the policy's place; None: the policy, by numpy.
        on_decision: called with the number of decisions so far, for progress.
    """
    run = _Run(environment, decider or PolicyAgent(policy, integer=True, source=policy_file), crossings, seats)
    meter, interval_s = ThroughputMeter(), environment.decision_interval_s
    for decision in range(environment.n_decisions):
        begin_s = decision * interval_s
        if seats:
            run.ask(decision)
        else:
            run.note_truth()
        end_s = min(begin_s + interval_s, environment.horizon_s)
        for second in range(begin_s, end_s):
            run.second(second)
        meter.after_decision(begin_s, environment.engine.finished_vehicle_count)
        if on_decision is not None:
            on_decision(decision + 1)
    for crossing in crossings:
        crossing.run(environment.horizon_s + LAG_S)
    if not seats:
        run.judge_told(policy)
    run.result.average_travel_time_s = environment.average_travel_time_s()
    run.result.throughput_veh_per_min = meter.mean_veh_per_min
    return run.result


def _called(crossing: Crossing, counts: NDArray[np.int32]) -> set[int]:
    """Groups that somebody on a lane could leave by."""
    plan = crossing.plan
    return {group for lane, groups in zip(plan.in_lanes, plan.lane_groups, strict=True) if counts[lane] for group in groups}
