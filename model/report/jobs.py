"""What a job is, wherever it runs: some runs of a table, or one training of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

OnFraction = Callable[[float], None]  # fraction of the job that is done
POLL_S = 0.2
REPORT_EVERY_S = 0.5  # a running job doesn't report more often


class Job(Protocol):
    """A piece of work whose results are files of a work folder. It can be pickled, and ``str`` names it.

    Of its results a NAME.json that is no NAME.policy.json is written last: where it is, the others are, too.
    """

    @property
    def work_units(self) -> float:
        """How long it takes, beside others; for the forecast."""

    def is_done(self, work: Path) -> bool:
        """Whether the folder has its results, made from the same inputs."""

    def inputs(self) -> Mapping[str, Any]:
        """What its results depend on, as this machine has it: settings, hashes of files, versions."""

    def checkpoints(self, work: Path) -> list[Path]:
        """Files that it goes on from after a stop, where they are there. It removes them at its end."""

    def run(self, work: Path, report: OnFraction) -> None:
        """Makes the results. InputError for impossible settings or a faulty file."""


class Update(NamedTuple):
    """News of a job. `is_lost`: its node has gone; it has been begun again."""

    job: int  # its place in the list
    fraction: float = 0.0
    is_finished: bool = False
    is_lost: bool = False
