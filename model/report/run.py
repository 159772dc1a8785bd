"""Runs the tasks of a table in processes, one per core, and reports progress."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.report.tasks import TableTask, is_done, run_task
from streetflow.errors import report_input_warnings

POLL_S = 0.2
REPORT_EVERY_S = 0.5  # a worker doesn't report more often


@dataclass(frozen=True)
class TableProgress:
    """Given to the progress callback several times a second."""

    done_units: float
    total_units: float
    finished: TableTask | None = None  # a task that has just been finished, at the latest call
    wall_s: float = 0.0  # how long that one took
    found: bool = False  # its cells existed already


def run_tasks(
    tasks: Sequence[TableTask],
    work: Path,
    *,
    processes: int | None = None,
    progress: Callable[[TableProgress], None] | None = None,
) -> None:
    """Makes all cells that aren't in the work folder yet. An exception in a task ends the run and is raised here; finished
    cells stay."""
    work.mkdir(parents=True, exist_ok=True)
    report = progress or (lambda _state: None)
    total = sum(task.work_units for task in tasks)
    todo = []
    done = 0.0
    for task in tasks:
        if is_done(task, work):
            done += task.work_units
            report(TableProgress(done, total, task, found=True))
        else:
            todo.append(task)
    if not todo:
        return
    todo.sort(key=lambda task: -task.work_units)  # the longest first, so that no core is left with one at the end
    processes = min(processes or _cores(), len(todo))
    context = multiprocessing.get_context("spawn")  # torch and numba don't survive a fork with threads
    messages: Any = context.Queue()
    fractions = dict.fromkeys(range(len(todo)), 0.0)
    started: dict[int, float] = {}
    with ProcessPoolExecutor(processes, context, initializer=_start_worker, initargs=(messages,)) as pool:
        futures: dict[Future[None], int] = {pool.submit(_work, k, task, work): k for k, task in enumerate(todo)}
        pending = set(futures)
        try:
            while pending:
                finished, pending = wait(pending, timeout=POLL_S, return_when=FIRST_COMPLETED)
                for k, fraction, now_s in _all_of(messages):
                    started.setdefault(k, now_s)
                    fractions[k] = max(fractions[k], fraction)
                for future in finished:
                    future.result()
                    k = futures[future]
                    fractions[k] = 1.0
                running = done + sum(fractions[k] * task.work_units for k, task in enumerate(todo))
                for future in finished:
                    k = futures[future]
                    report(TableProgress(running, total, todo[k], time.monotonic() - started.get(k, time.monotonic())))
                report(TableProgress(running, total))
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


def _work(number: int, task: TableTask, work: Path) -> None:
    last_s = 0.0

    def report(fraction: float) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s >= REPORT_EVERY_S:
            last_s = now_s
            _messages.put((number, fraction, now_s))

    report(0.0)
    run_task(task, work, report)


def _all_of(messages: Any) -> list[tuple[int, float, float]]:
    found = []
    while True:
        try:
            found.append(messages.get_nowait())
        except queue.Empty:
            return found


def _stop(pool: ProcessPoolExecutor) -> None:
    """Ends the workers at once; their unfinished tasks leave no cell."""
    processes = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
