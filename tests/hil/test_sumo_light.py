"""The chip's lamps on a street of SUMO's: alone with two loops a lane, and with the wishes of an agent."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hil.light.host_agent import AgentJob
from hil.light.job import run_light
from hil.light.light_run import LightRun
from hil.light.page import write_page
from hil.light.verdicts import check_sensing
from hil.loop.job_spec import Job
from hil.loop.lamp_faults import parse_lamp_faults
from hil.loop.verdict import Verdict
from streetflow.errors import FieldError
from streetflow.networks.catalogue import Network, network_of
from streetflow.sumo.engine import SumoEngine
from streetflow.sumo.programs import OPEN, YELLOW
from tests.helpers.sumo_files import CONFIG, import_to, needs_sumo
from tests.hil.test_sumo_loop import write_policy

pytestmark = [needs_sumo, pytest.mark.hil]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Network:
    folder = tmp_path_factory.mktemp("nets") / "two"
    import_to(CONFIG, folder)
    return replace(network_of(str(folder)), horizon_s=300)


@pytest.fixture(scope="module")
def alone(two: Network, tmp_path_factory: pytest.TempPathFactory) -> tuple[Verdict, LightRun, list[dict[str, str]]]:
    """With what SUMO's signals showed at each second's end."""
    file = tmp_path_factory.mktemp("policy") / "policy.json"
    write_policy(two, file)
    shown: list[dict[str, str]] = []
    step_many = SumoEngine.step_many

    def noting(engine: SumoEngine, n: int) -> None:
        step_many(engine, n)
        shown.append(engine.light_states())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SumoEngine, "step_many", noting)
        job = Job(two, 0, file, engine="sumo", mode="alone", monitor=True)
        verdict, run = run_light(job, keeps_all=True, films=True)
    return verdict, run, shown[: two.horizon_s]


def test_alone_with_monitors_all_but_the_traffic_passes(alone: tuple[Verdict, LightRun, list[dict[str, str]]]) -> None:
    """The policy is drawn at random: how it drives says nothing."""
    verdict, run, _ = alone
    outcomes = {check.name: check.outcome for check in verdict.checks if check.name != "traffic"}
    assert outcomes == dict.fromkeys(
        ("handshake", "flash", "RAM", "stack", "lamps", "monitor", "sensing", "decisions"), "pass"
    ), [check for check in verdict.checks if check.outcome != "pass"]
    assert verdict.provenance["engine"] == "sumo" and verdict.check("traffic").outcome != "not measured"
    assert len(run.result.records) == 2 * 300 // 20
    detail = verdict.check("sensing").detail
    assert "by whole roads: vehicles change lanes between two loops; the values themselves are" in detail
    off = replace(run.result, sensed=[tuple(value + 1 for value in values) for values in run.result.sensed])
    assert check_sensing(off).outcome == "fail"
    nothing = replace(run.result, sensed=[() for _ in run.result.sensed], ways=[() for _ in run.result.ways])
    assert check_sensing(nothing).outcome == "not measured"


def test_sumos_signals_are_the_lamps(alone: tuple[Verdict, LightRun, list[dict[str, str]]]) -> None:
    """Green is open and nothing else is; yellow comes before red, for as long as the lamps' (in whole seconds)."""
    _, run, shown = alone
    lit: dict[str, list[float]] = defaultdict(list)
    for light in shown[0]:
        for before, after in pairwise(shown):
            for old, new in zip(before[light], after[light], strict=True):
                assert not (old in OPEN and new not in OPEN | YELLOW), (light, before, after)
        for signal in range(len(shown[0][light])):
            letters = "".join("y" if state[light][signal] in YELLOW else "-" for state in shown)
            lit[light] += [len(each) for each in letters.split("-") if each]
    assert {light: len(times) > 5 for light, times in lit.items()} == {"A": True, "B": True}
    for crossing in run.crossings:
        yellows_s = {group.yellow_s for group in crossing.plan.groups}
        inner = lit[crossing.plan.intersection]
        assert all(min(yellows_s) - 1 < each < max(yellows_s) + 1 for each in inner[:-1]), (yellows_s, inner)


def test_the_page_has_sumos_vehicles_where_they_were(
    alone: tuple[Verdict, LightRun, list[dict[str, str]]], tmp_path: Path
) -> None:
    _, run, _ = alone
    assert run.recorder is not None
    recording = run.recorder.recording()
    assert recording.n_frames == 300 and "first" in recording.vehicle_ids
    lengths_m = dict(zip(recording.vehicle_ids, recording.vehicle_size_m[:, 0].tolist(), strict=True))
    assert {round(length_m, 3) for length_m in lengths_m.values()} == {4.5, 12.0} and lengths_m["first"] == 4.5
    own = recording.vehicle_ids.index("first")
    rows = slice(recording.vehicle_first[own], recording.vehicle_first[own + 1])
    assert recording.position_m[rows, 0] == pytest.approx(248.4, abs=0.5), "straight down, on the lane that SUMO has there"
    assert (np.diff(recording.position_m[rows, 1]) <= 0).all()
    write_page(run, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 20_000


def test_an_agents_wishes_are_shown_and_sumos_own_program_has_none(
    two: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINYLIGHT_DATA", str(two.roadnet_file.parent.parent))
    settings = {"engine": "sumo", "mode": "light"}
    job = AgentJob.deciding("MaxPressure", "two", 0, tmp_path, **settings)
    verdict, run = run_light(replace(job, network=replace(job.network, horizon_s=200)))
    for name in ("handshake", "latency", "lamps", "decisions"):
        assert verdict.check(name).outcome == "pass", verdict.check(name)
    assert len({record.action for record in run.result.records}) > 1
    with pytest.raises(FieldError, match="OwnProgram leaves the lights to SUMO: it has no wishes that a chip could show"):
        AgentJob.deciding("OwnProgram", "two", 0, tmp_path, **settings)


def test_a_crossing_that_its_monitor_has_cut_off_lets_nobody_pass(two: Network, tmp_path: Path) -> None:
    write_policy(two, tmp_path / "policy.json")
    faults = parse_lamp_faults("on@60:red0")
    job = Job(two, 0, tmp_path / "policy.json", engine="sumo", mode="alone", monitor=True, lamp_faults=faults)
    verdict, run = run_light(replace(job, network=replace(two, horizon_s=150)))
    assert verdict.check("monitor").outcome == "pass", verdict.check("monitor")
    tripped = [crossing for crossing in run.crossings if crossing.trips]
    assert tripped and not any(crossing.open_road_links or crossing.yellow_road_links for crossing in tripped)


def test_cityflow_does_not_tell_single_vehicles_and_is_refused(two: Network, tmp_path: Path) -> None:
    with pytest.raises(FieldError, match="the engines 'builtin' and 'sumo' alone tell them"):
        Job(two, 0, tmp_path / "policy.json", engine="cityflow", mode="alone")
