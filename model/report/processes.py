"""Runs jobs in processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from model.report.jobs import POLL_S, REPORT_EVERY_S, Job, Update
from streetflow.errors import report_input_warnings


def in_processes(jobs: Sequence[Job], work: Path, processes: int | None) -> Generator[Update, None, None]:
    """All jobs, in their order; closed early, it ends the processes at once, and unfinished jobs leave no result.

    Args:
        jobs: the jobs.
        work: the folder of their results.
        processes: how many at once; None: one a core.

    Raises:
        Exception: what a job has raised.
    """
    context = multiprocessing.get_context("spawn")  # torch and numba don't survive a fork with threads
    messages: Any = context.Queue()
    count = min(processes or cores(), len(jobs))
    with ProcessPoolExecutor(count, context, initializer=_start_worker, initargs=(messages,)) as pool:
        futures: dict[Future[None], int] = {pool.submit(_work, k, job, work): k for k, job in enumerate(jobs)}
        pending = set(futures)
        try:
            while pending:
                finished, pending = wait(pending, timeout=POLL_S, return_when=FIRST_COMPLETED)
                for k, fraction in _all_of(messages):
                    yield Update(k, fraction)
                for future in finished:
                    future.result()
                    yield Update(futures[future], 1.0, is_finished=True)
        except BaseException:
            _stop(pool)
            raise


_messages: Any = None  # of the worker process


def _start_worker(messages: Any) -> None:
    """Runs once in each worker: takes the queue, leaves Ctrl-C and SIGTERM to the parent, and ends with the parent, however
    that ends. Warnings about input are separate lines on stderr."""
    global _messages
    _messages = messages
    report_input_warnings(lambda text: print(f"tinylight: {text}", file=sys.stderr))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(number: int, job: Job, work: Path) -> None:
    last_s = 0.0

    def report(fraction: float) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s >= REPORT_EVERY_S:
            last_s = now_s
            _messages.put((number, fraction))

    report(0.0)
    job.run(work, report)


def _all_of(messages: Any) -> list[tuple[int, float]]:
    found = []
    while True:
        try:
            found.append(messages.get_nowait())
        except queue.Empty:
            return found


def _stop(pool: ProcessPoolExecutor) -> None:
    """Ends the workers at once; their unfinished jobs leave no result."""
    processes = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
