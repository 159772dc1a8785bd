"""Runs jobs, the longest first, in processes of this machine or on a cluster, and reports progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from model.report.cluster import on_cluster
from model.report.jobs import Job
from model.report.processes import in_processes


@dataclass(frozen=True)
class JobsProgress:
    """Given to the progress callback several times a second."""

    done_units: float
    total_units: float
    finished: Job | None = None  # that has just been finished
    wall_s: float = 0.0  # how long that one took
    found: bool = False  # its results existed already
    lost: Job | None = None  # whose node has gone; it has been begun again


def run_jobs(
    jobs: Sequence[Job],
    work: Path,
    *,
    processes: int | None = None,
    cluster: str | None = None,
    progress: Callable[[JobsProgress], None] | None = None,
) -> None:
    """Does all jobs whose results aren't in the work folder yet. The results don't depend on where they run.

    Args:
        jobs: in any order.
        work: the folder, which is made.
        processes: how many jobs at once on this machine; None: one a core.
        cluster: "auto" or HOST:PORT of a Ray cluster that runs them (`model.report.cluster`); None: processes of this machine.
        progress: called with every news.

    Raises:
        Exception: what a job has raised. Finished results stay.
        FieldError: there is no such cluster.
    """
    work.mkdir(parents=True, exist_ok=True)
    report = progress or (lambda _state: None)
    total = sum(job.work_units for job in jobs)
    todo: list[Job] = []
    done = 0.0
    for job in jobs:
        if job.is_done(work):
            done += job.work_units
            report(JobsProgress(done, total, job, found=True))
        else:
            todo.append(job)
    if not todo:
        return
    todo.sort(key=lambda job: -job.work_units)  # the longest first, so that no core is left with one at the end
    fractions = [0.0] * len(todo)
    began_s: dict[int, float] = {}
    updates = in_processes(todo, work, processes) if cluster is None else on_cluster(todo, work, cluster)
    with closing(updates):
        for number, fraction, is_finished, is_lost in updates:
            now_s = time.monotonic()
            wall_s = now_s - began_s.setdefault(number, now_s)
            fractions[number] = 0.0 if is_lost else max(fractions[number], fraction)
            running = done + sum(each * job.work_units for each, job in zip(fractions, todo, strict=True))
            job = todo[number]
            report(JobsProgress(running, total, job if is_finished else None, wall_s, lost=job if is_lost else None))
