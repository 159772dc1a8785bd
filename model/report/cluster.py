"""Runs jobs on the nodes of a Ray cluster, which needn't share a file system with this machine.

A job runs in an empty folder of its node. What it writes there comes back and is put into the work folder here: its
checkpoints while it runs, its results at its end. So a job whose node is lost goes on elsewhere from its latest checkpoint,
and Ctrl-C here loses no more than it does without a cluster. Data sets and packages must be the same on all nodes, which is
checked. Ray is imported here alone, and tells its makers nothing.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from model.report.jobs import POLL_S, REPORT_EVERY_S, Job, OnFraction, Update
from model.report.processes import cores
from model.report.write import versions
from streetflow.errors import FieldError, InputError, report_input_warnings
from streetflow.files import write_whole
from streetflow.near import did_you_mean
from streetflow.networks.catalogue import data_setting, set_data

AUTO, LOCAL = "auto", "local"
TRIES = 3  # of a job whose node is lost each time
ANSWER_S = 5.0
STORE_BYTES = 256 << 20  # that nodes of this machine hold in memory; more goes to their disk

Files = dict[str, bytes]  # by path in the work folder


def require_cluster(address: str) -> None:
    """FieldError for an address that is none or where nothing answers, and where Ray isn't installed."""
    host, _, port = address.rpartition(":")
    if address != AUTO and not (host and port.isdecimal() and 0 < int(port) < 65536):
        raise FieldError("cluster", f"{address!r} is neither auto nor HOST:PORT{did_you_mean(address, [AUTO])}")
    if find_spec("ray") is None:
        raise FieldError("cluster", "needs Ray: pip install 'tinylight-hil[cluster]'")
    if address != AUTO:
        try:
            socket.create_connection((host, int(port)), ANSWER_S).close()
        except OSError as fault:
            raise FieldError("cluster", f"no cluster answers at {address}: {fault.strerror or fault}") from None


def on_cluster(jobs: Sequence[Job], work: Path, address: str) -> Generator[Update, None, None]:
    """All jobs, one a core of the cluster, in their order; closed early, it ends them.

    Args:
        jobs: the jobs.
        work: the folder of their results, on this machine.
        address: HOST:PORT of the cluster, of which this machine must be a node; ``auto``: the one that runs on this machine or
            that RAY_ADDRESS names, else one of this machine alone is started, and ended with the jobs.

    Raises:
        FieldError: there is no such cluster.
        Exception: what a job has raised.
        InputError: a node has other files or versions than this machine, or a job was lost `TRIES` times.
    """
    require_cluster(address)
    with _connected(address) as ray:
        yield from _Crew(ray, jobs, work).updates()


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Ray, connected. Ctrl-C and SIGTERM stay what they were."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # before the import, and for the processes that it starts
    import ray

    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    handlers = {number: signal.getsignal(number) for number in numbers}
    try:
        _join_or_start(ray, address)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    try:
        yield ray
    finally:
        ray.shutdown()


def _join_or_start(ray: Any, address: str) -> None:
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    named = address if address != AUTO else os.environ.get("RAY_ADDRESS")
    if named != LOCAL:
        try:
            ray.init(address=address, **quiet)
            return
        except ConnectionError as fault:
            if named:
                raise FieldError("cluster", f"{named}: {' '.join(str(fault).split())}") from None
    own = {"num_cpus": cores(), "include_dashboard": False, "object_store_memory": STORE_BYTES}
    ray.init(address=LOCAL, **own, **quiet)


class _Place(NamedTuple):
    """Where the command was given, so that names of data sets and agents mean the same on a node."""

    folder: str
    data: str | None

    @classmethod
    def here(cls) -> _Place:
        return cls(os.getcwd(), data_setting())

    def enter(self) -> None:
        if os.path.isdir(self.folder):
            os.chdir(self.folder)
        if self.data is not None:
            set_data(self.data)


class _News(NamedTuple):
    """Of a running job."""

    job: int
    attempt: int
    fraction: float | None  # None: only a warning
    checkpoints: Files
    warning: str = ""


class _Mailbox:
    """What running jobs tell; it lives on the node of this machine."""

    def __init__(self) -> None:
        self._news: list[_News] = []

    def put(self, news: _News) -> None:
        self._news.append(news)

    def take(self) -> list[_News]:
        news, self._news = self._news, []
        return news


class _Crew:
    def __init__(self, ray: Any, jobs: Sequence[Job], work: Path) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray, self._jobs, self._folder = ray, jobs, work
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._mailbox = ray.remote(num_cpus=0, scheduling_strategy=here)(_Mailbox).remote()
        self._work = ray.remote(num_cpus=1, max_retries=0)(_work)
        self._attempts = [0] * len(jobs)
        self._pending: dict[Any, int] = {}
        self._warned: set[str] = set()

    def updates(self) -> Iterator[Update]:
        ray = self._ray
        for number in range(len(self._jobs)):
            self._begin(number)
        while self._pending:
            finished, _ = ray.wait(list(self._pending), timeout=POLL_S)
            yield from self._read_mail()
            for each in finished:
                number = self._pending.pop(each)
                try:
                    results = ray.get(each)
                except ray.exceptions.RayTaskError as fault:
                    raise fault.cause from None
                except ray.exceptions.RayError as fault:
                    self._count_loss(number, fault)
                    self._begin(number)
                    yield Update(number, is_lost=True)
                else:
                    self._finish(number, results)
                    yield Update(number, 1.0, is_finished=True)

    def _begin(self, number: int) -> None:
        job = self._jobs[number]
        checkpoints = _read(self._folder, job.checkpoints(self._folder))
        inputs = versions() | dict(job.inputs())
        begun = self._work.options(name=str(job)).remote(
            self._mailbox, number, self._attempts[number], job, inputs, checkpoints, _Place.here()
        )
        self._pending[begun] = number

    def _read_mail(self) -> Iterator[Update]:
        try:
            letters = self._ray.get(self._mailbox.take.remote(), timeout=ANSWER_S)
        except self._ray.exceptions.RayError:
            return  # checkpoints and progress of the next letters will do
        running = set(self._pending.values())
        for news in letters:
            if news.warning and news.warning not in self._warned:
                self._warned.add(news.warning)
                print(f"tinylight: {news.warning}", file=sys.stderr)
            if news.fraction is not None and news.job in running and news.attempt == self._attempts[news.job]:
                _write(news.checkpoints, self._folder)
                yield Update(news.job, news.fraction)

    def _finish(self, number: int, results: Files) -> None:
        _write(results, self._folder)
        for file in self._jobs[number].checkpoints(self._folder):
            file.unlink(missing_ok=True)

    def _count_loss(self, number: int, fault: Exception) -> None:
        self._attempts[number] += 1
        if self._attempts[number] == TRIES:
            why = next(iter(str(fault).splitlines()), type(fault).__name__)
            raise InputError(str(self._jobs[number]), "", f"its process or its node was lost {TRIES} times, at last: {why}")


def _work(
    mailbox: Any, number: int, attempt: int, job: Job, inputs: Mapping[str, Any], checkpoints: Files, place: _Place
) -> Files:
    """A job on its node; returns its results."""
    place.enter()
    report_input_warnings(lambda text: mailbox.put.remote(_News(number, attempt, None, {}, text)))
    require_same(job, inputs)
    with tempfile.TemporaryDirectory(prefix="tinylight-job-") as name:
        folder = Path(name)
        _write(checkpoints, folder)
        job.run(folder, _reporter(job, folder, lambda *news: mailbox.put.remote(_News(number, attempt, *news))))
        return _read(folder, [file for file in folder.rglob("*") if file.is_file()])


def _reporter(job: Job, folder: Path, tell: Callable[[float, Files], Any]) -> OnFraction:
    """Tells the fraction, and each new checkpoint."""
    told_ns: dict[Path, int] = {file: file.stat().st_mtime_ns for file in job.checkpoints(folder) if file.is_file()}
    last_s = 0.0

    def report(fraction: float) -> None:
        nonlocal last_s
        if time.monotonic() - last_s < REPORT_EVERY_S:
            return
        last_s = time.monotonic()
        written_ns = {file: file.stat().st_mtime_ns for file in job.checkpoints(folder) if file.is_file()}
        tell(fraction, _read(folder, [file for file, at_ns in written_ns.items() if told_ns.get(file) != at_ns]))
        told_ns.update(written_ns)

    report(0.0)
    return report


def require_same(job: Job, inputs: Mapping[str, Any]) -> None:
    """InputError unless this node would make the same results as the machine that asks."""
    node = f"node {socket.gethostname()}"
    try:
        own = versions() | dict(job.inputs())
    except InputError as fault:
        raise InputError(node, "", str(fault)) from None
    for name, value in inputs.items():
        if own.get(name) != value:
            raise InputError(node, name, f"is {own.get(name)}, and {value} where the command was given: {job}")


def _read(folder: Path, files: Sequence[Path]) -> Files:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(files) if file.is_file()}


def _write(files: Files, folder: Path) -> None:
    """Those that say that the others are there come last."""
    for name in sorted(files, key=lambda name: name.endswith(".json") and not name.endswith(".policy.json")):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, files[name])
