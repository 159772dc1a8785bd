"""The closed loop: the simulator steps, and every decision round-trips over the link to the chip.

For each intersection and decision the loop sends the policy's kept features, takes the chip's action, and compares action
and logits with the integer reference, which runs one inference per decision on the same numbers. Where the chip does not
deliver a decision, the light keeps its current phase and the miss is counted: traffic goes on, as it must on a street.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

from hil.wire.link import Decision, Link, LinkError
from hil.wire.protocol import Light, logits_checksum
from model.policy.agent import PolicyAgent
from model.policy.file import Policy
from streetflow.control.controllers import run
from streetflow.control.environment import Environment


@dataclass(frozen=True)
class DecisionRecord:
    """One decision of one intersection. Times in microseconds on the board's clock; None where nothing came back
    (`response_us` also as `hil.wire.link.Decision` has it). `logits` are the expected ones where their CRC is the chip's,
    unless the run fetches all; empty where they could not be fetched. `beyond_range` and `at_limit` are the reference's: an
    input is beyond its range, a hidden unit at its limit (model/policy/integer.py)."""

    decision: int
    intersection: str
    action: int | None
    expected_action: int
    logits: tuple[int, ...] | None
    expected_logits: tuple[int, ...]
    phase: int | None
    expected_phase: int
    beyond_range: bool
    at_limit: bool
    compute_cycles: int | None
    response_us: float | None
    round_trip_us: float | None
    tries: int
    fault: str | None = None

    @property
    def answered(self) -> bool:
        return self.fault is None

    @property
    def saturated(self) -> bool:
        """Whether anything has left the integers' range."""
        return self.beyond_range or self.at_limit

    @property
    def usable(self) -> bool:
        """Whether the answer names a phase of the intersection; anything else must not reach the light."""
        return self.action is not None and self.action < len(self.expected_logits)

    @property
    def equal(self) -> bool:
        """True where the chip's phase, action and every logit are the reference's."""
        expected = self.expected_action, self.expected_phase, self.expected_logits
        return (self.action, self.phase, self.logits) == expected


@dataclass
class LoopResult:
    """The outcome of one closed-loop run."""

    records: list[DecisionRecord] = field(default_factory=list)
    average_travel_time_s: float = float("nan")
    throughput_veh_per_min: float = float("nan")

    @property
    def unanswered(self) -> list[DecisionRecord]:
        return [record for record in self.records if not record.answered]

    @property
    def unequal(self) -> list[DecisionRecord]:
        """Answered decisions that differ from the reference."""
        return [record for record in self.records if record.answered and not record.equal]


class Expected(TypedDict):
    """The reference's part of a `DecisionRecord`."""

    decision: int
    intersection: str
    expected_action: int
    expected_logits: tuple[int, ...]
    expected_phase: int
    beyond_range: bool
    at_limit: bool


class Seat(NamedTuple):
    """The place where an intersection is decided: the link to a board, and the intersection's number there."""

    link: Link
    number: int


def asked_of(link: Link, seats: Sequence[Seat], result: LoopResult) -> list[DecisionRecord]:
    """The decisions that were asked of one chip; each step has one of each seat."""
    return [record for number, record in enumerate(result.records) if seats[number % len(seats)].link is link]


def run_closed_loop(
    environment: Environment,
    policy: Policy,
    link: Link | Sequence[Seat],
    *,
    policy_file: str = "policy",
    logits: bool = False,
    on_decision: Callable[[Sequence[DecisionRecord]], None] | None = None,
) -> LoopResult:
    """Run one episode with the chip in the loop: one for all intersections, or a seat for each. Logits are compared by their
    CRC, and fetched where that differs; with `logits` they are fetched for every decision.

    `on_decision` is called after each step with that step's records (one per intersection), for progress.
    Link faults do not end the run: see the module's text. Where the environment has a minimum green, the chip is given each
    light's state and keeps it; the reference does the same.
    """
    agent = PolicyAgent(policy, integer=True, source=policy_file)
    seats = [Seat(link, number) for number in range(len(policy.intersections))] if isinstance(link, Link) else link
    result = LoopResult()
    observation = environment.reset()
    agent.reset(environment)
    done = False
    while not done:
        inferences = agent.infer(observation)
        actions = _after_min_green(environment, np.array([each.action for each in inferences], np.int32))
        lights: list[Light | None] = [None] * len(seats)
        if environment.min_green_s:
            shown = zip(environment.current_action, environment.green_s, strict=True)
            lights = [Light(int(action), int(green_s)) for action, green_s in shown]
        step = []
        for n, (seat, inference, intersection) in enumerate(zip(seats, inferences, environment.intersections, strict=True)):
            assert inference.saturation is not None
            expected = Expected(
                decision=environment.decision,
                intersection=intersection.id,
                expected_action=int(actions[n]),
                expected_logits=tuple(inference.logits.tolist()),
                expected_phase=int(intersection.phases[actions[n]]),
                beyond_range=bool(inference.saturation.inputs),
                at_limit=bool(inference.saturation.units),
            )
            step.append(decide(seat, inference.inputs.tolist(), lights[n], expected, logits))
        chosen = [record.action if record.usable else environment.current_action[n] for n, record in enumerate(step)]
        observation, _, done = environment.step(np.array(chosen, np.int32))
        result.records.extend(step)
        if on_decision is not None:
            on_decision(step)
    result.average_travel_time_s = environment.average_travel_time_s()
    result.throughput_veh_per_min = environment.throughput_veh_per_min()
    return result


def run_reference(environment: Environment, policy: Policy, *, policy_file: str = "policy") -> LoopResult:
    """The same episode decided by the numpy reference alone: what the closed loop must equal.

    It is a separate run, though the closed loop has every expected action: only this shows whether the loop applied the answers
    (which light got which, and when) as the policy would have done.
    """
    run(environment, _Patient(policy, integer=True, source=policy_file))
    return LoopResult(
        average_travel_time_s=environment.average_travel_time_s(),
        throughput_veh_per_min=environment.throughput_veh_per_min(),
    )


class _Patient(PolicyAgent):
    """The policy with the chip's rule for the minimum green."""

    def reset(self, environment: Environment) -> None:
        super().reset(environment)
        self._environment = environment

    def act(self, observation: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        return _after_min_green(self._environment, super().act(observation))


def _after_min_green(environment: Environment, actions: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The actions int32[N], except that lights within their minimum green keep theirs."""
    return np.where(environment.green_s < environment.min_green_s, environment.current_action, actions)


def decide(seat: Seat, values: list[int], light: Light | None, expected: Expected, logits: bool) -> DecisionRecord:
    try:
        answer = seat.link.decide(seat.number, values, logits, light)
    except LinkError as fault:
        return DecisionRecord(
            **expected,
            action=None,
            logits=None,
            phase=None,
            compute_cycles=None,
            response_us=None,
            round_trip_us=None,
            tries=getattr(fault, "tries", 0),
            fault=f"{type(fault).__name__}: {fault}",
        )
    return DecisionRecord(
        **expected,
        action=answer.action,
        logits=answer.logits if logits else _logits(seat.link, answer, expected["expected_logits"]),
        phase=answer.phase,
        compute_cycles=answer.compute_cycles,
        response_us=answer.response_us,
        round_trip_us=answer.round_trip_us,
        tries=answer.tries,
    )


def _logits(link: Link, answer: Decision, expected: tuple[int, ...]) -> tuple[int, ...]:
    """The logits that the chip has computed: the expected ones where their CRC matches, else fetched; none if that fails."""
    if answer.logits_crc == logits_checksum(expected):
        return expected
    try:
        return link.last_logits()
    except LinkError:
        return ()
