"""Jobs as commands run them: on this machine or on a cluster, with progress."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from streetflow.errors import InputError
from tinylight.console import progress_bar

if TYPE_CHECKING:
    from model.report.jobs import Job
    from model.report.run import JobsProgress


def require_place(processes: int | None, cluster: str | None) -> None:
    """InputError for a cluster that there isn't, and for both at once."""
    if cluster is None:
        return
    from model.report.cluster import require_cluster

    if processes is not None:
        raise InputError("--processes", "", "is for this machine; with --cluster its nodes say how many jobs run")
    require_cluster(cluster)


def run_with_bar(name: str, jobs: "Sequence[Job]", work: Path, processes: int | None, cluster: str | None) -> None:
    """Does the jobs; a line for each that is finished, or begun again."""
    from model.report.run import run_jobs

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[end]}"),
    )
    with progress_bar(*columns) as bar:
        task = bar.add_task(name, total=None, end="")

        def on_progress(state: "JobsProgress") -> None:
            bar.update(task, completed=state.done_units, total=state.total_units, end=_expected_end(bar, task))
            if state.finished is not None and not state.found:
                bar.console.print(f"{state.finished}: {state.wall_s:.1f} s", style="dim", highlight=False)
            if state.lost is not None:
                bar.console.print(f"{state.lost}: its node was lost; begun again", style="yellow", highlight=False)

        run_jobs(jobs, work, processes=processes, cluster=cluster, progress=on_progress)


def _expected_end(bar: Progress, task: TaskID) -> str:
    """Clock time of the expected end; empty until a rate is known."""
    rest_s = bar.tasks[task].time_remaining
    return "" if rest_s is None else f"expected end {datetime.now() + timedelta(seconds=rest_s):%H:%M:%S}"
