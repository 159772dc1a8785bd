"""Steps by several threads: the same to the last bit for every number of them, whatever they do when."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from streetflow import Engine
from streetflow.engine import team
from streetflow.errors import InputWarning, StepError
from tests.helpers.drawn_networks import Case, cases, drawn
from tests.helpers.small_network import CAR, dead_end, demand, grid, write


@pytest.fixture(autouse=True)
def always_a_team(monkeypatch: pytest.MonkeyPatch) -> None:
    """Teams of any size, however few vehicles and cores there are."""
    monkeypatch.setattr(team, "LEAST_VEHICLES", 0)
    monkeypatch.setattr(team, "useful_threads", lambda thread_num: thread_num)
    monkeypatch.setattr("streetflow.engine.start.useful_threads", lambda thread_num: thread_num)


def tables_of(engine: Engine) -> dict[str, bytes]:
    """Every table, apart from scratch."""
    scratch = ("listed", "mover", "mover_path_index", "mover_from", "mover_to")
    return {name: values.tobytes() for name, values in engine.state._asdict().items() if name not in scratch}


def compare(engines: list[Engine], case: Case, portions: list[int]) -> None:
    random = np.random.default_rng(case.seed % 2**32)
    for n_steps in portions:
        if not case.own_lights:
            signal, phase = case.signals[random.integers(len(case.signals))], int(random.integers(4))
            for engine in engines:
                engine.set_tl_phase(signal, phase)
        for engine in engines:
            engine.step_many(n_steps)
        alone = tables_of(engines[0])
        for engine in engines[1:]:
            differing = [name for name, values in tables_of(engine).items() if values != alone[name]]
            assert not differing, f"{differing} after {engine.get_current_time()} s"


@drawn(max_examples=15)
@given(case=cases())
def test_any_number_of_threads_gives_the_same(tmp_path: Path, case: Case) -> None:
    config = case.write(tmp_path)
    engines = [Engine(config, thread_num=n) for n in (1, 2, 5)]
    assert not isinstance(engines[0]._step_kernel, team.TeamSteps)
    assert all(isinstance(engine._step_kernel, team.TeamSteps) for engine in engines[1:])
    compare(engines, case, [1, 1, 1, 7, 40, 1, 60, 90])


class Unreliable(ThreadPoolExecutor):
    """Helpers that come late, that never come, that come when the work is done."""

    def submit(self, function: Any, /) -> Future[Any]:  # type: ignore[override]
        counters = function.args[0]  # the first table of the first block
        kind = len(counters) * 7 + int(counters[0]) % 3  # the step, which changes from call to call
        if kind % 3 == 0:
            return Future()
        delay_s = 0.0002 if kind % 3 == 1 else 0.005
        return super().submit(lambda: (time.sleep(delay_s), function()))


def test_helpers_that_come_late_or_never(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roadnet = grid(3, 2, seed=8)
    config = write(tmp_path, roadnet, demand(roadnet, 160, 200, seed=8), seed=3, rlTrafficLight=False)
    alone = Engine(config)
    monkeypatch.setattr(team, "ThreadPoolExecutor", Unreliable)
    together = Engine(config, thread_num=3)
    for _ in range(250):
        alone.next_step()
        together.next_step()
    assert tables_of(alone) == tables_of(together)
    assert alone.finished_vehicle_count > 50


def test_a_dead_end_stops_a_team_in_the_same_step(tmp_path: Path) -> None:
    stuck = {"vehicle": dict(CAR), "route": ["r_-1_0_0", "r_0_0_0", "r_1_0_0"], "interval": 5, "startTime": 0, "endTime": 40}
    config = write(tmp_path, dead_end(), [stuck])
    faults = []
    for thread_num in (1, 2):
        with pytest.warns(InputWarning, match="dead end"):
            engine = Engine(config, thread_num=thread_num)
        with pytest.raises(StepError) as fault:
            engine.step_many(100)
        with pytest.raises(StepError):  # it stays stopped
            engine.next_step()
        faults.append(str(fault.value))
        engine.reset()
        engine.next_step()
    assert faults[0] == faults[1]


def test_few_vehicles_or_one_core_need_no_team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    roadnet = grid()
    config = write(tmp_path, roadnet, demand(roadnet, 20, 60))
    monkeypatch.setattr(team.os, "sched_getaffinity", lambda _: {0})
    assert not isinstance(Engine(config, thread_num=8)._step_kernel, team.TeamSteps)
    monkeypatch.setattr(team.os, "sched_getaffinity", lambda _: {0, 1, 2})
    engine = Engine(config, thread_num=8)
    assert isinstance(engine._step_kernel, team.TeamSteps)
    monkeypatch.setattr(engine._step_kernel, "_pool", None)  # must not be used
    engine.step_many(30)
    assert 0 < engine.get_vehicle_count() < team.LEAST_VEHICLES


def test_helpers_go_where_the_leader_never_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C as the steps begin: helpers that stayed would keep a core busy, and the process from ending."""
    roadnet = grid()
    engine = Engine(write(tmp_path, roadnet, demand(roadnet, 20, 60)), thread_num=2)
    engine.step_many(5)
    helpers: list[Future[Any]] = []

    class Pool(ThreadPoolExecutor):
        def submit(self, *arguments: Any, **named: Any) -> Future[Any]:
            helpers.append(super().submit(*arguments, **named))
            return helpers[-1]

    def interrupted(*_: Any) -> int:
        raise KeyboardInterrupt

    steps = engine._step_kernel
    monkeypatch.setattr(steps, "_pool", Pool(1))
    monkeypatch.setattr(steps._kernel, "team_steps", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.step_many(5)
    assert len(helpers) == 1 and helpers[0].result(timeout=20) is None
