"""`tinylight stress`: the scorecard of robustness, agents on traffic that differs from what they were made for."""

import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from streetflow.errors import InputError
from streetflow.files import require_folder
from tinylight.commands.options import NetworkOption
from tinylight.console import progress_bar, require_writable, say, show

if TYPE_CHECKING:
    from model.report.stress import StressRun

SUFFIXES = (".csv", ".json", ".md", ".svg")


def stress(
    network: NetworkOption,
    agents: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Agents to show, separated by commas: rules and files of policies or trained baselines. All rules run, since "
            "one of them is the best. Default: the network's pretrained policy and the rules without a parameter.",
        ),
    ] = None,
    columns: Annotated[
        str, typer.Option(metavar="NAMES", help="Columns, separated by commas, such as `as is,volume 1.3`.")
    ] = "all",
    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Draws of each column, one of each flow. Default: 10, or all flows if fewer."),
    ] = None,
    float_: Annotated[
        bool, typer.Option("--float", help="Policies decide with the float network, instead of the 8-bit one of the chip.")
    ] = False,
    clearance: Annotated[
        str,
        typer.Option(
            metavar="hold|yellow|all_red|computed|shell",
            help="What all lights show in the 3 s between two phases, in all columns but `yellow` and `all red`.",
        ),
    ] = "hold",
    work: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where every finished run is kept: stopped or killed, the same command goes on."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="STEM", help="Write STEM.csv, STEM.json, STEM.md and STEM.svg (needs matplotlib).")
    ] = None,
) -> None:
    """Run agents under other volumes, turns and starts, a shut lane, faulty detectors and clearances, against the best rule.

    Every column is the network's demands with one thing changed (docs/robustness.md). All agents meet the same draws.
    """
    from model.report.stress import Kept, contestants, draws_of, find_columns
    from model.report.stress import stress as run
    from streetflow.control.clearance import require_clearance
    from streetflow.networks.catalogue import find_network

    chosen = find_columns(columns)
    require_clearance(clearance)
    shown = _shown(network, agents)
    entered = contestants(shown, network, integer=not float_)
    if work is not None:
        require_folder(work)
    if out is not None and out.is_dir():
        raise InputError(out, "", "can't be written: it is a folder, and --out is the files' name without its suffix")
    files = [out.with_name(out.name + suffix) for suffix in SUFFIXES] if out is not None else []
    require_writable(*files)
    found = find_network(network)
    draws = draws_of(found, seeds)
    kept = Kept(None if work is None else work / f"stress_{network}.jsonl")
    with progress_bar() as bar:
        task = bar.add_task(f"stress on {network}", total=draws * len(chosen) * len(entered))
        runs = run(
            found, entered, chosen, draws, clearance=clearance, kept=kept, progress=lambda _run: bar.advance(task)
        )  # fmt: skip
    _show(runs, shown)
    if out is not None:
        from model.report.stress_write import write_scorecard

        figure = find_spec("matplotlib") is not None
        write_scorecard(out, runs, chosen, shown, "tinylight " + shlex.join(sys.argv[1:]), figure=figure)
        say(f"written: {out}.csv, .json, .md" + ", .svg" * figure)
        if not figure:
            say("no picture: it needs matplotlib (pip install 'tinylight-hil[plot]')", style="yellow")


def _shown(network: str, agents: str | None) -> list[str]:
    from model import pretrained_policies, pretrained_policy
    from streetflow.control.controllers import CONTROLLERS, PAPER_RULES

    if agents is None:
        own = [str(pretrained_policy(network))] if network in pretrained_policies() else []
        return [*own, *(name for name in CONTROLLERS if name not in PAPER_RULES)]
    names = [name.strip() for name in agents.split(",")]
    if "" in names:
        raise InputError("--agents", "", f"{agents!r} leaves a name empty")
    return list(dict.fromkeys(names))


def _show(runs: "Sequence[StressRun]", shown: Sequence[str]) -> None:
    from model.report.stress import labels, scores
    from model.report.stress_write import best_rule, by_column, entry

    names = labels(shown)
    title = f"{runs[0].network}: mean travel time, and its loss against the best rule with a 95 % interval"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("column", no_wrap=True)
    table.add_column("best rule", no_wrap=True)
    for agent in shown:
        table.add_column(names[agent], justify="right", no_wrap=True)
    for column, by_agent in by_column(scores(runs)).items():
        entries = ["\n".join(entry(by_agent[agent])) for agent in shown]
        table.add_row(column, best_rule(by_agent), *entries)
    show(table)
