"""The programs that `benchmarks/test_beside_cityflow.py` would time: they run, and the ratio is CityFlow's time by ours."""

from __future__ import annotations

import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import streetflow
from benchmarks import test_beside_cityflow as beside


class Slow:
    """An engine like ours that takes its time to load and to step."""

    def __init__(self, config: str, thread_num: int) -> None:
        time.sleep(0.05)
        self._engine = streetflow.Engine(config, thread_num)

    def next_step(self) -> None:
        time.sleep(0.001)
        self._engine.next_step()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


@pytest.mark.parametrize("read", beside.READS)
def test_a_slower_module_has_a_ratio_above_1(read: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "WARM_UP_STEPS", 60)
    monkeypatch.setattr(beside, "STEPS", 10)
    module: ModuleType = SimpleNamespace(Engine=Slow, __name__="slow")  # type: ignore[assignment]
    loading, running, vehicles = beside.compare(module, beside.write_config(tmp_path, "crossing"), read, rounds=1)
    assert loading > 1 and running > 1 and vehicles > 0


def test_the_replay_of_the_comparison_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "WARM_UP_STEPS", 5)
    monkeypatch.setattr(beside, "STEPS", 5)
    beside.program_s(streetflow, beside.write_config(tmp_path, "crossing", replay=True), beside.nothing)
    assert len((tmp_path / "replay.txt").read_text().splitlines()) == 10
