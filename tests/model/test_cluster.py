"""`--cluster`: jobs on the nodes of a Ray cluster, one of them killed in mid-run, give the bytes of a single machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from model.report.cluster import require_same
from model.report.run import JobsProgress, run_jobs
from streetflow.errors import InputError
from tests.helpers.dying_job import DiesOnce
from tests.helpers.processes import PATIENCE_S, with_path
from tests.helpers.run_cli import tinylight
from tests.helpers.short_network import SHORT, write_short_crossing

ray = pytest.importorskip("ray", reason="Ray is not installed (extra: cluster)")
pytest.importorskip("torch", reason="torch is not installed (extra: train)")

from model.report.sweep import Sweep  # noqa: E402
from model.report.sweep_table import sweep_rows, write_sweep  # noqa: E402

SWEEP = f"""
[fixed]
network = "{SHORT}"
features = "inlane_2_num_vehicle,phase_2_delay"
search_episodes = 2
refine_episodes = 2
[grid]
tau = [0.1, 0.2]
seed = [0, 1]
"""
SOON = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 300, "health_check_failure_threshold": 3}


class TwoNodes:
    """Two nodes on this machine with a core each; the second can be killed, whatever runs on it."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        arguments = {"num_cpus": 1, "include_dashboard": False, "_system_config": SOON}
        self.cluster = Cluster(initialize_head=True, head_node_args=arguments)
        self.second = self.cluster.add_node(num_cpus=1)
        self.address = str(self.cluster.address)
        self.was_killed = False

    def works(self) -> bool:
        """Whether the second node has a job."""
        raylet = self.second.all_processes["raylet"][0].process.pid
        listed = subprocess.run(["ps", "-o", "args=", "--ppid", str(raylet)], capture_output=True, text=True, check=False)
        return f"ray::{SHORT}" in listed.stdout

    def kill_when_it_works(self) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not self.works() and time.monotonic() < until_s:
            time.sleep(0.05)
        self.was_killed = self.works()
        self.cluster.remove_node(self.second, allow_graceful=False)


@pytest.fixture
def nodes() -> Iterator[TwoNodes]:
    found = TwoNodes()
    yield found
    found.cluster.shutdown()


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command, but for where it runs."""
    write_short_crossing(tmp_path / "data", 400)
    monkeypatch.setenv("TINYLIGHT_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    Path("sweep.toml").write_text(SWEEP)
    return ["train", "--sweep", "sweep.toml"]


def contents(folder: str) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in Path(folder).rglob("*") if file.is_file()}


def test_stopped_and_then_with_a_node_killed_it_ends_with_a_single_machines_bytes(
    sweep: list[str], nodes: TwoNodes, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*sweep, "--out", "nodes", "--cluster", nodes.address]
    program = [sys.executable, "-c", "from tinylight.entry import main; main()", *command]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=with_path()) as process:
        until_s = time.monotonic() + PATIENCE_S
        while not list(Path().glob("nodes/*[0-9a-f].json")) and process.poll() is None and time.monotonic() < until_s:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, error.splitlines()[-1]) == (130, "", "tinylight: stopped")
    kept = contents("nodes")
    assert 0 < len(kept) < 8 and not [name for name in kept if name.endswith(".tmp")]

    killer = threading.Thread(target=nodes.kill_when_it_works)
    killer.start()
    assert tinylight(*command) == 0
    killer.join()
    assert nodes.was_killed and capsys.readouterr().err.count("its node was lost; begun again") == 1
    found = Sweep(Path("sweep.toml"))
    Path("alone").mkdir()
    for training in found.trainings:
        training.run(Path("alone"), lambda _fraction: None)
    write_sweep(found, sweep_rows(found, Path("alone")), Path("alone"))
    alone = contents("alone")
    assert contents("nodes") == alone and len(alone) == 4 * 2 + 3
    finished = {name: content for name, content in kept.items() if not name.endswith(".checkpoint")}  # of what was under way
    assert finished.items() <= alone.items()
    single = ["train", "--network", SHORT, "--features", "inlane_2_num_vehicle,phase_2_delay", "--double-q"]
    single += ["--search-episodes", "1", "--refine-episodes", "1", "--out"]
    assert tinylight(*single, "alone/p.json") == 0 and tinylight(*single, "nodes/p.json", "--cluster", nodes.address) == 0
    assert Path("nodes/p.json").read_bytes() == Path("alone/p.json").read_bytes()
    with pytest.raises(InputError, match=r"^faulty: of the job$"):
        run_jobs([DiesOnce("faulty", fault="of the job")], Path(), cluster=nodes.address)


def test_a_job_whose_process_dies_goes_on_from_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On Ray of this machine alone, which `auto` starts where there is no cluster. It tells its makers nothing."""
    monkeypatch.setenv("RAY_ADDRESS", "local")
    states: list[JobsProgress] = []
    jobs = [DiesOnce("once"), DiesOnce("always", least=9)]
    with pytest.raises(InputError, match=r"^always: its process or its node was lost 3 times"):
        run_jobs(jobs, tmp_path, cluster="auto", progress=states.append)
    assert "once" in [str(state.lost) for state in states if state.lost]
    assert [str(state.finished) for state in states if state.finished] == ["once"]
    assert json.loads((tmp_path / "once.json").read_text()) == {"went on from": "half", "RAY_USAGE_STATS_ENABLED": "0"}
    assert "tinylight: warning: of a node" in capsys.readouterr().err


def test_a_node_with_other_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^node .*: colour: is None, and red where the command was given: one$"):
        require_same(DiesOnce("one"), {"colour": "red"})


def test_ray_is_imported_for_a_cluster_alone() -> None:
    code = "import sys, tinylight.cli, model.report.run; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=with_path(), check=False).returncode == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cluster", "atuo"], "--cluster: 'atuo' is neither auto nor HOST:PORT; did you mean auto?"),
        (["--cluster", "127.0.0.1:9"], "--cluster: no cluster answers at 127.0.0.1:9: Connection refused"),
        (["--cluster", "auto", "--processes", "2"], "--processes: is for this machine; with --cluster its nodes say"),
    ],
)
def test_a_cluster_that_is_none(options: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for command in (["table", "--work", str(tmp_path / "w")], ["train", "--sweep", "x.toml", "--out", str(tmp_path / "w")]):
        assert tinylight(*command, *options) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("model.report.cluster.find_spec", lambda _name: None)
    assert tinylight("table", "--cluster", "auto") == 2
    assert "--cluster: needs Ray: pip install 'tinylight-hil[cluster]'" in capsys.readouterr().err
