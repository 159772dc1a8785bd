"""The traffic of a run once more, second by second, and the same traffic under rules: what the report's curves are made of."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hil.loop.closed_loop import DecisionRecord
from hil.loop.job import Job
from model.policy.file import load_policy
from streetflow.control.controllers import CONTROLLERS, Controller
from streetflow.control.environment import Environment
from streetflow.control.measures import QueueMeter

RULES = ("MaxPressure", "MaxQueue", "FixedTime")
MEASURES = ("travel_time_s", "delay_s", "queue_vehicles", "largest_queue_vehicles", "entry_queue_vehicles", "completion_rate")


@dataclass(frozen=True)
class Course:
    """How a run went: `measures` by the names of `MEASURES` (None where one isn't defined or the engine can't tell), and at the
    end of each decision's interval the vehicles standing on lanes or waiting to enter."""

    name: str
    measures: dict[str, float | None]
    throughput_veh_per_min: float
    time_s: list[int]
    queued: list[int]


def courses(job: Job, records: Sequence[DecisionRecord]) -> list[Course]:
    """The recorded run first, then the rules on the same flow, with the same clearance and minimum green."""
    chip = _Recorded(records)
    found = [_course("this policy", job.environment(load_policy(job.policy_file)), chip)]
    clearance = job.clearance or load_policy(job.policy_file).clearance
    for name in RULES:
        rule = CONTROLLERS[name]()
        environment = Environment(
            job.network,
            job.flow,
            engine=job.engine,
            features=rule.features,
            clearance=clearance,
            min_green_s=job.min_green_s,
        )
        found.append(_course(name, environment, rule))
    return found


class _Recorded:
    """Sets the lights as a run's records say: a light without a usable answer stays as it is."""

    features: tuple[str, ...] = ()  # it looks at nothing

    def __init__(self, records: Sequence[DecisionRecord]) -> None:
        self._records = records

    def reset(self, environment: Environment) -> None:
        self._environment = environment
        self._count = len(environment.intersections)

    def act(self, observation: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        first = self._environment.decision * self._count
        step = self._records[first : first + self._count]
        kept = self._environment.current_action
        return np.array([record.action if record.usable else kept[n] for n, record in enumerate(step)], np.int32)


def _course(name: str, environment: Environment, controller: Controller) -> Course:
    environment.measures_queues = True
    observation = environment.reset()
    controller.reset(environment)
    meter, time_s = QueueMeter(), [0]
    meter.sample(environment.engine)
    done = False
    while not done:
        observation, _, done = environment.step(controller.act(observation))
        meter.sample(environment.engine)
        time_s.append(environment.time_s)
    measures = environment.measures()
    queued = [standing + outside for standing, outside in zip(meter.standing, meter.outside, strict=True)]
    figures = {each: measures.get(each) for each in MEASURES}
    return Course(name, figures, environment.throughput_veh_per_min(), time_s, queued)
