"""`tinylight train --sweep`, and a single training on a cluster."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from streetflow.files import require_folder
from tinylight.commands.jobs import require_place, run_with_bar
from tinylight.commands.train_result import show_policy
from tinylight.console import require_writable, say, show


def train_sweep(file: Path, work: Path, processes: int | None, cluster: str | None) -> None:
    """All trainings of a sweep's file into a folder, and then their tables."""
    from model.report.sweep import Sweep
    from model.report.sweep_table import headings, setting_rows, shown, sweep_rows, write_sweep

    require_place(processes, cluster)
    require_folder(work)
    if work.is_dir():  # otherwise the runs create the folder
        require_writable(*(work / f"sweep.{suffix}" for suffix in ("json", "csv", "md")))
    sweep = Sweep(file)
    run_with_bar("sweep", sweep.trainings, work, processes, cluster)
    rows = sweep_rows(sweep, work)
    write_sweep(sweep, rows, work)
    table = Table(title=f"{len(rows)} trainings", title_justify="left", box=SIMPLE_HEAD)
    for heading in headings(sweep):
        table.add_column(heading, justify="right")
    for row in setting_rows(rows):
        table.add_row(*shown(row))
    show(table)
    say(f"written: {work / 'sweep'}.json, .csv, .md")


def train_on_cluster(fields: Mapping[str, Any], out: Path, cluster: str, json_file: Path | None) -> None:
    """One training, as a job of a cluster. fields: as a sweep's."""
    from dataclasses import replace

    from model.policy.file import load_policy
    from model.report.training import Training

    training = replace(Training.of(fields, "tinylight train"), out_name=out.name)
    require_place(None, cluster)
    require_writable(out, *training.checkpoints(out.parent), json_file)
    run_with_bar(f"training on {cluster}", [training], out.parent, None, cluster)
    show_policy(load_policy(out), out, json_file)
