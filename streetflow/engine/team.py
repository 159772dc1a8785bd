"""Steps by several threads, where there are so many vehicles that this is faster."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streetflow.errors import whole_number
from streetflow.kernels import tables as t

LEAST_VEHICLES = 3000  # docs/scale.md


def checked_threads(thread_num: int) -> int:
    """The number; ValueError unless it is at least 1."""
    if whole_number(thread_num, "thread_num") < 1:
        raise ValueError(f"thread_num must be at least 1, is {thread_num}")
    return thread_num


def useful_threads(thread_num: int) -> int:
    """How many of so many threads can run at once."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(thread_num, cores)


class TeamSteps:
    """Called like the kernel `step_many`, with the same result to the last bit."""

    def __init__(self, step_many: Callable[..., int], threads: int) -> None:
        """step_many: for few vehicles. threads: more than one."""
        from streetflow.kernels import team_step  # compiled only where it is needed

        self._kernel = team_step
        self._alone = step_many
        self._n_helpers = threads - 1
        self._is_compiled = False
        self._pool = ThreadPoolExecutor(self._n_helpers, thread_name_prefix="streetflow")

    def __call__(self, net_i: NDArray[np.int32], *rest: Any) -> int:
        if net_i.item(t.N_RUNNING) < LEAST_VEHICLES:  # the counters are the first table of their block
            return self._alone(net_i, *rest)
        *memory, n_steps = net_i, *rest
        kernel: Any = self._kernel
        team = np.zeros(kernel.TEAM_SIZE, np.int64)
        team[kernel.TICKET] = kernel.NOTHING_YET
        if not self._is_compiled:  # ahead, by no steps: helpers would wait for the leader's code as busily as for work
            kernel.team_steps(*memory, team, 0)
            kernel.help_team(*memory, team)
            self._is_compiled, team[kernel.TICKET] = True, kernel.NOTHING_YET
        try:
            for _ in range(self._n_helpers):
                self._pool.submit(partial(kernel.help_team, *memory, team))
            fault: int = kernel.team_steps(*memory, team, n_steps)
        finally:
            team[kernel.TICKET] = kernel.QUIT * kernel.KIND  # else they would stay, if Ctrl-C comes before the leader
        return fault
